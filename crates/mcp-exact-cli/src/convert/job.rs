//! One conversion: its options, their validation, and the converted document.
//!
//! Options are taken from the command line or from a line of JSON; nothing is printed. A document that a conversion
//! does not change is also validated, so that the output is always a valid document of the target revision.

use std::borrow::Cow;
use std::fmt;

use mcp_exact_convert::{
    Context, ConvertError, KnownRevision, Loss, MessageKind, NewerMembers, Payload, Role, check,
    check_type, convert, convert_type,
};
use mcp_exact_wire::{JsonObject, MessageHead, RequestId};
use serde::{Serialize, Serializer};

use super::{message, names};
use crate::check::Places;
use crate::message::{Direction, Part as Kind};
use crate::names::{suggest_similar, truncate_name};
use crate::registry::UnknownName;
use crate::subject::OptionNames;

/// Options of a conversion, which are not validated.
#[derive(Debug, Clone)]
pub struct JobOptions<'a> {
    /// Revision of the documents.
    pub from: &'a str,
    /// Revision to which the documents are converted.
    pub to: &'a str,
    /// Name of the definition of which the documents are values.
    pub definition: Option<&'a str>,
    /// Method of the documents; for results and errors, the method of the answered request.
    pub method: Option<&'a str>,
    /// Sender of the messages, if specified.
    pub direction: Option<Direction>,
    /// Part of a message that the documents contain; `None` for complete messages.
    pub kind: Option<Kind>,
    /// True if a conversion with losses fails.
    pub strict: bool,
    /// True if members that only the newer revision defines are kept.
    pub keep_newer: bool,
    /// Id of the request, for definitions that include it.
    pub id: Option<&'a RequestId>,
    /// Members of `_meta` that requests of 2026-07-28 require and that older requests lack.
    pub meta: Option<&'a JsonObject>,
    /// URI of the `resources/read` request, for its responses.
    pub uri: Option<&'a str>,
    /// Names of the options in error messages.
    pub names: OptionNames,
}

/// Reason why the options are invalid.
#[derive(Debug, Clone)]
pub enum InvalidOptions {
    /// The name of a revision or definition is unknown.
    Name(UnknownName),
    /// Two options exclude each other, or one requires another; the text describes the remedy.
    Contradiction(String),
}

/// Validated options of a conversion.
#[derive(Debug, Clone)]
pub struct Job<'a> {
    /// Revision of the documents.
    pub from: KnownRevision,
    /// Revision to which the documents are converted.
    pub to: KnownRevision,
    /// Kind of the documents.
    subject: Subject<'a>,
    /// True if a conversion with losses fails.
    strict: bool,
    /// Settings for the conversion library, such as the URI of the request.
    context: Context,
    /// Names of the options in error messages.
    pub names: OptionNames,
}

/// Kind of the documents to convert.
#[derive(Debug, Clone, Copy)]
enum Subject<'a> {
    /// Values of the named definition.
    Definition(&'a str),
    /// Params, results or errors of messages, without their envelopes.
    Part(Part<'a>),
    /// Complete messages, with the method of the answered request for responses, and the sender, if specified.
    Message(Option<&'a str>, Option<Direction>),
}

/// Description of a part of a message.
#[derive(Debug, Clone, Copy)]
pub struct Part<'a> {
    /// Part of the message: params, result or error.
    pub kind: Kind,
    /// Method of the message, or of the request that the message answers.
    pub method: &'a str,
    /// Sender of the message, if specified.
    pub direction: Option<Direction>,
}

/// Result of converting one document.
#[derive(Debug, Clone, Default, Serialize)]
pub struct Answer {
    /// Converted document; `None` after an error.
    pub json: Option<String>,
    /// Losses and other changes of the conversion.
    #[serde(serialize_with = "plain_losses")]
    pub losses: Vec<Loss>,
    /// Reason why there is no converted document.
    pub error: Option<String>,
    /// Note for the user, for example about an unknown method.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub note: Option<String>,
}

/// Reason why a document cannot be converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Problem {
    /// JSON pointer of the location in the document.
    pub pointer: String,
    /// Reason as a sentence, with a hint if possible.
    pub reason: String,
}

