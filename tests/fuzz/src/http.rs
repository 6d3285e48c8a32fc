//! Properties of the HTTP service: every request gets a response whose body matches its headers, and no resources are
//! in use after the end.
//!
//! The input is text: requests that are separated by lines `===`, each with a first line `METHOD TARGET [FRAMES]`,
//! headers, an empty line and a body. The response is dropped after `FRAMES` body frames. `$1` to `$9` are replaced by
//! the ids of the created sessions, `@1` to `@9` by the last event ids of the previous responses.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, Response, Uri};
use http_body_util::{BodyExt, Full};
use mcp_exact_session::{
    Identity, InputRequest, JsonObject, PeerError, Progress, RawResult, Reply, ServerConfig,
    ServerEvent,
};
use mcp_exact_transport::event_log::MemoryEventLog;
use mcp_exact_transport::http::server::{HttpServerOptions, HttpService, ResponseBody};
use mcp_exact_transport::sse::{Decoded, Decoder};
use mcp_exact_transport::{RequestContext, ServerHandle, ServerHandler};
use mcp_exact_wire::{Json, from_slice};

/// Maximum number of requests per input.
const MAX_REQUESTS: usize = 24;
/// Number of body frames that are read from a response if the request does not state a number.
const DEFAULT_FRAMES: usize = 32;
/// Maximum number of sessions of the service.
const MAX_SESSIONS: usize = 4;
/// Time limit for a response, measured with a simulated clock that advances when all tasks wait.
const RESPONSE_TIMEOUT: Duration = Duration::from_secs(100_000);

/// Sends the requests that the input contains to a service.
pub fn http(bytes: &[u8]) {
    response_kinds(bytes);
}

/// Sends the requests that the input contains to a service; returns the statuses and media types of the responses, such
/// as `200 text/event-stream`.
pub fn response_kinds(bytes: &[u8]) -> BTreeSet<String> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_time()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let handler: Arc<dyn ServerHandler> = Arc::new(reply_to);
    let observed = runtime.block_on(async {
        let mut site = ServiceUnderTest::new(Arc::clone(&handler));
        for request in split(bytes, b"\n===\n").into_iter().take(MAX_REQUESTS) {
            site.send(request).await;
        }
        site.service.end_sessions();
        assert_eq!(site.service.sessions(), 0);
        site.observed
    });
    drop(runtime);
    assert_eq!(Arc::strong_count(&handler), 1, "a session is left");
    observed
}

