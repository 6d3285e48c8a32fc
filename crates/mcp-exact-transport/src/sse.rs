//! Framing of server-sent events (WHATWG HTML, section 9.2), without IO.
//!
//! The encoder appends events to a buffer; the decoder accepts bytes as they arrive and returns complete events. The
//! decoder buffers at most one event and the bytes that follow the event, and limits the size of an event.

use mcp_exact_session::frame::KEPT_BYTES;
use mcp_exact_session::{BudgetShare, Limit, Limits};
use memchr::memchr2;

/// Content type of an event stream.
pub const CONTENT_TYPE: &str = "text/event-stream";

/// UTF-8 byte order mark, which may precede a stream.
const BYTE_ORDER_MARK: &[u8] = b"\xef\xbb\xbf";

/// Maximum length of an event id in bytes. Longer ids are ignored, because an id must fit into a header when the stream
/// is resumed.
const MAX_ID_BYTES: usize = 1024;

/// Appends an event that carries `data`, with an id if the stream is resumable.
///
/// Line breaks in `data` become several `data` fields, so that the decoder returns the same text, with every line break
/// as LF. Line breaks and NUL in an id are omitted.
pub fn encode_event(out: &mut Vec<u8>, id: Option<&str>, event: Option<&str>, data: &[u8]) {
    if let Some(id) = id {
        encode_field(out, b"id: ", id.as_bytes());
    }
    if let Some(event) = event {
        encode_field(out, b"event: ", event.as_bytes());
    }
    let mut rest = data;
    loop {
        out.extend_from_slice(b"data: ");
        let Some(end) = memchr2(b'\r', b'\n', rest) else {
            out.extend_from_slice(rest);
            out.extend_from_slice(b"\n\n");
            return;
        };
        out.extend_from_slice(&rest[..end]);
        out.push(b'\n');
        let is_pair = rest[end..].starts_with(b"\r\n");
        rest = &rest[end + 1 + usize::from(is_pair)..];
    }
}

/// Appends an event without a message, which provides an id for resumption and, if given, the reconnection time in
/// milliseconds (2025-11-25, `basic/transports`, "Sending Messages to the Server").
pub fn encode_priming(out: &mut Vec<u8>, id: Option<&str>, retry_ms: Option<u64>) {
    if let Some(id) = id {
        encode_field(out, b"id: ", id.as_bytes());
    }
    if let Some(retry) = retry_ms {
        encode_field(out, b"retry: ", retry.to_string().as_bytes());
    }
    out.extend_from_slice(b"data: \n\n");
}

/// Appends a comment, which every client ignores.
///
/// Comments keep the connection alive and make it possible to detect dead peers.
pub fn encode_comment(out: &mut Vec<u8>, text: &str) {
    encode_field(out, b": ", text.as_bytes());
    out.push(b'\n');
}

/// Appends a field with a name and a value to an event.
fn encode_field(out: &mut Vec<u8>, name: &[u8], value: &[u8]) {
    out.extend_from_slice(name);
    let allowed = value
        .iter()
        .filter(|byte| !matches!(byte, b'\r' | b'\n' | 0));
    out.extend(allowed);
    out.push(b'\n');
}

/// Received event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Event {
    /// Type of the event; `message` if the stream specifies none.
    pub event: String,
    /// Data of the event, with its lines joined by LF. The data are not checked to be UTF-8.
    pub data: Vec<u8>,
    /// Last event id that was received with this event or an earlier event; empty before the first id.
    pub id: String,
}

/// Event that the decoder has decoded or skipped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Decoded {
    /// A complete event.
    Event(Event),
    /// An event larger than the limit was skipped.
    Oversized {
        /// First bytes of the event's data.
        head: Vec<u8>,
        /// Last bytes of the event's data.
        tail: Vec<u8>,
        /// Size of the event's data in bytes.
        size: u64,
        /// Limit that the event exceeds: that of the decoder, or the budget.
        limit: Limit,
    },
}

