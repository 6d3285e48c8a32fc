//! Tool parameters that are mirrored into headers, and errors that name the correct headers (2026-07-28:
//! `basic/transports/streamable-http`, "Custom Headers from Tool Parameters"; `basic/versioning`).

use mcp_exact_tests_session::*;

/// Harness of a client over HTTP; the test acts as the server.
struct Http {
    /// Client endpoint under test.
    endpoint: ClientEndpoint,
    /// Events of the client so far.
    events: Vec<ClientEvent>,
    /// Schema checker of the client's messages.
    checker: SchemaChecker,
}

/// Stream, HTTP hints and message of a POST.
type Post = (StreamId, HttpHints, Value);

impl Http {
    /// Creates a client that has negotiated with a server that declares tools.
    fn new(config: ClientConfig) -> Self {
        let endpoint = ClientEndpoint::new(
            config.build().expect("a configuration"),
            Binding::StreamableHttp,
            None,
            Time::ZERO,
        );
        let mut http = Self {
            endpoint,
            events: Vec::new(),
            checker: SchemaChecker::default(),
        };
        let (on, _, probe) = http.post();
        assert_eq!(probe["method"], "server/discover");
        http.answer_post(
            on,
            &probe,
            json!({ "resultType": "complete", "supportedVersions": ["2026-07-28"],
                "capabilities": { "tools": {} }, "ttlMs": 0, "cacheScope": "private" }),
        );
        http
    }

    /// Removes and returns the next POST.
    fn post(&mut self) -> Post {
        let mut out = Vec::new();
        match self.endpoint.poll_transmit(&mut out) {
            Some(Transmit::Frame {
                stream: on, http, ..
            }) => {
                let agreed = self.endpoint.session_info();
                let agreed = agreed.map(|agreed| agreed.revision.as_str());
                self.checker.check_frame(true, &out, agreed);
                (on, http, serde_json::from_slice(&out).expect("JSON"))
            }
            other => panic!("{other:?}"),
        }
    }

    /// Checks that the client has no output.
    fn check_nothing_sent(&mut self) {
        assert_eq!(self.endpoint.poll_transmit(&mut Vec::new()), None);
    }

    /// Answers a posted request with a result.
    fn answer_post(&mut self, on: StreamId, request: &Value, result: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        let bytes = message.to_string();
        self.endpoint
            .receive(on, bytes.as_bytes(), Time::ZERO)
            .expect("open");
        self.take_events();
    }

    /// Answers a posted request with an error.
    fn refuse_post(&mut self, on: StreamId, request: &Value, error: Value) {
        let message = json!({ "jsonrpc": "2.0", "id": request["id"], "error": error });
        let body = message.to_string().into_bytes();
        self.endpoint
            .handle_failure(on, TransportFailure::Status { code: 400, body }, Time::ZERO);
        self.take_events();
    }

    /// Moves the pending events of the client to `events`.
    fn take_events(&mut self) {
        while let Some(event) = self.endpoint.poll_event() {
            self.events.push(event);
        }
    }

    /// Sends a request; returns the endpoint's result.
    fn send_request(&mut self, method: &str, params: Value) -> Result<RequestKey, SendError> {
        let options = CallOptions::default();
        self.endpoint
            .request(method, Some(to_object(params)), options, Time::ZERO)
    }

    /// Requests the tool list, which the server answers with `tools`; returns the tools in the client's result.
    fn list_tools(&mut self, tools: Value) -> Value {
        self.send_request("tools/list", json!({}))
            .expect("it leaves");
        let (on, hints, request) = self.post();
        assert_eq!(hints.params, []);
        self.answer_post(on, &request, list_page(tools, None));
        match self.events.last() {
            Some(ClientEvent::Completed(_, Outcome::Result(result))) => {
                to_value(result.object())["tools"].clone()
            }
            other => panic!("{other:?}"),
        }
    }

    /// Returns the outcomes of a request so far.
    fn outcomes_of(&self, key: RequestKey) -> Vec<&Outcome> {
        let ends = self.events.iter().filter_map(|event| match event {
            ClientEvent::Completed(done, outcome) if *done == key => Some(outcome),
            _ => None,
        });
        ends.collect()
    }
}

/// Creates a page of a tool list, with a cursor if there is a next page.
fn list_page(tools: Value, next: Option<&str>) -> Value {
    let mut page =
        json!({ "resultType": "complete", "tools": tools, "ttlMs": 0, "cacheScope": "private" });
    if let Some(next) = next {
        page["nextCursor"] = json!(next);
    }
    page
}

/// Creates a tool whose parameter has this `x-mcp-header` annotation.
fn tool_with_header(name: &str, annotation: Value) -> Value {
    json!({ "name": name, "inputSchema": { "type": "object", "properties": {
        "region": { "type": "string", "x-mcp-header": annotation },
        "count": { "type": "integer", "x-mcp-header": "Count" },
    } } })
}

