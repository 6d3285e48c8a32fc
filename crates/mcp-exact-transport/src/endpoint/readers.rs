//! Connections that wait for the output of a server's streams.
//!
//! The endpoint queues the frames of each stream; this module wakes the readers of the streams and ends streams whose
//! readers are too slow, so that slow readers do not delay other streams. This module also contains the other state
//! that the HTTP server stores for each endpoint.

use std::task::Waker;

use mcp_exact_session::{StreamId, Time};

use super::ServerEndpoint;

/// Wakers of the connections that read the streams of a server endpoint, and other state of the HTTP server for each
/// endpoint.
#[derive(Debug, Default)]
pub(crate) struct Readers {
    /// Wakers of the readers, by stream. A client has few readers: one per open request or event stream.
    wakers: Vec<(StreamId, Waker)>,
    /// Maximum number of queued bytes per stream; `None` on a transport whose driver removes all output.
    limit: Option<usize>,
    /// Deadline for which a timer task of the HTTP server waits.
    pub(crate) armed_deadline: Option<Time>,
    /// True if the HTTP server has registered the endpoint as a listener for changes.
    pub(crate) is_listed: bool,
}

impl Readers {
    /// Creates the readers of an endpoint whose streams may each queue at most `limit` bytes beside their largest message.
    pub(crate) fn with_limit(limit: usize) -> Self {
        Self {
            limit: Some(limit),
            ..Self::default()
        }
    }

    /// Registers the waker of a stream's reader until the reader is woken; replaces an earlier waker of the stream.
    pub(crate) fn wait(&mut self, stream: StreamId, waker: &Waker) {
        match self
            .wakers
            .iter_mut()
            .find(|(registered, _)| *registered == stream)
        {
            Some((_, registered)) => registered.clone_from(waker),
            None => {
                self.wakers.reserve_exact(1);
                self.wakers.push((stream, waker.clone()));
            }
        }
    }

    /// Wakes the reader of a stream.
    pub(crate) fn wake(&mut self, stream: StreamId) {
        if let Some(at) = self
            .wakers
            .iter()
            .position(|(registered, _)| *registered == stream)
        {
            self.wakers.swap_remove(at).1.wake();
        }
    }

    /// Wakes all readers.
    pub(crate) fn wake_all(&mut self) {
        for (_, waker) in std::mem::take(&mut self.wakers) {
            waker.wake();
        }
    }

    /// Wakes the readers of the streams that have output, and returns the streams whose queued bytes exceed the limit
    /// because their readers are too slow.
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
                && bytes_beside_largest(endpoint, stream) > limit
            {
                slow.push(stream);
            }
        }
        slow
    }
}

/// Returns the number of bytes that are queued on a stream beside its largest message, because one large message alone
/// does not indicate a slow reader.
fn bytes_beside_largest(endpoint: &ServerEndpoint, stream: StreamId) -> usize {
    let sizes = endpoint.peek_frames_on(stream);
    let largest = sizes.map(|(_, bytes, _)| bytes.len()).max();
    let queued = endpoint.queued_bytes_on(stream);
    queued.saturating_sub(largest.unwrap_or_default())
}
