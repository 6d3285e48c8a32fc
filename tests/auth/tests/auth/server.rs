//! An `mcp-exact` server with a resource server, over Streamable HTTP and HTTP+SSE: scopes of tools, the access
//! information that handlers receive, and sessions of other principals.

use std::sync::atomic::Ordering;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use mcp_exact::auth::client::OAuth;
use mcp_exact::transport::http::client::{
    HttpClient as _, HttpEndpoint, HttpTransport, HyperClient,
};
use mcp_exact::{Client, ClientChange, ClientError, revisions};
use mcp_exact_auth::Challenge;
use mcp_exact_tests_auth::authority::RedirectAgent;
use mcp_exact_tests_auth::issuer::{Issuer, start_server, valid_claims};
use serde_json::{Value, json};

/// Returns the options of a client that signs in without a user.
fn oauth_options() -> OAuth {
    OAuth::new("test")
        .allow_other_ports()
        .user_agent(RedirectAgent::default())
}

/// In every revision, a client signs in after status 401, gets status 403 for a tool that requires a scope, and calls
/// the tool after a second sign-in with both scopes.
#[tokio::test]
async fn client_steps_up_for_a_tool() {
    let issuer = Issuer::start().await;
    // The oldest revision does not have Streamable HTTP.
    for revision in revisions().filter(|revision| revision.as_str() != OLDEST_REVISION) {
        let endpoint = start_server(&issuer).await;
        let client = Client::connect(&endpoint)
            .revision(revision)
            .oauth(oauth_options());
        let client = client.await.expect("authorized");
        let who = client
            .call_tool("who", &json!({}))
            .await
            .expect("called")
            .text();
        assert!(who.starts_with("Some(\"u\") read "), "{who}");
        assert!(
            !who.contains("authorization") && !who.contains("Bearer"),
            "{who}"
        );
        let written = client
            .call_tool("write", &json!({}))
            .await
            .expect("stepped up");
        assert_eq!(written.text(), "written");
        let who = client
            .call_tool("who", &json!({}))
            .await
            .expect("called")
            .text();
        assert!(who.starts_with("Some(\"u\") read write "), "{who}");
        client.close();
    }
}

/// A call over HTTP+SSE is refused without the scope of its tool, although 2024-11-05, the only revision of HTTP+SSE
/// clients, does not define authorization.
#[tokio::test]
async fn scopes_are_enforced_over_sse() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let sse = HttpEndpoint::new(&endpoint.replace("/mcp", "/sse")).expect("a URL");
    let resource = endpoint.clone();
    let token = issuer.token(&resource, "u", "read");
    let header = format!("Bearer {token}").parse().expect("a header");
    let sse = sse
        .transport(HttpTransport::Sse)
        .header(http::header::AUTHORIZATION, header);
    let mut all = revisions();
    let oldest = all.find(|revision| revision.as_str() == OLDEST_REVISION);
    let oldest = oldest.expect("it is compiled in");
    let client = Client::http(sse)
        .revision(oldest)
        .await
        .expect("authorized");
    client.call_tool("who", &json!({})).await.expect("called");
    let error = client
        .call_tool("write", &json!({}))
        .await
        .expect_err("no scope");
    assert!(
        matches!(error, ClientError::Unauthorized { status: 403, .. }),
        "{error:?}"
    );
}

/// Revision whose clients use HTTP+SSE.
const OLDEST_REVISION: &str = "2024-11-05";

/// Complete response to a request.
struct HttpReply {
    /// HTTP status.
    status: u16,
    headers: http::HeaderMap,
    body: String,
}

