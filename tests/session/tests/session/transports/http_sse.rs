//! HTTP with SSE (2024-11-05, `basic/transports`): one event stream, a POST for each message, and the fallback of a
//! client to this transport. The transport handles the event `endpoint`; the endpoints receive only messages.

use mcp_exact_tests_session::*;

/// Creates a client and a server of the revision over HTTP+SSE; returns each endpoint with its end of the event stream.
fn connected_endpoints(revision: &str) -> (ClientEndpoint, StreamId, ServerEndpoint<()>, StreamId) {
    let client = client_config(&[revision]).build().expect("a configuration");
    let server = server_config(&[revision]).build().expect("a configuration");
    let mut client = ClientEndpoint::new(client, Binding::HttpSse, None, Time::ZERO);
    let mut server = ServerEndpoint::new(server, Binding::HttpSse, Time::ZERO);
    let theirs = server
        .open(StreamKind::Standalone)
        .expect("a stream of events");
    let events = client.open_standalone();
    assert_eq!(
        client.poll_transmit(&mut Vec::new()),
        None,
        "not before `endpoint`"
    );
    client.set_endpoint_known();
    (client, events, server, theirs)
}

/// Delivers all messages in both directions; returns the events of the client. `events` and `theirs` are the client's
/// and the server's ends of the event stream.
fn deliver_messages(
    client: &mut ClientEndpoint,
    events: StreamId,
    server: &mut ServerEndpoint<()>,
    theirs: StreamId,
) -> Vec<ClientEvent> {
    let mut told = Vec::new();
    let mut out = Vec::new();
    let mut checker = SchemaChecker::default();
    let revision = |client: &ClientEndpoint, server: &ServerEndpoint<()>| {
        let agreed = client.session_info().or(server.session_info());
        agreed.map(|agreed| agreed.revision.as_str())
    };
    for _ in 0..20 {
        while let Some(transmit) = client.poll_transmit(&mut out) {
            let Transmit::Frame { stream: on, .. } = transmit else {
                panic!("{transmit:?}");
            };
            assert_ne!(
                on, events,
                "the server never reads from the stream of events"
            );
            checker.check_frame(true, &out, revision(client, server));
            let post = server.open(StreamKind::Post).expect("a stream");
            server
                .receive(
                    post,
                    &std::mem::take(&mut out),
                    FrameContext::new(()),
                    Time::ZERO,
                )
                .expect("open");
            // The POST is answered by its status, and by nothing else.
            let status = server.poll_transmit(&mut out);
            assert_eq!(
                status,
                Some(Transmit::Status {
                    stream: post,
                    status: 202
                })
            );
            client.handle_close(on, StreamEnd::Clean, Time::ZERO);
        }
        while let Some(event) = server.poll_event() {
            if let ServerEvent::Request(request) = event {
                let is_first = request.responses.is_empty();
                let reply = if is_first && request.method() == "tools/call" {
                    Reply::InputRequired {
                        requests: vec![("r".to_owned(), InputRequest::new("roots/list", None))],
                        state: None,
                    }
                } else {
                    Reply::Result(to_result(json!({ "content": [], "tools": [] })))
                };
                server
                    .reply(request.key, reply, Time::ZERO)
                    .expect("it waits");
            }
        }
        while let Some(transmit) = server.poll_transmit(&mut out) {
            let Transmit::Frame {
                stream: on,
                is_last: last,
                ..
            } = transmit
            else {
                panic!("{transmit:?}");
            };
            checker.check_frame(false, &out, revision(client, server));
            assert_eq!((on, last), (theirs, false));
            client
                .receive(events, &std::mem::take(&mut out), Time::ZERO)
                .expect("open");
        }
        while let Some(event) = client.poll_event() {
            if let ClientEvent::Request { key, .. } = event {
                let answer = Ok(to_result(json!({ "roots": [] })));
                client.answer(key, answer, Time::ZERO).expect("it waits");
            } else {
                told.push(event);
            }
        }
    }
    told
}

/// Over HTTP+SSE, responses and notifications are sent on the event stream, and the POSTs are closed.
#[test]
fn http_sse_answers_on_event_stream() {
    for revision in handshake_revisions() {
        let (mut client, events, mut server, theirs) = connected_endpoints(revision);
        let told = deliver_messages(&mut client, events, &mut server, theirs);
        assert!(
            matches!(told[..], [ClientEvent::Negotiated(..)]),
            "{told:?}"
        );
        let mut keys = Vec::new();
        for method in ["tools/list", "tools/call"] {
            let params = Some(to_object(json!({ "name": "x" })));
            let sent = client.request(method, params, CallOptions::default(), Time::ZERO);
            keys.push(sent.expect("it leaves"));
        }
        let told = deliver_messages(&mut client, events, &mut server, theirs);
        let done = told.iter().filter_map(|event| match event {
            ClientEvent::Completed(key, Outcome::Result(_)) => Some(*key),
            _ => None,
        });
        assert_eq!(done.collect::<Vec<_>>(), keys, "{told:?}");
        assert_eq!(server.publish(&Change::Tools), 1);
        let told = deliver_messages(&mut client, events, &mut server, theirs);
        assert!(
            matches!(
                told[..],
                [ClientEvent::Changed {
                    subscription: None,
                    change: Change::Tools,
                    ..
                }]
            ),
            "{told:?}"
        );
        // The POSTs are gone, the stream of events stays.
        assert_eq!((client.usage().streams, server.usage().streams), (1, 1));
    }
}

