//! Bearer tokens of clients over HTTP (RFC 6750): a fixed list, or a check of the application.
//!
//! Tokens are kept as hashes only, and compared without a difference in time. The token is removed from the request before
//! handlers see it.

use std::fmt;
use std::future::Future;
use std::sync::Arc;
use std::time::SystemTime;

use http::header::AUTHORIZATION;
use http::request::Parts;
use http::{HeaderMap, HeaderValue};
use mcp_exact_transport::http::server::{
    AuthError, AuthFuture, Authenticate, Authenticated, TokenExpiry,
};
use sha2::{Digest as _, Sha256};

use crate::background::BoxFuture;
use crate::protocol::Principal;

/// Hash of a token.
type Hash = [u8; 32];

/// The rights that a valid token grants its client: a principal, scopes, and a time of expiry.
///
/// ```
/// use mcp_exact::TokenGrant;
/// let grant = TokenGrant::new("ada").scopes(["notes:read", "notes:write"]);
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenGrant {
    principal: Principal,
    scopes: Vec<String>,
    expires: Option<SystemTime>,
}

impl TokenGrant {
    /// Creates a grant without scopes for a principal. The principal is the identity of the client: sessions, tasks
    /// and answers belong to it, and handlers receive it as [`Principal`].
    pub fn new(principal: impl Into<String>) -> Self {
        Self {
            principal: Principal(principal.into()),
            scopes: Vec::new(),
            expires: None,
        }
    }

    /// Adds scopes, which tools, resources and prompts may [require](crate::Tool::scope).
    pub fn scopes(mut self, scopes: impl IntoIterator<Item = impl Into<String>>) -> Self {
        self.scopes.extend(scopes.into_iter().map(Into::into));
        self
    }

    /// Sets the time at which the token expires: later requests are refused, and event streams end.
    pub fn expires_at(mut self, time: SystemTime) -> Self {
        self.expires = Some(time);
        self
    }
}

/// A token for [`ServerBuilder::bearer_tokens`](crate::ServerBuilder::bearer_tokens), with its grant. Only the hash of the
/// token is kept.
///
/// A text becomes a token without scopes, whose principal is derived from the hash: `token-` and 12 hexadecimal digits.
///
/// ```
/// use mcp_exact::{BearerToken, TokenGrant};
/// let token = BearerToken::new("c2VjcmV0", TokenGrant::new("ada").scopes(["notes:write"]));
/// ```
#[derive(Clone, PartialEq, Eq)]
pub struct BearerToken {
    hash: Hash,
    grant: TokenGrant,
    /// True if a client can send the token: it is not empty, and has the characters of RFC 6750, section 2.1.
    pub(super) is_usable: bool,
}

impl BearerToken {
    /// Creates a token with its grant.
    pub fn new(token: impl AsRef<str>, grant: TokenGrant) -> Self {
        let token = token.as_ref();
        Self {
            hash: hash(token),
            grant,
            is_usable: is_token(token),
        }
    }
}

impl From<&str> for BearerToken {
    fn from(token: &str) -> Self {
        let start = hash(token);
        let digits = start[..6].iter().map(|byte| format!("{byte:02x}"));
        let principal = format!("token-{}", digits.collect::<String>());
        Self::new(token, TokenGrant::new(principal))
    }
}

impl From<String> for BearerToken {
    fn from(token: String) -> Self {
        Self::from(token.as_str())
    }
}

impl fmt::Debug for BearerToken {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BearerToken")
            .field("grant", &self.grant)
            .finish_non_exhaustive()
    }
}

/// Checks the bearer tokens of clients, for example in a database:
/// [`ServerBuilder::check_tokens`](crate::ServerBuilder::check_tokens). Async functions and closures that take the token as a `String` are checks.
///
/// ```
/// use mcp_exact::{CheckToken, TokenGrant};
///
/// struct Accounts;
///
/// impl CheckToken for Accounts {
///     async fn check(&self, token: &str) -> Option<TokenGrant> {
///         // Look the hash of the token up.
///         (token.len() == 64).then(|| TokenGrant::new("ada"))
///     }
/// }
/// ```
pub trait CheckToken: Send + Sync + 'static {
    /// Returns the grant of a token; `None` refuses the request (HTTP status 401).
    fn check(&self, token: &str) -> impl Future<Output = Option<TokenGrant>> + Send;
}

