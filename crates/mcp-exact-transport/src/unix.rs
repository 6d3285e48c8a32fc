//! Unix sockets: a listener that serves all connecting clients, and a client.
//!
//! Messages are framed as on stdio. The permissions of the socket file determine which users may connect.

use std::future::Future;
use std::io;
use std::path::Path;
use std::sync::Arc;

use mcp_exact_session::{CachedNegotiation, ClientSettings, ServerSettings};
use tokio::net::UnixStream;
use tokio::net::unix::{OwnedReadHalf, OwnedWriteHalf};
use tokio::sync::{Semaphore, watch};
use tokio::task::{JoinHandle, JoinSet};

use crate::accept::wait_after_accept_error;
use crate::connect::connect;
use crate::duplex::{ConnectionOptions, serve};
use crate::endpoint::{ClientHandle, ClientHandler, ConnectError, ServerHandler};
use crate::line::LineTransport;

/// Transport over a connected Unix socket.
pub type UnixTransport = LineTransport<OwnedReadHalf, OwnedWriteHalf>;

/// Creates a transport over a connected socket.
pub fn unix_transport(stream: UnixStream, message_bytes: usize) -> UnixTransport {
    let (reader, writer) = stream.into_split();
    LineTransport::new(reader, writer, message_bytes).with_name("unix")
}

/// Listener for clients on a Unix socket.
pub struct UnixServer {
    /// The listening socket.
    listener: tokio::net::UnixListener,
    /// Maximum number of clients that are served at the same time.
    connections: usize,
    /// Time limits of each connection.
    options: ConnectionOptions,
}

impl UnixServer {
    /// Binds a socket to a path. A socket file at this path on which no process listens is replaced.
    ///
    /// # Errors
    ///
    /// An IO error if another process listens on the socket, the file is not a socket, or the socket cannot be created.
    pub async fn bind(path: impl AsRef<Path>) -> io::Result<Self> {
        let path = path.as_ref();
        let bound = tokio::net::UnixListener::bind(path);
        let listener = match bound {
            Err(error) if error.kind() == io::ErrorKind::AddrInUse => {
                use std::os::unix::fs::FileTypeExt;
                let is_socket = std::fs::symlink_metadata(path)?.file_type().is_socket();
                let connected = UnixStream::connect(path).await;
                let refused = matches!(&connected, Err(error) if error.kind() == io::ErrorKind::ConnectionRefused);
                if !is_socket || !refused {
                    return Err(error);
                }
                std::fs::remove_file(path)?;
                tokio::net::UnixListener::bind(path)?
            }
            bound => bound?,
        };
        Ok(Self {
            listener,
            connections: 64,
            options: ConnectionOptions::default(),
        })
    }

    /// Sets the maximum number of clients that are served at the same time; 64 by default. Further clients wait until
    /// another client disconnects.
    #[must_use]
    pub fn connections(mut self, connections: usize) -> Self {
        self.connections = connections;
        self
    }

    /// Sets the time limits of each connection.
    #[must_use]
    pub fn options(mut self, options: ConnectionOptions) -> Self {
        self.options = options;
        self
    }

    /// Serves clients until `shutdown` completes, and then answers requests in flight.
    ///
    /// # Errors
    /// An IO error if the listener has failed.
    pub async fn serve(
        self,
        settings: Arc<ServerSettings>,
        handler: Arc<dyn ServerHandler>,
        shutdown: impl Future<Output = ()> + Send,
    ) -> io::Result<()> {
        let (stop, stopped) = watch::channel(());
        let permits = Arc::new(Semaphore::new(self.connections.min(Semaphore::MAX_PERMITS)));
        let mut tasks = JoinSet::new();
        let mut shutdown = std::pin::pin!(shutdown);
        let result = loop {
            let accept = async {
                let permit = Arc::clone(&permits).acquire_owned().await;
                (permit, self.listener.accept().await)
            };
            let (permit, accepted) = tokio::select! {
                () = &mut shutdown => break Ok(()),
                _ = tasks.join_next(), if !tasks.is_empty() => continue,
                accepted = accept => accepted,
            };
            let stream = match accepted {
                Ok((stream, _)) => stream,
                Err(error) => match wait_after_accept_error(error).await {
                    Ok(()) => continue,
                    Err(error) => break Err(error),
                },
            };
            let limits = &settings.limits;
            let transport = unix_transport(stream, limits.message_bytes).with_budget(limits);
            let (settings, handler) = (Arc::clone(&settings), Arc::clone(&handler));
            let (options, mut stopped) = (self.options, stopped.clone());
            tasks.spawn(async move {
                let stop = async move {
                    let _ = stopped.changed().await;
                };
                // A connection that breaks concerns nobody else.
                let _ = serve(settings, handler, transport, options, stop).await;
                drop(permit);
            });
        };
        // Who connects now is refused at once, instead of waiting for nobody.
        drop(self.listener);
        drop(stop);
        while tasks.join_next().await.is_some() {}
        result
    }
}

/// Connects a client to a server on a Unix socket.
///
/// # Errors
/// [`ConnectError`] if no server listens on the socket.
pub async fn connect_unix(
    path: impl AsRef<Path>,
    settings: Arc<ClientSettings>,
    prior: Option<&CachedNegotiation>,
    handler: Arc<dyn ClientHandler>,
) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
    let path = path.as_ref();
    let stream = UnixStream::connect(path).await.map_err(|error| {
        ConnectError::Transport(format!("cannot connect to {}: {error}", path.display()))
    })?;
    let limits = &settings.limits;
    let transport = unix_transport(stream, limits.message_bytes).with_budget(limits);
    let options = ConnectionOptions::default();
    Ok(connect(settings, prior, handler, transport, options))
}
