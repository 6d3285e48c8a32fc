//! Fallbacks of a client that does not know its server's lifecycle: every answer to `server/discover` that is no sign of a
//! server without handshake leads to `initialize` (2026-07-28, `basic/versioning`: "Anything else identifies a legacy
//! server"), a refused revision to an older one, and a late answer counts.

use mcp_exact_tests_session::*;

/// What a server does with a message.
enum Reaction {
    /// The server sends this message as the response.
    Message(Value),
    /// The transport reports a failure of the POST.
    Failure(TransportFailure),
    /// The response ends without a message.
    End,
    /// The server does not respond.
    Silence,
}

/// Function that reacts to a probe.
type ReactionToProbe = Box<dyn Fn(&Value) -> Reaction>;

/// Returns the failure of a POST with this status and body.
fn status(code: u16, body: &str) -> Reaction {
    Reaction::Failure(TransportFailure::Status {
        code,
        body: body.as_bytes().to_vec(),
    })
}

/// Returns an error message with this id.
fn error(id: Value, code: i64, message: &str) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "error": { "code": code, "message": message } })
}

/// Returns the result of `initialize` for a revision.
fn initialized(id: &Value, revision: &Value) -> Reaction {
    Reaction::Message(json!({ "jsonrpc": "2.0", "id": id, "result": {
        "protocolVersion": revision, "capabilities": {}, "serverInfo": { "name": "s", "version": "1" },
    } }))
}

/// Client that negotiates with a server, which a function simulates.
struct Negotiation {
    client: ClientEndpoint,
    /// Method and offered revision of each request that the client has sent.
    requests: Vec<(String, String)>,
    events: Vec<ClientEvent>,
    now: Time,
}

impl Negotiation {
    /// Runs the negotiation of a client that offers every revision, until the client waits or has ended.
    fn run(binding: Binding, server: impl FnMut(&str, &Value) -> Reaction) -> Self {
        let config = client_config(&revisions_newest_first());
        let settings = config.build().expect("a configuration");
        let mut negotiation = Self {
            client: ClientEndpoint::new(settings, binding, None, Time::ZERO),
            requests: Vec::new(),
            events: Vec::new(),
            now: Time::ZERO,
        };
        negotiation.exchange(server);
        negotiation
    }

    /// Passes the output of the client to the server until there is none.
    fn exchange(&mut self, mut server: impl FnMut(&str, &Value) -> Reaction) {
        let mut bytes = Vec::new();
        loop {
            self.events
                .extend(std::iter::from_fn(|| self.client.poll_event()));
            bytes.clear();
            let Some(transmit) = self.client.poll_transmit(&mut bytes) else {
                return;
            };
            let Transmit::Frame { stream, .. } = transmit else {
                continue;
            };
            let message: Value = serde_json::from_slice(&bytes).expect("JSON");
            let method = message["method"].as_str().expect("a method").to_owned();
            let version = match method.as_str() {
                "initialize" => &message["params"]["protocolVersion"],
                _ => &message["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"],
            };
            let version = version.as_str().unwrap_or("").to_owned();
            self.requests.push((method.clone(), version));
            match server(&method, &message) {
                Reaction::Message(answer) => {
                    let answer = answer.to_string();
                    let received = self.client.receive(stream, answer.as_bytes(), self.now);
                    received.expect("it is open");
                    if stream != StreamId::DUPLEX {
                        self.client.handle_close(stream, StreamEnd::Clean, self.now);
                    }
                }
                Reaction::Failure(why) => self.client.handle_failure(stream, why, self.now),
                Reaction::End => self.client.handle_close(stream, StreamEnd::Clean, self.now),
                Reaction::Silence => {}
            }
        }
    }

    /// Lets the next timeout expire.
    fn time_out(&mut self) {
        self.now = self.client.poll_timeout().expect("a deadline");
        self.client.handle_timeout(self.now);
    }

    /// Returns the negotiated revision, or the error as text.
    fn end(&self) -> Result<String, String> {
        let end = self.events.iter().find_map(|event| match event {
            ClientEvent::Negotiated(info, _) => Some(Ok(info.revision.to_string())),
            ClientEvent::Failed(error) => Some(Err(error.to_string())),
            _ => None,
        });
        end.unwrap_or_else(|| Err(format!("no end: {:?}", self.events)))
    }

