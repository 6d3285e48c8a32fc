//! One operation: its span, and the attributes that span and metric have in common.
//!
//! Names and methods that a peer has invented never become a span's name or an attribute of a metric.

use std::time::Instant;

use mcp_exact_revisions::method;
use mcp_exact_session::RequestKey;
#[cfg(feature = "opentelemetry")]
use mcp_exact_session::Side;
use tracing::Span;
use tracing::field::Empty;

use super::message::{CallHead, End, TargetKind, shorten};
use super::{State, names};
use crate::endpoint::RequestContext;

/// Target of the spans, for filters.
pub(super) const TARGET: &str = "mcp_exact_transport::operations";

/// Method of an operation whose method no revision defines, and error of an operation in metrics whose code is not known.
const OTHER: &str = "_OTHER";

/// Kind of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    /// The local peer has sent the message.
    Client,
    /// The local peer has received the message.
    Server,
}

/// A request or notification, from its begin to its end.
#[derive(Debug)]
pub(super) struct Operation {
    /// Kind of the operation.
    #[cfg_attr(not(feature = "opentelemetry"), allow(dead_code))]
    kind: Kind,
    /// Span of the operation; disabled if only durations are wanted.
    span: Span,
    /// Method of the message.
    method: String,
    /// True if span and metric may contain the method.
    has_known_method: bool,
    /// Kind and name of the tool or prompt.
    target: Option<(TargetKind, String)>,
    /// True if span and metric may contain the name of the target.
    has_known_target: bool,
    /// Time at which the message was sent or received.
    #[cfg_attr(not(feature = "opentelemetry"), allow(dead_code))]
    began: Instant,
    /// Revision, if it is known.
    revision: Option<&'static str>,
    /// True once the span has the name of the target.
    is_named: bool,
    /// True once the span contains the digest of the session id.
    has_session: bool,
    /// Transport, protocol and its version.
    network: [Option<&'static str>; 3],
    /// Host and port of the server, on the side that has connected.
    server: Option<(String, u16)>,
    /// Key of a request that the local application has sent.
    pub(super) key: Option<RequestKey>,
    /// Name of the server of a gateway.
    relays_to: Option<String>,
}

impl Operation {
    /// Begins an operation within the span `around`. A sent message continues the trace that it names or that of `around`; a
    /// received message continues the trace that it, its HTTP request or `around` names.
    pub(super) fn begin(
        state: &State,
        kind: Kind,
        call: &CallHead,
        id: Option<&str>,
        context: Option<&RequestContext>,
        around: &Span,
    ) -> Self {
        let revision = state.revision;
        let network = &state.network;
        let remote = context.and_then(|context| context.remote);
        let is_trusted = kind == Kind::Client && state.relays_to.is_none();
        let mut operation = Self {
            kind,
            span: Span::none(),
            has_known_method: is_trusted || is_defined(&call.method),
            method: call.method.clone(),
            target: call.target.clone(),
            has_known_target: is_trusted,
            began: Instant::now(),
            revision,
            is_named: false,
            has_session: state.session.is_some(),
            network: [
                network.transport,
                network.protocol,
                network.protocol_version,
            ],
            server: network.server.clone(),
            relays_to: state.relays_to.clone(),
            key: None,
        };
        let ambient = match (kind, network.protocol) {
            // A long connection is not the cause of the messages on it.
            (Kind::Server, None) => None,
            _ => around.id(),
        };
        let server = operation.server.as_ref();
        let session = state.session.as_deref();
        let (target, title) = (operation.shown_target(), operation.title());
        operation.span = new_span(
            kind,
            ambient,
            &Fields {
                title: &title,
                method: operation.shown_method(),
                tool: name_of(target, TargetKind::Tool),
                prompt: name_of(target, TargetKind::Prompt),
                id: id.map(shorten),
                revision,
                session,
                uri: call.uri.as_deref(),
                operation: operation.operation_name(),
                network: operation.network,
                server: server.map(|(host, port)| (&**host, *port)),
                relays_to: operation.relays_to.as_deref(),
                client: remote.map(|remote| (remote.ip().to_string(), remote.port())),
            },
        );
        operation.is_named = operation.shown_target().is_some();
        #[cfg(feature = "opentelemetry")]
        if !operation.span.is_disabled() {
            match kind {
                Kind::Client => crate::telemetry::continue_stated_trace(
                    &operation.span,
                    call.trace.as_ref(),
                    around,
                ),
                Kind::Server => crate::telemetry::continue_received_trace(
                    &operation.span,
                    call.trace.as_ref(),
                    context,
                ),
            }
        }
        operation
    }

