//! A server on the standard streams of its process (`basic/transports`, "stdio").
//!
//! Pipes and sockets are read and written without threads where the system allows it. On other descriptors, such as files and
//! terminals, threads do it.

#[cfg(feature = "blocking")]
mod blocking;
mod claim;
#[cfg(feature = "stdio")]
mod streams;

#[cfg(feature = "blocking")]
pub use blocking::serve_blocking;
#[cfg(feature = "stdio")]
pub use streams::{StdioInput, StdioOutput, StdioTransport, serve_stdio, serve_stdio_with, stdio};
