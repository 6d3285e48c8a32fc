//! Sans-IO sessions of the Model Context Protocol, client and server, for every revision.
//!
//! The two endpoints, [`ServerEndpoint`] and [`ClientEndpoint`], consume frames and timestamps, and produce frames,
//! events and deadlines. The endpoints do no IO, read no clock, generate no random numbers, store no keys and start no
//! tasks; equal inputs produce equal outputs. The endpoints can be driven from blocking code, from any async runtime,
//! from an embedded loop and from a test.
//!
//! # The home revision
//!
//! An application is written for one revision, its home revision, and serves peers of every revision.
//! [`IncomingRequest::typed_as`] decodes a request by the types of the home revision, and [`IncomingRequest::reply_as`]
//! creates the reply from a result of the home revision. The two functions convert between the revisions, and report or
//! refuse the information that a conversion loses ([`LossPolicy`]). [`IncomingRequest::typed`] decodes by the types of
//! the negotiated revision instead.
//!
//! ```
//! use mcp_2025_11_25::{CallToolResult, ClientRequest, TextContent, V2025_11_25 as Home};
//! use mcp_exact_session::{IncomingRequest, LossPolicy, PeerError, Reply};
//!
//! fn answer(request: &IncomingRequest<()>) -> Result<Reply, PeerError> {
//!     let home = request.typed_as::<Home>(LossPolicy::Report)?;
//!     let ClientRequest::CallTool(call) = home.value else {
//!         return Err(PeerError::method_not_found(request.method()));
//!     };
//!     let text = TextContent::new(format!("`{}` was called", call.params.name));
//!     let result = CallToolResult::new(vec![text.into()]);
//!     let reply = request.reply_as::<Home>(&result, LossPolicy::Report)?;
//!     Ok(reply.value)
//! }
//! ```
//!
//! # How a program drives an endpoint
//!
//! 1. Call `poll_event` and `poll_transmit` until both return `None`; send the returned frames.
//! 2. Wait for input until `poll_timeout`; while `wants_input` is false, take events and output first.
//! 3. Call `receive` for one frame, `handle_close` at the end of a stream, or `handle_timeout` at the deadline; continue with 1.
//!
//! Over HTTP, `writable_streams` and `poll_transmit_on` return the output of each stream separately, so that a slow reader of one
//! response does not delay other responses. The module [`frame`] implements the line framing of stdio, and the module [`http`]
//! implements the rules of HTTP. The examples `stdio_server` and `stdio_client` are complete programs.
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
//!             // `request.typed()` has the types of the negotiated revision.
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
//! - **Negotiation.** The endpoints support the handshake of 2024-11-05 to 2025-11-25, the self-describing requests of
//!   2026-07-28 and later, and peers that support both. [`Offer`] lists revisions in the order of preference,
//!   [`CachedNegotiation`] saves a probe. On a server each request has its own revision; one handler serves clients of
//!   all revisions.
//! - **Rules.** One table defines for each method its sender, direction, lifecycle, stream and required capability.
//!   Sending a message that a rule forbids fails with a [`SendError`], and nothing is sent; a received message that a
//!   rule forbids is refused as the specification demands ([`Refusal`]) and reported as a [`Violation`].
//! - **Every request ends once**: a request of the local peer ends with one [`Outcome`]; a request of the remote peer is answered
//!   at most once, and is not answered after its cancellation.
//! - **Input** during a request is requested with [`Reply::InputRequired`] in every revision. In 2026-07-28 the reply
//!   is a result of type `input_required`, and a [`Seal`] of the application protects the request state that the client
//!   echoes. To older clients the endpoint sends separate requests. Once the client has responded, the endpoint
//!   delivers the request again, together with the responses.
//! - **Changes** are sent to every interested client by [`ServerEndpoint::publish`]; [`Subscribers`] finds the endpoints that a
//!   change concerns.
//! - **Tolerance.** What a peer sends is read strictly first. With [`Tolerance::Lenient`], the default, what breaks its schema
//!   is repaired if its meaning is clear, and each repair is an event ([`ClientEvent::Repaired`], [`ServerEvent::Repaired`]).
//! - **Limits** on all memory and queues that a peer can cause to grow are set in [`Limits`]. Each stream has its own queue
//!   limit.
//! - **Principals.** A session belongs to the [`Principal`] that sent `initialize`; frames of other principals are refused.
//! - **Snapshots.** Another process can resume a session from its [`Snapshot`].
//!
//! # HTTP
//!
//! A client over Streamable HTTP mirrors tool parameters into headers ([`HttpHints::params`]), removes tools whose header
//! annotations are invalid from the list ([`Violation::Tool`]), and requests the list again if a server refuses the headers of a
//! call. A server compares headers and arguments itself if [`ServerConfig::tool_headers`] names the parameters that a tool
//! mirrors.
//!
//! # Extensions
//!
//! [`Extension`] registers an extension: the endpoint declares the extension, and allows its methods, notifications, filters and
//! result types if the peer has declared the extension, too. The types of an extension are defined in a separate crate.
//!
//! The endpoint does not decode params. [`IncomingRequest::typed`] does; if it fails, reply with the error that it returns.
//!
//! # Decisions
//!
//! - Timestamps are [`Time`], a duration since an arbitrary start, instead of `Instant`: tests can construct
//!   timestamps, and sealed states transfer their expiry between processes.
//! - On a duplex stream an endpoint accepts input until its end. Requests beyond [`Limits::queued_bytes`] are refused;
//!   the refusals use [`Limits::reserved_bytes`]. When the reserve is exhausted, the peer is not reading, and the
//!   endpoint closes.
//! - If a client ends its input on a duplex stream, requests in flight are still answered and queued output is still written.
//! - [`ServerEndpoint::reply`] returns [`SendOutcome::Suppressed`] if the client has cancelled the request, because this is a normal
//!   race and not an error.
//! - In revisions without batches, each request of a batch is refused separately, so that no caller waits for an answer.
//! - The endpoint answers `ping`, `logging/setLevel`, `server/discover` and `subscriptions/listen`; `resources/subscribe` is
//!   delivered to the application, and the endpoint remembers accepted subscriptions for `publish`.
//! - Changes that are published while a Streamable HTTP session has no standalone stream are kept, without duplicates, until the
//!   next standalone stream opens. Messages are sent on the newest standalone stream.
//! - A request that does not name its revision in `MCP-Protocol-Version` or in `_meta` belongs to the session; a server without
//!   sessions refuses it.
//! - From 2026-07-28 on, if either peer ends a POST, its request is cancelled without `notifications/cancelled`. Up to
//!   2025-11-25, a lost connection does not cancel requests ([`DetachOutcome`]).
//! - A sealed state can be used again until it expires. Without a seal, the retries of a request are not counted.
//! - A message that cannot be accepted (above a limit, before `initialize`, or malformed) is answered with an HTTP error status.
//!   A notification that has no effect is answered with 202, because its sender cannot know this; a `notifications/cancelled` for
//!   a request of another POST is answered with 202 and ignored, because ids of different callers can collide.

