//! Claims of a verified token, and their validation (RFC 9068, section 4).
//!
//! The validation needs only the claims and the time, without IO.

use std::fmt;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_exact_session::Principal;
use serde::de::{DeserializeOwned, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer};

use crate::metadata::describe_unreadable;
use crate::scope::Scopes;

/// Claims of a verified access token. Handlers receive the claims and never the token, so that they cannot forward the
/// token.
#[derive(Clone)]
pub struct Access(Arc<AccessClaims>);

/// Data of [`Access`], shared by its clones.
struct AccessClaims {
    issuer: String,
    subject: Option<String>,
    client_id: Option<String>,
    scopes: Scopes,
    expires: SystemTime,
    /// Thumbprint of the key that the token is bound to (RFC 9449).
    key_thumbprint: Option<String>,
    /// All claims, as JSON text.
    claims: Vec<u8>,
}

/// Builder for the claims that an application's verifier has read from a token ([`Access::builder`]).
#[must_use]
pub struct AccessBuilder(AccessClaims);

impl AccessBuilder {
    /// Sets the user or account, which is unique at the issuer.
    pub fn subject(mut self, subject: impl Into<String>) -> Self {
        self.0.subject = Some(subject.into());
        self
    }

    /// Sets the id of the client that the token was issued to.
    pub fn client_id(mut self, client_id: impl Into<String>) -> Self {
        self.0.client_id = Some(client_id.into());
        self
    }

    /// Sets the granted scopes.
    pub fn scopes<S: AsRef<str>>(mut self, scopes: impl IntoIterator<Item = S>) -> Self {
        self.0.scopes = scopes.into_iter().collect();
        self
    }

    /// Sets the SHA-256 thumbprint of the key that the token is bound to (RFC 9449, section 6.1); requests then need a
    /// proof.
    pub fn bound_to_key(mut self, thumbprint: impl Into<String>) -> Self {
        self.0.key_thumbprint = Some(thumbprint.into());
        self
    }

    /// Sets the claims that [`Access::claims`] decodes, as a JSON object.
    pub fn claims(mut self, json: impl Into<Vec<u8>>) -> Self {
        self.0.claims = json.into();
        self
    }

    /// Returns the claims.
    ///
    /// # Errors
    /// Returns an error if the claims contain neither a subject nor a client: otherwise, all such tokens would belong
    /// to one principal.
    pub fn build(self) -> Result<Access, TokenError> {
        if self.0.subject.is_some() || self.0.client_id.is_some() {
            Ok(Access(Arc::new(self.0)))
        } else {
            Err(TokenError::invalid(NO_PRINCIPAL_MESSAGE))
        }
    }
}

/// Message for a token of an issuer that is not trusted.
pub(super) const OTHER_ISSUER_MESSAGE: &str = "the token comes from another issuer";
/// Message for a token without a principal.
const NO_PRINCIPAL_MESSAGE: &str = "the token names neither a subject nor a client";

impl Access {
    /// Creates a builder for claims that an application's [`TokenVerifier`](super::TokenVerifier) has read from a
    /// token. The verifier must have checked that the token is authentic, was issued for this server, and has not
    /// expired.
    pub fn builder(issuer: impl Into<String>, expires: SystemTime) -> AccessBuilder {
        AccessBuilder(AccessClaims {
            issuer: issuer.into(),
            subject: None,
            client_id: None,
            scopes: Scopes::default(),
            expires,
            key_thumbprint: None,
            claims: b"{}".to_vec(),
        })
    }

    /// Returns the issuer of the token.
    pub fn issuer(&self) -> &str {
        &self.0.issuer
    }

    /// Returns the user or account, which is unique at the issuer; `None` if the token has no subject.
    pub fn subject(&self) -> Option<&str> {
        self.0.subject.as_deref()
    }

    /// Returns the id of the client that the token was issued to.
    pub fn client_id(&self) -> Option<&str> {
        self.0.client_id.as_deref()
    }

    /// Returns the granted scopes.
    pub fn scopes(&self) -> &Scopes {
        &self.0.scopes
    }

    /// Returns the expiry of the token.
    pub fn expires(&self) -> SystemTime {
        self.0.expires
    }

    /// Decodes all claims.
    ///
    /// # Errors
    /// Returns an error if the claims cannot be decoded as `T`.
    pub fn claims<T: DeserializeOwned>(&self) -> Result<T, serde_json::Error> {
        serde_json::from_slice(&self.0.claims)
    }

