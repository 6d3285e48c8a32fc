//! Traces and metrics of `mcp-exact bridge` that a collector of OpenTelemetry receives by OTLP over HTTP.

mod picture;
mod trace;

use std::process::Stdio;
use std::sync::{Arc, Mutex};

use http::{HeaderName, HeaderValue};
use mcp_exact::transport::http::client::HttpEndpoint;
use mcp_exact::transport::http::server::{HttpListener, HttpServerOptions};
use mcp_exact::{Client, Cx, Error, Server, TraceContext};
use opentelemetry_proto::tonic::collector::metrics::v1::ExportMetricsServiceRequest;
use opentelemetry_proto::tonic::collector::trace::v1::ExportTraceServiceRequest;
use opentelemetry_proto::tonic::metrics::v1::metric::Data;
use opentelemetry_proto::tonic::trace::v1::Span;
use opentelemetry_proto::tonic::trace::v1::span::SpanKind;
use prost::Message as _;
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::process::{Child, Command};

/// Id of the trace that the test as the caller sends, in hexadecimal.
const TRACE_ID: &str = "0af7651916cd43dd8448eb211c80319c";
/// Id of the caller's span, which is the parent of the bridge's spans, in hexadecimal.
const CALLER: &str = "00f067aa0ba902b7";

/// Collector of OpenTelemetry that stores all requests.
#[derive(Clone, Default)]
struct Collector {
    traces: Arc<Mutex<Vec<ExportTraceServiceRequest>>>,
    metrics: Arc<Mutex<Vec<ExportMetricsServiceRequest>>>,
}

impl Collector {
    /// Starts to accept connections in a task; returns the URL of the collector.
    async fn start(&self) -> String {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
        let address = listener.local_addr().expect("an address");
        let collector = self.clone();
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                tokio::spawn(collector.clone().serve_stream(stream));
            }
        });
        format!("http://{address}")
    }

    /// Reads and stores the requests of one connection.
    async fn serve_stream(self, stream: TcpStream) {
        let mut stream = BufReader::new(stream);
        loop {
            let (mut head, mut length) = (String::new(), 0);
            while !head.ends_with("\r\n\r\n") {
                let from = head.len();
                if stream.read_line(&mut head).await.expect("text") == 0 {
                    return;
                }
                let line = head[from..].to_ascii_lowercase();
                if let Some(value) = line.strip_prefix("content-length:") {
                    length = value.trim().parse().expect("a number");
                }
            }
            let mut body = vec![0; length];
            stream.read_exact(&mut body).await.expect("a body");
            if head.starts_with("POST /v1/traces ") {
                let request = ExportTraceServiceRequest::decode(&body[..]).expect("a request");
                self.traces.lock().expect("a lock").push(request);
            } else {
                assert!(head.starts_with("POST /v1/metrics "), "{head}");
                let request = ExportMetricsServiceRequest::decode(&body[..]).expect("a request");
                self.metrics.lock().expect("a lock").push(request);
            }
            let response = b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
            stream.write_all(response).await.expect("sent");
        }
    }

    /// Returns all received spans, and the service names of all received resources.
    fn received_spans(&self) -> (Vec<Span>, Vec<String>) {
        let requests = self.traces.lock().expect("a lock");
        let resources = requests.iter().flat_map(|request| &request.resource_spans);
        let (mut spans, mut services) = (Vec::new(), Vec::new());
        for resource in resources {
            let scopes = resource.scope_spans.iter();
            spans.extend(scopes.flat_map(|scope| scope.spans.clone()));
            let attributes = resource.resource.iter().flat_map(|of| &of.attributes);
            let names = attributes.filter(|attribute| attribute.key == "service.name");
            services.extend(names.map(|name| format!("{:?}", name.value)));
        }
        (spans, services)
    }

    /// Returns the last point of each histogram as a line: the instrument, the count, and attributes without addresses.
    fn received_durations(&self) -> Vec<String> {
        let requests = self.metrics.lock().expect("a lock");
        let Some(last) = requests.last() else {
            return Vec::new();
        };
        let scopes = last
            .resource_metrics
            .iter()
            .flat_map(|of| &of.scope_metrics);
        let mut lines = Vec::new();
        for metric in scopes.flat_map(|scope| &scope.metrics) {
            let Some(Data::Histogram(histogram)) = &metric.data else {
                continue;
            };
            for point in &histogram.data_points {
                let attributes = trace::line_of(&point.attributes);
                lines.push(format!("{} {} {attributes}", metric.name, point.count));
            }
        }
        lines.sort();
        lines
    }
}

/// Starts an HTTP server whose tool `trace` returns the `traceparent` of its request; returns the URL of the server.
async fn start_traced_server() -> String {
    let server = Server::builder("behind", "1.0.0")
        .tool("trace", |cx: Cx| async move {
            let trace = cx.trace_context();
            let trace = trace.map(|trace| trace.traceparent().to_owned());
            Ok::<_, Error>(trace.unwrap_or_default())
        })
        .build()
        .expect("a server");
    let listener = HttpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address");
    let service = server.http(HttpServerOptions::default());
    tokio::spawn(listener.serve(service, std::future::pending()));
    format!("http://{address}/mcp")
}

