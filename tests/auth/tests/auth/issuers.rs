//! Which authorization server a client believes, and which resource: the first issuer, the ports of this machine, the name of the
//! resource.

use std::sync::Arc;

use mcp_exact::transport::http::client::HyperClient;
use mcp_exact_auth::client::{OAuth, OAuthError};
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent};
use mcp_exact_tests_auth::site::json_response as respond_json;
use serde_json::json;

use crate::client::{deviations_with, error_reason, oauth_client, send_call};

/// RFC 7523, section 5, and 2026-07-28 "Authorization Server Binding": the platform token of a workload authenticates it,
/// so that a resource that names another authorization server later cannot direct the token there.
#[tokio::test]
async fn workload_tokens_stay_with_first_issuer() {
    let old = Authority::start(deviations_with(|k| {
        k.token_response =
            Some(|_| respond_json(200, &json!({"access_token": "a", "token_type": "Bearer"})));
    }))
    .await;
    let new = Authority::start(Deviations::default()).await;
    let oauth = OAuth::workload(|| async { Ok("platform token".into()) });
    let client = oauth_client(&old, oauth);
    let error = send_call(&client, &old.endpoint()).await;
    let error = error.expect_err("the resource does not know the token");
    let is_rejected = matches!(error_reason(&error), OAuthError::StillUnauthorized { .. });
    assert!(is_rejected, "{error}");
    /// Issuer of the new authorization server.
    static OTHER_SERVER: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    OTHER_SERVER.set(new.server.url.clone()).expect("set once");
    old.set_deviations(|deviations| {
        deviations.resource = |metadata, _, _| {
            metadata["authorization_servers"] =
                json!([OTHER_SERVER.get().cloned().unwrap_or_default()]);
        };
    });
    let error = send_call(&client, &old.endpoint()).await;
    let error = error.expect_err("another issuer").to_string();
    assert!(error.contains(&old.server.url), "{error}");
    assert_eq!(
        (old.server.count("/token"), new.server.count("/token")),
        (1, 0)
    );
}

/// A server of this machine sends its client to no other port of it unasked; the error names what allows it.
#[tokio::test]
async fn loopback_servers_name_no_other_port() {
    let authority = Authority::start(Deviations::default()).await;
    let inner = Arc::new(HyperClient::default());
    let oauth = || OAuth::new("test").user_agent(RedirectAgent::default());
    let refused = oauth().client(&authority.endpoint(), Arc::clone(&inner) as _);
    let refused = refused.expect("the URL is on loopback");
    let error = send_call(&refused, &authority.endpoint()).await;
    let error = error.expect_err("another port").to_string();
    assert!(error.contains("another port of this machine"), "{error}");
    assert!(error.contains("`OAuth::allow_other_ports`"), "{error}");
    assert!(authority.server.received_requests().is_empty());
    for allowed in [
        oauth().allow_other_ports(),
        oauth().allow_private_addresses(),
        oauth().issuer(&authority.server.url),
    ] {
        let client = allowed.client(&authority.endpoint(), Arc::clone(&inner) as _);
        let client = client.expect("the URL is on loopback");
        let called = send_call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
    }
}

/// RFC 9728, section 3.3: metadata that names another resource is used only if the application names that resource.
#[tokio::test]
async fn another_resource_is_used_on_request() {
    let authority = Authority::start(deviations_with(|k| {
        k.resource = |m, _, _| m["resource"] = json!("urn:example:notes");
    }))
    .await;
    let oauth = || OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth_client(&authority, oauth());
    let error = send_call(&client, &authority.endpoint()).await;
    let error = error.expect_err("another resource").to_string();
    assert!(error.contains("`OAuth::resource("), "{error}");
    let client = oauth_client(&authority, oauth().resource("urn:example:notes"));
    let called = send_call(&client, &authority.endpoint()).await;
    assert_eq!(called.expect("authorized"), 200);
    let requests = authority.server.received_requests();
    let token = requests.iter().find(|request| request.path == "/token");
    assert_eq!(
        token
            .and_then(|request| request.param("resource"))
            .as_deref(),
        Some("urn:example:notes")
    );
    let client = oauth_client(&authority, oauth().resource("urn:example:other"));
    let error = send_call(&client, &authority.endpoint()).await;
    error.expect_err("yet another resource");
}

/// The first issuer is compared byte by byte: an issuer that differs by a slash at the end is another one (RFC 8414, section
/// 3.3).
#[tokio::test]
async fn first_issuer_is_compared_byte_by_byte() {
    let authority = Authority::start(deviations_with(|k| {
        k.token_response =
            Some(|_| respond_json(200, &json!({"access_token": "a", "token_type": "Bearer"})));
    }))
    .await;
    let oauth = OAuth::workload(|| async { Ok("platform token".into()) });
    let client = oauth_client(&authority, oauth);
    let error = send_call(&client, &authority.endpoint()).await;
    error.expect_err("the resource does not know the token");
    authority.set_deviations(|deviations| {
        deviations.metadata = |metadata, origin| metadata["issuer"] = json!(format!("{origin}/"));
        deviations.resource = |metadata, _, origin| {
            metadata["authorization_servers"] = json!([format!("{origin}/")]);
        };
    });
    let error = send_call(&client, &authority.endpoint()).await;
    let error = error.expect_err("another issuer");
    let is_other = matches!(error_reason(&error), OAuthError::OtherIssuer { .. });
    assert!(is_other, "{error}");
    assert_eq!(authority.server.count("/token"), 1);
}

/// An authorization server that issues the client id that is configured for another server does not receive the secret
/// of that id.
#[tokio::test]
async fn issued_ids_get_no_configured_secret() {
    let authority = Authority::start(deviations_with(|k| {
        k.client_id = "id";
        k.metadata =
            |m, _| m["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    }))
    .await;
    let oauth = OAuth::new("test")
        .also_registered("https://as.example", "id")
        .secret("hunter2");
    let client = oauth_client(&authority, oauth.user_agent(RedirectAgent::default()));
    for _ in 0..2 {
        let called = send_call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
        authority.expire_tokens();
    }
    let requests = authority.server.received_requests();
    let grants: Vec<_> = requests
        .iter()
        .filter_map(|request| request.param("grant_type"))
        .collect();
    assert_eq!(grants, ["authorization_code", "refresh_token"]);
    for request in requests {
        assert!(!request.body.contains("hunter2"), "{request:?}");
        assert_eq!(request.header("authorization"), "");
    }
}
