//! Generates the embedded data of each released revision for the executable `mcp-exact`: its intermediate
//! representation and the dispatch of its unions, as one file of compact JSON.
//!
//! Drafts have no file, because published crates use only released revisions.

use std::collections::BTreeMap;

use serde::Serialize;

use crate::emit::Files;
use crate::error::{Error, Result};
use crate::input::lists::Revision;
use crate::ir::{Model, RustIr};

/// Folder of the embedded files, relative to the workspace root; it contains no other files.
pub const EMBEDDED: &str = "crates/mcp-exact-cli/data";

/// Contents of the file of a revision.
#[derive(Serialize)]
struct EmbeddedFile<'i> {
    /// The revision, with its extensions.
    #[serde(flatten)]
    model: Model,
    /// Location of the definitions in the official schema file.
    source: SourceLocation<'i>,
}

/// Location of the definitions in the official schema file.
#[derive(Serialize)]
struct SourceLocation<'i> {
    /// URL of the file.
    url: &'i str,
    /// Line of each definition.
    lines: BTreeMap<&'i str, usize>,
}

/// Generates the file of a revision with its extensions; none for a draft. `schema` contains the schema file, and `url` is
/// its upstream URL.
///
/// # Errors
/// Returns an error if the intermediate representation cannot be written as JSON, which is a defect of the generator.
pub fn embed(
    (ir, extensions): (&RustIr, &[&RustIr]),
    revision: &Revision,
    schema: &[u8],
    url: &str,
) -> Result<Files> {
    let mut files = Files::new();
    if !revision.is_draft() {
        let text = String::from_utf8_lossy(schema);
        let embedded = EmbeddedFile {
            model: Model {
                extensions: extensions.iter().map(|ir| ir.model()).collect(),
                ..ir.model()
            },
            source: SourceLocation {
                url,
                lines: definition_lines(&text),
            },
        };
        let text = serde_json::to_string(&embedded).map_err(|error| {
            let remedy = "this is a defect of the generator; report it";
            Error::new(&revision.id, "", error.to_string(), remedy)
        })?;
        files.insert(format!("{EMBEDDED}/{}.json", revision.id), text + "\n");
    }
    Ok(files)
}

/// Returns the line number, counted from 1, of each definition in `definitions` or `$defs`. Every line with the
/// indentation of the first definition begins a definition; the result is empty for a file with another layout.
fn definition_lines(schema: &str) -> BTreeMap<&str, usize> {
    let is_heading = |line: &str| matches!(line.trim(), "\"definitions\": {" | "\"$defs\": {");
    let mut lines = schema
        .lines()
        .enumerate()
        .skip_while(|(_, line)| !is_heading(line));
    lines.next();
    let indentation = |line: &str| line.len() - line.trim_start().len();
    let mut found = BTreeMap::new();
    let mut depth = None;
    for (index, line) in lines {
        let here = indentation(line);
        let depth = *depth.get_or_insert(here);
        if here < depth {
            break;
        }
        let name = line
            .trim()
            .strip_prefix('"')
            .and_then(|rest| rest.split_once("\": "));
        if let Some((name, _)) = name.filter(|_| here == depth) {
            found.insert(name, index + 1);
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only direct members of `$defs` have a line: a nested member and a member after `$defs` have none.
    #[test]
    fn definition_lines_exclude_other_members() {
        let schema = "{\n  \"$defs\": {\n    \"A\": {\n      \"B\": {}\n    },\n    \"C\": {}\n  },\n  \"D\": {}\n}";
        assert_eq!(
            definition_lines(schema),
            BTreeMap::from([("A", 3), ("C", 6)])
        );
        assert!(definition_lines("{}").is_empty());
    }
}
