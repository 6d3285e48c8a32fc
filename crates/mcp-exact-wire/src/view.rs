//! Untyped JSON that is borrowed: one value, one object, and an object with other members in it.
//!
//! Takes text that was checked when it came in, so that only the ends of names and values are looked for. Returns parts
//! without copies; never builds a tree.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::DecodeError;
use crate::reader::{Kind, Reader};
use crate::scan::plain_end;
use crate::simd;
use crate::traits::{Decode, Encode, decode_from};
use crate::unescape::unescape_lossy;
use crate::writer::Writer;
use crate::{
    Direction, Json, JsonObject, Message, MessageError, RequestId, decode, encode_into, skip,
};

/// One JSON value, as a part of a larger text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JsonRef<'a>(&'a str);

impl<'a> JsonRef<'a> {
    /// Text that is one JSON value, without white space around it.
    pub(crate) fn from_checked(text: &'a str) -> Self {
        Self(text)
    }

    /// The text.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// Returns the kind of the value.
    pub fn kind(self) -> Kind {
        Reader::new(self.0).kind().unwrap_or(Kind::Null)
    }

    /// The object that it is; `None` for a value of another kind.
    pub fn object(self) -> Option<ObjectRef<'a>> {
        self.0.starts_with('{').then_some(ObjectRef(self.0))
    }

    /// The string that it is, owned only when it is written with escape sequences; `None` for a value of another kind, and
    /// for a string with a lone surrogate in it.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let inside = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inside.contains('\\') {
            self.decode_as().ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inside))
        }
    }

    /// A copy that is owned.
    pub fn to_json(self) -> Json {
        Json::from_checked(self.0)
    }

    /// Decodes the value as a generated type, exactly.
    ///
    /// # Errors
    /// [`DecodeError`] when the value is not of that type; its pointer starts at this value.
    pub fn decode_as<T: Decode>(self) -> Result<T, DecodeError> {
        decode_from(Reader::of_checked(self.0))
    }

    /// Decodes the value as a message, as [`decode_message`](crate::decode_message) does.
    ///
    /// # Errors
    /// The errors of [`decode_message`](crate::decode_message).
    pub fn decode_message<'m, D: Direction>(
        self,
        answers: &dyn Fn(&RequestId) -> Option<&'m str>,
    ) -> Result<Message<D>, MessageError> {
        decode::message(Reader::of_checked(self.0), self.0, answers)
    }
}

impl Encode for JsonRef<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put(self.0);
    }
}

/// One JSON object, as a part of a larger text.
///
/// If a name occurs twice, which untyped JSON allows, the last one counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectRef<'a>(&'a str);

/// From so many bytes on, a search for the name is worth its preparation.
const LONG: usize = 1024;
/// Up to so many names, searches for them cost less than the walk that they may save.
const FEW: usize = 3;

impl<'a> ObjectRef<'a> {
    /// Creates a view of text that was checked to be one JSON object, without white space around it. Outside semantic
    /// versioning.
    #[doc(hidden)]
    pub fn from_checked(text: &'a str) -> Self {
        Self(text)
    }

    /// The text.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// A copy that is owned.
    pub fn to_object(self) -> JsonObject {
        JsonObject::from_checked(self.0)
    }

    /// All members in order. A name with a lone surrogate in it has U+FFFD in its place.
    pub fn iter(self) -> impl Iterator<Item = (Cow<'a, str>, JsonRef<'a>)> {
        let value = move |member: &Member<'a>| JsonRef(&self.0[member.value.clone()]);
        self.members().map(move |member| {
            let value = value(&member);
            (member.name, value)
        })
    }

