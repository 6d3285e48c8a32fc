//! Errors of authorization: the step that failed, the document or endpoint, and a hint.
//!
//! No variant contains a secret: of error responses, only the members `error` and `error_description` are kept.

use std::fmt;

use super::pkce::RandomnessError;

/// Reason why a client could not obtain a token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// A URL is invalid or not allowed.
    #[error("{what} `{url}` cannot be used: {reason}")]
    Url {
        /// Role of the URL.
        what: &'static str,
        /// The rejected URL.
        url: String,
        /// Description of the problem, and a hint.
        reason: String,
    },
    /// The server asks for a token, but its URL is plain HTTP to another host, where anyone on the network path could read the
    /// token.
    #[error(
        "the server at `{url}` asks for a token, and tokens are sent over https alone; use its https URL{}",
        OAuthRemedy::AllowPrivateAddresses
    )]
    Insecure {
        /// URL of the server's endpoint.
        url: String,
    },
    /// A document or endpoint could not be reached, or the server reported a temporary problem. A later attempt may
    /// succeed.
    #[error("{what} at `{url}` could not be fetched: {reason}; try again later")]
    Unavailable {
        /// Document or token that was requested.
        what: &'static str,
        /// URL of the request.
        url: String,
        /// Description of the failure.
        reason: String,
    },
    /// A document is JSON, but not the metadata that it is expected to be.
    #[error("{what} at `{url}` cannot be read: {reason}; the server has to correct it")]
    Unreadable {
        /// Document that was requested.
        what: &'static str,
        /// URL of the document.
        url: String,
        /// What is wrong, with the member and its value.
        reason: String,
    },
    /// The server does not publish protected resource metadata, neither at the URL in its challenge nor at the
    /// well-known URLs (RFC 9728, section 3.1).
    #[error(
        "there is no resource metadata at `{url}`; the server has to publish it{}",
        OAuthRemedy::Fallback
    )]
    NoResourceMetadata {
        /// URL in the challenge, or the first well-known URL.
        url: String,
    },
    /// The server demands a token, and names no authorization server: it publishes no metadata, and is none itself, as servers of
    /// 2025-03-26 can be, unless the application says that it is.
    #[error(
        "the server at `{url}` demands authorization (HTTP status 401) and names no authorization server{}",
        header_remedy(origin)
    )]
    NotNamed {
        /// URL of the server's endpoint.
        url: String,
        /// Issuer that the server is if it is one of 2025-03-26; `None` if it has turned out not to be.
        origin: Option<String>,
    },
    /// The metadata describes another resource (RFC 9728, section 3.3).
    #[error(
        "the resource metadata at `{url}` is about `{resource}`, not about `{endpoint}`; connect to the URL that the metadata names, or have the server corrected{}",
        OAuthRemedy::Resource(resource.clone())
    )]
    ResourceMismatch {
        /// URL of the metadata.
        url: String,
        /// Resource in the metadata.
        resource: String,
        /// URL of the server's endpoint.
        endpoint: String,
    },
    /// The resource metadata lists no authorization server.
    #[error(
        "the resource metadata at `{url}` names no authorization server; the server has to name one"
    )]
    NoAuthorizationServer {
        /// URL of the metadata.
        url: String,
    },
    /// The resource metadata does not list the issuer that the application has configured.
    #[error(
        "the resource metadata names the authorization servers {listed_issuers:?}, not `{issuer}`, which is configured; configure one of them"
    )]
    IssuerNotListed {
        /// Configured issuer.
        issuer: String,
        /// Issuers that the resource metadata lists.
        listed_issuers: Vec<String>,
    },
    /// No metadata of an authorization server was found.
    #[error(
        "no metadata of the authorization server `{issuer}` was found; tried {tried_urls:?}; correct the entry in `authorization_servers` of the MCP server"
    )]
    NoServerMetadata {
        /// Issuer whose metadata was requested.
        issuer: String,
        /// URLs that were requested.
        tried_urls: Vec<String>,
    },
    /// The metadata belongs to another issuer (RFC 8414, section 3.3).
    #[error(
        "the metadata at `{url}` belongs to the issuer `{found_issuer}`, not to `{expected}`; the two must be identical, so correct the entry in `authorization_servers` of the MCP server{}",
        slash_remedy(expected, found_issuer).map_or_else(String::new, |remedy| remedy.to_string())
    )]
    IssuerMismatch {
        /// URL of the metadata.
        url: String,
        /// Issuer whose metadata was requested.
        expected: String,
        /// Issuer in the received metadata.
        found_issuer: String,
    },
    /// The authorization server does not declare PKCE with S256.
    #[error(
        "the authorization server `{issuer}` does not list S256 in `code_challenge_methods_supported`; if it is known to support PKCE (Entra ID and Cognito leave the list out){}",
        OAuthRemedy::AssumePkce(issuer.clone())
    )]
    NoPkce {
        /// Issuer of the metadata.
        issuer: String,
    },
    /// The metadata lacks an endpoint that the grant needs.
    #[error(
        "the metadata of the authorization server `{issuer}` has no `{endpoint}`, which this grant needs; use another grant, or have the server corrected"
    )]
    NoEndpoint {
        /// Issuer of the metadata.
        issuer: String,
        /// Missing member of the metadata.
        endpoint: &'static str,
    },
    /// The client has no client id at this authorization server.
    #[error(
        "the authorization server `{issuer}` supports neither client metadata documents nor dynamic registration{}; register the client there{}",
        other_issuer_hint(configured),
        OAuthRemedy::Register
    )]
    NoClientId {
        /// Issuer identifier of the authorization server.
        issuer: String,
        /// Issuer that the configured client id belongs to.
        configured: Option<String>,
    },
    /// The token of a workload belongs to another authorization server.
    #[error(
        "the token of the workload is for the authorization server `{expected}`, not for `{issuer}`, which the resource names now{}",
        OAuthRemedy::Issuer(issuer.clone())
    )]
    OtherIssuer {
        /// Issuer identifier of the authorization server that the resource names.
        issuer: String,
        /// Issuer that the token was first used with.
        expected: String,
    },
    /// The authorization server refused to register the client.
    #[error(
        "the client could not be registered at `{url}`: {reason}; register it there by hand{}",
        OAuthRemedy::Register
    )]
    Registration {
        /// Registration endpoint.
        url: String,
        /// Error response of the registration endpoint.
        reason: String,
    },
    /// A parameter of authorization requests is one of the protocol, is there twice, or has no name.
    #[error(
        "`{name}` is not a further parameter of authorization requests: the client sets it itself, or it is there twice"
    )]
    Parameter {
        /// Name of the parameter.
        name: String,
    },
    /// The redirect to the client is not trustworthy.
    #[error("the answer of the authorization server `{issuer}` was refused: {reason}")]
    Callback {
        /// Issuer of the authorization request.
        issuer: String,
        /// Defect of the redirect.
        reason: String,
    },
    /// The user or the authorization server denied the request.
    #[error(
        "authorization was refused by `{issuer}`: {error}{}{}{}",
        description_suffix(description),
        hint_for_error(error),
        remedy_text(&remedy_for_error(error))
    )]
    Refused {
        /// Issuer of the authorization request.
        issuer: String,
        /// Error code, such as `access_denied`.
        error: String,
        /// Error description from the server.
        description: Option<String>,
    },
    /// The token endpoint returned an error (RFC 6749, section 5.2).
    #[error(
        "the token endpoint `{url}` answered {error}{}{}{}",
        description_suffix(description),
        hint_for_error(error),
        remedy_text(&remedy_for_error(error))
    )]
    Token {
        /// URL of the token endpoint.
        url: String,
        /// Error code, such as `invalid_grant`.
        error: String,
        /// Error description from the server.
        description: Option<String>,
    },
    /// The response of the token endpoint is invalid.
    #[error("the token endpoint `{url}` gave a token that cannot be used: {reason}")]
    BadToken {
        /// URL of the token endpoint.
        url: String,
        /// Description of the problem.
        reason: String,
    },
    /// The server repeatedly requires more scopes ("Step-Up Authorization Flow", retry limits).
    #[error(
        "the server wants the scopes `{scopes}` for {operation}, and still does after {attempts} further authorizations; ask the operator which scopes the account may have"
    )]
    StepUpLimit {
        /// Method and name of the request.
        operation: String,
        /// Scopes of the last challenge.
        scopes: String,
        /// Number of authorizations that were made for the operation.
        attempts: u32,
    },
    /// The server rejects a token that was just issued.
    #[error(
        "the server refuses a token that `{issuer}` has just issued for `{resource}`{}; compare the audience and issuer that the server expects (Keycloak and Entra ID write other audiences than the resource){}",
        description_suffix(description),
        OAuthRemedy::AuthorizationParameter
    )]
    StillUnauthorized {
        /// Issuer of the token.
        issuer: String,
        /// Resource that the token was requested for.
        resource: String,
        /// Error description from the server.
        description: Option<String>,
    },
    /// A URL refers to an address that is not allowed, to prevent server-side request forgery.
    #[error("{what} `{url}` was not opened: {reason}{}", remedy_text(remedy))]
    Blocked {
        /// Role of the URL.
        what: &'static str,
        /// The blocked URL.
        url: String,
        /// Rule that the address violates.
        reason: String,
        /// Setting that allows the URL; `None` if nothing does.
        remedy: Option<OAuthRemedy>,
    },
    /// The user agent failed, so that the user could not authorize the client.
    #[error("the user could not be asked: {0}")]
    UserAgent(String),
    /// The token store failed.
    #[error("the token store failed: {0}")]
    Store(String),
    /// A key or assertion is invalid.
    #[error("{0}")]
    Key(String),
    /// The operating system provides no random numbers.
    #[error("the system has no random numbers")]
    NoRandomness,
}

