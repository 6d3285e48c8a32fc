//! JSON-RPC's envelope around types that leave `jsonrpc` and `id` out.
//!
//! The reader notes where the two members are while it decodes the rest of the message, so that a message is read once
//! and nothing of the envelope ends up among unknown members.

use crate::RequestId;
use crate::error::{DecodeErrorKind, DecodeFailed, Detail, ReadResult};
use crate::object::duplicate_at;
use crate::reader::{Envelope, IdAt, Reader};
use crate::traits::Decode;

impl Reader<'_> {
    /// Says that the next object is a message.
    pub(crate) fn expect_envelope(&mut self) {
        let start = self.peek_at();
        *self.envelope() = Envelope {
            expected: true,
            start,
            ..Envelope::default()
        };
    }

    /// Announces that the rest of the message that began at `start` follows: its method and all text before it were read
    /// already.
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

    /// Returns true if the object that is opened now is a message.
    #[inline]
    pub(crate) fn take_envelope(&mut self) -> bool {
        std::mem::take(&mut self.envelope().expected)
    }

    /// Notes a member of the envelope, whose value comes next and is passed over; `false` for other names.
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

    /// Notes that a message has both a method and a result or an error, so that its class depends on the order of its
    /// members.
    #[cold]
    pub(crate) fn request_and_response(&mut self, at: usize) -> DecodeFailed {
        let words = Detail::Plain("a message with a `method` has neither `result` nor `error`");
        self.fault(at, DecodeErrorKind::Exclusive, words)
    }

    /// The id of the message that was read to its end.
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

    /// Checks the version of the message that was read to its end.
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
                let words = Detail::Plain("a notification has no `id`");
                Err(self.fault(start, DecodeErrorKind::Exclusive, words))
            }
        }
    }

    /// Reads something at another place and comes back.
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
