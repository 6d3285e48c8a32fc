//! Control of relayed requests by the application: losses, hooks, reports, limits and metrics.

use std::future::ready;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::transport::http::server::HttpServerOptions;
use mcp_exact::{JsonObject, Revision, revisions};
use mcp_exact_bridge::{
    Bridge, Call, CallObserver, CallOutcome, Decision, Hook, HookFuture, Hooks, LossPolicy,
    LossRule, Message, MessageDecision, MessageKind, Options, PrincipalLimits,
};
use mcp_exact_session::{CallOptions, Json, PeerError, Reply};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{
    Add, InMemory, Sum, answer_to, client_of, handle_of, line_after, listen_with, noting, object,
    server,
};
use crate::isolation::{listen_by_header, outcome_of, plain_client};
use crate::matrix::wait_until;

/// Returns the revision with an identifier.
fn revision(id: &str) -> Revision {
    let mut all = revisions();
    all.find(|revision| revision.as_str() == id).expect("known")
}

/// Creates a bridge in front of a server of one revision.
async fn bridge_with(of_server: Revision, options: Options) -> Bridge {
    let bridge = Bridge::new(InMemory::new(&server(of_server)), options).await;
    bridge.expect("a bridge")
}

/// Sends a request, and returns its result or error.
async fn request(
    client: &mcp_exact::transport::ClientHandle,
    method: &str,
    params: Option<JsonObject>,
) -> Result<JsonObject, PeerError> {
    outcome_of(client.request(method, params, CallOptions::default(), None)).await
}

/// Returns the ids of the losses that a result lists.
fn listed_loss_ids(result: &JsonObject) -> Vec<String> {
    let meta = result.view().find("_meta").and_then(|meta| meta.object());
    let losses = meta.and_then(|meta| meta.find("mcp-exact/losses"));
    let losses = losses.and_then(|losses| losses.decode_as::<Vec<JsonObject>>().ok());
    let id = |loss: JsonObject| {
        let id = loss.view().find("id").and_then(|id| id.as_str());
        id.expect("an id").into_owned()
    };
    losses.unwrap_or_default().into_iter().map(id).collect()
}

/// Id of the loss of output schemas in lists of tools.
const OUTPUT_SCHEMA_LOSS: &str = "tools/list:dropped:/tools/*/outputSchema";

/// A result lists its losses in `_meta` if [`Options::losses_in_meta`] is set; losses are counted in any case.
#[tokio::test]
async fn results_list_their_losses() {
    for is_listed in [true, false] {
        let mut options = Options::default();
        options.losses_in_meta = is_listed;
        let bridge = bridge_with(revision("2026-07-28"), options).await;
        let old = handle_of(&bridge, revision("2024-11-05")).await;
        let tools = request(&old, "tools/list", None).await.expect("tools");
        let ids = listed_loss_ids(&tools);
        assert_eq!(
            ids.iter().any(|id| id == OUTPUT_SCHEMA_LOSS),
            is_listed,
            "{ids:?}"
        );
        let counted = bridge.metrics().losses;
        assert!(counted[OUTPUT_SCHEMA_LOSS] > 0, "{counted:?}");
        let text = bridge.metrics().to_string();
        let line = format!("mcp_bridge_losses_total{{id=\"{OUTPUT_SCHEMA_LOSS}\"}} ");
        assert!(text.contains(&line), "{text}");
        // Between equal revisions nothing is lost.
        let new = handle_of(&bridge, revision("2026-07-28")).await;
        let tools = request(&new, "tools/list", None).await.expect("tools");
        assert!(listed_loss_ids(&tools).is_empty(), "{tools}");
        old.close();
        new.close();
    }
}

/// What the gateway writes itself into `_meta` is no loss of its client.
#[tokio::test]
async fn own_members_of_meta_are_no_loss() {
    let bridge = bridge_with(revision("2026-07-28"), Options::default()).await;
    for of_client in revisions().filter(|revision| revision.as_str() < "2026") {
        let client = handle_of(&bridge, of_client).await;
        let params = object(r#"{"name":"revision","arguments":{}}"#);
        assert!(request(&client, "tools/call", Some(params)).await.is_ok());
        client.close();
    }
    let losses = bridge.metrics().losses;
    let mut ids = losses.keys();
    assert!(!ids.any(|id| id.contains("/_meta/")), "{losses:?}");
}

/// Posts a message to a bridge, and returns the headers and the body of the response.
async fn post(url: &str, headers: &str, body: &str) -> (String, String) {
    let address = url.strip_prefix("http://").expect("a URL");
    let address = address.strip_suffix("/mcp").expect("a path");
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let length = body.len();
    let request = format!(
        "POST /mcp HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         Accept: application/json, text/event-stream\r\nContent-Length: {length}\r\n{headers}\r\n{body}"
    );
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).await.expect("a response");
    let (head, body) = text.split_once("\r\n\r\n").expect("a response");
    (head.to_ascii_lowercase(), body.to_owned())
}

