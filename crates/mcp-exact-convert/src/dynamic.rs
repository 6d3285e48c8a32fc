//! Conversion of JSON text by method and direction, for gateways that do not decode messages.
//!
//! The text is scanned once, all steps run on the same tree, and the output is written once. Text whose type is the
//! same in all revisions from the source to the target is returned unchanged and is not parsed.

use std::borrow::Cow;

use mcp_exact_revisions::Side as Role;
use mcp_exact_wire::{
    Decode, DecodeError, ErrorObject, Json, MessageKind, Reader, Violations, from_str,
};

use crate::conversion::Conversion;
use crate::generated::{KnownRevision, PATHS};
use crate::loss::{ConvertError, NotedLoss};
use crate::node::Node;
use crate::place::Pointers;
use crate::read::{TreeSelection, changed_members, read, read_parts};
use crate::repair::{may_decode_untidy, repair_text};
use crate::rows::{MethodRow, MethodTypes, PairRow, RevisionRow, TypeRow};
use crate::rules::PathRow;
use crate::{Context, LossKind, error};

/// The part of a message that a text represents.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Payload<'m> {
    /// Kind of the message; the text is `params`, `result` or `error`, according to this kind.
    pub kind: MessageKind,
    /// Method of the message; for a result or an error, the method of its request.
    pub method: &'m str,
    /// Sender of the message.
    pub sender: Role,
}

/// Converts the params, the result or the error of a message.
///
/// `text` is `None` for absent params; the result is `None` if the target revision does not require them. Params and
/// results of vendor methods, which neither revision defines, are returned unchanged. Losses are added to `cx`. With
/// [`Tolerance::Lenient`](crate::Tolerance::Lenient), text that is not of its type is repaired and converted again.
///
/// # Errors
/// [`ConvertError`] if the target revision cannot express the text or has no such method in that direction, or if the
/// text does not have the type of the source revision; the pointer refers to `text`.
pub fn convert<'t>(
    root: Payload<'_>,
    text: Option<&'t str>,
    from: KnownRevision,
    to: KnownRevision,
    cx: &mut Context,
) -> Result<Option<Cow<'t, str>>, ConvertError> {
    let before = cx.losses.len();
    let untidy = text.filter(|text| cx.known.is_tolerant && may_decode_untidy(&root, text));
    let repaired = match untidy.and_then(|text| repair_text(root, text, from)) {
        Some(repaired) => repaired,
        None => {
            let refused = match convert_exactly(root, text, from, to, cx) {
                Err(refused) if cx.known.is_tolerant => refused,
                converted => return converted,
            };
            let repaired = text.and_then(|text| repair_text(root, text, from));
            repaired.ok_or(refused)?
        }
    };
    cx.losses.truncate(before);
    cx.repairs.extend(repaired.repairs);
    let converted = convert_exactly(root, Some(&repaired.text), from, to, cx)?;
    Ok(converted.map(|text| Cow::Owned(text.into_owned())))
}

/// Converts text that has its type; see [`convert`].
fn convert_exactly<'t>(
    root: Payload<'_>,
    text: Option<&'t str>,
    from: KnownRevision,
    to: KnownRevision,
    cx: &mut Context,
) -> Result<Option<Cow<'t, str>>, ConvertError> {
    if from == to {
        return Ok(text.map(Cow::Borrowed));
    }
    if root.kind == MessageKind::Error {
        let text = text.ok_or_else(|| refused("an error is required"))?;
        return error::convert_text(root.method, text, from, to, cx).map(Some);
    }
    let row = MethodRow::find(root.method, root.kind != MessageKind::Notification);
    let Some(row) = row.filter(|row| text.is_none() || !passes(row, &root, from, to)) else {
        return Ok(text.map(Cow::Borrowed));
    };
    let Some(method) = MethodOnPath::new(row, &root, from, to)? else {
        return Ok(text.map(Cow::Borrowed));
    };
    let needs_text = root.kind == MessageKind::Result || method.last.params_required;
    let text = match text {
        Some(text) => text,
        None if root.kind == MessageKind::Result => {
            return Err(refused("a result is required"));
        }
        None if !needs_text => return Ok(None),
        None => {
            cx.report("", LossKind::Rewritten, to, "params are required");
            "{}"
        }
    };
    let way = ConversionPath::new(from, to);
    let (converted, is_empty) = match method.types()? {
        Some(types) => way.run(&types, text, cx)?,
        None => (Cow::Borrowed(text), false),
    };
    let is_silent = !needs_text && is_empty && text != "{}";
    Ok((!is_silent).then_some(converted))
}