/// Creates the params of a tool call.
fn call_tool(name: &str) -> Value {
    json!({ "name": name, "arguments": { "region": "\u{e9}", "other": 1 } })
}

/// Returns the header with this value that mirrors the parameter `region`.
fn region_header(value: &str) -> Vec<(String, String)> {
    vec![("Mcp-Param-Region".to_owned(), value.to_owned())]
}

/// Creates a `HeaderMismatch` error.
fn header_mismatch_error() -> Value {
    json!({ "code": -32020, "message": "Header mismatch" })
}

/// After a tool was listed, the client's calls of the tool have the headers of its mirrored parameters.
#[test]
fn calls_of_listed_tools_have_headers() {
    let mut http = Http::new(client_config(&["2026-07-28"]));
    let tools = json!([tool_with_header("a", json!("Region"))]);
    assert_eq!(http.list_tools(tools.clone()), tools);
    http.send_request("tools/call", call_tool("a"))
        .expect("it leaves");
    let (_, hints, _) = http.post();
    assert_eq!(hints.params, region_header("=?base64?w6k=?="));
    assert_eq!(hints.name.as_deref(), Some("a"));
    http.send_request("tools/call", call_tool("unknown"))
        .expect("it leaves");
    assert_eq!(http.post().1.params, []);
    // What cannot be mirrored does not leave.
    let large = json!({ "name": "a", "arguments": { "count": 9_007_199_254_740_992_u64 } });
    let refused = http.send_request("tools/call", large);
    assert!(
        matches!(refused, Err(SendError::Params { .. })),
        "{refused:?}"
    );
    http.check_nothing_sent();
}

/// Over HTTP, a tool with an invalid `x-mcp-header` annotation is removed from the list and reported as a violation.
#[test]
fn invalid_tools_are_excluded_and_reported() {
    let mut http = Http::new(client_config(&["2026-07-28"]));
    let bad = tool_with_header("bad", json!("a b"));
    let good = tool_with_header("good", json!("Region"));
    let odd = json!({ "name": 5 });
    let listed = http.list_tools(json!([bad, good, odd]));
    assert_eq!(listed, json!([good, odd]), "the rest stays as it came");
    let told = http.events.iter().any(|event| {
        matches!(event, ClientEvent::Violation(Violation::Tool { name, .. }) if name == "bad")
    });
    assert!(told, "{:?}", http.events);
    // On other transports annotations mean nothing.
    let mut raw = RawClient::with_session(
        client_config(&["2026-07-28"]),
        "2026-07-28",
        json!({ "tools": {} }),
    );
    let (_, request) = raw.request("tools/list", json!({}));
    let result = list_page(json!([bad]), None);
    raw.send(&json!({ "jsonrpc": "2.0", "id": request["id"], "result": result }));
    let outcomes = raw.outcomes();
    let [(_, Outcome::Result(listed))] = &outcomes[..] else {
        panic!("{outcomes:?}");
    };
    assert_eq!(to_value(listed.object())["tools"], json!([bad]));
}

/// Tools whose definitions exceed the memory limit are removed from the list, and the limit is reported as a violation.
#[test]
fn remembered_tool_headers_are_limited() {
    let mut config = client_config(&["2026-07-28"]);
    config.limits.tool_bytes = 1500;
    let mut http = Http::new(config);
    let many: Vec<Value> = (0..50)
        .map(|n| tool_with_header(&format!("t{n}"), json!("Region")))
        .collect();
    let kept = http.list_tools(Value::from(many)).as_array().map(Vec::len);
    assert!(kept.is_some_and(|kept| (1..50).contains(&kept)), "{kept:?}");
    let limit = http.events.iter().any(|event| {
        matches!(event, ClientEvent::Violation(Violation::Limit(limit)) if limit.name() == "tool_bytes")
    });
    assert!(limit);
    // A newer list takes the place of an older one.
    let tools = json!([tool_with_header("new", json!("Region"))]);
    assert_eq!(http.list_tools(tools.clone()), tools);
}

