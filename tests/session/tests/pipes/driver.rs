//! Drives an endpoint over two pipes, like a program on stdio: the driver buffers one outgoing frame and the bytes of
//! one read.
//!
//! Bytes are moved in pieces of any size, and reading and writing can be suspended.

use std::collections::VecDeque;

use mcp_exact_session::frame::{Line, Lines, end_line};
use mcp_exact_tests_session::*;
use mcp_exact_tests_support::Rng;

/// Maximum number of bytes per read.
pub(crate) const READ_BYTES: usize = 64 << 10;

/// Simulated pipe of a fixed capacity.
#[derive(Debug)]
pub(crate) struct Pipe {
    /// Written bytes that were not read.
    bytes: VecDeque<u8>,
    /// Maximum number of bytes that are written but not read.
    capacity: usize,
    /// True if the pipe is closed for writing.
    is_ended: bool,
}

impl Pipe {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            bytes: VecDeque::with_capacity(capacity),
            capacity,
            is_ended: false,
        }
    }

    /// Writes as many bytes as fit; returns their number.
    pub(crate) fn write(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.capacity - self.bytes.len());
        self.bytes.extend(&bytes[..count]);
        count
    }

    /// Reads and returns up to `most` bytes.
    pub(crate) fn read(&mut self, most: usize) -> Vec<u8> {
        let count = self.bytes.len().min(most);
        self.bytes.drain(..count).collect()
    }
}

/// Connection that moves bytes between a client and a server.
pub(crate) trait Link {
    /// Returns the client endpoint.
    fn client(&mut self) -> &mut ClientEndpoint;
    /// Returns the server endpoint.
    fn server(&mut self) -> &mut ServerEndpoint<()>;

    /// Returns the maximum number of bytes that the link itself buffers, outside of the endpoints.
    fn link_bytes(&self) -> usize;

    /// Returns true if no peer or connection is suspended and no connection was cut.
    fn is_moving(&self) -> bool;

    /// Suspends or resumes a random peer or connection; may also cut a connection.
    fn toggle_random_peer(&mut self, rng: &mut Rng, now: Time);

    /// Moves up to `most` bytes at a random end of the link; returns true if bytes were moved.
    fn move_random_bytes(&mut self, rng: &mut Rng, most: usize, now: Time) -> bool;

    /// Moves up to `most` bytes at each end of the link; returns true if bytes were moved.
    fn move_all_bytes(&mut self, most: usize, now: Time) -> bool;
}

/// Client process and server process with a pipe in each direction.
pub(crate) struct Pipes {
    /// Endpoint of the client process.
    client: ClientEndpoint,
    /// Endpoint of the server process.
    server: ServerEndpoint<()>,
    /// Drivers of the client and of the server.
    drivers: [Driver; 2],
    /// Pipes to the server and to the client.
    pipes: [Pipe; 2],
    /// Maximum size in bytes of a message in transit.
    largest_message: usize,
    /// Capacity of each pipe in bytes.
    capacity: usize,
}

impl Pipes {
    pub(crate) fn new(client: ClientConfig, server: ServerConfig, capacity: usize) -> Self {
        let message = client.limits.message_bytes;
        Self {
            client: mcp_exact_tests_session::client(client),
            server: mcp_exact_tests_session::server(server),
            drivers: [Driver::new(message), Driver::new(message)],
            pipes: [Pipe::new(capacity), Pipe::new(capacity)],
            largest_message: message + message / 4 + 1024,
            capacity,
        }
    }

    /// Moves bytes at one of the four ends of the pipes.
    fn move_bytes_at(&mut self, end: usize, most: usize, now: Time) -> bool {
        let ([client, server], [up, down]) = (&mut self.drivers, &mut self.pipes);
        match end {
            0 => client.write(&mut self.client, up, most),
            1 => server.read(&mut self.server, up, most, now),
            2 => server.write(&mut self.server, down, most),
            _ => client.read(&mut self.client, down, most, now),
        }
    }
}

impl Link for Pipes {
    fn client(&mut self) -> &mut ClientEndpoint {
        &mut self.client
    }

    fn server(&mut self) -> &mut ServerEndpoint<()> {
        &mut self.server
    }

    /// Includes the pipes, and for each process the frame being written and the received lines, with spare capacity.
    fn link_bytes(&self) -> usize {
        2 * self.capacity + 6 * (self.largest_message + READ_BYTES)
    }

    fn is_moving(&self) -> bool {
        let mut drivers = self.drivers.iter();
        drivers.all(|driver| driver.is_reading && driver.is_writing)
    }

    fn toggle_random_peer(&mut self, rng: &mut Rng, _: Time) {
        let driver = &mut self.drivers[rng.below(2)];
        match rng.below(4) {
            0 => driver.is_reading = false,
            1 => driver.is_writing = false,
            _ => (driver.is_reading, driver.is_writing) = (true, true),
        }
    }

    fn move_random_bytes(&mut self, rng: &mut Rng, most: usize, now: Time) -> bool {
        self.move_bytes_at(rng.below(4), most, now)
    }

