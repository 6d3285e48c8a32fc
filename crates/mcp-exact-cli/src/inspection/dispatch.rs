//! Selects the union variant of a value, in the same way as the decoder of the types.
//!
//! The dispatch tables are part of the embedded data of each revision. `codegen/src/ir/unions.rs` defines the
//! serialised form of the tables; the decoder contains the same tables as code. The types are defined again here,
//! because this executable does not depend on the generator.

use mcp_exact_wire::Kind;
use serde::Deserialize;

use crate::value::Value;

/// Table that assigns a value of a union to one of its variants, which are identified by their indexes.
///
/// Known string values are omitted, because all string variants of these unions accept unknown values.
#[derive(Debug, Clone, Deserialize)]
pub struct Dispatch {
    /// Variant for strings.
    string: Option<usize>,
    /// Variant for numbers.
    number: Option<usize>,
    /// Variant for booleans.
    boolean: Option<usize>,
    /// Variant for null.
    null: Option<usize>,
    /// Indexes of the array variants; an empty array is assigned to the first one.
    arrays: Vec<usize>,
    /// Table that selects among several array variants by the first item of the array, which must be an object.
    items: Option<ObjectDispatch>,
    /// Table that selects among the object variants.
    objects: Option<ObjectDispatch>,
    /// True if an unknown value of the discriminant means an unknown variant instead of a mismatch.
    open: bool,
}

/// Table that assigns an object to a variant, by a discriminant member and by the presence of members.
#[derive(Debug, Clone, Deserialize)]
struct ObjectDispatch {
    /// Name of the discriminant member, if there is one.
    tag: Option<String>,
    /// Members whose presence is tested, each optionally with a member that its value must contain.
    probes: Vec<(String, Option<String>)>,
    /// Cases in the order in which they are tried; the first matching case selects the variant.
    cases: Vec<DispatchCase>,
    /// Pairs of members that exclude each other, as indexes of `probes`.
    exclusive: Vec<(usize, usize)>,
}

/// Condition that selects a variant.
#[derive(Debug, Clone, Deserialize)]
struct DispatchCase {
    /// Required value of the discriminant.
    tag: Tag,
    /// Indexes of the probes that must be present.
    has: Vec<usize>,
    /// Index of the selected variant.
    variant: usize,
}

/// Condition on the value of the discriminant member.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
enum Tag {
    /// The discriminant must have this value.
    Is(String),
    /// The discriminant must be absent.
    Absent,
    /// The discriminant may have any value that no earlier case requires, or be absent.
    Any,
}

/// Result of assigning a value to a variant of a union.
pub enum SelectedVariant<'d> {
    /// The variant with this index.
    Variant(usize),
    /// The discriminant has this value, which the revision does not define.
    Unrecognized(String),
    /// The value matches no variant, for the reason that is given as kind and message of the deviation.
    Mismatch(&'static str, String),
    /// The discriminant with this name is not a string.
    NonStringTag(&'d str),
    /// The first item of an array matches no variant, for the contained reason.
    FirstItem(Box<SelectedVariant<'d>>),
    /// The value matches no variant.
    None,
}

impl Dispatch {
    /// Returns the variant to which a value is assigned.
    pub fn select(&self, value: Value<'_>) -> SelectedVariant<'_> {
        let of_kind = match value.kind() {
            Kind::Null => self.null,
            Kind::Boolean => self.boolean,
            Kind::Number => self.number,
            Kind::String => self.string,
            Kind::Array => return self.select_array(value),
            Kind::Object => {
                return match &self.objects {
                    Some(by_member) => by_member.select(self.open, value),
                    None => SelectedVariant::None,
                };
            }
        };
        of_kind.map_or(SelectedVariant::None, SelectedVariant::Variant)
    }

    /// Returns the variant to which an array is assigned, by its first item if several variants are arrays.
    fn select_array(&self, value: Value<'_>) -> SelectedVariant<'_> {
        let items = value.items();
        let (Some(by_item), Some(first)) = (&self.items, items.first().map(Value::of)) else {
            let first = self.arrays.first().copied();
            return first.map_or(SelectedVariant::None, SelectedVariant::Variant);
        };
        let selected = if first.is_object() {
            by_item.select(false, first)
        } else {
            SelectedVariant::Mismatch("type", "expected an object".to_owned())
        };
        match selected {
            SelectedVariant::Variant(_) => selected,
            other => SelectedVariant::FirstItem(Box::new(other)),
        }
    }
}

impl ObjectDispatch {
    /// Returns the variant to which an object is assigned; if `open` is true, an unknown value of the discriminant is
    /// [`SelectedVariant::Unrecognized`].
    fn select(&self, open: bool, object: Value<'_>) -> SelectedVariant<'_> {
        let has = |(name, inner): &(String, Option<String>)| {
            let value = object.get(name);
            let has_inner = |inner: &String| value.get(inner).exists();
            value.exists() && inner.as_ref().is_none_or(has_inner)
        };
        let has: Vec<bool> = self.probes.iter().map(has).collect();
        for &(a, b) in &self.exclusive {
            if has[a] && has[b] {
                let (a, b) = (&self.probes[a].0, &self.probes[b].0);
                return SelectedVariant::Mismatch(
                    "exclusive",
                    format!("`{a}` and `{b}` exclude each other"),
                );
            }
        }
        let name = self.tag.as_deref();
        let value = name.and_then(|name| object.get(name).existing());
        let tag = match (value.map(Value::as_str), name) {
            (None, _) => None,
            (Some(Some(tag)), _) => Some(tag),
            (Some(None), name) => return SelectedVariant::NonStringTag(name.unwrap_or_default()),
        };
        let mut is_known = false;
        for case in &self.cases {
            let fits = match &case.tag {
                Tag::Is(value) => tag.as_deref() == Some(value.as_str()),
                Tag::Absent => tag.is_none(),
                Tag::Any => !is_known,
            };
            is_known |= fits && case.tag != Tag::Any;
            if fits && case.has.iter().all(|index| has[*index]) {
                return SelectedVariant::Variant(case.variant);
            }
        }
        match (tag, name) {
            (Some(tag), _) if !is_known && open => SelectedVariant::Unrecognized(tag.into_owned()),
            (None, Some(name)) => {
                SelectedVariant::Mismatch("required", format!("missing member `{name}`"))
            }
            _ => SelectedVariant::None,
        }
    }
}
