//! The walk of a repair: a value is kept if it fits its type, and otherwise taken apart along its type.
//!
//! Each level is read once more than its parent, and the depth of typed levels is bounded, so that time is linear.

mod content;

use std::borrow::Cow;
use std::sync::Arc;

use mcp_exact_wire::spans::OpenMember;
use mcp_exact_wire::{DocumentRule, DocumentValue, Kind, Reader};

use self::content::{TOOL_CONTENT, text_content, words_elsewhere};
use super::envelope::is_empty_array;
use super::rules::{CAPABILITIES, DEFAULTS, MEANINGFUL, NEUTRAL_SCHEMA};
use super::schemas::{self, Fault};
use super::{MAX_REPAIRS, Repair, RepairRule, bounded, has_no_duplicates, object_text};
use crate::layout::{Definition, Layout, Objects, Shape, Type, Union};
use crate::packed::{Bounds, Text};
use crate::place::cut;
use crate::read::{TreeSelection, read, select};
use crate::report::described_item;

/// A value that cannot be repaired.
pub struct Unfit {
    /// What is wrong, as the decoder says it.
    reason: String,
    /// True if the value can be read in two ways, so that nothing around it is repaired but a list of items.
    is_ambiguous: bool,
}

impl Unfit {
    fn new(reason: impl Into<String>) -> Self {
        Self {
            reason: reason.into(),
            is_ambiguous: false,
        }
    }
}

/// Results and their lists of which at least one item must be readable: if every item would be left out, the result is an error.
const READ_LISTS: [(&str, &str); 2] = [
    ("ReadResourceResult", "contents"),
    ("GetPromptResult", "messages"),
];

/// Type of the arguments of every tool, in its schema.
const OBJECT: &str = r#""object""#;

/// Result of a repair: the text of a value that fits.
type Fit<'t> = Result<Cow<'t, str>, Unfit>;

/// A walk over one text.
pub struct Walk {
    /// True if members of a wrong type and items may be dropped.
    may_drop: bool,
    /// JSON pointer of the current value.
    pointer: String,
    /// Kind and name of the item that contains the current value.
    subject: Option<Arc<str>>,
    repairs: Vec<Repair>,
    count: usize,
    /// Bytes of text that were read; a text is read again on each level, and once for each variant that it may be.
    bytes_read: usize,
    /// True if the schemas of tools are looked into.
    reads_schemas: bool,
}

impl Walk {
    pub fn new(may_drop: bool) -> Self {
        Self {
            may_drop,
            pointer: String::new(),
            subject: None,
            repairs: Vec::new(),
            count: 0,
            bytes_read: 0,
            reads_schemas: false,
        }
    }

    /// Returns the text as a valid value of a type; `None` if it is valid already or cannot be repaired.
    pub fn run(&mut self, text: &str, value: u16) -> Option<String> {
        self.reads_schemas = schemas::may_be_untidy(text, value);
        if self.fits(text, value).is_ok() {
            return None;
        }
        let repaired = self.value(text, value).ok()?.into_owned();
        self.fits(&repaired, value).is_ok().then_some(repaired)
    }

    /// Returns the number of bytes that the walk has read.
    pub fn bytes_read(&self) -> usize {
        self.bytes_read
    }

    /// Returns the listed repairs and the number of all.
    pub fn into_repairs(self) -> (Vec<Repair>, usize) {
        (self.repairs, self.count)
    }