/// After a `HeaderMismatch` error, the client lists the tools and repeats the call once with the correct headers.
#[test]
fn header_mismatch_relists_and_retries_once() {
    let mut http = Http::new(client_config(&["2026-07-28"]));
    let key = http
        .send_request("tools/call", call_tool("a"))
        .expect("it leaves");
    let (on, hints, request) = http.post();
    assert_eq!(hints.params, []);
    http.refuse_post(on, &request, header_mismatch_error());
    let (on, hints, list) = http.post();
    assert_eq!(
        (&list["method"], hints.method.as_deref()),
        (&json!("tools/list"), Some("tools/list"))
    );
    http.answer_post(
        on,
        &list,
        list_page(
            json!([tool_with_header("b", json!("Region"))]),
            Some("next"),
        ),
    );
    let (on, _, list) = http.post();
    assert_eq!(list["params"]["cursor"], "next");
    http.answer_post(
        on,
        &list,
        list_page(json!([tool_with_header("a", json!("Region"))]), None),
    );
    let (on, hints, again) = http.post();
    assert_eq!(hints.params, region_header("=?base64?w6k=?="));
    assert_eq!(
        (&again["method"], &again["params"]["arguments"]),
        (&json!("tools/call"), &request["params"]["arguments"])
    );
    assert_ne!(again["id"], request["id"]);
    assert!(http.outcomes_of(key).is_empty());
    // Once: the second refusal is the outcome.
    http.refuse_post(on, &again, header_mismatch_error());
    http.check_nothing_sent();
    let [Outcome::Error(error)] = http.outcomes_of(key)[..] else {
        panic!("{:?}", http.events);
    };
    assert_eq!(error.code(), Some(code::HEADER_MISMATCH));
}

/// A list whose cursors repeat is searched once, and does not contain the tool.
#[test]
fn mismatch_with_endless_list_ends_call() {
    let mut http = Http::new(client_config(&["2026-07-28"]));
    let key = http
        .send_request("tools/call", call_tool("a"))
        .expect("it leaves");
    let (on, _, request) = http.post();
    http.refuse_post(on, &request, header_mismatch_error());
    for _ in 0..2 {
        let (on, _, list) = http.post();
        assert_eq!(list["method"], "tools/list");
        http.answer_post(on, &list, list_page(json!([]), Some("again")));
    }
    http.check_nothing_sent();
    let ended = &http.outcomes_of(key)[..];
    assert!(matches!(ended, [Outcome::Error(_)]), "{:?}", http.events);
}

/// A `HeaderMismatch` error ends the call if the new tool list does not contain the tool.
#[test]
fn mismatch_of_removed_tool_ends_call() {
    let mut http = Http::new(client_config(&["2026-07-28"]));
    let key = http
        .send_request("tools/call", call_tool("a"))
        .expect("it leaves");
    let (on, _, request) = http.post();
    http.refuse_post(on, &request, header_mismatch_error());
    let (on, _, list) = http.post();
    http.answer_post(on, &list, list_page(json!([]), None));
    assert!(
        matches!(http.outcomes_of(key)[..], [Outcome::Error(_)]),
        "{:?}",
        http.events
    );
    // It can be cancelled while the list is asked for.
    let key = http
        .send_request("tools/call", call_tool("a"))
        .expect("it leaves");
    let (on, _, request) = http.post();
    http.refuse_post(on, &request, header_mismatch_error());
    http.post();
    http.endpoint.cancel(key, "enough", Time::ZERO);
    http.take_events();
    assert!(
        matches!(http.outcomes_of(key)[..], [Outcome::Cancelled]),
        "{:?}",
        http.events
    );
}

/// Creates an `UnsupportedProtocolVersionError` that lists these revisions.
fn unsupported_versions_error(supported: Value) -> Value {
    json!({ "code": -32022, "message": "no", "data": { "supported": supported, "requested": "2026-07-28" } })
}

/// A request that is refused with a version error is repeated once; after the second refusal it ends with the error.
#[test]
fn version_refusal_is_retried_once() {
    let mut http = Http::new(client_config(&["2026-07-28"]));
    let key = http
        .send_request("tools/list", json!({}))
        .expect("it leaves");
    let (on, _, request) = http.post();
    http.refuse_post(
        on,
        &request,
        unsupported_versions_error(json!(["2026-07-28"])),
    );
    let (on, _, again) = http.post();
    assert_eq!(again["method"], "tools/list");
    http.refuse_post(
        on,
        &again,
        unsupported_versions_error(json!(["2026-07-28"])),
    );
    assert!(
        matches!(http.outcomes_of(key)[..], [Outcome::Error(_)]),
        "{:?}",
        http.events
    );
    // Nothing in common: the error is the outcome, and it says what the server speaks.
    let key = http
        .send_request("tools/list", json!({}))
        .expect("it leaves");
    let (on, _, request) = http.post();
    http.refuse_post(
        on,
        &request,
        unsupported_versions_error(json!(["1900-01-01"])),
    );
    assert!(
        matches!(http.outcomes_of(key)[..], [Outcome::Error(_)]),
        "{:?}",
        http.events
    );
    http.check_nothing_sent();
}

