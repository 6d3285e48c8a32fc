//! Trait of HTTP clients, and its implementation with hyper.
//!
//! The transport sends complete requests and reads bodies as they arrive; the HTTP client is responsible for
//! connections, TLS and proxies.

use std::future::Future;
use std::pin::Pin;
#[cfg(feature = "tls")]
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Full};
use hyper_util::client::legacy::Client;
use hyper_util::client::legacy::connect::HttpConnector;
use hyper_util::rt::{TokioExecutor, TokioTimer};
#[cfg(feature = "tls")]
use tokio_rustls::rustls;

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
type Connector = HttpConnector;
/// Connector of hyper for HTTPS and plain HTTP.
#[cfg(feature = "tls")]
type Connector = hyper_rustls::HttpsConnector<HttpConnector>;

/// HTTP client based on hyper with a connection pool, for plain HTTP and, with the feature `tls`, HTTPS.
#[derive(Debug, Clone)]
pub struct HyperClient {
    /// Client of hyper with its connection pool.
    client: Client<Connector, Full<Bytes>>,
}

impl Default for HyperClient {
    fn default() -> Self {
        Self::new(Duration::from_secs(10))
    }
}

impl HyperClient {
    /// Creates a client that fails to connect after `connect_timeout`. HTTPS connections trust the certificates of the
    /// system.
    pub fn new(connect_timeout: Duration) -> Self {
        let connector = connector(connect_timeout);
        #[cfg(feature = "tls")]
        let connector = secure(connector, (*system_trust()).clone());
        Self::of(connector)
    }

    /// Creates a client that fails to connect after `connect_timeout`, with a TLS configuration, which defines trusted
    /// certificates and client certificates. The ALPN protocols of `config` are overwritten.
    #[cfg(feature = "tls")]
    pub fn with_tls(connect_timeout: Duration, mut config: rustls::ClientConfig) -> Self {
        config.alpn_protocols.clear();
        Self::of(secure(connector(connect_timeout), config))
    }

    /// Creates a client that uses a connector of hyper.
    fn of(connector: Connector) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new());
        builder.pool_idle_timeout(Duration::from_secs(30));
        Self {
            client: builder.build(connector),
        }
    }
}

/// Creates a connector for TCP that fails after `connect_timeout`.
fn connector(connect_timeout: Duration) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect_timeout));
    connector.set_keepalive(Some(Duration::from_secs(60)));
    connector.enforce_http(false);
    connector
}

/// Adds TLS to a connector for TCP; the result still supports plain HTTP, for example to the local machine.
#[cfg(feature = "tls")]
fn secure(connector: HttpConnector, config: rustls::ClientConfig) -> Connector {
    let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config);
    let builder = builder.https_or_http();
    builder.enable_all_versions().wrap_connector(connector)
}

/// Returns the TLS configuration that trusts the certificates of the system.
///
/// The certificates are read once; if the system has none, every HTTPS connection fails with an error that reports
/// their absence.
#[cfg(feature = "tls")]
fn system_trust() -> Arc<rustls::ClientConfig> {
    /// Configuration that was created at the first call.
    static CONFIG: OnceLock<Arc<rustls::ClientConfig>> = OnceLock::new();
    let config = CONFIG.get_or_init(|| {
        let mut roots = rustls::RootCertStore::empty();
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
        let config = rustls::ClientConfig::builder_with_provider(provider)
            .with_safe_default_protocol_versions()
            .expect("the provider has suites of TLS 1.2 and 1.3")
            .with_root_certificates(roots)
            .with_no_client_auth();
        Arc::new(config)
    });
    Arc::clone(config)
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
