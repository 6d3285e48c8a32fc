//! Time limits of clients: of calls that report progress or wait for input, of subscriptions, and what is said of their end.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use mcp_exact::testing::{every_revision, revisions_from};
use mcp_exact::transport::LineTransport;
use mcp_exact::{
    Client, ClientChange, ClientError, Connect, Cx, Error, Form, FormAnswer, Host, HostError,
    Level, Server, revisions, schemars, serde,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;
use tokio::task::JoinHandle;
use tokio::time::{sleep, timeout};

use crate::common::object;

/// Form that asks for a confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "the form is never filled in")]
struct Confirm {
    yes: bool,
}

fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// Connects to a server of 2026-07-28 that answers with the lines of `answer` for a method, in which `ID` is the id of the request;
/// without lines, to `server/discover` alone. The task ends with the connection.
fn scripted(
    mut answer: impl FnMut(&str) -> Option<&'static str> + Send + 'static,
) -> (Connect, JoinHandle<()>) {
    const DISCOVERED: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private","capabilities":{"tools":{"listChanged":true},"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}}"#;
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, mut writer) = tokio::io::split(far);
    let serving = tokio::spawn(async move {
        let mut lines = tokio::io::BufReader::new(reader).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            let message = object(&line);
            let Some(id) = message.get("id") else {
                continue;
            };
            let method: String = message
                .get("method")
                .expect("a method")
                .parse()
                .expect("text");
            let answer = answer(&method);
            let lines = answer.or((method == "server/discover").then_some(DISCOVERED));
            let text = lines.unwrap_or_default().replace("ID", &id.to_string());
            if !text.is_empty() {
                let text = format!("{text}\n");
                writer.write_all(text.as_bytes()).await.expect("it reads");
            }
        }
    });
    let (reader, writer) = tokio::io::split(near);
    let newest = revisions().next_back().expect("a revision");
    let connect = Client::over(LineTransport::new(reader, writer, 64 << 10)).revision(newest);
    (connect, serving)
}

/// A server that does not acknowledge subscriptions, such as behind a proxy that buffers event streams, is connected all the same;
/// the client goes on trying, and reports what may have changed. `Client::subscribe` ends with the idle timeout.
#[tokio::test(start_paused = true)]
async fn subscriptions_end_without_acknowledgement() {
    const ACKNOWLEDGED: &str = r#"{"jsonrpc":"2.0","method":"notifications/subscriptions/acknowledged","params":{"_meta":{"io.modelcontextprotocol/subscriptionId":ID},"notifications":{"toolsListChanged":true}}}"#;
    let count = Arc::new(AtomicUsize::new(0));
    let (connect, _serving) = scripted(move |method| {
        let is_second =
            method == "subscriptions/listen" && count.fetch_add(1, Ordering::SeqCst) == 1;
        is_second.then_some(ACKNOWLEDGED)
    });
    let (sender, mut changes) = mpsc::unbounded_channel();
    let connect = connect.on_change(move |change| drop(sender.send(change)));
    let connected = timeout(seconds(6), connect.idle_timeout(seconds(8))).await;
    let client = connected.expect("in time").expect("a client");
    assert_eq!(changes.recv().await, Some(ClientChange::Tools));
    let subscribed = timeout(seconds(9), client.subscribe(["x://a"])).await;
    let error = subscribed
        .expect("in time")
        .expect_err("no acknowledgement");
    assert_eq!(error, ClientError::NotAcknowledged);
}

/// The attempts to subscribe in the background do not keep the connection of a client that was dropped.
#[tokio::test(start_paused = true)]
async fn silent_subscriptions_keep_no_connection() {
    let (sender, mut methods) = mpsc::unbounded_channel();
    let (connect, serving) = scripted(move |method| {
        sender.send(method.to_owned()).expect("a receiver");
        None
    });
    let client = connect.on_change(|_| {}).await.expect("a client");
    for expected in [
        "server/discover",
        "subscriptions/listen",
        "subscriptions/listen",
    ] {
        assert_eq!(methods.recv().await.as_deref(), Some(expected));
    }
    drop(client);
    let ended = timeout(seconds(1), serving).await;
    ended.expect("the connection ends").expect("no panic");
}

/// A server may lack the method although it declares `listChanged`. The error of a subscription names the method.
#[tokio::test(start_paused = true)]
async fn refused_list_subscriptions_are_no_failure() {
    const REFUSED: &str = r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"Method not found","data":7}}"#;
    let refusing = |method: &str| (method == "subscriptions/listen").then_some(REFUSED);
    let (connect, _serving) = scripted(refusing);
    let client = connect.on_change(|_| {}).await.expect("a client");
    let error = client
        .subscribe(["x://a"])
        .await
        .expect_err("no such method");
    let expected =
        "the server answered with an error: `subscriptions/listen`: Method not found (-32601)";
    assert_eq!(error.to_string(), expected);
    let ClientError::Server(error) = error else {
        panic!("{error}");
    };
    assert_eq!(
        error.data().map(|data| data.to_string()).as_deref(),
        Some("7")
    );
}

