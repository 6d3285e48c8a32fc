//! Rules of `basic/authorization` that need an MCP server with other documents: where clients look for metadata, how they
//! register, how they compare issuers, and where they put their tokens.

use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Request;
use mcp_exact::transport::http::client::{HttpClient as _, HyperClient};
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{AgentFuture, OAuth, OAuthClient, Redirect, Url, UserAgent};
use mcp_exact_auth::server::ResourceServer;
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent};
use mcp_exact_tests_auth::site::{
    ReceivedRequest, Site, encode, json_response as respond_json, response,
};
use serde_json::{Value, json};

use crate::client::{deviations_with, error_reason, oauth_client, send_call};

/// Well-known path of the metadata of the endpoint `/mcp`.
const RESOURCE_PATH: &str = "/.well-known/oauth-protected-resource/mcp";
/// Well-known path of the metadata of the resources of an origin.
const ORIGIN_PATH: &str = "/.well-known/oauth-protected-resource";
/// Well-known path of the metadata of an issuer without a path.
const SERVER_PATH: &str = "/.well-known/oauth-authorization-server";
/// Well-known path of the metadata of an OpenID provider without a path.
const OPENID_PATH: &str = "/.well-known/openid-configuration";

/// MCP server that is its own authorization server, and accepts each token for one request. It issues no refresh tokens.
#[derive(Clone, Copy)]
struct Documents {
    /// Path of the metadata of the resource.
    resource: &'static str,
    /// True if the challenge contains the URL of the metadata of the resource.
    is_named: bool,
    /// Path of the issuer.
    issuer: &'static str,
    /// Path of the metadata of the issuer.
    server: &'static str,
    /// Scheme in the identifier of the resource.
    scheme: &'static str,
    /// Error of the registration endpoint.
    registration_error: Option<&'static str>,
}

impl Default for Documents {
    fn default() -> Self {
        Self {
            resource: RESOURCE_PATH,
            is_named: true,
            issuer: "",
            server: SERVER_PATH,
            scheme: "http",
            registration_error: None,
        }
    }
}

impl Documents {
    /// Starts the server.
    async fn start(self) -> Site {
        Site::start(move |origin| {
            let origin = origin.to_owned();
            let token = Mutex::new((0, false));
            move |request: &ReceivedRequest| {
                self.answer(request, &origin, &mut token.lock().expect("no panic"))
            }
        })
        .await
    }

