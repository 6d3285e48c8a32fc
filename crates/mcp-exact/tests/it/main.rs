//! Servers, clients and hosts by the public interface: in memory, over standard streams and over HTTP, with clients of
//! every revision. One program, because each test program is linked with the whole crate.

mod agent;
mod apps;
mod build;
mod cache;
mod client;
mod common;
mod conversation;
mod extensions;
#[cfg(unix)]
mod hooks;
mod host;
#[cfg(feature = "http-server")]
mod http_loss;
mod limits;
#[cfg(feature = "http-server")]
mod lists;
mod macros;
mod notifications;
mod questions;
mod raw;
mod readme;
mod reconnect;
mod recording;
mod results;
mod runtime;
mod server;
#[cfg(feature = "skills")]
mod skills;
mod tasks;
mod tokens;
mod transports;
mod typed;
