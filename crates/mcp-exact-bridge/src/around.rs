//! What stands around each request: settings, rules, names, hooks, limits, losses, repairs, schemas, pins, breakers, retries,
//! cache and metrics.
//!
//! Nothing here knows a server or a client.

pub(crate) mod access;
pub(crate) mod apps;
pub(crate) mod backoff;
pub(crate) mod breaker;
pub(crate) mod cache;
pub(crate) mod gate;
pub(crate) mod hooks;
pub(crate) mod limits;
pub(crate) mod live;
pub(crate) mod loss_rules;
pub(crate) mod losses;
pub(crate) mod metrics;
pub(crate) mod names;
pub(crate) mod options;
pub(crate) mod pin_states;
pub(crate) mod pins;
pub(crate) mod repairs;
pub(crate) mod resource_uri;
pub(crate) mod retry;
pub(crate) mod rules;
pub(crate) mod schemas;
pub(crate) mod search;
pub(crate) mod server_uris;
pub(crate) mod skills;
pub(crate) mod target;
