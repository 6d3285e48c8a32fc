//! Tokens that expire: when clients refresh them, and what they keep.

use mcp_exact_auth::client::OAuth;
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent};
use mcp_exact_tests_auth::site::response;
use serde_json::json;

use crate::client::{deviations_with, error_reason, oauth_client, send_call, sign_in_count};

/// If concurrent calls find the token expired, the token is refreshed once.
#[tokio::test]
async fn expired_tokens_are_refreshed_once() {
    let authority = Authority::start(Deviations::default()).await;
    let client = oauth_client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    send_call(&client, &authority.endpoint())
        .await
        .expect("authorized");
    for _ in 0..3 {
        authority.expire_tokens();
        let endpoint = authority.endpoint();
        let calls = (0..20).map(|_| {
            let (client, endpoint) = (client.clone(), endpoint.clone());
            tokio::spawn(async move { send_call(&client, &endpoint).await.expect("refreshed") })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.expect("no panic"), 200);
        }
    }
    assert_eq!(sign_in_count(&authority), 1);
    assert_eq!(authority.server.count("/token"), 4);
    assert!(!authority.is_revoked());
}

/// A token that expires within 45 s is refreshed before it is sent, so that no request is rejected first.
#[tokio::test]
async fn tokens_are_refreshed_early() {
    let authority = Authority::start(deviations_with(|k| k.expires_in = json!(30))).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth_client(&authority, oauth);
    for _ in 0..3 {
        let called = send_call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
    }
    assert_eq!(authority.server.count("/token"), 3);
    assert_eq!(authority.resource.count("/mcp"), 4);
    assert_eq!(sign_in_count(&authority), 1);
}

/// RFC 6749, section 6: if the token response contains no refresh token, the client keeps its refresh token.
#[tokio::test]
async fn refresh_tokens_stay_valid() {
    let authority = Authority::start(deviations_with(|k| k.rotates_refresh_tokens = false)).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth_client(&authority, oauth);
    for _ in 0..4 {
        let called = send_call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
        authority.expire_tokens();
    }
    assert_eq!(sign_in_count(&authority), 1);
    let requests = authority.server.received_requests();
    let used: Vec<_> = requests
        .iter()
        .filter_map(|request| request.param("refresh_token"))
        .collect();
    assert_eq!(used, ["refresh-2"; 3]);
}

/// After a temporary error of the token endpoint, the refresh token is used again later, without the user.
#[tokio::test]
async fn temporary_errors_keep_the_token() {
    let authority = Authority::start(Deviations::default()).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth_client(&authority, oauth);
    send_call(&client, &authority.endpoint())
        .await
        .expect("authorized");
    authority.expire_tokens();
    authority.set_deviations(|k| k.token_response = Some(|_| response(503, &[], "")));
    for _ in 0..2 {
        let error = send_call(&client, &authority.endpoint()).await;
        let error = error.expect_err("it has trouble");
        assert!(error_reason(&error).is_transient(), "{error}");
    }
    authority.set_deviations(|k| k.token_response = None);
    let called = send_call(&client, &authority.endpoint()).await;
    assert_eq!(called.expect("refreshed"), 200);
    assert_eq!(sign_in_count(&authority), 1);
}
