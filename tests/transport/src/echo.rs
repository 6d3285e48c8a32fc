//! Event handler of a test server with a few tools, and functions of a test client that calls the tools.
//!
//! Tools: `echo` replies immediately, `later` replies from a task, `never` does not reply, `count` and `slow` report
//! progress, `ask` requests the client's roots, `note` writes its argument into the journal of the process, `metrics`
//! returns the metrics of the connections of the process, `last` replies after the process is asked to end, and
//! `received` returns the number of calls of `last`.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_exact_session::{
    CallOptions, ClientConfig, ClientEvent, ClientSettings, Identity, IncomingRequest,
    InputRequest, JsonObject, Offer, Outcome, PeerError, Progress, RawResult, Reply, RequestKey,
    SendOutcome, ServerConfig, ServerEvent, ServerSettings, Side,
};
use mcp_exact_transport::{ClientHandle, RequestContext, ServerHandle, connection_metrics};
use serde_json::{Value, json};

use crate::file_store::Journal;
use crate::process::terminated;

/// Supported revisions, newest first.
pub const REVISIONS: [&str; 5] = [
    "2026-07-28",
    "2025-11-25",
    "2025-06-18",
    "2025-03-26",
    "2024-11-05",
];

/// Number of progress notifications of the tool `steps`.
pub const STEPS: u32 = 20;

/// Number of calls of the tool `last` that this process has received.
static LAST_CALLS: AtomicUsize = AtomicUsize::new(0);

/// Journal that the tool `note` writes to, if it is set.
pub static JOURNAL: OnceLock<Journal> = OnceLock::new();

/// Converts a JSON value to an object.
pub fn object(value: Value) -> JsonObject {
    value.to_string().parse().expect("an object")
}

/// Returns the settings of a server that offers all [`REVISIONS`].
pub fn server_settings() -> Arc<ServerSettings> {
    server_settings_of(&REVISIONS)
}

/// Returns the settings of a server that offers these revisions.
pub fn server_settings_of(revisions: &[&str]) -> Arc<ServerSettings> {
    let mut config = ServerConfig::new(Identity::new("echo", "1"));
    config.offer = Offer::new(revisions.iter().copied()).expect("compiled in");
    config.capabilities = object(json!({
        "tools": { "listChanged": true },
        "prompts": { "listChanged": true },
        "logging": {},
    }));
    config.build().expect("a configuration")
}

/// Returns the settings of a client that offers one revision and declares roots.
pub fn client_settings(revision: &str) -> Arc<ClientSettings> {
    let mut config = ClientConfig::new(Identity::new("tester", "1"));
    config.offer = Offer::new([revision]).expect("compiled in");
    config.capabilities = object(json!({ "roots": { "listChanged": true } }));
    config.handshake_timeout = Duration::from_secs(30);
    config.build().expect("a configuration")
}

/// Handles the events of the test server.
pub fn handle(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    if let ServerEvent::Request(request) = event
        && let Some(reply) = reply(server, &request)
    {
        server.reply(request.key, reply).expect("replied once");
    }
}

/// Handles the events of the test server in a process without a Tokio runtime.
pub fn handle_in_threads(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    let ServerEvent::Request(request) = event else {
        return;
    };
    let params = request.params().map(ToString::to_string);
    let params: Value = params.map_or(Value::Null, |text| text.parse().expect("JSON"));
    let argument = params["arguments"]["text"]
        .as_str()
        .unwrap_or("")
        .to_owned();
    let milliseconds = Duration::from_millis;
    // Progress notifications, the pause after each, and the reply.
    let (steps, pause, answer) = match params["name"].as_str().unwrap_or("") {
        "later" => (0, milliseconds(15), argument),
        "count" => (3, milliseconds(5), "counted".to_owned()),
        "steps" => (STEPS, Duration::ZERO, "done".to_owned()),
        "slow" => (10, milliseconds(50), "slow".to_owned()),
        _ => {
            if let Some(answer) = reply(server, &request) {
                server.reply(request.key, answer).expect("replied once");
            }
            return;
        }
    };
    let server = server.clone();
    std::thread::spawn(move || {
        for step in 1..=steps {
            let progress = Progress::new(f64::from(step));
            let _ = server.progress(request.key, &progress);
            std::thread::sleep(pause);
        }
        if steps == 0 {
            std::thread::sleep(pause);
        }
        // The session may be over.
        let _ = server.reply(request.key, text(&answer));
    });
}