    /// Returns the response to a request. `token` is the number of the latest token, and true if it is still accepted.
    fn answer(
        self,
        request: &ReceivedRequest,
        origin: &str,
        token: &mut (u32, bool),
    ) -> http::Response<http_body_util::Full<Bytes>> {
        let at = |path: &str| format!("{origin}{path}");
        match &*request.path {
            "/mcp" => {
                let expected = format!("Bearer token-{}", token.0);
                if std::mem::take(&mut token.1) && request.header("authorization") == expected {
                    return response(200, &[], "done");
                }
                let named = format!(r#"Bearer resource_metadata="{}""#, at(self.resource));
                let challenge = if self.is_named { &*named } else { "Bearer" };
                response(401, &[("www-authenticate", challenge)], "")
            }
            "/register" => match self.registration_error {
                Some(error) => {
                    let description = "localhost is not allowed here";
                    respond_json(
                        400,
                        &json!({"error": error, "error_description": description}),
                    )
                }
                None => respond_json(201, &json!({"client_id": "c"})),
            },
            "/authorize" => {
                let state = encode(&request.param("state").unwrap_or_default());
                let target = request.param("redirect_uri").unwrap_or_default();
                let location = format!("{target}?code=c&state={state}");
                response(302, &[("location", &location)], "")
            }
            "/token" => {
                *token = (token.0 + 1, true);
                let issued = format!("token-{}", token.0);
                respond_json(
                    200,
                    &json!({"access_token": issued, "token_type": "Bearer"}),
                )
            }
            path if path == self.resource => {
                let resource = at("/mcp").replacen("http", self.scheme, 1);
                let servers = [at(self.issuer)];
                respond_json(
                    200,
                    &json!({"resource": resource, "authorization_servers": servers}),
                )
            }
            path if path == self.server => respond_json(
                200,
                &json!({
                    "issuer": at(self.issuer),
                    "authorization_endpoint": at("/authorize"),
                    "token_endpoint": at("/token"),
                    "registration_endpoint": at("/register"),
                    "code_challenge_methods_supported": ["S256"],
                }),
            ),
            _ => response(404, &[], ""),
        }
    }
}

/// Creates a client for the endpoint of a server.
fn client_of(site: &Site, oauth: OAuth) -> (OAuthClient, String) {
    let endpoint = format!("{}/mcp", site.url);
    let oauth = oauth.user_agent(RedirectAgent::default());
    let client = oauth.client(&endpoint, Arc::new(HyperClient::default()));
    (client.expect("the URL is on loopback"), endpoint)
}

/// "MCP clients MUST support both discovery mechanisms and use the resource metadata URL from the parsed
/// `WWW-Authenticate` headers when present; otherwise, they MUST fall back to constructing and requesting the well-known
/// URIs in the order listed above"; "For issuer URLs with path components, clients MUST try endpoints in the following
/// priority order" (2026-07-28, `basic/authorization/authorization-server-discovery`).
#[tokio::test]
async fn well_known_urls_are_tried_in_order() {
    let named = Documents::default();
    let unnamed = Documents {
        is_named: false,
        ..named
    };
    let of_tenant = |server| Documents {
        issuer: "/tenant1",
        server,
        ..named
    };
    /// The three URLs of an issuer with a path, in order.
    const OF_TENANT: [&str; 3] = [
        "/.well-known/oauth-authorization-server/tenant1",
        "/.well-known/openid-configuration/tenant1",
        "/tenant1/.well-known/openid-configuration",
    ];
    for (documents, expected) in [
        (named, vec![RESOURCE_PATH, SERVER_PATH]),
        (
            Documents {
                resource: "/metadata",
                ..named
            },
            vec!["/metadata", SERVER_PATH],
        ),
        (unnamed, vec![RESOURCE_PATH, SERVER_PATH]),
        (
            Documents {
                resource: ORIGIN_PATH,
                ..unnamed
            },
            vec![RESOURCE_PATH, ORIGIN_PATH, SERVER_PATH],
        ),
        (
            Documents {
                server: OPENID_PATH,
                ..named
            },
            vec![RESOURCE_PATH, SERVER_PATH, OPENID_PATH],
        ),
        (
            of_tenant(OF_TENANT[0]),
            [&[RESOURCE_PATH], &OF_TENANT[..1]].concat(),
        ),
        (
            of_tenant(OF_TENANT[1]),
            [&[RESOURCE_PATH], &OF_TENANT[..2]].concat(),
        ),
        (
            of_tenant(OF_TENANT[2]),
            [&[RESOURCE_PATH], &OF_TENANT[..]].concat(),
        ),
    ] {
        let site = documents.start().await;
        let (client, endpoint) = client_of(&site, OAuth::new("test"));
        let called = send_call(&client, &endpoint).await;
        assert_eq!(called.expect("authorized"), 200, "{expected:?}");
        let requests = site.received_requests();
        let asked = requests.iter().map(|request| &*request.path);
        let asked: Vec<_> = asked
            .filter(|path| !["/mcp", "/register", "/authorize", "/token"].contains(path))
            .collect();
        assert_eq!(asked, expected);
    }
}

/// "MCP clients SHOULD include the header `MCP-Protocol-Version: <protocol-version>` during Server Metadata Discovery"
/// (2025-03-26, `basic/authorization`).
#[tokio::test]
async fn metadata_requests_name_the_revision() {
    let site = Documents::default().start().await;
    let (client, endpoint) = client_of(&site, OAuth::new("test").revision("2025-03-26"));
    let called = send_call(&client, &endpoint).await;
    assert_eq!(called.expect("authorized"), 200);
    for path in [RESOURCE_PATH, SERVER_PATH] {
        let requests = site.received_requests();
        let request = requests.iter().find(|request| request.path == path);
        let request = request.expect("it was asked");
        assert_eq!(request.header("mcp-protocol-version"), "2025-03-26");
    }
}

/// "MCP clients MUST specify an appropriate `application_type`"; "MCP clients MUST have redirect URIs registered with the
/// authorization server"; clients that want refresh tokens "SHOULD include `refresh_token` in their `grant_types`"
/// (2026-07-28, `basic/authorization`).
#[tokio::test]
async fn registrations_describe_the_client() {
    let site = Documents::default().start().await;
    let (client, endpoint) = client_of(&site, OAuth::new("A client"));
    let called = send_call(&client, &endpoint).await;
    assert_eq!(called.expect("authorized"), 200);
    let requests = site.received_requests();
    let sent = |path: &str| {
        let mut sent = requests.iter().filter(move |request| request.path == path);
        sent.next().expect("it was sent")
    };
    let body: Value = serde_json::from_str(&sent("/register").body).expect("JSON");
    let redirect_uri = sent("/authorize").param("redirect_uri");
    assert_eq!(body["redirect_uris"], json!([redirect_uri]));
    assert_eq!(sent("/token").param("redirect_uri"), redirect_uri);
    assert_eq!(body["application_type"], "native");
    assert_eq!(body["client_name"], "A client");
    assert_eq!(
        body["grant_types"],
        json!(["authorization_code", "refresh_token"])
    );
}

/// "MCP clients MUST be prepared to handle registration failures due to redirect URI constraints […]. When a registration
/// request is rejected, clients SHOULD surface a meaningful error" (2026-07-28, `basic/authorization/client-registration`).
#[tokio::test]
async fn refused_registrations_are_explained() {
    let documents = Documents {
        registration_error: Some("invalid_redirect_uri"),
        ..Documents::default()
    };
    let site = documents.start().await;
    let (client, endpoint) = client_of(&site, OAuth::new("test"));
    for _ in 0..2 {
        let error = send_call(&client, &endpoint).await.expect_err("refused");
        let words = error_reason(&error).to_string();
        let reason = "invalid_redirect_uri (localhost is not allowed here)";
        assert!(words.contains(reason), "{words}");
        assert!(words.contains(&format!("{}/register", site.url)), "{words}");
    }
    assert_eq!((site.count("/register"), site.count("/authorize")), (1, 0));
}

/// Clients "MUST NOT assume refresh tokens will be issued" (2026-07-28, `basic/authorization`, "Refresh Tokens"): without
/// one, the user signs in again.
#[tokio::test]
async fn clients_without_refresh_token_sign_in() {
    let site = Documents::default().start().await;
    let (client, endpoint) = client_of(&site, OAuth::new("test"));
    for sign_ins in 1..=4 {
        let called = send_call(&client, &endpoint).await;
        assert_eq!(called.expect("authorized"), 200);
        assert_eq!(site.count("/authorize"), sign_ins);
    }
    let requests = site.received_requests();
    let grants = requests
        .iter()
        .filter_map(|request| request.param("grant_type"));
    assert_eq!(grants.collect::<Vec<_>>(), ["authorization_code"; 4]);
}

/// "Implementations SHOULD accept uppercase scheme and host components" (2025-06-18, `basic/authorization`, "Canonical
/// Server URI"), in the metadata of a resource.
#[tokio::test]
async fn uppercase_resources_are_accepted() {
    let documents = Documents {
        scheme: "HTTP",
        ..Documents::default()
    };
    let site = documents.start().await;
    let (client, endpoint) = client_of(&site, OAuth::new("test"));
    let called = send_call(&client, &endpoint).await;
    assert_eq!(called.expect("authorized"), 200);
}

/// "MCP client MUST use the Authorization request header field"; "authorization MUST be included in every HTTP request
/// from client to server"; "Access tokens MUST NOT be included in the URI query string" (`basic/authorization`, "Token
/// Requirements").
#[tokio::test]
async fn tokens_are_in_the_header_of_every_request() {
    let authority = Authority::start(Deviations::default()).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth_client(&authority, oauth);
    let called = send_call(&client, &authority.endpoint()).await;
    assert_eq!(called.expect("authorized"), 200);
    let before = authority.resource.count("/mcp");
    for method in ["POST", "GET", "DELETE"] {
        let mut request = Request::new(Bytes::new());
        *request.method_mut() = method.parse().expect("a method");
        *request.uri_mut() = authority.endpoint().parse().expect("a URL");
        let response = client.send(request).await.expect("sent");
        assert_eq!(response.status(), 200, "{method}");
    }
    let received = authority.resource.received_requests();
    let to_endpoint = received.iter().filter(|request| request.path == "/mcp");
    let later: Vec<_> = to_endpoint.skip(before).collect();
    assert_eq!(later.len(), 3);
    for request in later {
        assert_eq!(request.header("authorization"), "Bearer access-2");
    }
    for request in received.iter().chain(&authority.server.received_requests()) {
        assert!(!request.query.contains("access-2"), "{request:?}");
    }
}

/// User agent that replaces the query of the redirect.
#[derive(Clone)]
struct ReplacedRedirect(Arc<dyn Fn(&str) -> String + Send + Sync>);

impl UserAgent for ReplacedRedirect {
    fn begin<'a>(&'a self, _: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>> {
        let redirect: Box<dyn Redirect> = Box::new(self.clone());
        Box::pin(async move { Ok(redirect) })
    }
}

impl Redirect for ReplacedRedirect {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:8765/callback"
    }

    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret> {
        let redirected = Box::new(RedirectAgent::default()).authorize(url);
        Box::pin(async move { Ok(Secret::new((self.0)(redirected.await?.expose()))) })
    }
}

