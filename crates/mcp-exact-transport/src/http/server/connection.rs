//! Connections of the listener: detection of the HTTP version, and closing of idle connections.
//!
//! The first bytes, which are peeked and not consumed, determine the version: HTTP/1.1 or HTTP/2. A timer per
//! connection periodically compares the number of requests with the number at the previous check, so that requests need
//! no timers.

use std::convert::Infallible;
use std::future::{Future, poll_fn};
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use bytes::Bytes;
#[cfg(feature = "compression")]
use http::request::Parts;
use http::{Request, Response};
use http_body::{Body, Frame, SizeHint};
use hyper::body::Incoming;
use hyper::server::conn::{http1, http2};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use tokio::io::{AsyncRead, AsyncWrite, Interest};
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::{Sleep, sleep, timeout};
#[cfg(feature = "compression")]
use tower_http::compression;

use super::listen::{ListenOptions, RemoteAddress};
use super::patience::{TIMERS_PER_LIMIT, within};
use super::response::ResponseBody;
use super::service::HttpService;
use crate::clock;

/// First bytes of an HTTP/2 client with prior knowledge (RFC 9113, section 3.4).
const HTTP2_PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// Name of HTTP/2 in ALPN (RFC 9113, section 3.2).
#[cfg(feature = "tls")]
const H2: &[u8] = b"h2";
/// Time after which a connection is closed if the client has not acknowledged sent bytes.
#[cfg(target_os = "linux")]
const ACKNOWLEDGEMENT_TIMEOUT: Duration = Duration::from_secs(60);

/// Response to a connection of a client that has as many as it may have.
const TOO_MANY_CONNECTIONS: &[u8] = b"HTTP/1.1 429 Too Many Requests\r\nretry-after: 1\r\n\
    connection: close\r\ncontent-length: 0\r\n\r\n";

/// Body of a response as it is sent, with or without compression.
#[cfg(feature = "compression")]
type SentBody = http_body_util::Either<ResponseBody, compression::CompressionBody<ResponseBody>>;
/// Body of a response as it is sent.
#[cfg(not(feature = "compression"))]
type SentBody = ResponseBody;

/// Minimum size of a compressed response, in bytes.
#[cfg(feature = "compression")]
const MIN_COMPRESSED_BYTES: u64 = 1024;

/// Protocol settings and TLS state that all connections of a listener share.
pub(super) struct Connections {
    /// True if large responses are compressed.
    #[cfg(feature = "compression")]
    compression: bool,
    /// Settings of HTTP/1.1 connections.
    http1: http1::Builder,
    /// Settings of HTTP/2 connections.
    http2: http2::Builder<TokioExecutor>,
    /// Idle time after which a connection without a request is closed.
    header_timeout: Duration,
    /// TLS acceptor, if TLS is enabled.
    #[cfg(feature = "tls")]
    tls: Option<tokio_rustls::TlsAcceptor>,
}

/// HTTP version of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// HTTP/1.1.
    Http1,
    /// HTTP/2.
    Http2,
}

impl Connections {
    pub(super) fn new(options: &ListenOptions) -> Self {
        let mut http1 = http1::Builder::new();
        http1
            .header_read_timeout(None)
            .max_buf_size(options.header_bytes.max(8192));
        let headers = u32::try_from(options.header_bytes).unwrap_or(u32::MAX);
        let mut http2 = http2::Builder::new(TokioExecutor::new());
        http2
            .timer(TokioTimer::new())
            .keep_alive_interval(options.header_timeout)
            .max_header_list_size(headers)
            .max_concurrent_streams(options.concurrent_streams);
        Self {
            #[cfg(feature = "compression")]
            compression: options.compression,
            http1,
            http2,
            header_timeout: options.header_timeout,
            #[cfg(feature = "tls")]
            tls: None,
        }
    }

    /// Enables TLS. The client chooses the protocol by ALPN (RFC 7301).
    #[cfg(feature = "tls")]
    pub(super) fn set_tls(&mut self, config: &tokio_rustls::rustls::ServerConfig) {
        let mut config = config.clone();
        if config.alpn_protocols.is_empty() {
            config.alpn_protocols = vec![H2.to_vec(), b"http/1.1".to_vec()];
        }
        self.tls = Some(Arc::new(config).into());
    }