    /// Returns the methods of the requests.
    fn methods(&self) -> Vec<&str> {
        self.requests
            .iter()
            .map(|(method, _)| method.as_str())
            .collect()
    }
}

/// Every failure of the probe that is no sign of a server without handshake leads to `initialize`.
#[test]
fn every_failed_probe_leads_to_initialize() {
    let no_answer = |reason: &str| {
        Reaction::Failure(TransportFailure::NoAnswer {
            reason: reason.to_owned(),
        })
    };
    let internal = error(json!(1), -32603, "x").to_string();
    let reactions: Vec<(&str, ReactionToProbe)> = vec![
        ("403", Box::new(|_| status(403, "forbidden"))),
        ("404", Box::new(|_| status(404, ""))),
        ("409", Box::new(|_| status(409, ""))),
        ("429", Box::new(|_| status(429, ""))),
        ("500", Box::new(|_| status(500, ""))),
        (
            "500 with an error",
            Box::new(move |_| status(500, &internal)),
        ),
        ("501", Box::new(|_| status(501, "<html>"))),
        ("502", Box::new(|_| status(502, ""))),
        ("503", Box::new(|_| status(503, "{}"))),
        ("no body", Box::new(move |_| no_answer("HTTP status 204"))),
        ("end of the response", Box::new(|_| Reaction::End)),
        (
            "closed connection",
            Box::new(|_| Reaction::Failure(TransportFailure::Unanswered)),
        ),
        (
            "broken response",
            Box::new(|_| Reaction::Failure(TransportFailure::Lost)),
        ),
        (
            "error without id",
            Box::new(|_| Reaction::Message(error(Value::Null, -32600, "x"))),
        ),
        (
            "error with another id",
            Box::new(|_| Reaction::Message(error(json!("server-error"), -32600, "x"))),
        ),
        (
            "result of something else",
            Box::new(|probe| {
                Reaction::Message(
                    json!({ "jsonrpc": "2.0", "id": probe["id"], "result": { "ok": true } }),
                )
            }),
        ),
    ];
    for (name, reaction) in reactions {
        let run = Negotiation::run(Binding::StreamableHttp, |method, message| match method {
            "server/discover" => reaction(message),
            "initialize" => initialized(&message["id"], &json!("2025-06-18")),
            _ => Reaction::End,
        });
        assert_eq!(
            run.end(),
            Ok("2025-06-18".to_owned()),
            "{name}: {:?}",
            run.requests
        );
    }
}

/// An error without id, or with the id of no request, is the answer to the only request of the negotiation on every
/// transport; in a session over stdio it answers nothing.
#[test]
fn errors_without_request_answer_the_negotiation() {
    for id in [Value::Null, json!("server-error"), json!(99)] {
        let run = Negotiation::run(Binding::Duplex, |method, message| match method {
            "server/discover" => Reaction::Message(error(id.clone(), -32600, "x")),
            "initialize" => initialized(&message["id"], &json!("2025-11-25")),
            _ => Reaction::Silence,
        });
        assert_eq!(run.end(), Ok("2025-11-25".to_owned()), "{id}");
        let mut run = Negotiation::run(Binding::Duplex, |_, _| {
            Reaction::Message(error(id.clone(), -32000, "no key"))
        });
        assert_eq!(
            run.end(),
            Err("the server refuses to start: no key (-32000)".to_owned())
        );
        run = Negotiation::run(Binding::Duplex, |method, message| match method {
            "server/discover" => Reaction::Message(error(message["id"].clone(), -32601, "x")),
            "initialize" => initialized(&message["id"], &json!("2025-11-25")),
            _ => Reaction::Silence,
        });
        let key = run
            .client
            .request("ping", None, CallOptions::default(), run.now);
        run.exchange(|_, _| Reaction::Message(error(id.clone(), -32600, "x")));
        let key = key.expect("sent");
        let ends =
            |event: &ClientEvent| matches!(event, ClientEvent::Completed(of, _) if *of == key);
        assert!(!run.events.iter().any(ends), "{:?}", run.events);
    }
}

