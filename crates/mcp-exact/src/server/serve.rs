//! Functions that serve a server over the transports of `mcp-exact-transport`.
//!
//! Each function serves a built server and returns when its connections have ended.

use std::future::pending;
use std::pin::Pin;
use std::sync::Arc;

use mcp_exact_transport as transport;
use transport::{ConnectionOptions, ServeError, ServerHandler, Transport};

use super::Server;
use crate::protocol::ServerSettings;

impl Server {
    /// Returns the settings and the event handler of an endpoint, for transports without a method in this crate.
    pub fn endpoint(&self) -> (Arc<ServerSettings>, Arc<dyn ServerHandler>) {
        (Arc::clone(&self.0.settings), Arc::new(self.clone()))
    }

    /// Runs the functions of [`on_start`](crate::ServerBuilder::on_start) and resumes the unfinished tasks of an
    /// earlier process. [`serve_stdio`](Self::serve_stdio) and [`serve_http`](Self::serve_http) call this method
    /// themselves; applications with other transports must call this method once, before the first request.
    ///
    /// # Errors
    /// The error of the first function that fails; the later functions do not run.
    pub fn start(&self) -> impl Future<Output = crate::Result> + Send {
        boxed_future(async move {
            for hook in &self.0.start_hooks {
                hook(self.clone()).await?;
            }
            match self.resume_tasks().await {
                Ok(0) => {}
                Ok(tasks) => tracing::info!(tasks, "tasks of an earlier process are resumed"),
                Err(error) => {
                    tracing::error!(%error, "tasks of an earlier process are not resumed");
                }
            }
            Ok(())
        })
    }

    /// Runs the functions of [`on_shutdown`](crate::ServerBuilder::on_shutdown). Applications that have called
    /// [`start`](Self::start) must call this method once, after the last reply.
    pub async fn shutdown(&self) {
        for hook in self.0.shutdown_hooks.iter().rev() {
            if let Err(error) = hook(self.clone()).await {
                tracing::error!(%error, "a function of `on_shutdown` failed");
            }
        }
    }

    /// Serves one client over a transport, until the input of the transport ends or the connection breaks. Calls in
    /// flight are answered first, within the time limit of [`ConnectionOptions`].
    ///
    /// # Errors
    /// [`ServeError`].
    pub async fn serve(&self, transport: impl Transport) -> Result<(), ServeError> {
        let (settings, handler) = self.endpoint();
        let options = ConnectionOptions::default();
        transport::serve(settings, handler, transport, options, pending()).await
    }

    /// Serves the client on standard input and output, until the end of input, SIGTERM or Ctrl-C. Meanwhile, other
    /// output of the process goes to standard error.
    ///
    /// # Errors
    /// [`ServeError`], or the error of a function of [`on_start`](crate::ServerBuilder::on_start).
    #[cfg(feature = "stdio")]
    pub fn serve_stdio(&self) -> impl Future<Output = crate::Result> + Send {
        boxed_future(async move {
            self.start().await?;
            let (settings, handler) = self.endpoint();
            let served = transport::serve_stdio(settings, handler).await;
            self.shutdown().await;
            Ok(served?)
        })
    }

    /// Returns a `tower` service for Streamable HTTP and HTTP+SSE, which an application can mount.
    ///
    /// With [bearer tokens](crate::ServerBuilder::bearer_tokens) or
    /// [`authenticate`](transport::http::server::HttpServerOptions::authenticate), calls of tools, resources and
    /// prompts that have a [`scope`](crate::Tool::scope), subscriptions to such resources, and completions of such
    /// prompts and templates require this scope: messages without the scope are rejected with status 403 before they
    /// reach the handler. Requests about the task of such a tool are answered with an error if the scope was not
    /// granted. If the options set [`required_scopes`](transport::http::server::HttpServerOptions::required_scopes),
    /// that function replaces all of these checks.
    #[cfg(feature = "http-server")]
    pub fn http(
        &self,
        mut options: transport::http::server::HttpServerOptions,
    ) -> transport::http::server::HttpService {
        let (settings, handler) = self.endpoint();
        let server = self.clone();
        if options.authenticate.is_none()
            && let Some(bearer) = &self.0.bearer
        {
            options.authenticate = Some(Arc::clone(bearer) as _);
        }
        if options.required_scopes.is_none() {
            options.required_scopes =
                Some(Arc::new(move |message| server.required_scopes(message)));
            let authenticate = options.authenticate.take();
            options.authenticate =
                authenticate.map(|one| -> Arc<dyn transport::http::server::Authenticate> {
                    Arc::new(super::scopes::ScopeAuthenticator(one))
                });
        }
        let service = transport::http::server::HttpService::new(settings, handler, options);
        self.listeners().add_change_bus(&service);
        service
    }

