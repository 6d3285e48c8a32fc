//! Verifiers of access tokens: by the keys of an issuer, by introspection, or by application code.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use mcp_exact_transport::http::client::HttpClient;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, PercentEncode, utf8_percent_encode};
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::access::{Access, ClaimRules, OTHER_ISSUER_MESSAGE, TokenError, check_claims};
use super::fetch::IssuerClient;
use super::jose::{KeySet, UnverifiedToken};

/// Future that [`TokenVerifier::verify`] returns.
pub type VerifyFuture<'a> = Pin<Box<dyn Future<Output = Result<Access, TokenError>> + Send + 'a>>;

/// Verifies access tokens: signature or state, issuer, audience, expiry. The [`ResourceServer`](super::ResourceServer)
/// checks scopes and binding.
///
/// The following verifier of an application looks up tokens in a database:
///
/// ```
/// use std::time::{Duration, SystemTime};
///
/// use mcp_exact_auth::server::{Access, TokenError, TokenVerifier, VerifyFuture};
///
/// struct Table;
///
/// impl TokenVerifier for Table {
///     fn verify<'a>(&'a self, token: &'a str) -> VerifyFuture<'a> {
///         Box::pin(async move {
///             let user = look_up(token).ok_or_else(|| TokenError::invalid("the token is unknown"))?;
///             let expires = SystemTime::now() + Duration::from_secs(60);
///             Access::builder("https://as.example.com", expires)
///                 .subject(user)
///                 .scopes(["read"])
///                 .build()
///         })
///     }
/// }
/// # fn look_up(_: &str) -> Option<String> { None }
/// ```
pub trait TokenVerifier: Send + Sync + 'static {
    /// Returns the claims of a token, or the reason why the token is invalid.
    fn verify<'a>(&'a self, token: &'a str) -> VerifyFuture<'a>;
}

/// Minimum and maximum time for which fetched keys are cached.
const KEY_LIFETIMES: std::ops::RangeInclusive<Duration> =
    Duration::from_secs(5 * 60)..=Duration::from_secs(24 * 3600);
/// Time for which keys are used after their cache time if the issuer cannot be reached.
const MAX_STALE_TIME: Duration = Duration::from_secs(3600);
/// Maximum difference between the clocks of issuer and server that is allowed for.
const MAX_CLOCK_SKEW: Duration = Duration::from_secs(30);
/// Minimum interval between two requests for keys while none is known.
const RETRY_INTERVAL: Duration = Duration::from_secs(5);
/// Minimum interval between two requests for keys that unknown key ids cause.
const REQUEST_INTERVAL: Duration = Duration::from_secs(60);

/// Verifier of signed tokens (RFC 9068), by the keys of their issuer. Keys are fetched when needed and cached; an
/// unknown key id causes another request, at most once per minute. If the issuer cannot be reached, its keys are used for one
/// more hour after their cache time.
pub struct Jwks {
    /// Required values of claims.
    rules: ClaimRules,
    /// Accepted types (`typ`) of tokens, in lower case.
    accepted_types: Vec<String>,
    /// Source of the keys.
    key_source: KeySource,
    /// Cache of the keys.
    cache: Arc<KeyCache>,
}

/// Source of an issuer's keys.
#[derive(Clone)]
struct KeySource {
    /// Issuer of the keys.
    issuer: String,
    /// URL of the key set; `None` to read it from the issuer's metadata.
    url: Option<String>,
    /// HTTP client; `None` for the default client.
    client: Option<Arc<dyn HttpClient>>,
}

/// Cache of fetched keys.
#[derive(Default)]
struct KeyCache {
    /// Latest fetched keys, which may have expired.
    keys: RwLock<Option<Arc<CachedKeys>>>,
    /// Time of the last request for the keys; locked while a request is in progress.
    requested_at: Mutex<Option<Instant>>,
}

/// Key set of an issuer and the end of its cache time.
struct CachedKeys {
    /// Cached keys.
    keys: KeySet,
    /// End of the cache time.
    expires_at: Instant,
}

