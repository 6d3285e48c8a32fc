//! `mcp-exact check --log`: checks recordings of conversations, each message in the context of the earlier messages.

use std::fs::File;
use std::io::{self, BufRead, BufReader};
use std::path::Path;

use serde::Serialize;

use super::{Arguments, check_standard_input_once, print_line};
use crate::conversation::{Breach, CheckedMessage, Conversation, Options};
use crate::message::Direction;
use crate::output::{Painter, Style, is_standard_stream};
use crate::recording::Entry;
use crate::registry::Registry;
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, count, text};
use crate::{Outcome, print_error};

/// Maximum number of messages with violations that are printed as text.
const MAX_PRINTED: usize = 100;

/// Output line of `--json` for a message with a violation.
#[derive(Serialize)]
struct Line<'a> {
    /// Name of the recording.
    file: &'a str,
    /// Number of the line in the recording, from 1.
    line: usize,
    /// Name of the sender: `client` or `server`.
    from: &'static str,
    /// Revision of the message, if known.
    revision: Option<&'static str>,
    /// Description of the message, such as `result of tools/list`.
    message: &'a str,
    /// Rules that the message violates.
    breaches: Vec<BreachLine<'a>>,
    /// Number of all violations; present if `breaches` omits some.
    #[serde(skip_serializing_if = "Option::is_none")]
    count: Option<usize>,
}

/// Output line of `--json` for a violation of a rule.
#[derive(Serialize)]
pub struct BreachLine<'a> {
    /// Id of the rule.
    rule: &'static str,
    /// JSON pointer of the location in the message.
    pointer: &'a str,
    /// Description of the violation.
    message: &'a str,
}

impl<'a> BreachLine<'a> {
    /// Returns the JSON representation of a violation.
    pub fn new(breach: &'a Breach) -> Self {
        Self {
            rule: breach.rule.id,
            pointer: &breach.pointer,
            message: &breach.message,
        }
    }
}

/// Checks the recordings.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    check_standard_input_once(&arguments.log)?;
    let revision = match &arguments.subject.revision {
        Some(id) => Some(Registry::new().revision(id)?.revision.id()),
        None => None,
    };
    let mut outcome = Outcome::Valid;
    for file in &arguments.log {
        outcome = outcome.max(check_file(arguments, revision, file)?);
    }
    Ok(outcome)
}

/// Checks one recording, and prints the violations and a summary.
fn check_file(
    arguments: &Arguments,
    revision: Option<&'static str>,
    file: &Path,
) -> io::Result<Outcome> {
    let name = file.to_string_lossy();
    let fail = |error: io::Error| {
        let problem = format!("cannot read {name}: {error}");
        print_error(&text!("{}", Untrusted(&problem)));
        Ok(Outcome::Unreadable)
    };
    let mut input = match open(file) {
        Ok(input) => input,
        Err(error) => return fail(error),
    };
    let options = Options {
        wants_unknown: arguments.unknown,
        is_ordered: true,
    };
    let mut conversation = Conversation::new(revision, options);
    let (mut messages, mut wrong, mut first_revision) = (0, 0, None);
    let mut first_not_printed = None;
    let mut out = stdout();
    // A recording may be larger than the memory; a message is not.
    let mut line = Vec::new();
    for number in 1.. {
        line.clear();
        match input.read_until(b'\n', &mut line) {
            Ok(0) => break,
            Ok(_) => {}
            Err(error) => return fail(error),
        }
        let line = line.trim_ascii();
        if line.is_empty() {
            continue;
        }
        let entry = Entry::read(line);
        let observed = conversation.observe(entry.from, &entry.text);
        messages += 1;
        first_revision = first_revision.or(observed.revision);
        if observed.breaches.is_empty() {
            continue;
        }
        wrong += 1;
        if arguments.json {
            print_line(&Line {
                file: &name,
                line: number,
                from: observed.from.name(),
                revision: observed.revision,
                message: &observed.label,
                breaches: observed.breaches.iter().map(BreachLine::new).collect(),
                count: (observed.omitted > 0).then(|| observed.breaches.len() + observed.omitted),
            })?;
        } else if wrong > MAX_PRINTED {
            first_not_printed.get_or_insert(number);
        } else {
            out.line(&text!(
                "{}:{}: {}",
                Untrusted(&name),
                number,
                format_verdict(&observed, Painter::stdout())
            ))?;
        }
    }
    if let Some(first) = first_not_printed {
        out.line(&text!(
            "{}:{}: and {} with findings from here on; --json lists all of them",
            Untrusted(&name),
            first,
            count(wrong - MAX_PRINTED, "more message")
        ))?;
    }
    if !arguments.json {
        let waiting =
            [Direction::Client, Direction::Server].map(|side| conversation.pending_count(side));
        let revision = conversation.negotiated().or(first_revision);
        let is_unknown = revision.is_none();
        let revision = revision.unwrap_or("revision unknown");
        let mut summary = text!(
            "{}: {}, {} with findings, {}",
            Untrusted(&name),
            count(messages, "message"),
            wrong,
            revision
        );
        let waiting: usize = waiting.iter().sum();
        if waiting > 0 {
            summary.push(&text!(", {} without response", count(waiting, "request")));
        }
        if is_unknown {
            summary.push(
                &"; it has no handshake, so that only what holds in every revision was checked: say the revision with --revision, such \
                  as --revision 2025-06-18"
                    .into(),
            );
        }
        out.line(&summary)?;
    }
    Ok(match wrong {
        0 => Outcome::Valid,
        _ => Outcome::Invalid,
    })
}

/// Opens a recording, which may be standard input.
fn open(file: &Path) -> io::Result<Box<dyn BufRead>> {
    Ok(if is_standard_stream(file) {
        Box::new(io::stdin().lock())
    } else {
        Box::new(BufReader::new(File::open(file)?))
    })
}

/// Formats a message and its violations as text, one line per violation.
pub fn format_verdict(observed: &CheckedMessage, painter: Painter) -> Text {
    let label = painter.paint(Style::Bold, Untrusted(&observed.label));
    let mut text = text!("{} {}", observed.from.name(), label);
    for breach in &observed.breaches {
        let rule = painter.paint(Style::Faint, breach.rule.id);
        let words = painter.paint(Style::Red, Untrusted(&breach.to_line()));
        text.push(&text!("\n  {} ({})", words, rule));
    }
    if observed.omitted > 0 {
        text.push(&text!("\n  and {} more", observed.omitted));
    }
    text
}
