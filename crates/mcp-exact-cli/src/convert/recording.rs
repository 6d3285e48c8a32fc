//! `mcp-exact convert --log`: converts recordings of conversations, each message as what the earlier messages make of it.
//!
//! A line that states its sender remains one, and a bare message remains bare. What is refused is reported, and its line is
//! left out. What the client says of itself in `initialize` is what its requests say in 2026-07-28.

use std::fmt;
use std::io::{self, Write};
use std::path::Path;

use mcp_exact_convert::{Context as Conversion, LossKind, convert_type};
use mcp_exact_revisions::method;
use mcp_exact_wire::{Json, JsonObject};
use serde::Serialize;

use super::job::{Answer, Job};
use super::{Arguments, print_losses};
use crate::check::{check_standard_input_once, print_line, read_file};
use crate::conversation::{Conversation, Options};
use crate::message::Direction;
use crate::recording::{self, Entry};
use crate::terminal::{print_to_stderr, stdout};
use crate::text::{Untrusted, text};
use crate::value::Value;
use crate::{Outcome, print_error};

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

/// Converts one recording, line by line. One that cannot be read does not prevent the conversion of the others.
fn convert_file(arguments: &Arguments, file: &Path) -> anyhow::Result<Outcome> {
    let name = file.to_string_lossy();
    let fail = |problem: &str| {
        print_error(&text!("{}", Untrusted(problem)));
        Ok(Outcome::Unreadable)
    };
    let bytes = match read_file(file) {
        Ok(bytes) => bytes,
        Err(error) => return fail(&format!("cannot read {name}: {error}")),
    };
    let given = arguments.subject.revision.clone();
    let Some(revision) = given.or_else(|| find_revision(&bytes)) else {
        return fail(&format!(
            "{name} does not say which revision it is of; say it with --revision"
        ));
    };
    let mut job = arguments.job(&revision)?;
    let mut counts = Counts::default();
    let mut conversation = Conversation::new(None, Options::default());
    let mut outcome = Outcome::Valid;
    for (index, line) in lines(&bytes) {
        let mut entry = Entry::read(line);
        if let Some(initialize) = Initialize::read(&entry.text) {
            if arguments.meta.is_none() {
                job.set_request_meta(initialize.request_meta(&job));
            }
            entry.text = initialize.offer(&revision);
        }
        let (from, answer) = match std::str::from_utf8(line) {
            Ok(_) => convert_entry(&job, &conversation, &entry),
            Err(error) => {
                let from = entry.from.unwrap_or(Direction::Server);
                let problem = format!("not UTF-8 from byte {} of the line on", error.valid_up_to());
                (from, Answer::failed(problem))
            }
        };
        conversation.observe(Some(from), &entry.text);
        counts.add(&answer);
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
            print_losses(&format!("{name}:{}", index + 1), &without_rewrites(&answer));
            if let Some(json) = &answer.json {
                print_entry(&entry, from, json)?;
            }
        }
    }
    if !arguments.json {
        print_to_stderr(&text!(
            "{}: {}",
            Untrusted(&name),
            Untrusted(&counts.to_string())
        ));
    }
    Ok(outcome)
}

/// Numbers of the messages and of the changes of a recording.
#[derive(Default)]
struct Counts {
    /// Messages that were converted.
    converted: usize,
    /// Messages that were refused.
    refused: usize,
    /// Changes by kind, in the order in which kinds first occurred.
    changes: Vec<(LossKind, usize)>,
}

impl Counts {
    /// Counts a message.
    fn add(&mut self, answer: &Answer) {
        match answer.error {
            None => self.converted += 1,
            Some(_) => self.refused += 1,
        }
        for loss in &answer.losses {
            match self.changes.iter_mut().find(|(kind, _)| *kind == loss.kind) {
                Some((_, count)) => *count += 1,
                None => self.changes.push((loss.kind, 1)),
            }
        }
    }
}

impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            converted,
            refused,
            changes,
        } = self;
        let all = converted + refused;
        let plural = if all == 1 { "" } else { "s" };
        write!(
            f,
            "{all} message{plural}: {converted} converted, {refused} refused"
        )?;
        for (at, (kind, count)) in changes.iter().enumerate() {
            write!(
                f,
                "{} {count} {}",
                if at == 0 { ";" } else { "," },
                kind.name()
            )?;
        }
        Ok(())
    }
}

/// Returns what is printed of an answer: without values that are spelt in another way and mean the same.
fn without_rewrites(answer: &Answer) -> Answer {
    let losses = answer.losses.iter();
    let kept = losses.filter(|loss| loss.kind != LossKind::Rewritten);
    Answer {
        losses: kept.cloned().collect(),
        ..answer.clone()
    }
}

/// A recorded `initialize` request.
struct Initialize {
    /// The whole message.
    message: JsonObject,
    /// Its params.
    params: JsonObject,
}

impl Initialize {
    /// Reads a message; `None` for any other one.
    fn read(text: &str) -> Option<Self> {
        let message: JsonObject = mcp_exact_wire::from_str(text).ok()?;
        let is_initialize = message.view().find("method")?.as_str()? == method::INITIALIZE;
        let params = message.view().find("params")?.decode_as().ok()?;
        is_initialize.then_some(Self { message, params })
    }

    /// Returns what requests of 2026-07-28 say of this client in `_meta` (2026-07-28, `basic`, "Per-Request Protocol Fields").
    fn request_meta(&self, job: &Job<'_>) -> JsonObject {
        let mut meta = JsonObject::new();
        for (member, definition, name) in [
            ("capabilities", "ClientCapabilities", "clientCapabilities"),
            ("clientInfo", "Implementation", "clientInfo"),
        ] {
            let Some(value) = self.params.get(member) else {
                continue;
            };
            let mut changes = Conversion::new();
            let converted = convert_type(definition, value.text(), job.from, job.to, &mut changes);
            let converted = converted
                .ok()
                .and_then(|text| mcp_exact_wire::from_str::<Json>(&text).ok());
            if let Some(converted) = converted {
                meta.insert(&format!("io.modelcontextprotocol/{name}"), converted);
            }
        }
        meta
    }

    /// Returns the message with an offer of `revision`: a client offers its newest revision, and speaks the negotiated one.
    fn offer(mut self, revision: &str) -> String {
        self.params.insert(
            "protocolVersion",
            Json::from(serde_json::Value::from(revision)),
        );
        self.message.insert("params", Json::from(self.params));
        self.message.text().to_owned()
    }
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
