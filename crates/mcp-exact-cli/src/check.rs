//! `mcp-exact check`: prints a verdict for each file, as text or JSON.
//!
//! Verdicts are written to standard output; with `--print` they are written to standard error, and the encoded
//! values to standard output. A file that cannot be read does not prevent the check of the others.

mod log;

use std::fs;
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

use anyhow::bail;
use clap::Args;
use mcp_exact_model::Wanted;
use serde::Serialize;

use crate::message::{self, Direction, MessageContext, Part};
use crate::output::{Painter, Style, is_standard_stream};
use crate::recording;
use crate::registry::{Entry, Registry};
use crate::subject::SubjectOptions;
use crate::terminal::{print_to_stderr, stdout};
use crate::text::{Text, Untrusted, text};
use crate::verdict::{Finding, Verdict};
use crate::{Outcome, print_error};

pub use log::format_verdict as log_words;

/// The arguments of `mcp-exact check`.
#[derive(Args)]
#[command(after_help = "\
What the documents are: values of a definition with --type; with --part and --method the params, the result or the error \
of a message; otherwise whole JSON-RPC messages, for which --direction says who sends them and --method what the responses \
among them answer. A message is checked as far as that tells its type.

A recording of --log has a message on each line, of both sides, in their order: bare messages, or the lines that \
`mcp-exact proxy --record` writes. Responses are checked as what their requests ask for, and the rules of the protocol are \
checked that one message alone does not show. Without --revision, what client and server negotiate counts.

Exit code: 0 all valid, 1 something is invalid (with --unknown also: not defined), 2 wrong usage or a file that cannot be \
read.

With --json, each finding has `pointer`, `kind` and `message`, and `line` and `column` of its place in the file, counted from 1, columns \
in characters.

With --jsonl, each line of standard input is an object {\"revision\", \"type\", \"json\"}: `json` is the document as a \
string; `direction`, `method` and `part` mean what the options mean. Each line gets one line as its answer: {\"accepted\", \"violations\": [{\"pointer\", \"kind\", \"message\"}], \"encoded\", \"count\"}, or \
{\"error\", \"line\"} if it is not such an object. Verdicts are in the answers; the exit code is 0.")]
pub struct Arguments {
    #[command(flatten)]
    subject: SubjectOptions,
    /// List members that the revision does not define, such as misspelt ones; they are allowed, and exit with code 1.
    #[arg(long)]
    unknown: bool,
    /// Check recordings of conversations; `-` is standard input.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["definition", "direction", "method", "part", "print", "files"])]
    log: Vec<PathBuf>,
    /// Write the encoded values to standard output, and verdicts to standard error.
    #[arg(long)]
    print: bool,
    /// Print one JSON object for each file; `encoded` is a member of it with --print.
    #[arg(long)]
    json: bool,
    /// Check lines from standard input, each with a revision, a type and a document.
    #[arg(long, conflicts_with_all = ["revision", "definition", "direction", "method", "part", "unknown", "log", "print", "json", "files"])]
    pub jsonl: bool,
    /// The files to check; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present_any = ["jsonl", "log"])]
    files: Vec<PathBuf>,
}

/// Kind of the documents to check, which the options determine.
#[derive(Clone, Copy)]
enum Subject<'a> {
    /// Values of a definition.
    Definition(&'a str),
    /// JSON-RPC messages.
    Message(MessageContext<'a>),
    /// Parts of messages with this method and sender.
    Part(Part, &'a str, Option<Direction>),
}

/// Output line of `--json` for a file.
#[derive(Serialize)]
struct Line<'a> {
    /// Name of the file.
    file: &'a str,
    /// True if the document has no violations.
    accepted: bool,
    /// Name of the scope that was checked: `definition`, `message` or `envelope`.
    checked: &'static str,
    /// Reason why only the envelope was checked, with a hint.
    #[serde(skip_serializing_if = "Option::is_none")]
    note: Option<&'static str>,
    /// Number of all violations, including those that `violations` omits.
    count: usize,
    /// First violations.
    violations: Vec<FindingLine<'a>>,
    /// First members that the revision does not define; present with `--unknown`.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown: Option<Vec<FindingLine<'a>>>,
    /// Number of all of them; present if `unknown` omits some.
    #[serde(skip_serializing_if = "Option::is_none")]
    unknown_count: Option<usize>,
    /// Encoded value, or null if the document does not decode; present with `--print`.
    #[serde(skip_serializing_if = "Option::is_none")]
    encoded: Option<Option<&'a str>>,
}

/// A finding with its place in the file.
#[derive(Serialize)]
struct FindingLine<'a> {
    #[serde(flatten)]
    finding: &'a Finding,
    /// Line of the place, from 1; absent for a finding without a place.
    #[serde(skip_serializing_if = "Option::is_none")]
    line: Option<usize>,
    /// Column of the place, from 1, in characters.
    #[serde(skip_serializing_if = "Option::is_none")]
    column: Option<usize>,
}

