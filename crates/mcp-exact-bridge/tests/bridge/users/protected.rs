//! Server behind the gateway that requires tokens, and records those that it receives.
//!
//! Each test program uses a part of it.
#![allow(dead_code)]

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use mcp_exact::auth::server::{Access, ResourceServer};
use mcp_exact::transport::http::server::{
    AuthError, AuthFuture, Authenticate, HttpListener, HttpServerOptions,
};
use mcp_exact::{Resource, Revision, Server};
use tokio::task::AbortHandle;

/// URI of a resource that all these servers have; its content is the URL of the server.
pub const NOTE: &str = "note://all";

/// Server behind the gateway that tells its callers who they are, and the scopes of the token that theirs was exchanged for.
pub struct Protected {
    pub url: String,
    /// Headers `Authorization` that it has received.
    pub received: Arc<Mutex<Vec<String>>>,
    /// True if it refuses the token of each call of a tool. What the gateway requests by itself, such as changes of lists, may
    /// come at any time.
    pub refuses: Arc<AtomicBool>,
    task: AbortHandle,
}

impl Drop for Protected {
    fn drop(&mut self) {
        self.task.abort();
    }
}

/// Authenticator that records the headers before the resource server takes them.
struct Recording(ResourceServer, Arc<Mutex<Vec<String>>>, Arc<AtomicBool>);

impl Authenticate for Recording {
    fn authenticate<'a>(&'a self, request: &'a mut http::request::Parts) -> AuthFuture<'a> {
        let header = request.headers.get(http::header::AUTHORIZATION);
        let header = header.and_then(|header| header.to_str().ok());
        let header = header.unwrap_or_default().to_owned();
        self.1.lock().expect("no panic").push(header);
        let method = request.headers.get("mcp-method");
        let is_call = method.is_some_and(|method| method == "tools/call");
        if is_call && self.2.load(Ordering::Relaxed) {
            let refused = AuthError::unauthorized(http::HeaderValue::from_static("Bearer"));
            return Box::pin(std::future::ready(Err(refused)));
        }
        self.0.authenticate(request)
    }

    fn respond(&self, request: &http::request::Parts) -> Option<http::Response<Bytes>> {
        self.0.respond(request)
    }
}

impl Protected {
    /// Starts a server that trusts the tokens of an issuer; it has these revisions, or all if there are none.
    pub async fn start(issuer: &str, revisions: &[Revision]) -> Self {
        let builder = Server::builder("protected", "1.0.0");
        let builder = match revisions {
            [] => builder,
            revisions => builder.revisions(revisions.iter().copied()),
        };
        let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let content = url.clone();
        let server = builder
            .resource(Resource::new(NOTE), move || {
                std::future::ready(content.clone())
            })
            .instructions("for one user alone")
            .tool("who", |access: Access| async move {
                access.subject().unwrap_or("nobody").to_owned()
            })
            .tool("scope", |access: Access| async move {
                let claims: serde_json::Value = access.claims().expect("claims");
                claims["from"].as_str().unwrap_or("none").to_owned()
            })
            .build()
            .expect("a server");
        let resource = ResourceServer::jwks(issuer, &url).expect("a resource");
        let resource = resource.scopes(["use"]);
        let (received, refuses) = (Arc::default(), Arc::default());
        let options = HttpServerOptions {
            path: Some("/mcp".to_owned()),
            authenticate: Some(Arc::new(Recording(
                resource,
                Arc::clone(&received),
                Arc::clone(&refuses),
            ))),
            ..HttpServerOptions::default()
        };
        let service = server.http(options);
        let serving =
            tokio::spawn(async move { listener.serve(service, std::future::pending()).await });
        Self {
            url,
            received,
            refuses,
            task: serving.abort_handle(),
        }
    }
}
