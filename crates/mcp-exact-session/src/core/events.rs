//! Queue of events for the application, in order, with their sizes in memory.
//!
//! The queue never drops an event; the caller checks first whether the queue is full.

use std::collections::VecDeque;

use crate::heap_size::{EVENT_SIZE, HeapSize};
use crate::limits::{Limit, Limits};

/// Queue of events for the application.
#[derive(Debug)]
pub(crate) struct EventQueue<E> {
    /// Events, each with its approximate size in bytes.
    queue: VecDeque<(usize, E)>,
    /// Total size of the events in bytes.
    bytes: usize,
}

impl<E: HeapSize> EventQueue<E> {
    pub(crate) fn new() -> Self {
        Self {
            queue: VecDeque::new(),
            bytes: 0,
        }
    }

    /// Appends an event.
    pub(crate) fn push(&mut self, event: E) {
        let size = EVENT_SIZE + event.heap_size();
        self.bytes += size;
        if self.queue.capacity() == 0 {
            // Most queues never contain a second event; `VecDeque` begins with room for four.
            self.queue.reserve_exact(1);
        }
        self.queue.push_back((size, event));
    }

    /// Removes and returns the oldest event.
    pub(crate) fn pop(&mut self) -> Option<E> {
        let (size, event) = self.queue.pop_front()?;
        self.bytes -= size;
        Some(event)
    }

    /// Releases unused memory.
    pub(crate) fn shrink(&mut self) {
        self.queue.shrink_to_fit();
    }

    /// Returns the number of queued events.
    pub(crate) fn len(&self) -> usize {
        self.queue.len()
    }

    /// Returns the total size of the queued events in bytes.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Returns the limit that the queue has reached.
    pub(crate) fn reached_limit(&self, limits: &Limits) -> Option<Limit> {
        limits.reached_by_queue(self.len(), self.bytes)
    }
}
