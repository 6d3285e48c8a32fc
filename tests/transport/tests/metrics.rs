//! Metrics of connections: servers and clients on standard streams, Unix sockets, in memory and over HTTP. The test is
//! the only test of a separate executable, because the metrics are global to the process.
#![cfg(unix)]

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::Arc;

use mcp_exact_session::{CallOptions, Side};
use mcp_exact_tests_transport::echo::{self, call, call_params};
use mcp_exact_tests_transport::http::TestServer;
use mcp_exact_transport::http::client::{HttpEndpoint, HttpTransport};
use mcp_exact_transport::http::server::HttpServerOptions;
use mcp_exact_transport::{
    ClientHandle, ConnectionMetrics, ConnectionOptions, ServerCommand, UnixServer, connect,
    connect_unix, connection_metrics, memory_pair, serve, telemetry,
};
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry_sdk::metrics::data::{AggregatedMetrics, MetricData};
use opentelemetry_sdk::metrics::{InMemoryMetricExporter, PeriodicReader, SdkMeterProvider};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

/// Path of the stdio test server.
const SERVER_PROGRAM: &str = env!("CARGO_BIN_EXE_echo_server");
/// Revision of the connections.
const REVISION: &str = "2025-11-25";

/// Returns the metrics of this side (client or server) of a transport.
fn metrics_of(side: Side, transport: &str) -> ConnectionMetrics {
    let mut all = connection_metrics().into_iter();
    let found = all.find(|metrics| metrics.side == side && metrics.transport == transport);
    found.unwrap_or_else(|| panic!("no {transport} of {side:?}"))
}

/// Sends `initialize`, two calls with results, a call with an error, and a call that stays in flight.
///
/// Returns the client's metrics while the last call is in flight, and after the connection has ended.
async fn use_client(
    client: &ClientHandle,
    driver: JoinHandle<()>,
    transport: &str,
) -> [ConnectionMetrics; 2] {
    client.ready().await.expect("connected");
    assert_eq!(call(client, "echo", "a").await, Ok("a".to_owned()));
    assert!(call(client, "unknown", "").await.is_err());
    let params = call_params("never", "");
    let waiting = client.request("tools/call", params, CallOptions::default(), None);
    let waiting = waiting.expect("sent");
    assert_eq!(call(client, "echo", "b").await, Ok("b".to_owned()));
    let open = metrics_of(Side::Client, transport);
    client.close();
    driver.await.expect("driver");
    drop(waiting);
    [open, metrics_of(Side::Client, transport)]
}

/// Checks the metrics of a client, first with a call in flight and then after the end of the connection.
fn check_client([open, ended]: [ConnectionMetrics; 2]) {
    let transport = open.transport;
    assert_eq!((open.requests, open.errors), (3, 1), "{transport}");
    assert_eq!((open.sessions, open.in_flight), (1, 1), "{transport}");
    assert!(open.received_bytes > 300, "{open:?}");
    assert!(open.sent_bytes > 300, "{open:?}");
    assert_eq!((ended.requests, ended.errors), (4, 1), "{transport}");
    assert_eq!((ended.sessions, ended.in_flight), (0, 0), "{transport}");
    assert_eq!(ended.queued_bytes, 0, "{transport}");
}

/// Checks the metrics of a server after the end, and compares the byte counts with those of its client.
fn check_server(transport: &str) {
    let (server, client) = (
        metrics_of(Side::Server, transport),
        metrics_of(Side::Client, transport),
    );
    assert_eq!((server.requests, server.errors), (4, 1), "{transport}");
    assert_eq!((server.sessions, server.in_flight), (0, 0), "{transport}");
    assert_eq!(server.sent_bytes, client.received_bytes, "{transport}");
    assert!(server.received_bytes <= client.sent_bytes, "{transport}");
}

/// Checks the metrics of a client and a server over the in-memory transport.
async fn use_memory() {
    let (near, far) = memory_pair(1 << 16, 4 << 20);
    let options = ConnectionOptions::default();
    let (settings, handler) = (echo::server_settings(), Arc::new(echo::handle));
    let server = tokio::spawn(serve(settings, handler, far, options, pending()));
    let (settings, handler) = (echo::client_settings(REVISION), Arc::new(echo::answer));
    let (client, driver) = connect(settings, None, handler, near, options);
    check_client(use_client(&client, driver, "memory").await);
    server.await.expect("task").expect("clean end");
    check_server("memory");
}

/// Checks the metrics of a client and a server over a Unix socket.
async fn use_unix_socket() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let server = UnixServer::bind(&path).await.expect("bound");
    let (stop, stopped) = oneshot::channel::<()>();
    let (settings, handler) = (echo::server_settings(), Arc::new(echo::handle));
    let serving = tokio::spawn(server.serve(settings, handler, async move {
        let _ = stopped.await;
    }));
    let (settings, handler) = (echo::client_settings(REVISION), Arc::new(echo::answer));
    let connected = connect_unix(&path, settings, None, handler).await;
    let (client, driver) = connected.expect("connected");
    check_client(use_client(&client, driver, "unix").await);
    stop.send(()).expect("serving");
    serving.await.expect("task").expect("clean end");
    check_server("unix");
}

