//! Two endpoints over Streamable HTTP: a POST on a separate connection for each message of the client, and a GET
//! stream.
//!
//! Bytes of bodies and events are moved in pieces of any size. A connection can be suspended while the others continue,
//! or be cut; both endpoints are notified of a cut.

use std::collections::BTreeMap;

use mcp_exact_session::frame::{KEPT_BYTES, Line, Lines, Oversized, end_line};
use mcp_exact_session::http::post_headers;
use mcp_exact_tests_session::*;
use mcp_exact_tests_support::Rng;

use crate::driver::{Link, Pipe, READ_BYTES};

/// Part of the server's response to an HTTP request that the server has sent so far.
#[derive(Debug, Default)]
struct ReceivedResponse {
    /// Response bytes that are not yet written to the pipe.
    unwritten: Vec<u8>,
    /// Number of bytes of `unwritten` that were written.
    written_bytes: usize,
    /// HTTP status of a response whose body is not an event stream.
    status: u16,
    /// True if the server has sent the complete response.
    is_finished: bool,
}

/// Connection of one HTTP request.
#[derive(Debug)]
struct Exchange {
    /// HTTP request line and headers.
    headers: HttpRequest,
    /// Body of the HTTP request.
    body: Vec<u8>,
    /// Number of bytes of the body that the server has received.
    sent_bytes: usize,
    /// Server's stream of the exchange; `None` until the server has received the complete request.
    stream: Option<StreamId>,
    /// True for the GET that opens the standalone stream.
    is_standalone: bool,
    /// Part of the response that the server has sent so far.
    response: ReceivedResponse,
    /// Pipe from the server to the client.
    response_pipe: Pipe,
    /// Splitter of the received bytes into lines of the event stream.
    lines: Lines,
    /// Received bytes of the body of an error response.
    refusal_body: Vec<u8>,
    /// True while no bytes are moved on the connection in either direction.
    is_suspended: bool,
}

/// Client and server with the connections between them.
pub(crate) struct Http {
    /// Client endpoint under test.
    client: ClientEndpoint,
    /// Server endpoint under test.
    server: ServerEndpoint<()>,
    /// Open HTTP connections, by the client's stream.
    exchanges: BTreeMap<StreamId, Exchange>,
    /// Maximum size of a message in bytes.
    message_limit: usize,
    /// Capacity of each response pipe in bytes.
    pipe_capacity: usize,
    /// True after a connection was cut; requests on it end by timeout.
    was_cut: bool,
}

impl Http {
    /// Creates both endpoints without connections; `pipe` is the capacity of each response pipe in bytes.
    pub(crate) fn new(client: ClientConfig, server: ServerConfig, pipe: usize) -> Self {
        let binding = Binding::StreamableHttp;
        let message_bytes = client.limits.message_bytes;
        let client = client.build().expect("a configuration");
        let server = server.build().expect("a configuration");
        Self {
            client: ClientEndpoint::new(client, binding, None, Time::ZERO),
            server: ServerEndpoint::new(server, binding, Time::ZERO),
            exchanges: BTreeMap::new(),
            message_limit: message_bytes,
            pipe_capacity: pipe,
            was_cut: false,
        }
    }

    /// Opens the client's standalone stream by a GET.
    pub(crate) fn open_standalone(&mut self) {
        let stream = self.client.open_standalone();
        let mut exchange = self.start_exchange(HttpRequest::default(), Vec::new());
        exchange.is_standalone = true;
        self.exchanges.insert(stream, exchange);
    }

    /// Creates the exchange of an HTTP request that is not yet sent.
    fn start_exchange(&self, headers: HttpRequest, body: Vec<u8>) -> Exchange {
        Exchange {
            headers,
            body,
            sent_bytes: 0,
            stream: None,
            is_standalone: false,
            response: ReceivedResponse::default(),
            response_pipe: Pipe::new(self.pipe_capacity),
            lines: Lines::new(self.message_limit),
            refusal_body: Vec::new(),
            is_suspended: false,
        }
    }

    /// Cuts the connection of a stream; both endpoints are notified of the loss.
    fn cut_connection(&mut self, stream: StreamId, now: Time) {
        let Some(exchange) = self.exchanges.remove(&stream) else {
            return;
        };
        self.was_cut = true;
        if let Some(stream) = exchange.stream {
            self.server.handle_close(stream, StreamEnd::Lost, now);
        }
        self.client.handle_close(stream, StreamEnd::Lost, now);
    }

