//! Value of a params member that the text of a request lacks, because it is the same for many requests.
//!
//! The caller decodes the value once. A decoder copies it into params whose text has no member of this name.

use crate::error::{DecodeError, ReadResult};
use crate::reader::{ProvidedParam, Reader};
use crate::traits::Decode;

impl ProvidedParam {
    /// Decodes the value of the member with this name from JSON text that was checked before.
    ///
    /// # Errors
    /// [`DecodeError`] if the text is not of the type `T`.
    pub fn decode<T: Decode + Send + Sync + 'static>(
        name: &'static str,
        text: &str,
    ) -> Result<Self, DecodeError> {
        let (mut r, mut value) = (Reader::of_checked(text), None);
        match (r.shared_member::<T>(&mut value), value) {
            (Ok(()), Some(value)) => Ok(Self {
                name,
                value: Box::new(value),
            }),
            _ => Err(r.into_error()),
        }
    }
}

impl Reader<'_> {
    /// Reads the value of a member like [`member`](Self::member). The code is compiled once for all decoders that read the
    /// type, and for [`ProvidedParam::decode`].
    #[inline(never)]
    pub fn shared_member<T: Decode>(&mut self, place: &mut Option<T>) -> ReadResult<()> {
        self.member(place)
    }

    /// Returns a copy of the provided value of a member that the text lacks; `None` if no value of this type is
    /// provided.
    #[inline(never)]
    pub fn provided<T: Clone + 'static>(&self) -> Option<T> {
        self.provided_param()?.value.downcast_ref::<T>().cloned()
    }
}
