//! Requests in flight whose session the server does not know any more (up to 2025-11-25: `basic/transports`, "Session
//! Management"): each waits for the answer to its own POST.

use mcp_exact_tests_session::*;

/// Client with a request in flight in a session that has ended.
struct Lost {
    poster: HttpHarness,
    key: RequestKey,
    on: StreamId,
    id: Value,
}

impl Lost {
    /// Creates a client whose session ends while a call is in flight.
    fn new(revision: &'static str) -> Self {
        let mut poster = HttpHarness::new(revision);
        let options = CallOptions {
            progress: true,
            ..CallOptions::default()
        };
        let params = Some(to_object(json!({ "name": "slow" })));
        let key = poster
            .client
            .request("tools/call", params, options, Time::ZERO)
            .expect("it leaves");
        let (on, _, message) = poster.take_output().remove(0);
        poster.client.handle_session_end(Time::ZERO);
        let events = poster.events();
        assert!(
            matches!(events[..], [ClientEvent::SessionLost, ClientEvent::Closed]),
            "{events:?}"
        );
        Self {
            poster,
            key,
            on,
            id: message["id"].clone(),
        }
    }

    /// Begins the next session up to `initialize`; returns the stream and the id of that request.
    fn restart(&mut self) -> (StreamId, Value) {
        self.poster.client.restart_session(None, Time::ZERO);
        let (on, _, message) = self.poster.take_output().remove(0);
        (on, message["id"].clone())
    }

    /// Returns the answer to `initialize`, whose id is `id`.
    fn initialized(&self, id: &Value) -> Value {
        let result = json!({
            "protocolVersion": self.poster.revision,
            "capabilities": { "tools": {} },
            "serverInfo": { "name": "s", "version": "1" },
        });
        json!({ "jsonrpc": "2.0", "id": id, "result": result })
    }

    /// Completes the next session.
    fn renew(&mut self) {
        let (on, id) = self.restart();
        let answer = self.initialized(&id);
        self.poster.receive(on, &answer);
        self.poster.take_output();
        self.poster.events();
    }

    fn answer(&self) -> Value {
        json!({ "jsonrpc": "2.0", "id": self.id, "result": { "content": [] } })
    }

    /// Checks that the events are the result of the call.
    #[track_caller]
    fn check_answered(&mut self) {
        let events = self.poster.events();
        assert!(
            matches!(&events[..], [ClientEvent::Completed(key, Outcome::Result(_))] if *key == self.key),
            "{events:?}"
        );
        assert!(!self.poster.client.is_waiting_on(self.on));
    }
}

/// Number of points in time at which something can happen: before, during and after the negotiation of the next session.
const PHASES: usize = 3;

/// Returns a client for each revision and phase.
fn every_phase() -> impl Iterator<Item = Lost> {
    SESSION_REVISIONS.into_iter().flat_map(|revision| {
        (0..PHASES).map(move |phase| {
            let mut lost = Lost::new(revision);
            match phase {
                0 => {}
                1 => drop(lost.restart()),
                _ => lost.renew(),
            }
            lost
        })
    })
}

/// The answer is accepted at any time, on the stream of the POST alone, after progress and log messages.
#[test]
fn answers_come_on_their_own_streams() {
    for mut lost in every_phase() {
        if !lost.poster.client.is_closed() {
            let other = lost.poster.client.open_standalone();
            let answer = lost.answer();
            lost.poster.receive(other, &answer);
            let events = lost.poster.events();
            assert!(events.is_empty(), "{events:?}");
        }
        if lost.poster.client.session_info().is_some() {
            let other = lost.poster.client.open_standalone();
            let progress = json!({ "progressToken": lost.id, "progress": 1 });
            let progress =
                json!({ "jsonrpc": "2.0", "method": "notifications/progress", "params": progress });
            lost.poster.receive(other, &progress);
            let events = lost.poster.events();
            assert!(events.is_empty(), "{events:?}");
        }
        let on = lost.on;
        for (method, params) in [
            (
                "progress",
                json!({ "progressToken": lost.id, "progress": 1 }),
            ),
            ("message", json!({ "level": "info", "data": "x" })),
        ] {
            let method = format!("notifications/{method}");
            lost.poster.receive(
                on,
                &json!({ "jsonrpc": "2.0", "method": method, "params": params }),
            );
        }
        let events = lost.poster.events();
        assert!(
            matches!(&events[..], [ClientEvent::Progress { key, .. }, ClientEvent::Log { .. }] if *key == lost.key),
            "{events:?}"
        );
        let answer = lost.answer();
        lost.poster.receive(on, &answer);
        lost.check_answered();
    }
}

/// The stream of a lost session answers no request of the next one.
#[test]
fn lost_streams_answer_no_other_request() {
    for revision in SESSION_REVISIONS {
        let mut lost = Lost::new(revision);
        let (on, id) = lost.restart();
        let (old, answer) = (lost.on, lost.initialized(&id));
        lost.poster.receive(old, &answer);
        assert!(lost.poster.client.session_info().is_none(), "{revision}");
        lost.poster.receive(on, &answer);
        assert!(lost.poster.client.session_info().is_some(), "{revision}");
    }
}

