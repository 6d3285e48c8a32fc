//! Line framing of byte streams, as on stdio: one message per line (`basic/transports`, "stdio").
//!
//! `Lines` performs no IO; `LineTransport` adds reading and writing. One read may return many lines, and all waiting
//! output is written by one write.

use mcp_exact_session::frame::{KEPT_BYTES, Oversized};
use mcp_exact_session::{BudgetShare, Limit};
use memchr::memchr;

use crate::transport::Received;

/// Splitter of received bytes into lines.
///
/// The buffer contains at most one line and the bytes that were read after it; lines above the limit are skipped.
#[derive(Debug)]
pub(crate) struct Lines {
    /// Received bytes.
    buffer: Vec<u8>,
    /// Offset of the first byte in the buffer that was not returned.
    start: usize,
    /// Offset up to which the buffer contains no line end.
    scanned: usize,
    /// Maximum size of a line in bytes.
    limit: usize,
    /// Share of the budget for lines that have not arrived completely, if there is a budget.
    share: Option<BudgetShare>,
    /// Kept bytes of the current line, if the line exceeds the limit.
    oversized: OversizedLine,
}

/// First and last bytes of a line that exceeds the limit.
#[derive(Debug, Default)]
struct OversizedLine {
    /// First bytes of the line.
    head: Vec<u8>,
    /// Last bytes of the line.
    tail: Vec<u8>,
    /// Size of the line so far.
    size: u64,
    /// True if such a line was begun and its end was not received.
    is_open: bool,
    /// True if the line fits its own limit, and the budget has no room for it.
    is_over_budget: bool,
}

impl OversizedLine {
    /// Adds a part of the line, of which only the first and last bytes are kept.
    fn add(&mut self, piece: &[u8]) {
        if !std::mem::replace(&mut self.is_open, true) {
            self.head.clear();
            self.tail.clear();
            self.size = 0;
        }
        self.size += piece.len() as u64;
        let room = KEPT_BYTES.saturating_sub(self.head.len()).min(piece.len());
        self.head.extend_from_slice(&piece[..room]);
        self.tail
            .extend_from_slice(&piece[piece.len().saturating_sub(KEPT_BYTES)..]);
        let more = self.tail.len().saturating_sub(KEPT_BYTES);
        self.tail.drain(..more);
    }

    /// Marks the line as complete and returns its kept bytes.
    fn end(&mut self) -> Received<'_> {
        self.is_open = false;
        Received::Oversized(Oversized {
            head: &self.head,
            tail: trim_return(&self.tail),
            size: Some(self.size),
            limit: if self.is_over_budget {
                Limit::MessageBudget
            } else {
                Limit::MessageBytes
            },
        })
    }
}

impl Lines {
    pub(crate) fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            limit,
            share: None,
            oversized: OversizedLine::default(),
        }
    }

    /// Returns the buffer to which read bytes are appended.
    pub(crate) fn buffer(&mut self) -> &mut Vec<u8> {
        if self.start == self.buffer.len() {
            self.buffer.clear();
        } else if self.start > 0 {
            self.buffer.drain(..self.start);
        }
        self.scanned -= self.start;
        self.start = 0;
        // The memory of a single large message is released.
        if self.buffer.capacity() > (1 << 20) && self.buffer.len() < (64 << 10) {
            self.buffer.shrink_to(128 << 10);
        }
        &mut self.buffer
    }

    /// Returns the next line that is not blank; `None` until more bytes are read.
    pub(crate) fn next(&mut self) -> Option<Received<'_>> {
        loop {
            let Some(end) = memchr(b'\n', &self.buffer[self.scanned..]) else {
                self.keep_unfinished();
                return None;
            };
            let line = self.start..self.scanned + end;
            self.start = line.end + 1;
            self.scanned = self.start;
            if !self.fits(line.len()) {
                self.oversized.add(&self.buffer[line]);
                return Some(self.oversized.end());
            }
            if !self.buffer[line.clone()].trim_ascii().is_empty() {
                return Some(Received::Frame(trim_return(&self.buffer[line])));
            }
        }
    }

    /// Returns the last line at the end of input, if the line is not blank and has no line end.
    pub(crate) fn rest(&mut self) -> Option<Received<'_>> {
        let rest = self.start..self.buffer.len();
        self.start = rest.end;
        self.scanned = rest.end;
        if !self.fits(rest.len()) {
            self.oversized.add(&self.buffer[rest]);
            return Some(self.oversized.end());
        }
        let line = trim_return(&self.buffer[rest]);
        (!line.trim_ascii().is_empty()).then_some(Received::Frame(line))
    }

    /// Moves the bytes of a line without a line end out of the buffer once the line exceeds the limit.
    fn keep_unfinished(&mut self) {
        self.scanned = self.buffer.len();
        if !self.fits(self.scanned - self.start) {
            self.oversized.add(&self.buffer[self.start..]);
            self.start = self.scanned;
        }
    }

    /// Returns true if a line of `size` bytes so far fits the limit, and takes room for it in the budget. A line that was begun
    /// as oversized never fits.
    fn fits(&mut self, size: usize) -> bool {
        let fits_limit = !self.oversized.is_open && size <= self.limit;
        let held = if fits_limit { size } else { 0 };
        let has_room = self.share.as_mut().is_none_or(|share| share.resize(held));
        if !self.oversized.is_open {
            self.oversized.is_over_budget = !has_room;
        }
        fits_limit && has_room
    }
}

