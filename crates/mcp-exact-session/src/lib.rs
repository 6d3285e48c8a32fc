//! Sans-IO sessions of the Model Context Protocol, client and server, for every revision.
//!
//! Two machines, [`ServerEndpoint`] and [`ClientEndpoint`]: frames and moments go in, frames, events and deadlines come out. They do no IO,
//! read no clock, draw no random number, hold no key and start nothing; the same inputs give the same outputs. They work in
//! blocking code, under any runtime, in an embedded loop and in a test.
//!
//! # How a program drives a machine
//!
//! 1. `poll_event` and `poll_transmit` until they give nothing; send what they give.
//! 2. Wait for input until `poll_timeout`; while `wants_input` is false, for nothing but the output to drain.
//! 3. `receive` one frame, or `closed` at the end of a stream, or `handle_timeout` when the deadline has come; go on with 1.
//!
//! [`frame`] has the line framing of stdio, [`http`] the rules of HTTP. The examples `stdio_server` and `stdio_client` are
//! whole programs.
//!
//! ```
//! # fn main() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_exact_session::*;
//!
//! let mut config = ServerConfig::new(Identity::new("example", "1"));
//! config.capabilities = r#"{"tools":{}}"#.parse()?;
//! let mut server = ServerEndpoint::new(config.into(), Binding::Duplex, Time::ZERO)?;
//! let config = ClientConfig::new(Identity::new("example", "1"));
//! let mut client = ClientEndpoint::new(config.into(), Binding::Duplex, None, Time::ZERO)?;
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
//! # What the machines see to
//!
//! - **Negotiation.** The handshake of 2024-11-05 to 2025-11-25, requests that carry their revision from 2026-07-28 on, and
//!   peers that speak both: [`Offer`] says which revisions and which ones rather, [`CachedNegotiation`] saves a probe the next time.
//!   On a server, each request has its own revision; one handler serves clients of all of them.
//! - **Order, direction, capabilities.** What may not be sent is an error before anything leaves ([`SendError`]); what may not
//!   come is answered as the specification says, and told as a [`Violation`].
//! - **Every request ends once**: each one of this side in one [`Outcome`]; each one of the other side is answered once at most,
//!   and not at all once it was cancelled.
//! - **Questions** to the client in the middle of a request have one shape, [`Reply::InputRequired`]. Towards 2026-07-28 it is a result of
//!   type `input_required`, and a state that travels through the client is protected by a [`Seal`] of the program. Towards older
//!   clients the machine sends the questions and raises the request again with the answers.
//! - **Changes** go to everybody who wants to know, by one [`ServerEndpoint::publish`].
//! - **Bounds** on everything that a peer can make grow: [`Limits`].
//!
//! # HTTP
//!
//! A client over Streamable HTTP mirrors tool parameters into headers by itself ([`HttpHints::params`]), leaves tools that break
//! the rules of that out of the list ([`Violation::Tool`]), and asks for the list once more when a server refuses the headers of a
//! call. With [`Binding::HttpSse`] every message of the server comes on one stream of events; its first event, `endpoint`, is the
//! transport's.
//!
//! # Extensions
//!
//! [`Extension`] registers what an extension adds: the machine declares it, and lets its methods, notifications, filters and
//! types of results pass where the other side has declared it too. Its types are those of its own crate.
//!
//! What they leave to the program: the parameters of requests are decoded when it asks ([`IncomingRequest::typed`]), and an error of
//! that is the error to reply with. Results are sent as they are given, in the shape of the revision that the request speaks.
//!
//! # Where this differs from what one may expect
//!
//! - Time is [`Time`], a duration since any moment, and no `Instant`: moments can be made up, and sealed states carry one from
//!   one process to another.
//! - `receive` does not take a frame while too much waits ([`ReceiveError::Full`]): memory is bounded whatever a program does.
//! - [`ServerEndpoint::reply`] gives [`Sent::Suppressed`] when the client has cancelled the request: that is a race, and no error.
//! - A batch that a revision does not have is refused request by request, so that nobody waits for an answer.
//! - `ping`, `logging/setLevel`, `server/discover` and `subscriptions/listen` are answered by the machine;
//!   `resources/subscribe` goes to the program, and what it accepts is remembered for `publish`.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod builtin_notifications;
mod capability;
mod client;
mod config;
mod elicitation;
mod error;
mod events;
pub mod frame;
mod home;
pub mod http;
mod in_flight;
mod input_request;
mod limits;
mod log;
mod message;
mod meta;
mod negotiated;
mod outbox;
mod pending;
mod revision;
mod seal;
mod server;
mod time;
mod types;
mod usage;

pub use client::{
    CachedNegotiation, CallOptions, ClientEndpoint, ClientEvent, LogMessage, ServerNotification,
    ServerRequest, ServerRequestKey, TransportFailure,
};
pub use config::{CacheHint, ClientConfig, Extension, Extensions, Identity, Offer, ServerConfig};
pub use error::{
    ConfigError, NegotiationError, PeerError, ReceiveError, SendError, Violation, code,
};
pub use home::{Converted, LossPolicy};
pub use limits::{Limit, Limits, RequestTimeout};
pub use log::{Level, UnknownLevel};
pub use meta::is_key as is_meta_key;
pub use negotiated::{
    ClientNotifications, ClientRequests, ClientResults, Negotiated, ServerNotifications,
    ServerRequests, ServerResults, View,
};
pub use revision::{Lifecycle, lifecycle, revisions};
pub use seal::{CheckResult, Seal};
pub use server::{
    ClientNotification, Filter, FrameContext, HttpRequest, IncomingRequest, Principal, Reply,
    Scope, ServerEndpoint, ServerEvent,
};
pub use time::Time;
pub use types::{
    Binding, Change, Closed, HttpHints, InputRequest, InputResponses, Outcome, Progress, RawResult,
    RequestKey, Sent, SessionInfo, StreamId, StreamKind, Transmit,
};
pub use usage::Usage;

pub use mcp_exact_convert::{Home, Loss, LossKind};
pub use mcp_exact_wire::{ErrorObject, Json, JsonObject, RequestId, Revision};
