//! What waits to be sent: frames in order, and those that have to wait for `initialized`.
//!
//! Takes frames; gives them one by one. Counts what it holds and never drops anything by itself.

use std::collections::VecDeque;

use crate::limits::Limits;
use crate::types::{HttpHints, RequestKey, StreamId, Transmit};

#[derive(Debug)]
struct Queued {
    transmit: Transmit,
    bytes: Vec<u8>,
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
    held: VecDeque<Held>,
    bytes: usize,
}

impl Outbox {
    pub(crate) fn frame(&mut self, to: Address, bytes: Vec<u8>) {
        self.bytes += bytes.len();
        let transmit = Transmit::Frame {
            on: to.on,
            about: to.about,
            last: to.last,
            http: to.http,
        };
        self.queue.push_back(Queued { transmit, bytes });
    }

    /// A request of this side that leaves with [`release`](Self::release).
    pub(crate) fn hold(&mut self, id: u64, to: Address, bytes: Vec<u8>) {
        self.frame(to, bytes);
        let queued = self.queue.pop_back();
        self.held.extend(queued.map(|queued| Held { id, queued }));
    }

    pub(crate) fn release(&mut self) {
        self.queue
            .extend(self.held.drain(..).map(|held| held.queued));
    }

    /// Takes back a request that is held; whether it was.
    pub(crate) fn take_back(&mut self, id: u64) -> bool {
        let before = self.held.len();
        let bytes = &mut self.bytes;
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

    pub(crate) fn is_full(&self, limits: &Limits) -> bool {
        self.len() >= limits.queued || self.bytes >= limits.queued_bytes
    }

    /// How many frames and ends of streams wait, those that are held included.
    pub(crate) fn len(&self) -> usize {
        self.queue.len() + self.held.len()
    }

    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Forgets what has not left, such as when there is nobody to send it to.
    pub(crate) fn clear(&mut self) {
        *self = Self::default();
    }
}
