//! Authorization server that stands in for that of the gateway's clients and those of servers: code grant with rotating refresh
//! tokens, and token exchange. Users are signed in by the cookie `user` of their browser.
//!
//! Each test program uses a part of it.
#![allow(dead_code)]

use std::collections::{HashMap, HashSet};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_exact_tests_auth::issuer::valid_claims;
use mcp_exact_tests_auth::site::{
    ReceivedRequest, Site, SiteResponse, encode, json_response, response,
};
use mcp_exact_tests_auth::tokens::Signer;
use serde_json::{Value, json};

/// Grant type of token exchanges.
const EXCHANGE: &str = "urn:ietf:params:oauth:grant-type:token-exchange";

/// What an authorization server does besides its duty; each is off at the beginning.
#[derive(Default)]
pub struct Behaviour {
    /// True if token exchange is offered.
    pub exchanges: AtomicBool,
    /// True if the token of the caller itself is returned by an exchange.
    pub passes_through: AtomicBool,
    /// Audience of exchanged tokens, whatever resource was requested.
    pub audience: Mutex<Option<Value>>,
    /// Error of the token endpoint for all requests.
    pub refusal: Mutex<Option<&'static str>>,
    /// True if the metadata names a revocation endpoint (RFC 7009).
    pub revokes: AtomicBool,
    /// True if the metadata, the token endpoint and the revocation endpoint answer with status 503.
    pub is_down: AtomicBool,
    /// Lifetime of tokens in seconds; 0 for ten minutes.
    pub lifetime: AtomicU64,
}

/// Codes and refresh tokens, by user, resource and client.
#[derive(Default)]
struct State {
    number: u64,
    codes: HashMap<String, Value>,
    refresh_tokens: HashMap<String, Value>,
    used: HashSet<String>,
    /// Redirect URIs of the registered client.
    redirect_uris: HashSet<String>,
}

/// Authorization server.
pub struct Authority {
    pub site: Site,
    pub signer: Arc<Signer>,
    pub behaviour: Arc<Behaviour>,
    state: Arc<Mutex<State>>,
}

/// Returns the claims of a token without a check of its signature.
pub fn claims(token: &str) -> Value {
    let claims = token.split('.').nth(1).unwrap_or_default();
    let bytes = URL_SAFE_NO_PAD.decode(claims).expect("base64url");
    serde_json::from_slice(&bytes).expect("JSON")
}

fn lock(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().expect("no panic")
}

impl State {
    fn next(&mut self, kind: &str) -> String {
        self.number += 1;
        format!("{kind}-{}", self.number)
    }
}

/// Answers a request for a token.
fn token(
    request: &ReceivedRequest,
    origin: &str,
    signer: &Signer,
    (behaviour, state): (&Behaviour, &Mutex<State>),
) -> SiteResponse {
    let refused = |error: &str| json_response(400, &json!({"error": error}));
    if behaviour.is_down.load(Ordering::Relaxed) {
        return json_response(503, &json!({}));
    }
    if let Some(error) = *behaviour.refusal.lock().expect("no panic") {
        return refused(error);
    }
    let parameter = |name: &str| request.param(name).unwrap_or_default();
    let issue =
        |user: &str, client: &str, resource: &str, audience: Option<Value>, from: &Value| {
            let mut claims = valid_claims(origin, resource, user, "use");
            let lifetime = match behaviour.lifetime.load(Ordering::Relaxed) {
                0 => 600,
                lifetime => lifetime,
            };
            if let Some(audience) = audience {
                claims["aud"] = audience;
            }
            // Tokens differ, as those of others do.
            claims["jti"] = json!(lock(state).next("token"));
            claims["client_id"] = json!(client);
            // Scopes of the token that was exchanged.
            claims["from"] = from.clone();
            (signer.sign(&signer.header(), &claims), lifetime)
        };
    match &*parameter("grant_type") {
        EXCHANGE => {
            let subject = parameter("subject_token");
            if request.header("authorization").is_empty() {
                return refused("invalid_client");
            }
            if claims(&subject)["iss"] != json!(origin) {
                return refused("invalid_request");
            }
            let user = claims(&subject)["sub"]
                .as_str()
                .unwrap_or_default()
                .to_owned();
            let (issued, lifetime) = {
                let audience = behaviour.audience.lock().expect("no panic").clone();
                let from = &claims(&subject)["scope"];
                issue(&user, "gateway", &parameter("resource"), audience, from)
            };
            let issued = if behaviour.passes_through.load(Ordering::Relaxed) {
                subject
            } else {
                issued
            };
            json_response(
                200,
                &json!({
                    "access_token": issued, "token_type": "Bearer", "expires_in": lifetime,
                    "issued_token_type": "urn:ietf:params:oauth:token-type:access_token",
                }),
            )
        }
        kind => {
            let grant = {
                let mut state = lock(state);
                let code = match kind {
                    "authorization_code" => state.codes.remove(&parameter("code")),
                    _ => state.refresh_tokens.remove(&parameter("refresh_token")),
                };
                let presented = parameter("code") + &parameter("refresh_token");
                if !state.used.insert(presented) {
                    // Somebody has used it twice: nobody has the grant any more (RFC 9700, section 4.14.2).
                    state.refresh_tokens.clear();
                }
                code
            };
            let Some(grant) = grant else {
                return refused("invalid_grant");
            };
            let text = |name: &str| grant[name].as_str().unwrap_or_default();
            let resource = match &*parameter("resource") {
                "" => text("resource").to_owned(),
                resource => resource.to_owned(),
            };
            let (issued, lifetime) =
                issue(text("user"), text("client"), &resource, None, &Value::Null);
            let mut state = lock(state);
            let refresh = state.next("refresh");
            let kept =
                json!({"user": text("user"), "client": text("client"), "resource": resource});
            state.refresh_tokens.insert(refresh.clone(), kept);
            json_response(
                200,
                &json!({
                    "access_token": issued, "token_type": "Bearer", "expires_in": lifetime,
                    "refresh_token": refresh,
                }),
            )
        }
    }
}

