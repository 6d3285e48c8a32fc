//! Checks of the doctor that concern only HTTP, in one revision: status codes, headers and content types, each in a request of its
//! own beside the session.

use std::sync::Arc;
use std::time::Duration;

use http::Method;
use mcp_exact_revisions::{Lifecycle, RevisionSpec, method};
use serde_json::{Value, json};

use super::checks::UNKNOWN_REVISION;
use super::http::{
    ACCEPT_HEADER, CONTENT_TYPE_HEADER, Exchange, SESSION_ID, Target, VERSION_HEADER,
};
use super::report::{Evidence, Report};
use super::session::client_info;
use crate::conversation::Breach;
use crate::rules::{self, Rule};

/// Checks the rules that concern only HTTP in one revision, in a separate session.
pub fn check(
    target: &Arc<Target>,
    spec: &'static RevisionSpec,
    limit: Duration,
    report: &mut Report,
) {
    let mut examination = Examination {
        target,
        spec,
        limit,
        report,
    };
    match spec.lifecycle() {
        Lifecycle::Initialize => examination.check_handshake(),
        Lifecycle::Discover => examination.check_stateless(),
    }
}

/// State of the checks of HTTP rules in one revision.
struct Examination<'a> {
    /// Server to check.
    target: &'a Arc<Target>,
    /// Revision in which the server is checked.
    spec: &'static RevisionSpec,
    /// Time limit of each HTTP request.
    limit: Duration,
    /// Report to which violations are added.
    report: &'a mut Report,
}

