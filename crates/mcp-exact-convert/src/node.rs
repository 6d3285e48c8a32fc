//! Tree of a value that is being converted: unchanged text, or an object or array of which some members or items change.
//!
//! Only what some step may change is taken apart. Writing splices the text of everything that did not change.

use std::borrow::Cow;

use mcp_exact_wire::{Kind, Reader, from_str};

/// The place of values that the input does not have.
pub const NOWHERE: usize = usize::MAX;

/// The number of a variant that the union does not define.
pub const UNKNOWN: u8 = u8::MAX - 1;

/// A value.
#[derive(Debug, Clone)]
pub struct Node<'t> {
    /// Offset of the value in the input, in bytes, or [`NOWHERE`].
    pub at: usize,
    /// The variants of unions that it is, the outermost in the lowest byte, each plus one.
    pub variants: u32,
    /// True if the text has changed.
    pub changed: bool,
    /// Part of the value that no step changes.
    pub fixed: Fixed,
    pub body: Body<'t>,
}

/// Part of a value that no step of a conversion changes, as the reader found.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fixed {
    /// Nothing is known.
    No,
    /// Each of its members or items, but a step may do something with the value itself.
    Parts,
    /// All of it: steps pass over it.
    Whole,
}

/// Content of a value.
#[derive(Debug, Clone)]
pub enum Body<'t> {
    /// Text that is one JSON value, without white space around it.
    Text(Cow<'t, str>),
    /// An object, and its text while nothing in it changes.
    Object(&'t str, Vec<Member<'t>>),
    /// An array, and its text while nothing in it changes.
    Array(&'t str, Vec<Node<'t>>),
    /// It is left out of the object that holds it.
    Removed,
}

/// A member of an object.
#[derive(Debug, Clone)]
pub struct Member<'t> {
    pub name: Cow<'t, str>,
    pub value: Node<'t>,
}

impl<'t> Node<'t> {
    /// Text of the input, or of a part that begins at `at`.
    pub fn text(text: &'t str, at: usize) -> Self {
        Self {
            at,
            variants: 0,
            changed: false,
            fixed: Fixed::No,
            body: Body::Text(Cow::Borrowed(text)),
        }
    }

    /// A value that the input does not have.
    pub fn made(text: impl Into<Cow<'t, str>>) -> Self {
        Self {
            at: NOWHERE,
            variants: 0,
            changed: true,
            fixed: Fixed::No,
            body: Body::Text(text.into()),
        }
    }

    /// A string that the input does not have.
    pub fn made_string(text: &str) -> Self {
        Self::made(mcp_exact_wire::to_string(text))
    }

    /// Returns an object that the input does not have, in place of the value at `at`.
    pub fn made_object(members: Vec<Member<'t>>, at: usize) -> Self {
        Self {
            at,
            variants: 0,
            changed: true,
            fixed: Fixed::No,
            body: Body::Object("", members),
        }
    }

    /// An array that the input does not have.
    pub fn made_array(items: Vec<Self>, at: usize) -> Self {
        Self {
            at,
            variants: 0,
            changed: true,
            fixed: Fixed::No,
            body: Body::Array("", items),
        }
    }

    /// Says that the value is a variant of a union.
    pub fn push_variant(&mut self, variant: u8) {
        self.variants = self.variants << 8 | (u32::from(variant) + 1);
    }

    /// Takes away the outermost variant.
    pub fn pop_variant(&mut self) -> Option<u8> {
        let variant = (self.variants & 0xff).checked_sub(1)?;
        self.variants >>= 8;
        u8::try_from(variant).ok()
    }

    /// Passes the mark of an unchanged value on to its parts: no step changes them if none changed the whole.
    ///
    /// The value itself is open to changes then, unless it is a variant of a union: nothing changes one of those but its own
    /// rule, and its variant is that of the source revision.
    fn hands_down(&mut self) -> bool {
        if self.fixed == Fixed::No {
            return false;
        }
        if self.variants == 0 {
            self.fixed = Fixed::Parts;
        }
        true
    }

    pub fn is_removed(&self) -> bool {
        matches!(self.body, Body::Removed)
    }

