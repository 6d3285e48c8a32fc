//! One server of a bridge: its connections, and what clients without sessions hold at it.

use std::ops::Deref;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_session::{Filter, IncomingRequest, PeerError, Principal};
use mcp_exact_transport::RequestContext;
use tokio::time::Instant;

use crate::around::apps;
use crate::around::backoff::Backoff;
use crate::around::gate::{self, Admitted, Gate};
use crate::around::live::LiveRules;
use crate::around::metrics::ServerState;
use crate::around::names::Kind;
use crate::around::options::Options;
use crate::around::server_uris::ServerUris;
use crate::route::stateless::{OnEstablished, Stateless, SubscriptionRequest};
use crate::servers::backend::Backend;
use crate::servers::upstream::Upstream;

/// Time after which a subscription that ends is renewed without a longer delay.
const STABLE_SUBSCRIPTION: Duration = Duration::from_secs(60);

/// Delay before a subscription to a server that cannot be reached is renewed, besides the server's own.
const UNREACHABLE_DELAY: Duration = Duration::from_millis(100);

/// Server that a bridge relays requests to.
pub(crate) struct Server {
    pub(crate) backend: Arc<Backend>,
    /// What belongs to clients without sessions at this server: connections, waiting calls, subscriptions and tasks.
    pub(crate) stateless: Stateless,
}

impl Deref for Server {
    type Target = Backend;

    fn deref(&self) -> &Backend {
        &self.backend
    }
}

impl Server {
    pub(crate) fn new(
        name: String,
        is_one_of_many: bool,
        upstream: Arc<dyn Upstream>,
        options: &Arc<Options>,
        live: &Arc<LiveRules>,
    ) -> Arc<Self> {
        let backend = Backend::new(name, is_one_of_many, upstream, options, live);
        let stateless = Stateless::new(&backend);
        Arc::new(Self { backend, stateless })
    }

    /// Admits a request to the server. A client that shows no pages (MCP Apps) does not get tools that are for pages alone in any list,
    /// and cannot call them either, because it would do so for its model.
    pub(crate) fn admit(
        &self,
        gate: &Gate,
        uris: &ServerUris,
        request: IncomingRequest<RequestContext>,
    ) -> Result<Admitted, PeerError> {
        if let Some(tool) = self.tools.called_tool_of_pages(&request)
            && !apps::shows_pages(&request.client().capabilities)
        {
            return Err(gate::unknown_item(Kind::Tool, &tool));
        }
        gate.admit(self.listed_name(), uris, request)
    }

    /// Relays changes to a subscription until the connection to the server ends, or the server is replaced. Calls
    /// `established` when the server has accepted the subscription.
    pub(crate) async fn listen(
        &self,
        request: &SubscriptionRequest,
        filter: &Filter,
        principal: Option<Principal>,
        established: OnEstablished,
    ) -> Result<(), PeerError> {
        let replaced = self.replaced();
        tokio::select! {
            ended = self.stateless.listen(request, filter, principal, established) => ended,
            () = replaced => Ok(()),
        }
    }

    /// Waits before a subscription that `began` and has ended is renewed. A server that can be reached, but refuses subscriptions or
    /// ends them early, is asked less and less often.
    pub(crate) async fn wait_to_renew(&self, began: Instant, backoff: &mut Backoff) {
        if began.elapsed() > STABLE_SUBSCRIPTION {
            backoff.reset();
        }
        // The failure of a server with credentials per user is of one user, and makes the server unreachable to nobody else.
        let delay = if self.is_unreachable() {
            UNREACHABLE_DELAY
        } else {
            backoff.next()
        };
        tokio::time::sleep(delay).await;
        self.wait_until_retry().await;
    }

    /// Replaces the upstream of the server. Open connections take no further calls, and end after those in flight.
    pub(crate) fn replace(&self, by: Arc<dyn Upstream>) {
        self.backend.replace(by);
        self.stateless.release_lost();
    }

    /// Removes the server: its tools, prompts and resources are hidden, and its connections end.
    pub(crate) fn remove(&self) {
        self.backend.remove();
        self.stateless.release_lost();
    }

    /// Ends all connections, calls in flight included, and waits until they and the processes of the server have ended.
    pub(crate) async fn shut_down(&self) {
        self.backend.close_connections();
        self.stateless.release_lost();
        self.backend.ended().await;
    }

    /// Returns the state of the server that [`Metrics`](crate::Metrics) report.
    pub(crate) fn state(&self) -> ServerState {
        self.backend.state(self.stateless.waiting())
    }
}
