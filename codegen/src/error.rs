//! Errors about the generator's input: each has the revision, the JSON pointer and a hint.

/// Error for input that the generator does not support: a schema, an erratum or a list of revisions.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{revision}{}: {problem}; {remedy}", describe_pointer(.pointer))]
#[non_exhaustive]
pub struct Error {
    /// Revision of the input.
    pub revision: String,
    /// JSON pointer into the input; empty if the error is about the complete input.
    pub pointer: String,
    /// Description of what the generator does not support.
    pub problem: String,
    /// Hint for the person who runs the generator.
    pub remedy: String,
}

/// Result of a pass or of another part of the generator.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// Creates an error about the value at the JSON pointer `pointer` of the revision `revision`.
    pub fn new(
        revision: &str,
        pointer: &str,
        problem: impl Into<String>,
        remedy: impl Into<String>,
    ) -> Self {
        Self {
            revision: revision.into(),
            pointer: pointer.into(),
            problem: problem.into(),
            remedy: remedy.into(),
        }
    }
}

/// Returns a JSON pointer for the text of an error; empty for the complete input.
fn describe_pointer(pointer: &str) -> String {
    if pointer.is_empty() {
        String::new()
    } else {
        format!(" at {pointer}")
    }
}

/// Returns a JSON value for a message, truncated if it is long.
pub fn shorten_value(value: &serde_json::Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
