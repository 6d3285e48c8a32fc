//! Subscriptions of clients without sessions to the changes of all servers.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use mcp_exact_session::{Change, Filter, PeerError, Principal};
use parking_lot::Mutex;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use crate::around::backoff::Backoff;
use crate::around::gate::Gate;
use crate::around::retry::end_of;
use crate::around::server_uris::is_of_one_server;
use crate::clients::shared_state::SharedState;
use crate::route::server::Server;
use crate::route::stateless::{OnEstablished, SubscriptionRequest};
use crate::servers::connection::publish_every_list;
use crate::servers::tasks;

impl SharedState {
    /// Relays the changes of all servers to a subscription until the client ends the subscription. In front of one
    /// server, the subscription also ends with the connection to the server.
    pub(crate) async fn listen(
        self: Arc<Self>,
        request: SubscriptionRequest,
        filter: Filter,
        principal: Option<Principal>,
    ) -> Result<(), PeerError> {
        let mut updates = self.updates.subscribe();
        let mut accepted = tasks::with_known_ids(
            filter.clone(),
            &self.tasks_of_filter(&filter, principal.as_ref()),
        );
        let gate = Gate::new(&self.live, principal.as_ref());
        let may_listen =
            |backend: &Arc<Server>, uri: &str| gate.lets_listen(backend.listed_name(), uri);
        let backends = self.backends.all();
        accepted.uris.retain(|uri| {
            let mut own = backends
                .iter()
                .filter_map(|backend| Some((backend, self.own_uri(backend, uri)?)));
            own.any(|(backend, uri)| may_listen(backend, &uri))
        });
        let is_there = |backend: &&Arc<Server>| !backend.is_removed();
        let count = self.backends.all().iter().filter(is_there).count();
        let has_many = self.backends.all().iter().any(|one| one.is_one_of_many);
        let missing = Arc::new(AtomicUsize::new(count));
        let mut listening = JoinSet::new();
        let mut listened = BTreeSet::new();
        let is_acknowledged = Arc::new(AtomicBool::new(false));
        // Resources that servers have accepted so far; `None` if one of them could not be asked.
        let honoured = Arc::new(Mutex::new(Some(BTreeSet::new())));
        let acknowledge = {
            let (request, is_acknowledged) = (request.clone(), Arc::clone(&is_acknowledged));
            let (honoured, missing) = (Arc::clone(&honoured), Arc::clone(&missing));
            move || {
                if !is_acknowledged.swap(true, Ordering::AcqRel) {
                    let mut accepted = accepted.clone();
                    // A server that is late or unreachable may accept what no other one has.
                    if missing.load(Ordering::Acquire) == 0
                        && let Some(honoured) = &*honoured.lock()
                    {
                        accepted.uris.retain(|uri| honoured.contains(uri));
                    }
                    request.acknowledge(accepted);
                }
            }
        };
        let acknowledged_by = end_of(Instant::now(), self.options.list_within);
        loop {
            for (server, backend) in self.backends.all().iter().enumerate() {
                if backend.is_removed() || !listened.insert(server) {
                    continue;
                }
                let filter = self.filter_of(&gate, server, &filter);
                let (missing, counted) = (Arc::clone(&missing), AtomicBool::new(false));
                let acknowledge = acknowledge.clone();
                let is_acknowledged = Arc::clone(&is_acknowledged);
                let honoured = Arc::clone(&honoured);
                let uris_of = self.uris_of(backend);
                let request = SubscriptionRequest {
                    uris: uris_of.clone(),
                    ..request.clone()
                };
                let (of_server, of_request) = (Arc::clone(backend), request.clone());
                let of_principal = principal.clone();
                // The subscription is acknowledged after all servers have answered, or those that are ready in time.
                let established: OnEstablished = Arc::new(move |uris| {
                    match (&mut *honoured.lock(), uris) {
                        (Some(honoured), Some(uris)) => {
                            honoured.extend(uris.iter().map(|uri| uris_of.uri(uri)));
                        }
                        (honoured, _) => *honoured = None,
                    }
                    if counted.swap(true, Ordering::AcqRel) {
                        return;
                    }
                    let is_last = missing.fetch_sub(1, Ordering::AcqRel) == 1;
                    if is_acknowledged.load(Ordering::Acquire) {
                        if uris.is_some() {
                            let principal = of_principal.as_ref();
                            announce_missed(&of_server, &of_request, principal, uris);
                        } else {
                            publish_every_list(&of_request.client);
                        }
                    } else if is_last {
                        acknowledge();
                    }
                });
                let backend = Arc::clone(backend);
                let principal = principal.clone();
                listening.spawn(async move {
                    let listening = listen_to(&backend, &request, &filter, principal, established);
                    (server, listening.await)
                });
            }
            tokio::select! {
                ended = listening.join_next(), if !listening.is_empty() => match ended {
                    // The server was removed from the bridge.
                    Some(Ok((server, Ok(())))) => drop(listened.remove(&server)),
                    Some(Ok((_, ended))) => return ended,
                    _ => return Err(PeerError::internal("the subscription has ended")),
                },
                () = sleep_until(acknowledged_by),
                    if has_many && !is_acknowledged.load(Ordering::Acquire) => acknowledge(),
                _ = updates.changed() => {
                    publish_every_list(&request.client);
                }
            }
        }
    }

