//! Message of the corpus: its bytes, and the information that a decoder needs, such as the sender and the answered
//! method.

/// Peer that sends a message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Client,
    Server,
}

/// Order of the members in all objects of a message, and presence of white space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// Order of most libraries: `jsonrpc`, `id`, `method`, `params`; `type` first in content blocks.
    Usual,
    /// Reverse order in every object: `params` before `method`, `result` before `id`, `type` last.
    Reversed,
    /// Members in alphabetical order in every object, as `serde_json::Value` writes them.
    Sorted,
    /// Usual order of members, indented by two spaces.
    Indented,
}

impl Layout {
    /// Returns the name of the layout in the report.
    pub fn name(self) -> &'static str {
        match self {
            Self::Usual => "usual",
            Self::Reversed => "reversed",
            Self::Sorted => "sorted",
            Self::Indented => "indented",
        }
    }
}

/// Message that the libraries decode and encode.
#[derive(Debug, Clone)]
pub struct Entry {
    /// Name of the message in the report, with its layout unless that is the usual one.
    pub name: String,
    /// Sender of the message.
    pub side: Side,
    /// Method of the answered request, if the message is a result.
    pub answers: Option<&'static str>,
    /// Order of the members and presence of white space.
    pub layout: Layout,
    /// True if the message is a batch of 2025-03-26; other messages are single messages of 2025-06-18.
    pub batch: bool,
    /// True if the message consists mostly of untyped JSON or long strings.
    pub bulky: bool,
    /// JSON text of the message.
    pub bytes: Vec<u8>,
}

impl Entry {
    /// Returns the revision that the message belongs to.
    pub fn revision(&self) -> &'static str {
        if self.batch {
            "2025-03-26"
        } else {
            "2025-06-18"
        }
    }

    /// Returns the JSON text of the message.
    ///
    /// # Errors
    /// If the bytes are not UTF-8, which the corpus never contains.
    pub fn text(&self) -> Result<&str, String> {
        std::str::from_utf8(&self.bytes).map_err(|error| error.to_string())
    }
}