/// Returns true if [`convert`] decodes a text, so that it refuses or repairs one that does not have its type; false if it
/// returns every text unchanged.
pub fn decodes(root: Payload<'_>, from: KnownRevision, to: KnownRevision) -> bool {
    let row = MethodRow::find(root.method, root.kind != MessageKind::Notification);
    let row = row.filter(|row| from != to && !passes(row, &root, from, to));
    let method = row.and_then(|row| MethodOnPath::new(row, &root, from, to).ok()?);
    let Some(types) = method.and_then(|method| method.types().ok()?) else {
        return false;
    };
    let way = ConversionPath::new(from, to);
    let changes = |at| way.pair(&types, at).is_ok_and(|pair| !pair.same);
    (0..way.steps()).any(changes)
}

/// Change of the params of a method in a conversion, as far as member names determine it.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ParamsChange {
    /// Names of members that a step may change; no step changes other members.
    pub names: Vec<&'static str>,
    /// True if the conversion adds `_meta` with the session's metadata to params without `_meta`.
    pub adds_meta: bool,
    /// Definition of the params in the source revision, for [`described_item`](crate::described_item); empty if no step
    /// changes params.
    pub definition: &'static str,
}

/// Returns the change of the params of a request or notification; `None` if a step may change all params.
pub fn params_change(
    root: Payload<'_>,
    from: KnownRevision,
    to: KnownRevision,
) -> Option<ParamsChange> {
    let row = MethodRow::find(root.method, root.kind != MessageKind::Notification);
    let Some(row) = row.filter(|row| from != to && !passes(row, &root, from, to)) else {
        return Some(ParamsChange::default());
    };
    let method = MethodOnPath::new(row, &root, from, to).ok()??;
    let types = method.types().ok()??;
    let way = ConversionPath::new(from, to);
    let row = way.row(0).definition(types[0]);
    let (names, adds_meta) = changed_members(row.value, way.rules())?;
    let definition = row.name.get();
    Some(ParamsChange {
        names,
        adds_meta,
        definition,
    })
}

/// Returns true if the text is valid in both revisions without a change, and the sender may send the method in both.
fn passes(row: &MethodRow, root: &Payload<'_>, from: KnownRevision, to: KnownRevision) -> bool {
    let same = match root.kind {
        MessageKind::Result => row.same_results,
        _ => row.same_params,
    };
    let (low, high) = (from.place().min(to.place()), from.place().max(to.place()));
    let (ends, steps) = (1 << low | 1 << high, (1 << high) - (1 << low));
    let sent = row.sent(requesting_role(root)) | row.embedded;
    sent & ends == ends && same & steps == steps && !ends_subscription(root, from, to)
}

/// Returns true for a server's `notifications/cancelled` between revisions of which one lets it end `subscriptions/listen` alone
/// (2026-07-28 `basic/patterns/cancellation`) and the other lets it cancel a request of the server.
fn ends_subscription(root: &Payload<'_>, from: KnownRevision, to: KnownRevision) -> bool {
    root.kind == MessageKind::Notification
        && root.sender == Role::Server
        && root.method == "notifications/cancelled"
        && from.spec().has_subscriptions_listen() != to.spec().has_subscriptions_listen()
}

/// Returns the sender of the request or notification, which for a result is the peer of the result's sender.
fn requesting_role(root: &Payload<'_>) -> Role {
    match root.kind {
        MessageKind::Result => root.sender.peer(),
        _ => root.sender,
    }
}

