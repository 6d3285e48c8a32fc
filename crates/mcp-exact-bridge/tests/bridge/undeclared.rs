//! Capabilities between clients and servers with sessions: extensions that both declare, and input requests of servers which
//! their client has not declared.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::transport::ClientHandle;
use mcp_exact::transport::http::server::HttpServerOptions;
use mcp_exact::{JsonObject, Revision};
use mcp_exact_bridge::{Bridge, Options};
use mcp_exact_session::{CallOptions, ClientConfig, Identity, PeerError};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::common::{handle_of, listen, listen_with, object, with_sessions};
use crate::isolation::{connect_as, outcome_of, plain_client};
use crate::scripted::{
    ELICIT, SAMPLE, Scripted, called_tool, request, response, text_of, tool_response,
};

/// Returns the messages of a server that sends sampling requests to every client. The id of an input request is the
/// name of the tool and the id of its call.
fn script(message: &JsonObject) -> Vec<String> {
    let id = text_of(message, "id");
    if let Some(tool) = called_tool(message) {
        return match &*tool {
            "hangs" => Vec::new(),
            "fails" => vec![tool_response(&id, "disk full", true)],
            _ => vec![request(
                &format!("{tool}:{id}"),
                "sampling/createMessage",
                SAMPLE,
            )],
        };
    }
    match id.split_once(':') {
        Some(("needs", id)) => vec![tool_response(id, "no model\nat line 1", true)],
        Some(("errors", id)) => {
            let error = r#""error":{"code":-32603,"message":"no model"}"#;
            vec![response(id, error)]
        }
        Some(("asks", id)) => vec![request(
            &format!("needs:{id}"),
            "elicitation/create",
            ELICIT,
        )],
        Some((_, id)) => vec![tool_response(id, "a default", false)],
        None => Vec::new(),
    }
}

/// Creates a bridge in front of the scripted server.
async fn scripted_bridge(of_server: Revision) -> Bridge {
    let server = Scripted::new(of_server, script);
    let bridge = Bridge::new(server, Options::default()).await;
    bridge.expect("a bridge")
}

