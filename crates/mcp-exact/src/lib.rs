//! Servers and clients of the Model Context Protocol, for every revision.
//!
//! Write a handler once: clients of every revision are served by it, from 2024-11-05 to 2026-07-28, whichever way they
//! negotiate, questions to the user included. [`Server::builder`] begins a server of closures, the attribute
//! [`macro@server`] makes one of an impl block, and [`Client`] calls servers.
//!
//! ```
//! use mcp_exact::{Client, IntoServer, server};
//!
//! struct Calculator;
//!
//! #[server]
//! impl Calculator {
//!     /// Adds two numbers.
//!     #[tool(read_only)]
//!     async fn add(a: i64, b: i64) -> String {
//!         (a + b).to_string()
//!     }
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), Box<dyn std::error::Error>> {
//! // A program calls `serve_stdio` or `serve_http`; a test connects in memory.
//! let server = Calculator.into_server()?;
//! let client = Client::in_memory(&server).await?;
//! let sum: i64 = client.call("add", &serde_json::json!({"a": 1, "b": 2})).await?;
//! assert_eq!(sum, 3);
//! # Ok(())
//! # }
//! ```
//!
//! # Where to go next
//!
//! - [`Cx`]: progress, log messages, cancellation, and questions to the user in the middle of a call.
//! - [`ServerBuilder`]: a server of closures, and everything that can be set.
//! - [`Connect`]: the settings of a client before it connects, and its answers to requests of the server.
//! - [`Tasks`]: tools that take long. [`testing`]: tests with a client of every revision, and recordings.
//! - [An example of each feature](https://github.com/mcp-exact/mcp-exact/blob/main/docs/book/src/features.md) of the protocol, for
//!   servers and clients.
//!
//! # What handlers take and return
//!
//! A handler is an async function. Its arguments are extractors ([`FromCall`]): [`Input`] for the arguments of the call,
//! [`State`] for states of the server, [`Cx`] for progress, logs, cancellation and questions, and [`Principal`],
//! [`Headers`], [`Meta`] for the request. It returns a `String`, [`Json`], [`ToolResult`], [`PromptResult`], [`Contents`],
//! or a `Result` of one of these with any error ([`Error`] documents the error that the client receives, and [`Error::msg`]
//! makes one of a text). A tool may return a number as well.
//!
//! # Revisions
//!
//! Results, definitions and questions are built in the newest revision and converted to the one of the client; what an older
//! one does not have is left out or rewritten, such as structured content, of which clients before 2025-06-18 receive the
//! text. Clients receive results in the same form, whatever the server speaks.
//!
//! # Logs
//!
//! `RUST_LOG=mcp_exact=debug` (with a subscriber of `tracing`) shows the conversation: each request and how it ended.
//! Arguments and results are shown at `trace` alone: they may hold secrets.
//!
//! # Features
//!
//! `macros`, `stdio`, `process`, `http-server` and `http-client` are on by default; `unix` adds Unix sockets, and
//! `local` handlers whose futures are not `Send`, `logs` a layer of `tracing-subscriber` that sends events to clients, and
//! `validation` the check of arguments and results against their JSON Schemas (without it, arguments are checked by
//! decoding). `tls` adds HTTPS, `oauth-client` authorization of clients (`Connect::oauth`), and HTTPS with it, `oauth-server`
//! authorization of servers (`auth::server::ResourceServer`, and `Access` as an argument of handlers).

#[cfg(all(doctest, feature = "macros", feature = "stdio"))]
#[doc = include_str!("../README.md")]
mod readme {}

#[cfg(any(feature = "oauth-client", feature = "oauth-server"))]
pub use mcp_exact_auth as auth;
pub use mcp_exact_transport as transport;
#[doc(hidden)]
pub use schemars;
#[doc(hidden)]
pub use serde;

mod client;
mod content;
mod cx;
mod definition;
mod error;
mod extract;
mod form_values;
mod handler;
#[cfg(all(feature = "process", feature = "http-client"))]
mod host;
mod into_server;
mod layer;
mod link;
#[cfg(feature = "logs")]
mod logs;
mod ok;
mod outgoing;
mod params;
mod replay;
mod reply;
mod schema;
mod seal;
mod server;
mod task;
mod template;
pub mod testing;
mod validate;

pub use client::{
    BadUrl, CallTool, Client, ClientChange, ClientError, Completed, Connect, Definition, Form,
    FormAnswer, List, LogMessage, PromptOutput, Request, ResourceOutput, SampleReply,
    SampleRequest, ToolOutput, UrlWarning, Visit,
};
pub use content::{Content, Role};
pub use cx::{
    Amount, AskError, AskErrorKind, Cancelled, Cx, Elicit, ElicitUrl, Elicited, FormError,
    OnceError, Root, Roots, Sample, Sampled, Sampling,
};
pub use definition::{Icon, Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
pub use error::{BadArguments, BuildError, Error, Problem, RequestEnded, ResourceNotFound, Result};
pub use extract::{Call, FromCall, Headers, Input, Meta, RawRequest, Signature, State, Uri};
pub use handler::Handler;
#[cfg(all(feature = "process", feature = "http-client"))]
pub use host::{
    ConfigFileError, Host, HostBuilder, HostCall, HostError, HostTool, HostTools, ServerAddress,
    ServerEntry,
};
#[cfg(feature = "local")]
pub use into_server::local;
#[doc(hidden)]
pub use into_server::{Argument, check_argument, check_reply};
pub use into_server::{IntoServer, blocking};
pub use layer::ToolService;
pub use link::{
    CacheHint, CachedNegotiation, Encode, Home, Json as RawJson, JsonObject, Level, Lifecycle,
    Limits, NegotiationError, PeerError, Principal, Progress, Revision, Seal, SendError,
    TraceContext, TypedRequest, revisions,
};
#[cfg(feature = "logs")]
pub use logs::ClientLogs;
#[cfg(feature = "macros")]
pub use mcp_exact_macros::{complete, prompt, resource, server, tool};
pub use ok::Ok;
pub use reply::{Completions, Contents, IntoReply, Json, PromptResult, ToolResult};
pub use seal::{KeyRing, NoRandomness};
pub use server::{Caller, Listed, Partial, Prompts, Resources, Server, ServerBuilder, Tools};
pub use task::{
    DirectoryTaskStore, MemoryTaskStore, TaskError, TaskRecord, TaskStore, TaskStoreError, Tasks,
};
pub use template::{TemplateError, TemplateValue, UriTemplate};
