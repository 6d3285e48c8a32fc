//! `mcp-exact convert`: converts files to another revision, and reports the changes.
//!
//! Converted files are written to standard output, losses to standard error; `--json` writes one object per file, with
//! the converted document and the losses. A file that is refused or cannot be read does not prevent the conversion of
//! the others.

mod job;
mod jsonl;
mod message;
mod names;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::anyhow;
use clap::Args;
use mcp_exact_convert::Loss;
use mcp_exact_wire::{Decode, JsonObject, RequestId, from_str};
use serde::Serialize;

use crate::check::{check_standard_input_once, print_line, read_file};
use crate::jsonl::decode_utf8;
use crate::message::Direction;
use crate::terminal::{stderr, stdout};
use crate::{Outcome, print_error};
use job::{Answer, InvalidOptions, Job, JobOptions, Kind};

/// The arguments of `mcp-exact convert`.
#[derive(Args)]
#[command(after_help = "\
What the documents are: values of a definition with --type; with --kind and --method the params of a request or a \
notification, a result or an error object; otherwise whole JSON-RPC messages, for which --method says what the \
responses among them answer. --direction is only needed where both sides send a method and the revisions differ in it.

Exit code: 0 all converted, 1 something was refused, 2 wrong usage or a file that cannot be read.

With --jsonl, each line of standard input is an object {\"from\", \"to\", \"type\", \"json\"}: `json` is the document as a \
string; `method`, `direction`, `kind`, `strict`, `keep_newer`, `id`, `meta` and `uri` mean what the flags mean, `id` and \
`meta` being JSON. Each line gets one line as its answer: {\"json\", \"losses\": [{\"pointer\", \"kind\", \"reason\"}], \
\"error\"}, where `json` is a string, or null with an `error`; a `note` is added when neither revision knows the method. The \
exit code is 0.")]
pub struct Arguments {
    /// The revision of the documents, such as 2025-06-18.
    #[arg(long, value_name = "R", required_unless_present = "jsonl")]
    from: Option<String>,
    /// The revision to convert to.
    #[arg(long, value_name = "R", required_unless_present = "jsonl")]
    to: Option<String>,
    /// The definition that the documents are values of.
    #[arg(long = "type", value_name = "T")]
    definition: Option<String>,
    /// The method of the documents; of results and errors, that of the request that they answer.
    #[arg(long, value_name = "M")]
    method: Option<String>,
    /// Sender of the messages; without it, the side that sends the method.
    #[arg(long, value_enum, value_name = "D")]
    direction: Option<Direction>,
    /// Which part of a message the documents are.
    #[arg(long, value_enum, value_name = "K")]
    kind: Option<Kind>,
    /// Refuse documents that cannot be converted without loss.
    #[arg(long)]
    strict: bool,
    /// Keep members that only the newer revision defines; the older revision allows unknown members.
    #[arg(long)]
    keep_newer: bool,
    /// The id of the request, as JSON, for types that include it from 2025-11-25 on.
    #[arg(long, value_name = "JSON", value_parser = decode_document::<RequestId>)]
    id: Option<RequestId>,
    /// Members of `_meta` that requests of 2026-07-28 need, as a JSON object.
    #[arg(long, value_name = "JSON", value_parser = decode_document::<JsonObject>)]
    meta: Option<JsonObject>,
    /// The URI of the resources/read request, for its responses.
    #[arg(long)]
    uri: Option<String>,
    /// Print one JSON object for each file, with the converted document, the losses and the error.
    #[arg(long)]
    json: bool,
    /// Convert lines from standard input, each with its revisions, a type and a document.
    #[arg(long, conflicts_with_all = ["from", "to", "definition", "method", "direction", "kind", "strict", "keep_newer", "id", "meta", "uri", "json", "files"])]
    jsonl: bool,
    /// The files to convert; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present = "jsonl")]
    files: Vec<PathBuf>,
}

/// Output line of `--json` for a file.
#[derive(Serialize)]
struct Line<'a> {
    /// Name of the file.
    file: &'a str,
    /// Converted document, losses and error.
    #[serde(flatten)]
    answer: &'a Answer,
}

/// Converts the files, or with `--jsonl` the lines of standard input.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if arguments.jsonl {
        return jsonl::run();
    }
    let job = arguments
        .job_options()
        .validate()
        .map_err(|unfit| match unfit {
            InvalidOptions::Name(unknown) => unknown.into(),
            InvalidOptions::Contradiction(problem) => anyhow!(problem),
        })?;
    check_standard_input_once(&arguments.files)?;
    let mut outcome = Outcome::Valid;
    for file in &arguments.files {
        outcome = outcome.max(convert_file(arguments, &job, file)?);
    }
    Ok(outcome)
}

/// Decodes JSON text as a value of the type `T`; returns the error as text.
fn decode_document<T: Decode>(text: &str) -> Result<T, String> {
    from_str(text).map_err(|error| error.detail().to_owned())
}

impl Arguments {
    /// Returns the options of the conversion that the arguments specify.
    fn job_options(&self) -> JobOptions<'_> {
        JobOptions {
            from: self.from.as_deref().unwrap_or_default(),
            to: self.to.as_deref().unwrap_or_default(),
            definition: self.definition.as_deref(),
            method: self.method.as_deref(),
            direction: self.direction,
            kind: self.kind,
            strict: self.strict,
            keep_newer: self.keep_newer,
            id: self.id.as_ref(),
            meta: self.meta.as_ref(),
            uri: self.uri.as_deref(),
        }
    }
}

/// Converts a file and prints the result.
fn convert_file(arguments: &Arguments, job: &Job<'_>, file: &Path) -> io::Result<Outcome> {
    let name = file.to_string_lossy();
    let (answer, outcome) = match read_file(file) {
        Ok(bytes) => {
            let answer = match decode_utf8(&bytes) {
                // White space around a document is not part of its text.
                Ok(text) => job.convert_text(text.trim_matches([' ', '\t', '\r', '\n'])),
                Err(problem) => Answer::failed(problem),
            };
            let outcome = match answer.error {
                None => Outcome::Valid,
                Some(_) => Outcome::Invalid,
            };
            (answer, outcome)
        }
        Err(error) => {
            let words = format!("cannot read {name}: {error}");
            if !arguments.json {
                print_error(&words);
                return Ok(Outcome::Unreadable);
            }
            (Answer::failed(words), Outcome::Unreadable)
        }
    };
    if arguments.json {
        let (file, answer) = (&*name, &answer);
        print_line(&Line { file, answer })?;
    } else {
        print_answer(&name, &answer)?;
    }
    Ok(outcome)
}

/// Prints the losses to standard error, and then the document to standard output, so that somebody who reads both
/// streams sees the losses first.
fn print_answer(name: &str, answer: &Answer) -> io::Result<()> {
    let mut text = String::new();
    let losses = answer.losses.iter().map(Loss::to_string);
    let note = answer.note.iter().map(|note| format!("note: {note}"));
    for words in losses.chain(note).chain(answer.error.clone()) {
        text.push_str(&format!("{name}: {words}\n"));
    }
    stderr().lock().write_all(text.as_bytes())?;
    match &answer.json {
        Some(json) => writeln!(stdout().lock(), "{json}"),
        None => Ok(()),
    }
}