/// Setting by which an application allows what an [`OAuthError`] refuses; it displays as the end of the error, in the names of
/// this library.
///
/// A program whose users know other names says the error [without the remedy](OAuthError::without_remedy), and its own words.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum OAuthRemedy {
    /// `OAuth::allow_private_addresses`.
    AllowPrivateAddresses,
    /// `OAuth::allow_other_ports`.
    AllowOtherPorts,
    /// `OAuth::fallback`.
    Fallback,
    /// The header `Authorization` with a token of the user.
    Header,
    /// The header, or `OAuth::assume_pkce` with this issuer for a server of 2025-03-26.
    HeaderOrOrigin(String),
    /// `OAuth::ignore_issuer_slash` with this issuer.
    IgnoreSlash(String),
    /// `OAuth::assume_pkce` with this issuer.
    AssumePkce(String),
    /// `OAuth::resource` with this identifier.
    Resource(String),
    /// `OAuth::resource_indicator(false)`.
    NoResourceIndicator,
    /// `OAuth::authorization_parameter`, for an authorization server that takes the audience in one.
    AuthorizationParameter,
    /// `OAuth::registered`.
    Register,
    /// `OAuth::issuer` with this issuer.
    Issuer(String),
}

impl fmt::Display for OAuthRemedy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::AllowPrivateAddresses => {
                f.write_str(" (`OAuth::allow_private_addresses` allows it in a trusted network)")
            }
            Self::AllowOtherPorts => {
                f.write_str("; call `OAuth::allow_other_ports` if you trust it")
            }
            Self::Fallback => {
                f.write_str(" (one of 2025-03-26 has none: `OAuth::fallback` uses it)")
            }
            Self::Header => f.write_str(
                "; a token that you have goes into the header `Authorization`, instead of `OAuth::new`",
            ),
            Self::HeaderOrOrigin(origin) => write!(
                f,
                "{}; a server of 2025-03-26 that issues its tokens itself needs `OAuth::assume_pkce({origin:?})`",
                Self::Header
            ),
            Self::IgnoreSlash(issuer) => {
                write!(f, "; or call `OAuth::ignore_issuer_slash({issuer:?})`")
            }
            Self::AssumePkce(issuer) => write!(f, ", call `OAuth::assume_pkce({issuer:?})`"),
            Self::Resource(resource) => write!(
                f,
                "; if you trust it, call `OAuth::resource({resource:?})`"
            ),
            Self::NoResourceIndicator => {
                f.write_str("; or call `OAuth::resource_indicator(false)` and name its scopes")
            }
            Self::AuthorizationParameter => f.write_str(
                "; if the authorization server takes the audience in a parameter of its own, as Auth0 in `audience`, call `OAuth::authorization_parameter`",
            ),
            Self::Register => f.write_str(", and configure its id with `OAuth::registered`"),
            Self::Issuer(issuer) => {
                write!(
                    f,
                    "; if the change is intended, call `OAuth::issuer({issuer:?})`"
                )
            }
        }
    }
}

