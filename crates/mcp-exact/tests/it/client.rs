//! Clients with failing handlers or failing servers, and handlers that use their client.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use mcp_exact::testing::{every_revision, revisions_from};
use mcp_exact::transport::{LineTransport, memory_pair};
use mcp_exact::{
    Client, ClientChange, ClientError, Cx, Error, Form, FormAnswer, Input, JsonObject, Level,
    Partial, Progress, RawJson, Root, Sample, SampleReply, SampleRequest, Server, WeakClient,
    revisions, schemars, serde,
};
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _};
use tokio::sync::mpsc;

use mcp_exact_revisions::Side;

use crate::common::spec;

/// Form that asks for a confirmation.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "the form is never filled in")]
struct Confirm {
    yes: bool,
}

/// If a handler panics, the server's request is answered with an error, and the connection continues.
#[tokio::test]
async fn panics_are_answered_as_internal_errors() {
    let server = Server::builder("test", "1")
        .tool("elicit", |cx: Cx| async move {
            let answer = cx.elicit::<Confirm>("Sure?").await;
            answer.map(|_| "answered").map_err(Error::from)
        })
        .tool("sample", |cx: Cx| async move {
            let answer = cx.sample(&Sample::new("Who?", 10)).await;
            answer.map(|_| "answered").map_err(Error::from)
        })
        .tool("plain", || async { "text" })
        .build()
        .expect("a server");
    let connect = || {
        Client::in_memory(&server)
            .on_elicit(|_: Form| async move { panicking_handler::<FormAnswer>() })
            .on_sample(|_: SampleRequest| async move { panicking_handler::<SampleReply>() })
    };
    revisions_from("2025-06-18", connect, |client| async move {
        for tool in ["elicit", "sample"] {
            // From 2026-07-28 on the call has no answer to send; before, the tool sees the error.
            match client.call_tool(tool, &()).await {
                Ok(output) => assert!(output.is_error(), "{output:?}"),
                Err(error) => assert!(error.to_string().contains("panicked"), "{error}"),
            }
        }
        let text: String = client.call("plain", &()).await.expect("a text");
        assert_eq!(text, "text");
    })
    .await;
}

/// Panics, as a handler of the application.
fn panicking_handler<T>() -> T {
    panic!("a handler of the test")
}

/// If a handler of notifications panics, calls still receive their results.
#[tokio::test]
async fn panics_lose_no_results() {
    let server = Server::builder("test", "1")
        .tool("work", |cx: Cx| async move {
            cx.progress(1, 2)?;
            cx.log(Level::Error, None, true)?;
            Ok::<_, Error>("done")
        })
        .build()
        .expect("a server");
    let connect = || {
        Client::in_memory(&server)
            .on_log(|_| panicking_handler())
            .on_change(|_| panicking_handler())
    };
    let shared = server.clone();
    every_revision(connect, move |client| {
        let tools = shared.tools();
        async move {
            tools.insert("other", || async { "" }).expect("a tool");
            let text: String = client
                .call("work", &())
                .log_level(Level::Debug)
                .on_progress(|_: Progress| panicking_handler())
                .await
                .expect("a text");
            assert_eq!(text, "done");
            assert!(tools.remove("other"));
        }
    })
    .await;
}

/// Servers receive the roots that the client has set last, and up to 2025-11-25 a notification of the change
/// (`client/roots`, "Root List Changes").
#[tokio::test]
async fn roots_can_be_replaced() {
    let server = Server::builder("test", "1")
        .tool("roots", |cx: Cx| async move {
            let roots = cx.roots().await?;
            let uris: Vec<String> = roots.into_iter().map(|root| root.uri).collect();
            Ok::<_, Error>(format!("{:?}", uris))
        })
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server).roots([]),
        move |client| async move {
            let root = |uri: &str| Root {
                uri: uri.to_owned(),
                name: None,
            };
            let roots = client.call_tool("roots", &()).await.expect("roots");
            assert_eq!(roots.text(), "[]");
            client.set_roots([root("file:///a")]).expect("declared");
            let roots = client.call_tool("roots", &()).await.expect("roots");
            assert_eq!(roots.text(), r#"["file:///a"]"#);
            let has_notification = spec(client.revision())
                .sends_notification(Side::Client, "notifications/roots/list_changed");
            let notified = client.notify("notifications/roots/list_changed", None);
            assert_eq!(notified.is_ok(), has_notification, "{notified:?}");
        },
    )
    .await;
    let client = Client::in_memory(&server).await.expect("a client");
    let error = client.set_roots([]).expect_err("not declared");
    assert!(matches!(error, ClientError::Config(_)), "{error}");
}

