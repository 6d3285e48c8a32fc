//! Attacks on resource servers whose tokens are bound to a key (RFC 9449): proofs of others, old proofs, and proofs without the
//! server's nonce.

use mcp_exact_auth::Challenge;
use mcp_exact_auth::server::{ResourceServer, TokenBinding};
use mcp_exact_tests_auth::tokens::{Signer, sha256_base64url};
use serde_json::{Value, json};

use crate::resource::{
    RESOURCE, authenticate_bearer, check_token, refusal_status_and_challenge, server, unix_time,
    valid_claims, with_claim,
};

/// Creates a DPoP proof, changed by `change`, for a call with a token.
fn dpop_proof(key: &Signer, token: &str, change: impl FnOnce(&mut Value)) -> String {
    let header = json!({"alg": "ES256", "typ": "dpop+jwt", "jwk": key.jwk()});
    let mut claims = json!({
        "jti": sha256_base64url(&unix_time().to_be_bytes()),
        "htm": "POST",
        "htu": RESOURCE,
        "iat": unix_time(),
        "ath": sha256_base64url(token.as_bytes()),
    });
    change(&mut claims);
    key.sign(&header, &claims)
}

/// RFC 9449, section 4.3: a token that is bound to a key is accepted only with a fresh proof of this key.
#[tokio::test]
async fn bound_tokens_need_their_key() {
    let (signer, key, thief) = (Signer::new("k"), Signer::new(""), Signer::new(""));
    let server = server(&signer).binding(TokenBinding::Optional);
    let jkt = key.thumbprint();
    let token = signer.sign(
        &signer.header(),
        &with_claim(|c| c["cnf"] = json!({"jkt": jkt})),
    );
    let scheme = format!("DPoP {token}");
    let send = async |proof: &str| {
        check_token(&server, &[("authorization", &scheme), ("dpop", proof)]).await
    };
    let good = dpop_proof(&key, &token, |_| {});
    send(&good).await.expect("the key is right");
    let mut private = key.jwk();
    private["d"] = json!("AA");
    let header = json!({"alg": "ES256", "typ": "dpop+jwt", "jwk": private});
    let rows = [
        (good.clone(), "the proof was used before"),
        (
            dpop_proof(&thief, &token, |c| c["jti"] = json!("1")),
            "the token is bound to another key",
        ),
        (
            key.sign(&header, &json!({})),
            "the proof holds a private key",
        ),
        (
            dpop_proof(&key, &token, |c| c["htm"] = json!("GET")),
            "the proof is for another method",
        ),
        (
            dpop_proof(&key, &token, |c| {
                c["htu"] = json!("https://evil.example/mcp")
            }),
            "the proof is for another URL",
        ),
        (
            dpop_proof(&key, "x", |_| {}),
            "the proof is for another token",
        ),
        (
            dpop_proof(&key, &token, |c| c["iat"] = json!(unix_time() - 301)),
            "the proof is too old or from the future",
        ),
        (
            // The limit is 300 s, and some time may pass before the check.
            dpop_proof(&key, &token, |c| c["iat"] = json!(unix_time() + 360)),
            "the proof is too old or from the future",
        ),
        (
            dpop_proof(&key, &token, |c| c["jti"] = json!("")),
            "the proof has no id",
        ),
        (String::new(), "the proof is not a signed JWT"),
    ];
    for (proof, reason) in rows {
        let error = send(&proof).await.expect_err(reason);
        let challenge = error.challenge.expect("a challenge");
        let challenge = Challenge::parse(challenge.to_str().expect("ASCII")).remove(0);
        assert!(challenge.has_scheme("DPoP"), "{reason}");
        let param = |name| challenge.param(name);
        assert_eq!(param("error"), Some("invalid_dpop_proof"), "{reason}");
        assert_eq!(param("error_description"), Some(reason));
    }
    // A bound token is not a bearer token, and a bearer token is not bound.
    assert_eq!(
        authenticate_bearer(&server, &token)
            .await
            .expect_err("stolen")
            .status,
        401
    );
    let plain = signer.sign(&signer.header(), &valid_claims());
    let scheme = format!("DPoP {plain}");
    let (status, _) = refusal_status_and_challenge(&server, &[("authorization", &scheme)]).await;
    assert_eq!(status, 401);
    let strict = server.clone().binding(TokenBinding::Required);
    assert_eq!(
        authenticate_bearer(&strict, &plain)
            .await
            .expect_err("not bound")
            .status,
        401
    );
}

/// RFC 9449, section 9: a proof without the server's nonce is refused with a response that contains the nonce. A proof
/// with the nonce is accepted, also by another process with the same nonce key.
#[tokio::test]
async fn proofs_must_contain_the_nonce() {
    let (signer, key) = (Signer::new("k"), Signer::new(""));
    let server = |secret| server(&signer).dpop_nonces(&[secret; 32]);
    let jkt = key.thumbprint();
    let token = signer.sign(
        &signer.header(),
        &with_claim(|c| c["cnf"] = json!({"jkt": jkt})),
    );
    let scheme = format!("DPoP {token}");
    let send = async |server: &ResourceServer, nonce: Option<&str>, id: &str| {
        let proof = dpop_proof(&key, &token, |c| {
            c["nonce"] = json!(nonce);
            c["jti"] = json!(id);
        });
        check_token(server, &[("authorization", &scheme), ("dpop", &proof)]).await
    };
    let first = server(1);
    for nonce in [None, Some(""), Some("guessed")] {
        let error = send(&first, nonce, "a").await.expect_err("no nonce");
        assert_eq!(error.status, 401);
        let challenge = error.challenge.expect("a challenge");
        let challenge = Challenge::parse(challenge.to_str().expect("ASCII")).remove(0);
        assert_eq!(challenge.param("error"), Some("use_dpop_nonce"));
        assert!(error.dpop_nonce.is_some());
    }
    let error = send(&first, None, "a").await.expect_err("no nonce");
    let nonce = error.dpop_nonce.expect("a nonce");
    let nonce = nonce.to_str().expect("ASCII");
    send(&first, Some(nonce), "b")
        .await
        .expect("the nonce is right");
    send(&server(1), Some(nonce), "c")
        .await
        .expect("the same key");
    let error = send(&server(2), Some(nonce), "d").await;
    let other = error.expect_err("another key").dpop_nonce;
    assert_ne!(other.expect("a nonce"), nonce);
}
