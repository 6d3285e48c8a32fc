//! Input requests to clients with a session: each input request is sent as a server request, and the original request
//! is delivered again with the answers.

use mcp_exact_tests_session::*;

/// Newest revision with a handshake.
const REVISION: &str = "2025-11-25";

/// Creates a server in a session; returns the server and the key of a tool call that it has received.
fn serve_call(config: ServerConfig) -> (RawServer, RequestKey) {
    let capabilities = json!({ "roots": {}, "elicitation": {}, "sampling": {} });
    let mut server = RawServer::with_session(config, REVISION, capabilities);
    server.send(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } }),
    );
    let key = server.take_request().key;
    (server, key)
}

/// Creates a reply that requires the roots once per name.
fn roots_request(names: &[&str]) -> Reply {
    let asks = names
        .iter()
        .map(|name| ((*name).to_owned(), InputRequest::new("roots/list", None)));
    Reply::InputRequired {
        requests: asks.collect(),
        state: Some("so far".into()),
    }
}

/// The application receives its request again when the client has answered every input request.
#[test]
fn request_is_delivered_again_with_responses() {
    let (mut server, key) = serve_call(server_config(&[REVISION]));
    assert_eq!(
        server
            .endpoint
            .reply(key, roots_request(&["a", "b"]), server.now),
        Ok(SendOutcome::Queued)
    );
    let asked = server.take_messages();
    assert_eq!(asked.len(), 2);
    server.send(&json!({ "jsonrpc": "2.0", "id": asked[1]["id"], "result": { "roots": [] } }));
    assert!(server.events().is_empty());
    let busy = server
        .endpoint
        .reply(key, roots_request(&["c"]), server.now);
    assert_eq!(busy, Err(SendError::AwaitingInput));
    let error = json!({ "code": -1, "message": "no" });
    server.send(&json!({ "jsonrpc": "2.0", "id": asked[0]["id"], "error": error }));
    let again = server.take_request();
    assert_eq!(
        (again.key, again.retries, again.state.as_deref()),
        (key, 1, Some("so far"))
    );
    assert!(matches!(again.responses.get("a"), Some(Outcome::Error(e)) if e.code() == Some(-1)));
    assert!(again.responses.result("b").is_some());
    assert_eq!(again.responses.get("c"), None);
    let done = Reply::Result(to_result(json!({ "content": [] })));
    server
        .endpoint
        .reply(key, done, server.now)
        .expect("it waits");
    assert_eq!(server.take_messages()[0]["id"], 1);
}

/// A reply is refused if two of its input requests have the same name or if it exceeds a limit of input requests.
#[test]
fn input_requests_have_unique_names() {
    let mut config = server_config(&[REVISION]);
    config.limits.input_requests = 2;
    config.limits.retries = 1;
    config.limits.state_bytes = 8;
    let (mut server, key) = serve_call(config);
    let mut reply = |reply| server.endpoint.reply(key, reply, Time::ZERO);
    assert_eq!(
        reply(roots_request(&["a", "b", "c"])),
        Err(SendError::Limit(Limit::InputRequests))
    );
    assert!(matches!(
        reply(roots_request(&["a", "a"])),
        Err(SendError::InputRequests(_))
    ));
    let long = Reply::InputRequired {
        requests: Vec::new(),
        state: Some("x".repeat(9)),
    };
    assert_eq!(reply(long), Err(SendError::Limit(Limit::StateBytes)));
    let nothing = Reply::InputRequired {
        requests: Vec::new(),
        state: None,
    };
    assert!(matches!(reply(nothing), Err(SendError::InputRequests(_))));
    let other = vec![("a".to_owned(), InputRequest::new("tools/list", None))];
    let other = Reply::InputRequired {
        requests: other,
        state: None,
    };
    assert!(matches!(reply(other), Err(SendError::Method { .. })));
    assert!(server.take_messages().is_empty(), "nothing has left");
    // A state alone comes back at once.
    let wait = Reply::InputRequired {
        requests: Vec::new(),
        state: Some("s".into()),
    };
    server
        .endpoint
        .reply(key, wait, server.now)
        .expect("it may");
    assert_eq!(server.take_request().state.as_deref(), Some("s"));
    let more = server
        .endpoint
        .reply(key, roots_request(&["a"]), server.now);
    assert_eq!(more, Err(SendError::Limit(Limit::Retries)));
}
