//! HTTP client that prints the messages of requests and responses.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use mcp_exact::transport::http::client::{
    HttpBody, HttpClient, HttpClientError, HttpFuture, HyperClient,
};
use mcp_exact::transport::sse::{Decoded, Decoder};

use crate::conversation::{Conversation, Options};
use crate::message::Direction;
use crate::output::{Painter, without_control_characters};
use crate::proxy;
use crate::terminal::stderr;

/// Maximum size of an event that is parsed and printed, in bytes.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// Maximum number of characters that are printed of a text that is no message.
const MAX_SHOWN_CHARS: usize = 2000;

/// HTTP client that prints the MCP messages in requests and responses, and the beginning of other bodies.
pub struct TracingClient {
    /// HTTP client that sends the requests.
    client: HyperClient,
    /// Conversation in which the messages are checked; the lock keeps their order.
    printer: Arc<Mutex<Conversation>>,
}

impl TracingClient {
    /// Creates a tracing client that sends its requests with `client`.
    pub fn new(client: HyperClient) -> Self {
        // Messages of different streams may be printed in another order than sent.
        let options = Options {
            wants_unknown: false,
            is_ordered: false,
        };
        Self {
            client,
            printer: Arc::new(Mutex::new(Conversation::new(None, options))),
        }
    }
}

/// Checks a message, and prints it to standard error.
fn print_message(printer: &Mutex<Conversation>, from: Direction, message: &[u8]) {
    let text = String::from_utf8_lossy(message);
    let mut conversation = printer.lock().unwrap_or_else(PoisonError::into_inner);
    let observed = conversation.observe(Some(from), &text);
    let words = proxy::format_trace(&observed, &text, Painter::stderr());
    let _ = stderr().write_all(words.as_bytes());
}

/// Prints the messages of an event stream as far as they have arrived.
fn print_events(decoder: &mut Decoder, bytes: &[u8], printer: &Mutex<Conversation>) {
    decoder.push(bytes);
    while let Some(event) = decoder.next_event() {
        if let Decoded::Event(event) = event
            && !event.data.is_empty()
        {
            if event.event == "message" {
                print_message(printer, Direction::Server, &event.data);
            } else {
                let data = String::from_utf8_lossy(&event.data);
                print_text(&format!("event {}: {data}", event.event));
            }
        }
    }
}

/// Prints the body of a response that is no event stream: a message, or the beginning of another text.
fn print_body(media_type: &str, body: &[u8], printer: &Mutex<Conversation>) {
    let json = serde_json::from_slice::<serde_json::Value>(body).ok();
    let is_json = media_type.starts_with("application/json");
    if json.is_some_and(|json| is_json || json.get("jsonrpc").is_some()) {
        return print_message(printer, Direction::Server, body);
    }
    let text = String::from_utf8_lossy(body);
    if !text.trim().is_empty() {
        print_text(&format!("body: {text}"));
    }
}

/// Reads the body of a response that is no event stream.
async fn read_body(mut body: HttpBody) -> Result<Bytes, HttpClientError> {
    let mut whole = Vec::new();
    while let Some(frame) = body.frame().await {
        if let Ok(data) = frame?.into_data() {
            whole.extend_from_slice(&data);
        }
        if whole.len() > MAX_EVENT_BYTES {
            return Err(
                "the body of a response is too large to be shown; leave --trace out".into(),
            );
        }
    }
    Ok(whole.into())
}

/// Prints the beginning of a text that is no message, on one line.
fn print_text(text: &str) {
    let line: String = text.trim().chars().take(MAX_SHOWN_CHARS).collect();
    let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
    let _ = writeln!(stderr(), "    {}", without_control_characters(&line));
}

impl HttpClient for TracingClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        let printer = Arc::clone(&self.printer);
        Box::pin(async move {
            let line = format!("  {} {}", request.method(), request.uri());
            if !request.body().is_empty() {
                print_message(&printer, Direction::Client, request.body());
            }
            let response: Response<_> = self.client.send(request).await?;
            let status = response.status();
            let location = response.headers().get(http::header::LOCATION);
            let location = location.and_then(|value| value.to_str().ok());
            let location = location.map_or_else(String::new, |to| format!(", Location: {to}"));
            let line = format!("{line}: {status}{location}");
            let _ = writeln!(stderr(), "{}", without_control_characters(&line));
            let media_type = response.headers().get(http::header::CONTENT_TYPE);
            let media_type = media_type.and_then(|value| value.to_str().ok());
            let media_type = media_type.unwrap_or("").to_ascii_lowercase();
            if media_type.starts_with("text/event-stream") {
                let mut decoder = Decoder::new(MAX_EVENT_BYTES);
                return Ok(response.map(|body| {
                    body.map_frame(move |frame| {
                        if let Some(bytes) = frame.data_ref() {
                            print_events(&mut decoder, bytes, &printer);
                        }
                        frame
                    })
                    .boxed_unsync()
                }));
            }
            let (head, body) = response.into_parts();
            let body = read_body(body).await?;
            print_body(&media_type, &body, &printer);
            let body = Full::new(body).map_err(|never| match never {});
            Ok(Response::from_parts(head, body.boxed_unsync()))
        })
    }
}
