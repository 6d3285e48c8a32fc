//! Tree of a value during its conversion: a node is unchanged JSON text, or an object or array with nodes as parts.
//!
//! Only values that a step may change become trees. The writer copies the text of everything else.

use std::borrow::Cow;

use mcp_exact_wire::{Kind, Reader, from_str};

/// Offset of values that the input does not contain.
pub const NOWHERE: usize = usize::MAX;

/// Mark for a variant that the union does not define.
pub const UNKNOWN: u8 = u8::MAX - 1;

/// A JSON value.
#[derive(Debug, Clone)]
pub struct Node<'t> {
    /// Offset of the value in the input in bytes, or [`NOWHERE`].
    pub at: usize,
    /// Union variants of the value, each plus one; the outermost is in the lowest byte.
    pub variants: u32,
    /// True if the value differs from its text.
    pub changed: bool,
    /// Part of the value that no step changes.
    pub fixed: FixedPart,
    pub body: Body<'t>,
}

/// Part of a value that no conversion step changes, as the reader has determined.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FixedPart {
    /// Any part of the value may change.
    No,
    /// The members or items do not change; the value itself may.
    Parts,
    /// The complete value does not change; steps skip it.
    Whole,
}

/// Contents of a value.
#[derive(Debug, Clone)]
pub enum Body<'t> {
    /// Text of one JSON value, without white space around it.
    Text(Cow<'t, str>),
    /// Object: its text, valid until a member changes, and its members.
    Object(&'t str, Vec<Member<'t>>),
    /// Array: its text, valid until an item changes, and its items.
    Array(&'t str, Vec<Node<'t>>),
    /// The value is removed from the object that contains it.
    Removed,
}

/// A member of an object.
#[derive(Debug, Clone)]
pub struct Member<'t> {
    pub name: Cow<'t, str>,
    pub value: Node<'t>,
}

impl<'t> Node<'t> {
    /// Creates an unchanged value; `at` is its offset in the input, in bytes.
    pub fn new(body: Body<'t>, at: usize) -> Self {
        Self {
            at,
            variants: 0,
            changed: false,
            fixed: FixedPart::No,
            body,
        }
    }

    /// Creates a node for text of the input, or of a part that begins at offset `at`.
    pub fn text(text: &'t str, at: usize) -> Self {
        Self::new(Body::Text(Cow::Borrowed(text)), at)
    }

    /// Creates a value that the input does not have and that replaces the value at `at`.
    pub fn changed(body: Body<'t>, at: usize) -> Self {
        Self {
            changed: true,
            ..Self::new(body, at)
        }
    }

    /// Creates a value that the input does not have.
    pub fn made(text: impl Into<Cow<'t, str>>) -> Self {
        Self::changed(Body::Text(text.into()), NOWHERE)
    }

    /// Creates a string that the input does not have.
    pub fn new_string(text: &str) -> Self {
        Self::made(mcp_exact_wire::to_string(text))
    }

    /// Creates an object that the input does not have and that replaces the value at `at`.
    pub fn new_object(members: Vec<Member<'t>>, at: usize) -> Self {
        Self::changed(Body::Object("", members), at)
    }

    /// Creates an array that the input does not have and that replaces the value at `at`.
    pub fn new_array(items: Vec<Self>, at: usize) -> Self {
        Self::changed(Body::Array("", items), at)
    }

    /// Marks the value as a variant of a union.
    pub fn push_variant(&mut self, variant: u8) {
        self.variants = self.variants << 8 | (u32::from(variant) + 1);
    }

    /// Removes the mark of the outermost union variant and returns the variant.
    pub fn pop_variant(&mut self) -> Option<u8> {
        let variant = (self.variants & 0xff).checked_sub(1)?;
        self.variants >>= 8;
        u8::try_from(variant).ok()
    }

    /// Returns false if steps may change parts of the value; otherwise allows that a caller changes the value itself,
    /// unless the value is a union variant, which only the rule of the variant can change.
    fn mark_parts_fixed(&mut self) -> bool {
        if self.fixed == FixedPart::No {
            return false;
        }
        if self.variants == 0 {
            self.fixed = FixedPart::Parts;
        }
        true
    }

    pub fn is_removed(&self) -> bool {
        matches!(self.body, Body::Removed)
    }

