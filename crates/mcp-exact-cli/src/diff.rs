//! `mcp-exact diff`: what changed between two revisions, or one page over several of them.
//!
//! Takes what the revisions say from the data that is compiled in, and lets the model crate compare and render it. Reads
//! no schema.

use std::fs;
use std::io::{self, IsTerminal, Write};
use std::path::PathBuf;

use anyhow::Context;
use clap::{ArgGroup, Args};
use mcp_exact_model::{Ir, diff, diff_with_descriptions, render};

use crate::Outcome;
use crate::registry::Registry;
use crate::revisions::COMPILED;

/// The arguments of `mcp-exact diff`.
#[derive(Args)]
#[command(
    group = ArgGroup::new("form").args(["markdown", "json", "html"]),
    after_help = "\
Each change says what it means for a program: additive, or breaking to read or to write.

Exit code: 0 the differences are printed or written, 2 wrong usage or a file that cannot be written."
)]
pub struct Arguments {
    /// The older revision, such as 2025-03-26.
    #[arg(value_name = "FROM", required_unless_present = "html", requires = "to")]
    from: Option<String>,
    /// The newer revision.
    #[arg(value_name = "TO", required_unless_present = "html")]
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
    /// List the descriptions that were worded anew, too.
    #[arg(long)]
    descriptions: bool,
}

/// Prints the differences, or writes the page.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let ends = match (&arguments.from, &arguments.to) {
        (Some(from), Some(to)) => Some((position(from)?, position(to)?)),
        _ => None,
    };
    match (&arguments.html, ends) {
        (Some(file), ends) => write_page(file, ends)?,
        (None, Some((from, to))) => print(arguments, &model(from)?, &model(to)?)?,
        // The arguments ask for two revisions where there is no page.
        (None, None) => {}
    }
    Ok(Outcome::Valid)
}

/// The place of a revision among those that are compiled in.
fn position(id: &str) -> anyhow::Result<usize> {
    let known = Registry::new().revision(id)?.revision.spec;
    COMPILED
        .iter()
        .position(|compiled| compiled.spec == known)
        .with_context(|| format!("revision {known} is not in the table; build the program again"))
}

fn model(at: usize) -> anyhow::Result<Ir> {
    COMPILED[at].model()
}

fn write_page(file: &PathBuf, ends: Option<(usize, usize)>) -> anyhow::Result<()> {
    let (first, last) = match ends {
        Some((from, to)) => (from.min(to), from.max(to) + 1),
        None => (0, COMPILED.len()),
    };
    let revisions: Vec<Ir> = (first..last).map(model).collect::<anyhow::Result<_>>()?;
    fs::write(file, render::html(&revisions))
        .with_context(|| format!("cannot write {}", file.display()))?;
    let mut out = io::stdout().lock();
    let count = revisions.len();
    writeln!(out, "{}: {count} revisions", file.display())?;
    Ok(())
}

fn print(arguments: &Arguments, from: &Ir, to: &Ir) -> anyhow::Result<()> {
    let differences = if arguments.descriptions {
        diff_with_descriptions(from, to)
    } else {
        diff(from, to)
    };
    let mut out = io::stdout().lock();
    let text = if arguments.json {
        render::json(&differences)? + "\n"
    } else if arguments.markdown {
        render::markdown(&differences)
    } else {
        render::text(&differences, out.is_terminal())
    };
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(())
}
