//! HTTP client that prints the messages of requests and responses.

use std::sync::{Arc, Mutex, PoisonError};

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::{BodyExt, Full};
use mcp_exact::transport::http::client::{
    HttpBody, HttpClient, HttpClientError, HttpFuture, HyperClient,
};
use mcp_exact::transport::sse::{Decoded, Decoder};

use super::tap::{Held, SentLists};
use crate::conversation::{Conversation, Options};
use crate::message::Direction;
use crate::output::Painter;
use crate::proxy;
use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, text};

/// Maximum size of an event that is parsed and printed, in bytes.
const MAX_EVENT_BYTES: usize = 64 << 20;

/// Maximum number of characters that are printed of a text that is no message.
const MAX_SHOWN_CHARS: usize = 2000;

/// HTTP client of a connection, which is open as long as somebody has the client.
pub struct CountedClient {
    /// HTTP client that sends the requests.
    pub client: HyperClient,
    /// Part of the connection.
    pub _held: Held,
}

impl HttpClient for CountedClient {
    fn send(&self, request: Request<Bytes>) -> HttpFuture<'_> {
        self.client.send(request)
    }
}

/// HTTP client that prints the MCP messages in requests and responses, and the beginning of other bodies.
pub struct TracingClient {
    /// HTTP client that sends the requests.
    client: CountedClient,
    /// Receiver of the messages.
    printer: Arc<Printer>,
}

/// Receiver of the messages of a connection.
struct Printer {
    /// Conversation in which the messages are checked; the lock keeps their order.
    conversation: Mutex<Conversation>,
    /// True if messages are printed.
    is_printing: bool,
    /// Lists of the server.
    lists: SentLists,
}

impl TracingClient {
    /// Creates a client that sends its requests with `client`, keeps the lists of the server if they are wanted, and prints
    /// messages if `is_printing` is true.
    pub fn new(client: CountedClient, is_printing: bool, lists: SentLists) -> Self {
        // Messages of different streams may be printed in another order than sent.
        let options = Options {
            wants_unknown: false,
            is_ordered: false,
        };
        Self {
            client,
            printer: Arc::new(Printer {
                conversation: Mutex::new(Conversation::new(None, options)),
                is_printing,
                lists,
            }),
        }
    }
}

/// Checks a message, and prints it to standard error.
fn print_message(printer: &Printer, from: Direction, message: &[u8]) {
    if from == Direction::Server {
        printer.lists.observe(message);
    }
    if !printer.is_printing {
        return;
    }
    let text = String::from_utf8_lossy(message);
    let conversation = printer.conversation.lock();
    let mut conversation = conversation.unwrap_or_else(PoisonError::into_inner);
    let observed = conversation.observe(Some(from), &text);
    print_to_stderr(&proxy::format_trace(&observed, &text, Painter::stderr()));
}

/// Prints the messages of an event stream as far as they have arrived.
fn print_events(decoder: &mut Decoder, bytes: &[u8], printer: &Printer) {
    decoder.push(bytes);
    while let Some(event) = decoder.next_event() {
        if let Decoded::Event(event) = event
            && !event.data.is_empty()
        {
            if event.event == "message" {
                print_message(printer, Direction::Server, &event.data);
            } else {
                let data = String::from_utf8_lossy(&event.data);
                printer.print_text(&format!("event {}: {data}", event.event));
            }
        }
    }
}

/// Prints the body of a response that is no event stream: a message, or the beginning of another text.
fn print_body(media_type: &str, body: &[u8], printer: &Printer) {
    let json = serde_json::from_slice::<serde_json::Value>(body).ok();
    let is_json = media_type.starts_with("application/json");
    if json.is_some_and(|json| is_json || json.get("jsonrpc").is_some()) {
        return print_message(printer, Direction::Server, body);
    }
    let text = String::from_utf8_lossy(body);
    if !text.trim().is_empty() {
        printer.print_text(&format!("body: {text}"));
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

impl Printer {
    /// Prints the beginning of a text that is no message, on one line.
    fn print_text(&self, text: &str) {
        if self.is_printing {
            let line: String = text.trim().chars().take(MAX_SHOWN_CHARS).collect();
            let line = line.split_whitespace().collect::<Vec<_>>().join(" ");
            print_to_stderr(&text!("    {}", Untrusted(&line)));
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
            let location = response.headers().get(http::header::LOCATION);
            let location = location.and_then(|value| value.to_str().ok());
            let location = location.map_or_else(String::new, |to| format!(", Location: {to}"));
            let line = format!("{line}: {status}{location}");
            if printer.is_printing {
                print_to_stderr(&text!("{}", Untrusted(&line)));
            }
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
