//! Clients that connect again: in memory, with a server whose connections are cut, refused or silent.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::Poll;
use std::time::Duration;

use mcp_exact::transport::memory_pair;
use mcp_exact::{
    Client, ClientChange, ClientError, CloseReason, Connect, ConnectionEvent, Cx, Error, Form,
    FormAnswer, Input, Level, Reconnect, Root, Server, Tool, schemars, serde,
};
use tokio::sync::{Notify, mpsc};
use tokio::task::AbortHandle;

/// Form that asks for a confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "the form is never filled in")]
struct Confirm {
    yes: bool,
}

/// How new connections of a [`Line`] are served.
#[derive(Default)]
struct Switch {
    /// True if a connection ends at once.
    refuses: AtomicBool,
    /// Number of the first connections whose server reads and writes nothing any more.
    hung: AtomicUsize,
    /// Number of connections that clients have opened.
    count: AtomicUsize,
    /// Tasks that serve the connections.
    tasks: Mutex<Vec<AbortHandle>>,
}

/// Line to a server in memory, which can be cut.
#[derive(Clone, Default)]
struct Line(Arc<Switch>);

impl Line {
    /// Configures a client of `server` over this line, which reports the events of its connection.
    fn connect(&self, server: &Server, policy: Reconnect) -> (Connect, Events) {
        let (line, server) = (self.clone(), server.clone());
        let (sender, events) = mpsc::unbounded_channel();
        let connect = Client::over_with(move || {
            let (near, far) = memory_pair(1 << 16, 1 << 16);
            let number = line.0.count.fetch_add(1, Ordering::SeqCst);
            let (server, switch) = (server.clone(), Arc::clone(&line.0));
            let serving = if line.0.refuses.load(Ordering::SeqCst) {
                tokio::spawn(async move { drop(far) })
            } else {
                let mut serving = Box::pin(async move { drop(server.serve(far).await) });
                tokio::spawn(std::future::poll_fn(move |cx| {
                    let is_hung = number < switch.hung.load(Ordering::SeqCst);
                    if is_hung {
                        Poll::Pending
                    } else {
                        serving.as_mut().poll(cx)
                    }
                }))
            };
            line.0
                .tasks
                .lock()
                .expect("no panic")
                .push(serving.abort_handle());
            near
        });
        let connect = connect
            .reconnect(policy)
            .on_connection_event(move |event| drop(sender.send(event)));
        (connect, events)
    }

    /// Ends every connection, as a crash of the server does.
    fn cut(&self) {
        for task in self.0.tasks.lock().expect("no panic").drain(..) {
            task.abort();
        }
    }

    fn count(&self) -> usize {
        self.0.count.load(Ordering::SeqCst)
    }
}

/// Events of a connection, in order.
type Events = mpsc::UnboundedReceiver<ConnectionEvent>;

/// Returns the next event.
async fn next(events: &mut Events) -> ConnectionEvent {
    events.recv().await.expect("an event")
}

/// Waits until the connection was lost and is restored.
async fn restored(events: &mut Events) {
    let lost = next(events).await;
    assert!(matches!(lost, ConnectionEvent::Lost(_)), "{lost:?}");
    let restored = next(events).await;
    assert!(
        matches!(restored, ConnectionEvent::Restored { .. }),
        "{restored:?}"
    );
}

/// Handler that counts its calls, and never returns from the first one.
#[derive(Clone, Default)]
struct Once {
    begun: Arc<Notify>,
    count: Arc<AtomicUsize>,
}

impl Once {
    async fn run(self) -> &'static str {
        if self.count.fetch_add(1, Ordering::SeqCst) == 0 {
            self.begun.notify_one();
            std::future::pending::<()>().await;
        }
        "done"
    }
}