/// Over HTTP+SSE, a POST before the event stream is opened gets status 404; a session has only one event stream, and
/// the loss of the stream ends the session.
#[test]
fn http_sse_session_needs_event_stream() {
    let (_, _, mut server, theirs) = connected_endpoints("2024-11-05");
    assert_eq!(
        server.open(StreamKind::Standalone),
        Err(SendError::NoStream),
        "one stream only"
    );
    let message = initialize("2024-11-05", json!({})).to_string();
    let config = server_config(&["2024-11-05"])
        .build()
        .expect("a configuration");
    let mut alone: ServerEndpoint<()> = ServerEndpoint::new(config, Binding::HttpSse, Time::ZERO);
    let stream = alone.open(StreamKind::Post).expect("a stream");
    alone
        .receive(
            stream,
            message.as_bytes(),
            FrameContext::new(()),
            Time::ZERO,
        )
        .expect("open");
    let sent = alone.poll_transmit(&mut Vec::new());
    assert_eq!(
        sent,
        Some(Transmit::Status {
            stream,
            status: 404
        })
    );
    assert!(alone.poll_event().is_none());
    // The end of the stream of events is the end of the session.
    server.handle_close(theirs, StreamEnd::Lost, Time::ZERO);
    assert!(matches!(server.poll_event(), Some(ServerEvent::Closed)));
}

/// The end of the event stream ends all pending requests as lost and closes the client.
#[test]
fn end_of_event_stream_loses_requests() {
    let (mut client, events, mut server, theirs) = connected_endpoints("2024-11-05");
    deliver_messages(&mut client, events, &mut server, theirs);
    let key = client
        .request("tools/list", None, CallOptions::default(), Time::ZERO)
        .expect("it leaves");
    client.handle_close(events, StreamEnd::Clean, Time::ZERO);
    let told: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
    assert!(
        matches!(&told[..], [ClientEvent::Completed(done, Outcome::Lost), ClientEvent::Closed] if *done == key),
        "{told:?}"
    );
}

/// An HTTP+SSE request ends if its POST is lost or gets an error status.
#[test]
fn failed_post_ends_its_request() {
    let (mut client, events, mut server, theirs) = connected_endpoints("2024-11-05");
    deliver_messages(&mut client, events, &mut server, theirs);
    for broken in [true, false] {
        client
            .request("tools/list", None, CallOptions::default(), Time::ZERO)
            .expect("it leaves");
        let Some(Transmit::Frame { stream: on, .. }) = client.poll_transmit(&mut Vec::new()) else {
            panic!("nothing leaves");
        };
        let why = if broken {
            TransportFailure::Lost
        } else {
            TransportFailure::Status {
                code: 500,
                body: Vec::new(),
            }
        };
        client.handle_failure(on, why, Time::ZERO);
        let told = client.poll_event();
        let ended = match &told {
            Some(ClientEvent::Completed(_, Outcome::Lost)) => broken,
            Some(ClientEvent::Completed(_, Outcome::Error(_))) => !broken,
            _ => panic!("{told:?}"),
        };
        assert!(ended, "{told:?}");
    }
}

/// Over HTTP+SSE, a client offers only revisions with a handshake.
#[test]
fn http_sse_offers_handshake_revisions_only() {
    let config = client_config(&["2026-07-28", "2025-06-18"])
        .build()
        .expect("a configuration");
    let mut client = ClientEndpoint::new(config, Binding::HttpSse, None, Time::ZERO);
    client.set_endpoint_known();
    let mut out = Vec::new();
    client.poll_transmit(&mut out);
    let first: Value = serde_json::from_slice(&out).expect("JSON");
    assert_eq!(
        (&first["method"], &first["params"]["protocolVersion"]),
        (&json!("initialize"), &json!("2025-06-18"))
    );
    let config = client_config(&["2026-07-28"])
        .build()
        .expect("a configuration");
    let mut client = ClientEndpoint::new(config, Binding::HttpSse, None, Time::ZERO);
    assert_eq!(client.poll_transmit(&mut Vec::new()), None);
    let told = client.poll_event();
    assert!(
        matches!(
            told,
            Some(ClientEvent::Failed(NegotiationError::NoHandshake { .. }))
        ),
        "{told:?}"
    );
}

/// If the POST of `initialize` gets a status that indicates HTTP+SSE, the client requests the fallback to HTTP+SSE.
#[test]
fn refused_initialize_leads_to_http_sse() {
    let refused = |code: u16, body: &str| {
        let config = client_config(&["2025-06-18"])
            .build()
            .expect("a configuration");
        let client = ClientEndpoint::new(config, Binding::StreamableHttp, None, Time::ZERO);
        let mut client = client;
        let Some(Transmit::Frame { stream: on, .. }) = client.poll_transmit(&mut Vec::new()) else {
            panic!("nothing leaves");
        };
        let body = body.as_bytes().to_vec();
        client.handle_failure(on, TransportFailure::Status { code, body }, Time::ZERO);
        let told: Vec<_> = std::iter::from_fn(|| client.poll_event()).collect();
        assert!(
            told.iter()
                .any(|event| matches!(event, ClientEvent::Failed(_))),
            "{told:?}"
        );
        told.iter()
            .any(|event| matches!(event, ClientEvent::UseHttpSse))
    };
    for code in [400, 404, 405] {
        assert!(refused(code, ""), "{code}");
        assert!(refused(code, "<html>"), "{code}");
        assert!(refused(
            code,
            r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"no"}}"#
        ));
    }
    // A server that speaks of revisions understood the message.
    let modern = r#"{"jsonrpc":"2.0","id":1,"error":{"code":-32022,"message":"no","data":{"supported":["2026-07-28"],"requested":"x"}}}"#;
    for (code, body) in [(401, ""), (403, ""), (500, ""), (400, modern)] {
        assert!(!refused(code, body), "{code}");
    }
}
