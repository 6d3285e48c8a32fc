//! Texts of errors: what a server has sent instead of an answer, and what can be done about it.
//!
//! No text has the user name, the password or the query of a URL.

use bytes::Bytes;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, Response, StatusCode, Uri};
use http_body::Body as _;
use http_body_util::{BodyExt, Full};
use mcp_exact_session::http::describe_body;

use super::exchange::Connection;
use super::send::HttpBody;
use super::target::url_for_logs;
use crate::sse::Event;

impl Connection {
    /// Describes the response to a GET that opens no event stream.
    pub(super) async fn describe_refusal(
        &self,
        target: &Uri,
        response: Response<HttpBody>,
    ) -> String {
        let status = response.status();
        let about = if status.is_success() {
            describe_head(&response)
        } else {
            format!("status {status}")
        };
        let body = self.read_error(response.into_body()).await;
        let body = describe_body(&body).map_or_else(String::new, |body| format!(": {body}"));
        let remedy = if status == StatusCode::NOT_FOUND {
            remedy_of_path(target.path())
        } else {
            String::new()
        };
        let target = url_for_logs(&target.to_string());
        format!("the server offers no event stream at {target} ({about}){body}{remedy}")
    }
}

/// Returns what can be done about a path that the server does not know, as the end of a sentence.
fn remedy_of_path(path: &str) -> String {
    match path.trim_end_matches('/') {
        "" => "; the endpoint of a server often has the path `/mcp`".to_owned(),
        shorter if shorter != path => {
            format!("; the endpoint may have the path `{shorter}`, without the slash at its end")
        }
        _ => "; check the path of the URL".to_owned(),
    }
}

/// Returns what can be done about a response without an answer, as the end of a sentence.
pub(super) fn remedy_of(status: StatusCode, body: &[u8]) -> &'static str {
    if status == StatusCode::ACCEPTED {
        "; a request must be answered in its own response: change the server, or, if the URL is that for the messages of HTTP+SSE, \
         connect to that of its event stream, often `/sse`"
    } else if body.trim_ascii_start().starts_with(b"<") {
        "; check the URL, and whether a login or a proxy answers in place of the server"
    } else {
        "; only the server, or a proxy before it, can be changed: tell its authors"
    }
}

/// Describes status and media type of a response, such as "HTTP status 200 with content of type `text/html`".
pub(super) fn describe_head(response: &Response<HttpBody>) -> String {
    let status = response.status().as_u16();
    let media_type = response.headers().get(CONTENT_TYPE);
    let compressed = match coding_of(response.headers()) {
        Some(_) => "compressed ",
        None => "",
    };
    match media_type.and_then(|value| value.to_str().ok()) {
        Some(value) => format!("HTTP status {status} with {compressed}content of type `{value}`"),
        None => format!("HTTP status {status} without a content type"),
    }
}

/// Describes an event that is no message.
pub(super) fn describe_event(event: &Event) -> String {
    let data = describe_body(&event.data).unwrap_or_default();
    format!(
        "an event named `{}`, which is not a message: {data}",
        event.event
    )
}

/// Returns the error text for a request that failed, with the causes of the error.
pub(super) fn describe_failure(
    target: &Uri,
    error: &(dyn std::error::Error + 'static),
    was_cut: bool,
) -> String {
    let target = url_for_logs(&target.to_string());
    let mut message = if was_cut {
        format!("the connection to {target} was closed before a response: {error}")
    } else {
        format!("cannot reach {target}: {error}")
    };
    let mut source = error.source();
    while let Some(cause) = source {
        message.push_str(": ");
        message.push_str(&cause.to_string());
        source = cause.source();
    }
    message
}

/// Returns the content codings of a compressed body; `None` for a body that can be read.
pub(super) fn coding_of(headers: &HeaderMap) -> Option<&str> {
    /// Codings that compress (RFC 9110, section 8.4.1, and the registry of content codings); servers name others, such as `utf-8`, for
    /// bodies that are as they should be.
    const COMPRESSED: [&str; 8] = [
        "gzip",
        "x-gzip",
        "deflate",
        "br",
        "zstd",
        "compress",
        "x-compress",
        "dcz",
    ];
    let coding = headers.get(CONTENT_ENCODING)?.to_str().ok()?.trim();
    let mut named = coding.split(',').map(str::trim);
    let is_compressed = named.any(|name| {
        COMPRESSED
            .iter()
            .any(|known| name.eq_ignore_ascii_case(known))
    });
    is_compressed.then_some(coding)
}

/// Replaces a compressed body by the text that describes it in errors.
pub(super) fn explain_compression(response: Response<HttpBody>) -> Response<HttpBody> {
    let coding = coding_of(response.headers()).filter(|_| !response.body().is_end_stream());
    let Some(coding) = coding else {
        return response;
    };
    let text = format!(
        "the server or a proxy before it compressed its answer ({}) although it was not asked to; turn compression off there",
        coding.chars().take(30).collect::<String>()
    );
    let body = Full::new(Bytes::from(text)).map_err(|never| match never {});
    response.map(|_| body.boxed_unsync())
}
