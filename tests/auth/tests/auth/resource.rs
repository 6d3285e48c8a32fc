//! Attacks on resource servers: invalid tokens, floods of unknown keys, tokens of other principals.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::request::Parts;
use mcp_exact::transport::http::server::{AuthError, Authenticate as _};
use mcp_exact_auth::Challenge;
use mcp_exact_auth::server::{Access, Introspection, Jwks, ResourceServer};
use mcp_exact_tests_auth::site::{Site, json_response as respond_json, response};
use mcp_exact_tests_auth::tokens::{Signer, unsigned_token};
use serde_json::{Value, json};

/// Resource for which the tokens are valid.
pub(crate) const RESOURCE: &str = "https://mcp.example/mcp";
/// Issuer of the tokens.
const ISSUER: &str = "https://as.example";

/// Returns the current time in seconds since the Unix epoch.
pub(crate) fn unix_time() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.expect("after 1970").as_secs()
}

/// Returns the claims of a valid token.
pub(crate) fn valid_claims() -> Value {
    json!({
        "iss": ISSUER,
        "aud": RESOURCE,
        "sub": "u",
        "client_id": "c",
        "scope": "read",
        "iat": unix_time(),
        "exp": unix_time() + 600,
    })
}

/// Returns the claims of a valid token after the change `change`.
pub(crate) fn with_claim(change: impl FnOnce(&mut Value)) -> Value {
    let mut claims = valid_claims();
    change(&mut claims);
    claims
}

/// Creates the head of an HTTP request with these headers.
fn request(headers: &[(&str, &str)]) -> Parts {
    let mut request = http::Request::post("https://mcp.example/mcp");
    for (name, value) in headers {
        request = request.header(*name, *value);
    }
    let (parts, ()) = request.body(()).expect("a request").into_parts();
    parts
}

/// Creates a resource server that accepts tokens that the key of `signer` has signed.
pub(crate) fn server(signer: &Signer) -> ResourceServer {
    let jwks = Jwks::new(ISSUER, RESOURCE).fixed_keys(&signer.key_set().to_string());
    ResourceServer::new(ISSUER, RESOURCE, jwks.expect("keys")).expect("a resource")
}

/// Authenticates a request with these headers; returns its head after the authentication.
pub(crate) async fn check_token(
    server: &ResourceServer,
    headers: &[(&str, &str)],
) -> Result<Parts, AuthError> {
    let mut parts = request(headers);
    server.authenticate(&mut parts).await?;
    Ok(parts)
}

/// Returns the HTTP status and the challenge with which a request with these headers is refused.
pub(crate) async fn refusal_status_and_challenge(
    server: &ResourceServer,
    headers: &[(&str, &str)],
) -> (u16, Challenge) {
    let error = check_token(server, headers)
        .await
        .expect_err("it is refused");
    let challenge = error.challenge.expect("a challenge");
    let mut challenges = Challenge::parse(challenge.to_str().expect("ASCII"));
    (error.status.as_u16(), challenges.remove(0))
}

/// Authenticates a request with a bearer token.
pub(crate) async fn authenticate_bearer(
    server: &ResourceServer,
    token: &str,
) -> Result<Parts, AuthError> {
    check_token(server, &[("authorization", &format!("Bearer {token}"))]).await
}

/// After the authentication, the request contains the access and no longer the token.
#[tokio::test]
async fn accepted_tokens_are_removed() {
    let signer = Signer::new("k");
    let token = signer.sign(&signer.header(), &valid_claims());
    let parts = authenticate_bearer(&server(&signer), &token)
        .await
        .expect("accepted");
    let access = parts.extensions.get::<Access>().expect("what it says");
    assert_eq!(
        (access.subject(), access.client_id()),
        (Some("u"), Some("c"))
    );
    assert!(!format!("{parts:?} {access:?}").contains(&token));
    assert!(parts.headers.get("authorization").is_none());
}