/// A call that was in flight is not repeated, unless the tool is idempotent and the caller allows it; reads are repeated once.
#[tokio::test]
async fn only_allowed_requests_are_repeated() {
    for kind in ["call", "allowed call", "read", "prompt", "completion"] {
        for revision in mcp_exact::revisions() {
            let once = Once::default();
            let handler = || {
                let once = once.clone();
                move || once.clone().run()
            };
            let complete = once.clone();
            let server = Server::builder("test", "1")
                .tool(Tool::new("work").idempotent(true), handler())
                .resource("x://a", handler())
                .prompt("prompt", {
                    let once = once.clone();
                    move |Input(_): Input<Code>| once.clone().run()
                })
                .complete_prompt("prompt", "code", move || {
                    let once = complete.clone();
                    async move { vec![once.run().await.to_owned()] }
                })
                .build()
                .expect("a server");
            let line = Line::default();
            let (connect, mut events) = line.connect(&server, Reconnect::new());
            let client = connect.revision(revision).await.expect("a client");
            let tools = client.tools().all().await.expect("tools");
            let request = async {
                match kind {
                    "call" => client
                        .call_tool("work", &())
                        .await
                        .map(|output| output.text()),
                    "allowed call" => {
                        let call = client.call_tool("work", &());
                        let call = call.allow_repeat(tools[0].object());
                        call.await.map(|output| output.text())
                    }
                    "read" => client.read("x://a").await.map(|output| output.text()),
                    "prompt" => {
                        let prompt = client.prompt("prompt", [("code", "x")]);
                        prompt.await.map(|output| output.text())
                    }
                    _ => {
                        let values = client.complete_prompt("prompt", "code", "x").await;
                        values.map(|output| output.values.concat())
                    }
                }
            };
            // 2024-11-05 has no annotations of tools.
            let is_repeated =
                kind != "call" && (kind != "allowed call" || revision.as_str() > "2024-11-05");
            let is_supported =
                kind != "completion" || client.capabilities().get("completions").is_some();
            if !is_supported {
                continue;
            }
            let (answer, ()) = tokio::join!(request, async {
                once.begun.notified().await;
                line.cut();
            });
            restored(&mut events).await;
            let count = once.count.load(Ordering::SeqCst);
            if !is_repeated {
                let error = answer.expect_err("not repeated");
                assert!(
                    matches!(
                        error,
                        ClientError::Disconnected {
                            may_have_run: true,
                            ..
                        }
                    ),
                    "{revision}: {error:?}"
                );
                assert_eq!(count, 1, "{revision}");
            } else {
                assert_eq!(answer.as_deref(), Ok("done"), "{kind}, {revision}");
                assert_eq!(count, 2, "{kind}, {revision}");
            }
            // Whatever became of it, the client goes on.
            let output = client.call_tool("work", &()).await.expect("a result");
            assert_eq!(output.text(), "done", "{kind}, {revision}");
            assert!(!client.is_closed());
        }
    }
}

/// Arguments of a prompt.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "the prompt ignores it")]
struct Code {
    code: String,
}

/// Roots, log level and subscriptions of the client are restored, and changes that may have been missed are reported.
#[tokio::test]
async fn state_of_the_session_is_restored() {
    let server = Server::builder("test", "1")
        .tool("look", |cx: Cx| async move {
            cx.log(Level::Debug, None, true)?;
            let roots = cx.roots().await?;
            let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
            Ok::<_, Error>(uris.join(" "))
        })
        .resource("x://a", || async { "" })
        .build()
        .expect("a server");
    for revision in mcp_exact::revisions() {
        let line = Line::default();
        let (connect, mut events) = line.connect(&server, Reconnect::new());
        let (changed, mut changes) = mpsc::unbounded_channel();
        let (logged, mut logs) = mpsc::unbounded_channel();
        let connect = connect
            .revision(revision)
            .roots([])
            .on_log(move |log| drop(logged.send(log.data.text().to_owned())))
            .on_change(move |change| drop(changed.send(change)));
        let client = connect.await.expect("a client");
        client.set_log_level(Level::Debug).await.expect("a level");
        let subscription = client.subscribe(["x://a"]).await.expect("a subscription");
        client
            .set_roots([Root {
                uri: "file:///a".into(),
                name: None,
            }])
            .expect("declared");

        line.cut();
        restored(&mut events).await;
        let resource = ClientChange::Resource("x://a".to_owned());
        // The first report says that the resource may have changed, and that the subscription has begun again.
        while changes.recv().await.as_ref() != Some(&resource) {}
        server.resources().updated("x://a");
        while changes.recv().await.as_ref() != Some(&resource) {}
        let output = client.call_tool("look", &()).await.expect("a result");
        assert_eq!(output.text(), "file:///a", "{revision}");
        assert_eq!(logs.recv().await.as_deref(), Some("true"), "{revision}");
        drop(subscription);
    }
}