/// Creates a tool result whose only content is this text.
fn text(text: &str) -> Reply {
    let result = json!({ "content": [{ "type": "text", "text": text }] });
    Reply::Result(RawResult::from(object(result)))
}

/// Returns the metrics of the process's connections as text, one line each.
fn metrics_text() -> String {
    let lines = connection_metrics().into_iter().map(|metrics| {
        let side = match metrics.side {
            Side::Client => "client",
            Side::Server => "server",
        };
        format!(
            "{} {side}: requests {}, errors {}, sessions {}, in flight {}",
            metrics.transport,
            metrics.requests,
            metrics.errors,
            metrics.sessions,
            metrics.in_flight
        )
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Returns the reply to a request; `None` if the reply is sent later or never.
fn reply(server: &ServerHandle, request: &IncomingRequest<RequestContext>) -> Option<Reply> {
    let params = request.params().map(|params| params.to_string());
    let params: Value = params.map_or(Value::Null, |text| text.parse().expect("JSON"));
    if request.method() == "tools/list" {
        let schema = json!({ "type": "object" });
        let tool = json!({ "tools": [{ "name": "echo", "inputSchema": schema }] });
        return Some(Reply::Result(RawResult::from(object(tool))));
    }
    if request.method() != "tools/call" {
        return Some(PeerError::method_not_found(request.method()).into());
    }
    let argument = params["arguments"]["text"].as_str().unwrap_or("");
    let (key, server) = (request.key, server.clone());
    match params["name"].as_str().unwrap_or("") {
        "echo" => Some(text(argument)),
        "note" => {
            if let Some(journal) = JOURNAL.get() {
                journal.note(argument);
            }
            Some(text(argument))
        }
        "metrics" => Some(text(&metrics_text())),
        "pid" => Some(text(&std::process::id().to_string())),
        "later" => {
            let argument = argument.to_owned();
            tokio::spawn(async move {
                tokio::time::sleep(Duration::from_millis(50)).await;
                let _ = server.reply(key, text(&argument));
            });
            None
        }
        "count" => {
            tokio::spawn(async move {
                for step in 1..=3 {
                    let _ = server.progress(key, &Progress::new(f64::from(step)));
                    tokio::time::sleep(Duration::from_millis(5)).await;
                }
                let _ = server.reply(key, text("counted"));
            });
            None
        }
        // Half a second.
        "slow" => {
            tokio::spawn(async move {
                for step in 1..=10 {
                    let _ = server.progress(key, &Progress::new(f64::from(step)));
                    tokio::time::sleep(Duration::from_millis(50)).await;
                }
                let _ = server.reply(key, text("slow"));
            });
            None
        }
        // More than any reader that does not read takes.
        "flood" => {
            let logger = "x".repeat(1 << 16);
            tokio::spawn(async move {
                for step in 1..=2000 {
                    let progress = Progress::new(f64::from(step)).with_message(&logger);
                    if server.progress(key, &progress) != Ok(SendOutcome::Queued) {
                        break;
                    }
                    tokio::task::yield_now().await;
                }
                let _ = server.reply(key, text("flooded"));
            });
            None
        }
        "steps" => {
            tokio::spawn(async move {
                for step in 1..=STEPS {
                    let _ = server.progress(key, &Progress::new(f64::from(step)));
                    if step % 3 == 0 {
                        tokio::task::yield_now().await;
                    }
                }
                let _ = server.reply(key, text("done"));
            });
            None
        }
        "ask" if request.responses.is_empty() => {
            let requests = vec![("roots".to_owned(), InputRequest::new("roots/list", None))];
            let state = None;
            Some(Reply::InputRequired { requests, state })
        }
        "ask" => {
            let roots = request.responses.result("roots");
            Some(text(&roots.map_or("none".to_owned(), |roots| {
                roots.object().to_string()
            })))
        }
        "last" => {
            reply_last(server, key, argument == "quietly");
            None
        }
        "received" => Some(text(&LAST_CALLS.load(Ordering::SeqCst).to_string())),
        "never" => None,
        other => Some(PeerError::invalid_params(format!("unknown tool {other}")).into()),
    }
}

/// Replies to a call some time after the process is asked to end. Unless the call is quiet, reports progress twice
/// before, and eight times after that.
fn reply_last(server: ServerHandle, key: RequestKey, is_quiet: bool) {
    let ended = terminated();
    LAST_CALLS.fetch_add(1, Ordering::SeqCst);
    tokio::spawn(async move {
        let report = |step: u32| {
            if !is_quiet {
                let _ = server.progress(key, &Progress::new(f64::from(step)));
            }
        };
        (1..=2).for_each(report);
        ended.await;
        for step in 3..=10 {
            tokio::time::sleep(Duration::from_millis(20)).await;
            report(step);
        }
        let _ = server.reply(key, text("last"));
    });
}

/// Handles the events of the test client: answers `roots/list`, and refuses other requests of the server.
pub fn answer(client: &ClientHandle, event: ClientEvent) {
    if let ClientEvent::Request { key, request, .. } = event {
        let answer = match request.method() {
            "roots/list" => Ok(RawResult::from(object(json!({ "roots": [] })))),
            other => Err(PeerError::method_not_found(other)),
        };
        client.answer(key, answer).expect("asked");
    }
}

/// Returns the params of a tool call with the argument `text`.
pub fn call_params(tool: &str, text: &str) -> Option<JsonObject> {
    Some(object(
        json!({ "name": tool, "arguments": { "text": text } }),
    ))
}

/// Calls a tool and returns the text of its result, or the outcome if the call has no result.
pub async fn call(client: &ClientHandle, tool: &str, text: &str) -> Result<String, Outcome> {
    let params = call_params(tool, text);
    let request = client.request("tools/call", params, CallOptions::default(), None);
    text_of(request.expect("sent").await)
}

/// Calls the tool `slow`, runs `then` at its first progress, and returns the text of the result.
pub async fn call_slow(
    client: &ClientHandle,
    then: impl FnOnce() + Send + 'static,
) -> Result<String, Outcome> {
    let then = std::sync::Mutex::new(Some(then));
    let note: mcp_exact_transport::ProgressCallback = Box::new(move |_| {
        if let Some(then) = then.lock().expect("not poisoned").take() {
            then();
        }
    });
    let options = CallOptions {
        progress: true,
        ..CallOptions::default()
    };
    let request = client.request("tools/call", call_params("slow", ""), options, Some(note));
    text_of(request.expect("sent").await)
}

/// Returns the text of a result; fails with any other outcome.
fn text_of(outcome: Outcome) -> Result<String, Outcome> {
    match outcome {
        Outcome::Result(result) => {
            let result: Value = result.object().to_string().parse().expect("JSON");
            Ok(result["content"][0]["text"]
                .as_str()
                .expect("a text")
                .to_owned())
        }
        other => Err(other),
    }
}

/// Calls the tools, and checks their results, on a connection whose negotiated revision must be `revision`.
pub async fn use_all(client: &ClientHandle, revision: &str) {
    let (agreed, _) = client.ready().await.expect("connected");
    assert_eq!(agreed.revision.as_str(), revision);
    assert_eq!(
        call(client, "echo", "h\u{e9}llo").await,
        Ok("h\u{e9}llo".to_owned())
    );
    assert_eq!(call(client, "later", "x").await, Ok("x".to_owned()));
    let steps = Arc::new(std::sync::Mutex::new(Vec::new()));
    let seen = Arc::clone(&steps);
    let note: mcp_exact_transport::ProgressCallback =
        Box::new(move |progress| seen.lock().expect("not poisoned").push(progress.done));
    let options = CallOptions {
        progress: true,
        ..CallOptions::default()
    };
    let counted = client.request("tools/call", call_params("count", ""), options, Some(note));
    let counted = counted.expect("sent").await;
    assert!(matches!(counted, Outcome::Result(_)), "{counted:?}");
    assert_eq!(*steps.lock().expect("not poisoned"), [1.0, 2.0, 3.0]);
    assert_eq!(
        call(client, "ask", "").await,
        Ok("{\"roots\":[]}".to_owned())
    );
    let unknown = call(client, "other", "").await.expect_err("unknown tool");
    let Outcome::Error(error) = unknown else {
        panic!("{unknown:?}");
    };
    assert_eq!(error.code(), Some(-32602));
}