/// After a version error that lists only revisions with a handshake, the client sends `initialize` and repeats the
/// refused requests in the session.
#[test]
fn client_follows_server_to_handshake() {
    let config = client_config(&["2026-07-28", "2025-06-18"]);
    let mut raw = RawClient::with_session(config, "2026-07-28", json!({ "tools": {} }));
    let (first, one) = raw.request("tools/list", json!({}));
    let (second, two) = raw.request("tools/call", json!({ "name": "x" }));
    let supported = unsupported_versions_error(json!(["2025-06-18", "2025-03-26"]));
    let error =
        |request: &Value| json!({ "jsonrpc": "2.0", "id": request["id"], "error": supported });
    let sent = raw.send(&error(&one));
    assert_eq!(sent[0]["method"], "initialize");
    assert_eq!(sent[0]["params"]["protocolVersion"], "2025-06-18");
    // The other request waits for the same.
    assert_eq!(raw.send(&error(&two)), Vec::<Value>::new());
    let refused = raw
        .endpoint
        .request("tools/list", None, CallOptions::default(), raw.now);
    assert_eq!(refused, Err(SendError::NotReady));
    let sent = raw.send(&json!({ "jsonrpc": "2.0", "id": sent[0]["id"], "result": {
        "protocolVersion": "2025-06-18", "capabilities": { "tools": {} },
        "serverInfo": { "name": "s", "version": "1" } } }));
    let methods: Vec<_> = sent
        .iter()
        .map(|message| message["method"].clone())
        .collect();
    assert_eq!(
        methods,
        ["notifications/initialized", "tools/list", "tools/call"]
    );
    for message in &sent {
        check_message("2025-06-18", true, None, message);
    }
    for message in &sent[1..] {
        raw.send(&json!({ "jsonrpc": "2.0", "id": message["id"], "result": { "tools": [], "content": [] } }));
    }
    let ends: Vec<_> = raw
        .outcomes()
        .into_iter()
        .map(|(key, end)| (key, matches!(end, Outcome::Result(_))))
        .collect();
    assert_eq!(ends, [(first, true), (second, true)]);
}

/// If a renegotiation fails, the requests that wait for the new revision end.
#[test]
fn failed_renegotiation_ends_waiting_requests() {
    let config = client_config(&["2026-07-28", "2025-06-18"]);
    let mut raw = RawClient::with_session(config, "2026-07-28", json!({ "tools": {} }));
    let supported = unsupported_versions_error(json!(["2025-06-18"]));
    let (cancelled, one) = raw.request("tools/list", json!({}));
    let (closed, two) = raw.request("tools/list", json!({}));
    let sent = raw.send(&json!({ "jsonrpc": "2.0", "id": one["id"], "error": supported }));
    raw.send(&json!({ "jsonrpc": "2.0", "id": two["id"], "error": supported }));
    raw.endpoint.cancel(cancelled, "enough", raw.now);
    raw.send(
        &json!({ "jsonrpc": "2.0", "id": sent[0]["id"], "error": { "code": -1, "message": "no" } }),
    );
    assert_eq!(
        raw.outcomes(),
        [(cancelled, Outcome::Cancelled), (closed, Outcome::Closed)]
    );
}

/// "Implementations SHOULD always enforce a maximum timeout" (2026-07-28, `basic/patterns/cancellation`, "Timeouts"):
/// the time for tool lists after a `HeaderMismatch` error counts towards the timeout of the call.
#[test]
fn relisting_does_not_restart_timeout() {
    let at = |seconds: u64| Time::from_millis(1000 * seconds);
    let mut http = Http::new(client_config(&["2026-07-28"]));
    http.list_tools(json!([tool_with_header("t", json!("Region"))]));
    let timeout = RequestTimeout {
        idle: std::time::Duration::from_secs(60),
        reset_on_progress: true,
        total: std::time::Duration::from_secs(100),
    };
    let options = CallOptions {
        timeout: Some(timeout),
        ..CallOptions::default()
    };
    let params = Some(to_object(call_tool("t")));
    let key = http
        .endpoint
        .request("tools/call", params, options, Time::ZERO);
    let key = key.expect("it leaves");
    let (on, _, request) = http.post();
    http.refuse_post(on, &request, header_mismatch_error());
    for seconds in [50, 90] {
        let (on, _, request) = http.post();
        assert_eq!(request["method"], "tools/list");
        let cursor = seconds.to_string();
        let result = list_page(json!([]), Some(&cursor));
        let message = json!({ "jsonrpc": "2.0", "id": request["id"], "result": result });
        let text = message.to_string();
        let received = http.endpoint.receive(on, text.as_bytes(), at(seconds));
        received.expect("open");
        assert_eq!(http.endpoint.poll_timeout(), Some(at(100)));
    }
    http.endpoint.handle_timeout(at(100));
    http.take_events();
    assert_eq!(http.outcomes_of(key), [&Outcome::TimedOut]);
}
