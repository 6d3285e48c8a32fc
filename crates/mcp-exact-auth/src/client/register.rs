//! Dynamic client registration (RFC 7591).
//!
//! Creates the request body and parses the response body, without IO.

use serde::Deserialize;
use serde_json::{Value, json};

use super::error::OAuthError;
use super::gate::is_loopback;
use super::store::StoredClient;
use super::token::is_temporary_status;
use crate::locate;
use crate::metadata::{ServerMetadata, to_short_line};
use crate::secret::Secret;

/// Returns the body of a registration request. The body contains no scopes, because servers treat registered scopes as
/// a limit that a later step-up would exceed.
pub(crate) fn registration_body(name: &str, redirect_uri: &str, server: &ServerMetadata) -> Value {
    let lists = |method: &str| {
        ServerMetadata::lists_value(&server.token_endpoint_auth_methods_supported, method)
    };
    // A client on the user's machine cannot keep a secret, so that the client is public if the server allows it.
    // Metadata without a list means `client_secret_basic` (RFC 8414, section 2); for a 2025-03-26 server without
    // metadata nothing is known.
    let is_assumed = *server == ServerMetadata::assumed_for_origin(&server.issuer);
    let method = match (lists("none"), lists("client_secret_basic")) {
        (Some(true), _) => "none",
        (None, _) if is_assumed => "none",
        (None, _) | (_, Some(true)) => "client_secret_basic",
        _ => "client_secret_post",
    };
    let is_native = match locate::parse_url(redirect_uri) {
        Some(url) => is_loopback(&url),
        None => true,
    };
    json!({
        "client_name": name,
        "redirect_uris": [redirect_uri],
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": method,
        "application_type": if is_native { "native" } else { "web" },
    })
}

/// Response of the registration endpoint (RFC 7591, section 3.2).
#[derive(Deserialize)]
struct RegistrationResponse {
    #[serde(default)]
    client_id: String,
    #[serde(default)]
    client_secret: Option<Secret>,
    #[serde(default)]
    client_secret_expires_at: Option<f64>,
    #[serde(default)]
    token_endpoint_auth_method: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    error_description: Option<String>,
}

/// Returns true if a body is an error of a registration endpoint (RFC 7591, section 3.2.2).
pub(crate) fn is_registration_error(body: &[u8]) -> bool {
    let answer = serde_json::from_slice::<RegistrationResponse>(body).ok();
    let error = answer.and_then(|answer| answer.error).unwrap_or_default();
    error.starts_with("invalid_") || error == "unapproved_software_statement"
}

/// Parses the response to a registration request. The client metadata in the response replaces the requested metadata.
pub(crate) fn parse_registration(
    url: &str,
    redirect_uri: &str,
    status: u16,
    body: &[u8],
) -> Result<StoredClient, OAuthError> {
    let refused = |reason: String| OAuthError::Registration {
        url: url.to_owned(),
        reason,
    };
    if is_temporary_status(status) {
        return Err(OAuthError::Unavailable {
            what: "the registration endpoint",
            url: url.to_owned(),
            reason: format!("it answered with status {status}"),
        });
    }
    let answer = serde_json::from_slice::<RegistrationResponse>(body).ok();
    if !(200..300).contains(&status) {
        let message = answer.and_then(|answer| {
            let error = answer.error?;
            let description = answer.error_description.map(|text| format!(" ({text})"));
            Some(to_short_line(error + &description.unwrap_or_default()))
        });
        let message = message.unwrap_or_else(|| format!("it answered with status {status}"));
        return Err(refused(message));
    }
    let answer = answer.filter(|answer| !answer.client_id.is_empty());
    let answer = answer.ok_or_else(|| refused("the answer has no `client_id`".to_owned()))?;
    Ok(StoredClient {
        client_id: answer.client_id,
        client_secret: answer.client_secret.filter(|secret| !secret.is_empty()),
        secret_expires_at: answer.client_secret_expires_at.unwrap_or(0.0) as u64,
        auth_method: answer.token_endpoint_auth_method,
        redirect_uri: Some(redirect_uri.to_owned()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The requested authentication method and application type depend on the methods that the server lists, and on the
    /// redirect URI.
    #[test]
    fn registration_methods_depend_on_server() {
        let server = |methods: &[&str]| ServerMetadata {
            token_endpoint_auth_methods_supported: Some(
                methods.iter().map(|&method| method.to_owned()).collect(),
            ),
            ..ServerMetadata::default()
        };
        for (methods, uri, method, kind) in [
            (
                &["none"][..],
                "http://127.0.0.1:1/callback",
                "none",
                "native",
            ),
            (
                &["client_secret_basic", "none"],
                "app.example:/cb",
                "none",
                "native",
            ),
            (
                &["client_secret_post", "client_secret_basic"],
                "https://a.example/cb",
                "client_secret_basic",
                "web",
            ),
            (
                &["client_secret_post"],
                "http://localhost/cb",
                "client_secret_post",
                "native",
            ),
        ] {
            let body = registration_body("x", uri, &server(methods));
            assert_eq!(body["token_endpoint_auth_method"], method);
            assert_eq!(body["application_type"], kind);
            assert_eq!(body.get("scope"), None);
        }
        let unlisted = ServerMetadata {
            issuer: "https://as.example".to_owned(),
            ..ServerMetadata::default()
        };
        let assumed = ServerMetadata::assumed_for_origin("https://as.example");
        for (server, method) in [(unlisted, "client_secret_basic"), (assumed, "none")] {
            let body = registration_body("x", "http://127.0.0.1:1/callback", &server);
            assert_eq!(body["token_endpoint_auth_method"], method);
        }
    }

    /// The registered client has the metadata of the response instead of the requested metadata.
    #[test]
    fn registration_response_replaces_metadata() {
        let read = |status, body: &str| {
            parse_registration("https://as.example/r", "cb", status, body.as_bytes())
        };
        let client = read(
            201,
            r#"{"client_id":"c","client_secret":"","client_secret_expires_at":0,"token_endpoint_auth_method":"none"}"#,
        );
        let client = client.expect("a client");
        assert_eq!((&*client.client_id, &client.client_secret), ("c", &None));
        assert_eq!(client.auth_method.as_deref(), Some("none"));
        for (status, body, message) in [
            (
                400,
                r#"{"error":"invalid_redirect_uri"}"#,
                "invalid_redirect_uri",
            ),
            (403, "no", "status 403"),
            (429, r#"{"error":"slow"}"#, "try again later"),
            (503, "", "try again later"),
            (201, "{}", "no `client_id`"),
        ] {
            let error = read(status, body).expect_err("refused").to_string();
            assert!(error.contains(message), "{error}");
        }
    }

    /// RFC 7591, section 3.2.2: the errors of a registration endpoint; whatever else answers at the default path of a 2025-03-26
    /// server is none.
    #[test]
    fn registration_errors_are_known() {
        for (body, expected) in [
            (r#"{"error":"invalid_redirect_uri"}"#, true),
            (r#"{"error":"invalid_client_metadata"}"#, true),
            (r#"{"error":"unapproved_software_statement"}"#, true),
            (r#"{"error":"not_found"}"#, false),
            (r#"{"message":"invalid_redirect_uri"}"#, false),
            ("<html>", false),
            ("", false),
        ] {
            assert_eq!(is_registration_error(body.as_bytes()), expected, "{body}");
        }
    }
}