/// Losses and notes of a conversion in progress.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Findings {
    /// Losses of the conversion.
    pub losses: Vec<Loss>,
    /// Note that neither revision defines the method, if this is the case.
    pub note: Option<String>,
}

impl<'a> JobOptions<'a> {
    /// Validates the options.
    pub fn validate(&self) -> Result<Job<'a>, InvalidOptions> {
        let from = names::revision(self.from).map_err(InvalidOptions::Name)?;
        let to = names::revision(self.to).map_err(InvalidOptions::Name)?;
        let subject = self
            .parse_subject()
            .map_err(InvalidOptions::Contradiction)?;
        if let Subject::Definition(name) = subject {
            names::definition(name, from).map_err(InvalidOptions::Name)?;
        }
        let mut context = Context::new().max_losses(usize::MAX);
        if self.keep_newer {
            context = context.newer_members(NewerMembers::KeepInExtra);
        }
        if let Some(id) = self.id {
            context = context.request_id(id.clone());
        }
        if let Some(meta) = self.meta {
            context = context.request_meta(meta.clone());
        }
        if let Some(uri) = self.uri {
            context = context.requested_uri(uri);
        }
        Ok(Job {
            from,
            to,
            subject,
            strict: self.strict,
            context,
            names: self.names,
        })
    }

    /// Returns the kind of the documents that the options specify; returns an error if options contradict each other.
    fn parse_subject(&self) -> Result<Subject<'a>, String> {
        let direction = self.direction;
        let name = |option: &str| self.names.name(option);
        let is_for_messages = |option: &str| {
            let (option, definition) = (name(option), name("type"));
            Err(format!(
                "{option} is for messages; leave it or {definition} out"
            ))
        };
        match (self.definition, self.kind, self.method) {
            (Some(_), Some(_), _) => is_for_messages("part"),
            (Some(_), _, Some(_)) => is_for_messages("method"),
            (Some(_), _, _) if direction.is_some() => is_for_messages("direction"),
            (Some(name), None, None) => Ok(Subject::Definition(name)),
            (None, Some(_), None) => Err(format!(
                "a part of a message has a type by its method; say which with {}",
                name("method")
            )),
            (None, Some(kind), Some(method)) => Ok(Subject::Part(Part {
                kind,
                method,
                direction,
            })),
            (None, None, _) if self.id.is_some() => Err(format!(
                "a whole message has its own id; leave {} out",
                name("id")
            )),
            (None, None, method) => Ok(Subject::Message(method, direction)),
        }
    }
}

