//! No data of one client reaches another one.

use std::sync::Arc;

use mcp_exact::transport::ClientHandle;
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{
    AuthError, AuthFuture, Authenticate, HttpListener, HttpServerOptions,
};
use mcp_exact::{JsonObject, Principal, revisions};
use mcp_exact_session::{
    CallOptions, ClientConfig, ClientEvent, Identity, Json, Offer, Outcome, PeerError, RequestInput,
};

use crate::common::{InMemory, bridge, object, server};

/// Takes the header `x-principal` as the name of the principal.
struct ByHeader;

impl Authenticate for ByHeader {
    fn authenticate<'a>(&'a self, request: &'a mut ::http::request::Parts) -> AuthFuture<'a> {
        let name = request.headers.get("x-principal");
        let name = name.and_then(|name| name.to_str().ok()).map(str::to_owned);
        Box::pin(async move { Ok::<_, AuthError>(name.map(Principal)) })
    }
}

/// Connects a client of 2026-07-28 that hands questions through.
async fn raw_client(url: &str, principal: &'static str) -> ClientHandle {
    let mut config = ClientConfig::new(Identity::new("raw", "1.0.0"));
    config.offer = Offer::of(["2026-07-28"]).expect("a revision");
    config.capabilities = object(r#"{"elicitation":{},"sampling":{}}"#);
    config.pass_input_required = true;
    let endpoint = HttpEndpoint::new(url).expect("a URL").header(
        ::http::HeaderName::from_static("x-principal"),
        ::http::HeaderValue::from_static(principal),
    );
    let handler = |_: &ClientHandle, _: ClientEvent| {};
    let settings = config.build().expect("settings");
    let (client, _driver) = endpoint.connect(settings, None, Arc::new(handler));
    client.ready().await.expect("a negotiation");
    client
}

async fn call(
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
    let sent = client.request("tools/call", Some(params), options, None);
    match sent.expect("a request").await {
        Outcome::Result(result) => Ok(result.into_object()),
        Outcome::Error(error) => Err(error),
        other => panic!("{other:?}"),
    }
}

/// Returns the retry of a call that brings the answer to its only question.
fn answering(required: &JsonObject, answer: &str) -> RequestInput {
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

const YES: &str = r#"{"action":"accept","content":{"yes":true}}"#;

/// 2026-07-28, `basic/patterns/mrtr`: a state is bound to its request and to the user.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_call_is_continued_by_its_own_client_alone() {
    let handshake =
        revisions().filter(|revision| ("2025-06-18".."2026").contains(&revision.as_str()));
    for of_server in handshake {
        let bridge = bridge(InMemory::new(&server(of_server))).await;
        let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
        let url = format!("http://{}/mcp", listener.local_addr().expect("an address"));
        let service = bridge.http(HttpServerOptions {
            authenticate: Some(Arc::new(ByHeader)),
            ..HttpServerOptions::default()
        });
        let listening = tokio::spawn(listener.serve(service, std::future::pending()));

        let (own, other) = (
            raw_client(&url, "own").await,
            raw_client(&url, "other").await,
        );
        let first = call(&own, "{}", None).await.expect("a question");
        assert_eq!(bridge.usage().waiting_calls, 1);

        let stolen = call(&other, "{}", Some(answering(&first, YES))).await;
        assert_eq!(stolen.expect_err("another principal").code(), Some(-32602));
        let changed = call(&own, r#"{"more":1}"#, Some(answering(&first, YES))).await;
        assert_eq!(changed.expect_err("other arguments").code(), Some(-32602));
        assert_eq!(
            bridge.usage().waiting_calls,
            1,
            "the call still waits for its own client"
        );

        let second = call(&own, "{}", Some(answering(&first, YES)))
            .await
            .expect("a question");
        let again = call(&own, "{}", Some(answering(&first, YES))).await;
        assert_eq!(again.expect_err("a state works once").code(), Some(-32602));

        let third = call(&own, "{}", Some(answering(&second, YES)))
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
        listening.abort();
    }
}

/// A call that the client does not continue ends, and its connection is free again.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn waiting_call_expires() {
    use mcp_exact_bridge::{Bridge, Options};

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
    let late = call(&client, "{}", Some(answering(&first, YES))).await;
    assert_eq!(late.expect_err("expired").code(), Some(-32602));
    crate::matrix::wait_until(|| upstream.connections() == 0, "idle connections close").await;
}
