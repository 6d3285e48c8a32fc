//! A server of `mcp-exact` behind a resource server, over Streamable HTTP and HTTP+SSE: scopes of tools, what handlers see, and
//! sessions of other principals.

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use bytes::Bytes;
use http_body_util::BodyExt as _;
use mcp_exact::auth::client::OAuth;
use mcp_exact::auth::server::{Access, ResourceServer};
use mcp_exact::transport::http::client::{
    HttpClient as _, HttpEndpoint, HttpTransport, HyperClient,
};
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Client, ClientError, Headers, Server, Tool, revisions};
use mcp_exact_auth::Challenge;
use mcp_exact_tests_auth::authority::Redirected;
use mcp_exact_tests_auth::site::{Site, encode, json as respond_json, reply};
use mcp_exact_tests_auth::tokens::Signer;
use serde_json::{Value, json};

/// An authorization server that signs its tokens, and grants every scope that is asked for.
struct Issuer {
    site: Site,
    signer: Arc<Signer>,
}

impl Issuer {
    async fn start() -> Self {
        let signer = Arc::new(Signer::new("k"));
        let signs = Arc::clone(&signer);
        let asked = std::sync::Mutex::new(String::new());
        let site = Site::start(move |origin| {
            let origin = origin.to_owned();
            move |seen| match &*seen.path {
                "/.well-known/oauth-authorization-server" => respond_json(
                    200,
                    &json!({
                        "issuer": origin,
                        "jwks_uri": format!("{origin}/keys"),
                        "authorization_endpoint": format!("{origin}/authorize"),
                        "token_endpoint": format!("{origin}/token"),
                        "registration_endpoint": format!("{origin}/register"),
                        "code_challenge_methods_supported": ["S256"],
                    }),
                ),
                "/keys" => respond_json(200, &signs.key_set()),
                "/register" => respond_json(201, &json!({"client_id": "c"})),
                "/authorize" => {
                    *asked.lock().expect("no panic") = seen.param("scope").unwrap_or_default();
                    let state = encode(&seen.param("state").unwrap_or_default());
                    let target = seen.param("redirect_uri").unwrap_or_default();
                    let location = format!("{target}?code=c&state={state}");
                    reply(302, &[("location", &location)], "")
                }
                _ => {
                    let resource = seen.param("resource").unwrap_or_default();
                    let scope = asked.lock().expect("no panic").clone();
                    let claims = claims(&origin, &resource, "u", &scope);
                    let token = signs.sign(&signs.header(), &claims);
                    respond_json(200, &json!({"access_token": token, "token_type": "Bearer"}))
                }
            }
        })
        .await;
        Self { site, signer }
    }

    fn token(&self, endpoint: &str, subject: &str, scope: &str) -> String {
        let claims = claims(&self.site.url, endpoint, subject, scope);
        self.signer.sign(&self.signer.header(), &claims)
    }
}

fn claims(issuer: &str, audience: &str, subject: &str, scope: &str) -> Value {
    let now = SystemTime::now().duration_since(UNIX_EPOCH);
    let now = now.expect("after 1970").as_secs();
    json!({
        "iss": issuer,
        "aud": audience,
        "sub": subject,
        "client_id": "c",
        "scope": scope,
        "exp": now + 600,
    })
}

/// Starts a protected server; returns its endpoint.
async fn start(issuer: &Issuer) -> String {
    let server = Server::builder("protected", "1.0.0")
        .tool(
            "who",
            |access: Access, Headers(headers): Headers| async move {
                let scopes = access.scopes().to_string();
                format!("{:?} {scopes} {headers:?}", access.subject())
            },
        )
        .tool(Tool::new("write").scope("write"), || async {
            "written".to_owned()
        })
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let endpoint = format!("http://{address}/mcp");
    let auth = ResourceServer::jwks(&issuer.site.url, &endpoint).expect("a resource");
    let options = HttpServerOptions {
        path: Some("/mcp".to_owned()),
        authenticate: Some(Arc::new(auth.scopes(["read"]))),
        ..HttpServerOptions::default()
    };
    let service = server.http(options);
    tokio::spawn(async move { listener.serve(service, std::future::pending()).await });
    endpoint
}

fn oauth() -> OAuth {
    OAuth::new("test").user_agent(Redirected::default())
}

