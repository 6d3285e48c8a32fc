//! A gateway for the Model Context Protocol: it connects clients of any revision to servers of any revision, over any
//! transport.
//!
//! A [`Bridge`] is a gateway in front of one server. To its clients the bridge looks like the server, in every revision
//! and both lifecycles: messages that client and server cannot exchange directly are converted, and losses of a
//! conversion are reported. Between equal revisions, messages are relayed unchanged.
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
//! | with a session | with sessions | each client has a separate connection; requests of the server are relayed to the client |
//! | with a session | without | results of type `input_required` become requests to the client, and its answers a retry; one `subscriptions/listen` covers all its subscriptions |
//! | without a session | with sessions | a request of the server ends the call with a result of type `input_required`; the upstream call waits until the client retries with the answer |
//! | without a session | without | results of type `input_required` are relayed with the server's `requestState` |
//!
//! # Many servers
//!
//! [`Bridge::many`] joins the lists, capabilities and instructions of several servers. Names of tools and prompts
//! start with the name of their server, as in `files__read`; [`Prefix`] changes this. Pages of MCP Apps (`ui://`) and
//! Skills (`skill://`) belong to one server, whose name is the authority of their URIs: `ui://files/page.html` is
//! `ui://page.html` of the server `files`. Other resources keep their URIs: a request for a URI is sent first to the
//! server that lists the URI or a template with a matching prefix (of several, to the one that was named first), and
//! then to the other servers in turn, until a server has the resource. Lists have one page, whose cache lifetime is
//! the shortest of all servers; `_meta` of the servers' own lists is omitted. While a server cannot be reached, its
//! tools, prompts and resources are not listed and calls of them fail; the other servers remain available, and the
//! bridge retries the connection periodically.
//!
//! Each server also has its own endpoint, which behaves like a bridge for this server alone: [`Bridge::endpoint_of`],
//! and over HTTP `/mcp/NAME`.
//!
//! [`AccessRule`]s hide tools, prompts and resources from principals, in lists and calls alike.
//!
//! # Losses
//!
//! Each loss of a conversion is a tracing event, is counted ([`Bridge::metrics`]), and is passed to
//! [`Options::on_loss`]; [`Options::losses_in_meta`] lists losses in the result, and [`Options::losses_in_header`] lists
//! their ids in the HTTP response. [`LossRule`]s report, reject or accept
//! losses by their ids.
//!
//! # Schemas of tools
//!
//! [`Options::portable_schemas`] rewrites the schemas in lists of tools into equivalent ones without the shapes that widely used
//! hosts refuse, for clients of every revision. Shapes without an equivalent are reported once for each tool: by a tracing event,
//! in [`Metrics::unportable_schemas`], and to [`Options::on_unportable_schema`].
//!
//! # Catalogue
//!
//! A [`Catalogue`] ([`Rules::catalogue`]) gives tools other names, titles, descriptions and annotations, hides them, and gives their
//! calls arguments: those with a fixed value are no part of the schema for clients, who cannot send them, and defaults are for calls
//! that lack them. A call is mapped before it is admitted: access rules, hooks and the audit log know the tool by the name that its
//! server has; [`Call::listed_as`] is the other one. A name that two entries would have is an error; a tool without an entry is
//! hidden if an entry has its name. This is a warning, as an entry for a tool that its server does not have is.
//!
//! # Pinned definitions
//!
//! [`Pins`] ([`Rules::pins`]) are the definitions of tools that somebody has approved. A definition that differs from its pin, in
//! more than the order of its members and whitespace, and a tool without a pin are reported once: by a tracing event with the
//! difference, in [`Metrics::unpinned_tools`], and to [`Options::on_unpinned_tool`]. With [`PinPolicy::Withhold`] clients neither see
//! such a tool nor can call it, and a tool is listed before it is called if the server may have changed since.
//! [`Bridge::tool_definitions`] reads what can be pinned.
//!
//! # Search
//!
//! With [`ToolSearch`] ([`Rules::search`]) clients list the tools `search_tools` and `call_tool` instead of all others. The first one
//! finds tools by words and returns their definitions, of the tools that its caller may use. A call of the second one is relayed as the
//! call that its arguments name: rules, limits, hooks and the audit log see this call.
//!
//! # Servers that fail
//!
//! With a [`CircuitBreaker`] ([`Options::breaker`]) the calls of a server that fails again and again are refused for a time. Clients
//! only raise the suspicion: a connection of the bridge's own decides. With a [`RetryPolicy`] ([`Options::retry`]) reads that a server did
//! not answer are repeated. [`UpstreamSettings`] has both for one server.
//!
//! # Answers that are kept
//!
//! With a [`Cache`] ([`Options::cache`]) lists and resources that a server of 2026-07-28 marks as cacheable are kept for their
//! `ttlMs`, and given to other clients: `public` ones to all with the same capabilities, `private` ones to their principal alone. A change
//! that the server announces, another server, and [`Bridge::update`] end them.
//!
//! # Around each request
//!
//! [`Hook`]s decide about a request and its answer, and about all other messages: input requests of servers, responses
//! of clients, and notifications in both directions. Hooks are for policy, redaction and caching. A [`CallObserver`]
//! receives a report of each completed request, for an audit log. [`PrincipalLimits`] limit the requests of each
//! principal. [`Bridge::update`] changes rules and servers while clients keep their sessions.
//!
//! # Credentials of each user
//!
//! [`Upstream::users`] makes a server one that each user reaches with credentials of their own. A user without credentials is asked
//! to visit a page, in the way of the client's revision, and sees the tool `connect_NAME` instead of the server's tools until
//! then. The module `users` (feature `users`) obtains the credentials, by token exchange or on a page that asks for consent. What was
//! obtained with a token of the caller serves requests with a token of the same scopes ([`Caller`]).
//!
//! # Isolation
//!
//! A client with a session has its own connection to the server, unless the server is a [`SharedUpstream`]. Clients
//! without sessions, and all clients of a shared server, share connections only with requests of the same principal,
//! name and capabilities. A call that waits for an answer can be continued only once, only by a retry with the same
//! principal, method and params, and only with its unguessable `requestState`. The `requestState` of a server without
//! sessions is bound to the principal that has received it, since the server cannot distinguish principals; see
//! [`Options::seal`]. If a call ends before the server has answered it, its connection is closed, so that later
//! messages of the server reach no other call. Subscriptions of clients without sessions share one subscription at the
//! server if they belong to the same principal and name the same resources. An authenticated principal holds at most
//! half of the shared connections; subscriptions and waiting calls of clients without a principal together hold at most
//! half of the shared connections, too. Tasks belong to the principal that has made the call, or to the session if it
//! has no principal; requests of others about a task are answered as if the task did not exist.
//!
//! # Limits
//!
//! [`Options`] limits the number and the lifetime of shared connections and of waiting calls. Waiting calls end with
//! the process. Log messages on a shared stdio connection are relayed to a call only while it is the only call on the
//! connection, and every earlier call was answered.

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
mod readme {}

