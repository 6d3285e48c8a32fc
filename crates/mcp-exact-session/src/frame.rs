//! Line framing of stdio: one message per line, no line break within a message (`basic/transports`).
//!
//! [`Lines`] splits received bytes into lines, and [`end_line`] terminates an outgoing frame. The module does no IO. At
//! most one line and the bytes after it are buffered. Only the beginning and the end of a line above the limit are
//! kept.

use crate::limits::Limit;

/// Maximum number of bytes that are kept at the beginning, and at the end, of a line above the limit.
pub const KEPT_BYTES: usize = 4096;

/// Returns the first line of a buffer without its end, and the number of bytes of the line with its end; `None` without a line
/// end.
pub fn split_line(buffer: &[u8]) -> Option<(&[u8], usize)> {
    let end = buffer.iter().position(|byte| *byte == b'\n')?;
    Some((trim_carriage_return(&buffer[..end]), end + 1))
}

/// Appends the line end to a frame that `poll_transmit` has written to a buffer.
///
/// Frames contain no line breaks, because the endpoint replaces line breaks between the tokens of untyped JSON by spaces.
pub fn end_line(buffer: &mut Vec<u8>) {
    buffer.push(b'\n');
}

/// Removes a carriage return at the end of a line.
fn trim_carriage_return(line: &[u8]) -> &[u8] {
    line.strip_suffix(b"\r").unwrap_or(line)
}

/// Beginning and end of a message above the size limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Oversized<'a> {
    /// First bytes of the message, at most [`KEPT_BYTES`].
    pub head: &'a [u8],
    /// Last bytes of the message, at most [`KEPT_BYTES`]; empty if the end was never received.
    pub tail: &'a [u8],
    /// Size of the message in bytes, if it is known.
    pub size: Option<u64>,
    /// Limit that the message exceeds: [`Limit::MessageBytes`] or [`Limit::MessageBudget`].
    pub limit: Limit,
}