    /// Answers a connection of a client that has as many as it may have. Without encryption, the client reads why.
    pub(super) fn refuse(&self, stream: &TcpStream) {
        #[cfg(feature = "tls")]
        if self.tls.is_some() {
            return;
        }
        // A client that does not read it learns from the end of the connection.
        let _ = stream.try_write(TOO_MANY_CONNECTIONS);
    }

    /// Serves one connection until it ends, and then drops `permit`. An error of the connection does not affect other
    /// connections.
    pub(super) fn serve(
        self: Arc<Self>,
        stream: TcpStream,
        client: Arc<ClientConnection>,
        stopped: watch::Receiver<()>,
        permit: impl Send,
    ) -> impl Future<Output = ()> + Send {
        // Small messages leave at once.
        let _ = stream.set_nodelay(true);
        set_acknowledgement_timeout(&stream);
        // A block holds what it takes once; the parameters of an `async fn` are held twice.
        async move {
            let _permit = &permit;
            #[cfg(feature = "tls")]
            if let Some(acceptor) = &self.tls {
                // On the heap, so that connections without TLS are small.
                let begun = self.begin(acceptor.accept(stream), &stopped);
                if let Some(stream) = Box::pin(begun).await {
                    let protocol = match stream.get_ref().1.alpn_protocol() {
                        Some(H2) => Protocol::Http2,
                        _ => Protocol::Http1,
                    };
                    let serving = self.serve_as(protocol, stream, &client, &stopped);
                    Box::pin(serving).await;
                }
                return;
            }
            if let Some(protocol) = self.begin(protocol_of(&stream), &stopped).await {
                self.serve_as(protocol, stream, &client, &stopped).await;
            }
        }
    }

    /// Waits for `beginning`, such as a TLS handshake; `None` if `beginning` fails, exceeds the time limit, or the
    /// server shuts down.
    async fn begin<T>(
        &self,
        beginning: impl Future<Output = io::Result<T>>,
        stopped: &watch::Receiver<()>,
    ) -> Option<T> {
        let mut stopped = stopped.clone();
        let beginning = pin!(beginning);
        tokio::select! {
            biased;
            begun = within(self.header_timeout, beginning) => begun?.ok(),
            _ = stopped.changed() => None,
        }
    }

    /// Serves a connection whose HTTP version is known.
    async fn serve_as(
        &self,
        protocol: Protocol,
        stream: impl AsyncRead + AsyncWrite + Unpin + Send + 'static,
        client: &Arc<ClientConnection>,
        stopped: &watch::Receiver<()>,
    ) {
        let requests = Requests {
            #[cfg(feature = "compression")]
            compression: self.compression,
            client: Arc::clone(client),
        };
        let io = TokioIo::new(stream);
        let idle = IdleTimeout::new(Arc::clone(client), self.header_timeout);
        match protocol {
            Protocol::Http1 => {
                let mut connection = pin!(self.http1.serve_connection(io, requests));
                match serve_until_end(connection.as_mut(), idle, stopped).await {
                    ConnectionEnd::IdleTimeout | ConnectionEnd::Closed => {}
                    // No request has begun: nobody waits for an answer.
                    ConnectionEnd::Stopped if !client.was_used() => {}
                    ConnectionEnd::Stopped => {
                        connection.as_mut().graceful_shutdown();
                        let _ = connection.await;
                    }
                }
            }
            Protocol::Http2 => {
                let mut connection = Box::pin(self.http2.serve_connection(io, requests));
                match serve_until_end(connection.as_mut(), idle, stopped).await {
                    ConnectionEnd::Closed => {}
                    // A request may be on its way: the client learns whether it is served, if it still reads.
                    ConnectionEnd::IdleTimeout => {
                        connection.as_mut().graceful_shutdown();
                        let _ = timeout(self.header_timeout, connection).await;
                    }
                    ConnectionEnd::Stopped => {
                        connection.as_mut().graceful_shutdown();
                        let _ = connection.await;
                    }
                }
            }
        }
    }
}

/// Reason why the server stops serving a connection.
enum ConnectionEnd {
    /// The client has closed the connection, or the connection has failed.
    Closed,
    /// No request was received or being served during the idle timeout.
    IdleTimeout,
    /// The server is shutting down.
    Stopped,
}

