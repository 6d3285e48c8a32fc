//! An authorization server and a resource server. Both conform to the specification unless [`Deviations`] change their
//! behaviour.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use bytes::Bytes;
use mcp_exact::transport::http::client::{HttpClient, HyperClient};
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{AgentFuture, Redirect, Url, UserAgent};
use serde_json::{Value, json};

use crate::site::{
    ReceivedRequest, Site, SiteResponse, decode, encode, json_response as respond_json, response,
};

/// Deliberate deviations of both servers from the specification.
#[derive(Clone)]
pub struct Deviations {
    /// Modifies the metadata of the authorization server; the second argument is its origin.
    pub metadata: fn(&mut Value, &str),
    /// Replaces the response to a request for the metadata of the authorization server; the argument is its origin.
    pub metadata_reply: Option<fn(&str) -> SiteResponse>,
    /// Modifies the metadata of the resource; the arguments are the origins of the resource and of the authorization
    /// server.
    pub resource: fn(&mut Value, &str, &str),
    /// Modifies the query of the redirect to the client; the second argument is the issuer.
    pub redirect_query: fn(String, &str) -> String,
    /// Replaces the response to a token request.
    pub token_response: Option<fn(&ReceivedRequest) -> SiteResponse>,
    /// Returns the response to a revocation; the metadata names the endpoint `/revoke` only if a test adds it.
    pub revocation: fn(&ReceivedRequest) -> SiteResponse,
    /// Returns the `WWW-Authenticate` challenge of status 401; the argument is the origin of the resource.
    pub challenge_401: fn(&str) -> String,
    /// Scope that the challenge of status 403 requires for every call, and that the authorization server never grants.
    pub unobtainable_scope: Option<&'static str>,
    /// True if the resource rejects every token.
    pub rejects_tokens: bool,
    /// Lifetime of tokens in seconds.
    pub expires_in: Value,
    /// True if each use of a refresh token returns a new refresh token.
    pub rotates_refresh_tokens: bool,
    /// Client id that the registration endpoint returns.
    pub client_id: &'static str,
}

impl Default for Deviations {
    fn default() -> Self {
        Self {
            metadata: |_, _| {},
            metadata_reply: None,
            resource: |_, _, _| {},
            redirect_query: |query, issuer| format!("{query}&iss={}", encode(issuer)),
            token_response: None,
            revocation: |_| response(200, &[], ""),
            challenge_401: |origin| {
                format!(
                    r#"Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp""#
                )
            },
            unobtainable_scope: None,
            rejects_tokens: false,
            expires_in: json!(3600),
            rotates_refresh_tokens: true,
            client_id: "registered",
        }
    }
}

/// Authorization codes and tokens that the authorization server has issued.
#[derive(Default)]
struct IssuedTokens {
    /// Number in the name of the latest access token.
    last_number: u32,
    /// Authorization codes that were not exchanged yet, each with its code challenge.
    unused_codes: Vec<(String, String)>,
    /// Valid access tokens.
    access_tokens: HashSet<String>,
    /// Issued refresh tokens.
    refresh_tokens: HashSet<String>,
    /// Refresh tokens that were used.
    used_refresh_tokens: HashSet<String>,
    /// True if a refresh token was used twice, so that the token family is revoked (OAuth 2.1, section 4.3.1).
    is_revoked: bool,
}

/// Running authorization server, and running resource server that accepts its tokens.
#[derive(Clone)]
pub struct Authority {
    /// The authorization server.
    pub server: Site,
    /// The resource server, whose endpoint has the path `/mcp`.
    pub resource: Site,
    /// Current deviations of both servers.
    deviations: Arc<Mutex<Deviations>>,
    /// Issued codes and tokens.
    issued: Arc<Mutex<IssuedTokens>>,
}

