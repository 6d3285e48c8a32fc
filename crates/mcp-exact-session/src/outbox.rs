//! What waits to be sent: frames in order, and those that have to wait for `initialized`.
//!
//! Takes frames; gives them one by one. Counts what it holds and never drops anything by itself.

use std::collections::VecDeque;

use crate::limits::{Limit, Limits};
use crate::types::{HttpHints, RequestKey, StreamId, Transmit};

#[derive(Debug)]
struct Queued {
    transmit: Transmit,
    bytes: Vec<u8>,
}

impl Queued {
    fn frame(to: Address, bytes: Vec<u8>) -> Self {
        let transmit = Transmit::Frame {
            on: to.on,
            about: to.about,
            last: to.last,
            http: to.http,
        };
        Self { transmit, bytes }
    }
}

/// A frame that has to wait.
#[derive(Debug)]
struct Held {
    /// The own request that it is.
    id: u64,
    queued: Queued,
}

/// Where a frame goes, and what it belongs to.
#[derive(Debug, Clone)]
pub(crate) struct Address {
    pub(crate) on: StreamId,
    pub(crate) about: Option<RequestKey>,
    pub(crate) last: bool,
    pub(crate) http: HttpHints,
}

impl Address {
    pub(crate) fn on(on: StreamId) -> Self {
        Self {
            on,
            about: None,
            last: false,
            http: HttpHints::default(),
        }
    }

    pub(crate) fn about(mut self, key: RequestKey) -> Self {
        self.about = Some(key);
        self
    }

    pub(crate) fn last(mut self, last: bool) -> Self {
        self.last = last;
        self
    }
}

#[derive(Debug, Default)]
pub(crate) struct Outbox {
    queue: VecDeque<Queued>,
    bytes: usize,
    held: VecDeque<Held>,
    held_bytes: usize,
}

impl Outbox {
    pub(crate) fn frame(&mut self, to: Address, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        self.queue.push_back(Queued::frame(to, bytes));
    }

    /// A request of this side that leaves with [`release`](Self::release).
    pub(crate) fn hold(&mut self, id: u64, to: Address, bytes: Vec<u8>) {
        self.held_bytes += bytes.len();
        let queued = Queued::frame(to, bytes);
        self.held.push_back(Held { id, queued });
    }

    pub(crate) fn release(&mut self) {
        self.bytes += std::mem::take(&mut self.held_bytes);
        self.queue
            .extend(self.held.drain(..).map(|held| held.queued));
    }

    /// Takes back a request that is held; whether it was.
    pub(crate) fn take_back(&mut self, id: u64) -> bool {
        let before = self.held.len();
        let bytes = &mut self.held_bytes;
        self.held.retain(|held| {
            let stays = held.id != id;
            if !stays {
                *bytes -= held.queued.bytes.len();
            }
            stays
        });
        self.held.len() < before
    }

    pub(crate) fn push(&mut self, transmit: Transmit) {
        let bytes = Vec::new();
        self.queue.push_back(Queued { transmit, bytes });
    }

    pub(crate) fn pop(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        let next = self.queue.pop_front()?;
        self.bytes -= next.bytes.len();
        out.extend_from_slice(&next.bytes);
        Some(next.transmit)
    }

    /// The bound that it has reached, for what else this side wants to send.
    pub(crate) fn full(&self, limits: &Limits) -> Option<Limit> {
        limits.of_queue(self.len(), self.bytes())
    }

    /// The bound that it has reached, for what comes in. What is held does not count: it leaves after `initialized`, which
    /// has to come in.
    pub(crate) fn blocks(&self, limits: &Limits) -> Option<Limit> {
        limits.of_queue(self.queue.len(), self.bytes)
    }

    /// How many frames and ends of streams wait, those that are held included.
    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.held.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes + self.held_bytes
    }

    /// Forgets what has not left, such as when there is nobody to send it to.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