    /// The members of an object, which is taken apart one level; `None` for another value.
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
            if let (true, Body::Object(_, members)) = (self.hands_down(), &mut body) {
                let values = members.iter_mut().map(|member| &mut member.value);
                values.for_each(|value| value.fixed = Fixed::Whole);
            }
            self.body = body;
        }
        match &mut self.body {
            Body::Object(_, members) => Some(members),
            _ => None,
        }
    }

    /// The items of an array, which is taken apart one level; `None` for another value.
    pub fn items(&mut self) -> Option<&mut Vec<Self>> {
        if let Body::Text(text) = &self.body {
            let mut body = match text {
                Cow::Borrowed(text) => Body::Array(text, read_items(text, self.at)?),
                Cow::Owned(text) => {
                    let items = read_items(text, NOWHERE)?;
                    Body::Array("", items.into_iter().map(Node::into_owned).collect())
                }
            };
            if let (true, Body::Array(_, items)) = (self.hands_down(), &mut body) {
                items.iter_mut().for_each(|item| item.fixed = Fixed::Whole);
            }
            self.body = body;
        }
        match &mut self.body {
            Body::Array(_, items) => Some(items),
            _ => None,
        }
    }

    /// The value of a member, when it is an object that has one.
    pub fn member(&mut self, name: &str) -> Option<&mut Self> {
        let members = self.members()?;
        let member = members.iter_mut().find(|member| member.name == name)?;
        (!member.value.is_removed()).then_some(&mut member.value)
    }

    /// Takes a member out of the object.
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

    /// The string that it is.
    pub fn string(&self) -> Option<Cow<'_, str>> {
        match &self.body {
            Body::Text(text) => string(text),
            _ => None,
        }
    }

    /// The kind of value that it is.
    pub fn kind(&self) -> Kind {
        match &self.body {
            Body::Text(text) => Reader::new(text).kind().unwrap_or(Kind::Null),
            Body::Object(..) => Kind::Object,
            Body::Array(..) => Kind::Array,
            Body::Removed => Kind::Null,
        }
    }

    /// Returns true if it is an object without members.
    pub fn is_empty_object(&self) -> bool {
        match &self.body {
            Body::Object(_, members) => members.iter().all(|member| member.value.is_removed()),
            Body::Text(text) => {
                let inside = text.strip_prefix('{').and_then(|t| t.strip_suffix('}'));
                inside.is_some_and(|inside| inside.trim_ascii().is_empty())
            }
            _ => false,
        }
    }

    /// Returns true if the value equals a text of the tables: a string, a number in its spelling, `{}` or `null`.
    pub fn says(&self, text: &str) -> bool {
        if text == "{}" {
            return self.is_empty_object();
        }
        match (&self.body, string(text)) {
            (Body::Text(own), None) => own == text,
            (Body::Text(own), wanted) => string(own) == wanted,
            _ => false,
        }
    }

    /// Returns true if the value means the same as the absence of the member: `absence` is the text of that value, or empty.
    pub fn says_nothing(&self, absence: &str) -> bool {
        match absence {
            "" => false,
            "[]" => match &self.body {
                Body::Array(_, items) => items.is_empty(),
                Body::Text(text) => {
                    let inside = text.strip_prefix('[').and_then(|t| t.strip_suffix(']'));
                    inside.is_some_and(|inside| inside.trim_ascii().is_empty())
                }
                _ => false,
            },
            absence => self.says(absence),
        }
    }

    /// The same value without a place in a text that goes away.
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

    /// Sees to it that each container knows whether something in it changed.
    pub fn settle(&mut self) -> bool {
        let mut changed = self.changed;
        match &mut self.body {
            Body::Object(_, members) => {
                for member in members {
                    changed |= member.value.settle();
                }
            }
            Body::Array(_, items) => {
                for item in items {
                    changed |= item.settle();
                }
            }
            Body::Text(_) | Body::Removed => {}
        }
        self.changed = changed;
        changed
    }

    /// Returns true if writing the value, in which nothing changed, gives `text` again.
    pub fn is_text(&self, text: &str) -> bool {
        let own = match &self.body {
            Body::Text(own) => &**own,
            Body::Object(own, _) | Body::Array(own, _) => own,
            Body::Removed => return false,
        };
        own.len() == text.len() && memchr::memchr2(b'\n', b'\r', text.as_bytes()).is_none()
    }

    /// Appends the text of a settled value.
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

    /// The text of the value.
    pub fn settled_text(&mut self) -> Cow<'t, str> {
        if !self.settle() {
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
    /// A member of an object that the input does not have.
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

/// The string that a text is.
fn string(text: &str) -> Option<Cow<'_, str>> {
    let inside = text.strip_prefix('"')?.strip_suffix('"')?;
    if inside.contains('\\') {
        return from_str(text).ok().map(Cow::Owned);
    }
    Some(Cow::Borrowed(inside))
}

/// Appends a string as JSON writes it.
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

/// Appends JSON text. A raw CR or LF in it is white space between tokens and is written as a space, so that the output is
/// one line.
fn splice(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some(at) = memchr::memchr2(b'\n', b'\r', rest.as_bytes()) {
        out.push_str(&rest[..at]);
        out.push(' ');
        rest = &rest[at + 1..];
    }
    out.push_str(rest);
}

fn below(base: usize, offset: usize) -> usize {
    if base == NOWHERE {
        NOWHERE
    } else {
        base + offset
    }
}

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

/// Returns the offset of a part in its whole.
fn offset(whole: &str, part: &str) -> usize {
    part.as_ptr().addr() - whole.as_ptr().addr()
}