impl Jwks {
    /// Trusts an issuer for tokens whose audience is the resource. The issuer must equal the claim `iss`.
    pub fn new(issuer: impl Into<String>, resource: impl Into<String>) -> Self {
        let issuer = issuer.into();
        Self {
            rules: ClaimRules {
                issuer: issuer.clone(),
                audiences: accepted_audiences(resource.into()),
                clock_skew: MAX_CLOCK_SKEW,
            },
            accepted_types: vec!["at+jwt".to_owned()],
            key_source: KeySource {
                issuer,
                url: None,
                client: None,
            },
            cache: Arc::default(),
        }
    }

    /// Returns a verifier with the same issuer, settings and cached keys whose audience is another resource alone.
    #[must_use]
    pub fn for_resource(&self, resource: impl Into<String>) -> Self {
        Self {
            rules: ClaimRules {
                audiences: accepted_audiences(resource.into()),
                ..self.rules.clone()
            },
            accepted_types: self.accepted_types.clone(),
            key_source: self.key_source.clone(),
            cache: Arc::clone(&self.cache),
        }
    }

    /// Accepts an additional audience, for authorization servers that do not use the resource as the audience (Entra
    /// ID, Keycloak).
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.rules.audiences.push(audience.into());
        self
    }

    /// Accepts tokens of the type `JWT` or without a type, for authorization servers that do not set `at+jwt` (RFC
    /// 9068, section 2.1). Make sure that the issuer issues no other signed tokens with this audience, such as identity
    /// tokens.
    #[must_use]
    pub fn accept_plain_jwt(mut self) -> Self {
        self.accepted_types
            .extend(["jwt".to_owned(), String::new()]);
        self
    }

    /// Sets the allowed difference between clocks: 30 s by default and at most. A token is accepted for this time after its
    /// expiry; its event streams end at the expiry itself.
    #[must_use]
    pub fn clock_skew(mut self, skew: Duration) -> Self {
        self.rules.clock_skew = skew.min(MAX_CLOCK_SKEW);
        self
    }

    /// Sets the URL of the key set, instead of the URL in the issuer's metadata.
    #[must_use]
    pub fn keys_url(mut self, url: impl Into<String>) -> Self {
        self.key_source.url = Some(url.into());
        self
    }

    /// Sets a fixed key set (JSON), so that no keys are fetched.
    ///
    /// # Errors
    /// Returns an error if the JSON is not a key set.
    pub fn fixed_keys(self, json: &str) -> Result<Self, TokenError> {
        let bad = || TokenError::Unavailable("the fixed keys are not a JSON key set".to_owned());
        let keys = KeySet::parse(json.as_bytes()).ok_or_else(bad)?;
        let far = Instant::now() + Duration::from_secs(100 * 365 * 24 * 3600);
        // A request time in the far future prevents all requests.
        let cache = KeyCache {
            keys: RwLock::new(Some(Arc::new(CachedKeys {
                keys,
                expires_at: far,
            }))),
            requested_at: Mutex::new(Some(far)),
        };
        Ok(Self {
            cache: Arc::new(cache),
            ..self
        })
    }

    /// Sets the HTTP client for requests to the issuer.
    #[must_use]
    pub fn http_client(mut self, client: Arc<dyn HttpClient>) -> Self {
        self.key_source.client = Some(client);
        self
    }

    /// Verifies a token and returns its claims.
    async fn check_token(&self, token: &str) -> Result<Access, TokenError> {
        let unverified = UnverifiedToken::new(token).map_err(TokenError::invalid)?;
        let kind = unverified.header.media_type().unwrap_or_default();
        if !self.accepted_types.contains(&kind) {
            tracing::debug!(
                found = kind,
                "a token of another type than `at+jwt`; for Entra ID, Keycloak and others that write `JWT`, call `accept_plain_jwt`"
            );
            return Err(TokenError::Invalid(
                "the token's type is not `at+jwt`".to_owned(),
            ));
        }
        let has_key = |kept: &CachedKeys| kept.keys.has_key_for(&unverified.header);
        let kept = match self.cache.cached_keys() {
            Some(kept)
                if has_key(&kept)
                    && (kept.is_fresh() || (self.cache.is_busy() && kept.is_usable())) =>
            {
                kept
            }
            // A token of another issuer does not cause a request to this one.
            _ if unverified.issuer().as_deref() != Some(&*self.rules.issuer) => {
                return Err(TokenError::Invalid(OTHER_ISSUER_MESSAGE.to_owned()));
            }
            before => self.fetch_keys(before).await?,
        };
        let claims = kept.keys.verify(&unverified);
        let claims = claims.map_err(TokenError::invalid)?;
        check_claims(claims, &self.rules, false, SystemTime::now())
    }

    /// Fetches the keys in a separate task, so that the request completes for all waiting clients even if the first
    /// client disconnects.
    async fn fetch_keys(
        &self,
        before: Option<Arc<CachedKeys>>,
    ) -> Result<Arc<CachedKeys>, TokenError> {
        let (cache, source) = (Arc::clone(&self.cache), self.key_source.clone());
        let fetched = tokio::spawn(async move { cache.fetch_keys(&source, before).await });
        let ended_early = |error| Err(TokenError::Unavailable(format!("a task ended: {error}")));
        fetched.await.unwrap_or_else(ended_early)
    }
}

