//! Servers and clients of the Model Context Protocol, for every revision.
//!
//! Write a handler once: clients of every revision are served by it, from 2024-11-05 to 2026-07-28, whichever way they
//! negotiate, questions to the user included.

pub use mcp_exact_transport as transport;
#[doc(hidden)]
pub use schemars1 as schemars;
#[doc(hidden)]
pub use serde;

mod client;
mod content;
mod cx;
mod definition;
mod error;
mod extract;
mod handler;
mod into_server;
mod link;
mod outgoing;
mod replay;
mod reply;
mod schema;
mod seal;
mod server;
mod template;
pub mod testing;
mod validate;

pub use client::{
    CallTool, Client, ClientChange, ClientError, Completed, Connect, Definition, Form, FormAnswer,
    List, LogMessage, PromptOutput, Request, ResourceOutput, SampleReply, SampleRequest,
    ToolOutput,
};
pub use content::{Content, Role};
pub use cx::{
    AskError, AskErrorKind, Cancelled, Cx, Elicit, ElicitUrl, Elicited, FormError, OnceError, Root,
    Roots, Sample, Sampled, Sampling,
};
pub use definition::{Icon, Prompt, PromptArgument, Resource, ResourceTemplate, Tool};
pub use error::{BadArguments, BuildError, Error, Problem, RequestEnded, ResourceNotFound, Result};
pub use extract::{Call, FromCall, Headers, Input, Meta, Signature, State, Uri};
pub use handler::Handler;
#[doc(hidden)]
pub use into_server::check_reply;
pub use into_server::{IntoServer, blocking};
pub use link::{
    CacheHint, CachedNegotiation, Encode, Json as RawJson, JsonObject, Level, Lifecycle, Limits,
    NegotiationError, PeerError, Principal, Progress, Revision, Seal, SendError, revisions,
};
#[cfg(feature = "macros")]
pub use mcp_exact_macros::{complete, prompt, resource, server, tool};
pub use reply::{Completions, Contents, IntoReply, Json, PromptResult, ToolResult};
pub use seal::{KeyRing, NoRandomness};
pub use server::{Caller, Listed, Partial, Prompts, Resources, Server, ServerBuilder, Tools};
pub use template::{TemplateError, TemplateValue, UriTemplate};
