//! Changes at run time, and visibility of definitions.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact_revisions::Side;

use crate::common::object;
use crate::common::spec;
use mcp_exact::testing::every_revision;
use mcp_exact::{
    Caller, Client, ClientChange, ClientError, CloseReason, Cx, Input, ListedDefinition, Partial,
    Problem, Prompt, Resource, ResourceTemplate, Server, Tool, revisions, schemars, serde,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

/// Tools can be inserted, replaced and removed while clients of every revision are connected.
#[tokio::test]
async fn inserted_tools_are_listed() {
    let server = Server::builder("test", "1")
        .tool("first", || async { "1" })
        .build()
        .expect("a server");
    let shared = server.clone();
    every_revision(
        || Client::in_memory(&server),
        move |client| {
            let tools = shared.tools();
            async move {
                tools.insert("second", || async { "2" }).expect("a tool");
                let text: String = client.call("second", &()).await.expect("a text");
                assert_eq!(text, "2");
                tools
                    .insert("second", || async { "3" })
                    .expect("the same name replaces");
                let text: String = client.call("second", &()).await.expect("a text");
                assert_eq!(text, "3");
                assert_eq!(tools.names(), ["first", "second"]);
                assert!(tools.remove("second") && !tools.remove("second"));
                assert!(client.call_tool("second", &()).await.is_err());
            }
        },
    )
    .await;
}

/// Changes are announced (`server/tools`, "List Changed Notification"), from 2026-07-28 on to subscriptions.
#[tokio::test]
async fn list_changes_are_notified() {
    let server = Server::builder("test", "1")
        .declare_tools()
        .declare_prompts()
        .declare_resources()
        .build()
        .expect("a server");
    for revision in revisions() {
        let changes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&changes);
        let client = Client::in_memory(&server)
            .revision(revision)
            .on_change(move |change| seen.lock().expect("a lock").push(change))
            .await
            .expect("a client");
        server
            .tools()
            .insert("tool", || async { "" })
            .expect("a tool");
        server
            .prompts()
            .insert("prompt", || async { "" })
            .expect("a prompt");
        server
            .resources()
            .insert("x://a", || async { "" })
            .expect("a resource");
        let subscription = client.subscribe(["x://a"]).await.expect("a subscription");
        server.resources().updated("x://a");
        server.resources().updated("x://b");
        // The response arrives after all earlier notifications.
        client.tools().all().await.expect("tools");
        drop(subscription);
        client.tools().all().await.expect("tools");
        server.resources().updated("x://a");
        client.tools().all().await.expect("tools");
        let expected = [
            ClientChange::Tools,
            ClientChange::Prompts,
            ClientChange::Resources,
            ClientChange::Resource("x://a".to_owned()),
        ];
        assert_eq!(*changes.lock().expect("a lock"), expected, "{revision}");
        server.tools().remove("tool");
        server.prompts().remove("prompt");
        server.resources().remove("x://a");
        // The removals are announced too, and must not reach the next client.
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// A subscription to an unknown resource is an error, in every revision. From 2026-07-28 on, the acknowledgement of the
/// server leaves the resource out: "The subset of requested notification types the server agreed to honor".
#[tokio::test]
async fn unknown_resources_cannot_be_subscribed() {
    let server = Server::builder("test", "1")
        .resource("x://a", || async { "" })
        .build()
        .expect("a server");
    for revision in revisions() {
        let client = Client::in_memory(&server)
            .revision(revision)
            .await
            .expect("a client");
        let error = client
            .subscribe(["x://a", "x://none"])
            .await
            .expect_err("no such resource");
        match error {
            ClientError::Server(error) => assert_eq!(error.code(), Some(-32002)),
            error => assert_eq!(error, ClientError::SubscriptionRefused("x://none".into())),
        }
    }
}

/// A server of 2026-07-28 accepts a subscription without the resources that are hidden, and announces no update of them.
#[tokio::test]
async fn listeners_hear_of_visible_resources() {
    let (sender, mut changes) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::builder("test", "1")
        .resource("x://a", || async { "" })
        .resource("x://secret", || async { "" })
        .visible(|_, listed: ListedDefinition<'_>| listed.name() != "secret")
        .build()
        .expect("a server");
    let client = Client::in_memory(&server)
        .on_change(move |change| drop(sender.send(change)))
        .await
        .expect("a client");
    let filter = r#"{"notifications":{"resourceSubscriptions":["x://secret","x://a"]}}"#;
    let mut listening = client.request("subscriptions/listen", Some(object(filter)));
    tokio::select! {
        biased;
        ended = &mut listening => panic!("the subscription ended: {ended:?}"),
        // The response arrives after the acknowledgement.
        listed = client.resources().all() => drop(listed.expect("resources")),
    }
    server.resources().updated("x://secret");
    server.resources().updated("x://a");
    let first = changes.recv().await;
    assert_eq!(first, Some(ClientChange::Resource("x://a".to_owned())));
}

/// A tool cannot be inserted if the server has not declared the capability `tools`.
#[tokio::test]
async fn undeclared_kinds_cannot_be_inserted() {
    let server = Server::builder("test", "1").build().expect("a server");
    let error = server
        .tools()
        .insert("tool", || async { "" })
        .expect_err("no tools were declared");
    assert_eq!(
        error,
        Problem::NotDeclared {
            capability: "tools"
        }
    );
    assert_eq!(
        error.to_string(),
        "the server has not declared the capability `tools`; register one tools entry at the start or call `.declare_tools()`"
    );
}

/// A tool that requires tasks cannot be inserted into a server without tasks.
#[tokio::test]
async fn tasks_cannot_be_inserted_without_tasks() {
    let server = Server::builder("test", "1")
        .declare_tools()
        .build()
        .expect("a server");
    let tool = Tool::new("long").task().task_required();
    let error = server.tools().insert(tool, || async { "" });
    let name = "long".to_owned();
    assert_eq!(error, Err(Problem::NoTasks { name }));
    assert!(server.tools().names().is_empty());
}

/// A hidden tool is not listed, and a call of the tool has the error of an unknown tool.
#[tokio::test]
async fn hidden_tools_behave_as_unknown() {
    let server = Server::builder("test", "1")
        .tool(Tool::new("open"), || async { "open" })
        .tool(Tool::new("secret").scope("admin"), || async { "secret" })
        .visible(|caller: Caller<'_>, listed: ListedDefinition<'_>| {
            listed.scope().is_none() || caller.principal().is_some()
        })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let tools = client.tools().all().await.expect("tools");
            assert_eq!(tools.len(), 1);
            let hidden = client.call_tool("secret", &()).await.expect_err("hidden");
            let unknown = client.call_tool("nothing", &()).await.expect_err("unknown");
            let message = |error: ClientError| error.to_string().replace("secret", "nothing");
            assert_eq!(message(hidden), message(unknown));
        },
    )
    .await;
}

#[derive(Debug, serde::Deserialize, schemars::JsonSchema)]
struct Item {
    item: String,
}

/// Hidden and removed definitions have no completions: they are treated like definitions that never existed.
#[tokio::test]
async fn hidden_completions_behave_as_unknown() {
    let complete = |_: Partial| async { vec!["value".to_owned()] };
    let server = Server::builder("test", "1")
        .prompt(
            Prompt::new("secret").scope("admin"),
            |Input(item): Input<Item>| async { item.item },
        )
        .complete_prompt("secret", "item", complete)
        .prompt("removed", |Input(item): Input<Item>| async { item.item })
        .complete_prompt("removed", "item", complete)
        .template(
            ResourceTemplate::new("x://{item}").scope("admin"),
            |Input(item): Input<Item>| async { item.item },
        )
        .complete_template("x://{item}", "item", complete)
        .prompt("open", |Input(item): Input<Item>| async { item.item })
        .complete_prompt("open", "item", complete)
        .visible(|_, listed: ListedDefinition<'_>| listed.scope().is_none())
        .build()
        .expect("a server");
    server.prompts().remove("removed");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let complete = async |reference: &str| {
                let params =
                    format!(r#"{{"ref":{reference},"argument":{{"name":"item","value":""}}}}"#);
                let params = object(&params);
                client.request("completion/complete", Some(params)).await
            };
            let found = complete(r#"{"type":"ref/prompt","name":"open"}"#).await;
            assert!(found.expect("values").text().contains("value"));
            for hidden in [
                r#"{"type":"ref/prompt","name":"secret"}"#,
                r#"{"type":"ref/prompt","name":"removed"}"#,
                r#"{"type":"ref/resource","uri":"x://{item}"}"#,
            ] {
                let error = complete(hidden).await.expect_err("hidden");
                assert!(
                    matches!(error, ClientError::Server(error) if error.code() == Some(-32602))
                );
            }
        },
    )
    .await;
}

/// Clients receive no updates of a resource that is hidden, at the time of the subscription or later; the clients can
/// still unsubscribe.
#[tokio::test]
async fn hidden_resources_are_not_notified() {
    let hides = Arc::new(AtomicBool::new(false));
    let hidden = Arc::clone(&hides);
    let server = Server::builder("test", "1")
        .resource("x://a", || async { "" })
        .resource("x://later", || async { "" })
        .resource(Resource::new("x://secret").scope("admin"), || async { "" })
        .visible(move |_, listed: ListedDefinition<'_>| {
            let is_later = listed.name() == "later" && hidden.load(Ordering::SeqCst);
            listed.scope().is_none() && !is_later
        })
        .build()
        .expect("a server");
    for revision in revisions() {
        hides.store(false, Ordering::SeqCst);
        let changes = Arc::new(Mutex::new(Vec::new()));
        let seen = Arc::clone(&changes);
        let client = Client::in_memory(&server)
            .revision(revision)
            .on_change(move |change| seen.lock().expect("a lock").push(change))
            .await
            .expect("a client");
        let error = client.subscribe(["x://a", "x://secret"]).await;
        error.expect_err("a hidden resource");
        let subscription = client.subscribe(["x://later", "x://a"]).await;
        let subscription = subscription.expect("a subscription");
        server.resources().updated("x://secret");
        server.resources().updated("x://later");
        // The response arrives after all earlier notifications.
        client.resources().all().await.expect("resources");
        hides.store(true, Ordering::SeqCst);
        server.resources().updated("x://later");
        server.resources().updated("x://a");
        client.resources().all().await.expect("resources");
        let updated = |uri: &str| ClientChange::Resource(uri.to_owned());
        let told = [updated("x://later"), updated("x://a")];
        assert_eq!(*changes.lock().expect("a lock"), told, "{revision}");
        if spec(revision).sends_request(Side::Client, "resources/unsubscribe") {
            let params = object(r#"{"uri":"x://later"}"#);
            let ended = client.request("resources/unsubscribe", Some(params)).await;
            ended.expect("an answer");
        }
        drop(subscription);
    }
}

/// A handler that exceeds its time limit cancels the operations that it has started.
#[tokio::test]
async fn timed_out_handlers_are_cancelled() {
    let (ended, is_ended) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::builder("test", "1")
        .timeout(Duration::from_millis(20))
        .tool("slow", move |cx: Cx| {
            let ended = ended.clone();
            async move {
                tokio::spawn(async move {
                    cx.cancelled().await;
                    ended.send(cx.is_cancelled())
                });
                std::future::pending::<String>().await
            }
        })
        .build()
        .expect("a server");
    let is_ended = Arc::new(tokio::sync::Mutex::new(is_ended));
    every_revision(
        || Client::in_memory(&server),
        |client| {
            let is_ended = Arc::clone(&is_ended);
            async move {
                let slow = client.call_tool("slow", &()).await.expect("a result");
                assert_eq!(slow.text(), "the handler did not finish in time");
                assert_eq!(is_ended.lock().await.recv().await, Some(true));
            }
        },
    )
    .await;
}

/// A blocking handler is not dropped after a cancellation, but observes the cancellation through its context.
#[tokio::test]
async fn blocking_handlers_observe_cancellation() {
    let (begun, mut has_begun) = tokio::sync::mpsc::unbounded_channel();
    let (ended, mut has_ended) = tokio::sync::mpsc::unbounded_channel();
    let server = Server::builder("test", "1")
        .tool("slow", move |cx: Cx| {
            let (begun, ended) = (begun.clone(), ended.clone());
            mcp_exact::blocking(move || {
                begun.send(()).expect("a test");
                while !cx.is_cancelled() {
                    std::thread::sleep(Duration::from_millis(1));
                }
                ended.send(cx.progress(1, 2).is_err()).expect("a test");
            })
        })
        .build()
        .expect("a server");
    for revision in revisions() {
        let client = Client::in_memory(&server).revision(revision);
        let client = client.await.expect("a client");
        {
            let mut call = std::pin::pin!(client.call_tool("slow", &()).into_future());
            tokio::select! {
                result = &mut call => panic!("{result:?}"),
                started = has_begun.recv() => started.expect("a call"),
            }
        }
        assert_eq!(has_ended.recv().await, Some(true), "{revision}");
    }
}

/// Requests run concurrently: a slow request does not delay other requests.
#[tokio::test]
async fn slow_calls_do_not_delay_others() {
    let server = Server::builder("test", "1")
        .tool("slow", || async {
            tokio::time::sleep(Duration::from_millis(100)).await;
            "slow"
        })
        .tool("fast", || async { "fast" })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let slow = client.call_tool("slow", &()).into_future();
            tokio::pin!(slow);
            assert!(poll_is_pending(&mut slow).await);
            for _ in 0..10 {
                let fast: String = client.call("fast", &()).await.expect("a text");
                assert_eq!(fast, "fast");
            }
            assert_eq!(slow.await.expect("a result").text(), "slow");
        },
    )
    .await;
}

