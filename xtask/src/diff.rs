//! `cargo xtask diff`: what changed between two revisions, or one page over all of them.
//!
//! Reads the schema folders, lets the generator represent the revisions, and prints or writes what the model crate makes
//! of them.

use std::fs;
use std::io::{IsTerminal, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, bail};
use clap::{Args, ValueEnum};
use codegen::Tables;
use codegen::ir::{Ir, diff, diff_with_descriptions, render};

/// The arguments of `cargo xtask diff`.
#[derive(Debug, Args)]
pub struct Arguments {
    /// The older revision, such as 2025-03-26.
    #[arg(required_unless_present = "html", conflicts_with = "html")]
    from: Option<String>,
    /// The newer revision.
    #[arg(required_unless_present = "html", conflicts_with = "html")]
    to: Option<String>,
    /// How the differences are written.
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// List the descriptions that were worded anew, too.
    #[arg(long)]
    descriptions: bool,
    /// Write one page over all revisions to this file.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["format", "descriptions"])]
    html: Option<PathBuf>,
    /// Schema folders to read instead of the one of the workspace; their revisions follow one another.
    #[arg(long, value_name = "DIR", hide = true)]
    schemas: Vec<PathBuf>,
}

/// How differences are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
pub enum Format {
    /// For a terminal.
    Text,
    /// For a changelog.
    Markdown,
    /// For tools.
    Json,
}

/// Prints the differences that the arguments ask for, or writes the page.
///
/// # Errors
/// When a schema cannot be used, a revision is not known, or a file cannot be written.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let folders = if arguments.schemas.is_empty() {
        vec![root.join("schema")]
    } else {
        arguments.schemas.clone()
    };
    let revisions = represent(&folders)?;
    if let Some(file) = &arguments.html {
        fs::write(file, render::html(&revisions))
            .with_context(|| format!("cannot write {}", file.display()))?;
        println!("{}: {} revisions", file.display(), revisions.len());
        return Ok(());
    }
    let (Some(from), Some(to)) = (&arguments.from, &arguments.to) else {
        bail!("name two revisions, or a file after --html");
    };
    let (from, to) = (find(&revisions, from)?, find(&revisions, to)?);
    let differences = if arguments.descriptions {
        diff_with_descriptions(from, to)
    } else {
        diff(from, to)
    };
    let text = match arguments.format {
        Format::Text => render::text(&differences, std::io::stdout().is_terminal()),
        Format::Markdown => render::markdown(&differences),
        Format::Json => render::json(&differences)? + "\n",
    };
    std::io::stdout().write_all(text.as_bytes())?;
    Ok(())
}

fn find<'i>(revisions: &'i [Ir], id: &str) -> anyhow::Result<&'i Ir> {
    let found = revisions.iter().find(|ir| ir.revision == id);
    found.with_context(|| {
        let known: Vec<&str> = revisions.iter().map(|ir| ir.revision.as_str()).collect();
        format!(
            "the revision {id:?} is not known; choose from {}",
            known.join(", ")
        )
    })
}

/// The revisions of schema folders, in the order of the folders and of their lists.
///
/// # Errors
/// When a file is missing or a schema cannot be used.
pub fn represent(folders: &[PathBuf]) -> anyhow::Result<Vec<Ir>> {
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
            revisions.push(codegen::represent(&revision, schema.as_bytes(), tables)?);
        }
    }
    Ok(revisions)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_revision_is_answered_with_the_known_ones() {
        let known = Ir {
            revision: "2025-06-18".into(),
            definitions: Vec::new(),
            methods: Vec::new(),
        };
        let error = find(&[known], "2025-06-19").expect_err("it is not known");
        assert_eq!(
            error.to_string(),
            "the revision \"2025-06-19\" is not known; choose from 2025-06-18"
        );
    }
}
