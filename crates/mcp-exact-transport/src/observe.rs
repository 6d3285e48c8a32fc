//! Spans and events for `tracing`; without the feature, all functions are empty.
//!
//! Spans and events never contain messages, arguments, headers or URL queries.

/// Returns true if the current request has a span that is recorded.
#[cfg(feature = "http-server")]
pub(crate) fn is_observed() -> bool {
    #[cfg(feature = "tracing")]
    return !tracing::Span::current().is_disabled();
    #[cfg(not(feature = "tracing"))]
    false
}

/// Records the revision, if known, and the number of the session in the span of the current request.
///
/// The number of a session is unique in this process; session ids are secrets and are not recorded.
#[cfg(feature = "http-server")]
pub(crate) fn request_of(revision: Option<&str>, session: Option<u64>) {
    #[cfg(feature = "tracing")]
    {
        let span = tracing::Span::current();
        if let Some(revision) = revision {
            span.record("mcp.protocol.version", revision);
        }
        if let Some(session) = session {
            span.record("mcp_exact.session", session);
        }
    }
    #[cfg(not(feature = "tracing"))]
    let _ = (revision, session);
}

/// Returns the method for `http.request.method`, whose values are limited.
#[cfg(all(feature = "tracing", feature = "http-server"))]
pub(crate) fn http_method(method: &http::Method) -> &'static str {
    match method.as_str() {
        "DELETE" => "DELETE",
        "GET" => "GET",
        "HEAD" => "HEAD",
        "OPTIONS" => "OPTIONS",
        "POST" => "POST",
        _ => "_OTHER",
    }
}

/// Runs `serving` in a new span for a connection, with the kind of its transport and, over HTTP, the address of its
/// client.
#[cfg(feature = "tokio")]
pub(crate) fn connection<F: Future>(
    transport: &'static str,
    remote: Option<std::net::SocketAddr>,
    serving: F,
) -> impl Future<Output = F::Output> {
    #[cfg(feature = "tracing")]
    let serving = {
        let span = tracing::debug_span!(
            "connection",
            mcp_exact.transport = transport,
            client.address = tracing::field::Empty,
            client.port = tracing::field::Empty,
        );
        if let Some(remote) = remote {
            span.record("client.address", tracing::field::display(remote.ip()));
            span.record("client.port", remote.port());
        }
        tracing::Instrument::instrument(serving, span)
    };
    #[cfg(not(feature = "tracing"))]
    let _ = (transport, remote);
    serving
}

/// Span of an HTTP session, from its start until its removal.
///
/// The span contains the number of the session in this process, because session ids are secrets.
#[cfg(feature = "http-server")]
pub(crate) struct SessionSpan {
    /// Number of the session in this process.
    number: u64,
    /// Span of the session.
    #[cfg(feature = "tracing")]
    span: tracing::Span,
}

#[cfg(feature = "http-server")]
impl SessionSpan {
    /// Starts the span as a root span, because a session belongs neither to a connection nor to its first request.
    pub(crate) fn new(number: u64) -> Self {
        Self {
            number,
            #[cfg(feature = "tracing")]
            span: tracing::debug_span!(
                parent: None,
                "session",
                mcp_exact.session = number,
                mcp.protocol.version = tracing::field::Empty,
            ),
        }
    }

    /// Records the session and its revision in the span of the current request.
    pub(crate) fn observe_request(&self, revision: Option<&str>) {
        request_of(revision, Some(self.number));
        #[cfg(feature = "tracing")]
        {
            tracing::Span::current().follows_from(&self.span);
            if let Some(revision) = revision {
                self.span.record("mcp.protocol.version", revision);
            }
        }
    }

    /// Records the end of the session.
    pub(crate) fn end(&self) {
        #[cfg(feature = "tracing")]
        tracing::debug!(parent: &self.span, "the session ends");
    }
}

/// Logs that a response carries a message although its media type is another one.
#[cfg(feature = "http-client")]
pub(crate) fn unexpected_media_type(response: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!("the server sends a message as {response}");
    #[cfg(not(feature = "tracing"))]
    let _ = response;
}

/// Logs that a GET opens no event stream although the server accepts it.
#[cfg(feature = "http-client")]
pub(crate) fn no_event_stream(response: &str) {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        "the server responds to the GET of its event stream by {response}: its own requests and notifications may not arrive"
    );
    #[cfg(not(feature = "tracing"))]
    let _ = response;
}

/// Logs that an operation of an external store, which `what` describes, has failed, and that the transport continues
/// without its result.
#[cfg(feature = "http-server")]
pub(crate) fn store_failed(what: &'static str, error: &dyn std::fmt::Display) {
    #[cfg(feature = "tracing")]
    tracing::warn!(%error, "{what} failed");
    #[cfg(not(feature = "tracing"))]
    let _ = (what, error);
}

/// Logs that a message of the change bus was dropped, because too many messages wait or a session is full.
#[cfg(feature = "http-server")]
pub(crate) fn bus_overflowed() {
    #[cfg(feature = "tracing")]
    tracing::warn!("a message of the change bus was dropped: too many wait");
}

/// Logs that a message of another process was dropped, because its sender was not found to be granted what it requires here.
#[cfg(feature = "http-server")]
pub(crate) fn forwarded_message_refused() {
    #[cfg(feature = "tracing")]
    tracing::warn!(
        "a message that another process has forwarded was dropped: it requires scopes here that were not checked there; let all processes offer the same"
    );
}

/// Logs that the application's callback for lines of standard error has panicked.
#[cfg(feature = "process")]
pub(crate) fn stderr_callback_panicked() {
    #[cfg(feature = "tracing")]
    tracing::error!("the callback for a line of standard error panicked");
}

/// Logs a line that a child process has written to its standard error.
#[cfg(feature = "process")]
pub(crate) fn stderr_line(line: &str) {
    #[cfg(feature = "tracing")]
    tracing::info!(target: "mcp_exact_transport::stderr", "{line}");
    #[cfg(not(feature = "tracing"))]
    let _ = line;
}