/// Polls a future once; returns true if it is pending.
async fn poll_is_pending<F: Future + Unpin>(future: &mut F) -> bool {
    std::future::poll_fn(|cx| {
        std::task::Poll::Ready(std::pin::Pin::new(&mut *future).poll(cx).is_pending())
    })
    .await
}

/// Closing the connection ends its pending call, also after many completed calls.
#[tokio::test]
async fn closed_connections_end_their_calls() {
    let server = Server::builder("test", "1")
        .tool("forever", || async {
            std::future::pending::<String>().await
        })
        .tool("fast", || async { "fast" })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            for _ in 0..500 {
                let _: String = client.call("fast", &()).await.expect("a text");
            }
            let (forever, ()) = tokio::join!(client.call_tool("forever", &()), async {
                tokio::time::sleep(Duration::from_millis(10)).await;
                client.close();
            });
            let closed = ClientError::Disconnected {
                reason: CloseReason::ByClient,
                may_have_run: true,
            };
            assert_eq!(forever, Err(closed));
            assert!(client.call_tool("fast", &()).await.is_err());
        },
    )
    .await;
}

/// Layers of `tower` wrap the handlers of existing tools and of tools that are inserted later.
#[tokio::test]
async fn layers_wrap_tool_calls() {
    let server = Server::builder("test", "1")
        .layer(tower::timeout::TimeoutLayer::new(Duration::from_millis(20)))
        .layer(tower::limit::ConcurrencyLimitLayer::new(1))
        .tool("fast", || async { "fast" })
        .build()
        .expect("a server");
    let slow = std::future::pending::<String>;
    server.tools().insert("slow", slow).expect("a tool");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let fast: String = client.call("fast", &()).await.expect("a text");
            assert_eq!(fast, "fast");
            let slow = client.call_tool("slow", &()).await.expect("a result");
            assert_eq!(
                (slow.is_error(), slow.text().as_str()),
                (true, "request timed out")
            );
        },
    )
    .await;
}

