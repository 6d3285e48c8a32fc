//! Bearer tokens on both sides of HTTP.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, SystemTime};

use mcp_exact::transport::http::server::{
    AuthError, AuthFuture, Authenticate, Authenticated, HttpListener, HttpServerOptions,
};
use mcp_exact::{
    BearerToken, Client, ClientError, Headers, Input, Principal, ResourceTemplate, Server,
    ServerBuilder, TokenGrant, Tool, schemars, serde,
};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;

/// Serves a server on a free port; returns its URL. The task ends with the runtime of the test.
async fn serve(builder: ServerBuilder) -> String {
    let server = builder
        .tool(
            "who",
            |Principal(name): Principal, headers: Headers| async move {
                // The token is removed before handlers see the request.
                assert_eq!(headers.get("authorization"), None);
                name
            },
        )
        .tool(Tool::new("write").scope("notes:write"), || async {
            "written"
        })
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    tokio::spawn(listener.serve(service, std::future::pending()));
    format!("http://{address}/mcp")
}

/// Checks that the server has refused the authorization with an HTTP status.
fn assert_refused(error: &ClientError, expected: u16) {
    let text = error.to_string();
    assert!(
        text.starts_with(&format!(
            "the request is not authorized (HTTP status {expected})"
        )),
        "{text}"
    );
    assert!(
        matches!(error, ClientError::Unauthorized { status, .. } if *status == expected),
        "{error:?}"
    );
}

/// A request needs one of the tokens, and a tool with a scope a token that grants it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn listed_tokens_grant_principal_and_scopes() {
    let admin = TokenGrant::new("admin").scopes(["notes:write"]);
    let builder = Server::builder("test", "1")
        .bearer_tokens(["c2VjcmV0"])
        .bearer_tokens([BearerToken::new("YWRtaW4", admin)]);
    let url = serve(builder).await;

    let connect = || Client::connect(&url);
    for (client, reason) in [
        (connect(), None),
        (connect().bearer("b3RoZXI"), Some("unknown")),
        (connect().bearer(""), None),
        (connect().header("authorization", "Basic c2VjcmV0"), None),
    ] {
        for revision in mcp_exact::revisions() {
            let error = client.clone().revision(revision).await;
            let error = error.expect_err("no token");
            assert_refused(&error, 401);
            let text = error.to_string();
            assert!(text.contains(reason.unwrap_or("not authorized")), "{text}");
            assert!(text.contains("`Connect::bearer`"), "{text}");
        }
        let error = client.await.expect_err("no token");
        assert_refused(&error, 401);
    }

    let guest = Client::connect(&url).bearer("c2VjcmV0");
    let guest = guest.await.expect("a client");
    let name: String = guest.call("who", &()).await.expect("a name");
    assert!(name.starts_with("token-") && name.len() == 18, "{name}");
    let refused = guest.call_tool("write", &()).await;
    assert_refused(&refused.expect_err("no scope"), 403);

    let admin = Client::connect(&url).bearer("YWRtaW4");
    let admin = admin.await.expect("a client");
    let name: String = admin.call("who", &()).await.expect("a name");
    assert_eq!(name, "admin");
    let written: String = admin.call("write", &()).await.expect("a scope");
    assert_eq!(written, "written");
}