/// Incremental decoder of an event stream.
#[derive(Debug)]
pub struct Decoder {
    /// Received bytes.
    buffer: Vec<u8>,
    /// Offset of the first byte in the buffer that was not decoded.
    start: usize,
    /// Offset up to which the buffer contains no line end.
    scanned: usize,
    /// Maximum size of an event's data or of a line, in bytes.
    limit: usize,
    /// True until the first bytes were checked for a byte order mark.
    at_beginning: bool,
    /// True if the last line ended with CR, so that a following LF belongs to the same line end.
    skip_line_feed: bool,
    /// True if the rest of the current line is skipped, because the line exceeds the limit.
    skip_line: bool,
    /// True if the data of the current event exceeds the limit or the budget.
    oversized: bool,
    /// Share of the budget for events that have not arrived completely, if there is a budget.
    share: Option<BudgetShare>,
    /// True if the budget has no room for the current event.
    is_over_budget: bool,
    /// Type of the current event.
    event: String,
    /// Data of the current event, or its first bytes if it exceeds the limit.
    data: Vec<u8>,
    /// Last bytes of an event that exceeds the limit.
    tail: Vec<u8>,
    /// Size of the current event's data in bytes.
    size: u64,
    /// True if the current event has a `data` field.
    has_data: bool,
    /// Latest `id` field, including that of an incomplete event ("last event ID buffer" in the standard).
    id_buffer: String,
    /// Last event id at the end of the last complete event.
    last_id: String,
    /// Reconnection time in milliseconds that the stream has set.
    retry_ms: Option<u64>,
}

impl Decoder {
    /// Creates a decoder that skips events with more than `limit` bytes of data, or with a longer line.
    pub fn new(limit: usize) -> Self {
        Self {
            buffer: Vec::new(),
            start: 0,
            scanned: 0,
            limit,
            at_beginning: true,
            skip_line_feed: false,
            skip_line: false,
            oversized: false,
            share: None,
            is_over_budget: false,
            event: String::new(),
            data: Vec::new(),
            tail: Vec::new(),
            size: 0,
            has_data: false,
            id_buffer: String::new(),
            last_id: String::new(),
            retry_ms: None,
        }
    }

    /// Counts events that have not arrived completely against the budget of these limits.
    #[must_use]
    pub fn with_budget(mut self, limits: &Limits) -> Self {
        self.share = Some(BudgetShare::new(limits));
        self
    }

    /// Sets the last event id of a resumed stream, which applies until the stream sends another id.
    #[must_use]
    pub fn resumed_after(mut self, id: &str) -> Self {
        id.clone_into(&mut self.last_id);
        id.clone_into(&mut self.id_buffer);
        self
    }

    /// Adds received bytes.
    pub fn push(&mut self, bytes: &[u8]) {
        self.buffer.drain(..self.start);
        self.scanned -= self.start;
        self.start = 0;
        self.buffer.extend_from_slice(bytes);
    }

    /// Returns the value for `Last-Event-ID`: the last event id at the end of the last complete event, even if that
    /// event had no data.
    ///
    /// Returns `None` before the first id and after an empty id.
    pub fn last_event_id(&self) -> Option<&str> {
        (!self.last_id.is_empty()).then_some(self.last_id.as_str())
    }

    /// Returns the reconnection time in milliseconds that the stream has set (`retry` field).
    pub fn retry_ms(&self) -> Option<u64> {
        self.retry_ms
    }

    /// Returns the next event, or `None` until more bytes are pushed. Bytes that remain at the end of a stream are not
    /// an event and are dropped with the decoder.
    pub fn next_event(&mut self) -> Option<Decoded> {
        if self.at_beginning && !self.skip_mark() {
            return None;
        }
        loop {
            if self.skip_line_feed {
                let next = *self.buffer.get(self.start)?;
                self.skip_line_feed = false;
                if next == b'\n' {
                    self.start += 1;
                    self.scanned = self.scanned.max(self.start);
                }
            }
            let Some(end) = memchr2(b'\r', b'\n', &self.buffer[self.scanned..]) else {
                self.keep_unfinished();
                return None;
            };
            let line = self.start..self.scanned + end;
            self.skip_line_feed = self.buffer[line.end] == b'\r';
            self.start = line.end + 1;
            self.scanned = self.start;
            if std::mem::take(&mut self.skip_line) {
                self.size += line.len() as u64;
                keep_tail(&mut self.tail, &self.buffer[line]);
                continue;
            }
            if line.is_empty() {
                if let Some(decoded) = self.dispatch() {
                    return Some(decoded);
                }
                continue;
            }
            self.hold(line.len());
            self.take_line(line);
        }
    }

