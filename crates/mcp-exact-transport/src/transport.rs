//! Trait of transports that carry all messages of a connection in order: byte streams, message sockets, channels.
//!
//! A transport frames messages and keeps its output until the output is written. One implementation, for example for
//! WebSocket, serves both servers ([`serve`](crate::serve)) and clients ([`connect`](crate::connect)).

use std::io;
use std::task::{Context, Poll};

#[cfg(feature = "tokio")]
use mcp_exact_session::Limit;
use mcp_exact_session::frame::Oversized;

/// Message or oversized message that a transport has received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Received<'a> {
    /// A complete message.
    Frame(&'a [u8]),
    /// Beginning and end of a message that exceeds the size limit; the rest of the message was skipped.
    Oversized(Oversized<'a>),
}

/// Copy of received data, which is stored until the endpoint accepts it.
#[cfg(feature = "tokio")]
#[derive(Debug)]
pub(crate) enum KeptMessage {
    /// A complete message.
    Frame(Vec<u8>),
    /// Beginning and end of a message that exceeds the limit.
    Oversized {
        head: Vec<u8>,
        tail: Vec<u8>,
        size: Option<u64>,
        limit: Limit,
    },
}

#[cfg(feature = "tokio")]
impl From<Received<'_>> for KeptMessage {
    fn from(received: Received<'_>) -> Self {
        match received {
            Received::Frame(frame) => Self::Frame(frame.to_vec()),
            Received::Oversized(message) => Self::Oversized {
                head: message.head.to_vec(),
                tail: message.tail.to_vec(),
                size: message.size,
                limit: message.limit,
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
            Self::Oversized {
                head,
                tail,
                size,
                limit,
            } => Received::Oversized(Oversized {
                head,
                tail,
                size: *size,
                limit: *limit,
            }),
        }
    }
}

/// Transport of the messages of one connection in both directions, in order.
pub trait Transport: Send + 'static {
    /// Returns the name of the kind of transport, for metrics and spans.
    fn name(&self) -> &'static str {
        "custom"
    }

    /// Receives the messages that have arrived and passes each message to `sink`, until all of them are passed or
    /// `sink` returns false.
    ///
    /// Messages that were not passed to `sink` are kept for the next call. Returns `Ready(true)` after at least one
    /// message, `Ready(false)` at the end of input.
    ///
    /// # Errors
    ///
    /// An IO error if the connection has failed.
    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut dyn FnMut(Received<'_>) -> bool,
    ) -> Poll<io::Result<bool>>;

    /// Returns the buffer to which the caller appends the bytes of the next message.
    ///
    /// A message contains no line break.
    fn output(&mut self) -> &mut Vec<u8>;

    /// Marks the end of the message that was appended to the output.
    fn end_frame(&mut self);

    /// Returns the number of queued output bytes.
    fn queued(&self) -> usize;

    /// Writes the queued output, with one write if the connection accepts all of it.
    ///
    /// # Errors
    ///
    /// An IO error if the connection has failed.
    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;

    /// Writes the queued output, and then closes the sending direction of the connection.
    ///
    /// # Errors
    ///
    /// An IO error if the connection has failed.
    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>>;
}
