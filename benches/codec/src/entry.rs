//! Message of the corpus: its bytes, and the context that a decoder knows in advance.

/// Sender of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// Order of the members of objects, and presence of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Order of most libraries: `jsonrpc`, `id`, `method`, `params`; `type` first in content blocks.
    Usual,
    /// Reverse order in every object: `params` before `method`, `result` before `id`, `type` last.
    Reversed,
    /// Members in alphabetical order in every object, as `serde_json::Value` writes them.
    Sorted,
    /// Usual order, indented by two spaces.
    Indented,
}

impl Layout {
    /// Returns the name in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Reversed => "reversed",
            Self::Sorted => "sorted",
            Self::Indented => "indented",
        }
    }
}

/// Message to decode and to encode.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name of the message and its layout.
    pub name: String,
    /// Sender of the message.
    pub side: Side,
    /// Method of the request that a result answers.
    pub answers: Option<&'static str>,
    pub layout: Layout,
    /// True for a batch of 2025-03-26; all others are single messages of 2025-06-18.
    pub batch: bool,
    /// True if the message consists mostly of untyped JSON or long strings.
    pub bulky: bool,
    /// Text of the message.
    pub bytes: Vec<u8>,
}

impl Entry {
    /// Returns the revision of the message, which its sender has negotiated.
    pub fn revision(&self) -> &'static str {
        if self.batch {
            "2025-03-26"
        } else {
            "2025-06-18"
        }
    }

    /// Returns the message as text.
    ///
    /// # Errors
    /// If the bytes are not UTF-8, which the corpus never contains.
    pub fn text(&self) -> Result<&str, String> {
        std::str::from_utf8(&self.bytes).map_err(|error| error.to_string())
    }
}
