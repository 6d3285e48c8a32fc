//! Borrowed untyped JSON: one value, one object, and an object with changed members.
//!
//! The text was validated when it was received, so that only the ends of names and values are searched. Parts are
//! returned without copies.

use std::borrow::Cow;
use std::ops::Range;

use crate::error::DecodeError;
use crate::order::duplicate;
use crate::reader::{Kind, Reader};
use crate::scan::plain_end;
use crate::simd;
use crate::skip;
use crate::traits::{Decode, Encode, decode_from};
use crate::unescape::unescape_lossy;
use crate::writer::Writer;

/// One JSON value as borrowed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct JsonRef<'a>(&'a str);

impl<'a> JsonRef<'a> {
    /// Creates a view of text that was already checked to be one JSON value, without surrounding white space.
    pub(crate) fn from_checked(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the JSON text.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// Returns the kind of the value.
    pub fn kind(self) -> Kind {
        Reader::new(self.0).kind().unwrap_or(Kind::Null)
    }

    /// Returns the value as an object; `None` for a value of another kind.
    pub fn object(self) -> Option<ObjectRef<'a>> {
        self.0.starts_with('{').then_some(ObjectRef(self.0))
    }

    /// Returns the value as a string, owned only if the text has escape sequences; `None` for a value of another kind,
    /// and for a string with a lone surrogate.
    pub fn as_str(self) -> Option<Cow<'a, str>> {
        let inside = self.0.strip_prefix('"')?.strip_suffix('"')?;
        if inside.contains('\\') {
            self.decode_as().ok().map(Cow::Owned)
        } else {
            Some(Cow::Borrowed(inside))
        }
    }

    /// Decodes the value as a generated type, exactly.
    ///
    /// # Errors
    /// [`DecodeError`] if the value does not match the type; the pointer of the error is relative to this value.
    pub fn decode_as<T: Decode>(self) -> Result<T, DecodeError> {
        decode_from(Reader::of_checked(self.0))
    }
}

impl Encode for JsonRef<'_> {
    fn encode(&self, w: &mut Writer<'_>) {
        w.put(self.0);
    }
}

/// One JSON object as borrowed text.
///
/// If a name occurs twice, which untyped JSON allows, the last member with the name is found.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ObjectRef<'a>(&'a str);

/// Minimum length of a text, in bytes, from which on a substring search takes less time than a scan of the members.
const MIN_SEARCH_LENGTH: usize = 1024;
/// Maximum number of names for which substring searches cost less than a scan of the members.
const MAX_SEARCHED_NAMES: usize = 3;

impl<'a> ObjectRef<'a> {
    /// Creates a view of text that was checked to be one JSON object, without white space around it. Outside semantic
    /// versioning.
    #[doc(hidden)]
    pub fn from_checked(text: &'a str) -> Self {
        Self(text)
    }

