//! Session of the doctor with a server: sends requests, waits for the responses, and checks every message.

mod unanswered;

use std::time::{Duration, Instant};

use mcp_exact_revisions::{MethodId, method};
use serde_json::{Value, json};

pub use super::answer::Answer;
use super::answer::{is_json, named_entry, named_subject};
use super::channel::{Channel, Server};
use super::report::{Evidence, Report};
use crate::conversation::{Conversation, Options};
use crate::message::Direction;
use crate::process::ServerOutput;
use crate::rules;
use crate::terminal::{print_to_stderr, stderr};
use crate::text::{Untrusted, text};
use crate::value;

/// Session with a server in one revision, in which all messages are checked.
pub struct Session<'r> {
    /// Connection to the server.
    pub channel: Channel,
    /// Conversation that checks all messages.
    conversation: Conversation,
    /// Report to which violations are added.
    report: &'r mut Report,
    /// Revision to which violations are attributed.
    pub revision: &'static str,
    /// True if the revision has no `initialize` handshake, so that every request must contain the revision and the
    /// capabilities in `_meta`.
    pub is_stateless: bool,
    /// Time limit for the response to a request.
    limit: Duration,
    /// Time limit for the response to the first request.
    start_limit: Duration,
    /// Number of requests so far, from which the next id is created.
    next_id: u64,
    /// Received lines that are no JSON text on their own and may be parts of a message.
    partial_lines: Vec<u8>,
    /// Number of lines in `partial_lines`.
    partial_line_count: usize,
    /// Number of received responses that did not belong to the pending request.
    pub unmatched_responses: usize,
    /// True if each message is printed to standard error.
    is_tracing: bool,
    /// True if what is examined is shown on the terminal.
    shows_progress: bool,
    /// Tool, prompt or resource of the pending request, such as "tool `echo`".
    subject: Option<String>,
    /// Number of requests without an answer since the last answer.
    silences: usize,
    /// True if the server has ended, or answers nothing any more: nothing else is examined in this session.
    is_over: bool,
}

/// Settings of sessions.
#[derive(Debug, Clone, Copy)]
pub struct Settings {
    /// Time limit for the response to a request.
    pub limit: Duration,
    /// Time limit for the response to the first request.
    pub start_limit: Duration,
    /// True if each message is printed to standard error.
    pub is_tracing: bool,
    /// True if the standard error of the server is displayed.
    pub shows_stderr: bool,
    /// True if what is examined is shown on the terminal.
    pub shows_progress: bool,
}

/// Maximum size of lines that may be parts of a message, in bytes.
const MAX_PARTIAL_BYTES: usize = 1 << 20;

/// Maximum number of lines that are no messages which are reported at once.
const MAX_REPORTED_LINES: usize = 20;

/// Maximum number of characters that a finding shows of what is no message.
const SHOWN_CHARS: usize = 60;

impl<'r> Session<'r> {
    /// Opens a connection to a server for checks in one revision.
    pub fn open(
        server: &Server,
        revision: &'static str,
        settings: Settings,
        report: &'r mut Report,
    ) -> anyhow::Result<Self> {
        let channel = server.open(settings.shows_stderr)?;
        let options = Options {
            wants_unknown: false,
            is_ordered: channel.is_ordered(),
        };
        let spec = mcp_exact_revisions::find(revision);
        let lifecycle = spec.map(mcp_exact_revisions::RevisionSpec::lifecycle);
        Ok(Self {
            channel,
            conversation: Conversation::new(None, options),
            report,
            revision,
            is_stateless: lifecycle == Some(mcp_exact_revisions::Lifecycle::Discover),
            limit: settings.limit,
            start_limit: settings.start_limit,
            next_id: 0,
            partial_lines: Vec::new(),
            partial_line_count: 0,
            unmatched_responses: 0,
            is_tracing: settings.is_tracing,
            shows_progress: settings.shows_progress,
            subject: None,
            silences: 0,
            is_over: false,
        })
    }

