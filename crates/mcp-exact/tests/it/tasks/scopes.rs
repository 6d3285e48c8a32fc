//! Scopes over HTTP: no request with a token without the scope reaches a protected definition.

use std::sync::Arc;

use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{
    AuthError, AuthFuture, Authenticate, Authenticated, HttpListener, HttpServerOptions,
};
use mcp_exact::{Client, ListedDefinition, Principal, Resource, ResourceTemplate, Tool};

use super::{builder, connect, create_task, error_code, get_task, newest, params_of, text};

/// Authenticator whose principal is always `ada`; a header contains the granted scopes.
struct HeaderAuthenticator;

impl Authenticate for HeaderAuthenticator {
    fn authenticate<'a>(&'a self, _: &'a mut http::request::Parts) -> AuthFuture<'a> {
        let principal = Principal("ada".to_owned());
        Box::pin(std::future::ready(Ok(Authenticated::As(principal))))
    }

    fn authorize(
        &self,
        request: &http::request::Parts,
        scopes: &[String],
    ) -> Result<(), AuthError> {
        let granted = request.headers.get("x-scopes");
        let granted = granted.and_then(|value| value.to_str().ok());
        let has =
            |scope: &String| granted.is_some_and(|all| all.split(' ').any(|one| one == scope));
        if scopes.iter().all(has) {
            Ok(())
        } else {
            Err(AuthError::forbidden())
        }
    }
}

/// Without the scope of a definition, requests about its tasks, subscriptions and reads are rejected.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn all_requests_require_the_scope() {
    let server = builder()
        .tool(
            Tool::new("forever").scope("admin").task(),
            std::future::pending::<()>,
        )
        .resource(Resource::new("x://scoped").scope("admin"), || async { "" })
        .resource(Resource::new("x://hidden").with_name("hidden"), || async {
            ""
        })
        .template(
            ResourceTemplate::new("x://{name}").scope("admin"),
            || async { "secret" },
        )
        .visible(|_, listed: ListedDefinition<'_>| listed.name() != "hidden")
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
    let options = HttpServerOptions {
        authenticate: Some(Arc::new(HeaderAuthenticator)),
        ..HttpServerOptions::default()
    };
    let serving = tokio::spawn(listener.serve(server.http(options), std::future::pending()));
    let with = |scopes: &'static str| {
        let value = http::HeaderValue::from_static(scopes);
        let endpoint = HttpEndpoint::new(&url).expect("a URL");
        let endpoint = endpoint.header("x-scopes".parse().expect("a name"), value);
        connect(Client::http(endpoint)).revision(newest())
    };
    let (admin, guest) = (
        with("admin").await.expect("a client"),
        with("none").await.expect("a client"),
    );
    // A task belongs to its principal, and to the scope of its tool.
    let task = create_task(&admin, "forever").await;
    for method in ["tasks/get", "tasks/cancel"] {
        let error = guest.request(method, Some(params_of(&task))).await;
        assert_eq!(error_code(error.expect_err("no scope")), Some(-32602));
    }
    assert_eq!(text(&get_task(&admin, &task).await, "status"), "working");
    // A subscription is as good as reading.
    let listening = admin.subscribe(["x://scoped"]).await.expect("a scope");
    guest.subscribe(["x://scoped"]).await.expect_err("no scope");
    drop(listening);
    // The template serves what a hidden resource does not.
    let contents = admin.read("x://hidden").await.expect("a scope");
    assert_eq!(contents.text(), "secret");
    guest.read("x://hidden").await.expect_err("no scope");
    serving.abort();
}