impl Job<'_> {
    /// Returns true if the documents are complete messages.
    pub fn is_message(&self) -> bool {
        matches!(self.subject, Subject::Message(..))
    }

    /// Provides members of `_meta` that requests of 2026-07-28 need.
    pub fn set_request_meta(&mut self, meta: JsonObject) {
        self.context = self.context.clone().request_meta(meta);
    }

    /// Converts a document.
    pub fn convert_text(&self, text: &str) -> Answer {
        if let Err(error) = MessageHead::parse(text) {
            let place = Places::new(text.as_bytes()).format(error.offset());
            return Answer::failed(format!("{}{place}", error.detail()));
        }
        let mut findings = Findings::default();
        match self.convert_document(text, &mut findings) {
            Ok(json) => self.finish_answer(json, findings),
            Err(problem) => Answer::failed(problem.to_string()),
        }
    }

    /// Converts a message of a recording, whose sender is known.
    pub fn convert_recorded(
        &self,
        text: &str,
        from: Direction,
        answered: message::Answered<'_>,
    ) -> Answer {
        let mut findings = Findings::default();
        match message::convert(self, text, answered, Some(from), &mut findings) {
            Ok(json) => self.finish_answer(json, findings),
            Err(problem) => Answer::failed(problem.to_string()),
        }
    }

    /// Creates the result of a conversion; with `strict`, losses cause an error.
    fn finish_answer(&self, json: Cow<'_, str>, findings: Findings) -> Answer {
        let Findings { losses, note } = findings;
        let lossy = losses.iter().filter(|loss| loss.kind.is_lossy()).count();
        let refused = self.strict && lossy > 0;
        Answer {
            json: (!refused).then(|| json.into_owned()),
            losses,
            error: refused.then(|| {
                let losses = if lossy == 1 { "loss" } else { "losses" };
                let strict = self.names.name("strict");
                format!("refused because of {lossy} {losses}; leave {strict} out to allow losses")
            }),
            note,
        }
    }

    /// Converts a document of the kind that the options specify.
    fn convert_document<'t>(
        &self,
        text: &'t str,
        findings: &mut Findings,
    ) -> Result<Cow<'t, str>, Problem> {
        match self.subject {
            Subject::Definition(name) => {
                check_type(name, text, self.from)?;
                let mut cx = self.context.clone();
                let json = convert_type(name, text, self.from, self.to, &mut cx)?;
                findings.losses.extend(cx.into_losses());
                Ok(json)
            }
            Subject::Part(part) => {
                let json = self.convert_part(part, Some(text), findings)?;
                // Params that are optional and empty are omitted.
                Ok(json.unwrap_or(Cow::Borrowed("{}")))
            }
            Subject::Message(answered, direction) => {
                let answered = |_: &JsonObject| answered.map(str::to_owned);
                message::convert(self, text, &answered, direction, findings)
            }
        }
    }

    /// Converts the params, the result or the error of a message; `None` stands for absent params.
    pub fn convert_part<'t>(
        &self,
        part: Part<'_>,
        text: Option<&'t str>,
        findings: &mut Findings,
    ) -> Result<Option<Cow<'t, str>>, Problem> {
        let root = Payload {
            kind: message_kind(part.kind),
            method: part.method,
            sender: self.sender(part),
        };
        check(root, text, self.from)?;
        let mut cx = self.context.clone();
        let json = convert(root, text, self.from, self.to, &mut cx)?;
        findings.losses.extend(cx.into_losses());
        if part.kind != Kind::Error
            && !self
                .both_revisions()
                .any(|end| has_method_of_part(end, part))
        {
            findings.note = Some(self.unknown_method_note(part));
        }
        Ok(json)
    }

    /// Returns true if both revisions define the method of a part for its sender.
    pub fn has_method(&self, part: Part<'_>) -> bool {
        let is_answer = matches!(part.kind, Kind::Result | Kind::Error);
        let sender = self.sender(part);
        let side = if is_answer { sender.peer() } else { sender };
        self.both_revisions().all(|end| is_sent_by(end, part, side))
    }

    /// Returns the reason why no message of the target revision has this part: up to 2025-11-25 servers send requests whose
    /// params are part of a result since 2026-07-28.
    pub fn reason_without_message(&self, part: Part<'_>) -> Option<String> {
        let sender = self.sender(part);
        let is_answer = matches!(part.kind, Kind::Result | Kind::Error);
        let side = if is_answer { sender.peer() } else { sender };
        if !is_sent_by(self.from, part, side) || is_sent_by(self.to, part, side) {
            return None;
        }
        let side = match side {
            Role::Client => "client",
            Role::Server => "server",
        };
        let method = truncate_name(part.method);
        let answers = if is_answer {
            ", so that nothing answers it"
        } else {
            ""
        };
        Some(format!(
            "in {} no {side} sends `{method}`{answers}",
            self.to
        ))
    }

    /// Returns the source and the target revision.
    pub fn both_revisions(&self) -> impl Iterator<Item = KnownRevision> {
        [self.from, self.to].into_iter()
    }

    /// Returns the specified sender of a part. If none is specified, returns the side that sends such parts in the
    /// source revision, or else in the target revision; the client if both sides send the method.
    fn sender(&self, part: Part<'_>) -> Role {
        if let Some(direction) = part.direction {
            return to_role(direction);
        }
        let weight = |role: Role| {
            let sent = |revision| u8::from(is_sent_by(revision, part, role));
            2 * sent(self.from) + sent(self.to)
        };
        let is_servers = weight(Role::Server) > weight(Role::Client);
        match (part.kind, is_servers) {
            (Kind::Request | Kind::Notification, false) => Role::Client,
            (Kind::Request | Kind::Notification, true) => Role::Server,
            (Kind::Result | Kind::Error, false) => Role::Server,
            (Kind::Result | Kind::Error, true) => Role::Client,
        }
    }

    /// Creates the note that neither revision defines the method, with similar names.
    fn unknown_method_note(&self, part: Part<'_>) -> String {
        let what = match part.kind {
            Kind::Notification => "notification",
            _ => "request",
        };
        let method = truncate_name(part.method);
        let mut note = format!(
            "neither revision defines the {what} `{method}`, so that nothing of it was converted"
        );
        let methods: Vec<_> = self
            .both_revisions()
            .flat_map(KnownRevision::methods)
            .collect();
        let names = methods.iter().map(|info| info.method);
        suggest_similar(&mut note, part.method, names);
        note
    }
}

