//! Requests of the other side that are being served: by local key and by wire id, and the batches that they came in.
//!
//! Takes what came in and which of it was answered; says which request an id means and when a batch is complete. Knows no
//! revision, no method and no role.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use mcp_exact_wire::RequestId;

use crate::types::{RequestKey, StreamId};

/// A bounded memory of numbers.
#[derive(Debug)]
struct Tombstones {
    order: VecDeque<u64>,
    known: BTreeSet<u64>,
    most: usize,
}

impl Tombstones {
    fn new(most: usize) -> Self {
        Self {
            order: VecDeque::new(),
            known: BTreeSet::new(),
            most,
        }
    }

    fn insert(&mut self, number: u64) {
        if self.most > 0 && self.known.insert(number) {
            if self.order.len() == self.most {
                let oldest = self.order.pop_front();
                oldest.map(|oldest| self.known.remove(&oldest));
            }
            self.order.push_back(number);
        }
    }

    fn len(&self) -> usize {
        self.order.len()
    }

    fn contains(&self, number: u64) -> bool {
        self.known.contains(&number)
    }
}

/// A request that is being served; `T` is what the role needs beside.
#[derive(Debug)]
pub(crate) struct Serving<T> {
    pub(crate) id: RequestId,
    pub(crate) stream: StreamId,
    pub(crate) batch: Option<u64>,
    /// How much memory it takes, about.
    pub(crate) size: usize,
    /// Whose ids it competes with: all of the session, or those of its stream.
    pub(crate) scope: Option<StreamId>,
    pub(crate) rest: T,
}

#[derive(Debug)]
pub(crate) struct Served<T> {
    by_key: BTreeMap<RequestKey, Serving<T>>,
    by_id: BTreeMap<(Option<StreamId>, RequestId), RequestKey>,
    cancelled: Tombstones,
    bytes: usize,
}

impl<T> Served<T> {
    pub(crate) fn new(tombstones: usize) -> Self {
        Self {
            by_key: BTreeMap::new(),
            by_id: BTreeMap::new(),
            cancelled: Tombstones::new(tombstones),
            bytes: 0,
        }
    }

    pub(crate) fn len(&self) -> usize {
        self.by_key.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn insert(&mut self, key: RequestKey, serving: Serving<T>) {
        self.bytes += serving.size;
        let id = (serving.scope, serving.id.clone());
        self.by_id.insert(id, key);
        self.by_key.insert(key, serving);
    }

    pub(crate) fn find(&self, scope: Option<StreamId>, id: &RequestId) -> Option<RequestKey> {
        if self.by_id.is_empty() {
            return None;
        }
        self.by_id.get(&(scope, id.clone())).copied()
    }

    pub(crate) fn get(&self, key: RequestKey) -> Option<&Serving<T>> {
        self.by_key.get(&key)
    }

    pub(crate) fn get_mut(&mut self, key: RequestKey) -> Option<&mut Serving<T>> {
        self.by_key.get_mut(&key)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (RequestKey, &Serving<T>)> {
        self.by_key.iter().map(|(key, serving)| (*key, serving))
    }

    /// A request holds so much more, until it holds less again.
    pub(crate) fn grow(&mut self, key: RequestKey, bytes: usize) {
        if let Some(serving) = self.by_key.get_mut(&key) {
            serving.size += bytes;
            self.bytes += bytes;
        }
    }

    pub(crate) fn shrink(&mut self, key: RequestKey, bytes: usize) {
        if let Some(serving) = self.by_key.get_mut(&key) {
            serving.size -= bytes;
            self.bytes -= bytes;
        }
    }

    pub(crate) fn take(&mut self, key: RequestKey) -> Option<Serving<T>> {
        let serving = self.by_key.remove(&key)?;
        self.bytes -= serving.size;
        self.by_id.remove(&(serving.scope, serving.id.clone()));
        Some(serving)
    }

    /// The same, because the other side does not want an answer any more.
    pub(crate) fn take_cancelled(&mut self, key: RequestKey) -> Option<Serving<T>> {
        let serving = self.take(key)?;
        self.cancelled.insert(key.0);
        Some(serving)
    }

    /// How many cancelled ones are remembered.
    pub(crate) fn tombstones(&self) -> usize {
        self.cancelled.len()
    }

    /// Whether an answer to this request is late rather than wrong.
    pub(crate) fn was_cancelled(&self, key: RequestKey) -> bool {
        self.cancelled.contains(key.0)
    }

    pub(crate) fn clear(&mut self) {
        let keys: Vec<RequestKey> = self.by_key.keys().copied().collect();
        for key in keys {
            self.take_cancelled(key);
        }
    }
}

/// InputResponses to the requests of one batch (2025-03-26: `basic`, "Batching"; JSON-RPC 2.0, section 6).
#[derive(Debug)]
struct Batch {
    stream: StreamId,
    open: usize,
    /// Whether all of its messages were looked at.
    read: bool,
    answers: Vec<Vec<u8>>,
}

/// A batch whose requests were all answered or cancelled: the array, when there is anything in it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Gathered {
    pub(crate) stream: StreamId,
    pub(crate) bytes: Option<Vec<u8>>,
}

#[derive(Debug, Default)]
pub(crate) struct Batches {
    last: u64,
    open: BTreeMap<u64, Batch>,
}

impl Batches {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    pub(crate) fn begin(&mut self, stream: StreamId) -> u64 {
        self.last += 1;
        let batch = Batch {
            stream,
            open: 0,
            read: false,
            answers: Vec::new(),
        };
        self.open.insert(self.last, batch);
        self.last
    }

