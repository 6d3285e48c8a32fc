//! Documents with unusual or malformed text: the outcomes must be those that the crate `mcp-exact-wire` documents, in
//! untyped JSON, in typed values and in complete messages.
//!
//! The durations of decoding and the numbers of compared documents are printed.
#![allow(clippy::print_stdout, reason = "what was compared is worth reading")]

mod amplification;
mod bytes;
mod decimals;
mod duplicates;
mod formats;
mod lines;
mod message_integrity;
mod messages;
mod mutated;
mod nesting;
mod numbers;
mod parser_differentials;
mod pointers;
mod size;
mod strings;
mod surrogates;

use mcp_exact_wire::{Decode, Encode, from_slice, to_string};

/// Checks that encoding the decoded text gives the same text; returns the decoded value.
fn check_round_trip<T: Decode + Encode>(text: &str) -> T {
    let value: T = match from_slice(text.as_bytes()) {
        Ok(value) => value,
        Err(error) => panic!("{error}: {}", excerpt(text)),
    };
    assert!(to_string(&value) == text, "{}", excerpt(text));
    value
}

/// Returns the kind and pointer of the error with which a text is refused; panics if the text is accepted.
fn decode_error_of<T: Decode>(text: impl AsRef<[u8]>) -> (&'static str, String) {
    let text = text.as_ref();
    match from_slice::<T>(text) {
        Ok(_) => panic!("accepted: {}", excerpt(&String::from_utf8_lossy(text))),
        Err(error) => (error.kind().name(), error.pointer().to_owned()),
    }
}

/// Creates a value to compare with the result of [`decode_error_of`].
fn error_at(kind: &'static str, pointer: impl Into<String>) -> (&'static str, String) {
    (kind, pointer.into())
}

/// Returns the first characters of a text, for failure messages.
fn excerpt(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Runs `f` on a thread with a stack of `kib` KiB, which would overflow if the depth of recursion depended on the
/// input.
fn with_stack(kib: usize, f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(kib * 1024)
        .spawn(f)
        .expect("a thread starts");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