    /// The value of a member.
    pub fn find(self, name: &str) -> Option<JsonRef<'a>> {
        let [found] = self.find_each([name]);
        found
    }

    /// The values of several members, found in one walk. No two names are the same.
    pub fn find_each<const N: usize>(self, names: [&str; N]) -> [Option<JsonRef<'a>>; N] {
        let mut found = [None; N];
        if N <= FEW && self.0.len() >= LONG && !self.may_contain(&names) {
            return found;
        }
        for member in self.members() {
            if let Some(index) = names.iter().position(|name| *name == member.name) {
                found[index] = Some(JsonRef(&self.0[member.value]));
            }
        }
        found
    }

    /// The same for members that objects seldom have: short text without any of them is told by what follows its quotes, which
    /// takes a part of the time of a walk.
    pub fn find_rare<const N: usize>(self, names: [&str; N]) -> [Option<JsonRef<'a>>; N] {
        if self.0.len() < LONG && !may_begin(self.0.as_bytes(), &names) {
            return [None; N];
        }
        self.find_each(names)
    }

    /// The object with members set as [`JsonObject::insert`] sets them, for encoding. Those that are set to `None` stay as
    /// they are. No two names are the same.
    pub fn with<const N: usize>(
        self,
        set: [(&'a str, Option<JsonRef<'a>>); N],
    ) -> ObjectWith<'a, N> {
        let is_new = set.iter().all(|(_, value)| value.is_none());
        ObjectWith {
            object: self,
            set,
            is_new,
        }
    }

    /// The same for members that are known to be absent, such as by [`find_each`](Self::find_each): they are not looked for.
    /// A member that is present after all occurs twice afterwards.
    pub fn with_new<const N: usize>(
        self,
        set: [(&'a str, Option<JsonRef<'a>>); N],
    ) -> ObjectWith<'a, N> {
        ObjectWith {
            object: self,
            set,
            is_new: true,
        }
    }

    /// Returns true if one of the names is somewhere in the text, or something that could be another spelling of it: in long text
    /// a search that is much faster than a walk through the members. Letters can only be spelled differently by `\u`.
    fn may_contain(self, names: &[&str]) -> bool {
        let text = self.0.as_bytes();
        let is_plain = |name: &&str| name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_');
        if !names.iter().all(is_plain) {
            return true;
        }
        let is_there = |name: &&str| {
            let quoted = |at: usize| {
                let end = at + name.len();
                at > 0 && text[at - 1] == b'"' && text.get(end) == Some(&b'"')
            };
            memchr::memmem::find_iter(text, name.as_bytes()).any(quoted)
        };
        names.iter().any(is_there) || memchr::memmem::find(text, b"\\u").is_some()
    }

    /// All members in order: their names as they are spelled with their quotes, and their values.
    pub(crate) fn spelt_members(self) -> impl Iterator<Item = (&'a str, JsonRef<'a>)> {
        let mut members = self.members();
        std::iter::from_fn(move || {
            let (name, member) = members.next_spelt()?;
            Some((&self.0[name], JsonRef(&self.0[member.value])))
        })
    }

    fn members(self) -> Members<'a> {
        Members {
            text: self.0,
            at: 1,
        }
    }
}

/// Returns false if no quote in the text stands before the first two letters of a name, and nothing is spelled by `\u`: then none
/// of the names is there. They have to begin with two ASCII letters, digits or underscores.
fn may_begin<const N: usize>(text: &[u8], names: &[&str; N]) -> bool {
    /// A block, and the two letters after a quote at its end.
    const WINDOW: usize = simd::BLOCK + 2;
    let mut begins = [[0; 2]; N];
    for (begin, name) in begins.iter_mut().zip(names) {
        match name.as_bytes().first_chunk() {
            Some(letters)
                if letters
                    .iter()
                    .all(|b| b.is_ascii_alphanumeric() || *b == b'_') =>
            {
                *begin = *letters;
            }
            _ => return true,
        }
    }
    let begins_in = |window: &[u8; WINDOW]| {
        let Some(block) = window.first_chunk() else {
            return true;
        };
        let marks = simd::text_marks(block);
        let mut left = marks.quotes | marks.backslashes;
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            left &= left - 1;
            let letters = [window[place + 1], window[place + 2]];
            let may = match window[place] {
                b'"' => begins.contains(&letters),
                _ => letters[0] == b'u',
            };
            if may {
                return true;
            }
        }
        false
    };
    let Some(last) = text.last_chunk() else {
        return true;
    };
    let mut rest = text;
    while let Some(window) = rest.first_chunk() {
        if begins_in(window) {
            return true;
        }
        rest = &rest[simd::BLOCK..];
    }
    begins_in(last)
}

impl Default for ObjectRef<'_> {
    /// The empty object.
    fn default() -> Self {
        Self("{}")
    }
}

impl Encode for ObjectRef<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put(self.0);
    }
}

/// A member's name, and the value that it is set to.
type Set<'a> = (&'a str, Option<JsonRef<'a>>);

/// An object with some members set, which is written without being built.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectWith<'a, const N: usize> {
    object: ObjectRef<'a>,
    set: [Set<'a>; N],
    /// True if none of them is in the object.
    is_new: bool,
}

