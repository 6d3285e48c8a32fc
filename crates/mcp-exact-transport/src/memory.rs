//! Pair of connected in-memory transports, for tests and for applications that contain their own server.
//!
//! Messages pass through two bounded pipes without framing; if one end does not read, the other end cannot write.

use std::io;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use mcp_exact_session::frame::{KEPT_BYTES, Oversized};

use crate::transport::{Received, Transport};

/// One end of an in-memory pair of transports.
#[derive(Debug)]
pub struct MemoryTransport {
    /// Pipe from the other end.
    incoming: Arc<Pipe>,
    /// Pipe to the other end.
    outgoing: Arc<Pipe>,
    /// Messages that were removed from the incoming pipe and not yet passed to the driver.
    received: Messages,
    /// Index of the next received message.
    next: usize,
    /// Messages that were not yet added to the outgoing pipe.
    output: Messages,
    /// Maximum size of a message in bytes.
    message_bytes: usize,
}

/// Concatenated messages and their end offsets.
#[derive(Debug, Default)]
struct Messages {
    /// Bytes of all messages.
    bytes: Vec<u8>,
    /// End offset of each message in `bytes`.
    ends: Vec<usize>,
}

impl Messages {
    /// Appends all messages of `others`, which is then empty.
    fn append(&mut self, others: &mut Self) {
        if self.bytes.is_empty() {
            self.clear();
            std::mem::swap(self, others);
            return;
        }
        let start = self.bytes.len();
        self.bytes.append(&mut others.bytes);
        self.ends
            .extend(others.ends.drain(..).map(|end| start + end));
    }

    /// Returns the byte range of the message with the index `at`, if any.
    fn message(&self, at: usize) -> Option<Range<usize>> {
        let start = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        self.ends.get(at).map(|&end| start..end)
    }

    /// Removes all messages.
    fn clear(&mut self) {
        self.bytes.clear();
        self.ends.clear();
        // The memory of a single large message is released.
        if self.bytes.capacity() > (1 << 20) {
            self.bytes.shrink_to(64 << 10);
        }
    }
}

/// Queue of the messages in one direction of a pair of transports.
#[derive(Debug)]
struct Pipe {
    /// Queued messages, behind a lock.
    state: Mutex<PipeState>,
    /// Number of queued bytes at which the pipe accepts no more messages.
    capacity: usize,
}

/// State of a pipe.
#[derive(Debug, Default)]
struct PipeState {
    /// Messages that were not read.
    messages: Messages,
    /// True if one end was closed or dropped, so that no more messages are added.
    is_closed: bool,
    /// Waker of the waiting reader.
    reader: Option<Waker>,
    /// Waker of the waiting writer.
    writer: Option<Waker>,
}

impl Pipe {
    fn new(capacity: usize) -> Arc<Self> {
        Arc::new(Self {
            state: Mutex::default(),
            capacity,
        })
    }

    /// Locks the state, even if a thread has panicked while it held the lock.
    fn lock(&self) -> MutexGuard<'_, PipeState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Closes the pipe; queued messages can still be read.
    fn close(&self) {
        let mut state = self.lock();
        state.is_closed = true;
        let wakers = [state.reader.take(), state.writer.take()];
        drop(state);
        wakers.into_iter().flatten().for_each(Waker::wake);
    }
}

/// Wakes a waiting task, if any.
fn wake(waker: Option<Waker>) {
    if let Some(waker) = waker {
        waker.wake();
    }
}

/// Creates two connected transports.
///
/// Each direction accepts no more messages while `pipe_bytes` or more bytes are queued; messages of more than
/// `message_bytes` bytes are rejected.
pub fn memory_pair(pipe_bytes: usize, message_bytes: usize) -> (MemoryTransport, MemoryTransport) {
    let (there, back) = (Pipe::new(pipe_bytes), Pipe::new(pipe_bytes));
    let end = |incoming: &Arc<Pipe>, outgoing: &Arc<Pipe>| MemoryTransport {
        incoming: Arc::clone(incoming),
        outgoing: Arc::clone(outgoing),
        received: Messages::default(),
        next: 0,
        output: Messages::default(),
        message_bytes,
    };
    (end(&back, &there), end(&there, &back))
}

impl MemoryTransport {
    /// Moves all messages from the incoming pipe to `received`; returns false at the end of input.
    fn poll_take(&mut self, cx: &mut Context<'_>) -> Poll<bool> {
        let mut state = self.incoming.lock();
        if state.messages.ends.is_empty() {
            if state.is_closed {
                return Poll::Ready(false);
            }
            state.reader = Some(cx.waker().clone());
            return Poll::Pending;
        }
        self.received.clear();
        self.next = 0;
        std::mem::swap(&mut self.received, &mut state.messages);
        let writer = state.writer.take();
        drop(state);
        wake(writer);
        Poll::Ready(true)
    }
}

/// Returns a message as received data: complete, or its beginning and end if it exceeds `limit` bytes.
fn bounded(message: &[u8], limit: usize) -> Received<'_> {
    if message.len() <= limit {
        return Received::Frame(message);
    }
    let kept = KEPT_BYTES.min(message.len());
    Received::Oversized(Oversized {
        head: &message[..kept],
        tail: &message[message.len() - kept..],
        size: Some(message.len() as u64),
        limit: mcp_exact_session::Limit::MessageBytes,
    })
}