    /// Repairs a value of a type.
    fn value<'t>(&mut self, text: &'t str, value: u16) -> Fit<'t> {
        let Err(reason) = self.fits(text, value) else {
            return Ok(Cow::Borrowed(text));
        };
        match Type::at(value) {
            Type::Definition(place) => self.definition(text, place, reason),
            Type::Array(items, limits) => self.array(text, (items, limits), reason),
            Type::Map(values) => self.map(text, values, reason),
            Type::Nullable(inner) => self.value(text, inner),
            Type::JsonObject if is_empty_array(text) => {
                self.note(RepairRule::EmptyArray, "");
                Ok("{}".into())
            }
            Type::String | Type::Formatted(_) | Type::RequestId | Type::ProgressToken => {
                self.string(text, reason)
            }
            _ => Err(Unfit::new(reason)),
        }
    }

    fn definition<'t>(&mut self, text: &'t str, place: u16, reason: String) -> Fit<'t> {
        let definition = Definition::at(place);
        match &definition.shape {
            Shape::Object(layout) => {
                let outer = self.subject.clone();
                self.bytes_read += text.len();
                if let Some(subject) = described_item(text, definition.name.get()) {
                    self.subject = Some(subject);
                }
                let repaired = self.object(text, definition.name, layout, reason);
                self.subject = outer;
                repaired
            }
            Shape::Union(place) => self.union(text, definition.name, Union::at(*place), reason),
            Shape::Enum(_) => self.string(text, reason),
            Shape::Document(document) => {
                self.document(text, definition.name.get(), document.rules(), reason)
            }
            Shape::Constant(_) => Err(Unfit::new(reason)),
        }
    }

    /// Repairs the members of a schema that the revision has rules for.
    fn document<'t>(
        &mut self,
        text: &'t str,
        name: &str,
        rules: &[DocumentRule],
        reason: String,
    ) -> Fit<'t> {
        if text == "{}" && name == schemas::INPUT_SCHEMA {
            self.note(RepairRule::NeutralSchema, "");
            return Ok(NEUTRAL_SCHEMA.into());
        }
        if let Some(schema) = schemas::within_string(text) {
            self.bytes_read += text.len();
            let of_object = |rule: &DocumentRule| rule.value == DocumentValue::Const("object");
            if name != schemas::INPUT_SCHEMA
                && rules.iter().any(of_object)
                && schemas::is_of_no_object(&schema)
            {
                // An optional schema that the revision does not allow is left out.
                return Err(Unfit::new(reason));
            }
            self.note(RepairRule::SchemaAsText, "");
            let repaired = self.document(&schema, name, rules, reason)?;
            return Ok(Cow::Owned(repaired.into_owned()));
        }
        let is_input = name == schemas::INPUT_SCHEMA;
        let members = self.members(text, &reason)?;
        let mut kept = Vec::new();
        if is_input && !members.iter().any(|member| member.name == "type") {
            let outer = self.enter("type");
            self.note(RepairRule::MissingMember, "");
            self.leave(outer);
            kept.push((r#""type""#, Cow::Borrowed(OBJECT)));
        }
        for member in &members {
            let rule = rules.iter().find(|rule| rule.name == member.name);
            let fault = rule.and_then(|rule| schemas::fault(rule, member.value, is_input));
            let outer = self.enter(&member.name);
            let value = match fault {
                None => Some(member.value.into()),
                Some(Fault::Null) => {
                    self.note(RepairRule::NullMember, "");
                    None
                }
                Some(Fault::Kind) => {
                    self.note(RepairRule::WrongType, "");
                    None
                }
                Some(Fault::NoObject) => {
                    self.note(RepairRule::WrongType, "expected \"object\"");
                    Some(OBJECT.into())
                }
                Some(Fault::Array) => {
                    self.note(RepairRule::EmptyArray, "");
                    Some("{}".into())
                }
                Some(Fault::ArrayInside) => Some(self.properties(member.value, &reason)?),
            };
            self.leave(outer);
            kept.extend(value.map(|value: Cow<'t, str>| (member.quoted, value)));
        }
        let parts = kept.iter().map(|(name, value)| (*name, &**value));
        Ok(object_text(parts).into())
    }

    /// Repairs the values of the properties of a schema.
    fn properties<'t>(&mut self, text: &'t str, reason: &str) -> Fit<'t> {
        let members = self.members(text, reason)?;
        for member in members.iter().filter(|member| member.value == "[]") {
            let outer = self.enter(&member.name);
            self.note(RepairRule::EmptyArray, "");
            self.leave(outer);
        }
        let parts = members.iter().map(|member| match member.value {
            "[]" => (member.quoted, "{}"),
            value => (member.quoted, value),
        });
        Ok(object_text(parts).into())
    }

    /// Replaces the lone surrogates of a string.
    fn string<'t>(&mut self, text: &'t str, reason: String) -> Fit<'t> {
        self.bytes_read += text.len();
        match super::replace_lone_surrogates(text) {
            Cow::Owned(whole) if text.starts_with('"') => {
                self.note(RepairRule::LoneSurrogate, "");
                Ok(whole.into())
            }
            _ => Err(Unfit::new(reason)),
        }
    }

    fn object<'t>(
        &mut self,
        text: &'t str,
        name: Text,
        layout: &Layout,
        reason: String,
    ) -> Fit<'t> {
        let is_array = is_empty_array(text);
        if is_array {
            self.note(RepairRule::EmptyArray, "");
        }
        let members = self.members(if is_array { "{}" } else { text }, &reason)?;
        let (mut kept, mut seen) = (Vec::with_capacity(members.len()), 0_u64);
        for member in &members {
            let Some(index) = layout.find(&member.name) else {
                kept.push((Cow::Borrowed(member.quoted), Cow::Borrowed(member.value)));
                continue;
            };
            let is_required = layout.required >> index & 1 == 1;
            let outer = self.enter(&member.name);
            let may_drop = self.may_drop;
            // The requests inside of a result are params.
            self.may_drop &= &*member.name != "inputRequests";
            let value = layout.type_of(index);
            let repaired = self.member(member, value, (name, is_required));
            self.may_drop = may_drop;
            self.leave(outer);
            if let Some(value) = repaired? {
                seen |= 1 << index;
                kept.push((Cow::Borrowed(member.quoted), value));
            } else if is_required {
                seen |= 1 << index;
            }
        }
        self.add_missing(&mut kept, seen, name, layout)?;
        let parts = kept.iter().map(|(name, value)| (&**name, &**value));
        Ok(Cow::Owned(object_text(parts)))
    }

    /// Adds the required members that are missing and have an obvious value.
    fn add_missing<'t>(
        &mut self,
        kept: &mut Vec<(Cow<'t, str>, Cow<'t, str>)>,
        seen: u64,
        name: Text,
        layout: &Layout,
    ) -> Result<(), Unfit> {
        for (index, member) in layout.members.rows().iter().enumerate() {
            if layout.required >> index & 1 == 0 || seen >> index & 1 == 1 {
                continue;
            }
            let member = member.0.get();
            let value = layout.types.rows()[index];
            let Some((value, rule)) = default_of(name, member, value) else {
                return Err(Unfit::new(format!("the member `{member}` is missing")));
            };
            if self.may_drop
                && (name.get(), member) == TOOL_CONTENT
                && let Some(words) = words_elsewhere(kept, layout)
            {
                let outer = self.enter(member);
                self.note(RepairRule::ToolContent, "the member `content` is missing");
                self.leave(outer);
                let content = format!("[{}]", text_content(&words));
                kept.push(("\"content\"".into(), content.into()));
                continue;
            }
            let outer = self.enter(member);
            self.note(rule, "");
            self.leave(outer);
            kept.push((format!("\"{member}\"").into(), value.into()));
        }
        Ok(())
    }

    /// Repairs the value of a known member; `None` if the member counts as absent.
    fn member<'t>(
        &mut self,
        member: &OpenMember<'t>,
        value: u16,
        (owner, is_required): (Text, bool),
    ) -> Result<Option<Cow<'t, str>>, Unfit> {
        let text = member.value;
        if self.fits(text, value).is_ok() {
            return Ok(Some(text.into()));
        }
        let default = default_of(owner, &member.name, value).filter(|_| is_required);
        if self.may_drop
            && text != "null"
            && (owner.get(), &*member.name) == TOOL_CONTENT
            && let Type::Array(items, _) = Type::at(value)
        {
            return Ok(Some(self.tool_content(text, items)));
        }
        match text {
            "null" if !is_required => {
                self.note(RepairRule::NullMember, "");
                return Ok(None);
            }
            "null" if self.fits("[]", value).is_ok() && !needs_items(value) => {
                self.note(RepairRule::NullList, "");
                return Ok(Some("[]".into()));
            }
            "null" => {
                if let Some((value, rule)) = default {
                    self.note(rule, "");
                    return Ok(Some(value.into()));
                }
            }
            "true" | "false" if CAPABILITIES.contains(&owner.get()) => {
                self.note(RepairRule::CapabilityFlag, "");
                let is_object = text == "true" && self.fits("{}", value).is_ok();
                return Ok(is_object.then_some("{}".into()));
            }
            // Some servers put their tools there.
            _ if CAPABILITIES.contains(&owner.get())
                && text.starts_with('[')
                && !is_empty_array(text)
                && self.fits("{}", value).is_ok() =>
            {
                self.note(RepairRule::CapabilityFlag, "");
                return Ok(Some("{}".into()));
            }
            _ => {}
        }
        let mark = self.mark();
        let is_read = READ_LISTS.contains(&(owner.get(), &*member.name));
        let unfit = match self.value(text, value) {
            Ok(repaired) if is_read && repaired == "[]" => {
                Unfit::new(format!("no item of `{}` can be read", member.name))
            }
            Ok(repaired) => return Ok(Some(repaired)),
            Err(unfit) => unfit,
        };
        self.undo(mark);
        match default {
            _ if unfit.is_ambiguous => Err(unfit),
            Some((value, rule @ RepairRule::NeutralSchema)) => {
                self.note(rule, &unfit.reason);
                Ok(Some(value.into()))
            }
            None if self.may_drop && !is_required && !MEANINGFUL.contains(&&*member.name) => {
                self.note(RepairRule::WrongType, &unfit.reason);
                Ok(None)
            }
            _ => Err(unfit),
        }
    }

    fn array<'t>(
        &mut self,
        text: &'t str,
        (items, limits): (u16, Bounds),
        reason: String,
    ) -> Fit<'t> {
        self.bytes_read += text.len();
        let mut r = Reader::of_checked(text);
        if r.kind() != Ok(Kind::Array) {
            return Err(Unfit::new(reason));
        }
        let (mut kept, mut index, mut count) = (String::from("["), 0_usize, 0_usize);
        let mut more = r.begin_array().unwrap_or_default();
        while more {
            let Ok(item) = r.raw() else { break };
            let outer = self.enter(&index.to_string());
            let mark = self.mark();
            let repaired = self.value(item, items);
            match repaired {
                Ok(item) => {
                    count += 1;
                    if count > 1 {
                        kept.push(',');
                    }
                    kept.push_str(&item);
                }
                Err(unfit) if !self.may_drop => return Err(unfit),
                Err(unfit) => {
                    self.undo(mark);
                    self.bytes_read += item.len();
                    let subject = described_item(item, Type::at(items).name());
                    let above = std::mem::replace(&mut self.subject, subject);
                    self.note(RepairRule::LeftOut, &unfit.reason);
                    self.subject = above;
                }
            }
            self.leave(outer);
            index += 1;
            more = r.next_item().unwrap_or_default();
        }
        let (low, _) = limits.sizes();
        if low.is_some_and(|low| count < low) {
            return Err(Unfit::new(format!("{reason}; too few items are left")));
        }
        kept.push(']');
        Ok(kept.into())
    }

    fn map<'t>(&mut self, text: &'t str, values: u16, reason: String) -> Fit<'t> {
        if is_empty_array(text) {
            self.note(RepairRule::EmptyArray, "");
            return Ok("{}".into());
        }
        let mut kept = Vec::new();
        for member in &self.members(text, &reason)? {
            let outer = self.enter(&member.name);
            let repaired = self.member(member, values, (Text(0), false));
            self.leave(outer);
            if let Some(value) = repaired? {
                kept.push((member.quoted, value));
            }
        }
        let parts = kept.iter().map(|(name, value)| (*name, &**value));
        Ok(Cow::Owned(object_text(parts)))
    }

    fn union<'t>(
        &mut self,
        text: &'t str,
        name: Text,
        union: &'static Union,
        reason: String,
    ) -> Fit<'t> {
        if is_empty_array(text)
            && union.arrays.is_empty()
            && !matches!(union.objects, Objects::None)
        {
            self.note(RepairRule::EmptyArray, "");
            return self.variant("{}", name, union, reason);
        }
        let mark = self.mark();
        let unfit = match self.variant(text, name, union, reason) {
            Ok(repaired) => return Ok(repaired),
            Err(unfit) => unfit,
        };
        self.undo(mark);
        // A member that is null may have selected the variant by its presence.
        self.bytes_read += text.len();
        let Some((rest, names)) = without_nulls(text, union) else {
            return Err(unfit);
        };
        for name in &names {
            let outer = self.enter(name);
            self.note(RepairRule::NullMember, "");
            self.leave(outer);
        }
        let repaired = self.variant(&rest, name, union, unfit.reason)?;
        Ok(Cow::Owned(repaired.into_owned()))
    }

    /// Repairs a value as the variant of a union that its form selects.
    fn variant<'t>(
        &mut self,
        text: &'t str,
        name: Text,
        union: &'static Union,
        reason: String,
    ) -> Fit<'t> {
        self.bytes_read += text.len();
        match select(&mut Reader::of_checked(text), name, union) {
            Ok(variant) => match union.variant(variant) {
                Some(value) => self.value(text, value),
                None => Err(Unfit::new(reason)),
            },
            Err(_) => self.only_variant(text, union, reason),
        }
    }

    /// Repairs a value that no variant of a union fits, such as one without the member that selects its variant, if it can
    /// be repaired as exactly one of them.
    fn only_variant<'t>(
        &mut self,
        text: &'t str,
        union: &'static Union,
        reason: String,
    ) -> Fit<'t> {
        let mark = self.mark();
        let mut found = None;
        for value in union.variants.rows() {
            let is_repaired = self.value(text, *value).is_ok();
            self.undo(mark);
            if is_repaired && found.replace(*value).is_some() {
                return Err(Unfit::new(reason));
            }
        }
        match found {
            Some(value) => self.value(text, value),
            None => Err(Unfit::new(reason)),
        }
    }

    /// Records a repair of the current value.
    fn note(&mut self, rule: RepairRule, detail: &str) {
        self.count += 1;
        if self.repairs.len() >= MAX_REPAIRS {
            return;
        }
        let mut pointer = self.pointer.clone();
        cut(&mut pointer, mcp_exact_wire::MAX_POINTER);
        self.repairs.push(Repair {
            rule,
            pointer: pointer.into(),
            subject: self.subject.clone(),
            detail: bounded(detail.to_owned()),
        });
    }

    /// Returns the number of repairs so far, for [`undo`](Self::undo).
    fn mark(&self) -> (usize, usize) {
        (self.repairs.len(), self.count)
    }

    /// Forgets the repairs of a value that could not be repaired.
    fn undo(&mut self, (listed, count): (usize, usize)) {
        self.repairs.truncate(listed);
        self.count = count;
    }

    /// Moves to a member or an item; returns the length of the pointer before, for [`leave`](Self::leave).
    fn enter(&mut self, token: &str) -> usize {
        let length = self.pointer.len();
        // A longer pointer is cut anyway.
        if length <= mcp_exact_wire::MAX_POINTER {
            self.pointer.push('/');
            for c in token.chars().take(mcp_exact_wire::MAX_POINTER) {
                match c {
                    '~' => self.pointer.push_str("~0"),
                    '/' => self.pointer.push_str("~1"),
                    c => self.pointer.push(c),
                }
            }
        }
        length
    }

    fn leave(&mut self, length: usize) {
        self.pointer.truncate(length);
    }

    /// Checks that a text is a value of a type, as decoding does.
    fn fits(&mut self, text: &str, value: u16) -> Result<(), String> {
        self.bytes_read += text.len();
        fits(text, value)?;
        if self.reads_schemas {
            self.bytes_read += text.len();
            if schemas::is_untidy(text, value) {
                return Err("a member of the schema has another type".into());
            }
        }
        Ok(())
    }

    /// Returns the members of an object, as [`members`] does.
    fn members<'t>(&mut self, text: &'t str, reason: &str) -> Result<Vec<OpenMember<'t>>, Unfit> {
        self.bytes_read += text.len();
        members(text, reason)
    }
}

