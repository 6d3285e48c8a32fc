//! Metadata documents of protected resources (RFC 9728) and of authorization servers (RFC 8414, OpenID Connect
//! Discovery).
//!
//! URLs are strings, because issuers and resources are compared byte by byte.

use serde::{Deserialize, Serialize};

/// Metadata of a protected resource (RFC 9728, section 2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ResourceMetadata {
    /// Identifier of the resource, which is the audience of its tokens.
    pub resource: String,
    /// Issuers of the authorization servers.
    #[serde(default)]
    pub authorization_servers: Vec<String>,
    /// Scopes that clients should request.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub scopes_supported: Option<Vec<String>>,
    /// Methods of sending tokens, such as `header`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub bearer_methods_supported: Option<Vec<String>>,
    /// Display name of the resource.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_name: Option<String>,
    /// URL of the documentation for developers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub resource_documentation: Option<String>,
    /// Signature algorithms of DPoP proofs.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// True if tokens must be bound to a key (RFC 9449).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub dpop_bound_access_tokens_required: Option<bool>,
}

/// Metadata of an authorization server (RFC 8414, section 2).
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ServerMetadata {
    /// Identifier of the authorization server.
    pub issuer: String,
    /// URL of the authorization endpoint, which the user's browser opens.
    #[serde(default)]
    pub authorization_endpoint: Option<String>,
    /// URL of the token endpoint.
    #[serde(default)]
    pub token_endpoint: Option<String>,
    /// URL of dynamic client registration.
    #[serde(default)]
    pub registration_endpoint: Option<String>,
    /// URL of the server's key set.
    #[serde(default)]
    pub jwks_uri: Option<String>,
    /// Scopes that the authorization server supports, for all of its resources.
    #[serde(default)]
    pub scopes_supported: Option<Vec<String>>,
    /// Supported grant types.
    #[serde(default)]
    pub grant_types_supported: Option<Vec<String>>,
    /// Methods of client authentication at the token endpoint.
    #[serde(default)]
    pub token_endpoint_auth_methods_supported: Option<Vec<String>>,
    /// Supported PKCE methods (RFC 7636).
    #[serde(default)]
    pub code_challenge_methods_supported: Option<Vec<String>>,
    /// True if redirects have the parameter `iss` (RFC 9207).
    #[serde(default)]
    pub authorization_response_iss_parameter_supported: Option<bool>,
    /// True if a client id may be the URL of a client metadata document.
    #[serde(default)]
    pub client_id_metadata_document_supported: Option<bool>,
    /// Signature algorithms of DPoP proofs.
    #[serde(default)]
    pub dpop_signing_alg_values_supported: Option<Vec<String>>,
    /// Supported profiles of the grant `jwt-bearer`, such as ID-JAG.
    #[serde(default)]
    pub authorization_grant_profiles_supported: Option<Vec<String>>,
}

impl ServerMetadata {
    /// Returns the metadata that clients assume for a 2025-03-26 server without a metadata document, with endpoints at
    /// the origin ("Fallbacks for Servers without Metadata Discovery").
    pub fn assumed_for_origin(origin: &str) -> Self {
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

    /// Returns true if a list contains a value; `None` if the list is absent.
    pub(crate) fn lists_value(list: &Option<Vec<String>>, value: &str) -> Option<bool> {
        list.as_ref()
            .map(|all| all.iter().any(|known| known == value))
    }
}

/// Result of a request for a metadata document.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum MetadataResponse<T> {
    /// The response contains the document.
    Found(T),
    /// The URL has no document.
    Absent,
    /// The document is a JSON object, but not such metadata, for this reason, which names the member.
    Unreadable(String),
    /// The document is temporarily unavailable: the status reports a problem of the server.
    Unavailable,
}

/// Classifies the response to a request for a metadata document.
///
/// A status for a server problem (408, 425, 429, 5xx) does not mean that the document is absent: an attacker who can
/// cause such a status must not be able to make the client use another document. A status 401 or 403 means that the
/// document is absent, because CDNs respond with these statuses for paths that do not exist.
pub fn parse_metadata_response<T: for<'de> Deserialize<'de>>(
    status: u16,
    body: &[u8],
) -> MetadataResponse<T> {
    match status {
        200..=299 => match serde_json::from_slice(body) {
            Ok(metadata) => MetadataResponse::Found(metadata),
            // Sites answer with a page at paths that do not exist.
            Err(_) if !body.trim_ascii_start().starts_with(b"{") => MetadataResponse::Absent,
            Err(error) => MetadataResponse::Unreadable(
                reason_of::<T>(body).unwrap_or_else(|| error.to_string()),
            ),
        },
        408 | 425 | 429 | 500.. => MetadataResponse::Unavailable,
        _ => MetadataResponse::Absent,
    }
}

/// Returns the reason why an object is not metadata, with the member that is wrong and its value; `None` for text that is not
/// JSON.
fn reason_of<T: for<'de> Deserialize<'de>>(body: &[u8]) -> Option<String> {
    let whole: serde_json::Map<String, serde_json::Value> = serde_json::from_slice(body).ok()?;
    let reason_against = |members| {
        let read: Result<T, _> = serde_json::from_value(serde_json::Value::Object(members));
        read.err().map(|error| error.to_string())
    };
    let reason = reason_against(whole.clone())?;
    let is_missing = |reason: &str| reason.starts_with("missing field");
    let wrong = whole.keys().find(|name| {
        let mut others = whole.clone();
        others.remove(*name);
        // Without an optional member that is wrong, the rest can be read; without a required one, that one is missing.
        reason_against(others).is_none_or(|left| is_missing(&left) && !is_missing(&reason))
    });
    Some(
        match wrong.and_then(|name| Some((name, whole.get(name)?))) {
            Some((name, value)) => {
                let value = crate::locate::to_short_line(value.to_string());
                format!("`{name}` is {value}: {reason}")
            }
            None => reason,
        },
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Status and body of a response determine whether the document was found, is absent, or is temporarily
    /// unavailable.
    #[test]
    fn metadata_responses_are_distinguished() {
        let body = br#"{"issuer":"https://a.example","token_endpoint":null,"other":[1]}"#;
        let expected = ServerMetadata {
            issuer: "https://a.example".to_owned(),
            ..ServerMetadata::default()
        };
        for (status, body, answer) in [
            (200, &body[..], MetadataResponse::Found(expected)),
            (200, b"<html>", MetadataResponse::Absent),
            (200, b"[]", MetadataResponse::Absent),
            (
                200,
                b"{}",
                MetadataResponse::Unreadable("missing field `issuer`".to_owned()),
            ),
            (
                200,
                br#"{"issuer":"i","token_endpoint":7}"#,
                MetadataResponse::Unreadable(
                    "`token_endpoint` is 7: invalid type: integer `7`, expected a string"
                        .to_owned(),
                ),
            ),
            (
                200,
                br#"{"issuer":["i"]}"#,
                MetadataResponse::Unreadable(
                    "`issuer` is [\"i\"]: invalid type: sequence, expected a string".to_owned(),
                ),
            ),
            (401, body, MetadataResponse::Absent),
            (404, body, MetadataResponse::Absent),
            (302, body, MetadataResponse::Absent),
            (429, body, MetadataResponse::Unavailable),
            (503, body, MetadataResponse::Unavailable),
        ] {
            assert_eq!(
                parse_metadata_response::<ServerMetadata>(status, body),
                answer
            );
        }
    }
}
