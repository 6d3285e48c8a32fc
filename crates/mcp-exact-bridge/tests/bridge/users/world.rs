//! A gateway in front of servers with credentials per user, and its callers.
//!
//! Each test program uses a part of it.
#![allow(dead_code)]

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use http::request::Parts;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions, PageFuture, Pages};
use mcp_exact::{Client, ClientError, KeyRing, Visit, VisitAnswer};
use mcp_exact_auth::client::{MemoryStore, OAuth, OAuthError, TokenStore};
use mcp_exact_auth::server::{Jwks, ResourceServer};
use mcp_exact_bridge::users::{GatewayClient, UserClients, UserGrant, Users};
use mcp_exact_bridge::{Bridge, Options, Upstream};
use serde_json::json;
use tokio::task::AbortHandle;

/// What several processes of a gateway share.
#[derive(Clone)]
pub struct Shared {
    pub store: Arc<dyn TokenStore>,
    pub keys: KeyRing,
    /// Public URL of the gateway, if it differs from that of the process.
    pub resource: Option<String>,
    /// Scopes that exchanged tokens get.
    pub exchange_scopes: &'static [&'static str],
}

impl Default for Shared {
    fn default() -> Self {
        Self {
            store: Arc::new(MemoryStore::default()),
            keys: KeyRing::random().expect("random numbers"),
            resource: None,
            exchange_scopes: &["read"],
        }
    }
}

/// Gateway in front of servers with credentials per user.
pub struct Gateway {
    /// Public URL of its endpoint.
    pub resource: String,
    /// URL at which this process serves.
    pub url: String,
    pub bridge: Bridge,
    pub users: Users,
    /// Number of requests for pages that have ended before they were answered.
    pub unanswered: Arc<AtomicUsize>,
    task: AbortHandle,
}

/// Pages of a gateway, which count the requests that end before they are answered.
struct CountedPages {
    pages: Arc<dyn Pages>,
    unanswered: Arc<AtomicUsize>,
}

/// Request that is not answered yet.
struct Unanswered(Option<Arc<AtomicUsize>>);

impl Unanswered {
    fn end(mut self) {
        self.0 = None;
    }
}

impl Drop for Unanswered {
    fn drop(&mut self) {
        if let Some(count) = &self.0 {
            count.fetch_add(1, Ordering::SeqCst);
        }
    }
}

impl Pages for CountedPages {
    fn respond<'a>(&'a self, request: &'a Parts) -> Option<PageFuture<'a>> {
        let answering = self.pages.respond(request)?;
        let unanswered = Unanswered(Some(Arc::clone(&self.unanswered)));
        Some(Box::pin(async move {
            let answer = answering.await;
            unanswered.end();
            answer
        }))
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Describes an error in the words of the library.
fn describe(error: &OAuthError) -> String {
    error.to_string()
}

impl Gateway {
    /// Starts a gateway whose clients have tokens of an issuer.
    pub async fn start(issuer: &str, servers: &[(&str, &str, UserGrant)], shared: &Shared) -> Self {
        let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let resource = shared.resource.clone().unwrap_or_else(|| url.clone());
        let client = || OAuth::registered(issuer, "gateway").secret("s3cret");
        let users = Users::new(
            GatewayClient {
                resource: resource.clone(),
                oauth: client(),
                verifier: Arc::new(Jwks::new(issuer, &resource)),
                describe,
            },
            Arc::clone(&shared.store),
            Arc::new(shared.keys.clone()),
        );
        let users = users.expect("a URL");
        let upstreams = servers.iter().map(|(name, url, grant)| {
            let clients = UserClients {
                grant: *grant,
                oauth: OAuth::new("gateway").allow_other_ports().scopes(["read"]),
                exchange: client().issuer(issuer).scopes(shared.exchange_scopes),
            };
            let endpoint = HttpEndpoint::new(url).expect("a URL");
            let upstream = users.server(*name, endpoint, clients);
            ((*name).to_owned(), Arc::new(upstream) as Arc<dyn Upstream>)
        });
        let mut options = Options::default();
        // A slow machine needs a while for the tokens of a user; lists do not go without the server meanwhile.
        options.list_within = Duration::from_secs(60);
        let bridge = Bridge::many(upstreams.collect::<Vec<_>>(), options).await;
        let bridge = bridge.expect("a bridge");
        let auth = ResourceServer::jwks(issuer, &resource).expect("a resource");
        let unanswered = Arc::<AtomicUsize>::default();
        let pages = CountedPages {
            pages: users.pages(),
            unanswered: Arc::clone(&unanswered),
        };
        let service = bridge.http(HttpServerOptions {
            authenticate: Some(Arc::new(auth.keep_token())),
            pages: Some(Arc::new(pages)),
            ..HttpServerOptions::default()
        });
        let serving =
            tokio::spawn(async move { listener.serve(service, std::future::pending()).await });
        Self {
            resource,
            url,
            bridge,
            users,
            unanswered,
            task: serving.abort_handle(),
        }
    }

    /// Connects a client with a token; `on_visit` answers when a user has to visit a page.
    pub async fn client<F, Fut>(
        &self,
        token: &str,
        revision: &str,
        on_visit: Option<F>,
    ) -> Result<Client, ClientError>
    where
        F: Fn(Visit) -> Fut + Send + Sync + 'static,
        Fut: Future<Output = VisitAnswer> + Send + 'static,
    {
        let connect = Client::connect(&self.url)
            .bearer(token)
            .revision(super::revision(revision));
        match on_visit {
            Some(on_visit) => connect.on_visit(on_visit).await,
            None => connect.await,
        }
    }

    /// Connects a client that visits no page.
    pub async fn plain_client(&self, token: &str, revision: &str) -> Client {
        let never = None::<fn(Visit) -> std::future::Ready<VisitAnswer>>;
        self.client(token, revision, never).await.expect("a client")
    }
}

/// Calls the tool `who` of a server.
pub async fn who(client: &Client, server: &str) -> Result<String, String> {
    let name = format!("{server}__who");
    let output = client.call_tool(&name, &json!({})).await;
    output
        .map(|output| output.text())
        .map_err(|error| error.to_string())
}
