//! Clients that bind their tokens to a key (RFC 9449): when they do, what they send, and the nonces that servers require.

use std::time::{Duration, SystemTime};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_exact::transport::http::server::Authenticate as _;
use mcp_exact_auth::client::{DpopPolicy, OAuth};
use mcp_exact_auth::server::{
    Access, ResourceServer, TokenBinding, TokenError, TokenVerifier, VerifyFuture,
};
use mcp_exact_tests_auth::authority::RedirectAgent;
use mcp_exact_tests_auth::script::ScriptedServer;
use mcp_exact_tests_auth::site::{ReceivedRequest, json_response as respond_json, response};
use mcp_exact_tests_auth::tokens::sha256_base64url;
use serde_json::{Value, json};

use crate::client::{error_reason, send_call};

/// Returns the header and the claims of the proof of a request.
fn proof_of(request: &ReceivedRequest) -> [Value; 2] {
    let mut parts = request.header("dpop").split('.').map(|part| {
        let bytes = URL_SAFE_NO_PAD.decode(part).expect("base64url");
        serde_json::from_slice(&bytes).expect("JSON")
    });
    [(); 2].map(|()| parts.next().expect("a part"))
}

/// Starts a server whose first token is `a1`, bound to the key of the proof if the request has one, and which refuses other tokens
/// with a challenge of this scheme.
async fn start_server(scheme: &str) -> ScriptedServer {
    let server = ScriptedServer::start().await;
    server.script().refuse(scheme, None);
    server.script().accept(&["DPoP a1", "Bearer a1"]);
    server.script().hook = Some(Box::new(|request| {
        let kind = match request.header("dpop") {
            "" => "Bearer",
            _ => "DPoP",
        };
        let token = json!({"access_token": "a1", "token_type": kind});
        (request.path == "/token").then(|| respond_json(200, &token))
    }));
    server
}

/// Creates the options of a client with a policy.
fn oauth(policy: DpopPolicy) -> OAuth {
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    oauth.dpop(policy)
}

/// The policies of `io.modelcontextprotocol/auth/dpop`: a resource requires bound tokens by the scheme of its challenge (RFC 9449,
/// section 7.1) or by its metadata (RFC 9728, section 2), and an authorization server supports them by its metadata (RFC 9449,
/// section 5.1).
#[tokio::test]
async fn tokens_are_bound_on_demand() {
    use DpopPolicy::{Never, WhenRequired, WhenSupported};
    for (policy, scheme, is_required, algorithm, is_bound) in [
        (Never, "DPoP", true, "ES256", false),
        (WhenRequired, "Bearer", false, "none", false),
        (WhenRequired, "Bearer", false, "ES256", false),
        (WhenRequired, "DPoP", false, "none", true),
        (WhenRequired, "Bearer", true, "none", true),
        (WhenSupported, "Bearer", false, "none", false),
        (WhenSupported, "Bearer", false, "ES256", true),
        (WhenSupported, "DPoP", false, "none", true),
    ] {
        let server = start_server(scheme).await;
        server.script().resource = json!({"dpop_bound_access_tokens_required": is_required});
        server.script().metadata = json!({"dpop_signing_alg_values_supported": [algorithm]});
        let client = server.client(oauth(policy));
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
        let call = server.requests("/mcp").pop().expect("a call");
        let expected = if is_bound { "DPoP a1" } else { "Bearer a1" };
        let row = format!("{policy:?} {scheme} {is_required} {algorithm}");
        assert_eq!(call.header("authorization"), expected, "{row}");
        assert_eq!(call.header("dpop").is_empty(), !is_bound, "{row}");
    }
}

/// Verifier of a token that is bound to this key.
struct Bound(String);

impl TokenVerifier for Bound {
    fn verify<'a>(&'a self, token: &'a str) -> VerifyFuture<'a> {
        Box::pin(async move {
            if token != "a1" {
                return Err(TokenError::invalid("another token"));
            }
            let expires = SystemTime::now() + Duration::from_secs(60);
            let access = Access::builder("https://as.example", expires);
            access.subject("u").bound_to_key(&self.0).build()
        })
    }
}

/// RFC 9449, section 4.2: "A unique identifier", the method, the URL, the time, the hash of the token. The resource server of this
/// crate accepts each call, with a proof of its own by the key of the token request.
#[tokio::test]
async fn proofs_satisfy_the_resource_server() {
    let server = start_server("DPoP").await;
    let client = server.client(oauth(DpopPolicy::default()));
    for _ in 0..2 {
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
    }
    let [header, claims] = proof_of(&server.requests("/token")[0]);
    assert_eq!(claims["htu"], format!("{}/token", server.site.url));
    assert_eq!((&claims["htm"], claims.get("ath")), (&json!("POST"), None));
    // `serde_json` sorts members by name, as the thumbprint requires.
    let key = sha256_base64url(header["jwk"].to_string().as_bytes());
    let resource = ResourceServer::new("https://as.example", &server.endpoint(), Bound(key));
    let resource = resource
        .expect("a resource")
        .binding(TokenBinding::Required);
    let calls = server.requests("/mcp");
    assert_eq!(calls.len(), 3);
    for call in &calls[1..] {
        let mut request = http::Request::post("/mcp").body(()).expect("a request");
        *request.headers_mut() = call.headers.clone();
        let (mut parts, ()) = request.into_parts();
        let accepted = resource.authenticate(&mut parts).await;
        assert!(accepted.is_ok(), "{accepted:?}");
    }
}