/// Handles an event of the server: replies immediately to every request, except to calls with `never` in their params.
fn reply_to(server: &ServerHandle, event: ServerEvent<RequestContext>) {
    let ServerEvent::Request(request) = event else {
        return;
    };
    let params = request.params().map(ToString::to_string);
    let params = params.unwrap_or_default();
    let result = |text: &str| -> Reply {
        let object: JsonObject = text.parse().expect("an object");
        Reply::Result(RawResult::from(object))
    };
    let text = result(r#"{"content":[{"type":"text","text":"a"}]}"#);
    let reply = match request.method() {
        "tools/list" => result(r#"{"tools":[{"name":"a","inputSchema":{"type":"object"}}]}"#),
        "tools/call" if params.contains("never") => return,
        "tools/call" if params.contains("ask") && request.responses.is_empty() => {
            Reply::InputRequired {
                requests: vec![("roots".to_owned(), InputRequest::new("roots/list", None))],
                state: None,
            }
        }
        "tools/call" => {
            let _ = server.progress(request.key, &Progress::new(1.0));
            text
        }
        other => PeerError::method_not_found(other).into(),
    };
    if let Err(error) = server.reply(request.key, reply) {
        let error = PeerError::internal(error.to_string());
        let _ = server.reply(request.key, error);
    }
}

/// HTTP service with the ids and responses that its simulated clients have received.
struct ServiceUnderTest {
    /// Service that receives the requests.
    service: HttpService,
    /// Ids of the sessions that the service has created.
    sessions: Vec<String>,
    /// Last event id of each response that has event ids.
    events: Vec<String>,
    /// Responses that were not read to their end.
    unread_responses: Vec<Response<ResponseBody>>,
    /// Statuses and media types of all responses so far.
    observed: BTreeSet<String>,
}

impl ServiceUnderTest {
    /// Creates a service with this handler and at most [`MAX_SESSIONS`] sessions.
    fn new(handler: Arc<dyn ServerHandler>) -> Self {
        let mut config = ServerConfig::new(Identity::new("fuzz", "1"));
        let capabilities = r#"{"tools":{"listChanged":true},"logging":{}}"#;
        config.capabilities = capabilities.parse().expect("an object");
        let options = HttpServerOptions {
            event_log: Some(Arc::new(MemoryEventLog::default())),
            sessions: MAX_SESSIONS,
            // Measured with the real clock: no session makes room for another one.
            unused_after: Duration::from_secs(3600),
            stream_after: Duration::from_millis(1),
            ..HttpServerOptions::default()
        };
        let settings = config.build().expect("a configuration");
        Self {
            service: HttpService::new(settings, handler, options),
            sessions: Vec::new(),
            events: Vec::new(),
            unread_responses: Vec::new(),
            observed: BTreeSet::new(),
        }
    }

    /// Sends the request that the text describes, and reads its response.
    async fn send(&mut self, text: &[u8]) {
        let text = self.replace_placeholders(text);
        let Some((request, frames)) = parse(&text) else {
            return;
        };
        let described = format!("{request:?}");
        let response = tokio::time::timeout(RESPONSE_TIMEOUT, self.service.respond(request)).await;
        let response = response.unwrap_or_else(|_| panic!("no response to {described}"));
        assert_ne!(response.status(), 500, "{described}");
        assert!(self.service.sessions() <= MAX_SESSIONS, "{described}");
        let media = response.headers().get("content-type");
        let media = media.map_or("", |media| media.to_str().unwrap_or("?"));
        let observed = format!("{} {media}", response.status().as_u16());
        self.observed.insert(observed.trim_end().to_owned());
        if let Some(id) = response.headers().get("mcp-session-id") {
            let id = id.to_str().expect("visible ASCII").to_owned();
            self.sessions.push(id);
        }
        self.read(response, frames, &described).await;
    }

    /// Reads up to `frames` body frames of a response; checks that the body matches the headers. `of` describes the
    /// request in failures.
    async fn read(&mut self, mut response: Response<ResponseBody>, frames: usize, of: &str) {
        if frames == 0 {
            return;
        }
        let media = response.headers().get("content-type");
        let media = media.map(|media| media.to_str().expect("ASCII").to_owned());
        let mut whole = Vec::new();
        let mut is_over = false;
        for _ in 0..frames {
            // Streams of sessions go on for as long as their comments keep them alive.
            let frame = tokio::time::timeout(Duration::from_secs(1), response.body_mut().frame());
            match frame.await {
                Ok(Some(frame)) => {
                    let data = frame.expect("no error").into_data();
                    whole.extend_from_slice(&data.expect("data"));
                }
                Ok(None) => {
                    is_over = true;
                    break;
                }
                Err(_) => break,
            }
        }
        match media.as_deref() {
            Some("application/json") => assert!(from_slice::<Json>(&whole).is_ok(), "{of}"),
            Some("text/event-stream") => self.store_event_ids(&whole, of),
            Some(other) => panic!("{other} answers {of}"),
            None => assert!(whole.is_empty(), "{of}"),
        }
        if !is_over {
            self.unread_responses.push(response);
        }
    }

    /// Stores the session ids and the last event id in a received part of an event stream; `of` describes the request
    /// in failures.
    fn store_event_ids(&mut self, bytes: &[u8], of: &str) {
        let mut decoder = Decoder::new(1 << 22);
        decoder.push(bytes);
        while let Some(Decoded::Event(event)) = decoder.next_event() {
            let data = String::from_utf8(event.data).expect("UTF-8");
            if event.event == "endpoint" {
                let id = data.rsplit('=').next().expect("an id");
                self.sessions.push(id.to_owned());
            } else if !data.is_empty() {
                assert!(from_slice::<Json>(data.as_bytes()).is_ok(), "{of}: {data}");
            }
        }
        self.events
            .extend(decoder.last_event_id().map(str::to_owned));
    }

    /// Replaces `$1` to `$9` in a request by ids of sessions, and `@1` to `@9` by event ids.
    fn replace_placeholders(&self, text: &[u8]) -> Vec<u8> {
        let mut filled = Vec::with_capacity(text.len());
        let mut bytes = text.iter().copied();
        while let Some(byte) = bytes.next() {
            let ids = match byte {
                b'$' => &self.sessions,
                b'@' => &self.events,
                _ => {
                    filled.push(byte);
                    continue;
                }
            };
            let number = bytes.next().unwrap_or_default();
            let at = usize::from(number.wrapping_sub(b'1'));
            match ids.get(at) {
                Some(id) => filled.extend_from_slice(id.as_bytes()),
                None => filled.extend_from_slice(&[byte, number]),
            }
        }
        filled
    }
}

/// Parses a request and the number of body frames to read; `None` if an HTTP server would refuse the text before it
/// reaches a service.
fn parse(text: &[u8]) -> Option<(Request<Full<Bytes>>, usize)> {
    let (head, body) = match split(text, b"\n\n").first() {
        Some(head) => (*head, text.get(head.len() + 2..).unwrap_or_default()),
        None => (text, &[][..]),
    };
    let mut lines = head.split(|byte| *byte == b'\n');
    let first = std::str::from_utf8(lines.next()?).ok()?;
    let mut words = first.split(' ');
    let method: Method = words.next()?.parse().ok()?;
    let target: Uri = words.next()?.parse().ok()?;
    let frames = words.next().and_then(|count| count.parse().ok());
    let mut request = Request::new(Full::new(Bytes::copy_from_slice(body)));
    *request.method_mut() = method;
    *request.uri_mut() = target;
    for line in lines {
        let Some(colon) = line.iter().position(|byte| *byte == b':') else {
            continue;
        };
        let name = HeaderName::from_bytes(&line[..colon]);
        let value = HeaderValue::from_bytes(line[colon + 1..].trim_ascii());
        if let (Ok(name), Ok(value)) = (name, value) {
            request.headers_mut().append(name, value);
        }
    }
    Some((
        request,
        frames.unwrap_or(DEFAULT_FRAMES).min(DEFAULT_FRAMES),
    ))
}

/// Splits a text at every occurrence of the separator.
fn split<'a>(mut text: &'a [u8], separator: &[u8]) -> Vec<&'a [u8]> {
    let mut parts = Vec::new();
    while let Some(at) = text
        .windows(separator.len())
        .position(|window| window == separator)
    {
        parts.push(&text[..at]);
        text = &text[at + separator.len()..];
    }
    parts.push(text);
    parts
}
