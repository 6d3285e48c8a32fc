//! Subscriptions of a client with a session: a server of 2026-07-28 has one for all resources and lists.

use std::collections::BTreeSet;
use std::sync::Arc;

use mcp_exact_revisions::MethodId;
use mcp_exact_session::{IncomingRequest, JsonObject, PeerError, Reply};
use mcp_exact_transport::RequestContext;
use tokio::sync::watch;

use super::Session;
use crate::around::target;
use crate::route::relay;
use crate::servers::connection::Connection;
use crate::servers::listening::SubscriptionFilter;

impl Session {
    /// Subscribes to a resource at a server of 2026-07-28, where one subscription covers all resources
    /// (`basic/patterns/subscriptions`).
    pub(super) fn subscribe(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Result<Reply, PeerError> {
        if relay::uri_of(request).is_none() {
            return Err(target::missing_member("uri"));
        }
        self.record_subscription(request);
        Ok(Reply::Result(JsonObject::new().into()))
    }

    /// Updates the set of resources that the client is subscribed to.
    pub(super) fn record_subscription(&self, request: &IncomingRequest<RequestContext>) {
        let Some(uri) = relay::uri_of(request) else {
            return;
        };
        match request.method_id() {
            MethodId::ResourcesSubscribe => {
                self.subscribed()
                    .send_if_modified(|subscribed| subscribed.insert(uri));
            }
            MethodId::ResourcesUnsubscribe => {
                self.subscribed()
                    .send_if_modified(|subscribed| subscribed.remove(&uri));
            }
            _ => {}
        }
    }

    /// Returns the sender of the resources that the client is subscribed to.
    pub(super) fn subscribed(&self) -> &watch::Sender<BTreeSet<String>> {
        self.subscribed.get_or_init(watch::Sender::default)
    }

    /// Returns the resources that the client is subscribed to.
    pub(super) fn resources(&self) -> BTreeSet<String> {
        let subscribed = self.subscribed.get();
        subscribed.map_or_else(BTreeSet::new, |subscribed| subscribed.borrow().clone())
    }

    /// Opens the subscription at a server of 2026-07-28.
    pub(super) fn listen(&self, connection: &Arc<Connection>) {
        let (connection, wanted) = (Arc::clone(connection), self.subscribed().subscribe());
        let listening = tokio::spawn(async move {
            let filter = SubscriptionFilter {
                outlasts_refusals: true,
                ..SubscriptionFilter::default()
            };
            let error = connection.listen(wanted, filter).await;
            let error = error.message();
            tracing::debug!(error, "changes of the server are not told any more");
        });
        let before = self
            .state
            .lock()
            .listening
            .replace(listening.abort_handle());
        if let Some(before) = before {
            before.abort();
        }
    }
}