/// Each row contains an invalid token and the expected text of the challenge; every token is refused with status 401
/// and `invalid_token`.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table with a row each")]
async fn bad_tokens_are_refused() {
    let (signer, stranger) = (Signer::new("k"), Signer::new("k"));
    let header = signer.header();
    let typed = |kind: &str| json!({"alg": "ES256", "kid": "k", "typ": kind});
    let hmac_token = {
        let message = unsigned_token(
            &json!({"alg": "HS256", "kid": "k", "typ": "at+jwt"}),
            &valid_claims(),
        );
        let key = hmac::Key::new(hmac::HMAC_SHA256, signer.jwk().to_string().as_bytes());
        let tag = hmac::sign(&key, message.as_bytes());
        format!("{message}.{}", URL_SAFE_NO_PAD.encode(tag))
    };
    let good = signer.sign(&header, &valid_claims());
    let (good_message, good_signature) = good.rsplit_once('.').expect("three parts");
    let other_claims = unsigned_token(&header, &with_claim(|c| c["sub"] = json!("admin")));
    let none = json!({"alg": "none", "kid": "k", "typ": "at+jwt"});
    for (attack, token, message) in [
        (
            "alg none",
            format!("{}.", unsigned_token(&none, &valid_claims())),
            "algorithm",
        ),
        ("the public key as a shared secret", hmac_token, "algorithm"),
        (
            "another key with the same id",
            stranger.sign(&header, &valid_claims()),
            "signature",
        ),
        (
            "an unknown key",
            signer.sign(
                &json!({"alg": "ES256", "kid": "x", "typ": "at+jwt"}),
                &valid_claims(),
            ),
            "unknown key",
        ),
        (
            "a key that the token brings along",
            signer.sign(
                &json!({"alg": "ES256", "kid": "x", "jwk": signer.jwk(), "typ": "at+jwt"}),
                &valid_claims(),
            ),
            "unknown key",
        ),
        (
            "changed claims",
            format!("{other_claims}.{good_signature}"),
            "signature",
        ),
        ("no signature", format!("{good_message}."), "signature"),
        (
            "an identity token",
            signer.sign(&typed("JWT"), &valid_claims()),
            "at+jwt",
        ),
        (
            "a proof",
            signer.sign(&typed("dpop+jwt"), &valid_claims()),
            "at+jwt",
        ),
        (
            "an assertion",
            signer.sign(&typed("oauth-id-jag+jwt"), &valid_claims()),
            "at+jwt",
        ),
        (
            "another audience",
            signer.sign(
                &header,
                &with_claim(|c| c["aud"] = json!("https://mcp.example/other")),
            ),
            "audience",
        ),
        (
            "the origin as audience",
            signer.sign(
                &header,
                &with_claim(|c| c["aud"] = json!("https://mcp.example")),
            ),
            "audience",
        ),
        (
            "no audience",
            signer.sign(&header, &with_claim(|c| c["aud"] = json!(null))),
            "audience",
        ),
        (
            "another issuer",
            signer.sign(
                &header,
                &with_claim(|c| c["iss"] = json!("https://evil.example")),
            ),
            "issuer",
        ),
        (
            "the issuer with a slash",
            signer.sign(
                &header,
                &with_claim(|c| c["iss"] = json!("https://as.example/")),
            ),
            "issuer",
        ),
        (
            "expired",
            signer.sign(&header, &with_claim(|c| c["exp"] = json!(unix_time() - 61))),
            "expired",
        ),
        (
            "never expires",
            signer.sign(&header, &with_claim(|c| c["exp"] = json!(null))),
            "expiry",
        ),
        (
            "not valid yet",
            signer.sign(
                &header,
                &with_claim(|c| c["nbf"] = json!(unix_time() + 120)),
            ),
            "not valid yet",
        ),
        (
            "from the future",
            signer.sign(
                &header,
                &with_claim(|c| c["iat"] = json!(unix_time() + 120)),
            ),
            "not valid yet",
        ),
        ("opaque", "opaque".to_owned(), "not a signed JWT"),
    ] {
        let header = format!("Bearer {token}");
        let (status, challenge) =
            refusal_status_and_challenge(&server(&signer), &[("authorization", &header)]).await;
        assert_eq!(status, 401, "{attack}");
        assert_eq!(challenge.param("error"), Some("invalid_token"), "{attack}");
        let description = challenge.param("error_description").unwrap_or("");
        assert!(description.contains(message), "{attack}: {description}");
        assert!(!description.contains(&token), "{attack}");
    }
}

