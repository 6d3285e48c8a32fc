//! The token endpoint (RFC 6749, section 3.2): client authentication, and parsing of responses.
//!
//! Creates forms and headers and parses bodies, without IO.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::AUTHORIZATION;
use http::{HeaderMap, HeaderValue};
use serde::Deserialize;
use url::form_urlencoded::{self, byte_serialize};

use super::error::{OAuthError, is_temporary_error};
use super::key::SigningKey;
use crate::metadata::{ServerMetadata, to_short_line};
use crate::scope::Scopes;
use crate::secret::Secret;

/// Credential that authenticates a client.
#[derive(Debug, Clone)]
pub(crate) enum Credential {
    /// The client is public and has no credential.
    None,
    /// Shared secret, and the authentication method of the registration, if any.
    Secret {
        /// Client secret.
        secret: Secret,
        /// Authentication method of the registration.
        method: Option<String>,
    },
    /// Private key that signs assertions.
    Key(SigningKey),
}

/// Form of a token request, with its headers.
pub(crate) struct TokenRequest {
    /// Serializer of the form.
    form: form_urlencoded::Serializer<'static, String>,
    /// Headers of the request.
    pub(crate) headers: HeaderMap,
}

impl TokenRequest {
    /// Creates a request with the grant type.
    pub(crate) fn new(grant_type: &str) -> Self {
        Self::empty().set_param("grant_type", grant_type)
    }

    /// Creates the request of another endpoint at which clients authenticate as at the token endpoint.
    pub(crate) fn empty() -> Self {
        // The capacity suffices for most requests: a growing buffer would leave copies of secrets in memory.
        Self {
            form: form_urlencoded::Serializer::new(String::with_capacity(4096)),
            headers: HeaderMap::new(),
        }
    }

    /// Adds a parameter.
    pub(crate) fn set_param(mut self, name: &str, value: &str) -> Self {
        self.form.append_pair(name, value);
        self
    }

    /// Adds a parameter if its value is present.
    pub(crate) fn set_optional_param(self, name: &str, value: Option<&str>) -> Self {
        match value {
            Some(value) => self.set_param(name, value),
            None => self,
        }
    }

    /// Adds scopes, if there are any.
    pub(crate) fn set_scopes(self, scopes: &Scopes) -> Self {
        if scopes.is_empty() {
            self
        } else {
            self.set_param("scope", &scopes.to_string())
        }
    }

    /// Authenticates the client by one method: the registered one if the server lists it, or else, for a secret,
    /// `client_secret_basic`, then `client_secret_post`. Without a list, `client_secret_basic` is used (RFC 8414,
    /// section 2).
    pub(crate) fn authenticate(
        mut self,
        client_id: &str,
        credential: &Credential,
        server: &ServerMetadata,
        now: u64,
    ) -> Result<Self, OAuthError> {
        let listed = &server.token_endpoint_auth_methods_supported;
        let lists = |method: &str| ServerMetadata::lists_value(listed, method);
        match credential {
            // A workload has no client id.
            Credential::None if client_id.is_empty() => Ok(self),
            Credential::None => Ok(self.set_param("client_id", client_id)),
            Credential::Key(key) => {
                let assertion = key.client_assertion(client_id, &server.issuer, now)?;
                let kind = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer";
                Ok(self
                    .set_param("client_id", client_id)
                    .set_param("client_assertion_type", kind)
                    .set_param("client_assertion", assertion.expose()))
            }
            Credential::Secret { secret, method } => {
                let registered = method.as_deref();
                let registered = registered.filter(|method| lists(method).unwrap_or(true));
                let method = registered.unwrap_or(match lists("client_secret_basic") {
                    Some(false) if lists("client_secret_post") == Some(true) => {
                        "client_secret_post"
                    }
                    Some(false) if lists("none") == Some(true) => "none",
                    _ => "client_secret_basic",
                });
                match method {
                    "client_secret_post" => Ok(self
                        .set_param("client_id", client_id)
                        .set_param("client_secret", secret.expose())),
                    "none" => Ok(self.set_param("client_id", client_id)),
                    _ => {
                        self.headers
                            .insert(AUTHORIZATION, basic_authorization(client_id, secret)?);
                        Ok(self)
                    }
                }
            }
        }
    }

    /// Returns the headers and the body.
    pub(crate) fn into_parts(self) -> (HeaderMap, Secret) {
        let Self { mut form, headers } = self;
        (headers, Secret::new(form.finish()))
    }
}

/// Returns the header of `client_secret_basic`. Id and secret are form-encoded before (RFC 6749, section 2.3.1).
fn basic_authorization(client_id: &str, secret: &Secret) -> Result<HeaderValue, OAuthError> {
    let encode = |text: &str| Secret::new(byte_serialize(text.as_bytes()).collect::<String>());
    let (id, secret) = (encode(client_id), encode(secret.expose()));
    let pair = Secret::new(format!("{}:{}", id.expose(), secret.expose()));
    let pair = Secret::new(STANDARD.encode(pair.expose()));
    let value = Secret::new(format!("Basic {}", pair.expose()));
    let value = HeaderValue::from_str(value.expose());
    let mut value = value.map_err(|error| OAuthError::Key(error.to_string()))?;
    value.set_sensitive(true);
    Ok(value)
}

