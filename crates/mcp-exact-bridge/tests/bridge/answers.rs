//! Answers of clients without sessions to the requests of a server with sessions: keys, kinds, and calls that cannot ask.

use std::sync::Arc;

use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, connect, memory_pair, serve,
};
use mcp_exact::{JsonObject, RawJson, Revision, revisions};
use mcp_exact_bridge::{Bridge, Options, Upstream};
use mcp_exact_session::{
    CachedNegotiation, CallOptions, ClientConfig, ClientSettings, Identity, PeerError, RequestInput,
};
use tokio::task::JoinHandle;

use crate::common::{InMemory, bridge, listen, object, server};
use crate::isolation::{
    ACCEPT_RESPONSE, answering, call, connect_as, listen_by_header, outcome_of, raw_client,
};
use crate::matrix::wait_until;
use crate::scripted::{Scripted, request, response, text_of};

/// Response to a sampling request.
const SAMPLE_RESPONSE: &str =
    r#"{"role":"assistant","model":"m","content":{"type":"text","text":"Hi."}}"#;

/// Returns the newest revision with sessions.
fn newest_with_sessions() -> Revision {
    let mut all = revisions().filter(|revision| revision.as_str() < "2026");
    all.next_back().expect("a revision")
}

/// Returns the keys of the input requests of a result.
fn keys_of(required: &JsonObject) -> Vec<String> {
    let asks = required.get("inputRequests").expect("questions");
    let asks = JsonObject::try_from(asks).expect("an object");
    asks.iter().map(|(name, _)| name.into_owned()).collect()
}

/// Returns a retry with these members of `inputResponses`.
fn retry_with(required: &JsonObject, responses: &[(&str, &str)]) -> RequestInput {
    let responses = responses.iter();
    let responses = responses.map(|(key, answer)| (*key, RawJson::from(object(answer))));
    RequestInput {
        responses: Some(responses.collect()),
        state: required.get("requestState"),
    }
}

/// Calls the tool `together`, or retries the call with `input`.
async fn call_together(
    client: &ClientHandle,
    input: Option<RequestInput>,
) -> Result<JsonObject, PeerError> {
    let options = CallOptions {
        input,
        ..CallOptions::default()
    };
    let params = object(r#"{"name":"together","arguments":{}}"#);
    outcome_of(client.request("tools/call", Some(params), options, None)).await
}

/// "`inputRequests` keys are server assigned identifiers and MUST be unique within the scope of the request"
/// (2026-07-28, `basic/patterns/mrtr`): a later input request of the same call has another key.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_are_unique_in_a_call() {
    let bridge = bridge(InMemory::new(&server(newest_with_sessions()))).await;
    let listening = listen(&bridge).await;
    let client = raw_client(&listening.url, "own").await;
    let first = call(&client, "{}", None).await.expect("a question");
    let input = answering(&first, ACCEPT_RESPONSE);
    let second = call(&client, "{}", Some(input)).await.expect("a question");
    assert_ne!(keys_of(&first), keys_of(&second));
    // A client may repeat its earlier responses.
    let decline = r#"{"action":"decline"}"#;
    let (before, key) = (&keys_of(&first)[0], &keys_of(&second)[0]);
    let input = retry_with(&second, &[(before, decline), (key, ACCEPT_RESPONSE)]);
    let third = call(&client, "{}", Some(input)).await.expect("a question");
    let input = answering(&third, SAMPLE_RESPONSE);
    let done = call(&client, "{}", Some(input)).await.expect("a result");
    assert!(done.text().contains("true true Hi."), "{done}");
    client.close();
}

/// "If the client fails to send all the information requested in a previous `InputRequests` […], the server SHOULD
/// respond with a new `InputRequiredResult` requesting the missing information again" (2026-07-28,
/// `basic/patterns/mrtr`, "Error Handling").
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unanswered_requests_keep_their_keys() {
    let bridge = bridge(InMemory::new(&server(newest_with_sessions()))).await;
    let listening = listen(&bridge).await;
    let client = raw_client(&listening.url, "own").await;
    let mut required = call_together(&client, None).await.expect("questions");
    let mut keys = keys_of(&required);
    // Requests that the server sends later may come with another result.
    while keys.len() < 3 {
        let input = retry_with(&required, &[]);
        required = call_together(&client, Some(input))
            .await
            .expect("questions");
        keys = keys_of(&required);
    }
    let input = retry_with(&required, &[("other", ACCEPT_RESPONSE)]);
    let again = call_together(&client, Some(input))
        .await
        .expect("questions");
    assert_eq!(keys_of(&again), keys, "an unknown key answers nothing");
    let asks = again.get("inputRequests").expect("questions");
    let asks = JsonObject::try_from(asks).expect("an object");
    let is_form = |key: &&String| {
        asks.get(key)
            .is_some_and(|ask| ask.text().contains("elicit"))
    };
    let form = keys.iter().find(is_form).expect("an elicitation").clone();
    let input = retry_with(&again, &[(&form, ACCEPT_RESPONSE)]);
    let rest = call_together(&client, Some(input))
        .await
        .expect("questions");
    keys.retain(|key| *key != form);
    assert_eq!(keys_of(&rest), keys);
    let input = answering(&rest, SAMPLE_RESPONSE);
    let done = call_together(&client, Some(input)).await.expect("a result");
    assert!(done.text().contains("true Hi. Hi."), "{done}");
    client.close();
}

