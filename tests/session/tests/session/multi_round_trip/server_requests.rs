//! Input requests to clients with a session: they are sent as requests, and the original request is delivered again
//! with the answers.

use mcp_exact_tests_session::*;

const REVISION: &str = "2025-11-25";

fn serve_call(config: ServerConfig) -> (RawServer, RequestKey) {
    let capabilities = json!({ "roots": {}, "elicitation": {}, "sampling": {} });
    let mut server = RawServer::begun(config, REVISION, capabilities);
    server.send(
        &json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": { "name": "x" } }),
    );
    let key = server.request().key;
    (server, key)
}

fn roots(names: &[&str]) -> Reply {
    let asks = names
        .iter()
        .map(|name| ((*name).to_owned(), InputRequest::new("roots/list", None)));
    Reply::InputRequired {
        requests: asks.collect(),
        state: Some("so far".into()),
    }
}

#[test]
fn a_request_is_raised_again_once_all_questions_have_ended() {
    let (mut server, key) = serve_call(server_config(&[REVISION]));
    assert_eq!(
        server.machine.reply(key, roots(&["a", "b"]), server.now),
        Ok(Sent::Queued)
    );
    let asked = server.drain();
    assert_eq!(asked.len(), 2);
    server.send(&json!({ "jsonrpc": "2.0", "id": asked[1]["id"], "result": { "roots": [] } }));
    assert!(server.events().is_empty());
    let busy = server.machine.reply(key, roots(&["c"]), server.now);
    assert_eq!(busy, Err(SendError::AwaitingInput));
    let error = json!({ "code": -1, "message": "no" });
    server.send(&json!({ "jsonrpc": "2.0", "id": asked[0]["id"], "error": error }));
    let again = server.request();
    assert_eq!(
        (again.key, again.retries, again.state.as_deref()),
        (key, 1, Some("so far"))
    );
    assert!(matches!(again.responses.get("a"), Some(Outcome::Error(e)) if e.code() == Some(-1)));
    assert!(again.responses.result("b").is_some());
    assert_eq!(again.responses.get("c"), None);
    let done = Reply::Result(result(json!({ "content": [] })));
    server
        .machine
        .reply(key, done, server.now)
        .expect("it waits");
    assert_eq!(server.drain()[0]["id"], 1);
}

#[test]
fn questions_have_limits_and_unique_names() {
    let mut config = server_config(&[REVISION]);
    config.limits.input_requests = 2;
    config.limits.retries = 1;
    config.limits.state_bytes = 8;
    let (mut server, key) = serve_call(config);
    let mut reply = |reply| server.machine.reply(key, reply, Time::ZERO);
    assert_eq!(
        reply(roots(&["a", "b", "c"])),
        Err(SendError::Limit(Limit::InputRequests))
    );
    assert!(matches!(
        reply(roots(&["a", "a"])),
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
    assert!(server.drain().is_empty(), "nothing has left");
    // A state alone comes back at once.
    let wait = Reply::InputRequired {
        requests: Vec::new(),
        state: Some("s".into()),
    };
    server.machine.reply(key, wait, server.now).expect("it may");
    assert_eq!(server.request().state.as_deref(), Some("s"));
    let more = server.machine.reply(key, roots(&["a"]), server.now);
    assert_eq!(more, Err(SendError::Limit(Limit::Retries)));
}
