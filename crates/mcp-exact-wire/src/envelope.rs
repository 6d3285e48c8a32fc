//! JSON-RPC envelope of types that do not contain `jsonrpc` and `id`.
//!
//! The reader records the positions of `jsonrpc` and `id` while it decodes the other members of the message. A message
//! is therefore read once, and envelope members do not become unknown members. The writer writes both before the other
//! members.

use crate::RequestId;
use crate::error::{DecodeErrorKind, DecodeFailed, Detail, ReadResult};
use crate::reader::{Envelope, IdAt, Reader, duplicate_at};
use crate::traits::{Decode, Encode};
use crate::writer::Writer;

impl Reader<'_> {
    /// Declares that the next object is a message, so that the reader records `jsonrpc` and `id`.
    pub(crate) fn expect_envelope(&mut self) {
        let start = self.peek_at();
        *self.envelope() = Envelope {
            expected: true,
            start,
            ..Envelope::default()
        };
    }

    /// Continues a message that began at `start`, whose method and preceding text were already read.
    pub(crate) fn resume_envelope(
        &mut self,
        start: usize,
        id: Option<IdAt>,
        version: Option<usize>,
    ) {
        *self.envelope() = Envelope {
            expected: true,
            start,
            resumed: true,
            id,
            version,
        };
    }

    /// Returns true if the next object was declared to be a message, and clears the declaration.
    #[inline]
    pub(crate) fn take_envelope(&mut self) -> bool {
        std::mem::take(&mut self.envelope().expected)
    }

    /// Records the position of `id` or `jsonrpc` and skips the value; returns false for the name of another member.
    pub(crate) fn envelope_member(&mut self, name: &str, name_at: usize) -> ReadResult<bool> {
        let at = self.peek_at();
        let envelope = self.envelope();
        let integer = None;
        let again = match name {
            "id" => envelope.id.replace(IdAt { at, integer }).is_some(),
            "jsonrpc" => envelope.version.replace(at).is_some(),
            "result" | "error" => return Err(self.request_and_response(name_at)),
            _ => return Ok(false),
        };
        if again {
            return Err(duplicate_at(self, name_at));
        }
        self.skip()?;
        Ok(true)
    }

    /// Records the failure that a message has both a method and a result or an error, so that its class would depend on
    /// the member order.
    #[cold]
    pub(crate) fn request_and_response(&mut self, at: usize) -> DecodeFailed {
        let words = Detail::Plain("a message with a `method` has neither `result` nor `error`");
        self.fault(at, DecodeErrorKind::Exclusive, words)
    }

    /// Returns the id of the message, which must have been read completely.
    pub(crate) fn envelope_id(&mut self) -> ReadResult<RequestId> {
        match self.envelope().id {
            Some(IdAt {
                integer: Some(value),
                ..
            }) => Ok(value.into()),
            Some(IdAt { at, .. }) => self.aside(at, RequestId::decode),
            None => {
                let start = self.envelope().start;
                Err(self.fault(start, DecodeErrorKind::Required, Detail::Missing("id")))
            }
        }
    }

    /// Checks that `jsonrpc` is `2.0`, in a message that must have been read completely.
    pub(crate) fn envelope_version(&mut self) -> ReadResult<()> {
        let Some(at) = self.envelope().version else {
            let start = self.envelope().start;
            return Err(self.fault(start, DecodeErrorKind::Required, Detail::Missing("jsonrpc")));
        };
        if self.bytes()[at..].starts_with(b"\"2.0\"") {
            return Ok(());
        }
        self.aside(at, |r| r.constant("2.0"))
    }

    /// Checks that the message has no id.
    pub(crate) fn envelope_without_id(&mut self) -> ReadResult<()> {
        match self.envelope().id {
            None => Ok(()),
            Some(_) => {
                let start = self.envelope().start;
                Err(self.id_of_notification(start))
            }
        }
    }

    /// Records the failure that the notification at `start` has an id.
    #[cold]
    pub(crate) fn id_of_notification(&mut self, start: usize) -> DecodeFailed {
        let words = Detail::Plain("a notification has no `id`");
        self.fault(start, DecodeErrorKind::Exclusive, words)
    }

    /// Reads a value at another offset, and restores the position of the reader.
    pub(crate) fn aside<T>(
        &mut self,
        at: usize,
        read: impl FnOnce(&mut Self) -> ReadResult<T>,
    ) -> ReadResult<T> {
        let (end, depth) = (self.at(), self.depth());
        self.rewind(at, depth);
        let value = read(self)?;
        self.rewind(end, depth);
        Ok(value)
    }
}

impl Writer<'_> {
    /// Opens a message: writes `jsonrpc` and the id, after which the next object continues with its members.
    pub(crate) fn envelope(&mut self, id: Option<&RequestId>) {
        self.put("{\"jsonrpc\":\"2.0\"");
        if let Some(id) = id {
            self.put(",\"id\":");
            id.encode(self);
        }
        self.continue_message();
    }
}