/// Polls a connection of hyper until it is closed or idle, or the server shuts down.
fn serve_until_end<C: Future>(
    mut connection: Pin<&mut C>,
    mut idle: IdleTimeout,
    stopped: &watch::Receiver<()>,
) -> impl Future<Output = ConnectionEnd> {
    let mut own = stopped.clone();
    async move {
        let mut stopping = pin!(own.changed());
        let mut is_registered = false;
        poll_fn(|cx| {
            if connection.as_mut().poll(cx).is_ready() {
                return Poll::Ready(ConnectionEnd::Closed);
            }
            // Both wake the task by themselves once they were polled: most polls are for the connection alone.
            let is_first = !std::mem::replace(&mut is_registered, true);
            let may_stop = is_first || !matches!(stopped.has_changed(), Ok(false));
            if may_stop && stopping.as_mut().poll(cx).is_ready() {
                return Poll::Ready(ConnectionEnd::Stopped);
            }
            let may_be_idle = is_first || idle.sleep.is_elapsed();
            if may_be_idle && Pin::new(&mut idle).poll(cx).is_ready() {
                return Poll::Ready(ConnectionEnd::IdleTimeout);
            }
            Poll::Pending
        })
        .await
    }
}

/// Makes the operating system close a connection whose client does not acknowledge sent data.
///
/// Without this timeout, an event stream to a client that has disappeared would stay open for a long time.
fn set_acknowledgement_timeout(stream: &TcpStream) {
    #[cfg(target_os = "linux")]
    {
        let milliseconds = u32::try_from(ACKNOWLEDGEMENT_TIMEOUT.as_millis()).unwrap_or(u32::MAX);
        let _ = rustix::net::sockopt::set_tcp_user_timeout(stream, milliseconds);
    }
    #[cfg(unix)]
    let _ = rustix::net::sockopt::set_socket_keepalive(stream, true);
    #[cfg(not(unix))]
    let _ = stream;
}

/// Returns the HTTP version of a client, which is detected without consuming bytes from the socket.
async fn protocol_of(stream: &TcpStream) -> io::Result<Protocol> {
    let mut first = [0; HTTP2_PREFACE.len()];
    let mut pause = Duration::from_millis(5);
    loop {
        let count = stream.peek(&mut first).await?;
        if count == 0 || !HTTP2_PREFACE.starts_with(&first[..count]) {
            return Ok(Protocol::Http1);
        }
        if count == HTTP2_PREFACE.len() {
            return Ok(Protocol::Http2);
        }
        // A client that sends no more has sent half a request of HTTP/1.1, if anything.
        if stream.ready(Interest::READABLE).await?.is_read_closed() {
            return Ok(Protocol::Http1);
        }
        // The rest of the preface is on its way; the socket is readable all the while.
        sleep(pause).await;
        pause = (2 * pause).min(Duration::from_secs(1));
    }
}

/// Connection of a client, with counters of its requests, from which its idle time is determined.
///
/// Connections are used behind an `Arc`, so that futures that contain a connection are small.
pub(super) struct ClientConnection {
    service: HttpService,
    /// Address of the client.
    remote: RemoteAddress,
    /// Number of requests received so far.
    received_requests: AtomicUsize,
    /// Number of requests whose responses were sent completely.
    answered_requests: AtomicUsize,
}

impl ClientConnection {
    pub(super) fn new(service: HttpService, remote: SocketAddr) -> Arc<Self> {
        Arc::new(Self {
            service,
            remote: RemoteAddress(remote),
            received_requests: AtomicUsize::new(0),
            answered_requests: AtomicUsize::new(0),
        })
    }

    /// Returns true if the connection has received a request.
    fn was_used(&self) -> bool {
        self.received_requests.load(Ordering::Relaxed) > 0
    }
}

/// Future that completes when a connection has been idle for the timeout or slightly longer: no request was received,
/// and no request was being served.
struct IdleTimeout {
    /// Connection that is observed.
    client: Arc<ClientConnection>,
    /// Timer of the next check.
    sleep: Pin<Box<Sleep>>,
    /// Time between two checks.
    interval: Duration,
    /// Number of received requests at the last check.
    last_count: usize,
    /// Number of consecutive checks that have found the connection idle.
    idle_checks: u32,
}

