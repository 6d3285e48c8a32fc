//! The trait of HTTP clients, and the one of hyper.
//!
//! The transport sends whole requests and reads bodies as they come; connections, TLS and proxies are the client's.

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

/// Future of a request: completes with the head of the response.
pub type HttpFuture<'a> =
    Pin<Box<dyn Future<Output = Result<Response<HttpBody>, HttpClientError>> + Send + 'a>>;

/// Sends HTTP requests. Dropping the future or the body of the response cancels the request. It must not follow redirects: the
/// transport follows those within its origin.
///
/// A client that wraps an inner one can add credentials and answer a status 401.
pub trait HttpClient: Send + Sync + 'static {
    /// Sends a request.
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_>;
}

#[cfg(not(feature = "tls"))]
type Connector = HttpConnector;
#[cfg(feature = "tls")]
type Connector = hyper_rustls::HttpsConnector<HttpConnector>;

/// HTTP client of hyper with a pool of connections: for plain HTTP, and with the feature `tls` for HTTPS too.
#[derive(Debug, Clone)]
pub struct HyperClient {
    client: Client<Connector, Full<Bytes>>,
}

impl Default for HyperClient {
    fn default() -> Self {
        Self::new(Duration::from_secs(10))
    }
}

impl HyperClient {
    /// Creates a client that gives up to connect after this time. By HTTPS it trusts the certificates of the system.
    pub fn new(connect_timeout: Duration) -> Self {
        let connector = connector(connect_timeout);
        #[cfg(feature = "tls")]
        let connector = secure(connector, (*system_trust()).clone());
        Self::of(connector)
    }

    /// Creates a client that gives up to connect after this time, and that uses this configuration of TLS: certificates that it
    /// trusts, and those that it shows. Its protocols of ALPN are set by the client.
    #[cfg(feature = "tls")]
    pub fn with_tls(connect_timeout: Duration, mut config: rustls::ClientConfig) -> Self {
        config.alpn_protocols.clear();
        Self::of(secure(connector(connect_timeout), config))
    }

    fn of(connector: Connector) -> Self {
        let mut builder = Client::builder(TokioExecutor::new());
        builder.pool_timer(TokioTimer::new());
        builder.pool_idle_timeout(Duration::from_secs(30));
        Self {
            client: builder.build(connector),
        }
    }
}

fn connector(connect_timeout: Duration) -> HttpConnector {
    let mut connector = HttpConnector::new();
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect_timeout));
    connector.set_keepalive(Some(Duration::from_secs(60)));
    connector.enforce_http(false);
    connector
}

/// Adds TLS to a connector; plain HTTP stays possible, such as to the local machine.
#[cfg(feature = "tls")]
fn secure(connector: HttpConnector, config: rustls::ClientConfig) -> Connector {
    let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config);
    let builder = builder.https_or_http();
    builder.enable_all_versions().wrap_connector(connector)
}

/// Configuration that trusts the certificates of the system. They are read once; without any, every connection by HTTPS is
/// refused with an error that says so.
#[cfg(feature = "tls")]
fn system_trust() -> Arc<rustls::ClientConfig> {
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
