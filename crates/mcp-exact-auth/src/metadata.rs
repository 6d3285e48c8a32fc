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
    /// URL of the revocation of tokens (RFC 7009).
    #[serde(default)]
    pub revocation_endpoint: Option<String>,
    /// Methods of client authentication at the revocation endpoint.
    #[serde(default)]
    pub revocation_endpoint_auth_methods_supported: Option<Vec<String>>,
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
            Err(error) => match serde_json::from_slice(body) {
                Ok(object) => classify_object::<T>(&object, &error),
                Err(error) => MetadataResponse::Unreadable(error.to_string()),
            },
        },
        408 | 425 | 429 | 500.. => MetadataResponse::Unavailable,
        _ => MetadataResponse::Absent,
    }
}

/// Classifies an object that cannot be decoded because of `error`. Without any member of such metadata it is something else, such
/// as an error that a site reports with status 200; otherwise the reason names the member that is wrong and its value.
fn classify_object<T: for<'de> Deserialize<'de>>(
    object: &serde_json::Map<String, serde_json::Value>,
    error: &serde_json::Error,
) -> MetadataResponse<T> {
    let names = member_names::<T>();
    if !names.iter().any(|name| object.contains_key(*name)) {
        return MetadataResponse::Absent;
    }
    let wrong = find_wrong_member::<T>(object);
    MetadataResponse::Unreadable(wrong.unwrap_or_else(|| error_without_position(error)))
}

/// Returns why a JSON text cannot be decoded as a structure, which failed with `error`: the member that is wrong and its value, if
/// one is.
pub(crate) fn describe_unreadable<T: for<'de> Deserialize<'de>>(
    json: &[u8],
    error: &serde_json::Error,
) -> String {
    let wrong = serde_json::from_slice(json).ok();
    let wrong = wrong.and_then(|object| find_wrong_member::<T>(&object));
    wrong.unwrap_or_else(|| error_without_position(error))
}

/// Returns the first member of a structure that cannot be decoded, with its value and the reason.
fn find_wrong_member<T: for<'de> Deserialize<'de>>(
    object: &serde_json::Map<String, serde_json::Value>,
) -> Option<String> {
    let mut names = member_names::<T>().iter();
    // Each member alone: what is then missing is not the fault of the member.
    names.find_map(|name| {
        let value = object.get(*name)?;
        let alone = serde_json::Map::from_iter([((*name).to_owned(), value.clone())]);
        let read: Result<T, _> = serde_json::from_value(alone.into());
        let reason = read.err()?.to_string();
        (!reason.starts_with("missing field")).then(|| {
            let value = to_short_line(value.to_string());
            format!("`{name}` is {value}: {}", to_short_line(reason))
        })
    })
}

/// Shortens text that was received from a peer to one line without control characters.
pub(crate) fn to_short_line(text: impl AsRef<str>) -> String {
    let characters = text.as_ref().chars().take(300);
    characters
        .map(|c| if c.is_control() { ' ' } else { c })
        .collect()
}

/// Returns the message of an error without its line and column, which nobody sees.
fn error_without_position(error: &serde_json::Error) -> String {
    let message = error.to_string();
    let position = format!(" at line {} column {}", error.line(), error.column());
    message
        .strip_suffix(&position)
        .unwrap_or(&message)
        .to_owned()
}

/// Returns the names of a structure's members.
fn member_names<'de, T: Deserialize<'de>>() -> &'static [&'static str] {
    /// Deserializer that only notes the members that are asked for.
    struct Probe<'n>(&'n mut &'static [&'static str]);

    impl<'de> serde::Deserializer<'de> for Probe<'_> {
        type Error = serde::de::value::Error;

        fn deserialize_any<V: serde::de::Visitor<'de>>(
            self,
            _: V,
        ) -> Result<V::Value, Self::Error> {
            Err(serde::de::Error::custom("only structures have members"))
        }

        fn deserialize_struct<V: serde::de::Visitor<'de>>(
            self,
            _: &'static str,
            fields: &'static [&'static str],
            visitor: V,
        ) -> Result<V::Value, Self::Error> {
            *self.0 = fields;
            self.deserialize_any(visitor)
        }

        serde::forward_to_deserialize_any! {
            bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
            newtype_struct seq tuple tuple_struct map enum identifier ignored_any
        }
    }

    let mut names: &'static [&'static str] = &[];
    // It always fails, once the names are known.
    let _ = T::deserialize(Probe(&mut names));
    names
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
            // Sites report errors as JSON with status 200.
            (200, b"{}", MetadataResponse::Absent),
            (
                200,
                br#"{"error":"not_found","message":7}"#,
                MetadataResponse::Absent,
            ),
            (
                200,
                br#"{"token_endpoint":"https://a.example/token"}"#,
                MetadataResponse::Unreadable("missing field `issuer`".to_owned()),
            ),
            (
                200,
                br#"{"issuer":"i","issuer":"j"}"#,
                MetadataResponse::Unreadable("duplicate field `issuer`".to_owned()),
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

    /// Reading a hostile document takes time in proportion to its size: with a step for each pair of its 110,000 members, this
    /// test would take minutes.
    #[test]
    fn documents_of_many_members_are_read_once() {
        let mut body = String::from(r#"{"issuer":7"#);
        for number in 0..110_000 {
            body.push_str(&format!(r#","{number}":1"#));
        }
        body.push('}');
        assert_eq!(
            parse_metadata_response::<ServerMetadata>(200, body.as_bytes()),
            MetadataResponse::Unreadable(
                "`issuer` is 7: invalid type: integer `7`, expected a string".to_owned()
            )
        );
    }

    /// 2025-03-26, "Fallbacks for Servers without Metadata Discovery": the default endpoints are at the origin. An application
    /// that assumes them assumes PKCE too.
    #[test]
    fn default_endpoints_are_at_the_origin() {
        let origin = "https://mcp.example";
        let at = |path: &str| Some(format!("{origin}{path}"));
        let expected = ServerMetadata {
            issuer: origin.to_owned(),
            authorization_endpoint: at("/authorize"),
            token_endpoint: at("/token"),
            registration_endpoint: at("/register"),
            code_challenge_methods_supported: Some(vec!["S256".to_owned()]),
            ..ServerMetadata::default()
        };
        assert_eq!(ServerMetadata::assumed_for_origin(origin), expected);
    }
}
