//! Interface of a measured library, which decodes an entry and encodes the decoded value.
//!
//! Each library is one file in `libraries/` that implements [`Library`], and one line in [`all`].

use std::hint::black_box;
use std::marker::PhantomData;

use crate::entry::Entry;
use crate::libraries::{codex, head, mcp_exact, raw, rmcp, rust_mcp_schema, value};

/// Role of a library in the comparisons.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `serde_json::Value`, the base of all ratios.
    Baseline,
    /// The library of this repository.
    Ours,
    /// Another library of typed messages.
    Peer,
    /// Decoder that does less than a library of typed messages, for orientation.
    Limit,
}

/// Library that decodes and encodes messages.
pub trait Library: 'static {
    /// Name in the report.
    const NAME: &'static str;
    /// Role in the comparisons.
    const ROLE: Role;
    /// True if the library can encode.
    const ENCODES: bool = true;
    /// Type of a decoded message.
    type Decoded<'e>;

    /// Decodes the bytes of an entry.
    ///
    /// # Errors
    /// A description, if the library cannot decode the entry.
    fn decode(entry: &Entry) -> Result<Self::Decoded<'_>, String>;

    /// Returns the reason why a decoded value does not match the entry, such as a result of another type; `None` if it
    /// matches.
    fn mistake(_decoded: &Self::Decoded<'_>, _entry: &Entry) -> Option<String> {
        None
    }

    /// Appends the message to `out`.
    fn encode(decoded: &Self::Decoded<'_>, out: &mut Vec<u8>);
}

/// Decoded value that can be encoded repeatedly.
pub trait Prepared {
    /// Appends the message to `out`.
    fn encode(&self, out: &mut Vec<u8>);
}

/// Object-safe form of a [`Library`].
pub trait Contestant {
    /// Returns the name in the report.
    fn name(&self) -> &'static str;
    /// Returns the role in the comparisons.
    fn role(&self) -> Role;
    /// Returns true if the library can encode.
    fn encodes(&self) -> bool;
    /// Decodes the entry and drops the value.
    fn decode(&self, entry: &Entry);
    /// Decodes the entry once and checks the value.
    ///
    /// # Errors
    /// The reason why the library does not support this entry.
    fn prepare<'e>(&self, entry: &'e Entry) -> Result<Box<dyn Prepared + 'e>, String>;
}

/// Returns all libraries, in the order of the columns.
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

/// Returns a library as a trait object.
pub fn taking<L: Library>() -> Box<dyn Contestant> {
    Box::new(ErasedLibrary::<L>(PhantomData))
}

/// Object-safe wrapper of a library.
struct ErasedLibrary<L>(PhantomData<L>);

/// Decoded value of a library.
struct DecodedValue<'e, L: Library>(L::Decoded<'e>);

impl<L: Library> Prepared for DecodedValue<'_, L> {
    fn encode(&self, out: &mut Vec<u8>) {
        L::encode(&self.0, out);
    }
}

impl<L: Library> Contestant for ErasedLibrary<L> {
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
            None => Ok(Box::new(DecodedValue::<L>(decoded))),
        }
    }
}

/// Returns a description of the variant at the start of the `Debug` output of `value`, unless it is `expected`.
pub fn other_variant(value: &dyn std::fmt::Debug, expected: &str) -> Option<String> {
    let text = format!("{value:?}");
    let variant = text.split(['(', '{', ' ']).next().unwrap_or_default();
    (variant != expected).then(|| format!("taken for {variant}"))
}