    /// Skips a byte order mark at the beginning of the stream; returns false while too few bytes were received to
    /// detect one.
    fn skip_mark(&mut self) -> bool {
        let arrived = &self.buffer[..self.buffer.len().min(BYTE_ORDER_MARK.len())];
        if arrived.len() < BYTE_ORDER_MARK.len() && BYTE_ORDER_MARK.starts_with(arrived) {
            return false;
        }
        self.at_beginning = false;
        if arrived == BYTE_ORDER_MARK {
            self.start = BYTE_ORDER_MARK.len();
            self.scanned = self.start;
        }
        true
    }

    /// Drops the received part of a line that exceeds the limit before its end was received; keeps the first bytes of a
    /// `data` line.
    fn keep_unfinished(&mut self) {
        self.scanned = self.buffer.len();
        let size = self.scanned - self.start;
        self.hold(size);
        let most = if self.oversized {
            KEPT_BYTES
        } else {
            self.limit
        };
        if !self.skip_line && size > most.saturating_add(16) {
            let line = self.start..self.scanned;
            self.take_line(line);
            self.oversized = true;
            self.skip_line = true;
        } else if self.skip_line {
            self.size += (self.scanned - self.start) as u64;
        }
        if self.skip_line {
            keep_tail(&mut self.tail, &self.buffer[self.start..]);
            self.start = self.scanned;
        }
    }

    /// Takes room in the budget for the current event and a line of `size` bytes; skips the event if there is none.
    fn hold(&mut self, size: usize) {
        let held = if self.oversized {
            0
        } else {
            self.data.len() + size
        };
        if self.share.as_mut().is_none_or(|share| share.resize(held)) {
            return;
        }
        self.is_over_budget = true;
        self.oversized = true;
        keep_tail(&mut self.tail, &self.data);
        self.data.truncate(KEPT_BYTES);
    }

    /// Processes a line of the buffer, which is a field, a comment or empty.
    fn take_line(&mut self, line: std::ops::Range<usize>) {
        let line = &self.buffer[line];
        let (name, value) = match memchr::memchr(b':', line) {
            Some(0) => return,
            Some(colon) => {
                let value = &line[colon + 1..];
                (&line[..colon], value.strip_prefix(b" ").unwrap_or(value))
            }
            None => (line, &line[line.len()..]),
        };
        match name {
            b"data" => {
                if self.has_data && !self.oversized {
                    self.data.push(b'\n');
                }
                self.has_data = true;
                self.size += value.len() as u64;
                let room = self.limit.saturating_sub(self.data.len());
                if self.oversized || value.len() > room {
                    self.oversized = true;
                    keep_tail(&mut self.tail, value);
                    let kept = KEPT_BYTES.min(self.limit);
                    self.data.extend_from_slice(&value[..value.len().min(kept)]);
                    self.data.truncate(kept);
                } else {
                    self.data.extend_from_slice(value);
                }
            }
            b"event" => self.event = String::from_utf8_lossy(value).into_owned(),
            b"id" if value.len() <= MAX_ID_BYTES && !value.contains(&0) => {
                self.id_buffer = String::from_utf8_lossy(value).into_owned();
            }
            b"retry" if !value.is_empty() && value.iter().all(u8::is_ascii_digit) => {
                let digits = std::str::from_utf8(value).unwrap_or_default();
                self.retry_ms = Some(digits.parse().unwrap_or(u64::MAX));
            }
            _ => {}
        }
    }

    /// Completes the current event and makes its id the last event id; returns `None` if the event has no data.
    fn dispatch(&mut self) -> Option<Decoded> {
        self.last_id.clone_from(&self.id_buffer);
        let event = std::mem::take(&mut self.event);
        let data = std::mem::take(&mut self.data);
        let has_data = std::mem::take(&mut self.has_data);
        let tail = std::mem::take(&mut self.tail);
        let size = std::mem::take(&mut self.size);
        let is_over_budget = std::mem::take(&mut self.is_over_budget);
        if std::mem::take(&mut self.oversized) {
            let limit = if is_over_budget {
                Limit::MessageBudget
            } else {
                Limit::MessageBytes
            };
            return Some(Decoded::Oversized {
                head: data,
                tail,
                size,
                limit,
            });
        }
        has_data.then(|| {
            Decoded::Event(Event {
                event: if event.is_empty() {
                    "message".to_owned()
                } else {
                    event
                },
                data,
                id: self.last_id.clone(),
            })
        })
    }
}