/// Over Streamable HTTP, an error without id in the response to a POST answers the request of the POST; an error with
/// the id of another request does not.
#[test]
fn error_without_id_answers_its_post() {
    for (id, is_answer) in [(Value::Null, true), (json!("server-error"), false)] {
        let mut poster = HttpHarness::new("2025-11-25");
        let (key, on, ..) = poster.request("tools/list", json!({}));
        let (other, ..) = poster.request("prompts/list", json!({}));
        poster.receive(on, &error(id.clone(), -32602, "no tenant"));
        let events = poster.events();
        let answers = events.iter().filter_map(|event| match event {
            ClientEvent::Completed(of, Outcome::Error(error)) if *of == key => {
                Some(error.to_string())
            }
            _ => None,
        });
        let expected = is_answer.then(|| "no tenant (-32602)".to_owned());
        assert_eq!(
            answers.collect::<Vec<_>>(),
            Vec::from_iter(expected),
            "{id}"
        );
        assert!(
            events
                .iter()
                .any(|event| matches!(event, ClientEvent::Violation(_)))
        );
        assert!(
            !events
                .iter()
                .any(|event| matches!(event, ClientEvent::Completed(of, _) if *of == other))
        );
    }
}

/// Missing authorization and redirects end the negotiation, because `initialize` would meet them, too; so does a server
/// that cannot be reached.
#[test]
fn authorization_and_redirects_keep_their_meaning() {
    let redirect = || TransportFailure::Redirect {
        code: 301,
        location: "https://example.com/mcp/".to_owned(),
    };
    let redirected = "the server redirects to https://example.com/mcp/ (HTTP status 301); connect to that URL instead";
    let body = r#"{"error":"invalid_token","error_description":"it is expired"}"#;
    for (reaction, expected) in [
        (
            status(401, ""),
            "the server refuses to start: the server answered with HTTP status 401",
        ),
        (
            status(401, body),
            "the server refuses to start: the server answered with HTTP status 401: it is expired",
        ),
        (
            status(407, "<title>Proxy</title>"),
            "the server refuses to start: the server answered with HTTP status 407: the page \"Proxy\"",
        ),
        (Reaction::Failure(redirect()), redirected),
        (
            Reaction::Failure(TransportFailure::Unreachable),
            "the connection ended before a revision was negotiated",
        ),
    ] {
        let mut reaction = Some(reaction);
        let run = Negotiation::run(Binding::StreamableHttp, |_, _| {
            reaction.take().expect("one request")
        });
        assert_eq!(run.end(), Err(expected.to_owned()));
    }
}

/// If `initialize` fails, too, the error tells of the first failure, unless both give the same reason or the first one
/// is what servers with a handshake answer.
#[test]
fn first_failure_is_told() {
    for (probe, initialize, expected) in [
        (
            status(503, "<title>Maintenance</title>"),
            status(500, "boom"),
            "the server refuses to start: the server answered with HTTP status 500: boom; before, `server/discover` \
             failed: the server answered with HTTP status 503: the page \"Maintenance\"",
        ),
        (
            status(503, "busy"),
            status(503, "busy"),
            "the server refuses to start: the server answered with HTTP status 503: busy",
        ),
        (
            status(
                400,
                r#"{"jsonrpc":"2.0","id":null,"error":{"code":-32000,"message":"No session"}}"#,
            ),
            status(422, "no key"),
            "the server refuses to start: the server answered with HTTP status 422: no key",
        ),
        (
            status(404, ""),
            Reaction::Failure(TransportFailure::NoAnswer {
                reason: "HTTP status 202".to_owned(),
            }),
            "the server does not answer the handshake: HTTP status 202; before, `server/discover` failed: the server \
             answered with HTTP status 404",
        ),
    ] {
        let mut reactions = [probe, initialize].into_iter();
        let run = Negotiation::run(Binding::StreamableHttp, |_, _| {
            reactions.next().expect("two requests")
        });
        assert_eq!(run.end(), Err(expected.to_owned()));
    }
}