/// A method with its rows in all revisions of a conversion path.
struct MethodOnPath {
    method: &'static str,
    /// Rows of the method by revision, oldest first.
    revisions: &'static [Option<MethodTypes>],
    /// True if the conversion is to a newer revision.
    up: bool,
    /// True if the text is a result and not params.
    is_result: bool,
    /// Row of the method in the target revision.
    last: &'static MethodTypes,
}

impl MethodOnPath {
    /// Looks up a method; returns `None` if neither the source nor the target revision defines it.
    fn new(
        row: &'static MethodRow,
        root: &Payload<'_>,
        from: KnownRevision,
        to: KnownRevision,
    ) -> Result<Option<Self>, ConvertError> {
        let (from_at, to_at) = (from.place(), to.place());
        let all = row.revisions.rows();
        if all[from_at].is_none() && all[to_at].is_none() {
            return Ok(None);
        }
        let is_result = root.kind == MessageKind::Result;
        let sender = requesting_role(root);
        let sent = row.sent(sender) | row.embedded;
        for (at, revision) in [(from_at, from), (to_at, to)] {
            if sent >> at & 1 == 0 {
                let side = match sender {
                    Role::Client => "client",
                    Role::Server => "server",
                };
                let reason = format!("in {revision} no {side} sends `{}`", root.method);
                return Err(refused(reason));
            }
        }
        if ends_subscription(root, from, to) {
            let reason = "a server's `notifications/cancelled` ends `subscriptions/listen` in one revision, and cancels a request \
                          of the server in the other";
            return Err(refused(reason));
        }
        let Some(last) = &all[to_at] else {
            return Ok(None);
        };
        Ok(Some(Self {
            method: row.method.get(),
            revisions: &all[from_at.min(to_at)..=from_at.max(to_at)],
            up: from_at < to_at,
            is_result,
            last,
        }))
    }

    /// Returns the types in the order of the conversion; `None` if a revision leaves this part of the message untyped.
    fn types(&self) -> Result<Option<Types>, ConvertError> {
        let (mut types, mut is_open) = ([0; REVISIONS], false);
        let last = self.revisions.len() - 1;
        for (at, row) in self.revisions.iter().enumerate() {
            let row = row.as_ref().ok_or_else(|| {
                refused(format!("a revision in between has no `{}`", self.method))
            })?;
            match row.part(self.is_result) {
                Some(value) => types[if self.up { at } else { last - at }] = value,
                None => is_open = true,
            }
        }
        Ok((!is_open).then_some(types))
    }
}

/// Converts a value of a type by its name in `from`, which is a definition of the schema. Losses are added to `cx`.
///
/// # Errors
/// [`ConvertError`] if the type or a counterpart is missing, the text is not of the type, or `to` cannot express it.
pub fn convert_type<'t>(
    name: &str,
    text: &'t str,
    from: KnownRevision,
    to: KnownRevision,
    cx: &mut Context,
) -> Result<Cow<'t, str>, ConvertError> {
    let way = ConversionPath::new(from, to);
    let types = way.counterparts(name)?;
    Ok(way.run(&types, text, cx)?.0)
}

/// Validates input of [`convert`], which does not parse text whose type is the same in both revisions.
///
/// # Errors
/// [`ConvertError`] if the text is invalid JSON, not of its type, or required and absent; the pointer refers to `text`.
pub fn check(root: Payload<'_>, text: Option<&str>, of: KnownRevision) -> Result<(), ConvertError> {
    let row = MethodRow::find(root.method, root.kind != MessageKind::Notification);
    let found = match row.filter(|_| root.kind != MessageKind::Error) {
        None => None,
        Some(row) => MethodOnPath::new(row, &root, of, of)?,
    };
    let Some(text) = text else {
        return match (root.kind, &found) {
            (MessageKind::Result, _) => Err(refused("a result is required")),
            (MessageKind::Error, _) => Err(refused("an error is required")),
            (_, Some(found)) if found.last.params_required => Err(refused("params are required")),
            _ => Ok(()),
        };
    };
    let part = match &found {
        Some(found) => found.types()?.map(|types| types[0]),
        None => None,
    };
    match (root.kind, part) {
        (MessageKind::Error, _) => check_decoding::<ErrorObject>("Error", text),
        (_, Some(at)) => ConversionPath::new(of, of)
            .row(0)
            .definition(at)
            .check(text),
        (_, None) => check_decoding::<Json>("JSON", text),
    }
}

