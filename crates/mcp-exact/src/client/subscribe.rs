//! Subscriptions to changes (`server/resources`, "Subscriptions"; 2026-07-28, `basic/patterns/subscriptions`).
//!
//! Up to 2025-11-25 one request subscribes and a second one ends it; from 2026-07-28 on one request lasts as long as the
//! subscription.

use std::fmt;
use std::sync::{Arc, Weak};
use std::time::{Duration, Instant};

use tokio::task::AbortHandle;

use super::link::{ClientLink, Options};
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
    Request(#[allow(dead_code, reason = "held until the subscription is dropped")] Listening),
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
                let listening = Listening::begin(client, JsonObject::from_iter(notifications));
                subscription.kind = Kind::Request(listening.await?);
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
        if !filter.is_empty() {
            // The subscription lasts as long as the connection.
            let listening = Listening::begin(self, filter).await?;
            self.link().keep_lists(listening);
        }
        Ok(())
    }
}

/// Pauses before a subscription is begun again.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);

/// Subscription by `subscriptions/listen` (from 2026-07-28 on), which ends when this is dropped. A server may end it earlier, such
/// as when the access token of the request expires (`basic/patterns/subscriptions`, "Cancellation"); a new request follows then.
pub(super) struct Listening(AbortHandle);

impl Listening {
    /// Begins a subscription; returns once the server has acknowledged it.
    async fn begin(client: &Client, filter: JsonObject) -> Result<Self, ClientError> {
        let params = JsonObject::from_iter([("notifications", filter)]);
        let request = client.link().listen(params.clone()).await?;
        let link = Arc::downgrade(client.link());
        let task = tokio::spawn(listen_again(link, params, request));
        Ok(Self(task.abort_handle()))
    }
}

impl Drop for Listening {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// Begins a subscription again each time that it has ended, as long as the connection lasts.
async fn listen_again(link: Weak<ClientLink>, params: JsonObject, first: PendingRequest) {
    let (mut request, mut pause) = (Some(first), SHORTEST_PAUSE);
    loop {
        let begun = Instant::now();
        if let Some(request) = request.take() {
            request.await;
        }
        // One that ends at once is not begun again at once.
        pause = if begun.elapsed() > LONGEST_PAUSE {
            SHORTEST_PAUSE
        } else {
            LONGEST_PAUSE.min(pause * 2)
        };
        tokio::time::sleep(pause).await;
        let Some(link) = link.upgrade().filter(|link| !link.is_closed()) else {
            return;
        };
        match link.listen(params.clone()).await {
            Ok(again) => {
                link.announce_missed(&params);
                request = Some(again);
            }
            Err(error) => tracing::debug!(%error, "a subscription could not be begun again"),
        }
    }
}

fn params(uri: &str) -> JsonObject {
    JsonObject::from_iter([("uri", Json::string(uri))])
}
