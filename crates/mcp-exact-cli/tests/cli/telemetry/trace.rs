//! One trace through client, gateway and two servers: each message has one span on each side.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use expect_test::expect;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Client, Cx, Error, JsonObject, Server};
use opentelemetry::trace::{SpanKind as OwnKind, Status as OwnStatus, TracerProvider as _};
use opentelemetry_proto::tonic::common::v1::{KeyValue, any_value::Value};
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use opentelemetry_proto::tonic::trace::v1::status::StatusCode;
use opentelemetry_sdk::error::OTelSdkResult;
use opentelemetry_sdk::trace::{SdkTracerProvider, SpanData, SpanExporter};
use tracing::Instrument as _;
use tracing_subscriber::filter::Targets;
use tracing_subscriber::layer::{Layer as _, SubscriberExt as _};

use super::{Arc, Collector, Mutex, picture, start_bridge, stop_bridge};

/// Exporter that stores the spans of this process: those of the client and the servers.
#[derive(Debug, Clone, Default)]
struct OwnSpans(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for OwnSpans {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().expect("a lock").extend(batch);
        Ok(())
    }
}

/// Span of any of the processes.
#[derive(Debug, Clone)]
pub(super) struct Recorded {
    id: String,
    parent: String,
    trace: String,
    /// Process that has recorded the span.
    pub(super) process: &'static str,
    pub(super) kind: &'static str,
    pub(super) name: String,
    pub(super) is_error: bool,
    /// Attributes in a line, without addresses.
    attributes: String,
    /// Begin and end in nanoseconds since 1970.
    pub(super) times: (u64, u64),
    /// Depth in the trace: the number of spans that contain this one.
    pub(super) depth: usize,
}

/// Returns attributes in a line, sorted by their keys, without those that differ from run to run.
pub(super) fn line_of(attributes: &[KeyValue]) -> String {
    let text = |value: &Value| match value {
        Value::StringValue(text) => text.clone(),
        Value::IntValue(number) => number.to_string(),
        other => format!("{other:?}"),
    };
    let attributes = attributes.iter().filter_map(|one| {
        let value = one.value.as_ref()?.value.as_ref()?;
        Some((one.key.clone(), text(value)))
    });
    join(attributes.collect())
}

/// Formats attributes as one line.
fn join(attributes: BTreeMap<String, String>) -> String {
    let left_out = [
        "client.", "code.", "thread.", "busy_ns", "idle_ns", "target", "server.",
    ];
    let own = attributes
        .into_iter()
        .filter(|(key, _)| !left_out.iter().any(|prefix| key.starts_with(prefix)));
    let own = own.map(|(key, value)| format!("{key}={value}"));
    own.collect::<Vec<_>>().join(" ")
}

/// Returns the spans that the collector has received from the gateway.
fn of_gateway(collector: &Collector) -> impl Iterator<Item = Recorded> {
    let (spans, _) = collector.received_spans();
    spans.into_iter().map(|span| Recorded {
        id: super::to_hex(&span.span_id),
        parent: super::to_hex(&span.parent_span_id),
        trace: super::to_hex(&span.trace_id),
        process: "gateway",
        kind: match span.kind() {
            SpanKind::Client => "CLIENT",
            SpanKind::Server => "SERVER",
            _ => "INTERNAL",
        },
        is_error: span
            .status
            .as_ref()
            .is_some_and(|status| status.code() == StatusCode::Error),
        attributes: line_of(&span.attributes),
        times: (span.start_time_unix_nano, span.end_time_unix_nano),
        name: span.name,
        depth: 0,
    })
}

/// Returns the spans of this process.
fn of_this_process(spans: &OwnSpans) -> Vec<Recorded> {
    let nanoseconds = |time: std::time::SystemTime| {
        let since = time
            .duration_since(std::time::UNIX_EPOCH)
            .expect("after 1970");
        u64::try_from(since.as_nanos()).expect("before 2554")
    };
    let spans = spans.0.lock().expect("a lock");
    let spans = spans.iter().map(|span| {
        let attributes = span.attributes.iter();
        let attributes = attributes.map(|one| (one.key.to_string(), one.value.to_string()));
        let has = |key: &str| span.attributes.iter().any(|one| one.key.as_str() == key);
        // Messages that a client receives have no address of a client.
        let has_no = |key: &str| span.span_kind == OwnKind::Server && !has(key);
        Recorded {
            id: span.span_context.span_id().to_string(),
            parent: span.parent_span_id.to_string(),
            trace: span.span_context.trace_id().to_string(),
            process: if has("server.address") || has_no("client.address") {
                "client"
            } else if span.span_kind == OwnKind::Internal {
                "agent"
            } else {
                "server"
            },
            kind: match span.span_kind {
                OwnKind::Server => "SERVER",
                OwnKind::Client => "CLIENT",
                _ => "INTERNAL",
            },
            name: span.name.to_string(),
            is_error: matches!(span.status, OwnStatus::Error { .. }),
            attributes: join(attributes.collect()),
            times: (nanoseconds(span.start_time), nanoseconds(span.end_time)),
            depth: 0,
        }
    });
    spans.collect()
}

