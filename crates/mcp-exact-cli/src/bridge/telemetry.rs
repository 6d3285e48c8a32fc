//! Export of traces and metrics to a collector of OpenTelemetry, by OTLP over HTTP.
//!
//! `[telemetry]` specifies the collector, or else one of the standard variables `OTEL_EXPORTER_OTLP_ENDPOINT`,
//! `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT` and `OTEL_EXPORTER_OTLP_METRICS_ENDPOINT`. Without a collector, nothing is sent.

use std::env;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, anyhow};
use http_body_util::BodyExt as _;
use mcp_exact::transport::http::client::{HttpClient as _, HyperClient};
use mcp_exact::transport::telemetry;
use opentelemetry::metrics::MeterProvider as _;
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{
    MetricExporter, SpanExporter, WithExportConfig as _, WithHttpConfig as _,
};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::metrics::SdkMeterProvider;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::{Level, Subscriber};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{Filtered, Targets};
use tracing_subscriber::registry::LookupSpan;

use super::config::Telemetry;
use super::log::FreshFilter;

/// Default name of the service.
const SERVICE_NAME: &str = "mcp-exact-bridge";

/// Time limit for one request to the collector.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the last requests to the collector when the process ends.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a response of the collector.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Exporter of the traces and metrics of this process.
pub struct Exporter {
    /// Provider of the tracer, which exports the spans; `None` if no collector receives traces.
    spans: Option<SdkTracerProvider>,
    /// Provider of the meter, which exports the metrics; `None` if no collector receives metrics.
    metrics: Option<SdkMeterProvider>,
}

impl Exporter {
    /// Starts the export to the collectors. Must be called within the tokio runtime.
    pub fn start(config: Option<&Telemetry>) -> anyhow::Result<Self> {
        let client = CollectorClient {
            runtime: Handle::current(),
            client: HyperClient::new(REQUEST_TIMEOUT),
        };
        let resource = resource(config);
        let spans = match Collector::find(config, &TRACES) {
            Some(collector) => Some(start_spans(collector, client.clone(), resource.clone())?),
            None => None,
        };
        let metrics = match Collector::find(config, &METRICS) {
            Some(collector) => Some(start_metrics(collector, client, resource)?),
            None => None,
        };
        Ok(Self { spans, metrics })
    }

    /// Returns the layer that exports the spans of MCP messages, if a collector receives them.
    pub fn layer<S>(
        &self,
    ) -> Option<Filtered<OpenTelemetryLayer<S, SdkTracer>, FreshFilter<Targets>, S>>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer = self.spans.as_ref()?.tracer(SCOPE);
        let spans = Targets::new().with_target("mcp_exact", Level::INFO);
        let layer = tracing_opentelemetry::layer().with_tracer(tracer);
        Some(
            layer
                .with_location(false)
                .with_threads(false)
                .with_tracked_inactivity(false)
                .with_target(false)
                .with_filter(FreshFilter(spans)),
        )
    }

    /// Sends the remaining spans and metrics, and ends the export.
    pub async fn end(self) {
        // The exporters wait for requests that this runtime sends.
        let ending = move || {
            let spans = self.spans.map(|all| all.shutdown_with_timeout(END_TIMEOUT));
            let metrics = self
                .metrics
                .map(|all| all.shutdown_with_timeout(END_TIMEOUT));
            [spans, metrics]
        };
        match tokio::task::spawn_blocking(ending).await {
            Ok(ended) => {
                for error in ended.into_iter().flatten().filter_map(Result::err) {
                    tracing::warn!(%error, "the last traces or metrics were not sent");
                }
            }
            Err(error) => tracing::warn!(%error, "the last traces were not sent"),
        }
    }
}

/// Name of the instrumentation scope of spans and metrics.
const SCOPE: &str = "mcp-exact";

/// Returns the resource that spans and metrics describe.
fn resource(config: Option<&Telemetry>) -> Resource {
    let mut resource = Resource::builder();
    match config.and_then(|config| config.service_name.clone()) {
        Some(name) => resource = resource.with_service_name(name),
        None if !has_service_name() => resource = resource.with_service_name(SERVICE_NAME),
        None => {}
    }
    resource.build()
}

/// Starts the export of spans.
fn start_spans(
    collector: Collector,
    client: CollectorClient,
    resource: Resource,
) -> anyhow::Result<SdkTracerProvider> {
    let exporter = SpanExporter::builder().with_http().with_http_client(client);
    let exporter = match collector {
        Collector::Configured(url) => exporter.with_endpoint(url),
        Collector::Environment => exporter,
    };
    let exporter = exporter.build();
    let exporter = exporter
        .map_err(|error| anyhow!("{error}"))
        .context("the collector of traces: write its URL, such as http://127.0.0.1:4318")?;
    Ok(SdkTracerProvider::builder()
        .with_batch_exporter(exporter)
        .with_resource(resource)
        .build())
}

