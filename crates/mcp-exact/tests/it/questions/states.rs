//! `requestState` of requests with input requests (2026-07-28, `basic/patterns/mrtr`): principals, maximum size, and
//! requests that cannot continue.

use std::sync::Arc;
use std::time::Duration;

use mcp_exact::testing::revisions_from;
use mcp_exact::transport::LineTransport;
use mcp_exact::transport::http::server::{
    AuthFuture, Authenticate, HttpListener, HttpServerOptions,
};
use mcp_exact::{
    Client, ClientError, Cx, Error, Form, JsonObject, KeyRing, Limits, Principal, Server, Tool,
};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::TcpStream;

use super::{Confirm, Counter, Name, builder, connect, newest};
use crate::common::{has_sessions, object};

/// Creates a builder of a server with a tool `ask`, which sends one input request and returns the answer.
fn input_request_server_builder() -> mcp_exact::ServerBuilder {
    builder().tool("ask", |cx: Cx| async move {
        let sure = cx.elicit::<Confirm>("Sure?").await?;
        Ok::<_, Error>(sure.accepted_with(|form| form.yes).to_string())
    })
}

/// A `requestState` is accepted by every process with the same keys, unless its handler has another version.
#[tokio::test]
async fn request_states_move_between_processes() {
    let process = |version: &str, keys: KeyRing| {
        builder()
            .keys(keys)
            .tool(Tool::new("ask").version(version), |cx: Cx| async move {
                let sure = cx.elicit::<Confirm>("Sure?").await?;
                Ok::<_, Error>(sure.accepted_with(|form| form.yes).to_string())
            })
            .build()
            .expect("a server")
    };
    let first = process("1", KeyRing::new([1; 32], []));
    let params = retry_params(&first).await;
    let rotated = process("1", KeyRing::new([2; 32], [[1; 32]]));
    let same = retry(&rotated, &params).await.expect("a result");
    assert_eq!(same, r#"[{"type":"text","text":"true"}]"#);
    let newer = process("2", KeyRing::new([1; 32], []));
    let newer = retry(&newer, &params).await.expect_err("another version");
    assert!(
        newer
            .to_string()
            .contains("the handler has changed since it asked"),
        "{newer}"
    );
    let foreign = process("1", KeyRing::new([3; 32], []));
    let foreign = retry(&foreign, &params).await.expect_err("another key");
    assert!(matches!(foreign, ClientError::Server(error) if error.code() == Some(-32602)));
}

/// Returns the params of a retry, as a client sends them after the first result.
async fn retry_params(server: &Server) -> mcp_exact::JsonObject {
    let (near, far) = tokio::io::duplex(64 << 10);
    let (reader, writer) = tokio::io::split(far);
    let serving = server.clone();
    tokio::spawn(async move {
        serving
            .serve(LineTransport::new(reader, writer, 64 << 10))
            .await
    });
    let (reader, mut writer) = tokio::io::split(near);
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#;
    let newline = "\n";
    let request = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ask","arguments":{{}},"_meta":{meta}}}}}{newline}"#
    );
    writer
        .write_all(request.as_bytes())
        .await
        .expect("the server reads");
    let mut lines = BufReader::new(reader).lines();
    let line = lines.next_line().await.expect("a line").expect("an answer");
    let answer = object(&line);
    let result = object(answer.get("result").expect("a result").text());
    assert_eq!(
        result.get("resultType").expect("a type").text(),
        "\"input_required\""
    );
    let (answers, _) = retry_members(&result);
    let mut params = object(r#"{"name":"ask","arguments":{}}"#);
    params.insert("inputResponses", answers);
    params.insert("requestState", result.get("requestState").expect("a state"));
    params
}

/// A `requestState` is bound to its request: with other arguments, it is rejected.
#[tokio::test]
async fn request_states_are_bound_to_requests() {
    let server = input_request_server_builder().build().expect("a server");
    let mut params = retry_params(&server).await;
    params.insert("arguments", object(r#"{"other":1}"#));
    let client = connect(&server).revision(newest()).await.expect("a client");
    let error = client
        .request("tools/call", Some(params))
        .await
        .expect_err("another request");
    assert!(matches!(error, ClientError::Server(error) if error.code() == Some(-32602)));
}

/// Sends a retry to a server, and returns the text of its result.
async fn retry(server: &Server, params: &JsonObject) -> Result<String, ClientError> {
    let client = connect(server).revision(newest()).await?;
    let result = client.request("tools/call", Some(params.clone())).await?;
    Ok(result.get("content").expect("content").to_string())
}

/// Keys can be rotated without losing requests: first every replica accepts the new key, then each replica seals with
/// the new key.
#[tokio::test]
async fn keys_rotate_replica_by_replica() {
    let replica = |keys: KeyRing| {
        input_request_server_builder()
            .keys(keys)
            .build()
            .expect("a server")
    };
    let (old, new) = ([1; 32], [2; 32]);
    let before = replica(KeyRing::new(old, []));
    let prepared = replica(KeyRing::new(old, [new]));
    let rotated = replica(KeyRing::new(new, [old]));
    let after = replica(KeyRing::new(new, []));
    for (asked, answered) in [
        (&before, &prepared),
        (&prepared, &before),
        (&prepared, &rotated),
        (&rotated, &prepared),
        (&rotated, &after),
        (&after, &rotated),
    ] {
        let params = retry_params(asked).await;
        let text = retry(answered, &params).await.expect("a result");
        assert_eq!(text, r#"[{"type":"text","text":"true"}]"#);
    }
    let params = retry_params(&after).await;
    assert!(retry(&before, &params).await.is_err());
}

/// Authenticator that uses a header as the principal; without the header, the caller is anonymous.
struct HeaderAuthenticator;

impl Authenticate for HeaderAuthenticator {
    fn authenticate<'a>(&'a self, request: &'a mut http::request::Parts) -> AuthFuture<'a> {
        let name = request.headers.get("x-user");
        let name = name.and_then(|name| name.to_str().ok());
        let principal = name.map(|name| Principal(name.to_owned()));
        Box::pin(std::future::ready(Ok(principal.into())))
    }
}

/// Sends a call of `ask` by POST as a user, and returns the body of the response. `more` contains additional members of
/// the params.
async fn post(address: &str, user: Option<&str>, more: &str) -> JsonObject {
    let meta = r#"{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}}}}"#;
    let body = format!(
        r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"ask","arguments":{{}},"_meta":{meta}{more}}}}}"#
    );
    let user = user.map(|user| format!("x-user: {user}\r\n"));
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {address}\r\nconnection: close\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\nmcp-protocol-version: 2026-07-28\r\n\
         mcp-method: tools/call\r\nmcp-name: ask\r\n{}content-length: {}\r\n\r\n{body}",
        user.unwrap_or_default(),
        body.len()
    );
    let mut stream = TcpStream::connect(address).await.expect("a connection");
    stream.write_all(request.as_bytes()).await.expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("an answer");
    let (start, end) = (
        answer.find('{').expect(&answer),
        answer.rfind('}').expect("an end"),
    );
    object(&answer[start..=end])
}