    /// Returns the time limit for the response to a request.
    pub fn limit(&self) -> Duration {
        self.limit
    }

    /// Increments the number of checks that have sent a message to the server.
    pub fn check(&mut self) {
        self.report.checks += 1;
    }

    /// Returns params with the members of `_meta` that the revision requires.
    pub fn params(&self, mut params: Value) -> Value {
        if self.is_stateless {
            let meta = json!({
                "io.modelcontextprotocol/protocolVersion": self.revision,
                "io.modelcontextprotocol/clientCapabilities": {},
                "io.modelcontextprotocol/clientInfo": client_info(),
            });
            for (name, value) in meta.as_object().into_iter().flatten() {
                if params["_meta"].get(name).is_none() {
                    params["_meta"][name] = value.clone();
                }
            }
        }
        params
    }

    /// Sends a request with the required `_meta` and waits for its response; a request that is not answered is a violation.
    pub fn request(&mut self, method: &str, params: Value) -> Answer {
        let answer = self.ask(method, params);
        if answer.is_silence() && self.next_id > 1 {
            self.report_unanswered(method, &answer);
        }
        answer
    }

    /// Sends a request with the required `_meta` and waits for its response, whose absence the caller reports. The end of the server
    /// is a violation, except for the first request: it may be one of a revision that the server does not have.
    pub fn ask(&mut self, method: &str, params: Value) -> Answer {
        let params = self.params(params);
        self.ask_unmodified(method, params)
    }

    /// Sends a request with exactly these params, as [`Session::ask`] does.
    pub fn ask_unmodified(&mut self, method: &str, params: Value) -> Answer {
        if self.is_over {
            return Answer::End;
        }
        let mut answer = self.exchange(method, params);
        if self.next_id > 1 {
            // Each request over HTTP has a connection of its own.
            if answer == Answer::End && self.is_streamable_http() {
                answer = Answer::Timeout;
            }
            if answer == Answer::End {
                self.report_end(method);
            }
            self.count_silence(method, &answer);
        }
        answer
    }

