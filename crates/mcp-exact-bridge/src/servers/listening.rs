//! Subscription of a connection to the changes of a server of 2026-07-28 (`basic/patterns/subscriptions`).

use std::collections::BTreeSet;
use std::time::Duration;

use mcp_exact_revisions::method;
use mcp_exact_session::{CallOptions, Json, JsonObject, Outcome, PeerError, SendError};
use mcp_exact_transport::PendingRequest;
use tokio::sync::watch;
use tokio::time::Instant;

use crate::around::backoff::Backoff;
use crate::servers::connection::Connection;
use crate::servers::errors::{connection_lost_error, not_sent_error};
use crate::servers::tasks;

/// Time after which a subscription that has ended counts as one that was accepted.
const ACCEPTED_AFTER: Duration = Duration::from_secs(30);

/// Part of a subscription at a server of 2026-07-28 that does not change while the subscription lasts.
#[derive(Debug, Default)]
pub(crate) struct SubscriptionFilter {
    /// Ids of the tasks whose status the client wants to receive.
    pub(crate) tasks: Vec<String>,
    /// True if a subscription that the server has refused is retried.
    pub(crate) outlasts_refusals: bool,
}

impl SubscriptionFilter {
    /// Returns the params of `subscriptions/listen` for the tasks of the filter, the resources `uris`, and every list
    /// whose changes the server announces; `None` if there is nothing to subscribe to.
    pub(crate) fn params(
        &self,
        server: &JsonObject,
        uris: &BTreeSet<String>,
    ) -> Option<JsonObject> {
        let lists = [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ];
        let mut filter = JsonObject::new();
        for (capability, member) in lists {
            let declared = server
                .view()
                .find(capability)
                .and_then(|declared| declared.object());
            let changes = declared.and_then(|declared| declared.find("listChanged"));
            if changes.is_some_and(|changes| changes.text() == "true") {
                filter.insert(member, true);
            }
        }
        if !uris.is_empty() {
            let uris: Vec<String> = uris.iter().cloned().collect();
            filter.insert("resourceSubscriptions", Json::from_encode(&uris));
        }
        if !self.tasks.is_empty() {
            filter.insert(tasks::FILTER, Json::from_encode(&self.tasks));
        }
        (!filter.is_empty()).then(|| JsonObject::from_iter([("notifications", filter)]))
    }
}

impl Connection {
    /// Subscribes to the lists of a server of 2026-07-28 and to the wanted resources, which may change
    /// (`basic/patterns/subscriptions`). A subscription that ends with its stream is renewed. Returns when the
    /// connection is lost or `wanted` is closed. A refused subscription is retried when the wanted resources change or
    /// after a pause, if `filter.outlasts_refusals` is true; otherwise the method returns the error.
    pub(crate) async fn listen(
        &self,
        mut wanted: watch::Receiver<BTreeSet<String>>,
        filter: SubscriptionFilter,
    ) -> PeerError {
        let mut backoff = Backoff::of_subscriptions();
        let mut listening: Option<PendingRequest> = None;
        while !self.is_lost() {
            let params = {
                let wanted = wanted.borrow_and_update();
                filter.params(&self.info.capabilities, &wanted)
            };
            let sent = params.map(|params| {
                let options = CallOptions::default();
                let method = method::SUBSCRIPTIONS_LISTEN;
                self.client.request(method, Some(params), options, None)
            });
            let begun = Instant::now();
            let refused = match sent.transpose() {
                Err(SendError::Closed) => break,
                Err(error) => Some(not_sent_error(&error)),
                Ok(next) => {
                    // The previous subscription ends after the next one was sent.
                    drop(std::mem::replace(&mut listening, next));
                    let ended = async {
                        match &mut listening {
                            Some(listening) => listening.await,
                            None => std::future::pending().await,
                        }
                    };
                    let outcome = tokio::select! {
                        outcome = ended => outcome,
                        changed = wanted.changed() => match changed {
                            Ok(()) => continue,
                            Err(_) => break,
                        },
                    };
                    tracing::debug!(?outcome, "a subscription at the server has ended");
                    match outcome {
                        Outcome::Error(error) => Some(error),
                        _ => None,
                    }
                }
            };
            listening = None;
            if let Some(error) = refused {
                if !filter.outlasts_refusals {
                    return error;
                }
                let error = error.message();
                tracing::warn!(error, "changes of the server are not told for now");
            }
            self.set_gap();
            if begun.elapsed() > ACCEPTED_AFTER {
                backoff.reset();
            }
            tokio::select! {
                () = tokio::time::sleep(backoff.next()) => {}
                changed = wanted.changed() => if changed.is_err() { break },
            }
        }
        connection_lost_error()
    }
}
