//! An authorization server and a resource server, which conform to the specification unless [`Knobs`] change their
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

use crate::site::{ReceivedRequest, Reply, Site, decode, encode, json as respond_json, reply};

/// Deliberate deviations of the servers from the specification.
#[derive(Clone)]
pub struct Knobs {
    /// Modifies the metadata of the authorization server; the second argument is its origin.
    pub metadata: fn(&mut Value, &str),
    /// Replaces the response with the metadata of the authorization server.
    pub metadata_reply: Option<fn(&str) -> Reply>,
    /// Modifies the metadata of the resource; the arguments are the origins of the resource and of the authorization
    /// server.
    pub resource: fn(&mut Value, &str, &str),
    /// Modifies the query of the redirect; the second argument is the issuer.
    pub redirect: fn(String, &str) -> String,
    /// Replaces the response to a token request.
    pub token: Option<fn(&ReceivedRequest) -> Reply>,
    /// Returns the challenge of status 401; the argument is the origin of the resource.
    pub challenge: fn(&str) -> String,
    /// Scope that every call requires, in the challenge of status 403, and that is never granted.
    pub never_granted: Option<&'static str>,
    /// True if the resource rejects every token.
    pub refuses_tokens: bool,
    /// Lifetime of tokens in seconds.
    pub expires_in: Value,
    /// True if each use of a refresh token issues a new one.
    pub rotates: bool,
    /// Id that registered clients receive.
    pub client_id: &'static str,
}

impl Default for Knobs {
    fn default() -> Self {
        Self {
            metadata: |_, _| {},
            metadata_reply: None,
            resource: |_, _, _| {},
            redirect: |query, issuer| format!("{query}&iss={}", encode(issuer)),
            token: None,
            challenge: |origin| {
                format!(
                    r#"Bearer resource_metadata="{origin}/.well-known/oauth-protected-resource/mcp""#
                )
            },
            never_granted: None,
            refuses_tokens: false,
            expires_in: json!(3600),
            rotates: true,
            client_id: "registered",
        }
    }
}

/// Codes and tokens that the authorization server has issued.
#[derive(Default)]
struct IssuedTokens {
    number: u32,
    /// Unused codes with their code challenges.
    codes: Vec<(String, String)>,
    access: HashSet<String>,
    refresh: HashSet<String>,
    /// Refresh tokens that were used.
    spent: HashSet<String>,
    /// True if a refresh token was used twice, so that the token family is revoked (OAuth 2.1, section 4.3.1).
    is_revoked: bool,
}

/// A running authorization server and resource server.
#[derive(Clone)]
pub struct Authority {
    /// The authorization server.
    pub server: Site,
    /// The resource server, whose endpoint has the path `/mcp`.
    pub resource: Site,
    knobs: Arc<Mutex<Knobs>>,
    issued: Arc<Mutex<IssuedTokens>>,
}

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Authority {
    /// Starts both servers.
    pub async fn start(knobs: Knobs) -> Self {
        let knobs = Arc::new(Mutex::new(knobs));
        let issued = Arc::new(Mutex::new(IssuedTokens::default()));
        let server = {
            let (knobs, issued) = (Arc::clone(&knobs), Arc::clone(&issued));
            Site::start(|origin| {
                let origin = origin.to_owned();
                move |seen| {
                    let knobs = locked(&knobs).clone();
                    serve(seen, &origin, &knobs, &mut locked(&issued))
                }
            })
            .await
        };
        let resource = {
            let (knobs, issued) = (Arc::clone(&knobs), Arc::clone(&issued));
            let issuer = server.url.clone();
            Site::start(|origin| {
                let origin = origin.to_owned();
                move |seen| {
                    let knobs = locked(&knobs).clone();
                    protect(seen, &origin, &issuer, &knobs, &locked(&issued))
                }
            })
            .await
        };
        Self {
            server,
            resource,
            knobs,
            issued,
        }
    }

    /// Changes the behaviour of the servers.
    pub fn turn(&self, change: impl FnOnce(&mut Knobs)) {
        change(&mut locked(&self.knobs));
    }

    /// Returns the URL of the MCP endpoint.
    pub fn endpoint(&self) -> String {
        format!("{}/mcp", self.resource.url)
    }

    /// Returns true if a refresh token was used twice.
    pub fn is_revoked(&self) -> bool {
        locked(&self.issued).is_revoked
    }

    /// Makes all access tokens expire.
    pub fn expire_tokens(&self) {
        locked(&self.issued).access.clear();
    }
}

