//! Servers that stop supporting the revision of their clients (2026-07-28: `basic/versioning`, "Protocol Version Negotiation",
//! "Backward Compatibility with Initialization-Based Versions"), over every binding and in both directions.

use mcp_2025_11_25 as sessions;
use mcp_exact_tests_session::*;

/// Newest revision with a handshake.
const OLD: &str = "2025-11-25";

/// Client whose server is the test, over one of the bindings.
struct Connection {
    /// Client endpoint under test.
    client: ClientEndpoint,
    /// Transport binding of the client.
    binding: Binding,
    /// Standalone stream, if the binding has one.
    standalone: Option<StreamId>,
    /// Schema checker of the client's messages.
    checker: SchemaChecker,
}

/// Message of the client, the stream that carries it, and its hints.
type SentMessage = (StreamId, HttpHints, Value);

impl Connection {
    /// Connects a client that offers `revisions` and has negotiated the first of them.
    fn new(binding: Binding, revisions: &[&str]) -> Self {
        let mut config = client_config(revisions);
        config.capabilities = to_object(json!({ "roots": {} }));
        let capabilities = json!({ "tools": {} });
        let snapshot = Snapshot::new(negotiated_session(revisions[0], capabilities), 0);
        let settings = config.build().expect("a configuration");
        let client = ClientEndpoint::resume(settings, binding, snapshot, Time::ZERO);
        let mut client = client.expect("offered");
        let standalone = (binding != Binding::Duplex).then(|| client.open_standalone());
        Self {
            client,
            binding,
            standalone,
            checker: SchemaChecker::default(),
        }
    }

    /// Sends a request, for `tools/call` with params; returns its key.
    fn request(&mut self, method: &str) -> RequestKey {
        let params = (method == "tools/call").then(|| to_object(json!({ "name": "x" })));
        let options = CallOptions::default();
        let sent = self.client.request(method, params, options, Time::ZERO);
        sent.expect("sent")
    }

    /// Removes and returns the messages of the client.
    fn take_sent(&mut self) -> Vec<SentMessage> {
        let mut sent = Vec::new();
        let mut bytes = Vec::new();
        while let Some(transmit) = self.client.poll_transmit(&mut bytes) {
            if let Transmit::Frame { stream, http, .. } = transmit {
                let info = self.client.session_info();
                let revision = info.map(|info| info.revision.as_str());
                self.checker.check_frame(true, &bytes, revision);
                let message = serde_json::from_slice(&bytes).expect("JSON");
                sent.push((stream, http, message));
            }
            bytes.clear();
        }
        sent
    }

    /// Delivers a message of the server: over HTTP+SSE on the standalone stream, otherwise on the given stream.
    fn receive(&mut self, stream: StreamId, message: &Value) {
        let stream = match (self.binding, self.standalone) {
            (Binding::HttpSse, Some(standalone)) => standalone,
            _ => stream,
        };
        let text = message.to_string();
        let received = self.client.receive(stream, text.as_bytes(), Time::ZERO);
        received.expect("open");
    }

    /// Answers a message of the client with a result.
    fn respond(&mut self, to: &SentMessage, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": to.2["id"], "result": result });
        self.receive(to.0, &message);
    }

    /// Answers a message of the client with an error response.
    fn refuse(&mut self, to: &SentMessage, error: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": to.2["id"], "error": error });
        self.receive(to.0, &message);
    }

    /// Answers the POST of a message with an HTTP error status and a body.
    fn refuse_with_status(&mut self, to: &SentMessage, code: u16, body: &str) {
        let body = body.as_bytes().to_vec();
        let failure = TransportFailure::Status { code, body };
        self.client.handle_failure(to.0, failure, Time::ZERO);
    }