    /// Returns a service for Streamable HTTP with the default options, which an application can mount at a path:
    ///
    /// ```no_run
    /// use axum::Router;
    /// use mcp_exact::Server;
    ///
    /// # async fn run() -> mcp_exact::Result {
    /// let server = Server::builder("demo", "1.0.0").build()?;
    /// // Runs the functions of `on_start`, and resumes tasks.
    /// server.start().await?;
    /// let service = server.http_at("/mcp");
    /// let application = Router::new().nest_service("/mcp", service.clone());
    /// let listener = tokio::net::TcpListener::bind("127.0.0.1:8080").await?;
    /// axum::serve(listener, application)
    ///     .with_graceful_shutdown(async move {
    ///         let _ = tokio::signal::ctrl_c().await;
    ///         // Ends the streams that clients keep open, for which `axum` would wait.
    ///         service.drain();
    ///     })
    ///     .await?;
    /// // Runs the functions of `on_shutdown`.
    /// server.shutdown().await;
    /// # Ok(())
    /// # }
    /// ```
    #[cfg(feature = "http-server")]
    pub fn http_at(&self, path: impl Into<String>) -> transport::http::server::HttpService {
        self.http(transport::http::server::HttpServerOptions {
            path_prefix: path.into(),
            ..transport::http::server::HttpServerOptions::default()
        })
    }

    /// Serves clients over HTTP on an address such as `127.0.0.1:8080`, until SIGTERM or Ctrl-C. Only requests whose
    /// header `Host` names a loopback address are accepted; use [`http`](Self::http) for other hosts and options.
    ///
    /// Every path of the address is the server, so clients may use `http://127.0.0.1:8080/mcp`, as is usual.
    /// [`http_at`](Self::http_at) is for one path beside others.
    ///
    /// # Errors
    /// [`ServeError`] when the address cannot be bound or the listener fails, or the error of a function of
    /// [`on_start`](crate::ServerBuilder::on_start).
    #[cfg(feature = "http-server")]
    pub async fn serve_http(&self, address: impl tokio::net::ToSocketAddrs) -> crate::Result {
        // Start functions must not run if the address cannot be bound.
        let listener = transport::http::server::HttpListener::bind(address).await?;
        self.serve_listener(listener).await
    }

    /// Serves clients over HTTP like [`serve_http`](Self::serve_http), on a listener that is already bound. This is
    /// useful with port 0, because the listener knows its address.
    ///
    /// # Errors
    /// [`ServeError`] when the listener fails, or the error of a function of [`on_start`](crate::ServerBuilder::on_start).
    #[cfg(feature = "http-server")]
    pub async fn serve_listener(
        &self,
        listener: transport::http::server::HttpListener,
    ) -> crate::Result {
        self.start().await?;
        let service = self.http(transport::http::server::HttpServerOptions::default());
        let served = listener.serve(service, wait_for_termination_signal()).await;
        self.shutdown().await;
        Ok(served?)
    }
}

/// Boxes a future and erases its type. The body of an async function is compiled in every crate that calls it, together
/// with the functions that it calls generically; boxed futures are compiled once, in this crate.
fn boxed_future<'f, T>(
    future: impl Future<Output = T> + Send + 'f,
) -> Pin<Box<dyn Future<Output = T> + Send + 'f>> {
    Box::pin(future)
}

/// Completes on Ctrl-C and, on Unix, on SIGTERM.
#[cfg(feature = "http-server")]
async fn wait_for_termination_signal() {
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
