//! Generated regions of other files that list revisions: dependencies, features and tables, between two marks.
//!
//! Takes the text of such a file and all revisions; returns the text with the regions written anew. Outside of its regions a
//! file belongs to people. Never adds or moves a mark.

use std::collections::BTreeSet;
use std::fmt::Write as _;

use crate::error::{Error, Result};
use crate::input::lists::Revision;
use crate::ir::names::{library, marker_name, static_name};
use crate::ir::{Ir, Shape};

/// A revision and its representation.
#[derive(Debug, Clone, Copy)]
pub struct Wired<'r> {
    /// The entry of the list.
    pub revision: &'r Revision,
    /// Its representation.
    pub ir: &'r Ir,
    /// The revision that it extends, if it is an extension.
    pub extends: Option<&'r str>,
}

/// The files with regions, from the root of the workspace.
pub fn files() -> impl Iterator<Item = &'static str> {
    FILES.iter().map(|file| file.path)
}

/// The text of a file with its regions written anew.
///
/// # Errors
/// When a mark is missing or there twice; the error names the file.
pub fn wire(path: &str, text: &str, wired: &[Wired<'_>]) -> Result<String> {
    let file = FILES.iter().find(|file| file.path == path).ok_or_else(|| {
        let problem = "no region of this file is known";
        Error::new(path, "", problem, "list its regions in the generator")
    })?;
    let mut text = text.to_owned();
    let (extensions, revisions): (Vec<Wired<'_>>, Vec<Wired<'_>>) =
        wired.iter().partition(|wired| wired.extends.is_some());
    for (region, write) in file.regions {
        let of_extensions = region.starts_with("extension ");
        let wired = if of_extensions {
            &extensions
        } else {
            &revisions
        };
        text = replace(file, region, &text, &write(wired))?;
    }
    Ok(text)
}

type Write = fn(&[Wired<'_>]) -> String;

struct File {
    path: &'static str,
    /// Start and end of a comment.
    comment: (&'static str, &'static str),
    regions: &'static [(&'static str, Write)],
}

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
            ("revision list", readme_list),
        ],
    },
    File {
        path: "crates/mcp-exact-cli/Cargo.toml",
        comment: ("# ", ""),
        regions: &[
            ("revision features", cli_features),
            ("revision dependencies", cli_dependencies),
        ],
    },
    File {
        path: "crates/mcp-exact-cli/src/revisions.rs",
        comment: ("// ", ""),
        regions: &[("revision table", cli_table)],
    },
    File {
        path: "crates/mcp-exact-session/Cargo.toml",
        comment: ("# ", ""),
        regions: &[
            ("revision features", session_features),
            ("revision dependencies", session_dependencies),
        ],
    },
    File {
        path: "crates/mcp-exact-session/src/typed.rs",
        comment: ("// ", ""),
        regions: &[("revision list", |revisions| {
            marker_list(released(revisions))
        })],
    },
    File {
        path: "tests/agreement/Cargo.toml",
        comment: ("# ", ""),
        regions: &[
            ("revision dependencies", test_dependencies),
            ("extension dependencies", test_dependencies),
        ],
    },
    File {
        path: "tests/agreement/tests/agreement/revisions.rs",
        comment: ("// ", ""),
        regions: &[
            ("revision types", |revisions| {
                test_types("REVISIONS", revisions)
            }),
            ("extension types", |extensions| {
                test_types("EXTENSIONS", extensions)
            }),
        ],
    },
    File {
        path: "tests/agreement/tests/agreement/revision_table.rs",
        comment: ("// ", ""),
        regions: &[("revision markers", |revisions| marker_list(ids(revisions)))],
    },
    File {
        path: "tests/fuzz/Cargo.toml",
        comment: ("# ", ""),
        regions: &[("revision dependencies", registry_dependencies)],
    },
    File {
        path: "tests/fuzz/src/convert.rs",
        comment: ("// ", ""),
        regions: &[("revision definitions", fuzz_definitions)],
    },
    File {
        path: "tests/fuzz/src/lib.rs",
        comment: ("// ", ""),
        regions: &[("revision messages", fuzz_messages)],
    },
    File {
        path: "tests/serde/Cargo.toml",
        comment: ("# ", ""),
        regions: &[("revision dependencies", test_dependencies)],
    },
    File {
        path: "tests/serde/tests/serde/types.rs",
        comment: ("// ", ""),
        regions: &[("revision types", serde_types)],
    },
    File {
        path: "benches/Cargo.toml",
        comment: ("# ", ""),
        regions: &[("revision dependencies", bench_dependencies)],
    },
    File {
        path: "benches/codec/Cargo.toml",
        comment: ("# ", ""),
        regions: &[("revision dependencies", plain_dependencies)],
    },
    File {
        path: "benches/codec/src/revisions.rs",
        comment: ("// ", ""),
        regions: &[("revision crates", crate_list)],
    },
    File {
        path: "benches/compile/mcp-revisions/Cargo.toml",
        comment: ("# ", ""),
        regions: &[("revision dependencies", plain_dependencies)],
    },
    File {
        path: "benches/compile/mcp-revisions/src/main.rs",
        comment: ("// ", ""),
        regions: &[("revision crates", crate_list)],
    },
];