    /// Returns the JSON text.
    pub fn text(self) -> &'a str {
        self.0
    }

    /// Iterates over all members in order. A lone surrogate in a name is replaced by U+FFFD.
    pub fn iter(self) -> impl Iterator<Item = (Cow<'a, str>, JsonRef<'a>)> {
        let value = move |member: &Member<'a>| JsonRef(&self.0[member.value.clone()]);
        self.members().map(move |member| {
            let value = value(&member);
            (member.name, value)
        })
    }

    /// Returns the value of a member.
    pub fn find(self, name: &str) -> Option<JsonRef<'a>> {
        let [found] = self.find_each([name]);
        found
    }

    /// Returns the value of the first member with a name, without reading what follows: that of [`find`](Self::find) in
    /// an object whose names are distinct. Outside semantic versioning.
    #[doc(hidden)]
    pub fn find_first(self, name: &str) -> Option<JsonRef<'a>> {
        let mut members = self.members();
        let found = members.find(|member| name == member.name)?;
        Some(JsonRef(&self.0[found.value]))
    }

    /// Returns the values of several members, found in one scan. The names must be distinct.
    pub fn find_each<const N: usize>(self, names: [&str; N]) -> [Option<JsonRef<'a>>; N] {
        let mut found = [None; N];
        if N <= MAX_SEARCHED_NAMES && self.0.len() >= MIN_SEARCH_LENGTH && !self.may_contain(&names)
        {
            return found;
        }
        for member in self.members() {
            if let Some(index) = names.iter().position(|name| *name == member.name) {
                found[index] = Some(JsonRef(&self.0[member.value]));
            }
        }
        found
    }

    /// Returns the values of several members that objects rarely have. A short text without any of the names is
    /// recognised by the bytes after its quotes, which takes less time than a scan of the members.
    pub fn find_rare<const N: usize>(self, names: [&str; N]) -> [Option<JsonRef<'a>>; N] {
        if self.0.len() < MIN_SEARCH_LENGTH && !may_begin(self.0.as_bytes(), &names) {
            return [None; N];
        }
        self.find_each(names)
    }

    /// Returns the name of a member that is there twice, in this object or anywhere below it; the values of the members of
    /// this object that are named `opaque` are not searched. Outside semantic versioning.
    #[doc(hidden)]
    pub fn repeated_member(self, opaque: &[&str]) -> Option<String> {
        let bytes = self.0.as_bytes();
        // The names of each open object; `None` for an array.
        let mut open: Vec<Option<Vec<Cow<'_, str>>>> = Vec::new();
        let (mut at, mut is_name) = (0, false);
        while let Some(byte) = bytes.get(at) {
            match byte {
                b'"' if is_name => {
                    let mut member = Members { text: self.0, at };
                    let name = member.name()?;
                    (at, is_name) = (member.at, false);
                    if open.len() == 1 && opaque.contains(&&*name) {
                        Members::skip(&mut member, b':')?;
                        at = skip::value_end(bytes, member.at)?;
                    }
                    if let Some(Some(names)) = open.last_mut() {
                        names.push(name);
                    }
                    continue;
                }
                b'"' => {
                    at = skip::value_end(bytes, at)?;
                    continue;
                }
                b'{' => open.push(Some(Vec::new())),
                b'[' => open.push(None),
                b'}' | b']' => {
                    let names = open.pop().flatten().unwrap_or_default();
                    if let Some(name) = duplicate(names.len(), &|at| &*names[at]) {
                        return Some(name.to_owned());
                    }
                }
                _ => {}
            }
            if matches!(byte, b'{' | b'[' | b',') {
                is_name = matches!(open.last(), Some(Some(_)));
            }
            at += 1;
        }
        None
    }

    /// Returns the object with members set like [`JsonObject::insert`](crate::JsonObject::insert), for encoding. A member that is set to `None` is
    /// unchanged; [`JsonObject::remove`](crate::JsonObject::remove) removes one. The names must be distinct.
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

    /// Returns the object with new members. The members must be absent, which [`find_each`](Self::find_each) can
    /// establish, because the object is not searched for them; a member that is present would occur twice.
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

    /// Returns true if one of the names may occur in the text: a name itself, or a `\u` escape sequence, which is the
    /// only other spelling of letters. In long text, the search is much faster than a scan of the members.
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

    /// Iterates over all members in order, with the names as spelled, including quotes.
    pub(crate) fn spelt_members(self) -> impl Iterator<Item = (&'a str, JsonRef<'a>)> {
        let mut members = self.members();
        std::iter::from_fn(move || {
            let (name, member) = members.next_spelt()?;
            Some((&self.0[name], JsonRef(&self.0[member.value])))
        })
    }

    /// Iterates over the members.
    fn members(self) -> Members<'a> {
        Members {
            text: self.0,
            at: 1,
        }
    }
}

/// Returns false if the text has no quote followed by the first two letters of a name, and no `\u`, so that it contains
/// none of the names. The names must begin with two ASCII letters, digits or underscores.
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
        let (Some(block), Some(next)) = (window.first_chunk(), window[1..].first_chunk()) else {
            return true;
        };
        let marks = simd::text_marks(block);
        if marks.backslashes & simd::byte_marks(next, b'u') != 0 {
            return true;
        }
        // A quote after a backslash begins no name.
        let mut left = marks.quotes & !(marks.backslashes << 1);
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            left &= left - 1;
            if begins.contains(&[window[place + 1], window[place + 2]]) {
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

/// Name of a member, and its new value.
type SetMember<'a> = (&'a str, Option<JsonRef<'a>>);

/// Object with some members set, which is encoded without an intermediate copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectWith<'a, const N: usize> {
    /// The object with its previous members.
    object: ObjectRef<'a>,
    /// The members to set.
    set: [SetMember<'a>; N],
    /// True if the object has none of the members to set.
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

/// Writes an object with members set; if `is_new` is true, all of them must be absent from the object.
#[inline(never)]
fn encode_with(object: ObjectRef<'_>, set: &[SetMember<'_>], is_new: bool, w: &mut Writer<'_>) {
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
    // The writer appends the comma before a name, because the enclosing object may already have members.
    let blank = at == 0 && open.trim_end() == "{";
    w.put(if blank { "{" } else { open });
    for (name, value) in first.into_iter().chain(left) {
        w.name(name);
        w.put(value.0);
    }
    w.put("}");
}

/// Iterator over the members of a valid object.
struct Members<'a> {
    /// JSON text of the object.
    text: &'a str,
    /// Position of the iterator, in bytes.
    at: usize,
}

/// Member of an object: its name, and the position of its value.
struct Member<'a> {
    /// Name of the member.
    name: Cow<'a, str>,
    /// Range of the JSON text of the value, in bytes.
    value: Range<usize>,
}

impl<'a> Members<'a> {
    /// Skips white space and bytes equal to `but`; returns the next byte without consuming it.
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

    /// Returns the next member, and the position of its name, including quotes.
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

    /// Returns the name at the current offset, owned only if the text has escape sequences.
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
