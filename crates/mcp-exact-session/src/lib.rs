//! Sans-IO sessions of the Model Context Protocol, client and server, for every revision.
//!
//! Two machines, [`Server`] and [`Client`]: bytes and moments go in, bytes, events and deadlines come out. They do no IO,
//! read no clock, draw no random number, hold no key and start nothing; the same inputs give the same outputs.

mod capability;
mod client;
mod config;
mod elicited;
mod error;
pub mod frame;
pub mod http;
mod limits;
mod log;
mod message;
mod meta;
mod negotiated;
mod notice;
mod outbox;
mod question;
mod revision;
mod seal;
mod sent;
mod served;
mod server;
mod time;
mod types;

pub use client::{
    AskKey, Asked, CallOptions, Client, ClientEvent, Failure, Heard, Logged, Verdict,
};
pub use config::{CacheHint, ClientConfig, Extensions, Identity, Offer, ServerConfig};
pub use error::{
    ConfigError, NegotiationError, PeerError, ReceiveError, SendError, Violation, code,
};
pub use limits::{Limit, Limits, Patience};
pub use log::{Level, UnknownLevel};
pub use meta::is_key as is_meta_key;
pub use negotiated::{
    ClientNotifications, ClientRequests, ClientResults, Negotiated, ServerNotifications,
    ServerRequests, ServerResults, View,
};
pub use revision::{Era, era, revisions};
pub use seal::{CheckResult, Seal};
pub use server::{
    Filter, HttpRequest, Inbound, Incoming, Notified, Principal, Reply, Scope, Server, ServerEvent,
};
pub use time::Time;
pub use types::{
    Agreed, Answers, Ask, Binding, Change, Closed, HttpHints, Outcome, Progress, RawResult,
    RequestKey, Sent, StreamId, StreamKind, Transmit,
};

pub use mcp_exact_wire::{ErrorObject, Json, JsonObject, RequestId, Revision};
