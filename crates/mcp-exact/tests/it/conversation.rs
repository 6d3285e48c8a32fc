//! Log lines of client and server: requests (`RUST_LOG=mcp_exact=debug`), without their arguments, and warnings.

use std::fmt;
use std::sync::{Arc, Mutex};

use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Client, Input, JsonObject, RawRequest, Server, revisions};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Subscriber that records the log lines of this crate at a level and above.
struct RecordedLines(Level, Arc<Mutex<Vec<String>>>);

impl Subscriber for RecordedLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= self.0 && metadata.target().starts_with("mcp_exact::")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = LineVisitor(String::new());
        event.record(&mut line);
        self.1.lock().expect("no panic").push(line.0);
    }

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

/// Visitor that keeps the message of an event.
struct LineVisitor(String);

impl Visit for LineVisitor {
    fn record_debug(&mut self, field: &Field, value: &dyn fmt::Debug) {
        if field.name() == "message" {
            self.0 = format!("{value:?}");
        }
    }
}

/// Arguments of the tool `echo`.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Arguments {
    text: String,
}

/// Client and server log the method, the tool and the outcome of a call, but not the arguments.
#[tokio::test]
async fn conversation_lines_name_the_request() {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let recorded = RecordedLines(Level::DEBUG, Arc::clone(&lines));
    let _subscriber = tracing::subscriber::set_default(recorded);
    let server = Server::builder("test", "1.0.0")
        .tool("echo", |Input(arguments): Input<Arguments>| async move {
            arguments.text
        })
        .build()
        .expect("a server");
    let client = Client::in_memory(&server).await.expect("connected");
    let arguments = serde_json::json!({"text": "hunter2"});
    // The server's last line is written after the client has its result.
    let expected = [
        "-> tools/call echo",
        "<- tools/call echo (",
        "-> tools/call echo: result after ",
        "<- tools/call echo: result",
    ];
    let missing = || {
        let lines = lines.lock().expect("no panic");
        let has = |expected: &&str| lines.iter().any(|line| line.starts_with(*expected));
        expected.into_iter().find(|line| !has(line))
    };
    // A test beside this one that logs the same for the first time, without a subscriber, may switch a line off for all
    // threads; the next subscriber switches it on.
    for _ in 0..3 {
        tracing::callsite::rebuild_interest_cache();
        let text: String = client.call("echo", &arguments).await.expect("a text");
        assert_eq!(text, "hunter2");
        for _ in 0..100 {
            if missing().is_some() {
                tokio::task::yield_now().await;
            }
        }
        if missing().is_none() {
            break;
        }
    }
    assert_eq!(missing(), None);
    let lines = lines.lock().expect("no panic");
    assert!(!lines.iter().any(|line| line.contains("hunter2")));
}

/// "Clients SHOULD log a warning when rejecting a tool definition, including the tool name and the reason for rejection"
/// (2026-07-28, `basic/transports/streamable-http`, "Schema Extension").
#[tokio::test]
async fn rejected_tools_are_logged() {
    let lines: Arc<Mutex<Vec<String>>> = Arc::default();
    let recorded = RecordedLines(Level::WARN, Arc::clone(&lines));
    let _subscriber = tracing::subscriber::set_default(recorded);
    let server = Server::raw("raw", "1.0.0", |_: RawRequest| async {
        let schema =
            r#"{"type":"object","properties":{"a":{"type":"string","x-mcp-header":"a b"}}}"#;
        let list = format!(r#"{{"tools":[{{"name":"bad","inputSchema":{schema}}}]}}"#);
        mcp_exact::Ok(list.parse::<JsonObject>()?)
    })
    .capability("tools", JsonObject::new())
    .build()
    .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let service = server.http(HttpServerOptions::default());
    let serving = tokio::spawn(listener.serve(service, std::future::pending()));
    let newest = revisions().find(|revision| revision.as_str() == "2026-07-28");
    let client = Client::connect(&url).revision(newest.expect("it is compiled in"));
    let client = client.await.expect("connected");
    // As above: another test may have switched the line off.
    for _ in 0..3 {
        tracing::callsite::rebuild_interest_cache();
        let tools = client.tools().all().await.expect("listed");
        assert!(tools.is_empty(), "{tools:?}");
    }
    client.close();
    serving.abort();
    let lines = lines.lock().expect("no panic");
    let expected =
        "the tool \"bad\" was removed from the list: `x-mcp-header` must be an HTTP token";
    assert!(
        lines.iter().any(|line| line.starts_with(expected)),
        "{lines:?}"
    );
}
