//! Errors of authorization: the step that failed, the document or endpoint, and what to do.
//!
//! No variant holds a secret: what servers answer is reduced to the fields `error` and `error_description`.

use super::pkce::NoRandomness;

/// Reason why a client has no token.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OAuthError {
    /// A URL cannot be used.
    #[error("{what} `{url}` cannot be used: {reason}")]
    Url {
        /// Role of the URL.
        what: &'static str,
        /// The URL.
        url: String,
        /// Description of the problem, and the remedy.
        reason: String,
    },
    /// A document or endpoint could not be reached, or its server has a problem. Trying again later may help.
    #[error("{what} at `{url}` could not be had: {reason}; try again later")]
    Unavailable {
        /// Document or token that was requested.
        what: &'static str,
        /// The URL.
        url: String,
        /// Description of the failure.
        reason: String,
    },
    /// The server publishes no protected resource metadata: neither at the URL that its challenge names nor at the well-known ones
    /// (RFC 9728, section 3.1).
    #[error(
        "there is no resource metadata at `{url}`; the server has to publish it (one of 2025-03-26 has none: `OAuth::fallback` uses it)"
    )]
    NoResourceMetadata {
        /// The URL of the challenge, or the first that was tried.
        url: String,
    },
    /// The metadata is about another resource (RFC 9728, section 3.3).
    #[error(
        "the resource metadata at `{url}` is about `{resource}`, not about `{endpoint}`; connect to the URL that the metadata names, or have the server corrected"
    )]
    ResourceMismatch {
        /// URL of the metadata.
        url: String,
        /// The resource that it names.
        resource: String,
        /// The endpoint of the server.
        endpoint: String,
    },
    /// The resource names no authorization server.
    #[error(
        "the resource metadata at `{url}` names no authorization server; the server has to name one"
    )]
    NoAuthorizationServer {
        /// URL of the metadata.
        url: String,
    },
    /// The resource does not name the issuer that the program has chosen.
    #[error(
        "the resource metadata names the authorization servers {named:?}, not `{issuer}`, which is configured; configure one of them"
    )]
    IssuerNotNamed {
        /// The configured issuer.
        issuer: String,
        /// The issuers of the metadata.
        named: Vec<String>,
    },
    /// No metadata of an authorization server was found.
    #[error(
        "no metadata of the authorization server `{issuer}` was found; tried {tried:?}; correct the entry in `authorization_servers` of the MCP server"
    )]
    NoServerMetadata {
        /// The issuer.
        issuer: String,
        /// The URLs that were asked.
        tried: Vec<String>,
    },
    /// The metadata belongs to another issuer (RFC 8414, section 3.3).
    #[error(
        "the metadata at `{url}` belongs to the issuer `{found}`, not to `{expected}`; the two have to be equal byte for byte, so correct the entry in `authorization_servers` of the MCP server"
    )]
    IssuerMismatch {
        /// URL of the metadata.
        url: String,
        /// Issuer that was asked for.
        expected: String,
        /// Issuer in the document.
        found: String,
    },
    /// The authorization server does not declare PKCE with S256.
    #[error(
        "the authorization server `{issuer}` does not list S256 in `code_challenge_methods_supported`; if it is known to support PKCE (Entra ID and Cognito leave the list out), call `assume_pkce(\"{issuer}\")`"
    )]
    NoPkce {
        /// The issuer.
        issuer: String,
    },
    /// The metadata lacks an endpoint that the grant needs.
    #[error(
        "the metadata of the authorization server `{issuer}` has no `{endpoint}`, which this grant needs; use another grant, or have the server corrected"
    )]
    NoEndpoint {
        /// The issuer.
        issuer: String,
        /// Member of the metadata.
        endpoint: &'static str,
    },
    /// The client has no id at this authorization server.
    #[error(
        "the authorization server `{issuer}` supports neither client metadata documents nor dynamic registration{}; register the client there and configure its id with `OAuth::registered`",
        other_issuer(configured)
    )]
    NoClientId {
        /// The issuer.
        issuer: String,
        /// Issuer that the configured id belongs to.
        configured: Option<String>,
    },
    /// The server refuses to register the client.
    #[error(
        "the client could not be registered at `{url}`: {reason}; register it there by hand and configure its id with `OAuth::registered`"
    )]
    Registration {
        /// The endpoint.
        url: String,
        /// Its answer.
        reason: String,
    },
    /// The redirect back to the client cannot be trusted.
    #[error("the answer of the authorization server `{issuer}` was refused: {reason}")]
    Callback {
        /// Issuer that was asked.
        issuer: String,
        /// Defect of the answer.
        reason: String,
    },
    /// The user or the authorization server refused.
    #[error(
        "authorization was refused by `{issuer}`: {error}{}{}",
        described(description),
        hint(error)
    )]
    Refused {
        /// The issuer.
        issuer: String,
        /// Code, such as `access_denied`.
        error: String,
        /// Words of the server.
        description: Option<String>,
    },
    /// The token endpoint answered with an error (RFC 6749, section 5.2).
    #[error(
        "the token endpoint `{url}` answered {error}{}{}",
        described(description),
        hint(error)
    )]
    Token {
        /// The endpoint.
        url: String,
        /// Code, such as `invalid_grant`.
        error: String,
        /// Words of the server.
        description: Option<String>,
    },
    /// The response of the token endpoint cannot be used.
    #[error("the token endpoint `{url}` gave a token that cannot be used: {reason}")]
    BadToken {
        /// The endpoint.
        url: String,
        /// Description of the problem.
        reason: String,
    },
    /// The server wants more scopes again and again ("Step-Up Authorization Flow", retry limits).
    #[error(
        "the server wants the scopes `{scopes}` for {operation}, and still does after {rounds} further authorizations; ask the operator which scopes the account may have"
    )]
    StepUpLimit {
        /// Method and name of the request.
        operation: String,
        /// Scopes of the last challenge.
        scopes: String,
        /// Number of authorizations for the operation.
        rounds: u32,
    },
    /// The server refuses a token that was just obtained.
    #[error(
        "the server refuses a token that `{issuer}` has just issued for `{resource}`{}; compare the audience and issuer that the server expects (Keycloak and Entra ID write other audiences than the resource)",
        described(description)
    )]
    StillUnauthorized {
        /// The issuer.
        issuer: String,
        /// The resource.
        resource: String,
        /// Words of the server.
        description: Option<String>,
    },
    /// A URL leads to an address that must not be reached (server-side request forgery).
    #[error("{what} `{url}` was not opened: {reason}")]
    Blocked {
        /// Role of the URL.
        what: &'static str,
        /// The URL.
        url: String,
        /// The rule.
        reason: String,
    },
    /// The user could not be asked.
    #[error("the user could not be asked: {0}")]
    UserAgent(String),
    /// The token store failed.
    #[error("the token store failed: {0}")]
    Store(String),
    /// A key or assertion cannot be used.
    #[error("{0}")]
    Key(String),
    /// The system has no random numbers.
    #[error("the system has no random numbers")]
    NoRandomness,
}

