//! Transports of the Model Context Protocol, client and server, for every revision.
//!
//! Transports move bytes between sockets or processes and the endpoints of [`mcp_exact_session`], and provide timers
//! and random numbers. All protocol decisions are made by the endpoints. One handler serves the clients of all
//! revisions and transports.
//!
//! # Server
//!
//! A [`ServerHandler`] is called with each event, and replies through a [`ServerHandle`], immediately or later, from
//! any thread:
//!
//! ```no_run
//! # #[cfg(feature = "stdio")]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use std::sync::Arc;
//!
//! use mcp_exact_session::{Identity, PeerError, ServerConfig, ServerEvent};
//! use mcp_exact_transport::{RequestContext, ServerHandle, serve_stdio};
//!
//! let settings = ServerConfig::new(Identity::new("example", "1.0.0")).build()?;
//! let handler = |server: &ServerHandle, event: ServerEvent<RequestContext>| {
//!     if let ServerEvent::Request(request) = event {
//!         let reply = PeerError::method_not_found(request.method());
//!         let _ = server.reply(request.key, reply);
//!     }
//! };
//! serve_stdio(settings, Arc::new(handler)).await?;
//! # Ok(())
//! # }
//! ```
//!
//! | Transport | Server | Client | Feature |
//! |---|---|---|---|
//! | standard streams | [`serve_stdio`], without a runtime [`serve_blocking`] | [`ServerCommand`] | `stdio`, `blocking`, `process` |
//! | Streamable HTTP, and HTTP+SSE of 2024-11-05 | [`http::server`] | [`http::client`] | `http-server`, `http-client` |
//! | Unix sockets | [`UnixServer`] | [`connect_unix`] | `unix` |
//! | in memory, any byte stream | [`serve`] | [`connect`] | `tokio`, `client` |
//! | others | [`serve`] with a [`Transport`] | [`connect`] | `tokio`, `client` |
//!
//! # Client
//!
//! Connecting immediately returns a [`ClientHandle`] and spawns a task that drives the connection.
//! [`ClientHandle::ready`] waits until a revision is negotiated; [`ClientHandle::request`] sends a request and returns
//! a future of its outcome; dropping the future cancels the request. A [`ClientHandler`] receives the requests and
//! notifications of the server.
//!
//! # Observability
//!
//! The feature `tracing` adds spans for connections, HTTP sessions and HTTP requests, `operations` those for MCP messages;
//! [`HttpService::metrics`](http::server::HttpService::metrics) counts requests, errors, bytes, sessions and queued
//! messages of an HTTP server, and [`connection_metrics`] counts the same for all other connections: servers on
//! standard streams, Unix sockets and in memory, and clients on every transport. The feature `opentelemetry` exports
//! spans and metrics: see [`telemetry`]. Spans and metrics contain no arguments, headers or session ids.
//!
//! # Safety by default
//!
//! - HTTP: `Host` and `Origin` must be loopback names unless the options allow others; session ids have 128 random
//!   bits; a session belongs to the principal that started it; messages, headers, connections, sessions, queues and the
//!   event log are limited; clients that send or read too slowly are disconnected.
//! - TLS: with the feature `tls`, by rustls, for the listener and for the client. Without the feature, servers need a
//!   TLS proxy and clients can connect to plain HTTP only.
//! - Standard streams: only messages are written to standard output while the transport uses it; other output of the
//!   process goes to standard error.
//! - Peers that disappear without closing the connection are detected by comments in event streams and TCP timers on
//!   HTTP, and by [`ConnectionOptions::ping`] on other transports.
//! - A child process has a process group or job of its own, which does not outlive its driver.
#![cfg_attr(
    not(all(
        feature = "blocking",
        feature = "client",
        feature = "http-client",
        feature = "http-server",
        feature = "opentelemetry",
        feature = "process",
        feature = "stdio",
        feature = "tls",
        feature = "unix"
    )),
    allow(rustdoc::broken_intra_doc_links)
)]

#[cfg(all(
    feature = "tls",
    not(any(feature = "http-client", feature = "http-server"))
))]
compile_error!("TLS is for HTTP: enable the feature `http-client` or `http-server` beside `tls`");

#[cfg(any(feature = "http-server", all(unix, feature = "unix")))]
mod accept;
#[cfg_attr(not(any(feature = "tokio", feature = "blocking")), allow(dead_code))]
mod clock;
#[cfg(all(feature = "client", feature = "tokio"))]
mod connect;
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
#[cfg_attr(not(any(feature = "tokio", feature = "blocking")), allow(dead_code))]
mod metrics;
mod observe;
#[cfg(feature = "operations")]
mod operations;
#[cfg(all(feature = "client", feature = "tokio"))]
mod owned;
#[cfg(feature = "process")]
mod process;
pub mod sse;
#[cfg(any(feature = "stdio", feature = "blocking"))]
mod stdio;
pub mod store;
#[cfg(feature = "opentelemetry")]
pub mod telemetry;
mod transport;
#[cfg(all(unix, feature = "unix"))]
mod unix;

#[cfg(all(feature = "client", feature = "tokio"))]
pub use connect::connect;
#[cfg(feature = "tokio")]
pub use duplex::{ConnectionOptions, ServeError, serve};
#[cfg(feature = "client")]
pub use endpoint::{ClientHandle, ClientHandler, ConnectError};
pub use endpoint::{
    ConnectionHandler, PendingRequest, ProgressCallback, RequestContext, ServerHandle,
    ServerHandler,
};
#[cfg(feature = "tokio")]
pub use endpoint::{RequestTask, RequestTasks};
#[cfg(feature = "tokio")]
pub use line::LineTransport;
#[cfg(feature = "tokio")]
pub use memory::{MemoryTransport, memory_pair};
pub use metrics::{ConnectionMetrics, connection_metrics};
#[cfg(all(feature = "client", feature = "tokio"))]
pub use owned::OwnedClient;
#[cfg(feature = "process")]
pub use process::{INHERITED_ENV, PreparedServer, ServerCommand, StderrCallback, start_failure};
#[cfg(feature = "blocking")]
pub use stdio::serve_blocking;
#[cfg(feature = "stdio")]
pub use stdio::{StdioInput, StdioOutput, StdioTransport, serve_stdio, serve_stdio_with, stdio};
pub use transport::{Received, Transport};
#[cfg(all(unix, feature = "unix"))]
pub use unix::{UnixServer, UnixTransport, connect_unix, unix_transport};
