//! Functions that relay messages for clients with and without sessions: client metadata, progress, results of type
//! `input_required`.
//!
//! [`SessionCallState`] is the state of a call that waits for the answers of a client with a session.

use std::sync::Arc;

use mcp_exact_session::{
    IncomingRequest, InputRequest, Json, JsonObject, PeerError, RawResult, RequestKey, SendError,
    SessionInfo, TraceContext,
};
use mcp_exact_transport::{ProgressCallback, RequestContext, ServerHandle};
use parking_lot::Mutex;

use crate::around::hooks::MessageHooks;
use crate::around::target::Target;

/// Returns the members of `_meta` by which a request of 2026-07-28 identifies its client (`basic`, "Per-Request
/// Protocol Fields").
pub(crate) fn client_meta(client: &SessionInfo) -> JsonObject {
    let mut meta = JsonObject::new();
    let capabilities = client.capabilities.clone();
    meta.insert("io.modelcontextprotocol/clientCapabilities", capabilities);
    if let Some(info) = &client.implementation {
        meta.insert("io.modelcontextprotocol/clientInfo", info.clone());
    }
    meta
}

/// Client request that receives the progress of an upstream request. A retry of the client replaces the original
/// request.
#[derive(Clone)]
pub(crate) struct ProgressReceiver(Arc<Mutex<(ServerHandle, RequestKey)>>);

impl ProgressReceiver {
    pub(crate) fn new(client: &ServerHandle, request: RequestKey) -> Self {
        Self(Arc::new(Mutex::new((client.clone(), request))))
    }

    /// Replaces the request by a retry.
    pub(crate) fn replace(&self, client: &ServerHandle, request: RequestKey) {
        *self.0.lock() = (client.clone(), request);
    }

    /// Returns the callback that relays progress, if the request has a `progressToken`. Progress notifications that
    /// exceed the queue of a slow client are dropped.
    pub(crate) fn callback(
        &self,
        request: &IncomingRequest<RequestContext>,
        hooks: MessageHooks,
    ) -> Option<ProgressCallback> {
        let meta = request.param("_meta").and_then(|meta| meta.object());
        meta?.find("progressToken")?;
        let receiver = self.clone();
        Some(Box::new(move |progress| {
            let Some(progress) = hooks.progress(progress) else {
                return;
            };
            let (client, key) = receiver.0.lock().clone();
            if let Err(error) = client.progress(key, &progress) {
                tracing::debug!(%error, "progress was not forwarded");
            }
        }))
    }
}

/// Returns the trace context for servers: the context of the current span, if spans are exported, or else
/// the context of the client.
pub(crate) fn trace(request: &IncomingRequest<RequestContext>) -> Option<TraceContext> {
    let of_client = client_trace(request);
    #[cfg(feature = "opentelemetry")]
    if let Some(mut own) = mcp_exact_transport::telemetry::current_trace() {
        own.baggage = of_client.and_then(|trace| trace.baggage);
        return Some(own);
    }
    of_client
}

/// Returns the trace context in the headers of an HTTP request (W3C Trace Context). Returns `None` if `_meta` of the
/// request has a trace context, because `_meta` is relayed with the params.
fn client_trace(request: &IncomingRequest<RequestContext>) -> Option<TraceContext> {
    let meta = request.param("_meta").and_then(|meta| meta.object());
    if meta.is_some_and(|meta| meta.find("traceparent").is_some()) {
        return None;
    }
    let header = |name| request.context().app_data.header(name);
    let mut trace = TraceContext::new(header("traceparent")?)?;
    trace.tracestate = header("tracestate").map(str::to_owned);
    trace.baggage = header("baggage").map(str::to_owned);
    Some(trace)
}

/// Returns the URI of the resource that a request names.
pub(crate) fn uri_of(request: &IncomingRequest<RequestContext>) -> Option<String> {
    Target::of(request.method(), request.params()).uri()
}

