//! One message of the corpus: its bytes and the facts that a decoder may know before it reads them.

/// Sender of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// Order of the members of objects, and presence of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// As most libraries write it: `jsonrpc`, `id`, `method`, `params`; `type` first in content blocks.
    Usual,
    /// Every object backwards: `params` before `method`, `result` before `id`, `type` last.
    Reversed,
    /// Every object in alphabetical order, as `serde_json::Value` writes it.
    Sorted,
    /// The usual order, indented by two spaces.
    Indented,
}

impl Layout {
    pub fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Reversed => "reversed",
            Self::Sorted => "sorted",
            Self::Indented => "indented",
        }
    }
}

/// A message to decode and to encode.
#[derive(Debug, Clone)]
pub struct Entry {
    pub name: String,
    pub side: Side,
    /// The method of the request that a result answers.
    pub answers: Option<&'static str>,
    pub layout: Layout,
    /// True if it is a batch of revision 2025-03-26; everything else is one message of 2025-06-18.
    pub batch: bool,
    /// True if untyped JSON or long strings make up most of it.
    pub bulky: bool,
    pub bytes: Vec<u8>,
}

impl Entry {
    /// The revision of the specification whose message it is.
    pub fn revision(&self) -> &'static str {
        if self.batch {
            "2025-03-26"
        } else {
            "2025-06-18"
        }
    }

    /// The document as text.
    ///
    /// # Errors
    /// When the bytes are not UTF-8; those of the corpus are.
    pub fn text(&self) -> Result<&str, String> {
        std::str::from_utf8(&self.bytes).map_err(|error| error.to_string())
    }
}
