//! Updates of rules and servers while the bridge runs; sessions continue.

use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;

use mcp_exact_session::{LossPolicy, Tolerance};
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::access::AccessRule;
use crate::backend::Backend;
use crate::bridge::Bridge;
use crate::limits::PrincipalLimits;
use crate::losses::{LossCounters, LossRule, LossSettings, Losses};
use crate::names::check_server_names;
use crate::options::{BridgeError, Options};
use crate::repairs::RepairCounters;
use crate::session::Session;
use crate::upstream::Upstream;

/// Rules that can change while the bridge runs.
#[derive(Debug, Clone, Default)]
#[non_exhaustive]
pub struct Rules {
    /// Rules that show or hide tools, prompts and resources.
    pub access: Vec<AccessRule>,
    /// Policy for messages that the other revision cannot express without a loss.
    pub losses: LossPolicy,
    /// Policies for specific kinds of losses; they have precedence over `losses`.
    pub loss_rules: Vec<LossRule>,
    /// Patterns of methods outside of the specification that are relayed, such as methods of extensions; `*` matches
    /// any characters. Access rules do not apply to the items that such requests name, and ids in them are bound to no
    /// principal. With many servers, each server is tried in order. Without a pattern, such requests are relayed only
    /// in front of a single server without rules, and only for clients without a principal.
    pub extension_methods: Vec<String>,
    /// Limits of each principal; `None` for no limits.
    pub limits: Option<PrincipalLimits>,
}

/// Current rules, and the settings that are derived from them.
#[derive(Debug)]
pub(crate) struct LiveRules {
    /// Current rules, and the settings for losses that are derived from them.
    state: RwLock<(Arc<Rules>, Arc<LossSettings>)>,
    /// Number of losses by id, for metrics.
    counters: Arc<LossCounters>,
    /// Number of repairs, for metrics.
    repairs: Arc<RepairCounters>,
}

impl LiveRules {
    pub(crate) fn new(options: &Options) -> Self {
        let counters = Arc::default();
        let repairs = Arc::new(RepairCounters::new(options.on_repair.clone()));
        let settings = settings(options, &options.rules, (&counters, &repairs));
        Self {
            state: RwLock::new((Arc::new(options.rules.clone()), settings)),
            counters,
            repairs,
        }
    }

    /// Returns the current rules.
    pub(crate) fn rules(&self) -> Arc<Rules> {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        Arc::clone(&state.0)
    }

    /// Returns the current handling of losses.
    pub(crate) fn losses(&self) -> Losses {
        let state = self.state.read().unwrap_or_else(PoisonError::into_inner);
        Losses::new(Arc::clone(&state.1))
    }

    /// Returns the counters of losses.
    pub(crate) fn counters(&self) -> &LossCounters {
        &self.counters
    }

    /// Returns the counters of repairs.
    pub(crate) fn repairs(&self) -> &Arc<RepairCounters> {
        &self.repairs
    }

    /// Replaces the rules.
    fn set(&self, options: &Options, rules: Rules) {
        let settings = settings(options, &rules, (&self.counters, &self.repairs));
        let mut state = self.state.write().unwrap_or_else(PoisonError::into_inner);
        *state = (Arc::new(rules), settings);
    }
}

/// Returns the settings for losses that options and rules specify.
fn settings(
    options: &Options,
    rules: &Rules,
    (counters, repairs): (&Arc<LossCounters>, &Arc<RepairCounters>),
) -> Arc<LossSettings> {
    let is_lenient = options.tolerance == Tolerance::Lenient;
    Arc::new(LossSettings {
        policy: rules.losses,
        rules: rules.loss_rules.clone(),
        hook: options.on_loss.clone(),
        counters: Some(Arc::clone(counters)),
        repairs: is_lenient.then(|| Arc::clone(repairs)),
        in_meta: options.losses_in_meta,
        in_header: options.losses_in_header,
    })
}

/// State of a named server after an [`Update`].
#[derive(Clone)]
#[non_exhaustive]
pub enum ServerUpdate {
    /// The server with this name is unchanged.
    Keep,
    /// The server is added, or its upstream is replaced. Calls in flight on a replaced upstream are answered by it, except
    /// those that wait for the answer of their client, which end with an error.
    Connect(Arc<dyn Upstream>),
}

/// Change of rules and servers of a running [`Bridge`].
#[derive(Default)]
#[non_exhaustive]
pub struct Update {
    /// New rules; `None` keeps the current rules.
    pub rules: Option<Rules>,
    /// New list of servers, by name; `None` keeps the current servers. Servers that are not in the list are removed.
    pub servers: Option<Vec<(String, ServerUpdate)>>,
}