impl Examination<'_> {
    /// Adds a violation to the report.
    fn report_breach(&mut self, rule: &'static Rule, message: String) {
        let breach = Breach::new(rule, message);
        self.report
            .add(self.spec.id(), &breach, Evidence::default());
    }

    /// Records that the server is examined by a rule.
    fn examine(&mut self, rule: &'static Rule) {
        self.report.examine(self.spec.id(), &[rule]);
    }

    /// Posts a message and returns the response; returns the default value if there is no response.
    fn post(&mut self, headers: &[(&str, &str)], message: &Value) -> Exchange {
        self.report.checks += 1;
        let mut all = vec![ACCEPT_HEADER, CONTENT_TYPE_HEADER];
        all.extend_from_slice(headers);
        let id = message.get("id").cloned();
        let is_last =
            |found: &Value| found.get("method").is_none() && found.get("id") == id.as_ref();
        let exchange = self
            .target
            .exchange(Method::POST, &all, Some(message), self.limit, is_last);
        exchange.unwrap_or_default()
    }

    /// Creates the `initialize` request of the revision.
    fn initialize(&self) -> Value {
        json!({"jsonrpc": "2.0", "id": 1, "method": method::INITIALIZE, "params": {
            "protocolVersion": self.spec.id(), "capabilities": {}, "clientInfo": client_info(),
        }})
    }

    /// Checks that a message with the header `Origin` of a foreign site is refused.
    fn check_origin(&mut self, headers: &[(&str, &str)], message: &Value) {
        self.examine(&rules::HTTP_ORIGIN);
        let mut all = headers.to_vec();
        all.push(("origin", "https://origin.invalid"));
        let exchange = self.post(&all, message);
        if exchange.is_success() {
            let message = format!(
                "a request with the Origin https://origin.invalid got status {}",
                exchange.status
            );
            self.report_breach(&rules::HTTP_ORIGIN, message);
        }
    }

    /// Checks that the content type of a successful response is that of JSON or of an event stream.
    fn check_content_type(&mut self, rule: &'static Rule, exchange: &Exchange) {
        self.examine(rule);
        let found = exchange.header("content-type").to_owned();
        let is_right = ["application/json", "text/event-stream"]
            .iter()
            .any(|right| found.starts_with(right));
        if exchange.is_success() && !is_right {
            self.report_breach(
                rule,
                format!("a request was answered with the content type {found:?}"),
            );
        }
    }

    /// Checks the HTTP rules of a revision with the `initialize` handshake.
    fn check_handshake(&mut self) {
        let initialize = self.initialize();
        self.check_origin(&[], &initialize);
        // 2024-11-05 uses HTTP+SSE instead: the rules below do not apply, although many servers negotiate the revision
        // here.
        if !self.spec.has_streamable_http() {
            return;
        }
        let begun = self.post(&[], &initialize);
        if !begun.is_success() {
            return;
        }
        self.check_content_type(&rules::HTTP_CONTENT_TYPE, &begun);
        let id = begun.headers.get(SESSION_ID).cloned();
        if id.is_some() {
            self.examine(&rules::SESSION_CHARS);
        }
        if let Some(id) = &id
            && !id
                .as_bytes()
                .iter()
                .all(|byte| (0x21..=0x7e).contains(byte))
        {
            self.report_breach(&rules::SESSION_CHARS, format!("the session id is {id:?}"));
        }
        let id = id.and_then(|id| id.to_str().ok().map(str::to_owned));
        let mut headers: Vec<(&str, &str)> = id
            .as_deref()
            .map(|id| (SESSION_ID, id))
            .into_iter()
            .collect();
        if self.spec.has_protocol_version_header() {
            headers.push((VERSION_HEADER, self.spec.id()));
        }
        let initialized = json!({"jsonrpc": "2.0", "method": method::NOTIFICATIONS_INITIALIZED});
        let accepted = self.post(&headers, &initialized);
        self.check_accepted(&accepted);
        self.check_get(&headers);
        if self.spec.has_protocol_version_header() {
            self.check_version_header(id.as_deref());
        }
        if id.is_some() {
            self.check_ended_session(&headers);
        }
    }

    /// Checks that a notification was answered with status 202 and without a body.
    fn check_accepted(&mut self, exchange: &Exchange) {
        self.examine(&rules::HTTP_202);
        if exchange.is_success() && (exchange.status != 202 || exchange.body_bytes > 0) {
            let message = format!(
                "a notification was answered with status {} and {} bytes",
                exchange.status, exchange.body_bytes
            );
            self.report_breach(&rules::HTTP_202, message);
        }
    }

    /// Checks that a GET opens an event stream or is answered with status 405.
    fn check_get(&mut self, headers: &[(&str, &str)]) {
        self.report.checks += 1;
        let mut all = vec![("accept", "text/event-stream")];
        all.extend_from_slice(headers);
        // A stream stays open: its response head suffices.
        let limit = Duration::from_secs(1);
        let Ok(exchange) = self
            .target
            .exchange(Method::GET, &all, None, limit, |_| true)
        else {
            return;
        };
        let is_stream = exchange
            .header("content-type")
            .starts_with("text/event-stream");
        self.examine(&rules::HTTP_GET);
        if !(exchange.status == 405 || exchange.is_success() && is_stream) {
            let message = format!(
                "GET was answered with status {} and the content type {:?}",
                exchange.status,
                exchange.header("content-type")
            );
            self.report_breach(&rules::HTTP_GET, message);
        }
    }

    /// Checks that a request with an unknown revision in `MCP-Protocol-Version` is answered with status 400.
    fn check_version_header(&mut self, session_id: Option<&str>) {
        self.examine(&rules::HTTP_VERSION);
        let mut headers = vec![(VERSION_HEADER, UNKNOWN_REVISION)];
        headers.extend(session_id.map(|id| (SESSION_ID, id)));
        let ping = json!({"jsonrpc": "2.0", "id": 2, "method": method::PING});
        let exchange = self.post(&headers, &ping);
        if exchange.status != 400 && exchange.status != 0 {
            let message = format!(
                "MCP-Protocol-Version: {UNKNOWN_REVISION} got status {}",
                exchange.status
            );
            self.report_breach(&rules::HTTP_VERSION, message);
        }
    }

    /// Ends the session by DELETE, and checks that a further request is answered with status 404.
    fn check_ended_session(&mut self, headers: &[(&str, &str)]) {
        self.report.checks += 1;
        let deleted = self
            .target
            .exchange(Method::DELETE, headers, None, self.limit, |_| true);
        if !deleted.is_ok_and(|deleted| deleted.is_success()) {
            return;
        }
        self.examine(&rules::SESSION_404);
        let ping = json!({"jsonrpc": "2.0", "id": 3, "method": method::PING});
        let exchange = self.post(headers, &ping);
        if exchange.status != 404 && exchange.status != 0 {
            let message = format!(
                "a request in a session that was ended got status {}",
                exchange.status
            );
            self.report_breach(&rules::SESSION_404, message);
        }
    }

    /// Checks the HTTP rules of a revision without the `initialize` handshake.
    fn check_stateless(&mut self) {
        let id = self.spec.id();
        let message = |method: &str, version: &str| {
            json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": {"_meta": {
                "io.modelcontextprotocol/protocolVersion": version,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": client_info(),
            }}})
        };
        let discover = message(method::SERVER_DISCOVER, id);
        let right = [
            (VERSION_HEADER, id),
            ("mcp-method", method::SERVER_DISCOVER),
        ];
        self.check_origin(&right, &discover);
        let answered = self.post(&right, &discover);
        self.check_content_type(&rules::HTTP_RESPONSE, &answered);

        let other = [
            (VERSION_HEADER, "2025-11-25"),
            ("mcp-method", method::SERVER_DISCOVER),
        ];
        let exchange = self.post(&other, &discover);
        self.examine(&rules::HEADER_MISMATCH);
        // A 2025-11-25 server may treat this as a request without a session: any status 400 is accepted.
        if exchange.status != 400 {
            self.check_mismatch(&rules::HEADER_MISMATCH, "MCP-Protocol-Version", &exchange);
        }
        let other = [(VERSION_HEADER, id), ("mcp-method", method::TOOLS_LIST)];
        let exchange = self.post(&other, &discover);
        self.examine(&rules::HEADER_METHOD);
        self.check_mismatch(&rules::HEADER_METHOD, "Mcp-Method", &exchange);

        self.examine(&rules::HTTP_UNKNOWN_METHOD);
        self.examine(&rules::HTTP_UNSUPPORTED);
        let unknown = "mcp-exact/no-such-method";
        let headers = [(VERSION_HEADER, id), ("mcp-method", unknown)];
        let exchange = self.post(&headers, &message(unknown, id));
        if exchange.status != 404 || exchange.error_code() != Some(-32601) {
            let message = format!(
                "an unknown method got {}",
                exchange.compare_error(404, -32601)
            );
            self.report_breach(&rules::HTTP_UNKNOWN_METHOD, message);
        }
        let headers = [
            (VERSION_HEADER, UNKNOWN_REVISION),
            ("mcp-method", method::SERVER_DISCOVER),
        ];
        let exchange = self.post(
            &headers,
            &message(method::SERVER_DISCOVER, UNKNOWN_REVISION),
        );
        if exchange.status != 400 || exchange.error_code() != Some(-32022) {
            let found = exchange.compare_error(400, -32022);
            let message = format!("a request of {UNKNOWN_REVISION} got {found}");
            self.report_breach(&rules::HTTP_UNSUPPORTED, message);
        }
    }

    /// Checks that a request whose header contradicts the body was answered with status 400 and the error -32020.
    fn check_mismatch(&mut self, rule: &'static Rule, header: &str, exchange: &Exchange) {
        if exchange.status != 400 || exchange.error_code() != Some(-32020) {
            let found = exchange.compare_error(400, -32020);
            let message = format!("another {header} than the body says got {found}");
            self.report_breach(rule, message);
        }
    }
}