impl IdleTimeout {
    fn new(client: Arc<ClientConnection>, limit: Duration) -> Self {
        let interval = limit / TIMERS_PER_LIMIT;
        Self {
            client,
            sleep: Box::pin(sleep(interval)),
            interval,
            last_count: 0,
            idle_checks: 0,
        }
    }
}

impl Future for IdleTimeout {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        while self.sleep.as_mut().poll(cx).is_ready() {
            let begun = self.client.received_requests.load(Ordering::Relaxed);
            let is_served = begun != self.client.answered_requests.load(Ordering::Relaxed);
            let is_idle = begun == self.last_count && !is_served;
            self.last_count = begun;
            self.idle_checks = if is_idle { self.idle_checks + 1 } else { 0 };
            if self.idle_checks == TIMERS_PER_LIMIT {
                return Poll::Ready(());
            }
            let next = clock::end_of(self.interval);
            self.sleep.as_mut().reset(next);
        }
        Poll::Pending
    }
}

/// Service of hyper that responds to the requests of a connection.
struct Requests {
    /// True if large responses are compressed.
    #[cfg(feature = "compression")]
    compression: bool,
    /// Connection to which the requests belong.
    client: Arc<ClientConnection>,
}

impl Requests {
    /// Returns true if the heads of requests are passed on with the address of the client.
    fn shows_heads(&self) -> bool {
        #[cfg(feature = "compression")]
        if self.compression {
            return true;
        }
        self.client.service.shows_heads()
    }
}

impl hyper::service::Service<Request<Incoming>> for Requests {
    type Response = Response<BusyBody>;
    type Error = Infallible;
    type Future = Pin<Box<dyn Future<Output = Result<Self::Response, Infallible>> + Send>>;

    fn call(&self, request: Request<Incoming>) -> Self::Future {
        let (mut parts, body) = request.into_parts();
        let remote = self.client.remote;
        if self.shows_heads() {
            parts.extensions.insert(remote);
        }
        let parts = Arc::new(parts);
        self.client
            .received_requests
            .fetch_add(1, Ordering::Relaxed);
        let in_use = ResponseEndGuard(Arc::clone(&self.client));
        #[cfg(feature = "compression")]
        let compression = self.compression;
        // On the heap while the request is served, so that idle connections are small.
        Box::pin(async move {
            let service = &in_use.0.service;
            #[cfg(feature = "compression")]
            let response = if compression {
                compress(service.clone(), Arc::unwrap_or_clone(parts), body).await
            } else {
                service
                    .respond_to(parts, Some(remote), body)
                    .await
                    .map(SentBody::Left)
            };
            #[cfg(not(feature = "compression"))]
            let response = service.respond_to(parts, Some(remote), body).await;
            Ok(response.map(|body| BusyBody {
                body,
                _in_use: in_use,
            }))
        })
    }
}

/// Responds to a request; compresses the response if it is large enough and the client accepts gzip.
#[cfg(feature = "compression")]
async fn compress(service: HttpService, parts: Parts, body: Incoming) -> Response<SentBody> {
    use compression::predicate::{NotForContentType, Predicate as _, SizeAbove};
    use tower_service::Service as _;

    let worth = SizeAbove::new(MIN_COMPRESSED_BYTES).and(NotForContentType::SSE);
    let mut service = compression::Compression::new(service).compress_when(worth);
    let request = Request::from_parts(parts, body);
    let Ok(response) = service.call(request).await;
    response.map(SentBody::Right)
}

/// Guard that counts a response as completely sent when dropped.
struct ResponseEndGuard(Arc<ClientConnection>);

impl Drop for ResponseEndGuard {
    fn drop(&mut self) {
        self.0.answered_requests.fetch_add(1, Ordering::Relaxed);
    }
}

/// Response body that keeps its connection from being idle until the body ends.
struct BusyBody {
    body: SentBody,
    /// Guard that counts the response as completely sent when the body is dropped.
    _in_use: ResponseEndGuard,
}

impl Body for BusyBody {
    type Data = Bytes;
    type Error = <SentBody as Body>::Error;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Self::Error>>> {
        Pin::new(&mut self.body).poll_frame(cx)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}
