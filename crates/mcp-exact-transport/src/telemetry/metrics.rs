//! The numbers of an HTTP service as instruments of OpenTelemetry.

use opentelemetry::metrics::Meter;

use crate::http::server::{HttpMetrics, HttpService};

/// Registers instruments that report [`HttpService::metrics`] whenever the meter collects:
///
/// | instrument | kind | unit |
/// |---|---|---|
/// | `mcp.server.http.requests` | counter | `{request}` |
/// | `mcp.server.http.errors` | counter | `{response}` |
/// | `mcp.server.http.received` | counter | `By` |
/// | `mcp.server.http.sent` | counter | `By` |
/// | `mcp.server.sessions` | up-down counter | `{session}` |
/// | `mcp.server.requests.in_flight` | up-down counter | `{request}` |
/// | `mcp.server.queued` | up-down counter | `By` |
///
/// They do not keep the service, and report nothing once it is dropped.
pub fn export_metrics(service: &HttpService, meter: &Meter) {
    let export = Export { service, meter };
    export.counter("mcp.server.http.requests", "{request}", |counted| {
        counted.requests
    });
    export.counter("mcp.server.http.errors", "{response}", |counted| {
        counted.errors
    });
    export.counter("mcp.server.http.received", "By", |counted| {
        counted.received_bytes
    });
    export.counter("mcp.server.http.sent", "By", |counted| counted.sent_bytes);
    export.level("mcp.server.sessions", "{session}", |now| now.sessions);
    export.level("mcp.server.requests.in_flight", "{request}", |now| {
        now.in_flight
    });
    export.level("mcp.server.queued", "By", |now| now.queued_bytes);
}

struct Export<'a> {
    service: &'a HttpService,
    meter: &'a Meter,
}

impl Export<'_> {
    /// Registers a number that only grows.
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

    /// Registers a number that grows and shrinks.
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
