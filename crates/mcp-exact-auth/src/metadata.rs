//! Metadata documents: of protected resources (RFC 9728) and of authorization servers (RFC 8414, OpenID Connect Discovery).
//!
//! URLs stay strings: issuers and resources are compared byte for byte.

use serde::{Deserialize, Serialize};

/// Metadata of a protected resource (RFC 9728, section 2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// Identifier of the resource: what tokens have as audience.
    pub resource: String,
    /// Issuers of the authorization servers.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// Scopes that clients ask for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// Methods of sending tokens.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// Name for people.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// Page for developers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// Signature algorithms of DPoP proofs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// True if tokens have to be bound to a key (RFC 9449).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
}

/// Metadata of an authorization server (RFC 8414, section 2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// Identifier of the authorization server.
    pub issuer: String,
    /// URL that the user's browser opens.
    #[serde(default)]
    pub authorization_endpoint: Option<String>,
    /// URL of the token endpoint.
    #[serde(default)]
    pub token_endpoint: Option<String>,
    /// URL of dynamic client registration.
    #[serde(default)]
    pub registration_endpoint: Option<String>,
    /// URL of the server's keys.
    #[serde(default)]
    pub jwks_uri: Option<String>,
    /// Scopes of the authorization server, of all its resources.
    #[serde(default)]
    pub scopes_supported: Option<Vec<String>>,
    /// Grants.
    #[serde(default)]
    pub grant_types_supported: Option<Vec<String>>,
    /// Methods of client authentication at the token endpoint.
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// PKCE methods (RFC 7636).
    #[serde(default)]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// True if redirects carry `iss` (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: Option<bool>,
    /// True if the id of a client may be the URL of its metadata.
    #[serde(default)]
    pub client_id_metadata_document_supported: Option<bool>,
    /// Signature algorithms of DPoP proofs.
    #[serde(default)]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Profiles of the grant `jwt-bearer`, such as ID-JAG.
    #[serde(default)]
    pub authorization_grant_profiles_supported: Option<Vec<String>>,
}

impl ServerMetadata {
    /// Returns the metadata that 2025-03-26 assumes of a server without a document ("Fallbacks for Servers without Metadata
    /// Discovery"): endpoints at the origin.
    pub fn assumed(origin: &str) -> Self {
        let at = |path: &str| Some(format!("{origin}{path}"));
        Self {
            issuer: origin.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..Self::default()
        }
    }

    /// Returns whether a list names a value; `None` when the list is absent.
    pub(crate) fn lists(list: &Option<Vec<String>>, value: &str) -> Option<bool> {
        list.as_ref()
            .map(|all| all.iter().any(|known| known == value))
    }
}

/// Meaning of the response to a request for a metadata document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Answer<T> {
    /// The document.
    Found(T),
    /// There is no document at this URL.
    Absent,
    /// The document may exist but could not be fetched: the status reports a problem of the server.
    Unavailable,
}

/// Reads the response to a request for a metadata document.
///
/// A status of the server's trouble (408, 425, 429, 5xx) is not an absence: an attacker who can cause it must not be able to
/// move the client to another document. CDNs answer 401 and 403 for paths that do not exist.
pub fn read_answer<T: for<'de> Deserialize<'de>>(status: u16, body: &[u8]) -> Answer<T> {
    match status {
        200..=299 => serde_json::from_slice(body).map_or(Answer::Absent, Answer::Found),
        408 | 425 | 429 | 500.. => Answer::Unavailable,
        _ => Answer::Absent,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_told_apart() {
        let body = br#"{"issuer":"https://a.example","token_endpoint":null,"other":[1]}"#;
        let expected = ServerMetadata {
            issuer: "https://a.example".to_owned(),
            ..ServerMetadata::default()
        };
        for (status, body, answer) in [
            (200, &body[..], Answer::Found(expected)),
            (200, b"<html>", Answer::Absent),
            (200, b"{}", Answer::Absent),
            (401, body, Answer::Absent),
            (404, body, Answer::Absent),
            (302, body, Answer::Absent),
            (429, body, Answer::Unavailable),
            (503, body, Answer::Unavailable),
        ] {
            assert_eq!(read_answer::<ServerMetadata>(status, body), answer);
        }
    }
}