/// A response of another kind than the input request is refused, and the client can correct it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn responses_of_another_kind_are_refused() {
    let bridge = bridge(InMemory::new(&server(newest_with_sessions()))).await;
    let listening = listen(&bridge).await;
    let client = raw_client(&listening.url, "own").await;
    let first = call(&client, "{}", None).await.expect("a question");
    for wrong in [SAMPLE_RESPONSE, r#"{"roots":[]}"#, "{}"] {
        let refused = call(&client, "{}", Some(answering(&first, wrong))).await;
        assert_eq!(refused.expect_err(wrong).code(), Some(-32602), "{wrong}");
        assert_eq!(bridge.usage().waiting_calls, 1, "{wrong}");
    }
    let next = call(&client, "{}", Some(answering(&first, ACCEPT_RESPONSE))).await;
    assert!(next.is_ok(), "{next:?}");
    client.close();
}

/// "Servers MUST NOT send `InputRequiredResult` responses on any other client requests" (2026-07-28,
/// `basic/patterns/mrtr`, "Supported Requests"): a request of the server during such a request is refused.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn lists_do_not_ask() {
    let of_server = newest_with_sessions();
    let asking = Scripted::new(of_server, |message| {
        let id = text_of(message, "id");
        match (&*text_of(message, "method"), id.strip_prefix("roots:")) {
            ("resources/list", _) => vec![request(&format!("roots:{id}"), "roots/list", "{}")],
            (_, Some(id)) => vec![response(id, r#""result":{"resources":[]}"#)],
            _ => Vec::new(),
        }
    });
    let bridge = Bridge::new(asking, Options::default()).await;
    let bridge = bridge.expect("a bridge");
    let listening = listen(&bridge).await;
    let mut config = ClientConfig::new(Identity::new("rooted", "1.0.0"));
    config.capabilities = object(r#"{"roots":{}}"#);
    config.pass_input_required = true;
    let client = connect_as(&listening.url, "own", "2026-07-28", config, |_| {}).await;
    let options = CallOptions::default();
    let listed = outcome_of(client.request("resources/list", None, options, None)).await;
    assert!(listed.expect("a list").text().contains("\"resources\":[]"));
    assert_eq!(bridge.usage().waiting_calls, 0);
    client.close();
}

/// A call does not wait if its input requests cannot be sent to the client.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn unsent_input_requests_end_the_call() {
    let mut options = Options::default();
    options.limits.input_requests = 1;
    let upstream = InMemory::new(&server(newest_with_sessions()));
    let bridge = Bridge::new(upstream, options).await.expect("a bridge");
    let listening = listen(&bridge).await;
    let client = raw_client(&listening.url, "own").await;
    let mut called = call_together(&client, None).await;
    // Requests that the server sends later come with a later result: at most one each.
    for _ in 0..3 {
        if let Ok(required) = &called {
            let input = retry_with(required, &[]);
            called = call_together(&client, Some(input)).await;
        }
    }
    let refused = called.expect_err("too many");
    assert!(refused.message().contains("forwarded"), "{refused}");
    // The error is sent first.
    let none = || bridge.usage().waiting_calls == 0;
    wait_until(none, "the call has ended").await;
    client.close();
}

/// Bridge as the server of another bridge, in memory.
struct Behind(Bridge);

impl Upstream for Behind {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let (local, remote) = memory_pair(256 << 10, settings.limits.message_bytes);
        let (serving, bridge) = self.0.endpoint();
        tokio::spawn(async move {
            let options = ConnectionOptions::default();
            let _ = serve(serving, bridge, remote, options, std::future::pending()).await;
        });
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, local, options))
    }
}

/// Answers every input request of the tool `ask`, and checks its result.
async fn answer_all(client: &ClientHandle, what: &str) {
    let mut input = None;
    for answer in [ACCEPT_RESPONSE, ACCEPT_RESPONSE, SAMPLE_RESPONSE] {
        let required = call(client, "{}", input.take()).await;
        let required = required.unwrap_or_else(|error| panic!("{what}: {error:?}"));
        input = Some(answering(&required, answer));
    }
    let done = call(client, "{}", input).await;
    let done = done.unwrap_or_else(|error| panic!("{what}: {error:?}"));
    assert!(done.text().contains("true true Hi."), "{what}: {done}");
}

/// The `requestState` of a gateway behind the gateway is opaque, as that of any server (2026-07-28,
/// `basic/patterns/mrtr`).
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn gateways_can_be_chained() {
    let of_servers = revisions().filter(|revision| revision.as_str() >= "2025-06-18");
    for of_server in of_servers {
        let behind = bridge(InMemory::new(&server(of_server))).await;
        let secured = listen_by_header(&behind).await;
        let in_memory = Bridge::new(Behind(behind), Options::default()).await;
        let endpoint = HttpEndpoint::new(&secured.url).expect("a URL").header(
            ::http::HeaderName::from_static("x-principal"),
            ::http::HeaderValue::from_static("gateway"),
        );
        let with_principal = Bridge::new(endpoint, Options::default()).await;
        for (first, kind) in [(in_memory, "in memory"), (with_principal, "with principal")] {
            let first = first.expect("a bridge");
            let listening = listen(&first).await;
            let client = raw_client(&listening.url, "nobody").await;
            answer_all(&client, &format!("server {of_server}, {kind}")).await;
            client.close();
        }
    }
}