/// Checks that a text is a value of a type, as decoding does.
fn fits(text: &str, value: u16) -> Result<(), String> {
    match read(Reader::of_checked(text), 0, value, TreeSelection::Nothing) {
        Ok(_) => Ok(()),
        Err(error) => Err(error.detail().to_string()),
    }
}

/// Returns the members of an object.
///
/// # Errors
/// [`Unfit`] for a value that is no object, with `reason`, and for a name that is there twice.
fn members<'t>(text: &'t str, reason: &str) -> Result<Vec<OpenMember<'t>>, Unfit> {
    let mut r = Reader::of_checked(text);
    if r.kind() != Ok(Kind::Object) {
        return Err(Unfit::new(reason));
    }
    let (mut first, mut members) = (true, Vec::new());
    while let Ok(Some(member)) = r.open_member(&mut first) {
        members.push(member);
    }
    if has_no_duplicates(&members) {
        return Ok(members);
    }
    Err(Unfit {
        reason: "a member is there twice".into(),
        is_ambiguous: true,
    })
}

/// Returns true for the type of an array that must have items.
fn needs_items(value: u16) -> bool {
    match Type::at(value) {
        Type::Array(_, limits) => limits.sizes().0.is_some_and(|low| low > 0),
        _ => false,
    }
}