fn serve(seen: &ReceivedRequest, origin: &str, knobs: &Knobs, issued: &mut IssuedTokens) -> Reply {
    match (&*seen.method, &*seen.path) {
        ("GET", "/.well-known/oauth-authorization-server") => {
            if let Some(answer) = knobs.metadata_reply {
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
            (knobs.metadata)(&mut metadata, origin);
            respond_json(200, &metadata)
        }
        ("POST", "/register") => respond_json(201, &json!({"client_id": knobs.client_id})),
        ("GET", "/authorize") => {
            issued.number += 1;
            let code = format!("code-{}", issued.number);
            let challenge = seen.param("code_challenge").unwrap_or_default();
            issued.codes.push((code.clone(), challenge));
            let state = seen.param("state").unwrap_or_default();
            let query = format!("code={code}&state={}", encode(&state));
            let query = (knobs.redirect)(query, origin);
            let target = seen.param("redirect_uri").unwrap_or_default();
            reply(302, &[("location", &format!("{target}?{query}"))], "")
        }
        ("POST", "/token") => match knobs.token {
            Some(answer) => answer(seen),
            None => token(seen, knobs, issued),
        },
        _ => reply(404, &[], ""),
    }
}

fn token(seen: &ReceivedRequest, knobs: &Knobs, issued: &mut IssuedTokens) -> Reply {
    let refused = |error: &str| respond_json(400, &json!({"error": error}));
    let param = |name: &str| seen.param(name).unwrap_or_default();
    match &*param("grant_type") {
        "authorization_code" => {
            let code = param("code");
            let Some(at) = issued.codes.iter().position(|(known, _)| *known == code) else {
                return refused("invalid_grant");
            };
            let (_, challenge) = issued.codes.swap_remove(at);
            if challenge != digest(&param("code_verifier")) {
                return refused("invalid_grant");
            }
        }
        "refresh_token" => {
            let used = param("refresh_token");
            if !knobs.rotates {
                return issue(None, knobs, issued);
            }
            if issued.spent.contains(&used) {
                issued.is_revoked = true;
                issued.refresh.clear();
                issued.access.clear();
            }
            if !issued.refresh.remove(&used) {
                return refused("invalid_grant");
            }
            issued.spent.insert(used);
        }
        "client_credentials" => {}
        _ => return refused("unsupported_grant_type"),
    }
    let refresh = format!("refresh-{}", issued.number + 1);
    issued.refresh.insert(refresh.clone());
    issue(Some(refresh), knobs, issued)
}

/// Issues an access token.
fn issue(refresh: Option<String>, knobs: &Knobs, issued: &mut IssuedTokens) -> Reply {
    issued.number += 1;
    let access = format!("access-{}", issued.number);
    issued.access.insert(access.clone());
    respond_json(
        200,
        &json!({
            "access_token": access,
            "token_type": "Bearer",
            "expires_in": knobs.expires_in,
            "refresh_token": refresh,
        }),
    )
}

/// Returns the S256 challenge of a verifier.
fn digest(verifier: &str) -> String {
    let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, verifier.as_bytes());
    URL_SAFE_NO_PAD.encode(digest)
}

fn protect(
    seen: &ReceivedRequest,
    origin: &str,
    issuer: &str,
    knobs: &Knobs,
    issued: &IssuedTokens,
) -> Reply {
    if seen.path == "/.well-known/oauth-protected-resource/mcp" {
        let mut metadata = json!({
            "resource": format!("{origin}/mcp"),
            "authorization_servers": [issuer],
        });
        (knobs.resource)(&mut metadata, origin, issuer);
        return respond_json(200, &metadata);
    }
    if seen.path != "/mcp" {
        return reply(404, &[], "");
    }
    let token = seen.header("authorization").strip_prefix("Bearer ");
    let is_known = token.is_some_and(|token| issued.access.contains(token));
    if !is_known || knobs.refuses_tokens {
        let challenge = (knobs.challenge)(origin);
        return reply(401, &[("www-authenticate", &challenge)], "");
    }
    match knobs.never_granted {
        Some(scope) => {
            let challenge = format!(r#"Bearer error="insufficient_scope", scope="{scope}""#);
            reply(403, &[("www-authenticate", &challenge)], "")
        }
        None => reply(200, &[], "done"),
    }
}

/// User agent that signs in without a person, by following the redirect of the authorization server.
#[derive(Clone, Default)]
pub struct RedirectAgent {
    /// URLs that were opened.
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
        locked(&self.opened).push(url.to_string());
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

/// Returns a parameter of a URL, decoded.
pub fn parameter(url: &str, name: &str) -> Option<String> {
    let (_, query) = url.split_once('?')?;
    let mut pairs = query.split('&').filter_map(|pair| pair.split_once('='));
    let (_, value) = pairs.find(|(known, _)| *known == name)?;
    Some(decode(value))
}
