//! Stand-ins of authorization servers that people have: what each publishes, accepts and refuses, as far as its public
//! documents and reports say, without a network. Each protects an `mcp-exact` server.

use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use mcp_exact::Server;
use mcp_exact::auth::server::{Access, Jwks, ResourceServer};
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact_auth::client::OAuth;
use serde_json::{Value, json};

use crate::issuer::valid_claims;
use crate::site::{ReceivedRequest, Site, SiteResponse, encode, json_response, response};
use crate::tokens::Signer;

/// Id and secret of the client that is registered by hand.
pub const CLIENT: (&str, &str) = ("registered-by-hand", "a secret of the client");

/// Where the metadata is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum WellKnown {
    /// RFC 8414: before the path of the issuer.
    Inserted,
    /// OpenID Connect Discovery: after the path of the issuer.
    Appended,
}

/// How the issuer is written by the resource and by its own metadata.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Slash {
    /// Without a slash at the end.
    None,
    /// With one, in both.
    Both,
    /// With one by the resource alone.
    ResourceOnly,
}

/// Answer of the registration endpoint.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Registration {
    /// There is no such endpoint.
    None,
    /// Everybody may register.
    Open,
    /// A credential is required.
    Closed,
}

/// Treatment of the parameter `resource`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Resource {
    /// The parameter is used or ignored.
    Accepted,
    /// The request is refused with `invalid_target`.
    Refused,
    /// The parameter is ignored, and without `audience` the token is for no resource.
    NeedsAudience,
}

/// What a person has to decide so that the provider can be used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Setting {
    /// Id of a client that is registered by hand.
    ClientId,
    /// Secret of this client.
    Secret,
    /// PKCE is supported although the metadata does not list it.
    AssumePkce,
    /// A slash at the end of the issuer does not matter.
    IgnoreSlash,
    /// `resource` is not sent, and the scopes are named instead.
    NoResource,
    /// The audience is a parameter of its own.
    Audience,
}

/// An authorization server.
pub struct Provider {
    /// Name.
    pub name: &'static str,
    /// What has to be decided.
    pub settings: &'static [Setting],
    /// Path of the issuer.
    path: &'static str,
    slash: Slash,
    well_known: WellKnown,
    lists_pkce: bool,
    registration: Registration,
    resource: Resource,
    /// Where the client's secret is required: `client_secret_basic` or `client_secret_post`.
    secret: Option<&'static str>,
    /// Errors have status 200.
    fails_at_200: bool,
}

/// A server that needs nothing.
const PLAIN: Provider = Provider {
    name: "",
    settings: &[],
    path: "",
    slash: Slash::None,
    well_known: WellKnown::Inserted,
    lists_pkce: true,
    registration: Registration::Open,
    resource: Resource::Accepted,
    secret: None,
    fails_at_200: false,
};