/// Checks the metrics of clients of child processes; the server, with and without a Tokio runtime, reports its own
/// metrics.
async fn use_processes() {
    for mode in ["tokio", "threads"] {
        let command = ServerCommand::new(SERVER_PROGRAM).arg(mode);
        let (settings, handler) = (echo::client_settings(REVISION), Arc::new(echo::answer));
        let (client, driver) = command.connect(settings, None, handler).expect("started");
        client.ready().await.expect("connected");
        assert!(call(&client, "unknown", "").await.is_err());
        let metrics = call(&client, "metrics", "").await.expect("a result");
        for part in [
            "stdio server",
            "requests 2",
            "errors 1",
            "sessions 1",
            "in flight 1",
        ] {
            assert!(metrics.contains(part), "{mode}: {metrics}");
        }
        client.close();
        driver.await.expect("driver");
    }
    let client = metrics_of(Side::Client, "stdio");
    assert_eq!((client.requests, client.errors), (4, 2));
    assert_eq!(client.sessions, 0);
}

/// Checks the metrics of a client and a server over HTTP.
async fn use_http() {
    let server = TestServer::start(HttpServerOptions::default()).await;
    let endpoint = HttpEndpoint::new(&server.url("/mcp")).expect("a URL");
    let (settings, handler) = (echo::client_settings(REVISION), Arc::new(echo::answer));
    let (client, driver) = endpoint.connect(settings, None, handler);
    check_client(use_client(&client, driver, "http").await);
    let endpoint = HttpEndpoint::new(&server.url("/sse")).expect("a URL");
    let endpoint = endpoint.transport(HttpTransport::Sse);
    let (settings, handler) = (echo::client_settings("2024-11-05"), Arc::new(echo::answer));
    let (client, driver) = endpoint.connect(settings, None, handler);
    client.ready().await.expect("connected");
    let before = metrics_of(Side::Client, "http");
    assert_eq!(call(&client, "echo", "a").await, Ok("a".to_owned()));
    let after = metrics_of(Side::Client, "http");
    assert_eq!(after.requests, before.requests + 1);
    assert!(after.received_bytes > before.received_bytes);
    assert!(after.sent_bytes > before.sent_bytes);
    client.close();
    driver.await.expect("driver");
}

/// Returns the values of an OpenTelemetry instrument, by side (client or server) and transport.
fn collect(
    provider: &SdkMeterProvider,
    exporter: &InMemoryMetricExporter,
    instrument: &str,
) -> BTreeMap<(String, String), i64> {
    exporter.reset();
    provider.force_flush().expect("collected");
    let finished = exporter.get_finished_metrics().expect("exported");
    let scopes = finished.iter().flat_map(|all| all.scope_metrics());
    let mut metrics = scopes.flat_map(|scope| scope.metrics());
    let metric = metrics.find(|metric| metric.name() == instrument);
    let metric = metric.unwrap_or_else(|| panic!("no instrument {instrument}"));
    let key = |attributes: Vec<(String, String)>| {
        let attributes: BTreeMap<_, _> = attributes.into_iter().collect();
        let value = |name: &str| attributes[name].clone();
        (value("mcp_exact.side"), value("mcp_exact.transport"))
    };
    let text = |attribute: &opentelemetry::KeyValue| {
        (attribute.key.to_string(), attribute.value.to_string())
    };
    match metric.data() {
        AggregatedMetrics::U64(MetricData::Sum(sum)) => {
            let points = sum.data_points().map(|point| {
                let value = i64::try_from(point.value()).expect("a small number");
                (key(point.attributes().map(text).collect()), value)
            });
            points.collect()
        }
        AggregatedMetrics::I64(MetricData::Sum(sum)) => {
            let points = sum.data_points();
            points
                .map(|point| (key(point.attributes().map(text).collect()), point.value()))
                .collect()
        }
        other => panic!("{instrument} is not a sum: {other:?}"),
    }
}

/// Function that reads one counter or gauge.
type Reading = fn(&ConnectionMetrics) -> u64;

/// "Counters for sessions, requests, errors, bytes, queue sizes": both sides of every transport have metrics, and
/// OpenTelemetry instruments report the same values.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn connections_of_all_transports_are_counted() {
    let exporter = InMemoryMetricExporter::default();
    let reader = PeriodicReader::builder(exporter.clone()).build();
    let provider = SdkMeterProvider::builder().with_reader(reader).build();
    telemetry::export_connection_metrics(&provider.meter("test"));
    use_memory().await;
    use_unix_socket().await;
    use_processes().await;
    use_http().await;
    let all = connection_metrics();
    let instruments: [(&str, Reading); 7] = [
        ("mcp_exact.connection.requests", |all| all.requests),
        ("mcp_exact.connection.errors", |all| all.errors),
        ("mcp_exact.connection.received", |all| all.received_bytes),
        ("mcp_exact.connection.sent", |all| all.sent_bytes),
        ("mcp_exact.connection.sessions", |all| all.sessions as u64),
        ("mcp_exact.connection.requests.in_flight", |all| {
            all.in_flight as u64
        }),
        ("mcp_exact.connection.queued", |all| all.queued_bytes as u64),
    ];
    for (instrument, value) in instruments {
        let expected = all.iter().map(|metrics| {
            let side = match metrics.side {
                Side::Client => "client",
                Side::Server => "server",
            };
            let value = i64::try_from(value(metrics)).expect("a small number");
            ((side.to_owned(), metrics.transport.to_owned()), value)
        });
        let expected: BTreeMap<_, _> = expected.collect();
        assert_eq!(
            collect(&provider, &exporter, instrument),
            expected,
            "{instrument}"
        );
    }
}