/// Validates that a text is a value of a type of a revision, and so valid input for [`convert_type`].
///
/// # Errors
/// [`ConvertError`] if there is no such type, or the text does not have that type; the pointer refers to `text`.
pub fn check_type(name: &str, text: &str, of: KnownRevision) -> Result<(), ConvertError> {
    let way = ConversionPath::new(of, of);
    let at = way.counterparts(name)?[0];
    way.row(0).definition(at).check(text)
}

/// Returns the violations that `validate()` of a definition's type finds. Exempt from semantic versioning.
///
/// # Errors
/// [`ConvertError`] if there is no such type, or the text does not have that type.
#[doc(hidden)]
pub fn violations(name: &str, text: &str, of: KnownRevision) -> Result<Violations, ConvertError> {
    let way = ConversionPath::new(of, of);
    let row = way.row(0).definition(way.counterparts(name)?[0]);
    let node = read(Reader::new(text), 0, row.value, TreeSelection::Everything);
    let node = node.map_err(|error| not_of_type(row.name.get(), &error))?;
    Ok(crate::check::violations(&node, row.value))
}

/// Returns the name in `to` of a definition of `from`; `None` if `to` or a revision between has no counterpart.
pub fn counterpart(name: &str, from: KnownRevision, to: KnownRevision) -> Option<&'static str> {
    let way = ConversionPath::new(from, to);
    let types = way.counterparts(name).ok()?;
    let last = way.steps();
    Some(way.row(last).definition(types[last]).name.get())
}

/// The source and the target revision of a conversion, which determine the revisions between them.
struct ConversionPath {
    from: KnownRevision,
    to: KnownRevision,
    /// True if the target revision is newer than the source revision.
    up: bool,
}

/// Number of known revisions.
const REVISIONS: usize = KnownRevision::ALL.len();

/// Indexes of a definition in each revision of a path, in the order of the conversion.
type Types = [u16; REVISIONS];

