//! Behaviour of each entry point of an endpoint for one method in one revision.

use mcp_exact_revisions::{Lifecycle, RevisionSpec, Side};
use mcp_exact_wire::JsonObject;
use serde_json::{Value, json};

use super::peers::*;
use crate::*;

/// Entry points and the described behaviour for one method in one revision.
pub(super) type MethodCells = Vec<(String, String)>;

/// Describes the result of sending a message in one word; `left` describes the queued output.
pub(super) fn describe_sent<T>(result: Result<T, SendError>, left: String) -> String {
    match result {
        Ok(_) if left == "nothing" => "deferred".to_owned(),
        Ok(_) => "sent".to_owned(),
        Err(error) => describe_error(&error),
    }
}

/// Returns the behaviour of each entry point for a request of the client.
pub(super) fn client_requests(spec: &RevisionSpec, method: &str) -> MethodCells {
    let mut cells = MethodCells::new();
    let mut add = |entrance: &str, value: String| cells.push((entrance.to_owned(), value));
    let ours = |params: Value| {
        let mut params = params;
        params.as_object_mut().expect("an object").remove("_meta");
        Some(object(params))
    };
    for (name, declared) in [
        ("", DeclaringPeers::Both),
        (" undeclared", DeclaringPeers::ClientOnly),
    ] {
        let mut client = client(spec, declared);
        let result = client.request(method, ours(params()), CallOptions::default(), Time::ZERO);
        let left = describe_client_output(&mut client);
        add(&format!("request{name}"), describe_sent(result, left));
        let mut server = server(spec, declared);
        send_to_server(
            &mut server,
            &request_message(spec, declared, Some(json!(1)), method, params()),
        );
        add(
            &format!("receive{name}"),
            describe_server_output(&mut server),
        );
    }
    let mut server = server_with_binding(
        spec,
        DeclaringPeers::Both,
        State::BeforeNegotiation,
        Binding::Duplex,
    );
    send_to_server(
        &mut server,
        &request_message(spec, DeclaringPeers::Both, Some(json!(1)), method, params()),
    );
    add("receive first", describe_server_output(&mut server));
    add("receive by POST", posted_messages(spec, method));
    let mut client = client_with_binding(
        spec,
        DeclaringPeers::Both,
        State::Ready,
        Binding::StreamableHttp,
    );
    add("is_repeatable", client.is_repeatable(method).to_string());
    let result = client.request(method, ours(params()), CallOptions::default(), Time::ZERO);
    if let (Ok(_), Some(Transmit::Frame { http, .. })) =
        (result, client.poll_transmit(&mut Vec::new()))
    {
        let named = |value: Option<String>| value.map_or("none", |_| "sent").to_owned();
        add(
            "Mcp-Method, Mcp-Name",
            format!("{} {}", named(http.method), named(http.name)),
        );
    }
    let mut config = server_capabilities();
    config["tasks"] = json!({});
    let mut as_task = params();
    as_task["task"] = json!({});
    let mut client = client_of_server(spec, config);
    let result = client.request(method, ours(as_task), CallOptions::default(), Time::ZERO);
    let left = describe_client_output(&mut client);
    add("request as task", describe_sent(result, left));
    for (name, reply) in server_replies() {
        if let Some((mut server, key)) = server_during_request(spec, DeclaringPeers::Both, method) {
            let sent = match server.reply(key, reply, Time::ZERO) {
                Ok(_) => describe_server_output(&mut server),
                Err(error) => describe_error(&error),
            };
            add(name, sent);
        }
    }
    cells
}

/// Creates a client that is connected to a server with these capabilities.
pub(super) fn client_of_server(spec: &RevisionSpec, capabilities: Value) -> ClientEndpoint {
    let config = ClientConfig::new(Identity::new("c", "1"));
    let settings = config.build().expect("a configuration");
    let snapshot = Snapshot::new(session_info(spec, capabilities), 0);
    ClientEndpoint::resume(settings, Binding::Duplex, snapshot, Time::ZERO).expect("offered")
}

