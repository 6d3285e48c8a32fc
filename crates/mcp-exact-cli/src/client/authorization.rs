//! Authorization at servers that require it: client registration, sign-in of the user, and storage of tokens.
//!
//! Opens the system browser, or prints the URL and reads the URL of the redirect. Requires the feature `oauth`.

#[cfg(feature = "bridge")]
use std::sync::Arc;

use anyhow::Context;
#[cfg(feature = "bridge")]
use bytes::Bytes;
use clap::Args;
#[cfg(feature = "bridge")]
use http::Request;
#[cfg(unix)]
use mcp_exact::auth::client::FileStore;
#[cfg(feature = "bridge")]
use mcp_exact::auth::client::OAuthClient;
use mcp_exact::auth::client::{Browser, Headless, OAuth, OAuthError, OAuthRemedy, open_browser};
#[cfg(feature = "bridge")]
use mcp_exact::transport::http::client::{HttpClient, HttpEndpoint, HttpFuture};
#[cfg(feature = "bridge")]
use mcp_exact_bridge::users::{UserClients, UserGrant};

use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, text};

/// Environment variable with the secret of a registered client; an argument would be visible to other users.
const CLIENT_SECRET_VARIABLE: &str = "MCP_EXACT_CLIENT_SECRET";

/// Options for authorization. The user signs in only when a server requires it.
#[derive(Debug, Clone, Args)]
pub struct Authorization {
    /// Do not open a browser: print the URL to sign in at, and read the URL that the browser ends at.
    #[arg(long, help_heading = "Authorization")]
    headless: bool,
    /// The id that this program is registered with, instead of registering it. The variable MCP_EXACT_CLIENT_SECRET holds its
    /// secret, if it has one.
    #[arg(
        long,
        value_name = "ID",
        requires = "issuer",
        help_heading = "Authorization"
    )]
    client_id: Option<String>,
    /// The authorization server to use, if the server names several.
    #[arg(long, value_name = "URL", help_heading = "Authorization")]
    issuer: Option<String>,
    /// Ask for a scope, besides those that the server names.
    #[arg(long, value_name = "SCOPE", help_heading = "Authorization")]
    scope: Vec<String>,
    /// Take for granted that this authorization server supports PKCE, although its metadata does not say so, as that of Entra
    /// ID and Cognito.
    #[arg(long, value_name = "ISSUER", help_heading = "Authorization")]
    assume_pkce: Vec<String>,
    /// Use the metadata of this authorization server, although it names an issuer with or without a slash at the end, as Google's.
    #[arg(long, value_name = "ISSUER", help_heading = "Authorization")]
    ignore_issuer_slash: Vec<String>,
    /// The resource that tokens are requested for, if the server's metadata names another than the URL of the server.
    #[arg(long, value_name = "URL", help_heading = "Authorization")]
    auth_resource: Option<String>,
    /// Allow authorization servers at private addresses, and plain HTTP to them if the server has an `http` URL: others in the network can read the token.
    #[arg(long, help_heading = "Authorization")]
    allow_private_addresses: bool,
    /// Allow a server of this machine to name authorization servers at other ports of it.
    #[arg(long, help_heading = "Authorization")]
    allow_other_ports: bool,
    /// Add a parameter to the authorization request, for a server that needs one of its own: `audience` of Auth0, `user_scope` of
    /// Slack.
    #[arg(long, value_name = "NAME=VALUE", help_heading = "Authorization")]
    auth_parameter: Vec<String>,
    /// Do not name the server in requests for tokens, which some authorization servers refuse (`invalid_target`).
    #[arg(long, help_heading = "Authorization")]
    no_resource_indicator: bool,
    /// Keep no token after this command.
    #[arg(long, help_heading = "Authorization")]
    forget: bool,
}

/// Settings that relax what authorization demands by default.
#[derive(Debug, Clone, Copy)]
struct Relaxed<'a> {
    resource: Option<&'a str>,
    assume_pkce: &'a [String],
    auth_parameter: &'a [String],
    ignore_issuer_slash: &'a [String],
    allow_private_addresses: bool,
    allow_other_ports: bool,
    no_resource_indicator: bool,
}

impl Relaxed<'_> {
    fn apply(self, oauth: OAuth, names: Names) -> anyhow::Result<OAuth> {
        let mut oauth = oauth;
        for parameter in self.auth_parameter {
            let (name, value) = parameter.split_once('=').with_context(|| {
                format!(
                    "{} takes NAME=VALUE, not `{parameter}`",
                    names.of("auth-parameter")
                )
            })?;
            oauth = oauth.authorization_parameter(name, value);
        }
        let issuers = self.assume_pkce.iter();
        let oauth = issuers.fold(oauth, |oauth, issuer| oauth.assume_pkce(issuer));
        let issuers = self.ignore_issuer_slash.iter();
        let oauth = issuers.fold(oauth, |oauth, issuer| oauth.ignore_issuer_slash(issuer));
        let oauth = oauth.resource_indicator(!self.no_resource_indicator);
        let oauth = match self.resource {
            Some(resource) => oauth.resource(resource),
            None => oauth,
        };
        let oauth = if self.allow_other_ports {
            oauth.allow_other_ports()
        } else {
            oauth
        };
        Ok(if self.allow_private_addresses {
            oauth.allow_private_addresses()
        } else {
            oauth
        })
    }
}