/// Returns the remedy for a server that names no authorization server.
fn header_remedy(origin: &Option<String>) -> String {
    match origin {
        Some(origin) => OAuthRemedy::HeaderOrOrigin(origin.clone()).to_string(),
        None => OAuthRemedy::Header.to_string(),
    }
}

/// Returns the remedy for issuers that differ by a slash at the end alone; `None` if they differ otherwise.
fn slash_remedy(expected: &str, found: &str) -> Option<OAuthRemedy> {
    let is_slash = crate::locate::is_same_issuer(expected, found);
    is_slash.then(|| OAuthRemedy::IgnoreSlash(expected.to_owned()))
}

/// Returns the remedy for an address that is not allowed; empty if there is none.
fn remedy_text(remedy: &Option<OAuthRemedy>) -> String {
    remedy
        .as_ref()
        .map_or_else(String::new, OAuthRemedy::to_string)
}

impl OAuthError {
    /// Returns the setting that allows what is refused; `None` if there is none.
    pub fn remedy(&self) -> Option<OAuthRemedy> {
        match self {
            Self::Insecure { .. } => Some(OAuthRemedy::AllowPrivateAddresses),
            Self::Blocked { remedy, .. } => remedy.clone(),
            Self::NoResourceMetadata { .. } => Some(OAuthRemedy::Fallback),
            Self::NotNamed { origin, .. } => Some(match origin {
                Some(origin) => OAuthRemedy::HeaderOrOrigin(origin.clone()),
                None => OAuthRemedy::Header,
            }),
            Self::IssuerMismatch {
                expected,
                found_issuer,
                ..
            } => slash_remedy(expected, found_issuer),
            Self::Refused { error, .. } | Self::Token { error, .. } => remedy_for_error(error),
            Self::StillUnauthorized { .. } => Some(OAuthRemedy::AuthorizationParameter),
            Self::NoPkce { issuer } => Some(OAuthRemedy::AssumePkce(issuer.clone())),
            Self::ResourceMismatch { resource, .. } => {
                Some(OAuthRemedy::Resource(resource.clone()))
            }
            Self::NoClientId { .. } | Self::Registration { .. } => Some(OAuthRemedy::Register),
            Self::OtherIssuer { issuer, .. } => Some(OAuthRemedy::Issuer(issuer.clone())),
            _ => None,
        }
    }

