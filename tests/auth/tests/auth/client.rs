//! Attacks on clients: one row per attack, with the expected error or number of sign-ins.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Uri};
use mcp_exact::transport::http::client::{HttpClient, HttpClientError, HyperClient};
use mcp_exact_auth::client::{OAuth, OAuthClient, OAuthError};
use mcp_exact_tests_auth::authority::{Authority, Knobs, RedirectAgent, parameter};
use mcp_exact_tests_auth::site::{ReceivedRequest, Site, encode, json as respond_json, reply};
use serde_json::json;

pub(crate) fn client(authority: &Authority, oauth: OAuth) -> OAuthClient {
    let inner = Arc::new(HyperClient::default());
    oauth
        .client(&authority.endpoint(), inner)
        .expect("the URL is on loopback")
}

/// Sends a call and returns its status.
pub(crate) async fn call(client: &OAuthClient, endpoint: &str) -> Result<u16, HttpClientError> {
    let body = r#"{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"t"}}"#;
    let mut request = Request::new(Bytes::from_static(body.as_bytes()));
    *request.method_mut() = http::Method::POST;
    *request.uri_mut() = endpoint.parse::<Uri>().expect("a URL");
    Ok(client.send(request).await?.status().as_u16())
}

fn reason(error: &HttpClientError) -> &OAuthError {
    error.downcast_ref().expect("an error of authorization")
}

fn knobs(turn: impl FnOnce(&mut Knobs)) -> Knobs {
    let mut knobs = Knobs::default();
    turn(&mut knobs);
    knobs
}

fn sign_ins(authority: &Authority) -> usize {
    authority.server.count("/authorize")
}

#[tokio::test]
async fn obedient_servers_are_used() {
    let authority = Authority::start(Knobs::default()).await;
    let agent = RedirectAgent::default();
    let client = client(&authority, OAuth::new("test").user_agent(agent.clone()));
    for _ in 0..3 {
        let status = call(&client, &authority.endpoint())
            .await
            .expect("authorized");
        assert_eq!(status, 200);
    }
    assert_eq!(sign_ins(&authority), 1);
    let opened = agent.opened.lock().expect("no panic")[0].clone();
    assert_eq!(parameter(&opened, "resource"), Some(authority.endpoint()));
    let token = authority.server.seen().pop().expect("a token request");
    assert_eq!(token.param("resource"), Some(authority.endpoint()));
}

/// Error message for an exceeded time limit.
const TOO_SLOW: &str = "it took longer";

