//! Log of the requests of clients: one line for each request and one for its response.
//!
//! At the level `debug`, lines contain the requests and their outcomes; only `trace` includes arguments and results.

use std::time::Instant;

use tracing::level_filters::LevelFilter;

use crate::link::{Reply, Request};
use crate::params::request_label;
use crate::protocol::JsonObject;

/// Log of one request: the label of the request and the time at which it was received; `None` if the log is disabled.
pub(super) struct RequestLog(Option<(String, Instant)>);

impl RequestLog {
    /// Logs a request that was received now.
    pub(super) fn write_request(request: &Request) -> Self {
        if tracing::Level::DEBUG > LevelFilter::current() {
            return Self(None);
        }
        let what = request_label(request.method(), request.params());
        tracing::debug!("<- {what} ({})", request.revision());
        let params = request.params().map_or("{}", JsonObject::text);
        tracing::trace!("<- {what}: {params}");
        Self(Some((what, Instant::now())))
    }

    /// Logs the answer and the time since the request was received.
    pub(super) fn write_response(self, reply: &Reply) {
        let Some((what, start)) = self.0 else {
            return;
        };
        let took = start.elapsed().as_secs_f64() * 1e3;
        match reply {
            Reply::Result(result) => {
                tracing::debug!("-> {what}: {} after {took:.1} ms", result_kind(result));
                tracing::trace!("-> {what}: {result}");
            }
            Reply::Error(error) => {
                let code = error.code().unwrap_or_default();
                tracing::debug!(
                    "-> {what}: error {code} after {took:.1} ms: {}",
                    error.message()
                );
            }
            Reply::InputRequired { input_requests, .. } => {
                let input_requests = input_requests
                    .iter()
                    .map(|(key, request)| format!("{key} ({})", request.method));
                let input_requests = input_requests.collect::<Vec<_>>().join(", ");
                tracing::debug!("-> {what}: asks {input_requests} after {took:.1} ms");
            }
        }
    }
}

/// Returns the kind of a result object for the log: error, task or other result.
fn result_kind(result: &JsonObject) -> &'static str {
    let found = |name: &str, text: &str| result.get(name).is_some_and(|value| value.text() == text);
    if found("isError", "true") {
        "result with isError"
    } else if found("resultType", "\"task\"") {
        "task"
    } else {
        "result"
    }
}