/// The whole way, for every revision: 401, sign-in, 403 of a tool with a scope, another sign-in for both scopes.
#[tokio::test]
async fn clients_step_up_for_a_tool() {
    let issuer = Issuer::start().await;
    // Streamable HTTP is younger than the oldest revision.
    for revision in revisions().filter(|revision| revision.as_str() != OLDEST) {
        let endpoint = start(&issuer).await;
        let client = Client::connect(&endpoint).revision(revision).oauth(oauth());
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

/// The same over HTTP+SSE, which only clients of 2024-11-05 speak; authorization is younger, and nothing keeps it out.
#[tokio::test]
async fn scopes_count_over_sse() {
    let issuer = Issuer::start().await;
    let endpoint = start(&issuer).await;
    let sse = HttpEndpoint::new(&endpoint.replace("/mcp", "/sse")).expect("a URL");
    let resource = endpoint.clone();
    let token = issuer.token(&resource, "u", "read");
    let header = format!("Bearer {token}").parse().expect("a header");
    let sse = sse
        .transport(HttpTransport::Sse)
        .header(http::header::AUTHORIZATION, header);
    let mut all = revisions();
    let oldest = all.find(|revision| revision.as_str() == OLDEST);
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
    assert!(!matches!(error, ClientError::Tool(_)), "{error}");
}

const OLDEST: &str = "2024-11-05";

struct Reply {
    status: u16,
    headers: http::HeaderMap,
    body: String,
}

async fn send(endpoint: &str, method: &str, headers: &[(&str, &str)], body: &str) -> Reply {
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
    Reply {
        status: parts.status.as_u16(),
        headers: parts.headers,
        body: String::from_utf8_lossy(&body).into_owned(),
    }
}

const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-03-26","capabilities":{},"clientInfo":{"name":"x","version":"1"}}}"#;
const INITIALIZED: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const WRITE: &str =
    r#"{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"write","arguments":{}}}"#;
const WHO: &str =
    r#"{"jsonrpc":"2.0","id":3,"method":"tools/call","params":{"name":"who","arguments":{}}}"#;

/// The id of a session is of no use to another principal, nor to the same one without its token.
#[tokio::test]
async fn sessions_belong_to_their_principal() {
    let issuer = Issuer::start().await;
    let endpoint = start(&issuer).await;
    let bearer = |subject| format!("Bearer {}", issuer.token(&endpoint, subject, "read"));
    let (owner, refreshed, thief) = (bearer("owner"), bearer("owner"), bearer("thief"));
    let begun = send(&endpoint, "POST", &[("authorization", &owner)], INITIALIZE).await;
    assert_eq!(begun.status, 200);
    let id = begun.headers["mcp-session-id"].to_str().expect("ASCII");
    for (method, body) in [("POST", WHO), ("GET", ""), ("DELETE", "")] {
        let headers = [("authorization", &*thief), ("mcp-session-id", id)];
        assert_eq!(
            send(&endpoint, method, &headers, body).await.status,
            404,
            "{method}"
        );
        let headers = [("mcp-session-id", id)];
        assert_eq!(
            send(&endpoint, method, &headers, body).await.status,
            401,
            "{method}"
        );
    }
    let headers = [("authorization", &*refreshed), ("mcp-session-id", id)];
    let answer = send(&endpoint, "POST", &headers, INITIALIZED).await;
    assert_eq!(answer.status, 202);
    let answer = send(&endpoint, "POST", &headers, WHO).await;
    assert_eq!(answer.status, 200);
    assert!(answer.body.contains("owner"), "{}", answer.body);
}

/// A call of a batch does not hide behind the others, nor behind another spelling of its members.
#[tokio::test]
async fn no_spelling_hides_a_scope() {
    let issuer = Issuer::start().await;
    let endpoint = start(&issuer).await;
    let owner = format!("Bearer {}", issuer.token(&endpoint, "owner", "read"));
    let begun = send(&endpoint, "POST", &[("authorization", &owner)], INITIALIZE).await;
    let id = begun.headers["mcp-session-id"].to_str().expect("ASCII");
    let headers = [("authorization", &*owner), ("mcp-session-id", id)];
    send(&endpoint, "POST", &headers, INITIALIZED).await;
    let answer = send(&endpoint, "POST", &headers, WHO).await;
    assert!(answer.body.contains("owner"), "{}", answer.body);
    for body in [
        WRITE.to_owned(),
        format!("[{WHO},{WRITE}]"),
        format!(" \n{WRITE}"),
        WRITE.replace("write", "wr\\u0069te"),
        WRITE.replace("\"method\"", "\"m\\u0065thod\""),
        WRITE.replace("tools/call", "tools\\/call"),
        WRITE.replace("\"name\"", "\"name\":\"who\",\"name\""),
        WRITE.replace("\"name\":\"write\"", "\"name\":\"write\",\"name\":\"who\""),
        WRITE.replace("\"method\"", "\"method\":\"ping\",\"method\""),
        WRITE.replace("\"params\"", "\"params\":{\"name\":\"who\"},\"params\""),
    ] {
        let answer = send(&endpoint, "POST", &headers, &body).await;
        assert!(!answer.body.contains("written"), "{body}: {}", answer.body);
    }
    let answer = send(&endpoint, "POST", &headers, WRITE).await;
    assert_eq!(answer.status, 403);
    let challenge = answer.headers["www-authenticate"].to_str().expect("ASCII");
    let challenge = Challenge::parse(challenge).remove(0);
    assert_eq!(challenge.param("error"), Some("insufficient_scope"));
    assert_eq!(challenge.param("scope"), Some("read write"));
}

/// The metadata is for everybody, at both of its places.
#[tokio::test]
async fn metadata_is_public() {
    let issuer = Issuer::start().await;
    let endpoint = start(&issuer).await;
    let origin = endpoint.strip_suffix("/mcp").expect("it ends so");
    for path in ["/mcp", ""] {
        let url = format!("{origin}/.well-known/oauth-protected-resource{path}");
        let headers = [("origin", "https://browser.example")];
        let answer = send(&url, "GET", &headers, "").await;
        assert_eq!(answer.status, 200);
        assert_eq!(answer.headers["content-type"], "application/json");
        assert_eq!(answer.headers["access-control-allow-origin"], "*");
        let metadata: Value = serde_json::from_str(&answer.body).expect("JSON");
        assert_eq!(metadata["resource"], endpoint);
        assert_eq!(metadata["authorization_servers"], json!([issuer.site.url]));
        assert_eq!(metadata["scopes_supported"], json!(["read"]));
    }
}
