//! Listener that serves the service with hyper: HTTP/1.1 and HTTP/2 with prior knowledge on the same port.
//!
//! The listener limits the number of connections, the size of headers, and the time for receiving them. At shutdown,
//! calls in flight are answered until a deadline.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use tokio::net::{TcpListener, ToSocketAddrs};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::timeout;
#[cfg(feature = "tls")]
use tokio_rustls::rustls;

use super::connection::{ClientConnection, Connections};
use super::service::HttpService;
use super::shares::{Holder, Shares};
use crate::accept::wait_after_accept_error;
use crate::observe;

/// Address of the client, among the extensions of an HTTP request.
///
/// Listeners other than [`HttpListener`] must insert this extension themselves. [`HttpListener`] inserts it for
/// [`HttpServerOptions::authenticate`](super::HttpServerOptions::authenticate), which may replace it by the address that a proxy
/// names, and for [`pages`](super::HttpServerOptions::pages); handlers find the address in
/// [`RequestContext::remote`](crate::RequestContext::remote), whether or not the extension is there.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteAddress(pub SocketAddr);

/// Limits of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenOptions {
    /// Maximum number of concurrent connections; further clients wait until a connection ends.
    pub connections: usize,
    /// Maximum number of concurrent connections of one address, or of one network of 64 bits of IPv6; further ones are answered
    /// with status 429. Behind a proxy, all clients have the address of the proxy.
    pub connections_per_client: usize,
    /// Idle time after which a connection without a request is closed, and time limit for sending the headers of a
    /// request.
    ///
    /// The same value limits the TLS handshake and the closing of an idle HTTP/2 connection, and is the interval of
    /// HTTP/2 pings.
    pub header_timeout: Duration,
    /// Maximum size of a request's headers in bytes; at least 8,192 over HTTP/1.1.
    pub header_bytes: usize,
    /// Maximum number of concurrent requests per HTTP/2 connection.
    pub concurrent_streams: u32,
    /// Time limit for calls in flight after the start of a shutdown.
    pub drain: Duration,
    /// True if JSON responses of at least one kibibyte are compressed with gzip for clients that accept it. Event
    /// streams are never compressed, because compression delays events. If responses contain both secrets and text that
    /// an attacker chooses, compressed lengths can reveal the secrets (BREACH), so the default is false. Requests with
    /// compressed bodies are always rejected.
    #[cfg(feature = "compression")]
    pub compression: bool,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            connections: 10_000,
            connections_per_client: 5_000,
            header_timeout: Duration::from_secs(30),
            header_bytes: 64 << 10,
            concurrent_streams: 256,
            drain: Duration::from_secs(10),
            #[cfg(feature = "compression")]
            compression: false,
        }
    }
}

/// Listener of a server over HTTP.
#[derive(Debug)]
pub struct HttpListener {
    /// The listening socket.
    listener: TcpListener,
    /// Limits of the listener.
    options: ListenOptions,
    /// TLS configuration, if TLS is enabled.
    #[cfg(feature = "tls")]
    tls: Option<Arc<rustls::ServerConfig>>,
}

impl HttpListener {
    /// Binds an address, such as `127.0.0.1:8080`. Port 0 selects a free port.
    ///
    /// # Errors
    /// Returns an error if the address is in use or not allowed.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Ok(Self::from_listener(TcpListener::bind(address).await?))
    }

    /// Uses a listener that is already bound, for example by a service manager.
    pub fn from_listener(listener: TcpListener) -> Self {
        Self {
            listener,
            options: ListenOptions::default(),
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn options(mut self, options: ListenOptions) -> Self {
        self.options = options;
        self
    }

    /// Serves over TLS. Without ALPN protocols in the configuration, clients choose between HTTP/2 and HTTP/1.1.
    #[cfg(feature = "tls")]
    #[must_use]
    pub fn tls(mut self, config: Arc<rustls::ServerConfig>) -> Self {
        self.tls = Some(config);
        self
    }

    /// Returns the bound address.
    ///
    /// # Errors
    /// Returns an error if the system does not report the address.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` completes, then answers calls in flight until the deadline of the options, and ends all
    /// sessions.
    ///
    /// # Errors
    /// Returns an error if the listener has failed.
    pub async fn serve(
        self,
        service: HttpService,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        #[cfg_attr(not(feature = "tls"), allow(unused_mut))]
        let mut connections = Connections::new(&self.options);
        #[cfg(feature = "tls")]
        if let Some(config) = &self.tls {
            connections.set_tls(config);
        }
        let connections = Arc::new(connections);
        let permits = Arc::new(Semaphore::new(
            self.options.connections.min(Semaphore::MAX_PERMITS),
        ));
        let clients = Arc::<Shares>::default();
        let shares = (usize::MAX, self.options.connections_per_client);
        let (stop, stopped) = watch::channel(());
        let mut tasks = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        let result = loop {
            let accept = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = &mut shutdown => break Ok(()),
                Some(_) = tasks.join_next() => continue,
                accepted = accept => accepted,
            };
            let (stream, remote) = match accepted {
                Ok(accepted) => accepted,
                Err(error) => match wait_after_accept_error(error).await {
                    Ok(()) => continue,
                    Err(error) => break Err(error),
                },
            };
            let mut share = clients.begin(Holder::of_address(remote.ip()));
            if share.grow(1, shares).is_err() {
                connections.refuse(&stream);
                continue;
            }
            let connections = Arc::clone(&connections);
            let client = ClientConnection::new(service.clone(), remote);
            let stopped = stopped.clone();
            let serving = connections.serve(stream, client, stopped, (permit, share));
            tasks.spawn(observe::connection("http", Some(remote), serving));
        };
        drop(self.listener);
        service.drain();
        drop(stop);
        let finish = async {
            while tasks.join_next().await.is_some() {}
            if service.outlives_process() {
                service.settled().await;
            }
        };
        let _ = timeout(self.options.drain, finish).await;
        service.end_sessions();
        tasks.shutdown().await;
        result
    }
}
