//! Endpoints of the rule matrix, in every state of the handshake and with all capabilities or none, and short
//! descriptions of their reactions.

use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
use mcp_exact_wire::{Json, JsonObject};
use serde_json::{Value, json};
use std::fmt::Write as _;

use crate::*;

/// Converts a JSON value to an object.
pub(super) fn object(value: Value) -> JsonObject {
    JsonObject::try_from(Json::from(value)).expect("an object")
}

/// Returns parameters that are valid for every method.
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

/// Returns all capabilities of a server.
pub(super) fn server_capabilities() -> Value {
    json!({
        "tools": { "listChanged": true }, "prompts": { "listChanged": true },
        "resources": { "listChanged": true, "subscribe": true }, "logging": {}, "completions": {},
        "tasks": { "list": {}, "cancel": {}, "requests": { "tools": { "call": {} } } },
    })
}

/// Returns all capabilities of a client.
pub(super) fn client_capabilities() -> Value {
    let requests = json!({ "sampling": { "createMessage": {} }, "elicitation": { "create": {} } });
    json!({
        "roots": { "listChanged": true }, "sampling": { "tools": {} }, "elicitation": { "form": {}, "url": {} },
        "tasks": { "list": {}, "cancel": {}, "requests": requests },
    })
}

/// Peers that have declared all capabilities: both peers, or one of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclaringPeers {
    /// Both peers have declared all capabilities.
    Both,
    /// Only the server has declared all capabilities.
    ServerOnly,
    /// Only the client has declared all capabilities.
    ClientOnly,
}

impl DeclaringPeers {
    /// Returns the capabilities that the server declares.
    pub(super) fn declared_by_server(self) -> Value {
        match self {
            Self::ClientOnly => json!({}),
            Self::Both | Self::ServerOnly => server_capabilities(),
        }
    }

    /// Returns the capabilities that the client declares.
    pub(super) fn declared_by_client(self) -> Value {
        match self {
            Self::ServerOnly => json!({}),
            Self::Both | Self::ClientOnly => client_capabilities(),
        }
    }

    /// Returns the variant in which the peer of the role `side` declares no capabilities.
    pub(super) fn no_capabilities(side: Side) -> Self {
        match side {
            Side::Client => Self::ServerOnly,
            Side::Server => Self::ClientOnly,
        }
    }
}

/// Creates the information of a session whose remote peer has these capabilities.
pub(super) fn session_info(spec: &RevisionSpec, capabilities: Value) -> SessionInfo {
    SessionInfo {
        revision: spec.revision(),
        capabilities: object(capabilities),
        implementation: None,
        instructions: None,
    }
}

/// State of the handshake.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum State {
    /// No revision is negotiated.
    BeforeNegotiation,
    /// A revision is negotiated, and `notifications/initialized` was not sent.
    Negotiated,
    /// The handshake is complete.
    Ready,
}

/// Creates a server in a state of the handshake.
pub(super) fn server_with_binding(
    spec: &RevisionSpec,
    declared: DeclaringPeers,
    state: State,
    binding: Binding,
) -> ServerEndpoint<()> {
    let mut config = ServerConfig::new(Identity::new("s", "1"));
    config.offer = Offer::new([spec.id()]).expect("known");
    config.capabilities = object(declared.declared_by_server());
    config.log_level = Level::Debug;
    let settings = config.build().expect("a configuration");
    if spec.lifecycle() == Lifecycle::Discover || state == State::BeforeNegotiation {
        return ServerEndpoint::new(settings, binding, Time::ZERO);
    }
    let mut snapshot = Snapshot::new(session_info(spec, declared.declared_by_client()), 0);
    snapshot.is_initialized = state == State::Ready;
    ServerEndpoint::resume(settings, binding, snapshot, Time::ZERO).expect("offered")
}

/// Creates a server on a duplex stream whose handshake is complete.
pub(super) fn server(spec: &RevisionSpec, declared: DeclaringPeers) -> ServerEndpoint<()> {
    server_with_binding(spec, declared, State::Ready, Binding::Duplex)
}

/// Creates a client in a state of the handshake.
pub(super) fn client_with_binding(
    spec: &RevisionSpec,
    declared: DeclaringPeers,
    state: State,
    binding: Binding,
) -> ClientEndpoint {
    let mut config = ClientConfig::new(Identity::new("c", "1"));
    config.offer = Offer::new([spec.id()]).expect("known");
    config.capabilities = object(declared.declared_by_client());
    let settings = config.build().expect("a configuration");
    if state == State::BeforeNegotiation {
        let mut client = ClientEndpoint::new(settings, binding, None, Time::ZERO);
        describe_client_output(&mut client);
        return client;
    }
    let snapshot = Snapshot::new(session_info(spec, declared.declared_by_server()), 0);
    ClientEndpoint::resume(settings, binding, snapshot, Time::ZERO).expect("offered")
}

