//! Recording of sessions, and replay against another build of the server.

use std::time::Duration;

use mcp_exact::testing::{Recording, record};
use mcp_exact::{Cx, Error, Form, Server, revisions, schemars, serde};

use crate::common::object;

/// Form that asks for a confirmation.
#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Confirm {
    yes: bool,
}

/// Creates a server with a tool `greet`, which elicits a confirmation and returns the greeting.
fn server(greeting: &'static str) -> Server {
    Server::builder("test", "1.0.0")
        .tool("greet", move |cx: Cx| async move {
            cx.progress(1, 2)?;
            let sure = cx
                .elicit::<Confirm>("Sure?")
                .await?
                .accepted_with(|form| form.yes);
            Ok::<_, Error>(format!("{greeting}, {sure}"))
        })
        .build()
        .expect("a server")
}

/// Records a session with an input request, whose sealed `requestState` differs in each run.
async fn record_session(server: &Server, revision: &str) -> Recording {
    let (connect, recorder) = record(server);
    let client = connect
        .revision(
            revisions()
                .find(|one| one.as_str() == revision)
                .expect("a revision"),
        )
        .on_elicit(|form: Form| async move { form.accept(&object(r#"{"yes":true}"#)) })
        .await
        .expect("a client");
    let text: String = client.call("greet", &()).await.expect("a text");
    assert_eq!(text, "Hello, true");
    recorder.recording()
}

/// A recording matches an equal server, and a mismatch names the messages that differ.
#[tokio::test]
async fn recordings_are_replayed() {
    let recorded_with = server("Hello");
    for revision in ["2025-06-18", "2026-07-28"] {
        let recording = record_session(&recorded_with, revision).await;
        let text = recording.to_string();
        assert!(
            text.lines()
                .next()
                .is_some_and(|line| line.starts_with(r#"{"client":"#))
        );
        let recording: Recording = text.parse().expect("a recording");
        recording.replay(&server("Hello")).await.expect("the same");
        let mismatch = recording.replay(&server("Goodbye")).await;
        let mismatch = mismatch.expect_err("another text").to_string();
        assert!(
            mismatch.contains("Goodbye, true") && mismatch.contains("Hello, true"),
            "{mismatch}"
        );
    }
}

/// A message that the server does not send within the time limit is a mismatch.
#[tokio::test]
async fn replay_reports_missing_messages() {
    let recording: Recording = r#"{"client":{"jsonrpc":"2.0","method":"notifications/initialized"}}
{"server":{"jsonrpc":"2.0","id":1,"result":{}}}"#
        .parse()
        .expect("a recording");
    let recording = recording.message_timeout(Duration::from_millis(50));
    let mismatch = recording
        .replay(&server("Hello"))
        .await
        .expect_err("nothing comes");
    assert!(
        mismatch.to_string().starts_with("the server did not send"),
        "{mismatch}"
    );
}