    /// Returns the error without the words of its [remedy](Self::remedy).
    pub fn without_remedy(&self) -> String {
        let mut text = self.to_string();
        if let Some(remedy) = self.remedy() {
            let remedy = remedy.to_string();
            text.truncate(text.strip_suffix(&remedy).map_or(text.len(), str::len));
        }
        text
    }

    /// Returns true if the authorization server has ended the grant of a user (`invalid_grant`), who must authorize again.
    pub fn is_grant_ended(&self) -> bool {
        matches!(self, Self::Token { error, .. } if error == "invalid_grant")
    }

    /// Returns true if the same attempt may succeed later, without a change of the configuration or a decision of the
    /// user.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Store(_) | Self::NoRandomness
        )
    }

    /// Returns true if the user may be asked again soon: nobody has decided anything, because the authorization server had a problem
    /// or the user was not reached.
    pub(crate) fn lets_ask_again(&self) -> bool {
        match self {
            Self::Refused { error, .. } => is_temporary_error(error),
            Self::UserAgent(_) => true,
            _ => false,
        }
    }
}

/// Returns true for the error codes of an authorization server that has a problem (RFC 6749, section 4.1.2.1).
pub(crate) fn is_temporary_error(code: &str) -> bool {
    matches!(code, "server_error" | "temporarily_unavailable")
}

