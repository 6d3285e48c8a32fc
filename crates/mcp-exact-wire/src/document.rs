//! JSON Schema documents within messages, kept as raw objects with a typed view on demand.
//!
//! Decoding checks only that documents are objects. `validate()` checks the members of a document against the
//! protocol's schema by a static table, and reports each member that deviates.

use std::fmt;
use std::marker::PhantomData;
use std::str::FromStr;

use crate::error::{DecodeError, DecodeFailed, ReadResult};
use crate::extra::report_additional;
use crate::order::duplicate;
use crate::reader::{Kind, Reader};
use crate::traits::{Decode, Encode};
use crate::validate::{Path, Validate, ViolationKind, Violations};
use crate::writer::Writer;
use crate::{Json, JsonObject, NotAnObject, Number, from_str};

/// Typed view of a JSON Schema document, with the rules of the protocol's schema for such documents.
pub trait DocumentView: Decode + Encode {
    /// Rules for the members that the protocol's schema defines.
    const RULES: &'static [DocumentRule];
    /// JSON text of the smallest valid document.
    const SMALLEST: &'static str;
    /// True if the document allows no members without a rule.
    const CLOSED: bool = false;
}

/// Rule for a document member that the protocol's schema defines.
#[derive(Debug, PartialEq, Eq)]
pub struct DocumentRule {
    /// Name of the member.
    pub name: &'static str,
    /// True if the member is required.
    pub required: bool,
    /// Rule for the value of the member.
    pub value: DocumentValue,
}