/// RFC 6750, section 3: absent, malformed and invalid credentials get the status and the error that the specification
/// requires.
#[tokio::test]
async fn challenges_match_the_specification() {
    let signer = Signer::new("k");
    let server = server(&signer).scopes(["read", "list"]);
    let token = signer.sign(&signer.header(), &valid_claims());
    let metadata = "https://mcp.example/.well-known/oauth-protected-resource/mcp";
    let bearer = format!("Bearer {token}");
    for (headers, status, error) in [
        (&[][..], 401, None),
        (&[("authorization", "Basic eDp5")], 401, None),
        (&[("authorization", "Bearer")], 400, Some("invalid_request")),
        (
            &[("authorization", "Bearer a b")],
            400,
            Some("invalid_request"),
        ),
        (
            &[("authorization", "DPoP a b")],
            400,
            Some("invalid_request"),
        ),
        (
            &[("authorization", &*bearer), ("authorization", &bearer)],
            400,
            Some("invalid_request"),
        ),
        (&[("authorization", "Bearer x")], 401, Some("invalid_token")),
        (
            &[("authorization", &*bearer)],
            403,
            Some("insufficient_scope"),
        ),
    ] {
        let (got, challenge) = refusal_status_and_challenge(&server, headers).await;
        assert_eq!(
            (got, challenge.param("error")),
            (status, error),
            "{headers:?}"
        );
        assert!(challenge.has_scheme("Bearer"));
        assert_eq!(challenge.param("resource_metadata"), Some(metadata));
        if status != 400 {
            assert_eq!(challenge.param("scope"), Some("read list"));
        }
    }
    let mut parts = request(&[]);
    parts.uri = "https://mcp.example/mcp?access_token=x"
        .parse()
        .expect("a URI");
    let error = server
        .authenticate(&mut parts)
        .await
        .expect_err("in the query");
    assert_eq!(error.status, 400);
}

/// The challenge for an operation contains all required scopes; the scope hierarchy of an application determines which
/// granted scopes include a required scope.
#[tokio::test]
async fn operations_need_all_their_scopes() {
    let signer = Signer::new("k");
    let server = server(&signer).scopes(["read"]);
    let token = signer.sign(&signer.header(), &valid_claims());
    let parts = authenticate_bearer(&server, &token)
        .await
        .expect("it has `read`");
    let needed = ["write".to_owned(), "read".to_owned()];
    let error = server.authorize(&parts, &needed).expect_err("no `write`");
    assert_eq!(error.status, 403);
    let challenge = error.challenge.expect("a challenge");
    let challenge = Challenge::parse(challenge.to_str().expect("ASCII")).remove(0);
    assert_eq!(challenge.param("scope"), Some("read write"));
    server
        .authorize(&parts, &needed[1..])
        .expect("it has `read`");
    let lenient =
        server.hierarchy(|granted, needed| granted.contains("read") || granted.contains(needed));
    lenient.authorize(&parts, &needed).expect("covered");
}

/// Starts an issuer that delays the response with its keys by `delay` milliseconds.
async fn start_slow_issuer(signer: &Signer, delay: &'static str) -> Site {
    let keys = signer.key_set();
    Site::start(|origin| {
        let origin = origin.to_owned();
        move |request| match &*request.path {
            "/.well-known/oauth-authorization-server" => respond_json(
                200,
                &json!({"issuer": origin, "jwks_uri": format!("{origin}/keys")}),
            ),
            _ => response(200, &[("x-delay-ms", delay)], &keys.to_string()),
        }
    })
    .await
}

