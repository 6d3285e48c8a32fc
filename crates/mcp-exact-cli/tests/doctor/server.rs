//! Server with one named fault, such as `answers-twice`, over stdio and HTTP. The server supports five revisions, with and
//! without the `initialize` handshake, and does not use the library, which would prevent the faults.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use serde_json::{Value, json};

/// Revisions with the `initialize` handshake.
const HANDSHAKE_REVISIONS: [&str; 4] = ["2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"];
/// Revision without the `initialize` handshake.
const DISCOVER_REVISION: &str = "2026-07-28";
/// Number of revisions, with and without the handshake.
pub const REVISION_COUNT: usize = HANDSHAKE_REVISIONS.len() + 1;
/// Number of revisions that the transport HTTP+SSE serves.
pub const SSE_REVISION_COUNT: usize = HANDSHAKE_REVISIONS.len();
/// Prefix of the names of members of `_meta` that the specification defines.
const META_PREFIX: &str = "io.modelcontextprotocol/";

/// Serves over `transport` with the given fault, until standard input ends.
pub fn serve(transport: &str, fault: &str) {
    match transport {
        "http" => serve_http(fault),
        "sse" => serve_sse(fault),
        _ => serve_stdio(fault),
    }
}

/// Reads the first line of a stream.
pub fn first_line(stream: impl Read) -> String {
    let mut line = String::new();
    let _ = BufReader::new(stream).read_line(&mut line);
    line.trim().to_owned()
}

/// State of one connection.
struct Server<'f> {
    /// Name of the fault; `none` for a server without a fault.
    fault: &'f str,
    /// Negotiated revision; empty before the negotiation.
    revision: String,
}