/// Every call accepts request options: time limits, progress, logs, and a trace context.
#[tokio::test(start_paused = true)]
async fn every_call_accepts_request_options() {
    /// Time limit that all handlers exceed.
    const SHORT: std::time::Duration = std::time::Duration::from_millis(20);
    #[derive(serde::Deserialize, schemars::JsonSchema)]
    #[allow(dead_code, reason = "the prompt never ends")]
    struct Code {
        code: String,
    }
    /// Reports progress and never returns.
    async fn never<T>(cx: Cx) -> Result<T, Error> {
        cx.progress(1, 2)?;
        std::future::pending().await
    }
    let server = Server::builder("test", "1")
        .tool("tool", never::<String>)
        .resource("x://a", never::<String>)
        .prompt("prompt", |Input(_): Input<Code>, cx: Cx| {
            never::<String>(cx)
        })
        .complete_prompt("prompt", "code", |cx: Cx| never::<Vec<String>>(cx))
        .build()
        .expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let (sender, mut steps) = mpsc::unbounded_channel();
            let step = || {
                let sender = sender.clone();
                move |_: Progress| {
                    let _ = sender.send(());
                }
            };
            let call = client.call_tool("tool", &()).timeout(SHORT);
            let refused = call.on_progress(step()).await;
            assert_eq!(refused.err(), Some(ClientError::TimedOut));
            let call = client.read("x://a").timeout(SHORT).on_progress(step());
            assert_eq!(call.await.err(), Some(ClientError::TimedOut));
            let call = client.prompt("prompt", [("code", "x")]).timeout(SHORT);
            let refused = call.on_progress(step()).await;
            assert_eq!(refused.err(), Some(ClientError::TimedOut));
            let call = client.complete_prompt("prompt", "code", "x");
            if client.capabilities().get("completions").is_some() {
                let refused = call.idle_timeout(SHORT).await;
                assert_eq!(refused.err(), Some(ClientError::TimedOut));
            }
            for _ in 0..3 {
                steps.recv().await.expect("progress");
            }
        },
    )
    .await;
}

/// A handler lists again by a weak reference to its client, which does not keep the connection open.
#[tokio::test(start_paused = true)]
async fn handlers_hold_their_client_weakly() {
    for revision in mcp_exact::revisions() {
        let server = Server::builder("test", "1").declare_tools();
        let server = server.build().expect("a server");
        let (local, remote) = memory_pair(1 << 16, 1 << 16);
        let serving = server.clone();
        let served = tokio::spawn(async move { serving.serve(remote).await });
        let known = Arc::new(OnceLock::<WeakClient>::new());
        let in_handler = Arc::clone(&known);
        let (sender, mut lists) = mpsc::unbounded_channel();
        let client = Client::over(local)
            .revision(revision)
            .on_change(move |_| {
                let client = in_handler.get().and_then(WeakClient::upgrade);
                let (client, sender) = (client.expect("a client"), sender.clone());
                tokio::spawn(async move { drop(sender.send(client.tools().all().await)) });
            })
            .await
            .expect("a client");
        known.set(client.downgrade()).expect("the first one");
        let inserted = server.tools().insert("late", || async { "here" });
        inserted.expect("a tool");
        let listed = lists.recv().await.expect("a change").expect("tools");
        assert_eq!(listed.len(), 1, "{revision}");
        drop(client);
        let ended = tokio::time::timeout(Duration::from_secs(60), served).await;
        assert!(ended.is_ok(), "{revision}: the connection is open");
        assert!(known.get().and_then(WeakClient::upgrade).is_none());
    }
}

