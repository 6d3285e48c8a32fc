//! Grants of applications that receive the redirect themselves, exchanges of a caller's token, and revocation. What the
//! authorization server receives is compared with the RFC that defines the request.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use mcp_exact_auth::Secret;
use mcp_exact_auth::client::{
    CodeGrant, GrantedTokens, IdentityProvider, OAuth, OAuthError, PendingGrant, Redirect,
    TokenExchange, Url,
};
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent, parameter};
use mcp_exact_tests_auth::site::{
    ReceivedRequest, Site, SiteResponse, json_response as respond_json, response,
};
use serde_json::{Value, json};

use crate::client::{deviations_with, oauth_client, send_call};

/// Redirect URI of the application.
const REDIRECT: &str = "https://app.example/callback";

/// Prepares the grant of an application whose client is registered by hand.
async fn code_grant(authority: &Authority) -> CodeGrant {
    OAuth::registered(authority.server.url.clone(), "the-client")
        .secret("hunter2")
        .scopes(["read"])
        .code_grant(REDIRECT)
        .await
        .expect("the metadata is valid")
}

/// Follows the authorization URL as the browser of a user does; returns the query of the redirect.
async fn follow(url: Url) -> Secret {
    let browser = Box::new(RedirectAgent::default());
    browser.authorize(url).await.expect("a redirect")
}

/// Completes a grant.
async fn granted(grant: &CodeGrant) -> GrantedTokens {
    let (pending, url) = grant.begin().expect("begun");
    let query = follow(url).await;
    grant.finish(pending, &query).await.expect("granted")
}

/// A grant says whose it is, and requests what the application demands: a scope that the server does not list is left out,
/// as RFC 6749 lets a server refuse it.
#[tokio::test]
async fn grants_name_what_they_request() {
    let deviations = deviations_with(|k| {
        k.metadata = |m, _| m["scopes_supported"] = json!(["read", "offline_access"]);
    });
    let authority = Authority::start(deviations).await;
    let grant = code_grant(&authority).await;
    let grant = grant
        .scope_if_listed("offline_access")
        .scope_if_listed("admin")
        .resource("https://mcp.example/mcp");
    assert_eq!(grant.issuer(), authority.server.url);
    assert_eq!(grant.client_id(), "the-client");
    assert_eq!(grant.redirect_uri(), REDIRECT);
    assert_eq!(grant.scopes().to_string(), "read offline_access");
    let shown = format!("{grant:?}");
    assert!(
        shown.contains("the-client") && !shown.contains("hunter2"),
        "{shown}"
    );
    let (_, url) = grant.begin().expect("begun");
    let sent = |name| parameter(url.as_str(), name);
    assert_eq!(sent("scope").as_deref(), Some("read offline_access"));
    assert_eq!(sent("redirect_uri").as_deref(), Some(REDIRECT));
    assert_eq!(sent("resource").as_deref(), Some("https://mcp.example/mcp"));
}

/// A grant that one process has begun is completed by another: the secret text keeps all of it. The redirect is that of its
/// own `state` (RFC 6749, section 10.12), and the grant is completed where it was begun (RFC 9700, section 4.4.2.2).
#[tokio::test]
async fn restored_grants_are_completed() {
    let authority = Authority::start(Deviations::default()).await;
    let grant = code_grant(&authority).await;
    let (pending, url) = grant.begin().expect("begun");
    let (other, other_url) = grant.begin().expect("begun");
    let text = pending.to_secret();
    let restored = PendingGrant::from_secret(&text).expect("a grant");
    assert_eq!(restored.redirect_uri(), REDIRECT);
    let query = follow(url).await;
    assert!(restored.is_answered_by(&query) && !other.is_answered_by(&query));
    assert!(!restored.is_answered_by(&Secret::new("code=1")));
    let tokens = grant.finish(restored, &query).await.expect("granted");
    assert!(tokens.access_token.expose().starts_with("access-"));
    assert_eq!(tokens.expires_in.map(|time| time.as_secs()), Some(3600));
    assert_eq!(tokens.scopes.to_string(), "read");
    assert!(PendingGrant::from_secret(&Secret::new("{}")).is_none());

    let elsewhere = Authority::start(Deviations::default()).await;
    let elsewhere = code_grant(&elsewhere).await;
    let query = follow(other_url).await;
    let error = elsewhere.finish(other, &query).await;
    let error = error.expect_err("another authorization server").to_string();
    assert!(
        error.contains("begun at another authorization server"),
        "{error}"
    );
    // The redirect URI tells the issuers of an application apart.
    let (begun, url) = grant.begin().expect("begun");
    let query = follow(url).await;
    let oauth = OAuth::registered(authority.server.url.clone(), "the-client");
    let other = oauth.code_grant("https://app.example/callback/2").await;
    let error = other.expect("prepared").finish(begun, &query).await;
    let error = error.expect_err("another redirect URI").to_string();
    assert!(
        error.contains("begun at another authorization server"),
        "{error}"
    );
    assert_eq!(authority.server.count("/token"), 1);
}

