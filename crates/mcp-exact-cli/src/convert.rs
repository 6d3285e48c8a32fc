//! `mcp-exact convert`: converts files to another revision, and reports the changes.
//!
//! Converted files are written to standard output, losses to standard error; `--json` writes one object per file, with
//! the converted document and the losses. A file that is refused or cannot be read does not prevent the conversion of
//! the others.

mod job;
mod jsonl;
mod message;
mod names;
mod recording;

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{anyhow, bail};
use clap::Args;
use mcp_exact_convert::Loss;
use mcp_exact_wire::{Decode, JsonObject, RequestId, from_str};
use serde::Serialize;

use crate::check::{check_standard_input_once, print_line, read_file, refuse_recordings};
use crate::jsonl::decode_utf8;
use crate::subject::{OptionNames, SubjectOptions};
use crate::terminal::{print_to_stderr, stdout};
use crate::text::{Untrusted, text};
use crate::{Outcome, print_error};
use job::{Answer, InvalidOptions, Job, JobOptions};

/// The arguments of `mcp-exact convert`.
#[derive(Args)]
#[command(after_help = "\
What the documents are: values of a definition with --type; with --part and --method the params of a request or a \
notification, a result or an error object; otherwise whole JSON-RPC messages, for which --method says what the \
responses among them answer. --direction is only needed where both sides send a method and the revisions differ in it.

A recording of --log has a message on each line, as `mcp-exact check --log` reads it; each message that can be converted is \
printed as a line of the same form, and the handshake names the new revision. What the new revision has no message for is refused: \
`initialize`, `ping` and requests of servers for 2026-07-28, whose requests get the capabilities and the name of the client that the \
recording states. What was lost is listed, and counted at the end; --json has every change.

Exit code: 0 all converted, 1 something was refused, 2 wrong usage or a file that cannot be read.

With --jsonl, each line of standard input is an object {\"revision\", \"to\", \"type\", \"json\"}: `json` is the document as \
a string; `method`, `direction`, `part`, `strict`, `keep_newer`, `id`, `meta` and `uri` mean what the options mean, `id` and \
`meta` being JSON. Each line gets one line as its answer: {\"json\", \"losses\": [{\"pointer\", \"kind\", \"reason\"}], \
\"error\"}, where `json` is a string, or null with an `error`; a `note` is added when neither revision knows the method. The \
exit code is 0.")]
pub struct Arguments {
    /// The revision to convert to.
    #[arg(long, value_name = "R", required_unless_present = "jsonl")]
    to: Option<String>,
    #[command(flatten)]
    subject: SubjectOptions,
    /// Convert recordings of conversations; `-` is standard input. Without --revision, what client and server have negotiated
    /// counts.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["definition", "direction", "method", "part", "id", "uri", "files"])]
    log: Vec<PathBuf>,
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
    /// Print one JSON object for each file, or message of a recording, with the converted document, the changes and the error.
    #[arg(long)]
    json: bool,
    /// Convert lines from standard input, each with its revisions, a type and a document.
    #[arg(long, conflicts_with_all = ["revision", "to", "definition", "method", "direction", "part", "log", "strict", "keep_newer", "id", "meta", "uri", "json", "files"])]
    jsonl: bool,
    /// The files to convert; `-` is standard input.
    #[arg(value_name = "FILE", required_unless_present_any = ["jsonl", "log"])]
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
    if !arguments.log.is_empty() {
        return recording::run(arguments);
    }
    let Some(revision) = &arguments.subject.revision else {
        refuse_recordings(&arguments.files)?;
        bail!("from which revision? say it with --revision, such as --revision 2025-06-18");
    };
    let job = arguments.job(revision)?;
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
    /// Returns the conversion of documents of the revision `from` that the arguments specify.
    fn job<'a>(&'a self, from: &'a str) -> anyhow::Result<Job<'a>> {
        let subject = &self.subject;
        let options = JobOptions {
            from,
            to: self.to.as_deref().unwrap_or_default(),
            definition: subject.definition.as_deref(),
            method: subject.method.as_deref(),
            direction: subject.direction,
            kind: subject.part,
            strict: self.strict,
            keep_newer: self.keep_newer,
            id: self.id.as_ref(),
            meta: self.meta.as_ref(),
            uri: self.uri.as_deref(),
            names: if self.log.is_empty() {
                OptionNames::Options
            } else {
                OptionNames::Recording
            },
        };
        options.validate().map_err(|unfit| match unfit {
            InvalidOptions::Name(unknown) => unknown.into(),
            InvalidOptions::Contradiction(problem) => anyhow!(problem),
        })
    }
}

/// Converts a file and prints the result.
fn convert_file(arguments: &Arguments, job: &Job<'_>, file: &Path) -> io::Result<Outcome> {
    let name = file.to_string_lossy();
    let (answer, outcome) = match read_file(file) {
        Ok(bytes) => {
            let is_message = job.is_message();
            let advice = is_message.then(|| crate::recording::advise(&name, &bytes));
            let advice = advice.flatten();
            if let Some(advice) = advice {
                if !arguments.json {
                    print_error(&text!("{}", Untrusted(&advice)));
                    return Ok(Outcome::Unreadable);
                }
                return print_json(&name, &Answer::failed(advice)).map(|()| Outcome::Unreadable);
            }
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
                print_error(&text!("{}", Untrusted(&words)));
                return Ok(Outcome::Unreadable);
            }
            (Answer::failed(words), Outcome::Unreadable)
        }
    };
    if arguments.json {
        print_json(&name, &answer)?;
    } else {
        print_answer(&name, &answer)?;
    }
    Ok(outcome)
}

/// Prints the result for a file as one JSON object.
fn print_json(file: &str, answer: &Answer) -> io::Result<()> {
    print_line(&Line { file, answer })
}

/// Prints the losses and the error to standard error.
fn print_losses(name: &str, answer: &Answer) {
    let losses = answer.losses.iter().map(Loss::to_string);
    let note = answer.note.iter().map(|note| format!("note: {note}"));
    for words in losses.chain(note).chain(answer.error.clone()) {
        print_to_stderr(&text!("{}: {}", Untrusted(name), Untrusted(&words)));
    }
}

/// Prints the losses, and then the document to standard output, so that somebody who reads both streams sees the losses
/// first.
fn print_answer(name: &str, answer: &Answer) -> io::Result<()> {
    print_losses(name, answer);
    match &answer.json {
        Some(json) => writeln!(stdout().lock().document(), "{json}"),
        None => Ok(()),
    }
}
