//! Calls that need more scopes ("Step-Up Authorization Flow"): which scopes a client requests, whose tokens it uses, and when it
//! stops.

use std::sync::Mutex;

use bytes::Bytes;
use http::Request;
use mcp_exact::transport::http::client::HttpClient as _;
use mcp_exact_auth::client::{MemoryStore, OAuth, OAuthClient, OAuthError};
use mcp_exact_tests_auth::authority::{Authority, RedirectAgent};
use mcp_exact_tests_auth::script::ScriptedServer;
use mcp_exact_tests_auth::site::{ReceivedRequest, json_response as respond_json, response};
use serde_json::{Value, json};

use crate::client::{deviations_with, error_reason, oauth_client, send_call, sign_in_count};

/// "Clients SHOULD implement retry limits" (2026-07-28, "Step-Up Authorization Flow"): a client stops after a few
/// sign-ins if the challenge requires a scope that is never granted.
#[tokio::test]
async fn step_up_attempts_are_limited() {
    let authority =
        Authority::start(deviations_with(|k| k.unobtainable_scope = Some("more"))).await;
    let client = oauth_client(
        &authority,
        OAuth::new("test").user_agent(RedirectAgent::default()),
    );
    for _ in 0..3 {
        let error = send_call(&client, &authority.endpoint()).await;
        let error = error.expect_err("it is never granted");
        assert!(
            matches!(
                error_reason(&error),
                OAuthError::StepUpLimit { attempts: 2, .. }
            ),
            "{error}"
        );
    }
    assert_eq!(sign_in_count(&authority), 3);
    let asked = authority.server.received_requests();
    let mut asked = asked.iter().filter(|request| request.path == "/authorize");
    assert_eq!(
        asked
            .next_back()
            .and_then(|request| request.param("scope"))
            .as_deref(),
        Some("more")
    );
}

/// Starts a server whose tokens have the requested scopes. A call needs the scope in its argument `scope`; without a token, the
/// challenge requires the scope `list`.
async fn start_scoped_server() -> ScriptedServer {
    let server = ScriptedServer::start().await;
    let granted = Mutex::new(String::new());
    server.script().hook = Some(Box::new(move |request: &ReceivedRequest| {
        match &*request.path {
            "/authorize" => {
                *granted.lock().expect("no panic") = request.param("scope").unwrap_or_default();
                None
            }
            "/token" => {
                // The token contains its scopes.
                let token = granted.lock().expect("no panic").replace(' ', ".");
                let token = format!("scopes.{token}");
                let token = json!({"access_token": token, "token_type": "Bearer"});
                Some(respond_json(200, &token))
            }
            "/mcp" => {
                let body: Value = serde_json::from_str(&request.body).expect("JSON");
                let needed = body["params"]["arguments"]["scope"].as_str();
                let needed = needed.expect("a scope");
                let token = request.header("authorization");
                let challenge = match token.strip_prefix("Bearer scopes.") {
                    None => (401, "Bearer scope=\"list\"".to_owned()),
                    Some(scopes) if scopes.split('.').any(|known| known == needed) => {
                        return Some(response(200, &[], "done"));
                    }
                    Some(_) => (
                        403,
                        format!("Bearer error=\"insufficient_scope\", scope=\"{needed}\""),
                    ),
                };
                let headers = [("www-authenticate", &*challenge.1)];
                Some(response(challenge.0, &headers, ""))
            }
            _ => None,
        }
    }));
    server
}

/// Calls a tool that needs a scope; returns the HTTP status.
async fn call(server: &ScriptedServer, client: &OAuthClient, tool: &str, scope: &str) -> u16 {
    let params = json!({"name": tool, "arguments": {"scope": scope}});
    let body = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params});
    let request = Request::post(server.endpoint()).body(Bytes::from(body.to_string()));
    let response = client.send(request.expect("a request")).await;
    response.expect("authorized").status().as_u16()
}

/// Returns the scopes of the sign-ins so far, each sorted.
fn requested_scopes(server: &ScriptedServer) -> Vec<String> {
    let requests = server.requests("/authorize");
    let scopes = requests.iter().map(|request| {
        let scopes = request.param("scope").unwrap_or_default();
        let mut scopes: Vec<_> = scopes.split(' ').collect();
        scopes.sort_unstable();
        scopes.join(" ")
    });
    scopes.collect()
}

/// If two concurrent calls need different scopes, each sign-in also requests the scopes that the other has obtained
/// ("Step-Up Authorization Flow": the union of the requested and the challenged scopes).
#[tokio::test]
async fn concurrent_step_ups_keep_all_scopes() {
    let server = start_scoped_server().await;
    let client = server.client(OAuth::new("test").user_agent(RedirectAgent::default()));
    for _ in 0..2 {
        let calls = tokio::join!(
            call(&server, &client, "a", "a"),
            call(&server, &client, "b", "b")
        );
        assert_eq!(calls, (200, 200));
    }
    let asked = requested_scopes(&server);
    assert_eq!(asked.len(), 3, "{asked:?}");
    assert_eq!((&*asked[0], &*asked[2]), ("list", "a b list"));
}

/// The limit is one of attempts that fail: an operation that needs one more scope after each success gets it.
#[tokio::test]
async fn successes_reset_the_limit() {
    let server = start_scoped_server().await;
    let client = server.client(OAuth::new("test").user_agent(RedirectAgent::default()));
    for scope in ["s1", "s2", "s3", "s4", "s5"] {
        assert_eq!(call(&server, &client, "t", scope).await, 200, "{scope}");
    }
    let last = requested_scopes(&server).pop();
    assert_eq!(last.as_deref(), Some("list s1 s2 s3 s4 s5"));
}

/// A token that another process has stored is used if it has the scopes, without another sign-in; otherwise the sign-in requests
/// its scopes too.
#[tokio::test]
async fn tokens_of_other_processes_are_used() {
    let server = start_scoped_server().await;
    let store = MemoryStore::default();
    let client = || {
        let oauth = OAuth::new("test").user_agent(RedirectAgent::default());
        server.client(oauth.store(store.clone()))
    };
    let (one, other) = (client(), client());
    // Who calls, the scope, and the requests and sign-ins of this call.
    for (client, scope, requests, sign_ins) in [
        (&one, "list", 2, vec!["list"]),
        (&other, "list", 1, vec![]),
        (&one, "a", 2, vec!["a list"]),
        (&other, "a", 2, vec![]),
        (&one, "b", 2, vec!["a b list"]),
        (&other, "c", 2, vec!["a b c list"]),
    ] {
        let before = (server.site.count("/mcp"), server.site.count("/authorize"));
        assert_eq!(call(&server, client, "t", scope).await, 200, "{scope}");
        assert_eq!(server.site.count("/mcp") - before.0, requests, "{scope}");
        assert_eq!(requested_scopes(&server)[before.1..], sign_ins, "{scope}");
    }
}
