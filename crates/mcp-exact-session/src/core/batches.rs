//! Batches of 2025-03-26 whose requests are not all answered (`basic`, "Batching"; JSON-RPC 2.0, section 6).
//!
//! Takes answers in any order; returns the array of all answers after the last one. Counts the bytes that it holds.

use std::collections::BTreeMap;

use mcp_exact_wire::RequestId;

use crate::message;
use crate::stream::StreamId;

/// Number of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct BatchId(u64);

#[derive(Debug)]
struct Batch {
    stream: StreamId,
    /// Requests that are not answered.
    open: usize,
    /// True if all of its messages were dispatched.
    dispatched: bool,
    answers: Vec<Vec<u8>>,
    /// True if every answer so far was made by the endpoint.
    reserved: bool,
    /// HTTP status if no message of the batch is answered.
    status: u16,
}

/// Batch whose requests were all answered or cancelled.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FinishedBatch {
    pub(crate) stream: StreamId,
    /// The array of the answers; `None` if there are none.
    pub(crate) bytes: Option<Vec<u8>>,
    /// True if every answer was made by the endpoint.
    pub(crate) reserved: bool,
    /// HTTP status if there are no answers.
    pub(crate) status: u16,
}

/// All batches that are not finished.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    last: u64,
    open: BTreeMap<BatchId, Batch>,
    bytes: usize,
}

impl Batches {
    pub(crate) fn len(&self) -> usize {
        self.open.len()
    }

    /// Bytes of the answers that wait for others.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    pub(crate) fn begin(&mut self, stream: StreamId) -> BatchId {
        self.last += 1;
        let id = BatchId(self.last);
        let batch = Batch {
            stream,
            open: 0,
            dispatched: false,
            answers: Vec::new(),
            reserved: true,
            status: 202,
        };
        self.open.insert(id, batch);
        id
    }

    /// Counts a request of the batch that is in flight.
    pub(crate) fn admit(&mut self, batch: BatchId) {
        if let Some(batch) = self.open.get_mut(&batch) {
            batch.open += 1;
        }
    }

    /// Adds the endpoint's answer to a message of the batch that was not admitted.
    pub(crate) fn add(&mut self, batch: BatchId, answer: Vec<u8>) {
        if let Some(batch) = self.open.get_mut(&batch) {
            self.bytes += answer.len();
            batch.answers.push(answer);
        }
    }

    /// Records the HTTP status of a message that gets no answer: the highest one is that of the batch.
    pub(crate) fn raise_status(&mut self, batch: BatchId, status: u16) {
        if let Some(batch) = self.open.get_mut(&batch) {
            batch.status = batch.status.max(status);
        }
    }

    /// All messages of the batch were dispatched.
    pub(crate) fn dispatched(&mut self, batch: BatchId) -> Option<FinishedBatch> {
        self.open.get_mut(&batch)?.dispatched = true;
        self.finish(batch)
    }

    /// A request of the batch was answered, or needs no answer any more.
    pub(crate) fn answered(
        &mut self,
        batch: BatchId,
        answer: Option<Vec<u8>>,
    ) -> Option<FinishedBatch> {
        let open = self.open.get_mut(&batch)?;
        open.open -= 1;
        open.reserved = false;
        self.bytes += answer.as_ref().map_or(0, Vec::len);
        open.answers.extend(answer);
        self.finish(batch)
    }

    /// Streams and ids of the requests whose answers wait for others.
    pub(crate) fn answered_requests(&self) -> impl Iterator<Item = (StreamId, RequestId)> {
        let answers = self.open.values().flat_map(|batch| {
            let answers = batch.answers.iter();
            answers.map(|answer| (batch.stream, answer))
        });
        answers.filter_map(|(stream, answer)| Some((stream, message::id_of(answer)?)))
    }

    /// Returns true if a batch that came on the stream is not finished.
    pub(crate) fn is_open_on(&self, stream: StreamId) -> bool {
        self.open.values().any(|batch| batch.stream == stream)
    }

    pub(crate) fn clear(&mut self) {
        self.open.clear();
        self.bytes = 0;
    }

    fn finish(&mut self, id: BatchId) -> Option<FinishedBatch> {
        let complete = |batch: &Batch| batch.dispatched && batch.open == 0;
        if !self.open.get(&id).is_some_and(complete) {
            return None;
        }
        let batch = self.open.remove(&id)?;
        self.bytes -= batch.size();
        let bytes = (!batch.answers.is_empty()).then(|| message::batch(batch.answers));
        Some(FinishedBatch {
            stream: batch.stream,
            bytes,
            reserved: batch.reserved,
            status: batch.status,
        })
    }
}

impl Batch {
    fn size(&self) -> usize {
        self.answers.iter().map(Vec::len).sum()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rpc_batch_received_answers_come_back_in_one_array() {
        let mut batches = Batches::default();
        let batch = batches.begin(StreamId::DUPLEX);
        batches.admit(batch);
        batches.admit(batch);
        batches.add(batch, b"1".to_vec());
        assert_eq!(batches.answered(batch, Some(b"2".to_vec())), None);
        assert_eq!(batches.dispatched(batch), None);
        assert_eq!(batches.bytes(), 2);
        let finished = batches.answered(batch, None).expect("complete");
        assert_eq!(finished.bytes.as_deref(), Some(&b"[1,2]"[..]));
        assert_eq!(batches.answered(batch, None), None);
        assert_eq!(batches.bytes(), 0);
    }

    #[test]
    fn batch_without_answers_is_not_answered() {
        let mut batches = Batches::default();
        let batch = batches.begin(StreamId::DUPLEX);
        let finished = batches.dispatched(batch).expect("complete");
        assert_eq!(finished.bytes, None);
    }
}