impl Server<'_> {
    /// Returns true if the server has the fault with this name.
    fn has_fault(&self, fault: &str) -> bool {
        self.fault == fault
    }

    /// Returns the messages that the server sends after it has received `message`.
    fn respond_to(&mut self, message: &Value) -> Vec<Value> {
        let Some(method) = message["method"].as_str() else {
            return Vec::new();
        };
        let Some(id) = message.get("id") else {
            return if self.has_fault("answers-notifications") {
                vec![json!({"jsonrpc": "2.0", "id": 0, "result": {}})]
            } else {
                Vec::new()
            };
        };
        let params = &message["params"];
        let version = params["_meta"][format!("{META_PREFIX}protocolVersion")].as_str();
        let stateless = version.is_some() && method != "initialize";
        let mut answers = match method {
            _ if stateless => self.messages_before_stateless_response(params),
            "tools/list" => self.messages_before_tool_list(),
            "tools/call" => self.progress_messages(params),
            _ => Vec::new(),
        };
        let outcome = if stateless {
            self.respond_stateless(method, params, version.unwrap_or_default())
        } else {
            self.respond_to_handshake(method, params)
        };
        if self.has_fault("silent-on-unknown-method")
            && outcome.as_ref().is_err_and(|error| error.0 == -32601)
        {
            return answers;
        }
        let id = if self.has_fault("id-as-string") {
            json!(id.to_string())
        } else {
            id.clone()
        };
        let mut response = json!({"jsonrpc": "2.0", "id": id});
        match outcome {
            Ok(result) => response["result"] = result,
            Err((code, text, data)) => {
                response["error"] = json!({"code": code, "message": text});
                if !data.is_null() {
                    response["error"]["data"] = data;
                }
            }
        }
        if method == "subscriptions/listen" {
            return self.respond_to_subscription(id);
        }
        if self.has_fault("answers-twice") && method == "tools/list" {
            answers.push(response.clone());
        }
        answers.push(response);
        answers
    }

    /// Returns the messages that certain faults make the server send before the response to `tools/list` in a session.
    fn messages_before_tool_list(&self) -> Vec<Value> {
        match self.fault {
            "undeclared-logs" => vec![log_notification()],
            "asks-undeclared" => vec![json!({"jsonrpc": "2.0", "id": "q", "method": "roots/list"})],
            "cancels-others" => {
                vec![
                    json!({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 77}}),
                ]
            }
            _ => Vec::new(),
        }
    }

    /// Returns the messages that certain faults make the server send before the response to a request without a
    /// session.
    fn messages_before_stateless_response(&self, _: &Value) -> Vec<Value> {
        match self.fault {
            "logs-unasked" => vec![log_notification()],
            "sends-requests" => vec![json!({"jsonrpc": "2.0", "id": "q", "method": "ping"})],
            _ => Vec::new(),
        }
    }

    /// Returns the progress notifications that precede the response to a tool call.
    fn progress_messages(&self, params: &Value) -> Vec<Value> {
        let token = &params["_meta"]["progressToken"];
        let progress = |token: &Value, value: i64| {
            json!({"jsonrpc": "2.0", "method": "notifications/progress",
                "params": {"progressToken": token, "progress": value}})
        };
        if token.is_null() {
            return Vec::new();
        }
        match self.fault {
            "progress-goes-back" => vec![progress(token, 5), progress(token, 3)],
            "progress-of-others" => vec![progress(&json!("nobody's"), 1)],
            _ => vec![progress(token, 1), progress(token, 2)],
        }
    }

    /// Returns the messages after `subscriptions/listen`: the acknowledgement and, depending on the fault, a change.
    fn respond_to_subscription(&self, id: Value) -> Vec<Value> {
        let meta = json!({format!("{META_PREFIX}subscriptionId"): id});
        let acknowledged = json!({"jsonrpc": "2.0", "method": "notifications/subscriptions/acknowledged",
            "params": {"_meta": meta, "notifications": {"toolsListChanged": true}}});
        let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed", "params": {"_meta": meta}});
        if self.has_fault("late-acknowledgement") {
            vec![changed, acknowledged]
        } else {
            vec![acknowledged]
        }
    }

    /// Returns the declared capabilities.
    fn capabilities(&self) -> Value {
        if self.has_fault("undeclared-tools") {
            json!({"resources": {}, "prompts": {}})
        } else {
            json!({"tools": {"listChanged": true}, "resources": {}, "prompts": {}})
        }
    }

    /// Returns the result or error of a request in a revision with the `initialize` handshake.
    fn respond_to_handshake(&mut self, method: &str, params: &Value) -> Result<Value, Refusal> {
        match method {
            "initialize" => {
                let offer = params["protocolVersion"].as_str().unwrap_or_default();
                let agreed = match offer {
                    _ if self.has_fault("accepts-any-revision") => offer,
                    "2025-11-25" if self.has_fault("forgets-its-revision") => "2025-06-18",
                    _ if self.has_fault("forgets-its-revision") => "2025-11-25",
                    _ if HANDSHAKE_REVISIONS.contains(&offer) => offer,
                    _ => "2025-11-25",
                };
                self.revision = agreed.to_owned();
                let mut result = json!({"protocolVersion": agreed, "capabilities": self.capabilities(),
                    "serverInfo": {"name": "faulty", "version": "1.0.0"}});
                if self.has_fault("no-server-info") {
                    result
                        .as_object_mut()
                        .map(|result| result.remove("serverInfo"));
                }
                Ok(result)
            }
            "ping" if self.has_fault("refuses-ping") => {
                Err(new_refusal(-32601, "Method not found"))
            }
            "ping" => Ok(json!({})),
            _ => self.respond_to_feature(method, params, -32002),
        }
    }

    /// Returns the result or error of a request in the revision without a handshake; `version` is the revision that the
    /// request specifies.
    fn respond_stateless(
        &mut self,
        method: &str,
        params: &Value,
        version: &str,
    ) -> Result<Value, Refusal> {
        if version != DISCOVER_REVISION && !self.has_fault("any-revision-in-meta") {
            let data = json!({"supported": [DISCOVER_REVISION], "requested": version});
            return Err((-32022, "Unsupported protocol version".to_owned(), data));
        }
        let declared = params["_meta"].get(format!("{META_PREFIX}clientCapabilities"));
        if declared.is_none() && !self.has_fault("metadata-not-needed") {
            return Err(new_refusal(-32602, "clientCapabilities are missing"));
        }
        let mut result = match method {
            "prompts/list" if self.has_fault("backend-away") => {
                return Err(new_refusal(-32603, "The backend is away"));
            }
            "prompts/list" if self.has_fault("list-unknown") => {
                return Err(new_refusal(-32601, "Method not found"));
            }
            "server/discover" if self.has_fault("no-discover") => {
                return Err(new_refusal(-32601, "Method not found"));
            }
            "server/discover" => {
                json!({"supportedVersions": [DISCOVER_REVISION], "capabilities": self.capabilities()})
            }
            "subscriptions/listen" => json!({}),
            _ => self.respond_to_feature(method, params, -32602)?,
        };
        let lists = [
            "tools/list",
            "prompts/list",
            "resources/list",
            "resources/templates/list",
            "resources/read",
            "server/discover",
        ];
        if lists.contains(&method) {
            result["ttlMs"] = json!(0);
            result["cacheScope"] = json!("private");
        }
        result["_meta"] =
            json!({format!("{META_PREFIX}serverInfo"): {"name": "faulty", "version": "1.0.0"}});
        result["resultType"] = json!("complete");
        if self.has_fault("no-result-type") && method == "tools/list" {
            result
                .as_object_mut()
                .map(|result| result.remove("resultType"));
        }
        if self.has_fault("asks-in-lists") && method == "prompts/list" {
            return Ok(json!({"resultType": "input_required", "requestState": "s"}));
        }
        Ok(result)
    }

    /// Returns the result or error of a request that all revisions define; `not_found` is the error code for a missing
    /// resource.
    fn respond_to_feature(
        &self,
        method: &str,
        params: &Value,
        not_found: i64,
    ) -> Result<Value, Refusal> {
        let invalid_cursor = params.get("cursor").is_some();
        match method {
            "tools/list" | "prompts/list" | "resources/list" | "resources/templates/list"
                if invalid_cursor =>
            {
                Err(new_refusal(-32602, "Invalid cursor"))
            }
            "tools/list" => {
                let mut tools = vec![self.tool_definition()];
                tools.extend(self.second_name().map(
                    |name| json!({"name": name, "inputSchema": {"type": "object", "properties": {}}}),
                ));
                Ok(json!({"tools": tools}))
            }
            "tools/call" if params["name"] == "measure" => {
                let mut result = json!({"content": [{"type": "text", "text": "{\"size\":1}"}]});
                if !self.has_fault("no-structured-content") {
                    result["structuredContent"] = json!({"size": 1});
                }
                Ok(result)
            }
            "resources/list" => Ok(json!({"resources": [{"uri": "faulty://one", "name": "one"}]})),
            "resources/templates/list" => Ok(json!({"resourceTemplates": []})),
            "resources/read" if params["uri"] == "faulty://one" => {
                Ok(json!({"contents": [{"uri": "faulty://one", "text": "1"}]}))
            }
            "resources/read" => match self.fault {
                "empty-contents" => Ok(json!({"contents": []})),
                "old-error-code" => Err(new_refusal(-32002, "Resource not found")),
                "own-error-code" => Err(new_refusal(-32077, "Resource not found")),
                _ => Err(new_refusal(not_found, "Resource not found")),
            },
            "prompts/list" => Ok(json!({"prompts": [{"name": "greet"}]})),
            "prompts/get" if params["name"] == "greet" => Ok(
                json!({"messages": [{"role": "user", "content": {"type": "text", "text": "Hello"}}]}),
            ),
            "prompts/get" => Err(new_refusal(-32602, "Unknown prompt")),
            _ if self.has_fault("result-for-unknown-method") => Ok(json!({})),
            _ => Err(new_refusal(-32601, "Method not found")),
        }
    }

    /// Returns the name of a second tool that is listed and never called, if it is the fault.
    fn second_name(&self) -> Option<String> {
        match self.fault {
            "same-name" => Some("measure".to_owned()),
            "spaced-name" => Some("measure twice".to_owned()),
            "very-long-name" => Some("m".repeat(129)),
            "dotted-name" => Some("measure.twice".to_owned()),
            "long-name" => Some("m".repeat(65)),
            _ => None,
        }
    }

    /// Returns the definition of the tool `measure`.
    fn tool_definition(&self) -> Value {
        let size = if self.has_fault("list-of-types") {
            json!({"type": ["integer", "null"]})
        } else {
            json!({"type": "integer"})
        };
        let mut tool = json!({"name": "measure", "inputSchema": {"type": "object", "properties": {"size": size}},
            "outputSchema": {"type": "object", "properties": {"size": {"type": "integer"}}}});
        if self.has_fault("tool-without-schema") {
            tool.as_object_mut().map(|tool| tool.remove("inputSchema"));
        }
        tool
    }
}