    /// Answers the first request of a negotiation, `server/discover` or `initialize`, as a server of one revision does.
    fn negotiate(&mut self, first: &SentMessage, revision: &str) {
        assert!(first.1.starts_session, "{first:?}");
        let result = match lifecycle(revision) {
            Some(Lifecycle::Discover) => {
                assert_eq!(first.2["method"], "server/discover");
                discover_result()
            }
            _ => {
                assert_eq!(first.2["method"], "initialize");
                assert_eq!(first.2["params"]["protocolVersion"], revision);
                json!({
                    "protocolVersion": revision, "capabilities": { "tools": {} },
                    "serverInfo": { "name": "s", "version": "1" },
                })
            }
        };
        self.respond(first, result);
    }

    /// Removes and returns the events of the client.
    fn events(&mut self) -> Vec<ClientEvent> {
        std::iter::from_fn(|| self.client.poll_event()).collect()
    }

    /// Returns the outcomes among the events, in the order of the events.
    fn outcomes(&mut self) -> Vec<(RequestKey, Outcome)> {
        let outcome = |event| match event {
            ClientEvent::Completed(key, outcome) => Some((key, outcome)),
            _ => None,
        };
        self.events().into_iter().filter_map(outcome).collect()
    }
}

/// Returns a result of `server/discover` that lists only 2026-07-28.
fn discover_result() -> Value {
    json!({
        "resultType": "complete", "supportedVersions": [DISCOVER_REVISION],
        "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private",
    })
}

/// Returns a tool result without content.
fn tool_result() -> Value {
    json!({
        "resultType": "complete", "tools": [], "content": [], "ttlMs": 0, "cacheScope": "private",
    })
}

/// Creates an `UnsupportedProtocolVersionError` that lists these revisions.
fn unsupported(supported: &[&str]) -> Value {
    let data = json!({ "supported": supported, "requested": "x" });
    json!({ "code": -32022, "message": "Unsupported protocol version", "data": data })
}

/// Returns the method of a sent message.
fn method_of(sent: &SentMessage) -> &str {
    sent.2["method"].as_str().expect("a method")
}

/// "The client SHOULD select a mutually supported version from the `supported` list and retry the request": every
/// refused request is sent again, including `tools/call`, because the server has executed none of them. The new
/// revision may be newer or older.
#[test]
fn refused_requests_are_resent() {
    let changes = [
        (OLD, DISCOVER_REVISION),
        ("2025-03-26", DISCOVER_REVISION),
        (DISCOVER_REVISION, OLD),
        (OLD, "2025-06-18"),
    ];
    for binding in [Binding::Duplex, Binding::StreamableHttp, Binding::HttpSse] {
        for (from, to) in changes {
            if binding == Binding::HttpSse && (from == DISCOVER_REVISION || to == DISCOVER_REVISION)
            {
                continue;
            }
            let mut server = Connection::new(binding, &[from, to]);
            let keys = ["tools/list", "tools/call"].map(|method| server.request(method));
            let refused = server.take_sent();
            server.refuse(&refused[0], unsupported(&[to]));
            let first = server.take_sent();
            assert_eq!(first.len(), 1, "{binding:?} {from} {to}: {first:?}");
            // The second request waits for the same renegotiation.
            server.refuse(&refused[1], unsupported(&[to]));
            assert_eq!(server.take_sent(), []);
            server.negotiate(&first[0], to);
            let again = server.take_sent();
            let again: Vec<SentMessage> = again
                .into_iter()
                .filter(|sent| method_of(sent) != "notifications/initialized")
                .collect();
            let methods: Vec<&str> = again.iter().map(method_of).collect();
            assert_eq!(methods, ["tools/list", "tools/call"], "{from} {to}");
            for sent in &again {
                server.respond(sent, tool_result());
            }
            let outcomes = server.outcomes();
            let ended = outcomes.iter().map(|(key, _)| *key);
            assert_eq!(ended.collect::<Vec<_>>(), keys);
            let is_result =
                |(_, outcome): &(RequestKey, Outcome)| matches!(outcome, Outcome::Result(_));
            assert!(outcomes.iter().all(is_result), "{outcomes:?}");
        }
    }
}