impl OAuthError {
    /// Returns true if the same attempt may succeed later, without a change of configuration or a decision of the user.
    pub fn is_transient(&self) -> bool {
        matches!(
            self,
            Self::Unavailable { .. } | Self::Store(_) | Self::NoRandomness
        )
    }
}

impl From<NoRandomness> for OAuthError {
    fn from(_: NoRandomness) -> Self {
        Self::NoRandomness
    }
}

fn described(description: &Option<String>) -> String {
    description
        .as_ref()
        .map_or(String::new(), |text| format!(" ({text})"))
}

fn other_issuer(configured: &Option<String>) -> String {
    configured.as_ref().map_or(String::new(), |issuer| {
        format!(", and the configured client id belongs to `{issuer}`")
    })
}

/// Remedies for known errors of providers.
fn hint(error: &str) -> &'static str {
    match error {
        "invalid_target" => {
            "; the authorization server does not know the resource, so register it there (Entra ID: as application ID URI)"
        }
        "invalid_client" => "; check id, secret and authentication method of the client",
        "invalid_scope" => {
            "; the authorization server does not know a scope that was asked for, so define it there or have the MCP server name others"
        }
        "unauthorized_client" | "unsupported_grant_type" => {
            "; allow this grant for the client at the authorization server"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Whoever reads an error of a provider learns what to configure.
    #[test]
    fn errors_of_providers_name_a_remedy() {
        for (error, remedy) in [
            ("invalid_target", "application ID URI"),
            ("invalid_client", "authentication method"),
            ("invalid_scope", "define it there"),
            ("unauthorized_client", "allow this grant"),
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
            for words in [refused.to_string(), token.to_string()] {
                assert!(words.contains(remedy), "{words}");
            }
        }
    }
}