/// Starts the export of metrics: the durations of operations and sessions, and the numbers of connections.
fn start_metrics(
    collector: Collector,
    client: CollectorClient,
    resource: Resource,
) -> anyhow::Result<SdkMeterProvider> {
    let exporter = MetricExporter::builder()
        .with_http()
        .with_http_client(client);
    let exporter = match collector {
        Collector::Configured(url) => exporter.with_endpoint(url),
        Collector::Environment => exporter,
    };
    let exporter = exporter.build();
    let exporter = exporter
        .map_err(|error| anyhow!("{error}"))
        .context("the collector of metrics: write its URL, such as http://127.0.0.1:4318")?;
    let provider = SdkMeterProvider::builder()
        .with_periodic_exporter(exporter)
        .with_resource(resource)
        .build();
    let meter = provider.meter(SCOPE);
    telemetry::export_durations(&meter);
    telemetry::export_connection_metrics(&meter);
    Ok(provider)
}

/// Kind of data for collectors.
struct Signal {
    /// Path of OTLP below the URL of the collector.
    path: &'static str,
    /// Variable that specifies a collector for this kind of data alone.
    endpoint: &'static str,
    /// Variable that turns off the export with the value `none`.
    exporter: &'static str,
}

/// Spans.
const TRACES: Signal = Signal {
    path: "v1/traces",
    endpoint: "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
    exporter: "OTEL_TRACES_EXPORTER",
};

/// Metrics.
const METRICS: Signal = Signal {
    path: "v1/metrics",
    endpoint: "OTEL_EXPORTER_OTLP_METRICS_ENDPOINT",
    exporter: "OTEL_METRICS_EXPORTER",
};

/// Collector that receives traces or metrics.
enum Collector {
    /// The configuration file specifies this URL, to which the data is posted.
    Configured(String),
    /// The environment variables of OpenTelemetry specify the collector.
    Environment,
}

impl Collector {
    /// Returns the collector that the configuration or the environment specifies, if any.
    fn find(config: Option<&Telemetry>, signal: &Signal) -> Option<Self> {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        let is = |name, expected: &str| {
            env::var(name).is_ok_and(|value| value.eq_ignore_ascii_case(expected))
        };
        if is("OTEL_SDK_DISABLED", "true") || is(signal.exporter, "none") {
            return None;
        }
        if let Some(url) = config.and_then(|config| config.otlp.as_deref()) {
            // OpenTelemetry Protocol Exporter, "Endpoint URLs for OTLP/HTTP".
            let url = url.trim_end_matches('/');
            return Some(Self::Configured(format!("{url}/{}", signal.path)));
        }
        let variables = ["OTEL_EXPORTER_OTLP_ENDPOINT", signal.endpoint];
        variables
            .into_iter()
            .any(is_set)
            .then_some(Self::Environment)
    }
}

/// Returns true if the environment specifies the name of the service.
fn has_service_name() -> bool {
    env::var_os("OTEL_SERVICE_NAME").is_some_and(|name| !name.is_empty())
        || env::var("OTEL_RESOURCE_ATTRIBUTES").is_ok_and(|all| all.contains("service.name="))
}

/// HTTP client for the collector. The exporter runs on a separate thread, and its requests run on the tokio runtime.
#[derive(Debug, Clone)]
struct CollectorClient {
    /// Runtime on which the requests run.
    runtime: Handle,
    /// HTTP client that sends the requests.
    client: HyperClient,
}

impl HttpClient for CollectorClient {
    fn send_bytes<'life, 'sending>(
        &'life self,
        request: Request<Bytes>,
    ) -> Pin<Box<dyn Future<Output = Result<Response<Bytes>, HttpError>> + Send + 'sending>>
    where
        'life: 'sending,
        Self: 'sending,
    {
        let sending = send(self.client.clone(), request);
        // The time limit needs the runtime, too.
        let sent = self
            .runtime
            .spawn(async move { tokio::time::timeout(REQUEST_TIMEOUT, sending).await });
        Box::pin(async move {
            match sent.await {
                Ok(Ok(response)) => response,
                Ok(Err(error)) => Err(error.into()),
                Err(error) => Err(error.into()),
            }
        })
    }
}

/// Sends a request and reads the complete response.
async fn send(client: HyperClient, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
    let (parts, mut body) = match client.send(request).await {
        Ok(response) => response.into_parts(),
        Err(error) => return Err(error),
    };
    let mut bytes = Vec::new();
    while let Some(frame) = body.frame().await {
        let frame = match frame {
            Ok(frame) => frame,
            Err(error) => return Err(error),
        };
        if let Ok(data) = frame.into_data() {
            bytes.extend_from_slice(&data);
        }
        if bytes.len() > MAX_RESPONSE_BYTES {
            return Err("the response of the collector is too long".into());
        }
    }
    Ok(Response::from_parts(parts, bytes.into()))
}