/// "Both parties SHOULD implement rate limiting to prevent flooding" (`basic/utilities/progress`): a client that reads
/// slowly receives fewer values, including the latest one.
#[tokio::test]
async fn progress_is_coalesced_for_slow_clients() {
    /// Last reported progress value.
    const LAST: usize = 10_000;
    let finish = Arc::new(tokio::sync::Notify::new());
    let finished = Arc::clone(&finish);
    let limits = mcp_exact::Limits {
        queued: 16,
        ..mcp_exact::Limits::default()
    };
    let server = Server::builder("test", "1")
        .limits(limits)
        .tool("count", move |cx: Cx| {
            let finished = Arc::clone(&finished);
            async move {
                for done in 1..=LAST {
                    cx.progress(done, LAST)?;
                }
                finished.notified().await;
                Ok::<_, mcp_exact::Error>("counted")
            }
        })
        .build()
        .expect("a server");
    let (near, far) = tokio::io::duplex(1 << 10);
    let (reader, writer) = tokio::io::split(far);
    let transport = mcp_exact::transport::LineTransport::new(reader, writer, 64 << 10);
    let serving = tokio::spawn(async move { server.serve(transport).await });
    let (reader, mut writer) = tokio::io::split(near);
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},"progressToken":1}"#;
    let call = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"count","_meta":{meta}}}}}"#
    );
    writer
        .write_all(format!("{call}\n").as_bytes())
        .await
        .expect("the server reads");
    let mut lines = BufReader::new(reader).lines();
    let mut values = 0;
    let is_last = format!(r#""progress":{LAST}"#);
    loop {
        let line = lines.next_line().await.expect("a line").expect("a message");
        values += 1;
        if line.contains(&is_last) {
            break;
        }
    }
    assert!(values < LAST / 10, "{values} values");
    finish.notify_one();
    let result = lines.next_line().await.expect("a line").expect("a result");
    assert!(result.contains("counted"), "{result}");
    serving.abort();
}