impl<const N: usize> ObjectWith<'_, N> {
    /// Returns the approximate size in bytes: exact if no name needs an escape and none occurs twice.
    pub fn size(&self) -> usize {
        let set = self.set.iter();
        let set = set.filter_map(|(name, value)| Some(name.len() + (*value)?.0.len() + 4));
        self.object.0.len() + set.sum::<usize>()
    }
}

impl<const N: usize> Encode for ObjectWith<'_, N> {
    fn encode(&self, w: &mut Writer<'_>) {
        const { assert!(N <= 64, "at most 64 members are set at once") };
        encode_with(self.object, &self.set, self.is_new, w);
    }
}

/// Writes an object with members set; all of them are absent from the object if `is_new`.
#[inline(never)]
fn encode_with(object: ObjectRef<'_>, set: &[Set<'_>], is_new: bool, w: &mut Writer<'_>) {
    let text = object.0;
    let (mut written, mut at) = (0_u64, 0);
    let mut members = (!is_new).then(|| object.members());
    for member in members.iter_mut().flatten() {
        if let Some(index) = set.iter().position(|(name, _)| *name == member.name)
            && let Some(value) = set[index].1
        {
            w.put(&text[at..member.value.start]);
            w.put(value.0);
            at = member.value.end;
            written |= 1 << index;
        }
    }
    let rest = &text[at..];
    let set = set.iter().enumerate();
    let mut left = set.filter_map(|(index, (name, value))| {
        let value = value.filter(|_| written >> index & 1 == 0)?;
        Some((*name, value))
    });
    let first = left.next();
    let Some(open) = rest.strip_suffix('}').filter(|_| first.is_some()) else {
        return w.put(rest);
    };
    // The comma before a name is the writer's to put: what encloses this object may have begun it.
    let blank = at == 0 && open.trim_end() == "{";
    w.put(if blank { "{" } else { open });
    for (name, value) in first.into_iter().chain(left) {
        w.name(name);
        w.put(value.0);
    }
    w.put("}");
}

impl<const N: usize> From<ObjectWith<'_, N>> for JsonObject {
    /// The object that is written.
    fn from(object: ObjectWith<'_, N>) -> Self {
        let mut out = Vec::with_capacity(object.size());
        encode_into(&object, &mut out);
        Self::from_checked_text(String::from_utf8(out).unwrap_or_default())
    }
}

/// The members of an object: only their ends are looked for.
struct Members<'a> {
    text: &'a str,
    at: usize,
}

/// A member: its name, and the position of its value.
struct Member<'a> {
    name: Cow<'a, str>,
    value: Range<usize>,
}

impl<'a> Members<'a> {
    /// The next byte that is no white space and none of `but`.
    fn skip(&mut self, but: u8) -> Option<u8> {
        let bytes = self.text.as_bytes();
        loop {
            let byte = *bytes.get(self.at)?;
            if !matches!(byte, b' ' | b'\t' | b'\n' | b'\r') && byte != but {
                return Some(byte);
            }
            self.at += 1;
        }
    }

    /// The next member, and where its name is with its quotes.
    fn next_spelt(&mut self) -> Option<(Range<usize>, Member<'a>)> {
        if self.skip(b',')? != b'"' {
            return None;
        }
        let name_start = self.at;
        let name = self.name()?;
        let spelt = name_start..self.at;
        self.skip(b':')?;
        let start = self.at;
        self.at = skip::value_end(self.text.as_bytes(), start)?;
        let value = start..self.at;
        Some((spelt, Member { name, value }))
    }

    /// The name at this place; owned only when it is written with escape sequences.
    fn name(&mut self) -> Option<Cow<'a, str>> {
        let (bytes, start) = (self.text.as_bytes(), self.at + 1);
        let mut end = plain_end(bytes, start);
        if *bytes.get(end)? == b'"' {
            self.at = end + 1;
            return Some(Cow::Borrowed(self.text.get(start..end)?));
        }
        end = skip::string_end(bytes, end)?;
        self.at = end;
        let inside = self.text.get(start..end - 1)?;
        Some(Cow::Owned(unescape_lossy(inside)))
    }
}

impl<'a> Iterator for Members<'a> {
    type Item = Member<'a>;

    #[inline]
    fn next(&mut self) -> Option<Self::Item> {
        self.next_spelt().map(|(_, member)| member)
    }
}
