//! Hosts whose users sign in: a person has the time that signing in takes.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use bytes::Bytes;
use http::{Method, Request, Response};
use http_body_util::{BodyExt, Full};
use mcp_exact::transport::http::client::{HttpClient, HttpEndpoint, HttpFuture};
use mcp_exact::{Client, Host, ServerState};
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{MemoryStore, OAuth, StoreFuture, StoreLock, TokenStore};
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent};
use serde_json::{Value, json};

use crate::client::{oauth_client, send_call};

/// MCP server without sockets, so that a paused clock stands still while it answers; it requires a token.
struct Endpoint;

impl HttpClient for Endpoint {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        let message: Value = serde_json::from_slice(request.body()).unwrap_or_default();
        let result = json!({
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "serverInfo": { "name": "test", "version": "1" },
        });
        let (status, body) = if !request.headers().contains_key("authorization") {
            (401, String::new())
        } else if *request.method() == Method::POST && message["method"] == "initialize" {
            let answer = json!({ "jsonrpc": "2.0", "id": message["id"], "result": result });
            (200, answer.to_string())
        } else {
            (202, String::new())
        };
        let body = Full::new(Bytes::from(body)).map_err(|never| match never {});
        let response = Response::builder().status(status);
        let response = response.header("content-type", "application/json");
        let response = response.header("www-authenticate", "Bearer");
        let response = response.body(body.boxed_unsync());
        Box::pin(async { Ok(response?) })
    }
}

/// Store of a process that waits while the user signs in by another process.
#[derive(Clone)]
struct SharedStore {
    tokens: MemoryStore,
    /// Time that the user needs.
    needed: Duration,
    is_signed_in: Arc<AtomicBool>,
}

impl TokenStore for SharedStore {
    fn read<'a>(&'a self, key: &'a str) -> StoreFuture<'a, Option<Secret>> {
        if self.is_signed_in.load(Ordering::Acquire) {
            return self.tokens.read(key);
        }
        Box::pin(async { Ok(None) })
    }

    fn write<'a>(&'a self, key: &'a str, value: &'a Secret) -> StoreFuture<'a, ()> {
        self.tokens.write(key, value)
    }

    fn replace<'a>(
        &'a self,
        key: &'a str,
        expected: Option<&'a Secret>,
        value: Option<&'a Secret>,
    ) -> StoreFuture<'a, bool> {
        self.tokens.replace(key, expected, value)
    }

    fn remove<'a>(&'a self, key: &'a str) -> StoreFuture<'a, ()> {
        self.tokens.remove(key)
    }

    fn lock<'a>(&'a self, key: &'a str) -> StoreFuture<'a, StoreLock> {
        Box::pin(async move {
            tokio::time::sleep(self.needed).await;
            self.is_signed_in.store(true, Ordering::Release);
            self.tokens.lock(key).await
        })
    }
}

/// The time limit of a host does not include the time in which a person signs in; neither does that of the negotiation.
#[tokio::test]
async fn hosts_wait_for_sign_ins() {
    let authority = Authority::start(Deviations::default()).await;
    let tokens = MemoryStore::default();
    let oauth = || OAuth::new("test").user_agent(RedirectAgent::default());
    let signed_in = oauth_client(&authority, oauth().store(tokens.clone()));
    let status = send_call(&signed_in, &authority.endpoint()).await;
    assert_eq!(status.expect("a response"), 200);

    tokio::time::pause();
    let revision = mcp_exact::revisions().find(|known| known.as_str() == "2025-11-25");
    let revision = revision.expect("compiled in");
    for seconds in [4, 40, 600] {
        let store = SharedStore {
            tokens: tokens.clone(),
            needed: Duration::from_secs(seconds),
            is_signed_in: Arc::default(),
        };
        let endpoint = HttpEndpoint::new(&authority.endpoint()).expect("a URL");
        let endpoint = endpoint.client(Arc::new(Endpoint)).opens_stream(false);
        let connect = Client::http(endpoint)
            .oauth(oauth().allow_other_ports().store(store))
            .revision(revision);
        let host = Host::builder()
            .timeout(Duration::from_secs(5))
            .server("test", connect)
            .start()
            .await;
        let status = &host.status()["test"];
        assert_eq!(status.state, ServerState::Connected, "{status:?}");
    }
}