/// Handlers can report progress from other threads.
#[tokio::test]
async fn other_threads_can_report_progress() {
    let server = Server::builder("test", "1")
        .tool("count", |cx: Cx| async move {
            let (done, counted) = tokio::sync::oneshot::channel();
            std::thread::spawn(move || {
                for step in 1..=3 {
                    cx.progress(step, 3).expect("the request runs");
                }
                done.send(()).expect("the handler waits");
            });
            counted.await?;
            Ok::<_, mcp_exact::Error>("counted")
        })
        .build()
        .expect("a server");
    let client = Client::in_memory(&server).await.expect("a client");
    let seen = Arc::new(Mutex::new(Vec::new()));
    let values = Arc::clone(&seen);
    let text: String = client
        .call("count", &())
        .on_progress(move |progress| values.lock().expect("a lock").push(progress.done))
        .await
        .expect("a text");
    assert_eq!(text, "counted");
    assert_eq!(*seen.lock().expect("a lock"), [1.0, 2.0, 3.0]);
}

/// A client does not negotiate a revision below its minimum revision, and the error names the minimum.
#[tokio::test]
async fn clients_refuse_revisions_below_minimum() {
    let all: Vec<_> = revisions().collect();
    let [oldest, .., newest] = all.as_slice() else {
        panic!("several revisions are compiled in");
    };
    let server = Server::builder("test", "1")
        .revisions([*oldest])
        .build()
        .expect("a server");
    let error = Client::in_memory(&server).minimum_revision(*newest).await;
    let error = error.expect_err("a server that is too old").to_string();
    assert!(error.contains(newest.as_str()), "{error}");
    let client = Client::in_memory(&server).await.expect("a client");
    assert_eq!(client.revision(), *oldest);
}
