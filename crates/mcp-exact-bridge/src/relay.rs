//! Parts of relaying that every client needs: the sender of a request, progress, questions inside of results, filters.
//!
//! Pure functions, and the state that a call keeps while a client with a session answers.

use std::collections::BTreeSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_exact_session::{
    CallOptions, IncomingRequest, InputRequest, Json, JsonObject, Outcome, PeerError, RawResult,
    RequestKey, SendError, SessionInfo, TraceContext,
};
use mcp_exact_transport::{ProgressCallback, RequestContext, ServerHandle};

use crate::upstream::Connection;

/// Returns the members by which a request of 2026-07-28 states its client (`basic`, "Per-Request Protocol Fields").
pub(crate) fn client_meta(client: &SessionInfo) -> JsonObject {
    let mut meta = JsonObject::new();
    let capabilities = client.capabilities.clone();
    meta.insert("io.modelcontextprotocol/clientCapabilities", capabilities);
    if let Some(info) = &client.info {
        meta.insert("io.modelcontextprotocol/clientInfo", info.clone());
    }
    meta
}

/// Request of a client that gets the progress of an upstream request. A retry takes the place of the request before.
#[derive(Clone)]
pub(crate) struct ProgressReceiver(Arc<Mutex<(ServerHandle, RequestKey)>>);

impl ProgressReceiver {
    pub(crate) fn new(client: &ServerHandle, request: RequestKey) -> Self {
        Self(Arc::new(Mutex::new((client.clone(), request))))
    }

    fn lock(&self) -> MutexGuard<'_, (ServerHandle, RequestKey)> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Replaces the request.
    pub(crate) fn replace(&self, client: &ServerHandle, request: RequestKey) {
        *self.lock() = (client.clone(), request);
    }

    /// Returns the callback that relays progress, if the request wants any. A client with a slow connection misses some.
    pub(crate) fn callback(
        &self,
        request: &IncomingRequest<RequestContext>,
    ) -> Option<ProgressCallback> {
        let meta = request.param("_meta").and_then(|meta| meta.object());
        meta?.find("progressToken")?;
        let receiver = self.clone();
        Some(Box::new(move |progress| {
            let (client, key) = receiver.lock().clone();
            if let Err(error) = client.progress(key, progress) {
                tracing::debug!(%error, "progress was not handed on");
            }
        }))
    }
}

/// Returns the trace that a request belongs to by the headers of its HTTP request (W3C Trace Context), for servers of 2026-07-28.
/// What its `_meta` says passes with its params.
pub(crate) fn trace(request: &IncomingRequest<RequestContext>) -> Option<TraceContext> {
    let meta = request.param("_meta").and_then(|meta| meta.object());
    if meta.is_some_and(|meta| meta.find("traceparent").is_some()) {
        return None;
    }
    let header = |name| request.context().cx.header(name);
    let mut trace = TraceContext::new(header("traceparent")?)?;
    trace.tracestate = header("tracestate").map(str::to_owned);
    trace.baggage = header("baggage").map(str::to_owned);
    Some(trace)
}

/// Returns the URI that a request names.
pub(crate) fn uri(params: Option<&JsonObject>) -> Option<String> {
    let uri = params?.view().find("uri")?;
    Some(uri.as_str()?.into_owned())
}

/// Subscribes to resources at a server of a revision with sessions.
pub(crate) fn subscribe_again(connection: &Connection, uris: &BTreeSet<String>) {
    for uri in uris {
        let params = JsonObject::from_iter([("uri", Json::string(uri))]);
        let subscribing = connection.client.request(
            "resources/subscribe",
            Some(params),
            CallOptions::default(),
            None,
        );
        let uri = uri.clone();
        tokio::spawn(async move {
            let outcome = match subscribing {
                Ok(subscribing) => subscribing.await,
                Err(_) => Outcome::Lost,
            };
            if !matches!(outcome, Outcome::Result(_)) {
                tracing::warn!(uri, ?outcome, "a resource is not subscribed to");
            }
        });
    }
}

/// A call failed.
pub(crate) enum Failed {
    /// Its connection was lost before anything was sent.
    Unsent,
    /// With this error for the client.
    Error(PeerError),
}