/// RFC 9449, sections 8 and 9: a request is repeated once with the nonce that the server requires, and later proofs have the latest
/// nonce of the server (section 8.2).
#[tokio::test]
async fn required_nonces_are_sent() {
    let server = start_server("DPoP").await;
    let nonces = |wanted: &'static str| {
        move |request: &ReceivedRequest| {
            let at = (&*request.path, request.header("dpop"));
            let (status, nonce) = match at {
                ("/token", _) => (400, "of-issuer"),
                ("/mcp", proof) if !proof.is_empty() => (401, wanted),
                _ => return None,
            };
            if proof_of(request)[1]["nonce"] == nonce {
                let token = json!({"access_token": "a1", "token_type": "DPoP"});
                return (status == 400).then(|| respond_json(200, &token));
            }
            let challenge = r#"DPoP error="use_dpop_nonce""#;
            let headers = [("dpop-nonce", nonce), ("www-authenticate", challenge)];
            Some(response(status, &headers, r#"{"error":"use_dpop_nonce"}"#))
        }
    };
    let client = server.client(oauth(DpopPolicy::default()));
    for (nonce, requests) in [
        // Without a token, with the nonce of the issuer at the same origin, and with its own.
        ("first", 3),
        ("first", 1),
        ("second", 2),
        ("second", 1),
    ] {
        server.script().hook = Some(Box::new(nonces(nonce)));
        let before = server.site.count("/mcp");
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200, "{nonce}");
        assert_eq!(server.site.count("/mcp") - before, requests, "{nonce}");
    }
    assert_eq!(server.site.count("/token"), 2);
    // A server that is never satisfied is not asked for ever.
    let mut number = 0;
    server.script().hook = Some(Box::new(move |_| {
        number += 1;
        let challenge = r#"DPoP error="use_dpop_nonce""#;
        let nonce = number.to_string();
        let headers = [("dpop-nonce", &*nonce), ("www-authenticate", challenge)];
        Some(response(401, &headers, ""))
    }));
    let before = server.site.count("/mcp");
    let called = send_call(&client, &server.endpoint()).await;
    assert_eq!(called.expect("answered"), 401);
    assert_eq!(server.site.count("/mcp") - before, 2);
}

/// RFC 9449, section 8: a token request is repeated only if status 400, the error `use_dpop_nonce` and a nonce come together, and
/// only once; a client without a key has no proof for a nonce.
#[tokio::test]
async fn token_requests_are_repeated_for_nonces_alone() {
    let nonce = Some("n");
    for (scheme, status, nonce, error, requests) in [
        ("DPoP", 400, nonce, "use_dpop_nonce", 2),
        ("DPoP", 400, nonce, "invalid_request", 1),
        ("DPoP", 400, None, "use_dpop_nonce", 1),
        ("DPoP", 401, nonce, "use_dpop_nonce", 1),
        ("Bearer", 400, nonce, "use_dpop_nonce", 1),
    ] {
        let server = ScriptedServer::start().await;
        server.script().refuse(scheme, None);
        let body = json!({"error": error}).to_string();
        let headers = nonce.map(|nonce| ("dpop-nonce", nonce));
        let answer = response(status, headers.as_slice(), &body);
        server.script().tokens.extend(vec![answer; 3]);
        let client = server.client(oauth(DpopPolicy::default()));
        let refused = send_call(&client, &server.endpoint()).await;
        let refused = refused.expect_err("there is no token").to_string();
        assert!(refused.contains(error), "{refused}");
        let row = format!("{scheme} {status} {nonce:?} {error}");
        assert_eq!(server.site.count("/token"), requests, "{row}");
    }
}

/// A token that is rejected is refreshed, also if the response has a nonce: it may have one at any time (RFC 9449, section 8.2). The
/// type of the refreshed token is that of its response (RFC 6749, section 7.1).
#[tokio::test]
async fn rejected_bound_tokens_are_refreshed() {
    for (first, second) in [("DPoP", "DPoP"), ("DPoP", "Bearer")] {
        let server = ScriptedServer::start().await;
        server.script().refuse("DPoP", None);
        let token = |kind: &str, name: &str| json!({"access_token": name, "token_type": kind, "refresh_token": "r"});
        server.script().push_token(200, &token(first, "a1"));
        server.script().push_token(200, &token(second, "a2"));
        let client = server.client(oauth(DpopPolicy::default()));
        server.script().accept(&[&format!("{first} a1")]);
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
        server
            .script()
            .refuse(r#"DPoP error="invalid_token""#, Some("n"));
        server.script().accept(&[&format!("{second} a2")]);
        let before = server.site.count("/mcp");
        let called = send_call(&client, &server.endpoint()).await;
        assert_eq!(called.expect("refreshed"), 200, "{first} {second}");
        assert_eq!(server.site.count("/mcp") - before, 2);
        assert_eq!(server.site.count("/token"), 2);
        // The key stays, and the nonce is used.
        let requests = server.requests("/token");
        let [old, new] = [0, 1].map(|at| proof_of(&requests[at]));
        assert_eq!(old[0]["jwk"], new[0]["jwk"]);
        assert_eq!(new[1]["nonce"], "n");
    }
}

/// A token that is bound to a key of somebody else is of no use (RFC 9449, section 5).
#[tokio::test]
async fn tokens_of_other_keys_are_refused() {
    let server = ScriptedServer::start().await;
    let token = json!({"access_token": "a1", "token_type": "DPoP"});
    server.script().push_token(200, &token);
    let client = server.client(oauth(DpopPolicy::Never));
    let error = send_call(&client, &server.endpoint()).await;
    let error = error.expect_err("the client has no key");
    let words = error_reason(&error).to_string();
    assert!(words.contains("bound to a key"), "{words}");
}