impl TokenVerifier for Jwks {
    fn verify<'a>(&'a self, token: &'a str) -> VerifyFuture<'a> {
        Box::pin(self.check_token(token))
    }
}

impl CachedKeys {
    /// Returns true if the cache time has not elapsed.
    fn is_fresh(&self) -> bool {
        self.expires_at > Instant::now()
    }

    /// Returns true if the keys may be used while the issuer cannot be reached.
    fn is_usable(&self) -> bool {
        self.expires_at + MAX_STALE_TIME > Instant::now()
    }
}

impl KeyCache {
    /// Returns the cached keys, even if they have expired.
    fn cached_keys(&self) -> Option<Arc<CachedKeys>> {
        let keys = self.keys.read().unwrap_or_else(PoisonError::into_inner);
        keys.clone()
    }

    /// Returns true while keys are being fetched.
    fn is_busy(&self) -> bool {
        self.requested_at.try_lock().is_err()
    }

    /// Fetches the keys, unless another task has done so since `before` was read, or within the last minute (five seconds
    /// while no key is known). If the request fails, returns the known keys for as long as they may be used.
    async fn fetch_keys(
        &self,
        source: &KeySource,
        before: Option<Arc<CachedKeys>>,
    ) -> Result<Arc<CachedKeys>, TokenError> {
        let mut asked = self.requested_at.lock().await;
        let known = self.cached_keys().filter(|known| known.is_usable());
        let is_new = match (&known, &before) {
            (Some(known), Some(before)) => !Arc::ptr_eq(known, before),
            (known, _) => known.is_some(),
        };
        let interval = match known {
            Some(_) => REQUEST_INTERVAL,
            None => RETRY_INTERVAL,
        };
        let is_soon = asked.is_some_and(|asked| asked.checked_add(interval) > Some(Instant::now()));
        match known {
            Some(known) if is_new || is_soon => return Ok(known),
            None if is_soon => {
                return Err(TokenError::Unavailable(format!(
                    "could not fetch the keys of `{}`",
                    source.issuer
                )));
            }
            _ => {}
        }
        *asked = Some(Instant::now());
        match source.fetch_keys().await {
            Ok(kept) => {
                let kept = Arc::new(kept);
                let mut keys = self.keys.write().unwrap_or_else(PoisonError::into_inner);
                *keys = Some(Arc::clone(&kept));
                Ok(kept)
            }
            Err(error) => {
                tracing::warn!(%error, "the keys of an issuer could not be refreshed");
                known.ok_or(error)
            }
        }
    }
}

impl KeySource {
    /// Requests the key set.
    async fn fetch_keys(&self) -> Result<CachedKeys, TokenError> {
        let fetch = IssuerClient::new(&self.issuer, self.client.clone());
        let url = match &self.url {
            Some(url) => url.clone(),
            None => fetch.keys_url(&self.issuer).await?,
        };
        let document = fetch.get(&url).await?;
        let keys = KeySet::parse(&document.body);
        let keys =
            keys.ok_or_else(|| TokenError::Unavailable(format!("`{url}` is not a key set")))?;
        let age = document.max_age.unwrap_or(Duration::from_secs(3600));
        Ok(CachedKeys {
            keys,
            expires_at: Instant::now() + age.clamp(*KEY_LIFETIMES.start(), *KEY_LIFETIMES.end()),
        })
    }
}

