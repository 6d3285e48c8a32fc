//! Isolation: no data of one client reaches another client.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{AuthError, AuthFuture, Authenticate, HttpServerOptions};
use mcp_exact::transport::{ClientHandle, PendingRequest};
use mcp_exact::{JsonObject, Principal, revisions};
use mcp_exact_bridge::{Bridge, Options};
use mcp_exact_session::{
    CallOptions, ClientConfig, ClientEvent, Identity, Json, Offer, Outcome, PeerError,
    RequestInput, SendError,
};

use crate::common::{InMemory, Listening, bridge, listen_with, object, server};

/// Authenticator that uses the header `x-principal` as the principal.
pub struct ByHeader;

impl Authenticate for ByHeader {
    fn authenticate<'a>(&'a self, request: &'a mut ::http::request::Parts) -> AuthFuture<'a> {
        let name = request.headers.get("x-principal");
        let name = name.and_then(|name| name.to_str().ok()).map(str::to_owned);
        Box::pin(async move { Ok::<_, AuthError>(name.map(Principal).into()) })
    }
}

/// Serves a bridge over HTTP with the authenticator [`ByHeader`].
pub async fn listen_by_header(bridge: &Bridge) -> Listening {
    listen_with(
        bridge,
        HttpServerOptions {
            authenticate: Some(Arc::new(ByHeader)),
            ..HttpServerOptions::default()
        },
    )
    .await
}