/// The providers, as documented for November 2026.
pub const PROVIDERS: [Provider; 10] = [
    Provider {
        name: "Entra ID",
        settings: &[Setting::ClientId, Setting::AssumePkce, Setting::NoResource],
        path: "/tenant/v2.0",
        well_known: WellKnown::Appended,
        lists_pkce: false,
        registration: Registration::None,
        resource: Resource::Refused,
        ..PLAIN
    },
    Provider {
        name: "Cognito",
        settings: &[Setting::ClientId, Setting::AssumePkce],
        path: "/region_pool",
        well_known: WellKnown::Appended,
        lists_pkce: false,
        registration: Registration::None,
        ..PLAIN
    },
    Provider {
        name: "Auth0",
        settings: &[Setting::Audience],
        slash: Slash::Both,
        well_known: WellKnown::Appended,
        resource: Resource::NeedsAudience,
        ..PLAIN
    },
    Provider {
        name: "Okta",
        settings: &[Setting::ClientId],
        path: "/oauth2/default",
        well_known: WellKnown::Appended,
        registration: Registration::Closed,
        ..PLAIN
    },
    Provider {
        name: "Keycloak",
        settings: &[Setting::ClientId],
        path: "/realms/main",
        registration: Registration::Closed,
        ..PLAIN
    },
    Provider {
        name: "Google",
        settings: &[Setting::ClientId, Setting::Secret, Setting::IgnoreSlash],
        slash: Slash::ResourceOnly,
        registration: Registration::None,
        secret: Some("client_secret_post"),
        ..PLAIN
    },
    Provider {
        name: "GitHub",
        settings: &[Setting::ClientId, Setting::Secret],
        path: "/login/oauth",
        registration: Registration::None,
        secret: Some("client_secret_post"),
        fails_at_200: true,
        ..PLAIN
    },
    Provider {
        name: "Slack",
        settings: &[Setting::ClientId, Setting::Secret],
        registration: Registration::None,
        secret: Some("client_secret_post"),
        fails_at_200: true,
        ..PLAIN
    },
    Provider {
        name: "Logto",
        settings: &[Setting::ClientId, Setting::Secret],
        path: "/oidc",
        well_known: WellKnown::Appended,
        registration: Registration::None,
        secret: Some("client_secret_basic"),
        ..PLAIN
    },
    Provider {
        name: "WorkOS",
        ..PLAIN
    },
];

/// A provider and the server that it protects.
pub struct ProtectedServer {
    /// The authorization server.
    pub site: Site,
    /// URL of the MCP endpoint.
    pub endpoint: String,
    /// Issuer, as the resource names it.
    pub issuer: String,
}

impl Provider {
    /// Starts the provider and a server that it protects, with the tool `who`.
    ///
    /// # Panics
    /// Panics if a port cannot be opened.
    pub async fn start(&'static self) -> ProtectedServer {
        let signer = Arc::new(Signer::new("k"));
        let endpoint = Arc::new(Mutex::new(String::new()));
        let state = Arc::new(State {
            signer,
            endpoint: Arc::clone(&endpoint),
            audience: Mutex::default(),
        });
        let site = Site::start(move |origin| {
            let origin = origin.to_owned();
            move |request| self.answer(request, &origin, &state)
        })
        .await;
        let named = self.issuer(&site.url, self.slash != Slash::None);
        let own = self.issuer(&site.url, self.slash == Slash::Both);

        let server = Server::builder("protected", "1.0.0")
            .tool("who", |access: Access| async move {
                access.subject().unwrap_or_default().to_owned()
            })
            .build()
            .expect("a server");
        let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let url = format!("http://{address}/mcp");
        endpoint
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone_from(&url);
        let keys = format!("{}/keys", site.url);
        let verifier = Jwks::new(own, &url).keys_url(keys).accept_plain_jwt();
        let auth = ResourceServer::new(&named, &url, verifier).expect("a resource");
        let options = HttpServerOptions {
            path: Some("/mcp".to_owned()),
            authenticate: Some(Arc::new(auth)),
            ..HttpServerOptions::default()
        };
        let service = server.http(options);
        tokio::spawn(async move { listener.serve(service, std::future::pending()).await });
        ProtectedServer {
            site,
            endpoint: url,
            issuer: named,
        }
    }

    /// Returns the issuer with or without a slash.
    fn issuer(&self, origin: &str, has_slash: bool) -> String {
        let slash = if has_slash { "/" } else { "" };
        format!("{origin}{}{slash}", self.path)
    }