    fn move_all_bytes(&mut self, most: usize, now: Time) -> bool {
        (0..4).fold(false, |moved, end| {
            moved | self.move_bytes_at(end, most, now)
        })
    }
}

/// Common interface of client and server endpoints for the driver.
trait Peer {
    /// Writes the next frame to `out` and returns its transport instruction, if there is output.
    fn poll_output(&mut self, out: &mut Vec<u8>) -> Option<Transmit>;
    /// Returns true if the endpoint accepts further input.
    fn accepts_input(&self) -> bool;
    /// Delivers one line of the input.
    fn receive_line(&mut self, line: &Line<'_>, now: Time);
    /// Notifies the endpoint of the end of its input.
    fn close_input(&mut self, now: Time);
}

impl Peer for ClientEndpoint {
    fn poll_output(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        self.poll_transmit(out)
    }

    fn accepts_input(&self) -> bool {
        self.wants_input()
    }

    fn receive_line(&mut self, line: &Line<'_>, now: Time) {
        let taken = match line {
            Line::Frame(frame) => self.receive(StreamId::DUPLEX, frame, now),
            Line::Oversized(message) => self.receive_oversized(StreamId::DUPLEX, message, now),
        };
        taken.expect("it wants input");
    }

    fn close_input(&mut self, now: Time) {
        self.handle_close(StreamId::DUPLEX, StreamEnd::Clean, now);
    }
}

impl Peer for ServerEndpoint<()> {
    fn poll_output(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        self.poll_transmit(out)
    }

    fn accepts_input(&self) -> bool {
        self.wants_input()
    }

    fn receive_line(&mut self, line: &Line<'_>, now: Time) {
        let with = FrameContext::new(());
        let taken = match line {
            Line::Frame(frame) => self.receive(StreamId::DUPLEX, frame, with, now),
            Line::Oversized(message) => {
                self.receive_oversized(StreamId::DUPLEX, message, with, now)
            }
        };
        taken.expect("it wants input");
    }

    fn close_input(&mut self, now: Time) {
        self.handle_close(StreamId::DUPLEX, StreamEnd::Clean, now);
    }
}

/// Reader and writer of one process.
#[derive(Debug)]
struct Driver {
    /// Splitter of the read bytes into lines.
    lines: Lines,
    /// Frame that is being written.
    output: Vec<u8>,
    /// Number of bytes of `output` that were written to the pipe.
    written_bytes: usize,
    /// True if the endpoint was notified of the end of its input.
    input_ended: bool,
    /// False while the process has suspended reading.
    is_reading: bool,
    /// False while the process has suspended writing.
    is_writing: bool,
}

impl Driver {
    /// Creates a driver for messages of at most `message_bytes` bytes.
    fn new(message_bytes: usize) -> Self {
        Self {
            lines: Lines::new(message_bytes),
            output: Vec::new(),
            written_bytes: 0,
            input_ended: false,
            is_reading: true,
            is_writing: true,
        }
    }

    /// Writes up to `most` bytes to the pipe; returns true if bytes were written.
    fn write(&mut self, peer: &mut impl Peer, pipe: &mut Pipe, most: usize) -> bool {
        let (mut left, mut moved) = (most, false);
        while self.is_writing && left > 0 && !pipe.is_ended {
            if self.written_bytes < self.output.len() {
                let rest = &self.output[self.written_bytes..];
                let count = pipe.write(&rest[..rest.len().min(left)]);
                self.written_bytes += count;
                left -= count;
                if count == 0 {
                    break;
                }
            } else {
                self.output = Vec::new();
                self.written_bytes = 0;
                match peer.poll_output(&mut self.output) {
                    None => break,
                    Some(Transmit::Close { .. }) => pipe.is_ended = true,
                    Some(_) => end_line(&mut self.output),
                }
            }
            moved = true;
        }
        moved
    }

    /// Reads up to `most` bytes into the endpoint, if it accepts input; returns true if bytes were read.
    fn read(&mut self, peer: &mut impl Peer, pipe: &mut Pipe, most: usize, now: Time) -> bool {
        if !self.is_reading {
            return false;
        }
        // Lines that have waited for the endpoint come first.
        let moved = self.deliver_lines(peer, now);
        if !peer.accepts_input() {
            return moved;
        }
        let bytes = pipe.read(most.min(READ_BYTES));
        if !bytes.is_empty() {
            self.lines.push(&bytes);
            self.deliver_lines(peer, now);
            return true;
        }
        if pipe.is_ended && !self.input_ended {
            self.input_ended = true;
            peer.close_input(now);
            return true;
        }
        moved
    }

    /// Delivers the complete lines while the endpoint accepts input; returns true if a line was delivered.
    fn deliver_lines(&mut self, peer: &mut impl Peer, now: Time) -> bool {
        let mut moved = false;
        while peer.accepts_input() {
            let Some(line) = self.lines.next_line() else {
                break;
            };
            peer.receive_line(&line, now);
            moved = true;
        }
        moved
    }
}
