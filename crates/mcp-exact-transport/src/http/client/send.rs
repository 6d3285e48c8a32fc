//! Trait of HTTP clients, and its implementation with hyper.
//!
//! The transport sends complete requests and reads bodies as they arrive; the HTTP client is responsible for
//! connections, TLS and proxies.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use bytes::Bytes;
use http::header::{ACCEPT_ENCODING, PROXY_AUTHORIZATION};
use http::uri::Scheme;
use http::{HeaderValue, Request, Response, StatusCode};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioTimer};
#[cfg(feature = "tls")]
use tokio_rustls::rustls;

use super::connector::ProxyConnector;
use super::options::HyperOptions;
use super::proxy::{Problem, Proxy};
#[cfg(feature = "tls")]
use super::tls::CertificateRequests;

/// Error of an HTTP client.
pub type HttpClientError = Box<dyn std::error::Error + Send + Sync>;

/// Body of a response, read as it arrives.
pub type HttpBody = UnsyncBoxBody<Bytes, HttpClientError>;

/// Future of a request, which completes with the head of the response.
pub type HttpFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<HttpBody>, HttpClientError>> + Send + 'a>>;

/// Client that sends single HTTP requests for the transport.
///
/// Dropping the future or the body of the response cancels the request. An HTTP client must not follow redirects,
/// because the transport itself follows redirects within the origin of the server.
///
/// An HTTP client that wraps another HTTP client can add credentials and handle responses with status 401.
pub trait HttpClient: Send + Sync + 'static {
    /// Sends a request and returns the future of its response.
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_>;
}

/// Connector of hyper for plain HTTP.
#[cfg(not(feature = "tls"))]
pub(super) type Connector = ProxyConnector;
/// Connector of hyper for HTTPS and plain HTTP.
#[cfg(feature = "tls")]
pub(super) type Connector = hyper_rustls::HttpsConnector<ProxyConnector>;

/// HTTP client based on hyper with a connection pool, for plain HTTP and, with the feature `tls`, HTTPS.
///
/// By default it takes the proxies that environment variables such as `HTTPS_PROXY` name ([`Proxy::from_env`]); [`HyperOptions`]
/// set another proxy or none, trusted certificates and a client certificate.
#[derive(Debug, Clone)]
pub struct HyperClient {
    /// Client of hyper with its connection pool.
    client: Client<Connector, Full<Bytes>>,
    /// Proxies, to which requests with `http` URLs are sent.
    proxy: Proxy,
    /// Whether a server has asked for a certificate.
    #[cfg(feature = "tls")]
    requests: CertificateRequests,
}

impl Default for HyperClient {
    fn default() -> Self {
        HyperOptions::default().build()
    }
}

impl HyperClient {
    /// Creates a client that fails to connect after `connect_timeout`. HTTPS connections trust the certificates of the
    /// system.
    pub fn new(connect_timeout: Duration) -> Self {
        let options = HyperOptions::default();
        options.connect_timeout(connect_timeout).build()
    }

    /// Creates a client that fails to connect after `connect_timeout`, with a TLS configuration, which defines trusted
    /// certificates and client certificates. The ALPN protocols of `config` are overwritten.
    #[cfg(feature = "tls")]
    pub fn with_tls(connect_timeout: Duration, config: rustls::ClientConfig) -> Self {
        let options = HyperOptions::default().tls(config);
        options.connect_timeout(connect_timeout).build()
    }

    /// Creates a client that uses a connector of hyper, and keeps idle connections for `idle_timeout`.
    pub(super) fn of(
        connector: Connector,
        idle_timeout: Duration,
        proxy: Proxy,
        #[cfg(feature = "tls")] requests: CertificateRequests,
    ) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new());
        builder.pool_idle_timeout(idle_timeout);
        Self {
            client: builder.build(connector),
            proxy,
            #[cfg(feature = "tls")]
            requests,
        }
    }
}

impl HttpClient for HyperClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        Box::pin(async move {
            let mut request = request.map(Full::new);
            // No answer is decompressed here. A server may compress if the header is missing (RFC 9110, section 12.5.3).
            let codings = request.headers_mut().entry(ACCEPT_ENCODING);
            codings.or_insert(HeaderValue::from_static("identity"));
            // The proxy of an `https` URL gets a request of its own from the connector.
            let mut hop = self.proxy.route(request.uri())?;
            hop = hop.filter(|_| request.uri().scheme() != Some(&Scheme::HTTPS));
            if let Some(credentials) = hop.and_then(|hop| hop.authorization()) {
                let headers = request.headers_mut();
                headers.insert(PROXY_AUTHORIZATION, credentials.clone());
            }
            let sent = self.client.request(request).await;
            #[cfg(feature = "tls")]
            let sent = sent.map_err(|error| self.requests.explain(error.into()));
            let response = sent?;
            #[cfg(feature = "tls")]
            self.requests.record_response();
            if let Some(hop) = hop
                && response.status() == StatusCode::PROXY_AUTHENTICATION_REQUIRED
            {
                return Err(hop.error(Problem::Credentials).into());
            }
            let boxed = |body: hyper::body::Incoming| {
                body.map_err(|error| Box::new(error) as HttpClientError)
                    .boxed_unsync()
            };
            Ok(response.map(boxed))
        })
    }
}
