//! Interface of a measured library, which decodes an entry and encodes the decoded value.
//!
//! Each library is one file in `libraries/` that implements [`Library`], and one line in [`all`].

use std::hint::black_box;
use std::marker::PhantomData;

use crate::entry::Entry;
use crate::libraries::{codex, head, mcp_exact, raw, rmcp, rust_mcp_schema, value};

/// Role of a library in the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Role {
    /// `serde_json::Value`, the base of all ratios.
    Baseline,
    /// The library of this repository.
    Ours,
    /// Another library of typed messages.
    Peer,
    /// Decoder that does less work than a library of typed messages, and shows the maximum speed.
    Limit,
}

/// Library whose decoding and encoding of messages is measured.
pub trait Library: 'static {
    /// Name of the library in the report.
    const NAME: &'static str;
    /// Role of the library in the comparison.
    const ROLE: Role;
    /// True if the library can encode decoded messages.
    const ENCODES: bool = true;
    /// Type of a decoded message.
    type Decoded<'e>;

    /// Decodes the bytes of an entry.
    ///
    /// # Errors
    /// A description, if the library cannot decode the entry.
    fn decode(entry: &Entry) -> Result<Self::Decoded<'_>, String>;

    /// Returns the reason why a decoded value does not match the entry, such as a result of another type; `None` if the
    /// value matches.
    fn mistake(_decoded: &Self::Decoded<'_>, _entry: &Entry) -> Option<String> {
        None
    }

    /// Appends the text of a decoded message to `out`.
    fn encode(decoded: &Self::Decoded<'_>, out: &mut Vec<u8>);
}

/// Decoded message that can be encoded repeatedly.
pub trait Prepared {
    /// Appends the text of the message to `out`.
    fn encode(&self, out: &mut Vec<u8>);
}

/// [`Library`] in a form that can be used as a trait object.
pub trait Contestant {
    /// Returns the name in the report.
    fn name(&self) -> &'static str;
    /// Returns the role in the comparisons.
    fn role(&self) -> Role;
    /// Returns true if the library can encode decoded messages.
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
        boxed_library::<value::Untyped>(),
        boxed_library::<mcp_exact::Typed>(),
        boxed_library::<head::MessageHead>(),
        boxed_library::<raw::Envelope>(),
        boxed_library::<rmcp::Rmcp>(),
        boxed_library::<rust_mcp_schema::RustMcpSchema>(),
        boxed_library::<codex::Codex>(),
    ]
}

/// Returns the library `L` as a trait object.
pub fn boxed_library<L: Library>() -> Box<dyn Contestant> {
    Box::new(ErasedLibrary::<L>(PhantomData))
}

/// Implements [`Contestant`] for a [`Library`].
struct ErasedLibrary<L>(PhantomData<L>);

/// Decoded message of a library, which implements [`Prepared`].
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

/// Returns a description of the enum variant of `value`, read from its `Debug` output, or `None` if the variant is
/// `expected`.
pub fn other_variant(value: &dyn std::fmt::Debug, expected: &str) -> Option<String> {
    let text = format!("{value:?}");
    let variant = text.split(['(', '{', ' ']).next().unwrap_or_default();
    (variant != expected).then(|| format!("taken for {variant}"))
}