/// Returns a description of the server's answers to a POST that has all headers except `Mcp-Name`.
pub(super) fn posted_messages(spec: &RevisionSpec, method: &str) -> String {
    let mut server = server_with_binding(
        spec,
        DeclaringPeers::Both,
        State::Ready,
        Binding::StreamableHttp,
    );
    let stream = server.open(StreamKind::Post).expect("a stream");
    let header = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let headers = vec![
        header("MCP-Protocol-Version", spec.id()),
        header("Mcp-Method", method),
    ];
    let context = FrameContext {
        http: Some(HttpRequest::new(headers)),
        ..FrameContext::new(())
    };
    let text =
        request_message(spec, DeclaringPeers::Both, Some(json!(1)), method, params()).to_string();
    server
        .receive(stream, text.as_bytes(), context, Time::ZERO)
        .expect("open");
    describe_server_output(&mut server)
}

/// Returns replies of different types, each with the name of its entry point.
pub(super) fn server_replies() -> Vec<(&'static str, Reply)> {
    let raw = |value| Reply::from(RawResult::from(object(value)));
    let embedded = json!({ "resultType": "input_required", "inputRequests": { "a": { "method": "roots/list" } } });
    vec![
        ("reply", raw(json!({}))),
        ("reply of a made-up type", raw(json!({ "resultType": "x" }))),
        ("reply of type input_required", raw(embedded)),
        (
            "reply InputRequired",
            Reply::InputRequired {
                requests: vec![("a".to_owned(), InputRequest::new("roots/list", None))],
                state: None,
            },
        ),
    ]
}

/// Returns the behaviour of each entry point for a request of the server.
pub(super) fn server_requests(spec: &RevisionSpec, method: &str) -> MethodCells {
    let mut cells = MethodCells::new();
    let mut add = |entrance: &str, value: String| cells.push((entrance.to_owned(), value));
    for (name, declared) in [
        ("", DeclaringPeers::Both),
        (" undeclared", DeclaringPeers::ServerOnly),
    ] {
        if let Some((mut server, key)) = server_during_request(spec, declared, "tools/call") {
            let options = CallOptions::default();
            let result = server.request(
                Scope::During(key),
                method,
                Some(object(params())),
                options,
                Time::ZERO,
            );
            let left = describe_server_output(&mut server);
            add(&format!("request{name}"), describe_sent(result, left));
        }
        let mut client = client(spec, declared);
        send_to_client(
            &mut client,
            &server_messages(Some(json!(1)), method, params()),
        );
        let received = describe_client_output(&mut client);
        add(&format!("receive{name}"), received);
    }
    let mut early = server_with_binding(
        spec,
        DeclaringPeers::Both,
        State::Negotiated,
        Binding::Duplex,
    );
    let result = early.request(
        Scope::Peer,
        method,
        Some(object(params())),
        CallOptions::default(),
        Time::ZERO,
    );
    let left = describe_server_output(&mut early);
    add("request before initialized", describe_sent(result, left));
    let mut fresh = client_with_binding(
        spec,
        DeclaringPeers::Both,
        State::BeforeNegotiation,
        Binding::Duplex,
    );
    send_to_client(
        &mut fresh,
        &server_messages(Some(json!(1)), method, params()),
    );
    add("receive first", describe_client_output(&mut fresh));
    let mut as_task = params();
    as_task["task"] = json!({});
    let mut config = ServerConfig::new(Identity::new("s", "1"));
    config.capabilities = object(server_capabilities());
    let settings = config.build().expect("a configuration");
    let mut capabilities = client_capabilities();
    capabilities["tasks"] = json!({});
    if spec.lifecycle() == Lifecycle::Initialize {
        let snapshot = Snapshot::new(session_info(spec, capabilities), 0);
        let server = ServerEndpoint::<()>::resume(settings, Binding::Duplex, snapshot, Time::ZERO);
        let mut server = server.expect("offered");
        let result = server.request(
            Scope::Peer,
            method,
            Some(object(as_task)),
            CallOptions::default(),
            Time::ZERO,
        );
        let left = describe_server_output(&mut server);
        add("request as task", describe_sent(result, left));
    }
    cells
}

/// Creates a request of the server or, without id, a notification.
pub(super) fn server_messages(id: Option<Value>, method: &str, params: Value) -> Value {
    let mut message = json!({ "jsonrpc": "2.0", "method": method, "params": params });
    if let Some(id) = id {
        message["id"] = id;
    }
    message
}

