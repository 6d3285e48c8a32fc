//! The trait of transports that carry all messages of a connection in order: byte streams, sockets with messages, channels.
//!
//! A transport frames messages and keeps its output until the output is written. One implementation, such as for WebSocket, carries
//! servers ([`serve`](crate::serve)) and clients ([`connect`](crate::connect)).

use std::io;
use std::task::{Context, Poll};

use mcp_exact_session::frame::Oversized;

/// Data that a transport has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received<'a> {
    /// A whole message.
    Frame(&'a [u8]),
    /// Beginning and end of a message that exceeds the limit. The rest was skipped.
    Oversized(Oversized<'a>),
}

/// Copy of received data, kept until an endpoint can take it.
#[cfg(feature = "tokio")]
#[derive(Debug)]
pub(crate) enum KeptMessage {
    Frame(Vec<u8>),
    Oversized { head: Vec<u8>, tail: Vec<u8> },
}

#[cfg(feature = "tokio")]
impl From<Received<'_>> for KeptMessage {
    fn from(received: Received<'_>) -> Self {
        match received {
            Received::Frame(frame) => Self::Frame(frame.to_vec()),
            Received::Oversized(Oversized { head, tail }) => Self::Oversized {
                head: head.to_vec(),
                tail: tail.to_vec(),
            },
        }
    }
}

#[cfg(feature = "tokio")]
impl KeptMessage {
    /// Returns the data as it was received.
    pub(crate) fn received(&self) -> Received<'_> {
        match self {
            Self::Frame(frame) => Received::Frame(frame),
            Self::Oversized { head, tail } => Received::Oversized(Oversized { head, tail }),
        }
    }
}

/// Carries the messages of one connection in both directions, in order.
pub trait Transport: Send + 'static {
    /// Returns the name of the kind of transport, for metrics and spans.
    fn name(&self) -> &'static str {
        "custom"
    }

    /// Receives the messages that have arrived and passes each to `sink`, until none is left or `sink` returns false.
    /// Messages that were not passed to `sink` are kept for the next call.
    ///
    /// Returns `Ready(true)` after at least one message, `Ready(false)` at the end of input.
    ///
    /// # Errors
    /// The connection broke.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut dyn FnMut(Received<'_>) -> bool,
    ) -> Poll<io::Result<bool>>;

    /// Returns the buffer that the bytes of the next message are appended to. A message contains no line break.
    fn output(&mut self) -> &mut Vec<u8>;

    /// Marks the end of the message that was appended to the output.
    fn end_frame(&mut self);

    /// Returns the number of bytes that wait to be written.
    fn queued(&self) -> usize;

    /// Writes the waiting output, with one write if the connection accepts all of it.
    ///
    /// # Errors
    /// The connection broke.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Writes the waiting output, then ends the output.
    ///
    /// # Errors
    /// The connection broke.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}
