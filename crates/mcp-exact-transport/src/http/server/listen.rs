//! A listener that serves the service by hyper: HTTP/1.1 and HTTP/2 with prior knowledge on the same port.
//!
//! Bounds connections and the time and size of headers. A shutdown answers calls in flight and has a deadline.

use std::future::Future;
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use hyper::body::Incoming;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use hyper_util::server::conn::auto::Builder;
use tokio::net::{TcpListener, TcpStream, ToSocketAddrs};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;
use tokio::time::{sleep, timeout};

use super::service::HttpService;

/// Address of the client of a request; an extension of the request. Another listener than this crate's inserts it itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RemoteAddress(pub SocketAddr);

/// Limits of a listener.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ListenOptions {
    /// Number of connections at the same time; more of them wait to be accepted.
    pub connections: usize,
    /// How long a client may take to send the headers of a request, and how long a connection may be idle between requests.
    pub header_timeout: Duration,
    /// Bytes of the headers of a request.
    pub header_bytes: usize,
    /// Number of requests at the same time on one connection of HTTP/2.
    pub concurrent_streams: u32,
    /// How long calls in flight may take after the shutdown has begun.
    pub drain: Duration,
}

impl Default for ListenOptions {
    fn default() -> Self {
        Self {
            connections: 10_000,
            header_timeout: Duration::from_secs(30),
            header_bytes: 64 << 10,
            concurrent_streams: 256,
            drain: Duration::from_secs(10),
        }
    }
}

/// Listener of a server over HTTP.
#[derive(Debug)]
pub struct HttpListener {
    listener: TcpListener,
    options: ListenOptions,
}

impl HttpListener {
    /// Binds an address, such as `127.0.0.1:8080`. Port 0 takes a free one.
    ///
    /// # Errors
    /// The address is in use or not allowed.
    pub async fn bind(address: impl ToSocketAddrs) -> io::Result<Self> {
        Ok(Self::from_listener(TcpListener::bind(address).await?))
    }

    /// Takes a listener that is bound already, such as one of a service manager.
    pub fn from_listener(listener: TcpListener) -> Self {
        Self {
            listener,
            options: ListenOptions::default(),
        }
    }

    /// Sets the limits.
    #[must_use]
    pub fn options(mut self, options: ListenOptions) -> Self {
        self.options = options;
        self
    }

    /// Returns the address that is bound.
    ///
    /// # Errors
    /// The system does not say.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }

    /// Serves until `shutdown` completes, then answers calls in flight until the deadline of the options, and ends all sessions.
    ///
    /// # Errors
    /// The listener failed.
    pub async fn serve(
        self,
        service: HttpService,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let builder = Arc::new(builder(&self.options));
        let permits = Arc::new(Semaphore::new(self.options.connections));
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
                Err(error) if is_of_connection(&error) => continue,
                // Such as too many open files: it may pass.
                Err(error) if is_of_resources(&error) => {
                    sleep(Duration::from_millis(100)).await;
                    continue;
                }
                Err(error) => break Err(error),
            };
            let (builder, service) = (Arc::clone(&builder), service.clone());
            let stopped = stopped.clone();
            tasks.spawn(async move {
                connection(&builder, stream, RemoteAddress(remote), service, stopped).await;
                drop(permit);
            });
        };
        drop(self.listener);
        service.drain();
        drop(stop);
        let finish = async { while tasks.join_next().await.is_some() {} };
        let _ = timeout(self.options.drain, finish).await;
        service.end_sessions();
        tasks.shutdown().await;
        result
    }
}

fn is_of_connection(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionRefused
            | io::ErrorKind::ConnectionAborted
            | io::ErrorKind::ConnectionReset
    )
}

fn is_of_resources(error: &io::Error) -> bool {
    // EMFILE, ENFILE, ENOBUFS and ENOMEM, as Linux counts them.
    matches!(error.raw_os_error(), Some(12 | 23 | 24 | 105))
}

fn builder(options: &ListenOptions) -> Builder<TokioExecutor> {
    let mut builder = Builder::new(TokioExecutor::new());
    builder
        .http1()
        .timer(TokioTimer::new())
        .header_read_timeout(options.header_timeout)
        .max_buf_size(options.header_bytes.max(8192));
    let headers = u32::try_from(options.header_bytes).unwrap_or(u32::MAX);
    builder
        .http2()
        .timer(TokioTimer::new())
        .keep_alive_interval(options.header_timeout)
        .max_header_list_size(headers)
        .max_concurrent_streams(options.concurrent_streams);
    builder
}

/// Serves one connection until it ends. A connection that breaks concerns nobody else.
async fn connection(
    builder: &Builder<TokioExecutor>,
    stream: TcpStream,
    remote: RemoteAddress,
    service: HttpService,
    mut stopped: watch::Receiver<()>,
) {
    // Small messages leave at once.
    let _ = stream.set_nodelay(true);
    let service = hyper::service::service_fn(move |mut request: Request<Incoming>| {
        request.extensions_mut().insert(remote);
        let service = service.clone();
        async move { Ok::<_, std::convert::Infallible>(service.respond(request).await) }
    });
    let connection = builder.serve_connection(TokioIo::new(stream), service);
    let mut connection = std::pin::pin!(connection);
    tokio::select! {
        _ = connection.as_mut() => return,
        _ = stopped.changed() => connection.as_mut().graceful_shutdown(),
    }
    let _ = connection.await;
}
