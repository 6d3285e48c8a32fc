//! Resource servers: whose keys they use, what their metadata says, and what handlers learn of a token.

use std::time::{Duration, SystemTime};

use http::request::Parts;
use http::{Method, StatusCode};
use mcp_exact::transport::http::server::Authenticate as _;
use mcp_exact_auth::server::{Access, Jwks, ResourceServer, TokenBinding, TokenVerifier as _};
use mcp_exact_tests_auth::issuer::valid_claims;
use mcp_exact_tests_auth::site::{Site, json_response as respond_json};
use mcp_exact_tests_auth::tokens::Signer;
use serde_json::{Value, json};

/// Resource of the tests.
const RESOURCE: &str = "https://mcp.example/mcp";

/// "The `issuer` value returned MUST be identical to the authorization server's issuer identifier value" (RFC 8414, section 3.3):
/// keys that the metadata of another issuer names are not requested.
#[tokio::test]
async fn keys_of_other_issuers_are_not_used() {
    let signer = Signer::new("k");
    for (suffix, is_valid) in [("", true), ("/", false), ("/tenant", false)] {
        let keys = signer.key_set();
        let site = Site::start(|origin| {
            let issuer = format!("{origin}{suffix}");
            let url = format!("{origin}/keys");
            move |request| match &*request.path {
                "/keys" => respond_json(200, &keys),
                _ => respond_json(200, &json!({"issuer": issuer, "jwks_uri": url})),
            }
        })
        .await;
        let verifier = Jwks::new(&site.url, RESOURCE);
        let token = signer.sign(
            &signer.header(),
            &valid_claims(&site.url, RESOURCE, "u", ""),
        );
        let verified = verifier.verify(&token).await;
        assert_eq!(verified.is_ok(), is_valid, "{suffix:?}: {verified:?}");
        assert_eq!(site.count("/keys"), usize::from(is_valid), "{suffix:?}");
    }
}

/// A verifier for several resources accepts a token at its own resource alone ("Token Audience Binding and Validation").
#[tokio::test]
async fn tokens_are_for_one_resource() {
    let (signer, issuer) = (Signer::new("k"), "https://as.example");
    let one = Jwks::new(issuer, "https://mcp.example/a");
    let one = one.fixed_keys(&signer.key_set().to_string()).expect("keys");
    let other = one.for_resource("https://mcp.example/b");
    for (audience, expected) in [
        ("https://mcp.example/a", [true, false]),
        ("https://mcp.example/b", [false, true]),
        ("https://mcp.example", [false, false]),
    ] {
        let claims = valid_claims(issuer, audience, "u", "");
        let token = signer.sign(&signer.header(), &claims);
        let verified = [one.verify(&token).await, other.verify(&token).await];
        assert_eq!(
            verified.map(|access| access.is_ok()),
            expected,
            "{audience}"
        );
    }
}

/// Handlers learn whom a token is of, and by whom; `Debug` shows this and no other claim.
#[tokio::test]
async fn access_tells_issuer_and_user() {
    let (signer, issuer) = (Signer::new("k"), "https://as.example");
    let verifier = Jwks::new(issuer, RESOURCE);
    let verifier = verifier
        .fixed_keys(&signer.key_set().to_string())
        .expect("keys");
    let mut claims = valid_claims(issuer, RESOURCE, "ann", "read write");
    claims["email"] = json!("ann@mail.example");
    let token = signer.sign(&signer.header(), &claims);
    let access = verifier.verify(&token).await.expect("valid");
    assert_eq!(access.issuer(), issuer);
    assert_eq!(
        (access.subject(), access.client_id()),
        (Some("ann"), Some("c"))
    );
    let all: Value = access.claims().expect("an object");
    assert_eq!(all, claims);
    let shown = format!("{access:?}");
    for part in ["Access", issuer, "ann", "\"c\"", "read", "write"] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    assert!(!shown.contains("mail.example"), "{shown}");
    let built = Access::builder(issuer, SystemTime::now() + Duration::from_secs(60));
    let built = built
        .subject("ann")
        .client_id("c")
        .build()
        .expect("a subject");
    assert_eq!(built.principal(), access.principal());
}

/// Returns the head of a request for a path.
fn request(method: Method, path: &str) -> Parts {
    let request = http::Request::builder().method(method).uri(path);
    request.body(()).expect("a request").into_parts().0
}

/// RFC 9728, sections 2 and 3: the metadata is at the well-known URL with the path of the resource, and says whether tokens must be
/// bound. Pages of other origins may read it (Fetch, "CORS-preflight request").
#[tokio::test]
async fn metadata_describes_the_resource() {
    let plain = ResourceServer::jwks("https://as.example", RESOURCE).expect("a resource");
    assert_eq!(plain.metadata().dpop_bound_access_tokens_required, None);
    for (binding, is_required) in [
        (TokenBinding::Optional, false),
        (TokenBinding::Required, true),
    ] {
        let server = plain.clone().binding(binding).name("Notes");
        let path = "/.well-known/oauth-protected-resource/mcp";
        assert_eq!(server.metadata_url(), format!("https://mcp.example{path}"));
        assert_eq!(server.metadata().resource, RESOURCE);
        for (method, status, has_body) in [
            (Method::GET, StatusCode::OK, true),
            (Method::HEAD, StatusCode::OK, true),
            (Method::OPTIONS, StatusCode::NO_CONTENT, false),
            (Method::POST, StatusCode::METHOD_NOT_ALLOWED, false),
        ] {
            let answer = server.respond(&request(method.clone(), path));
            let answer = answer.expect("it is the path of the metadata");
            assert_eq!(answer.status(), status, "{method}");
            assert_eq!(answer.headers()["access-control-allow-origin"], "*");
            assert_eq!(answer.headers()["allow"], "GET, HEAD, OPTIONS");
            assert_eq!(!answer.body().is_empty(), has_body, "{method}");
            if has_body {
                let metadata: Value = serde_json::from_slice(answer.body()).expect("JSON");
                assert_eq!(metadata["resource"], RESOURCE);
                assert_eq!(metadata["resource_name"], "Notes");
                assert_eq!(metadata["dpop_bound_access_tokens_required"], is_required);
            }
        }
        assert!(server.respond(&request(Method::GET, "/mcp")).is_none());
        let shown = format!("{server:?}");
        assert!(shown.contains(RESOURCE), "{shown}");
        assert!(shown.contains(&format!("{binding:?}")), "{shown}");
    }
}