/// Locks a mutex, even if a thread has panicked while it held the lock.
fn lock_mutex<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Authority {
    /// Starts both servers.
    pub async fn start(deviations: Deviations) -> Self {
        let deviations = Arc::new(Mutex::new(deviations));
        let issued = Arc::new(Mutex::new(IssuedTokens::default()));
        let server = {
            let (deviations, issued) = (Arc::clone(&deviations), Arc::clone(&issued));
            Site::start(|origin| {
                let origin = origin.to_owned();
                move |request| {
                    let deviations = lock_mutex(&deviations).clone();
                    answer_authority(request, &origin, &deviations, &mut lock_mutex(&issued))
                }
            })
            .await
        };
        let resource = {
            let (deviations, issued) = (Arc::clone(&deviations), Arc::clone(&issued));
            let issuer = server.url.clone();
            Site::start(|origin| {
                let origin = origin.to_owned();
                move |request| {
                    let deviations = lock_mutex(&deviations).clone();
                    answer_resource(request, &origin, &issuer, &deviations, &lock_mutex(&issued))
                }
            })
            .await
        };
        Self {
            server,
            resource,
            deviations,
            issued,
        }
    }

    /// Changes the deviations of the servers while they run.
    pub fn set_deviations(&self, change: impl FnOnce(&mut Deviations)) {
        change(&mut lock_mutex(&self.deviations));
    }

    /// Returns the URL of the MCP endpoint.
    pub fn endpoint(&self) -> String {
        format!("{}/mcp", self.resource.url)
    }

    /// Returns true if a refresh token was used twice.
    pub fn is_revoked(&self) -> bool {
        lock_mutex(&self.issued).is_revoked
    }

    /// Revokes all access tokens and refresh tokens that were issued so far.
    pub fn revoke_tokens(&self) {
        let mut issued = lock_mutex(&self.issued);
        issued.access_tokens.clear();
        issued.refresh_tokens.clear();
    }

    /// Makes the resource server reject all access tokens that were issued so far.
    pub fn expire_tokens(&self) {
        lock_mutex(&self.issued).access_tokens.clear();
    }
}

/// Returns the response of the authorization server to a request.
fn answer_authority(
    request: &ReceivedRequest,
    origin: &str,
    deviations: &Deviations,
    issued: &mut IssuedTokens,
) -> SiteResponse {
    match (&*request.method, &*request.path) {
        ("GET", "/.well-known/oauth-authorization-server") => {
            if let Some(answer) = deviations.metadata_reply {
                return answer(origin);
            }
            let at = |path: &str| format!("{origin}{path}");
            let mut metadata = json!({
                "issuer": origin,
                "authorization_endpoint": at("/authorize"),
                "token_endpoint": at("/token"),
                "registration_endpoint": at("/register"),
                "response_types_supported": ["code"],
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["none"],
                "authorization_response_iss_parameter_supported": true,
            });
            (deviations.metadata)(&mut metadata, origin);
            respond_json(200, &metadata)
        }
        ("POST", "/register") => respond_json(201, &json!({"client_id": deviations.client_id})),
        ("GET", "/authorize") => {
            issued.last_number += 1;
            let code = format!("code-{}", issued.last_number);
            let challenge = request.param("code_challenge").unwrap_or_default();
            issued.unused_codes.push((code.clone(), challenge));
            let state = request.param("state").unwrap_or_default();
            let query = format!("code={code}&state={}", encode(&state));
            let query = (deviations.redirect_query)(query, origin);
            let target = request.param("redirect_uri").unwrap_or_default();
            response(302, &[("location", &format!("{target}?{query}"))], "")
        }
        ("POST", "/token") => match deviations.token_response {
            Some(answer) => answer(request),
            None => answer_token_request(request, deviations, issued),
        },
        ("POST", "/revoke") => (deviations.revocation)(request),
        _ => response(404, &[], ""),
    }
}

