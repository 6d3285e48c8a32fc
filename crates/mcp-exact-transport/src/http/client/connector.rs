//! Connections of the HTTP client: direct ones, those to a proxy, and tunnels through a proxy, for TCP beneath TLS.
//!
//! With an address filter, each connection is made to an address that was checked, through a proxy too.

use std::future::Future;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
use http::header::{HOST, PROXY_AUTHORIZATION};
use http::uri::Scheme;
use http::{Request, StatusCode, Uri};
use http_body_util::Empty;
use hyper::client::conn::http1;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::upgrade::Upgraded;
use hyper_util::client::legacy::connect::dns::{GaiResolver, Name};
use hyper_util::client::legacy::connect::{Connected, Connection, HttpConnector};
use tower_service::Service;

use super::HttpClientError;
use super::proxy::{Hop, Problem, Proxy, ProxyError, literal_address, without_brackets};

/// Decides to which addresses of a host a client may connect.
pub(super) type AddressFilter = Arc<dyn Fn(&str, IpAddr) -> bool + Send + Sync>;

/// Connector of hyper for TCP, and with the feature `tls` for TLS, to a proxy.
#[cfg(not(feature = "tls"))]
pub(super) type ToProxy = HttpConnector;
/// Connector of hyper for TCP, and with the feature `tls` for TLS, to a proxy.
#[cfg(feature = "tls")]
pub(super) type ToProxy = hyper_rustls::HttpsConnector<HttpConnector>;

/// Reason why a client whose addresses are restricted makes no connection to a host.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum BlockedAddress {
    /// The host has disallowed addresses only.
    #[error("`{0}` resolves to an address that is not allowed")]
    Host(String),
    /// The proxy would resolve the host, so that its address cannot be checked.
    #[error(
        "`{0}` does not resolve here, and the proxy may resolve it to an address that is not allowed"
    )]
    ByProxy(String),
}

/// Creates a connector for TCP that fails after `connect_timeout`.
pub(super) fn tcp_connector<R>(resolver: R, connect_timeout: Duration) -> HttpConnector<R> {
    let mut connector = HttpConnector::new_with_resolver(resolver);
    connector.set_nodelay(true);
    connector.set_connect_timeout(Some(connect_timeout));
    connector.set_keepalive(Some(Duration::from_secs(60)));
    connector.enforce_http(false);
    connector
}

/// Resolver that returns the allowed addresses of a name.
#[derive(Clone)]
pub(super) struct CheckedResolver {
    /// Resolver of the system.
    pub(super) resolver: GaiResolver,
    /// Allowed addresses; `None` for all.
    pub(super) filter: Option<AddressFilter>,
}

impl Service<Name> for CheckedResolver {
    type Response = std::vec::IntoIter<SocketAddr>;
    type Error = HttpClientError;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Self::Error>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.resolver.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, name: Name) -> Self::Future {
        let (filter, host) = (self.filter.clone(), name.as_str().to_owned());
        let resolved = self.resolver.call(name);
        Box::pin(async move {
            let mut addresses: Vec<SocketAddr> = resolved.await?.collect();
            let has_any = !addresses.is_empty();
            if let Some(filter) = filter {
                addresses.retain(|address| filter(&host, address.ip()));
            }
            if has_any && addresses.is_empty() {
                return Err(BlockedAddress::Host(host).into());
            }
            Ok(addresses.into_iter())
        })
    }
}

/// Connector to servers, directly or through a proxy. TLS to the server is not its task.
#[derive(Clone)]
pub(super) struct ProxyConnector {
    /// Connector to servers.
    pub(super) direct: HttpConnector<CheckedResolver>,
    /// Connector to proxies.
    pub(super) to_proxy: ToProxy,
    /// Proxies.
    pub(super) proxy: Proxy,
    /// Resolver of the names of servers.
    pub(super) resolver: CheckedResolver,
    /// True if a proxy may resolve names although addresses are restricted.
    pub(super) proxy_resolves: bool,
    /// Time limit for a tunnel.
    pub(super) connect_timeout: Duration,
}

impl Service<Uri> for ProxyConnector {
    type Response = Stream;
    type Error = HttpClientError;
    type Future = Pin<Box<dyn Future<Output = Result<Stream, HttpClientError>> + Send>>;

    fn poll_ready(&mut self, cx: &mut Context<'_>) -> Poll<Result<(), Self::Error>> {
        self.direct.poll_ready(cx).map_err(Into::into)
    }

    fn call(&mut self, target: Uri) -> Self::Future {
        let connector = self.clone();
        Box::pin(connector.connect(target))
    }
}

