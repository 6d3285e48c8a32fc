//! Subscriptions to changes (`server/resources`, "Subscriptions"; 2026-07-28, `basic/patterns/subscriptions`).
//!
//! Up to 2025-11-25 one request subscribes and another one ends it; from 2026-07-28 on one request lasts as long as the
//! subscription.

use std::fmt;

use super::link::Options;
use super::{Client, ClientError};
use crate::link::{Json, JsonObject, Lifecycle, PendingRequest, lifecycle_of};

/// Subscription to updates of resources, from [`Client::subscribe`]. Dropping it ends the subscription (`server/resources`,
/// "Subscriptions"; from 2026-07-28 on `basic/patterns/subscriptions`).
#[must_use = "the subscription ends when it is dropped"]
pub struct Subscription {
    client: Client,
    kind: Kind,
}

enum Kind {
    Session(Vec<String>),
    /// Dropping the request ends the subscription.
    Request(#[allow(dead_code, reason = "held until the subscription is dropped")] PendingRequest),
}

impl fmt::Debug for Subscription {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Subscription").finish_non_exhaustive()
    }
}

impl Subscription {
    pub(super) async fn begin(client: &Client, uris: Vec<String>) -> Result<Self, ClientError> {
        let mut subscription = Self {
            client: client.clone(),
            kind: Kind::Session(Vec::new()),
        };
        match lifecycle_of(client.revision()) {
            Lifecycle::Discover => {
                let notifications = [("resourceSubscriptions", Json::from_encode(&uris))];
                let request = listen(client, JsonObject::from_iter(notifications)).await?;
                subscription.kind = Kind::Request(request);
            }
            Lifecycle::Initialize => {
                for uri in uris {
                    client
                        .request("resources/subscribe", Some(params(&uri)))
                        .await?;
                    // What was subscribed to before an error is ended with `subscription`.
                    if let Kind::Session(uris) = &mut subscription.kind {
                        uris.push(uri);
                    }
                }
            }
        }
        Ok(subscription)
    }
}

impl Drop for Subscription {
    fn drop(&mut self) {
        let Kind::Session(uris) = &self.kind else {
            return;
        };
        let unsubscribe = |uri: &String| {
            let link = self.client.link();
            link.request(
                "resources/unsubscribe",
                Some(params(uri)),
                Options::default(),
                None,
            )
        };
        // A connection that is closed has ended the subscription. Nobody waits for the answers, but a request whose future is
        // dropped is cancelled.
        let requests: Vec<PendingRequest> = uris
            .iter()
            .filter_map(|uri| unsubscribe(uri).ok())
            .collect();
        if let Ok(runtime) = tokio::runtime::Handle::try_current() {
            runtime.spawn(async move {
                for request in requests {
                    request.await;
                }
            });
        }
    }
}

impl Client {
    /// Listens to changes of the server's lists, where a client has to ask for them.
    pub(super) async fn listen_to_lists(&self) -> Result<(), ClientError> {
        if lifecycle_of(self.revision()) == Lifecycle::Initialize {
            return Ok(());
        }
        let capabilities = self.capabilities();
        let kinds = [
            ("tools", "toolsListChanged"),
            ("prompts", "promptsListChanged"),
            ("resources", "resourcesListChanged"),
        ];
        let announced = kinds.into_iter().filter(|(kind, _)| {
            let kind = capabilities
                .view()
                .find(kind)
                .and_then(|kind| kind.object());
            let flag = kind.and_then(|kind| kind.find("listChanged"));
            flag.is_some_and(|flag| flag.text() == "true")
        });
        let filter: JsonObject = announced.map(|(_, member)| (member, true)).collect();
        match filter.is_empty() {
            true => Ok(()),
            // The subscription lasts as long as the connection.
            false => {
                let subscription = listen(self, filter).await?;
                self.link().keep_lists(subscription);
                Ok(())
            }
        }
    }
}

/// Listens to the changes of a filter (from 2026-07-28 on), and returns once the server has acknowledged it.
pub(super) async fn listen(
    client: &Client,
    filter: JsonObject,
) -> Result<PendingRequest, ClientError> {
    let params = JsonObject::from_iter([("notifications", filter)]);
    client.link().listen(params).await
}

fn params(uri: &str) -> JsonObject {
    JsonObject::from_iter([("uri", Json::string(uri))])
}