    /// Sets the key of a request that the local application has sent.
    pub(super) fn with_key(mut self, key: Option<RequestKey>) -> Self {
        self.key = key;
        self
    }

    pub(super) fn span(&self) -> &Span {
        &self.span
    }

    pub(super) fn method(&self) -> &str {
        &self.method
    }

    /// Records that the local peer knows method and target; `name` is the name that it uses itself.
    pub(super) fn set_known(&mut self, name: Option<&str>) {
        if !self.has_known_method {
            self.has_known_method = true;
            self.span.record("mcp.method.name", &*self.method);
            self.rename(&self.method);
        }
        self.has_known_target = true;
        let own = self.target.as_ref().map(|(_, name)| &**name);
        for name in own.into_iter().chain(name) {
            names::learn_name(name);
        }
    }

    /// Records what was not known when the operation began: revision, session and version of HTTP.
    pub(super) fn complete_attributes(&mut self, state: &State) {
        if self.revision.is_none() && state.revision.is_some() {
            self.revision = state.revision;
            self.span.record("mcp.protocol.version", state.revision);
        }
        if !self.has_session && state.session.is_some() {
            self.span.record("mcp.session.id", state.session.as_deref());
        }
        let version = state.network.protocol_version;
        if self.network[2].is_none() && version.is_some() {
            self.network[2] = version;
            self.span.record("network.protocol.version", version);
        }
    }

    /// Ends the operation; `error` is the class of the error, if the operation has failed.
    pub(super) fn end(mut self, error: Option<&str>) {
        self.finish(error, None);
    }

    /// Ends the operation of a request with its response.
    pub(super) fn end_with(mut self, end: &End) {
        match end {
            End::Success => {
                if !self.has_known_target
                    && let Some((_, name)) = &self.target
                {
                    self.has_known_target = names::learn_name(name);
                }
                self.finish(None, None);
            }
            End::ToolError => self.finish(Some("tool_error"), None),
            End::Error(code) => self.finish(Some(code), Some(code)),
        }
    }

    /// Records the end in span and metric; `code` is the code of a JSON-RPC error.
    fn finish(&mut self, error: Option<&str>, code: Option<&str>) {
        let target = self.shown_target().filter(|_| !self.is_named);
        if let Some((kind, name)) = target {
            let field = match kind {
                TargetKind::Tool => "gen_ai.tool.name",
                TargetKind::Prompt => "gen_ai.prompt.name",
            };
            self.span.record(field, name);
            self.rename(&self.title());
        }
        if let Some(error) = error {
            self.span.record("error.type", error);
            self.span.record("otel.status_code", "ERROR");
        }
        if let Some(code) = code {
            self.span.record("rpc.response.status_code", code);
        }
        #[cfg(feature = "opentelemetry")]
        if crate::telemetry::durations::is_enabled() {
            let attributes = self.metric_attributes(error, code);
            let side = match self.kind {
                Kind::Client => Side::Client,
                Kind::Server => Side::Server,
            };
            crate::telemetry::durations::record_operation(side, self.began.elapsed(), &attributes);
        }
    }

    /// Renames the span.
    fn rename(&self, title: &str) {
        self.span.record("otel.name", title);
        // The layer ignores the field once the span has started.
        #[cfg(feature = "opentelemetry")]
        crate::telemetry::rename(&self.span, title);
    }