impl From<PeerError> for Failed {
    fn from(error: PeerError) -> Self {
        Self::Error(error)
    }
}

/// Says that a request was not sent to the server.
pub(crate) fn not_sent(error: &SendError) -> PeerError {
    match error {
        SendError::Params { .. } => PeerError::invalid_params(error.to_string()),
        SendError::Closed => connection_lost(),
        _ => PeerError::internal(format!("the server cannot be asked: {error}")),
    }
}

/// Says that a session has no server any more.
pub(crate) fn connection_lost() -> PeerError {
    PeerError::internal(
        "the connection of this session to the server was lost; begin a new session",
    )
}

/// Says why the server gave no answer.
pub(crate) fn no_answer(outcome: &Outcome) -> PeerError {
    PeerError::internal(match outcome {
        Outcome::TimedOut => "the server gave no answer in time",
        Outcome::Lost => {
            "the connection to the server was lost before it answered; it may have done the work"
        }
        _ => "the request was cancelled on its way to the server",
    })
}

/// Result of type `input_required` (2026-07-28, `basic/patterns/mrtr`).
pub(crate) struct InputRequired {
    pub(crate) asks: Vec<(String, InputRequest)>,
    state: Option<Json>,
}

/// Reads a result of type `input_required`; `None` for other results.
pub(crate) fn input_required(result: &RawResult) -> Option<InputRequired> {
    let names = ["resultType", "inputRequests", "requestState"];
    let [kind, asks, state] = result.object().view().find_each(names);
    if kind?.as_str()? != "input_required" {
        return None;
    }
    let asks = asks.and_then(|asks| asks.object()).unwrap_or_default();
    let asks = asks.iter().filter_map(|(name, ask)| {
        let [method, params] = ask.object()?.find_each(["method", "params"]);
        let params = params.and_then(|params| params.object());
        let params = params.map(|params| params.to_object());
        let ask = InputRequest::new(method?.as_str()?, params);
        Some((name.into_owned(), ask))
    });
    Some(InputRequired {
        asks: asks.collect(),
        state: state.map(|state| state.to_json()),
    })
}

impl InputRequired {
    /// Returns the state that the client's endpoint keeps until the answers have arrived: the name of the server, its state, and
    /// the questions.
    pub(crate) fn session_state(&self, server: &str) -> String {
        let methods = self
            .asks
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

/// State of a call while a client with a session answers.
pub(crate) struct Kept {
    methods: JsonObject,
    /// Name of the server that has asked.
    pub(crate) server: String,
    /// State of the server, exactly as it came.
    pub(crate) state: Option<Json>,
}

impl Kept {
    /// Reads what [`InputRequired::session_state`] has written.
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

    /// Returns the method of the question of this name.
    pub(crate) fn method_of(&self, name: &str) -> String {
        let method = self
            .methods
            .view()
            .find(name)
            .and_then(|method| method.as_str());
        method.map_or_else(String::new, |method| method.into_owned())
    }
}

/// Returns the params of `subscriptions/listen` for every list that a server announces and for these resources; `None` if that
/// is nothing.
pub(crate) fn filter_of<'a>(
    server: &JsonObject,
    uris: impl Iterator<Item = &'a String>,
) -> Option<JsonObject> {
    let lists = [
        ("tools", "toolsListChanged"),
        ("prompts", "promptsListChanged"),
        ("resources", "resourcesListChanged"),
    ];
    let mut filter = JsonObject::new();
    for (capability, member) in lists {
        let declared = server
            .view()
            .find(capability)
            .and_then(|declared| declared.object());
        let changes = declared.and_then(|declared| declared.find("listChanged"));
        if changes.is_some_and(|changes| changes.text() == "true") {
            filter.insert(member, true);
        }
    }
    let uris: Vec<String> = uris.cloned().collect();
    if !uris.is_empty() {
        filter.insert("resourceSubscriptions", Json::from_encode(&uris));
    }
    (!filter.is_empty()).then(|| JsonObject::from_iter([("notifications", filter)]))
}