/// However many tokens have unknown key ids, the server requests the keys at most once per minute.
#[tokio::test]
async fn unknown_keys_cause_one_request() {
    let signer = Arc::new(Signer::new("k"));
    let site = start_slow_issuer(&signer, "0").await;
    let server = Arc::new(ResourceServer::jwks(&site.url, RESOURCE).expect("a resource"));
    let tasks = (0..200).map(|number| {
        let (server, signer) = (Arc::clone(&server), Arc::clone(&signer));
        let header = json!({"alg": "ES256", "kid": format!("x{number}"), "typ": "at+jwt"});
        let token = signer.sign(&header, &with_claim(|c| c["iss"] = json!(site.url)));
        tokio::spawn(async move { authenticate_bearer(&server, &token).await.map(drop) })
    });
    for task in tasks.collect::<Vec<_>>() {
        let error = task.await.expect("no panic").expect_err("an unknown key");
        assert_eq!(error.status, 401);
    }
    assert_eq!(site.count("/keys"), 1);
    let issuer = site.url.clone();
    let good = signer.sign(&signer.header(), &with_claim(|c| c["iss"] = json!(issuer)));
    authenticate_bearer(&server, &good)
        .await
        .expect("the keys are kept");
    assert_eq!(site.count("/keys"), 1);
}

/// A token of another issuer causes no request for keys.
#[tokio::test]
async fn foreign_tokens_cause_no_request() {
    let signer = Signer::new("k");
    let site = start_slow_issuer(&signer, "0").await;
    let server = ResourceServer::jwks(&site.url, RESOURCE).expect("a resource");
    let token = signer.sign(&signer.header(), &valid_claims());
    let error = authenticate_bearer(&server, &token)
        .await
        .expect_err("another issuer");
    assert_eq!(error.status, 401);
    assert!(site.received_requests().is_empty());
}

/// If a client disconnects during the request for keys, this request continues for the other clients.
#[tokio::test]
async fn disconnected_client_keeps_key_request() {
    let signer = Signer::new("k");
    let site = start_slow_issuer(&signer, "200").await;
    let server = Arc::new(ResourceServer::jwks(&site.url, RESOURCE).expect("a resource"));
    let token = signer.sign(
        &signer.header(),
        &with_claim(|c| c["iss"] = json!(site.url)),
    );
    let first = {
        let (server, token) = (Arc::clone(&server), token.clone());
        tokio::spawn(async move { authenticate_bearer(&server, &token).await.map(drop) })
    };
    while site.count("/keys") == 0 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    first.abort();
    authenticate_bearer(&server, &token)
        .await
        .expect("the keys are there");
    assert_eq!(site.count("/keys"), 1);
}

/// If the keys cannot be obtained, the server reports a temporary error instead of an invalid token.
#[tokio::test]
async fn absent_keys_are_a_temporary_error() {
    let signer = Signer::new("k");
    let site = Site::start(|_| |_: &_| respond_json(500, &json!({}))).await;
    let server = ResourceServer::jwks(&site.url, RESOURCE).expect("a resource");
    let token = signer.sign(
        &signer.header(),
        &with_claim(|c| c["iss"] = json!(site.url)),
    );
    for _ in 0..3 {
        let error = authenticate_bearer(&server, &token)
            .await
            .expect_err("no keys");
        assert_eq!(error.status, 503);
        assert_eq!(error.challenge, None);
    }
    assert_eq!(site.received_requests().len(), 1);
}

