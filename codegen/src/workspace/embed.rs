//! What programs compare revisions by: the representation of each released revision as one file of compact JSON.
//!
//! Takes a representation; gives the file that `mcp-exact-cli` is compiled with. Drafts have none, because what is
//! published uses released revisions only.

use crate::emit::Files;
use crate::error::{Error, Result};
use crate::input::lists::Revision;
use crate::ir::Ir;

/// The folder of these files, from the root of the workspace; nothing else is in it.
pub const EMBEDDED: &str = "crates/mcp-exact-cli/data";

/// The file of one revision, or none for a draft.
///
/// # Errors
/// When the representation cannot be written as JSON: a defect of the generator.
pub fn embed(ir: &Ir, revision: &Revision) -> Result<Files> {
    let mut files = Files::new();
    if !revision.is_draft() {
        let text = serde_json::to_string(ir).map_err(|error| {
            let remedy = "this is a defect of the generator; report it";
            Error::new(&revision.id, "", error.to_string(), remedy)
        })?;
        files.insert(format!("{EMBEDDED}/{}.json", revision.id), text + "\n");
    }
    Ok(files)
}
