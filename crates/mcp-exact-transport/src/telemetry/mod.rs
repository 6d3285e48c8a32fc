//! Export to OpenTelemetry: the metrics of services and connections as instruments of a meter, and traces that cross processes.
//!
//! A layer of tracing-opentelemetry exports the spans of `tracing`: those of connections, sessions, HTTP requests and
//! MCP requests. With this feature, the span of an MCP request continues the trace that its `_meta` names (2026-07-28),
//! and the span of an HTTP request continues the trace that its headers name. [`current_trace`] returns the trace that
//! a client sends in [`CallOptions::trace`](mcp_exact_session::CallOptions::trace). The application creates the
//! exporters.

mod metrics;

use mcp_exact_session::TraceContext;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

pub use metrics::export_connection_metrics;
#[cfg(feature = "http-server")]
pub use metrics::export_metrics;

/// Returns the trace of the current span, which can be sent with requests; `None` if no layer exports the span.
pub fn current_trace() -> Option<TraceContext> {
    let context = Span::current().context();
    let span = context.span();
    let span = span.span_context();
    if !span.is_valid() {
        return None;
    }
    let (trace, id, flags) = (span.trace_id(), span.span_id(), span.trace_flags());
    let mut trace = TraceContext::new(format!("00-{trace}-{id}-{:02x}", flags.to_u8()))?;
    let state = span.trace_state().header();
    trace.tracestate = (!state.is_empty()).then_some(state);
    Some(trace)
}

/// Makes a span, which must not have been entered, a part of the trace that a request carries.
///
/// The current span, which is the span of the HTTP request, becomes a link of the span of the MCP request, so that the
/// two traces refer to each other.
pub(crate) fn continue_trace(span: &Span, trace: &TraceContext) {
    let Some(parent) = span_context(trace) else {
        return;
    };
    let around = Span::current().context();
    let around = around.span().span_context().clone();
    // Fails if no layer exports the span.
    let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    if around.is_valid() {
        span.add_link(around);
    }
}

/// Makes the span of an HTTP request a part of the trace that its headers name (W3C Trace Context, section 3).
#[cfg(feature = "http-server")]
pub(crate) fn continue_trace_of_headers(span: &Span, headers: &http::HeaderMap) {
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let Some(mut trace) = text("traceparent").and_then(TraceContext::new) else {
        return;
    };
    trace.tracestate = text("tracestate").map(str::to_owned);
    if let Some(parent) = span_context(&trace) {
        // Fails if no layer exports the span.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
    }
}

/// Converts a trace context to the type of OpenTelemetry; `None` if its ids are invalid.
fn span_context(trace: &TraceContext) -> Option<SpanContext> {
    let mut parts = trace.traceparent().split('-').skip(1);
    let trace_id = TraceId::from_hex(parts.next()?).ok()?;
    let span_id = SpanId::from_hex(parts.next()?).ok()?;
    let flags = u8::from_str_radix(parts.next()?, 16).ok()?;
    // What is no valid state is dropped; the trace itself goes on (W3C Trace Context, section 3.3).
    let state = trace.tracestate.as_deref().unwrap_or_default();
    let state = state.parse().unwrap_or(TraceState::NONE);
    let flags = TraceFlags::new(flags);
    Some(SpanContext::new(trace_id, span_id, flags, true, state))
}
