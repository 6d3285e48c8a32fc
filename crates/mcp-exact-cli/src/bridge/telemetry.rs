//! Export of traces to a collector of OpenTelemetry, by OTLP over HTTP.
//!
//! `[telemetry]` specifies the collector, or else one of the standard variables `OTEL_EXPORTER_OTLP_ENDPOINT` and
//! `OTEL_EXPORTER_OTLP_TRACES_ENDPOINT`. Without a collector, nothing is sent.

use std::env;
use std::pin::Pin;
use std::time::Duration;

use anyhow::{Context, anyhow};
use http_body_util::BodyExt as _;
use mcp_exact::transport::http::client::{HttpClient as _, HyperClient};
use opentelemetry::trace::TracerProvider as _;
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig as _, WithHttpConfig as _};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::{SdkTracer, SdkTracerProvider};
use tokio::runtime::Handle;
use tracing::{Level, Subscriber};
use tracing_opentelemetry::OpenTelemetryLayer;
use tracing_subscriber::Layer;
use tracing_subscriber::filter::{Filtered, Targets};
use tracing_subscriber::registry::LookupSpan;

use super::config::Telemetry;

/// Default name of the service in the traces.
const SERVICE_NAME: &str = "mcp-exact-bridge";

/// Time limit for one request to the collector.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Time limit for the last requests to the collector when the process ends.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Maximum length of a response of the collector.
const MAX_RESPONSE_BYTES: usize = 1 << 20;

/// Exporter of the traces of this process.
pub struct TraceExporter {
    /// Provider of the tracer, which exports the spans.
    provider: SdkTracerProvider,
}

impl TraceExporter {
    /// Starts the export of traces; returns `None` if there is no collector. Must be called within the tokio runtime.
    pub fn start(config: Option<&Telemetry>) -> anyhow::Result<Option<Self>> {
        let Some(collector) = Collector::find(config) else {
            return Ok(None);
        };
        let client = CollectorClient {
            runtime: Handle::current(),
            client: HyperClient::new(REQUEST_TIMEOUT),
        };
        let exporter = SpanExporter::builder().with_http().with_http_client(client);
        let exporter = match collector {
            Collector::Configured(url) => exporter.with_endpoint(url),
            Collector::Environment => exporter,
        };
        let exporter = exporter.build();
        let exporter = exporter
            .map_err(|error| anyhow!("{error}"))
            .context("the collector of traces: write its URL, such as http://127.0.0.1:4318")?;
        let mut resource = Resource::builder();
        match config.and_then(|config| config.service_name.clone()) {
            Some(name) => resource = resource.with_service_name(name),
            None if !has_service_name() => resource = resource.with_service_name(SERVICE_NAME),
            None => {}
        }
        let provider = SdkTracerProvider::builder()
            .with_batch_exporter(exporter)
            .with_resource(resource.build())
            .build();
        Ok(Some(Self { provider }))
    }

    /// Returns the layer that exports the spans of this program's crates.
    pub fn layer<S>(&self) -> Filtered<OpenTelemetryLayer<S, SdkTracer>, Targets, S>
    where
        S: Subscriber + for<'span> LookupSpan<'span>,
    {
        let tracer = self.provider.tracer("mcp-exact");
        let spans = Targets::new().with_target("mcp_exact", Level::DEBUG);
        tracing_opentelemetry::layer()
            .with_tracer(tracer)
            .with_filter(spans)
    }

    /// Sends the remaining spans, and ends the export.
    pub async fn end(self) {
        // The exporter waits for requests that this runtime sends.
        let ending = move || self.provider.shutdown_with_timeout(END_TIMEOUT);
        match tokio::task::spawn_blocking(ending).await {
            Ok(Ok(())) => {}
            Ok(Err(error)) => tracing::warn!(%error, "the last traces were not sent"),
            Err(error) => tracing::warn!(%error, "the last traces were not sent"),
        }
    }
}

/// Collector that receives the traces.
enum Collector {
    /// The configuration file specifies this URL, to which traces are posted.
    Configured(String),
    /// The environment variables of OpenTelemetry specify the collector.
    Environment,
}

impl Collector {
    /// Returns the collector that the configuration or the environment specifies, if any.
    fn find(config: Option<&Telemetry>) -> Option<Self> {
        let is_set = |name| env::var_os(name).is_some_and(|value| !value.is_empty());
        if env::var("OTEL_SDK_DISABLED").is_ok_and(|value| value.eq_ignore_ascii_case("true")) {
            return None;
        }
        if let Some(url) = config.and_then(|config| config.otlp.as_deref()) {
            // OpenTelemetry Protocol Exporter, "Endpoint URLs for OTLP/HTTP".
            return Some(Self::Configured(format!(
                "{}/v1/traces",
                url.trim_end_matches('/')
            )));
        }
        let variables = [
            "OTEL_EXPORTER_OTLP_ENDPOINT",
            "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT",
        ];
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
#[derive(Debug)]
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
