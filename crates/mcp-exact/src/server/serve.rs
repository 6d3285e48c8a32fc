//! Serving a server over the transports of `mcp-exact-transport`.
//!
//! Takes a built server; returns when its connections have ended. Decides nothing about the protocol.

use std::future::pending;
use std::sync::Arc;

use mcp_exact_transport as transport;
use transport::{ConnectionOptions, ServeError, ServerHandler, Transport};

use super::Server;
use crate::link::{Dispatcher, ServerSettings};

impl Server {
    /// Returns what transports take: the settings of endpoints and the handler of their events. For transports that this
    /// crate has no method for.
    pub fn endpoint(&self) -> (Arc<ServerSettings>, Arc<dyn ServerHandler>) {
        (self.0.settings.shared(), Dispatcher::new(self))
    }

    /// Runs what begins with serving: functions of the program, and tasks that an earlier process has left unfinished.
    #[cfg_attr(not(any(feature = "stdio", feature = "http-server")), allow(dead_code))]
    async fn begin(&self) -> crate::Result {
        for hook in &self.0.start {
            hook(self.clone()).await?;
        }
        match self.resume_tasks().await {
            Ok(0) => {}
            Ok(tasks) => tracing::info!(tasks, "tasks of an earlier process are resumed"),
            Err(error) => tracing::error!(%error, "tasks of an earlier process are not resumed"),
        }
        Ok(())
    }

    /// Runs what ends with serving.
    #[cfg_attr(not(any(feature = "stdio", feature = "http-server")), allow(dead_code))]
    async fn finish(&self) {
        for hook in self.0.shutdown.iter().rev() {
            if let Err(error) = hook(self.clone()).await {
                tracing::error!(%error, "a function of `on_shutdown` failed");
            }
        }
    }

    /// Serves one client over a transport, until its input ends or the connection breaks. Calls in flight are answered first,
    /// as long as [`ConnectionOptions`] wait.
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn serve(&self, transport: impl Transport) -> Result<(), ServeError> {
        let (settings, handler) = self.endpoint();
        let options = ConnectionOptions::default();
        transport::serve(settings, handler, transport, options, pending()).await
    }

    /// Serves the client on standard input and output, until the end of input, SIGTERM or Ctrl-C. Meanwhile, output that the
    /// program prints goes to standard error.
    ///
    /// # Errors
    /// [`ServeError`], or the error of a function of [`on_start`](crate::ServerBuilder::on_start).
    #[cfg(feature = "stdio")]
    pub async fn serve_stdio(&self) -> crate::Result {
        self.begin().await?;
        let (settings, handler) = self.endpoint();
        let served = transport::serve_stdio(settings, handler).await;
        self.finish().await;
        Ok(served?)
    }

    /// Returns the service for Streamable HTTP, and for HTTP+SSE beside it: a `tower` service, which an application can mount.
    ///
    /// With [`authenticate`](transport::http::server::HttpServerOptions::authenticate), calls of tools, resources and prompts
    /// that have a [`scope`](crate::Tool::scope) need it: without it they get status 403 and do not reach the handler.
    #[cfg(feature = "http-server")]
    pub fn http(
        &self,
        mut options: transport::http::server::HttpServerOptions,
    ) -> transport::http::server::HttpService {
        let (settings, handler) = self.endpoint();
        let server = self.clone();
        options
            .required_scopes
            .get_or_insert_with(|| Arc::new(move |message| server.required_scopes(message)));
        let service = transport::http::server::HttpService::new(settings, handler, options);
        self.listeners().announce_by(&service);
        service
    }

    /// Returns the service for Streamable HTTP with the default options, to be mounted at a path of an application:
    ///
    /// ```
    /// # use mcp_exact::Server;
    /// # let server = Server::builder("demo", "1.0.0").build()?;
    /// # fn mount(_: &str, _: mcp_exact::transport::http::server::HttpService) {}
    /// let service = server.http_at("/mcp");
    /// // In axum: Router::new().nest_service("/mcp", service)
    /// # mount("/mcp", service);
    /// # Ok::<(), mcp_exact::BuildError>(())
    /// ```
    #[cfg(feature = "http-server")]
    pub fn http_at(&self, path: impl Into<String>) -> transport::http::server::HttpService {
        self.http(transport::http::server::HttpServerOptions {
            path_prefix: path.into(),
            ..transport::http::server::HttpServerOptions::default()
        })
    }

    /// Serves clients over HTTP on an address such as `127.0.0.1:8080`, until SIGTERM or Ctrl-C. Only clients that name a
    /// loopback address as `Host` are served; [`http`](Self::http) takes other options.
    ///
    /// # Errors
    /// [`ServeError`] when the address cannot be bound or the listener fails, or the error of a function of
    /// [`on_start`](crate::ServerBuilder::on_start).
    #[cfg(feature = "http-server")]
    pub async fn serve_http(&self, address: impl tokio::net::ToSocketAddrs) -> crate::Result {
        self.begin().await?;
        let service = self.http(transport::http::server::HttpServerOptions::default());
        let listener = transport::http::server::HttpListener::bind(address).await?;
        let served = listener.serve(service, shutdown()).await;
        self.finish().await;
        Ok(served?)
    }
}

/// Completes when the process is asked to end: by Ctrl-C, and on Unix by SIGTERM.
#[cfg(feature = "http-server")]
async fn shutdown() {
    let interrupt = async {
        if tokio::signal::ctrl_c().await.is_err() {
            pending::<()>().await;
        }
    };
    #[cfg(unix)]
    let terminate = async {
        use tokio::signal::unix::{SignalKind, signal};
        match signal(SignalKind::terminate()) {
            Ok(mut signal) => drop(signal.recv().await),
            Err(_) => pending::<()>().await,
        }
    };
    #[cfg(not(unix))]
    let terminate = pending::<()>();
    tokio::select! {
        () = interrupt => {}
        () = terminate => {}
    }
}