    /// Returns the name of the span.
    fn title(&self) -> String {
        let method = self.shown_method();
        match self.shown_target() {
            Some((_, name)) => format!("{method} {name}"),
            None => method.to_owned(),
        }
    }

    /// Returns the method, or `_OTHER` if a peer may have invented it.
    fn shown_method(&self) -> &str {
        if self.has_known_method {
            &self.method
        } else {
            OTHER
        }
    }

    /// Returns kind and name of the target, unless a peer may have invented it.
    fn shown_target(&self) -> Option<(TargetKind, &str)> {
        let (kind, name) = self.target.as_ref()?;
        let is_shown = self.has_known_target || names::is_known(name);
        (is_shown && name.len() <= names::MAX_NAME_BYTES).then_some((*kind, name))
    }

    /// Returns the name of the GenAI operation.
    fn operation_name(&self) -> Option<&'static str> {
        (self.method == method::TOOLS_CALL).then_some("execute_tool")
    }

    /// Returns the attributes of the duration: those of the span with few values.
    #[cfg(feature = "opentelemetry")]
    fn metric_attributes(
        &self,
        error: Option<&str>,
        code: Option<&str>,
    ) -> Vec<opentelemetry::KeyValue> {
        use opentelemetry::KeyValue;
        let [transport, protocol, version] = self.network;
        // Peers may invent codes.
        let (error, code) = match code {
            Some(code) if !is_known_code(code) => (Some(OTHER), Some(OTHER)),
            code => (error, code),
        };
        let target = self.shown_target();
        let texts = [
            ("mcp.method.name", Some(self.shown_method())),
            ("error.type", error),
            ("gen_ai.operation.name", self.operation_name()),
            ("gen_ai.prompt.name", name_of(target, TargetKind::Prompt)),
            ("gen_ai.tool.name", name_of(target, TargetKind::Tool)),
            ("mcp.protocol.version", self.revision),
            ("mcp_exact.server", self.relays_to.as_deref()),
            ("network.protocol.name", protocol),
            ("network.protocol.version", version),
            ("network.transport", transport),
            ("rpc.response.status_code", code),
        ];
        let texts = texts.into_iter();
        let texts = texts.filter_map(|(key, text)| Some(KeyValue::new(key, text?.to_owned())));
        let mut all: Vec<KeyValue> = texts.collect();
        if self.kind == Kind::Client
            && let Some((host, port)) = &self.server
        {
            all.push(KeyValue::new("server.address", host.clone()));
            all.push(KeyValue::new("server.port", i64::from(*port)));
        }
        all
    }
}

/// Returns true if JSON-RPC, a revision or the SDKs define the code of an error.
#[cfg(any(feature = "opentelemetry", test))]
fn is_known_code(code: &str) -> bool {
    use mcp_exact_session::code;
    // The SDKs: a closed connection (-32000), and a timeout or an unknown session (-32001).
    code.parse::<i64>().is_ok_and(|number| {
        matches!(
            number,
            code::PARSE_ERROR
                | code::INVALID_REQUEST
                | code::METHOD_NOT_FOUND
                | code::INVALID_PARAMS
                | code::INTERNAL_ERROR
                | code::RESOURCE_NOT_FOUND
                | code::URL_ELICITATION_REQUIRED
                | code::HEADER_MISMATCH
                | code::MISSING_CLIENT_CAPABILITY
                | code::UNSUPPORTED_VERSION
                | -32001
                | -32000
        )
    })
}

/// Returns the attributes of the duration of a session.
#[cfg(feature = "opentelemetry")]
pub(super) fn session_attributes(state: &State) -> Vec<opentelemetry::KeyValue> {
    use opentelemetry::KeyValue;
    let network = &state.network;
    let texts = [
        ("mcp.protocol.version", state.revision),
        ("network.protocol.name", network.protocol),
        ("network.protocol.version", network.protocol_version),
        ("network.transport", network.transport),
    ];
    let texts = texts.into_iter();
    let texts = texts.filter_map(|(key, text)| Some(KeyValue::new(key, text?)));
    let mut all: Vec<KeyValue> = texts.collect();
    if let Some((host, port)) = &network.server {
        all.push(KeyValue::new("server.address", host.clone()));
        all.push(KeyValue::new("server.port", i64::from(*port)));
    }
    all
}