/// Returns the answer to the input request of a result, and its `requestState`, for a retry.
fn retry_members(result: &JsonObject) -> (JsonObject, String) {
    let input_requests = object(result.get("inputRequests").expect("questions").text());
    let (name, _) = input_requests.iter().next().expect("a question");
    let answers = format!(r#"{{"{name}":{{"action":"accept","content":{{"yes":true}}}}}}"#);
    let state = result.get("requestState").expect("a state");
    (object(&answers), state.text().to_owned())
}

/// A `requestState` can be used only by the principal that has received it. Anonymous callers cannot be distinguished,
/// so each of them can use the `requestState` of another anonymous caller.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn request_states_are_bound_to_principals() {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let options = HttpServerOptions {
        authenticate: Some(Arc::new(HeaderAuthenticator)),
        ..HttpServerOptions::default()
    };
    let service = input_request_server_builder()
        .build()
        .expect("a server")
        .http(options);
    let serving = tokio::spawn(listener.serve(service, std::future::pending()));
    for (asked, retries, goes_on) in [
        (Some("ada"), Some("ada"), true),
        (Some("ada"), Some("bob"), false),
        (Some("ada"), None, false),
        (None, Some("ada"), false),
        (None, None, true),
    ] {
        let answer = post(&address, asked, "").await;
        let result = object(answer.get("result").expect("a result").text());
        let (answers, state) = retry_members(&result);
        let more = format!(r#","inputResponses":{answers},"requestState":{state}"#);
        let answer = post(&address, retries, &more).await;
        if goes_on {
            assert!(answer.to_string().contains(r#""text":"true""#), "{answer}")
        } else {
            let error = object(answer.get("error").expect("an error").text());
            assert_eq!(error.get("code").expect("a code").text(), "-32602");
        }
    }
    serving.abort();
}

/// The `requestState` contains answers and results of `once`; if they exceed its maximum size, the request ends with an
/// error.
#[tokio::test]
async fn large_answers_end_the_request() {
    let limits = Limits {
        state_bytes: 4 << 10,
        ..Limits::default()
    };
    let server = builder()
        .limits(limits)
        .tool("names", |cx: Cx| async move {
            let name = cx.elicit::<Name>("Who are you?").await?;
            cx.elicit::<Confirm>("Sure?").await?;
            let name = name.accepted().map_or(0, |form| form.name.len());
            Ok::<_, Error>(name.to_string())
        })
        .build()
        .expect("a server");
    let connect = |length: usize| {
        Client::in_memory(&server).on_elicit(move |form: Form| async move {
            let asks_for_name = form
                .schema()
                .is_some_and(|schema| schema.to_string().contains("\"name\""));
            if asks_for_name {
                form.accept(&object(&format!(r#"{{"name":"{}"}}"#, "x".repeat(length))))
            } else {
                form.accept(&object(r#"{"yes":true}"#))
            }
        })
    };
    revisions_from(
        "2025-06-18",
        || connect(1_000),
        |client| async move {
            let length: usize = client.call("names", &()).await.expect("a length");
            assert_eq!(length, 1_000);
        },
    )
    .await;
    revisions_from(
        "2025-06-18",
        || connect(5_000),
        |client| async move {
            let called = client.call::<_, usize>("names", &()).await;
            if !has_sessions(client.revision()) {
                let error = called.expect_err("too large").to_string();
                assert!(error.contains("state_bytes"), "{error}");
            } else {
                // Nothing travels: the handler waits.
                assert_eq!(called, Ok(5_000));
            }
        },
    )
    .await;
}

/// A timer around an input request measures the waiting time of the handler, which is zero from 2026-07-28 on.
#[tokio::test]
async fn timers_include_time_waiting_for_input() {
    let server = builder()
        .tool("ask", |cx: Cx| async move {
            let limit = Duration::from_millis(20);
            match tokio::time::timeout(limit, cx.elicit::<Confirm>("Sure?")).await {
                Ok(answer) => Ok::<_, Error>(answer?.accepted_with(|form| form.yes).to_string()),
                Err(_) => Ok("late".to_owned()),
            }
        })
        .build()
        .expect("a server");
    let connect = || {
        Client::in_memory(&server).on_elicit(|form: Form| async move {
            tokio::time::sleep(Duration::from_millis(200)).await;
            form.accept(&object(r#"{"yes":true}"#))
        })
    };
    revisions_from("2025-06-18", connect, |client| async move {
        let text: String = client.call("ask", &()).await.expect("a text");
        let expected = if !has_sessions(client.revision()) {
            "true"
        } else {
            "late"
        };
        assert_eq!(text, expected, "{}", client.revision());
    })
    .await;
}

/// A panic of a handler in a later run, or in an effect, ends only its request; the effect is retried.
#[tokio::test]
async fn panics_in_later_runs_end_requests() {
    let tries = Counter::default();
    let counted = tries.clone();
    let server = input_request_server_builder()
        .tool("panics", |cx: Cx| async move {
            cx.elicit::<Confirm>("Sure?").await?;
            assert!(cx.is_cancelled(), "after the answer");
            Ok::<_, Error>("never")
        })
        .tool("effect", move |cx: Cx| {
            let tries = counted.clone();
            async move {
                cx.elicit::<Confirm>("Sure?").await?;
                cx.once("flaky", async {
                    tries.increment();
                    assert_ne!(tries.get() % 2, 1, "in the effect");
                    Ok::<_, Error>(())
                })
                .await?;
                Ok::<_, Error>("done")
            }
        })
        .build()
        .expect("a server");
    revisions_from(
        "2025-06-18",
        || connect(&server),
        |client| async move {
            for tool in ["panics", "effect"] {
                let error = client.call_tool(tool, &()).await.expect_err("a panic");
                assert!(
                    matches!(error, ClientError::Server(error) if error.code() == Some(-32603))
                );
            }
            let done: String = client.call("effect", &()).await.expect("it is tried again");
            assert_eq!(done, "done");
            let sure: bool = client.call("ask", &()).await.expect("the server lives on");
            assert!(sure);
        },
    )
    .await;
}
