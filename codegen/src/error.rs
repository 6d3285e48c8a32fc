//! Errors about the generator's input: each has the revision, the JSON pointer and the remedy.

/// A schema, an erratum or a list of revisions that the generator cannot work with.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{revision}{}: {problem}; {remedy}", at(.pointer))]
#[non_exhaustive]
pub struct Error {
    /// The revision whose input it is.
    pub revision: String,
    /// The JSON pointer into the input, empty when it is about the whole.
    pub pointer: String,
    /// Description of the problem.
    pub problem: String,
    /// The remedy.
    pub remedy: String,
}

/// Result of a pass.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// An error of `revision` at `pointer`.
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

fn at(pointer: &str) -> String {
    if pointer.is_empty() {
        String::new()
    } else {
        format!(" at {pointer}")
    }
}

/// A value in a message: its beginning, where it is long.
pub fn brief(value: &serde_json::Value) -> String {
    let text = value.to_string();
    match text.char_indices().nth(100) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text,
    }
}