/// A token that an authorization server has issued.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct IssuedToken {
    pub(crate) access_token: Secret,
    /// True if the token is bound to a key (token type DPoP).
    pub(crate) is_dpop: bool,
    /// Lifetime in seconds.
    pub(crate) expires_in: Option<u64>,
    pub(crate) refresh_token: Option<Secret>,
    /// Granted scopes; `None` if they equal the requested ones.
    pub(crate) scopes: Option<Scopes>,
}

/// Response of the token endpoint (RFC 6749, sections 5.1 and 5.2).
#[derive(Deserialize)]
struct TokenResponse {
    #[serde(default)]
    access_token: Secret,
    #[serde(default)]
    token_type: Option<String>,
    #[serde(default)]
    expires_in: Option<serde_json::Value>,
    #[serde(default)]
    refresh_token: Option<Secret>,
    #[serde(default)]
    scope: Option<String>,
    #[serde(default)]
    error: Option<String>,
    #[serde(default)]
    error_description: Option<String>,
}

/// Checks the type of a token from a token exchange (RFC 8693, section 2.2.1). Error responses are accepted here,
/// because [`parse_token_response`] handles them.
pub(crate) fn check_issued_type(url: &str, body: &[u8], expected: &str) -> Result<(), OAuthError> {
    /// Members of a token exchange response that determine whether the token has the expected type.
    #[derive(Deserialize)]
    struct TokenExchangeResponse {
        #[serde(default)]
        error: Option<String>,
        #[serde(default)]
        issued_token_type: Option<String>,
    }
    match serde_json::from_slice::<TokenExchangeResponse>(body) {
        Ok(TokenExchangeResponse {
            error: None,
            issued_token_type,
        }) if issued_token_type.as_deref() != Some(expected) => Err(OAuthError::BadToken {
            url: url.to_owned(),
            reason: format!("`issued_token_type` is not `{expected}`"),
        }),
        _ => Ok(()),
    }
}

/// Returns true for a status that says nothing about the request: the server has a problem, or receives too many requests.
pub(crate) fn is_temporary_status(status: u16) -> bool {
    matches!(status, 408 | 425 | 429 | 500..)
}