/// A refused revision leads to one more `initialize`, with the revision that the error names, or with the next older one.
#[test]
fn refused_revision_leads_to_an_older_one() {
    for binding in [Binding::Duplex, Binding::StreamableHttp] {
        for (code, message, expected) in [
            (-32602, "Unsupported protocol version", "2025-06-18"),
            (-32602, "Invalid params", "2025-06-18"),
            (-32602, "only 2024-11-05 is supported", "2024-11-05"),
            (
                -32000,
                "Unsupported protocol VERSION: 2025-11-25, use 2025-03-26",
                "2025-03-26",
            ),
        ] {
            let mut run = Negotiation::run(binding, |method, message_of_client| match method {
                "server/discover" => {
                    Reaction::Message(error(message_of_client["id"].clone(), -32601, "m"))
                }
                "initialize" if message_of_client["params"]["protocolVersion"] == expected => {
                    initialized(&message_of_client["id"], &json!(expected))
                }
                "initialize" => {
                    Reaction::Message(error(message_of_client["id"].clone(), code, message))
                }
                _ => Reaction::Silence,
            });
            assert_eq!(run.end(), Ok(expected.to_owned()), "{message}");
            assert_eq!(run.methods().len(), 4, "{:?}", run.requests);

            // Once: the first refusal is told.
            run = Negotiation::run(binding, |_, of_client| {
                Reaction::Message(error(of_client["id"].clone(), code, message))
            });
            let refusal = format!("the server refuses to start: {message} ({code})");
            assert_eq!(run.end(), Err(refusal));
            assert_eq!(
                run.methods(),
                ["server/discover", "initialize", "initialize"]
            );
        }
        // An error that has nothing to do with revisions is not repeated.
        let run = Negotiation::run(binding, |_, of_client| {
            Reaction::Message(error(of_client["id"].clone(), -32603, "no key"))
        });
        assert_eq!(run.methods(), ["server/discover", "initialize"]);
    }
}

/// Status 400 for `initialize` leads to an older revision before the fallback to HTTP+SSE.
#[test]
fn status_400_leads_to_an_older_revision() {
    let run = Negotiation::run(Binding::StreamableHttp, |method, message| {
        match (method, message["params"]["protocolVersion"].as_str()) {
            ("server/discover", _) => status(400, ""),
            ("initialize", Some("2025-11-25")) => status(400, "unsupported, only 2025-03-26"),
            ("initialize", Some("2025-03-26")) => initialized(&message["id"], &json!("2025-03-26")),
            _ => Reaction::End,
        }
    });
    assert_eq!(run.end(), Ok("2025-03-26".to_owned()), "{:?}", run.requests);
    let run = Negotiation::run(Binding::StreamableHttp, |_, _| status(400, "unsupported"));
    assert_eq!(
        run.methods(),
        ["server/discover", "initialize", "initialize"]
    );
    assert!(
        run.events
            .iter()
            .any(|event| matches!(event, ClientEvent::UseHttpSse))
    );
    let run = Negotiation::run(Binding::StreamableHttp, |_, _| status(405, ""));
    assert_eq!(run.methods(), ["server/discover", "initialize"]);
}

/// Returns the result of `server/discover` for a revision without handshake.
fn discovered(id: &Value) -> Value {
    json!({ "jsonrpc": "2.0", "id": id, "result": {
        "resultType": "complete", "supportedVersions": ["2026-07-28"], "capabilities": {},
        "ttlMs": 0, "cacheScope": "private",
    } })
}

/// A server that takes longer to start than the client waits for the answer to the probe: the late answer counts once
/// the server has refused `initialize`, whatever the code of that error is, or has not answered it.
#[test]
fn late_discovery_counts() {
    for code in [-32601, -32602, -32603, -32022, 1] {
        let mut ids = Vec::new();
        let mut run = Negotiation::run(Binding::Duplex, |_, message| {
            ids.push(message["id"].clone());
            Reaction::Silence
        });
        run.time_out();
        run.exchange(|_, message| {
            ids.push(message["id"].clone());
            Reaction::Silence
        });
        assert_eq!(run.methods(), ["server/discover", "initialize"]);
        for answer in [discovered(&ids[0]), error(ids[1].clone(), code, "m")] {
            let answer = answer.to_string();
            run.client
                .receive(StreamId::DUPLEX, answer.as_bytes(), run.now)
                .expect("open");
        }
        run.exchange(|_, _| Reaction::Silence);
        assert_eq!(run.end(), Ok("2026-07-28".to_owned()), "{code}");
        assert_eq!(run.methods().len(), 2, "{:?}", run.requests);
    }
}

