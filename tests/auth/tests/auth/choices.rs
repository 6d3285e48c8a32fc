//! Choices of a client before it requests a token: scopes, client id, issuer, resource, and the authorization flow of
//! 2025-03-26. Each test has a table with one row per case.

use std::sync::Arc;

use mcp_exact::transport::http::client::HyperClient;
use mcp_exact_auth::client::{OAuth, OAuthRemedy};
use mcp_exact_tests_auth::authority::{Authority, Deviations, RedirectAgent, parameter};
use mcp_exact_tests_auth::site::{ReceivedRequest, Site, json_response as respond_json, response};
use serde_json::json;

use crate::client::{error_reason, oauth_client, send_call};

/// Signs in to servers with these deviations; returns the authorization URL that the user agent has opened, or the
/// error. `oauth` creates the client's options from the origin of the authorization server.
async fn sign_in(
    deviations: Deviations,
    oauth: impl FnOnce(&str) -> OAuth,
) -> Result<String, String> {
    let authority = Authority::start(deviations).await;
    let browser = RedirectAgent::default();
    let oauth = oauth(&authority.server.url).user_agent(browser.clone());
    let called = send_call(&oauth_client(&authority, oauth), &authority.endpoint()).await;
    called.map_err(|error| error.to_string())?;
    let opened = browser.opened.lock().expect("no panic");
    Ok(opened.first().expect("it was opened").clone())
}

/// Row of a test of scopes: changes of the servers, the challenge of status 401, a change of the client's options, and
/// the requested scopes that are expected.
type ScopeCase<'r> = (
    &'r [fn(&mut Deviations)],
    fn(&str) -> String,
    fn(OAuth) -> OAuth,
    Option<&'r str>,
);

/// Challenge without parameters.
const BARE_CHALLENGE: fn(&str) -> String = |_| "Bearer".to_owned();
/// Challenge with the scope `challenged`.
const WITH_SCOPE: fn(&str) -> String = |_| "Bearer scope=\"challenged\"".to_owned();

/// "Scope Selection Strategy": the client requests the scopes of the challenge, or else all scopes of the resource, but
/// never the scopes of the authorization server. The client also requests `offline_access` if the authorization server
/// lists it.
#[tokio::test]
async fn challenged_scopes_are_requested() {
    let resource = |deviations: &mut Deviations| {
        deviations.resource = |metadata, _, _| metadata["scopes_supported"] = json!(["a", "b"]);
    };
    let server = |deviations: &mut Deviations| {
        deviations.metadata = |metadata, _| metadata["scopes_supported"] = json!(["x", "y"]);
    };
    let offline = |deviations: &mut Deviations| {
        deviations.metadata =
            |metadata, _| metadata["scopes_supported"] = json!(["offline_access"]);
    };
    let plain: fn(OAuth) -> OAuth = |oauth| oauth;
    let rows: [ScopeCase<'_>; 7] = [
        (&[resource], WITH_SCOPE, plain, Some("challenged")),
        (&[resource], BARE_CHALLENGE, plain, Some("a b")),
        (&[server], BARE_CHALLENGE, plain, None),
        (&[resource, server], BARE_CHALLENGE, plain, Some("a b")),
        (
            &[resource, offline],
            BARE_CHALLENGE,
            plain,
            Some("a b offline_access"),
        ),
        (
            &[resource, offline],
            BARE_CHALLENGE,
            |oauth| oauth.refresh(false),
            Some("a b"),
        ),
        (
            &[resource],
            BARE_CHALLENGE,
            |oauth| oauth.scopes(["c"]),
            Some("a b c"),
        ),
    ];
    for (turns, challenge, change, expected) in rows {
        let mut deviations = Deviations {
            challenge_401: challenge,
            ..Deviations::default()
        };
        for turn in turns {
            turn(&mut deviations);
        }
        let url = sign_in(deviations, |_| change(OAuth::new("x"))).await;
        let url = url.expect("authorized");
        assert_eq!(parameter(&url, "scope").as_deref(), expected);
    }
}

/// URL of the client metadata document.
const CLIENT_DOCUMENT_URL: &str = "https://app.example/client.json";

/// "Client Registration Approaches": the client uses the id that is configured for the issuer, or else its client
/// metadata document, or else registration.
#[tokio::test]
async fn client_ids_are_chosen_in_order() {
    let documents: fn(&mut serde_json::Value, &str) = |metadata, _| {
        metadata["client_id_metadata_document_supported"] = json!(true);
    };
    let nothing: fn(&mut serde_json::Value, &str) = |_, _| {};
    let neither: fn(&mut serde_json::Value, &str) = |metadata, _| {
        metadata["registration_endpoint"] = json!(null);
    };
    let mine: fn(&str) -> OAuth =
        |issuer| OAuth::with_metadata_document(CLIENT_DOCUMENT_URL).also_registered(issuer, "mine");
    let others: fn(&str) -> OAuth = |_| OAuth::registered("https://other.example", "theirs");
    let document: fn(&str) -> OAuth = |_| OAuth::with_metadata_document(CLIENT_DOCUMENT_URL);
    for (metadata, oauth, expected) in [
        (documents, mine, Ok("mine")),
        (documents, document, Ok(CLIENT_DOCUMENT_URL)),
        (nothing, document, Ok("registered")),
        (neither, document, Err("register the client there")),
        (neither, others, Err("belongs to `https://other.example`")),
        (nothing, others, Err("belongs to `https://other.example`")),
    ] {
        let deviations = Deviations {
            metadata,
            ..Deviations::default()
        };
        match (sign_in(deviations, oauth).await, expected) {
            (Ok(url), Ok(id)) => assert_eq!(parameter(&url, "client_id").as_deref(), Some(id)),
            (Err(error), Err(message)) => assert!(error.contains(message), "{error}"),
            (other, _) => panic!("{other:?} instead of {expected:?}"),
        }
    }
}