/// Names of the settings by which a user allows what an error of authorization refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// Options of the command line.
    Options,
    /// Keys of the table `oauth` in the gateway's file.
    #[cfg(feature = "bridge")]
    Keys,
}

impl Names {
    /// Returns how a user gives a token of their own.
    const fn header_remedy(self) -> &'static str {
        match self {
            Self::Options => "; if you have a token: --header 'Authorization: Bearer …'",
            #[cfg(feature = "bridge")]
            Self::Keys => "; if you have a token: headers = { Authorization = \"Bearer …\" }",
        }
    }

    /// Returns the name of a setting.
    fn of(self, option: &str) -> String {
        match self {
            Self::Options => format!("--{option}"),
            #[cfg(feature = "bridge")]
            Self::Keys => format!("the key `{option}` of `oauth`"),
        }
    }

    /// Returns the words of an error, whose remedy has these names.
    pub fn describe(self, error: &OAuthError) -> String {
        let name = |option: &str| self.of(option);
        let remedy = match error.remedy() {
            Some(OAuthRemedy::AllowPrivateAddresses) => {
                let allow = name("allow-private-addresses");
                format!("; {allow} allows it in a trusted network")
            }
            Some(OAuthRemedy::AllowOtherPorts) => {
                format!("; if you trust it: {}", name("allow-other-ports"))
            }
            Some(OAuthRemedy::AssumePkce(issuer)) => {
                format!(", write {issuer} for {}", name("assume-pkce"))
            }
            Some(OAuthRemedy::IgnoreSlash(issuer)) => {
                format!("; or write {issuer} for {}", name("ignore-issuer-slash"))
            }
            Some(OAuthRemedy::Resource(resource)) => {
                format!(
                    "; if you trust it, write {resource} for {}",
                    name("auth-resource")
                )
            }
            Some(OAuthRemedy::NoResourceIndicator) => {
                let scope = match self {
                    Self::Options => name("scope"),
                    #[cfg(feature = "bridge")]
                    Self::Keys => name("scopes"),
                };
                format!(
                    "; or {}, with its scopes by {scope}",
                    name("no-resource-indicator")
                )
            }
            Some(OAuthRemedy::AuthorizationParameter) => format!(
                "; if the authorization server takes the audience in a parameter of its own, as Auth0 in `audience`: {}",
                name("auth-parameter")
            ),
            Some(OAuthRemedy::Register) => format!(
                ", and give its id by {}, with {}",
                name("client-id"),
                name("issuer")
            ),
            Some(OAuthRemedy::Header) => self.header_remedy().to_owned(),
            Some(OAuthRemedy::HeaderOrOrigin(origin)) => format!(
                "{}; if it issues its tokens itself, as servers of 2025-03-26 can: write {origin} for {}",
                self.header_remedy(),
                name("assume-pkce")
            ),
            Some(OAuthRemedy::Issuer(issuer)) => {
                format!(
                    "; if that is intended, write {issuer} for {}",
                    name("issuer")
                )
            }
            // The program uses servers without resource metadata already.
            _ => String::new(),
        };
        error.without_remedy() + &remedy
    }
}

impl Authorization {
    /// Returns the OAuth configuration that the options specify.
    pub fn oauth(&self) -> anyhow::Result<OAuth> {
        let oauth = match (&self.client_id, &self.issuer) {
            (Some(id), Some(issuer)) => {
                let oauth = OAuth::registered(issuer, id);
                match std::env::var(CLIENT_SECRET_VARIABLE) {
                    Ok(secret) => oauth.secret(secret),
                    Err(_) => oauth,
                }
            }
            (_, Some(issuer)) => OAuth::new("mcp-exact").issuer(issuer),
            (_, None) => OAuth::new("mcp-exact"),
        };
        let oauth = if self.headless {
            oauth.user_agent(Headless::for_terminal())
        } else {
            oauth.user_agent(create_browser())
        };
        self.with_scopes(oauth)
    }

    /// Returns the OAuth configuration for a process whose standard input is connected to a client, so that the user
    /// cannot paste a URL.
    #[cfg(feature = "bridge")]
    pub fn oauth_without_input(&self) -> anyhow::Result<OAuth> {
        if !self.headless {
            return self.oauth();
        }
        let unattended = Self {
            headless: false,
            ..self.clone()
        };
        Ok(unattended.oauth()?.user_agent(non_interactive_agent()))
    }

