//! Metrics of HTTP services and of connections as instruments of OpenTelemetry.

use mcp_exact_session::Side;
use opentelemetry::KeyValue;
use opentelemetry::metrics::Meter;

#[cfg(feature = "http-server")]
use crate::http::server::{HttpMetrics, HttpService};
use crate::metrics::{ConnectionMetrics, connection_metrics};

/// Function that reads a counter from the metrics.
type Count = fn(&ConnectionMetrics) -> u64;
/// Function that reads a current value, such as the number of open connections, from the metrics.
type Level = fn(&ConnectionMetrics) -> usize;

/// Registers instruments that report [`connection_metrics`] whenever the meter collects, with the attributes `mcp_exact.side` (`client` or
/// `server`) and `mcp_exact.transport`:
///
/// | instrument | kind | unit |
/// |---|---|---|
/// | `mcp_exact.connection.requests` | counter | `{request}` |
/// | `mcp_exact.connection.errors` | counter | `{error}` |
/// | `mcp_exact.connection.received` | counter | `By` |
/// | `mcp_exact.connection.sent` | counter | `By` |
/// | `mcp_exact.connection.sessions` | up-down counter | `{session}` |
/// | `mcp_exact.connection.requests.in_flight` | up-down counter | `{request}` |
/// | `mcp_exact.connection.queued` | up-down counter | `By` |
pub fn export_connection_metrics(meter: &Meter) {
    let counters: [(&str, &str, Count); 4] = [
        ("mcp_exact.connection.requests", "{request}", |all| {
            all.requests
        }),
        ("mcp_exact.connection.errors", "{error}", |all| all.errors),
        ("mcp_exact.connection.received", "By", |all| {
            all.received_bytes
        }),
        ("mcp_exact.connection.sent", "By", |all| all.sent_bytes),
    ];
    for (name, unit, value) in counters {
        let counter = meter.u64_observable_counter(name).with_unit(unit);
        let counter = counter.with_callback(move |observer| {
            for metrics in connection_metrics() {
                observer.observe(value(&metrics), &attributes_of(&metrics));
            }
        });
        counter.build();
    }
    let levels: [(&str, &str, Level); 3] = [
        ("mcp_exact.connection.sessions", "{session}", |now| {
            now.sessions
        }),
        (
            "mcp_exact.connection.requests.in_flight",
            "{request}",
            |now| now.in_flight,
        ),
        ("mcp_exact.connection.queued", "By", |now| now.queued_bytes),
    ];
    for (name, unit, value) in levels {
        let level = meter.i64_observable_up_down_counter(name).with_unit(unit);
        let level = level.with_callback(move |observer| {
            for metrics in connection_metrics() {
                let value = i64::try_from(value(&metrics)).unwrap_or(i64::MAX);
                observer.observe(value, &attributes_of(&metrics));
            }
        });
        level.build();
    }
}

/// Returns the attributes of a reported value: side and transport.
fn attributes_of(metrics: &ConnectionMetrics) -> [KeyValue; 2] {
    let side = match metrics.side {
        Side::Client => "client",
        Side::Server => "server",
    };
    [
        KeyValue::new("mcp_exact.side", side),
        KeyValue::new("mcp_exact.transport", metrics.transport),
    ]
}

/// Registers instruments that report [`HttpService::metrics`] whenever the meter collects:
///
/// | instrument | kind | unit |
/// |---|---|---|
/// | `mcp_exact.http.requests` | counter | `{request}` |
/// | `mcp_exact.http.errors` | counter | `{response}` |
/// | `mcp_exact.http.received` | counter | `By` |
/// | `mcp_exact.http.sent` | counter | `By` |
/// | `mcp_exact.http.sessions` | up-down counter | `{session}` |
/// | `mcp_exact.http.requests.in_flight` | up-down counter | `{request}` |
/// | `mcp_exact.http.queued` | up-down counter | `By` |
///
/// The instruments do not keep the service alive, and report no values once the service is dropped.
#[cfg(feature = "http-server")]
pub fn export_metrics(service: &HttpService, meter: &Meter) {
    let export = Export { service, meter };
    export.counter("mcp_exact.http.requests", "{request}", |counted| {
        counted.requests
    });
    export.counter("mcp_exact.http.errors", "{response}", |counted| {
        counted.errors
    });
    export.counter("mcp_exact.http.received", "By", |counted| {
        counted.received_bytes
    });
    export.counter("mcp_exact.http.sent", "By", |counted| counted.sent_bytes);
    export.level("mcp_exact.http.sessions", "{session}", |now| now.sessions);
    export.level("mcp_exact.http.requests.in_flight", "{request}", |now| {
        now.in_flight
    });
    export.level("mcp_exact.http.queued", "By", |now| now.queued_bytes);
}

/// Service and meter for which instruments are registered.
#[cfg(feature = "http-server")]
struct Export<'a> {
    /// The service whose metrics are exported.
    service: &'a HttpService,
    /// Meter of the instruments.
    meter: &'a Meter,
}

#[cfg(feature = "http-server")]
impl Export<'_> {
    /// Registers an instrument for a counter, whose value never decreases.
    fn counter(&self, name: &'static str, unit: &'static str, value: fn(&HttpMetrics) -> u64) {
        let service = self.service.weak();
        let instrument = self.meter.u64_observable_counter(name).with_unit(unit);
        let instrument = instrument.with_callback(move |observer| {
            if let Some(service) = service() {
                observer.observe(value(&service.counted()), &[]);
            }
        });
        instrument.build();
    }

    /// Registers an instrument for a value that can increase and decrease.
    fn level(&self, name: &'static str, unit: &'static str, value: fn(&HttpMetrics) -> usize) {
        let service = self.service.weak();
        let instrument = self
            .meter
            .i64_observable_up_down_counter(name)
            .with_unit(unit);
        let instrument = instrument.with_callback(move |observer| {
            if let Some(service) = service() {
                let value = value(&service.metrics());
                observer.observe(i64::try_from(value).unwrap_or(i64::MAX), &[]);
            }
        });
        instrument.build();
    }
}