/// Returns the spans of the trace below the span `parent`, each before those below it, in the order of their begin.
fn in_order(all: &[Recorded], parent: &Recorded) -> Vec<Recorded> {
    let mut spans = vec![parent.clone()];
    let mut below: Vec<Recorded> = all
        .iter()
        .filter(|span| span.trace == parent.trace && span.parent == parent.id)
        .cloned()
        .collect();
    // Requests of one name may be sent at the same time.
    let begin = |name: &str| {
        let same = all.iter().filter(|span| span.parent == parent.id);
        let same = same.filter(|span| span.name == name);
        same.map(|span| span.times.0).min()
    };
    below.sort_by_cached_key(|span| (begin(&span.name), span.attributes.clone()));
    for mut span in below {
        span.depth = parent.depth + 1;
        spans.extend(in_order(all, &span));
    }
    spans
}

/// Starts an HTTP server; returns its URL.
async fn start(server: Server) -> String {
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    tokio::spawn(listener.serve(service, std::future::pending()));
    format!("http://{address}/mcp")
}

/// Starts the two servers; returns their URLs.
async fn start_servers() -> [String; 2] {
    let files = Server::builder("files", "1.0.0")
        .tool("read", || async { "the text" })
        .build();
    let mail = Server::builder("mail", "1.0.0")
        .tool("send", |cx: Cx| async move {
            cx.progress(1, 2)?;
            Err::<String, Error>(Error::msg("there is no such address"))
        })
        .build();
    [
        start(files.expect("a server")).await,
        start(mail.expect("a server")).await,
    ]
}

