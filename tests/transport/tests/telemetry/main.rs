//! Data for OpenTelemetry exporters: the metrics of a service, and spans that continue the traces of clients.

mod operations;

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};

use mcp_exact_transport::http::server::HttpServerOptions;
use mcp_exact_transport::telemetry;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::{SpanId, SpanKind, TracerProvider as _};
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use opentelemetry_sdk::trace::{InMemorySpanExporter, SdkTracerProvider, SpanData};
use tracing_subscriber::layer::SubscriberExt as _;

use mcp_exact_tests_transport::echo;
use mcp_exact_tests_transport::http::{INITIALIZE, TestServer, stateless_call};

/// Collects all instruments; returns the sum of the values of each instrument, by its name.
fn collect_sums(
    provider: &SdkMeterProvider,
    exporter: &InMemoryMetricExporter,
) -> BTreeMap<String, i64> {
    exporter.reset();
    provider.force_flush().expect("collected");
    let mut sums = BTreeMap::new();
    let finished = exporter.get_finished_metrics().expect("exported");
    let scopes = finished.iter().flat_map(|all| all.scope_metrics());
    for metric in scopes.flat_map(|scope| scope.metrics()) {
        let sum = match metric.data() {
            AggregatedMetrics::U64(MetricData::Sum(sum)) => {
                let sum: u64 = sum.data_points().map(|point| point.value()).sum();
                i64::try_from(sum).expect("a small number")
            }
            AggregatedMetrics::I64(MetricData::Sum(sum)) => {
                sum.data_points().map(|point| point.value()).sum()
            }
            other => panic!("{} is not a sum: {other:?}", metric.name()),
        };
        sums.insert(metric.name().to_owned(), sum);
    }
    sums
}

/// The OpenTelemetry instruments of a service report its requests, errors and bytes.
#[tokio::test]
async fn instruments_report_the_service() {
    export_spans();
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    let server = TestServer::start(HttpServerOptions::default()).await;
    telemetry::export_metrics(&server.service, &provider.meter("test"));
    let begun = server.send("POST", &[], INITIALIZE).await;
    let refused = server
        .send("POST", &[("Origin", "http://evil.example")], "{}")
        .await;
    let sent = begun.body.len() + refused.body.len();
    let number = |bytes: usize| i64::try_from(bytes).expect("a small number");
    let expected = [
        ("mcp_exact.http.errors", 1),
        ("mcp_exact.http.received", number(INITIALIZE.len())),
        ("mcp_exact.http.requests", 2),
        ("mcp_exact.http.sent", number(sent)),
        ("mcp_exact.http.queued", 0),
        ("mcp_exact.http.requests.in_flight", 0),
        ("mcp_exact.http.sessions", 1),
    ];
    let expected = expected.map(|(name, value)| (name.to_owned(), value));
    assert_eq!(collect_sums(&provider, &exporter), BTreeMap::from(expected));
    server.service.end_sessions();
    assert_eq!(
        collect_sums(&provider, &exporter)["mcp_exact.http.sessions"],
        0
    );
}

/// Exporter of the spans of all threads, with the mutex that serialises the tests.
///
/// The `tracing` subscriber is global, because `tracing` caches for each call site if a subscriber is interested, and
/// may query the subscriber of another thread.
static SPANS: LazyLock<(InMemorySpanExporter, Mutex<()>)> = LazyLock::new(|| {
    let exporter = InMemorySpanExporter::default();
    let provider = SdkTracerProvider::builder()
        .with_simple_exporter(exporter.clone())
        .build();
    let layer = tracing_opentelemetry::layer().with_tracer(provider.tracer("test"));
    let subscriber = tracing_subscriber::registry().with(layer).with(StderrLines);
    tracing::subscriber::set_global_default(subscriber).expect("no other subscriber");
    (exporter, Mutex::default())
});

/// Logged lines of the standard error of child processes.
static STDERR_LINES: Mutex<Vec<String>> = Mutex::new(Vec::new());

/// Layer that collects the logged lines of child processes in [`STDERR_LINES`].
struct StderrLines;

impl<S: tracing::Subscriber> tracing_subscriber::Layer<S> for StderrLines {
    fn on_event(&self, event: &tracing::Event<'_>, _: tracing_subscriber::layer::Context<'_, S>) {
        /// Text of the field `message` of a log event.
        struct Message(String);

        impl tracing::field::Visit for Message {
            fn record_debug(&mut self, field: &tracing::field::Field, value: &dyn std::fmt::Debug) {
                if field.name() == "message" {
                    self.0 = format!("{value:?}");
                }
            }
        }

        if event.metadata().target() == "mcp_exact_transport::stderr" {
            let mut message = Message(String::new());
            event.record(&mut message);
            STDERR_LINES.lock().expect("not poisoned").push(message.0);
        }
    }
}

