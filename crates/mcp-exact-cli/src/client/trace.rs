//! HTTP client that prints the messages of requests and responses.

use std::io::{self, Write};
use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::BodyExt;
use mcp_exact::transport::http::client::{HttpClient, HttpFuture, HyperClient};
use mcp_exact::transport::sse::{Decoded, Decoder};

use crate::conversation::{Conversation, Options};
use crate::message::Direction;
use crate::output::Painter;
use crate::proxy;

/// Maximum size of an event that is parsed and printed, in bytes.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// HTTP client that prints the MCP messages in requests and responses.
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
    let _ = io::stderr().write_all(words.as_bytes());
}

/// Parser of a response body, which the content type selects.
enum BodyParser {
    /// Decoder of an event stream.
    Events(Decoder),
    /// Bytes received so far of a JSON document.
    Document(Vec<u8>),
    /// The body has another content type and is not parsed.
    Ignored,
}

impl BodyParser {
    /// Parses further bytes of the body, and prints complete messages.
    fn parse_bytes(&mut self, bytes: &[u8], printer: &Mutex<Conversation>) {
        match self {
            Self::Events(decoder) => {
                decoder.push(bytes);
                while let Some(event) = decoder.next_event() {
                    if let Decoded::Event(event) = event
                        && event.event == "message"
                        && !event.data.is_empty()
                    {
                        print_message(printer, Direction::Server, &event.data);
                    }
                }
            }
            Self::Document(document) => {
                document.extend_from_slice(bytes);
                let is_whole = serde_json::from_slice::<serde::de::IgnoredAny>(document).is_ok();
                if is_whole {
                    print_message(printer, Direction::Server, document);
                }
            }
            Self::Ignored => {}
        }
    }
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
            let _ = writeln!(io::stderr(), "{line}: {status}");
            let content_type = response.headers().get(http::header::CONTENT_TYPE);
            let content_type = content_type
                .and_then(|value| value.to_str().ok())
                .unwrap_or("");
            let mut reading = match content_type {
                found if found.starts_with("text/event-stream") => {
                    BodyParser::Events(Decoder::new(MAX_EVENT_BYTES))
                }
                found if found.starts_with("application/json") => BodyParser::Document(Vec::new()),
                _ => BodyParser::Ignored,
            };
            Ok(response.map(|body| {
                body.map_frame(move |frame| {
                    if let Some(bytes) = frame.data_ref() {
                        reading.parse_bytes(bytes, &printer);
                    }
                    frame
                })
                .boxed_unsync()
            }))
        })
    }
}