/// The stream of a lost session cancels no request that the server makes in the next one.
#[test]
fn lost_streams_cancel_no_other_request() {
    for revision in SESSION_REVISIONS {
        let mut lost = Lost::new(revision);
        lost.renew();
        let (old, other) = (lost.on, lost.poster.client.open_standalone());
        let request = json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" });
        lost.poster.receive(other, &request);
        let cancelled = json!({
            "jsonrpc": "2.0",
            "method": "notifications/cancelled",
            "params": { "requestId": 1 },
        });
        lost.poster.receive(old, &cancelled);
        let events = lost.poster.events();
        assert!(
            matches!(&events[..], [ClientEvent::Request { .. }]),
            "{events:?}"
        );
        lost.poster.receive(other, &cancelled);
        let events = lost.poster.events();
        assert!(
            matches!(&events[..], [ClientEvent::RequestCancelled(_)]),
            "{events:?}"
        );
    }
}

/// Nothing is sent for a lost session: neither answers to requests of the server and to what it must not send, nor the
/// cancellation of a request.
#[test]
fn nothing_is_sent_for_a_lost_session() {
    for ends_by_timeout in [false, true] {
        for mut lost in every_phase() {
            let on = lost.on;
            let before = lost.poster.client.usage();
            for message in [
                json!({ "jsonrpc": "2.0", "id": 7, "method": "ping" }),
                json!({ "jsonrpc": "2.0", "id": 8, "method": "roots/list" }),
                json!({ "jsonrpc": "2.0", "id": 9, "method": "unknown" }),
            ] {
                lost.poster.receive(on, &message);
            }
            let malformed = br#"{"jsonrpc":"2.0","id":10,"method":1}"#;
            lost.poster
                .client
                .receive(on, malformed, Time::ZERO)
                .expect("open");
            let asked = |event: &ClientEvent| matches!(event, ClientEvent::Request { .. });
            assert!(!lost.poster.events().iter().any(asked));
            assert_eq!(lost.poster.take_output().len(), 0);
            assert_eq!(
                lost.poster.client.usage().server_requests,
                before.server_requests
            );

            let expected = if ends_by_timeout {
                lost.poster
                    .client
                    .handle_timeout(Time::from_millis(3_600_000));
                Outcome::TimedOut
            } else {
                lost.poster.client.cancel(lost.key, "enough", Time::ZERO);
                Outcome::Cancelled
            };
            // The negotiation times out at the same time.
            let events = lost.poster.events();
            let ended = |event: &&ClientEvent| matches!(event, ClientEvent::Completed(key, outcome) if *key == lost.key && *outcome == expected);
            assert_eq!(events.iter().filter(ended).count(), 1, "{events:?}");
            assert_eq!(lost.poster.take_output().len(), 0);
        }
    }
}

/// A request that gets its own 404 was not processed, and no other session ends by it. Any other failure ends the request alone.
#[test]
fn own_failures_end_the_request_alone() {
    let status = |code: u16| TransportFailure::Status {
        code,
        body: b"session".to_vec(),
    };
    for (failure, is_unprocessed, is_lost) in [
        (status(404), true, true),
        (status(400), true, true),
        (status(401), true, true),
        (status(409), false, true),
        (status(500), false, false),
        (TransportFailure::Lost, false, true),
        (TransportFailure::Unanswered, false, true),
        (TransportFailure::Unreachable, false, true),
    ] {
        for mut lost in every_phase() {
            let was_closed = lost.poster.client.is_closed();
            lost.poster
                .client
                .handle_failure(lost.on, failure.clone(), Time::ZERO);
            let events = lost.poster.events();
            let case = format!("{failure:?}: {events:?}");
            let returned = |event: &ClientEvent| matches!(event, ClientEvent::NotProcessed { key, .. } if *key == lost.key);
            assert_eq!(events.iter().any(returned), is_unprocessed, "{case}");
            let ended = events.last().map(|event| match event {
                ClientEvent::Completed(key, Outcome::Lost) if *key == lost.key => true,
                ClientEvent::Completed(key, Outcome::Error(_)) if *key == lost.key => false,
                _ => panic!("{case}"),
            });
            assert_eq!(ended, Some(is_lost), "{case}");
            assert_eq!(events.len(), 1 + usize::from(is_unprocessed), "{case}");
            assert_eq!(lost.poster.client.is_closed(), was_closed, "{case}");
            assert!(lost.poster.take_output().is_empty(), "{case}");
        }
    }
}

/// The request outlasts further sessions, and ends with the client.
#[test]
fn requests_outlast_further_sessions() {
    for closes in [false, true] {
        let mut lost = Lost::new("2025-11-25");
        for _ in 0..3 {
            lost.renew();
            lost.poster.client.handle_session_end(Time::ZERO);
            lost.poster.events();
        }
        if closes {
            lost.poster.client.shutdown(Time::ZERO);
            let events = lost.poster.events();
            assert!(
                matches!(&events[..], [ClientEvent::Completed(key, Outcome::Closed)] if *key == lost.key),
                "{events:?}"
            );
        } else {
            let (on, answer) = (lost.on, lost.answer());
            lost.poster.receive(on, &answer);
            lost.check_answered();
        }
    }
}

/// A request that was not sent before the session ended was not processed.
#[test]
fn unsent_requests_are_returned() {
    let mut poster = HttpHarness::new("2025-06-18");
    let params = Some(to_object(json!({ "name": "x" })));
    let key = poster
        .client
        .request("tools/call", params, CallOptions::default(), Time::ZERO)
        .expect("queued");
    poster.client.handle_session_end(Time::ZERO);
    let events = poster.events();
    assert!(
        matches!(
            &events[..],
            [
                ClientEvent::SessionLost,
                ClientEvent::NotProcessed { key: returned, .. },
                ClientEvent::Completed(ended, Outcome::Lost),
                ClientEvent::Closed,
            ] if *returned == key && *ended == key
        ),
        "{events:?}"
    );
    assert!(poster.take_output().is_empty());
}