    /// Answers a request to the provider.
    fn answer(&self, request: &ReceivedRequest, origin: &str, state: &State) -> SiteResponse {
        let well_known = match self.well_known {
            WellKnown::Inserted => format!("/.well-known/oauth-authorization-server{}", self.path),
            WellKnown::Appended => format!("{}/.well-known/openid-configuration", self.path),
        };
        match &*request.path {
            path if path == well_known => json_response(200, &self.metadata(origin)),
            "/keys" => json_response(200, &state.signer.key_set()),
            "/register" if self.registration == Registration::Open => {
                json_response(201, &json!({"client_id": "registered"}))
            }
            "/register" => json_response(403, &json!({"error": "access_denied"})),
            "/authorize" => {
                let audience = request.param("audience").unwrap_or_default();
                *state
                    .audience
                    .lock()
                    .unwrap_or_else(PoisonError::into_inner) = audience;
                let value = |name: &str| request.param(name).unwrap_or_default();
                let (target, echoed) = (value("redirect_uri"), encode(&value("state")));
                let location = format!("{target}?code=u&state={echoed}");
                response(302, &[("location", &location)], "")
            }
            "/token" => self.issue_token(request, origin, state),
            _ => response(404, &[], ""),
        }
    }

    /// Returns the metadata.
    fn metadata(&self, origin: &str) -> Value {
        let at = |path: &str| format!("{origin}{path}");
        let methods = self.secret.unwrap_or("none");
        let mut metadata = json!({
            "issuer": self.issuer(origin, self.slash == Slash::Both),
            "authorization_endpoint": at("/authorize"),
            "token_endpoint": at("/token"),
            "jwks_uri": at("/keys"),
            "response_types_supported": ["code"],
            "token_endpoint_auth_methods_supported": [methods],
        });
        if self.lists_pkce {
            metadata["code_challenge_methods_supported"] = json!(["plain", "S256"]);
        }
        if self.registration != Registration::None {
            metadata["registration_endpoint"] = json!(at("/register"));
        }
        metadata
    }

    /// Answers a token request.
    fn issue_token(&self, request: &ReceivedRequest, origin: &str, state: &State) -> SiteResponse {
        let refused = |error: &str| {
            let status = if self.fails_at_200 { 200 } else { 400 };
            json_response(status, &json!({"ok": false, "error": error}))
        };
        let basic = format!(
            "Basic {}",
            STANDARD.encode(format!(
                "{}:{}",
                encode(CLIENT.0),
                CLIENT.1.replace(' ', "+")
            ))
        );
        let has_secret = match self.secret {
            Some("client_secret_basic") => request.header("authorization") == basic,
            Some(_) => request.param("client_secret").as_deref() == Some(CLIENT.1),
            None => true,
        };
        if !has_secret {
            let at_200 = "incorrect_client_credentials";
            return refused(if self.fails_at_200 {
                at_200
            } else {
                "invalid_client"
            });
        }
        if self.resource == Resource::Refused && request.param("resource").is_some() {
            return refused("invalid_target");
        }
        let endpoint = state
            .endpoint
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let audience = state
            .audience
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .clone();
        let issuer = self.issuer(origin, self.slash == Slash::Both);
        let token = if self.resource == Resource::NeedsAudience && audience != endpoint {
            "opaque".to_owned()
        } else {
            let claims = valid_claims(&issuer, &endpoint, "ada", "");
            let header = json!({"alg": "ES256", "typ": "JWT", "kid": "k"});
            state.signer.sign(&header, &claims)
        };
        if self.fails_at_200 && !request.header("accept").contains("json") {
            let body = format!("access_token={token}&scope=repo%2Cgist&token_type=bearer");
            return response(
                200,
                &[("content-type", "application/x-www-form-urlencoded")],
                &body,
            );
        }
        let answer = json!({"ok": true, "access_token": token, "token_type": "bearer", "scope": "repo,gist"});
        json_response(200, &answer)
    }
}

/// State of a provider.
struct State {
    signer: Arc<Signer>,
    /// Endpoint that it protects.
    endpoint: Arc<Mutex<String>>,
    /// Parameter `audience` of the last authorization request.
    audience: Mutex<String>,
}