/// If a refusal arrives after another revision was negotiated, the request is sent again in that revision.
#[test]
fn late_refusals_use_new_revision() {
    for binding in [Binding::Duplex, Binding::StreamableHttp] {
        let mut server = Connection::new(binding, &[OLD, DISCOVER_REVISION]);
        let keys = ["tools/list", "tools/call"].map(|method| server.request(method));
        let refused = server.take_sent();
        server.refuse(&refused[0], unsupported(&[DISCOVER_REVISION]));
        let probe = server.take_sent().remove(0);
        server.negotiate(&probe, DISCOVER_REVISION);
        let list = server.take_sent().remove(0);
        server.respond(&list, tool_result());
        server.refuse(&refused[1], unsupported(&[DISCOVER_REVISION]));
        let call = server.take_sent().remove(0);
        assert_eq!(method_of(&call), "tools/call");
        let version = "io.modelcontextprotocol/protocolVersion";
        assert_eq!(call.2["params"]["_meta"][version], DISCOVER_REVISION);
        server.respond(&call, tool_result());
        let outcomes = server.outcomes();
        assert_eq!(outcomes.len(), 2, "{outcomes:?}");
        assert!(
            outcomes.iter().all(|(key, outcome)| {
                keys.contains(key) && matches!(outcome, Outcome::Result(_))
            })
        );
    }
}

/// A request of a generated type is sent again in the new revision, like a request with untyped params.
#[test]
fn typed_requests_are_resent() {
    for binding in [Binding::Duplex, Binding::StreamableHttp] {
        let mut server = Connection::new(binding, &[OLD, DISCOVER_REVISION]);
        let params = sessions::CallToolRequestParams::new("x");
        let options = CallOptions::default();
        let sent =
            server
                .client
                .request_typed::<sessions::CallToolRequest>(&params, options, Time::ZERO);
        let key = sent.expect("sent");
        let refused = server.take_sent().remove(0);
        server.refuse(&refused, unsupported(&[DISCOVER_REVISION]));
        let probe = server.take_sent().remove(0);
        server.negotiate(&probe, DISCOVER_REVISION);
        let again = server.take_sent().remove(0);
        assert_eq!(again.2["params"]["name"], "x");
        server.respond(&again, tool_result());
        assert!(matches!(&server.outcomes()[..], [(done, Outcome::Result(_))] if *done == key));
    }
}

/// "or surface an error to the user if no compatible version exists": a second refusal ends the request, so that a
/// server that refuses the revisions that it lists causes no endless loop.
#[test]
fn repeated_refusals_end_requests() {
    for binding in [Binding::Duplex, Binding::StreamableHttp, Binding::HttpSse] {
        let mut server = Connection::new(binding, &[OLD, "2025-06-18"]);
        let key = server.request("tools/call");
        let refused = server.take_sent().remove(0);
        server.refuse(&refused, unsupported(&["1900-01-01"]));
        let outcomes = server.outcomes();
        assert!(matches!(&outcomes[..], [(done, Outcome::Error(_))] if *done == key));

        let key = server.request("tools/call");
        let refused = server.take_sent().remove(0);
        server.refuse(&refused, unsupported(&["2025-06-18"]));
        let first = server.take_sent().remove(0);
        server.negotiate(&first, "2025-06-18");
        let again = server.take_sent().pop().expect("sent again");
        server.refuse(&again, unsupported(&[OLD]));
        let outcomes = server.outcomes();
        assert!(matches!(&outcomes[..], [(done, Outcome::Error(_))] if *done == key));
        assert_eq!(server.take_sent(), []);
    }
}

/// A version error that a server forwards from another server does not change the session. Such an error lists the
/// session's revision, or has no list of revisions.
#[test]
fn forwarded_refusals_keep_the_session() {
    let without_list = json!({ "code": -32022, "message": "forwarded" });
    let mismatch = json!({ "code": -32020, "message": "forwarded" });
    for binding in [Binding::Duplex, Binding::StreamableHttp, Binding::HttpSse] {
        for error in [
            unsupported(&[DISCOVER_REVISION, OLD]),
            without_list.clone(),
            mismatch.clone(),
        ] {
            let mut server = Connection::new(binding, &[OLD, DISCOVER_REVISION]);
            let key = server.request("tools/call");
            let refused = server.take_sent().remove(0);
            server.refuse(&refused, error);
            let outcomes = server.outcomes();
            assert!(matches!(&outcomes[..], [(done, Outcome::Error(_))] if *done == key));
            assert_eq!(server.take_sent(), []);
            let info = server.client.session_info().expect("the session goes on");
            assert_eq!(info.revision.as_str(), OLD);
        }
    }
}

