//! The lists of schema files: `schema/revisions.toml` and `schema/extensions.toml`.

use serde::Deserialize;

use crate::error::{Error, Result};

/// The fields of an entry of `schema/revisions.toml` that the generator needs.
#[derive(Debug, Clone, Deserialize)]
pub struct Revision {
    /// The identifier, such as `2025-06-18`.
    pub id: String,
    /// `release` or `draft`.
    pub status: String,
    /// The sha256 of the vendored file, in hexadecimal digits.
    pub sha256: String,
}

impl Revision {
    /// Returns true if the revision is a draft: it may change, and its crate is not published.
    pub fn is_draft(&self) -> bool {
        self.status == "draft"
    }
}

/// The file `schema/revisions.toml`.
#[derive(Deserialize)]
struct RevisionsFile {
    /// Entries of the file.
    revision: Vec<Revision>,
}

/// Parses the entries of `schema/revisions.toml`.
///
/// # Errors
/// Returns an error if the text is not a list of revisions.
pub fn revisions(text: &str) -> Result<Vec<Revision>> {
    let list: RevisionsFile = toml::from_str(text).map_err(|error| {
        let remedy = "give each revision an id, a status and a sha256";
        Error::new("schema/revisions.toml", "", error.message(), remedy)
    })?;
    Ok(list.revision)
}

/// One entry of `schema/extensions.toml`.
#[derive(Debug, Clone, Deserialize)]
pub struct ListedExtension {
    /// Fields that entries of `schema/revisions.toml` have as well.
    #[serde(flatten)]
    pub revision: Revision,
    /// Identifier of the revision that the extension extends.
    pub extends: String,
}

/// The file `schema/extensions.toml`.
#[derive(Deserialize)]
struct ExtensionsFile {
    /// Entries of the file.
    #[serde(default)]
    extension: Vec<ListedExtension>,
}

/// Parses the entries of `schema/extensions.toml`.
///
/// # Errors
/// Returns an error if the text is not a list of extensions.
pub fn extensions(text: &str) -> Result<Vec<ListedExtension>> {
    let list: ExtensionsFile = toml::from_str(text).map_err(|error| {
        let remedy =
            "give each extension an id, a status, a sha256 and the revision that it extends";
        Error::new("schema/extensions.toml", "", error.message(), remedy)
    })?;
    Ok(list.extension)
}
