//! Generates regions of manifests and of the README that list revisions, each between two marks.
//!
//! The input is the text of a file and all type crates; the output is the text with replaced regions. The marks and the
//! text outside of the regions do not change. Rust code has no regions: it uses `for_each_revision!`.

use std::fmt::Write as _;

use crate::error::{Error, Result};
use crate::input::lists::Revision;
use crate::ir::Ir;

/// A type crate of a revision or an extension.
#[derive(Debug, Clone, Copy)]
pub struct TypeCrate<'r> {
    /// Entry in the list of revisions or extensions.
    pub revision: &'r Revision,
    /// Intermediate representation of the revision or extension.
    pub ir: &'r Ir,
    /// Identifier of the revision that an extension extends; `None` for a revision.
    pub extends: Option<&'r str>,
}

/// Returns the files with regions, by their paths from the root of the workspace.
pub fn files_with_regions() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.path)
}

/// Returns the text of a file with its generated regions replaced.
///
/// # Errors
/// Returns an error if a mark is missing or occurs twice; the error names the file.
pub fn write_regions(path: &str, text: &str, crates: &[TypeCrate<'_>]) -> Result<String> {
    let file = FILES.iter().find(|file| file.path == path).ok_or_else(|| {
        let problem = "no region of this file is known";
        Error::new(path, "", problem, "list its regions in the generator")
    })?;
    let mut text = text.to_owned();
    let (extensions, revisions): (Vec<TypeCrate<'_>>, Vec<TypeCrate<'_>>) =
        crates.iter().partition(|crates| crates.extends.is_some());
    for (region, write) in file.regions {
        let crates = if region.starts_with("extension ") {
            &extensions
        } else {
            &revisions
        };
        text = replace_region(file, region, &text, &write(crates))?;
    }
    Ok(text)
}

/// Function that returns the text of a region.
type WriteRegion = fn(&[TypeCrate<'_>]) -> String;

/// A file with generated regions.
struct File {
    /// Path from the root of the workspace.
    path: &'static str,
    /// Start and end of a comment in the file's format.
    comment: (&'static str, &'static str),
    /// Names of the regions, with the functions that return their texts.
    regions: &'static [(&'static str, WriteRegion)],
}

/// All files with generated regions.
const FILES: &[File] = &[
    File {
        path: "Cargo.toml",
        comment: ("# ", ""),
        regions: &[
            ("revision dependencies", workspace_dependencies),
            ("extension dependencies", workspace_dependencies),
        ],
    },
    File {
        path: "README.md",
        comment: ("<!-- ", " -->"),
        regions: &[
            ("revision table", readme_table),
            ("extension table", extension_table),
        ],
    },
    File {
        path: "crates/mcp-exact-cli/Cargo.toml",
        comment: ("# ", ""),
        regions: &[("revision features", cli_features)],
    },
    File {
        path: "crates/mcp-exact-session/Cargo.toml",
        comment: ("# ", ""),
        regions: &[
            ("revision features", session_features),
            ("revision dependencies", session_dependencies),
        ],
    },
];

/// Replaces the text between the two marks of a region.
fn replace_region(file: &File, region: &str, text: &str, with: &str) -> Result<String> {
    let (open, close) = file.comment;
    let marks = ["begin", "end"].map(|end| format!("{open}@generated {region}: {end}{close}"));
    let mut places = [0; 2];
    for (mark, place) in marks.iter().zip(&mut places) {
        let mut found = text.match_indices(mark.as_str());
        *place = match (found.next(), found.next()) {
            (Some((at, _)), None) => at,
            (None, _) => return Err(region_error(file, format!("the mark `{mark}` is missing"))),
            (_, Some(_)) => {
                return Err(region_error(
                    file,
                    format!("the mark `{mark}` is there twice"),
                ));
            }
        };
    }
    let start = places[0] + marks[0].len();
    let inside = text.get(start..places[1]).filter(|i| i.starts_with('\n'));
    if inside.is_none() {
        return Err(region_error(
            file,
            format!("`{}` does not come first, on a line of its own", marks[0]),
        ));
    }
    let end = text[..places[1]].rfind('\n').map_or(start, |at| at + 1);
    Ok(format!("{}\n{with}{}", &text[..start], &text[end..]))
}

/// Creates the error for a missing or duplicate mark in a file.
fn region_error(file: &File, problem: String) -> Error {
    let remedy = "put both marks back, each once; what is between them is written anew";
    Error::new(file.path, "", problem, remedy)
}

/// Returns the identifiers of the revisions with published crates, which other published crates can depend on.
fn released_ids<'r>(revisions: &'r [TypeCrate<'r>]) -> impl Iterator<Item = &'r str> {
    let released = revisions
        .iter()
        .filter(|crates| !crates.revision.is_draft());
    released.map(|crates| crates.revision.id.as_str())
}

/// Returns the identifiers of all type crates.
fn ids<'r>(revisions: &'r [TypeCrate<'r>]) -> impl Iterator<Item = &'r str> {
    revisions.iter().map(|crates| crates.revision.id.as_str())
}

/// Concatenates the lines that `line` returns for each identifier.
pub(super) fn format_lines<'l>(
    ids: impl Iterator<Item = &'l str>,
    line: impl Fn(&str) -> String,
) -> String {
    ids.map(|id| line(id) + "\n").collect()
}

/// Returns the dependencies on type crates in the workspace's `Cargo.toml`.
fn workspace_dependencies(revisions: &[TypeCrate<'_>]) -> String {
    format_lines(ids(revisions), |id| {
        format!("mcp-{id} = {{ path = \"crates/mcp-{id}\", version = \"0.1.0\" }}")
    })
}

/// Returns the table of revisions in the README.
fn readme_table(revisions: &[TypeCrate<'_>]) -> String {
    let mut text =
        "| revision | crate | definitions | official schema |\n|---|---|---|---|\n".to_owned();
    for revision in revisions {
        // Writing to a `String` does not fail.
        let _ = writeln!(
            text,
            "| {} | {}",
            revision.revision.id,
            readme_cells(*revision)
        );
    }
    text
}

/// Returns the table of extensions in the README.
fn extension_table(extensions: &[TypeCrate<'_>]) -> String {
    let mut text =
        "| extension | to revision | crate | definitions | schema |\n|---|---|---|---|---|\n"
            .to_owned();
    for extension in extensions {
        let id = &extension.revision.id;
        let base = extension.extends.unwrap_or_default();
        let _ = writeln!(text, "| {id} | {base} | {}", readme_cells(*extension));
    }
    text
}

/// Returns the table cells that revisions and extensions have in common: crate, number of definitions, schema.
fn readme_cells(TypeCrate { revision, ir, .. }: TypeCrate<'_>) -> String {
    let id = &revision.id;
    let definitions = ir.definitions.iter().filter(|d| d.official).count();
    let unpublished = if revision.is_draft() {
        " (draft, not published)"
    } else {
        ""
    };
    format!("`mcp-{id}`{unpublished} | {definitions} | [schema/{id}](schema/{id}/schema.json) |")
}

/// Returns the features in the `Cargo.toml` of `mcp-exact-cli`: those of the revisions select embedded data.
fn cli_features(revisions: &[TypeCrate<'_>]) -> String {
    features(&["client", "http"], revisions, |id| format!("{id} = []"))
}

/// Returns the features in the `Cargo.toml` of `mcp-exact-session`.
fn session_features(revisions: &[TypeCrate<'_>]) -> String {
    features(&["client"], revisions, |id| {
        format!("{id} = [\"dep:mcp-{id}\"]")
    })
}

/// Returns the `default` feature with others and all released revisions, and one feature per released revision, which
/// `feature` formats.
fn features(
    others: &[&str],
    revisions: &[TypeCrate<'_>],
    feature: impl Fn(&str) -> String,
) -> String {
    let names: Vec<String> = others
        .iter()
        .copied()
        .chain(released_ids(revisions))
        .map(|name| format!("\"{name}\""))
        .collect();
    let features = format_lines(released_ids(revisions), feature);
    format!("default = [{}]\n{features}", names.join(", "))
}

/// Returns the dependencies on type crates in the `Cargo.toml` of `mcp-exact-session`.
fn session_dependencies(revisions: &[TypeCrate<'_>]) -> String {
    format_lines(released_ids(revisions), |id| {
        format!("mcp-{id} = {{ workspace = true, optional = true }}")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file whose comments begin with `#`, and which has one region.
    const FILE: File = File {
        path: "a.toml",
        comment: ("# ", ""),
        regions: &[],
    };

    /// Checks the text of a file after its region was replaced, or the problem that the error describes.
    fn check(text: &str, expected: std::result::Result<&str, &str>) {
        match (replace_region(&FILE, "x", text, "new\n"), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(expected)) => {
                assert_eq!(found.revision, "a.toml");
                assert_eq!(found.problem, expected);
            }
            (found, expected) => panic!("{found:?} is not {expected:?}"),
        }
    }

    /// Only the text between the marks of a region is replaced.
    #[test]
    fn text_outside_marks_is_unchanged() {
        check(
            "a\n# @generated x: begin\nold\nold\n# @generated x: end\nb\n",
            Ok("a\n# @generated x: begin\nnew\n# @generated x: end\nb\n"),
        );
        check(
            "# @generated x: begin\n# @generated x: end",
            Ok("# @generated x: begin\nnew\n# @generated x: end"),
        );
    }

    #[test]
    fn an_end_mark_keeps_its_indentation() {
        check(
            "  # @generated x: begin\n  old\n  # @generated x: end\n",
            Ok("  # @generated x: begin\nnew\n  # @generated x: end\n"),
        );
    }

    #[test]
    fn incorrect_marks_are_refused() {
        check("a\n", Err("the mark `# @generated x: begin` is missing"));
        check(
            "# @generated x: begin\n",
            Err("the mark `# @generated x: end` is missing"),
        );
        check(
            "# @generated x: begin\n# @generated x: begin\n# @generated x: end\n",
            Err("the mark `# @generated x: begin` is there twice"),
        );
        check(
            "# @generated x: end\n# @generated x: begin\n",
            Err("`# @generated x: begin` does not come first, on a line of its own"),
        );
    }
}