/// Output line of `--json` for a file that cannot be read.
#[derive(Serialize)]
struct ErrorLine<'a> {
    /// Name of the file.
    file: &'a str,
    /// Error message.
    error: &'a str,
}

/// Checks the files, or with `--log` the recordings.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let registry = Registry::new();
    if !arguments.log.is_empty() {
        return log::run(arguments);
    }
    let Some(id) = &arguments.subject.revision else {
        refuse_recordings(&arguments.files)?;
        bail!("which revision? say it with --revision, such as --revision 2025-06-18");
    };
    let entry = registry.revision(id)?;
    let given = &arguments.subject;
    let method = given.method.as_deref();
    if let Some(method) = method {
        message::check_method(entry, method)?;
    }
    let subject = match (&given.definition, given.part, method) {
        (Some(name), ..) => {
            entry.check_name(name)?;
            Subject::Definition(name)
        }
        (None, Some(part), Some(method)) => Subject::Part(part, method, given.direction),
        (None, ..) => Subject::Message(MessageContext {
            direction: given.direction,
            answered: method,
            wants_unknown: arguments.unknown,
            wants_encoded: arguments.print,
        }),
    };
    check_standard_input_once(&arguments.files)?;
    let mut outcome = Outcome::Valid;
    for file in &arguments.files {
        outcome = outcome.max(check_file(arguments, entry, subject, file)?);
    }
    Ok(outcome)
}

/// Returns an error if the list contains `-` (standard input) more than once.
pub fn check_standard_input_once(files: &[PathBuf]) -> anyhow::Result<()> {
    if files.iter().filter(|file| is_standard_stream(file)).count() > 1 {
        bail!("standard input can be read only once; give `-` once");
    }
    Ok(())
}

/// Reads a file or standard input.
pub fn read_file(file: &Path) -> io::Result<Vec<u8>> {
    if is_standard_stream(file) {
        let mut bytes = Vec::new();
        io::stdin().lock().read_to_end(&mut bytes)?;
        Ok(bytes)
    } else {
        fs::read(file)
    }
}