/// Starts the bridge with further environment variables; returns its process and its URL.
async fn start_bridge(arguments: &[&str], variables: &[(&str, &str)]) -> (Child, String) {
    let mut bridge = Command::new(env!("CARGO_BIN_EXE_mcp-exact"))
        .arg("bridge")
        .args(arguments)
        .env_remove("OTEL_EXPORTER_OTLP_ENDPOINT")
        .env("XDG_DATA_HOME", crate::program::data_folder())
        .envs(variables.iter().copied())
        .stdin(Stdio::null())
        .stderr(Stdio::piped())
        .kill_on_drop(true)
        .spawn()
        .expect("it starts");
    let stderr = bridge.stderr.take().expect("it is piped");
    let (mut stderr, mut words) = (BufReader::new(stderr), String::new());
    while !words.contains("listening at ") {
        let read = stderr.read_line(&mut words).await.expect("text");
        assert!(read > 0, "{words}");
    }
    let (_, url) = words.split_once("listening at ").expect("a URL");
    let url = url.split(',').next().expect("a URL").trim().to_owned();
    tokio::spawn(async move { while let Ok(1..) = stderr.read_line(&mut words).await {} });
    (bridge, url)
}

/// Sends SIGTERM to the bridge, and waits until it exits with code 0.
async fn stop_bridge(mut bridge: Child) {
    let process = bridge.id().expect("it runs").to_string();
    let told = Command::new("kill").args(["-TERM", &process]).status();
    assert!(told.await.expect("kill runs").success());
    let ended = bridge.wait().await.expect("it ends");
    assert_eq!(ended.code(), Some(0));
}

/// Calls a tool with the trace context of the caller in `_meta`; returns the `traceparent` that the server has
/// received.
async fn call_with_meta(url: &str, tool: &str) -> String {
    let client = Client::connect(url).await.expect("a client");
    let parent = TraceContext::new(format!("00-{TRACE_ID}-{CALLER}-01")).expect("a context");
    let trace: String = client
        .call(tool, &())
        .trace_context(parent)
        .await
        .expect("a result");
    client.close();
    trace
}

/// Calls a tool as a 2025-11-25 client with the trace context of the caller in an HTTP header; returns the
/// `traceparent` that the server has received.
async fn call_with_header(url: &str, tool: &str) -> String {
    let revision = mcp_exact::revisions().find(|revision| revision.as_str() == "2025-11-25");
    let value = format!("00-{TRACE_ID}-{CALLER}-01");
    let endpoint = HttpEndpoint::new(url).expect("a URL").header(
        HeaderName::from_static("traceparent"),
        HeaderValue::from_str(&value).expect("a header"),
    );
    let client = Client::http(endpoint).revision(revision.expect("a revision"));
    let client = client.await.expect("a client");
    let trace: String = client.call(tool, &()).await.expect("a result");
    client.close();
    trace
}

/// Returns bytes in hexadecimal digits.
fn to_hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

/// Asserts that `traceparent` names the bridge's span for the relayed call, and that this span descends from the
/// caller's span.
fn check_span(spans: &[Span], traceparent: &str) {
    let of_trace = |span: &&Span| to_hex(&span.trace_id) == TRACE_ID;
    let find = |id: &str| {
        let found = spans.iter().filter(of_trace);
        let mut found = found.filter(|span| to_hex(&span.span_id) == id);
        found
            .next()
            .unwrap_or_else(|| panic!("no span {id} in {spans:#?}"))
    };
    let id = traceparent
        .strip_prefix(&format!("00-{TRACE_ID}-"))
        .expect(traceparent);
    let mut span = find(id.strip_suffix("-01").expect(traceparent));
    assert_eq!(
        (&*span.name, span.kind()),
        ("tools/call trace", SpanKind::Client)
    );
    while to_hex(&span.parent_span_id) != CALLER {
        span = find(&to_hex(&span.parent_span_id));
    }
}

/// A trace context in `_meta` or in a header is continued by the bridge: its spans are exported, and the server
/// receives the context of its span.
///
/// "the keys `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation"
/// (2026-07-28, `basic`, "_meta").
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn traces_pass_through_the_gateway() {
    let (collector, server) = (Collector::default(), start_traced_server().await);
    let url = collector.start().await;
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("bridge.toml");
    let config = format!(
        "listen = \"127.0.0.1:0\"\nlist-within = 60\n[telemetry]\notlp = \"{url}/\"\nservice-name = \"gate\"\n\
         [servers.one]\nurl = \"{server}\"\n"
    );
    std::fs::write(&file, config).expect("a file");
    let file = file.to_str().expect("text");
    let (process, bridge) = start_bridge(&["--config", file], &[]).await;
    let traces = [
        call_with_meta(&bridge, "one__trace").await,
        call_with_header(&bridge, "one__trace").await,
    ];
    stop_bridge(process).await;
    let (spans, services) = collector.received_spans();
    traces.iter().for_each(|trace| check_span(&spans, trace));
    assert!(
        services.iter().all(|name| name.contains("gate")),
        "{services:?}"
    );
}

/// Without a configuration file, the standard environment variables specify the collector and the name of the service.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn environment_names_the_collector() {
    let (collector, server) = (Collector::default(), start_traced_server().await);
    let url = collector.start().await;
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", url.as_str()),
        ("OTEL_SERVICE_NAME", "named-outside"),
    ];
    let arguments = ["--listen", "127.0.0.1:0", &server];
    let (process, bridge) = start_bridge(&arguments, &variables).await;
    let trace = call_with_meta(&bridge, "trace").await;
    stop_bridge(process).await;
    let (spans, services) = collector.received_spans();
    check_span(&spans, &trace);
    assert!(
        !services.is_empty() && services.iter().all(|name| name.contains("named-outside")),
        "{services:?}"
    );
}

/// Without a collector, the bridge relays the trace context of the caller unchanged.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_sent_without_a_collector() {
    let server = start_traced_server().await;
    let (process, bridge) = start_bridge(&["--listen", "127.0.0.1:0", &server], &[]).await;
    let trace = call_with_meta(&bridge, "trace").await;
    stop_bridge(process).await;
    assert_eq!(trace, format!("00-{TRACE_ID}-{CALLER}-01"));
}
