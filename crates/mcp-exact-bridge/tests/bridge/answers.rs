//! Answers of clients without sessions to the requests of a server with sessions: keys and kinds.

use mcp_exact::transport::ClientHandle;
use mcp_exact::{JsonObject, RawJson, Revision, revisions};
use mcp_exact_session::{CallOptions, PeerError, RequestInput};

use crate::common::{InMemory, bridge, listen, object, server};
use crate::isolation::{ACCEPT_RESPONSE, answering, call, outcome_of, raw_client};

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
