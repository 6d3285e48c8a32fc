//! Settings of the HTTP client: proxies, certificates and addresses.

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use hyper_util::client::legacy::connect::dns::GaiResolver;
#[cfg(feature = "tls")]
use tokio_rustls::rustls;

use super::connector::{AddressFilter, CheckedResolver, ProxyConnector, tcp_connector};
use super::proxy::Proxy;
use super::send::HyperClient;
#[cfg(feature = "tls")]
use super::tls::{
    CertificateFileError, CertificateFiles, ClientTls, InvalidCertificate, without_certificate,
};

/// Settings of a [`HyperClient`].
///
/// ```no_run
/// use std::sync::Arc;
/// use mcp_exact_transport::http::client::{HttpEndpoint, HyperOptions, Proxy};
///
/// # fn example() -> Result<(), Box<dyn std::error::Error>> {
/// let proxy = Proxy::new("http://proxy.example:3128")?.except("internal.example, 10.0.0.0/8");
/// let client = HyperOptions::default().proxy(proxy).build();
/// let endpoint = HttpEndpoint::new("https://mcp.example/mcp")?.client(Arc::new(client));
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct HyperOptions {
    /// Time limit for a connection.
    connect_timeout: Duration,
    /// Time for which an idle connection is kept.
    idle_timeout: Duration,
    /// Proxies.
    proxy: Proxy,
    /// Trusted certificates and the certificate of the client.
    #[cfg(feature = "tls")]
    tls: ClientTls,
    /// Allowed addresses; `None` for all.
    addresses: Option<AddressFilter>,
    /// True if a proxy may resolve names although addresses are restricted.
    proxy_resolves: bool,
}

impl Default for HyperOptions {
    /// Returns 10 seconds to connect, 4 seconds for idle connections, the proxies of the environment, and the certificates that the
    /// system trusts.
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(4),
            proxy: Proxy::from_env(),
            #[cfg(feature = "tls")]
            tls: ClientTls::default(),
            addresses: None,
            proxy_resolves: false,
        }
    }
}

impl HyperOptions {
    /// Sets the time limit for a connection: one for TCP, and one for the tunnel of a proxy.
    #[must_use]
    pub fn connect_timeout(mut self, connect_timeout: Duration) -> Self {
        self.connect_timeout = connect_timeout;
        self
    }

    /// Sets the time after which an idle connection is not used again, by default 4 seconds.
    ///
    /// A request on a connection that the server closes at the same moment is lost, and only some requests can be sent again. The
    /// time must therefore be shorter than that of the server and of proxies before it: 5 seconds by default in Node.js, uvicorn and
    /// Apache.
    #[must_use]
    pub fn idle_timeout(mut self, idle_timeout: Duration) -> Self {
        self.idle_timeout = idle_timeout;
        self
    }

    /// Sets the proxies, instead of those of the environment ([`Proxy::from_env`]).
    #[must_use]
    pub fn proxy(mut self, proxy: Proxy) -> Self {
        self.proxy = proxy;
        self
    }

    /// Trusts certificates besides those of the system, which are in PEM format. A proxy with an `https` URL is trusted by them
    /// too.
    ///
    /// # Errors
    /// [`InvalidCertificate`] if there is none, or one cannot be used.
    #[cfg(feature = "tls")]
    pub fn trust_pem(mut self, certificates: &[u8]) -> Result<Self, InvalidCertificate> {
        self.tls.trust(certificates)?;
        Ok(self)
    }

    /// Sets the certificate that the client presents to a server that asks for one (mutual TLS): the certificate followed by its
    /// intermediate certificates, and its private key, both in PEM format. It is not presented to a proxy.
    ///
    /// # Errors
    /// [`InvalidCertificate`] if one of them cannot be used, or they do not belong together.
    #[cfg(feature = "tls")]
    pub fn client_certificate_pem(
        mut self,
        chain: &[u8],
        key: &[u8],
    ) -> Result<Self, InvalidCertificate> {
        self.tls.identify(chain, key)?;
        Ok(self)
    }

