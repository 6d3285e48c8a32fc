//! `mcp-exact check --jsonl`: one result per line of standard input, so that one process serves a complete test run.
//!
//! `mcp-exact convert --jsonl` uses the same line reader. Results are in the order of the lines and are flushed before
//! the reader waits for the next line. An invalid line yields an error with its line number, and the next line is
//! processed.

use std::borrow::Cow;
use std::io::{self, BufRead, BufReader, BufWriter, Write};

use anyhow::Context;
use mcp_exact_model::Wanted;
use serde::{Deserialize, Serialize};

use crate::Outcome;
use crate::message::{self, Direction, MessageContext, Part};
use crate::registry::Registry;
use crate::terminal::stdout;
use crate::text::escape_json;
use crate::verdict::{Finding, Scope, Verdict};

/// Size of the input buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 16;
/// Form of an input line, for error messages.
const EXPECTED_OBJECT: &str = r#"{"revision", "type", "json"}"#;

/// Input line: a document, and the definition or the message to check it as.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct InputLine<'a> {
    /// Revision against which the document is checked.
    #[serde(borrow, alias = "from")]
    revision: Cow<'a, str>,
    /// Name of the definition of which the document is a value; `None` for a message.
    #[serde(borrow, rename = "type", default)]
    definition: Option<Cow<'a, str>>,
    /// Sender of the message, if specified.
    #[serde(default)]
    direction: Option<Direction>,
    /// Method of the part, or of the request that the document answers, if it is a response.
    #[serde(borrow, default)]
    method: Option<Cow<'a, str>>,
    /// Part of a message that the document is; `None` for a complete message.
    #[serde(default, alias = "kind")]
    part: Option<Part>,
    /// Text of the document.
    #[serde(borrow)]
    json: Cow<'a, str>,
}

/// Output line: the verdict on a document.
#[derive(Serialize)]
struct OutputLine<'a> {
    /// True if the document has no violations.
    accepted: bool,
    /// First violations.
    violations: &'a [Finding],
    /// Encoded value; `None` if the document does not decode.
    encoded: Option<&'a str>,
    /// Number of all violations, including those that `violations` omits.
    count: usize,
    /// Name of the scope that was checked: `message` or `envelope`; absent for a definition.
    #[serde(skip_serializing_if = "Option::is_none")]
    checked: Option<&'static str>,
}

/// Output line for an invalid input line.
#[derive(Serialize)]
struct ErrorLine<'a> {
    /// Error message.
    error: &'a str,
    /// Number of the input line, from 1.
    line: usize,
}

/// Checks the lines of standard input.
pub fn run() -> anyhow::Result<Outcome> {
    let registry = Registry::new();
    answer_lines(|number, line, out| answer_line(&registry, number, line, out))
}

/// Processes the lines of standard input; `answer` writes the output line for an input line and its number.
pub fn answer_lines(
    answer: impl FnMut(usize, &[u8], &mut Vec<u8>) -> serde_json::Result<()>,
) -> anyhow::Result<Outcome> {
    let input = BufReader::with_capacity(BUFFER_BYTES, io::stdin().lock());
    let output = BufWriter::with_capacity(BUFFER_BYTES, stdout().lock().document());
    answer_all(input, output, answer)?;
    Ok(Outcome::Valid)
}

/// Processes the lines of `input`; flushes the output before waiting for further input.
fn answer_all<R: io::Read>(
    mut input: BufReader<R>,
    mut output: impl Write,
    mut answer: impl FnMut(usize, &[u8], &mut Vec<u8>) -> serde_json::Result<()>,
) -> anyhow::Result<()> {
    let mut line = Vec::new();
    let mut text = Vec::new();
    for number in 1.. {
        // A peer that sends a line and waits receives its result.
        if !input.buffer().contains(&b'\n') {
            output.flush()?;
        }
        line.clear();
        let length = input
            .read_until(b'\n', &mut line)
            .context("cannot read standard input")?;
        if length == 0 {
            break;
        }
        text.clear();
        answer(number, line.trim_ascii(), &mut text)?;
        text.push(b'\n');
        output.write_all(escape_json(&String::from_utf8_lossy(&text)).as_bytes())?;
    }
    output.flush()?;
    Ok(())
}

/// Checks the document of an input line and writes the output line.
fn answer_line(
    registry: &Registry,
    number: usize,
    line: &[u8],
    out: &mut Vec<u8>,
) -> serde_json::Result<()> {
    match check_line(registry, line) {
        Ok(verdict) => serde_json::to_writer(
            out,
            &OutputLine {
                accepted: verdict.is_accepted(),
                violations: &verdict.findings,
                encoded: verdict.encoded.as_deref(),
                count: verdict.count,
                checked: (verdict.scope != Scope::Definition).then(|| verdict.scope.name()),
            },
        ),
        Err(problem) => serde_json::to_writer(
            out,
            &ErrorLine {
                error: &format!("line {number}: {problem}"),
                line: number,
            },
        ),
    }
}

/// Checks the document of an input line; returns an error if the line is invalid.
fn check_line(registry: &Registry, line: &[u8]) -> Result<Verdict, String> {
    let question: InputLine = parse_input(line, EXPECTED_OBJECT)?;
    let entry = registry
        .revision(&question.revision)
        .map_err(|unknown| unknown.problem)?;
    let bytes = question.json.as_bytes();
    match (&question.definition, question.direction) {
        (Some(_), Some(_)) => Err("`direction` is for messages; leave it or `type` out".to_owned()),
        (Some(_), None) if question.part.is_some() => {
            Err("`part` is for messages; leave it or `type` out".to_owned())
        }
        (Some(name), None) => {
            entry.check_name(name).map_err(|unknown| unknown.problem)?;
            let wanted = Wanted {
                encoded: true,
                ..Wanted::default()
            };
            Ok(Verdict::of(entry, name, bytes, wanted))
        }
        (None, direction) if question.part.is_some() => {
            let (Some(part), Some(method)) = (question.part, question.method.as_deref()) else {
                return Err(
                    "a part of a message has a type by its method; say which with `method`"
                        .to_owned(),
                );
            };
            message::check_method(entry, method).map_err(|unknown| unknown.problem)?;
            Ok(message::check_part(
                entry,
                part,
                method,
                direction,
                bytes,
                (false, true),
            ))
        }
        (None, direction) => {
            let known = MessageContext {
                direction,
                answered: question.method.as_deref(),
                wants_unknown: false,
                wants_encoded: true,
            };
            Ok(message::check(entry, known, bytes))
        }
    }
}

/// Parses an input line as a JSON object of type `T`; `shape` is the form of the object for error messages.
pub fn parse_input<'a, T: Deserialize<'a>>(line: &'a [u8], shape: &str) -> Result<T, String> {
    let line = decode_utf8(line)?;
    let wrong = |what: &str| format!("not an object {shape}: {what}");
    // Serde accepts an array for a struct, too.
    if line.starts_with('[') {
        return Err(wrong("it is an array"));
    }
    serde_json::from_str(line).map_err(|error| wrong(&format_json_error(&error)))
}

/// Decodes bytes as UTF-8; the error states the position of the first invalid byte.
pub fn decode_utf8(bytes: &[u8]) -> Result<&str, String> {
    std::str::from_utf8(bytes)
        .map_err(|error| format!("not UTF-8 after byte {}", error.valid_up_to()))
}

/// Formats an error of serde_json with the column but without the line number, because the text is always one line.
fn format_json_error(error: &serde_json::Error) -> String {
    error
        .to_string()
        .replace(" at line 1 column ", " at column ")
}