/// "The client MAY capture the server's `stderr` output" (`basic/transports`, "stdio"): without a callback, the lines
/// of a server's standard error are logged.
#[cfg(unix)]
#[tokio::test]
async fn stderr_of_servers_is_logged() {
    export_spans();
    let command = mcp_exact_transport::ServerCommand::new(env!("CARGO_BIN_EXE_echo_server"));
    let settings = echo::client_settings("2025-11-25");
    let handler = Arc::new(echo::answer);
    let (client, driver) = command.connect(settings, None, handler).expect("started");
    client.ready().await.expect("connected");
    assert_eq!(echo::call(&client, "later", "x").await, Ok("x".to_owned()));
    client.close();
    driver.await.expect("driver");
    let lines = STDERR_LINES.lock().expect("not poisoned");
    assert_eq!(*lines, ["this goes to standard error"]);
}

thread_local! {
    /// Turn of the test of this thread, which lasts until the thread ends: what the test leaves ends before, with its runtime.
    static TURN: RefCell<Option<MutexGuard<'static, ()>>> = const { RefCell::new(None) };
}

/// Returns the exporter of spans; tests of other threads wait until this thread has ended.
fn export_spans() -> &'static InMemorySpanExporter {
    let (exporter, turn) = &*SPANS;
    TURN.with_borrow_mut(|mine| {
        // A test that has failed does not fail the others.
        let lock = || turn.lock().unwrap_or_else(PoisonError::into_inner);
        mine.get_or_insert_with(lock);
    });
    exporter.reset();
    exporter
}

/// Returns an attribute of a span as text.
fn attribute(span: &SpanData, key: &str) -> String {
    let found = span
        .attributes
        .iter()
        .find(|known| known.key.as_str() == key);
    found.map_or(String::new(), |found| found.value.to_string())
}

/// Returns the span with this name, which is a method of HTTP or of MCP with its target.
fn find<'a>(spans: &'a [SpanData], name: &str, kind: SpanKind) -> &'a SpanData {
    let found = spans
        .iter()
        .find(|span| span.name == name && span.span_kind == kind);
    found.unwrap_or_else(|| panic!("no span {name} in {spans:#?}"))
}

/// A request continues the trace that its message names, and is linked to the span of its HTTP request: "the keys
/// `traceparent`, `tracestate`, and `baggage` are reserved for OpenTelemetry trace context propagation" (2026-07-28,
/// `basic`, "_meta").
#[tokio::test]
async fn message_continues_its_trace_over_http() {
    /// `traceparent` of the client.
    const PARENT: &str = "00-0af7651916cd43dd8448eb211c80319c-00f067aa0ba902b7-01";
    let exporter = export_spans();
    let server = TestServer::start(HttpServerOptions::default()).await;
    let (headers, body) = stateless_call(1, "echo", "");
    let members = format!(r#""traceparent":"{PARENT}","tracestate":"vendor=1","progressToken""#);
    let body = body.replace(r#""progressToken""#, &members);
    let headers: Vec<(&str, &str)> = headers
        .iter()
        .map(|(name, value)| (*name, value.as_str()))
        .collect();
    let answer = server.send("POST", &headers, &body).await;
    assert_eq!(answer.status, 200, "{}", answer.body);
    let spans = exporter.get_finished_spans().expect("exported");
    let (http, request) = (
        find(&spans, "POST", SpanKind::Server),
        find(&spans, "tools/call echo", SpanKind::Server),
    );
    assert!(PARENT.contains(&request.span_context.trace_id().to_string()));
    assert_eq!(
        request.parent_span_id,
        SpanId::from_hex("00f067aa0ba902b7").expect("an id")
    );
    assert!(request.parent_span_is_remote);
    assert_eq!(request.span_context.trace_state().header(), "vendor=1");
    assert_eq!(request.links.links[0].span_context, http.span_context);
    assert_eq!(attribute(http, "http.response.status_code"), "200");
    assert_ne!(
        http.span_context.trace_id(),
        request.span_context.trace_id()
    );
}

/// A session has a span, which is linked to the spans of its HTTP requests.
#[tokio::test]
async fn each_session_has_a_span() {
    let exporter = export_spans();
    let server = TestServer::start(HttpServerOptions::default()).await;
    let id = server.begin().await;
    let ended = server.send("DELETE", &[("Mcp-Session-Id", &id)], "").await;
    assert_eq!(ended.status, 204);
    drop(server);
    let spans = exporter.get_finished_spans().expect("exported");
    let deleted = find(&spans, "DELETE", SpanKind::Server);
    let session = spans
        .iter()
        .find(|span| span.span_context == deleted.links.links[0].span_context);
    let session = session.expect("it has ended");
    assert_eq!(session.name, "session");
    assert_eq!(attribute(session, "mcp.protocol.version"), "2025-11-25");
    assert_eq!(session.parent_span_id, SpanId::INVALID);
    let of_session = |span: &&SpanData| {
        let mut links = span.links.links.iter();
        links.any(|link| link.span_context == session.span_context)
    };
    assert_eq!(spans.iter().filter(of_session).count(), 3);
    let text = format!("{spans:?}");
    assert!(!text.contains(&id), "ids of sessions are secrets");
}