/// The end of a subscription before its acknowledgement is no end of the connection, and the error does not say so.
#[tokio::test(start_paused = true)]
async fn ended_subscriptions_have_their_own_reason() {
    const ENDED: &str = r#"{"jsonrpc":"2.0","id":ID,"result":{"resultType":"complete"}}"#;
    let ending = |method: &str| (method == "subscriptions/listen").then_some(ENDED);
    let (connect, _serving) = scripted(ending);
    let client = connect.await.expect("a client");
    let error = client.subscribe(["x://a"]).await.expect_err("it has ended");
    assert_eq!(error, ClientError::SubscriptionEnded);
    assert!(!client.is_closed());
}

/// A host uses a server that does not acknowledge the subscription to its lists.
#[tokio::test(start_paused = true)]
async fn hosts_use_silent_servers() {
    let (silent, _serving) = scripted(|_| None);
    let host = Host::builder()
        .server("silent", silent)
        .timeout(seconds(3))
        .configure(|_, connect| connect.on_change(|_| {}))
        .start()
        .await;
    assert_eq!(host.failures().collect::<Vec<_>>(), []);
    assert_eq!(host.servers().collect::<Vec<_>>(), ["silent"]);
}

/// A server with a tool that reports progress every half a second, for four seconds.
fn slow() -> Server {
    let work = |cx: Cx| async move {
        for done in 1..=8 {
            sleep(Duration::from_millis(500)).await;
            cx.progress(done, 8)?;
        }
        Ok::<_, Error>("done")
    };
    Server::builder("slow", "1")
        .tool("work", work)
        .build()
        .expect("a server")
}

/// "Implementations MAY choose to reset the timeout clock when receiving a progress notification" (`basic/lifecycle`, "Timeouts"), also
/// of calls whose progress nobody looks at. The total limit holds regardless of progress.
#[tokio::test(start_paused = true)]
async fn progress_extends_every_call() {
    let server = slow();
    let connect = || Client::in_memory(&server).idle_timeout(seconds(1));
    every_revision(connect, |client| async move {
        let text: String = client.call("work", &()).await.expect("a text");
        assert_eq!(text, "done");
        let limited = client.call_tool("work", &()).timeout(seconds(3)).await;
        assert_eq!(limited.err(), Some(ClientError::TimedOut));
    })
    .await;
    let connect = || connect().request_timeout(seconds(3));
    every_revision(connect, |client| async move {
        let limited = client.call_tool("work", &()).await;
        assert_eq!(limited.err(), Some(ClientError::TimedOut));
        let longer = client.call_tool("work", &()).timeout(seconds(5)).await;
        assert_eq!(longer.expect("a result").text(), "done");
    })
    .await;
}

/// Calls of a host are extended by progress, too, and have the options of calls.
#[tokio::test(start_paused = true)]
async fn hosts_extend_calls_by_progress() {
    let connect = Client::in_memory(&slow()).idle_timeout(seconds(1));
    let host = Host::builder().server("slow", connect).start().await;
    let output = host.call("slow__work", &()).await.expect("a result");
    assert_eq!(output.text(), "done");
    let (sender, mut steps) = mpsc::unbounded_channel();
    let called = host.call_with("slow__work", &(), |call| {
        let call = call.timeout(seconds(3));
        call.on_progress(move |progress| {
            let _ = sender.send(progress.done);
        })
    });
    let error = called.await.expect_err("a limit");
    let timed_out =
        matches!(&error, HostError::Client { error, .. } if *error == ClientError::TimedOut);
    assert!(timed_out, "{error}");
    assert!(steps.recv().await.is_some());
}

