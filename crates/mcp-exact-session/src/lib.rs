//! Sans-IO sessions of the Model Context Protocol, client and server, for every revision.
//!
//! Two endpoints, [`ServerEndpoint`] and [`ClientEndpoint`]: frames and timestamps go in; frames, events and deadlines come out. They
//! do no IO, read no clock, draw no random number, hold no key and start nothing; the same inputs give the same outputs. They work in
//! blocking code, under any runtime, in an embedded loop and in a test.
//!
//! # How a program drives an endpoint
//!
//! 1. Call `poll_event` and `poll_transmit` until they return nothing; send the frames that they return.
//! 2. Wait for input until `poll_timeout`; while `wants_input` is false, take events and output first.
//! 3. Call `receive` for one frame, `closed` at the end of a stream, or `handle_timeout` at the deadline; continue with 1.
//!
//! Over HTTP, `writable_streams` and `poll_transmit_on` give the output of each stream by itself, so that a slow reader of one response
//! delays no other. [`frame`] has the line framing of stdio, [`http`] the rules of HTTP. The examples `stdio_server` and
//! `stdio_client` are whole programs.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_exact_session::*;
//!
//! let mut config = ServerConfig::new(Identity::new("example", "1"));
//! config.capabilities = r#"{"tools":{}}"#.parse()?;
//! let mut server = ServerEndpoint::new(config.build()?, Binding::Duplex, Time::ZERO);
//! let config = ClientConfig::new(Identity::new("example", "1"));
//! let mut client = ClientEndpoint::new(config.build()?, Binding::Duplex, None, Time::ZERO);
//!
//! let mut tools = None;
//! while tools.is_none() {
//!     let mut frame = Vec::new();
//!     while client.poll_transmit(&mut frame).is_some() {
//!         server.receive(StreamId::DUPLEX, &frame, FrameContext::new(()), Time::ZERO)?;
//!         frame.clear();
//!     }
//!     while let Some(event) = server.poll_event() {
//!         if let ServerEvent::Request(request) = event {
//!             // `request.typed()` has the types of the revision that the client speaks.
//!             assert_eq!(request.method(), "tools/list");
//!             let result: JsonObject = r#"{"tools":[]}"#.parse()?;
//!             server.reply(request.key, RawResult::from(result), Time::ZERO)?;
//!         }
//!     }
//!     while server.poll_transmit(&mut frame).is_some() {
//!         client.receive(StreamId::DUPLEX, &frame, Time::ZERO)?;
//!         frame.clear();
//!     }
//!     while let Some(event) = client.poll_event() {
//!         match event {
//!             ClientEvent::Negotiated(..) => {
//!                 client.request("tools/list", None, CallOptions::default(), Time::ZERO)?;
//!             }
//!             ClientEvent::Completed(_, outcome) => tools = Some(outcome),
//!             _ => {}
//!         }
//!     }
//! }
//! assert!(matches!(tools, Some(Outcome::Result(_))));
//! # Ok(())
//! # }
//! ```
//!
//! # What the endpoints do
//!
//! - **Negotiation.** They speak the handshake of 2024-11-05 to 2025-11-25, requests that state their revision from 2026-07-28 on, and
//!   with peers that speak both: [`Offer`] lists revisions in the order of preference, [`CachedNegotiation`] saves a probe. On a server
//!   each request has its own revision; one handler serves clients of all of them.
//! - **Rules.** One table decides who may send which method, in which direction and lifecycle, on which stream, with which
//!   capability. A message that must not be sent is a [`SendError`] before anything leaves; a message that must not come is
//!   refused as the specification demands ([`Refusal`]) and reported as a [`Violation`].
//! - **Every request ends once**: a local one in one [`Outcome`]; one of the peer is answered at most once, and not at all after it was
//!   cancelled.
//! - **Input** in the middle of a request has one form, [`Reply::InputRequired`]. Towards 2026-07-28 it is a result of type
//!   `input_required`, and a state that travels through the client is protected by a [`Seal`] of the program. To older clients the
//!   endpoint sends requests, and delivers the request again with the responses.
//! - **Changes** go to every client that wants to know, by one [`ServerEndpoint::publish`]; [`Subscribers`] finds the endpoints that a
//!   change concerns.
//! - **Limits** on everything that a peer can make grow: [`Limits`]. Each stream has its own.
//! - **Principals.** A session belongs to the [`Principal`] of its `initialize`; frames of others are refused.
//! - **Sessions that outlive their process** by [`Snapshot`].
//!
//! # HTTP
//!
//! A client over Streamable HTTP mirrors tool parameters into headers ([`HttpHints::params`]), leaves tools that break the
//! rules of that out of the list ([`Violation::Tool`]), and asks for the list again if a server refuses the headers of a
//! call. A server compares headers and arguments itself if [`ServerConfig::tool_headers`] names the parameters that a tool
//! mirrors.
//!
//! # Extensions
//!
//! [`Extension`] registers what an extension adds: the endpoint declares it, and lets its methods, notifications, filters and types of
//! results pass where the peer has declared it, too. Its types are those of its own crate.
//!
//! The endpoint does not decode params. [`IncomingRequest::typed`] does; if it fails, reply with the error that it returns.
//!
//! # Decisions
//!
//! - Time is [`Time`], a duration since any moment, and no `Instant`: timestamps can be made up, and sealed states carry one from
//!   one process to another.
//! - On a duplex stream an endpoint reads until the end. Requests beyond [`Limits::queued_bytes`] are refused from
//!   [`Limits::reserved_bytes`]; when these are used up, the peer does not read, and the endpoint closes.
//! - If a client ends its input on a duplex stream, requests in flight are still answered and queued output is still written.
//! - [`ServerEndpoint::reply`] returns [`Sent::Suppressed`] if the client has cancelled the request: that is a race, and no error.
//! - A batch that a revision does not have is refused request by request, so that no caller waits for an answer.
//! - The endpoint answers `ping`, `logging/setLevel`, `server/discover` and `subscriptions/listen`; `resources/subscribe`
//!   goes to the program, and accepted subscriptions are remembered for `publish`.
//! - Changes of a session over Streamable HTTP that has no standalone stream wait for the next one, each once. Messages go to the newest
//!   standalone stream.
//! - A request that names its revision neither in `MCP-Protocol-Version` nor in `_meta` belongs to the session; a server without
//!   sessions refuses it.
//! - From 2026-07-28 on the end of a POST cancels its request over HTTP, from either side, without `notifications/cancelled`. Before, a
//!   lost connection cancels nothing ([`Detached`]).
//! - A sealed state can be used again until it expires. Without a seal nothing counts the retries of a request.
//! - A message that cannot be taken, such as one above a limit, before `initialize` or of no valid form, gets an HTTP error status. A
//!   notification that means nothing here gets 202, because its sender cannot know; a `notifications/cancelled` for a request of another
//!   POST gets 202 and does nothing, because ids of different callers collide.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod builtin_notifications;
mod call_options;
mod canonical;
mod capabilities;
mod change;
mod check_result;
mod client;
mod config;
mod core;
mod elicitation;
mod error;
mod extensions;
mod filter;
pub mod frame;
mod header_mirroring;
mod header_values;
mod heap_size;
mod home;
pub mod http;
mod http_request;
mod input_request;
mod limits;
mod log;
mod message;
mod meta;
mod outcome;
mod oversized;
mod refusal;
mod rules;
mod seal;
mod server;
mod session_info;
mod snapshot;
mod stream;
mod subscribers;
mod time;
mod trace_context;
mod typed;
mod usage;