/// Sends a notification with these params, unless a conversion or a hook has refused them, and logs why it was not sent.
pub(crate) fn notify<T>(
    method: &str,
    params: Result<Option<JsonObject>, PeerError>,
    send: impl FnOnce(Option<JsonObject>) -> Result<T, SendError>,
) {
    let sent = params
        .map_err(|error| error.message().to_owned())
        .and_then(|params| send(params).map_err(|error| error.to_string()));
    if let Err(error) = sent {
        tracing::debug!(error, method, "a notification was not forwarded");
    }
}

/// Returns the error for a request of the server that its client did not answer.
pub(crate) fn missing_client_answer_error() -> PeerError {
    PeerError::internal("the client gave no answer")
}

/// Result of type `input_required` (2026-07-28, `basic/patterns/mrtr`).
pub(crate) struct InputRequired {
    /// Input requests, by their keys in `inputRequests`.
    pub(crate) requests: Vec<(String, InputRequest)>,
    /// `requestState` of the server, unchanged.
    state: Option<Json>,
}

/// Parses a result of type `input_required`; `None` for other results.
pub(crate) fn input_required(result: &RawResult) -> Option<InputRequired> {
    let names = ["resultType", "inputRequests", "requestState"];
    let [kind, asks, state] = result.object().view().find_each(names);
    if kind?.as_str()? != "input_required" {
        return None;
    }
    let asks = asks.and_then(|asks| asks.object());
    Some(InputRequired {
        requests: input_requests(&asks.map(|asks| asks.to_object()).unwrap_or_default()),
        state: state.map(|state| state.to_json()),
    })
}

/// Parses the member `inputRequests` of a result; invalid entries are omitted.
pub(crate) fn input_requests(asks: &JsonObject) -> Vec<(String, InputRequest)> {
    let asks = asks.view();
    let asks = asks.iter().filter_map(|(name, ask)| {
        let [method, params] = ask.object()?.find_each(["method", "params"]);
        let params = params.and_then(|params| params.object());
        let params = params.map(|params| params.to_object());
        let ask = InputRequest::new(method?.as_str()?, params);
        Some((name.into_owned(), ask))
    });
    asks.collect()
}

impl InputRequired {
    /// Returns the state that the client's endpoint stores until the answers have arrived: the name of the server, its
    /// `requestState`, and the methods of the input requests.
    pub(crate) fn session_state(&self, server: &str) -> String {
        let methods = self
            .requests
            .iter()
            .map(|(name, ask)| (name, Json::string(&ask.method)));
        let mut kept = JsonObject::from_iter([("methods", JsonObject::from_iter(methods))]);
        kept.insert("server", Json::string(server));
        if let Some(state) = &self.state {
            kept.insert("state", state.clone());
        }
        kept.text().to_owned()
    }
}

/// State of a call that waits for the answers of a client with a session.
pub(crate) struct SessionCallState {
    /// Methods of the input requests, by their keys in `inputRequests`.
    methods: JsonObject,
    /// Name of the server that has returned the input requests.
    pub(crate) server: String,
    /// `requestState` of the server, unchanged.
    pub(crate) state: Option<Json>,
}

impl SessionCallState {
    /// Parses the text that [`InputRequired::session_state`] has written.
    pub(crate) fn read(text: &str) -> Option<Self> {
        let kept: JsonObject = text.parse().ok()?;
        let methods = kept
            .get("methods")
            .and_then(|methods| methods.try_into().ok());
        let server = kept.view().find("server")?.as_str()?.into_owned();
        Some(Self {
            methods: methods?,
            server,
            state: kept.get("state"),
        })
    }

    /// Returns the method of the input request with this key; empty if there is none.
    pub(crate) fn method_of(&self, name: &str) -> String {
        let method = self
            .methods
            .view()
            .find(name)
            .and_then(|method| method.as_str());
        method.map_or_else(String::new, |method| method.into_owned())
    }
}