/// A late answer to the probe does not replace a session that `initialize` has begun, and counts if nothing else comes.
#[test]
fn late_discovery_waits_for_initialize() {
    let silent = |ids: &mut Vec<Value>| {
        let mut run = Negotiation::run(Binding::Duplex, |_, message| {
            ids.push(message["id"].clone());
            Reaction::Silence
        });
        run.time_out();
        run.exchange(|_, message| {
            ids.push(message["id"].clone());
            Reaction::Silence
        });
        let answer = discovered(&ids[0]).to_string();
        let received = run
            .client
            .receive(StreamId::DUPLEX, answer.as_bytes(), run.now);
        received.expect("open");
        run
    };
    let mut ids = Vec::new();
    let mut run = silent(&mut ids);
    let Reaction::Message(answer) = initialized(&ids[1], &json!("2025-11-25")) else {
        panic!("a message");
    };
    let received = run
        .client
        .receive(StreamId::DUPLEX, answer.to_string().as_bytes(), run.now);
    received.expect("open");
    run.exchange(|_, _| Reaction::Silence);
    assert_eq!(run.end(), Ok("2025-11-25".to_owned()));

    let mut run = silent(&mut Vec::new());
    run.time_out();
    run.exchange(|_, _| Reaction::Silence);
    assert_eq!(run.end(), Ok("2026-07-28".to_owned()));
}

/// The handshake timeout limits all attempts together, also if it is shorter than that of the probe.
#[test]
fn handshake_timeout_is_the_limit_of_all_attempts() {
    for seconds in [1, 5, 60] {
        let mut config = client_config(&revisions_newest_first());
        config.handshake_timeout = std::time::Duration::from_secs(seconds);
        let settings = config.build().expect("a configuration");
        let mut run = Negotiation {
            client: ClientEndpoint::new(settings, Binding::Duplex, None, Time::ZERO),
            requests: Vec::new(),
            events: Vec::new(),
            now: Time::ZERO,
        };
        while !run.client.is_closed() {
            run.exchange(|_, _| Reaction::Silence);
            run.time_out();
        }
        run.exchange(|_, _| Reaction::Silence);
        assert_eq!(run.methods(), ["server/discover", "initialize"]);
        let passed = run.now.saturating_since(Time::ZERO);
        assert_eq!(passed.as_secs(), seconds, "{:?}", run.requests);
    }
}

/// If the server has sent what is no message, the error of a timeout shows it.
#[test]
fn silence_shows_what_came() {
    let mut run = Negotiation::run(Binding::Duplex, |_, _| Reaction::Silence);
    for line in ["Starting \u{1b}[1mserver\u{1b}[0m …", "second line"] {
        let received = run
            .client
            .receive(StreamId::DUPLEX, line.as_bytes(), run.now);
        received.expect("open");
    }
    while !run.client.is_closed() {
        run.exchange(|_, _| Reaction::Silence);
        run.time_out();
    }
    run.exchange(|_, _| Reaction::Silence);
    let expected = "the server did not respond in time, and sent what is not a message: Starting [1mserver [0m …";
    assert_eq!(run.end(), Err(expected.to_owned()));
}

/// An error status for `notifications/initialized` does not end the session, which goes on without another handshake.
#[test]
fn refused_initialized_keeps_the_session() {
    for code in [400, 401, 404, 405, 409, 500, 503] {
        for body in ["", "no session", "<html>"] {
            let mut run =
                Negotiation::run(Binding::StreamableHttp, |method, message| match method {
                    "server/discover" => status(400, ""),
                    "initialize" => initialized(&message["id"], &json!("2025-11-25")),
                    "notifications/initialized" => status(code, body),
                    _ => Reaction::Message(
                        json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} }),
                    ),
                });
            let sent = run
                .client
                .request("ping", None, CallOptions::default(), run.now);
            let key = sent.expect("the session goes on");
            run.exchange(|_, message| {
                Reaction::Message(json!({ "jsonrpc": "2.0", "id": message["id"], "result": {} }))
            });
            let answered = |event: &ClientEvent| matches!(event, ClientEvent::Completed(of, Outcome::Result(_)) if *of == key);
            assert!(run.events.iter().any(answered), "{code}: {:?}", run.events);
            let reported = |event: &ClientEvent| matches!(event, ClientEvent::Violation(Violation::InitializedRefused { status, .. }) if *status == code);
            assert!(run.events.iter().any(reported), "{code}: {:?}", run.events);
            assert_eq!(run.methods().len(), 4, "{code}: {:?}", run.requests);
        }
    }
}
