//! A pair of connected transports in memory, for tests and for programs that host their own server.
//!
//! Messages pass through two bounded pipes; a side that does not read holds the other one back.

use tokio::io::{DuplexStream, ReadHalf, WriteHalf};

use crate::line::LineTransport;

/// One end of a pair in memory.
pub type MemoryTransport = LineTransport<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

/// Creates two connected transports. `pipe_bytes` bounds what waits in each direction, `message_bytes` one message.
pub fn memory_pair(pipe_bytes: usize, message_bytes: usize) -> (MemoryTransport, MemoryTransport) {
    let (first, second) = tokio::io::duplex(pipe_bytes);
    let transport = |stream| {
        let (reader, writer) = tokio::io::split(stream);
        LineTransport::new(reader, writer, message_bytes)
    };
    (transport(first), transport(second))
}