/// Returns the name of a target of this kind.
fn name_of(target: Option<(TargetKind, &str)>, kind: TargetKind) -> Option<&str> {
    target.filter(|(of, _)| *of == kind).map(|(_, name)| name)
}

/// Returns true if a revision defines the method.
fn is_defined(method: &str) -> bool {
    let sides = [
        mcp_exact_revisions::Side::Client,
        mcp_exact_revisions::Side::Server,
    ];
    mcp_exact_revisions::all().iter().any(|spec| {
        let mut sides = sides.iter();
        sides
            .any(|side| spec.sends_request(*side, method) || spec.sends_notification(*side, method))
    })
}

/// Values of a span that are known when it begins.
struct Fields<'a> {
    title: &'a str,
    method: &'a str,
    tool: Option<&'a str>,
    prompt: Option<&'a str>,
    id: Option<&'a str>,
    revision: Option<&'static str>,
    session: Option<&'a str>,
    uri: Option<&'a str>,
    operation: Option<&'static str>,
    network: [Option<&'static str>; 3],
    server: Option<(&'a str, u16)>,
    relays_to: Option<&'a str>,
    client: Option<(String, u16)>,
}

/// Creates the span of an operation, below the span `parent`.
fn new_span(kind: Kind, parent: Option<tracing::span::Id>, fields: &Fields<'_>) -> Span {
    let [transport, protocol, version] = fields.network;
    match kind {
        Kind::Client => tracing::info_span!(
            target: TARGET,
            parent: parent,
            "mcp.client",
            mcp.method.name = fields.method,
            gen_ai.tool.name = fields.tool,
            gen_ai.prompt.name = fields.prompt,
            mcp.resource.uri = fields.uri,
            jsonrpc.request.id = fields.id,
            mcp.protocol.version = fields.revision,
            mcp.session.id = fields.session,
            gen_ai.operation.name = fields.operation,
            "error.type" = Empty,
            rpc.response.status_code = Empty,
            network.transport = transport,
            network.protocol.name = protocol,
            network.protocol.version = version,
            server.address = fields.server.map(|(host, _)| host),
            server.port = fields.server.map(|(_, port)| i64::from(port)),
            mcp_exact.server = fields.relays_to,
            otel.kind = "client",
            otel.name = fields.title,
            otel.status_code = Empty,
        ),
        Kind::Server => tracing::info_span!(
            target: TARGET,
            parent: parent,
            "mcp.server",
            mcp.method.name = fields.method,
            gen_ai.tool.name = fields.tool,
            gen_ai.prompt.name = fields.prompt,
            mcp.resource.uri = fields.uri,
            jsonrpc.request.id = fields.id,
            mcp.protocol.version = fields.revision,
            mcp.session.id = fields.session,
            gen_ai.operation.name = fields.operation,
            "error.type" = Empty,
            rpc.response.status_code = Empty,
            network.transport = transport,
            network.protocol.name = protocol,
            network.protocol.version = version,
            mcp_exact.server = fields.relays_to,
            client.address = fields.client.as_ref().map(|(host, _)| &**host),
            client.port = fields.client.as_ref().map(|(_, port)| i64::from(*port)),
            otel.kind = "server",
            otel.name = fields.title,
            otel.status_code = Empty,
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Codes that a peer has invented are no attributes of metrics.
    #[test]
    fn invented_codes_are_not_known() {
        for code in ["-32700", "-32602", "-32002", "-32022"] {
            assert!(is_known_code(code), "{code}");
        }
        for code in ["1", "-32099", "_OTHER", ""] {
            assert!(!is_known_code(code), "{code}");
        }
    }
}
