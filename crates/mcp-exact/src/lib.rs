//! Servers and clients of the Model Context Protocol, for every revision.
//!
//! You write a handler once, and it serves clients of every revision from 2024-11-05 to 2026-07-28, with or without
//! the `initialize` handshake. [`Server::builder`] builds a server from closures, the attribute [`macro@server`]
//! builds one from an impl block, [`Client`] calls servers, and `Host` connects to many of them.
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
//! - [`Cx`]: progress, log messages, cancellation, and input requests to the user during a call.
//! - [`ServerBuilder`]: servers that are built from closures, and all settings of a server.
//! - [`Connect`]: the settings of a client, and its handlers for requests of the server.
//! - [`apps`]: pages that hosts show for the results of tools (MCP Apps).
//! - [`Tasks`]: long-running tools. [`testing`]: tests with a client of every revision, and recordings of messages.
//! - [An example of each feature](https://github.com/mcp-exact/mcp-exact/blob/main/docs/book/src/features.md) of the protocol, for
//!   servers and clients.
//!
//! # Arguments and results of handlers
//!
//! A handler is an async function. Its arguments are extractors ([`FromCall`]): [`Input`] for the arguments of the
//! call, [`State`] for shared state of the server, [`Cx`] for progress, logs, cancellation and input requests, and
//! [`Principal`], [`Headers`] and [`Meta`] for metadata of the request. A handler returns a `String`, [`Json`],
//! [`ToolResult`], [`PromptResult`], [`Contents`], or a `Result` of one of these with any error. [`Error`] describes
//! the error that the client receives, and [`Error::msg`] creates an error from a message. A tool can also return a
//! number.
//!
//! # Revisions
//!
//! Results, definitions and input requests are built in the newest revision, 2026-07-28 (the *home revision*), and
//! converted to the revision of the client. Content that an older revision cannot express is dropped or rewritten:
//! clients before 2025-06-18 receive structured content as text. Clients return results in the form of the newest
//! revision, whatever revision was negotiated.
//!
//! # Logs
//!
//! `RUST_LOG=mcp_exact=debug` (with a `tracing` subscriber) logs each request and its outcome. Arguments and results
//! are logged at the level `trace` only, because they may contain secrets.
//!
//! # Features
//!
//! `client`, `types`, `macros`, `patterns`, `operations`, `stdio`, `process`, `http-server` and `http-client` are on by
//! default. A server without `client` compiles faster. `types` exports the exact types of the newest revision,
//! `patterns` checks the patterns of form fields, and `operations` adds a span of `tracing` for each request and
//! notification. The others are:
//!
//! - `unix`: Unix sockets;
//! - `local`: handlers whose futures are not `Send`;
//! - `logs`: a layer of `tracing-subscriber` that sends events to clients;
//! - `skills`: servers that serve a folder of skills, and clients that verify them (`ServerBuilder::skills`,
//!   `Client::skills`);
//! - `validation`: checks arguments and results against their JSON Schemas (without it, arguments are checked by
//!   decoding only);
//! - `tls`: HTTPS; `oauth-client`: OAuth for clients (`Connect::oauth`), with HTTPS; `oauth-server`: OAuth for
//!   servers (`auth::server::ResourceServer`, and `Access` as an argument of handlers);
//! - `opentelemetry`: traces and metrics; `contract`: test suites for implementations of [`TaskStore`].

// Parts that servers and clients share have items for clients alone.
#![cfg_attr(
    not(feature = "client"),
    allow(dead_code, unused_imports, rustdoc::broken_intra_doc_links)
)]

#[cfg(all(doctest, feature = "client", feature = "macros", feature = "stdio"))]
#[doc = include_str!("../README.md")]
mod readme {}

/// Exact types of the newest revision, in which clients give content, messages and definitions.
#[cfg(feature = "types")]
pub use mcp_2026_07_28 as types;
#[cfg(any(feature = "oauth-client", feature = "oauth-server"))]
pub use mcp_exact_auth as auth;
pub use mcp_exact_transport as transport;
#[doc(hidden)]
pub use schemars;
#[doc(hidden)]
pub use serde;

mod annotations;
pub mod apps;
mod background;
mod call;
mod cancellation;
#[cfg(feature = "client")]
mod client;
mod content;
#[cfg(any(test, feature = "contract"))]
pub mod contract;
mod cx;
mod decode;
mod definition;
#[cfg(feature = "process")]
mod dialects;
mod error;
mod extract;
mod form_values;
mod handler;
#[cfg(all(feature = "process", feature = "http-client"))]
mod host;
mod into_server;
mod layer;
mod link;
mod listing;
#[cfg(feature = "logs")]
mod logs;
mod notification;
mod ok;
mod outgoing;
mod panics;
mod params;
mod protocol;
mod repairs;
mod replay;
mod reply;
mod schema;
mod seal;
mod server;
#[cfg(feature = "skills")]
mod skills;
mod states;
mod sync;
mod task;
mod template;
#[cfg(feature = "client")]
pub mod testing;
#[cfg(feature = "validation")]
mod validate;
mod visit;