/// Error response: code, message and data.
type Refusal = (i64, String, Value);

/// Returns an error response without data.
fn new_refusal(code: i64, text: &str) -> Refusal {
    (code, text.to_owned(), Value::Null)
}

/// Returns a notification with a log message.
fn log_notification() -> Value {
    json!({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": "here"}})
}

impl Server<'_> {
    /// Returns the messages that the server sends after it has received a message or a batch.
    fn respond_to_all(&mut self, message: &Value) -> Vec<Value> {
        match message {
            Value::Array(_)
                if self.has_fault("refuses-batches") || self.revision != "2025-03-26" =>
            {
                vec![
                    json!({"jsonrpc": "2.0", "id": "none", "error": {"code": -32600, "message": "no batches"}}),
                ]
            }
            Value::Array(items) => {
                let all = items.iter().flat_map(|item| self.respond_to(item));
                vec![Value::Array(all.collect())]
            }
            one => self.respond_to(one),
        }
    }
}

/// Serves one connection on standard input and output.
fn serve_stdio(fault: &str) {
    let mut server = Server {
        fault,
        revision: String::new(),
    };
    let mut out = io::stdout().lock();
    if fault == "prints-to-stdout" {
        let _ = writeln!(out, "Server is ready");
    }
    for (number, line) in io::stdin().lock().lines().map_while(Result::ok).enumerate() {
        let message: Value = serde_json::from_str(&line).unwrap_or_default();
        let offer = &message["params"]["protocolVersion"];
        let is_ended = match (fault, message["method"].as_str()) {
            ("exits-in-call", Some("tools/call")) => true,
            ("exits-on-probe", Some("server/discover")) => number == 0,
            ("exits-on-unknown-offer", Some("initialize")) => offer == "1999-01-01",
            ("exits-at-once", _) => true,
            _ => false,
        };
        if is_ended {
            let _ = writeln!(io::stderr(), "Traceback\n  KeyError: <b>");
            std::process::exit(3);
        }
        if fault == "silent-in-call" && message["method"] == "tools/call" {
            continue;
        }
        if fault == "prints-in-call" && message["method"] == "tools/call" {
            let _ = writeln!(out, "adding");
        }
        if let Some(pause) = pause_of_talk(fault, &message) {
            talk(&mut out, pause);
        }
        for answer in server.respond_to_all(&message) {
            let text = match fault {
                "pretty-prints" => serde_json::to_string_pretty(&answer),
                _ => serde_json::to_string(&answer),
            };
            let _ = writeln!(out, "{}", text.unwrap_or_default());
            let _ = out.flush();
        }
    }
}

/// Time for which a server talks instead of answering, longer than the doctor waits.
const TALK_TIME: Duration = Duration::from_secs(40);

/// Returns the pause between the notifications that a server with this fault sends before it answers a message; `None` if it sends
/// none.
fn pause_of_talk(fault: &str, message: &Value) -> Option<Duration> {
    let is_talking = match fault {
        "talks-in-batch" => message.is_array(),
        "talks-in-listen" => message["method"] == "subscriptions/listen",
        "floods-in-call" => message["method"] == "tools/call",
        _ => false,
    };
    let pause = if fault == "floods-in-call" { 0 } else { 100 };
    is_talking.then(|| Duration::from_millis(pause))
}

/// Sends notifications, and ends the server if nobody reads them.
fn talk(out: &mut impl Write, pause: Duration) {
    let changed = json!({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"});
    let begun = Instant::now();
    while begun.elapsed() < TALK_TIME {
        if writeln!(out, "{changed}").is_err() {
            std::process::exit(0);
        }
        if !pause.is_zero() {
            thread::sleep(pause);
        }
    }
}

/// Number of HTTP sessions so far.
static SESSION_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Ids of the HTTP sessions that the client has ended.
static ENDED_SESSIONS: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Serves over HTTP on a free port, and prints the URL.
fn serve_http(fault: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let _ = writeln!(io::stdout(), "http://{address}/mcp");
    let fault = fault.to_owned();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let fault = fault.clone();
            thread::spawn(move || serve_connection(stream, &fault));
        }
    });
    // The end of the input ends the program.
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// Serves over HTTP+SSE on a free port, and prints the URL: a session for each stream.
fn serve_sse(fault: &str) {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
    let address = listener.local_addr().expect("it is bound");
    let _ = writeln!(io::stdout(), "http://{address}/sse");
    let fault = fault.to_owned();
    let streams: Arc<Mutex<HashMap<String, Sender<Value>>>> = Arc::default();
    thread::spawn(move || {
        for stream in listener.incoming().map_while(Result::ok) {
            let (fault, streams) = (fault.clone(), Arc::clone(&streams));
            thread::spawn(move || serve_sse_connection(stream, &fault, &streams));
        }
    });
    // The end of the input ends the program.
    let _ = io::stdin().read_to_end(&mut Vec::new());
}

/// Serves the requests of one TCP connection: the stream of a session, or messages of sessions.
fn serve_sse_connection(
    stream: TcpStream,
    fault: &str,
    streams: &Mutex<HashMap<String, Sender<Value>>>,
) {
    let Ok(reading) = stream.try_clone() else {
        return;
    };
    let (mut input, mut output) = (BufReader::new(reading), stream);
    while let Some(request) = HttpRequest::read(&mut input) {
        if request.method == "GET" {
            let (sender, messages) = channel();
            let mut streams = streams.lock().expect("a lock");
            let path = format!("/messages/{}", streams.len());
            streams.insert(path.clone(), sender);
            drop(streams);
            let head = "HTTP/1.1 200 X\r\ncontent-type: text/event-stream\r\n\r\n";
            let _ = write!(output, "{head}event: endpoint\ndata: {path}\n\n");
            let mut server = Server {
                fault,
                revision: String::new(),
            };
            for message in messages {
                for answer in server.respond_to_all(&message) {
                    let event = format!("event: message\ndata: {answer}\n\n");
                    if output.write_all(event.as_bytes()).is_err() {
                        return;
                    }
                }
            }
            return;
        }
        let streams = streams.lock().expect("a lock");
        let sender = streams.get(&request.path);
        let is_known = sender.is_some_and(|sender| sender.send(request.body).is_ok());
        let status = if is_known { 202 } else { 404 };
        let head = format!("HTTP/1.1 {status} X\r\ncontent-length: 0\r\n\r\n");
        let _ = output.write_all(head.as_bytes());
    }
}

/// Responds to the requests of one TCP connection.
fn serve_connection(stream: TcpStream, fault: &str) {
    let Ok(reading) = stream.try_clone() else {
        return;
    };
    let (mut input, mut output) = (BufReader::new(reading), stream);
    while let Some(request) = HttpRequest::read(&mut input) {
        let (status, headers, body) = respond(&request, fault);
        let head = format!(
            "HTTP/1.1 {status} X\r\ncontent-length: {}\r\n{headers}\r\n",
            body.len()
        );
        if output
            .write_all(head.as_bytes())
            .and_then(|()| output.write_all(body.as_bytes()))
            .is_err()
        {
            return;
        }
    }
}

/// Received HTTP request.
struct HttpRequest {
    method: String,
    path: String,
    headers: Vec<(String, String)>,
    /// JSON body of the request; null if it has no body.
    body: Value,
}

impl HttpRequest {
    /// Reads a request; returns `None` if the connection is closed.
    fn read(input: &mut impl BufRead) -> Option<Self> {
        let mut line = String::new();
        if input.read_line(&mut line).ok()? == 0 {
            return None;
        }
        let mut words = line.split(' ');
        let method = words.next()?.to_owned();
        let path = words.next()?.to_owned();
        let mut headers = Vec::new();
        loop {
            let mut line = String::new();
            input.read_line(&mut line).ok()?;
            match line.trim().split_once(':') {
                Some((name, value)) => headers.push((name.to_lowercase(), value.trim().to_owned())),
                None => break,
            }
        }
        let mut request = Self {
            method,
            path,
            headers,
            body: Value::Null,
        };
        let length = request
            .header("content-length")
            .and_then(|length| length.parse().ok())
            .unwrap_or(0);
        let mut body = vec![0; length];
        input.read_exact(&mut body).ok()?;
        request.body = serde_json::from_slice(&body).unwrap_or_default();
        Some(request)
    }

    /// Returns the value of a header, by its name in lower case.
    fn header(&self, name: &str) -> Option<&str> {
        let found = self.headers.iter().find(|(found, _)| found == name);
        found.map(|(_, value)| value.as_str())
    }
}

/// Returns the response to an HTTP request: status, further header lines, and body.
fn respond(request: &HttpRequest, fault: &str) -> (u16, String, String) {
    let empty = |status: u16| (status, String::new(), String::new());
    if request.header("origin").is_some() && fault != "any-origin" {
        return empty(403);
    }
    let message = &request.body;
    let version = message["params"]["_meta"][format!("{META_PREFIX}protocolVersion")].as_str();
    let is_initialize = message["method"] == "initialize";
    let session_id = request.header("mcp-session-id").unwrap_or_default();
    match request.method.as_str() {
        "GET" => return empty(if fault == "get-404" { 404 } else { 405 }),
        "DELETE" => {
            let mut ended = ENDED_SESSIONS.lock().expect("a lock");
            ended.push(session_id.to_owned());
            return empty(204);
        }
        _ => {}
    }
    let mut server = Server {
        fault,
        revision: String::new(),
    };
    if let Some(version) = version {
        return respond_stateless_http(&mut server, request, version);
    }
    let ended = ENDED_SESSIONS.lock().expect("a lock");
    let has_ended = ended.iter().any(|ended| ended == session_id);
    drop(ended);
    if !is_initialize && has_ended && fault != "immortal-session" {
        return empty(404);
    }
    let header = request.header("mcp-protocol-version");
    let is_known = header.is_none_or(|header| HANDSHAKE_REVISIONS.contains(&header));
    if !is_known && fault != "any-version-header" {
        return empty(400);
    }
    let answers: Vec<Value> = match message {
        Value::Array(items) => {
            let all: Vec<Value> = items
                .iter()
                .flat_map(|item| server.respond_to(item))
                .collect();
            vec![Value::Array(all)]
        }
        one => server.respond_to(one),
    };
    let session = if is_initialize {
        let number = SESSION_COUNT.fetch_add(1, Ordering::Relaxed) + 1;
        format!("mcp-session-id: session-{number}\r\n")
    } else {
        String::new()
    };
    if answers.is_empty() {
        return match fault {
            "notification-200" => (200, String::new(), "{}".to_owned()),
            _ => empty(202),
        };
    }
    match answers.as_slice() {
        _ if fault == "wrong-content-type" => (
            200,
            format!("content-type: text/plain\r\n{session}"),
            answers[0].to_string(),
        ),
        [one] => (
            200,
            format!("content-type: application/json\r\n{session}"),
            one.to_string(),
        ),
        several => {
            let events: String = several
                .iter()
                .map(|event| format!("data: {event}\n\n"))
                .collect();
            (
                200,
                format!("content-type: text/event-stream\r\n{session}"),
                events,
            )
        }
    }
}

/// Returns the response to an HTTP request of the revision without a handshake: status, further header lines, and body.
fn respond_stateless_http(
    server: &mut Server<'_>,
    request: &HttpRequest,
    version: &str,
) -> (u16, String, String) {
    let message = &request.body;
    let json = "content-type: application/json\r\n".to_owned();
    if message.get("id").is_none() {
        return (202, String::new(), String::new());
    }
    let is_same = request.header("mcp-protocol-version") == Some(version)
        && request.header("mcp-method") == message["method"].as_str();
    if !is_same && !server.has_fault("headers-not-compared") {
        // A server that has older revisions, too, takes such a request for one of theirs, without its session.
        let is_older = request
            .header("mcp-protocol-version")
            .is_some_and(|header| HANDSHAKE_REVISIONS.contains(&header));
        let code = if server.has_fault("header-chooses-revision") && is_older {
            -32600
        } else {
            -32020
        };
        let error = json!({"jsonrpc": "2.0", "id": message["id"], "error": {"code": code, "message": "Header mismatch"}});
        return (400, json, error.to_string());
    }
    let answers = server.respond_to(message);
    let last = answers.last().cloned().unwrap_or_default();
    let status = match last["error"]["code"].as_i64() {
        Some(-32601) if !server.has_fault("unknown-method-200") => 404,
        Some(-32022 | -32602) => 400,
        _ => 200,
    };
    if answers.len() > 1 {
        let events: String = answers
            .iter()
            .map(|event| format!("data: {event}\n\n"))
            .collect();
        return (
            200,
            "content-type: text/event-stream\r\n".to_owned(),
            events,
        );
    }
    (status, json, last.to_string())
}