/// Each attack: the behaviour of the servers, and the expected error text. No token request may follow a rejected
/// response.
#[tokio::test]
#[expect(clippy::too_many_lines, reason = "a table with a row each")]
async fn attacks_end_with_an_error() {
    let rows: Vec<(&str, Knobs, &str)> = vec![
        (
            "mix-up: the answer comes from another issuer (RFC 9207)",
            knobs(|k| k.redirect = |query, _| query + "&iss=https%3A%2F%2Fevil.example"),
            "`iss` names another issuer",
        ),
        (
            "the promised iss is missing",
            knobs(|k| k.redirect = |query, _| query),
            "`iss` is missing",
        ),
        (
            "iss has a further slash",
            knobs(|k| k.redirect = |query, issuer| format!("{query}&iss={issuer}/")),
            "`iss` names another issuer",
        ),
        (
            "iss is there twice",
            knobs(|k| k.redirect = |query, issuer| format!("{query}&iss={issuer}&iss={issuer}")),
            "`iss` is repeated",
        ),
        (
            "the state is another one",
            knobs(|k| k.redirect = |query, issuer| format!("{}x&iss={issuer}", query)),
            "`state` is not",
        ),
        (
            "two codes",
            knobs(|k| k.redirect = |query, issuer| format!("{query}&code=x&iss={issuer}")),
            "`code` is repeated",
        ),
        (
            "the metadata belongs to another issuer",
            knobs(|k| k.metadata = |m, _| m["issuer"] = json!("https://evil.example")),
            "belongs to the issuer `https://evil.example`",
        ),
        (
            "PKCE is downgraded to plain",
            knobs(|k| k.metadata = |m, _| m["code_challenge_methods_supported"] = json!(["plain"])),
            "does not list S256",
        ),
        (
            "PKCE is left out",
            knobs(|k| {
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
            knobs(|k| {
                k.metadata_reply =
                    Some(|_| reply(302, &[("location", "http://127.0.0.1:1/metadata")], ""));
            }),
            "redirects to another origin",
        ),
        (
            "the metadata redirects in a circle",
            knobs(|k| {
                k.metadata_reply = Some(|origin| {
                    let here = format!("{origin}/.well-known/oauth-authorization-server");
                    reply(302, &[("location", &here)], "")
                });
            }),
            "redirects too often",
        ),
        (
            "the metadata is too long",
            knobs(|k| k.metadata_reply = Some(|_| reply(200, &[], &" ".repeat(2 << 20)))),
            "longer than 1 MiB",
        ),
        (
            "the metadata never comes",
            knobs(|k| k.metadata_reply = Some(|_| reply(200, &[("x-delay-ms", "60000")], ""))),
            TOO_SLOW,
        ),
        (
            "the metadata comes a byte at a time",
            knobs(|k| {
                k.metadata_reply =
                    Some(|_| reply(200, &[("x-trickle-ms", "50")], &" ".repeat(10_000)));
            }),
            TOO_SLOW,
        ),
        (
            "the token comes a byte at a time",
            knobs(|k| {
                k.token = Some(|_| reply(200, &[("x-trickle-ms", "50")], &" ".repeat(10_000)));
            }),
            TOO_SLOW,
        ),
        (
            "the server has trouble, which must not move the client to another document",
            knobs(|k| k.metadata_reply = Some(|_| reply(503, &[], ""))),
            "status 503",
        ),
        (
            "the resource is another one",
            knobs(|k| k.resource = |m, _, _| m["resource"] = json!("https://evil.example/mcp")),
            "is about `https://evil.example/mcp`",
        ),
        (
            "the resource is a sibling",
            knobs(|k| k.resource = |m, origin, _| m["resource"] = json!(format!("{origin}/mc"))),
            "is about",
        ),
        (
            "the resource names no authorization server",
            knobs(|k| k.resource = |m, _, _| m["authorization_servers"] = json!([])),
            "names no authorization server",
        ),
        (
            "the issuer is on a private address",
            knobs(|k| {
                k.resource =
                    |m, _, _| m["authorization_servers"] = json!(["https://169.254.169.254"]);
            }),
            "private or reserved address",
        ),
        (
            "the issuer is not https",
            knobs(|k| {
                k.resource = |m, _, _| m["authorization_servers"] = json!(["http://as.example"]);
            }),
            "it is not https",
        ),
        (
            "the resource metadata is on a private address",
            knobs(|k| {
                k.challenge = |_| r#"Bearer resource_metadata="http://10.0.0.1/m""#.to_owned();
            }),
            "it is not https",
        ),
        (
            "the token endpoint is on a private address",
            knobs(|k| k.metadata = |m, _| m["token_endpoint"] = json!("https://[fd00::1]/token")),
            "private or reserved address",
        ),
        (
            "the authorization endpoint is a script",
            knobs(|k| {
                k.metadata = |m, _| m["authorization_endpoint"] = json!("javascript:alert(1)")
            }),
            "no absolute URL of HTTP",
        ),
        (
            "the token endpoint redirects",
            knobs(|k| {
                k.token = Some(|_| reply(307, &[("location", "http://127.0.0.1:1/token")], ""));
            }),
            "status 307",
        ),
        (
            "the token is no bearer token",
            knobs(|k| {
                k.token =
                    Some(|_| respond_json(200, &json!({"access_token": "a", "token_type": "mac"})));
            }),
            "neither Bearer nor DPoP",
        ),
        (
            "the token breaks out of its header",
            knobs(|k| {
                k.token = Some(|_| {
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
            knobs(|k| {
                k.metadata =
                    |m, _| m["token_endpoint"] = json!("https://as.example/\u{1b}[2J/token");
            }),
            "`https://as.example/ [2J/token` cannot be used",
        ),
        (
            "the metadata of the challenge does not exist",
            knobs(|k| {
                k.challenge = |origin| format!(r#"Bearer resource_metadata="{origin}/nothing""#);
            }),
            "there is no resource metadata",
        ),
    ];
    for (attack, knobs, expected) in rows {
        let authority = Authority::start(knobs).await;
        // Responses arrive within the limit even on a slow machine.
        let limit = match expected {
            TOO_SLOW => Duration::from_millis(500),
            _ => Duration::from_secs(30),
        };
        let oauth = OAuth::new("test")
            .user_agent(RedirectAgent::default())
            .timeout(limit);
        let client = client(&authority, oauth);
        let error = call(&client, &authority.endpoint()).await;
        let error = error.expect_err(attack);
        let words = reason(&error).to_string();
        assert!(words.contains(expected), "{attack}: {words}");
        let was_refused = matches!(reason(&error), OAuthError::Callback { .. });
        assert!(
            !was_refused || authority.server.count("/token") == 0,
            "{attack}"
        );
    }
}

/// A token whose lifetime exceeds the range of the clock is used.
#[tokio::test]
async fn endless_tokens_are_used() {
    for expires_in in [json!(u64::MAX), json!(1e300), json!(u64::MAX.to_string())] {
        let authority = Authority::start(knobs(|k| k.expires_in = expires_in.clone())).await;
        let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
        let client = client(&authority, oauth);
        for _ in 0..2 {
            let called = call(&client, &authority.endpoint()).await;
            assert_eq!(called.expect("authorized"), 200, "{expires_in}");
        }
        assert_eq!(authority.server.count("/token"), 1, "{expires_in}");
    }
}

/// "Clients SHOULD implement retry limits" (2026-07-28, "Step-Up Authorization Flow"): no authorization satisfies the
/// challenge.
#[tokio::test]
async fn step_up_loops_end() {
    let authority = Authority::start(knobs(|k| k.never_granted = Some("more"))).await;
    let client = client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    for _ in 0..3 {
        let error = call(&client, &authority.endpoint()).await;
        let error = error.expect_err("it is never granted");
        assert!(
            matches!(reason(&error), OAuthError::StepUpLimit { rounds: 2, .. }),
            "{error}"
        );
    }
    assert_eq!(sign_ins(&authority), 3);
    let asked = authority.server.seen();
    let mut asked = asked.iter().filter(|seen| seen.path == "/authorize");
    assert_eq!(
        asked
            .next_back()
            .and_then(|seen| seen.param("scope"))
            .as_deref(),
        Some("more")
    );
}

/// Two concurrent operations need different scopes: both keep the scopes that the other one has obtained ("Step-Up
/// Authorization Flow": the union of the requested and the challenged scopes).
#[tokio::test]
async fn step_ups_at_once_keep_all_scopes() {
    let site = Site::start(|origin| {
        let origin = origin.to_owned();
        let granted = Mutex::new(String::new());
        move |seen: &ReceivedRequest| {
            let at = |path: &str| format!("{origin}{path}");
            match &*seen.path {
                "/.well-known/oauth-protected-resource/mcp" => respond_json(
                    200,
                    &json!({"resource": at("/mcp"), "authorization_servers": [origin]}),
                ),
                "/.well-known/oauth-authorization-server" => respond_json(
                    200,
                    &json!({
                        "issuer": origin,
                        "authorization_endpoint": at("/authorize"),
                        "token_endpoint": at("/token"),
                        "registration_endpoint": at("/register"),
                        "code_challenge_methods_supported": ["S256"],
                    }),
                ),
                "/register" => respond_json(201, &json!({"client_id": "c"})),
                "/authorize" => {
                    *granted.lock().expect("no panic") = seen.param("scope").unwrap_or_default();
                    let state = encode(&seen.param("state").unwrap_or_default());
                    let target = seen.param("redirect_uri").unwrap_or_default();
                    let location = format!("{target}?code=c&state={state}");
                    reply(302, &[("location", &location)], "")
                }
                "/token" => {
                    // The token says what it is good for.
                    let token = granted.lock().expect("no panic").replace(' ', ".");
                    let token = format!("scopes.{token}");
                    respond_json(200, &json!({"access_token": token, "token_type": "Bearer"}))
                }
                _ => {
                    let token = seen.header("authorization");
                    let scope = if seen.body.contains("\"a\"") {
                        "a"
                    } else {
                        "b"
                    };
                    let challenge = match token.strip_prefix("Bearer scopes.") {
                        None => (401, "Bearer scope=\"list\"".to_owned()),
                        Some(scopes) if scopes.split('.').any(|known| known == scope) => {
                            return reply(200, &[], "done");
                        }
                        Some(_) => (
                            403,
                            format!("Bearer error=\"insufficient_scope\", scope=\"{scope}\""),
                        ),
                    };
                    reply(challenge.0, &[("www-authenticate", &challenge.1)], "")
                }
            }
        }
    })
    .await;
    let endpoint = format!("{}/mcp", site.url);
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = oauth.client(&endpoint, Arc::new(HyperClient::default()));
    let client = client.expect("the URL is on loopback");
    let call = async |tool: &str| {
        let body =
            json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": tool}});
        let request = Request::post(&endpoint).body(Bytes::from(body.to_string()));
        let response = client.send(request.expect("a request")).await;
        response.expect("authorized").status().as_u16()
    };
    for _ in 0..2 {
        assert_eq!(tokio::join!(call("a"), call("b")), (200, 200));
    }
    let seen = site.seen();
    let asked = seen.iter().filter(|seen| seen.path == "/authorize");
    let asked: Vec<_> = asked.filter_map(|seen| seen.param("scope")).collect();
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert_eq!(asked[0], "list");
    assert!(
        asked[2] == "list a b" || asked[2] == "list b a",
        "{asked:?}"
    );
}

#[tokio::test]
async fn refused_fresh_tokens_end() {
    let authority = Authority::start(knobs(|k| k.refuses_tokens = true)).await;
    let client = client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    let error = call(&client, &authority.endpoint())
        .await
        .expect_err("refused");
    assert!(
        matches!(reason(&error), OAuthError::StillUnauthorized { .. }),
        "{error}"
    );
    assert_eq!(sign_ins(&authority), 1);
}

/// After the user has refused, further requests do not ask again.
#[tokio::test]
async fn refusals_are_remembered() {
    let authority = Authority::start(knobs(|k| {
        k.redirect = |query, issuer| {
            let state = query.split_once("&state=").map_or("", |(_, state)| state);
            format!("error=access_denied&state={state}&iss={issuer}")
        };
    }))
    .await;
    let client = client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    for _ in 0..3 {
        let error = call(&client, &authority.endpoint())
            .await
            .expect_err("refused");
        assert!(error.to_string().contains("access_denied"), "{error}");
    }
    assert_eq!(sign_ins(&authority), 1);
    authority.turn(|knobs| knobs.redirect = Knobs::default().redirect);
    client.sign_out().await.expect("the store is in memory");
    assert_eq!(
        call(&client, &authority.endpoint())
            .await
            .expect("authorized"),
        200
    );
}

#[tokio::test]
async fn expired_tokens_are_refreshed_once() {
    let authority = Authority::start(Knobs::default()).await;
    let client = client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    call(&client, &authority.endpoint())
        .await
        .expect("authorized");
    for _ in 0..3 {
        authority.expire_tokens();
        let endpoint = authority.endpoint();
        let calls = (0..20).map(|_| {
            let (client, endpoint) = (client.clone(), endpoint.clone());
            tokio::spawn(async move { call(&client, &endpoint).await.expect("refreshed") })
        });
        for call in calls.collect::<Vec<_>>() {
            assert_eq!(call.await.expect("no panic"), 200);
        }
    }
    assert_eq!(sign_ins(&authority), 1);
    assert_eq!(authority.server.count("/token"), 4);
    assert!(!authority.is_revoked());
}

/// A token that expires within 45 s is refreshed before it is sent, so that no request is rejected first.
#[tokio::test]
async fn tokens_are_refreshed_early() {
    let authority = Authority::start(knobs(|k| k.expires_in = json!(30))).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = client(&authority, oauth);
    for _ in 0..3 {
        let called = call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
    }
    assert_eq!(authority.server.count("/token"), 3);
    assert_eq!(authority.resource.count("/mcp"), 4);
    assert_eq!(sign_ins(&authority), 1);
}

/// RFC 6749, section 6: without a new refresh token, the old one stays valid.
#[tokio::test]
async fn refresh_tokens_stay_valid() {
    let authority = Authority::start(knobs(|k| k.rotates = false)).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = client(&authority, oauth);
    for _ in 0..4 {
        let called = call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
        authority.expire_tokens();
    }
    assert_eq!(sign_ins(&authority), 1);
    let seen = authority.server.seen();
    let used: Vec<_> = seen
        .iter()
        .filter_map(|seen| seen.param("refresh_token"))
        .collect();
    assert_eq!(used, ["refresh-2"; 3]);
}

/// After a temporary error of the token endpoint, the same token is refreshed later, without the user.
#[tokio::test]
async fn trouble_loses_no_token() {
    let authority = Authority::start(Knobs::default()).await;
    let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
    let client = client(&authority, oauth);
    call(&client, &authority.endpoint())
        .await
        .expect("authorized");
    authority.expire_tokens();
    authority.turn(|k| k.token = Some(|_| reply(503, &[], "")));
    for _ in 0..2 {
        let error = call(&client, &authority.endpoint()).await;
        let error = error.expect_err("it has trouble");
        assert!(reason(&error).is_transient(), "{error}");
    }
    authority.turn(|k| k.token = None);
    let called = call(&client, &authority.endpoint()).await;
    assert_eq!(called.expect("refreshed"), 200);
    assert_eq!(sign_ins(&authority), 1);
}

/// The new authorization server receives nothing of the old one ("Authorization Server Migration").
#[tokio::test]
async fn new_servers_see_nothing_of_old_ones() {
    let old = Authority::start(Knobs::default()).await;
    let new = Authority::start(Knobs::default()).await;
    let client = client(
        &old,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    call(&client, &old.endpoint()).await.expect("authorized");
    let refresh_tokens_before = old.server.count("/token");
    // The resource accepts only its own tokens, so that it rejects the token of the new server.
    static NEW: std::sync::OnceLock<String> = std::sync::OnceLock::new();
    NEW.set(new.server.url.clone()).expect("set once");
    old.turn(|knobs| {
        knobs.resource = |metadata, _, _| {
            metadata["authorization_servers"] = json!([NEW.get().cloned().unwrap_or_default()]);
        };
    });
    old.expire_tokens();
    let error = call(&client, &old.endpoint())
        .await
        .expect_err("another issuer");
    assert!(
        matches!(reason(&error), OAuthError::StillUnauthorized { .. }),
        "{error}"
    );
    assert_eq!(old.server.count("/token"), refresh_tokens_before);
    assert_eq!(
        (new.server.count("/register"), new.server.count("/token")),
        (1, 1)
    );
    for seen in new.server.seen() {
        let text = format!("{seen:?}");
        assert!(
            !text.contains("refresh-2") && !text.contains("access-2"),
            "{text}"
        );
    }
}

/// A secret is sent only to the authorization server that it is configured for, regardless of the resource metadata.
#[tokio::test]
async fn secrets_stay_with_their_issuer() {
    let authority = Authority::start(knobs(|k| {
        k.metadata = |m, _| m["registration_endpoint"] = json!(null);
    }))
    .await;
    let oauth = OAuth::registered("https://as.example", "id").secret("configured secret");
    let client = client(&authority, oauth.user_agent(RedirectAgent::default()));
    let error = call(&client, &authority.endpoint())
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

/// A server that issues the id configured for another server never receives the secret, not even in a refresh.
#[tokio::test]
async fn given_ids_bring_no_secret() {
    let authority = Authority::start(knobs(|k| {
        k.client_id = "id";
        k.metadata =
            |m, _| m["token_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
    }))
    .await;
    let oauth = OAuth::new("test")
        .or_registered("https://as.example", "id")
        .secret("hunter2");
    let client = client(&authority, oauth.user_agent(RedirectAgent::default()));
    for _ in 0..2 {
        let called = call(&client, &authority.endpoint()).await;
        assert_eq!(called.expect("authorized"), 200);
        authority.expire_tokens();
    }
    let seen = authority.server.seen();
    let grants: Vec<_> = seen
        .iter()
        .filter_map(|seen| seen.param("grant_type"))
        .collect();
    assert_eq!(grants, ["authorization_code", "refresh_token"]);
    for seen in seen {
        assert!(!seen.body.contains("hunter2"), "{seen:?}");
        assert_eq!(seen.header("authorization"), "");
    }
}

/// Tokens are sent only to the origin of the server.
#[tokio::test]
async fn tokens_are_sent_to_one_origin() {
    let authority = Authority::start(Knobs::default()).await;
    let other = Authority::start(Knobs::default()).await;
    let client = client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    call(&client, &authority.endpoint())
        .await
        .expect("authorized");
    let status = call(&client, &other.endpoint())
        .await
        .expect("sent without a token");
    assert_eq!(status, 401);
    assert!(
        other
            .resource
            .seen()
            .iter()
            .all(|seen| seen.header("authorization").is_empty())
    );
}