/// Line that [`Lines::next_line`] returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Line<'a> {
    /// A non-empty line without its line end.
    Frame(&'a [u8]),
    /// Beginning and end of a line above the limit, for `receive_oversized` of an endpoint.
    Oversized(Oversized<'a>),
}

/// Splits received bytes into lines. Empty lines are skipped.
#[derive(Debug)]
pub struct Lines {
    /// Received bytes; the bytes before `start` were already returned.
    buffer: Vec<u8>,
    /// Offset of the first byte in the buffer that was not returned.
    start: usize,
    /// Number of bytes after `start` that contain no line end.
    scanned_bytes: usize,
    /// Maximum size of a line in bytes.
    limit: usize,
    /// Beginning, end and size so far of a line above the limit, until the end of the line is received.
    oversized: Option<(Vec<u8>, Vec<u8>, u64)>,
    /// Beginning, end and size of the latest complete line above the limit.
    finished_oversized: (Vec<u8>, Vec<u8>, u64),
}

impl Lines {
    /// Creates a splitter for lines of at most `limit` bytes: [`Limits::message_bytes`](crate::Limits::message_bytes).
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned_bytes: 0,
            limit,
            oversized: None,
            finished_oversized: (Vec::new(), Vec::new(), 0),
        }
    }

    /// Adds received bytes to the buffer.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.scanned_bytes -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the next line; `None` until more bytes are pushed.
    pub fn next_line(&mut self) -> Option<Line<'_>> {
        loop {
            let fresh = &self.buffer[self.scanned_bytes..];
            let Some(end) = memchr::memchr(b'\n', fresh) else {
                self.keep_unfinished();
                return None;
            };
            let line = self.start..self.scanned_bytes + end;
            self.start = line.end + 1;
            self.scanned_bytes = self.start;
            if self.oversized.is_some() || line.len() > self.limit {
                self.keep(line);
                self.finished_oversized = self.oversized.take().unwrap_or_default();
                return Some(Line::Oversized(self.kept_ends()));
            }
            if !self.buffer[line.clone()].trim_ascii().is_empty() {
                return Some(Line::Frame(trim_carriage_return(&self.buffer[line])));
            }
        }
    }

    /// Returns the remaining bytes at the end of input: a last line without a line end.
    pub fn take_remaining(&mut self) -> Option<Line<'_>> {
        let rest = self.start..self.buffer.len();
        self.start = rest.end;
        self.scanned_bytes = rest.end;
        if self.oversized.is_some() || rest.len() > self.limit {
            self.keep(rest);
            self.finished_oversized = self.oversized.take().unwrap_or_default();
            return Some(Line::Oversized(self.kept_ends()));
        }
        let line = trim_carriage_return(&self.buffer[rest]);
        (!line.trim_ascii().is_empty()).then_some(Line::Frame(line))
    }

    /// Reduces an incomplete line above the limit to its beginning and end.
    fn keep_unfinished(&mut self) {
        self.scanned_bytes = self.buffer.len();
        let line = self.start..self.scanned_bytes;
        if self.oversized.is_some() || line.len() > self.limit {
            self.keep(line);
            self.start = self.scanned_bytes;
        }
    }

    /// Adds a part of a line above the limit to its kept beginning and end.
    fn keep(&mut self, piece: std::ops::Range<usize>) {
        let piece = &self.buffer[piece];
        let (head, tail, size) = self.oversized.get_or_insert_default();
        *size += piece.len() as u64;
        let room = KEPT_BYTES.saturating_sub(head.len()).min(piece.len());
        head.extend_from_slice(&piece[..room]);
        tail.extend_from_slice(&piece[piece.len() - piece.len().min(KEPT_BYTES)..]);
        let more = tail.len().saturating_sub(KEPT_BYTES);
        tail.drain(..more);
    }

    /// Returns the beginning and end of the latest complete line above the limit.
    fn kept_ends(&self) -> Oversized<'_> {
        let (head, tail, size) = &self.finished_oversized;
        Oversized {
            head,
            tail: trim_carriage_return(tail),
            size: Some(*size),
            limit: Limit::MessageBytes,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the text of a line, or both ends of an oversized line.
    fn line_text(line: Line<'_>) -> String {
        match line {
            Line::Frame(line) => String::from_utf8_lossy(line).into_owned(),
            Line::Oversized(Oversized { head, tail, .. }) => {
                assert!(head.len() <= KEPT_BYTES && tail.len() <= KEPT_BYTES);
                let (head, tail) = (String::from_utf8_lossy(head), String::from_utf8_lossy(tail));
                format!("<{head}|{tail}>")
            }
        }
    }

    /// Returns the lines that a splitter with this size limit finds in the pieces of its input.
    fn lines(limit: usize, pieces: &[&str]) -> Vec<String> {
        let mut lines = Lines::new(limit);
        let mut found = Vec::new();
        for piece in pieces {
            lines.push(piece.as_bytes());
            while let Some(line) = lines.next_line() {
                found.push(line_text(line));
            }
        }
        found.extend(lines.take_remaining().map(line_text));
        found
    }

    /// The lines do not depend on the places at which the received bytes are divided.
    #[test]
    fn lines_are_joined_from_any_parts() {
        let text = "{\"a\":1}\r\n\n  \n{}\n{\"b\":\"\u{e9}\"}\nrest";
        let whole = lines(100, &[text]);
        assert_eq!(whole, ["{\"a\":1}", "{}", "{\"b\":\"\u{e9}\"}", "rest"]);
        for at in (0..text.len()).filter(|at| text.is_char_boundary(*at)) {
            assert_eq!(lines(100, &[&text[..at], &text[at..]]), whole);
        }
    }

    /// Only the first and the last bytes of a line above the limit are kept, and the following line is read as usual.
    #[test]
    fn oversized_lines_keep_their_ends() {
        let whole = ["<12345678|12345678>", "abc"];
        assert_eq!(lines(3, &["12345678\nabc\n"]), whole);
        assert_eq!(lines(3, &["1234", "5678", "\nabc\n"]), whole);
        assert_eq!(lines(3, &["1234", "56"]), ["<123456|123456>"]);
        let long = "x".repeat(3 * KEPT_BYTES);
        let kept = format!(
            "<a{}|{}b>",
            &long[..KEPT_BYTES - 1],
            &long[..KEPT_BYTES - 1]
        );
        let pieces = format!("a{long}b\n");
        assert_eq!(lines(3, &[&pieces]), std::slice::from_ref(&kept));
        let (one, other) = pieces.split_at(KEPT_BYTES + 7);
        assert_eq!(lines(3, &[one, other]), [kept]);
    }

    /// `split_line` removes the line end that `end_line` appends.
    #[test]
    fn end_line_and_split_line_agree() {
        let mut buffer = b"{}".to_vec();
        end_line(&mut buffer);
        assert_eq!(split_line(&buffer), Some((&b"{}"[..], 3)));
        assert_eq!(split_line(b"{}"), None);
    }
}