/// Appends `piece` to the last bytes of an event that is skipped; drops earlier bytes.
fn keep_tail(tail: &mut Vec<u8>, piece: &[u8]) {
    tail.extend_from_slice(&piece[piece.len().saturating_sub(KEPT_BYTES)..]);
    let more = tail.len().saturating_sub(KEPT_BYTES);
    tail.drain(..more);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a stream that arrives in pieces; returns its events as `type|id|data`, and the decoder.
    fn decode_pieces(limit: usize, pieces: &[&[u8]]) -> (Vec<String>, Decoder) {
        let mut decoder = Decoder::new(limit);
        let mut found = Vec::new();
        for piece in pieces {
            decoder.push(piece);
            while let Some(decoded) = decoder.next_event() {
                found.push(match decoded {
                    Decoded::Event(event) => format!(
                        "{}|{}|{}",
                        event.event,
                        event.id,
                        String::from_utf8_lossy(&event.data)
                    ),
                    Decoded::Oversized { head, .. } => {
                        format!("oversized {}", String::from_utf8_lossy(&head))
                    }
                });
            }
        }
        (found, decoder)
    }

    /// Decodes a stream; returns its events as `type|id|data`.
    fn decode(text: &str) -> Vec<String> {
        let (whole, _) = decode_pieces(1000, &[text.as_bytes()]);
        for at in 0..=text.len() {
            let (first, second) = text.as_bytes().split_at(at);
            let (found, decoder) = decode_pieces(1000, &[first, second]);
            assert_eq!(found, whole, "cut at {at} of {text:?}");
            let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
            assert_eq!(decode_pieces(1000, &bytes).1.last_id, decoder.last_id);
        }
        whole
    }

    /// The decoder returns the expected events for the examples of WHATWG HTML, section 9.2.6.
    #[test]
    fn decodes_examples_of_the_standard() {
        assert_eq!(
            decode("data: YHOO\ndata: +2\ndata: 10\n\n"),
            ["message||YHOO\n+2\n10"]
        );
        let text = ": test stream\n\ndata: first event\nid: 1\n\ndata:second event\nid\n\ndata:  third event\n\n";
        assert_eq!(
            decode(text),
            [
                "message|1|first event",
                "message||second event",
                "message|| third event"
            ]
        );
        assert_eq!(
            decode("data\n\ndata\ndata\n\ndata:"),
            ["message||", "message||\n"]
        );
        assert_eq!(
            decode("data:test\n\ndata: test\n\n"),
            ["message||test", "message||test"]
        );
    }

    #[test]
    fn every_line_end_is_accepted() {
        let expected = ["add|7|a\nb", "message|7|c"];
        for end in ["\n", "\r", "\r\n"] {
            let text = [
                "event: add",
                "id: 7",
                "data: a",
                "data: b",
                "",
                "data: c",
                "",
                "",
            ];
            assert_eq!(decode(&text.join(end)), expected, "{end:?}");
        }
    }

    /// Only one byte order mark at the beginning of the stream is skipped.
    #[test]
    fn byte_order_mark_is_skipped_once() {
        assert_eq!(decode("\u{feff}data: a\n\n"), ["message||a"]);
        assert_eq!(decode("\u{feff}\u{feff}data: a\n\n"), Vec::<String>::new());
        assert_eq!(decode("data: \u{feff}\n\n"), ["message||\u{feff}"]);
    }

    #[test]
    fn ids_with_nul_are_ignored() {
        assert_eq!(decode("id: 1\nid: a\0b\ndata: x\n\n"), ["message|1|x"]);
    }

    /// The fields `id` and `retry` take effect in an event without data, which is not returned.
    #[test]
    fn ids_and_retry_need_no_data() {
        let (found, decoder) = decode_pieces(100, &[b"id: 5\nretry: 1500\n\nretry: 1x\n\n"]);
        assert!(found.is_empty());
        assert_eq!(decoder.last_event_id(), Some("5"));
        assert_eq!(decoder.retry_ms(), Some(1500));
    }

    /// The id of an incomplete event is not the last event id, so that the server sends the event again.
    ///
    /// "the user agent must ... set the last event ID string of the event source to the value of the last event ID
    /// buffer" when it dispatches an event (WHATWG HTML, section 9.2.6).
    #[test]
    fn incomplete_event_sets_no_id() {
        let mut decoder = Decoder::new(100).resumed_after("1-3");
        assert_eq!(decoder.last_event_id(), Some("1-3"));
        decoder.push(b"data: a\n\n");
        assert!(decoder.next_event().is_some());
        assert_eq!(decoder.last_event_id(), Some("1-3"));
        decoder.push(b"id: 1-4\ndata: a\n\nid: 1-5\ndata: {");
        assert!(decoder.next_event().is_some());
        assert_eq!(decoder.next_event(), None);
        assert_eq!(decoder.last_event_id(), Some("1-4"));
        decoder.push(b"}\n\n");
        assert!(decoder.next_event().is_some());
        assert_eq!(decoder.last_event_id(), Some("1-5"));
        decoder.push(b"id\n\n");
        assert_eq!(decoder.next_event(), None);
        assert_eq!(decoder.last_event_id(), None);
    }

    /// An id that is too long for the header `Last-Event-ID` is ignored, and the previous id is kept.
    #[test]
    fn ids_unfit_for_headers_are_ignored() {
        let long = "x".repeat(MAX_ID_BYTES);
        for (id, kept) in [(format!("{long}y"), "1"), (long.clone(), &*long)] {
            let text = format!("id: 1\nid: {id}\ndata: a\n\n");
            let (found, _) = decode_pieces(5000, &[text.as_bytes()]);
            assert_eq!(found, [format!("message|{kept}|a")]);
        }
    }

    /// An event without an empty line at its end is not returned.
    #[test]
    fn unfinished_event_is_dropped() {
        assert_eq!(decode("data: a\n\ndata: b\n"), ["message||a"]);
    }

    /// An event above the limit is reported as oversized, and the following events are returned.
    #[test]
    fn oversized_event_is_skipped_alone() {
        let text = b"data: 0123456789abcdef\n\ndata: x\n\n";
        assert_eq!(
            decode_pieces(10, &[text]).0,
            ["oversized 0123456789", "message||x"]
        );
        let many = "data: 0123456789abcdefghijklmnopqrstuvwxyz";
        let pieces: Vec<&[u8]> = many
            .as_bytes()
            .chunks(3)
            .chain([&b"zz\n\ndata: y\n\n"[..]])
            .collect();
        let (found, decoder) = decode_pieces(10, &pieces);
        assert_eq!(found, ["oversized 0123456789", "message||y"]);
        assert!(decoder.buffer.capacity() < 128);
        let lines = b"data: 01234\ndata: 01234\ndata: 01234\n\ndata: z\n\n";
        assert_eq!(decode_pieces(10, &[lines]).0[1], "message||z");
    }

    /// The decoder returns the type, id and data of events that the encoder has written.
    #[test]
    fn encoded_events_are_decoded_again() {
        let mut out = Vec::new();
        encode_priming(&mut out, Some("1-0"), Some(2000));
        encode_comment(&mut out, "keep-alive");
        encode_event(&mut out, Some("1-1"), None, b"{\"a\":1}");
        encode_event(&mut out, None, Some("endpoint"), b"/a\r\nb\rc\n");
        let (found, decoder) = decode_pieces(1000, &[&out]);
        assert_eq!(
            found,
            [
                "message|1-0|",
                "message|1-1|{\"a\":1}",
                "endpoint|1-1|/a\nb\nc\n"
            ]
        );
        assert_eq!(decoder.retry_ms(), Some(2000));
    }

    /// Line breaks in an id or an event type do not create further fields.
    #[test]
    fn fields_cannot_be_injected() {
        let mut out = Vec::new();
        encode_event(&mut out, Some("1\ndata: evil"), Some("a\r\nid: 2"), b"x");
        assert_eq!(decode_pieces(100, &[&out]).0, ["aid: 2|1data: evil|x"]);
    }
}