    /// Returns the members of an object, whose text is parsed one level deep; `None` for another value.
    pub fn members(&mut self) -> Option<&mut Vec<Member<'t>>> {
        if let Body::Text(text) = &self.body {
            let mut body = match text {
                Cow::Borrowed(text) => {
                    let members = read_members(text, self.at)?;
                    Body::Object(text, members)
                }
                Cow::Owned(text) => {
                    let members = read_members(text, NOWHERE)?;
                    Body::Object("", members.into_iter().map(Member::into_owned).collect())
                }
            };
            if let (true, Body::Object(_, members)) = (self.mark_parts_fixed(), &mut body) {
                let values = members.iter_mut().map(|member| &mut member.value);
                values.for_each(|value| value.fixed = FixedPart::Whole);
            }
            self.body = body;
        }
        match &mut self.body {
            Body::Object(_, members) => Some(members),
            _ => None,
        }
    }

    /// Returns the items of an array, whose text is parsed one level deep; `None` for another value.
    pub fn items(&mut self) -> Option<&mut Vec<Self>> {
        if let Body::Text(text) = &self.body {
            let mut body = match text {
                Cow::Borrowed(text) => Body::Array(text, read_items(text, self.at)?),
                Cow::Owned(text) => {
                    let items = read_items(text, NOWHERE)?;
                    Body::Array("", items.into_iter().map(Node::into_owned).collect())
                }
            };
            if let (true, Body::Array(_, items)) = (self.mark_parts_fixed(), &mut body) {
                items
                    .iter_mut()
                    .for_each(|item| item.fixed = FixedPart::Whole);
            }
            self.body = body;
        }
        match &mut self.body {
            Body::Array(_, items) => Some(items),
            _ => None,
        }
    }

    /// Returns the value of a member, if the node is an object with that member.
    pub fn member(&mut self, name: &str) -> Option<&mut Self> {
        let members = self.members()?;
        let member = members.iter_mut().find(|member| member.name == name)?;
        (!member.value.is_removed()).then_some(&mut member.value)
    }

    /// Removes a member of the object and returns it.
    pub fn take(&mut self, name: &str) -> Option<Self> {
        let members = self.members()?;
        let at = members.iter().position(|member| member.name == name)?;
        let member = members.remove(at);
        self.changed = true;
        Some(member.value)
    }

    /// Sets a member of the object.
    pub fn set(&mut self, name: impl Into<Cow<'t, str>>, value: Self) {
        let name = name.into();
        self.changed = true;
        let Some(members) = self.members() else {
            return;
        };
        match members.iter_mut().find(|member| member.name == name) {
            Some(member) => member.value = value,
            None => members.push(Member { name, value }),
        }
    }

    /// Returns the decoded string if the value is a string.
    pub fn string(&self) -> Option<Cow<'_, str>> {
        match &self.body {
            Body::Text(text) => string(text),
            _ => None,
        }
    }

    /// Returns the JSON kind of the value.
    pub fn kind(&self) -> Kind {
        match &self.body {
            Body::Text(text) => Reader::new(text).kind().unwrap_or(Kind::Null),
            Body::Object(..) => Kind::Object,
            Body::Array(..) => Kind::Array,
            Body::Removed => Kind::Null,
        }
    }

    /// Returns true if the value is an object without members.
    pub fn is_empty_object(&self) -> bool {
        match &self.body {
            Body::Object(_, members) => members.iter().all(|member| member.value.is_removed()),
            Body::Text(text) => is_empty(text, '{', '}'),
            _ => false,
        }
    }

    /// Returns true if the value equals a text of the tables: a string, a number as written, `{}` or `null`.
    pub fn equals_text(&self, text: &str) -> bool {
        if text == "{}" {
            return self.is_empty_object();
        }
        match (&self.body, string(text)) {
            (Body::Text(own), None) => own == text,
            (Body::Text(own), wanted) => string(own) == wanted,
            _ => false,
        }
    }

    /// Returns true if the value equals `absence`, the JSON text with the meaning of an absent member; empty if none.
    pub fn equals_absence(&self, absence: &str) -> bool {
        match absence {
            "" => false,
            "[]" => match &self.body {
                Body::Array(_, items) => items.is_empty(),
                Body::Text(text) => is_empty(text, '[', ']'),
                _ => false,
            },
            absence => self.equals_text(absence),
        }
    }

    /// Returns the value with owned text.
    pub fn into_owned(self) -> Node<'static> {
        let body = match self.body {
            Body::Text(text) => Body::Text(Cow::Owned(text.into_owned())),
            Body::Object(_, members) => {
                Body::Object("", members.into_iter().map(Member::into_owned).collect())
            }
            Body::Array(_, items) => {
                Body::Array("", items.into_iter().map(Node::into_owned).collect())
            }
            Body::Removed => Body::Removed,
        };
        Node {
            at: self.at,
            variants: self.variants,
            changed: true,
            fixed: self.fixed,
            body,
        }
    }

    /// Sets `changed` on each object and array with a changed part; returns true if the value changed.
    pub fn update_changed(&mut self) -> bool {
        let mut changed = self.changed;
        match &mut self.body {
            Body::Object(_, members) => {
                for member in members {
                    changed |= member.value.update_changed();
                }
            }
            Body::Array(_, items) => {
                for item in items {
                    changed |= item.update_changed();
                }
            }
            Body::Text(_) | Body::Removed => {}
        }
        self.changed = changed;
        changed
    }

    /// Returns true if writing the value, which has no changes, yields exactly `text`, with or without space in it.
    pub fn is_text(&self, text: &str, has_space: bool) -> bool {
        let own = match &self.body {
            Body::Text(own) => &**own,
            Body::Object(own, _) | Body::Array(own, _) => own,
            Body::Removed => return false,
        };
        let is_line = !has_space || memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none();
        own.len() == text.len() && is_line
    }

    /// Appends the text of the value; [`update_changed`](Self::update_changed) must have been called.
    pub fn write(&self, out: &mut String) {
        match &self.body {
            Body::Text(text) => splice(text, out),
            Body::Object(text, _) | Body::Array(text, _) if !self.changed => splice(text, out),
            Body::Object(_, members) => {
                out.push('{');
                let mut comma = false;
                for member in members.iter().filter(|member| !member.value.is_removed()) {
                    if std::mem::replace(&mut comma, true) {
                        out.push(',');
                    }
                    write_string(&member.name, out);
                    out.push(':');
                    member.value.write(out);
                }
                out.push('}');
            }
            Body::Array(_, items) => {
                out.push('[');
                for (index, item) in items.iter().enumerate() {
                    if index > 0 {
                        out.push(',');
                    }
                    item.write(out);
                }
                out.push(']');
            }
            Body::Removed => {}
        }
    }

    /// Calls [`update_changed`](Self::update_changed), and returns the text of the value.
    pub fn current_text(&mut self) -> Cow<'t, str> {
        if !self.update_changed() {
            match &self.body {
                Body::Text(Cow::Borrowed(text)) | Body::Object(text, _) | Body::Array(text, _) => {
                    return Cow::Borrowed(text);
                }
                _ => {}
            }
        }
        let mut out = String::new();
        self.write(&mut out);
        Cow::Owned(out)
    }
}

