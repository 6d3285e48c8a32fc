//! Exports the metrics of a process on Redis as OpenTelemetry instruments.

use std::sync::Arc;

use opentelemetry::metrics::Meter;

use crate::Redis;
use crate::metrics::RedisMetrics;

/// Registers counters that report [`Redis::metrics`] whenever the meter collects:
///
/// | instrument | unit |
/// |---|---|
/// | `mcp.redis.commands` | `{command}` |
/// | `mcp.redis.command.time` | `us` |
/// | `mcp.redis.errors` | `{command}` |
/// | `mcp.redis.connections` | `{connection}` |
/// | `mcp.redis.connection.errors` | `{attempt}` |
/// | `mcp.redis.bus.messages` | `{message}` |
/// | `mcp.redis.bus.gaps` | `{gap}` |
/// | `mcp.redis.bus.dropped` | `{message}` |
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
    counter("mcp.redis.commands", "{command}", |now| now.commands);
    counter("mcp.redis.command.time", "us", |now| {
        u64::try_from(now.command_time.as_micros()).unwrap_or(u64::MAX)
    });
    counter("mcp.redis.errors", "{command}", |now| now.errors);
    counter("mcp.redis.connections", "{connection}", |now| {
        now.connections
    });
    counter("mcp.redis.connection.errors", "{attempt}", |now| {
        now.connection_errors
    });
    counter("mcp.redis.bus.messages", "{message}", |now| {
        now.bus_messages
    });
    counter("mcp.redis.bus.gaps", "{gap}", |now| now.bus_gaps);
    counter("mcp.redis.bus.dropped", "{message}", |now| now.bus_dropped);
}