/// When a server changes to an older revision, the client renews its subscriptions in the form of that revision
/// (2026-07-28, `basic/versioning`, "Protocol Version Negotiation").
#[tokio::test]
async fn subscriptions_survive_switch_to_older_revision() {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, mut writer) = tokio::io::split(far);
    let server = tokio::spawn(async move {
        let mut lines = tokio::io::BufReader::new(reader).lines();
        let mut listens = 0;
        while let Ok(Some(line)) = lines.next_line().await {
            let message: JsonObject = line.parse().expect("a message");
            let id = message
                .get("id")
                .map(|id| id.to_string())
                .unwrap_or_default();
            let method = message.get("method").expect("a method").to_string();
            let result =
                |result: &str| format!("{{\"jsonrpc\":\"2.0\",\"id\":{id},\"result\":{result}}}\n");
            let reply = match &*method {
                r#""server/discover""# => result(
                    r#"{"resultType":"complete","supportedVersions":["2026-07-28"],"ttlMs":0,"cacheScope":"private",
                    "capabilities":{"resources":{"subscribe":true}},"serverInfo":{"name":"s","version":"1"}}"#,
                ),
                r#""subscriptions/listen""# if listens == 0 => {
                    listens += 1;
                    let meta =
                        format!(r#""_meta":{{"io.modelcontextprotocol/subscriptionId":{id}}}"#);
                    let params = format!(
                        r#"{{{meta},"notifications":{{"resourceSubscriptions":["x://a"]}}}}"#
                    );
                    let acknowledged = r#""notifications/subscriptions/acknowledged""#;
                    let first = format!(
                        "{{\"jsonrpc\":\"2.0\",\"method\":{acknowledged},\"params\":{params}}}\n"
                    );
                    first + &result(&format!(r#"{{"resultType":"complete",{meta}}}"#))
                }
                r#""subscriptions/listen""# => format!(
                    "{{\"jsonrpc\":\"2.0\",\"id\":{id},\"error\":{{\"code\":-32022,\"message\":\"no\",\
                     \"data\":{{\"supported\":[\"2025-11-25\"],\"requested\":\"2026-07-28\"}}}}}}\n"
                ),
                r#""initialize""# => result(
                    r#"{"protocolVersion":"2025-11-25","capabilities":{"resources":{"subscribe":true}},
                    "serverInfo":{"name":"s","version":"1"}}"#,
                ),
                r#""resources/subscribe""# => {
                    let updated = r#""notifications/resources/updated""#;
                    let updated = format!(
                        "{{\"jsonrpc\":\"2.0\",\"method\":{updated},\"params\":{{\"uri\":\"x://a\"}}}}\n"
                    );
                    result("{}") + &updated
                }
                r#""resources/unsubscribe""# => return line,
                _ => continue,
            };
            let reply = reply.replace("\n                    ", "");
            writer.write_all(reply.as_bytes()).await.expect("it reads");
        }
        String::new()
    });
    let (reader, writer) = tokio::io::split(near);
    let (sender, mut changes) = mpsc::unbounded_channel();
    let client = Client::over(LineTransport::new(reader, writer, 64 << 10))
        .on_change(move |change| drop(sender.send(change)))
        .await
        .expect("a client");
    let subscription = client.subscribe(["x://a"]).await.expect("a subscription");
    // The first change may have been missed; the server announces the second change.
    for _ in 0..2 {
        let change = changes.recv().await.expect("a change");
        assert_eq!(change, ClientChange::Resource("x://a".to_owned()));
    }
    assert_eq!(client.revision().as_str(), "2025-11-25");
    drop(subscription);
    assert!(server.await.expect("no panic").contains("x://a"));
}

/// Two subscriptions to the same URI are independent: the end of one does not end the other (`server/resources`,
/// "Subscriptions").
#[tokio::test]
async fn subscriptions_of_one_resource_are_counted() {
    let server = Server::builder("test", "1")
        .resource("x://a", || async { "" })
        .build()
        .expect("a server");
    for revision in revisions() {
        let (sender, mut changes) = mpsc::unbounded_channel();
        let client = Client::in_memory(&server)
            .revision(revision)
            .on_change(move |change| drop(sender.send(change)))
            .await
            .expect("a client");
        let first = client.subscribe(["x://a"]).await.expect("a subscription");
        let second = client.subscribe(["x://a"]).await.expect("a subscription");
        drop(first);
        client
            .resources()
            .without_cache()
            .all()
            .await
            .expect("resources");
        server.resources().updated("x://a");
        let change = changes.recv().await.expect("a change");
        assert_eq!(change, ClientChange::Resource("x://a".to_owned()));
        drop(second);
        // The response arrives after all earlier notifications.
        client
            .resources()
            .without_cache()
            .all()
            .await
            .expect("resources");
        while changes.try_recv().is_ok() {}
        server.resources().updated("x://a");
        client
            .resources()
            .without_cache()
            .all()
            .await
            .expect("resources");
        assert!(changes.try_recv().is_err(), "{revision}");
        // The next subscription is a new one.
        let _third = client.subscribe(["x://a"]).await.expect("a subscription");
        server.resources().updated("x://a");
        changes.recv().await.expect("a change");
    }
}

