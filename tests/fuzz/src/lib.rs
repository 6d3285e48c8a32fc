//! Properties that a fuzzer checks, as functions of the bytes of an input: each function panics if its property is
//! violated.
//!
//! The targets in `fuzz/` and the seeded runs in `tests/` call the same functions, so that both check the same
//! properties.

mod convert;
mod event_names;
mod heap;
mod hostile;
mod http;
mod repair;
mod session;
mod sides;

pub use convert::conversion;
pub use http::{http, response_kinds};
pub use repair::{Cost, measure_repair, repair};
pub use session::{run_and_collect_events, session};

use mcp_exact_wire::{
    DecodeErrorKind, Direction, Frame, HeadKind, Json, Message, MessageErrorKind, MessageHead,
    RequestId, decode_frame, from_slice, to_string,
};
use serde_json::value::RawValue;

/// Defines [`messages`] from the list of all revisions.
macro_rules! revisions {
    ($($id:literal $marker:ident $library:ident;)*) => {
        /// Checks the properties of [`frame`] for a text in both directions of every revision.
        pub fn messages(bytes: &[u8]) {
            $({
                use mcp_exact_tests_types::$library::{FromClient, FromServer};
                frame::<FromClient, FromServer>(bytes);
                frame::<FromServer, FromClient>(bytes);
            })*
        }
    };
}

mcp_exact_tests_types::for_each_revision!(revisions);

/// Checks a text as a message that an endpoint receives from the side `D`: decoding, encoding and decoding again must
/// give the same value and the same text.
///
/// Text that is not JSON must be refused with a parse error, other invalid text with a different error. `Peer` is the
/// direction of the requests that responses of `D` answer.
pub fn frame<D: Direction, Peer: Direction>(bytes: &[u8]) {
    let answers = |id: &RequestId| -> Option<&'static str> {
        let length = id.to_string().len();
        Peer::REQUESTS
            .get(length % (Peer::REQUESTS.len() + 1))
            .copied()
    };
    let decoded = match decode_frame::<D>(bytes, &answers) {
        Ok(decoded) => decoded,
        Err(error) => {
            let is_json = from_slice::<Json>(bytes).is_ok();
            assert_eq!(error.kind() == MessageErrorKind::Parse, !is_json, "{error}");
            return;
        }
    };
    // A batch is encoded without its bad messages.
    let decoded = match decoded {
        Frame::Batch(all) => Frame::Batch(all.into_iter().filter(Result::is_ok).collect()),
        one => one,
    };
    if matches!(&decoded, Frame::Batch(all) if all.is_empty()) {
        return;
    }
    if let Frame::One(message) = &decoded {
        let text = std::str::from_utf8(bytes).expect("it was decoded");
        let head = MessageHead::parse(text).expect("a message that decodes has a head");
        let kind = match message {
            Message::Request(_) => HeadKind::Request,
            Message::Notification(_) => HeadKind::Notification,
            Message::Result(_) | Message::Error(_) => HeadKind::Response,
        };
        assert_eq!(head.kind, kind, "{text}");
        assert!(head.has_valid_version(), "{text}");
    }
    let text = to_string(&decoded);
    let again = decode_frame::<D>(text.as_bytes(), &answers).expect("what was encoded decodes");
    assert_eq!(again, decoded, "{text}");
    assert_eq!(to_string(&again), text);
}

/// Checks that the JSON reader and serde_json accept the same texts, and that `MessageHead` accepts these texts unless
/// their envelope contains a duplicate member or a lone surrogate.
pub fn reader(bytes: &[u8]) {
    let ours = from_slice::<Json>(bytes);
    let theirs = serde_json::from_slice::<Box<RawValue>>(bytes);
    assert_eq!(ours.is_ok(), theirs.is_ok(), "{ours:?} {theirs:?}");
    if let (Ok(ours), Ok(theirs)) = (&ours, &theirs) {
        assert_eq!(ours.text(), theirs.get());
        if let Err(error) = MessageHead::parse(ours.text()) {
            let kind = error.kind();
            let ambiguous = [DecodeErrorKind::Duplicate, DecodeErrorKind::Surrogate];
            assert!(ambiguous.contains(&kind), "{error}");
        }
    }
    let ours = from_slice::<String>(bytes).ok();
    let theirs = serde_json::from_slice::<String>(bytes).ok();
    assert_eq!(ours, theirs);
    if let Some(text) = ours {
        assert_eq!(serde_json::to_string(&text).ok(), Some(to_string(&text)));
    }
}
