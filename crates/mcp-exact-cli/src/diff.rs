//! `mcp-exact diff`: lists the changes between two revisions, or writes one page with several revisions.
//!
//! The model crate compares and renders the embedded representations; no schema is read.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use anyhow::Context;
use clap::{ArgGroup, Args};
use mcp_exact_model::render::PageOptions;
use mcp_exact_model::{Ir, diff, diff_with_descriptions, render};

use crate::registry::Registry;
use crate::revisions::COMPILED;
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, text};
use crate::{Outcome, output};

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
    /// Write one page over the two revisions and those between them, or over all of them; `-` is standard output.
    #[arg(long, value_name = "FILE", conflicts_with = "descriptions")]
    html: Option<PathBuf>,
    /// Date on the page. Without it, the date of SOURCE_DATE_EPOCH if that is set, else today (UTC).
    #[arg(long, value_name = "DAY", requires = "html")]
    date: Option<String>,
    /// List changed descriptions, too.
    #[arg(long)]
    descriptions: bool,
}

/// Prints the differences, or writes the page.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let ends = match (&arguments.from, &arguments.to) {
        (Some(from), Some(to)) => Some((revision_index(from)?, revision_index(to)?)),
        _ => None,
    };
    match (&arguments.html, ends) {
        (Some(file), ends) => {
            let date = arguments.date.clone().unwrap_or_else(today);
            write_page(file, &date, ends)?;
        }
        (None, Some((from, to))) => {
            print_differences(arguments, &load_model(from)?, &load_model(to)?)?
        }
        // Without `--html`, the arguments require two revisions.
        (None, None) => {}
    }
    Ok(Outcome::Valid)
}

/// Returns the index of a revision in the list of compiled revisions.
fn revision_index(id: &str) -> anyhow::Result<usize> {
    let known = Registry::new().revision(id)?.revision.spec;
    COMPILED
        .iter()
        .position(|compiled| compiled.spec == known)
        .with_context(|| format!("revision {known} is not in the table; build the program again"))
}

/// Loads the representation of the compiled revision with the index `at`.
fn load_model(at: usize) -> anyhow::Result<Ir> {
    COMPILED[at].ir()
}

/// Writes an HTML page with the revisions between two indexes, inclusive, or with all revisions.
fn write_page(file: &Path, date: &str, ends: Option<(usize, usize)>) -> anyhow::Result<()> {
    let (first, last) = match ends {
        Some((from, to)) => (from.min(to), from.max(to) + 1),
        None => (0, COMPILED.len()),
    };
    let revisions: Vec<Ir> = (first..last)
        .map(load_model)
        .collect::<anyhow::Result<_>>()?;
    let sources = COMPILED[first..last]
        .iter()
        .map(|revision| Ok((revision.id().to_owned(), revision.source()?)));
    let options = PageOptions {
        generator: concat!("mcp-exact ", env!("CARGO_PKG_VERSION")).to_owned(),
        date: date.to_owned(),
        sources: sources.collect::<anyhow::Result<_>>()?,
    };
    output::write(file, render::html(&revisions, &options)?.as_bytes())?;
    // If the page is written to standard output, no message is printed there.
    if !output::is_standard_stream(file) {
        let file = file.display().to_string();
        let count = revisions.len();
        stdout().line(&text!("{}: {} revisions", Untrusted(&file), count))?;
    }
    Ok(())
}

/// Prints the differences of two revisions in the requested format.
fn print_differences(arguments: &Arguments, from: &Ir, to: &Ir) -> anyhow::Result<()> {
    let differences = if arguments.descriptions {
        diff_with_descriptions(from, to)
    } else {
        diff(from, to)
    };
    let mut out = stdout().lock();
    let text = if arguments.json {
        render::json(&differences)? + "\n"
    } else if arguments.markdown {
        render::markdown(&differences)
    } else {
        render::text(&differences, output::wants_colour(out.is_terminal()))
    };
    Ok(out.text(&Text::of_program(text))?)
}

/// Returns the current date in UTC, or the date of SOURCE_DATE_EPOCH if that variable is set, for reproducible builds.
fn today() -> String {
    let epoch = std::env::var("SOURCE_DATE_EPOCH").ok();
    let epoch = epoch.and_then(|seconds| seconds.parse().ok());
    let now = match epoch {
        Some(seconds) => SystemTime::UNIX_EPOCH.checked_add(Duration::from_secs(seconds)),
        None => Some(SystemTime::now()),
    };
    now.map_or_else(String::new, format_date)
}

/// Formats the date of a time as `2026-11-22`; returns an empty string after the year 9999.
fn format_date(time: SystemTime) -> String {
    let mut text = String::new();
    let written = write!(text, "{}", humantime::format_rfc3339_seconds(time));
    text.truncate(if written.is_ok() {
        "2026-11-22".len()
    } else {
        0
    });
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Dates are correct in leap years and at the change of a year; dates after the year 9999 are empty.
    #[test]
    fn dates_follow_the_calendar() {
        for (number, expected) in [
            (0, "1970-01-01"),
            (11_016, "2000-02-29"),
            (20_779, "2026-11-22"),
            (20_819, "2027-01-01"),
            (4_000_000, ""),
        ] {
            let time = SystemTime::UNIX_EPOCH + Duration::from_secs(number * 86_400);
            assert_eq!(format_date(time), expected);
        }
    }
}
