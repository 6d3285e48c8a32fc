//! Drives an endpoint over two pipes, as a program on stdio does: holds one frame that is being written and the lines of one read.
//!
//! Takes and gives bytes in pieces of any size. Stops reading or writing when it is told to.

use std::collections::VecDeque;

use mcp_exact_session::frame::{Line, Lines, end_line};
use mcp_exact_tests_session::*;

/// Bytes that are read at a time, at most.
pub(crate) const READ: usize = 64 << 10;

/// Pipe of a fixed capacity.
#[derive(Debug)]
pub(crate) struct Pipe {
    bytes: VecDeque<u8>,
    capacity: usize,
    /// Whether nothing more is written into it.
    pub(crate) is_ended: bool,
}

impl Pipe {
    pub(crate) fn new(capacity: usize) -> Self {
        Self {
            bytes: VecDeque::with_capacity(capacity),
            capacity,
            is_ended: false,
        }
    }

    /// Writes as much as there is room for, and returns how much.
    fn write(&mut self, bytes: &[u8]) -> usize {
        let count = bytes.len().min(self.capacity - self.bytes.len());
        self.bytes.extend(&bytes[..count]);
        count
    }

    fn read(&mut self, most: usize) -> Vec<u8> {
        let count = self.bytes.len().min(most);
        self.bytes.drain(..count).collect()
    }
}

/// What client and server have in common for a driver.
pub(crate) trait Peer {
    fn transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit>;
    fn reads(&self) -> bool;
    fn take(&mut self, line: &Line<'_>, now: Time);
    fn end_of_input(&mut self, now: Time);
}

impl Peer for ClientEndpoint {
    fn transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        self.poll_transmit(out)
    }

    fn reads(&self) -> bool {
        self.wants_input()
    }

    fn take(&mut self, line: &Line<'_>, now: Time) {
        let taken = match line {
            Line::Frame(frame) => self.receive(StreamId::DUPLEX, frame, now),
            Line::Oversized(message) => self.receive_oversized(StreamId::DUPLEX, message, now),
        };
        taken.expect("it wants input");
    }

    fn end_of_input(&mut self, now: Time) {
        self.closed(StreamId::DUPLEX, Closed::Clean, now);
    }
}

impl Peer for ServerEndpoint<()> {
    fn transmit(&mut self, out: &mut Vec<u8>) -> Option<Transmit> {
        self.poll_transmit(out)
    }

    fn reads(&self) -> bool {
        self.wants_input()
    }

    fn take(&mut self, line: &Line<'_>, now: Time) {
        let with = FrameContext::new(());
        let taken = match line {
            Line::Frame(frame) => self.receive(StreamId::DUPLEX, frame, with, now),
            Line::Oversized(message) => {
                self.receive_oversized(StreamId::DUPLEX, message, with, now)
            }
        };
        taken.expect("it wants input");
    }

    fn end_of_input(&mut self, now: Time) {
        self.closed(StreamId::DUPLEX, Closed::Clean, now);
    }
}

/// The reading and writing of one process.
#[derive(Debug)]
pub(crate) struct Driver {
    lines: Lines,
    out: Vec<u8>,
    written: usize,
    /// Whether the endpoint was told that its input has ended.
    ended: bool,
    pub(crate) reads: bool,
    pub(crate) writes: bool,
}

impl Driver {
    pub(crate) fn new(message_bytes: usize) -> Self {
        Self {
            lines: Lines::new(message_bytes),
            out: Vec::new(),
            written: 0,
            ended: false,
            reads: true,
            writes: true,
        }
    }

    /// Writes what there is room for, at most `most` bytes; returns true if anything has moved.
    pub(crate) fn write(&mut self, peer: &mut impl Peer, pipe: &mut Pipe, most: usize) -> bool {
        let (mut left, mut moved) = (most, false);
        while self.writes && left > 0 && !pipe.is_ended {
            if self.written < self.out.len() {
                let rest = &self.out[self.written..];
                let count = pipe.write(&rest[..rest.len().min(left)]);
                self.written += count;
                left -= count;
                if count == 0 {
                    break;
                }
            } else {
                self.out = Vec::new();
                self.written = 0;
                match peer.transmit(&mut self.out) {
                    None => break,
                    Some(Transmit::Close { .. }) => pipe.is_ended = true,
                    Some(_) => end_line(&mut self.out),
                }
            }
            moved = true;
        }
        moved
    }

    /// Reads what the endpoint wants, at most `most` bytes; returns true if anything has moved.
    pub(crate) fn read(
        &mut self,
        peer: &mut impl Peer,
        pipe: &mut Pipe,
        most: usize,
        now: Time,
    ) -> bool {
        if !self.reads {
            return false;
        }
        // Lines that have waited for the endpoint come first.
        let moved = self.take_lines(peer, now);
        if !peer.reads() {
            return moved;
        }
        let bytes = pipe.read(most.min(READ));
        if !bytes.is_empty() {
            self.lines.push(&bytes);
            self.take_lines(peer, now);
            return true;
        }
        if pipe.is_ended && !self.ended {
            self.ended = true;
            peer.end_of_input(now);
            return true;
        }
        moved
    }

    fn take_lines(&mut self, peer: &mut impl Peer, now: Time) -> bool {
        let mut moved = false;
        while peer.reads() {
            let Some(line) = self.lines.next_line() else {
                break;
            };
            peer.take(&line, now);
            moved = true;
        }
        moved
    }
}