    /// Reads the certificates of files, as [`trust_pem`](Self::trust_pem) and
    /// [`client_certificate_pem`](Self::client_certificate_pem) do. The files are read once, here.
    ///
    /// # Errors
    /// [`CertificateFileError`] for a file that cannot be read or used.
    #[cfg(feature = "tls")]
    pub fn certificate_files(
        mut self,
        files: &CertificateFiles,
    ) -> Result<Self, CertificateFileError> {
        self.tls.read(files)?;
        Ok(self)
    }

    /// Removes the client certificate.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn without_client_certificate(mut self) -> Self {
        self.tls.forget_identity();
        self
    }

    /// Sets a configuration of rustls, which takes the place of all other settings of certificates. Its ALPN protocols are
    /// overwritten.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, config: rustls::ClientConfig) -> Self {
        self.tls.config = Some(Arc::new(config));
        self
    }

    /// Restricts connections to those for which `is_allowed` returns true, given the host of a URL and the address that it resolves
    /// to; others are a [`BlockedAddress`](super::BlockedAddress). This is for URLs that somebody else has chosen.
    ///
    /// Names are resolved here although a request takes a proxy, and the proxy gets an allowed address instead of the name: it
    /// cannot resolve the name to another one. A name that does not resolve here is not requested through a proxy, nor is a name
    /// by plain HTTP. The address of the proxy itself is not restricted.
    #[must_use]
    pub fn only_addresses(
        mut self,
        is_allowed: impl Fn(&str, IpAddr) -> bool + Send + Sync + 'static,
    ) -> Self {
        self.addresses = Some(Arc::new(is_allowed));
        self
    }

    /// Lets a proxy resolve names although [`only_addresses`](Self::only_addresses) restricts the addresses, for a proxy that
    /// accepts no addresses, or names that do not resolve here. The proxy then decides which addresses are reached.
    #[must_use]
    pub fn proxy_resolves_names(mut self) -> Self {
        self.proxy_resolves = true;
        self
    }

    /// Creates the client.
    pub fn build(self) -> HyperClient {
        let resolver = CheckedResolver {
            resolver: GaiResolver::new(),
            filter: self.addresses,
        };
        #[cfg(feature = "tls")]
        let requests = self.tls.requests();
        #[cfg(feature = "tls")]
        let mut config = self.tls.for_servers(&requests);
        let to_proxy = tcp_connector(GaiResolver::new(), self.connect_timeout);
        #[cfg(feature = "tls")]
        let to_proxy = {
            config.alpn_protocols.clear();
            let builder = hyper_rustls::HttpsConnectorBuilder::new();
            let builder = builder.with_tls_config(without_certificate(&config));
            let builder = builder.https_or_http().enable_http1();
            builder.wrap_connector(to_proxy)
        };
        let connector = ProxyConnector {
            direct: tcp_connector(resolver.clone(), self.connect_timeout),
            to_proxy,
            proxy: self.proxy.clone(),
            resolver,
            proxy_resolves: self.proxy_resolves,
            connect_timeout: self.connect_timeout,
        };
        #[cfg(feature = "tls")]
        let connector = {
            let builder = hyper_rustls::HttpsConnectorBuilder::new().with_tls_config(config);
            // Plain HTTP is still supported, for example to the local machine.
            let builder = builder.https_or_http().enable_all_versions();
            builder.wrap_connector(connector)
        };
        HyperClient::of(
            connector,
            self.idle_timeout,
            self.proxy,
            #[cfg(feature = "tls")]
            requests,
        )
    }
}

impl fmt::Debug for HyperOptions {
    /// The output has no credentials and no keys.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("HyperOptions");
        shown.field("connect_timeout", &self.connect_timeout);
        shown.field("idle_timeout", &self.idle_timeout);
        shown.field("proxy", &self.proxy);
        #[cfg(feature = "tls")]
        shown.field("tls", &self.tls);
        shown.finish_non_exhaustive()
    }
}