    /// One of its requests is being served.
    pub(crate) fn serve(&mut self, batch: u64) {
        if let Some(batch) = self.open.get_mut(&batch) {
            batch.open += 1;
        }
    }

    /// An answer to a message of the batch that never was served.
    pub(crate) fn add(&mut self, batch: u64, answer: Vec<u8>) {
        if let Some(batch) = self.open.get_mut(&batch) {
            batch.answers.push(answer);
        }
    }

    /// All of its messages were looked at.
    pub(crate) fn end(&mut self, batch: u64) -> Option<Gathered> {
        self.open.get_mut(&batch)?.read = true;
        self.gather(batch)
    }

    /// A request of the batch was answered, or needs no answer any more.
    pub(crate) fn answered(&mut self, batch: u64, answer: Option<Vec<u8>>) -> Option<Gathered> {
        let open = self.open.get_mut(&batch)?;
        open.open -= 1;
        open.answers.extend(answer);
        self.gather(batch)
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
    }

    fn gather(&mut self, batch: u64) -> Option<Gathered> {
        if !self.open.get(&batch).is_some_and(|b| b.read && b.open == 0) {
            return None;
        }
        let batch = self.open.remove(&batch)?;
        let bytes = (!batch.answers.is_empty()).then(|| {
            let mut bytes = vec![b'['];
            bytes.extend(batch.answers.join(&b','));
            bytes.push(b']');
            bytes
        });
        Some(Gathered {
            stream: batch.stream,
            bytes,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpc_batch_received_answers_come_back_in_one_array() {
        let mut batches = Batches::default();
        let batch = batches.begin(StreamId::DUPLEX);
        batches.serve(batch);
        batches.serve(batch);
        batches.add(batch, b"1".to_vec());
        assert_eq!(batches.answered(batch, Some(b"2".to_vec())), None);
        assert_eq!(batches.end(batch), None);
        let gathered = batches.answered(batch, None).expect("complete");
        assert_eq!(gathered.bytes.as_deref(), Some(&b"[1,2]"[..]));
        assert_eq!(batches.answered(batch, None), None);
    }

    #[test]
    fn a_batch_without_answers_is_not_answered() {
        let mut batches = Batches::default();
        let batch = batches.begin(StreamId::DUPLEX);
        let gathered = batches.end(batch).expect("complete");
        assert_eq!(gathered.bytes, None);
    }

    #[test]
    fn tombstones_are_bounded() {
        let mut stones = Tombstones::new(2);
        (1..=3).for_each(|number| stones.insert(number));
        assert_eq!(
            (1..=3).map(|n| stones.contains(n)).collect::<Vec<_>>(),
            [false, true, true]
        );
    }
}