impl Setting {
    /// Returns the name that an error gives the setting in the library, the program and the gateway's file.
    pub const fn names(self) -> [&'static str; 3] {
        match self {
            Self::ClientId => ["`OAuth::registered`", "--client-id", "the key `client-id`"],
            Self::Secret => ["check id, secret"; 3],
            Self::AssumePkce => [
                "`OAuth::assume_pkce(",
                "--assume-pkce",
                "the key `assume-pkce`",
            ],
            Self::IgnoreSlash => [
                "`OAuth::ignore_issuer_slash(",
                "--ignore-issuer-slash",
                "the key `ignore-issuer-slash`",
            ],
            Self::NoResource => [
                "`OAuth::resource_indicator(false)`",
                "--no-resource-indicator",
                "the key `no-resource-indicator`",
            ],
            Self::Audience => [
                "`OAuth::authorization_parameter`",
                "--auth-parameter",
                "the key `auth-parameter`",
            ],
        }
    }

    /// Returns true if the provider is refused before a person is asked.
    pub const fn is_found_before_sign_in(self) -> bool {
        matches!(self, Self::ClientId | Self::AssumePkce | Self::IgnoreSlash)
    }
}

impl ProtectedServer {
    /// Returns the options of a client with these settings.
    pub fn oauth(&self, settings: &[Setting]) -> OAuth {
        let mut oauth = if settings.contains(&Setting::ClientId) {
            OAuth::registered(&self.issuer, CLIENT.0)
        } else {
            OAuth::new("test")
        };
        for setting in settings {
            oauth = match setting {
                Setting::ClientId => oauth,
                Setting::Secret if !settings.contains(&Setting::ClientId) => oauth,
                Setting::Secret => oauth.secret(CLIENT.1),
                Setting::AssumePkce => oauth.assume_pkce(&self.issuer),
                Setting::IgnoreSlash => oauth.ignore_issuer_slash(&self.issuer),
                Setting::NoResource => oauth
                    .resource_indicator(false)
                    .scopes(["api://app/.default"]),
                Setting::Audience => oauth.authorization_parameter("audience", &self.endpoint),
            };
        }
        oauth.allow_other_ports()
    }

    /// Returns the options of the program for these settings; the secret is in a variable of the environment.
    pub fn arguments(&self, settings: &[Setting]) -> Vec<String> {
        let mut arguments = vec!["--allow-other-ports".to_owned()];
        let mut add = |words: &[&str]| arguments.extend(words.iter().map(|&word| word.to_owned()));
        for setting in settings {
            match setting {
                Setting::ClientId => add(&["--client-id", CLIENT.0, "--issuer", &self.issuer]),
                Setting::Secret => {}
                Setting::AssumePkce => add(&["--assume-pkce", &self.issuer]),
                Setting::IgnoreSlash => add(&["--ignore-issuer-slash", &self.issuer]),
                Setting::NoResource => {
                    add(&["--no-resource-indicator", "--scope", "api://app/.default"]);
                }
                Setting::Audience => {
                    add(&["--auth-parameter", &format!("audience={}", self.endpoint)]);
                }
            }
        }
        arguments
    }

    /// Returns the file of a gateway in front of the server with these settings.
    pub fn gateway_file(&self, settings: &[Setting]) -> String {
        let mut keys = vec!["allow-other-ports = true".to_owned()];
        for setting in settings {
            keys.push(match setting {
                Setting::ClientId => {
                    format!("client-id = \"{}\", issuer = \"{}\"", CLIENT.0, self.issuer)
                }
                Setting::Secret => format!("secret = \"{}\"", CLIENT.1),
                Setting::AssumePkce => format!("assume-pkce = [\"{}\"]", self.issuer),
                Setting::IgnoreSlash => format!("ignore-issuer-slash = [\"{}\"]", self.issuer),
                Setting::NoResource => {
                    "no-resource-indicator = true, scopes = [\"api://app/.default\"]".to_owned()
                }
                Setting::Audience => format!("auth-parameter = [\"audience={}\"]", self.endpoint),
            });
        }
        let (url, keys) = (&self.endpoint, keys.join(", "));
        format!(
            "prefix = \"never\"\nlist-within = 60\n[servers.web]\nurl = \"{url}\"\noauth = {{ {keys} }}\n"
        )
    }
}