    /// Adds the scopes of the command line, and the token store unless `--forget` is given.
    fn with_scopes(&self, oauth: OAuth) -> anyhow::Result<OAuth> {
        let relaxed = Relaxed {
            resource: self.auth_resource.as_deref(),
            assume_pkce: &self.assume_pkce,
            auth_parameter: &self.auth_parameter,
            ignore_issuer_slash: &self.ignore_issuer_slash,
            allow_private_addresses: self.allow_private_addresses,
            allow_other_ports: self.allow_other_ports,
            no_resource_indicator: self.no_resource_indicator,
        };
        let oauth = relaxed.apply(oauth.scopes(&self.scope), Names::Options)?;
        if self.forget {
            Ok(oauth)
        } else {
            Ok(with_store(oauth))
        }
    }
}

/// Creates the user agent that opens the system browser.
fn create_browser() -> Browser {
    Browser::default().open_with(|url| {
        let shown = url.to_string();
        print_to_stderr(&text!("Sign in at {}", Untrusted(&shown)));
        open_browser(url).map_err(|error| format!("{error}; or add --headless"))
    })
}

/// Creates a user agent that cannot sign in; its error asks the user to sign in with another command first.
#[cfg(feature = "bridge")]
fn non_interactive_agent() -> Headless {
    Headless::new(|_| async {
        Err("nobody can sign in here: run `mcp-exact inspect --headless URL` once, which keeps the token".to_owned())
    })
}

/// Adds OAuth to the requests to an endpoint; returns an error if OAuth cannot be used with its URL.
#[cfg(feature = "bridge")]
pub fn with_oauth_client(
    endpoint: HttpEndpoint,
    oauth: OAuth,
    names: Names,
) -> anyhow::Result<HttpEndpoint> {
    let url = endpoint.target().to_string();
    let mut refused = None;
    let endpoint = endpoint.map_client(|inner| match oauth.client(&url, inner.clone()) {
        Ok(client) => Arc::new(NamingClient { client, names }) as Arc<dyn HttpClient>,
        Err(error) => {
            refused = Some(error);
            inner
        }
    });
    match refused {
        None => Ok(endpoint),
        Some(error) => {
            let error = anyhow::Error::msg(names.describe(&error));
            Err(error.context("the server cannot be used with OAuth"))
        }
    }
}

/// HTTP client with OAuth whose errors name settings of the program.
#[cfg(feature = "bridge")]
struct NamingClient {
    client: OAuthClient,
    names: Names,
}

#[cfg(feature = "bridge")]
impl HttpClient for NamingClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        let sent = self.client.send(request);
        Box::pin(async move {
            sent.await
                .map_err(|error| match error.downcast::<OAuthError>() {
                    Ok(error) => self.names.describe(&error).into(),
                    Err(error) => error,
                })
        })
    }
}

/// Credentials with which the gateway obtains tokens for a server of its configuration.
#[cfg(feature = "bridge")]
#[derive(Clone, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields, rename_all = "kebab-case")]
pub struct ServerOAuth {
    /// Grant by which the gateway obtains a token; by default that of a user who signs in, or the best one of each user.
    grant: Option<Grant>,
    /// Id of a registered client.
    client_id: Option<String>,
    /// Client secret, which may contain references to environment variables.
    secret: Option<String>,
    /// Issuer of the authorization server to use, if the server names several.
    issuer: Option<String>,
    /// Scopes to request in addition to those that the server requires.
    scopes: Vec<String>,
    /// Authorization servers that support PKCE although their metadata does not say so.
    assume_pkce: Vec<String>,
    /// Authorization servers whose metadata may name them with or without a slash at the end.
    ignore_issuer_slash: Vec<String>,
    /// Further parameters of the authorization request, as `NAME=VALUE`.
    auth_parameter: Vec<String>,
    /// Resource that tokens are requested for, instead of the server's URL.
    auth_resource: Option<String>,
    /// True if authorization servers may be at private addresses.
    allow_private_addresses: bool,
    /// True if a server of this machine may name authorization servers at other ports of it.
    allow_other_ports: bool,
    /// True if requests for tokens do not name the server.
    no_resource_indicator: bool,
}

#[cfg(feature = "bridge")]
impl std::fmt::Debug for ServerOAuth {
    /// Omits the client secret.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ServerOAuth")
            .field("grant", &self.grant)
            .field("client_id", &self.client_id)
            .field("issuer", &self.issuer)
            .field("scopes", &self.scopes)
            .finish_non_exhaustive()
    }
}

