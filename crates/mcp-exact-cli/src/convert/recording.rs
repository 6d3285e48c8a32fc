//! `mcp-exact convert --log`: converts recordings of conversations, each message as what the earlier messages make of it.
//!
//! A line that states its sender remains one, and a bare message remains bare. What is refused is reported, and its line is
//! left out.

use std::io::{self, Write};
use std::path::Path;

use anyhow::{Context, anyhow};
use mcp_exact_wire::{Json, JsonObject};
use serde::Serialize;

use super::job::{Answer, Job};
use super::{Arguments, print_losses};
use crate::Outcome;
use crate::check::{check_standard_input_once, print_line, read_file};
use crate::conversation::{Conversation, Options};
use crate::message::Direction;
use crate::recording::{self, Entry};
use crate::terminal::stdout;
use crate::value::Value;

/// Output line of `--json` for a message.
#[derive(Serialize)]
struct Line<'a> {
    /// Name of the recording.
    file: &'a str,
    /// Number of the line in the recording, from 1.
    line: usize,
    /// Name of the sender: `client` or `server`.
    from: &'static str,
    /// Converted message, losses and error.
    #[serde(flatten)]
    answer: &'a Answer,
}

/// Converts the recordings.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    check_standard_input_once(&arguments.log)?;
    let mut outcome = Outcome::Valid;
    for file in &arguments.log {
        outcome = outcome.max(convert_file(arguments, file)?);
    }
    Ok(outcome)
}

/// Converts one recording, line by line.
fn convert_file(arguments: &Arguments, file: &Path) -> anyhow::Result<Outcome> {
    let name = file.to_string_lossy();
    let bytes = read_file(file).with_context(|| format!("cannot read {name}"))?;
    let revision = match &arguments.subject.revision {
        Some(revision) => revision.clone(),
        None => find_revision(&bytes).ok_or_else(|| {
            anyhow!("{name} does not say which revision it is of; say it with --revision")
        })?,
    };
    let job = arguments.job(&revision)?;
    let mut conversation = Conversation::new(None, Options::default());
    let mut outcome = Outcome::Valid;
    for (index, line) in lines(&bytes) {
        let entry = Entry::read(line);
        let (from, answer) = convert_entry(&job, &conversation, &entry);
        conversation.observe(Some(from), &entry.text);
        if answer.error.is_some() {
            outcome = Outcome::Invalid;
        }
        if arguments.json {
            print_line(&Line {
                file: &name,
                line: index + 1,
                from: from.name(),
                answer: &answer,
            })?;
        } else {
            print_losses(&format!("{name}:{}", index + 1), &answer);
            if let Some(json) = &answer.json {
                print_entry(&entry, from, json)?;
            }
        }
    }
    Ok(outcome)
}

/// Returns the lines of a recording that are not empty, with their numbers from 0.
fn lines(bytes: &[u8]) -> impl Iterator<Item = (usize, &[u8])> {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    lines.enumerate().filter(|(_, line)| !line.is_empty())
}

/// Returns the revision that client and server have negotiated, or that the first request names.
fn find_revision(bytes: &[u8]) -> Option<String> {
    let mut conversation = Conversation::new(None, Options::default());
    let mut first = None;
    for (_, line) in lines(bytes) {
        let entry = Entry::read(line);
        let observed = conversation.observe(entry.from, &entry.text);
        first = first.or(observed.revision);
    }
    conversation.negotiated().or(first).map(str::to_owned)
}

/// Converts a message in the context of the earlier ones; returns it with its sender.
fn convert_entry(job: &Job<'_>, conversation: &Conversation, entry: &Entry) -> (Direction, Answer) {
    let json: Json = match mcp_exact_wire::from_str(&entry.text) {
        Ok(json) => json,
        Err(error) => {
            let from = entry.from.unwrap_or(Direction::Server);
            return (
                from,
                Answer::failed(format!("no message: {}", error.detail())),
            );
        }
    };
    let value = Value::of(&json);
    let from = entry
        .from
        .unwrap_or_else(|| conversation.find_sender(value));
    let answered = |response: &JsonObject| {
        let id: Json = response.get("id")?;
        let method = conversation.method_of_answered(from, Value::of(&id));
        method.map(str::to_owned)
    };
    (from, job.convert_recorded(&entry.text, from, &answered))
}

/// Prints a converted message in the form of its line.
fn print_entry(entry: &Entry, from: Direction, json: &str) -> io::Result<()> {
    let mut out = stdout().lock().document();
    match entry.from {
        Some(_) => recording::write(&mut out, from, json.as_bytes()),
        None => writeln!(out, "{json}"),
    }
}