/// Connects a client of 2026-07-28 that passes input requests to the test.
pub async fn raw_client(url: &str, principal: &'static str) -> ClientHandle {
    let mut config = ClientConfig::new(Identity::new("raw", "1.0.0"));
    config.capabilities = object(r#"{"elicitation":{},"sampling":{}}"#);
    config.pass_input_required = true;
    connect_as(url, principal, "2026-07-28", config, |_| {}).await
}

/// Connects a client of 2026-07-28 without capabilities for input requests.
pub async fn plain_client(url: &str, principal: &'static str) -> ClientHandle {
    let config = ClientConfig::new(Identity::new("plain", "1.0.0"));
    connect_as(url, principal, "2026-07-28", config, |_| {}).await
}

/// Connects a client of one revision over HTTP, which passes its events to a function.
pub async fn connect_as(
    url: &str,
    principal: &'static str,
    revision: &str,
    mut config: ClientConfig,
    on_event: impl Fn(ClientEvent) + Send + Sync + 'static,
) -> ClientHandle {
    config.offer = Offer::new([revision]).expect("a revision");
    let endpoint = HttpEndpoint::new(url).expect("a URL").header(
        ::http::HeaderName::from_static("x-principal"),
        ::http::HeaderValue::from_static(principal),
    );
    let handler = move |_: &ClientHandle, event| on_event(event);
    let settings = config.build().expect("settings");
    let (client, _driver) = endpoint.connect(settings, None, Arc::new(handler));
    client.ready().await.expect("a negotiation");
    client
}

/// Requests the list of tools.
async fn list(client: &ClientHandle) -> Result<JsonObject, PeerError> {
    outcome_of(client.request("tools/list", None, CallOptions::default(), None)).await
}

/// Calls the tool `ask` with arguments, or retries a call with `input`.
pub async fn call(
    client: &ClientHandle,
    arguments: &str,
    input: Option<RequestInput>,
) -> Result<JsonObject, PeerError> {
    let params = JsonObject::from_iter([
        ("name", Json::string("ask")),
        ("arguments", object(arguments).into()),
    ]);
    let options = CallOptions {
        input,
        ..CallOptions::default()
    };
    outcome_of(client.request("tools/call", Some(params), options, None)).await
}

/// Waits for the result or error of a request; panics on other outcomes.
pub async fn outcome_of(sent: Result<PendingRequest, SendError>) -> Result<JsonObject, PeerError> {
    match sent.expect("a request").await {
        Outcome::Result(result) => Ok(result.into_object()),
        Outcome::Error(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// Returns the members of a retry that responds to the input requests of a result with `answer`.
pub fn answering(required: &JsonObject, answer: &str) -> RequestInput {
    let asks: JsonObject = required
        .get("inputRequests")
        .expect("questions")
        .try_into()
        .expect("an object");
    let responses = asks
        .iter()
        .map(|(name, _)| (name.into_owned(), Json::from(object(answer))));
    RequestInput {
        responses: Some(responses.collect()),
        state: required.get("requestState"),
    }
}

/// Elicitation result that accepts with the value `true`.
pub const ACCEPT_RESPONSE: &str = r#"{"action":"accept","content":{"yes":true}}"#;

/// A `requestState` is bound to its request and to the user (2026-07-28, `basic/patterns/mrtr`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn only_its_client_continues_a_call() {
    let handshake =
        revisions().filter(|revision| ("2025-06-18".."2026").contains(&revision.as_str()));
    for of_server in handshake {
        let bridge = bridge(InMemory::new(&server(of_server))).await;
        let listening = listen_by_header(&bridge).await;
        let url = &listening.url;
        let (own, other) = (raw_client(url, "own").await, raw_client(url, "other").await);
        let first = call(&own, "{}", None).await.expect("a question");
        assert_eq!(bridge.usage().waiting_calls, 1);

        let stolen = call(&other, "{}", Some(answering(&first, ACCEPT_RESPONSE))).await;
        assert_eq!(stolen.expect_err("another principal").code(), Some(-32602));
        let changed = call(
            &own,
            r#"{"more":1}"#,
            Some(answering(&first, ACCEPT_RESPONSE)),
        )
        .await;
        assert_eq!(changed.expect_err("other arguments").code(), Some(-32602));
        assert_eq!(
            bridge.usage().waiting_calls,
            1,
            "the call still waits for its own client"
        );

        let second = call(&own, "{}", Some(answering(&first, ACCEPT_RESPONSE)))
            .await
            .expect("a question");
        let again = call(&own, "{}", Some(answering(&first, ACCEPT_RESPONSE))).await;
        assert_eq!(again.expect_err("a state works once").code(), Some(-32602));

        let third = call(&own, "{}", Some(answering(&second, ACCEPT_RESPONSE)))
            .await
            .expect("a question");
        let sample = r#"{"role":"assistant","model":"m","content":{"type":"text","text":"Hi."}}"#;
        let done = call(&own, "{}", Some(answering(&third, sample)))
            .await
            .expect("a result");
        assert!(done.to_string().contains("true true Hi."), "{done}");
        assert_eq!(bridge.usage().waiting_calls, 0);
        own.close();
        other.close();
    }
}

/// A call that the client does not continue expires, and its connection becomes free.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_call_expires() {
    let of_server = revisions()
        .find(|revision| revision.as_str() == "2025-11-25")
        .expect("known");
    let upstream = InMemory::new(&server(of_server));
    let mut options = Options::default();
    options.answer_within = std::time::Duration::from_millis(50);
    options.idle = std::time::Duration::from_millis(50);
    let bridge = Bridge::new(upstream.clone(), options)
        .await
        .expect("a bridge");
    let listening = crate::common::listen(&bridge).await;
    let client = raw_client(&listening.url, "own").await;
    let first = call(&client, "{}", None).await.expect("a question");
    let expired = || bridge.usage().waiting_calls == 0;
    crate::matrix::wait_until(expired, "the call expires").await;
    let late = call(&client, "{}", Some(answering(&first, ACCEPT_RESPONSE))).await;
    assert_eq!(late.expect_err("expired").code(), Some(-32602));
    crate::matrix::wait_until(|| upstream.connections() == 0, "idle connections close").await;
}

/// A connection that the server does not answer delays only its own client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn slow_connection_delays_only_its_client() {
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let bridge = bridge(upstream.clone()).await;
        let listening = listen_by_header(&bridge).await;
        let (own, other) = (
            plain_client(&listening.url, "own").await,
            plain_client(&listening.url, "other").await,
        );
        upstream.silent.store(1, Ordering::Relaxed);
        let slow = tokio::spawn({
            let own = own.clone();
            async move { list(&own).await }
        });
        let begun = || upstream.silent.load(Ordering::Relaxed) == 0;
        crate::matrix::wait_until(begun, "the first client's connection is opened").await;
        assert!(list(&other).await.is_ok(), "server {of_server}");
        assert!(!slow.is_finished(), "server {of_server}");
        slow.abort();
        own.close();
        other.close();
    }
}

/// Unused connections are closed when other clients need connections.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unused_connections_make_room() {
    for of_server in revisions() {
        let upstream = InMemory::new(&server(of_server));
        let mut options = Options::default();
        options.connections = 1;
        let bridge = Bridge::new(upstream.clone(), options)
            .await
            .expect("a bridge");
        let listening = listen_by_header(&bridge).await;
        for principal in ["first", "second", "third"] {
            let plain = plain_client(&listening.url, principal).await;
            assert!(
                list(&plain).await.is_ok(),
                "{principal}, server {of_server}"
            );
            plain.close();
            // Connections of clients that can answer server requests serve one call at a time.
            let asked = raw_client(&listening.url, principal).await;
            assert!(
                list(&asked).await.is_ok(),
                "{principal}, server {of_server}"
            );
            asked.close();
        }
        let is_one = || upstream.connections() == 1;
        crate::matrix::wait_until(is_one, "one connection is left").await;
    }
}
