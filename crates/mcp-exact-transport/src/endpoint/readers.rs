//! Connections that wait for the output of a server's streams.
//!
//! The endpoint queues the frames of each stream; this module wakes their readers, and ends streams whose readers are too
//! slow, so that these delay no other stream. It also holds the other state that the HTTP server keeps for an endpoint.

use std::task::Waker;

use mcp_exact_session::{StreamId, Time, Transmit};

use super::ServerEndpoint;

/// Readers of streams.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// Few as a rule: a request or an event stream of one client each.
    wakers: Vec<(StreamId, Waker)>,
    /// Bytes that wait on one stream; `None` on a transport whose driver takes all output.
    limit: Option<usize>,
    /// Deadline that a task of the HTTP server waits for, while there is one.
    pub(crate) armed: Option<Time>,
    /// True if the HTTP server has listed the endpoint among those that listen to changes.
    pub(crate) is_listed: bool,
}

impl Readers {
    /// Creates the readers of an endpoint whose streams hold so many bytes at most, beside the message that is read.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self {
            limit: Some(limit),
            ..Self::default()
        }
    }

    /// Registers the reader of a stream, in place of an older one, until it is woken.
    pub(crate) fn wait(&mut self, stream: StreamId, waker: &Waker) {
        match self.wakers.iter_mut().find(|(known, _)| *known == stream) {
            Some((_, known)) => known.clone_from(waker),
            None => {
                self.wakers.reserve_exact(1);
                self.wakers.push((stream, waker.clone()));
            }
        }
    }

    /// Wakes the reader of a stream.
    pub(crate) fn wake(&mut self, stream: StreamId) {
        if let Some(at) = self.wakers.iter().position(|(known, _)| *known == stream) {
            self.wakers.swap_remove(at).1.wake();
        }
    }

    /// Wakes all readers.
    pub(crate) fn wake_all(&mut self) {
        for (_, waker) in std::mem::take(&mut self.wakers) {
            waker.wake();
        }
    }

    /// Wakes the readers of the streams that have output, and returns the streams whose readers are too slow.
    pub(super) fn settle(&mut self, endpoint: &ServerEndpoint) -> Vec<StreamId> {
        let mut slow = Vec::new();
        let Some(limit) = self.limit else {
            return slow;
        };
        if endpoint.is_closed() {
            self.wake_all();
        }
        for stream in endpoint.writable_streams() {
            self.wake(stream);
            if endpoint.queued_bytes_on(stream) > limit
                && bytes_behind_first(endpoint, stream) > limit
            {
                slow.push(stream);
            }
        }
        slow
    }
}

/// Bytes that wait on a stream behind the message that leaves next: one large message is no sign of a slow reader.
fn bytes_behind_first(endpoint: &ServerEndpoint, stream: StreamId) -> usize {
    let first = match endpoint.peek_transmit_on(stream) {
        Some((Transmit::Frame { .. }, bytes)) => bytes.len(),
        _ => 0,
    };
    endpoint.queued_bytes_on(stream).saturating_sub(first)
}