/// Returns the behaviour of each entry point for an input request.
pub(super) fn input_requests(spec: &RevisionSpec, method: &str) -> MethodCells {
    let mut cells = MethodCells::new();
    let mut add = |entrance: &str, value: String| cells.push((entrance.to_owned(), value));
    let embedded = || json!({ "resultType": "input_required", "inputRequests": { "a": { "method": method, "params": params() } } });
    for (name, declared) in [
        ("", DeclaringPeers::Both),
        (" undeclared", DeclaringPeers::ServerOnly),
    ] {
        let request = InputRequest::new(method, Some(object(params())));
        let required = Reply::InputRequired {
            requests: vec![("a".to_owned(), request)],
            state: None,
        };
        let raw = Reply::from(RawResult::from(object(embedded())));
        let discover = spec.lifecycle() == Lifecycle::Discover;
        let replies = [
            ("InputRequired", Some(required)),
            ("raw", discover.then_some(raw)),
        ];
        for (how, reply) in replies {
            if let (Some(reply), Some((mut server, key))) =
                (reply, server_during_request(spec, declared, "tools/call"))
            {
                let result = server.reply(key, reply, Time::ZERO);
                let left = describe_server_output(&mut server);
                add(&format!("reply {how}{name}"), describe_sent(result, left));
            }
        }
        if discover {
            let mut client = client(spec, declared);
            let asked = client.request("tools/call", None, CallOptions::default(), Time::ZERO);
            if asked.is_err() {
                continue;
            }
            describe_client_output(&mut client);
            send_to_client(
                &mut client,
                &json!({ "jsonrpc": "2.0", "id": 1, "result": embedded() }),
            );
            add(
                &format!("receive in a result{name}"),
                describe_client_event(&mut client),
            );
        } else {
            let mut client = client(spec, declared);
            send_to_client(
                &mut client,
                &server_messages(Some(json!(1)), method, params()),
            );
            add(
                &format!("receive and answer{name}"),
                describe_client_event(&mut client),
            );
        }
    }
    cells
}

/// Describes the next event of a client as a cell of the matrix; answers it first if it is a request of the server.
pub(super) fn describe_client_event(client: &mut ClientEndpoint) -> String {
    match client.poll_event() {
        Some(ClientEvent::Request { key, .. }) => {
            let result = RawResult::from(JsonObject::new());
            let answer = client.answer(key, Ok(result), Time::ZERO);
            assert_eq!(answer, Ok(SendOutcome::Queued));
            format!("program, {}", describe_client_output(client))
        }
        Some(ClientEvent::Completed(_, outcome)) => variant_name(&outcome),
        Some(ClientEvent::Violation(violation)) => {
            format!(
                "violation {}, {}",
                variant_name(&violation),
                describe_client_output(client)
            )
        }
        Some(event @ ClientEvent::UndeclaredRequest { .. }) => {
            format!(
                "{}, {}",
                variant_name(&event),
                describe_client_output(client)
            )
        }
        None => describe_client_output(client),
        Some(other) => variant_name(&other),
    }
}

/// Returns the behaviour of each entry point for a notification of the client.
pub(super) fn client_notifications(spec: &RevisionSpec, method: &str) -> MethodCells {
    let mut cells = MethodCells::new();
    let mut add = |entrance: &str, value: String| cells.push((entrance.to_owned(), value));
    for (name, declared) in [
        ("", DeclaringPeers::Both),
        (" undeclared", DeclaringPeers::ServerOnly),
    ] {
        let mut client = client(spec, declared);
        let result = client.notify(method, Some(object(params())));
        let left = describe_client_output(&mut client);
        add(&format!("notify{name}"), describe_sent(result, left));
        let mut server = server(spec, declared);
        send_to_server(&mut server, &server_messages(None, method, params()));
        add(
            &format!("receive{name}"),
            describe_server_output(&mut server),
        );
    }
    let mut fresh = server_with_binding(
        spec,
        DeclaringPeers::Both,
        State::BeforeNegotiation,
        Binding::Duplex,
    );
    send_to_server(&mut fresh, &server_messages(None, method, params()));
    add("receive first", describe_server_output(&mut fresh));
    if spec.lifecycle() == Lifecycle::Initialize {
        let mut early = server_with_binding(
            spec,
            DeclaringPeers::Both,
            State::Negotiated,
            Binding::Duplex,
        );
        send_to_server(&mut early, &server_messages(None, method, params()));
        add(
            "receive before initialized",
            describe_server_output(&mut early),
        );
    }
    cells
}

