//! Transports of the Model Context Protocol, client and server, for every revision.

mod clock;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
#[cfg(feature = "tokio")]
mod duplex;
mod endpoint;
pub mod event_log;
mod line;
#[cfg(feature = "tokio")]
mod memory;
pub mod sse;
pub mod store;
mod transport;

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
pub use transport::{Received, Transport};