// Parts that clients and servers share have items for clients alone.
#![cfg_attr(
    not(feature = "client"),
    allow(dead_code, unused_imports, rustdoc::broken_intra_doc_links)
)]

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod budget;
mod builtin_notifications;
mod call_method;
mod call_options;
mod canonical;
mod capabilities;
mod change;
mod check_result;
#[cfg(feature = "client")]
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
mod list_cursors;
mod log;
mod message;
mod message_observer;
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
mod tolerance;
mod trace_context;
mod typed;
mod usage;

pub use budget::{BudgetShare, MessageBudget};
pub use call_options::{CallOptions, RequestInput};
pub use change::{Change, Progress};
pub use check_result::CheckResult;
#[cfg(feature = "client")]
pub use client::{
    CachedNegotiation, ClientEndpoint, ClientEvent, ServerNotification, ServerRequest,
    ServerRequestKey, TransportFailure, UnprocessedRequest,
};
pub use config::{CacheHint, Identity, InputMode, Offer, ServerConfig, ServerSettings};
#[cfg(feature = "client")]
pub use config::{ClientConfig, ClientSettings};
pub use error::{
    ConfigError, NegotiationError, PeerError, PeerFailure, ReceiveError, SendError, Violation, code,
};
pub use extensions::{Extension, ExtensionPolicy, Extensions};
pub use filter::Filter;
pub use home::{ConvertedValue, HomeRequest, LossPolicy, RequestLosses};
pub use http_request::{HttpRequest, Principal};
pub use input_request::{InputRequest, InputResponses};
pub use limits::{Limit, Limits, RequestTimeout};
pub use list_cursors::ListCursors;
pub use log::{Level, LogMessage, UnknownLevel};
pub use message_observer::MessageObserver;
pub use meta::is_key as is_meta_key;
pub use outcome::{Outcome, RawResult, SendOutcome};
pub use refusal::Refusal;
pub use rules::results::is_extension_result;
pub use seal::{OpenFailure, Seal};
pub use server::{
    ClientNotification, DividedFrame, FrameContext, IncomingRequest, Reply, Scope, ServerEndpoint,
    ServerEvent,
};
pub use session_info::SessionInfo;
pub use snapshot::{Snapshot, SnapshotDue, SnapshotRequest};
pub use stream::{
    Binding, DetachOutcome, HttpHints, RequestKey, StreamEnd, StreamId, StreamKind, Transmit,
};
pub use subscribers::Subscribers;
pub use time::Time;
pub use tolerance::Repairs;
pub use trace_context::TraceContext;
pub use typed::{
    ClientNotifications, ClientRequests, ClientResults, Negotiated, ServerNotifications,
    ServerRequests, ServerResults, View,
};
pub use usage::Usage;

pub use mcp_exact_convert::{
    Home, Loss, LossKind, RULES as REPAIR_RULES, Repair, RepairRule, Tolerance,
};
pub use mcp_exact_revisions::{Lifecycle, MethodId, RevisionSpec, Side, method};
pub use mcp_exact_wire::{ErrorObject, Json, JsonObject, RequestId, Revision};

/// Iterates over every revision that endpoints speak, oldest first.
///
/// Drafts are excluded: there are no conversions from or to a draft.
pub fn revisions() -> impl DoubleEndedIterator<Item = Revision> {
    mcp_exact_revisions::released().map(RevisionSpec::revision)
}

/// Returns the lifecycle of a revision; `None` if endpoints do not speak the revision.
pub fn lifecycle(revision: &str) -> Option<Lifecycle> {
    find_revision(revision).map(RevisionSpec::lifecycle)
}

/// Returns true if a client request of a revision may be repeated although the server may have executed it, as for list and read
/// requests. Returns false for `tools/call` and for methods that the revision does not define.
pub fn is_repeatable(revision: Revision, method: &str) -> bool {
    let rule =
        find_revision(revision.as_str()).and_then(|spec| rules::client_request(method, spec));
    rule.is_some_and(|rule| rule.is_repeatable)
}

/// Returns the properties of a revision that endpoints speak; `None` for every other identifier, that of a draft included.
pub(crate) fn find_revision(id: &str) -> Option<&'static RevisionSpec> {
    mcp_exact_revisions::find(id)
        .filter(|spec| spec.status() == mcp_exact_revisions::Status::Release)
}