    /// Starts a POST with the next message of the client; returns false if the client has no message to send.
    fn start_post(&mut self, now: Time) -> bool {
        let mut body = Vec::new();
        match self.client.poll_transmit(&mut body) {
            None => return false,
            Some(Transmit::Frame { stream, http, .. }) => {
                let headers = post_headers(&http);
                let exchange = self.start_exchange(HttpRequest::new(headers), body);
                self.exchanges.insert(stream, exchange);
            }
            // The client gives the request up: the connection closes, and the server learns of it.
            Some(Transmit::Close { stream }) => {
                if let Some(stream) = self.exchanges.remove(&stream).and_then(|e| e.stream) {
                    self.server.handle_close(stream, StreamEnd::Lost, now);
                }
            }
            Some(Transmit::EndSession) => self.server.end_session(now),
            Some(other) => panic!("{other:?}"),
        }
        true
    }

    /// Moves up to `most` bytes of one exchange in each direction; returns true if bytes were moved or the exchange has
    /// ended.
    fn move_exchange_bytes(&mut self, stream: StreamId, most: usize, now: Time) -> bool {
        let Some(mut exchange) = self.exchanges.remove(&stream) else {
            return false;
        };
        if exchange.is_suspended {
            self.exchanges.insert(stream, exchange);
            return false;
        }
        let mut moved = self.send_request(&mut exchange, most, now);
        moved |= self.write_response(&mut exchange, most);
        let (read, ended) = self.read_response(stream, &mut exchange, most, now);
        if !ended {
            self.exchanges.insert(stream, exchange);
        }
        moved | read | ended
    }

    /// Moves up to `most` bytes of the request body to the server; passes a complete request to the endpoint when it
    /// accepts input.
    fn send_request(&mut self, exchange: &mut Exchange, most: usize, now: Time) -> bool {
        if exchange.stream.is_some() || exchange.response.is_finished {
            return false;
        }
        let left = exchange.body.len() - exchange.sent_bytes;
        if left > 0 {
            exchange.sent_bytes += left.min(most);
            return true;
        }
        if !self.server.wants_input() && !self.server.is_closed() {
            return false;
        }
        let kind = if exchange.is_standalone {
            StreamKind::Standalone
        } else {
            StreamKind::Post
        };
        let Ok(stream) = self.server.open(kind) else {
            refuse_exchange(exchange, 503);
            return true;
        };
        exchange.stream = Some(stream);
        if exchange.is_standalone {
            return true;
        }
        let mut with = FrameContext::new(());
        with.http = Some(exchange.headers.clone());
        let body = std::mem::take(&mut exchange.body);
        let received = if body.len() > self.message_limit {
            let end = body.len().min(KEPT_BYTES);
            let (head, tail) = (&body[..end], &body[body.len() - end..]);
            let size = Some(body.len() as u64);
            let limit = Limit::MessageBytes;
            let kept = Oversized {
                head,
                tail,
                size,
                limit,
            };
            self.server.receive_oversized(stream, &kept, with, now)
        } else {
            self.server.receive(stream, &body, with, now)
        };
        received.expect("it wants input");
        true
    }

    /// Moves up to `most` bytes of the server's output into the response pipe.
    fn write_response(&mut self, exchange: &mut Exchange, most: usize) -> bool {
        let Some(stream) = exchange.stream else {
            return false;
        };
        let (mut left, mut moved) = (most, false);
        while left > 0 {
            let response = &mut exchange.response;
            if response.written_bytes < response.unwritten.len() {
                let rest = &response.unwritten[response.written_bytes..];
                let count = exchange.response_pipe.write(&rest[..rest.len().min(left)]);
                response.written_bytes += count;
                left -= count;
                if count == 0 {
                    break;
                }
            } else if response.is_finished {
                break;
            } else {
                response.unwritten = Vec::new();
                response.written_bytes = 0;
                match self.server.poll_transmit_on(stream) {
                    None => break,
                    Some((
                        Transmit::Frame {
                            is_last: last,
                            http,
                            ..
                        },
                        bytes,
                    )) => {
                        response.status = http.status.unwrap_or(200);
                        response.unwritten = bytes;
                        end_line(&mut response.unwritten);
                        response.is_finished = last;
                    }
                    Some((Transmit::Status { status, .. }, _)) => {
                        response.status = status;
                        response.is_finished = true;
                    }
                    Some((Transmit::Close { .. }, _)) => response.is_finished = true,
                    Some((other, _)) => panic!("{other:?}"),
                }
            }
            moved = true;
        }
        moved
    }