async fn call(client: &ClientHandle, tool: &str) -> Result<JsonObject, PeerError> {
    let params = object(&format!(r#"{{"name":"{tool}","arguments":{{}}}}"#));
    let options = CallOptions::default();
    outcome_of(client.request("tools/call", Some(params), options, None)).await
}

/// Checks that an error names these capabilities, and contains the answer of the server.
fn check_error(error: &PeerError, required: &str, what: &str) {
    assert_eq!(error.code(), Some(-32021), "{what}: {error:?}");
    let data = error.data().map(|data| data.text()).unwrap_or_default();
    let expected = format!(r#"{{"requiredCapabilities":{required}}}"#);
    assert_eq!(data, expected, "{what}");
    assert!(error.message().ends_with("no model"), "{what}: {error}");
}

/// "If processing a request requires a capability the client did not include […], the server MUST return a
/// `MissingRequiredClientCapabilityError`" (2026-07-28, `basic`, "`_meta`").
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn failed_calls_name_undeclared_capabilities() {
    for of_server in with_sessions() {
        let bridge = scripted_bridge(of_server).await;
        let listening = listen(&bridge).await;
        let plain = plain_client(&listening.url, "own").await;
        let mut config = ClientConfig::new(Identity::new("rooted", "1.0.0"));
        config.capabilities = object(r#"{"roots":{}}"#);
        let rooted = connect_as(&listening.url, "own", "2026-07-28", config, |_| {}).await;
        for (client, kind) in [(&plain, "shared"), (&rooted, "own")] {
            for tool in ["needs", "errors"] {
                let what = format!("server {of_server}, {kind} connection, tool {tool}");
                let error = call(client, tool).await.expect_err(&what);
                check_error(&error, r#"{"sampling":{}}"#, &what);
            }
            if of_server.as_str() >= "2025-06-18" {
                let what = format!("server {of_server}, {kind} connection, two requests");
                let error = call(client, "asks").await.expect_err(&what);
                check_error(&error, r#"{"elicitation":{},"sampling":{}}"#, &what);
            }
            client.close();
        }
    }
}

/// "On HTTP, the response status MUST be `400 Bad Request`" (2026-07-28, `basic`, "`_meta`").
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn missing_capability_has_status_400() {
    let of_server = with_sessions().last().expect("a revision");
    let bridge = scripted_bridge(of_server).await;
    // A response that has become a stream has no such status.
    let listening = listen_with(
        &bridge,
        HttpServerOptions {
            stream_after: Duration::from_secs(60),
            ..HttpServerOptions::default()
        },
    );
    let listening = listening.await;
    let address = listening.url.strip_prefix("http://").expect("a URL");
    let address = address.strip_suffix("/mcp").expect("a URL");
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"needs","arguments":{{}},"_meta":{meta}}}}}"#
    );
    let head = [
        "POST /mcp HTTP/1.1",
        &format!("Host: {address}"),
        "Content-Type: application/json",
        "Accept: application/json, text/event-stream",
        "MCP-Protocol-Version: 2026-07-28",
        "Mcp-Method: tools/call",
        "Mcp-Name: needs",
        &format!("Content-Length: {}", body.len()),
        "Connection: close",
    ];
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    let message = format!("{}\r\n\r\n{body}", head.join("\r\n"));
    stream.write_all(message.as_bytes()).await.expect("sent");
    let mut response = String::new();
    stream
        .read_to_string(&mut response)
        .await
        .expect("a response");
    assert!(response.starts_with("HTTP/1.1 400 "), "{response}");
    assert!(response.contains("-32021"), "{response}");
}

/// Extensions are declared in both directions, in revisions that do not define the capability `extensions` too (SEP-2133: MCP Apps
/// is negotiated by `initialize` of 2025-11-25). Tasks of the extension are not: their results need `resultType`.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn extensions_are_declared_in_both_directions() {
    const UI: &str = r#""io.modelcontextprotocol/ui":{"mimeTypes":["text/html;profile=mcp-app"]}"#;
    const TASKS: &str = r#""io.modelcontextprotocol/tasks":{}"#;
    for of_server in with_sessions() {
        let seen = Arc::new(Mutex::new(Vec::new()));
        let noted = Arc::clone(&seen);
        let server = Scripted::new(of_server, move |message: &JsonObject| {
            if text_of(message, "method") != "initialize" {
                return Vec::new();
            }
            let params = text_of(message, "params");
            let declared = text_of(&object(&params), "capabilities");
            noted.lock().expect("not poisoned").push(declared);
            let result = format!(
                r#""result":{{"protocolVersion":"{of_server}","capabilities":{{"tools":{{}},"extensions":{{{UI}}}}},"serverInfo":{{"name":"s","version":"1"}}}}"#
            );
            vec![response(&text_of(message, "id"), &result)]
        });
        let bridge = Bridge::new(server, Options::default()).await;
        let bridge = bridge.expect("a bridge");
        let listening = listen(&bridge).await;
        for of_client in mcp_exact::revisions().filter(|one| one.as_str() > "2024-11-05") {
            let what = format!("client {of_client}, server {of_server}");
            let mut config = ClientConfig::new(Identity::new("c", "1.0.0"));
            config.capabilities = object(&format!(
                r#"{{"extensions":{{{UI},{TASKS}}},"sampling":{{}}}}"#
            ));
            seen.lock().expect("not poisoned").clear();
            let client =
                connect_as(&listening.url, "own", of_client.as_str(), config, |_| {}).await;
            let declared = client.session_info().expect("a session").capabilities;
            let declared = text_of(&declared, "extensions");
            assert!(declared.contains(UI), "{what}: {declared}");
            let list = client.request("tools/list", None, CallOptions::default(), None);
            drop(outcome_of(list).await);
            let declared = seen.lock().expect("not poisoned").join("\n");
            assert!(declared.contains(UI), "{what}: {declared}");
            assert!(!declared.contains("tasks"), "{what}: {declared}");
            client.close();
        }
    }
}