/// The response header `mcp-exact-losses` lists the losses of a request if [`Options::losses_in_header`] is set.
#[tokio::test]
async fn responses_list_their_losses() {
    for is_listed in [true, false] {
        let mut options = Options::default();
        options.losses_in_header = is_listed;
        let bridge = bridge_with(revision("2026-07-28"), options).await;
        // The header of a response that has become a stream has only the losses of before.
        let listening = listen_with(
            &bridge,
            HttpServerOptions {
                stream_after: Duration::from_secs(60),
                ..HttpServerOptions::default()
            },
        );
        let listening = listening.await;
        let hello = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#;
        let (head, _) = post(&listening.url, "", hello).await;
        let id = head
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let session = format!("Mcp-Session-Id: {}\r\n", id.expect("a session"));
        let ready = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        post(&listening.url, &session, ready).await;
        let list = r#"{"jsonrpc":"2.0","id":2,"method":"tools/list"}"#;
        let (head, body) = post(&listening.url, &session, list).await;
        assert!(body.contains("add"), "{body}");
        let mut lines = head.lines();
        let losses = lines.find_map(|line| line.strip_prefix("mcp-exact-losses: "));
        assert_eq!(losses.is_some(), is_listed, "{head}");
        if let Some(losses) = losses {
            let is_it = |id: &str| id == OUTPUT_SCHEMA_LOSS.to_ascii_lowercase();
            assert_eq!(
                losses.split(", ").filter(|id| is_it(id)).count(),
                1,
                "{losses}"
            );
        }
        let prompts = r#"{"jsonrpc":"2.0","id":3,"method":"ping"}"#;
        let (head, _) = post(&listening.url, &session, prompts).await;
        assert!(!head.contains("mcp-exact-losses"), "{head}");
    }
}

/// A rule refuses one kind of loss, while all other losses are accepted.
#[tokio::test]
async fn rules_decide_about_each_loss() {
    let mut options = Options::default();
    options.rules.losses = LossPolicy::Accept;
    options.rules.loss_rules = vec![LossRule::new(
        ["tools/list:*:*/outputSchema"],
        LossPolicy::Refuse,
    )];
    let bridge = bridge_with(revision("2026-07-28"), options).await;
    let old = handle_of(&bridge, revision("2024-11-05")).await;
    let refused = request(&old, "tools/list", None).await;
    let refused = refused.expect_err("the loss is refused");
    assert_eq!(refused.code(), Some(-32603));
    assert!(refused.message().contains("outputSchema"), "{refused:?}");
    let prompts = request(&old, "prompts/list", None).await;
    assert!(prompts.is_ok(), "other losses are accepted");
    // A newer client loses nothing.
    let newer = handle_of(&bridge, revision("2025-11-25")).await;
    assert!(request(&newer, "tools/list", None).await.is_ok());
    old.close();
    newer.close();
}

/// Hook that refuses, answers or changes requests depending on their subject, and edits the text of one resource.
struct ChangingHook;