    /// Returns the principal that owns sessions and state: issuer, subject and client. A refreshed token has the same
    /// principal.
    pub fn principal(&self) -> Principal {
        let parts = (self.issuer(), self.subject(), self.client_id());
        Principal(serde_json::json!(parts).to_string())
    }

    /// Returns the user: issuer and subject, independent of the client. `None` if the token has no subject.
    ///
    /// A server stores data of a user under this value: every client of the user can then use a credential that the
    /// user has obtained in a browser, and clients of other users cannot.
    pub fn user(&self) -> Option<User> {
        Some(User {
            issuer: self.issuer().to_owned(),
            subject: self.subject()?.to_owned(),
        })
    }

    /// Returns the thumbprint of the key that the token is bound to; `None` for a bearer token.
    pub(super) fn key_thumbprint(&self) -> Option<&str> {
        self.0.key_thumbprint.as_deref()
    }
}

impl fmt::Debug for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Access")
            .field("issuer", &self.issuer())
            .field("subject", &self.subject())
            .field("client_id", &self.client_id())
            .field("scopes", &self.scopes())
            .finish_non_exhaustive()
    }
}

/// User of an authorization server.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub struct User {
    /// Issuer of the token.
    pub issuer: String,
    /// Subject of the token, which is unique at the issuer.
    pub subject: String,
}

/// Reason why a token is rejected.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TokenError {
    /// The token is not valid. The message is sent to the client.
    #[error("{0}")]
    Invalid(String),
    /// The token cannot be verified at present. The message is written to the log.
    #[error("{0}")]
    Unavailable(String),
}

impl TokenError {
    /// Creates the error for a token that is not valid.
    pub fn invalid(message: impl fmt::Display) -> Self {
        Self::Invalid(message.to_string())
    }
}

/// Required values of claims.
#[derive(Debug, Clone)]
pub(super) struct ClaimRules {
    /// Required issuer.
    pub(super) issuer: String,
    /// Accepted audiences: the resource and additional names.
    pub(super) audiences: Vec<String>,
    /// Maximum difference between the clocks of the issuer and this server.
    pub(super) clock_skew: Duration,
}

/// One string or a list of strings (RFC 7519, section 4.1.3).
#[derive(Debug)]
enum OneOrMany {
    /// A single string.
    One(String),
    /// A list of strings.
    Many(Vec<String>),
}

impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(OneOrManyVisitor)
    }
}

/// Visitor that decodes a string or a list of strings.
struct OneOrManyVisitor;

impl<'de> Visitor<'de> for OneOrManyVisitor {
    type Value = OneOrMany;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a string or a list of strings")
    }

    fn visit_str<E>(self, value: &str) -> Result<OneOrMany, E> {
        Ok(OneOrMany::One(value.to_owned()))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<OneOrMany, A::Error> {
        let mut many = Vec::new();
        while let Some(item) = items.next_element()? {
            many.push(item);
        }
        Ok(OneOrMany::Many(many))
    }
}

impl OneOrMany {
    /// Returns true if `wanted` returns true for one of the strings.
    fn contains_any(&self, wanted: impl Fn(&str) -> bool) -> bool {
        match self {
            Self::One(one) => wanted(one),
            Self::Many(many) => many.iter().any(|one| wanted(one)),
        }
    }

    /// Returns the scopes in all strings, each of which can contain several scopes separated by spaces.
    fn scopes(&self) -> Scopes {
        match self {
            Self::One(one) => Scopes::parse(one),
            Self::Many(many) => many.iter().collect(),
        }
    }
}

/// Claims of an access token or of an introspection response (RFC 7519, RFC 7662, RFC 9068).
#[derive(Deserialize)]
struct Claims {
    /// True if the token is active (introspection only).
    #[serde(default)]
    active: Option<bool>,
    /// Issuer.
    #[serde(default)]
    iss: Option<String>,
    /// Subject.
    #[serde(default)]
    sub: Option<String>,
    /// Audience.
    #[serde(default)]
    aud: Option<OneOrMany>,
    /// Expiry in Unix time.
    #[serde(default)]
    exp: Option<f64>,
    /// Start of validity in Unix time.
    #[serde(default)]
    nbf: Option<f64>,
    /// Time of issue in Unix time.
    #[serde(default)]
    iat: Option<f64>,
    #[serde(default)]
    client_id: Option<String>,
    /// Authorized party: the client id in tokens of some providers.
    #[serde(default)]
    azp: Option<String>,
    /// Scopes.
    #[serde(default)]
    scope: Option<OneOrMany>,
    /// Scopes in tokens of some providers.
    #[serde(default)]
    scp: Option<OneOrMany>,
    /// Key that the token is bound to.
    #[serde(default)]
    cnf: Option<Confirmation>,
}

