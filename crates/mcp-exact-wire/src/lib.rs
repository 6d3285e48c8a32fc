//! The runtime of the generated Model Context Protocol types: an exact JSON reader and writer, untyped JSON, numbers
//! that keep their kind, ids, unknown members and names, union dispatch, and violations of the schema.
//!
//! The type crates, such as `mcp-2025-06-18`, re-export what their users need. This crate contains no list of
//! revisions, so that a new revision does not require a new release of this crate.
//!
//! No received data is lost: unknown members, unknown enum values and unknown variants of tagged unions survive;
//! untyped JSON survives byte for byte; numbers keep value and kind; absent, null, empty object and empty array stay
//! four different things.
//!
//! How irregular text is handled:
//!
//! | document | outcome |
//! |---|---|
//! | untyped JSON nested 100,000 deep | preserved byte for byte, without recursion |
//! | values of known types nested deeper than [`MAX_DEPTH`] | error `depth` |
//! | a member twice in an object of a known type or a typed map | error `duplicate` |
//! | the discriminant twice in an object that its union does not know | error `duplicate` |
//! | a member of the envelope twice, also in a message of an unknown method and in a [`MessageHead`] | error `duplicate` |
//! | a lone surrogate in a method, also in a [`MessageHead`] | error `surrogate` |
//! | a member twice inside untyped JSON | preserved byte for byte |
//! | a lone surrogate in a typed string or a member name of a typed object | error `surrogate` |
//! | a lone surrogate inside untyped JSON | preserved byte for byte |
//! | a number of any length | preserved in its spelling |
//! | a JSON pointer of more than [`MAX_POINTER`] bytes in an error or a violation | truncated, and ends in `…` |
//! | a batch of more than [`MAX_BATCH`] messages | error; no message is decoded |
//! | bytes that are not UTF-8, or a byte order mark | error `utf8` or `syntax` |
//! | a line break between the tokens of untyped JSON | preserved; [`to_line`] writes a space instead |
//!
//! Encoded text can be written to these destinations, without an intermediate tree:
//!
//! | buffer | call |
//! |---|---|
//! | a new `Vec<u8>` or `String` | [`to_vec`], [`to_string`], [`to_line`] |
//! | a `Vec<u8>` that is reused for each message | [`encode_into`]; allocates only if the capacity is too small |
//! | an [`io::Write`](std::io::Write), such as a file or a socket | [`to_writer`], in pieces of 16 kB |
//! | a `BytesMut` of the crate `bytes` | [`to_writer`] with `&mut buffer.writer()`, which `bytes::BufMut` offers |

#[doc(hidden)]
pub mod bridge;
mod decode;
mod defined;
mod dispatch;
mod document;
mod envelope;
mod error;
mod escape;
#[cfg(target_arch = "x86_64")]
mod escape_ssse3;
mod extra;
mod format;
mod head;
mod id;
mod json;
#[cfg(feature = "schemars1")]
mod json_schema;
mod locate;
mod map;
mod message;
mod nullable;
mod number;
mod object;
#[doc(hidden)]
pub mod order;
mod outline;
mod places;
mod pointer;
mod provided;
mod reader;
mod revision;
mod scan;
mod simd;
mod skip;
#[doc(hidden)]
pub mod spans;
mod text;
mod tidiness;
mod traits;
mod unescape;
mod unknown;
mod validate;
mod view;
mod writer;

#[cfg(feature = "schemars1")]
#[doc(hidden)]
pub use schemars1 as private_schemars;
#[doc(hidden)]
pub use serde as private_serde;

pub use decode::{
    MAX_BATCH, call_text, decode_frame, decode_message, decode_notification, decode_request,
};
pub use defined::Defined;
pub use dispatch::{DispatchCase, Probe, Tag, UNRECOGNIZED, UnionDispatch};
pub use document::{Document, DocumentRule, DocumentValue, DocumentView};
pub use error::{DecodeError, DecodeErrorKind, DecodeFailed, ReadResult};
pub use extra::{Extra, KnownMember, Members};
pub use format::Format;
pub use head::{HeadKind, MessageHead};
pub use id::{ProgressToken, RequestId};
pub use json::{Json, JsonObject, NotAnObject};
#[cfg(feature = "schemars1")]
pub use json_schema::{JsonSchemaType, JsonSchemas};
pub use map::Map;
pub use message::{
    Call, DecodeResult, Direction, ErrorMessage, ErrorObject, Frame, Message, MessageError,
    MessageErrorKind, MessageKind, ResultMessage, WithId,
};
pub use nullable::Nullable;
pub use number::{Integer, NotFinite, Number};
pub use object::{ObjectLayout, ObjectReader, keys, required_bits};
pub use outline::Outline;
pub use places::Places;
pub use pointer::MAX_POINTER;
pub use reader::{Kind, MAX_DEPTH, ProvidedParam, Reader};
pub use revision::{Never, Revision, RevisionTypes};
#[doc(hidden)]
pub use tidiness::Tidiness;
pub use traits::private;
pub use traits::{
    Decode, DecodeParams, Encode, EncodeParams, Notification, Request, encode_into, from_slice,
    from_str, line_into, to_line, to_string, to_vec, to_writer,
};
pub use unknown::{OpenUnion, UnionRole, UnknownName, UnknownVariant};
pub use validate::{
    MAX_LISTED, Path, Validate, Violation, ViolationKind, Violations, check_format,
    check_max_items, check_maximum, check_min_items, check_minimum,
};
pub use view::{JsonRef, ObjectRef, ObjectWith};
pub use writer::Writer;

/// Items that the files of generated crates import: types of fields, and the machinery of the codec. The generator's
/// `emit/mod.rs` lists the names of types, which no definition of a schema may have.
#[doc(hidden)]
pub mod generated {
    pub use crate::{
        Decode, DecodeFailed, DispatchCase, Document, DocumentRule, DocumentValue, DocumentView,
        Encode, Extra, Format, Integer, Json, JsonObject, Kind, Map, Members, Never, Nullable,
        Number, ObjectLayout, ObjectReader, Path, Probe, ReadResult, Reader, Revision,
        RevisionTypes, Tag, UnionDispatch, UnknownName, UnknownVariant, Validate, Violations,
        Writer, check_format, check_max_items, check_maximum, check_min_items, check_minimum, keys,
        required_bits,
    };
}

/// Returns the step between the cases of exhaustive unit tests: all cases run, or one of `every` under Miri, which is
/// slower by two orders of magnitude and checks the use of memory, not the results.
#[cfg(test)]
const fn thinned(every: usize) -> usize {
    if cfg!(miri) { every } else { 1 }
}