impl Hook for ChangingHook {
    fn before<'a>(&'a self, call: &'a Call) -> HookFuture<'a, Decision> {
        let decision = match call.subject().as_deref() {
            Some("count") => Decision::Refuse(PeerError::invalid_params("not today")),
            Some("revision") => {
                Decision::Answer(object(r#"{"content":[{"type":"text","text":"kept"}]}"#))
            }
            Some("add") => {
                let params = object(r#"{"name":"add","arguments":{"a":20,"b":3}}"#);
                Decision::RelayWith(params)
            }
            _ => Decision::Relay,
        };
        Box::pin(ready(decision))
    }

    fn after<'a>(&'a self, call: &'a Call, reply: Reply) -> HookFuture<'a, Reply> {
        let reply = match reply {
            Reply::Result(result) if call.subject().as_deref() == Some("docs://intro") => {
                let text = result.object().text().replace("introduction", "[removed]");
                let text: JsonObject = text.parse().expect("JSON");
                Reply::Result(text.into())
            }
            reply => reply,
        };
        Box::pin(ready(reply))
    }
}

/// Hook that records results as the client sees them.
struct RecordingHook(Arc<Mutex<Vec<String>>>);

impl Hook for RecordingHook {
    fn after<'a>(&'a self, call: &'a Call, reply: Reply) -> HookFuture<'a, Reply> {
        let words = format!("{:?}: {reply:?}", call.subject());
        self.0.lock().expect("a lock").push(words);
        Box::pin(ready(reply))
    }
}

/// Hooks refuse, answer and change requests, for every pair of client and server revisions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_decide_in_every_pair() {
    for of_server in revisions() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let mut options = Options::default();
        options.hooks = Hooks::default()
            .with(RecordingHook(Arc::clone(&seen)))
            .with(ChangingHook);
        let bridge = bridge_with(of_server, options).await;
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let client = client_of(&bridge, of_client).await.expect(&pair);
            let sum: Sum = client.call("add", &Add { a: 1, b: 1 }).await.expect(&pair);
            assert_eq!(sum.sum, 23, "{pair}");
            let refused = client.call_tool("count", &()).await.expect_err(&pair);
            assert!(
                refused.to_string().contains("not today"),
                "{pair}: {refused}"
            );
            let kept = client.call_tool("revision", &()).await.expect(&pair);
            assert_eq!(kept.text(), "kept", "{pair}");
            let read = client.read("docs://intro").await.expect(&pair);
            assert_eq!(read.text(), "An [removed].", "{pair}");
            client.close();
            let seen = std::mem::take(&mut *seen.lock().expect("a lock"));
            for words in ["not today", "kept", "[removed]"] {
                assert!(
                    seen.iter().any(|seen| seen.contains(words)),
                    "{pair}: {words}: {seen:?}"
                );
            }
        }
    }
}

