//! How a client reaches its server: in memory, over a transport, as a child process, or over HTTP.

#[cfg(feature = "process")]
use std::ffi::OsString;
use std::sync::{Arc, Mutex};

use mcp_exact_transport as transport;
#[cfg(feature = "process")]
use transport::ServerCommand;
#[cfg(feature = "http-client")]
use transport::http::client::HttpEndpoint;
use transport::{ConnectionOptions, Transport, memory_pair};

use super::Client;
use super::connect::Connect;
use super::error::ClientError;
use super::link::DialFn;
#[cfg(feature = "http-client")]
use super::link::dial_http;
use crate::server::Server;
use crate::sync::lock;

/// Size of the buffer for each direction of an in-memory connection, in bytes.
const MEMORY_BYTES: usize = 256 << 10;

impl Client {
    /// Connects to a server in the same process; awaiting the builder returns a [`Client`].
    pub fn in_memory(server: &Server) -> Connect {
        let server = server.clone();
        Connect::new(Ok(Arc::new(move |settings| {
            let (local, remote) = memory_pair(MEMORY_BYTES, settings.limits.message_bytes);
            let server = server.clone();
            Ok(dial_transport(move || {
                tokio::spawn(async move {
                    if let Err(error) = server.serve(remote).await {
                        tracing::debug!(%error, "a connection in memory ended");
                    }
                });
                local
            }))
        })))
    }

    /// Connects over a transport that is created when the builder is awaited.
    pub(crate) fn over_lazily<T: Transport>(
        transport: impl FnOnce() -> T + Send + 'static,
    ) -> Connect {
        let transport = Mutex::new(Some(transport));
        Connect::new(Ok(Arc::new(move |_| {
            let transport = lock(&transport).take();
            let message = "the transport of the server serves one connection; add the server by its command or its URL";
            let transport = transport.ok_or_else(|| ClientError::Connect(message.to_owned()))?;
            Ok(dial_transport(transport))
        })))
    }

    /// Connects over a transport that `create` opens; awaiting the builder returns a [`Client`]. `create` is called
    /// for each connection, so that the client can [connect again](Connect::reconnect).
    pub fn over_with<T: Transport>(create: impl Fn() -> T + Send + Sync + 'static) -> Connect {
        let create = Arc::new(create);
        Connect::new(Ok(Arc::new(move |_| {
            let create = Arc::clone(&create);
            Ok(dial_transport(move || create()))
        })))
    }

    /// Connects over a transport, such as a Unix socket, which serves one connection; awaiting the builder returns a
    /// [`Client`].
    pub fn over(transport: impl Transport) -> Connect {
        Self::over_lazily(move || transport)
    }

    /// Starts a server as a child process and connects to it; awaiting the builder returns a [`Client`]. The process
    /// and its child processes are terminated when the connection ends.
    ///
    /// ```no_run
    /// # async fn example() -> mcp_exact::Result {
    /// use mcp_exact::Client;
    /// let client = Client::command("npx", ["-y", "@modelcontextprotocol/server-everything"]).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "process")]
    pub fn command<A: Into<OsString>>(
        program: impl Into<OsString>,
        arguments: impl IntoIterator<Item = A>,
    ) -> Connect {
        Self::spawn(ServerCommand::new(program).args(arguments))
    }

    /// Starts a server as a child process, with a configured environment, working directory and so on, and connects to
    /// it.
    #[cfg(feature = "process")]
    pub fn spawn(command: ServerCommand) -> Connect {
        Connect::new(Ok(Arc::new(move |_| {
            let command = command.clone();
            Ok(Box::new(move |config, cached, handler| {
                command.connect(config, cached, handler)
            }))
        })))
    }

    /// Connects to the HTTP endpoint of a server; awaiting the builder returns a [`Client`]. A server that supports
    /// only the HTTP+SSE transport of 2024-11-05 is detected.
    #[cfg(feature = "http-client")]
    pub fn connect(url: &str) -> Connect {
        let endpoint = HttpEndpoint::new(url);
        connect_http(endpoint.map_err(|error| ClientError::Connect(error.to_string())))
    }

    /// Connects to an HTTP endpoint with configured headers, HTTP client and so on.
    #[cfg(feature = "http-client")]
    pub fn http(endpoint: HttpEndpoint) -> Connect {
        connect_http(Ok(endpoint))
    }
}

/// Returns the function that connects over a transport.
fn dial_transport<T: Transport>(open: impl FnOnce() -> T + Send + 'static) -> DialFn {
    Box::new(move |config, cached, handler| {
        let options = ConnectionOptions::default();
        Ok(transport::connect(config, cached, handler, open(), options))
    })
}

/// Returns the builder of a client that connects to an HTTP endpoint.
#[cfg(feature = "http-client")]
fn connect_http(endpoint: Result<HttpEndpoint, ClientError>) -> Connect {
    let named = endpoint.as_ref().ok().cloned();
    let mut connect = Connect::new(endpoint.map(dial_http));
    connect.endpoint = named;
    connect
}
