//! Selects the union variant of a value, in the same way as the decoders of the types, whose code contains the same
//! tables.

use mcp_exact_wire::{DecodeErrorKind, Kind, ReadResult, from_str};

use super::value::Value;
use crate::{Dispatch, ObjectDispatch, Tag};

/// Result of assigning a value to a variant of a union.
pub(super) enum Selected<'d> {
    /// The variant with this index.
    Variant(usize),
    /// The discriminant has this value, which the revision does not define, and the union keeps such values.
    Unrecognized(String),
    /// The value matches no variant.
    Mismatch(Mismatch<'d>),
}

/// Reason why a value matches no variant of its union.
pub(super) struct Mismatch<'d> {
    /// True if the reason is within the first item of the array.
    pub is_in_first_item: bool,
    /// The discriminant, if its value is the reason.
    pub member: Option<&'d str>,
    /// Position of the reason in the document, in bytes.
    pub at: usize,
    /// Kind of the violated rule.
    pub kind: DecodeErrorKind,
    /// Description of the reason.
    pub message: String,
}

impl<'d> Mismatch<'d> {
    /// Creates the reason for a value.
    fn of(value: Value<'_>, kind: DecodeErrorKind, message: impl Into<String>) -> Self {
        Self {
            is_in_first_item: false,
            member: None,
            at: value.at,
            kind,
            message: message.into(),
        }
    }

    /// Creates the reason that no variant of the union fits.
    fn no_variant(union: &str, value: Value<'_>) -> Self {
        let message = format!("no variant of `{union}` fits");
        Self::of(value, DecodeErrorKind::Union, message)
    }
}

/// Selects the variant of a value of the union with this name.
///
/// # Errors
/// As [`Members`](super::value::Members).
pub(super) fn select<'d>(
    dispatch: &'d Dispatch,
    union: &str,
    value: Value<'_>,
) -> ReadResult<Selected<'d>> {
    let scalars = [
        dispatch.string,
        dispatch.number,
        dispatch.boolean,
        dispatch.null,
    ];
    let has_objects_only = scalars == [None; 4] && dispatch.arrays.is_empty();
    let of_kind = match value.kind {
        Kind::Null => dispatch.null,
        Kind::Boolean => dispatch.boolean,
        Kind::Number => dispatch.number,
        Kind::String if dispatch.values.is_empty() => dispatch.string,
        Kind::String => return Ok(select_string(dispatch, union, value)),
        Kind::Array if dispatch.arrays.is_empty() => None,
        Kind::Array => return select_array(dispatch, union, value),
        Kind::Object => None,
    };
    Ok(match (of_kind, &dispatch.objects) {
        (Some(index), _) => Selected::Variant(index),
        (None, Some(objects)) if has_objects_only || value.kind == Kind::Object => {
            match objects.only_variant() {
                Some(only) if !dispatch.open => Selected::Variant(only),
                _ => select_object(objects, dispatch.open, union, value)?,
            }
        }
        _ => Selected::Mismatch(Mismatch::no_variant(union, value)),
    })
}

/// Selects the variant of a string, which may be in one of the sets of known values.
fn select_string<'d>(dispatch: &'d Dispatch, union: &str, value: Value<'_>) -> Selected<'d> {
    let text: String = match from_str(value.text) {
        Ok(text) => text,
        Err(error) => {
            return Selected::Mismatch(Mismatch::of(value, error.kind(), error.detail()));
        }
    };
    let mut sets = dispatch.values.iter();
    let known = sets.find_map(|(values, index)| values.contains(&text).then_some(*index));
    match known.or(dispatch.string) {
        Some(index) => Selected::Variant(index),
        None => Selected::Mismatch(Mismatch::no_variant(union, value)),
    }
}