/// Each call is reported once to the observer, with its arguments and its outcome: result, tool error, error or
/// cancellation.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_request_is_reported_once() {
    for of_server in revisions() {
        let reports = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&reports);
        let mut options = Options::default();
        options.on_call = Some(CallObserver::new(move |report| {
            let call = report.call;
            noted.lock().expect("a lock").push((
                call.subject(),
                call.arguments(),
                report.outcome.clone(),
            ));
        }));
        let bridge = bridge_with(of_server, options).await;
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let client = handle_of(&bridge, of_client).await;
            let call = |name: &str, arguments: &str| {
                let name = Json::string(name);
                let params = [("name", name), ("arguments", object(arguments).into())];
                let params = JsonObject::from_iter(params);
                client.request("tools/call", Some(params), CallOptions::default(), None)
            };
            let _ = call("add", r#"{"a":1, "b":2}"#).expect(&pair).await;
            let _ = call("fails", "{}").expect(&pair).await;
            let _ = call("nothing", "{}").expect(&pair).await;
            let begun = Arc::new(tokio::sync::Notify::new());
            let has_begun = Arc::clone(&begun);
            let options = CallOptions {
                progress: true,
                ..CallOptions::default()
            };
            let progress = Box::new(move |_: &mcp_exact::Progress| has_begun.notify_one());
            let params = object(r#"{"name":"waits","arguments":{}}"#);
            let waits = client.request("tools/call", Some(params), options, Some(progress));
            begun.notified().await;
            drop(waits);
            let reported = || reports.lock().expect("a lock").len() == 4;
            wait_until(reported, &format!("{pair}: all calls are reported")).await;
            let reports = std::mem::take(&mut *reports.lock().expect("a lock"));
            let of = |subject: &str| {
                let all = reports.iter();
                let all = all.filter(|(of, ..)| of.as_deref() == Some(subject));
                all.map(|(_, arguments, outcome)| (arguments.as_deref(), outcome.clone()))
                    .collect::<Vec<_>>()
            };
            assert_eq!(
                of("add"),
                [(Some(r#"{"a":1, "b":2}"#), CallOutcome::Result)],
                "{pair}"
            );
            assert_eq!(
                of("fails"),
                [(Some("{}"), CallOutcome::ToolError)],
                "{pair}"
            );
            let unknown = &of("nothing")[..];
            assert!(
                matches!(unknown, [(_, CallOutcome::Error(_))]),
                "{pair}: {unknown:?}"
            );
            assert_eq!(
                of("waits"),
                [(Some("{}"), CallOutcome::Cancelled)],
                "{pair}"
            );
            client.close();
        }
        let metrics = bridge.metrics();
        let clients = revisions().count() as u64;
        assert_eq!(
            (
                metrics.requests("cancelled"),
                metrics.requests("tool_error")
            ),
            (clients, clients)
        );
        let text = metrics.to_string();
        for line in [
            &*format!(
                "mcp_bridge_requests_total{{server=\"\",method=\"tools/call\",outcome=\"cancelled\"}} {clients}"
            ),
            "mcp_bridge_server_up{server=\"\"} 1",
            &*format!(
                "mcp_bridge_request_duration_seconds_count{{server=\"\"}} {}",
                4 * clients
            ),
        ] {
            assert!(text.lines().any(|known| known == line), "{line} in\n{text}");
        }
    }
}

/// A principal whose limit of concurrent requests is reached gets an error, and other principals can still send
/// requests.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn limits_apply_per_principal() {
    for of_server in revisions() {
        let mut limits = PrincipalLimits::default();
        limits.concurrent = Some(1);
        let mut options = Options::default();
        options.rules.limits = Some(limits);
        let bridge = bridge_with(of_server, options).await;
        let listening = listen_by_header(&bridge).await;
        let (own, other) = (
            plain_client(&listening.url, "own").await,
            plain_client(&listening.url, "other").await,
        );
        let call = |name: &str| JsonObject::from_iter([("name", Json::string(name))]);
        // A request is counted before it is admitted, but the server has only those that were.
        let begun = Arc::new(tokio::sync::Notify::new());
        let has_begun = Arc::clone(&begun);
        let options = CallOptions {
            progress: true,
            ..CallOptions::default()
        };
        let progress = Box::new(move |_: &mcp_exact::Progress| has_begun.notify_one());
        let waits = own.request("tools/call", Some(call("waits")), options, Some(progress));
        let waits = waits.expect("a request");
        begun.notified().await;
        let second = request(&own, "tools/call", Some(call("revision"))).await;
        assert_eq!(second.expect_err("too many").code(), Some(-32000));
        assert!(
            request(&other, "tools/call", Some(call("revision")))
                .await
                .is_ok()
        );
        assert_eq!(bridge.metrics().refused(), 1);
        drop(waits);
        wait_until(|| bridge.usage().requests == 0, "the call has ended").await;
        // Its task, which holds its place, ends a moment later.
        let next = async {
            while request(&own, "tools/call", Some(call("revision")))
                .await
                .is_err()
            {
                tokio::time::sleep(Duration::from_millis(10)).await;
            }
        };
        let next = tokio::time::timeout(Duration::from_secs(60), next).await;
        assert!(next.is_ok(), "server {of_server}: its place is free again");
        own.close();
        other.close();
    }
}

/// Tasks are not relayed here: a call that requests a task is answered with its final result, and the loss is reported.
#[tokio::test]
async fn dropped_tasks_are_reported_as_losses() {
    let mut options = Options::default();
    options.losses_in_meta = true;
    let bridge = bridge_with(revision("2025-11-25"), options).await;
    let messages = [
        r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"raw","version":"1"}}}"#,
        r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
        r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"add","arguments":{"a":1,"b":2},"task":{"ttl":60000}}}"#,
    ];
    let done = answer_to(&bridge, &messages, "2").await;
    let result = done.get("result").expect("a result");
    let result: JsonObject = result.try_into().expect("an object");
    assert!(result.text().contains(r#""sum":3"#), "{result}");
    let lost = "tools/call:dropped:/task";
    assert_eq!(listed_loss_ids(&result), [lost]);
    assert_eq!(bridge.metrics().losses[lost], 1);
}

/// "If the batch RPC call itself fails to be recognized … the response from the Server MUST be an Array with the
/// corresponding Response objects" (JSON-RPC 2.0, section 6; only 2025-03-26 has batches): the bridge relays each
/// message separately, and answers with one batch.
#[tokio::test]
async fn batches_are_split_and_gathered() {
    for of_server in revisions() {
        let bridge = bridge_with(of_server, Options::default()).await;
        let call = |id: u32, a: u32| {
            format!(
                r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"add","arguments":{{"a":{a},"b":1}}}}}}"#
            )
        };
        let batch = format!(
            r#"[{},{},{{"jsonrpc":"2.0","method":"notifications/roots/list_changed"}},{{"jsonrpc":"2.0","id":4,"method":"missing"}}]"#,
            call(2, 1),
            call(3, 2)
        );
        let messages = [
            r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{"roots":{"listChanged":true}},"clientInfo":{"name":"raw","version":"1"}}}"#,
            r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#,
            &batch,
        ];
        let answers = line_after(&bridge, &messages, |line| line.starts_with('[')).await;
        let answers: Vec<JsonObject> = answers
            .parse::<Json>()
            .expect("JSON")
            .decode_as()
            .expect("answers");
        let answer_to = |id: &str| {
            let mut answers = answers.iter();
            answers.find(|answer| answer.get("id").is_some_and(|of| of.text() == id))
        };
        assert_eq!(answers.len(), 3, "server {of_server}");
        for (id, sum) in [("2", r#""sum":2"#), ("3", r#""sum":3"#), ("4", "-32601")] {
            let answer = answer_to(id).expect(id);
            // Revisions without structured results have the JSON as text.
            let text = answer.text().replace('\\', "");
            assert!(text.contains(sum), "server {of_server}: {answer}");
        }
    }
}