/// The time limit of each kind of request holds while the application answers a question of the server.
#[tokio::test(start_paused = true)]
async fn limits_hold_while_input_is_awaited() {
    async fn ask(cx: Cx) -> Result<String, Error> {
        let answer = cx.elicit::<Confirm>("Sure?").await?;
        Ok(format!("{}", answer.accepted().is_some()))
    }
    let server = Server::builder("test", "1")
        .tool("ask", ask)
        .prompt("ask", ask)
        .resource("x://a", ask)
        .build()
        .expect("a server");
    let connect = || {
        let client = Client::in_memory(&server);
        client.on_elicit(|_: Form| std::future::pending::<FormAnswer>())
    };
    let use_client = |client: Client, limit: Option<Duration>| async move {
        let (revision, wait) = (client.revision(), seconds(6));
        macro_rules! assert_ends {
            ($call:expr) => {
                let call = $call;
                let call = match limit {
                    Some(limit) => call.timeout(limit),
                    None => call,
                };
                let ended = timeout(wait, call).await.expect("in time");
                assert_eq!(ended.err(), Some(ClientError::TimedOut), "{revision}");
            };
        }
        assert_ends!(client.call_tool("ask", &()));
        assert_ends!(client.read("x://a"));
        assert_ends!(client.prompt("ask", []));
        let params = object(r#"{"name":"ask","arguments":{}}"#);
        assert_ends!(client.request("tools/call", Some(params)));
    };
    revisions_from("2025-06-18", connect, |client| {
        use_client(client, Some(seconds(1)))
    })
    .await;
    let limited = || connect().request_timeout(seconds(1));
    revisions_from("2025-06-18", limited, |client| use_client(client, None)).await;
}

/// Only text that a server sends instead of an answer is the cause of a missing answer: not a banner of its start.
#[tokio::test(start_paused = true)]
async fn banners_are_no_cause_of_timeouts() {
    const DISCOVERED: &str = "Starting the server\n{\"jsonrpc\":\"2.0\",\"id\":ID,\"result\":{\"resultType\":\"complete\",\"supportedVersions\":[\"2026-07-28\"],\"ttlMs\":0,\"cacheScope\":\"private\",\"capabilities\":{\"tools\":{}},\"serverInfo\":{\"name\":\"s\",\"version\":\"1\"}}}";
    let (with_banner, _serving) =
        scripted(|method| (method == "server/discover").then_some(DISCOVERED));
    let client = with_banner.await.expect("a client");
    let called = client.call_tool("any", &()).await;
    assert_eq!(called.err(), Some(ClientError::TimedOut));

    let (without, _serving) = scripted(|method| (method == "tools/call").then_some("no message"));
    let client = without.await.expect("a client");
    let called = client.call_tool("any", &()).await;
    assert_eq!(
        called.err(),
        Some(ClientError::NoMessage("no message".to_owned()))
    );
}

/// If a server prints text instead of answering, such as its usage, the host's error shows the text and not only the time limit.
#[tokio::test(start_paused = true)]
async fn hosts_show_what_silent_servers_print() {
    let (silent, _serving) = scripted(|_| Some("Usage: server --stdio"));
    let host = Host::builder().server("silent", silent);
    let host = host.timeout(seconds(3)).start().await;
    let (_, error) = host.failures().next().expect("a failure");
    let error = error.to_string();
    assert!(error.contains("Usage: server --stdio"), "{error}");
}

/// A time limit of any length is one: nothing ends, and nothing fails because no clock has its end.
#[tokio::test]
async fn limits_of_any_length_are_accepted() {
    let server = Server::builder("test", "1")
        .timeout(Duration::MAX)
        .tool("work", || async {
            tokio::task::yield_now().await;
            "done"
        })
        .build()
        .expect("a server");
    let client = Client::in_memory(&server)
        .connect_timeout(Duration::MAX)
        .idle_timeout(Duration::MAX)
        .request_timeout(Duration::MAX);
    let client = client.await.expect("a client");
    let done: String = client.call("work", &()).await.expect("a result");
    assert_eq!(done, "done");
    client.close();
    client.closed().await;
}

/// A server that refuses a log level still answers the call for which it was asked, and is not asked again by the next one.
#[tokio::test]
async fn refused_log_levels_fail_no_call() {
    let levels = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&levels);
    let (connect, _serving) = scripted(move |method| match method {
        "initialize" => Some(
            r#"{"jsonrpc":"2.0","id":ID,"result":{"protocolVersion":"2025-11-25","capabilities":{"tools":{},"logging":{}},"serverInfo":{"name":"s","version":"1"}}}"#,
        ),
        "logging/setLevel" => {
            count.fetch_add(1, Ordering::Relaxed);
            Some(r#"{"jsonrpc":"2.0","id":ID,"error":{"code":-32601,"message":"no levels"}}"#)
        }
        "tools/call" => Some(
            r#"{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"done"}]}}"#,
        ),
        _ => None,
    });
    let revision = revisions().find(|revision| revision.as_str() == "2025-11-25");
    let client = connect.revision(revision.expect("a revision"));
    let client = client.await.expect("a client");
    for _ in 0..2 {
        let call = client.call_tool("any", &()).log_level(Level::Debug);
        assert_eq!(call.await.expect("a result").text(), "done");
    }
    assert_eq!(levels.load(Ordering::Relaxed), 1);
    // Whoever sets the level of the session alone is told.
    let refused = client.set_log_level(Level::Info).await;
    assert!(
        matches!(refused, Err(ClientError::Server(_))),
        "{refused:?}"
    );
}
