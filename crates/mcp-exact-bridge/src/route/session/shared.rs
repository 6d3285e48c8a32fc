//! Sessions of clients with a shared server. The requests of these clients use the same connections as requests of
//! clients without sessions; each connection belongs to one principal.
//!
//! A call during which the server may send requests has a separate connection until the call ends. Changes come from a
//! subscription that the sessions of a principal share.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_exact_revisions::MethodId;
use mcp_exact_session::{
    Change, Filter, IncomingRequest, JsonObject, Lifecycle, PeerError, Principal, Reply,
};
use mcp_exact_transport::RequestContext;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::Session;
use crate::around::backoff::Backoff;
use crate::around::gate::Admitted;
use crate::around::limits::Holder;
use crate::route::server::Server;
use crate::route::stateless::{OnEstablished, SubscriptionRequest};
use crate::servers::connection::EVERY_LIST;
use crate::servers::errors::Sending;

impl Session {
    /// Relays a request on a connection of its principal, and returns the answer for the client.
    pub(super) async fn relay_shared(&self, admitted: &Admitted) -> Result<Reply, PeerError> {
        let request = admitted.request();
        let known = self.backend.profile().await?;
        self.listen_shared(request);
        if matches!(
            request.method_id(),
            MethodId::ResourcesSubscribe | MethodId::ResourcesUnsubscribe
        ) {
            if !has_subscriptions(&known.info.capabilities) {
                return Err(PeerError::method_not_found(request.method()));
            }
            return self.subscribe(request);
        }
        let stateless = &self.backend.stateless;
        if known.negotiation.lifecycle == Lifecycle::Initialize {
            return stateless.relay(&self.client, admitted).await;
        }
        let mut sending = Sending::new();
        loop {
            let shared = stateless.shared_connection(request).await?;
            let relayed = self.relay_on(&shared.connection, &shared.calls, admitted);
            if let Some(answer) = sending.answered(relayed.await) {
                return answer;
            }
        }
    }

    /// Begins the subscription to changes of the server, unless it has begun. Where each caller has credentials of their own, it
    /// begins anew when the scopes of the caller's token change: it has those of the latest request.
    pub(super) fn listen_shared(&self, request: &IncomingRequest<RequestContext>) {
        let caller = self.backend.caller(request);
        let mut state = self.state.lock();
        let is_running = |task: &AbortHandle| !task.is_finished();
        let was_running = state.listening.as_ref().is_some_and(is_running);
        if was_running && state.listening_for == caller {
            return;
        }
        if let Some(earlier) = state.listening.take() {
            earlier.abort();
        }
        let subscribing = SubscriptionRequest {
            client: self.client.clone(),
            key: None,
            holder: Holder::of(request),
            caller: caller.clone(),
            uris: self.uris.clone(),
        };
        let principal = request.context().principal.clone();
        let (server, wanted) = (Arc::clone(&self.backend), self.subscribed().subscribe());
        let listening = keep_listening(server, subscribing, principal, wanted, was_running);
        state.listening = Some(tokio::spawn(listening).abort_handle());
        state.listening_for = caller;
    }
}

/// Returns true if capabilities declare subscriptions to resources.
fn has_subscriptions(capabilities: &JsonObject) -> bool {
    let resources = capabilities.view().find("resources");
    let resources = resources.and_then(|resources| resources.object());
    let subscribe = resources.and_then(|resources| resources.find("subscribe"));
    subscribe.is_some_and(|subscribe| subscribe.text() == "true")
}

/// Relays the changes of a shared server to a session until the session ends or the server is no longer shared; `wanted` has the
/// resources that the client is subscribed to. `has_gap` is true if changes may have been missed before.
async fn keep_listening(
    server: Arc<Server>,
    request: SubscriptionRequest,
    principal: Option<Principal>,
    mut wanted: watch::Receiver<BTreeSet<String>>,
    mut has_gap: bool,
) {
    let mut backoff = Backoff::of_subscriptions();
    // Aborts its task when dropped.
    let mut listening = JoinSet::new();
    while server.is_shared() && !server.is_removed() {
        let uris: Vec<String> = wanted.borrow_and_update().iter().cloned().collect();
        let filter = Filter {
            tools: true,
            prompts: true,
            resources: true,
            uris: uris.clone(),
            extension_members: JsonObject::new(),
        };
        // Dropped if the server refuses the subscription.
        let (established, mut is_established) = watch::channel(false);
        let established: OnEstablished = Arc::new(move |_| {
            established.send_replace(true);
        });
        let began = Instant::now();
        let mut next = JoinSet::new();
        let (from, to, principal) = (Arc::clone(&server), request.clone(), principal.clone());
        next.spawn(async move {
            let listening = from.listen(&to, &filter, principal, established);
            if let Err(error) = listening.await {
                tracing::debug!(error = error.message(), "a shared subscription has ended");
            }
        });
        if is_established.wait_for(|is| *is).await.is_ok() && std::mem::take(&mut has_gap) {
            server.miss_changes();
            let resources = uris.into_iter().map(Change::Resource);
            for change in EVERY_LIST.into_iter().chain(resources) {
                request.publish(change);
            }
        }
        // The previous subscription ends after the next one is in place.
        drop(std::mem::replace(&mut listening, next));
        tokio::select! {
            _ = listening.join_next() => {}
            changed = wanted.changed() => match changed {
                Ok(()) => continue,
                Err(_) => return,
            },
        }
        has_gap = true;
        server.wait_to_renew(began, &mut backoff).await;
    }
}