/// Kinds and methods of the messages that a hook has received.
type Seen = Arc<Mutex<Vec<(MessageKind, String)>>>;

/// Hook that records all messages, changes sampling results, and refuses requests for roots.
struct WatchingHook(Seen);

impl Hook for WatchingHook {
    fn message(&self, message: &Message) -> MessageDecision {
        let note = (message.kind, message.method.clone());
        self.0.lock().expect("a lock").push(note);
        match (message.kind, message.method.as_str()) {
            (MessageKind::InputResponse, "sampling/createMessage") => {
                let params = message.params.as_ref().expect("an answer").text();
                let other = params.replace("Something.", "Nothing.");
                MessageDecision::RelayWith(object(&other))
            }
            (MessageKind::InputRequest, "roots/list") => {
                MessageDecision::Refuse(PeerError::invalid_params("no roots"))
            }
            (MessageKind::ServerNotification, "notifications/progress") => {
                let done = message
                    .params
                    .as_ref()
                    .and_then(|params| params.get("progress"));
                let done: f64 = done.expect("progress").text().parse().expect("a number");
                let doubled = format!(r#"{{"progress":{},"total":6}}"#, done * 2.0);
                MessageDecision::RelayWith(object(&doubled))
            }
            _ => MessageDecision::Relay,
        }
    }
}

/// Hooks receive, change and refuse input requests, responses and notifications, in every pair of client and server
/// revisions.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn hooks_receive_input_requests_and_notifications() {
    for of_server in revisions() {
        let server = server(of_server);
        let seen: Seen = Arc::default();
        let mut options = Options::default();
        options.hooks = Hooks::default().with(WatchingHook(Arc::clone(&seen)));
        let bridge = Bridge::new(InMemory::new(&server), options).await;
        let bridge = bridge.expect("a bridge");
        for of_client in revisions() {
            let pair = format!("client {of_client}, server {of_server}");
            let has_seen = |kind, method: &str| {
                let seen = seen.lock().expect("a lock");
                seen.contains(&(kind, method.to_owned()))
            };
            seen.lock().expect("a lock").clear();
            let client = client_of(&bridge, of_client).on_change(|_| {});
            let client = client.await.expect(&pair);
            let sampled: String = client.call("sample", &()).await.expect(&pair);
            assert_eq!(sampled, "Nothing.", "{pair}");
            for kind in [MessageKind::InputRequest, MessageKind::InputResponse] {
                assert!(has_seen(kind, "sampling/createMessage"), "{pair}: {kind:?}");
            }
            let roots = client.call::<_, String>("roots", &()).await;
            let error = roots.expect_err(&pair).to_string();
            assert!(error.contains("no roots"), "{pair}: {error}");
            assert!(
                !has_seen(MessageKind::InputResponse, "roots/list"),
                "{pair}"
            );
            let progress = Arc::default();
            let count = client.call::<_, String>("count", &());
            let count = count.on_progress(noting(&progress)).await;
            assert_eq!(count.expect(&pair), "3", "{pair}");
            let progress = progress.lock().expect("a lock").clone();
            assert_eq!(progress, [2.0, 4.0, 6.0], "{pair}");
            if of_client.as_str() < "2026" {
                seen.lock().expect("a lock").clear();
                // The gateway subscribes at the server concurrently with the calls, and may do so after a change.
                let is_told = || {
                    let inserted = server
                        .tools()
                        .insert(format!("of-{of_client}").as_str(), || async { "" });
                    inserted.expect("a tool");
                    let method = "notifications/tools/list_changed";
                    has_seen(MessageKind::ServerNotification, method)
                };
                wait_until(is_told, &pair).await;
                let raw = handle_of(&bridge, of_client).await;
                // The session connects to the server first.
                let listed = request(&raw, "tools/list", None).await;
                assert!(listed.is_ok(), "{pair}");
                let method = "notifications/example/changed";
                raw.notify(method, None).expect("sent");
                let told = || has_seen(MessageKind::ClientNotification, method);
                wait_until(told, &pair).await;
                raw.close();
            }
            client.close();
        }
    }
}