/// Returns true if a revision defines the method of a part for any sender.
fn has_method_of_part(revision: KnownRevision, part: Part<'_>) -> bool {
    is_sent_by(revision, part, Role::Client) || is_sent_by(revision, part, Role::Server)
}

/// Returns true if `side` sends the method of a part; for a result or an error, the method of the answered request.
fn is_sent_by(revision: KnownRevision, part: Part<'_>, side: Role) -> bool {
    let methods = revision.spec().methods(side);
    match part.kind {
        Kind::Notification => methods.has_notification(part.method),
        _ => methods.has_request(part.method),
    }
}

/// Converts the direction of a message to the role of its sender.
fn to_role(direction: Direction) -> Role {
    match direction {
        Direction::Client => Role::Client,
        Direction::Server => Role::Server,
    }
}

/// Converts a part to the type of the conversion library.
fn message_kind(part: Kind) -> MessageKind {
    match part {
        Kind::Request => MessageKind::Request,
        Kind::Result => MessageKind::Result,
        Kind::Notification => MessageKind::Notification,
        Kind::Error => MessageKind::Error,
    }
}

impl Answer {
    /// Creates the result for a document that cannot be converted.
    pub fn failed(problem: String) -> Self {
        Self {
            error: Some(problem),
            ..Self::default()
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "refused at {:?}: {}", self.pointer, self.reason)
    }
}

impl From<ConvertError> for Problem {
    fn from(refused: ConvertError) -> Self {
        Self {
            pointer: refused.pointer().to_owned(),
            reason: refused.reason().to_owned(),
        }
    }
}

/// JSON representation of a loss.
#[derive(Serialize)]
struct PlainLoss<'a> {
    /// JSON pointer of the location in the document.
    pointer: &'a str,
    /// Tool, prompt or resource that is affected, if any.
    #[serde(skip_serializing_if = "Option::is_none")]
    subject: Option<&'a str>,
    /// Name of the kind of loss, such as `dropped`.
    kind: &'static str,
    /// Reason for the loss.
    reason: &'a str,
}

/// Serializes losses as a JSON array.
fn plain_losses<S: Serializer>(losses: &[Loss], serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_seq(losses.iter().map(|loss| PlainLoss {
        pointer: &loss.pointer,
        subject: loss.subject.as_deref(),
        kind: loss.kind.name(),
        reason: &loss.reason,
    }))
}