impl From<RandomnessError> for OAuthError {
    fn from(_: RandomnessError) -> Self {
        Self::NoRandomness
    }
}

/// Returns the server's error description as the end of an error message; empty without a description.
fn description_suffix(description: &Option<String>) -> String {
    description
        .as_ref()
        .map_or(String::new(), |text| format!(" ({text})"))
}

/// Returns a hint if the configured client id belongs to another issuer; empty otherwise.
fn other_issuer_hint(configured: &Option<String>) -> String {
    configured.as_ref().map_or(String::new(), |issuer| {
        format!(", and the configured client id belongs to `{issuer}`")
    })
}

/// Returns the remedy for a known error of an authorization server; `None` for other errors.
fn remedy_for_error(error: &str) -> Option<OAuthRemedy> {
    (error == "invalid_target").then_some(OAuthRemedy::NoResourceIndicator)
}

/// Returns a hint for a known error of an authorization server; empty for other errors.
fn hint_for_error(error: &str) -> &'static str {
    match error {
        "invalid_target" => {
            "; the authorization server does not know the resource, so register it there (Entra ID: as application ID URI)"
        }
        // GitHub and Slack have names of their own.
        "invalid_client"
        | "incorrect_client_credentials"
        | "bad_client_secret"
        | "invalid_client_id" => "; check id, secret and authentication method of the client",
        "invalid_scope" => {
            "; the authorization server does not know a scope that was asked for, so define it there or have the MCP server name others"
        }
        "unauthorized_client" | "unsupported_grant_type" => {
            "; allow this grant for the client at the authorization server"
        }
        code if is_temporary_error(code) => "; it has a problem, so try again later",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Names of this library are in the remedies alone, and an error ends with its remedy.
    #[test]
    fn remedies_are_separable() {
        let text = || "https://as.example".to_owned();
        let blocked = |remedy| OAuthError::Blocked {
            what: "the issuer",
            url: text(),
            reason: "it is not https".to_owned(),
            remedy,
        };
        for error in [
            OAuthError::Insecure { url: text() },
            OAuthError::NoResourceMetadata { url: text() },
            OAuthError::NotNamed {
                url: text(),
                origin: None,
            },
            OAuthError::NoPkce { issuer: text() },
            OAuthError::Refused {
                issuer: text(),
                error: "invalid_target".to_owned(),
                description: None,
            },
            OAuthError::StillUnauthorized {
                issuer: text(),
                resource: text(),
                description: None,
            },
            OAuthError::ResourceMismatch {
                url: text(),
                resource: text(),
                endpoint: text(),
            },
            OAuthError::NoClientId {
                issuer: text(),
                configured: None,
            },
            OAuthError::OtherIssuer {
                issuer: text(),
                expected: text(),
            },
            OAuthError::Registration {
                url: text(),
                reason: text(),
            },
            blocked(Some(OAuthRemedy::AllowPrivateAddresses)),
            blocked(Some(OAuthRemedy::AllowOtherPorts)),
        ] {
            let (whole, short) = (error.to_string(), error.without_remedy());
            assert!(whole.contains("`OAuth::"), "{whole}");
            assert!(!short.contains("OAuth"), "{short}");
        }
        assert_eq!(blocked(None).to_string(), blocked(None).without_remedy());
    }

    /// Error messages for known errors of providers contain a hint for the configuration.
    #[test]
    fn known_provider_errors_have_hints() {
        for (error, remedy) in [
            ("invalid_target", "application ID URI"),
            ("invalid_client", "authentication method"),
            ("invalid_scope", "define it there"),
            ("unauthorized_client", "allow this grant"),
            ("server_error", "try again later"),
            ("temporarily_unavailable", "try again later"),
        ] {
            let refused = OAuthError::Refused {
                issuer: "https://as.example".to_owned(),
                error: error.to_owned(),
                description: None,
            };
            let token = OAuthError::Token {
                url: "https://as.example/token".to_owned(),
                error: error.to_owned(),
                description: Some("words of the server".to_owned()),
            };
            for message in [refused.to_string(), token.to_string()] {
                assert!(message.contains(remedy), "{message}");
            }
        }
    }
}