/// OAuth grant by which the gateway obtains a token.
#[cfg(feature = "bridge")]
#[derive(Debug, Clone, Copy, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "kebab-case")]
enum Grant {
    /// A user signs in with a browser; a stored token of an earlier sign-in is reused.
    AuthorizationCode,
    /// The gateway obtains tokens with its own client secret, without a user.
    ClientCredentials,
    /// The token of each caller is exchanged at its issuer.
    TokenExchange,
}

#[cfg(feature = "bridge")]
impl ServerOAuth {
    /// Returns the OAuth configuration for the server. `expand` replaces references to environment variables in the
    /// secret.
    pub fn oauth(&self, expand: impl Fn(&str) -> anyhow::Result<String>) -> anyhow::Result<OAuth> {
        let secret = self.secret.as_deref().map(expand).transpose()?;
        let oauth = match self.grant.unwrap_or(Grant::AuthorizationCode) {
            Grant::TokenExchange => {
                anyhow::bail!(
                    "oauth: the grant token-exchange is for servers with `auth = \"user\"`"
                )
            }
            Grant::ClientCredentials => {
                let id = self.client_id.as_deref();
                let id = id.context("oauth: the grant client-credentials needs a `client-id`")?;
                let secret =
                    secret.context("oauth: the grant client-credentials needs a `secret`")?;
                let oauth = OAuth::client_credentials(id, secret);
                let oauth = self.with_issuer(oauth).scopes(&self.scopes);
                return self.relaxed().apply(oauth, Names::Keys);
            }
            Grant::AuthorizationCode => self.code_client(secret)?,
        };
        let oauth = self
            .relaxed()
            .apply(oauth.scopes(&self.scopes), Names::Keys)?;
        Ok(with_store(oauth.user_agent(create_browser())))
    }

    /// Returns the client for the authorization code grant: a registered one, or one that registers itself.
    fn code_client(&self, secret: Option<String>) -> anyhow::Result<OAuth> {
        match (&self.client_id, &self.issuer) {
            (Some(id), Some(issuer)) => {
                let oauth = OAuth::registered(issuer, id);
                Ok(match secret {
                    Some(secret) => oauth.secret(secret),
                    None => oauth,
                })
            }
            (Some(_), None) => {
                anyhow::bail!("oauth: `client-id` needs the `issuer` that has given it")
            }
            (None, _) => Ok(self.with_issuer(OAuth::new("mcp-exact"))),
        }
    }

    /// Returns the clients of the gateway for a server that each user reaches with credentials of their own; `exchange` is that at
    /// the issuer of the callers. `expand` replaces references to environment variables in the secret.
    pub fn user_clients(
        &self,
        exchange: OAuth,
        expand: impl Fn(&str) -> anyhow::Result<String>,
    ) -> anyhow::Result<UserClients> {
        let secret = self.secret.as_deref().map(expand).transpose()?;
        let grant = match self.grant {
            None => UserGrant::Automatic,
            Some(Grant::AuthorizationCode) => UserGrant::AuthorizationCode,
            Some(Grant::TokenExchange) => UserGrant::TokenExchange,
            Some(Grant::ClientCredentials) => anyhow::bail!(
                "oauth: with the grant client-credentials all users have the account of the gateway: leave out `auth = \"user\"`"
            ),
        };
        let of_server = |oauth: OAuth| {
            let oauth = oauth.scopes(&self.scopes);
            self.relaxed().apply(oauth, Names::Keys)
        };
        Ok(UserClients {
            grant,
            oauth: of_server(self.code_client(secret)?)?,
            exchange: of_server(exchange)?,
        })
    }

    fn relaxed(&self) -> Relaxed<'_> {
        Relaxed {
            resource: self.auth_resource.as_deref(),
            assume_pkce: &self.assume_pkce,
            auth_parameter: &self.auth_parameter,
            ignore_issuer_slash: &self.ignore_issuer_slash,
            allow_private_addresses: self.allow_private_addresses,
            allow_other_ports: self.allow_other_ports,
            no_resource_indicator: self.no_resource_indicator,
        }
    }

    /// Sets the issuer, if one is configured.
    fn with_issuer(&self, oauth: OAuth) -> OAuth {
        match &self.issuer {
            Some(issuer) => oauth.issuer(issuer),
            None => oauth,
        }
    }
}

/// Adds the store of tokens in the user's data folder. Without such a folder (no variable HOME), tokens are kept for this command
/// alone: servers that need no token are used all the same.
#[cfg(unix)]
fn with_store(oauth: OAuth) -> OAuth {
    match super::data_folder::data_folder() {
        Some(data) => oauth.store(FileStore::new(data.join("tokens"))),
        None => oauth,
    }
}

/// Adds no store, because this system has no files that only their owner can read.
#[cfg(not(unix))]
fn with_store(oauth: OAuth) -> OAuth {
    oauth
}
