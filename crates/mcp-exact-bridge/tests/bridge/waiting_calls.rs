//! Calls that wait for the answer of a client without a session, and the connections that they hold.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::transport::ClientHandle;
use mcp_exact::{Cx, Error, JsonObject, Progress, Revision, Server, revisions};
use mcp_exact_bridge::{Bridge, LossPolicy, Options};
use mcp_exact_session::{CallOptions, PeerError, RequestInput};
use tokio::runtime::Handle;
use tokio::sync::Notify;

use crate::common::{Add, Confirm, InMemory, Sum, bridge, client_of, listen, object, server};
use crate::isolation::{ACCEPT_RESPONSE, answering, call, outcome_of, raw_client};
use crate::matrix::wait_until;

/// Time limit that is longer than any call in these tests needs.
const TIMEOUT: Duration = Duration::from_secs(60);

/// Returns the revisions with sessions that have elicitation.
fn revisions_with_server_requests() -> impl Iterator<Item = Revision> {
    revisions().filter(|revision| ("2025-06-18".."2026").contains(&revision.as_str()))
}

/// Calls a tool, or retries a call with `input`; records the progress of the call.
async fn call_tool(
    client: &ClientHandle,
    name: &str,
    input: Option<RequestInput>,
    progress: Option<&Arc<Mutex<Vec<f64>>>>,
) -> Result<JsonObject, PeerError> {
    let options = CallOptions {
        input,
        progress: progress.is_some(),
        ..CallOptions::default()
    };
    let progress = progress.map(|seen| {
        let seen = Arc::clone(seen);
        let note = move |progress: &Progress| seen.lock().expect("a lock").push(progress.done);
        Box::new(note) as Box<_>
    });
    let params = object(&format!(r#"{{"name":"{name}","arguments":{{}}}}"#));
    outcome_of(client.request("tools/call", Some(params), options, progress)).await
}

/// Progress after a retry uses the progress token of the retry (2026-07-28, `basic/utilities/progress`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn progress_follows_the_retry() {
    for of_server in revisions_with_server_requests() {
        let bridge = bridge(InMemory::new(&server(of_server))).await;
        let listening = listen(&bridge).await;
        let client = raw_client(&listening.url, "own").await;
        let (before, after) = (Arc::default(), Arc::default());
        let required = call_tool(&client, "steps", None, Some(&before)).await;
        let required = required.expect("a question");
        let input = Some(answering(&required, ACCEPT_RESPONSE));
        let done = call_tool(&client, "steps", input, Some(&after)).await;
        assert!(done.expect("a result").to_string().contains("true"));
        let seen = [before, after].map(|seen| seen.lock().expect("a lock").clone());
        assert_eq!(seen, [vec![1.0], vec![2.0]], "server {of_server}");
        client.close();
    }
}

/// A waiting call ends when its server is lost, and releases its connection.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_call_ends_with_its_server() {
    for of_server in revisions_with_server_requests() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = bridge(upstream.clone()).await;
        let listening = listen(&bridge).await;
        let client = raw_client(&listening.url, "own").await;
        let required = call(&client, "{}", None).await.expect("a question");
        assert_eq!(bridge.usage().waiting_calls, 1);
        upstream.kill();
        let none = || bridge.usage().waiting_calls == 0;
        wait_until(none, &format!("server {of_server}: no call waits")).await;
        let late = call(&client, "{}", Some(answering(&required, ACCEPT_RESPONSE))).await;
        assert_eq!(late.expect_err("it has ended").code(), Some(-32602));
        client.close();
    }
}

/// An answer that cannot be converted is refused, and the client can retry with another one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unusable_answer_can_be_corrected() {
    let of_server = revisions_with_server_requests().next().expect("a revision");
    let mut options = Options::default();
    options.rules.losses = LossPolicy::Refuse;
    let bridge = Bridge::new(InMemory::new(&server(of_server)), options).await;
    let bridge = bridge.expect("a bridge");
    let listening = listen(&bridge).await;
    let client = raw_client(&listening.url, "own").await;
    let required = call_tool(&client, "sample", None, None).await;
    let required = required.expect("a question");
    let text = r#"{"type":"text","text":"Hi."}"#;
    let answer = |content: &str| {
        let answer = format!(r#"{{"role":"assistant","model":"m","content":{content}}}"#);
        Some(answering(&required, &answer))
    };
    // Before 2025-11-25 an answer has one block.
    let two = answer(&format!("[{text},{text}]"));
    let refused = call_tool(&client, "sample", two, None).await;
    assert_eq!(refused.expect_err("two blocks").code(), Some(-32602));
    assert_eq!(bridge.usage().waiting_calls, 1, "the call waits on");
    let done = call_tool(&client, "sample", answer(text), None).await;
    assert!(done.expect("a result").to_string().contains("Hi."));
    client.close();
}

