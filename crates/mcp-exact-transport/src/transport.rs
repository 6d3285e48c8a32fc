//! The trait of transports that carry all messages of a connection in order: byte streams, sockets with messages, channels.
//!
//! A transport frames messages and keeps its own output until it is written. Whoever implements it, such as for WebSocket,
//! serves both roles by [`serve`](crate::serve) and [`connect`](crate::connect).

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

    /// Receives the messages that have arrived and hands each to `sink`, until none is left or `sink` returns false.
    /// Messages that were not handed over are kept for the next call.
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

    /// Returns the buffer that the bytes of the next message are appended to. They hold no line break.
    fn output(&mut self) -> &mut Vec<u8>;

    /// Ends the message that was appended.
    fn end_frame(&mut self);

    /// Returns how many bytes wait to be written.
    fn queued(&self) -> usize;

    /// Writes what waits. Everything that waits is written at once if the connection takes it.
    ///
    /// # Errors
    /// The connection broke.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Ends the output, after what waits.
    ///
    /// # Errors
    /// The connection broke.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}