/// Claim `cnf` (RFC 7800).
#[derive(Deserialize)]
struct Confirmation {
    /// Thumbprint of the DPoP key.
    #[serde(default)]
    jkt: Option<String>,
    /// Other confirmation methods; tokens with such a method are rejected.
    #[serde(default, rename = "x5t#S256")]
    certificate: Option<serde::de::IgnoredAny>,
}

/// Latest representable time in Unix seconds: the end of the year 9999.
const LATEST_TIMESTAMP: f64 = 253_402_300_799.0;

/// Validates claims. `is_introspected` is true for claims in the response of an introspection endpoint, which must
/// contain `active` and may omit the issuer (RFC 7662, section 2.2).
pub(super) fn check_claims(
    claims: Vec<u8>,
    rules: &ClaimRules,
    is_introspected: bool,
    now: SystemTime,
) -> Result<Access, TokenError> {
    let invalid = |message: &str| TokenError::Invalid(message.to_owned());
    let parsed: Claims = serde_json::from_slice(&claims).map_err(|error| {
        let reason = describe_unreadable::<Claims>(&claims, &error);
        tracing::warn!(
            reason,
            "the claims of a token cannot be read; its issuer has to correct them"
        );
        TokenError::invalid(format!("the token's claims cannot be read: {reason}"))
    })?;
    if is_introspected && parsed.active != Some(true) {
        return Err(invalid("the token is not active"));
    }
    let issuer = match parsed.iss {
        Some(issuer) if issuer == rules.issuer => issuer,
        None if is_introspected => rules.issuer.clone(),
        found => {
            tracing::debug!(?found, expected = rules.issuer, "a token of another issuer");
            return Err(invalid(OTHER_ISSUER_MESSAGE));
        }
    };
    let audience = parsed
        .aud
        .ok_or_else(|| invalid("the token has no audience"))?;
    if !audience.contains_any(|one| rules.audiences.iter().any(|known| known == one)) {
        tracing::debug!(
            found = ?audience,
            expected = ?rules.audiences,
            "a token for another audience; Keycloak needs a mapper that adds the resource, and Entra ID writes the id of the \
             application, which `audience` accepts"
        );
        return Err(invalid("the token is for another audience"));
    }
    let now = now.duration_since(UNIX_EPOCH).unwrap_or_default();
    let (now, skew) = (now.as_secs_f64(), rules.clock_skew.as_secs_f64());
    let expires = parsed.exp.filter(|exp| exp.is_finite() && *exp >= 0.0);
    let expires = expires.ok_or_else(|| invalid("the token has no expiry"))?;
    if expires + skew <= now {
        return Err(invalid("the token has expired"));
    }
    let is_future = |at: Option<f64>| at.is_some_and(|at| at > now + skew);
    if is_future(parsed.nbf) || is_future(parsed.iat) {
        return Err(invalid("the token is not valid yet"));
    }
    let (mut key, mut is_bound_otherwise) = (None, false);
    if let Some(confirmation) = parsed.cnf {
        is_bound_otherwise = confirmation.certificate.is_some() || confirmation.jkt.is_none();
        key = confirmation.jkt;
    }
    if is_bound_otherwise {
        return Err(invalid("the token is bound in a way that is not supported"));
    }
    let client_id = parsed.client_id.or(parsed.azp);
    let scopes = parsed.scope.or(parsed.scp);
    let access = AccessBuilder(AccessClaims {
        issuer,
        subject: parsed.sub,
        client_id,
        scopes: scopes.map_or(Scopes::default(), |scopes| scopes.scopes()),
        expires: UNIX_EPOCH + Duration::from_secs_f64(expires.min(LATEST_TIMESTAMP)),
        key_thumbprint: key,
        claims,
    });
    access.build()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the rules that [`VALID_CLAIMS`] satisfies.
    fn rules() -> ClaimRules {
        ClaimRules {
            issuer: "https://as.example".to_owned(),
            audiences: vec!["https://mcp.example".to_owned(), "api://x".to_owned()],
            clock_skew: Duration::from_secs(60),
        }
    }

    /// Returns the time of the validation: one second before [`VALID_CLAIMS`] expire.
    fn now() -> SystemTime {
        UNIX_EPOCH + Duration::from_secs(1000)
    }

    /// Claims that satisfy the rules, as JSON.
    const VALID_CLAIMS: &str = r#"{"iss":"https://as.example","aud":"https://mcp.example","exp":1001,"sub":"u","client_id":"c","scope":"a b"}"#;

    /// Claims are accepted only with the required issuer, audience, expiry and principal.
    #[test]
    fn claims_are_checked() {
        let ok = "";
        for (from, to, expected) in [
            ("", "", ok),
            (r#""https://mcp.example""#, r#"["x","api://x"]"#, ok),
            (
                r#""https://mcp.example""#,
                r#""https://mcp.example/""#,
                "audience",
            ),
            (
                r#""https://mcp.example""#,
                r#""https://other.example""#,
                "audience",
            ),
            (r#""https://mcp.example""#, "[]", "audience"),
            (r#""aud":"https://mcp.example","#, "", "no audience"),
            (
                r#""https://as.example""#,
                r#""https://as.example/""#,
                "issuer",
            ),
            (r#""iss":"https://as.example","#, "", "issuer"),
            (r#""sub":"u","client_id":"c","#, "", "neither"),
            ("1001", "941", ok),
            ("1001", "940", "expired"),
            ("1001", "-1e300", "no expiry"),
            ("1001", "1e300", ok),
            (
                "1001",
                "\"1001\"",
                "cannot be read: `exp` is \"1001\": invalid type: string",
            ),
            (
                r#""https://mcp.example""#,
                r#"["a",7]"#,
                "cannot be read: `aud` is [\"a\",7]: invalid type: integer",
            ),
            (r#""exp":1001,"#, "", "no expiry"),
            (r#""sub""#, r#""nbf":1060,"sub""#, ok),
            (r#""sub""#, r#""nbf":1061,"sub""#, "not valid yet"),
            (r#""sub""#, r#""iat":1061,"sub""#, "not valid yet"),
            (r#""sub""#, r#""cnf":{"jkt":"x"},"sub""#, ok),
            (r#""sub""#, r#""cnf":{"x5t#S256":"x"},"sub""#, "bound"),
            (r#""sub""#, r#""cnf":{"jwk":{}},"sub""#, "bound"),
            (
                r#""sub""#,
                r#""exp":9999,"sub""#,
                "cannot be read: duplicate field `exp`",
            ),
        ] {
            let claims = VALID_CLAIMS.replacen(from, to, usize::from(!from.is_empty()));
            let checked = check_claims(claims.clone().into_bytes(), &rules(), false, now());
            match checked {
                Ok(access) => {
                    assert_eq!(expected, ok, "{claims}");
                    assert_eq!(access.subject(), Some("u"));
                }
                Err(error) => {
                    let message = error.to_string();
                    assert!(
                        expected != ok && message.contains(expected),
                        "{claims}: {message}"
                    );
                }
            }
        }
    }

    /// Scopes may be a string of scopes in `scope`, or a list or a string in `scp`.
    #[test]
    fn three_scope_formats_are_parsed() {
        for to in [
            r#""scp":"a b""#,
            r#""scp":["a","b"]"#,
            r#""scope":["a","b"]"#,
        ] {
            let claims = VALID_CLAIMS.replace(r#""scope":"a b""#, to);
            let access = check_claims(claims.into_bytes(), &rules(), false, now()).expect("valid");
            assert_eq!(access.scopes().to_string(), "a b", "{to}");
        }
    }

    #[test]
    fn inactive_introspection_is_rejected() {
        let checked = |claims: String| check_claims(claims.into_bytes(), &rules(), true, now());
        assert!(checked(VALID_CLAIMS.to_owned()).is_err());
        assert!(checked(VALID_CLAIMS.replace('{', r#"{"active":false,"#)).is_err());
        assert!(checked(VALID_CLAIMS.replace('{', r#"{"active":true,"#)).is_ok());
        let no_issuer = VALID_CLAIMS.replace(r#""iss":"https://as.example","#, r#""active":true,"#);
        assert!(checked(no_issuer).is_ok());
    }

    /// Different pairs of subject and client never result in the same principal.
    #[test]
    fn principals_are_unambiguous() {
        let of = |sub: &str, client: &str| {
            let claims = VALID_CLAIMS
                .replace(r#""u""#, sub)
                .replace(r#""c""#, client);
            let access = check_claims(claims.into_bytes(), &rules(), false, now());
            access.expect("valid").principal()
        };
        assert_eq!(of(r#""u""#, r#""c""#), of(r#""u""#, r#""c""#));
        assert_ne!(of(r#""u""#, r#""c""#), of(r#""u\",\"c""#, r#""""#));
        assert_ne!(of("null", r#""c""#), of(r#""""#, r#""c""#));
    }
}