    /// Returns the part of a filter that is for a server, with the server's own URIs.
    fn filter_of(&self, gate: &Gate, server: usize, filter: &Filter) -> Filter {
        let backend = self.backends.get(server);
        let may_listen = |server: usize, uri: &str| {
            gate.lets_listen(self.backends.get(server).listed_name(), uri)
        };
        let mut filter = filter.clone();
        filter.uris.retain_mut(|uri| {
            let Some(own) = self.own_uri(&backend, uri) else {
                return false;
            };
            // A resource that no server lists may belong to any server.
            let is_its = is_of_one_server(uri) || {
                let servers = self.present_servers();
                let servers = servers.filter(|server| may_listen(*server, &own));
                let of = self.uris.listed_by(gate.principal(), &own, servers);
                of.is_none_or(|of| of == server)
            };
            *uri = own;
            is_its && may_listen(server, uri)
        });
        filter
    }

    /// Returns the task ids in a subscription filter whose tasks belong to the principal, as clients know these ids.
    fn tasks_of_filter(&self, filter: &Filter, principal: Option<&Principal>) -> BTreeSet<String> {
        let backends = self.backends.all();
        let known = backends.iter().flat_map(|backend| {
            let known = backend.stateless.tasks_of_filter(filter, principal);
            known.into_values()
        });
        known.collect()
    }
}

/// Relays the changes of one server to a subscription. If the server is one of many, a lost connection is
/// re-established.
async fn listen_to(
    backend: &Arc<Server>,
    request: &SubscriptionRequest,
    filter: &Filter,
    principal: Option<Principal>,
    established: OnEstablished,
) -> Result<(), PeerError> {
    let mut begin = Arc::clone(&established);
    let mut backoff = Backoff::of_subscriptions();
    loop {
        let began = Instant::now();
        let ended = backend
            .listen(request, filter, principal.clone(), begin)
            .await;
        if !backend.is_one_of_many {
            return ended;
        }
        if backend.is_removed() {
            established(None);
            return Ok(());
        }
        // An unreachable server does not delay the changes of the other servers.
        established(None);
        backend.wait_to_renew(began, &mut backoff).await;
        let (request, server) = (request.clone(), Arc::clone(backend));
        let principal = principal.clone();
        begin = Arc::new(move |uris: Option<&BTreeSet<String>>| {
            announce_missed(&server, &request, principal.as_ref(), uris);
        });
    }
}

/// Announces to a client that every list and the resources `uris` of a server may have changed while its changes were not
/// received.
fn announce_missed(
    server: &Server,
    request: &SubscriptionRequest,
    principal: Option<&Principal>,
    uris: Option<&BTreeSet<String>>,
) {
    server.miss_changes();
    publish_every_list(&request.client);
    // The rules may have changed since the subscription began.
    let uris = uris.into_iter().flatten();
    let shown = uris.filter(|uri| server.may_see_resource(principal, uri));
    for uri in shown {
        request.publish(Change::Resource(uri.clone()));
    }
}
