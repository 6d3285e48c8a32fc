//! Servers over Streamable HTTP (2025-03-26 to 2026-07-28) and over HTTP+SSE (2024-11-05).
//!
//! [`HttpService`] is the service, and [`HttpListener`] serves it on a separate port.
//!
//! The files import each other, because a request, its stream and a resumed session each go through most of them with the same state,
//! `Inner` of `service.rs`; a trait or a copy of that state between them would hide this and cut nothing.

mod attachment;
mod body;
mod bus;
mod checks;
mod connection;
mod cors;
mod endpoints;
mod get;
mod legacy;
mod listen;
mod metrics;
mod named;
mod options;
mod patience;
mod post;
mod replay;
mod response;
mod resume;
mod service;
mod session;
mod shares;
mod stores;

pub use bus::Announcer;
pub use listen::{HttpListener, ListenOptions, RemoteAddress};
pub use metrics::HttpMetrics;
pub use named::{EndpointName, NamedEndpoint, NamedEndpointFuture, NamedEndpoints};
pub(crate) use options::ResponseHeaders;
pub use options::{
    Allowed, AuthError, AuthFuture, Authenticate, Authenticated, HttpServerOptions, PageFuture,
    Pages, RequiredScopes, SessionAdmission, TokenExpiry,
};
pub use response::ResponseBody;
pub use service::HttpService;
pub(crate) use shares::Share as BodyShare;
#[cfg(feature = "tls")]
pub use tokio_rustls::rustls;
