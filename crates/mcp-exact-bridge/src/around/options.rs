//! Settings of the bridge, with their defaults, and the errors of settings that cannot be used.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{Identity, Limits, Offer, RequestTimeout, Seal, Tolerance};

use crate::around::breaker::CircuitBreaker;
use crate::around::cache::Cache;
use crate::around::hooks::Hooks;
use crate::around::loss_rules::LossHook;
use crate::around::metrics::CallObserver;
use crate::around::names::Prefix;
use crate::around::pins::PinObserver;
use crate::around::repairs::RepairObserver;
use crate::around::retry::RetryPolicy;
use crate::around::rules::Rules;
use crate::around::schemas::SchemaObserver;

/// Settings of a [`Bridge`](crate::Bridge); every setting has a default.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Options {
    /// Identity of the bridge towards the server before a client is connected, or if a client states no identity.
    pub identity: Identity,
    /// Revisions that are offered to clients.
    pub downstream_offer: Offer,
    /// Revisions that may be negotiated with the server.
    pub upstream_offer: Offer,
    /// Rules of the bridge, which [`Bridge::update`](crate::Bridge::update) can change.
    pub rules: Rules,
    /// True if each result lists in its `_meta`, as `mcp-exact/losses`, the losses of the conversions of the result and
    /// of its request.
    pub losses_in_meta: bool,
    /// True if the response to a request over HTTP lists in its header `mcp-exact-losses` the ids of the losses of the
    /// request and its result, in up to 1,024 bytes; see [`Bridge::http`](crate::Bridge::http). If the response is an event stream, the
    /// header lists only the losses that occurred before the stream began.
    pub losses_in_header: bool,
    /// Function that is called for every loss, except accepted ones.
    pub on_loss: Option<LossHook>,
    /// Time limit for an answer of the server. A shorter timeout of the client ends the request earlier.
    pub request_timeout: RequestTimeout,
    /// Time limit for a connection to a server: the start of its process and the negotiation of a revision.
    pub connect_timeout: Duration,
    /// Condition under which the names of tools and prompts are prefixed with the name of their server; has no effect
    /// in front of a single server.
    pub prefix: Prefix,
    /// Hooks that are called for each request and for all other messages.
    pub hooks: Hooks,
    /// Function that is called after each request.
    pub on_call: Option<CallObserver>,
    /// Function that is called for each kind of repair.
    pub on_repair: Option<RepairObserver>,
    /// True if the schemas of tools in lists are rewritten into equivalent ones that widely used hosts accept
    /// (`docs/repairs.md`, "HOST.portable-schema"). Calls are relayed unchanged.
    pub portable_schemas: bool,
    /// Function that is called for each tool and shape of its schema that has no equivalent.
    pub on_unportable_schema: Option<SchemaObserver>,
    /// Function that is called for each definition of a tool that is not the pinned one.
    pub on_unpinned_tool: Option<PinObserver>,
    /// True if [`Bridge::update`](crate::Bridge::update) may add servers with further capabilities; the bridge then declares every capability
    /// that servers may have.
    pub servers_may_change: bool,
    /// Key that binds the `requestState` of servers to principals. All processes that serve the same clients need the
    /// same key. By default, each process creates a random key, so that a retry must reach the process that has
    /// answered the call with input requests.
    pub seal: Option<Arc<dyn Seal>>,
    /// Maximum number of connections per server that clients without sessions share (from 2026-07-28 on).
    pub connections: usize,
    /// Maximum number of connections per server of clients with sessions, which have one each (up to 2025-11-25). One client
    /// has at most half of them, and all clients that have sent no request yet a quarter.
    pub session_connections: usize,
    /// Number of processes of each server that are started in advance for the next connections, if the server is a command. They
    /// have received no message, so that they carry nothing of another client.
    pub spare_processes: usize,
    /// Time after which a list of many servers is answered with the servers that have answered; clients are notified when the
    /// others are ready. Also the time for which the start of the bridge waits for its servers; four fifths of it limit the probe of a
    /// server, which servers of older revisions may leave without an answer.
    pub list_within: Duration,
    /// Idle time after which a connection that clients without sessions share is closed.
    pub idle: Duration,
    /// Time limit for the response of the client to a request that the server sends during a call. The time limit
    /// applies to clients without sessions, and to clients with sessions at a
    /// [`SharedUpstream`](crate::SharedUpstream). While the call waits, the call has exclusive use of a connection to
    /// the server. The call ends earlier if a client with a session disconnects or cancels the call.
    pub answer_within: Duration,
    /// Maximum number of calls per server that wait for the response of their client.
    pub waiting_calls: usize,
    /// Policy for what clients and servers send.
    pub tolerance: Tolerance,
    /// Maximum number of pages that the bridge reads from one list of a server, if it joins the lists of several servers.
    pub max_pages: usize,
    /// Maximum size of a result of a tool, prompt or resource in bytes, as the client gets it. Instead of a larger result of a tool,
    /// the model gets a tool error that names both sizes; a larger prompt or resource is an error. `None`: no limit but that of
    /// messages.
    pub result_bytes: Option<usize>,
    /// Circuit breaker of each server; `None` refuses no calls. It has no effect on servers with credentials of each user
    /// ([`Upstream::users`](crate::Upstream::users)), because what fails for one user says nothing about others.
    pub breaker: Option<CircuitBreaker>,
    /// Repetition of reads that a server did not answer; `None` repeats nothing.
    pub retry: Option<RetryPolicy>,
    /// Cache of the answers that servers mark as cacheable; `None` keeps none, but for servers that
    /// [`UpstreamSettings::cache`](crate::UpstreamSettings::cache) names. It is off by default, because a server notices fewer
    /// requests, and what it withdraws may be kept until its time is over.
    pub cache: Option<Cache>,
    /// Limits of every connection to clients and servers. A message may have 32 MiB by default, because results hold whole files
    /// and pictures; 64 ids and 128 KiB of subscriptions are remembered of each client.
    pub limits: Limits,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            identity: Identity::new(env!("CARGO_PKG_NAME"), env!("CARGO_PKG_VERSION")),
            downstream_offer: Offer::default(),
            upstream_offer: Offer::default(),
            rules: Rules::default(),
            losses_in_meta: false,
            losses_in_header: false,
            on_loss: None,
            request_timeout: RequestTimeout {
                idle: Duration::from_secs(60 * 60),
                reset_on_progress: true,
                total: Duration::from_secs(24 * 60 * 60),
            },
            connect_timeout: Duration::from_secs(60),
            prefix: Prefix::default(),
            hooks: Hooks::default(),
            on_call: None,
            on_repair: None,
            portable_schemas: false,
            on_unportable_schema: None,
            on_unpinned_tool: None,
            servers_may_change: false,
            seal: None,
            connections: 64,
            session_connections: 1_024,
            spare_processes: 0,
            list_within: Duration::from_secs(5),
            idle: Duration::from_secs(5 * 60),
            answer_within: Duration::from_secs(10 * 60),
            waiting_calls: 1024,
            tolerance: Tolerance::default(),
            max_pages: 100,
            result_bytes: None,
            breaker: None,
            retry: None,
            cache: None,
            limits: Limits {
                message_bytes: 32 << 20,
                // There may be ten thousand sessions.
                remembered_ids: 64,
                subscription_bytes: 128 << 10,
                ..Limits::default()
            },
        }
    }
}

/// Reason why a bridge cannot be created.
#[derive(Debug, Clone, thiserror::Error)]
#[non_exhaustive]
pub enum BridgeError {
    /// The server cannot be reached, or no revision can be negotiated with it.
    #[error("{0}")]
    Upstream(String),
    /// The settings are inconsistent.
    #[error("{0}")]
    Settings(String),
}