pub use annotations::Role;
pub use call::{Call, FromCall, Signature};
pub use cancellation::Cancelled;
#[cfg(feature = "client")]
pub use client::{
    Client, ClientCall, ClientChange, ClientError, CloseReason, CompletionOutput, Connect,
    ConnectionEvent, Definition, Form, FormAnswer, List, LogMessage, Media, NegotiationMemory,
    PromptOutput, Reconnect, Request, ResourceOutput, SampleReply, SampleRequest, Subscription,
    ToolOutput, WeakClient,
};
#[cfg(all(feature = "client", feature = "skills"))]
pub use client::{SkillError, SkillFile, SkillListing};
pub use content::Content;
pub use cx::{
    Cx, Elicit, ElicitUrl, Elicited, FormError, InputRequestError, InputRequestErrorKind,
    OnceError, ProgressAmount, Root, RootsRequest, Sample, Sampled, SamplingRequest,
};
pub use definition::{Icon, Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
#[cfg(feature = "process")]
#[doc(hidden)]
pub use dialects::{EntryReading, URL_MEMBERS, read_entry, switch_off};
pub use error::{
    BuildError, Error, InvalidArguments, Problem, RequestEnded, ResourceNotFound, Result,
};
pub use extract::{Headers, Input, Meta, RawRequest, State, Uri};
pub use handler::Handler;
#[cfg(all(feature = "process", feature = "http-client"))]
pub use host::{
    ConfigFileError, Host, HostBuilder, HostCall, HostError, HostTool, HostTools, ServerAddress,
    ServerEntry, ServerState, ServerStatus, expand_variables,
};
#[cfg(feature = "local")]
pub use into_server::local;
#[doc(hidden)]
pub use into_server::{Argument, change_definition, check_argument, check_reply};
pub use into_server::{IntoServer, blocking};
pub use layer::ToolService;
pub use listing::{PageRequest, ResourcePage};
#[cfg(feature = "logs")]
pub use logs::ClientLogs;
#[cfg(feature = "macros")]
#[doc = include_str!("macros/complete.md")]
pub use mcp_exact_macros::complete;
#[cfg(feature = "macros")]
#[doc = include_str!("macros/list.md")]
pub use mcp_exact_macros::list;
#[cfg(feature = "macros")]
#[doc = include_str!("macros/prompt.md")]
pub use mcp_exact_macros::prompt;
#[cfg(feature = "macros")]
#[doc = include_str!("macros/resource.md")]
pub use mcp_exact_macros::resource;
#[cfg(feature = "macros")]
pub use mcp_exact_macros::server;
#[cfg(feature = "macros")]
#[doc = include_str!("macros/tool.md")]
pub use mcp_exact_macros::tool;
#[cfg(feature = "process")]
pub use mcp_exact_tool_schema::ToolFilter;
#[cfg(all(feature = "process", feature = "http-client"))]
pub use mcp_exact_tool_schema::{ArgumentError, Catalogue, CatalogueError, ToolEntry};
#[cfg(feature = "client")]
pub use mcp_exact_wire::{Decode, Defined};
pub use notification::Notification;
pub use ok::Ok;
#[cfg(feature = "client")]
pub use protocol::CachedNegotiation;
pub use protocol::{
    CacheHint, Encode, Home, JsonObject, Level, Lifecycle, Limits, MessageBudget, NegotiationError,
    OpenFailure, PeerError, Principal, Progress, RawJson, Repair, RepairRule, Revision, Seal,
    SendError, ServerSettings, Tolerance, TraceContext, TypedRequest, revisions,
};
pub use repairs::RepairedMessage;
pub use reply::{Completions, Contents, IntoReply, Json, PromptResult, ToolResult};
pub use seal::{KeyRing, NoRandomness};
#[cfg(feature = "skills")]
pub use server::SkillFolder;
#[cfg(feature = "http-server")]
pub use server::{BearerToken, CheckToken, TokenGrant};
pub use server::{
    Caller, ListedDefinition, Partial, Prompts, Resources, Server, ServerBuilder, Tools,
};
#[cfg(feature = "skills")]
pub use skills::{Skill, SkillResource};
pub use task::{
    DirectoryTaskStore, MemoryTaskStore, TaskError, TaskExchange, TaskMessage, TaskRecord,
    TaskStore, TaskStoreError, Tasks,
};
pub use template::{TemplateError, TemplateValue, UriTemplate};
pub use visit::{InvalidVisitUrl, UrlWarning, Visit, VisitAnswer};
