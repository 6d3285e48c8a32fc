//! Tests of the verifiers: how long keys are used, and for whom tokens are.

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
