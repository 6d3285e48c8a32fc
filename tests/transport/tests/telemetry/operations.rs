//! Spans and durations of requests and notifications, by the semantic conventions of OpenTelemetry for MCP
//! (`docs/gen-ai/mcp.md` in `open-telemetry/semantic-conventions-genai`).

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::future::pending;
use std::sync::Arc;

use expect_test::{Expect, expect};
use mcp_exact_session::{
    CallOptions, Identity, InputRequest, Offer, Outcome, PeerError, RawResult, Reply, ServerConfig,
    ServerEvent, ServerSettings,
};
use mcp_exact_transport::http::client::HttpEndpoint;
use mcp_exact_transport::http::server::{HttpListener, HttpServerOptions, HttpService};
use mcp_exact_transport::{
    ClientHandle, ConnectionOptions, RequestContext, ServerHandle, connect, memory_pair, serve,
    telemetry,
};
use opentelemetry::KeyValue;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{SpanId, SpanKind, Status};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::SpanData;
use serde_json::json;
use tracing::Instrument as _;

use super::{attribute, export_spans};
use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::echo::{REVISIONS, call_params, object};

/// Returns the settings of a server with tools, prompts and resources.
fn settings() -> Arc<ServerSettings> {
    let mut config = ServerConfig::new(Identity::new("traced", "1"));
    config.offer = Offer::new(REVISIONS).expect("compiled in");
    config.capabilities = object(json!({ "tools": {}, "prompts": {}, "resources": {} }));
    config.build().expect("a configuration")
}

/// Handles the events of the server, whose tools are `echo`, `fail` and `ask`.
fn handle(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    let ServerEvent::Request(request) = event else {
        return;
    };
    let result = |value| Reply::Result(RawResult::from(object(value)));
    let name = request.param("name").and_then(|name| name.as_str());
    let name = name.unwrap_or_default();
    let is_known = matches!(&*name, "echo" | "fail" | "ask" | "greet");
    if is_known {
        server.set_target_known(&request);
    }
    let reply = match (request.method(), &*name) {
        ("tools/call", "echo") => result(json!({ "content": [] })),
        ("tools/call", "fail") => result(json!({ "content": [], "isError": true })),
        ("tools/call", "ask") if request.responses.is_empty() => Reply::InputRequired {
            requests: vec![("roots".to_owned(), InputRequest::new("roots/list", None))],
            state: None,
        },
        ("tools/call", "ask") => result(json!({ "content": [] })),
        ("prompts/get", "greet") => result(json!({ "messages": [] })),
        ("resources/read", _) => PeerError::new(-32002, "the secret is not there").into(),
        (_, name) => PeerError::invalid_params(format!("Unknown name: {name}")).into(),
    };
    server.reply(request.key, reply).expect("replied once");
}

/// Sends a request, and returns its outcome.
async fn request(client: &ClientHandle, method: &str, params: serde_json::Value) -> Outcome {
    let params = Some(object(params));
    let request = client.request(method, params, CallOptions::default(), None);
    request.expect("sent").await
}

/// Sends requests of all kinds in a span of the program.
async fn talk(client: &ClientHandle, revision: &str) {
    client.ready().await.expect("connected");
    for tool in ["echo", "fail", "invented", "ask"] {
        let params = call_params(tool, "hunter2");
        let request = client.request("tools/call", params, CallOptions::default(), None);
        request.expect("sent").await;
    }
    request(client, "prompts/get", json!({ "name": "greet" })).await;
    let uri = json!({ "uri": "file://u:hunter2@host/a?key=hunter2" });
    request(client, "resources/read", uri).await;
    if revision != "2026-07-28" {
        let method = "notifications/roots/list_changed";
        client.notify(method, None).expect("sent");
        // The server has handled the notification before it answers.
        request(client, "ping", json!({})).await;
    }
}

/// Transport of a case.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Carrier {
    /// A pair in memory.
    Memory,
    /// Streamable HTTP.
    Http,
}