/// If a server has lost a session, the client subscribes again in the next session, and reports changes that it may
/// have missed.
#[cfg(all(feature = "http-server", feature = "http-client"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_outlive_sessions() {
    use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};

    let server = Server::builder("test", "1")
        .resource("x://a", || async { "" })
        .build()
        .expect("a server");
    let listen = async |address: &str| {
        let listener = HttpListener::bind(address).await.expect("a port");
        let address = listener.local_addr().expect("an address").to_string();
        let service = server.http(HttpServerOptions::default());
        let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
        let served = tokio::spawn(listener.serve(service, async move {
            // The test is over, or stops the server.
            let _ = stopped.await;
        }));
        (address, stop, served)
    };
    let revision = revisions().find(|revision| revision.as_str() == "2025-11-25");
    let (address, stop, served) = listen("127.0.0.1:0").await;
    let (sender, mut changes) = mpsc::unbounded_channel();
    let client = Client::connect(&format!("http://{address}/mcp"))
        .revision(revision.expect("compiled in"))
        .on_change(move |change| drop(sender.send(change)))
        .await
        .expect("a client");
    let _subscription = client.subscribe(["x://a"]).await.expect("a subscription");
    drop(stop);
    let _ = served.await;
    let (_, _stop, _served) = listen(&address).await;
    // The server has lost the session, and the client starts a new one.
    let missed = ClientChange::Resource("x://a".to_owned());
    while changes.recv().await.expect("a change") != missed {}
    server.resources().updated("x://a");
    while changes.recv().await.expect("a change") != missed {}
}

/// After the server has changed to 2026-07-28 and rejects the revision of the session, the client subscribes to its
/// resources and lists by `subscriptions/listen` and reports changes that it may have missed.
#[cfg(all(feature = "http-server", feature = "http-client"))]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn subscriptions_survive_switch_to_newer_revision() {
    use mcp_exact::transport::http::client::HttpEndpoint;
    use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};

    let server = |revision: &str| {
        Server::builder("test", "1")
            .revisions(revisions().filter(|known| known.as_str() == revision))
            .resource("x://a", || async { "" })
            .tool("tool", || async { "" })
            .build()
            .expect("a server")
    };
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let (stop, stopped) = tokio::sync::oneshot::channel::<()>();
    let service = server("2025-11-25").http(HttpServerOptions::default());
    let served = tokio::spawn(listener.serve(service, async move {
        let _ = stopped.await;
    }));
    let (sender, mut changes) = mpsc::unbounded_channel();
    let endpoint = HttpEndpoint::new(&format!("http://{address}/mcp")).expect("a URL");
    let client = Client::http(endpoint.retry(std::time::Duration::from_millis(10)))
        .on_change(move |change| drop(sender.send(change)))
        .await
        .expect("a client");
    assert_eq!(client.revision().as_str(), "2025-11-25");
    let first = client.subscribe(["x://a"]).await.expect("a subscription");
    let second = client.subscribe(["x://a"]).await.expect("a subscription");
    drop(stop);
    let _ = served.await;
    let new = server("2026-07-28");
    let listener = HttpListener::bind(&address.to_string()).await;
    let listener = listener.expect("the same port");
    let service = new.http(HttpServerOptions::default());
    let serving = tokio::spawn(listener.serve(service, std::future::pending()));
    // A request finds out that the session is over.
    while client.revision().as_str() != "2026-07-28" {
        let _ = client.tools().without_cache().all().await;
        tokio::task::yield_now().await;
    }
    let resource = ClientChange::Resource("x://a".to_owned());
    let mut missed = vec![ClientChange::Tools, resource.clone()];
    while !missed.is_empty() {
        let change = changes.recv().await.expect("a change");
        missed.retain(|expected| *expected != change);
    }
    // The resource has one subscription, which lasts until its last user ends it.
    drop(first);
    new.resources().updated("x://a");
    while changes.recv().await.expect("a change") != resource {}
    drop(second);
    while !format!("{new:?}").contains("listeners: 1") {
        tokio::task::yield_now().await;
    }
    serving.abort();
}