/// Returns the obvious value of a required member of the type `value`, and the rule that names it.
fn default_of(owner: Text, member: &str, value: u16) -> Option<(&'static str, RepairRule)> {
    let owner = owner.get();
    let row = DEFAULTS
        .iter()
        .find(|row| (row.0.is_empty() || row.0 == owner) && row.1 == member)?;
    let is_too_short = row.2 == "[]" && needs_items(value);
    // A result of another kind has another `resultType`.
    (!is_too_short && fits(row.2, value).is_ok()).then_some((row.2, row.3))
}

/// Returns an object without the members that are null although no variant needs them, and the
/// names of these members; `None` if there are none.
fn without_nulls(text: &str, union: &'static Union) -> Option<(String, Vec<String>)> {
    let members = members(text, "").ok()?;
    let layouts = || {
        let variants = union.variants.rows().iter();
        variants.filter_map(|value| match Type::at(*value) {
            Type::Definition(place) => Definition::at(place).layout(),
            _ => None,
        })
    };
    let is_optional = |layout: &Layout, index: usize| {
        layout.required >> index & 1 == 0 && fits("null", layout.type_of(index)).is_err()
    };
    let is_dropped = |member: &OpenMember<'_>| {
        let known = layouts().filter_map(|layout| Some((layout, layout.find(&member.name)?)));
        let mut known = known.peekable();
        member.value == "null"
            && known.peek().is_some()
            && known.all(|(layout, index)| is_optional(layout, index))
    };
    let (dropped, kept): (Vec<_>, Vec<_>) = members.into_iter().partition(is_dropped);
    if dropped.is_empty() {
        return None;
    }
    let rest = object_text(kept.iter().map(|member| (member.quoted, member.value)));
    let names = dropped.into_iter().map(|member| member.name.into_owned());
    Some((rest, names.collect()))
}