/// Removes a carriage return at the end of a line.
fn trim_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

#[cfg(feature = "tokio")]
pub use io::LineTransport;

/// Line transport over asynchronous byte streams of tokio.
#[cfg(feature = "tokio")]
mod io {
    use std::future::{Future, poll_fn};
    use std::io;
    use std::pin::{Pin, pin};
    use std::task::{Context, Poll, ready};

    use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite};

    use mcp_exact_session::{BudgetShare, Limits};

    use super::Lines;
    use crate::transport::{KeptMessage, Received, Transport};

    /// Minimum free space in the buffer before a read, in bytes.
    const READ: usize = 64 << 10;

    /// Transport that sends one message per line over a byte stream.
    #[derive(Debug)]
    pub struct LineTransport<R, W> {
        /// Byte stream from the peer.
        reader: R,
        /// Byte stream to the peer.
        writer: W,
        /// Splitter of the received bytes.
        lines: Lines,
        /// First message, which [`first_message`](Self::first_message) has read.
        first: Option<KeptMessage>,
        /// True if the end of input was reached.
        has_ended: bool,
        /// Output that is not completely written.
        out: Vec<u8>,
        /// Number of bytes of `out` that were written.
        written: usize,
        /// Name of the kind of transport.
        name: &'static str,
    }

    impl<R, W> LineTransport<R, W> {
        /// Creates a transport that rejects lines of more than `message_bytes` bytes; the value should be
        /// [`Limits::message_bytes`](mcp_exact_session::Limits::message_bytes) of the configuration.
        pub fn new(reader: R, writer: W, message_bytes: usize) -> Self {
            Self {
                reader,
                writer,
                lines: Lines::new(message_bytes),
                first: None,
                has_ended: false,
                out: Vec::new(),
                written: 0,
                name: "stream",
            }
        }

        /// Counts lines that have not arrived completely against the budget of these limits.
        #[must_use]
        pub fn with_budget(mut self, limits: &Limits) -> Self {
            self.lines.share = Some(BudgetShare::new(limits));
            self
        }

        /// Sets the [`name`](Transport::name) of the kind of transport; `stream` by default.
        #[must_use]
        pub fn with_name(mut self, name: &'static str) -> Self {
            self.name = name;
            self
        }
    }

    impl<R, W> LineTransport<R, W>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        /// Waits for the first message and returns it; `None` at the end of input, and for a message above the limit. The
        /// message is received as usual afterwards.
        ///
        /// # Errors
        /// An IO error if the connection has failed.
        pub async fn first_message(&mut self) -> io::Result<Option<Vec<u8>>> {
            if self.first.is_none() {
                let first = &mut None;
                poll_fn(|cx| {
                    self.poll_receive(cx, &mut |received| {
                        *first = Some(KeptMessage::from(received));
                        false
                    })
                })
                .await?;
                self.first = first.take();
            }
            Ok(match &self.first {
                Some(KeptMessage::Frame(message)) => Some(message.clone()),
                _ => None,
            })
        }
    }

    impl<R, W> Transport for LineTransport<R, W>
    where
        R: AsyncRead + Unpin + Send + 'static,
        W: AsyncWrite + Unpin + Send + 'static,
    {
        fn name(&self) -> &'static str {
            self.name
        }

        fn poll_receive(
            &mut self,
            cx: &mut Context<'_>,
            sink: &mut dyn FnMut(Received<'_>) -> bool,
        ) -> Poll<io::Result<bool>> {
            let mut has_received = false;
            if let Some(first) = self.first.take() {
                has_received = true;
                if !sink(first.received()) {
                    return Poll::Ready(Ok(true));
                }
            }
            loop {
                while let Some(received) = self.lines.next() {
                    has_received = true;
                    if !sink(received) {
                        return Poll::Ready(Ok(true));
                    }
                }
                if has_received {
                    return Poll::Ready(Ok(true));
                }
                if self.has_ended {
                    return Poll::Ready(Ok(false));
                }
                let buffer = self.lines.buffer();
                buffer.reserve(READ);
                // The buffer is not initialised before the read, because most reads fill only a small part of it.
                let read = pin!(self.reader.read_buf(buffer));
                let count = ready!(read.poll(cx))?;
                if count == 0 {
                    self.has_ended = true;
                    if let Some(received) = self.lines.rest() {
                        sink(received);
                        return Poll::Ready(Ok(true));
                    }
                }
            }
        }

        fn output(&mut self) -> &mut Vec<u8> {
            &mut self.out
        }

        fn end_frame(&mut self) {
            self.out.push(b'\n');
        }

        fn queued(&self) -> usize {
            self.out.len() - self.written
        }

        fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            while self.written < self.out.len() {
                let rest = &self.out[self.written..];
                let count = ready!(Pin::new(&mut self.writer).poll_write(cx, rest))?;
                if count == 0 {
                    return Poll::Ready(Err(io::ErrorKind::WriteZero.into()));
                }
                self.written += count;
            }
            self.out.clear();
            self.written = 0;
            if self.out.capacity() > (1 << 20) {
                self.out.shrink_to(64 << 10);
            }
            Pin::new(&mut self.writer).poll_flush(cx)
        }

        fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
            ready!(self.poll_flush(cx))?;
            Pin::new(&mut self.writer).poll_shutdown(cx)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the lines that result from a stream that arrives in pieces; a line above the limit is returned with the
    /// prefix `oversized`.
    fn split(limit: usize, pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        let mut note = |received: Received<'_>| {
            found.push(match received {
                Received::Frame(line) => String::from_utf8_lossy(line).into_owned(),
                Received::Oversized(Oversized { head, tail, .. }) => {
                    let text = |bytes| String::from_utf8_lossy(bytes).into_owned();
                    format!("oversized {} {}", text(head), text(tail))
                }
            });
        };
        for piece in pieces {
            lines.buffer().extend_from_slice(piece.as_bytes());
            while let Some(received) = lines.next() {
                note(received);
            }
        }
        if let Some(rest) = lines.rest() {
            note(rest);
        }
        found
    }

    /// The same lines are returned, however the bytes are divided into reads.
    #[test]
    fn lines_are_whole_however_they_arrive() {
        let text = "{\"a\":1}\r\n\n  \n{}\n{\"b\":\"\u{e9}\"}\nrest";
        let whole = split(100, &[text]);
        assert_eq!(whole, ["{\"a\":1}", "{}", "{\"b\":\"\u{e9}\"}", "rest"]);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(split(100, &[&text[..at], &text[at..]]), whole);
        }
    }

    /// A line above the limit is reported as oversized, and the following lines are returned.
    #[test]
    fn oversized_line_is_skipped_alone() {
        let expected = ["oversized 12345678 12345678", "abc"];
        assert_eq!(split(3, &["12345678\nabc\n"]), expected);
        assert_eq!(split(3, &["1234", "5678\r", "\nabc\n"])[1], "abc");
        assert_eq!(split(3, &["1234", "56"]), ["oversized 123456 123456"]);
    }

    /// After large lines were read, the capacity of the buffer is at most one mebibyte.
    #[test]
    fn memory_of_large_lines_is_released() {
        let mut lines = Lines::new(10);
        for _ in 0..100 {
            lines.buffer().extend_from_slice(&[b'x'; 100_000]);
            while lines.next().is_some() {}
        }
        lines.buffer();
        assert!(lines.buffer.capacity() <= 1 << 20);
    }
}
