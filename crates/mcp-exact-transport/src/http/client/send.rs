//! The trait of HTTP clients, and the one of hyper.
//!
//! The transport sends whole requests and reads bodies as they come; connections, TLS and proxies are the client's.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};

/// Error of an HTTP client.
pub type HttpClientError = Box<dyn std::error::Error + Send + Sync>;

/// Body of a response, read as it arrives.
pub type HttpBody = UnsyncBoxBody<Bytes, HttpClientError>;

/// Future of a request: completes with the head of the response.
pub type HttpFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<HttpBody>, HttpClientError>> + Send + 'a>>;

/// Sends HTTP requests. Dropping the future or the body of the response cancels the request. It must not follow redirects: the
/// transport follows those within its origin.
///
/// A client that wraps another one can add credentials and answer a status 401.
pub trait HttpClient: Send + Sync + 'static {
    /// Sends a request.
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_>;
}

/// HTTP client of hyper for plain HTTP, with a pool of connections.
#[derive(Debug, Clone)]
pub struct HyperClient {
    client: Client<HttpConnector, Full<Bytes>>,
}

impl Default for HyperClient {
    fn default() -> Self {
        Self::new(Duration::from_secs(10))
    }
}

impl HyperClient {
    /// Creates a client that gives up to connect after this time.
    pub fn new(connect_timeout: Duration) -> Self {
        let mut connector = HttpConnector::new();
        connector.set_nodelay(true);
        connector.set_connect_timeout(Some(connect_timeout));
        connector.set_keepalive(Some(Duration::from_secs(60)));
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new());
        builder.pool_idle_timeout(Duration::from_secs(30));
        Self {
            client: builder.build(connector),
        }
    }
}

impl HttpClient for HyperClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        Box::pin(async move {
            let response = self.client.request(request.map(Full::new)).await?;
            let boxed = |body: hyper::body::Incoming| {
                body.map_err(|error| Box::new(error) as HttpClientError)
                    .boxed_unsync()
            };
            Ok(response.map(boxed))
        })
    }
}
