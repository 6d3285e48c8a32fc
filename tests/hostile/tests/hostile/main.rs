//! Takes documents with difficult text; expects the outcomes that the crate `mcp-exact-wire` documents for them, in untyped
//! JSON, in typed positions and in whole messages.
//!
//! Never asserts a time: how long something took is printed, since a linear walk and a quadratic one tell apart at sight.
#![allow(
    clippy::print_stdout,
    reason = "how long large documents take is worth reading"
)]

mod amplification;
mod bytes;
mod duplicates;
mod lines;
mod message_integrity;
mod messages;
mod nesting;
mod numbers;
mod parser_differentials;
mod size;
mod surrogates;

use mcp_exact_wire::{Decode, Encode, from_slice, to_string};

/// Decodes the text and expects the same text back.
fn exact<T: Decode + Encode>(text: &str) -> T {
    let value: T = match from_slice(text.as_bytes()) {
        Ok(value) => value,
        Err(error) => panic!("{error}: {}", start(text)),
    };
    assert!(to_string(&value) == text, "{}", start(text));
    value
}

/// Kind and pointer of the error that the text has to give.
fn refused<T: Decode>(text: impl AsRef<[u8]>) -> (&'static str, String) {
    let text = text.as_ref();
    match from_slice::<T>(text) {
        Ok(_) => panic!("accepted: {}", start(&String::from_utf8_lossy(text))),
        Err(error) => (error.kind().name(), error.pointer().to_owned()),
    }
}

/// Builds the value that [`refused`] is compared with.
fn at(kind: &'static str, pointer: impl Into<String>) -> (&'static str, String) {
    (kind, pointer.into())
}

/// The first characters of a text, for messages.
fn start(text: &str) -> String {
    text.chars().take(200).collect()
}

/// Runs `f` on a thread with a stack of so many KiB, where anything that recurses with the input dies.
fn with_stack(kib: usize, f: impl FnOnce() + Send + 'static) {
    let thread = std::thread::Builder::new()
        .stack_size(kib * 1024)
        .spawn(f)
        .expect("a thread starts");
    if let Err(panic) = thread.join() {
        std::panic::resume_unwind(panic);
    }
}