/// With `hide_without_scope`, lists omit what the token grants no scope for, and a call is refused as insufficient, not as
/// unknown. Without tokens, everything is listed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_hide_what_needs_another_scope() {
    let builder = |hides: bool| {
        let admin = TokenGrant::new("admin").scopes(["notes:write"]);
        let builder = Server::builder("test", "1")
            .visible(|caller, listed| listed.name() != "who" || !caller.has_scope("notes:write"))
            .bearer_tokens(["c2VjcmV0"])
            .bearer_tokens([BearerToken::new("YWRtaW4", admin)]);
        if hides {
            builder.hide_without_scope()
        } else {
            builder
        }
    };
    let names = async |client: &Client| {
        let tools = client.tools().all().await.expect("a list");
        tools
            .iter()
            .map(|tool| tool.name().to_owned())
            .collect::<Vec<_>>()
    };
    for (hides, of_guest) in [(true, &["who"][..]), (false, &["who", "write"])] {
        let url = serve(builder(hides)).await;
        for revision in mcp_exact::revisions() {
            let connect = || Client::connect(&url).revision(revision);
            let guest = connect().bearer("c2VjcmV0").await.expect("a client");
            assert_eq!(names(&guest).await, of_guest);
            let refused = guest.call_tool("write", &()).await;
            assert_refused(&refused.expect_err("no scope"), 403);
            let admin = connect().bearer("YWRtaW4").await.expect("a client");
            assert_eq!(names(&admin).await, ["write"]);
        }
    }
    let server = Server::builder("test", "1")
        .tool(Tool::new("write").scope("notes:write"), || async {
            "written"
        })
        .hide_without_scope()
        .build()
        .expect("a server");
    let client = Client::in_memory(&server).await.expect("a client");
    assert_eq!(names(&client).await, ["write"]);
}

/// The application checks tokens itself; an expired grant is none.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn applications_check_tokens() {
    let builder = Server::builder("test", "1").check_tokens(async |token: String| {
        let grant = TokenGrant::new(token.clone()).scopes(["notes:write"]);
        let past = SystemTime::now() - Duration::from_secs(1);
        match &*token {
            "ada" => Some(grant),
            "late" => Some(grant.expires_at(past)),
            _ => None,
        }
    });
    let url = serve(builder).await;
    for token in ["late", "bob"] {
        let error = Client::connect(&url).bearer(token).await;
        let error = error.expect_err("no grant").to_string();
        assert!(error.contains("not authorized"), "{error}");
    }
    let client = Client::connect(&url).bearer("ada");
    let client = client.await.expect("a client");
    let name: String = client.call("who", &()).await.expect("a name");
    assert_eq!(name, "ada");
    let written: String = client.call("write", &()).await.expect("a scope");
    assert_eq!(written, "written");
}

/// A token that no client can send, or that another builder would lose, is a problem of the server; headers need HTTP.
#[tokio::test]
async fn unusable_tokens_are_refused() {
    for token in ["", "two words", "ümlaut"] {
        let builder = Server::builder("test", "1").bearer_tokens([token]);
        let error = builder.build().expect_err("unusable").to_string();
        assert!(error.contains("bearer token"), "{error}");
    }
    let inner = Server::builder("inner", "1").bearer_tokens(["c2VjcmV0"]);
    let merged = Server::builder("test", "1").merge(None, inner).build();
    let error = merged.expect_err("lost").to_string();
    assert!(error.contains("`bearer_tokens`"), "{error}");

    let server = Server::builder("test", "1").build().expect("a server");
    for connect in [
        Client::in_memory(&server).bearer("c2VjcmV0"),
        Client::connect("http://127.0.0.1:1/mcp").header("a b", "c"),
        Client::connect("http://127.0.0.1:1/mcp").header("a", "b\nc"),
    ] {
        let error = connect.await.expect_err("unusable");
        assert!(matches!(error, ClientError::Config(_)), "{error:?}");
    }
    // What is shown contains no token.
    let token = BearerToken::from("c2VjcmV0");
    assert!(!format!("{token:?}").contains("c2VjcmV0"));
}

/// Variable of a template.
#[derive(serde::Deserialize, schemars::JsonSchema)]
struct Named {
    name: String,
}

/// Sends a message by POST with a token; returns the whole response.
async fn post(url: &str, token: &str, session_id: Option<&str>, message: &str) -> String {
    let host = url.trim_start_matches("http://").trim_end_matches("/mcp");
    let session = session_id.map_or_else(String::new, |id| format!("mcp-session-id: {id}\r\n"));
    let request = format!(
        "POST /mcp HTTP/1.1\r\nhost: {host}\r\nauthorization: Bearer {token}\r\ncontent-type: application/json\r\n\
         accept: application/json, text/event-stream\r\n{session}connection: close\r\n\
         content-length: {}\r\n\r\n{message}",
        message.len()
    );
    let mut stream = TcpStream::connect(host).await.expect("a connection");
    let sent = stream.write_all(request.as_bytes()).await;
    sent.expect("the server reads");
    let mut response = String::new();
    let received = stream.read_to_string(&mut response).await;
    received.expect("a response");
    response
}