/// Checks a file and prints its verdict.
fn check_file(
    arguments: &Arguments,
    entry: &Entry,
    subject: Subject<'_>,
    file: &Path,
) -> io::Result<Outcome> {
    let name = file.to_string_lossy();
    let bytes = match read_file(file) {
        Ok(bytes) => bytes,
        Err(error) => {
            let words = format!("cannot read {name}: {error}");
            print_failure(arguments, &name, &words)?;
            return Ok(Outcome::Unreadable);
        }
    };
    if let (Subject::Message(_), Some(advice)) = (subject, recording::advise(&name, &bytes)) {
        print_failure(arguments, &name, &advice)?;
        return Ok(Outcome::Unreadable);
    }
    let verdict = match subject {
        Subject::Definition(name) => {
            let wanted = Wanted {
                unknown_outside: arguments.unknown.then_some(&[]),
                encoded: arguments.print,
            };
            Verdict::of(entry, name, &bytes, wanted)
        }
        Subject::Message(known) => message::check(entry, known, &bytes),
        Subject::Part(part, method, direction) => {
            let wants = (arguments.unknown, arguments.print);
            message::check_part(entry, part, method, direction, &bytes, wants)
        }
    };
    if arguments.json {
        print_json(arguments, &name, &verdict, &bytes)?;
    } else {
        print_verdict(arguments, &name, &verdict, &bytes)?;
    }
    Ok(if verdict.is_accepted() && verdict.unknown.is_empty() {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Returns an error for the first file that is a recording; standard input is not read.
pub fn refuse_recordings(files: &[PathBuf]) -> anyhow::Result<()> {
    for file in files.iter().filter(|file| !is_standard_stream(file)) {
        let advice = fs::read(file)
            .ok()
            .and_then(|bytes| recording::advise(&file.to_string_lossy(), &bytes));
        if let Some(advice) = advice {
            bail!(advice);
        }
    }
    Ok(())
}

/// Prints the error for a file that cannot be read as a document, as text or JSON.
fn print_failure(arguments: &Arguments, name: &str, error: &str) -> io::Result<()> {
    if arguments.json {
        print_line(&ErrorLine { file: name, error })
    } else {
        print_error(&text!("{}", Untrusted(error)));
        Ok(())
    }
}

/// Prints a verdict as one JSON object.
fn print_json(
    arguments: &Arguments,
    name: &str,
    verdict: &Verdict,
    bytes: &[u8],
) -> io::Result<()> {
    let is_cut = verdict.unknown.len() < verdict.unknown_count;
    let mut places = Places::new(bytes);
    print_line(&Line {
        file: name,
        accepted: verdict.is_accepted(),
        checked: verdict.scope.name(),
        note: verdict.scope.note(),
        count: verdict.count,
        violations: places.locate(&verdict.findings),
        unknown: arguments.unknown.then(|| places.locate(&verdict.unknown)),
        unknown_count: is_cut.then_some(verdict.unknown_count),
        encoded: arguments.print.then_some(verdict.encoded.as_deref()),
    })
}

/// Prints one line of JSON.
pub fn print_line(line: &impl Serialize) -> io::Result<()> {
    stdout().json(line)
}

/// Prints a verdict as text; with `--print`, also prints the encoded value.
fn print_verdict(
    arguments: &Arguments,
    name: &str,
    verdict: &Verdict,
    bytes: &[u8],
) -> io::Result<()> {
    let painter = if arguments.print {
        Painter::stderr()
    } else {
        Painter::stdout()
    };
    let text = format_verdict(name, verdict, bytes, painter);
    if !arguments.print {
        return stdout().line(&text);
    }
    print_to_stderr(&text);
    match &verdict.encoded {
        Some(encoded) => writeln!(stdout().lock().document(), "{encoded}"),
        None => Ok(()),
    }
}

/// Formats a verdict as lines: one for the file and one for each finding.
fn format_verdict(name: &str, verdict: &Verdict, bytes: &[u8], painter: Painter) -> Text {
    let unknown = &*verdict.unknown;
    let accepted = match (verdict.is_accepted(), unknown) {
        (true, []) => painter.paint(Style::Green, "valid"),
        (true, _) => painter.paint(Style::Yellow, "valid, with unknown members"),
        (false, _) => painter.paint(Style::Red, "invalid"),
    };
    let mut text = text!("{}: {}", Untrusted(name), accepted);
    if let Some(note) = verdict.scope.note() {
        text.push(&text!("; {}", note));
    }
    let mut places = Places::new(bytes);
    for finding in verdict.findings.iter().chain(unknown) {
        let pointer = match finding.pointer.as_str() {
            "" => "(whole document)",
            pointer => pointer,
        };
        let place = finding.offset.map(|offset| places.format(offset));
        text.push(&text!(
            "\n  {}: {} ({}{})",
            Untrusted(pointer),
            Untrusted(&finding.message),
            finding.kind,
            Untrusted(&place.unwrap_or_default())
        ));
    }
    let more = verdict.count - verdict.findings.len() + verdict.unknown_count - unknown.len();
    if more > 0 {
        text.push(&text!("\n  and {} more", more));
    }
    text
}

/// Lines and columns of byte offsets in a text, which is read once for offsets in ascending order.
pub struct Places<'a> {
    /// The text, which is UTF-8 before each offset.
    bytes: &'a [u8],
    /// Offset up to which the text is counted.
    at: usize,
    /// Line of this offset, from 1.
    line: usize,
    /// Column of this offset, from 1, in characters.
    column: usize,
}

impl<'a> Places<'a> {
    /// Creates the places of a text.
    pub fn new(bytes: &'a [u8]) -> Self {
        Self {
            bytes,
            at: 0,
            line: 1,
            column: 1,
        }
    }

    /// Formats a byte offset as `, line L column C`, for the end of a message.
    pub fn format(&mut self, offset: usize) -> String {
        let (line, column) = self.find(offset);
        format!(", line {line} column {column}")
    }

    /// Returns the findings with their places.
    fn locate<'f>(&mut self, findings: &'f [Finding]) -> Vec<FindingLine<'f>> {
        let locate = |finding: &'f Finding| {
            let (line, column) = finding.offset.map(|offset| self.find(offset)).unzip();
            FindingLine {
                finding,
                line,
                column,
            }
        };
        findings.iter().map(locate).collect()
    }

    /// Returns the line and the column of a byte offset.
    fn find(&mut self, offset: usize) -> (usize, usize) {
        let offset = offset.min(self.bytes.len());
        if offset < self.at {
            *self = Self::new(self.bytes);
        }
        for byte in &self.bytes[self.at..offset] {
            match byte {
                b'\n' => (self.line, self.column) = (self.line + 1, 1),
                // The character was counted by its first byte.
                0x80..=0xbf => {}
                _ => self.column += 1,
            }
        }
        self.at = offset;
        (self.line, self.column)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Lines and columns are counted from 1; columns are counted in characters.
    #[test]
    fn locations_count_from_one() {
        let mut places = Places::new("{\n \"é\": x".as_bytes());
        let found = [0, 8, 99, 1].map(|offset| places.format(offset));
        let (last, first) = (", line 2 column 8", ", line 1 column 2");
        let start = ", line 1 column 1";
        assert_eq!(found, [start, ", line 2 column 6", last, first]);
    }
}