fn replace(file: &File, region: &str, text: &str, with: &str) -> Result<String> {
    let (open, close) = file.comment;
    let marks = ["begin", "end"].map(|end| format!("{open}@generated {region}: {end}{close}"));
    let mut places = [0; 2];
    for (mark, place) in marks.iter().zip(&mut places) {
        let mut found = text.match_indices(mark.as_str());
        *place = match (found.next(), found.next()) {
            (Some((at, _)), None) => at,
            (None, _) => return Err(fail(file, format!("the mark `{mark}` is missing"))),
            (_, Some(_)) => return Err(fail(file, format!("the mark `{mark}` is there twice"))),
        };
    }
    let start = places[0] + marks[0].len();
    let inside = text.get(start..places[1]).filter(|i| i.starts_with('\n'));
    if inside.is_none() {
        return Err(fail(
            file,
            format!("`{}` does not come first, on a line of its own", marks[0]),
        ));
    }
    let end = text[..places[1]].rfind('\n').map_or(start, |at| at + 1);
    Ok(format!("{}\n{with}{}", &text[..start], &text[end..]))
}

fn fail(file: &File, problem: String) -> Error {
    let remedy = "put both marks back, each once; what is between them is written anew";
    Error::new(file.path, "", problem, remedy)
}

/// The revisions whose crates are published, and which published crates may therefore use.
fn released<'r>(revisions: &'r [Wired<'r>]) -> impl Iterator<Item = &'r str> {
    let released = revisions.iter().filter(|wired| !wired.revision.is_draft());
    released.map(|wired| wired.revision.id.as_str())
}

fn ids<'r>(revisions: &'r [Wired<'r>]) -> impl Iterator<Item = &'r str> {
    revisions.iter().map(|wired| wired.revision.id.as_str())
}

fn lines<'l>(ids: impl Iterator<Item = &'l str>, line: impl Fn(&str) -> String) -> String {
    ids.map(|id| line(id) + "\n").collect()
}

fn workspace_dependencies(revisions: &[Wired<'_>]) -> String {
    lines(ids(revisions), |id| {
        format!("mcp-{id} = {{ path = \"crates/mcp-{id}\", version = \"0.1.0\" }}")
    })
}

fn readme_table(revisions: &[Wired<'_>]) -> String {
    let mut text =
        "| revision | crate | definitions | official schema |\n|---|---|---|---|\n".to_owned();
    for Wired { revision, ir, .. } in revisions {
        let id = &revision.id;
        let definitions = ir.definitions.iter().filter(|d| d.official).count();
        let unpublished = if revision.is_draft() {
            " (draft, not published)"
        } else {
            ""
        };
        // Writing to a `String` does not fail.
        let _ = writeln!(
            text,
            "| {id} | `mcp-{id}`{unpublished} | {definitions} | [schema/{id}](schema/{id}/schema.json) |"
        );
    }
    text
}

fn extension_table(extensions: &[Wired<'_>]) -> String {
    let mut text =
        "| extension | to revision | crate | definitions | schema |\n|---|---|---|---|---|\n"
            .to_owned();
    for Wired {
        revision,
        ir,
        extends,
    } in extensions
    {
        let id = &revision.id;
        let definitions = ir.definitions.iter().filter(|d| d.official).count();
        let unpublished = if revision.is_draft() {
            " (draft, not published)"
        } else {
            ""
        };
        let _ = writeln!(
            text,
            "| {id} | {} | `mcp-{id}`{unpublished} | {definitions} | [schema/{id}](schema/{id}/schema.json) |",
            extends.unwrap_or_default()
        );
    }
    text
}

/// Returns the output of `mcp-exact revisions`.
fn readme_list(revisions: &[Wired<'_>]) -> String {
    let mut text = "```text\n$ mcp-exact revisions\n\
                    revision    status   definitions  requests  notifications\n"
        .to_owned();
    for Wired { revision, ir, .. } in revisions.iter().filter(|w| !w.revision.is_draft()) {
        let definitions = ir.definitions.iter().filter(|d| d.official).count();
        let methods = |request: bool| {
            let sent = ir.methods.iter().filter(|m| m.from_client || m.from_server);
            let sent = sent.filter(|method| method.request == request);
            let names: BTreeSet<&str> = sent.map(|method| method.method.as_str()).collect();
            names.len()
        };
        let (requests, notifications) = (methods(true), methods(false));
        let _ = writeln!(
            text,
            "{:<12}{:<9}{definitions:>11}{requests:>10}{notifications:>15}",
            revision.id, revision.status
        );
    }
    text + "```\n"
}

fn cli_features(revisions: &[Wired<'_>]) -> String {
    let names: Vec<String> = released(revisions).map(|id| format!("\"{id}\"")).collect();
    let features = lines(released(revisions), |id| {
        format!("{id} = [\"dep:mcp-{id}\"]")
    });
    format!("default = [\"client\", {}]\n{features}", names.join(", "))
}

fn cli_dependencies(revisions: &[Wired<'_>]) -> String {
    lines(released(revisions), |id| {
        format!("mcp-{id} = {{ workspace = true, features = [\"registry\"], optional = true }}")
    })
}

fn session_features(revisions: &[Wired<'_>]) -> String {
    let names: Vec<String> = released(revisions).map(|id| format!("\"{id}\"")).collect();
    let features = lines(released(revisions), |id| {
        format!("{id} = [\"dep:mcp-{id}\"]")
    });
    format!("default = [{}]\n{features}", names.join(", "))
}

/// Identifier, marker and crate of each revision.
fn marker_list<'l>(ids: impl Iterator<Item = &'l str>) -> String {
    let list = lines(ids, |id| {
        format!("    \"{id}\" {} {};", marker_name(id), library(id))
    });
    format!("revisions! {{\n{list}}}\n")
}

fn session_dependencies(revisions: &[Wired<'_>]) -> String {
    lines(released(revisions), |id| {
        format!("mcp-{id} = {{ workspace = true, optional = true }}")
    })
}

fn cli_table(revisions: &[Wired<'_>]) -> String {
    lines(released(revisions), |id| {
        let (library, row) = (library(id), static_name(id));
        format!(
            "    #[cfg(feature = \"{id}\")]\n    \
             CompiledRevision {{ spec: mcp_exact_revisions::{row}, definitions: {library}::DEFINITIONS, model_json: include_str!(\"../data/{id}.json\") }},"
        )
    })
}

fn test_dependencies(revisions: &[Wired<'_>]) -> String {
    lines(ids(revisions), |id| {
        format!("mcp-{id} = {{ workspace = true, features = [\"registry\", \"schemars1\"] }}")
    })
}

fn test_types(table: &str, revisions: &[Wired<'_>]) -> String {
    let mut text = format!("types! {{ {table}\n");
    for Wired { revision, ir, .. } in revisions {
        let id = &revision.id;
        let unions = ir.definitions.iter();
        let unions = unions.filter(|definition| matches!(definition.shape, Shape::Union(_)));
        let unions = wrapped(unions.map(|definition| definition.name.as_str()));
        let _ = write!(text, "    \"{id}\" {} {{\n{unions}    }}\n", library(id));
    }
    text + "}\n"
}

fn plain_dependencies(revisions: &[Wired<'_>]) -> String {
    lines(ids(revisions), |id| format!("mcp-{id}.workspace = true"))
}

fn registry_dependencies(revisions: &[Wired<'_>]) -> String {
    lines(ids(revisions), |id| {
        format!("mcp-{id} = {{ workspace = true, features = [\"registry\"] }}")
    })
}

fn fuzz_definitions(revisions: &[Wired<'_>]) -> String {
    lines(ids(revisions), |id| {
        format!("    {}::DEFINITIONS,", library(id))
    })
}

fn bench_dependencies(revisions: &[Wired<'_>]) -> String {
    lines(ids(revisions), |id| {
        format!("mcp-{id} = {{ path = \"../crates/mcp-{id}\" }}")
    })
}

fn fuzz_messages(revisions: &[Wired<'_>]) -> String {
    lines(ids(revisions), |id| {
        let library = library(id);
        format!(
            "    frame::<{library}::FromClient, {library}::FromServer>(bytes);\n    \
             frame::<{library}::FromServer, {library}::FromClient>(bytes);"
        )
    })
}

/// The definitions of the schemas, as the tables of the crates list them.
fn serde_types(revisions: &[Wired<'_>]) -> String {
    let mut text = "revisions! {\n".to_owned();
    for Wired { revision, ir, .. } in revisions {
        let (id, library) = (&revision.id, library(&revision.id));
        let official = ir.definitions.iter().filter(|d| d.official);
        let names = wrapped(official.map(|definition| definition.name.as_str()));
        let _ = write!(text, "    \"{id}\" {library} {{\n{names}    }}\n");
    }
    text + "}\n"
}

fn crate_list(revisions: &[Wired<'_>]) -> String {
    let list = lines(ids(revisions), |id| format!("    \"{id}\" {}", library(id)));
    format!("revisions! {{\n{list}}}\n")
}

/// Words in lines of at most 120 characters.
fn wrapped<'w>(words: impl Iterator<Item = &'w str>) -> String {
    let mut text = String::new();
    let mut width = usize::MAX;
    for word in words {
        if width.saturating_add(1 + word.len()) > 120 {
            text.push_str(if text.is_empty() {
                "        "
            } else {
                "\n        "
            });
            width = 8;
        } else {
            text.push(' ');
            width += 1;
        }
        text.push_str(word);
        width += word.len();
    }
    text + "\n"
}

#[cfg(test)]
mod tests {
    use super::*;

    const FILE: File = File {
        path: "a.toml",
        comment: ("# ", ""),
        regions: &[],
    };

    fn check(text: &str, expected: std::result::Result<&str, &str>) {
        match (replace(&FILE, "x", text, "new\n"), expected) {
            (Ok(found), Ok(expected)) => assert_eq!(found, expected),
            (Err(found), Err(expected)) => {
                assert_eq!(found.revision, "a.toml");
                assert_eq!(found.problem, expected);
            }
            (found, expected) => panic!("{found:?} is not {expected:?}"),
        }
    }

    #[test]
    fn only_what_is_between_the_marks_changes() {
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
    fn marks_that_are_missing_double_or_swapped_are_errors() {
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

    #[test]
    fn long_lists_are_wrapped() {
        let words = ["Aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"; 2];
        let line = format!("        {}\n", words[0]);
        assert_eq!(wrapped(words.into_iter()), line.repeat(2));
        assert_eq!(wrapped(["A", "B"].into_iter()), "        A B\n");
    }
}
