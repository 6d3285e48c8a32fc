//! Attacks on clients: each attack has a row with the behaviour of the servers and the expected error.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use mcp_exact::transport::http::client::{HttpClient, HttpClientError, HyperClient};
use mcp_exact_auth::client::{OAuth, OAuthClient, OAuthError, OAuthRemedy};
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent, parameter};
use mcp_exact_tests_auth::site::{json_response as respond_json, response};
use serde_json::json;

/// Creates an authorizing HTTP client for the endpoint of the test servers.
pub(crate) fn oauth_client(authority: &Authority, oauth: OAuth) -> OAuthClient {
    let inner = Arc::new(HyperClient::default());
    oauth
        .allow_other_ports()
        .client(&authority.endpoint(), inner)
        .expect("the URL is on loopback")
}

/// Sends a call and returns the HTTP status.
pub(crate) async fn send_call(
    client: &OAuthClient,
    endpoint: &str,
) -> Result<u16, HttpClientError> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    let mut request = Request::new(Bytes::from_static(body.as_bytes()));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = endpoint.parse::<Uri>().expect("a URL");
    Ok(client.send(request).await?.status().as_u16())
}

/// Returns the authorization error that an HTTP client error contains.
pub(crate) fn error_reason(error: &HttpClientError) -> &OAuthError {
    error.downcast_ref().expect("an error of authorization")
}

/// Returns the default deviations after the change `turn`.
pub(crate) fn deviations_with(turn: impl FnOnce(&mut Deviations)) -> Deviations {
    let mut deviations = Deviations::default();
    turn(&mut deviations);
    deviations
}

/// Returns the number of sign-ins: of requests to the authorization endpoint.
pub(crate) fn sign_in_count(authority: &Authority) -> usize {
    authority.server.count("/authorize")
}

/// With servers that conform to the specification, a client signs in once, and all of its calls succeed.
#[tokio::test]
async fn conforming_servers_are_used() {
    let authority = Authority::start(Deviations::default()).await;
    let agent = RedirectAgent::default();
    let client = oauth_client(&authority, OAuth::new("test").user_agent(agent.clone()));
    for _ in 0..3 {
        let status = send_call(&client, &authority.endpoint())
            .await
            .expect("authorized");
        assert_eq!(status, 200);
    }
    assert_eq!(sign_in_count(&authority), 1);
    let opened = agent.opened.lock().expect("no panic")[0].clone();
    assert_eq!(parameter(&opened, "resource"), Some(authority.endpoint()));
    let token = authority
        .server
        .received_requests()
        .pop()
        .expect("a token request");
    assert_eq!(token.param("resource"), Some(authority.endpoint()));
}

/// The issuer of the metadata must be identical to the one that was asked ("If they differ, the client MUST NOT use the
/// metadata"), unless the application names the issuer whose slash is ignored.
#[tokio::test]
async fn slashes_of_named_issuers_are_ignored() {
    let deviations = deviations_with(|k| {
        k.metadata = |m, origin| m["issuer"] = json!(format!("{origin}/"));
        k.redirect_query = |query, issuer| format!("{query}&iss={issuer}/");
    });
    let authority = Authority::start(deviations).await;
    let issuer = authority.server.url.clone();
    for (named, is_used) in [(issuer.as_str(), true), ("https://as.example", false)] {
        let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
        let client = oauth_client(&authority, oauth.ignore_issuer_slash(named));
        let called = send_call(&client, &authority.endpoint()).await;
        assert_eq!(called.is_ok(), is_used, "{called:?}");
        if let Err(error) = called {
            let remedy = error_reason(&error).remedy();
            assert_eq!(remedy, Some(OAuthRemedy::IgnoreSlash(issuer.clone())));
        }
    }
}

