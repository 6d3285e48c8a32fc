//! Measures the time of a typed `tools/call` between a client endpoint and a server endpoint, compared with decoding
//! and encoding the two messages of the call once. The benchmark also compares a POST to a new server endpoint with a
//! POST to an existing endpoint.
//!
//! The two operations of a comparison run in turn, and the smallest CPU time of each is used. Prints a table, and
//! writes it to a page with `--markdown`; no exit code depends on a time. `--calls` makes a number of calls (or, with
//! `--codec`, decodes and encodes) without measuring, for callgrind. `--only` selects the lines that contain the words.

use std::hint::black_box;
use std::sync::Arc;

use bench_record::{Row, after, repeated, report, take_turns};
use mcp_exact_session::*;
use mcp_exact_wire::{Direction, RevisionTypes, decode_message, encode_into};

/// Sizes of the measured calls: name, bytes of text in each message, calls per round, and maximum time relative to the
/// codec.
const SIZES: [(&str, usize, u32, f64); 3] = [
    ("of 300 B", 150, 5_000, 2.0),
    ("of 2 kB", 1_800, 2_000, 2.0),
    ("of 20 kB", 20_000, 300, 1.6),
];

/// Maximum time of a POST to a new endpoint, divided by the time of a POST to an existing endpoint.
const MAX_NEW_ENDPOINT_RATIO: f64 = 1.2;

/// Client endpoint and server endpoint that have negotiated a revision and exchange messages in memory.
struct Pair {
    /// Client endpoint.
    client: ClientEndpoint,
    /// Server endpoint.
    server: ServerEndpoint<()>,
    /// Reused buffer for the bytes of one frame.
    frame: Vec<u8>,
}

/// Both messages of a call as text.
struct Messages {
    /// JSON text of the request.
    request: Vec<u8>,
    /// JSON text of the response.
    answer: Vec<u8>,
}

impl Pair {
    /// Creates both endpoints and negotiates the revision of `R`.
    fn new<R: RevisionTypes>() -> Self {
        let offer = Offer::new([R::REVISION.as_str()]).expect("compiled in");
        let mut config = ServerConfig::new(Identity::new("server", "1"));
        config.offer = offer.clone();
        config.limits.requests_per_second = u32::MAX;
        config.capabilities = r#"{"tools":{}}"#.parse().expect("an object");
        let server = ServerEndpoint::new(
            config.build().expect("a configuration"),
            Binding::Duplex,
            Time::ZERO,
        );
        let mut config = ClientConfig::new(Identity::new("client", "1"));
        config.offer = offer;
        let client = ClientEndpoint::new(
            config.build().expect("a configuration"),
            Binding::Duplex,
            None,
            Time::ZERO,
        );
        let mut pair = Self {
            client,
            server,
            frame: Vec::new(),
        };
        while pair.client.session_info().is_none() || pair.client.poll_timeout().is_some() {
            pair.deliver_to_server();
            pair.deliver_to_client();
        }
        while pair.client.poll_event().is_some() {}
        pair.deliver_to_server();
        while pair.server.poll_event().is_some() {}
        pair
    }

    /// Delivers all queued messages of the client to the server.
    fn deliver_to_server(&mut self) {
        self.frame.clear();
        while self.client.poll_transmit(&mut self.frame).is_some() {
            let (on, with) = (StreamId::DUPLEX, FrameContext::new(()));
            let received = self.server.receive(on, &self.frame, with, Time::ZERO);
            received.expect("open");
            self.frame.clear();
        }
    }

    /// Delivers all queued messages of the server to the client.
    fn deliver_to_client(&mut self) {
        self.frame.clear();
        while self.server.poll_transmit(&mut self.frame).is_some() {
            let received = self
                .client
                .receive(StreamId::DUPLEX, &self.frame, Time::ZERO);
            received.expect("open");
            self.frame.clear();
        }
    }