mod around;
mod clients;
mod route;
mod servers;
#[cfg(feature = "users")]
pub mod users;

pub use around::access::AccessRule;
pub use around::breaker::{BreakerState, CircuitBreaker};
pub use around::cache::{Cache, CacheState};
pub use around::hooks::{
    Call, Decision, Hook, HookFuture, Hooks, Message, MessageDecision, MessageKind,
};
pub use around::limits::PrincipalLimits;
pub use around::loss_rules::{LossHook, LossReport, LossRule};
pub use around::metrics::{CallObserver, CallOutcome, CallReport, Metrics, ServerState, Usage};
pub use around::names::{Prefix, check_server_name, usable_server_names};
pub use around::options::{BridgeError, Options};
pub use around::pins::{PinChange, PinCounts, PinObserver, PinPolicy, Pins, UnpinnedTool};
pub use around::repairs::{NewRepair, RepairCounts, RepairObserver};
pub use around::retry::RetryPolicy;
pub use around::rules::Rules;
pub use around::schemas::{SchemaObserver, ShapeCounts, UnportableSchema};
pub use around::search::ToolSearch;
pub use clients::bridge::Bridge;
pub use clients::first_client::FirstClient;
pub use clients::update::{ServerUpdate, Update};
pub use mcp_exact_session::{LossPolicy, Offer, OpenFailure, Seal};
pub use mcp_exact_tool_schema::{
    Catalogue, CatalogueError, Difference, Shape, ToolEntry, ToolFilter,
};
pub use route::backends::remembered_bytes;
pub use servers::upstream::{Connected, Prepared, SharedUpstream, Upstream};
pub use servers::upstream_settings::{ConfiguredUpstream, UpstreamSettings};
pub use servers::users::{Caller, NotAdmitted, PageVisit, UserAccess, UserFuture};
