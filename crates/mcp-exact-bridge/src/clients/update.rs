//! Updates of rules and servers while the bridge runs; sessions continue.

use std::sync::Arc;

use tokio::task::JoinSet;

use crate::around::names::{check_names_of_catalogue, check_server_names};
use crate::around::options::BridgeError;
use crate::around::rules::Rules;
use crate::clients::bridge::Bridge;
use crate::route::backends::connect_all;
use crate::route::server::Server;
use crate::servers::upstream::Upstream;

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
    /// unless [`Options::servers_may_change`](crate::Options::servers_may_change) is set.
    ///
    /// # Errors
    /// [`BridgeError::Settings`] if a name is invalid, the catalogue gives two tools one name, the update removes all servers, or
    /// the update names servers and the bridge was created by [`Bridge::new`]; the bridge is then unchanged.
    pub async fn update(&self, update: Update) -> Result<(), BridgeError> {
        let shared = &self.0;
        let _updating = shared.updating.lock().await;
        if let Some(servers) = &update.servers {
            self.check(servers)?;
        }
        if let Some(rules) = &update.rules
            && shared.is_joint
        {
            check_names_of_catalogue(&rules.catalogue, shared.options.prefix)
                .map_err(|error| BridgeError::Settings(error.to_string()))?;
        }
        let concerned = update.rules.map(|rules| self.set_rules(rules));
        let mut added = Vec::new();
        if let Some(servers) = update.servers {
            for (index, backend) in shared.backends.all().iter().enumerate() {
                let change = servers.iter().find(|(name, _)| *name == backend.name);
                if !matches!(change, Some((_, ServerUpdate::Keep))) {
                    shared.uris.forget(index);
                }
                if change.is_none() && !backend.is_removed() {
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
                            Server::new(name, true, upstream, &shared.options, &shared.live);
                        added.push(Arc::clone(&backend));
                        self.add(backend);
                    }
                    // `check` has verified that the server exists.
                    (None, ServerUpdate::Keep) => {}
                }
            }
        }
        // Servers that are connected anew are looked at by the connection.
        let is_kept = |backend: &Arc<Server>| {
            let is_new = added.iter().any(|added| Arc::ptr_eq(added, backend));
            !is_new && !backend.is_removed()
        };
        let mut looking = JoinSet::new();
        for backend in concerned.into_iter().flatten().filter(is_kept) {
            looking.spawn(async move { backend.look_again().await });
        }
        connect_all(&added, shared.options.list_within).await;
        looking.join_all().await;
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

    /// Replaces the rules; returns the servers whose tools have to be compared with them.
    fn set_rules(&self, rules: Rules) -> Vec<Arc<Server>> {
        let shared = &self.0;
        let old = shared.live.rules();
        shared.names.forget_moved(&old.catalogue, &rules.catalogue);
        let has_other_pins = match (&old.pins, &rules.pins) {
            (_, None) => false,
            (None, Some(_)) => true,
            (Some(old), Some(new)) => !old.has_definitions_of(new),
        };
        let backends = shared.backends.all();
        let is_concerned = |backend: &&Arc<Server>| {
            let [old, new] = [&old, &rules].map(|rules| rules.catalogue.server(&backend.name));
            has_other_pins || new.is_some() && new != old
        };
        let concerned = backends.iter().filter(is_concerned).cloned().collect();
        shared.live.set(rules);
        concerned
    }

    /// Adds a server, and opens a session with the server for each client that has sessions.
    fn add(&self, backend: Arc<Server>) {
        let shared = &self.0;
        tracing::info!(server = backend.name, "a server was added");
        shared.names.add_server(&backend.name);
        shared.announce_arrival(&backend);
        let mut state = shared.state.lock();
        // Under the lock, so that sessions that begin meanwhile have all servers.
        shared.backends.add(Arc::clone(&backend));
        for sessions in state.sessions.values_mut() {
            if let Some(session) = sessions.first() {
                let info = session.info().clone();
                let session = shared.session_with(&backend, session.client(), info);
                session.connect_in_background();
                sessions.push(session);
            }
        }
    }
}