/// Creates a client on a duplex stream whose handshake is complete.
pub(super) fn client(spec: &RevisionSpec, declared: DeclaringPeers) -> ClientEndpoint {
    client_with_binding(spec, declared, State::Ready, Binding::Duplex)
}

/// Returns the name of a variant: the first word of its debug text.
pub(super) fn variant_name(value: &impl std::fmt::Debug) -> String {
    let text = format!("{value:?}");
    let end = text.find([' ', '(', '{']).unwrap_or(text.len());
    text[..end].to_owned()
}

/// Describes a send error by its variant and the missing capability.
pub(super) fn describe_error(error: &SendError) -> String {
    match error {
        SendError::Capability { capability, .. } => format!("Capability {capability}"),
        other => variant_name(other),
    }
}

/// Describes a frame: its method, its error code, or the kind of its result.
pub(super) fn describe_frame(bytes: &[u8]) -> String {
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

/// Joins descriptions; returns `nothing` if there are none.
pub(super) fn join_words(parts: Vec<String>) -> String {
    if parts.is_empty() {
        "nothing".to_owned()
    } else {
        parts.join(", ")
    }
}

/// Describes the pending events and output of a server.
pub(super) fn describe_server_output(server: &mut ServerEndpoint<()>) -> String {
    let mut parts = Vec::new();
    while let Some(event) = server.poll_event() {
        parts.push(match &event {
            ServerEvent::Violation(violation) => format!("violation {}", variant_name(violation)),
            ServerEvent::Request(_) | ServerEvent::Notification(_) => "program".to_owned(),
            other => variant_name(other),
        });
    }
    let mut bytes = Vec::new();
    while server.poll_transmit(&mut bytes).is_some() {
        parts.push(describe_frame(&std::mem::take(&mut bytes)));
    }
    join_words(parts)
}

/// Describes the pending events and output of a client.
pub(super) fn describe_client_output(client: &mut ClientEndpoint) -> String {
    let mut parts = Vec::new();
    while let Some(event) = client.poll_event() {
        parts.push(match &event {
            ClientEvent::Violation(violation) => format!("violation {}", variant_name(violation)),
            ClientEvent::Request { .. } | ClientEvent::Notification(_) => "program".to_owned(),
            ClientEvent::Completed(_, outcome) => variant_name(outcome),
            other => variant_name(other),
        });
    }
    let mut bytes = Vec::new();
    while client.poll_transmit(&mut bytes).is_some() {
        parts.push(describe_frame(&std::mem::take(&mut bytes)));
    }
    join_words(parts)
}

/// Creates a request of the client, or without id a notification, with the metadata that the revision requires.
pub(super) fn request_message(
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
            meta["io.modelcontextprotocol/clientCapabilities"] = declared.declared_by_client();
        }
        if method == "initialize" {
            message["params"]["protocolVersion"] = json!(spec.id());
        }
    }
    message
}

/// Delivers a message to a server as one frame of its duplex stream.
pub(super) fn send_to_server(server: &mut ServerEndpoint<()>, message: &Value) {
    let text = message.to_string();
    let context = FrameContext::new(());
    server
        .receive(StreamId::DUPLEX, text.as_bytes(), context, Time::ZERO)
        .expect("open");
}

/// Delivers a message to a client as one frame of its duplex stream.
pub(super) fn send_to_client(client: &mut ClientEndpoint, message: &Value) {
    let text = message.to_string();
    client
        .receive(StreamId::DUPLEX, text.as_bytes(), Time::ZERO)
        .expect("open");
}

/// Creates a server with a request in flight, which has a progress token and a log level.
pub(super) fn server_during_request(
    spec: &RevisionSpec,
    declared: DeclaringPeers,
    method: &str,
) -> Option<(ServerEndpoint<()>, RequestKey)> {
    let mut server = server(spec, declared);
    let mut params = params();
    params["_meta"] = json!({ "progressToken": "t", "io.modelcontextprotocol/logLevel": "debug" });
    send_to_server(
        &mut server,
        &request_message(spec, declared, Some(json!(1)), method, params),
    );
    let key = match server.poll_event()? {
        ServerEvent::Request(request) => request.key,
        ServerEvent::Subscribed { key, .. } => key,
        _ => return None,
    };
    describe_server_output(&mut server);
    Some((server, key))
}