/// What a call of a lost connection still reports reaches no call of the next one, although its first requests have the same ids and
/// tokens.
#[tokio::test]
async fn reports_end_with_their_connection() {
    for revision in mcp_exact::revisions() {
        let (begun, go_on) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let late = Arc::new(Mutex::new(None));
        let count = Arc::new(AtomicUsize::new(0));
        let work = {
            let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
            let late = Arc::clone(&late);
            move |cx: Cx| {
                let (begun, go_on) = (Arc::clone(&begun), Arc::clone(&go_on));
                let late = Arc::clone(&late);
                let number = count.fetch_add(1, Ordering::SeqCst);
                async move {
                    if number == 0 {
                        // The work outlives its connection.
                        let working = tokio::spawn(async move {
                            begun.notify_one();
                            go_on.notified().await;
                            let _ = cx.progress(99, 100);
                            let _ = cx.info("late");
                        });
                        *late.lock().expect("no panic") = Some(working);
                        return std::future::pending().await;
                    }
                    go_on.notify_one();
                    let working = late.lock().expect("no panic").take();
                    working.expect("a task").await.expect("no panic");
                    cx.progress(1, 100)?;
                    cx.info("own")?;
                    Ok::<_, Error>("done")
                }
            }
        };
        let server = Server::builder("test", "1").tool("work", work).build();
        let line = Line::default();
        let (connect, mut events) = line.connect(&server.expect("a server"), Reconnect::new());
        let seen = Arc::new(Mutex::new(Vec::new()));
        let logs = Arc::clone(&seen);
        let connect = connect.revision(revision).on_log(move |log| {
            logs.lock()
                .expect("no panic")
                .push(log.data.text().to_owned())
        });
        let client = connect.await.expect("a client");
        let call = || {
            let seen = Arc::clone(&seen);
            client
                .call_tool("work", &())
                .log_level(Level::Info)
                .on_progress(move |progress| {
                    let mut seen = seen.lock().expect("no panic");
                    seen.push(progress.done.to_string());
                })
        };
        let (lost, ()) = tokio::join!(call(), async {
            begun.notified().await;
            line.cut();
        });
        lost.expect_err("the connection was lost");
        restored(&mut events).await;
        assert_eq!(call().await.expect("a result").text(), "done");
        let seen = std::mem::take(&mut *seen.lock().expect("no panic"));
        assert_eq!(seen, ["1", "\"own\""], "{revision}");
    }
}

/// A question of the server ends with the connection: the handler of the client is dropped, and the call fails.
#[tokio::test]
async fn questions_end_with_the_connection() {
    /// Sends a message when the future of the handler is dropped.
    struct Dropped(mpsc::UnboundedSender<()>);
    impl Drop for Dropped {
        fn drop(&mut self) {
            let _ = self.0.send(());
        }
    }
    let server = Server::builder("test", "1")
        .tool("ask", |cx: Cx| async move {
            let answer = cx.elicit::<Confirm>("Sure?").await?;
            Ok::<_, Error>(answer.accepted().is_some().to_string())
        })
        .tool("plain", || async { "text" })
        .build()
        .expect("a server");
    for revision in mcp_exact::revisions().filter(|revision| revision.as_str() >= "2025-06-18") {
        let line = Line::default();
        let (connect, mut events) = line.connect(&server, Reconnect::new());
        let (asked, mut questions) = mpsc::unbounded_channel();
        let (dropped, mut drops) = mpsc::unbounded_channel();
        let connect = connect.revision(revision).on_elicit(move |_: Form| {
            let (asked, dropped) = (asked.clone(), Dropped(dropped.clone()));
            async move {
                let _ = asked.send(());
                std::future::pending::<()>().await;
                drop(dropped);
                unanswered()
            }
        });
        let client = connect.await.expect("a client");
        let (answer, ()) = tokio::join!(client.call_tool("ask", &()), async {
            questions.recv().await.expect("a question");
            line.cut();
        });
        let error = answer.expect_err("the connection is gone");
        assert!(
            matches!(error, ClientError::Disconnected { .. }),
            "{revision}: {error:?}"
        );
        drops.recv().await.expect("the handler was dropped");
        restored(&mut events).await;
        let text: String = client.call("plain", &()).await.expect("a text");
        assert_eq!(text, "text", "{revision}");
    }
}

/// Is never reached.
fn unanswered() -> FormAnswer {
    panic!("the form is never answered")
}