/// Rows of the pairs of definitions that the steps convert, one per step.
type Pairs = [Option<&'static PairRow>; REVISIONS];

impl ConversionPath {
    fn new(from: KnownRevision, to: KnownRevision) -> Self {
        let up = from.place() <= to.place();
        Self { from, to, up }
    }

    /// Returns the number of steps.
    fn steps(&self) -> usize {
        self.from.place().abs_diff(self.to.place())
    }

    /// Returns the row of the revision at an index of the path.
    fn row(&self, at: usize) -> &'static RevisionRow {
        RevisionRow::at(self.revision(at).place())
    }

    /// Returns the combined changes of all steps.
    fn rules(&self) -> &'static PathRow {
        &PATHS[self.from.place() * REVISIONS + self.to.place()]
    }

    /// Returns the revision at an index of the path.
    fn revision(&self, at: usize) -> KnownRevision {
        let first = self.from.place();
        KnownRevision::ALL[if self.up { first + at } else { first - at }]
    }

    /// Returns the indexes of a definition in each revision of the path.
    fn counterparts(&self, name: &str) -> Result<Types, ConvertError> {
        let first = self.row(0).find(name);
        let first = first.ok_or_else(|| refused(format!("{} has no type `{name}`", self.from)))?;
        let mut types = [first; REVISIONS];
        for at in 0..self.steps() {
            let row = self.row(at).definition(types[at]);
            types[at + 1] = row.counterpart(self.up).ok_or_else(|| {
                let (name, there) = (row.name.get(), self.revision(at + 1));
                refused(format!("`{name}` has no counterpart in {there}"))
            })?;
        }
        Ok(types)
    }

    /// Runs all steps; returns the text in the target revision, and true if the result is an object without members.
    fn run<'t>(
        &self,
        types: &Types,
        text: &'t str,
        cx: &mut Context,
    ) -> Result<(Cow<'t, str>, bool), ConvertError> {
        let mut pairs: Pairs = [None; REVISIONS];
        for (at, pair) in pairs.iter_mut().enumerate().take(self.steps()) {
            *pair = Some(self.pair(types, at)?);
        }
        if pairs.iter().flatten().all(|pair| pair.same) {
            return Ok((Cow::Borrowed(text), false));
        }
        let row = self.row(0).definition(types[0]);
        let mut r = if cx.known.is_json {
            Reader::of_checked(text)
        } else {
            Reader::new(text)
        };
        let how = (TreeSelection::Path(self.rules()), None);
        let node = read_parts(&mut r, 0, row.value, how);
        let (mut node, _) = node.map_err(|error| not_of_type(row.name.get(), &error))?;
        let notes = self.run_steps(&pairs, &mut node, text, cx)?;
        cx.losses
            .extend(crate::report::losses(notes, text, row.name.get()));
        let is_empty = node.is_empty_object();
        if !node.update_changed() && node.is_text(text, r.may_have_space()) {
            return Ok((Cow::Borrowed(text), is_empty));
        }
        let mut out = String::with_capacity(text.len() + 64);
        node.write(&mut out);
        Ok((Cow::Owned(out), is_empty))
    }

    /// Converts a value by all steps, and returns the losses.
    fn run_steps<'t>(
        &self,
        pairs: &Pairs,
        node: &mut Node<'t>,
        text: &'t str,
        cx: &Context,
    ) -> Result<Vec<NotedLoss>, ConvertError> {
        let mut conversion = Conversion::new(&cx.known, node.at, (self.from, self.to));
        for (at, pair) in pairs.iter().flatten().enumerate() {
            conversion.step = (self.revision(at), self.revision(at + 1));
            let converted = conversion.convert(node, pair.op(self.up));
            if let Err(refusal) = converted.and_then(|()| conversion.check_losses()) {
                let pointers = Pointers::find(text, std::iter::once(&refusal.place), &[]);
                let pointer = pointers.of(&refusal.place);
                return Err(ConvertError::new(pointer, refusal.reason));
            }
        }
        Ok(conversion.losses)
    }

    /// Returns the row for the pair of definitions that the step at an index converts.
    fn pair(&self, types: &Types, at: usize) -> Result<&'static PairRow, ConvertError> {
        let (older, newer) = if self.up { (at, at + 1) } else { (at + 1, at) };
        let pairs = self.row(older).pairs;
        PairRow::find(pairs, types[older], types[newer]).ok_or_else(|| {
            let name = self.row(at).definition(types[at]).name.get();
            let there = self.revision(at + 1);
            refused(format!("`{name}` has no counterpart in {there}"))
        })
    }
}

impl TypeRow {
    /// Checks that a text is a value of the type.
    fn check(&self, text: &str) -> Result<(), ConvertError> {
        let read = read(Reader::new(text), 0, self.value, TreeSelection::Nothing);
        read.map(drop)
            .map_err(|error| not_of_type(self.name.get(), &error))
    }
}

/// Returns a refusal of the complete text, with an empty JSON pointer.
fn refused(reason: impl Into<Cow<'static, str>>) -> ConvertError {
    ConvertError::new("", reason)
}

/// Checks that a text decodes as the type `T`, which an error calls `name`.
fn check_decoding<T: Decode>(name: &str, text: &str) -> Result<(), ConvertError> {
    let decoded = from_str::<T>(text);
    decoded.map(drop).map_err(|error| not_of_type(name, &error))
}

/// Creates the error for a text that does not have the type `name`.
fn not_of_type(name: &str, error: &DecodeError) -> ConvertError {
    let reason = format!("no `{name}`: {}", error.detail());
    ConvertError::new(error.pointer(), reason)
}
