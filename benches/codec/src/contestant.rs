//! Interface of a library that takes part: it decodes an entry, and encodes the decoded value. A library is one file in
//! `libraries/` that implements [`Library`], and one line in [`all`].

use std::hint::black_box;
use std::marker::PhantomData;

use crate::entry::Entry;
use crate::libraries::{codex, head, mcp_exact, raw, rmcp, rust_mcp_schema, value};

/// Role of a library in the comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `serde_json::Value`: everything is given relative to it.
    Baseline,
    /// The library of this repository.
    Ours,
    /// Another library of typed messages.
    Peer,
    /// Something that does less than typed messages, for orientation.
    Limit,
}

/// A way to decode and encode messages.
pub trait Library: 'static {
    const NAME: &'static str;
    const ROLE: Role;
    /// True if it can encode.
    const ENCODES: bool = true;
    /// A decoded message.
    type Decoded<'e>;

    /// Decodes the bytes of an entry.
    ///
    /// # Errors
    /// In words, when it cannot.
    fn decode(entry: &Entry) -> Result<Self::Decoded<'_>, String>;

    /// Returns the reason why a decoded value is not that of the entry, such as a result of another type.
    fn mistake(_decoded: &Self::Decoded<'_>, _entry: &Entry) -> Option<String> {
        None
    }

    /// Appends the message to `out`.
    fn encode(decoded: &Self::Decoded<'_>, out: &mut Vec<u8>);
}

/// A value that is ready to be encoded again and again.
pub trait Prepared {
    fn encode(&self, out: &mut Vec<u8>);
}

/// A [`Library`] as an object.
pub trait Contestant {
    fn name(&self) -> &'static str;
    fn role(&self) -> Role;
    fn encodes(&self) -> bool;
    /// Decodes and drops the value.
    fn decode(&self, entry: &Entry);
    /// Decodes once, and checks the value against the entry.
    ///
    /// # Errors
    /// The reason for which the library cannot take part with this entry.
    fn prepare<'e>(&self, entry: &'e Entry) -> Result<Box<dyn Prepared + 'e>, String>;
}

/// All libraries, in the order of the columns.
pub fn all() -> Vec<Box<dyn Contestant>> {
    vec![
        taking::<value::Untyped>(),
        taking::<mcp_exact::Typed>(),
        taking::<head::MessageHead>(),
        taking::<raw::Envelope>(),
        taking::<rmcp::Rmcp>(),
        taking::<rust_mcp_schema::RustMcpSchema>(),
        taking::<codex::Codex>(),
    ]
}

/// A library that takes part.
pub fn taking<L: Library>() -> Box<dyn Contestant> {
    Box::new(Taking::<L>(PhantomData))
}

struct Taking<L>(PhantomData<L>);

struct Holding<'e, L: Library>(L::Decoded<'e>);

impl<L: Library> Prepared for Holding<'_, L> {
    fn encode(&self, out: &mut Vec<u8>) {
        L::encode(&self.0, out);
    }
}

impl<L: Library> Contestant for Taking<L> {
    fn name(&self) -> &'static str {
        L::NAME
    }

    fn role(&self) -> Role {
        L::ROLE
    }

    fn encodes(&self) -> bool {
        L::ENCODES
    }

    fn decode(&self, entry: &Entry) {
        let decoded = L::decode(black_box(entry));
        black_box(&decoded);
    }

    fn prepare<'e>(&self, entry: &'e Entry) -> Result<Box<dyn Prepared + 'e>, String> {
        let decoded = L::decode(entry)?;
        match L::mistake(&decoded, entry) {
            Some(mistake) => Err(mistake),
            None => Ok(Box::new(Holding::<L>(decoded))),
        }
    }
}

/// Returns whether the text of `value` by `Debug` begins with the variant `expected`; otherwise with which one.
pub fn other_variant(value: &dyn std::fmt::Debug, expected: &str) -> Option<String> {
    let text = format!("{value:?}");
    let variant = text.split(['(', '{', ' ']).next().unwrap_or_default();
    (variant != expected).then(|| format!("taken for {variant}"))
}
