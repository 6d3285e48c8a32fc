//! Converts complete JSON-RPC messages: the envelope is kept, and the params, the result or the error is converted.
//!
//! The input is the text of a message or a batch; JSON pointers refer to the complete text. A response can be converted
//! only if the method of its request is known.

use std::borrow::Cow;

use mcp_exact_convert::check_type;
use mcp_exact_revisions::method;
use mcp_exact_wire::{DecodeError, HeadKind, Json, JsonObject, MessageHead, from_str};

use super::job::{Findings, Job, Part, Problem};
use crate::message::{Direction, Part as Kind};
use crate::subject::OptionNames;

/// Name of the definition of all messages in every revision.
const MESSAGE_DEFINITION: &str = "JSONRPCMessage";
/// Method `resources/read`, the only method whose error codes differ between revisions.
const READ_METHOD: &str = method::RESOURCES_READ;

/// Function that returns the method of the request that a response answers, if it is known.
pub type Answered<'a> = &'a dyn Fn(&JsonObject) -> Option<String>;

/// Converts a message or a batch.
pub fn convert<'t>(
    job: &Job<'_>,
    text: &'t str,
    answered: Answered<'_>,
    direction: Option<Direction>,
    findings: &mut Findings,
) -> Result<Cow<'t, str>, Problem> {
    let envelope = Envelope {
        job,
        answered,
        direction,
    };
    if MessageHead::parse(text).map_err(not_json)?.kind == HeadKind::Batch {
        envelope.convert_batch(text, findings)
    } else {
        envelope.convert_single(text, findings)
    }
}

/// Information about messages that is not in their text, and the conversion of their parts.
struct Envelope<'a> {
    /// Options of the conversion.
    job: &'a Job<'a>,
    /// Method of the request that a response answers.
    answered: Answered<'a>,
    /// Sender of the messages, if specified.
    direction: Option<Direction>,
}