    /// Makes one complete call; the server decodes the params, and the client decodes the result, into the types of the
    /// revision.
    fn call(&mut self, params: &JsonObject, result: &RawResult) {
        let sent = self.client.request(
            "tools/call",
            Some(params.clone()),
            CallOptions::default(),
            Time::ZERO,
        );
        let key = sent.expect("it leaves");
        self.deliver_to_server();
        let Some(ServerEvent::Request(request)) = self.server.poll_event() else {
            panic!("no request");
        };
        black_box(request.typed().expect("a call"));
        let replied = self.server.reply(request.key, result.clone(), Time::ZERO);
        assert_eq!(replied, Ok(SendOutcome::Queued));
        self.deliver_to_client();
        match self.client.poll_event() {
            Some(ClientEvent::Completed(done, Outcome::Result(result))) if done == key => {
                let revision = request.revision();
                let typed = result.typed::<ServerResults>("tools/call", revision);
                black_box(typed.expect("a result"));
            }
            other => panic!("{other:?}"),
        }
    }

    /// Makes one call and returns its messages as text.
    fn messages(&mut self, params: &JsonObject, result: &RawResult) -> Messages {
        let options = CallOptions::default();
        let sent = self
            .client
            .request("tools/call", Some(params.clone()), options, Time::ZERO);
        sent.expect("it leaves");
        let mut messages = Messages {
            request: Vec::new(),
            answer: Vec::new(),
        };
        self.client.poll_transmit(&mut messages.request);
        let with = FrameContext::new(());
        let received = self
            .server
            .receive(StreamId::DUPLEX, &messages.request, with, Time::ZERO);
        received.expect("open");
        let Some(ServerEvent::Request(request)) = self.server.poll_event() else {
            panic!("no request");
        };
        let replied = self.server.reply(request.key, result.clone(), Time::ZERO);
        replied.expect("it waits");
        self.server.poll_transmit(&mut messages.answer);
        let received = self
            .client
            .receive(StreamId::DUPLEX, &messages.answer, Time::ZERO);
        received.expect("open");
        while self.client.poll_event().is_some() {}
        messages
    }
}

/// Decodes and encodes both messages of a call once, without endpoints.
fn codec<R: RevisionTypes>(messages: &Messages, out: &mut Vec<u8>) {
    once::<R::FromClient>(&messages.request, out);
    once::<R::FromServer>(&messages.answer, out);
}

/// Decodes a message and encodes the decoded message into `out`.
fn once<D: Direction>(text: &[u8], out: &mut Vec<u8>) {
    let decoded = decode_message::<D>(black_box(text), &|_| Some("tools/call"));
    out.clear();
    encode_into(&decoded.expect("a message"), out);
    black_box(out);
}

/// Returns a text with about this number of bytes.
fn text(bytes: usize) -> String {
    let line = "one line of source code, with \\\"quotes\\\" and more; ";
    line.repeat(bytes.div_ceil(line.len()))
}

