//! Exports the metrics of a process on Redis as OpenTelemetry instruments.

use std::sync::Arc;

use opentelemetry::metrics::Meter;

use crate::Redis;
use crate::metrics::RedisMetrics;

/// Registers counters that report [`Redis::metrics`] whenever the meter collects:
///
/// | instrument | unit |
/// |---|---|
/// | `mcp_exact.redis.commands` | `{command}` |
/// | `mcp_exact.redis.command.time` | `us` |
/// | `mcp_exact.redis.errors` | `{command}` |
/// | `mcp_exact.redis.connections` | `{connection}` |
/// | `mcp_exact.redis.connection.errors` | `{attempt}` |
/// | `mcp_exact.redis.bus.messages` | `{message}` |
/// | `mcp_exact.redis.bus.gaps` | `{gap}` |
/// | `mcp_exact.redis.bus.dropped` | `{message}` |
///
/// The counters do not keep the [`Redis`] alive, and report nothing after it was dropped.
pub fn export_metrics(redis: &Redis, meter: &Meter) {
    let counter = |name: &'static str, unit: &'static str, value: fn(&RedisMetrics) -> u64| {
        let counters = Arc::downgrade(&redis.connection.counters);
        let instrument = meter.u64_observable_counter(name).with_unit(unit);
        let instrument = instrument.with_callback(move |observer| {
            if let Some(counters) = counters.upgrade() {
                observer.observe(value(&counters.read()), &[]);
            }
        });
        instrument.build();
    };
    counter("mcp_exact.redis.commands", "{command}", |now| now.commands);
    counter("mcp_exact.redis.command.time", "us", |now| {
        u64::try_from(now.command_time.as_micros()).unwrap_or(u64::MAX)
    });
    counter("mcp_exact.redis.errors", "{command}", |now| now.errors);
    counter("mcp_exact.redis.connections", "{connection}", |now| {
        now.connections
    });
    counter("mcp_exact.redis.connection.errors", "{attempt}", |now| {
        now.connection_errors
    });
    counter("mcp_exact.redis.bus.messages", "{message}", |now| {
        now.bus_messages
    });
    counter("mcp_exact.redis.bus.gaps", "{gap}", |now| now.bus_gaps);
    counter("mcp_exact.redis.bus.dropped", "{message}", |now| {
        now.bus_dropped
    });
}