/// Returns the response of the token endpoint to a request.
fn answer_token_request(
    request: &ReceivedRequest,
    deviations: &Deviations,
    issued: &mut IssuedTokens,
) -> SiteResponse {
    let refused = |error: &str| respond_json(400, &json!({"error": error}));
    let param = |name: &str| request.param(name).unwrap_or_default();
    match &*param("grant_type") {
        "authorization_code" => {
            let code = param("code");
            let Some(at) = issued
                .unused_codes
                .iter()
                .position(|(known, _)| *known == code)
            else {
                return refused("invalid_grant");
            };
            let (_, challenge) = issued.unused_codes.swap_remove(at);
            if challenge != s256_challenge(&param("code_verifier")) {
                return refused("invalid_grant");
            }
        }
        "refresh_token" => {
            let used = param("refresh_token");
            if !deviations.rotates_refresh_tokens {
                return issue_token(None, deviations, issued);
            }
            if issued.used_refresh_tokens.contains(&used) {
                issued.is_revoked = true;
                issued.refresh_tokens.clear();
                issued.access_tokens.clear();
            }
            if !issued.refresh_tokens.remove(&used) {
                return refused("invalid_grant");
            }
            issued.used_refresh_tokens.insert(used);
        }
        "client_credentials" => {}
        _ => return refused("unsupported_grant_type"),
    }
    let refresh = format!("refresh-{}", issued.last_number + 1);
    issued.refresh_tokens.insert(refresh.clone());
    issue_token(Some(refresh), deviations, issued)
}

/// Issues an access token; returns the token response, with `refresh` as the refresh token.
fn issue_token(
    refresh: Option<String>,
    deviations: &Deviations,
    issued: &mut IssuedTokens,
) -> SiteResponse {
    issued.last_number += 1;
    let access = format!("access-{}", issued.last_number);
    issued.access_tokens.insert(access.clone());
    respond_json(
        200,
        &json!({
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": deviations.expires_in,
            "refresh_token": refresh,
        }),
    )
}

/// Returns the S256 code challenge for a code verifier.
fn s256_challenge(verifier: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}

/// Returns the response of the resource server to a request.
fn answer_resource(
    request: &ReceivedRequest,
    origin: &str,
    issuer: &str,
    deviations: &Deviations,
    issued: &IssuedTokens,
) -> SiteResponse {
    if request.path == "/.well-known/oauth-protected-resource/mcp" {
        let mut metadata = json!({
            "resource": format!("{origin}/mcp"),
            "authorization_servers": [issuer],
        });
        (deviations.resource)(&mut metadata, origin, issuer);
        return respond_json(200, &metadata);
    }
    if request.path != "/mcp" {
        return response(404, &[], "");
    }
    let token = request.header("authorization").strip_prefix("Bearer ");
    let is_known = token.is_some_and(|token| issued.access_tokens.contains(token));
    if !is_known || deviations.rejects_tokens {
        let challenge = (deviations.challenge_401)(origin);
        return response(401, &[("www-authenticate", &challenge)], "");
    }
    match deviations.unobtainable_scope {
        Some(scope) => {
            let challenge = format!(r#"Bearer error="insufficient_scope", scope="{scope}""#);
            response(403, &[("www-authenticate", &challenge)], "")
        }
        None => response(200, &[], "done"),
    }
}

/// User agent that signs in without a user: it follows the redirect of the authorization server to the client.
#[derive(Clone, Default)]
pub struct RedirectAgent {
    /// Authorization URLs that were opened.
    pub opened: Arc<Mutex<Vec<String>>>,
}

impl UserAgent for RedirectAgent {
    fn begin<'a>(&'a self, _: Option<&'a str>) -> AgentFuture<'a, Box<dyn Redirect>> {
        let redirect: Box<dyn Redirect> = Box::new(self.clone());
        Box::pin(async move { Ok(redirect) })
    }
}

impl Redirect for RedirectAgent {
    fn redirect_uri(&self) -> &str {
        "http://127.0.0.1:8765/callback"
    }

    fn authorize(self: Box<Self>, url: Url) -> AgentFuture<'static, Secret> {
        lock_mutex(&self.opened).push(url.to_string());
        Box::pin(async move {
            let request = http::Request::get(url.as_str()).body(Bytes::new());
            let request = request.map_err(|error| error.to_string())?;
            let response = HyperClient::default().send(request).await;
            let response = response.map_err(|error| error.to_string())?;
            let location = response.headers().get("location");
            let location = location.and_then(|location| location.to_str().ok());
            let query = location.and_then(|location| location.split_once('?'));
            let (_, query) = query.ok_or("the server does not redirect")?;
            Ok(Secret::new(query))
        })
    }
}

/// Returns a decoded query parameter of a URL.
pub fn parameter(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(known, _)| *known == name)?;
    Some(decode(value))
}
