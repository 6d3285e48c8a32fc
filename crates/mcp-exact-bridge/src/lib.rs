//! Gateway of the Model Context Protocol: clients of any revision use servers of any other one, over any transport.
//!
//! A [`Bridge`] is a gateway in front of one server. To its clients it looks like the server, in every revision and both
//! lifecycles: messages that client and server cannot exchange directly are converted, and losses of a conversion are
//! reported. Between equal revisions messages pass as they came.
//!
//! ```no_run
//! # #[cfg(all(feature = "process", feature = "stdio"))]
//! # async fn example() -> Result<(), Box<dyn std::error::Error>> {
//! use mcp_exact_bridge::{Bridge, Options};
//! use mcp_exact_transport::ServerCommand;
//!
//! let server = ServerCommand::new("node").arg("server.js");
//! let bridge = Bridge::new(server, Options::default()).await?;
//! bridge.serve_stdio().await?;
//! # Ok(())
//! # }
//! ```
//!
//! # What is translated
//!
//! | Client | Server | How |
//! |---|---|---|
//! | with a session | with sessions | each client has a connection of its own; questions of the server go to the client as they come |
//! | with a session | without | results of type `input_required` become questions to the client, and its answers a repeated request; one `subscriptions/listen` stands for its subscriptions |
//! | without a session | with sessions | a question ends the call with a result of type `input_required`; the call waits until the client repeats it with the answer |
//! | without a session | without | results of type `input_required` pass, and the server's `requestState` with them |
//!
//! # Many servers
//!
//! [`Bridge::many`] joins servers: their lists, capabilities and instructions. Tools and prompts are named after their server,
//! as in `files__read`, or as [`Prefix`] says. Resources keep their URIs: a URI belongs to the server that has listed it, or
//! whose template begins like it, or else to the first server that knows it. Lists have one page, which holds as long as the
//! strictest server allows; `_meta` of the servers' own lists is left out. A server that cannot be reached hides what it offers,
//! and its calls are errors; the others go on, and it is tried again from time to time.
//!
//! [`AccessRule`]s hide tools, prompts and resources from principals, in lists and calls alike.
//!
//! # Losses
//!
//! What a conversion loses is a tracing event, is counted ([`Bridge::metrics`]), and is given to [`Options::on_loss`];
//! [`Options::losses_in_meta`] lists it in the result. [`LossRule`]s report, refuse or accept losses by their ids.
//!
//! # Around each request
//!
//! [`Hook`]s decide about a request and its answer: policy, redaction, caching. A [`CallObserver`] gets a report of each request
//! that has ended, for an audit log. [`PrincipalLimits`] bound what a principal may send. [`Bridge::update`] changes rules and servers
//! while clients keep their sessions.
//!
//! # Isolation
//!
//! A client with a session has its own connection to the server. Clients without sessions share connections only with requests
//! of the same principal, name and capabilities. A call that waits for an answer is continued by a retry of the same principal,
//! method and params alone, by a state that cannot be guessed, and once. The `requestState` of a server without sessions is bound to
//! the principal that it was given to, since the server cannot tell principals apart; see [`Options::seal`].
//!
//! # Limits
//!
//! [`Options`] bounds shared connections, calls that wait, and how long either stays. Calls that wait end with the process.
//! Log messages on a shared connection over standard streams belong to a call only while it is the only one.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod access;
mod backend;
mod bridge;
mod hooks;
mod limits;
mod losses;
mod many;
mod metrics;
mod names;
mod relay;
mod session;
mod stateless;
mod tools;
mod translate;
mod update;
mod upstream;

pub use access::AccessRule;
pub use bridge::{Bridge, BridgeError, Options, Usage};
pub use hooks::{Call, Decision, Hook, HookFuture, Hooks};
pub use limits::PrincipalLimits;
pub use losses::{LossHook, LossReport, LossRule};
pub use mcp_exact_session::{LossPolicy, Offer};
pub use metrics::{CallObserver, CallOutcome, CallReport, Metrics, ServerState};
pub use names::Prefix;
pub use update::{Rules, ServerUpdate, Update};
pub use upstream::Upstream;