/// "The authorization server MAY issue a new refresh token": without one, the old one stays (RFC 6749, section 6). An ended
/// grant is told from a failure that passes.
#[tokio::test]
async fn refresh_keeps_the_old_token() {
    for rotates in [true, false] {
        let deviations = deviations_with(|k| k.rotates_refresh_tokens = rotates);
        let authority = Authority::start(deviations).await;
        let grant = code_grant(&authority).await;
        let old = granted(&grant).await.refresh_token.expect("a token");
        let tokens = grant.refresh(&old).await.expect("refreshed");
        assert_eq!(tokens.refresh_token.as_ref() == Some(&old), !rotates);
        if rotates {
            authority.revoke_tokens();
            let error = grant.refresh(&old).await.expect_err("revoked");
            assert!(error.is_grant_ended() && !error.is_transient(), "{error}");
        }
        authority.set_deviations(|k| k.token_response = Some(|_| response(503, &[], "")));
        let error = grant.refresh(&old).await.expect_err("unavailable");
        assert!(error.is_transient() && !error.is_grant_ended(), "{error}");
    }
}

/// Row of revocations: the responses of the endpoint, whether there is a refresh token, and the outcome.
type RevocationRow = (
    fn(&ReceivedRequest) -> SiteResponse,
    bool,
    Result<(), (&'static str, bool)>,
);

/// RFC 7009: `token_type_hint` names the kind (section 2.1); status 200 is success, also for unknown tokens (2.2); the client
/// may try again after status 503, and `unsupported_token_type` refuses one kind (2.2.1).
#[tokio::test]
async fn revocations_follow_the_standard() {
    let unsupported_access: fn(&ReceivedRequest) -> SiteResponse = |request| {
        if request.param("token_type_hint").as_deref() == Some("access_token") {
            return respond_json(400, &json!({"error": "unsupported_token_type"}));
        }
        response(200, &[], "")
    };
    let rows: [RevocationRow; 8] = [
        (|_| response(200, &[], ""), true, Ok(())),
        (|_| response(204, &[], ""), false, Ok(())),
        (unsupported_access, true, Ok(())),
        (
            unsupported_access,
            false,
            Err(("unsupported_token_type", false)),
        ),
        (
            |_| respond_json(400, &json!({"error": "invalid_client"})),
            true,
            Err(("invalid_client", false)),
        ),
        (|_| response(503, &[], ""), true, Err(("status 503", true))),
        (|_| response(429, &[], ""), false, Err(("status 429", true))),
        (|_| response(408, &[], ""), false, Err(("status 408", true))),
    ];
    for (answer, has_refresh_token, expected) in rows {
        let deviations = deviations_with(|k| {
            k.metadata = |m, origin| {
                m["revocation_endpoint"] = json!(format!("{origin}/revoke"));
                m["token_endpoint_auth_methods_supported"] = json!(["client_secret_basic"]);
                m["revocation_endpoint_auth_methods_supported"] = json!(["client_secret_post"]);
            };
            k.revocation = answer;
        });
        let authority = Authority::start(deviations).await;
        let grant = code_grant(&authority).await;
        let refresh = Secret::new("r1");
        let refresh = Some(&refresh).filter(|_| has_refresh_token);
        let revoked = grant.revoke(&Secret::new("a1"), refresh).await;
        match (&revoked, expected) {
            (Ok(true), Ok(())) => {}
            (Err(error), Err((text, is_transient))) => {
                assert!(error.to_string().contains(text), "{error}");
                assert_eq!(error.is_transient(), is_transient, "{error}");
                let is_named = error.to_string().contains("the revocation endpoint at");
                assert_eq!(is_named, is_transient, "{error}");
            }
            _ => panic!("{revoked:?} instead of {expected:?}"),
        }
        let sent = revocations(&authority);
        let first = if has_refresh_token {
            ("r1", "refresh_token")
        } else {
            ("a1", "access_token")
        };
        assert_eq!(sent[0], format!("{} {}", first.0, first.1));
        if revoked.is_ok() {
            assert_eq!(sent.last().expect("sent"), "a1 access_token");
        }
    }
    let authority = Authority::start(Deviations::default()).await;
    let grant = code_grant(&authority).await;
    let revoked = grant.revoke(&Secret::new("a1"), None).await;
    assert!(!revoked.expect("nothing is sent"));
    assert_eq!(authority.server.count("/revoke"), 0);
}

/// Returns each received revocation as token and hint, after a check of the client's authentication: the metadata lists
/// `client_secret_post` for this endpoint (RFC 8414, section 2).
fn revocations(authority: &Authority) -> Vec<String> {
    let requests = authority.server.received_requests();
    let sent = requests.iter().filter(|request| request.path == "/revoke");
    sent.map(|request| {
        let param = |name| request.param(name).unwrap_or_default();
        assert_eq!(param("client_id"), "the-client");
        assert_eq!(param("client_secret"), "hunter2");
        assert_eq!(request.header("authorization"), "");
        format!("{} {}", param("token"), param("token_type_hint"))
    })
    .collect()
}

/// Prepares an exchange for the resource of the authority.
async fn token_exchange(authority: &Authority) -> Result<TokenExchange, OAuthError> {
    OAuth::registered(authority.server.url.clone(), "the-gateway")
        .issuer(authority.server.url.clone())
        .secret("hunter2")
        .scopes(["read", "offline_access"])
        .authorization_parameter("audience", "api://notes")
        .allow_other_ports()
        .token_exchange_at(&authority.endpoint())
        .await
}

/// Returns an unsigned JWT with these claims.
fn jwt(claims: &Value) -> String {
    format!("e30.{}.c2ln", URL_SAFE_NO_PAD.encode(claims.to_string()))
}

/// RFC 8693, section 2.1: the parameters of the request. The scopes are those of the options without `offline_access`,
/// because the token is exchanged again instead of being refreshed.
#[tokio::test]
async fn exchanges_send_the_callers_token() {
    let deviations = deviations_with(|k| {
        k.metadata = |m, _| {
            m["grant_types_supported"] = json!(["urn:ietf:params:oauth:grant-type:token-exchange"]);
        };
        k.token_response = Some(answer_exchange);
    });
    let authority = Authority::start(deviations).await;
    let exchange = token_exchange(&authority).await.expect("prepared");
    assert!(exchange.is_listed());
    assert_eq!(exchange.issuer(), authority.server.url);
    let shown = format!("{exchange:?}");
    assert!(
        shown.contains("the-gateway") && !shown.contains("hunter2"),
        "{shown}"
    );
    let answer = json!({"access_token": "new", "expires_in": 60});
    let tokens = exchange
        .exchange(&caller(&answer))
        .await
        .expect("exchanged");
    assert_eq!(tokens.access_token.expose(), "new");
    assert_eq!(tokens.expires_in.map(|time| time.as_secs()), Some(60));
    assert_eq!(
        (tokens.refresh_token, tokens.scopes.to_string()),
        (None, "read".to_owned())
    );
    let sent = authority
        .server
        .received_requests()
        .pop()
        .expect("a request");
    let kind = "urn:ietf:params:oauth:token-type:access_token";
    for (name, expected) in [
        (
            "grant_type",
            "urn:ietf:params:oauth:grant-type:token-exchange",
        ),
        ("subject_token", caller(&answer).expose()),
        ("subject_token_type", kind),
        ("requested_token_type", kind),
        ("resource", &authority.endpoint()),
        ("scope", "read"),
        ("audience", "api://notes"),
    ] {
        assert_eq!(sent.param(name).as_deref(), Some(expected), "{name}");
    }
    let authority = Authority::start(Deviations::default()).await;
    let exchange = token_exchange(&authority).await.expect("prepared");
    assert!(!exchange.is_listed());
}

/// Returns a caller's token that makes [`answer_exchange`] return `answer`.
fn caller(answer: &Value) -> Secret {
    Secret::new(answer.to_string())
}

/// Returns the token response that the caller's token contains. `"access_token": "caller"` is the caller's token itself.
fn answer_exchange(request: &ReceivedRequest) -> SiteResponse {
    let subject = request.param("subject_token").unwrap_or_default();
    let mut answer: Value = serde_json::from_str(&subject).expect("an answer");
    if answer["access_token"] == "caller" {
        answer["access_token"] = json!(subject);
    }
    let defaults = [
        ("token_type", "Bearer"),
        (
            "issued_token_type",
            "urn:ietf:params:oauth:token-type:access_token",
        ),
    ];
    for (name, value) in defaults {
        if answer["error"].is_null() && answer[name].is_null() {
            answer[name] = json!(value);
        }
    }
    respond_json(if answer["error"].is_null() { 200 } else { 400 }, &answer)
}

/// "MCP servers MUST NOT accept any tokens that were not explicitly issued for the MCP server" and "MUST NOT pass through
/// the token it received" (2025-11-25, security best practices, "Token Passthrough"): a token that is not for the server is
/// not returned. `issued_token_type` is REQUIRED (RFC 8693, section 2.2.1).
#[tokio::test]
async fn exchanged_tokens_are_for_the_server() {
    let deviations = deviations_with(|k| k.token_response = Some(answer_exchange));
    let authority = Authority::start(deviations).await;
    let exchange = token_exchange(&authority).await.expect("prepared");
    let resource = authority.endpoint();
    let for_audience = |audience: Value| json!({"access_token": jwt(&json!({"aud": audience}))});
    let other = "for another resource";
    for (answer, expected) in [
        (json!({"access_token": "opaque"}), None),
        (json!({"access_token": "not.a.jwt"}), None),
        (
            json!({"access_token": "caller"}),
            Some("the caller's token itself"),
        ),
        (for_audience(json!(resource)), None),
        (for_audience(json!(format!("{resource}/"))), None),
        (for_audience(json!(["https://x.example", resource])), None),
        (for_audience(json!("api://notes")), None),
        (for_audience(json!("https://x.example")), Some(other)),
        (for_audience(json!(["https://x.example"])), Some(other)),
        (for_audience(json!(null)), Some(other)),
        (
            json!({"access_token": "new", "token_type": "DPoP"}),
            Some("bound to a key"),
        ),
        (
            json!({"access_token": "new", "issued_token_type": "urn:ietf:params:oauth:token-type:jwt"}),
            Some("`issued_token_type` is not"),
        ),
        (json!({"error": "invalid_target"}), Some("invalid_target")),
    ] {
        let exchanged = exchange.exchange(&caller(&answer)).await;
        match (exchanged, expected) {
            (Ok(_), None) => {}
            (Err(error), Some(text)) => {
                assert!(error.to_string().contains(text), "{answer}: {error}");
            }
            (exchanged, _) => panic!("{answer}: {exchanged:?}"),
        }
    }
}

/// Answers an identity provider: an assertion for the user `ann` alone.
fn answer_identity_provider(request: &ReceivedRequest) -> SiteResponse {
    let token_type = match request.param("subject_token").as_deref() {
        Some("id-of-ann") => "urn:ietf:params:oauth:token-type:id-jag",
        _ => "urn:ietf:params:oauth:token-type:access_token",
    };
    respond_json(
        200,
        &json!({"access_token": "assertion", "issued_token_type": token_type, "token_type": "N_A"}),
    )
}

/// Enterprise-managed authorization: the identity provider exchanges the user's identity token for an assertion (RFC 8693),
/// which the authorization server exchanges for an access token (RFC 7523). Another type of token is not an assertion.
#[tokio::test]
async fn identity_tokens_become_access_tokens() {
    let provider = Site::start(|_| answer_identity_provider).await;
    for (identity, is_used) in [("id-of-ann", true), ("id-of-bob", false)] {
        let deviations = deviations_with(|k| {
            k.token_response = Some(|request| {
                let is_assertion = request.param("assertion").as_deref() == Some("assertion");
                assert!(is_assertion, "{}", request.body);
                respond_json(
                    200,
                    &json!({"access_token": "access-9", "token_type": "Bearer"}),
                )
            });
        });
        let authority = Authority::start(deviations).await;
        let url = format!("{}/token", provider.url);
        let source = move || async move { Ok(Secret::new(identity)) };
        let source = IdentityProvider::new(url, "at-provider", source).secret("hunter2");
        let oauth = OAuth::enterprise(source, "at-server", "hunter3")
            .issuer(authority.server.url.clone())
            .scopes(["read"]);
        let client = oauth_client(&authority, oauth);
        let called = send_call(&client, &authority.endpoint()).await;
        let error = called.expect_err("the resource does not know the token");
        assert_eq!(
            authority.server.count("/token"),
            usize::from(is_used),
            "{error}"
        );
        if !is_used {
            assert!(
                error.to_string().contains("`issued_token_type` is not"),
                "{error}"
            );
        }
        let sent = provider.received_requests().pop().expect("a request");
        for (name, expected) in [
            ("client_id", "at-provider"),
            ("client_secret", "hunter2"),
            ("audience", &authority.server.url),
            ("resource", &authority.endpoint()),
            ("subject_token", identity),
            ("scope", "read"),
        ] {
            assert_eq!(sent.param(name).as_deref(), Some(expected), "{name}");
        }
    }
}