/// "The client MUST NOT send JSON-RPC responses" (2026-07-28, `basic/transports/streamable-http`): a server's pending
/// requests end when the client leaves their session.
#[test]
fn renegotiation_cancels_server_requests() {
    for binding in [Binding::Duplex, Binding::StreamableHttp] {
        let mut server = Connection::new(binding, &[OLD, DISCOVER_REVISION]);
        let stream = server.standalone.unwrap_or(StreamId::DUPLEX);
        server.receive(
            stream,
            &json!({ "jsonrpc": "2.0", "id": 1, "method": "roots/list" }),
        );
        let events = server.events();
        let Some(ClientEvent::Request { key, .. }) = events.first() else {
            panic!("{events:?}");
        };
        server.request("tools/list");
        let refused = server.take_sent().remove(0);
        server.refuse(&refused, unsupported(&[DISCOVER_REVISION]));
        let probe = server.take_sent().remove(0);
        let events = server.events();
        let is_cancelled =
            |event: &ClientEvent| matches!(event, ClientEvent::RequestCancelled(of) if of == key);
        assert!(events.iter().any(is_cancelled), "{events:?}");
        server.negotiate(&probe, DISCOVER_REVISION);
        let answer = Ok(to_result(json!({ "roots": [] })));
        let answered = server.client.answer(*key, answer, Time::ZERO);
        assert_eq!(answered, Ok(SendOutcome::Suppressed));
        let sent = server.take_sent();
        assert_eq!(sent.len(), 1, "{sent:?}");
        assert_eq!(server.client.usage().server_requests, 0);
        // The standalone stream of the session has ended with it.
        assert_eq!(server.client.usage().streams, 1);
    }
}

/// HTTP+SSE carries only sessions (2024-11-05, `basic/transports`): if a server is upgraded to 2026-07-28, the session
/// is lost, so that the transport reconnects over Streamable HTTP. A call of the lost session is not repeated.
#[test]
fn newer_revision_ends_http_sse_session() {
    for method in ["tools/list", "tools/call"] {
        let mut server = Connection::new(Binding::HttpSse, &["2024-11-05", DISCOVER_REVISION]);
        let key = server.request(method);
        let refused = server.take_sent().remove(0);
        server.refuse(&refused, unsupported(&[DISCOVER_REVISION]));
        let events = server.events();
        let outcome = events.iter().find_map(|event| match event {
            ClientEvent::Completed(done, outcome) if *done == key => Some(outcome),
            _ => None,
        });
        match (method, outcome) {
            ("tools/list", Some(Outcome::Lost)) | ("tools/call", Some(Outcome::Error(_))) => {}
            other => panic!("{other:?}"),
        }
        let is_lost = |event: &ClientEvent| matches!(event, ClientEvent::SessionLost);
        assert!(events.iter().any(is_lost), "{events:?}");
        assert!(server.client.is_closed());
    }
}

/// Refuses a request as a server with a handshake refuses requests outside of a session: with status 400 and `body`, or
/// with an error on a duplex stream.
fn refuse_outside_of_session(server: &mut Connection, to: &SentMessage, body: &str) {
    if server.binding == Binding::Duplex {
        server.refuse(to, json!({ "code": -32600, "message": "initialize first" }));
    } else {
        server.refuse_with_status(to, 400, body);
    }
}