/// A message that the server repairs requires the scopes of what it names, as a tidy one does.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn repaired_messages_need_their_scopes() {
    let admin = TokenGrant::new("admin").scopes(["notes:write"]);
    let builder = Server::builder("test", "1")
        .template(
            ResourceTemplate::new("n:{+name}").scope("notes:write"),
            |Input(named): Input<Named>| async move { format!("written {}", named.name) },
        )
        .complete_template("n:{+name}", "name", || async { vec!["written".to_owned()] })
        .bearer_tokens(["c2VjcmV0"])
        .bearer_tokens([BearerToken::new("YWRtaW4", admin)]);
    let url = serve(builder).await;
    let call = r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write"}}"#;
    let read = r#"{"jsonrpc":"2.0","id":2,"method":"resources/read","params":{"uri":"n:a\ud83d"}}"#;
    let complete = r#"{"jsonrpc":"2.0","id":2,"method":"completion/complete","params":{"ref":{"type":"ref/resource","uri":"n:{+name}"},"argument":{"name":"name","value":"\ud83d"}}}"#;
    let bodies = [
        format!("\u{feff}{call}"),
        read.to_owned(),
        complete.to_owned(),
    ];
    for (token, is_granted) in [("YWRtaW4", true), ("c2VjcmV0", false)] {
        let initialize = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}"#;
        let response = post(&url, token, None, initialize).await;
        let id = response
            .lines()
            .find_map(|line| line.strip_prefix("mcp-session-id: "));
        let initialized = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
        post(&url, token, id, initialized).await;
        for body in &bodies {
            let response = post(&url, token, id, body).await;
            let is_refused = response.starts_with("HTTP/1.1 403");
            let is_answered = response.contains("written");
            assert_eq!(
                (is_answered, is_refused),
                (is_granted, !is_granted),
                "{body}: {response}"
            );
        }
    }
}

/// Authenticator that grants no scope, and restricts the tool `write` between the check of a message and its call.
struct Restricting {
    server: OnceLock<Server>,
    /// True if the next message restricts the tool.
    is_due: AtomicBool,
}

impl Authenticate for Restricting {
    fn authenticate<'a>(&'a self, _: &'a mut http::request::Parts) -> AuthFuture<'a> {
        Box::pin(std::future::ready(Ok(Authenticated::Anonymous)))
    }

    fn authorize(&self, _: &http::request::Parts, scopes: &[String]) -> Result<(), AuthError> {
        if self.is_due.swap(false, Ordering::Relaxed) {
            let tool = Tool::new("write").scope("notes:write");
            let tools = self.server.get().expect("a server").tools();
            let inserted = tools.insert(tool, || async { "written" });
            inserted.expect("a tool");
        }
        if scopes.is_empty() {
            Ok(())
        } else {
            Err(AuthError::forbidden())
        }
    }
}

/// The scopes of what is called are checked, not only those of what the message named when it was received.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn tools_restricted_meanwhile_are_not_called() {
    for revision in mcp_exact::revisions() {
        let server = Server::builder("test", "1").tool("write", || async { "written" });
        let server = server.build().expect("a server");
        let restricting = Arc::new(Restricting {
            server: OnceLock::from(server.clone()),
            is_due: AtomicBool::new(false),
        });
        let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let options = HttpServerOptions {
            authenticate: Some(Arc::clone(&restricting) as _),
            ..HttpServerOptions::default()
        };
        tokio::spawn(listener.serve(server.http(options), std::future::pending()));
        let client = Client::connect(&format!("http://{address}/mcp")).revision(revision);
        let client = client.await.expect("a client");
        let written: String = client.call("write", &()).await.expect("no scope is needed");
        assert_eq!(written, "written");
        restricting.is_due.store(true, Ordering::Relaxed);
        let error = client.call_tool("write", &()).await.expect_err("no scope");
        assert!(error.to_string().contains("notes:write"), "{error}");
    }
}