impl<'t> Member<'t> {
    /// Creates an object member that the input does not have.
    pub fn new(name: impl Into<Cow<'t, str>>, value: Node<'t>) -> Self {
        Self {
            name: name.into(),
            value,
        }
    }

    fn into_owned(self) -> Member<'static> {
        Member {
            name: Cow::Owned(self.name.into_owned()),
            value: self.value.into_owned(),
        }
    }
}

/// Returns true if a text is an object or array without parts; `open` and `close` are its brackets.
fn is_empty(text: &str, open: char, close: char) -> bool {
    let inside = text.strip_prefix(open).and_then(|t| t.strip_suffix(close));
    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
}

/// Decodes the JSON text of a string; `None` for another value.
fn string(text: &str) -> Option<Cow<'_, str>> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        return from_str(text).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inside))
}

/// Appends a string as a JSON string.
fn write_string(text: &str, out: &mut String) {
    let is_plain = text
        .bytes()
        .all(|byte| byte >= b' ' && byte != b'"' && byte != b'\\');
    if is_plain {
        out.push('"');
        out.push_str(text);
        out.push('"');
    } else {
        out.push_str(&mcp_exact_wire::to_string(text));
    }
}

/// Appends JSON text on one line: a raw CR or LF is white space between tokens and is written as a space.
fn splice(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push(' ');
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

/// Returns the offset in the input for an offset in a part that begins at `base`; [`NOWHERE`] if `base` is.
fn below(base: usize, offset: usize) -> usize {
    if base == NOWHERE {
        NOWHERE
    } else {
        base + offset
    }
}

/// Parses an object one level deep; `base` is the offset of `text` in the input.
fn read_members(text: &str, base: usize) -> Option<Vec<Member<'_>>> {
    let mut r = Reader::of_checked(text);
    if r.kind() != Ok(Kind::Object) {
        return None;
    }
    let (mut first, mut members) = (true, Vec::new());
    while let Ok(Some(member)) = r.open_member(&mut first) {
        let at = below(base, offset(text, member.value));
        members.push(Member {
            name: member.name,
            value: Node::text(member.value, at),
        });
    }
    Some(members)
}

/// Parses an array one level deep; `base` is the offset of `text` in the input.
fn read_items(text: &str, base: usize) -> Option<Vec<Node<'_>>> {
    let mut r = Reader::of_checked(text);
    let mut items = Vec::new();
    let mut more = r.begin_array().ok()?;
    while more {
        let value = r.raw().ok()?;
        items.push(Node::text(value, below(base, offset(text, value))));
        more = r.next_item().ok()?;
    }
    Some(items)
}

/// Returns the offset of a substring in the text that contains it.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}