/// Parameters that the authorization endpoint has already are sent once (RFC 6749, section 3.1), and others are kept.
#[tokio::test]
async fn parameters_of_the_endpoint_are_sent_once() {
    let deviations = deviations_with(|k| {
        k.metadata = |m, origin| {
            let endpoint = format!("{origin}/authorize?resource=x&client_id=x&tenant=1");
            m["authorization_endpoint"] = json!(endpoint);
        };
    });
    let authority = Authority::start(deviations).await;
    let agent = RedirectAgent::default();
    let client = oauth_client(&authority, OAuth::new("test").user_agent(agent.clone()));
    let called = send_call(&client, &authority.endpoint()).await;
    assert_eq!(called.expect("authorized"), 200);
    let opened = agent.opened.lock().expect("no panic")[0].clone();
    for name in ["resource=", "client_id=", "tenant=1"] {
        assert_eq!(opened.matches(name).count(), 1, "{opened}");
    }
}

/// Part of the error message for an exceeded time limit.
const TIMEOUT_MESSAGE: &str = "it took longer";

/// Each row contains an attack, the behaviour of the servers, and the expected error text. A client sends no token
/// request after a response that it has rejected.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table with a row each")]
async fn attacks_fail_with_an_error() {
    let rows: Vec<(&str, Deviations, &str)> = vec![
        (
            "mix-up: the answer comes from another issuer (RFC 9207)",
            deviations_with(|k| {
                k.redirect_query = |query, _| query + "&iss=https%3A%2F%2Fevil.example"
            }),
            "`iss` names another issuer",
        ),
        (
            "the promised iss is missing",
            deviations_with(|k| k.redirect_query = |query, _| query),
            "`iss` is missing",
        ),
        (
            "iss has a further slash",
            deviations_with(|k| {
                k.redirect_query = |query, issuer| format!("{query}&iss={issuer}/")
            }),
            "`iss` names another issuer",
        ),
        (
            "iss is there twice",
            deviations_with(|k| {
                k.redirect_query = |query, issuer| format!("{query}&iss={issuer}&iss={issuer}")
            }),
            "`iss` is repeated",
        ),
        (
            "the state is another one",
            deviations_with(|k| {
                k.redirect_query = |query, issuer| format!("{}x&iss={issuer}", query)
            }),
            "`state` is not",
        ),
        (
            "two codes",
            deviations_with(|k| {
                k.redirect_query = |query, issuer| format!("{query}&code=x&iss={issuer}")
            }),
            "`code` is repeated",
        ),
        (
            "the metadata belongs to another issuer",
            deviations_with(|k| k.metadata = |m, _| m["issuer"] = json!("https://evil.example")),
            "belongs to the issuer `https://evil.example`",
        ),
        (
            "the issuer of the metadata has a further slash",
            deviations_with(|k| k.metadata = |m, origin| m["issuer"] = json!(format!("{origin}/"))),
            "must be identical",
        ),
        (
            "the metadata has a member of another type",
            deviations_with(|k| k.metadata = |m, _| m["token_endpoint"] = json!(["x"])),
            "cannot be read: `token_endpoint` is [\"x\"]: invalid type: sequence, expected a string",
        ),
        (
            "the resource metadata has a member of another type",
            deviations_with(|k| k.resource = |m, _, _| m["authorization_servers"] = json!("x")),
            "cannot be read: `authorization_servers` is \"x\"",
        ),
        (
            "PKCE is downgraded to plain",
            deviations_with(|k| {
                k.metadata = |m, _| m["code_challenge_methods_supported"] = json!(["plain"])
            }),
            "does not list S256",
        ),
        (
            "PKCE is left out",
            deviations_with(|k| {
                k.metadata = |m, _| {
                    drop(
                        m.as_object_mut()
                            .map(|m| m.remove("code_challenge_methods_supported")),
                    )
                };
            }),
            "does not list S256",
        ),
        (
            "the metadata redirects to another origin",
            deviations_with(|k| {
                k.metadata_reply =
                    Some(|_| response(302, &[("location", "http://127.0.0.1:1/metadata")], ""));
            }),
            "redirects to another origin",
        ),
        (
            "the metadata redirects in a circle",
            deviations_with(|k| {
                k.metadata_reply = Some(|origin| {
                    let here = format!("{origin}/.well-known/oauth-authorization-server");
                    response(302, &[("location", &here)], "")
                });
            }),
            "redirects too often",
        ),
        (
            "the metadata is too long",
            deviations_with(|k| {
                k.metadata_reply = Some(|_| response(200, &[], &" ".repeat(2 << 20)))
            }),
            "longer than 1 MiB",
        ),
        (
            "the metadata is compressed",
            deviations_with(|k| {
                k.metadata_reply =
                    Some(|_| response(200, &[("content-encoding", "gzip")], "\u{1f}"))
            }),
            "it is compressed although the client did not ask for it (`gzip`)",
        ),
        (
            "the metadata never comes",
            deviations_with(|k| {
                k.metadata_reply = Some(|_| response(200, &[("x-delay-ms", "60000")], ""))
            }),
            TIMEOUT_MESSAGE,
        ),
        (
            "the metadata comes a byte at a time",
            deviations_with(|k| {
                k.metadata_reply =
                    Some(|_| response(200, &[("x-trickle-ms", "50")], &" ".repeat(10_000)));
            }),
            TIMEOUT_MESSAGE,
        ),
        (
            "the token comes a byte at a time",
            deviations_with(|k| {
                k.token_response =
                    Some(|_| response(200, &[("x-trickle-ms", "50")], &" ".repeat(10_000)));
            }),
            TIMEOUT_MESSAGE,
        ),
        (
            "the server has trouble, which must not move the client to another document",
            deviations_with(|k| k.metadata_reply = Some(|_| response(503, &[], ""))),
            "status 503",
        ),
        (
            "the resource is another one",
            deviations_with(|k| {
                k.resource = |m, _, _| m["resource"] = json!("https://evil.example/mcp")
            }),
            "is about `https://evil.example/mcp`",
        ),
        (
            "the resource is a sibling",
            deviations_with(|k| {
                k.resource = |m, origin, _| m["resource"] = json!(format!("{origin}/mc"))
            }),
            "is about",
        ),
        (
            "a tenant names the whole host",
            deviations_with(|k| k.resource = |m, origin, _| m["resource"] = json!(origin)),
            "is about `http://127.0.0.1",
        ),
        (
            "the resource names no authorization server",
            deviations_with(|k| k.resource = |m, _, _| m["authorization_servers"] = json!([])),
            "names no authorization server",
        ),
        (
            "the issuer is on a private address",
            deviations_with(|k| {
                k.resource =
                    |m, _, _| m["authorization_servers"] = json!(["https://169.254.169.254"]);
            }),
            "private or reserved address",
        ),
        (
            "the issuer is not https",
            deviations_with(|k| {
                k.resource = |m, _, _| m["authorization_servers"] = json!(["http://as.example"]);
            }),
            "it is not https",
        ),
        (
            "the resource metadata is on a private address",
            deviations_with(|k| {
                k.challenge_401 = |_| r#"Bearer resource_metadata="http://10.0.0.1/m""#.to_owned();
            }),
            "it is not https",
        ),
        (
            "the token endpoint is on a private address",
            deviations_with(|k| {
                k.metadata = |m, _| m["token_endpoint"] = json!("https://[fd00::1]/token")
            }),
            "private or reserved address",
        ),
        (
            "the authorization endpoint is a script",
            deviations_with(|k| {
                k.metadata = |m, _| m["authorization_endpoint"] = json!("javascript:alert(1)")
            }),
            "not an absolute HTTP URL",
        ),
        (
            "the token endpoint redirects",
            deviations_with(|k| {
                k.token_response =
                    Some(|_| response(307, &[("location", "http://127.0.0.1:1/token")], ""));
            }),
            "status 307",
        ),
        (
            "the token is not a bearer token",
            deviations_with(|k| {
                k.token_response =
                    Some(|_| respond_json(200, &json!({"access_token": "a", "token_type": "mac"})));
            }),
            "neither Bearer nor DPoP",
        ),
        (
            "the token breaks out of its header",
            deviations_with(|k| {
                k.token_response = Some(|_| {
                    respond_json(
                        200,
                        &json!({"access_token": "a\r\nX: y", "token_type": "Bearer"}),
                    )
                });
            }),
            "cannot be sent in a header",
        ),
        (
            "the token endpoint moves the cursor of a terminal",
            deviations_with(|k| {
                k.metadata =
                    |m, _| m["token_endpoint"] = json!("https://as.example/\u{1b}[2J/token");
            }),
            "`https://as.example/ [2J/token` cannot be used",
        ),
        (
            "the metadata of the challenge does not exist",
            deviations_with(|k| {
                k.challenge_401 =
                    |origin| format!(r#"Bearer resource_metadata="{origin}/nothing""#);
            }),
            "there is no resource metadata",
        ),
    ];
    for (attack, deviations, expected) in rows {
        let authority = Authority::start(deviations).await;
        // Responses arrive within the limit even on a slow machine.
        let limit = match expected {
            TIMEOUT_MESSAGE => Duration::from_millis(500),
            _ => Duration::from_secs(30),
        };
        let oauth = OAuth::new("test")
            .user_agent(RedirectAgent::default())
            .timeout(limit);
        let client = oauth_client(&authority, oauth);
        let error = send_call(&client, &authority.endpoint()).await;
        let error = error.expect_err(attack);
        let message = error_reason(&error).to_string();
        assert!(message.contains(expected), "{attack}: {message}");
        let was_refused = matches!(error_reason(&error), OAuthError::Callback { .. });
        assert!(
            !was_refused || authority.server.count("/token") == 0,
            "{attack}"
        );
    }
}

/// A token is accepted even if its lifetime exceeds the range of the clock.
#[tokio::test]
async fn tokens_with_huge_lifetime_work() {
    for expires_in in [json!(u64::MAX), json!(1e300), json!(u64::MAX.to_string())] {
        let authority =
            Authority::start(deviations_with(|k| k.expires_in = expires_in.clone())).await;
        let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
        let client = oauth_client(&authority, oauth);
        for _ in 0..2 {
            let called = send_call(&client, &authority.endpoint()).await;
            assert_eq!(called.expect("authorized"), 200, "{expires_in}");
        }
        assert_eq!(authority.server.count("/token"), 1, "{expires_in}");
    }
}

/// If the resource server rejects a token that was just issued, the call fails without a second sign-in.
#[tokio::test]
async fn rejected_fresh_tokens_are_final() {
    let authority = Authority::start(deviations_with(|k| k.rejects_tokens = true)).await;
    let client = oauth_client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    let error = send_call(&client, &authority.endpoint())
        .await
        .expect_err("refused");
    assert!(
        matches!(error_reason(&error), OAuthError::StillUnauthorized { .. }),
        "{error}"
    );
    assert_eq!(sign_in_count(&authority), 1);
}

/// "Retry the original request with the new authorization no more than a few times and treat this as a permanent
/// authorization failure" (2026-07-28, "Step-Up Authorization Flow"): a server that rejects every token does not make
/// each call ask the user again. Once it accepts a token, the user is asked again as before.
#[tokio::test]
async fn rejected_tokens_stop_sign_ins() {
    let authority = Authority::start(deviations_with(|k| k.rejects_tokens = true)).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth_client(&authority, oauth);
    for _ in 0..6 {
        let error = send_call(&client, &authority.endpoint()).await;
        let error = error.expect_err("refused");
        let is_rejected = matches!(error_reason(&error), OAuthError::StillUnauthorized { .. });
        assert!(is_rejected, "{error}");
    }
    assert_eq!(sign_in_count(&authority), 3);
    authority.set_deviations(|deviations| deviations.rejects_tokens = false);
    for (round, sign_ins) in [(0, 3), (1, 4), (2, 5), (3, 6)] {
        let called = send_call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("accepted"), 200, "{round}");
        assert_eq!(sign_in_count(&authority), sign_ins);
        // Neither the access token nor the refresh token is valid any more.
        authority.revoke_tokens();
    }
}