/// Sends an HTTP request without the HTTP client of this project; returns the complete response.
async fn send_request(
    endpoint: &str,
    method: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> HttpReply {
    let mut request = http::Request::builder().method(method).uri(endpoint);
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let request = request
        .header("content-type", "application/json")
        .header("accept", "application/json, text/event-stream")
        .body(Bytes::copy_from_slice(body.as_bytes()))
        .expect("a request");
    let client = HyperClient::default();
    let response = client.send(request).await.expect("answered");
    let (parts, body) = response.into_parts();
    let body = body.collect().await.expect("a body").to_bytes();
    HttpReply {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

/// `initialize` request of a client of 2025-03-26.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
/// `notifications/initialized` of a client.
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
/// Call of the tool `write`, which requires the scope `write`.
const WRITE_CALL: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{}}}"#;
/// Call of the tool `who`, which returns the principal.
const WHO_CALL: &str =
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"who","arguments":{}}}"#;

/// A request with a session id is refused if it has the token of another principal or no token.
#[tokio::test]
async fn sessions_belong_to_their_principal() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let bearer = |subject| format!("Bearer {}", issuer.token(&endpoint, subject, "read"));
    let (owner, refreshed, thief) = (bearer("owner"), bearer("owner"), bearer("thief"));
    let begun = send_request(&endpoint, "POST", &[("authorization", &owner)], INITIALIZE).await;
    assert_eq!(begun.status, 200);
    let id = begun.headers["mcp-session-id"].to_str().expect("ASCII");
    for (method, body) in [("POST", WHO_CALL), ("GET", ""), ("DELETE", "")] {
        let headers = [("authorization", &*thief), ("mcp-session-id", id)];
        assert_eq!(
            send_request(&endpoint, method, &headers, body).await.status,
            404,
            "{method}"
        );
        let headers = [("mcp-session-id", id)];
        assert_eq!(
            send_request(&endpoint, method, &headers, body).await.status,
            401,
            "{method}"
        );
    }
    let headers = [("authorization", &*refreshed), ("mcp-session-id", id)];
    let answer = send_request(&endpoint, "POST", &headers, INITIALIZED).await;
    assert_eq!(answer.status, 202);
    let answer = send_request(&endpoint, "POST", &headers, WHO_CALL).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("owner"), "{}", answer.body);
}

/// The scope of a tool is required for every call of a batch, however the members of the call are spelled.
#[tokio::test]
async fn every_call_needs_its_scope() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let owner = format!("Bearer {}", issuer.token(&endpoint, "owner", "read"));
    let begun = send_request(&endpoint, "POST", &[("authorization", &owner)], INITIALIZE).await;
    let id = begun.headers["mcp-session-id"].to_str().expect("ASCII");
    let headers = [("authorization", &*owner), ("mcp-session-id", id)];
    send_request(&endpoint, "POST", &headers, INITIALIZED).await;
    let answer = send_request(&endpoint, "POST", &headers, WHO_CALL).await;
    assert!(answer.body.contains("owner"), "{}", answer.body);
    for body in [
        WRITE_CALL.to_owned(),
        format!("[{WHO_CALL},{WRITE_CALL}]"),
        format!(" \n{WRITE_CALL}"),
        WRITE_CALL.replace("write", "wr\\u0069te"),
        WRITE_CALL.replace("\"method\"", "\"m\\u0065thod\""),
        WRITE_CALL.replace("tools/call", "tools\\/call"),
        WRITE_CALL.replace("\"name\"", "\"name\":\"who\",\"name\""),
        WRITE_CALL.replace("\"name\":\"write\"", "\"name\":\"write\",\"name\":\"who\""),
        WRITE_CALL.replace("\"method\"", "\"method\":\"ping\",\"method\""),
        WRITE_CALL.replace("\"params\"", "\"params\":{\"name\":\"who\"},\"params\""),
    ] {
        let answer = send_request(&endpoint, "POST", &headers, &body).await;
        assert!(!answer.body.contains("written"), "{body}: {}", answer.body);
    }
    let answer = send_request(&endpoint, "POST", &headers, WRITE_CALL).await;
    assert_eq!(answer.status, 403);
    let challenge = answer.headers["www-authenticate"].to_str().expect("ASCII");
    let challenge = Challenge::parse(challenge).remove(0);
    assert_eq!(challenge.param("error"), Some("insufficient_scope"));
    assert_eq!(challenge.param("scope"), Some("read write"));
}