/// Answers a request that revokes a token.
fn revoke(request: &ReceivedRequest, behaviour: &Behaviour, state: &Mutex<State>) -> SiteResponse {
    if behaviour.is_down.load(Ordering::Relaxed) {
        return json_response(503, &json!({}));
    }
    let parameter = |name: &str| request.param(name).unwrap_or_default();
    match &*parameter("token_type_hint") {
        "refresh_token" => {
            lock(state).refresh_tokens.remove(&parameter("token"));
            response(200, &[], "")
        }
        // Access tokens end by themselves.
        _ => json_response(400, &json!({"error": "unsupported_token_type"})),
    }
}

impl Authority {
    pub async fn start() -> Self {
        let signer = Arc::new(Signer::new("k"));
        let behaviour = Arc::new(Behaviour::default());
        let state = Arc::new(Mutex::new(State::default()));
        let (signs, behaves, knows) = (
            Arc::clone(&signer),
            Arc::clone(&behaviour),
            Arc::clone(&state),
        );
        let site = Site::start(move |origin| {
            let origin = origin.to_owned();
            move |request| match &*request.path {
                "/.well-known/oauth-authorization-server"
                    if behaves.is_down.load(Ordering::Relaxed) =>
                {
                    json_response(503, &json!({}))
                }
                "/.well-known/oauth-authorization-server" => {
                    let mut grants = vec!["authorization_code", "refresh_token"];
                    grants.extend(
                        behaves
                            .exchanges
                            .load(Ordering::Relaxed)
                            .then_some(EXCHANGE),
                    );
                    let revokes = behaves.revokes.load(Ordering::Relaxed);
                    json_response(
                        200,
                        &json!({
                            "revocation_endpoint": revokes.then(|| format!("{origin}/revoke")),
                            "issuer": origin,
                            "jwks_uri": format!("{origin}/keys"),
                            "authorization_endpoint": format!("{origin}/authorize"),
                            "token_endpoint": format!("{origin}/token"),
                            "registration_endpoint": format!("{origin}/register"),
                            "code_challenge_methods_supported": ["S256"],
                            "grant_types_supported": grants,
                        }),
                    )
                }
                "/keys" => json_response(200, &signs.key_set()),
                "/revoke" => revoke(request, &behaves, &knows),
                "/register" => {
                    let body: Value = serde_json::from_str(&request.body).expect("JSON");
                    let uris = body["redirect_uris"].as_array().expect("URIs").iter();
                    let uris = uris.filter_map(|uri| Some(uri.as_str()?.to_owned()));
                    lock(&knows).redirect_uris.extend(uris);
                    json_response(201, &json!({"client_id": "registered"}))
                }
                "/authorize" => {
                    let mut cookies = request.header("cookie").split("; ");
                    let user = cookies.find_map(|cookie| cookie.strip_prefix("user="));
                    let parameter = |name: &str| request.param(name).unwrap_or_default();
                    let mut state = lock(&knows);
                    let is_registered = state.redirect_uris.contains(&parameter("redirect_uri"));
                    if parameter("client_id") == "registered" && !is_registered {
                        return json_response(400, &json!({"error": "invalid_request"}));
                    }
                    let code = state.next("code");
                    let grant = json!({
                        "user": user.unwrap_or("nobody"),
                        "client": parameter("client_id"),
                        "resource": parameter("resource"),
                    });
                    state.codes.insert(code.clone(), grant);
                    let location = format!(
                        "{}?code={code}&state={}",
                        parameter("redirect_uri"),
                        encode(&parameter("state"))
                    );
                    response(302, &[("location", &location)], "")
                }
                _ => token(request, &origin, &signs, (&behaves, &knows)),
            }
        })
        .await;
        Self {
            site,
            signer,
            behaviour,
            state,
        }
    }

    /// Returns a token of a client for a user, which is valid for ten minutes.
    pub fn token(&self, resource: &str, user: &str, client: &str, scope: &str) -> String {
        let mut claims = valid_claims(&self.site.url, resource, user, scope);
        claims["client_id"] = json!(client);
        self.signer.sign(&self.signer.header(), &claims)
    }

    /// Returns the requests for tokens with a grant type.
    pub fn grants(&self, grant_type: &str) -> Vec<ReceivedRequest> {
        let requests = self.site.received_requests().into_iter();
        let of_type = requests.filter(|request| {
            request.path == "/token" && request.param("grant_type").as_deref() == Some(grant_type)
        });
        of_type.collect()
    }

    /// Returns the requests for token exchanges.
    pub fn exchanges(&self) -> Vec<ReceivedRequest> {
        self.grants(EXCHANGE)
    }

    /// Ends all refresh tokens.
    pub fn forget_grants(&self) {
        lock(&self.state).refresh_tokens.clear();
    }
}