impl<F, Fut> CheckToken for F
where
    F: Fn(String) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Option<TokenGrant>> + Send,
{
    fn check(&self, token: &str) -> impl Future<Output = Option<TokenGrant>> + Send {
        self(token.to_owned())
    }
}

/// Function that checks a token.
type BoxedCheck = dyn Fn(String) -> BoxFuture<Option<TokenGrant>> + Send + Sync;

/// Authenticator of bearer tokens.
pub(super) struct BearerAuthenticator {
    /// Listed tokens.
    pub(super) tokens: Vec<BearerToken>,
    /// Check of tokens that are not listed.
    pub(super) check: Option<Arc<BoxedCheck>>,
}

/// Scopes that were granted, an extension of the request.
#[derive(Clone)]
struct GrantedScopes(Arc<[String]>);

impl BearerAuthenticator {
    /// Returns what a token grants.
    async fn grant(&self, token: String) -> Option<TokenGrant> {
        let hash = hash(&token);
        // Every token is compared, and every byte of it.
        let mut listed = None;
        for known in &self.tokens {
            if is_same(&known.hash, &hash) {
                listed = Some(&known.grant);
            }
        }
        let grant = match (listed, &self.check) {
            (Some(grant), _) => Some(grant.clone()),
            (None, Some(check)) => check(token).await,
            (None, None) => None,
        };
        let now = SystemTime::now();
        grant.filter(|grant| grant.expires.is_none_or(|expires| now < expires))
    }
}

impl Authenticate for BearerAuthenticator {
    fn authenticate<'a>(&'a self, request: &'a mut Parts) -> AuthFuture<'a> {
        Box::pin(async move {
            let token = take_token(&mut request.headers)?;
            let invalid = r#"Bearer error="invalid_token", error_description="the token is unknown or has expired""#;
            let grant = self
                .grant(token)
                .await
                .ok_or_else(|| unauthorized(invalid))?;
            if let Some(expires) = grant.expires {
                request.extensions.insert(TokenExpiry(expires));
            }
            request
                .extensions
                .insert(GrantedScopes(grant.scopes.into()));
            Ok(Authenticated::As(grant.principal))
        })
    }

    fn authorize(&self, request: &Parts, scopes: &[String]) -> Result<(), AuthError> {
        let granted = request.extensions.get::<GrantedScopes>();
        let has = |scope: &String| granted.is_some_and(|granted| granted.0.contains(scope));
        if scopes.iter().all(has) {
            return Ok(());
        }
        let challenge = format!(
            r#"Bearer error="insufficient_scope", scope="{}""#,
            scopes.join(" ")
        );
        Err(AuthError {
            challenge: HeaderValue::try_from(challenge).ok(),
            ..AuthError::forbidden()
        })
    }
}

/// Removes the token from the headers of a request.
fn take_token(headers: &mut HeaderMap) -> Result<String, AuthError> {
    let mut values = headers.get_all(AUTHORIZATION).iter();
    let (first, second) = (values.next().cloned(), values.next().is_some());
    headers.remove(AUTHORIZATION);
    // Without credentials, the challenge names no error (RFC 6750, section 3.1).
    let first = first.ok_or_else(|| unauthorized("Bearer"))?;
    let text = first.to_str().unwrap_or_default();
    let token = text
        .split_once(' ')
        .filter(|(scheme, _)| scheme.eq_ignore_ascii_case("Bearer") && !second)
        .map(|(_, token)| token.trim_matches(' '));
    match token {
        Some(token) if is_token(token) => Ok(token.to_owned()),
        _ => Err(unauthorized("Bearer")),
    }
}

/// Creates the rejection with status 401.
fn unauthorized(challenge: &'static str) -> AuthError {
    AuthError::unauthorized(HeaderValue::from_static(challenge))
}

/// Returns true if a client can send a text as a token (RFC 6750, section 2.1).
fn is_token(text: &str) -> bool {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || "-._~+/=".contains(c);
    !text.is_empty() && text.chars().all(is_allowed)
}

/// Returns the hash of a token.
fn hash(token: &str) -> Hash {
    Sha256::digest(token.as_bytes()).into()
}

/// Compares two hashes without a difference in time.
fn is_same(one: &Hash, other: &Hash) -> bool {
    let difference = one.iter().zip(other).fold(0, |difference, (one, other)| {
        difference | std::hint::black_box(one ^ other)
    });
    difference == 0
}
