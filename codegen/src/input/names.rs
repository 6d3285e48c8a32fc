//! `schema/names.toml`: better names for anonymous schemas than the automatic ones.

use serde::Deserialize;

use crate::error::{Error, Result};

/// One entry of `schema/names.toml`: a name that replaces the automatic one.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Name {
    /// Revisions that the name applies to.
    pub revisions: Vec<String>,
    /// JSON pointer of the first occurrence of the anonymous schema.
    pub pointer: String,
    /// Name of the generated type.
    pub name: String,
}

/// The file `schema/names.toml`.
#[derive(Deserialize)]
struct NamesFile {
    /// Entries of the file.
    #[serde(default)]
    name: Vec<Name>,
}

/// Parses the entries of `schema/names.toml`.
///
/// # Errors
/// Returns an error if the text is not a list of names.
pub fn names(text: &str) -> Result<Vec<Name>> {
    let list: NamesFile = toml::from_str(text).map_err(|error| {
        let remedy = "give each entry revisions, a pointer and a name";
        Error::new(
            "schema/names.toml",
            "",
            error.to_string().trim_end(),
            remedy,
        )
    })?;
    Ok(list.name)
}