impl Bridge {
    /// Changes rules and servers. Clients keep their sessions, and are notified that lists may have changed. Names and
    /// settings that clients have already seen do not change: the bridge keeps the capabilities of its initial servers,
    /// unless [`Options::servers_may_change`] is set.
    ///
    /// # Errors
    /// [`BridgeError::Settings`] if a name is invalid, the update removes all servers, or the update names servers and
    /// the bridge was created by [`Bridge::new`]; the bridge is then unchanged.
    pub async fn update(&self, update: Update) -> Result<(), BridgeError> {
        let shared = &self.0;
        let _updating = shared.updating.lock().await;
        if let Some(servers) = &update.servers {
            self.check(servers)?;
        }
        if let Some(rules) = update.rules {
            shared.live.set(&shared.options, rules);
        }
        let mut added = Vec::new();
        if let Some(servers) = update.servers {
            for (index, backend) in shared.backends.all().iter().enumerate() {
                let change = servers.iter().find(|(name, _)| *name == backend.name);
                if !matches!(change, Some((_, ServerUpdate::Keep))) {
                    shared.uris.forget(index);
                }
                if change.is_none() {
                    backend.remove();
                    tracing::info!(server = backend.name, "a server was removed");
                }
            }
            for (name, change) in servers {
                let known = shared.backends.find(&name);
                match (known, change) {
                    (Some(backend), ServerUpdate::Connect(upstream)) => {
                        backend.replace(upstream);
                        added.push(backend);
                    }
                    (Some(_), ServerUpdate::Keep) => {}
                    (None, ServerUpdate::Connect(upstream)) => {
                        let backend =
                            Backend::new(name, true, upstream, &shared.options, &shared.live);
                        added.push(Arc::clone(&backend));
                        self.add(backend);
                    }
                    // `check` has verified that the server exists.
                    (None, ServerUpdate::Keep) => {}
                }
            }
        }
        connect_all(&added, shared.options.list_within).await;
        for session in shared.all_sessions() {
            session.replace_lost();
        }
        self.0.announce();
        Ok(())
    }

    /// Returns an error if a list of servers cannot replace the current list.
    fn check(&self, servers: &[(String, ServerUpdate)]) -> Result<(), BridgeError> {
        if servers.is_empty() {
            return Err(BridgeError::Settings("there is no server".to_owned()));
        }
        let backends = self.0.backends.all();
        if backends.iter().any(|backend| !backend.is_one_of_many) {
            let words =
                "the bridge stands in front of one server without a name, which cannot change";
            return Err(BridgeError::Settings(words.to_owned()));
        }
        check_server_names(servers.iter().map(|(name, _)| name.as_str()))
            .map_err(BridgeError::Settings)?;
        let is_known = |name: &str| {
            let found = self.0.backends.find(name);
            found.is_some_and(|backend| !backend.is_removed())
        };
        let unknown = servers
            .iter()
            .find(|(name, change)| matches!(change, ServerUpdate::Keep) && !is_known(name));
        match unknown {
            Some((name, _)) => Err(BridgeError::Settings(format!(
                "there is no server {name:?} to keep"
            ))),
            None => Ok(()),
        }
    }

    /// Adds a server, and opens a session with the server for each client that has sessions.
    fn add(&self, backend: Arc<Backend>) {
        let shared = &self.0;
        tracing::info!(server = backend.name, "a server was added");
        shared.names.add_server(&backend.name);
        shared.announce_arrival(&backend);
        let mut state = shared.lock();
        // Under the lock, so that sessions that begin meanwhile have all servers.
        shared.backends.add(Arc::clone(&backend));
        for sessions in state.sessions.values_mut() {
            if let Some(session) = sessions.first() {
                let session = Session::with_other_server(session, &backend);
                session.connect_in_background();
                sessions.push(session);
            }
        }
    }
}

/// Time limit for the answer of one server to a list that is needed to find a name.
pub(crate) const SERVER_ANSWER_TIMEOUT: Duration = Duration::from_secs(15);

/// Connects to each server, concurrently, to learn its identity and capabilities. Waits for the servers that need no longer
/// than `within`; clients are notified when the others are ready.
pub(crate) async fn connect_all(backends: &[Arc<Backend>], within: Duration) {
    let mut reached = JoinSet::new();
    for backend in backends {
        let backend = Arc::clone(backend);
        reached.spawn(async move {
            let server = backend.name.as_str();
            match timeout(within, backend.profile()).await {
                Ok(Ok(_)) => {}
                Ok(Err(error)) => {
                    let error = error.message();
                    tracing::warn!(server, error, "a server cannot be reached");
                }
                Err(_) => {
                    backend.set_missed();
                    tracing::warn!(server, "a server is not ready yet");
                }
            }
        });
    }
    reached.join_all().await;
}
