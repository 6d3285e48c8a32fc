//! Sessions: who agrees on what, what the specification requires of both sides, and that nothing hostile does harm.

mod asking;
mod cancellation;
mod capabilities;
mod extensions;
mod http;
mod http_sse;
mod lifecycle;
mod limits;
mod matrix;
mod mirrored;
mod notifications;
mod per_request;
mod probing;
mod progress;
mod properties;
mod rpc;
mod server_requests;
mod views;