/// Lets a client talk to a server in this process, and ends both.
async fn run(carrier: Carrier, revision: &str) {
    let program = tracing::info_span!("program");
    let (client_settings, answer) = (echo::client_settings(revision), Arc::new(echo::answer));
    match carrier {
        Carrier::Memory => {
            let (near, far) = memory_pair(1 << 16, 4 << 20);
            let options = ConnectionOptions::default();
            let serving = serve(settings(), Arc::new(handle), far, options, pending());
            let server = tokio::spawn(serving);
            let (client, driver) = connect(client_settings, None, answer, near, options);
            talk(&client, revision).instrument(program).await;
            client.close();
            driver.await.expect("driver");
            server.await.expect("task").expect("clean end");
        }
        Carrier::Http => {
            let options = HttpServerOptions::default();
            let service = HttpService::new(settings(), Arc::new(handle), options);
            let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
            let url = format!("http://{}/", listener.local_addr().expect("an address"));
            let serving = tokio::spawn(listener.serve(service.clone(), pending()));
            let endpoint = HttpEndpoint::new(&url).expect("a URL").opens_stream(false);
            let (client, driver) = endpoint.connect(client_settings, None, answer);
            talk(&client, revision).instrument(program).await;
            client.close();
            driver.await.expect("driver");
            service.end_sessions();
            serving.abort();
            let _ = serving.await;
        }
    }
}

/// Replaces what differs from run to run.
fn normalised(key: &str, value: &str) -> String {
    match key {
        "server.port" | "client.port" => "PORT".to_owned(),
        "mcp.session.id" => {
            assert_eq!(value.len(), 32, "{value}");
            "DIGEST".to_owned()
        }
        _ => value.to_owned(),
    }
}

/// Returns attributes in a line, sorted by their keys, without those of `tracing`.
fn line_of<'a>(attributes: impl Iterator<Item = &'a KeyValue>) -> String {
    let all: BTreeMap<String, String> = attributes
        .map(|one| (one.key.to_string(), one.value.to_string()))
        .collect();
    let is_own = |key: &str| {
        let prefixes = ["code.", "thread.", "busy_ns", "idle_ns", "target"];
        !prefixes.iter().any(|prefix| key.starts_with(prefix))
    };
    let own = all.iter().filter(|(key, _)| is_own(key));
    let own = own.map(|(key, value)| format!("{key}={}", normalised(key, value)));
    own.collect::<Vec<_>>().join(" ")
}

/// Returns the spans of messages as text: kind, name, parent, status and attributes.
fn describe(spans: &[SpanData]) -> String {
    let mut operations: Vec<&SpanData> = spans
        .iter()
        .filter(|span| !attribute(span, "mcp.method.name").is_empty())
        .filter(|span| span.span_kind != SpanKind::Internal && span.name != "POST")
        .filter(|span| !["GET", "DELETE"].contains(&&*span.name))
        .collect();
    // Each sent message before the received one, whenever that was handled.
    let sent = |span: &SpanData| {
        let of_parent = |other: &&SpanData| other.span_context.span_id() == span.parent_span_id;
        let parent = spans.iter().find(of_parent);
        let parent = parent.filter(|_| span.parent_span_is_remote);
        parent.unwrap_or(span).start_time
    };
    operations.sort_by_key(|span| (sent(span), span.span_kind == SpanKind::Server));
    let mut text = String::new();
    for span in operations {
        let of_parent = |other: &&SpanData| other.span_context.span_id() == span.parent_span_id;
        let parent = match spans.iter().find(of_parent) {
            _ if span.parent_span_id == SpanId::INVALID => "-".to_owned(),
            Some(parent) => {
                assert_eq!(
                    parent.span_context.trace_id(),
                    span.span_context.trace_id(),
                    "one trace"
                );
                let place = if span.parent_span_is_remote {
                    "remote"
                } else {
                    "local"
                };
                format!("{place} {:?} {}", parent.span_kind, parent.name)
            }
            None => "unknown".to_owned(),
        };
        let status = match &span.status {
            Status::Unset => "",
            Status::Error { description } if description.is_empty() => " ERROR",
            other => panic!("{other:?}"),
        };
        let attributes = line_of(span.attributes.iter());
        let (kind, name) = (&span.span_kind, &span.name);
        writeln!(text, "{kind:?} {name} < {parent}{status}\n  {attributes}").expect("written");
    }
    text
}

