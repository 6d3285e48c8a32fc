//! Export to OpenTelemetry: the metrics of services and connections as instruments of a meter, and traces that cross processes.
//!
//! Spans and durations of MCP requests and notifications follow the semantic conventions of OpenTelemetry for MCP and
//! GenAI. A layer of tracing-opentelemetry exports the spans of `tracing`: those of sent and received messages at the
//! level `info`, those of connections, HTTP sessions and HTTP requests at the level `debug`. [`export_durations`]
//! registers the instruments of the conventions.
//!
//! With this feature, messages carry the trace context of their spans in `_meta`, on every revision and in both
//! directions (SEP-414), and the span of a received message continues the trace that its `_meta` states, or else the
//! trace of its HTTP request. The application creates the exporters.

pub(crate) mod durations;
mod metrics;

use mcp_exact_session::TraceContext;
use opentelemetry::Context;
use opentelemetry::trace::{SpanContext, SpanId, TraceContextExt, TraceFlags, TraceId, TraceState};
use tracing::Span;
use tracing_opentelemetry::OpenTelemetrySpanExt;

use crate::endpoint::RequestContext;
pub use durations::export_durations;
pub use metrics::export_connection_metrics;
#[cfg(feature = "http-server")]
pub use metrics::export_metrics;

/// Returns the trace of the current span, which can be sent with requests; `None` if no layer exports the span.
///
/// Requests and notifications continue the current trace on their own.
pub fn current_trace() -> Option<TraceContext> {
    trace_of(&Span::current())
}

/// Returns the trace of a span; `None` if no layer exports the span.
pub(crate) fn trace_of(span: &Span) -> Option<TraceContext> {
    let context = span.context();
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

/// Renames a span that a layer exports, even if the span has started.
pub(crate) fn rename(span: &Span, name: &str) {
    span.context().span().update_name(name.to_owned());
}

/// Makes the span of a message that is sent a part of the trace that the message states, unless that is the trace of the
/// span `around`. The span must not have been entered.
pub(crate) fn continue_stated_trace(span: &Span, stated: Option<&TraceContext>, around: &Span) {
    let Some(stated) = stated.and_then(span_context) else {
        return;
    };
    let current = around.context();
    let current = current.span().span_context().clone();
    let is_current =
        current.trace_id() == stated.trace_id() && current.span_id() == stated.span_id();
    if !is_current {
        // Fails if no layer exports the span.
        let _ = span.set_parent(Context::new().with_remote_span_context(stated));
    }
}

/// Makes the span of a received message a part of the trace that the message states, or else, if no span is current, of the
/// trace that the headers of its HTTP request state. The span must not have been entered.
///
/// The current span, which is the span of the HTTP request, becomes a link of the span of the message, so that the two
/// traces refer to each other.
pub(crate) fn continue_received_trace(
    span: &Span,
    stated: Option<&TraceContext>,
    context: Option<&RequestContext>,
) {
    let around = Span::current().context();
    let around = around.span().span_context().clone();
    if let Some(parent) = stated.and_then(span_context) {
        // Fails if no layer exports the span.
        let _ = span.set_parent(Context::new().with_remote_span_context(parent));
        if around.is_valid() {
            span.add_link(around);
        }
        return;
    }
    #[cfg(feature = "http")]
    if !around.is_valid()
        && let Some(http) = context.and_then(|context| context.http.as_ref())
    {
        continue_trace_of_headers(span, &http.headers);
    }
    #[cfg(not(feature = "http"))]
    let _ = context;
}

/// Makes the span of an HTTP request a part of the trace that its headers name (W3C Trace Context, section 3).
#[cfg(feature = "http")]
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