impl ProxyConnector {
    /// Connects to the server of a URL.
    async fn connect(mut self, target: Uri) -> Result<Stream, HttpClientError> {
        let host = target.host().unwrap_or_default();
        // Addresses are not resolved, and a proxy may resolve `localhost` to its own machine.
        let literal = literal_address(host);
        if let (Some(filter), Some(address)) = (&self.resolver.filter, literal)
            && !filter(without_brackets(host), address)
        {
            return Err(BlockedAddress::Host(host.to_owned()).into());
        }
        let Some(hop) = self.proxy.route(&target)?.cloned() else {
            let stream = self.direct.call(target).await?;
            return Ok(Stream {
                io: Box::new(stream),
                ends_at_proxy: false,
            });
        };
        let is_checked = self.resolver.filter.is_some() && !self.proxy_resolves;
        if target.scheme() != Some(&Scheme::HTTPS) {
            if is_checked && literal.is_none() {
                return Err(BlockedAddress::ByProxy(host.to_owned()).into());
            }
            return Ok(Stream {
                io: self.dial(&hop).await?,
                ends_at_proxy: true,
            });
        }
        let hosts = if is_checked {
            self.checked_hosts(host).await?
        } else {
            vec![host.to_owned()]
        };
        let port = target.port_u16().unwrap_or(443);
        let mut refusal = None;
        for host in hosts {
            match self.tunnel(&hop, &format!("{host}:{port}")).await {
                Err(error) if error.is_refused() => refusal = Some(error),
                Err(error) => return Err(error.into()),
                Ok(tunnel) => {
                    return Ok(Stream {
                        io: Box::new(tunnel),
                        ends_at_proxy: false,
                    });
                }
            }
        }
        Err(refusal.map_or_else(|| "the server has no address".into(), Into::into))
    }

    /// Returns the allowed addresses of a host, as hosts of a tunnel: the proxy resolves nothing.
    async fn checked_hosts(&mut self, host: &str) -> Result<Vec<String>, HttpClientError> {
        let by_proxy = || BlockedAddress::ByProxy(host.to_owned());
        if without_brackets(host).parse::<IpAddr>().is_ok() {
            return Ok(vec![host.to_owned()]);
        }
        let name: Name = host.parse().map_err(|_| by_proxy())?;
        let addresses = match self.resolver.call(name).await {
            Ok(addresses) => addresses,
            Err(error) if error.is::<BlockedAddress>() => return Err(error),
            Err(_) => return Err(by_proxy().into()),
        };
        let hosts = addresses.map(|address| match address.ip() {
            IpAddr::V4(address) => address.to_string(),
            IpAddr::V6(address) => format!("[{address}]"),
        });
        Ok(hosts.collect())
    }

    /// Connects to a proxy.
    async fn dial(&mut self, hop: &Hop) -> Result<Box<dyn Io>, ProxyError> {
        let uri = hop.uri()?.clone();
        match self.to_proxy.call(uri).await {
            Ok(stream) => Ok(Box::new(stream)),
            Err(error) => Err(hop.error(Problem::connect(error))),
        }
    }

    /// Opens a tunnel to a server through a proxy (RFC 9110, section 9.3.6).
    async fn tunnel(&mut self, hop: &Hop, server: &str) -> Result<Upgraded, ProxyError> {
        let limit = self.connect_timeout;
        let opening = async {
            let stream = Stream {
                io: self.dial(hop).await?,
                ends_at_proxy: false,
            };
            open_tunnel(stream, hop, server).await
        };
        let opened = tokio::time::timeout(limit, opening).await;
        opened.unwrap_or_else(|_| Err(hop.error(Problem::TimedOut(limit))))
    }
}

/// Asks a proxy to connect to a server, and returns the connection after its answer.
async fn open_tunnel(stream: Stream, hop: &Hop, server: &str) -> Result<Upgraded, ProxyError> {
    let broken = |error| hop.error(Problem::Protocol(error));
    let (mut sender, connection) = http1::handshake(stream).await.map_err(broken)?;
    // The task ends when the connection becomes the tunnel, or when `sender` is dropped.
    tokio::spawn(connection.with_upgrades());
    let mut request = Request::connect(server).header(HOST, server);
    if let Some(credentials) = hop.authorization() {
        request = request.header(PROXY_AUTHORIZATION, credentials);
    }
    let refused = |status| {
        hop.error(Problem::Refused {
            server: server.to_owned(),
            status,
        })
    };
    let request = request.body(Empty::<Bytes>::new());
    let request = request.map_err(|_| refused(StatusCode::BAD_REQUEST))?;
    let response = sender.send_request(request).await.map_err(broken)?;
    match response.status() {
        status if status.is_success() => hyper::upgrade::on(response).await.map_err(broken),
        StatusCode::PROXY_AUTHENTICATION_REQUIRED => Err(hop.error(Problem::Credentials)),
        status => Err(refused(status)),
    }
}

/// Bytes of a connection.
trait Io: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Io for T {}

/// Connection to a server or to its proxy.
pub(super) struct Stream {
    /// The connection.
    io: Box<dyn Io>,
    /// True if it ends at a proxy, which gets whole URLs.
    ends_at_proxy: bool,
}

impl Connection for Stream {
    fn connected(&self) -> Connected {
        Connected::new().proxy(self.ends_at_proxy)
    }
}

impl Read for Stream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_read(cx, buffer)
    }
}

impl Write for Stream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write(cx, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.io).poll_shutdown(cx)
    }

    fn is_write_vectored(&self) -> bool {
        self.io.is_write_vectored()
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        slices: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.io).poll_write_vectored(cx, slices)
    }
}
