//! Server over stdio (`basic/transports`, "stdio").
//!
//! Pipes and sockets are read and written without threads if the system supports it. Other file descriptors, such as
//! files and terminals, are read and written in threads.

#[cfg(feature = "blocking")]
mod blocking;
mod claim;
#[cfg(feature = "stdio")]
mod streams;

#[cfg(feature = "blocking")]
pub use blocking::serve_blocking;
#[cfg(feature = "stdio")]
pub use streams::{StdioInput, StdioOutput, StdioTransport, serve_stdio, serve_stdio_with, stdio};