/// A subscription ends when its token expires, and the client is notified (2026-07-28, `basic/patterns/subscriptions`).
/// A call in flight is still answered, because authorization applies to the HTTP request (`basic/authorization`, "Token
/// Requirements").
#[tokio::test]
async fn subscriptions_end_with_their_token() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let mut claims = valid_claims(&issuer.site.url, &endpoint, "u", "read");
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .expect("1970 is over");
    claims["exp"] = json!(now.as_secs() + 1);
    let token = issuer.signer.sign(&issuer.signer.header(), &claims);
    let bearer = format!("Bearer {token}");
    let send = async |method: &str, name: &str, params: Value| {
        let headers = [
            ("authorization", &*bearer),
            ("mcp-protocol-version", "2026-07-28"),
            ("mcp-method", method),
            ("mcp-name", name),
        ];
        let headers = &headers[..if name.is_empty() { 3 } else { 4 }];
        let mut params = params;
        params["_meta"] = json!({
            "io.modelcontextprotocol/protocolVersion": "2026-07-28",
            "io.modelcontextprotocol/clientInfo": {"name": "x", "version": "1"},
            "io.modelcontextprotocol/clientCapabilities": {},
            "progressToken": 1,
        });
        let body = json!({"jsonrpc": "2.0", "id": 7, "method": method, "params": params});
        send_request(&endpoint, "POST", headers, &body.to_string()).await
    };
    let (listened, called) = tokio::join!(
        send(
            "subscriptions/listen",
            "",
            json!({"notifications": {"toolsListChanged": true}})
        ),
        send(
            "tools/call",
            "late",
            json!({"name": "late", "arguments": {}})
        ),
    );
    assert_eq!(listened.headers["content-type"], "text/event-stream");
    let last = listened.body.trim_end().rsplit("data:").next();
    let last: Value = serde_json::from_str(last.unwrap_or_default()).expect("JSON");
    assert_eq!(last["id"], 7, "{}", listened.body);
    assert_eq!(last["result"]["resultType"], "complete");
    assert_eq!(called.headers["content-type"], "text/event-stream");
    assert!(called.body.contains("after the token"), "{}", called.body);
}

/// After a subscription has ended with its token, the client of this project starts a new subscription and reports that
/// changes may have been missed.
#[tokio::test]
async fn ended_subscriptions_are_restarted() {
    let issuer = Issuer::start().await;
    issuer.lifetime.store(1, Ordering::Relaxed);
    let endpoint = start_server(&issuer).await;
    let (announce, mut announced) = tokio::sync::mpsc::unbounded_channel();
    let newest = revisions().find(|revision| revision.as_str() == "2026-07-28");
    let client = Client::connect(&endpoint)
        .revision(newest.expect("it is compiled in"))
        .oauth(oauth_options())
        .on_change(move |change| drop(announce.send(change)))
        .await
        .expect("authorized");
    assert_eq!(announced.recv().await, Some(ClientChange::Tools));
    client.close();
}

/// The metadata of the resource can be read without a token at both well-known URLs, by programs and by pages of allowed
/// origins: "Servers MUST validate the `Origin` header on all incoming connections" (`basic/transports`, "Security Warning").
#[tokio::test]
async fn metadata_is_public() {
    let issuer = Issuer::start().await;
    let endpoint = start_server(&issuer).await;
    let origin = endpoint.strip_suffix("/mcp").expect("it ends so");
    for path in ["/mcp", ""] {
        let url = format!("{origin}/.well-known/oauth-protected-resource{path}");
        let foreign = [("origin", "https://browser.example")];
        let refused = send_request(&url, "GET", &foreign, "").await;
        assert_eq!(refused.status, 403);
        let headers = [("origin", "http://localhost:3000")];
        let answer = send_request(&url, "GET", &headers, "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(answer.headers["access-control-allow-origin"], headers[0].1);
        let metadata: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert_eq!(metadata["resource"], endpoint);
        assert_eq!(metadata["authorization_servers"], json!([issuer.site.url]));
        assert_eq!(metadata["scopes_supported"], json!(["read"]));
    }
}