/// Requests that are made while there is no connection wait for the next one, and are sent once.
#[tokio::test(start_paused = true)]
async fn requests_wait_for_the_connection() {
    let count = Arc::new(AtomicUsize::new(0));
    let counted = Arc::clone(&count);
    let server = Server::builder("test", "1")
        .tool("count", move || {
            let counted = Arc::clone(&counted);
            async move { counted.fetch_add(1, Ordering::SeqCst).to_string() }
        })
        .build()
        .expect("a server");
    let line = Line::default();
    let (connect, mut events) = line.connect(&server, Reconnect::new());
    let client = connect.await.expect("a client");
    line.0.refuses.store(true, Ordering::SeqCst);
    line.cut();
    assert!(matches!(next(&mut events).await, ConnectionEvent::Lost(_)));
    let (called, ()) = tokio::join!(client.call_tool("count", &()), async {
        let failed = next(&mut events).await;
        assert!(
            matches!(failed, ConnectionEvent::AttemptFailed { attempt: 1, .. }),
            "{failed:?}"
        );
        line.0.refuses.store(false, Ordering::SeqCst);
    });
    assert_eq!(called.expect("a result").text(), "0");
    assert_eq!(count.load(Ordering::SeqCst), 1);
    // A request waits no longer than its own limit.
    assert!(matches!(
        next(&mut events).await,
        ConnectionEvent::Restored { .. }
    ));
    line.0.refuses.store(true, Ordering::SeqCst);
    line.cut();
    assert!(matches!(next(&mut events).await, ConnectionEvent::Lost(_)));
    let short = Duration::from_millis(10);
    let late = client.call_tool("count", &()).timeout(short).await;
    assert!(
        matches!(
            late,
            Err(ClientError::Disconnected {
                may_have_run: false,
                reason: CloseReason::StillLost(_),
            })
        ),
        "{late:?}"
    );
    assert!(!client.is_closed());
}

/// After the last attempt, the connection ends for good: the reason says what was lost and why no attempt succeeded.
#[tokio::test(start_paused = true)]
async fn attempts_are_bounded() {
    let server = Server::builder("test", "1").build().expect("a server");
    let line = Line::default();
    let (connect, mut events) = line.connect(&server, Reconnect::new().attempts(3));
    let client = connect.await.expect("a client");
    line.0.refuses.store(true, Ordering::SeqCst);
    line.cut();
    let reason = client.closed().await;
    assert!(
        matches!(reason, CloseReason::GaveUp { attempts: 3, .. }),
        "{reason:?}"
    );
    assert_eq!(line.count(), 4);
    assert!(client.is_closed());
    assert_eq!(client.close_reason(), Some(reason.clone()));
    assert!(matches!(next(&mut events).await, ConnectionEvent::Lost(_)));
    for number in 1..=3 {
        match next(&mut events).await {
            ConnectionEvent::AttemptFailed {
                attempt, retry_in, ..
            } => {
                assert_eq!((attempt, retry_in.is_none()), (number, number == 3));
            }
            other => panic!("{other:?}"),
        }
    }
    assert_eq!(
        next(&mut events).await,
        ConnectionEvent::Closed(reason.clone())
    );
    let error = client.tools().all().await.expect_err("it is closed");
    assert_eq!(
        error,
        ClientError::Disconnected {
            reason,
            may_have_run: false
        }
    );
}

/// A server that answers nothing any more is noticed after a request that was not answered in time.
#[tokio::test(start_paused = true)]
async fn hung_servers_are_replaced() {
    let server = Server::builder("test", "1")
        .tool("hello", || async { "hello" })
        .build()
        .expect("a server");
    for revision in mcp_exact::revisions() {
        let line = Line::default();
        let (connect, mut events) = line.connect(&server, Reconnect::new());
        let client = connect.revision(revision).await.expect("a client");
        line.0.hung.store(1, Ordering::SeqCst);
        let call = client.call_tool("hello", &());
        let hung = call.idle_timeout(Duration::from_secs(1)).await;
        assert_eq!(hung, Err(ClientError::TimedOut), "{revision}");
        restored(&mut events).await;
        let text: String = client.call("hello", &()).await.expect("a text");
        assert_eq!(text, "hello", "{revision}");
    }
}