/// "Clients MUST NOT apply scheme or host case folding, default-port elision, trailing-slash, or percent-encoding
/// normalization before comparison"; "on mismatch the client MUST NOT act on or display `error`, `error_description`, or
/// `error_uri`" (2026-07-28, `basic/authorization`, "Authorization Response Validation").
#[tokio::test]
async fn issuers_are_compared_as_text() {
    let spellings: [fn(&str) -> String; 5] = [
        |issuer| issuer.replace("http:", "HTTP:"),
        |issuer| format!("{issuer}/"),
        |issuer| issuer.replace("127.0.0.1", "127.0.0.%31"),
        |issuer| issuer.replace("127.0.0.1", "127.1"),
        |issuer| issuer.replace("127.0.0.1:", "127.0.0.1:0"),
    ];
    for (spelling, is_error) in spellings.iter().flat_map(|s| [(s, false), (s, true)]) {
        let deviations = deviations_with(|k| k.redirect_query = |query, _| query);
        let authority = Authority::start(deviations).await;
        let iss = encode(&spelling(&authority.server.url));
        let agent = ReplacedRedirect(Arc::new(move |query| {
            let told =
                "error=leaked&error_description=leaked&error_uri=https%3A%2F%2Fleaked.example";
            match query.split_once("&state=") {
                Some((_, state)) if is_error => format!("{told}&state={state}&iss={iss}"),
                _ => format!("{query}&iss={iss}"),
            }
        }));
        let client = oauth_client(&authority, OAuth::new("test").user_agent(agent));
        let error = send_call(&client, &authority.endpoint()).await;
        let error = error.expect_err("another issuer");
        let words = format!("{error} {:?}", error_reason(&error));
        assert!(words.contains("`iss` names another issuer"), "{words}");
        assert!(!words.contains("leaked"), "{words}");
        assert_eq!(authority.server.count("/token"), 0);
    }
}

/// "Implementations MUST follow OAuth 2.1 Section 1.5" (`basic/authorization`, "Communication Security"): the address of a
/// resource, to which tokens are sent, is https, or on loopback.
#[test]
fn resources_need_https() {
    for (resource, is_valid) in [
        ("https://mcp.example/mcp", true),
        ("http://localhost:3000/mcp", true),
        ("http://[::1]:3000/mcp", true),
        ("http://mcp.example/mcp", false),
        ("http://localhost.mcp.example/mcp", false),
        ("https://user@mcp.example/mcp", false),
        ("https://mcp.example/mcp#x", false),
        ("mcp.example", false),
    ] {
        let server = ResourceServer::jwks("https://as.example", resource);
        assert_eq!(server.is_ok(), is_valid, "{resource}");
    }
}
