//! Sessions of clients with a shared server. The requests of these clients use the same connections as requests of
//! clients without sessions; each connection belongs to one principal.
//!
//! A call during which the server may send requests has a separate connection until the call ends. Changes come from a
//! subscription that the sessions of a principal share.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{Change, Filter, JsonObject, Lifecycle, PeerError, Principal, Reply};
use mcp_exact_transport::ServerHandle;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use super::Session;
use crate::around::gate::Admitted;
use crate::around::limits::Holder;
use crate::route::server::Server;
use crate::route::stateless::SubscriptionRequest;
use crate::servers::connection::EVERY_LIST;
use crate::servers::errors::RelayError;

/// Minimum and maximum delay before a subscription that has ended is renewed.
const RETRY_DELAYS: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(30));

impl Session {
    /// Relays a request on a connection of its principal, and returns the answer for the client.
    pub(super) async fn relay_shared(&self, admitted: &Admitted) -> Result<Reply, PeerError> {
        let request = admitted.request();
        let known = self.backend.profile().await?;
        self.listen_shared(request.context().principal.clone(), Holder::of(request));
        let method = request.method();
        if matches!(method, "resources/subscribe" | "resources/unsubscribe") {
            if !has_subscriptions(&known.info.capabilities) {
                return Err(PeerError::method_not_found(method));
            }
            return self.subscribe(request);
        }
        let stateless = &self.backend.stateless;
        if known.negotiation.lifecycle == Lifecycle::Initialize {
            return stateless.relay(&self.backend, &self.client, admitted).await;
        }
        loop {
            let shared = stateless.shared_connection(&self.backend, request).await?;
            let relayed = self.relay_on(&shared.connection, Some(&shared.calls), request);
            match relayed.await {
                // The connection was lost before the request was sent, so the request can be sent on another
                // connection.
                Err(RelayError::Unsent) => {}
                Err(RelayError::Error(error)) => return Err(error),
                Ok(reply) => return Ok(reply),
            }
        }
    }

    /// Begins the subscription to changes of the server, unless the subscription has begun.
    fn listen_shared(&self, principal: Option<Principal>, holder: Holder) {
        let mut state = self.lock();
        let is_running = |task: &tokio::task::AbortHandle| !task.is_finished();
        if state.listening.as_ref().is_some_and(is_running) {
            return;
        }
        let listening = SharedListening {
            backend: Arc::clone(&self.backend),
            client: self.client.clone(),
            principal,
            holder,
        };
        let wanted = self.subscribed().subscribe();
        state.listening = Some(tokio::spawn(listening.run(wanted)).abort_handle());
    }
}

/// Returns true if capabilities declare subscriptions to resources.
fn has_subscriptions(capabilities: &JsonObject) -> bool {
    let resources = capabilities.view().find("resources");
    let resources = resources.and_then(|resources| resources.object());
    let subscribe = resources.and_then(|resources| resources.find("subscribe"));
    subscribe.is_some_and(|subscribe| subscribe.text() == "true")
}

/// Subscription to the changes of a shared server for one session.
struct SharedListening {
    /// Shared server.
    backend: Arc<Server>,
    /// Endpoint of the client that receives the changes.
    client: ServerHandle,
    /// Principal of the session.
    principal: Option<Principal>,
    /// Client of the session.
    holder: Holder,
}

/// Task that listens to a subscription; dropping the value aborts the task.
struct Listening(JoinHandle<()>);

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl SharedListening {
    /// Listens until the session ends or the server is no longer shared; `wanted` has the resources that the client is
    /// subscribed to.
    async fn run(self, mut wanted: watch::Receiver<BTreeSet<String>>) {
        let mut pause = RETRY_DELAYS.0;
        let mut current: Option<Listening> = None;
        let mut has_gap = false;
        while self.backend.is_shared() && !self.backend.is_removed() {
            let uris: Vec<String> = wanted.borrow_and_update().iter().cloned().collect();
            let (established, mut is_established) = watch::channel(false);
            let next = self.begin(uris.clone(), established);
            if is_established.wait_for(|is| *is).await.is_ok() {
                pause = RETRY_DELAYS.0;
                if std::mem::take(&mut has_gap) {
                    let resources = uris.into_iter().map(Change::Resource);
                    for change in EVERY_LIST.into_iter().chain(resources) {
                        self.client.publish(&change);
                    }
                }
            }
            // The previous subscription ends after the next one is in place.
            let listening = current.insert(next);
            tokio::select! {
                _ = &mut listening.0 => {}
                changed = wanted.changed() => match changed {
                    Ok(()) => continue,
                    Err(_) => return,
                },
            }
            has_gap = true;
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(RETRY_DELAYS.1);
            self.backend.wait_until_retry().await;
        }
    }

    /// Starts to listen to changes of all lists and of the resources `uris`. `established` becomes true when the server
    /// has accepted the subscription, and is dropped if the server refuses the subscription.
    fn begin(&self, uris: Vec<String>, established: watch::Sender<bool>) -> Listening {
        let filter = Filter {
            tools: true,
            prompts: true,
            resources: true,
            uris,
            extension_members: JsonObject::new(),
        };
        let backend = Arc::clone(&self.backend);
        let request = SubscriptionRequest {
            client: self.client.clone(),
            key: None,
            holder: self.holder.clone(),
        };
        let principal = self.principal.clone();
        Listening(tokio::spawn(async move {
            let established = Arc::new(move || {
                established.send_replace(true);
            });
            let replaced = backend.replaced();
            let stateless = &backend.stateless;
            tokio::select! {
                ended = stateless.listen(&backend.backend, &request, &filter, principal, established) => {
                    if let Err(error) = ended {
                        tracing::debug!(error = error.message(), "a shared subscription has ended");
                    }
                }
                () = replaced => {}
            }
        }))
    }
}