    /// Sends a request and waits for its response.
    fn exchange(&mut self, method: &str, params: Value) -> Answer {
        self.next_id += 1;
        // Ids alternate between numbers and strings, to detect servers that change their type.
        let id = match self.next_id % 2 {
            0 => json!(format!("doctor-{}", self.next_id)),
            _ => json!(self.next_id),
        };
        self.check();
        self.show_progress(method);
        self.subject = named_subject(method, &params);
        let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method});
        if params != json!({}) || method == method::INITIALIZE {
            message["params"] = params;
        }
        if !self.send(&message) {
            return Answer::End;
        }
        let limit = match self.next_id {
            1 => self.start_limit,
            _ => self.limit,
        };
        self.wait_for_answer(&id, limit)
    }

    /// Shows what is examined, on a line of the terminal that the next one replaces.
    fn show_progress(&self, method: &str) {
        if self.shows_progress {
            let mut out = stderr();
            let _ = out.clear_line();
            let line = text!("examining {}: {}", self.revision, Untrusted(method));
            let _ = out.text(&line);
        }
    }

    /// Receives messages until the response to the request with this id is received or the time limit expires.
    fn wait_for_answer(&mut self, id: &Value, limit: Duration) -> Answer {
        let until = Instant::now() + limit;
        loop {
            let message = match self.receive_until(until) {
                Ok(message) => message,
                Err(answer) => return answer,
            };
            if message.get("method").is_some() {
                continue;
            }
            // The conversation reports a response whose id has another type.
            let bare = |id: &Value| id.to_string().trim_matches('"').to_owned();
            let is_wanted = message
                .get("id")
                .is_some_and(|found| bare(found) == bare(id));
            self.unmatched_responses += usize::from(!is_wanted);
            let is_refusal = message["id"].is_null() && message.get("error").is_some();
            if is_wanted || (is_refusal && !self.channel.is_ordered()) {
                return match message.get("error") {
                    Some(error) => {
                        Answer::Error(error["code"].as_i64().unwrap_or(0), error.clone())
                    }
                    None => Answer::Result(message["result"].clone()),
                };
            }
        }
    }

    /// Sends a notification; returns false if the server does not accept it.
    pub fn notify(&mut self, method: &str, params: Value) -> bool {
        self.check();
        let params = self.params(params);
        let mut message = json!({"jsonrpc": "2.0", "method": method});
        if params != json!({}) {
            message["params"] = params;
        }
        self.send(&message)
    }

    /// Sends exactly this message; returns false if the server does not accept it.
    pub fn send(&mut self, message: &Value) -> bool {
        self.observe(Direction::Client, &message.to_string());
        let is_handshake = message["method"] == method::INITIALIZE;
        let revision = (!is_handshake).then_some(self.revision);
        self.channel.send(message, revision, self.limit)
    }

    /// Receives and checks messages of the server for a limited time.
    pub fn listen(&mut self, limit: Duration) {
        let until = Instant::now() + limit;
        while self.receive_until(until).is_ok() {}
    }

    /// Waits for a message of the server, checks it, and responds to it if it is a request. After `until`, no message is received,
    /// although a server that sends without a pause has one at any time.
    pub fn receive_until(&mut self, until: Instant) -> Result<Value, Answer> {
        loop {
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Answer::Timeout);
            }
            let line = match self.channel.receive(left) {
                ServerOutput::Line(line) => line,
                ServerOutput::Timeout => return Err(Answer::Timeout),
                ServerOutput::End => {
                    self.report_partial_lines();
                    return Err(self.end_reason());
                }
            };
            if self.is_http() && !is_json(&line) {
                self.report_body(&line);
                continue;
            }
            let Some(text) = self.complete_message(&line) else {
                continue;
            };
            self.observe(Direction::Server, &text);
            let message: Value = serde_json::from_str(&text).unwrap_or_default();
            if let (Some(method), Some(id)) = (message["method"].as_str(), message.get("id")) {
                let answer = match MethodId::from_name(method) {
                    MethodId::Ping => json!({"jsonrpc": "2.0", "id": id, "result": {}}),
                    _ => {
                        json!({"jsonrpc": "2.0", "id": id, "error": {"code": -32601, "message": "Method not found"}})
                    }
                };
                self.send(&answer);
            }
            return Ok(message);
        }
    }

    /// Returns true if messages are bodies of HTTP responses, or events in them.
    fn is_http(&self) -> bool {
        match &self.channel {
            Channel::Process(_) => false,
            #[cfg(feature = "http")]
            Channel::HttpSession(_) | Channel::SseSession(_) => true,
        }
    }

    /// Returns true if each message is an HTTP request of its own.
    fn is_streamable_http(&self) -> bool {
        match &self.channel {
            Channel::Process(_) => false,
            #[cfg(feature = "http")]
            Channel::HttpSession(_) => true,
            #[cfg(feature = "http")]
            Channel::SseSession(_) => false,
        }
    }

    /// Reports a body or an event that is no JSON.
    fn report_body(&mut self, body: &[u8]) {
        let text = String::from_utf8_lossy(body);
        let reason = match (body.starts_with(b"\xef\xbb\xbf"), std::str::from_utf8(body)) {
            (true, _) => "begins with a byte order mark".to_owned(),
            (_, Err(error)) => format!("is not UTF-8 from byte {} on", error.valid_up_to()),
            _ => "is not JSON".to_owned(),
        };
        let beginning: String = text.trim().chars().take(SHOWN_CHARS).collect();
        let message = format!("the body of a response {reason}: {beginning}");
        self.report_breach(&rules::VERSION, message);
    }

    /// Returns the reason why no further message can be received.
    fn end_reason(&self) -> Answer {
        match &self.channel {
            Channel::Process(_) => Answer::End,
            #[cfg(feature = "http")]
            Channel::HttpSession(http) => http.status().map_or(Answer::Timeout, Answer::Status),
            #[cfg(feature = "http")]
            Channel::SseSession(sse) => sse.error_status().map_or(Answer::End, Answer::Status),
        }
    }

    /// Adds a received line; returns the message that the line completes, if any. A message that consists of several
    /// lines is reported as a violation.
    fn complete_message(&mut self, line: &[u8]) -> Option<String> {
        if is_json(line) {
            // A line that is valid JSON may still be part of a message that began before.
            let is_piece = !self.partial_lines.is_empty() && !line.starts_with(b"{");
            if !is_piece {
                self.report_partial_lines();
                return Some(String::from_utf8_lossy(line).into_owned());
            }
        }
        self.partial_lines.extend_from_slice(line);
        self.partial_lines.push(b'\n');
        self.partial_line_count += 1;
        if !is_json(&self.partial_lines) {
            if self.partial_lines.len() > MAX_PARTIAL_BYTES {
                self.report_partial_lines();
            }
            return None;
        }
        let lines = self.partial_line_count;
        self.report_breach(
            &rules::NO_NEWLINE,
            format!("a message was written in {lines} lines"),
        );
        self.partial_line_count = 0;
        let whole = std::mem::take(&mut self.partial_lines);
        Some(String::from_utf8_lossy(&whole).into_owned())
    }

    /// Reports the collected lines that are not part of a message as violations.
    pub fn report_partial_lines(&mut self) {
        let partial_lines = std::mem::take(&mut self.partial_lines);
        self.partial_line_count = 0;
        for line in partial_lines
            .split(|byte| *byte == b'\n')
            .filter(|line| !line.is_empty())
            .take(MAX_REPORTED_LINES)
        {
            let text = String::from_utf8_lossy(line);
            let text: String = text.chars().take(SHOWN_CHARS).collect();
            let message = format!("it is not JSON: {text}");
            self.add_breach(&rules::STDOUT_CLEAN, message, Evidence::default());
        }
    }

    /// Checks a message, prints it if requested, and adds violations by the server to the report.
    fn observe(&mut self, from: Direction, text: &str) {
        let observed = self.conversation.observe(Some(from), text);
        if self.is_tracing {
            let painter = crate::output::Painter::stderr();
            let words = crate::proxy::format_trace(&observed, text, painter);
            print_to_stderr(&words);
        }
        // Some messages of the doctor are invalid intentionally.
        if from == Direction::Server && !observed.breaches.is_empty() {
            let json = mcp_exact_wire::from_str::<mcp_exact_wire::Json>(text).ok();
            for breach in &observed.breaches {
                let entry = json
                    .as_ref()
                    .and_then(|json| named_entry(value::Value::of(json), &breach.pointer));
                let evidence = Evidence {
                    subject: entry.or_else(|| self.subject.clone()),
                    message: Some(text.to_owned()),
                    ..Evidence::default()
                };
                self.report.add(self.revision, breach, evidence);
            }
        }
    }

    /// Describes how the process of the server has ended, and what it wrote last; `None` for other servers.
    pub fn last_words(&self) -> Option<(String, Vec<String>)> {
        match &self.channel {
            Channel::Process(process) => {
                let status = process.exit_status()?;
                Some((status.to_string(), process.last_words()))
            }
            #[cfg(feature = "http")]
            Channel::HttpSession(_) | Channel::SseSession(_) => None,
        }
    }

    /// Receives the last messages and closes the connection.
    pub fn end(mut self) {
        self.listen(Duration::from_millis(50));
        self.report_partial_lines();
        match self.channel {
            Channel::Process(process) => {
                process.end(Duration::from_secs(2));
            }
            #[cfg(feature = "http")]
            Channel::HttpSession(_) | Channel::SseSession(_) => {}
        }
    }
}

/// Returns the `clientInfo` of the doctor.
pub fn client_info() -> Value {
    json!({"name": "mcp-exact-doctor", "version": env!("CARGO_PKG_VERSION")})
}
