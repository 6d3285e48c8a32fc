//! Writer that all generated encoders call.
//!
//! The writer appends JSON text to a byte vector, or passes it to an [`io::Write`] in large pieces. Long strings are
//! searched for characters to escape many bytes at a time.

use std::io;

use crate::text;

/// Size of the buffer that is passed on to an [`io::Write`], in bytes.
const PIECE_LENGTH: usize = 16 * 1024;

/// Appends JSON text to a buffer.
pub struct Writer<'a> {
    /// Buffer that text is appended to.
    out: &'a mut Vec<u8>,
    /// Destination of the text of a streaming writer; `None` for a writer that only appends to the buffer.
    sink: Option<Sink<'a>>,
    /// True if the next piece needs extra steps: it opens an object whose first members are already written, or must be
    /// passed to a sink.
    watched: bool,
    /// True if the first members of the next object are already written.
    opened: bool,
    /// True while a message is written, so that unknown members with names of the envelope are omitted.
    is_in_message: bool,
}

/// Destination of a streaming writer.
struct Sink<'a> {
    /// The destination.
    to: &'a mut dyn io::Write,
    /// First error of the destination.
    result: io::Result<()>,
}

impl std::fmt::Debug for Writer<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Writer").finish_non_exhaustive()
    }
}

impl<'a> Writer<'a> {
    /// Creates a writer that appends to `out`.
    pub fn new(out: &'a mut Vec<u8>) -> Self {
        Self {
            out,
            sink: None,
            watched: false,
            opened: false,
            is_in_message: false,
        }
    }

    /// Creates a writer that passes all text to `to` through the empty `buffer`.
    pub(crate) fn streaming(buffer: &'a mut Vec<u8>, to: &'a mut dyn io::Write) -> Self {
        let sink = Some(Sink { to, result: Ok(()) });
        Self {
            out: buffer,
            sink,
            watched: true,
            opened: false,
            is_in_message: false,
        }
    }

    /// Passes the remaining text to the sink and returns its first error.
    pub(crate) fn finish(mut self) -> io::Result<()> {
        self.flush_above(0);
        self.sink.map_or(Ok(()), |sink| sink.result)
    }

    /// Appends text that is JSON, or a part of it.
    #[inline]
    pub fn put(&mut self, json: &str) {
        if self.watched {
            return self.put_watched(json);
        }
        self.out.extend_from_slice(json.as_bytes());
    }

    /// Appends text, which may open an object whose first members are already written, and passes the buffer to the
    /// sink if necessary.
    #[cold]
    fn put_watched(&mut self, json: &str) {
        let mut json = json;
        if std::mem::take(&mut self.opened) {
            self.watched = self.sink.is_some();
            json = json.strip_prefix('{').unwrap_or(json).trim_start();
            if !json.is_empty() && !json.starts_with('}') {
                self.out.push(b',');
            }
        }
        self.out.extend_from_slice(json.as_bytes());
        self.flush_above(PIECE_LENGTH);
    }

    /// Opens a message whose envelope is already written: the next object continues with its members.
    #[inline]
    pub(crate) fn continue_message(&mut self) {
        self.watched = true;
        self.opened = true;
        self.is_in_message = true;
    }

    /// Opens a message whose type writes its own envelope.
    pub(crate) fn begin_message(&mut self) {
        self.is_in_message = true;
    }

    /// Ends a message that [`continue_message`](Self::continue_message) or [`begin_message`](Self::begin_message) has opened.
    pub(crate) fn end_message(&mut self) {
        self.is_in_message = false;
    }

    /// Returns true while unknown members with names of the envelope are left out.
    pub(crate) fn is_in_message(&self) -> bool {
        self.is_in_message
    }

    /// Appends the text `quoted`, which contains a member name with its quotes and colon, and a comma before it unless
    /// the member is the first one.
    #[inline]
    pub fn key(&mut self, quoted: &str) {
        self.comma();
        self.put(quoted);
    }

    /// Appends a member name, escaped if necessary, with its quotes and colon, and a comma before it unless the member
    /// is the first one.
    pub fn name(&mut self, name: &str) {
        self.comma();
        self.string(name);
        self.put(":");
    }

    /// Appends a string.
    pub fn string(&mut self, text: &str) {
        text::append(text.as_bytes(), self.out);
        if self.watched {
            self.flush_above(PIECE_LENGTH);
        }
    }

    /// Appends a comma, unless the object has no member yet.
    #[inline]
    fn comma(&mut self) {
        if self.out.last() != Some(&b'{') {
            self.out.push(b',');
        }
    }

    /// Passes the text to the sink if it is longer than `limit`; keeps the last byte, which determines whether a comma
    /// precedes the next member.
    fn flush_above(&mut self, limit: usize) {
        let Some(sink) = &mut self.sink else { return };
        if self.out.len() <= limit {
            return;
        }
        let keep = usize::from(limit > 0);
        let end = self.out.len() - keep;
        if sink.result.is_ok() {
            sink.result = sink.to.write_all(&self.out[..end]);
        }
        self.out.drain(..end);
    }
}