/// A client whose model supports tools declares the capability, and responds with the model's tool calls
/// (`client/sampling`, "Capabilities").
#[tokio::test]
async fn sampling_with_tools_can_be_declared() {
    let server = Server::builder("test", "1")
        .tool("sample", |cx: Cx| async move {
            let sample = Sample::new("Who?", 10).set_param("tools", sampling_tools());
            let answer = cx.sample(&sample).await?;
            let reason = answer.stop_reason().unwrap_or_default();
            Ok::<_, Error>(format!("{} {reason}", answer.blocks().len()))
        })
        .build()
        .expect("a server");
    let connect = || {
        let tools: JsonObject = r#"{"tools":{}}"#.parse().expect("an object");
        Client::in_memory(&server)
            .capability("sampling", tools)
            .on_sample(|_: SampleRequest| async move {
                let reply = r#"{"role":"assistant","model":"m","stopReason":"maxTokens","content":[
                    {"type":"text","text":"a"},{"type":"text","text":"b"}]}"#;
                SampleReply::from_result(reply.parse().expect("an object"))
            })
    };
    revisions_from("2025-11-25", connect, |client| async move {
        let output = client.call_tool("sample", &()).await.expect("a result");
        assert_eq!(output.text(), "2 maxTokens");
    })
    .await;
}

/// Returns the `tools` member of a sampling request.
fn sampling_tools() -> RawJson {
    let tools = r#"[{"name":"t","inputSchema":{"type":"object"}}]"#;
    tools.parse().expect("a list")
}

/// The result of a tool that returns nothing decodes as the unit value or as an absent value, in every revision.
#[tokio::test]
async fn empty_results_decode_as_unit() {
    let server = Server::builder("test", "1.0.0").tool("note", || async {});
    let server = server.build().expect("a server");
    every_revision(
        || Client::in_memory(&server),
        |client| async move {
            let nothing: Result<(), _> = client.call("note", &()).await;
            assert_eq!(nothing, Ok(()));
            let absent: Result<Option<i64>, _> = client.call("note", &()).await;
            assert_eq!(absent, Ok(None));
            let text: Result<String, _> = client.call("note", &()).await;
            assert_eq!(text, Ok(String::new()));
            let number: Result<i64, _> = client.call("note", &()).await;
            let error = number.expect_err("there is no number").to_string();
            assert_eq!(
                error,
                "the result cannot be read: invalid type: null, expected an integer"
            );
        },
    )
    .await;
}

/// Arguments of the prompt.
#[derive(serde::Deserialize, schemars::JsonSchema)]
#[allow(dead_code, reason = "the prompt is never filled in")]
struct Trip {
    country: String,
    city: String,
}

/// "Clients SHOULD include previous completions in the `context.arguments` object" (2025-06-18,
/// `server/utilities/completion`).
#[tokio::test]
async fn completions_depend_on_known_arguments() {
    let server = Server::builder("test", "1.0.0")
        .prompt("trip", |Input(_): Input<Trip>| async { "Go." })
        .complete_prompt("trip", "city", |partial: Partial| async move {
            let country = partial.arguments.get("country").cloned();
            vec![format!("{}{}", partial.value, country.unwrap_or_default())]
        })
        .build()
        .expect("a server");
    revisions_from(
        "2025-06-18",
        || Client::in_memory(&server),
        |client| async move {
            let completed = client.complete_prompt("trip", "city", "O, ");
            let completed = completed.known_arguments([("country", "Norway")]).await;
            assert_eq!(completed.expect("a city").values, ["O, Norway"]);
            let completed = client.complete_prompt("trip", "city", "O").await;
            assert_eq!(completed.expect("a city").values, ["O"]);
        },
    )
    .await;
}
