//! Log of requests (`RUST_LOG=mcp_exact=debug`): the lines of client and server contain the requests, but no arguments.

use std::fmt;
use std::sync::{Arc, Mutex};

use mcp_exact::{Client, Input, Server};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

/// Subscriber that records the log lines of this crate at `debug` and above.
struct RecordedLines(Arc<Mutex<Vec<String>>>);

impl Subscriber for RecordedLines {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::DEBUG && metadata.target().starts_with("mcp_exact::")
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, event: &Event<'_>) {
        let mut line = LineVisitor(String::new());
        event.record(&mut line);
        self.0.lock().expect("no panic").push(line.0);
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
    let _subscriber = tracing::subscriber::set_default(RecordedLines(Arc::clone(&lines)));
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