/// From 2026-07-28 on, each loss reports the lists that may have changed once, after the return of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missed_list_changes_are_reported_once() {
    let server = Server::builder("test", "1")
        .tool("hello", || async { "hello" })
        .build()
        .expect("a server");
    let line = Line::default();
    let policy = Reconnect::new().delays(Duration::ZERO, Duration::ZERO);
    let (connect, _) = line.connect(&server, policy.without_limit());
    let (sender, mut log) = mpsc::unbounded_channel();
    let reported = sender.clone();
    let newest = mcp_exact::revisions().next_back().expect("a revision");
    let client = connect
        .revision(newest)
        .on_connection_event(move |event| drop(reported.send(Ok(event))))
        .on_change(move |change| drop(sender.send(Err(change))))
        .await
        .expect("a client");
    for round in 0..20 {
        line.cut();
        let mut next = async || log.recv().await.expect("an event");
        let lost = next().await;
        assert!(
            matches!(lost, Ok(ConnectionEvent::Lost(_))),
            "{round}: {lost:?}"
        );
        let back = next().await;
        assert!(
            matches!(back, Ok(ConnectionEvent::Restored { .. })),
            "{round}: {back:?}"
        );
        assert_eq!(next().await, Err(ClientChange::Tools), "{round}");
    }
    client.close();
    let closed = log.recv().await;
    assert!(
        matches!(closed, Some(Ok(ConnectionEvent::Closed(_)))),
        "{closed:?}"
    );
}

/// A client that is closed or dropped makes no further attempt.
#[tokio::test(start_paused = true)]
async fn closed_clients_stay_closed() {
    let server = Server::builder("test", "1").build().expect("a server");
    for is_dropped in [false, true] {
        let line = Line::default();
        let (connect, mut events) = line.connect(&server, Reconnect::new().without_limit());
        let client = connect.await.expect("a client");
        line.0.refuses.store(true, Ordering::SeqCst);
        line.cut();
        assert!(matches!(next(&mut events).await, ConnectionEvent::Lost(_)));
        let closed = client.closed();
        if !is_dropped {
            client.close();
            client.close();
            assert_eq!(client.close_reason(), Some(CloseReason::ByClient));
        }
        drop(client);
        assert_eq!(closed.await, CloseReason::ByClient);
        // Every task of the client has ended.
        while events.recv().await.is_some() {}
        let count = line.count();
        tokio::time::sleep(Duration::from_secs(3600)).await;
        assert_eq!(line.count(), count);
    }
}

/// Without a policy, the first loss ends the client: every later request has the same error, with the reason.
#[tokio::test]
async fn loss_has_one_error() {
    let server = Server::builder("test", "1")
        .tool("forever", std::future::pending::<String>)
        .build()
        .expect("a server");
    let (near, far) = memory_pair(1 << 16, 1 << 16);
    let serving = tokio::spawn(async move { drop(server.serve(far).await) });
    let client = Client::over(near).await.expect("a client");
    let (call, ()) = tokio::join!(client.call_tool("forever", &()), async {
        tokio::task::yield_now().await;
        serving.abort();
    });
    let reason = CloseReason::Lost("the server closed the connection".to_owned());
    assert_eq!(client.closed().await, reason);
    let error = |may_have_run| ClientError::Disconnected {
        reason: reason.clone(),
        may_have_run,
    };
    assert_eq!(call, Err(error(true)));
    assert_eq!(client.call_tool("forever", &()).await, Err(error(false)));
    assert_eq!(client.tools().all().await, Err(error(false)));
    assert_eq!(client.notify("notifications/x", None), Err(error(false)));
    let subscribed = client.subscribe(["x://a"]).await;
    assert_eq!(subscribed.err(), Some(error(false)));
}

/// A client that lives longer than the runtime in which it was connected has ended, and says why; so do its calls, at once.
#[test]
fn clients_end_with_their_runtimes() {
    let server = Server::builder("test", "1")
        .tool("hello", || async { "hello" })
        .build()
        .expect("a server");
    let runtime = || {
        let mut builder = tokio::runtime::Builder::new_current_thread();
        let runtime = builder.enable_all().start_paused(true).build();
        runtime.expect("a runtime")
    };
    for reconnects in [false, true] {
        let first = runtime();
        let client = first.block_on(async {
            let connect = Client::in_memory(&server);
            let connect = if reconnects {
                connect.reconnect(Reconnect::new())
            } else {
                connect
            };
            connect.await.expect("a client")
        });
        drop(first);
        assert!(client.is_closed());
        runtime().block_on(async {
            let closed = tokio::time::timeout(Duration::from_secs(60), client.closed()).await;
            let reason = closed.expect("the end is known");
            assert!(
                reason.to_string().contains("runtime in which"),
                "{reason:?}"
            );
            let error = client
                .call_tool("hello", &())
                .await
                .expect_err("it is closed");
            let expected = ClientError::Disconnected {
                reason,
                may_have_run: false,
            };
            assert_eq!(error, expected);
        });
    }
}