/// Runs a case, and checks its spans.
async fn check(carrier: Carrier, revision: &str, expected: Expect) {
    let exporter = export_spans();
    run(carrier, revision).await;
    let spans = exporter.get_finished_spans().expect("exported");
    let text = describe(&spans);
    assert!(!format!("{spans:?}").contains("hunter2"), "no secrets");
    let mut received = text
        .lines()
        .filter(|line| line.starts_with("Server"))
        .filter_map(|line| line.split(" < ").next());
    assert!(
        !received.any(|line| line.contains("invented")),
        "no invented names"
    );
    expected.assert_eq(&text);
}

/// On a duplex connection with a handshake, both sides have a span for each message, in one trace by `_meta`.
#[tokio::test]
async fn session_in_memory_has_spans() {
    check(Carrier::Memory, "2025-11-25", expect![[r#"
        Client initialize < -
          jsonrpc.request.id=1 mcp.method.name=initialize mcp.protocol.version=2025-11-25
        Server initialize < remote Client initialize
          jsonrpc.request.id=1 mcp.method.name=initialize mcp.protocol.version=2025-11-25
        Client notifications/initialized < local Internal connection
          mcp.method.name=notifications/initialized mcp.protocol.version=2025-11-25
        Server notifications/initialized < remote Client notifications/initialized
          mcp.method.name=notifications/initialized mcp.protocol.version=2025-11-25
        Client tools/call echo < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=echo jsonrpc.request.id=2 mcp.method.name=tools/call mcp.protocol.version=2025-11-25
        Server tools/call echo < remote Client tools/call echo
          gen_ai.operation.name=execute_tool gen_ai.tool.name=echo jsonrpc.request.id=2 mcp.method.name=tools/call mcp.protocol.version=2025-11-25
        Client tools/call fail < local Internal program ERROR
          error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2025-11-25
        Server tools/call fail < remote Client tools/call fail ERROR
          error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2025-11-25
        Client tools/call invented < local Internal program ERROR
          error.type=-32602 gen_ai.operation.name=execute_tool gen_ai.tool.name=invented jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 rpc.response.status_code=-32602
        Server tools/call < remote Client tools/call invented ERROR
          error.type=-32602 gen_ai.operation.name=execute_tool jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 rpc.response.status_code=-32602
        Client tools/call ask < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2025-11-25
        Server tools/call ask < remote Client tools/call ask
          gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2025-11-25
        Client roots/list < local Server tools/call ask
          jsonrpc.request.id=1 mcp.method.name=roots/list mcp.protocol.version=2025-11-25
        Server roots/list < remote Client roots/list
          jsonrpc.request.id=1 mcp.method.name=roots/list mcp.protocol.version=2025-11-25
        Client prompts/get greet < local Internal program
          gen_ai.prompt.name=greet jsonrpc.request.id=6 mcp.method.name=prompts/get mcp.protocol.version=2025-11-25
        Server prompts/get greet < remote Client prompts/get greet
          gen_ai.prompt.name=greet jsonrpc.request.id=6 mcp.method.name=prompts/get mcp.protocol.version=2025-11-25
        Client resources/read < local Internal program ERROR
          error.type=-32002 jsonrpc.request.id=7 mcp.method.name=resources/read mcp.protocol.version=2025-11-25 mcp.resource.uri=file://host/a rpc.response.status_code=-32002
        Server resources/read < remote Client resources/read ERROR
          error.type=-32002 jsonrpc.request.id=7 mcp.method.name=resources/read mcp.protocol.version=2025-11-25 mcp.resource.uri=file://host/a rpc.response.status_code=-32002
        Client notifications/roots/list_changed < local Internal program
          mcp.method.name=notifications/roots/list_changed mcp.protocol.version=2025-11-25
        Server notifications/roots/list_changed < remote Client notifications/roots/list_changed
          mcp.method.name=notifications/roots/list_changed mcp.protocol.version=2025-11-25
        Client ping < local Internal program
          jsonrpc.request.id=8 mcp.method.name=ping mcp.protocol.version=2025-11-25
        Server ping < remote Client ping
          jsonrpc.request.id=8 mcp.method.name=ping mcp.protocol.version=2025-11-25
    "#]]).await;
}

/// So has a duplex connection without a handshake.
#[tokio::test]
async fn requests_without_session_have_spans() {
    check(Carrier::Memory, "2026-07-28", expect![[r#"
        Client server/discover < -
          jsonrpc.request.id=1 mcp.method.name=server/discover mcp.protocol.version=2026-07-28
        Server server/discover < remote Client server/discover
          jsonrpc.request.id=1 mcp.method.name=server/discover mcp.protocol.version=2026-07-28
        Client tools/call echo < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=echo jsonrpc.request.id=2 mcp.method.name=tools/call mcp.protocol.version=2026-07-28
        Server tools/call echo < remote Client tools/call echo
          gen_ai.operation.name=execute_tool gen_ai.tool.name=echo jsonrpc.request.id=2 mcp.method.name=tools/call mcp.protocol.version=2026-07-28
        Client tools/call fail < local Internal program ERROR
          error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28
        Server tools/call fail < remote Client tools/call fail ERROR
          error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28
        Client tools/call invented < local Internal program ERROR
          error.type=-32602 gen_ai.operation.name=execute_tool gen_ai.tool.name=invented jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 rpc.response.status_code=-32602
        Server tools/call < remote Client tools/call invented ERROR
          error.type=-32602 gen_ai.operation.name=execute_tool jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 rpc.response.status_code=-32602
        Client tools/call ask < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2026-07-28
        Server tools/call ask < remote Client tools/call ask
          gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2026-07-28
        Client tools/call ask < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=6 mcp.method.name=tools/call mcp.protocol.version=2026-07-28
        Server tools/call ask < remote Client tools/call ask
          gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=6 mcp.method.name=tools/call mcp.protocol.version=2026-07-28
        Client prompts/get greet < local Internal program
          gen_ai.prompt.name=greet jsonrpc.request.id=7 mcp.method.name=prompts/get mcp.protocol.version=2026-07-28
        Server prompts/get greet < remote Client prompts/get greet
          gen_ai.prompt.name=greet jsonrpc.request.id=7 mcp.method.name=prompts/get mcp.protocol.version=2026-07-28
        Client resources/read < local Internal program ERROR
          error.type=-32602 jsonrpc.request.id=8 mcp.method.name=resources/read mcp.protocol.version=2026-07-28 mcp.resource.uri=file://host/a rpc.response.status_code=-32602
        Server resources/read < remote Client resources/read ERROR
          error.type=-32602 jsonrpc.request.id=8 mcp.method.name=resources/read mcp.protocol.version=2026-07-28 mcp.resource.uri=file://host/a rpc.response.status_code=-32602
    "#]]).await;
}

/// Over HTTP, spans name the session, HTTP and the addresses.
#[tokio::test]
async fn session_over_http_has_spans() {
    check(Carrier::Http, "2025-11-25", expect![[r#"
        Client initialize < -
          jsonrpc.request.id=1 mcp.method.name=initialize mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server initialize < remote Client initialize
          client.address=127.0.0.1 client.port=PORT jsonrpc.request.id=1 mcp.method.name=initialize mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client notifications/initialized < -
          mcp.method.name=notifications/initialized mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server notifications/initialized < remote Client notifications/initialized
          client.address=127.0.0.1 client.port=PORT mcp.method.name=notifications/initialized mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client tools/call echo < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=echo jsonrpc.request.id=2 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server tools/call echo < remote Client tools/call echo
          client.address=127.0.0.1 client.port=PORT gen_ai.operation.name=execute_tool gen_ai.tool.name=echo jsonrpc.request.id=2 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client tools/call fail < local Internal program ERROR
          error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server tools/call fail < remote Client tools/call fail ERROR
          client.address=127.0.0.1 client.port=PORT error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client tools/call invented < local Internal program ERROR
          error.type=-32602 gen_ai.operation.name=execute_tool gen_ai.tool.name=invented jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602 server.address=127.0.0.1 server.port=PORT
        Server tools/call < remote Client tools/call invented ERROR
          client.address=127.0.0.1 client.port=PORT error.type=-32602 gen_ai.operation.name=execute_tool jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602
        Client tools/call ask < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server tools/call ask < remote Client tools/call ask
          client.address=127.0.0.1 client.port=PORT gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client roots/list < local Server tools/call ask
          jsonrpc.request.id=1 mcp.method.name=roots/list mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Server roots/list < remote Client roots/list
          jsonrpc.request.id=1 mcp.method.name=roots/list mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client prompts/get greet < local Internal program
          gen_ai.prompt.name=greet jsonrpc.request.id=6 mcp.method.name=prompts/get mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server prompts/get greet < remote Client prompts/get greet
          client.address=127.0.0.1 client.port=PORT gen_ai.prompt.name=greet jsonrpc.request.id=6 mcp.method.name=prompts/get mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client resources/read < local Internal program ERROR
          error.type=-32002 jsonrpc.request.id=7 mcp.method.name=resources/read mcp.protocol.version=2025-11-25 mcp.resource.uri=file://host/a mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32002 server.address=127.0.0.1 server.port=PORT
        Server resources/read < remote Client resources/read ERROR
          client.address=127.0.0.1 client.port=PORT error.type=-32002 jsonrpc.request.id=7 mcp.method.name=resources/read mcp.protocol.version=2025-11-25 mcp.resource.uri=file://host/a mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32002
        Client notifications/roots/list_changed < local Internal program
          mcp.method.name=notifications/roots/list_changed mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server notifications/roots/list_changed < remote Client notifications/roots/list_changed
          client.address=127.0.0.1 client.port=PORT mcp.method.name=notifications/roots/list_changed mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client ping < local Internal program
          jsonrpc.request.id=8 mcp.method.name=ping mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server ping < remote Client ping
          client.address=127.0.0.1 client.port=PORT jsonrpc.request.id=8 mcp.method.name=ping mcp.protocol.version=2025-11-25 mcp.session.id=DIGEST network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
    "#]]).await;
}

/// So they do without a session.
#[tokio::test]
async fn stateless_http_has_spans() {
    check(Carrier::Http, "2026-07-28", expect![[r#"
        Client server/discover < -
          jsonrpc.request.id=1 mcp.method.name=server/discover mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server server/discover < remote Client server/discover
          client.address=127.0.0.1 client.port=PORT jsonrpc.request.id=1 mcp.method.name=server/discover mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client tools/call echo < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=echo jsonrpc.request.id=2 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server tools/call echo < remote Client tools/call echo
          client.address=127.0.0.1 client.port=PORT gen_ai.operation.name=execute_tool gen_ai.tool.name=echo jsonrpc.request.id=2 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client tools/call fail < local Internal program ERROR
          error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server tools/call fail < remote Client tools/call fail ERROR
          client.address=127.0.0.1 client.port=PORT error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client tools/call invented < local Internal program ERROR
          error.type=-32602 gen_ai.operation.name=execute_tool gen_ai.tool.name=invented jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602 server.address=127.0.0.1 server.port=PORT
        Server tools/call < remote Client tools/call invented ERROR
          client.address=127.0.0.1 client.port=PORT error.type=-32602 gen_ai.operation.name=execute_tool jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602
        Client tools/call ask < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server tools/call ask < remote Client tools/call ask
          client.address=127.0.0.1 client.port=PORT gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client tools/call ask < local Internal program
          gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=6 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server tools/call ask < remote Client tools/call ask
          client.address=127.0.0.1 client.port=PORT gen_ai.operation.name=execute_tool gen_ai.tool.name=ask jsonrpc.request.id=6 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client prompts/get greet < local Internal program
          gen_ai.prompt.name=greet jsonrpc.request.id=7 mcp.method.name=prompts/get mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        Server prompts/get greet < remote Client prompts/get greet
          client.address=127.0.0.1 client.port=PORT gen_ai.prompt.name=greet jsonrpc.request.id=7 mcp.method.name=prompts/get mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        Client resources/read < local Internal program ERROR
          error.type=-32602 jsonrpc.request.id=8 mcp.method.name=resources/read mcp.protocol.version=2026-07-28 mcp.resource.uri=file://host/a network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602 server.address=127.0.0.1 server.port=PORT
        Server resources/read < remote Client resources/read ERROR
          client.address=127.0.0.1 client.port=PORT error.type=-32602 jsonrpc.request.id=8 mcp.method.name=resources/read mcp.protocol.version=2026-07-28 mcp.resource.uri=file://host/a network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602
    "#]]).await;
}

/// Starts to record durations; returns their reader.
fn record_durations() -> (SdkMeterProvider, InMemoryMetricExporter) {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    telemetry::export_durations(&provider.meter("test"));
    (provider, exporter)
}

/// Returns all points of all histograms as lines: instrument, count and attributes.
fn describe_points(provider: &SdkMeterProvider, exporter: &InMemoryMetricExporter) -> String {
    provider.force_flush().expect("collected");
    let finished = exporter.get_finished_metrics().expect("exported");
    let last = finished.last().expect("collected");
    let metrics = last.scope_metrics().flat_map(|scope| scope.metrics());
    let mut lines = Vec::new();
    for metric in metrics {
        let AggregatedMetrics::F64(MetricData::Histogram(histogram)) = metric.data() else {
            panic!("{} is not a histogram", metric.name());
        };
        assert_eq!(metric.unit(), "s");
        for point in histogram.data_points() {
            let bounds: Vec<f64> = point.bounds().collect();
            let expected = [
                0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0,
            ];
            assert_eq!(bounds, expected);
            let (name, count) = (metric.name(), point.count());
            lines.push(format!("{name} {count} {}\n", line_of(point.attributes())));
        }
    }
    lines.sort();
    lines.concat()
}

/// The durations of operations and sessions have few attributes: no ids, URIs or invented names.
#[tokio::test]
async fn durations_are_recorded() {
    export_spans();
    let (provider, exporter) = record_durations();
    run(Carrier::Http, "2025-11-25").await;
    expect![[r#"
        mcp.client.operation.duration 1 error.type=-32002 mcp.method.name=resources/read mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32002 server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 error.type=-32602 gen_ai.operation.name=execute_tool gen_ai.tool.name=invented mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602 server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 gen_ai.operation.name=execute_tool gen_ai.tool.name=ask mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 gen_ai.operation.name=execute_tool gen_ai.tool.name=echo mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 gen_ai.prompt.name=greet mcp.method.name=prompts/get mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 mcp.method.name=initialize mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 mcp.method.name=notifications/initialized mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 mcp.method.name=notifications/roots/list_changed mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 mcp.method.name=ping mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        mcp.client.operation.duration 1 mcp.method.name=roots/list mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.client.session.duration 1 mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp server.address=127.0.0.1 server.port=PORT
        mcp.server.operation.duration 1 error.type=-32002 mcp.method.name=resources/read mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32002
        mcp.server.operation.duration 1 error.type=-32602 gen_ai.operation.name=execute_tool mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602
        mcp.server.operation.duration 1 error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=fail mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 gen_ai.operation.name=execute_tool gen_ai.tool.name=ask mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 gen_ai.operation.name=execute_tool gen_ai.tool.name=echo mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 gen_ai.prompt.name=greet mcp.method.name=prompts/get mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 mcp.method.name=initialize mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 mcp.method.name=notifications/initialized mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 mcp.method.name=notifications/roots/list_changed mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 mcp.method.name=ping mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 mcp.method.name=roots/list mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.session.duration 1 mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
    "#]].assert_eq(&describe_points(&provider, &exporter));
}

/// Methods and names that clients invent have no part in names of spans and in attributes of metrics.
#[tokio::test]
async fn invented_names_are_left_out() {
    let spans = export_spans();
    let (provider, exporter) = record_durations();
    let server = mcp_exact_tests_transport::http::TestServer::start(HttpServerOptions::default());
    let server = server.await;
    let session = server.begin().await;
    for number in 0..3 {
        let tool = mcp_exact_tests_transport::http::call(number, &format!("invented{number}"), "");
        let method = format!(r#"{{"jsonrpc":"2.0","id":1{number},"method":"invented/{number}"}}"#);
        let note = format!(r#"{{"jsonrpc":"2.0","method":"notifications/invented{number}"}}"#);
        for body in [tool, method, note] {
            let headers = [("Mcp-Session-Id", &*session)];
            server.send("POST", &headers, &body).await;
        }
    }
    drop(server);
    let points = describe_points(&provider, &exporter);
    let points: Vec<&str> = points
        .lines()
        .filter(|line| line.starts_with("mcp.server.operation.duration"))
        .collect();
    expect![[r#"
        mcp.server.operation.duration 1 mcp.method.name=initialize mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 mcp.method.name=notifications/initialized mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 3 error.type=-32601 mcp.method.name=_OTHER mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32601
        mcp.server.operation.duration 3 error.type=-32602 gen_ai.operation.name=execute_tool mcp.method.name=tools/call mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602
        mcp.server.operation.duration 3 mcp.method.name=_OTHER mcp.protocol.version=2025-11-25 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp"#]].assert_eq(&points.join("\n"));
    let spans = spans.get_finished_spans().expect("exported");
    assert!(!describe(&spans).contains("invented"));
}

/// The caller's own trace context takes the place of the current one, on every revision.
#[tokio::test]
async fn caller_states_a_trace() {
    for revision in REVISIONS {
        let exporter = export_spans();
        let (near, far) = memory_pair(1 << 16, 4 << 20);
        let options = ConnectionOptions::default();
        let serving = serve(settings(), Arc::new(handle), far, options, pending());
        let server = tokio::spawn(serving);
        let answer = Arc::new(echo::answer);
        let (client, driver) =
            connect(echo::client_settings(revision), None, answer, near, options);
        client.ready().await.expect("connected");
        let trace = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
        let options = CallOptions {
            trace: mcp_exact_session::TraceContext::new(trace),
            ..CallOptions::default()
        };
        let request = client.request("tools/call", call_params("echo", ""), options, None);
        request.expect("sent").await;
        client.close();
        driver.await.expect("driver");
        server.await.expect("task").expect("clean end");
        let spans = exporter.get_finished_spans().expect("exported");
        let ours = super::find(&spans, "tools/call echo", SpanKind::Client);
        let theirs = super::find(&spans, "tools/call echo", SpanKind::Server);
        assert_eq!(ours.parent_span_id.to_string(), "00f067aa0ba902b7");
        assert_eq!(theirs.parent_span_id, ours.span_context.span_id());
        let trace_id = theirs.span_context.trace_id().to_string();
        assert!(trace.contains(&trace_id), "{revision}");
    }
}