/// The sign-in fails if the issuer that is configured in the client is not listed in the metadata of the resource.
#[tokio::test]
async fn resource_must_list_the_issuer() {
    let chosen = |_: &str| OAuth::new("x").issuer("https://other.example");
    let error = sign_in(Deviations::default(), chosen).await;
    let error = error.expect_err("it is not named");
    assert!(error.contains("which is configured"), "{error}");
}

/// "Resource Parameter Implementation": every request to the authorization server, including token refreshes, contains
/// the same `resource`.
#[tokio::test]
async fn every_request_contains_the_resource() {
    for (sends, expected) in [(true, 3), (false, 0)] {
        let authority = Authority::start(Deviations::default()).await;
        let oauth = OAuth::new("x").user_agent(RedirectAgent::default());
        let client = oauth_client(&authority, oauth.resource_indicator(sends));
        send_call(&client, &authority.endpoint())
            .await
            .expect("authorized");
        authority.expire_tokens();
        send_call(&client, &authority.endpoint())
            .await
            .expect("refreshed");
        let requests = authority.server.received_requests();
        let resources: Vec<_> = requests
            .iter()
            .filter_map(|request| request.param("resource"))
            .collect();
        assert_eq!(resources, vec![authority.endpoint(); expected]);
    }
}

/// Starts a 2025-03-26 server, which is its own authorization server and publishes no metadata.
async fn start_oldest_server() -> Site {
    Site::start(|_| {
        |request: &ReceivedRequest| match &*request.path {
            "/register" => respond_json(201, &json!({"client_id": "c"})),
            "/authorize" => {
                let state = request.param("state").unwrap_or_default();
                let target = request.param("redirect_uri").unwrap_or_default();
                response(
                    302,
                    &[("location", &format!("{target}?code=c&state={state}"))],
                    "",
                )
            }
            "/token" => respond_json(200, &json!({"access_token": "t", "token_type": "bearer"})),
            "/mcp" if request.header("authorization") == "Bearer t" => response(200, &[], "done"),
            "/mcp" => response(401, &[], ""),
            _ => response(404, &[], ""),
        }
    })
    .await
}

/// A 2025-03-26 server is its own authorization server, with endpoints at its origin ("Fallbacks for Servers without
/// Metadata Discovery"). Nothing says that it supports PKCE ("MUST refuse to proceed"), so that it is used only if the
/// application says so; `resource` is sent all the same ("regardless of whether authorization servers support it").
#[tokio::test]
async fn oldest_auth_revision_uses_default_endpoints() {
    let site = start_oldest_server().await;
    let endpoint = format!("{}/mcp", site.url);
    let client = |has_fallback, issuer: Option<&str>| {
        let oauth = OAuth::new("x").user_agent(RedirectAgent::default());
        let oauth = oauth.fallback(has_fallback);
        let oauth = match issuer {
            Some(issuer) => oauth.assume_pkce(issuer),
            None => oauth,
        };
        let client = oauth.client(&endpoint, Arc::new(HyperClient::default()));
        client.expect("the URL is on loopback")
    };
    let error = send_call(&client(false, Some(&site.url)), &endpoint).await;
    let error = error.expect_err("it is switched off").to_string();
    assert!(error.contains("there is no resource metadata"), "{error}");
    for issuer in [None, Some("https://as.example")] {
        let error = send_call(&client(true, issuer), &endpoint).await;
        let error = error.expect_err("PKCE is not known");
        let remedy = OAuthRemedy::HeaderOrOrigin(site.url.clone());
        assert_eq!(error_reason(&error).remedy(), Some(remedy));
    }
    assert_eq!(site.count("/authorize") + site.count("/register"), 0);
    let called = send_call(&client(true, Some(&site.url)), &endpoint).await;
    assert_eq!(called.expect("authorized"), 200);
    let requests = site.received_requests();
    let resources = requests
        .iter()
        .filter_map(|request| request.param("resource"));
    let resources: Vec<_> = resources.collect();
    assert_eq!(resources, [endpoint.as_str(), &endpoint]);
}

/// A server without metadata cannot make itself the authorization server of a client that has chosen another one:
/// "MCP clients MUST NOT send tokens to the MCP server other than ones issued by the MCP server's authorization server",
/// and the token of a workload is one.
#[tokio::test]
async fn missing_metadata_keeps_chosen_issuer() {
    let site = start_oldest_server().await;
    let endpoint = format!("{}/mcp", site.url);
    let workload = || OAuth::workload(|| async { Ok("platform token".into()) });
    for (oauth, issuer, is_authorized) in [
        (workload(), "https://as.example", false),
        (OAuth::new("x"), "https://as.example", false),
        (OAuth::new("x"), &*site.url, true),
    ] {
        let before = site.count("/token");
        let oauth = oauth.issuer(issuer).user_agent(RedirectAgent::default());
        let oauth = oauth.assume_pkce(&site.url);
        let client = oauth.client(&endpoint, Arc::new(HyperClient::default()));
        let called = send_call(&client.expect("the URL is on loopback"), &endpoint).await;
        assert_eq!(called.is_ok(), is_authorized, "{issuer}: {called:?}");
        let requests = site.count("/token") - before;
        assert_eq!(requests, usize::from(is_authorized), "{issuer}");
    }
}