    /// Moves up to `most` bytes from the response pipe to the client if it accepts input.
    ///
    /// Returns two flags: bytes were moved; the response has ended.
    fn read_response(
        &mut self,
        stream: StreamId,
        exchange: &mut Exchange,
        most: usize,
        now: Time,
    ) -> (bool, bool) {
        let refused = exchange.response.status >= 400;
        let mut moved = false;
        if !refused {
            moved = self.deliver_lines(stream, exchange, now);
        }
        if !self.client.wants_input() && !self.client.is_closed() {
            return (moved, false);
        }
        let bytes = exchange.response_pipe.read(most.min(READ_BYTES));
        if refused {
            exchange.refusal_body.extend(&bytes);
        } else if !bytes.is_empty() {
            exchange.lines.push(&bytes);
            self.deliver_lines(stream, exchange, now);
        }
        let response = &exchange.response;
        let is_sent = response.is_finished && response.written_bytes == response.unwritten.len();
        if !bytes.is_empty() || !is_sent {
            return (moved || !bytes.is_empty(), false);
        }
        if self.client.is_closed() {
            return (moved, true);
        }
        if refused {
            let failure = TransportFailure::Status {
                code: response.status,
                body: std::mem::take(&mut exchange.refusal_body),
            };
            self.client.handle_failure(stream, failure, now);
            return (true, true);
        }
        // A line that waits for the client comes before the end.
        let waits = self.client.wants_input();
        if waits {
            self.client.handle_close(stream, StreamEnd::Clean, now);
        }
        (moved, waits)
    }

    /// Delivers the complete events to the client while it accepts input; returns true if a line was consumed.
    fn deliver_lines(&mut self, stream: StreamId, exchange: &mut Exchange, now: Time) -> bool {
        let mut moved = false;
        while self.client.wants_input() {
            let Some(line) = exchange.lines.next_line() else {
                break;
            };
            // An answer ends its stream: what follows has nowhere to go.
            let _ = match line {
                Line::Frame(frame) => self.client.receive(stream, frame, now),
                Line::Oversized(message) => self.client.receive_oversized(stream, &message, now),
            };
            moved = true;
        }
        moved
    }
}

impl Link for Http {
    fn client(&mut self) -> &mut ClientEndpoint {
        &mut self.client
    }

    fn server(&mut self) -> &mut ServerEndpoint<()> {
        &mut self.server
    }

    fn link_bytes(&self) -> usize {
        let of = |exchange: &Exchange| {
            let whole = exchange.body.capacity() + exchange.response.unwritten.capacity();
            // Lines that have come take as much again while their buffer grows.
            whole + self.pipe_capacity + 2 * (self.message_limit + READ_BYTES) + (16 << 10)
        };
        self.exchanges.values().map(of).sum()
    }

    fn is_moving(&self) -> bool {
        !self.was_cut
            && !self
                .exchanges
                .values()
                .any(|exchange| exchange.is_suspended)
    }

    /// Suspends, resumes or cuts a connection.
    fn toggle_random_peer(&mut self, rng: &mut Rng, now: Time) {
        let streams: Vec<StreamId> = self.exchanges.keys().copied().collect();
        if streams.is_empty() {
            return;
        }
        let stream = *rng.pick(&streams);
        match rng.below(3) {
            0 => self.cut_connection(stream, now),
            choice => {
                if let Some(exchange) = self.exchanges.get_mut(&stream) {
                    exchange.is_suspended = choice == 1;
                }
            }
        }
    }

    fn move_random_bytes(&mut self, rng: &mut Rng, most: usize, now: Time) -> bool {
        let streams: Vec<StreamId> = self.exchanges.keys().copied().collect();
        if streams.is_empty() || rng.chance(30) {
            self.start_post(now)
        } else {
            let stream = *rng.pick(&streams);
            self.move_exchange_bytes(stream, most, now)
        }
    }

    fn move_all_bytes(&mut self, most: usize, now: Time) -> bool {
        let mut moved = false;
        while self.start_post(now) {
            moved = true;
        }
        let streams: Vec<StreamId> = self.exchanges.keys().copied().collect();
        for stream in streams {
            moved |= self.move_exchange_bytes(stream, most, now);
        }
        moved
    }
}

/// Ends an exchange with an HTTP error status; the request has not reached the server endpoint.
fn refuse_exchange(exchange: &mut Exchange, status: u16) {
    exchange.response.status = status;
    exchange.response.is_finished = true;
}