/// A call through the gateway is one trace: the gateway has a `SERVER` span for the message that it receives, and below it
/// a `CLIENT` span for the message that it sends on. What was recorded is the picture of the book.
#[tokio::test]
async fn gateway_with_two_servers_is_one_trace() {
    let own = OwnSpans::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(own.clone())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let info = tracing::Level::INFO;
    let targets = Targets::new().with_targets([("mcp_exact", info), ("cli", info)]);
    let subscriber = tracing_subscriber::registry().with(layer.with_filter(targets));
    // With a second subscriber, all are asked about a span that another thread makes first: it cannot switch it off.
    let _second = tracing::Dispatch::new(tracing::subscriber::NoSubscriber::new());
    let subscribed = tracing::subscriber::set_default(subscriber);
    let collector = Collector::default();
    let (url, [files, mail]) = (collector.start().await, start_servers().await);
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bridge.toml");
    let config = format!(
        "listen = \"127.0.0.1:0\"\nlist-within = 60\n[telemetry]\notlp = \"{url}\"\n\
         [servers.files]\nurl = \"{files}\"\n[servers.mail]\nurl = \"{mail}\"\n"
    );
    std::fs::write(&file, config).expect("a file");
    let arguments = ["--config", file.to_str().expect("text")];
    let (process, bridge) = start_bridge(&arguments, &[]).await;
    let client = Client::connect(&bridge).await.expect("a client");
    client.tools().all().await.expect("a list");
    let calls = async {
        let text: String = client.call("files__read", &()).await.expect("a text");
        assert_eq!(text, "the text");
        let sent = client.call::<_, String>("mail__send", &());
        let sent = sent.on_progress(|_| {}).await;
        assert!(sent.is_err());
        let params: JsonObject = r#"{"name":"invented"}"#.parse().expect("an object");
        let unknown = client.request("tools/call", Some(params)).await;
        assert!(unknown.is_err());
    };
    // A test beside this one, without a subscriber, may have switched spans off for all threads.
    tracing::callsite::rebuild_interest_cache();
    calls.instrument(tracing::info_span!("agent")).await;
    client.close();
    stop_bridge(process).await;
    drop(subscribed);
    let mut all = of_this_process(&own);
    all.extend(of_gateway(&collector));
    let root = all.iter().find(|span| span.name == "agent");
    let trace = in_order(&all, root.expect("a root"));
    check_trace(&trace);
    picture::check(&trace);
    let durations = collector.received_durations();
    let calls = durations
        .iter()
        .filter(|line| line.contains("tools/call") || line.contains("progress"));
    expect![[r#"
        mcp.client.operation.duration 1 error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=send mcp.method.name=tools/call mcp.protocol.version=2026-07-28 mcp_exact.server=mail network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.client.operation.duration 1 gen_ai.operation.name=execute_tool gen_ai.tool.name=read mcp.method.name=tools/call mcp.protocol.version=2026-07-28 mcp_exact.server=files network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.client.operation.duration 1 mcp.method.name=notifications/progress mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 error.type=-32602 gen_ai.operation.name=execute_tool mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602
        mcp.server.operation.duration 1 error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=mail__send mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 gen_ai.operation.name=execute_tool gen_ai.tool.name=files__read mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
        mcp.server.operation.duration 1 mcp.method.name=notifications/progress mcp.protocol.version=2026-07-28 mcp_exact.server=mail network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
    "#]].assert_eq(&calls.map(|line| format!("{line}\n")).collect::<String>());
}

/// Compares the spans with the expected ones.
fn check_trace(trace: &[Recorded]) {
    let mut text = String::new();
    for span in trace {
        let indent = "  ".repeat(span.depth);
        let error = if span.is_error { " ERROR" } else { "" };
        let (process, kind, name) = (span.process, span.kind, &span.name);
        writeln!(text, "{indent}{process} {kind} {name}{error}").expect("written");
        if !span.attributes.is_empty() {
            writeln!(text, "{indent}    {}", span.attributes).expect("written");
        }
    }
    expect![[r#"
        agent INTERNAL agent
          client CLIENT tools/call files__read
              gen_ai.operation.name=execute_tool gen_ai.tool.name=files__read jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
            gateway SERVER tools/call files__read
                gen_ai.operation.name=execute_tool gen_ai.tool.name=files__read jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
              gateway CLIENT tools/call read
                  gen_ai.operation.name=execute_tool gen_ai.tool.name=read jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 mcp_exact.server=files network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
                server SERVER tools/call read
                    gen_ai.operation.name=execute_tool gen_ai.tool.name=read jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
          client CLIENT tools/call mail__send ERROR
              error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=mail__send jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
            gateway SERVER tools/call mail__send ERROR
                error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=mail__send jsonrpc.request.id=4 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
              gateway CLIENT tools/call send ERROR
                  error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=send jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 mcp_exact.server=mail network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
                server SERVER tools/call send ERROR
                    error.type=tool_error gen_ai.operation.name=execute_tool gen_ai.tool.name=send jsonrpc.request.id=3 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
                  server CLIENT notifications/progress
                      mcp.method.name=notifications/progress mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
                    gateway SERVER notifications/progress
                        mcp.method.name=notifications/progress mcp.protocol.version=2026-07-28 mcp_exact.server=mail network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
                      gateway CLIENT notifications/progress
                          mcp.method.name=notifications/progress mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
                        client SERVER notifications/progress
                            mcp.method.name=notifications/progress mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
          client CLIENT tools/call invented ERROR
              error.type=-32602 gen_ai.operation.name=execute_tool gen_ai.tool.name=invented jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602
            gateway SERVER tools/call ERROR
                error.type=-32602 gen_ai.operation.name=execute_tool jsonrpc.request.id=5 mcp.method.name=tools/call mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp rpc.response.status_code=-32602
              gateway CLIENT tools/list
                  jsonrpc.request.id=4 mcp.method.name=tools/list mcp.protocol.version=2026-07-28 mcp_exact.server=files network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
                server SERVER tools/list
                    jsonrpc.request.id=4 mcp.method.name=tools/list mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
              gateway CLIENT tools/list
                  jsonrpc.request.id=4 mcp.method.name=tools/list mcp.protocol.version=2026-07-28 mcp_exact.server=mail network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
                server SERVER tools/list
                    jsonrpc.request.id=4 mcp.method.name=tools/list mcp.protocol.version=2026-07-28 network.protocol.name=http network.protocol.version=1.1 network.transport=tcp
    "#]]
    .assert_eq(&text);
}
