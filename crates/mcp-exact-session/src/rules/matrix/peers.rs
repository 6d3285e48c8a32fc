//! Endpoints of the rule matrix: in every state of the handshake, with all capabilities or none, and their reactions in a
//! word.

use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
use mcp_exact_wire::{Json, JsonObject};
use serde_json::{Value, json};
use std::fmt::Write as _;

use crate::*;

pub(super) fn object(value: Value) -> JsonObject {
    JsonObject::try_from(Json::from(value)).expect("an object")
}

/// Parameters that fit every method.
pub(super) fn params() -> Value {
    json!({
        "name": "x", "uri": "a:b", "level": "error", "data": 1, "message": "m", "maxTokens": 1, "messages": [],
        "requestedSchema": { "type": "object", "properties": {} }, "taskId": "t", "status": "working",
        "requestId": 999, "progressToken": "t", "progress": 1, "elicitationId": "e",
        "capabilities": {}, "clientInfo": { "name": "c", "version": "1" },
        "notifications": {
            "toolsListChanged": true, "promptsListChanged": true, "resourcesListChanged": true,
            "resourceSubscriptions": ["a:b"],
        },
    })
}

pub(super) fn server_capabilities() -> Value {
    json!({
        "tools": { "listChanged": true }, "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true }, "logging": {}, "completions": {},
        "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
    })
}

pub(super) fn client_capabilities() -> Value {
    let requests = json!({ "sampling": { "createMessage": {} }, "elicitation": { "create": {} } });
    json!({
        "roots": { "listChanged": true }, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} },
        "tasks": { "list": {}, "cancel": {}, "requests": requests },
    })
}

/// Peers that have declared their capabilities: both, the sender alone or the receiver alone.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaringPeers {
    Both,
    ServerOnly,
    ClientOnly,
}

impl DeclaringPeers {
    pub(super) fn of_server(self) -> Value {
        match self {
            Self::ClientOnly => json!({}),
            Self::Both | Self::ServerOnly => server_capabilities(),
        }
    }

    pub(super) fn of_client(self) -> Value {
        match self {
            Self::ServerOnly => json!({}),
            Self::Both | Self::ClientOnly => client_capabilities(),
        }
    }

    pub(super) fn without(side: Side) -> Self {
        match side {
            Side::Client => Self::ServerOnly,
            Side::Server => Self::ClientOnly,
        }
    }
}

pub(super) fn info(spec: &RevisionSpec, capabilities: Value) -> SessionInfo {
    SessionInfo {
        revision: spec.revision(),
        capabilities: object(capabilities),
        info: None,
        instructions: None,
    }
}

/// State of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    Fresh,
    Negotiated,
    Ready,
}

pub(super) fn server_on(
    spec: &RevisionSpec,
    declared: DeclaringPeers,
    state: State,
    binding: Binding,
) -> ServerEndpoint<()> {
    let mut config = ServerConfig::new(Identity::new("s", "1"));
    config.offer = Offer::of([spec.id()]).expect("known");
    config.capabilities = object(declared.of_server());
    config.log_level = Level::Debug;
    let settings = config.build().expect("a configuration");
    if spec.lifecycle() == Lifecycle::Discover || state == State::Fresh {
        return ServerEndpoint::new(settings, binding, Time::ZERO);
    }
    let mut snapshot = Snapshot::new(info(spec, declared.of_client()), 0);
    snapshot.ready = state == State::Ready;
    ServerEndpoint::resume(settings, binding, snapshot, Time::ZERO).expect("offered")
}

pub(super) fn server(spec: &RevisionSpec, declared: DeclaringPeers) -> ServerEndpoint<()> {
    server_on(spec, declared, State::Ready, Binding::Duplex)
}

pub(super) fn client_on(
    spec: &RevisionSpec,
    declared: DeclaringPeers,
    state: State,
    binding: Binding,
) -> ClientEndpoint {
    let mut config = ClientConfig::new(Identity::new("c", "1"));
    config.offer = Offer::of([spec.id()]).expect("known");
    config.capabilities = object(declared.of_client());
    let settings = config.build().expect("a configuration");
    if state == State::Fresh {
        let mut client = ClientEndpoint::new(settings, binding, None, Time::ZERO);
        of_client(&mut client);
        return client;
    }
    let snapshot = Snapshot::new(info(spec, declared.of_server()), 0);
    ClientEndpoint::resume(settings, binding, snapshot, Time::ZERO).expect("offered")
}

