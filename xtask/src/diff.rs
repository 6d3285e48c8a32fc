//! `cargo xtask diff`: lists the changes between two revisions, or writes one page with all revisions.
//!
//! Reads the schema folders, lowers the revisions, and prints or writes the output of the model crate.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{ArgGroup, Args};
use codegen::Tables;
use codegen::ir::{Ir, diff, diff_with_descriptions, render};

/// Arguments of `cargo xtask diff`, equal to those of `mcp-exact diff`.
#[derive(Debug, Args)]
#[command(group = ArgGroup::new("form").args(["markdown", "json", "html"]))]
pub struct Arguments {
    /// The older revision, such as 2025-03-26.
    #[arg(required_unless_present = "html", requires = "to")]
    from: Option<String>,
    /// The newer revision.
    #[arg(required_unless_present = "html")]
    to: Option<String>,
    /// Print Markdown, for a changelog.
    #[arg(long)]
    markdown: bool,
    /// Print JSON, for tools.
    #[arg(long)]
    json: bool,
    /// Write one page over the two revisions and those between them, or over all of them.
    #[arg(long, value_name = "FILE", conflicts_with = "descriptions")]
    html: Option<PathBuf>,
    /// List changed descriptions, too.
    #[arg(long)]
    descriptions: bool,
    /// Schema folders to read instead of the one of the workspace; their revisions follow one another.
    #[arg(long, value_name = "DIR", hide = true)]
    schemas: Vec<PathBuf>,
}

/// Prints the differences or writes the page, as the arguments specify.
///
/// # Errors
/// Returns an error if a schema cannot be used, a revision is not known, or a file cannot be written.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let folders = if arguments.schemas.is_empty() {
        vec![root.join("schema")]
    } else {
        arguments.schemas.clone()
    };
    let revisions = lower_revisions(&folders)?;
    let ends = match (&arguments.from, &arguments.to) {
        (Some(from), Some(to)) => Some((
            revision_index(&revisions, from)?,
            revision_index(&revisions, to)?,
        )),
        _ => None,
    };
    match (&arguments.html, ends) {
        (Some(file), ends) => {
            let (from, to) = ends.unwrap_or((0, revisions.len().saturating_sub(1)));
            let shown = &revisions[from.min(to)..=from.max(to)];
            fs::write(file, render::html(shown, &all_page_options())?)
                .with_context(|| format!("cannot write {}", file.display()))?;
            println!("{}: {} revisions", file.display(), shown.len());
            Ok(())
        }
        (None, Some((from, to))) => print_differences(arguments, &revisions[from], &revisions[to]),
        (None, None) => bail!("name two revisions, or a file after --html"),
    }
}

/// Returns the HTML page with all revisions of the repository.
///
/// # Errors
/// Returns an error if a schema cannot be used.
pub fn page(root: &Path) -> anyhow::Result<String> {
    let revisions = lower_revisions(&[root.join("schema")])?;
    Ok(render::html(&revisions, &all_page_options())?)
}

/// Returns the options of the page with all revisions.
fn all_page_options() -> render::PageOptions {
    render::PageOptions {
        generator: "cargo xtask diff".to_owned(),
        ..render::PageOptions::default()
    }
}

/// Prints the differences between two revisions.
fn print_differences(arguments: &Arguments, from: &Ir, to: &Ir) -> anyhow::Result<()> {
    let differences = if arguments.descriptions {
        diff_with_descriptions(from, to)
    } else {
        diff(from, to)
    };
    let mut out = std::io::stdout().lock();
    let text = if arguments.json {
        render::json(&differences)? + "\n"
    } else if arguments.markdown {
        render::markdown(&differences)
    } else {
        render::text(&differences, out.is_terminal())
    };
    out.write_all(text.as_bytes())?;
    Ok(())
}

/// Returns the index of a revision.
fn revision_index(revisions: &[Ir], id: &str) -> anyhow::Result<usize> {
    let found = revisions.iter().position(|ir| ir.revision == id);
    found.with_context(|| {
        let known: Vec<&str> = revisions.iter().map(|ir| ir.revision.as_str()).collect();
        format!(
            "the revision {id:?} is not known; choose from {}",
            known.join(", ")
        )
    })
}

/// Returns the revisions of several schema folders, in the order of the folders and of their lists.
///
/// # Errors
/// Returns an error if a file is missing or a schema cannot be used.
pub fn lower_revisions(folders: &[PathBuf]) -> anyhow::Result<Vec<Ir>> {
    let mut revisions = Vec::new();
    for folder in folders {
        let read = |name: &str| {
            let file = folder.join(name);
            fs::read_to_string(&file).with_context(|| format!("cannot read {}", file.display()))
        };
        let (errata, names) = (read("errata.toml")?, read("names.toml")?);
        let tables = Tables {
            errata: &errata,
            names: &names,
        };
        for revision in codegen::revisions(&read("revisions.toml")?)? {
            let schema = read(&format!("{}/schema.json", revision.id))?;
            revisions.push(codegen::lower(&revision, schema.as_bytes(), tables)?.ir.ir);
        }
    }
    Ok(revisions)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The error for an unknown revision names the known revisions.
    #[test]
    fn unknown_revision_error_lists_known_ones() {
        let known = Ir {
            revision: "2025-06-18".into(),
            definitions: Vec::new(),
            methods: Vec::new(),
        };
        let error = revision_index(&[known], "2025-06-19").expect_err("it is not known");
        assert_eq!(
            error.to_string(),
            "the revision \"2025-06-19\" is not known; choose from 2025-06-18"
        );
    }
}
