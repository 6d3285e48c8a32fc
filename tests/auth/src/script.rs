//! An MCP server that is its own authorization server, with responses that a test sets one after the other.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use mcp_exact::transport::http::client::HyperClient;
use mcp_exact_auth::client::{OAuth, OAuthClient};
use serde_json::{Value, json};

use crate::site::{
    ReceivedRequest, Site, SiteResponse, encode, json_response as respond_json, response,
};

/// Function that answers a request instead of the [`Script`], or leaves it to the script.
type Hook = Box<dyn FnMut(&ReceivedRequest) -> Option<SiteResponse> + Send>;

/// Responses of a [`ScriptedServer`].
pub struct Script {
    /// Members of the metadata of the resource, besides the usual ones.
    pub resource: Value,
    /// Members of the metadata of the authorization server, besides the usual ones.
    pub metadata: Value,
    /// Response of the registration endpoint.
    pub registration: Value,
    /// Responses to the next token requests; `invalid_grant` follows.
    pub tokens: VecDeque<SiteResponse>,
    /// Values of the header `Authorization` that the MCP server accepts.
    pub accepted: Vec<String>,
    /// Response of the MCP server to requests with another value.
    pub refusal: SiteResponse,
    /// Function that is asked first.
    pub hook: Option<Hook>,
}

impl Script {
    /// Adds the response to the next token request. `{"token_type": "Bearer"}` is added to a token.
    pub fn push_token(&mut self, status: u16, body: &Value) {
        let mut body = body.clone();
        if body["token_type"].is_null() && !body["access_token"].is_null() {
            body["token_type"] = json!("Bearer");
        }
        self.tokens.push_back(respond_json(status, &body));
    }

    /// Makes the MCP server accept these values of `Authorization`, and no others.
    pub fn accept(&mut self, values: &[&str]) {
        self.accepted = values.iter().map(|&value| value.to_owned()).collect();
    }

    /// Makes the MCP server answer other values with status 401, this challenge, and this DPoP nonce.
    pub fn refuse(&mut self, challenge: &str, nonce: Option<&str>) {
        let mut headers = vec![("www-authenticate", challenge)];
        headers.extend(nonce.map(|nonce| ("dpop-nonce", nonce)));
        self.refusal = response(401, &headers, "");
    }

    /// Returns the response to a request.
    fn answer(&mut self, request: &ReceivedRequest, origin: &str) -> SiteResponse {
        if let Some(answer) = self.hook.as_mut().and_then(|hook| hook(request)) {
            return answer;
        }
        let at = |path: &str| format!("{origin}{path}");
        match &*request.path {
            "/.well-known/oauth-protected-resource/mcp" => {
                let usual = json!({"resource": at("/mcp"), "authorization_servers": [origin]});
                respond_json(200, &merged(usual, &self.resource))
            }
            "/.well-known/oauth-authorization-server" => {
                let usual = json!({
                    "issuer": origin,
                    "authorization_endpoint": at("/authorize"),
                    "token_endpoint": at("/token"),
                    "registration_endpoint": at("/register"),
                    "code_challenge_methods_supported": ["S256"],
                });
                respond_json(200, &merged(usual, &self.metadata))
            }
            "/register" => respond_json(201, &self.registration),
            "/authorize" => {
                let state = encode(&request.param("state").unwrap_or_default());
                let target = request.param("redirect_uri").unwrap_or_default();
                let location = format!("{target}?code=c&state={state}");
                response(302, &[("location", &location)], "")
            }
            "/token" => {
                let next = self.tokens.pop_front();
                next.unwrap_or_else(|| respond_json(400, &json!({"error": "invalid_grant"})))
            }
            "/mcp" => {
                let sent = request.header("authorization");
                if self.accepted.iter().any(|value| value == sent) {
                    response(200, &[], "done")
                } else {
                    self.refusal.clone()
                }
            }
            _ => response(404, &[], ""),
        }
    }
}

/// Returns an object with the members of another one in addition.
fn merged(mut usual: Value, others: &Value) -> Value {
    for (name, value) in others.as_object().into_iter().flatten() {
        usual[name] = value.clone();
    }
    usual
}

/// Running server that follows a [`Script`].
#[derive(Clone)]
pub struct ScriptedServer {
    /// The HTTP server.
    pub site: Site,
    /// Responses of the server.
    script: Arc<Mutex<Script>>,
}

impl ScriptedServer {
    /// Starts a server that issues no token and accepts none.
    pub async fn start() -> Self {
        let script = Arc::new(Mutex::new(Script {
            resource: json!({}),
            metadata: json!({}),
            registration: json!({"client_id": "c"}),
            tokens: VecDeque::new(),
            accepted: Vec::new(),
            refusal: response(401, &[("www-authenticate", "Bearer")], ""),
            hook: None,
        }));
        let follows = Arc::clone(&script);
        let site = Site::start(|origin| {
            let origin = origin.to_owned();
            move |request| lock(&follows).answer(request, &origin)
        })
        .await;
        Self { site, script }
    }

    /// Returns the script, for changes.
    pub fn script(&self) -> MutexGuard<'_, Script> {
        lock(&self.script)
    }

    /// Returns the URL of the MCP endpoint.
    pub fn endpoint(&self) -> String {
        format!("{}/mcp", self.site.url)
    }

    /// Creates a client of the server.
    ///
    /// # Panics
    /// Panics if the options are not valid.
    pub fn client(&self, oauth: OAuth) -> OAuthClient {
        let client = oauth.client(&self.endpoint(), Arc::new(HyperClient::default()));
        client.expect("the URL is on loopback")
    }

    /// Returns the requests with a path.
    pub fn requests(&self, path: &str) -> Vec<ReceivedRequest> {
        let mut requests = self.site.received_requests();
        requests.retain(|request| request.path == path);
        requests
    }
}

/// Locks the script, even if a hook has panicked.
fn lock(script: &Mutex<Script>) -> MutexGuard<'_, Script> {
    script.lock().unwrap_or_else(PoisonError::into_inner)
}
