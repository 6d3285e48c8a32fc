//! Transports of the Model Context Protocol, client and server, for every revision.

#[cfg_attr(not(any(feature = "tokio", feature = "blocking")), allow(dead_code))]
mod clock;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
#[cfg(feature = "tokio")]
mod duplex;
mod endpoint;
pub mod event_log;
#[cfg(any(feature = "http-client", feature = "http-server"))]
pub mod http;
#[cfg_attr(not(any(feature = "tokio", feature = "blocking")), allow(dead_code))]
mod line;
#[cfg(feature = "tokio")]
mod memory;
#[cfg(feature = "process")]
mod process;
pub mod sse;
#[cfg(any(feature = "stdio", feature = "blocking"))]
mod stdio;
pub mod store;
mod transport;
#[cfg(all(unix, feature = "unix"))]
mod unix;

#[cfg(feature = "tokio")]
pub use duplex::{ConnectionOptions, ServeError, connect, serve};
pub use endpoint::{
    ClientHandle, ClientHandler, ConnectError, PendingRequest, ProgressCallback, RequestContext,
    ServerHandle, ServerHandler,
};
#[cfg(feature = "tokio")]
pub use line::LineTransport;
#[cfg(feature = "tokio")]
pub use memory::{MemoryTransport, memory_pair};
#[cfg(feature = "process")]
pub use process::{ServerCommand, StderrCallback};
#[cfg(feature = "blocking")]
pub use stdio::serve_blocking;
#[cfg(feature = "stdio")]
pub use stdio::{StdioInput, StdioOutput, StdioTransport, serve_stdio, serve_stdio_with, stdio};
pub use transport::{Received, Transport};
#[cfg(all(unix, feature = "unix"))]
pub use unix::{UnixServer, UnixTransport, connect_unix, unix_transport};