/// Parses the response of a token endpoint (RFC 6749, sections 5.1 and 5.2).
pub(crate) fn parse_token_response(
    url: &str,
    status: u16,
    body: &[u8],
) -> Result<IssuedToken, OAuthError> {
    let bad = |reason: &str| OAuthError::BadToken {
        url: url.to_owned(),
        reason: reason.to_owned(),
    };
    let parsed = serde_json::from_slice::<TokenResponse>(body);
    // Some servers send errors with status 200.
    let error = parsed.as_ref().ok().and_then(|parsed| {
        let error = to_short_line(parsed.error.as_ref()?);
        let description = parsed.error_description.as_ref().map(to_short_line);
        Some((error, description))
    });
    let code = error.as_ref().map(|(error, _)| &**error);
    // An overloaded server refuses no token, whatever its body says.
    if is_temporary_status(status) || code.is_some_and(is_temporary_error) {
        let code = code.map_or_else(String::new, |code| format!(": {code}"));
        return Err(OAuthError::Unavailable {
            what: "the token endpoint",
            url: url.to_owned(),
            reason: format!("it answered with status {status}{code}"),
        });
    }
    if let Some((error, description)) = error {
        return Err(OAuthError::Token {
            url: url.to_owned(),
            error,
            description,
        });
    }
    if !(200..300).contains(&status) {
        return Err(OAuthError::Token {
            url: url.to_owned(),
            error: format!("with status {status}"),
            description: None,
        });
    }
    let body = parsed.map_err(|_| bad("the answer is not a JSON object of a token"))?;
    if body.access_token.is_empty() {
        return Err(bad("`access_token` is missing"));
    }
    if HeaderValue::from_str(body.access_token.expose()).is_err() {
        return Err(bad("`access_token` cannot be sent in a header"));
    }
    let kind = body.token_type.as_deref().map(str::to_ascii_lowercase);
    let is_dpop = match kind.as_deref() {
        Some("bearer") => false,
        Some("dpop") => true,
        // RFC 8693, section 2.2.1: value for tokens that are not access tokens.
        Some("n_a") => false,
        Some(_) => return Err(bad("`token_type` is neither Bearer nor DPoP")),
        None => return Err(bad("`token_type` is missing")),
    };
    let seconds = |value: serde_json::Value| match value {
        serde_json::Value::String(text) => text.parse().ok(),
        value => value
            .as_u64()
            .or_else(|| value.as_f64().map(|seconds| seconds.max(0.0) as u64)),
    };
    Ok(IssuedToken {
        access_token: body.access_token,
        is_dpop,
        expires_in: body.expires_in.and_then(seconds),
        refresh_token: body.refresh_token.filter(|token| !token.is_empty()),
        scopes: body.scope.as_deref().map(Scopes::parse),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the metadata of a server that lists these authentication methods.
    fn server(methods: Option<&[&str]>) -> ServerMetadata {
        ServerMetadata {
            issuer: "https://as.example".to_owned(),
            token_endpoint_auth_methods_supported: methods
                .map(|methods| methods.iter().map(|&method| method.to_owned()).collect()),
            ..ServerMetadata::default()
        }
    }

    /// Returns a client secret with the authentication method of its registration.
    fn secret(method: Option<&str>) -> Credential {
        Credential::Secret {
            secret: "p:w d".into(),
            method: method.map(str::to_owned),
        }
    }

    /// The client authenticates either by HTTP Basic or in the body: by the registered method if the server lists it,
    /// or else by a listed method.
    #[test]
    fn client_uses_one_authentication_method() {
        let basic = "Basic YStpZDpwJTNBdytk";
        let post = "grant_type=g&client_id=a+id&client_secret=p%3Aw+d";
        let public = "grant_type=g&client_id=a+id";
        for (methods, credential, expected) in [
            (None, secret(None), basic),
            (None, secret(Some("client_secret_post")), post),
            (
                Some(&["client_secret_post", "client_secret_basic"][..]),
                secret(None),
                basic,
            ),
            (Some(&["client_secret_post"]), secret(None), post),
            (
                Some(&["client_secret_post"]),
                secret(Some("client_secret_basic")),
                post,
            ),
            (Some(&["none"]), secret(None), public),
            // None of the listed methods can use a secret: the default is tried.
            (Some(&["private_key_jwt"]), secret(None), basic),
            (Some(&["none"]), Credential::None, public),
            (None, Credential::None, public),
        ] {
            let request = TokenRequest::new("g");
            let request = request
                .authenticate("a id", &credential, &server(methods), 0)
                .expect("a request");
            let (headers, body) = request.into_parts();
            match headers.get(AUTHORIZATION) {
                Some(header) => {
                    assert_eq!(
                        (header.to_str().expect("ASCII"), body.expose()),
                        (expected, "grant_type=g")
                    );
                }
                None => assert_eq!(body.expose(), expected),
            }
        }
        // A workload has no client id (RFC 7523, section 3.1: the authentication of the client is optional).
        let request = TokenRequest::new("g");
        let request = request.authenticate("", &Credential::None, &server(None), 0);
        let (headers, body) = request.expect("a request").into_parts();
        assert_eq!((headers.len(), body.expose()), (0, "grant_type=g"));
    }

    /// Valid responses are parsed to a token; other responses result in an error for the user or a temporary error.
    #[test]
    fn token_responses_are_parsed() {
        let read = |status, body: &str| {
            parse_token_response("https://as.example/t", status, body.as_bytes())
        };
        let issued = read(
            200,
            r#"{"access_token":"a","token_type":"bEARER","expires_in":"60","scope":"x y","refresh_token":""}"#,
        );
        assert_eq!(
            issued,
            Ok(IssuedToken {
                access_token: "a".into(),
                is_dpop: false,
                expires_in: Some(60),
                refresh_token: None,
                scopes: Some(Scopes::parse("x y")),
            })
        );
        for (status, body, message) in [
            (200, r#"{"access_token":"a","token_type":"mac"}"#, "neither"),
            (200, r#"{"access_token":"a"}"#, "`token_type` is missing"),
            (
                200,
                r#"{"token_type":"bearer"}"#,
                "`access_token` is missing",
            ),
            (
                200,
                r#"{"access_token":"a\nb","token_type":"bearer"}"#,
                "header",
            ),
            (200, "<html>", "not a JSON object"),
            (200, r#"{"error":"invalid_grant"}"#, "invalid_grant"),
            (400, r#"{"error":"invalid_target"}"#, "application ID URI"),
            (400, "", "status 400"),
            (302, "", "status 302"),
            (408, "", "try again later"),
            (425, "", "try again later"),
            (429, "", "try again later"),
            (500, "", "try again later"),
            // An overloaded server refuses nothing, whatever its body says.
            (
                429,
                r#"{"error":"invalid_grant"}"#,
                "429: invalid_grant; try again later",
            ),
            (503, r#"{"error":"invalid_client"}"#, "try again later"),
            (
                400,
                r#"{"error":"temporarily_unavailable"}"#,
                "try again later",
            ),
            (400, r#"{"error":"server_error"}"#, "try again later"),
            (424, r#"{"error":"x"}"#, "answered x"),
            (499, "", "with status 499"),
        ] {
            let error = read(status, body).expect_err("it is refused").to_string();
            assert!(error.contains(message), "{error}");
        }
    }
}