/// A token is accepted if the introspection endpoint, to which the server authenticates, reports that the token is
/// active.
#[tokio::test]
async fn opaque_tokens_are_introspected() {
    let site = Site::start(|_| {
        |request: &mcp_exact_tests_auth::site::ReceivedRequest| {
            let mut answer = valid_claims();
            let is_known = request.param("token").as_deref() == Some("o+p/aque");
            let is_server = request.header("authorization") == "Basic cnMlMjAxOnMlM0Fjcg==";
            answer["active"] = json!(is_known && is_server);
            respond_json(200, &answer)
        }
    })
    .await;
    let url = format!("{}/introspect", site.url);
    let verifier = Introspection::new(ISSUER, RESOURCE, url, "rs 1", "s:cr").expect("credentials");
    let server = ResourceServer::new(ISSUER, RESOURCE, verifier).expect("a resource");
    authenticate_bearer(&server, "o+p/aque")
        .await
        .expect("active");
    let error = authenticate_bearer(&server, "other")
        .await
        .expect_err("not active");
    assert_eq!(error.status, 401);
}

/// "MCP servers MUST NOT accept or transit any other tokens" (2026-07-28, "Token Handling"): the introspection endpoint
/// of one issuer does not receive the signed tokens of another one.
#[tokio::test]
async fn introspection_gets_no_foreign_tokens() {
    let site = Site::start(|_| {
        |_: &mcp_exact_tests_auth::site::ReceivedRequest| {
            respond_json(200, &with_claim(|claims| claims["active"] = json!(true)))
        }
    })
    .await;
    let url = format!("{}/introspect", site.url);
    let verifier = Introspection::new(ISSUER, RESOURCE, url, "rs", "s").expect("credentials");
    let (other, signer) = ("https://other.example", Signer::new("k"));
    let jwks = Jwks::new(other, RESOURCE).fixed_keys(&signer.key_set().to_string());
    let server = ResourceServer::new(ISSUER, RESOURCE, verifier).expect("a resource");
    let server = server.also_trust(other, jwks.expect("keys"));
    for (issuer, introspected) in [(other, 0), (ISSUER, 1)] {
        let claims = with_claim(|claims| claims["iss"] = json!(issuer));
        let token = signer.sign(&signer.header(), &claims);
        authenticate_bearer(&server, &token).await.expect("valid");
        assert_eq!(site.received_requests().len(), introspected, "{issuer}");
    }
}

/// A token that expired 20 seconds ago is accepted with the default clock skew of 30 seconds, and rejected without
/// clock skew; one that expired 40 seconds ago is rejected, whatever skew was asked for.
#[tokio::test]
async fn clocks_may_differ_by_half_a_minute() {
    let signer = Signer::new("k");
    let token = loop {
        let begun = unix_time();
        let claims = with_claim(|c| c["exp"] = json!(begun - 20));
        let token = signer.sign(&signer.header(), &claims);
        let accepted = authenticate_bearer(&server(&signer), &token).await;
        // On a slow machine, the check may have taken the rest of the skew.
        if unix_time() - begun < 10 {
            accepted.expect("within the skew");
            break token;
        }
    };
    let older = signer.sign(
        &signer.header(),
        &with_claim(|c| c["exp"] = json!(unix_time() - 40)),
    );
    let wide = Jwks::new(ISSUER, RESOURCE).clock_skew(Duration::from_secs(600));
    let wide = wide
        .fixed_keys(&signer.key_set().to_string())
        .expect("keys");
    let wide = ResourceServer::new(ISSUER, RESOURCE, wide).expect("a resource");
    let refused = authenticate_bearer(&wide, &older).await;
    assert_eq!(refused.expect_err("expired").status, 401);
    let strict = Jwks::new(ISSUER, RESOURCE).clock_skew(Duration::ZERO);
    let strict = strict
        .fixed_keys(&signer.key_set().to_string())
        .expect("keys");
    let strict = ResourceServer::new(ISSUER, RESOURCE, strict).expect("a resource");
    assert_eq!(
        authenticate_bearer(&strict, &token)
            .await
            .expect_err("expired")
            .status,
        401
    );
}

/// "Parameters with zero values MUST be omitted" (RFC 9728, section 3.2).
#[test]
fn empty_scopes_are_left_out() {
    let server = ResourceServer::jwks(ISSUER, RESOURCE).expect("a resource");
    assert_eq!(server.scopes([""; 0]).metadata().scopes_supported, None);
}
