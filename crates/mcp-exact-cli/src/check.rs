//! `mcp-exact check`: a verdict for each file, for people or as JSON.
//!
//! Verdicts go to standard output; with `--print` alone they make room there for what the types encode and go to
//! standard error. A file that cannot be read does not keep the others from being checked.

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use mcp_exact_wire::Definition;
use serde::Serialize;

use crate::message::{self, Direction};
use crate::registry::{Entry, Registry};
use crate::verdict::{Finding, Verdict};
use crate::{Outcome, report};

/// The arguments of `mcp-exact check`.
#[derive(Args)]
#[command(after_help = "\
Exit code: 0 all valid, 1 something is invalid, 2 wrong usage or a file that cannot be read.

With --jsonl, each line of standard input is an object {\"revision\", \"type\", \"json\"}: `json` is the document as a \
string, and without `type` (or with null) it is a message, for which `direction` may be given. Each line gets one line \
as its answer: {\"accepted\", \"violations\": [{\"pointer\", \"kind\", \"message\"}], \"encoded\", \"count\"}, or \
{\"error\", \"line\"} if it is not such an object. Verdicts are in the answers; the exit code is 0.")]
pub struct Arguments {
    /// The revision to check against, such as 2025-06-18.
    #[arg(long, value_name = "R", required_unless_present = "jsonl")]
    revision: Option<String>,
    /// The definition that the documents are; without it they are JSON-RPC messages.
    #[arg(long = "type", value_name = "T", conflicts_with = "direction")]
    definition: Option<String>,
    /// Who sends the messages; without it only their envelopes are checked.
    #[arg(long, value_enum)]
    direction: Option<Direction>,
    /// Write what the type encodes to standard output; verdicts go to standard error then.
    #[arg(long)]
    print: bool,
    /// Print one JSON object for each file; `encoded` is a member of it with --print.
    #[arg(long)]
    json: bool,
    /// Check lines from standard input, each with a revision, a type and a document.
    #[arg(long, conflicts_with_all = ["revision", "definition", "direction", "print", "json", "files"])]
    pub jsonl: bool,
    /// The files to check; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present = "jsonl")]
    files: Vec<PathBuf>,
}

/// What the documents are.
#[derive(Clone, Copy)]
enum Subject {
    Definition(&'static Definition),
    Message(Option<Direction>),
}

/// What `--json` prints for a file.
#[derive(Serialize)]
struct Line<'a> {
    file: &'a str,
    accepted: bool,
    checked: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    count: usize,
    violations: &'a [Finding],
    #[serde(skip_serializing_if = "Option::is_none")]
    encoded: Option<Option<&'a str>>,
}

/// What `--json` prints for a file that cannot be read.
#[derive(Serialize)]
struct ErrorLine<'a> {
    file: &'a str,
    error: &'a str,
}

/// Checks the files.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let registry = Registry::new();
    let id = arguments.revision.as_deref().unwrap_or_default();
    let entry = registry.revision(id)?;
    let subject = match &arguments.definition {
        Some(name) => Subject::Definition(entry.definition(name)?),
        None => Subject::Message(arguments.direction),
    };
    read_once(&arguments.files)?;
    let mut outcome = Outcome::Valid;
    for file in &arguments.files {
        outcome = outcome.max(check_file(arguments, entry, subject, file)?);
    }
    Ok(outcome)
}

/// Refuses a list that names standard input twice.
pub fn read_once(files: &[PathBuf]) -> anyhow::Result<()> {
    if files.iter().filter(|file| is_stdin(file)).count() > 1 {
        bail!("standard input can be read only once; give `-` once");
    }
    Ok(())
}

fn is_stdin(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// The bytes of a file or of standard input.
pub fn read(file: &Path) -> io::Result<Vec<u8>> {
    if is_stdin(file) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(bytes)
    } else {
        fs::read(file)
    }
}

fn check_file(
    arguments: &Arguments,
    entry: &Entry,
    subject: Subject,
    file: &Path,
) -> io::Result<Outcome> {
    let name = file.to_string_lossy();
    let bytes = match read(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            print_unreadable(arguments, &name, &error)?;
            return Ok(Outcome::Unreadable);
        }
    };
    let verdict = match subject {
        Subject::Definition(definition) => Verdict::of(definition, &bytes),
        Subject::Message(direction) => message::check(entry, direction, &bytes),
    };
    if arguments.json {
        print_json(arguments, &name, &verdict)?;
    } else {
        print_verdict(arguments, &name, &verdict, &bytes)?;
    }
    Ok(if verdict.accepted() {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

fn print_unreadable(arguments: &Arguments, name: &str, error: &io::Error) -> io::Result<()> {
    let words = format!("cannot read {name}: {error}");
    if arguments.json {
        let error = &words;
        print_line(&ErrorLine { file: name, error })
    } else {
        report(&words);
        Ok(())
    }
}

fn print_json(arguments: &Arguments, name: &str, verdict: &Verdict) -> io::Result<()> {
    print_line(&Line {
        file: name,
        accepted: verdict.accepted(),
        checked: verdict.scope.name(),
        note: verdict.scope.note(),
        count: verdict.count,
        violations: &verdict.findings,
        encoded: arguments.print.then_some(verdict.encoded.as_deref()),
    })
}

/// Prints one line of JSON.
pub fn print_line(line: &impl Serialize) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    io::stdout().lock().write_all(&text)
}

fn print_verdict(
    arguments: &Arguments,
    name: &str,
    verdict: &Verdict,
    bytes: &[u8],
) -> io::Result<()> {
    let text = worded(name, verdict, bytes);
    if !arguments.print {
        return io::stdout().lock().write_all(text.as_bytes());
    }
    io::stderr().lock().write_all(text.as_bytes())?;
    match &verdict.encoded {
        Some(encoded) => writeln!(io::stdout().lock(), "{encoded}"),
        None => Ok(()),
    }
}

/// A verdict in words, one line for the file and one for each finding.
fn worded(name: &str, verdict: &Verdict, bytes: &[u8]) -> String {
    let accepted = if verdict.accepted() {
        "valid"
    } else {
        "invalid"
    };
    let mut text = format!("{name}: {accepted}");
    if let Some(note) = verdict.scope.note() {
        text.push_str("; ");
        text.push_str(note);
    }
    text.push('\n');
    for finding in &verdict.findings {
        let pointer = match finding.pointer.as_str() {
            "" => "(whole document)",
            pointer => pointer,
        };
        let place = finding.offset.map(|offset| place(bytes, offset));
        text.push_str(&format!(
            "  {pointer}: {} ({}{})\n",
            finding.message,
            finding.kind,
            place.unwrap_or_default()
        ));
    }
    if verdict.count > verdict.findings.len() {
        let more = verdict.count - verdict.findings.len();
        text.push_str(&format!("  and {more} more\n"));
    }
    text
}

/// A byte offset as an editor shows it.
pub fn place(bytes: &[u8], offset: usize) -> String {
    let before = &bytes[..offset.min(bytes.len())];
    let line = before.iter().filter(|&&byte| byte == b'\n').count() + 1;
    let start = before.iter().rposition(|&byte| byte == b'\n');
    let column = String::from_utf8_lossy(&before[start.map_or(0, |at| at + 1)..])
        .chars()
        .count()
        + 1;
    format!(", line {line} column {column}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_counts_lines_and_characters_from_one() {
        assert_eq!(place(b"{}", 0), ", line 1 column 1");
        assert_eq!(place("{\n \"é\": x".as_bytes(), 8), ", line 2 column 6");
        assert_eq!(place(b"{", 9), ", line 1 column 2");
    }
}
