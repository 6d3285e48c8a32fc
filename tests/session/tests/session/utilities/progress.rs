//! Progress: tokens, increasing values, and the end of a request (`basic/utilities/progress`).

use mcp_exact_tests_session::*;

/// Delivers a request with a progress token; returns the server and the request's key.
fn serve_request(token: Value) -> (RawServer, RequestKey) {
    let mut server =
        RawServer::with_session(server_config(&["2025-06-18"]), "2025-06-18", json!({}));
    let params = json!({ "name": "x", "_meta": { "progressToken": token } });
    server.send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
    let key = server.take_request().key;
    (server, key)
}

/// A progress notification contains the token with the type and spelling of the request.
#[test]
fn progress_token_keeps_type_and_spelling() {
    for token in [json!("t"), json!(5), json!(0)] {
        let (mut server, key) = serve_request(token.clone());
        assert_eq!(
            server.endpoint.send_progress(key, &Progress::new(1.0)),
            Ok(SendOutcome::Queued)
        );
        assert_eq!(server.take_messages()[0]["params"]["progressToken"], token);
    }
    for token in [json!(null), json!(1.5), json!([]), json!({})] {
        let (mut server, key) = serve_request(token.clone());
        assert_eq!(
            server.endpoint.send_progress(key, &Progress::new(1.0)),
            Ok(SendOutcome::Suppressed),
            "{token}"
        );
    }
}

/// Progress that does not increase is not sent.
#[test]
fn sent_progress_must_increase() {
    let (mut server, key) = serve_request(json!("t"));
    let mut say = |done: f64| server.endpoint.send_progress(key, &Progress::new(done));
    assert_eq!(say(1.0), Ok(SendOutcome::Queued));
    assert_eq!(say(1.0), Err(SendError::Progress));
    assert_eq!(say(0.5), Err(SendError::Progress));
    assert_eq!(say(f64::NAN), Err(SendError::Progress));
    assert_eq!(say(f64::INFINITY), Err(SendError::Progress));
    assert_eq!(say(1.5), Ok(SendOutcome::Queued));
}

/// Progress for a request that was answered is refused and not sent.
#[test]
fn progress_stops_with_the_answer() {
    let (mut server, key) = serve_request(json!("t"));
    let reply = Reply::Result(to_result(json!({ "content": [] })));
    server
        .endpoint
        .reply(key, reply, server.now)
        .expect("it waits");
    server.take_messages();
    assert_eq!(
        server.endpoint.send_progress(key, &Progress::new(1.0)),
        Err(SendError::UnknownRequest)
    );
    assert!(server.take_messages().is_empty());
}

/// The `message` of a progress notification is sent only in revisions that define it.
#[test]
fn progress_messages_depend_on_revision() {
    for revision in handshake_revisions() {
        let mut server = RawServer::with_session(server_config(&[revision]), revision, json!({}));
        let params = json!({ "name": "x", "_meta": { "progressToken": 1 } });
        server
            .send(&json!({ "jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params }));
        let key = server.take_request().key;
        let progress = Progress::new(1.0).with_total(2.0).with_message("half");
        server
            .endpoint
            .send_progress(key, &progress)
            .expect("it increases");
        let said = server.take_messages().remove(0);
        check_message(revision, false, None, &said);
        assert_eq!(
            said["params"].get("message").is_some(),
            revision != "2024-11-05"
        );
        assert_eq!(said["params"]["total"], 2.0);
    }
}

/// Received progress that does not increase, or has an unknown token, is a violation and is not delivered.
#[test]
fn received_progress_must_increase() {
    let mut client = RawClient::with_session(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "tools": {} }),
    );
    let (key, sent) = client.request("tools/list", json!(null));
    let token = sent["params"]["_meta"]["progressToken"].clone();
    let mut progress = |token: &Value, done: Value| {
        let params = json!({ "progressToken": token, "progress": done });
        client.send(
            &json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": params }),
        );
        client.events()
    };
    assert!(
        matches!(&progress(&token, json!(0.5))[..], [ClientEvent::Progress { key: of, progress: p, .. }] if *of == key && p.done == 0.5)
    );
    assert!(matches!(
        progress(&token, json!(0.5))[..],
        [ClientEvent::Violation(Violation::Progress)]
    ));
    assert!(matches!(
        progress(&token, json!("x"))[..],
        [ClientEvent::Violation(Violation::Notification(_))]
    ));
    assert!(matches!(
        progress(&json!("x"), json!(1))[..],
        [ClientEvent::Violation(Violation::UnknownToken)]
    ));
    assert!(matches!(
        progress(&json!(77), json!(1))[..],
        [ClientEvent::Violation(Violation::UnknownToken)]
    ));
}

/// Progress tokens of concurrent requests differ; a request without requested progress has no token.
#[test]
fn progress_tokens_are_unique_and_optional() {
    let mut client = RawClient::with_session(
        client_config(&["2025-06-18"]),
        "2025-06-18",
        json!({ "tools": {} }),
    );
    let tokens: Vec<Value> = (0..5)
        .map(|_| {
            client
                .request("tools/list", json!({ "_meta": { "x": 1 } }))
                .1["params"]["_meta"]
                .clone()
        })
        .collect();
    assert!(tokens.iter().all(|meta| meta["x"] == 1));
    let mut unique: Vec<String> = tokens
        .iter()
        .map(|meta| meta["progressToken"].to_string())
        .collect();
    unique.sort_unstable();
    unique.dedup();
    assert_eq!(unique.len(), 5);
    client
        .endpoint
        .request("tools/list", None, CallOptions::default(), client.now)
        .expect("it leaves");
    assert!(client.take_messages()[0].get("params").is_none());
}