/// Returns the params and the result of a call with about this number of bytes of text.
fn call(bytes: usize) -> (JsonObject, RawResult) {
    let text = text(bytes);
    let params =
        format!(r#"{{"name":"write_file","arguments":{{"path":"src/main.rs","text":"{text}"}}}}"#);
    let result = format!(r#"{{"content":[{{"type":"text","text":"{text}"}}],"isError":false}}"#);
    let object = |text: &str| -> JsonObject { text.parse().expect("an object") };
    (object(&params), RawResult::from(object(&result)))
}

/// Options of the command line, which select the operations to measure.
struct CommandOptions {
    /// Number of calls to make without measuring.
    calls: Option<u32>,
    /// True if the operation for comparison runs instead of the measured operation.
    codec: bool,
    /// Text that the names of the measured lines must contain.
    only: String,
}

/// Compares calls of each size with the codec, for the revision of `R`.
fn compare<R: RevisionTypes>(wanted: &CommandOptions, rows: &mut Vec<Row>) {
    for (name, bytes, calls, demanded) in SIZES {
        let what = format!("{} tools/call {name}", R::REVISION.as_str());
        if !what.contains(&wanted.only) {
            continue;
        }
        let (params, result) = call(bytes);
        let mut pair = Pair::new::<R>();
        let messages = pair.messages(&params, &result);
        let mut out = Vec::new();
        match wanted.calls {
            Some(calls) if wanted.codec => {
                (0..calls).for_each(|_| codec::<R>(&messages, &mut out));
            }
            Some(calls) => (0..calls).for_each(|_| pair.call(&params, &result)),
            None => {
                let base = repeated(|| codec::<R>(&messages, &mut out));
                let measured = repeated(|| pair.call(&params, &result));
                rows.push(Row {
                    what,
                    base: "codec",
                    demanded: Some(demanded),
                    cost: take_turns(calls, base, measured),
                });
            }
        }
    }
}

/// Returns the configuration of a server over HTTP without sessions.
fn stateless_settings<R: RevisionTypes>() -> Arc<ServerSettings> {
    let mut config = ServerConfig::new(Identity::new("server", "1"));
    config.offer = Offer::new([R::REVISION.as_str()]).expect("compiled in");
    config.limits.requests_per_second = u32::MAX;
    config.capabilities = r#"{"tools":{}}"#.parse().expect("an object");
    config.build().expect("a configuration")
}

/// Handles one POST of a call on a server endpoint: decodes the params and replies with `result`.
fn post(
    server: &mut ServerEndpoint<()>,
    request: &[u8],
    headers: &HttpRequest,
    result: &RawResult,
) {
    let stream = server.open(StreamKind::Post).expect("open");
    let mut with = FrameContext::new(());
    with.http = Some(headers.clone());
    let received = server.receive(stream, request, with, Time::ZERO);
    received.expect("open");
    let Some(ServerEvent::Request(request)) = server.poll_event() else {
        panic!("no request");
    };
    black_box(request.typed().expect("a call"));
    let replied = server.reply(request.key, result.clone(), Time::ZERO);
    assert_eq!(replied, Ok(SendOutcome::Queued));
    let sent = server.poll_transmit_on(stream).expect("a response");
    black_box(sent);
}

/// Compares a POST to a new endpoint with a POST to an existing endpoint, for calls of each size.
fn compare_stateless<R: RevisionTypes>(wanted: &CommandOptions, rows: &mut Vec<Row>) {
    for (name, bytes, calls, _) in SIZES {
        let what = format!("{} POST on a new endpoint {name}", R::REVISION.as_str());
        if !what.contains(&wanted.only) {
            continue;
        }
        let (params, result) = call(bytes);
        let request = Pair::new::<R>().messages(&params, &result).request;
        let headers = [
            ("mcp-protocol-version", R::REVISION.as_str()),
            ("mcp-method", "tools/call"),
            ("mcp-name", "write_file"),
        ];
        let headers = HttpRequest::new(headers);
        let settings = stateless_settings::<R>();
        let new =
            || ServerEndpoint::new(Arc::clone(&settings), Binding::StreamableHttp, Time::ZERO);
        let mut kept = new();
        if let Some(calls) = wanted.calls {
            (0..calls).for_each(|_| {
                if wanted.codec {
                    post(&mut kept, &request, &headers, &result)
                } else {
                    post(&mut new(), &request, &headers, &result)
                }
            });
            continue;
        }
        let base = repeated(|| post(&mut kept, &request, &headers, &result));
        let measured = repeated(|| post(&mut new(), &request, &headers, &result));
        rows.push(Row {
            what,
            base: "kept endpoint",
            demanded: Some(MAX_NEW_ENDPOINT_RATIO),
            cost: take_turns(calls, base, measured),
        });
    }
}

fn main() -> std::io::Result<()> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let wanted = CommandOptions {
        calls: after(&arguments, "--calls").and_then(|calls| calls.parse().ok()),
        codec: arguments.iter().any(|argument| argument == "--codec"),
        only: after(&arguments, "--only").unwrap_or_default(),
    };
    let mut rows = Vec::new();
    compare::<mcp_2025_11_25::V2025_11_25>(&wanted, &mut rows);
    compare::<mcp_2026_07_28::V2026_07_28>(&wanted, &mut rows);
    compare_stateless::<mcp_2026_07_28::V2026_07_28>(&wanted, &mut rows);
    report(
        &arguments,
        "A call in a session",
        "cargo xtask bench session",
        &rows,
    )
}
