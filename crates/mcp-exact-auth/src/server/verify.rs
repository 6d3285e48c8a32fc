//! Verifiers of access tokens: by the keys of an issuer, by introspection, or by application code.

use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderValue;
use mcp_exact_transport::http::client::HttpClient;
use tokio::sync::Mutex;
use tokio::time::Instant;

use super::access::{Access, ClaimRules, OTHER_ISSUER_MESSAGE, TokenError, check_claims};
use super::fetch::IssuerClient;
use super::jose::{InvalidToken, KeySet, UnverifiedToken};

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
        let has_key = |kept: &CachedKeys| kept.keys.find(&unverified.header).is_some();
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
        let key = kept.keys.find(&unverified.header);
        let key = key.ok_or_else(|| TokenError::invalid(InvalidToken::UnknownKey))?;
        let claims = unverified.verify(key).map_err(TokenError::invalid)?;
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
        let pair = format!("{}:{}", percent_encode(id), percent_encode(secret));
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
        let form = format!(
            "token={}&token_type_hint=access_token",
            percent_encode(token)
        );
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
fn percent_encode(text: &str) -> String {
    use std::fmt::Write as _;
    let mut encoded = String::with_capacity(text.len());
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'.' | b'_' | b'~' => {
                encoded.push(char::from(byte));
            }
            // Writing to a string cannot fail.
            _ => drop(write!(encoded, "%{byte:02X}")),
        }
    }
    encoded
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicUsize, Ordering};

    use bytes::Bytes;
    use http::Request;
    use mcp_exact_transport::http::client::HttpFuture;

    use super::*;

    /// Token of RFC 7515, appendix A.3, signed with ES256.
    const TOKEN: &str = "eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJqb2UiLA0KICJleHAiOjEzMDA4MTkzODAsDQogImh0dHA6Ly9leGFtcGxlLmNvbS9pc19yb290Ijp0cnVlfQ.DtEhU3ljbEg8L38VWAfUAqOyKAM6-Xx-F4GawxaepmXFCgfTjDxw5djxLa8ISlSApmWQxfKTUJqPP3-Kg6NU1Q";
    /// Key of the token.
    const KEYS: &str = r#"{"keys":[{"kty":"EC","crv":"P-256","x":"f83OJ3D2xF1Bg8vub9tLe1gHMzV76e8Tus9uPHvRVEU","y":"x_FEzRu9m36HLN_tue659LNpXW6pCyStikYjKIWI5a0"}]}"#;

    /// HTTP client of an issuer that cannot be reached, which counts the requests.
    #[derive(Default)]
    struct Unreachable(AtomicUsize);

    impl HttpClient for Unreachable {
        fn send(&self, _: Request<Bytes>) -> HttpFuture<'_> {
            self.0.fetch_add(1, Ordering::Relaxed);
            Box::pin(async { Err("nobody listens".into()) })
        }
    }

    /// Returns a verifier of the token whose issuer cannot be reached, and the number of requests.
    fn unreachable_verifier() -> (Jwks, Arc<Unreachable>) {
        let client = Arc::new(Unreachable::default());
        let verifier = Jwks::new("joe", "https://mcp.example")
            .accept_plain_jwt()
            .keys_url("https://joe.example/keys")
            .http_client(Arc::clone(&client) as _);
        (verifier, client)
    }

    /// Stores keys that have just expired.
    fn store_expired_keys(verifier: &Jwks) {
        let kept = CachedKeys {
            keys: KeySet::parse(KEYS.as_bytes()).expect("a key set"),
            expires_at: Instant::now(),
        };
        *verifier.cache.keys.write().expect("no panic") = Some(Arc::new(kept));
    }

    /// Error of the token if its key is known.
    fn known_key_error() -> TokenError {
        TokenError::invalid("the token has no audience")
    }

    /// Keys of an issuer that cannot be reached are used for an hour after their cache time, with one request a minute, and
    /// no longer: a key that the issuer has revoked does not verify for ever.
    #[tokio::test(start_paused = true)]
    async fn stale_keys_are_used_for_an_hour() {
        let (verifier, client) = unreachable_verifier();
        store_expired_keys(&verifier);
        for minute in 0..60 {
            for _ in 0..3 {
                let error = verifier.check_token(TOKEN).await.expect_err("an example");
                assert_eq!(error, known_key_error(), "{minute}");
            }
            assert_eq!(client.0.load(Ordering::Relaxed), minute + 1);
            tokio::time::advance(REQUEST_INTERVAL).await;
        }
        let error = verifier.check_token(TOKEN).await.expect_err("too old");
        assert!(matches!(error, TokenError::Unavailable(_)), "{error:?}");
    }

    /// Without a known key, an issuer is asked again after five seconds, not only after a minute.
    #[tokio::test(start_paused = true)]
    async fn unknown_keys_are_requested_again_soon() {
        let (verifier, client) = unreachable_verifier();
        for second in 0..11 {
            let error = verifier.check_token(TOKEN).await.expect_err("no key");
            assert!(matches!(error, TokenError::Unavailable(_)), "{error:?}");
            assert_eq!(client.0.load(Ordering::Relaxed), 1 + second / 5);
            tokio::time::advance(Duration::from_secs(1)).await;
        }
    }

    /// The allowed difference between clocks is 30 seconds at most.
    #[test]
    fn clock_skew_is_bounded() {
        let verifier = Jwks::new("joe", "https://mcp.example");
        assert_eq!(verifier.rules.clock_skew, MAX_CLOCK_SKEW);
        let wide = verifier.clock_skew(Duration::from_secs(600));
        assert_eq!(wide.rules.clock_skew, MAX_CLOCK_SKEW);
    }

    /// While expired keys are being fetched again, the old ones are used, so that no request waits for a slow issuer.
    #[tokio::test]
    async fn expired_keys_verify_during_refresh() {
        let verifier = Jwks::new("joe", "https://mcp.example").accept_plain_jwt();
        store_expired_keys(&verifier);
        let _fetching = verifier.cache.requested_at.lock().await;
        let error = verifier.check_token(TOKEN).await.expect_err("an example");
        assert_eq!(error, known_key_error());
    }

    /// If the resource is an origin, audiences with and without a trailing slash are accepted.
    #[test]
    fn origin_audience_allows_trailing_slash() {
        let (bare, slashed) = ("https://mcp.example", "https://mcp.example/");
        assert_eq!(accepted_audiences(bare.to_owned()), [slashed, bare]);
        assert_eq!(accepted_audiences(slashed.to_owned()), [bare, slashed]);
        for exact in [
            "https://mcp.example/mcp",
            "https://mcp.example/mcp/",
            "urn:x",
        ] {
            assert_eq!(accepted_audiences(exact.to_owned()), [exact]);
        }
    }

    /// HTTP client of an issuer that publishes the key of the token, with a cache time, and counts the requests.
    struct Published(Option<&'static str>, AtomicUsize);

    impl HttpClient for Published {
        fn send(&self, _: Request<Bytes>) -> HttpFuture<'_> {
            use http_body_util::BodyExt as _;
            self.1.fetch_add(1, Ordering::Relaxed);
            let body = http_body_util::Full::new(Bytes::from_static(KEYS.as_bytes()));
            let body = body.map_err(|never| match never {}).boxed_unsync();
            let mut response = http::Response::new(body);
            let value = self.0.map(HeaderValue::from_static);
            let value = value.map(|value| (http::header::CACHE_CONTROL, value));
            response.headers_mut().extend(value);
            Box::pin(async { Ok(response) })
        }
    }

    /// Keys are used without another request for as long as the issuer says (RFC 9111, section 4.2), between five minutes and a
    /// day, or for an hour if it says nothing.
    #[tokio::test(start_paused = true)]
    async fn keys_are_kept_for_max_age() {
        for (value, seconds) in [
            (Some("max-age=600"), 600),
            (Some("public, max-age=7200"), 7200),
            (Some("max-age=1"), 300),
            (Some("max-age=9999999"), 24 * 3600),
            (Some("no-cache"), 3600),
            (None, 3600),
        ] {
            let client = Arc::new(Published(value, AtomicUsize::default()));
            let verifier = Jwks::new("joe", "https://mcp.example")
                .accept_plain_jwt()
                .keys_url("https://joe.example/keys")
                .http_client(Arc::clone(&client) as _);
            for (wait, requests) in [(0, 1), (seconds - 1, 1), (1, 2), (1, 2)] {
                tokio::time::advance(Duration::from_secs(wait)).await;
                let error = verifier.check_token(TOKEN).await.expect_err("an example");
                assert_eq!(error, known_key_error(), "{value:?}");
                assert_eq!(
                    client.1.load(Ordering::Relaxed),
                    requests,
                    "{value:?} {wait}"
                );
            }
        }
    }

    /// Fixed keys are never fetched, however long the process runs.
    #[tokio::test(start_paused = true)]
    async fn fixed_keys_do_not_expire() {
        let (verifier, client) = unreachable_verifier();
        let verifier = verifier.fixed_keys(KEYS).expect("a key set");
        for _ in 0..10 {
            let error = verifier.check_token(TOKEN).await.expect_err("an example");
            assert_eq!(error, known_key_error());
            let years = Duration::from_secs(5 * 365 * 24 * 3600);
            tokio::time::advance(years).await;
        }
        assert_eq!(client.0.load(Ordering::Relaxed), 0);
    }

    /// "MCP servers MUST validate that access tokens were issued specifically for them" ("Token Handling"): a verifier for another
    /// resource accepts no audience of the first one, and shares its keys.
    #[test]
    fn other_resources_have_other_audiences() {
        let verifier = Jwks::new("joe", "https://mcp.example/a").audience("api://a");
        let other = verifier.for_resource("https://mcp.example/b");
        assert_eq!(other.rules.audiences, ["https://mcp.example/b"]);
        assert_eq!(other.rules.issuer, "joe");
        assert!(Arc::ptr_eq(&other.cache, &verifier.cache));
    }
}