impl Transport for MemoryTransport {
    fn name(&self) -> &'static str {
        "memory"
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut dyn FnMut(Received<'_>) -> bool,
    ) -> Poll<io::Result<bool>> {
        if self.next == self.received.ends.len() {
            match self.poll_take(cx) {
                Poll::Ready(true) => {}
                Poll::Ready(false) => return Poll::Ready(Ok(false)),
                Poll::Pending => return Poll::Pending,
            }
        }
        while let Some(message) = self.received.message(self.next) {
            self.next += 1;
            if !sink(bounded(&self.received.bytes[message], self.message_bytes)) {
                break;
            }
        }
        Poll::Ready(Ok(true))
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.output.bytes
    }

    fn end_frame(&mut self) {
        self.output.ends.push(self.output.bytes.len());
    }

    fn queued(&self) -> usize {
        self.output.bytes.len()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        if self.output.ends.is_empty() {
            return Poll::Ready(Ok(()));
        }
        let mut state = self.outgoing.lock();
        if state.is_closed {
            return Poll::Ready(Err(io::ErrorKind::BrokenPipe.into()));
        }
        if state.messages.bytes.len() >= self.outgoing.capacity {
            state.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        state.messages.append(&mut self.output);
        let reader = state.reader.take();
        drop(state);
        self.output.clear();
        wake(reader);
        Poll::Ready(Ok(()))
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = self.poll_flush(cx);
        if flushed.is_ready() {
            self.outgoing.close();
        }
        flushed
    }
}

impl Drop for MemoryTransport {
    fn drop(&mut self) {
        self.incoming.close();
        self.outgoing.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends a message; returns true if the pipe has accepted all messages.
    fn send(end: &mut MemoryTransport, message: &str) -> bool {
        end.output().extend_from_slice(message.as_bytes());
        end.end_frame();
        let mut cx = Context::from_waker(Waker::noop());
        matches!(end.poll_flush(&mut cx), Poll::Ready(Ok(())))
    }

    /// Receives at most `most` of the messages that have arrived; returns `None` at the end of input.
    fn receive(end: &mut MemoryTransport, most: usize) -> Option<Vec<String>> {
        let mut found = Vec::new();
        let mut cx = Context::from_waker(Waker::noop());
        let polled = end.poll_receive(&mut cx, &mut |received| {
            found.push(match received {
                Received::Frame(message) => String::from_utf8_lossy(message).into_owned(),
                Received::Oversized(Oversized { head, tail, .. }) => {
                    format!("oversized {} {}", head.len(), tail.len())
                }
            });
            found.len() < most
        });
        match polled {
            Poll::Ready(Ok(false)) => None,
            Poll::Ready(Err(error)) => panic!("{error}"),
            _ => Some(found),
        }
    }

    /// Both directions deliver complete messages in the order in which they were sent.
    #[test]
    fn messages_arrive_whole_and_in_order() {
        let (mut near, mut far) = memory_pair(1024, 1024);
        assert_eq!(receive(&mut far, 9), Some(vec![]));
        assert!(send(&mut near, "one") && send(&mut near, "two") && send(&mut near, "three"));
        assert_eq!(receive(&mut far, 1), Some(vec!["one".to_owned()]));
        assert!(send(&mut near, "four"));
        let rest = ["two", "three"].map(str::to_owned).to_vec();
        assert_eq!(receive(&mut far, 9), Some(rest));
        assert_eq!(receive(&mut far, 9), Some(vec!["four".to_owned()]));
        assert!(send(&mut far, "back"));
        assert_eq!(receive(&mut near, 9), Some(vec!["back".to_owned()]));
    }

    /// A pipe at its capacity accepts no message until the other end has read; the order of messages is kept.
    #[test]
    fn full_pipes_hold_the_writer_back() {
        let (mut near, mut far) = memory_pair(4, 1024);
        assert!(send(&mut near, "four"));
        assert!(!send(&mut near, "more"));
        assert_eq!(near.queued(), 4);
        assert_eq!(receive(&mut far, 9), Some(vec!["four".to_owned()]));
        assert!(send(&mut near, "last"));
        let rest = ["more", "last"].map(str::to_owned).to_vec();
        assert_eq!(receive(&mut far, 9), Some(rest));
    }

    /// Only the beginning and the end of a message above the limit are passed on.
    #[test]
    fn large_messages_are_cut() {
        let (mut near, mut far) = memory_pair(1 << 20, 10_000);
        assert!(send(&mut near, &"x".repeat(10_001)));
        assert_eq!(
            receive(&mut far, 9),
            Some(vec!["oversized 4096 4096".to_owned()])
        );
    }

    /// Messages that were sent before an end was dropped can still be received.
    #[test]
    fn sent_messages_outlive_the_sender() {
        let (mut near, mut far) = memory_pair(1024, 1024);
        assert!(send(&mut near, "last"));
        drop(near);
        assert_eq!(receive(&mut far, 9), Some(vec!["last".to_owned()]));
        assert_eq!(receive(&mut far, 9), None);
        assert!(!send(&mut far, "nobody reads"));
    }
}