pub(super) fn client(spec: &RevisionSpec, declared: DeclaringPeers) -> ClientEndpoint {
    client_on(spec, declared, State::Ready, Binding::Duplex)
}

/// First word of a debug text: the name of a variant.
pub(super) fn variant(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find([' ', '(', '{']).unwrap_or(text.len());
    text[..end].to_owned()
}

pub(super) fn of_error(error: &SendError) -> String {
    match error {
        SendError::Capability { capability, .. } => format!("Capability {capability}"),
        other => variant(other),
    }
}

/// Describes a frame in a word or two.
pub(super) fn of_frame(bytes: &[u8]) -> String {
    let message: Value = serde_json::from_slice(bytes).expect("JSON");
    if let Some(method) = message["method"].as_str() {
        return format!("sends {method}");
    }
    if let Some(code) = message["error"]["code"].as_i64() {
        return code.to_string();
    }
    let result = &message["result"];
    let mut text = "result".to_owned();
    if let Some(kind) = result["resultType"].as_str() {
        write!(text, " {kind}").expect("a string");
    }
    if result.get("ttlMs").is_some() {
        text.push_str(" cached");
    }
    text
}

pub(super) fn joined(parts: Vec<String>) -> String {
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(", ")
    }
}

pub(super) fn of_server(server: &mut ServerEndpoint<()>) -> String {
    let mut parts = Vec::new();
    while let Some(event) = server.poll_event() {
        parts.push(match &event {
            ServerEvent::Violation(violation) => format!("violation {}", variant(violation)),
            ServerEvent::Request(_) | ServerEvent::Notification(_) => "program".to_owned(),
            other => variant(other),
        });
    }
    let mut bytes = Vec::new();
    while server.poll_transmit(&mut bytes).is_some() {
        parts.push(of_frame(&std::mem::take(&mut bytes)));
    }
    joined(parts)
}

pub(super) fn of_client(client: &mut ClientEndpoint) -> String {
    let mut parts = Vec::new();
    while let Some(event) = client.poll_event() {
        parts.push(match &event {
            ClientEvent::Violation(violation) => format!("violation {}", variant(violation)),
            ClientEvent::Request { .. } | ClientEvent::Notification(_) => "program".to_owned(),
            ClientEvent::Completed(_, outcome) => variant(outcome),
            other => variant(other),
        });
    }
    let mut bytes = Vec::new();
    while client.poll_transmit(&mut bytes).is_some() {
        parts.push(of_frame(&std::mem::take(&mut bytes)));
    }
    joined(parts)
}

pub(super) fn message(
    spec: &RevisionSpec,
    declared: DeclaringPeers,
    id: Option<Value>,
    method: &str,
    params: Value,
) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if let Some(id) = id {
        message["id"] = id;
        if spec.lifecycle() == Lifecycle::Discover {
            let meta = &mut message["params"]["_meta"];
            meta["io.modelcontextprotocol/protocolVersion"] = json!(spec.id());
            meta["io.modelcontextprotocol/clientCapabilities"] = declared.of_client();
        }
        if method == "initialize" {
            message["params"]["protocolVersion"] = json!(spec.id());
        }
    }
    message
}

pub(super) fn to_server(server: &mut ServerEndpoint<()>, message: &Value) {
    let text = message.to_string();
    let context = FrameContext::new(());
    server
        .receive(StreamId::DUPLEX, text.as_bytes(), context, Time::ZERO)
        .expect("open");
}

pub(super) fn to_client(client: &mut ClientEndpoint, message: &Value) {
    let text = message.to_string();
    client
        .receive(StreamId::DUPLEX, text.as_bytes(), Time::ZERO)
        .expect("open");
}

/// A server in the middle of a request with a progress token and a log level.
pub(super) fn during(
    spec: &RevisionSpec,
    declared: DeclaringPeers,
    method: &str,
) -> Option<(ServerEndpoint<()>, RequestKey)> {
    let mut server = server(spec, declared);
    let mut params = params();
    params["_meta"] = json!({ "progressToken": "t", "io.modelcontextprotocol/logLevel": "debug" });
    to_server(
        &mut server,
        &message(spec, declared, Some(json!(1)), method, params),
    );
    let key = match server.poll_event()? {
        ServerEvent::Request(request) => request.key,
        ServerEvent::Subscribed { key, .. } => key,
        _ => return None,
    };
    of_server(&mut server);
    Some((server, key))
}