/// Rule for a value in a JSON Schema document.
#[derive(Debug, PartialEq, Eq)]
pub enum DocumentValue {
    /// Any value.
    Any,
    /// A string.
    String,
    /// A number with an integer value.
    Integer,
    /// A number.
    Number,
    /// A boolean.
    Boolean,
    /// Exactly this string.
    Const(&'static str),
    /// An array whose items follow this rule.
    Array(&'static DocumentValue),
    /// An object whose member values follow this rule.
    Object(&'static DocumentValue),
}

/// A JSON Schema document, kept as received JSON text; `V` is its typed view.
pub struct Document<V>(JsonObject, PhantomData<fn() -> V>);

impl<V: DocumentView> Document<V> {
    /// Creates the smallest document that the protocol's schema allows.
    pub fn new() -> Self {
        Self::from(
            Json::from_checked(V::SMALLEST)
                .try_into()
                .unwrap_or(JsonObject::new()),
        )
    }

    /// Decodes the members that the protocol's schema defines.
    ///
    /// # Errors
    /// [`DecodeError`] if a member violates the schema; the JSON pointer of the error is relative to this document.
    pub fn view(&self) -> Result<V, DecodeError> {
        from_str(self.0.text())
    }
}

impl<V> Document<V> {
    /// Returns the JSON text.
    pub fn text(&self) -> &str {
        self.0.text()
    }

    /// Returns the document as an untyped object.
    pub fn as_object(&self) -> &JsonObject {
        &self.0
    }

    /// Returns the document as an untyped object.
    pub fn into_object(self) -> JsonObject {
        self.0
    }
}

impl<V> From<JsonObject> for Document<V> {
    fn from(object: JsonObject) -> Self {
        Self(object, PhantomData)
    }
}

impl<V: DocumentView> From<V> for Document<V> {
    fn from(view: V) -> Self {
        let json = Json::from_encode(&view);
        Self::from(JsonObject::try_from(json).unwrap_or_default())
    }
}

impl<V> TryFrom<serde_json::Value> for Document<V> {
    type Error = NotAnObject;

    fn try_from(value: serde_json::Value) -> Result<Self, NotAnObject> {
        JsonObject::try_from(value).map(Self::from)
    }
}

impl<V> FromStr for Document<V> {
    type Err = DecodeError;

    fn from_str(text: &str) -> Result<Self, DecodeError> {
        from_str(text)
    }
}

impl<V: DocumentView> Default for Document<V> {
    fn default() -> Self {
        Self::new()
    }
}

impl<V> Clone for Document<V> {
    fn clone(&self) -> Self {
        Self(self.0.clone(), PhantomData)
    }
}

impl<V> PartialEq for Document<V> {
    fn eq(&self, other: &Self) -> bool {
        self.0 == other.0
    }
}

impl<V> Eq for Document<V> {}

impl<V> fmt::Debug for Document<V> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl<V> Decode for Document<V> {
    #[inline]
    fn decode(r: &mut Reader<'_>) -> ReadResult<Self> {
        JsonObject::decode(r).map(Self::from)
    }
}

impl<V> Encode for Document<V> {
    #[inline]
    fn encode(&self, w: &mut Writer<'_>) {
        self.0.encode(w);
    }
}

impl<V: DocumentView> Validate for Document<V> {
    fn check(&self, path: &Path<'_>, to: &mut Violations) {
        check_members(V::RULES, V::CLOSED, self.text(), path, to);
    }
}

/// Checks the members of a document in one pass. The text must be valid JSON, so that no step fails.
pub(crate) fn check_members(
    rules: &[DocumentRule],
    closed: bool,
    text: &str,
    path: &Path<'_>,
    to: &mut Violations,
) {
    let mut seen = vec![false; rules.len()];
    let walked = for_each_member(text, |name, value| {
        if let Some(at) = rules.iter().position(|rule| rule.name == name) {
            if std::mem::replace(&mut seen[at], true) {
                report_duplicate(&path.member(name), to);
            }
            check_value(&rules[at].value, value, &path.member(name), to);
        } else if closed {
            report_additional(&path.member(name), to);
        }
    });
    debug_assert_eq!(walked, Ok(()), "a document is a scanned object");
    for (rule, _) in rules
        .iter()
        .zip(seen)
        .filter(|(rule, seen)| rule.required && !seen)
    {
        to.report(path, ViolationKind::Required, || {
            format!("missing member `{}`", rule.name)
        });
    }
}

/// Returns a description of the first violation of a rule in the value `text` of a document member; `None` if there is
/// none.
pub(crate) fn member_violation(rule: &DocumentRule, text: &str) -> Option<String> {
    let mut violations = Violations::default();
    check_value(&rule.value, text, &Path::ROOT, &mut violations);
    let first = violations.listed().first()?;
    Some(first.message.clone())
}

/// Reports the deviations of one value from its rule.
fn check_value(rule: &DocumentValue, text: &str, path: &Path<'_>, to: &mut Violations) {
    let kind = Reader::new(text).kind();
    let (fits, what) = match rule {
        DocumentValue::Any => (true, ""),
        DocumentValue::String => (kind == Ok(Kind::String), "a string"),
        DocumentValue::Number => (kind == Ok(Kind::Number), "a number"),
        DocumentValue::Integer => (
            from_str(text).is_ok_and(|number: Number| number.is_integer()),
            "an integer",
        ),
        DocumentValue::Boolean => (kind == Ok(Kind::Boolean), "a boolean"),
        DocumentValue::Const(expected) => {
            if !from_str(text).is_ok_and(|value: String| value == *expected) {
                to.report(path, ViolationKind::Const, || {
                    format!("expected the constant {expected:?}")
                });
            }
            return;
        }
        DocumentValue::Array(_) => (kind == Ok(Kind::Array), "an array"),
        DocumentValue::Object(_) => (kind == Ok(Kind::Object), "an object"),
    };
    if !fits {
        to.report(path, ViolationKind::Type, || format!("expected {what}"));
        return;
    }
    match rule {
        DocumentValue::Object(inner) => {
            let is_typed = !matches!(inner, DocumentValue::Any);
            let mut names = Vec::new();
            let _ = for_each_member(text, |name, value| {
                if is_typed {
                    names.push(name.to_owned());
                }
                check_value(inner, value, &path.member(name), to);
            });
            if let Some(name) = duplicate(names.len(), &|at| &names[at]) {
                report_duplicate(&path.member(name), to);
            }
        }
        DocumentValue::Array(inner) => {
            let _ = for_each_item(text, |at, value| {
                check_value(inner, value, &path.index(at), to)
            });
        }
        _ => {}
    }
}

/// Reports a member that an object has twice.
fn report_duplicate(path: &Path<'_>, to: &mut Violations) {
    to.report(path, ViolationKind::Duplicate, || {
        "the member is there twice".to_owned()
    });
}

/// Calls `f` with the name and the JSON text of each member of an object.
fn for_each_member(text: &str, mut f: impl FnMut(&str, &str)) -> ReadResult<()> {
    let mut r = Reader::new(text);
    r.open_object()?;
    let mut first = true;
    while r.next_member(&mut first)?.is_some() {
        let name = r.name()?;
        r.colon()?;
        f(&name, r.raw()?);
    }
    Ok::<(), DecodeFailed>(())
}

/// Calls `f` with the index and the JSON text of each item of an array.
fn for_each_item(text: &str, mut f: impl FnMut(usize, &str)) -> ReadResult<()> {
    let mut r = Reader::new(text);
    let mut more = r.begin_array()?;
    let mut index = 0;
    while more {
        f(index, r.raw()?);
        index += 1;
        more = r.next_item()?;
    }
    Ok(())
}
