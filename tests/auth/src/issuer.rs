//! An authorization server that signs its tokens, and an `mcp-exact` server that trusts it.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_exact::auth::server::{Access, ResourceServer};
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Cx, Headers, Server, Tool};
use serde_json::{Value, json};

use crate::site::{Site, encode, json_response as respond_json, response};
use crate::tokens::Signer;

/// Authorization server that signs its tokens and grants every requested scope. Users are signed in already: the cookie
/// `user` contains the user name; without the cookie, the user name is `u`.
pub struct Issuer {
    /// HTTP server of the authorization server.
    pub site: Site,
    /// Key with which the authorization server signs its tokens.
    pub signer: Arc<Signer>,
    /// Lifetime of the tokens that the token endpoint issues, in seconds; 600 by default.
    pub lifetime: Arc<AtomicU64>,
    /// True if the metadata lists the methods of PKCE; true by default.
    pub lists_pkce: Arc<AtomicBool>,
}

impl Issuer {
    /// Starts the authorization server.
    ///
    /// # Panics
    /// Panics if no port can be opened.
    pub async fn start() -> Self {
        let signer = Arc::new(Signer::new("k"));
        let signs = Arc::clone(&signer);
        let asked = Mutex::new(String::new());
        let lifetime = Arc::new(AtomicU64::new(600));
        let lasts = Arc::clone(&lifetime);
        let lists_pkce = Arc::new(AtomicBool::new(true));
        let lists = Arc::clone(&lists_pkce);
        let site = Site::start(move |origin| {
            let origin = origin.to_owned();
            move |request| match &*request.path {
                "/.well-known/oauth-authorization-server" => respond_json(
                    200,
                    &json!({
                        "issuer": origin,
                        "jwks_uri": format!("{origin}/keys"),
                        "authorization_endpoint": format!("{origin}/authorize"),
                        "token_endpoint": format!("{origin}/token"),
                        "registration_endpoint": format!("{origin}/register"),
                        "code_challenge_methods_supported":
                            lists.load(Ordering::Relaxed).then_some(["S256"]),
                    }),
                ),
                "/keys" => respond_json(200, &signs.key_set()),
                "/register" => respond_json(201, &json!({"client_id": "c"})),
                "/authorize" => {
                    *asked.lock().expect("no panic") = request.param("scope").unwrap_or_default();
                    let state = encode(&request.param("state").unwrap_or_default());
                    let target = request.param("redirect_uri").unwrap_or_default();
                    let mut cookies = request.header("cookie").split("; ");
                    let user = cookies.find_map(|cookie| cookie.strip_prefix("user="));
                    let code = user.unwrap_or("u");
                    let location = format!("{target}?code={code}&state={state}");
                    response(302, &[("location", &location)], "")
                }
                _ => {
                    let resource = request.param("resource").unwrap_or_default();
                    // A client that acts for itself asks here for its scopes.
                    let scope = request.param("scope");
                    let scope = scope.unwrap_or_else(|| asked.lock().expect("no panic").clone());
                    let user = request.param("code").unwrap_or_default();
                    let mut claims = valid_claims(&origin, &resource, &user, &scope);
                    claims["exp"] = json!(unix_time() + lasts.load(Ordering::Relaxed));
                    let token = signs.sign(&signs.header(), &claims);
                    respond_json(200, &json!({"access_token": token, "token_type": "Bearer"}))
                }
            }
        })
        .await;
        Self {
            site,
            signer,
            lifetime,
            lists_pkce,
        }
    }

    /// Returns a signed token for the resource `endpoint`.
    pub fn token(&self, endpoint: &str, subject: &str, scope: &str) -> String {
        let claims = valid_claims(&self.site.url, endpoint, subject, scope);
        self.signer.sign(&self.signer.header(), &claims)
    }
}

/// Returns the claims of a token that is valid for ten minutes.
///
/// # Panics
/// Panics if the clock is set to a time before 1970.
pub fn valid_claims(issuer: &str, audience: &str, subject: &str, scope: &str) -> Value {
    json!({
        "iss": issuer,
        "aud": audience,
        "sub": subject,
        "client_id": "c",
        "scope": scope,
        "exp": unix_time() + 600,
    })
}

/// Returns the current time in seconds since the Unix epoch.
fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

/// Starts an `mcp-exact` server that trusts an issuer and requires the scope `read`; returns the URL of the server's
/// endpoint.
///
/// # Panics
/// Panics if no port can be opened.
pub async fn start_server(issuer: &Issuer) -> String {
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
        .tool("late", |access: Access, cx: Cx| async move {
            // The response begins with it, however little time is left.
            let _ = cx.progress(1, 2);
            let left = access.expires().duration_since(SystemTime::now());
            let longer = left.unwrap_or_default() + Duration::from_millis(100);
            tokio::time::sleep(longer).await;
            "after the token".to_owned()
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
        stream_after: Duration::from_millis(50),
        ..HttpServerOptions::default()
    };
    let service = server.http(options);
    tokio::spawn(async move { listener.serve(service, std::future::pending()).await });
    endpoint
}