/// Waiting calls and subscriptions of clients without a principal hold at most half of the connections; the other half
/// remains available for short calls.
#[tokio::test]
async fn waiting_calls_leave_connections_to_others() {
    for of_server in revisions_with_server_requests() {
        let mut options = Options::default();
        options.connections = 2;
        let bridge = Bridge::new(InMemory::new(&server(of_server)), options).await;
        let bridge = bridge.expect("a bridge");
        let listening = listen(&bridge).await;
        let client = raw_client(&listening.url, "own").await;
        let required = call(&client, "{}", None).await.expect("a question");
        for _ in 0..3 {
            let refused = call(&client, "{}", None).await.expect_err("too many");
            assert!(refused.message().contains("too many"), "{refused:?}");
        }
        assert_eq!(bridge.usage().waiting_calls, 1);
        let newest = revisions().next_back().expect("a revision");
        let other = client_of(&bridge, newest).await.expect("a client");
        let sum = other
            .call::<_, Sum>("add", &Add { a: 1, b: 2 })
            .into_future();
        let sum = tokio::time::timeout(TIMEOUT, sum).await;
        assert_eq!(sum.expect("a connection").expect("a sum").sum, 3);
        other.close();
        let next = call(&client, "{}", Some(answering(&required, ACCEPT_RESPONSE))).await;
        assert!(next.is_ok(), "server {of_server}: its own call goes on");
        client.close();
    }
}

/// A continued call still counts as a waiting call: its server can send further input requests even if the limit of
/// waiting calls is reached.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn continued_calls_can_ask_again() {
    for of_server in revisions_with_server_requests() {
        let (begun, is_begun) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let (may_ask, asks) = (Arc::clone(&begun), Arc::clone(&is_begun));
        let server = Server::builder("behind", "1.0.0")
            .revisions([of_server])
            .tool("ask", move |cx: Cx| {
                let (may_ask, asks) = (Arc::clone(&may_ask), Arc::clone(&asks));
                async move {
                    let first = cx.elicit::<Confirm>("First?").await?;
                    asks.notify_one();
                    may_ask.notified().await;
                    let second = cx.elicit::<Confirm>("Second?").await?;
                    let all = [first, second].map(|form| form.accepted_with(|form| form.yes));
                    Ok::<_, Error>(format!("{all:?}"))
                }
            })
            .build()
            .expect("a server");
        let mut options = Options::default();
        options.connections = 4;
        let bridge = Bridge::new(InMemory::new(&server), options).await;
        let bridge = bridge.expect("a bridge");
        let listening = listen(&bridge).await;
        let client = raw_client(&listening.url, "own").await;
        let first = call(&client, "{}", None).await.expect("a question");
        let other = call(&client, "{}", None).await.expect("a question");
        let next = tokio::spawn({
            let client = client.clone();
            async move { call(&client, "{}", Some(answering(&first, ACCEPT_RESPONSE))).await }
        });
        is_begun.notified().await;
        let refused = call(&client, "{}", None).await.expect_err("too many");
        assert!(refused.message().contains("too many"), "{refused:?}");
        begun.notify_one();
        let second = next.await.expect("no panic");
        let second = second.unwrap_or_else(|error| panic!("server {of_server}: {error:?}"));
        let end = call(&client, "{}", Some(answering(&second, ACCEPT_RESPONSE))).await;
        assert!(end.expect("a result").to_string().contains("true"));
        begun.notify_one();
        let other = call(&client, "{}", Some(answering(&other, ACCEPT_RESPONSE))).await;
        assert!(other.is_ok(), "server {of_server}");
        client.close();
    }
}

/// Answered input requests and released connections leave no timers.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn answered_calls_leave_no_timers() {
    for of_server in revisions_with_server_requests() {
        let bridge = bridge(InMemory::new(&server(of_server))).await;
        let listening = listen(&bridge).await;
        let client = raw_client(&listening.url, "own").await;
        let steps = async || {
            let required = call_tool(&client, "steps", None, None).await;
            let input = Some(answering(&required.expect("a question"), ACCEPT_RESPONSE));
            let done = call_tool(&client, "steps", input, None).await;
            assert!(done.expect("a result").to_string().contains("true"));
        };
        steps().await;
        let alive = || Handle::current().metrics().num_alive_tasks();
        let before = alive();
        for _ in 0..20 {
            steps().await;
        }
        // Tasks that have ended may not be counted yet.
        let few = || alive() < before + 10;
        wait_until(few, &format!("server {of_server}: the timers end")).await;
        client.close();
    }
}