/// Selects the variant of an array, by its first item if several variants are arrays.
fn select_array<'d>(
    dispatch: &'d Dispatch,
    union: &str,
    value: Value<'_>,
) -> ReadResult<Selected<'d>> {
    let first = value.first_item()?;
    let (Some(by_item), Some(item)) = (&dispatch.items, first) else {
        return Ok(match dispatch.arrays.first() {
            Some(index) => Selected::Variant(*index),
            None => Selected::Mismatch(Mismatch::no_variant(union, value)),
        });
    };
    Ok(match select_object(by_item, true, union, item)? {
        Selected::Variant(index) if dispatch.arrays.contains(&index) => Selected::Variant(index),
        Selected::Mismatch(mismatch) => Selected::Mismatch(Mismatch {
            is_in_first_item: true,
            ..mismatch
        }),
        _ => Selected::Mismatch(Mismatch::no_variant(union, value)),
    })
}

/// Selects the variant of an object; an unknown value of the discriminant is [`Selected::Unrecognized`] if `open` is
/// true.
fn select_object<'d>(
    objects: &'d ObjectDispatch,
    open: bool,
    union: &str,
    value: Value<'_>,
) -> ReadResult<Selected<'d>> {
    if value.kind != Kind::Object {
        let message = "expected an object";
        return Ok(Selected::Mismatch(Mismatch::of(
            value,
            DecodeErrorKind::Type,
            message,
        )));
    }
    let tag = match find_tag(objects, value)? {
        Ok(tag) => tag,
        Err(mismatch) => return Ok(Selected::Mismatch(mismatch)),
    };
    let has = find_probes(objects, value)?;
    for &(a, b) in &objects.exclusive {
        if has[a] && has[b] {
            let (a, b) = (&objects.probes[a].0, &objects.probes[b].0);
            let message = format!("`{a}` and `{b}` exclude each other");
            let mismatch = Mismatch::of(value, DecodeErrorKind::Exclusive, message);
            return Ok(Selected::Mismatch(mismatch));
        }
    }
    let mut is_known = false;
    for case in &objects.cases {
        let fits = match &case.tag {
            Tag::Is(known) => tag.as_deref() == Some(known.as_str()),
            Tag::Absent => tag.is_none(),
            Tag::Any => !is_known,
        };
        is_known |= fits && case.tag != Tag::Any;
        if fits && case.has.iter().all(|index| has[*index]) {
            return Ok(Selected::Variant(case.variant));
        }
    }
    Ok(match (tag, &objects.tag) {
        (Some(tag), _) if !is_known && open => Selected::Unrecognized(tag),
        (None, Some(name)) => {
            let message = format!("missing member `{name}`");
            Selected::Mismatch(Mismatch::of(value, DecodeErrorKind::Required, message))
        }
        _ => Selected::Mismatch(Mismatch::no_variant(union, value)),
    })
}

/// Returns the value of the discriminant: of the first one, if the object has it twice. A discriminant that is no string
/// is an error.
fn find_tag<'d>(
    objects: &'d ObjectDispatch,
    value: Value<'_>,
) -> ReadResult<Result<Option<String>, Mismatch<'d>>> {
    let Some(name) = objects.tag.as_deref() else {
        return Ok(Ok(None));
    };
    for member in value.members() {
        let member = member?;
        if member.name != name {
            continue;
        }
        return Ok(match from_str::<String>(member.value.text) {
            Ok(tag) => Ok(Some(tag)),
            Err(error) => Err(Mismatch {
                member: Some(name),
                ..Mismatch::of(member.value, error.kind(), error.detail())
            }),
        });
    }
    Ok(Ok(None))
}

/// Returns for each probe whether the object has its member.
fn find_probes(objects: &ObjectDispatch, value: Value<'_>) -> ReadResult<Vec<bool>> {
    let mut found = vec![false; objects.probes.len()];
    if found.is_empty() {
        return Ok(found);
    }
    for member in value.members() {
        let member = member?;
        for (has, (name, inner)) in found.iter_mut().zip(&objects.probes) {
            if member.name == *name {
                *has |= match inner {
                    Some(inner) => member.value.has(inner)?,
                    None => true,
                };
            }
        }
    }
    Ok(found)
}
