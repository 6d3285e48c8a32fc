//! POSTs whose response is no longer needed: the transport closes them (2026-07-28: `basic/patterns/cancellation`,
//! "Transport-Specific Cancellation"; up to 2025-11-25: `basic/utilities/cancellation`).

use std::time::Duration;

use mcp_exact_tests_session::*;

/// Removes and returns the client's output: each frame with its message as JSON, all other instructions with `null`.
fn output_messages(client: &mut ClientEndpoint) -> Vec<(Transmit, Value)> {
    let mut bytes = Vec::new();
    let mut taken = Vec::new();
    while let Some(transmit) = client.poll_transmit(&mut bytes) {
        taken.push((transmit, serde_json::from_slice(&bytes).unwrap_or_default()));
        bytes.clear();
    }
    taken
}

/// Returns the number of instructions in the output `taken` to close the stream `post`.
fn closed_streams(taken: &[(Transmit, Value)], post: StreamId) -> usize {
    let is_close =
        |(transmit, _): &&(Transmit, Value)| *transmit == Transmit::Close { stream: post };
    taken.iter().filter(is_close).count()
}

/// A client closes the POST of a call that is cancelled or times out: "Streamable HTTP: closing the SSE response stream
/// is the cancellation signal"; "no `notifications/cancelled` message is required or expected". Up to 2025-11-25 "the
/// client SHOULD explicitly send an MCP `CancelledNotification`".
#[test]
fn cancelled_call_closes_its_post() {
    for revision in ["2025-03-26", "2025-06-18", "2025-11-25", DISCOVER_REVISION] {
        for how in ["cancel", "time"] {
            let mut poster = HttpHarness::new(revision);
            let (key, post, _, sent) = poster.request("tools/call", json!({ "name": "x" }));
            match how {
                "cancel" => poster.client.cancel(key, "enough", Time::ZERO),
                _ => poster.client.handle_timeout(Time::from_millis(60_000)),
            }
            let taken = output_messages(&mut poster.client);
            assert_eq!(
                closed_streams(&taken, post),
                1,
                "{revision} {how}: {taken:?}"
            );
            let messages: Vec<&Value> = taken
                .iter()
                .map(|(_, message)| message)
                .filter(|m| !m.is_null())
                .collect();
            match revision {
                DISCOVER_REVISION => assert!(messages.is_empty(), "{messages:?}"),
                _ => {
                    assert_eq!(messages.len(), 1, "{revision}: {messages:?}");
                    assert_eq!(messages[0]["method"], "notifications/cancelled");
                    assert_eq!(messages[0]["params"]["requestId"], sent["id"]);
                }
            }
            let expected = if how == "cancel" {
                Outcome::Cancelled
            } else {
                Outcome::TimedOut
            };
            let events = poster.events();
            assert!(
                matches!(&events[..], [ClientEvent::Completed(done, outcome)] if *done == key && *outcome == expected)
            );
            assert!(!poster.client.is_waiting_on(post));
        }
    }
}

/// A call that is cancelled before its POST was sent is never sent.
#[test]
fn unsent_cancelled_call_is_not_sent() {
    for revision in ["2025-06-18", DISCOVER_REVISION] {
        let mut poster = HttpHarness::new(revision);
        let options = CallOptions::default();
        let params = Some(to_object(json!({ "name": "x" })));
        let key = poster
            .client
            .request("tools/call", params, options, Time::ZERO);
        poster
            .client
            .cancel(key.expect("it is queued"), "enough", Time::ZERO);
        let taken = output_messages(&mut poster.client);
        assert!(
            taken.iter().all(|(_, message)| message.is_null()),
            "{taken:?}"
        );
    }
}

/// If a probe has no response in time, the client closes the probe's POST before it sends `initialize`.
#[test]
fn silent_probe_closes_its_post() {
    let mut config = client_config(&revisions_newest_first());
    config.probe_timeout = Duration::from_secs(3);
    let settings = config.build().expect("a configuration");
    let mut client = ClientEndpoint::new(settings, Binding::StreamableHttp, None, Time::ZERO);
    let first = output_messages(&mut client);
    let Transmit::Frame { stream: probe, .. } = first[0].0 else {
        panic!("{first:?}");
    };
    assert_eq!(first[0].1["method"], "server/discover");
    client.handle_timeout(Time::from_millis(3000));
    let next = output_messages(&mut client);
    assert_eq!(closed_streams(&next, probe), 1, "{next:?}");
    let methods: Vec<_> = next
        .iter()
        .map(|(_, message)| &message["method"])
        .filter(|m| !m.is_null())
        .collect();
    assert_eq!(methods, ["initialize"]);
}

/// "Receivers of cancellation notifications SHOULD not send a response": a server ends the POST of the cancelled
/// request without a response and accepts the POST of the notification.
#[test]
fn cancelled_request_closes_its_post() {
    for revision in SESSION_REVISIONS {
        let mut posts = server_with_roots_client(revision);
        let (post, key) = posts.serve(&tool_call(revision, 1, json!({})));
        let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
        let other = posts.post(&[], &cancel);
        let sent: Vec<Transmit> = posts
            .take_output()
            .into_iter()
            .map(|(transmit, _)| transmit)
            .collect();
        assert!(
            sent.contains(&Transmit::Close { stream: post }),
            "{revision}: {sent:?}"
        );
        assert!(
            sent.contains(&Transmit::Status {
                stream: other,
                status: 202
            }),
            "{revision}: {sent:?}"
        );
        assert_eq!(sent.len(), 2);
        assert_eq!(
            posts.endpoint.reply(key, empty_content(), Time::ZERO),
            Ok(SendOutcome::Suppressed)
        );
        assert!(posts.take_output().is_empty());
        assert_eq!(posts.endpoint.usage().streams, 0);
    }
}

/// From 2026-07-28 on, a posted `cancelled` gets status 202 and has no effect, because ids of different clients may be
/// equal. "The server MUST treat a client disconnect as cancellation of that request."
#[test]
fn posted_cancelled_affects_no_discover_request() {
    let mut posts = server_with_roots_client(DISCOVER_REVISION);
    let (post, key) = posts.serve(&tool_call(DISCOVER_REVISION, 1, json!({})));
    let cancel = json!({ "jsonrpc": "2.0", "method": "notifications/cancelled", "params": { "requestId": 1 } });
    let other = posts.post(&[("MCP-Protocol-Version", DISCOVER_REVISION)], &cancel);
    assert_eq!(
        posts.take_output()[0].0,
        Transmit::Status {
            stream: other,
            status: 202
        }
    );
    assert!(posts.endpoint.poll_event().is_none());
    assert_eq!(
        posts.endpoint.handle_detach(post, Time::ZERO),
        DetachOutcome::Closed
    );
    let event = posts.endpoint.poll_event();
    assert!(
        matches!(event, Some(ServerEvent::Cancelled { key: cancelled, .. }) if cancelled == key)
    );
    assert_eq!(
        posts.endpoint.reply(key, empty_content(), Time::ZERO),
        Ok(SendOutcome::Suppressed)
    );
    assert!(posts.take_output().is_empty());
}