/// A call that succeeds without the answer, or fails without a request, needs no capability: its result is relayed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn other_results_are_relayed() {
    for of_server in with_sessions() {
        let bridge = scripted_bridge(of_server).await;
        let listening = listen(&bridge).await;
        let client = plain_client(&listening.url, "own").await;
        for (tool, text) in [("tries", "a default"), ("fails", "disk full")] {
            let result = call(&client, tool).await;
            let result = result.unwrap_or_else(|error| panic!("server {of_server}: {error:?}"));
            assert!(result.text().contains(text), "server {of_server}: {result}");
        }
        client.close();
    }
}

/// Over stdio, a request of the server does not say during which call it is sent. While several calls are in progress,
/// none of them ends with the error for a missing capability.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn ambiguous_requests_fail_no_call() {
    let of_server = with_sessions().last().expect("a revision");
    let received = Arc::new(AtomicBool::new(false));
    let noted = Arc::clone(&received);
    let server = Scripted::new(of_server, move |message: &JsonObject| {
        if called_tool(message).as_deref() == Some("hangs") {
            noted.store(true, Ordering::Release);
        }
        script(message)
    });
    let bridge = Bridge::new(server, Options::default()).await;
    let bridge = bridge.expect("a bridge");
    let listening = listen(&bridge).await;
    let client = plain_client(&listening.url, "own").await;
    let params = object(r#"{"name":"hangs","arguments":{}}"#);
    let hanging = client.request("tools/call", Some(params), CallOptions::default(), None);
    let hanging = hanging.expect("a request");
    let in_progress = || received.load(Ordering::Acquire);
    crate::matrix::wait_until(in_progress, "a call in progress").await;
    let result = call(&client, "needs").await.expect("a result");
    assert!(result.text().contains("no model"), "{result}");
    drop(hanging);
    client.close();
}

/// Revisions with sessions do not define the error: their clients receive the answer of the server.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn clients_with_sessions_receive_the_answer() {
    for of_server in with_sessions() {
        let bridge = scripted_bridge(of_server).await;
        for of_client in with_sessions() {
            let client = handle_of(&bridge, of_client).await;
            let result = call(&client, "needs").await.expect("a result");
            assert!(result.text().contains("no model"), "{result}");
            client.close();
        }
    }
}

/// A server that declares nothing and does not answer is asked once for its tools, and holds up no client but the first, which waits two
/// seconds.
#[tokio::test(start_paused = true)]
async fn silent_servers_are_asked_once() {
    for of_server in with_sessions() {
        let (connections, lists) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        let (connected, listed) = (Arc::clone(&connections), Arc::clone(&lists));
        let server = Scripted::new(of_server, move |message: &JsonObject| {
            match &*text_of(message, "method") {
                "initialize" => {
                    connected.fetch_add(1, Ordering::AcqRel);
                    let result = format!(
                        r#""result":{{"protocolVersion":"{of_server}","capabilities":{{}},"serverInfo":{{"name":"silent","version":"1"}}}}"#
                    );
                    vec![response(&text_of(message, "id"), &result)]
                }
                "tools/list" => {
                    listed.fetch_add(1, Ordering::AcqRel);
                    // Blank lines are no messages.
                    vec![String::new()]
                }
                _ => Vec::new(),
            }
        });
        let begun = tokio::time::Instant::now();
        let bridge = Bridge::new(server, Options::default()).await;
        let bridge = bridge.expect("a bridge");
        assert!(begun.elapsed() < Duration::from_secs(3), "{of_server}");
        let mut clients = Vec::new();
        for _ in 0..3 {
            clients.push(handle_of(&bridge, of_server).await);
        }
        // All that can be done is done before the clock goes on.
        tokio::time::sleep(Duration::from_secs(60)).await;
        let counted = [connections, lists].map(|count| count.load(Ordering::Acquire));
        assert!(
            counted[0] >= 3 && counted[1] == 1,
            "{of_server}: {counted:?}"
        );
    }
}