/// After the user has refused the authorization, further calls fail without another question to the user.
#[tokio::test]
async fn user_refusal_is_remembered() {
    let authority = Authority::start(deviations_with(|k| {
        k.redirect_query = |query, issuer| {
            let state = query.split_once("&state=").map_or("", |(_, state)| state);
            format!("error=access_denied&state={state}&iss={issuer}")
        };
    }))
    .await;
    let client = oauth_client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    for _ in 0..3 {
        let error = send_call(&client, &authority.endpoint())
            .await
            .expect_err("refused");
        assert!(error.to_string().contains("access_denied"), "{error}");
    }
    assert_eq!(sign_in_count(&authority), 1);
    authority.set_deviations(|deviations| {
        deviations.redirect_query = Deviations::default().redirect_query
    });
    client.sign_out().await.expect("the store is in memory");
    assert_eq!(
        send_call(&client, &authority.endpoint())
            .await
            .expect("authorized"),
        200
    );
}

/// When the authorization server of a resource changes, the client sends no secrets of the old server to the new one
/// ("Authorization Server Migration").
#[tokio::test]
async fn new_authorization_server_gets_no_secrets() {
    let old = Authority::start(Deviations::default()).await;
    let new = Authority::start(Deviations::default()).await;
    let client = oauth_client(
        &old,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    send_call(&client, &old.endpoint())
        .await
        .expect("authorized");
    let refresh_tokens_before = old.server.count("/token");
    // The resource accepts only its own tokens, so that it rejects the token of the new server.
    /// Issuer of the new authorization server.
    static NEW_SERVER: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NEW_SERVER.set(new.server.url.clone()).expect("set once");
    old.set_deviations(|deviations| {
        deviations.resource = |metadata, _, _| {
            metadata["authorization_servers"] =
                json!([NEW_SERVER.get().cloned().unwrap_or_default()]);
        };
    });
    old.expire_tokens();
    let error = send_call(&client, &old.endpoint())
        .await
        .expect_err("another issuer");
    assert!(
        matches!(error_reason(&error), OAuthError::StillUnauthorized { .. }),
        "{error}"
    );
    assert_eq!(old.server.count("/token"), refresh_tokens_before);
    assert_eq!(
        (new.server.count("/register"), new.server.count("/token")),
        (1, 1)
    );
    for request in new.server.received_requests() {
        let text = format!("{request:?}");
        assert!(
            !text.contains("refresh-2") && !text.contains("access-2"),
            "{text}"
        );
    }
}

/// A client secret is sent only to the authorization server for which it is configured, whatever the resource metadata
/// contains.
#[tokio::test]
async fn secrets_stay_with_their_issuer() {
    let authority = Authority::start(deviations_with(|k| {
        k.metadata = |m, _| m["registration_endpoint"] = json!(null);
    }))
    .await;
    let oauth = OAuth::registered("https://as.example", "id").secret("configured secret");
    let client = oauth_client(&authority, oauth.user_agent(RedirectAgent::default()));
    let error = send_call(&client, &authority.endpoint())
        .await
        .expect_err("another issuer");
    assert!(
        error
            .to_string()
            .contains("belongs to `https://as.example`"),
        "{error}"
    );
    assert_eq!(authority.server.count("/token"), 0);
}

/// A client sends its access token only to the origin of its MCP server.
#[tokio::test]
async fn tokens_are_sent_to_one_origin() {
    let authority = Authority::start(Deviations::default()).await;
    let other = Authority::start(Deviations::default()).await;
    let client = oauth_client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    send_call(&client, &authority.endpoint())
        .await
        .expect("authorized");
    let status = send_call(&client, &other.endpoint())
        .await
        .expect("sent without a token");
    assert_eq!(status, 401);
    assert!(
        other
            .resource
            .received_requests()
            .iter()
            .all(|request| request.header("authorization").is_empty())
    );
}