pub use call_options::{CallOptions, RequestInput};
pub use change::{Change, Progress};
pub use check_result::CheckResult;
pub use client::{
    CachedNegotiation, ClientEndpoint, ClientEvent, ServerNotification, ServerRequest,
    ServerRequestKey, TransportFailure,
};
pub use config::{
    CacheHint, ClientConfig, ClientSettings, Identity, InputMode, Offer, ServerConfig,
    ServerSettings,
};
pub use error::{
    ConfigError, NegotiationError, PeerError, ReceiveError, SendError, Violation, code,
};
pub use extensions::{Extension, ExtensionPolicy, Extensions};
pub use filter::Filter;
pub use home::{Converted, LossPolicy};
pub use http_request::{HttpRequest, Principal};
pub use input_request::{InputRequest, InputResponses};
pub use limits::{Limit, Limits, RequestTimeout};
pub use log::{Level, LogMessage, UnknownLevel};
pub use meta::is_key as is_meta_key;
pub use outcome::{Outcome, RawResult, Sent};
pub use refusal::Refusal;
pub use seal::Seal;
pub use server::{
    ClientNotification, FrameContext, IncomingRequest, Reply, Scope, ServerEndpoint, ServerEvent,
};
pub use session_info::SessionInfo;
pub use snapshot::{Snapshot, SnapshotDue, SnapshotRequest};
pub use stream::{
    Binding, Closed, Detached, HttpHints, RequestKey, StreamId, StreamKind, Transmit,
};
pub use subscribers::Subscribers;
pub use time::Time;
pub use trace_context::TraceContext;
pub use typed::{
    ClientNotifications, ClientRequests, ClientResults, Negotiated, ServerNotifications,
    ServerRequests, ServerResults, View,
};
pub use usage::Usage;

pub use mcp_exact_convert::{Home, Loss, LossKind};
pub use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
pub use mcp_exact_wire::{ErrorObject, Json, JsonObject, RequestId, Revision};

/// Iterates over every known revision, oldest first.
pub fn revisions() -> impl DoubleEndedIterator<Item = Revision> {
    mcp_exact_revisions::all()
        .iter()
        .map(RevisionSpec::revision)
}

/// Returns the lifecycle of a revision; `None` for one that is not known.
pub fn lifecycle(revision: &str) -> Option<Lifecycle> {
    mcp_exact_revisions::find(revision).map(RevisionSpec::lifecycle)
}