/// Verifier of tokens by token introspection (RFC 7662), with one request per verification.
pub struct Introspection {
    /// Required values of claims.
    rules: ClaimRules,
    /// URL of the introspection endpoint.
    url: String,
    /// Value of `Authorization` for the endpoint.
    authorization: HeaderValue,
    /// HTTP client for the endpoint.
    issuer_client: IssuerClient,
}

impl Introspection {
    /// Creates a verifier from the issuer, the resource, the introspection endpoint, and the credentials of this server
    /// at the endpoint (HTTP Basic).
    ///
    /// # Errors
    /// Returns an error if the credentials cannot be sent in a header.
    pub fn new(
        issuer: impl Into<String>,
        resource: impl Into<String>,
        url: impl Into<String>,
        id: &str,
        secret: &str,
    ) -> Result<Self, TokenError> {
        let pair = format!("{}:{}", encode(id), encode(secret));
        let value = HeaderValue::from_str(&format!("Basic {}", STANDARD.encode(pair)));
        let mut authorization = value.map_err(TokenError::invalid)?;
        authorization.set_sensitive(true);
        let url = url.into();
        Ok(Self {
            rules: ClaimRules {
                issuer: issuer.into(),
                audiences: accepted_audiences(resource.into()),
                clock_skew: MAX_CLOCK_SKEW,
            },
            issuer_client: IssuerClient::new(&url, None),
            url,
            authorization,
        })
    }

    /// Accepts an additional audience.
    #[must_use]
    pub fn audience(mut self, audience: impl Into<String>) -> Self {
        self.rules.audiences.push(audience.into());
        self
    }

    /// Sets the HTTP client for requests to the authorization server.
    #[must_use]
    pub fn http_client(mut self, client: Arc<dyn HttpClient>) -> Self {
        self.issuer_client = IssuerClient::new(&self.url, Some(client));
        self
    }

    /// Requests the state of a token and returns its claims. A JWT whose `iss` names another issuer is rejected without a
    /// request to the endpoint.
    async fn check_token(&self, token: &str) -> Result<Access, TokenError> {
        let issuer = UnverifiedToken::new(token)
            .ok()
            .and_then(|jwt| jwt.issuer());
        if issuer.is_some_and(|issuer| issuer != self.rules.issuer) {
            return Err(TokenError::Invalid(OTHER_ISSUER_MESSAGE.to_owned()));
        }
        let form = format!("token={}&token_type_hint=access_token", encode(token));
        let answer = self
            .issuer_client
            .post(&self.url, self.authorization.clone(), form);
        check_claims(answer.await?.to_vec(), &self.rules, true, SystemTime::now())
    }
}

impl TokenVerifier for Introspection {
    fn verify<'a>(&'a self, token: &'a str) -> VerifyFuture<'a> {
        Box::pin(self.check_token(token))
    }
}

/// Returns the accepted audiences for a resource. For an origin, the forms with and without a trailing slash are
/// accepted, because they are equivalent (RFC 3986, section 6.2.3) and some clients add the slash.
fn accepted_audiences(resource: String) -> Vec<String> {
    let rest = resource.split_once("://").map_or("", |(_, rest)| rest);
    let is_origin = !rest.is_empty() && !rest.trim_end_matches('/').contains(['/', '?']);
    let other = match resource.strip_suffix('/') {
        Some(bare) => bare.to_owned(),
        None => format!("{resource}/"),
    };
    if is_origin {
        vec![other, resource]
    } else {
        vec![resource]
    }
}

/// Percent-encodes a value of a form.
fn encode(text: &str) -> PercentEncode<'_> {
    /// All characters but the unreserved ones of RFC 3986.
    const RESERVED: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'.')
        .remove(b'_')
        .remove(b'~');
    utf8_percent_encode(text, RESERVED)
}

#[cfg(test)]
mod tests;