/// "If the body is empty or is not a recognized modern JSON-RPC error, fall back to `initialize`", "re-probing if the
/// cached assumption later fails": one `server/discover` detects that a server was downgraded to the handshake.
/// Requests that may have been executed are sent again only if they are repeatable.
#[test]
fn downgraded_servers_are_detected() {
    let unknown = r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"no session"}}"#;
    for binding in [Binding::Duplex, Binding::StreamableHttp] {
        for body in ["", "Bad Request", unknown] {
            let mut server = Connection::new(binding, &[DISCOVER_REVISION, OLD]);
            let keys = ["tools/list", "tools/call"].map(|method| server.request(method));
            let refused = server.take_sent();
            refuse_outside_of_session(&mut server, &refused[0], body);
            let check = server.take_sent().remove(0);
            assert_eq!(method_of(&check), "server/discover");
            assert!(!check.1.starts_session);
            refuse_outside_of_session(&mut server, &refused[1], body);
            assert_eq!(server.take_sent(), [], "one check is enough");
            // Meanwhile the session goes on.
            assert!(server.client.session_info().is_some());
            if binding == Binding::Duplex {
                server.refuse(&check, json!({ "code": -32601, "message": "no method" }));
            } else {
                refuse_outside_of_session(&mut server, &check, body);
            }
            let initialize = server.take_sent().remove(0);
            server.negotiate(&initialize, OLD);
            let outcomes = server.outcomes();
            let is_call = matches!(&outcomes[..], [(done, Outcome::Error(_))] if *done == keys[1]);
            assert!(is_call, "{outcomes:?}");
            let again = server.take_sent().pop().expect("the list");
            assert_eq!(method_of(&again), "tools/list");
            server.respond(&again, tool_result());
            let outcomes = server.outcomes();
            let is_list = matches!(&outcomes[..], [(done, Outcome::Result(_))] if *done == keys[0]);
            assert!(is_list, "{outcomes:?}");
        }
    }
}

/// If the server still uses the lifecycle without handshake, its error is the outcome of the request. The client first
/// confirms the lifecycle with one `server/discover`, unless only servers without handshake can send this error or the
/// client offers no handshake.
#[test]
fn unchanged_servers_keep_their_lifecycle() {
    for binding in [Binding::Duplex, Binding::StreamableHttp] {
        let mut server = Connection::new(binding, &[DISCOVER_REVISION, OLD]);
        for answer in [Some(discover_result()), None] {
            let key = server.request("tools/call");
            let refused = server.take_sent().remove(0);
            refuse_outside_of_session(&mut server, &refused, "");
            let check = server.take_sent().remove(0);
            match answer {
                Some(result) => server.respond(&check, result),
                None => {
                    let deadline = server.client.poll_timeout().expect("a limit");
                    server.client.handle_timeout(deadline);
                }
            }
            let outcomes = server.outcomes();
            assert!(matches!(&outcomes[..], [(done, Outcome::Error(_))] if *done == key));
            assert_eq!(server.take_sent(), []);
        }
        let mut server = Connection::new(binding, &[DISCOVER_REVISION]);
        let key = server.request("tools/call");
        let refused = server.take_sent().remove(0);
        refuse_outside_of_session(&mut server, &refused, "");
        let outcomes = server.outcomes();
        assert!(matches!(&outcomes[..], [(done, Outcome::Error(_))] if *done == key));
    }
    let errors = [
        (400, -32602),
        (404, -32601),
        (400, -32020),
        (400, -32021),
        (500, -32603),
        (401, -32600),
        (403, -32600),
    ];
    for (status, code) in errors {
        let mut server = Connection::new(Binding::StreamableHttp, &[DISCOVER_REVISION, OLD]);
        let key = server.request("tools/list");
        let refused = server.take_sent().remove(0);
        let error = json!({ "code": code, "message": "m" });
        let body = json!({ "jsonrpc": "2.0", "id": refused.2["id"], "error": error });
        server.refuse_with_status(&refused, status, &body.to_string());
        let outcomes = server.outcomes();
        let is_error = matches!(&outcomes[..], [(done, Outcome::Error(_))] if *done == key);
        assert!(is_error, "{status} {code}: {outcomes:?}");
        assert_eq!(server.take_sent(), []);
    }
}
