//! Servers at plain HTTP on other hosts: they are used without a token, and never get one ("All authorization server
//! endpoints MUST be served over HTTPS"; tokens on the path of a request can be read by anyone).

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use mcp_exact::transport::http::client::{HttpClient, HttpFuture};
use mcp_exact_auth::client::{OAuth, OAuthError};

/// HTTP client that responds with a status, and records whether requests have a token.
#[derive(Default)]
struct Stub {
    /// Status of every response.
    status: u16,
    /// For each request, true if it has the header `Authorization`.
    has_token: Mutex<Vec<bool>>,
}

impl HttpClient for Stub {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        let has_token = request.headers().contains_key("authorization");
        self.has_token.lock().expect("a lock").push(has_token);
        let body = Full::new(Bytes::new()).map_err(|never| match never {});
        let response = Response::builder().status(self.status);
        let response = response.header("www-authenticate", "Bearer");
        let response = response.body(body.boxed_unsync()).expect("a response");
        Box::pin(async { Ok(response) })
    }
}

/// Sends one request to a URL of plain HTTP; returns the status or the error, and whether each request had a token.
async fn send(status: u16) -> (Result<u16, OAuthError>, Vec<bool>) {
    let stub = Arc::new(Stub {
        status,
        ..Stub::default()
    });
    let url = "http://mcp.example/mcp";
    let inner: Arc<dyn HttpClient> = Arc::clone(&stub) as _;
    let client = OAuth::new("x").client(url, inner).expect("a client");
    let request = Request::post(url).body(Bytes::new()).expect("a request");
    let response = client.send(request).await;
    let response = response.map(|response| response.status().as_u16());
    let error = |error: Box<dyn std::error::Error + Send + Sync>| {
        error
            .downcast_ref::<OAuthError>()
            .expect("of the client")
            .clone()
    };
    let has_token = stub.has_token.lock().expect("a lock").clone();
    (response.map_err(error), has_token)
}

/// A server that asks for no token is used; one that asks for a token is refused after one request, without a token.
#[tokio::test]
async fn plain_servers_are_used_without_a_token() {
    for status in [200, 202, 404, 403, 500] {
        assert_eq!(send(status).await, (Ok(status), vec![false]));
    }
    let (error, has_token) = send(401).await;
    let error = error.expect_err("it asks for a token");
    assert!(matches!(&error, OAuthError::Insecure { url } if url == "http://mcp.example/mcp"));
    assert!(
        !error.is_transient() && error.to_string().contains("https URL"),
        "{error}"
    );
    assert_eq!(has_token, [false]);
}