/// Returns the behaviour of each entry point for a notification of the server.
pub(super) fn server_notifications(spec: &RevisionSpec, method: &str) -> MethodCells {
    let mut cells = MethodCells::new();
    let mut add = |entrance: &str, value: String| cells.push((entrance.to_owned(), value));
    let discover = spec.lifecycle() == Lifecycle::Discover;
    let scopes = [
        ("during a call", Some("tools/call")),
        ("during a subscription", Some("subscriptions/listen")),
        ("to the client", None),
    ];
    for (name, declared) in [
        ("", DeclaringPeers::Both),
        (" undeclared", DeclaringPeers::no_capabilities(Side::Server)),
    ] {
        for (place, request) in scopes {
            // Without `tools` nobody calls one; the methods of the endpoint itself are there.
            let asked = match request {
                None => Some((server(spec, declared), Scope::Peer)),
                Some("tools/call") if declared != DeclaringPeers::Both => None,
                Some(request) => server_during_request(spec, declared, request)
                    .map(|(server, key)| (server, Scope::During(key))),
            };
            if let Some((mut server, scope)) = asked {
                let result = server.notify(scope, method, Some(object(params())));
                let left = describe_server_output(&mut server);
                add(
                    &format!("notify {place}{name}"),
                    describe_sent(result, left),
                );
            }
        }
        let mut client = client(spec, declared);
        let options = CallOptions {
            progress: true,
            ..CallOptions::default()
        };
        let asks = if discover {
            "subscriptions/listen"
        } else {
            "ping"
        };
        let asked = client.request(asks, Some(object(params())), options, Time::ZERO);
        if asked.is_err() {
            continue;
        }
        let mut tagged = params();
        tagged["progressToken"] = json!(1);
        tagged["_meta"] = json!({ "io.modelcontextprotocol/subscriptionId": 1 });
        if discover && method != "notifications/subscriptions/acknowledged" {
            send_to_client(
                &mut client,
                &server_messages(
                    None,
                    "notifications/subscriptions/acknowledged",
                    tagged.clone(),
                ),
            );
        }
        describe_client_output(&mut client);
        send_to_client(&mut client, &server_messages(None, method, tagged));
        add(
            &format!("receive{name}"),
            describe_client_output(&mut client),
        );
    }
    if !discover {
        let mut early = server_with_binding(
            spec,
            DeclaringPeers::Both,
            State::Negotiated,
            Binding::Duplex,
        );
        let result = early.notify(Scope::Peer, method, Some(object(params())));
        let left = describe_server_output(&mut early);
        add("notify before initialized", describe_sent(result, left));
    }
    let mut fresh = client_with_binding(
        spec,
        DeclaringPeers::Both,
        State::BeforeNegotiation,
        Binding::Duplex,
    );
    send_to_client(&mut fresh, &server_messages(None, method, params()));
    add("receive first", describe_client_output(&mut fresh));
    cells
}

/// Returns the messages that announce a change of this kind, for each entry point.
pub(super) fn announced_changes(spec: &RevisionSpec, kind: &str) -> MethodCells {
    let change = match kind {
        "tools" => Change::Tools,
        "prompts" => Change::Prompts,
        "resources" => Change::Resources,
        _ => Change::Resource("a:b".to_owned()),
    };
    let discover = spec.lifecycle() == Lifecycle::Discover;
    let subscribes = if discover {
        "subscriptions/listen"
    } else {
        "resources/subscribe"
    };
    let mut cells = MethodCells::new();
    for (name, declared) in [
        ("", DeclaringPeers::Both),
        (" undeclared", DeclaringPeers::ClientOnly),
    ] {
        let mut idle = server(spec, declared);
        idle.publish(&change);
        cells.push((format!("publish{name}"), describe_server_output(&mut idle)));
        if let Some((mut server, key)) = server_during_request(spec, declared, subscribes) {
            let accepted = server.reply(key, RawResult::from(JsonObject::new()), Time::ZERO);
            assert!(accepted.is_ok() || discover);
            describe_server_output(&mut server);
            server.publish(&change);
            cells.push((
                format!("publish to a subscriber{name}"),
                describe_server_output(&mut server),
            ));
        }
    }
    cells
}