impl Envelope<'_> {
    /// Converts each message of a batch (only in 2025-03-26).
    fn convert_batch<'t>(
        &self,
        text: &'t str,
        findings: &mut Findings,
    ) -> Result<Cow<'t, str>, Problem> {
        if let Some(end) = self.job.both_revisions().find(|end| !end.has_batches()) {
            let reason = format!("{end} has no batches; convert its messages one by one");
            return Err(new_problem("", reason));
        }
        check_type(MESSAGE_DEFINITION, text, self.job.from)?;
        let messages: Vec<Json> = from_str(text).map_err(not_json)?;
        let mut converted = Vec::with_capacity(messages.len());
        for (index, message) in messages.iter().enumerate() {
            let place = format!("/{index}");
            let mut remarks_here = Findings::default();
            let json = self.convert_single(message.text(), &mut remarks_here);
            let json = json.map_err(|problem| problem.at_location(&place))?;
            findings.add(remarks_here, &place);
            converted.push(json);
        }
        let same = converted.iter().zip(&messages);
        if same
            .into_iter()
            .all(|(after, before)| after == before.text())
        {
            return Ok(Cow::Borrowed(text));
        }
        Ok(Cow::Owned(format!("[{}]", converted.join(","))))
    }

    /// Converts a request, a notification or a response.
    fn convert_single<'t>(
        &self,
        text: &'t str,
        findings: &mut Findings,
    ) -> Result<Cow<'t, str>, Problem> {
        let head = MessageHead::parse(text).map_err(not_json)?;
        if head.kind == HeadKind::Other {
            let name = |option: &str| self.job.names.name(option);
            let reason = format!(
                "not a message; say what it is with {}, or with {} and {}",
                name("type"),
                name("part"),
                name("method")
            );
            return Err(new_problem("", reason));
        }
        check_type(MESSAGE_DEFINITION, text, self.job.from)?;
        let method = head.method.as_deref();
        let (kind, name, part) = match (head.kind, head.result) {
            (HeadKind::Request, _) => (Kind::Request, "params", head.params),
            (HeadKind::Notification, _) => (Kind::Notification, "params", head.params),
            (HeadKind::Response, Some(result)) => (Kind::Result, "result", Some(result)),
            (HeadKind::Response, None) => (Kind::Error, "error", head.error),
            // The check above rejects nested arrays.
            (HeadKind::Batch | HeadKind::Other, _) => {
                return Err(new_problem("", "a batch has no batches in it".to_owned()));
            }
        };
        let mut remarks_here = Findings::default();
        let answered = match method {
            Some(_) => None,
            None => (self.answered)(&from_str(text).map_err(not_json)?),
        };
        let converted = match method.or(answered.as_deref()) {
            Some(method) => {
                let part_of = self.message_part(kind, method);
                if let Some(reason) = self.job.reason_without_message(part_of) {
                    let pointer = if head.method.is_some() { "/method" } else { "" };
                    return Err(new_problem(pointer, reason));
                }
                let converted = self.job.convert_part(part_of, part, &mut remarks_here);
                converted.map_err(|problem| {
                    self.at_part(problem, part_of, head.method.is_some(), name)
                })?
            }
            None => self.convert_unanswered(kind, name, part, &mut remarks_here)?,
        };
        findings.add(remarks_here, &format!("/{name}"));
        if converted.as_deref() == part {
            // The contents are unchanged, but the envelope may be invalid in the target revision.
            self.check_target(text)?;
            return Ok(Cow::Borrowed(text));
        }
        let message = with_part(text, name, converted.as_deref())?;
        self.check_target(&message)?;
        Ok(Cow::Owned(message))
    }

    /// Checks that the target revision allows the converted message: up to 2025-06-18, for example, every error must
    /// have an id.
    fn check_target(&self, message: &str) -> Result<(), Problem> {
        let to = self.job.to;
        check_type(MESSAGE_DEFINITION, message, to).map_err(|refused| {
            let reason = format!("in {to} it is {}", refused.reason());
            new_problem(refused.pointer(), reason)
        })
    }

    /// Describes the part of a message that must be converted.
    fn message_part<'m>(&self, kind: Kind, method: &'m str) -> Part<'m> {
        Part {
            kind,
            method,
            direction: self.direction,
        }
    }

    /// Converts the part of a response whose request is unknown. This is possible only for errors that have the same
    /// meaning for every method.
    fn convert_unanswered<'t>(
        &self,
        kind: Kind,
        name: &str,
        part: Option<&'t str>,
        findings: &mut Findings,
    ) -> Result<Option<Cow<'t, str>>, Problem> {
        if kind == Kind::Error {
            let mut of_read = Findings::default();
            let read =
                self.job
                    .convert_part(self.message_part(kind, READ_METHOD), part, &mut of_read);
            let other = self
                .job
                .convert_part(self.message_part(kind, ""), part, findings);
            if read == other && of_read == *findings {
                return other.map_err(|problem| problem.at_location(&format!("/{name}")));
            }
        }
        let reason = match self.job.names {
            OptionNames::Recording => {
                format!("the recording has no request that this {name} answers")
            }
            names => format!(
                "the request that is answered decides what the {name} means; say its method with {}",
                names.name("method")
            ),
        };
        Err(new_problem(&format!("/{name}"), reason))
    }

    /// Changes the pointer of a problem in a part to a pointer into the complete message. If the problem is that a
    /// revision does not define the method, the pointer is that of the method.
    fn at_part(&self, problem: Problem, part: Part<'_>, has_method: bool, name: &str) -> Problem {
        if problem.pointer.is_empty() && !self.job.has_method(part) {
            let pointer = if has_method { "/method" } else { "" };
            return Problem {
                pointer: pointer.to_owned(),
                ..problem
            };
        }
        problem.at_location(&format!("/{name}"))
    }
}

impl Findings {
    /// Adds the losses and the note of a part, with `place` as the JSON pointer of the part.
    fn add(&mut self, part: Self, place: &str) {
        let losses = part.losses.into_iter().map(|mut loss| {
            loss.pointer = [place, &loss.pointer].concat().into();
            loss
        });
        self.losses.extend(losses);
        self.note = self.note.take().or(part.note);
    }
}

impl Problem {
    /// Prefixes the JSON pointer of the problem with `place`.
    fn at_location(self, place: &str) -> Self {
        Self {
            pointer: format!("{place}{}", self.pointer),
            ..self
        }
    }
}

fn new_problem(pointer: &str, reason: String) -> Problem {
    let pointer = pointer.to_owned();
    Problem { pointer, reason }
}

/// Returns the problem for a text that is not valid JSON.
fn not_json(error: DecodeError) -> Problem {
    new_problem(error.pointer(), error.detail().to_owned())
}

/// Replaces the member `name` of a message by `part`, or removes the member if `part` is `None`. All other members are
/// unchanged and keep their order.
fn with_part(text: &str, name: &str, part: Option<&str>) -> Result<String, Problem> {
    let mut message: JsonObject = from_str(text).map_err(not_json)?;
    match part {
        Some(part) => {
            let part: Json = from_str(part).map_err(not_json)?;
            message.insert(name, part);
            Ok(message.text().to_owned())
        }
        None => {
            let others = message.iter().filter(|(known, _)| known != name);
            let others: Result<Vec<(String, Json)>, DecodeError> = others
                .map(|(known, value)| Ok((known.into_owned(), from_str(value)?)))
                .collect();
            let others = others.map_err(not_json)?;
            let others: JsonObject = others.into_iter().collect();
            Ok(others.text().to_owned())
        }
    }
}
