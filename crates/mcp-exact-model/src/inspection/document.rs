//! Inspects JSON Schema documents within messages, which the types keep as text: decoders tolerate every deviation of
//! their members.

use mcp_exact_wire::{Kind, Number, Path, ViolationKind, from_str};

use super::inspector::Inspector;
use super::value::{Duplicates, Value};
use crate::{Ir, Member, MemberValue, Shape, Type};

/// Inspects the members of a document, which is an object; `closed` is true if it allows no others.
pub(super) fn inspect<'i>(
    inspector: &mut Inspector<'i>,
    (members, closed): (&'i [Member], bool),
    value: Value<'_>,
    path: &Path<'_>,
) {
    let names = members.iter().map(|member| member.name.as_str());
    let found = inspector.parts(value, path, value.has_each(names));
    for (member, _) in members
        .iter()
        .zip(found)
        .filter(|(member, is_there)| member.required && !is_there)
    {
        let message = || format!("missing member `{}`", member.name);
        inspector.report(value.at, path, ViolationKind::Required, message);
    }
    let mut seen = Vec::new();
    for member in value.members() {
        let Some(member) = inspector.parts(value, path, member.map(Some)) else {
            return;
        };
        let path = &path.member(&member.name);
        match members.iter().find(|known| known.name == member.name) {
            Some(known) => {
                if seen.contains(&&known.name) {
                    report_duplicate(inspector, member.at, path);
                } else {
                    seen.push(&known.name);
                }
                inspect_member(inspector, &known.value, member.value, path);
            }
            None if closed => {
                let message = || "the object allows no other members than its own".to_owned();
                let kind = ViolationKind::AdditionalProperties;
                inspector.report(member.at, path, kind, message);
            }
            None => {}
        }
    }
}

/// Adds the deviation that an object has the member at `path` twice.
fn report_duplicate(inspector: &mut Inspector<'_>, at: usize, path: &Path<'_>) {
    let message = || "the member is there twice".to_owned();
    inspector.report(at, path, ViolationKind::Duplicate, message);
}

/// Inspects the value of a known member.
fn inspect_member<'i>(
    inspector: &mut Inspector<'i>,
    wanted: &'i MemberValue,
    value: Value<'_>,
    path: &Path<'_>,
) {
    match wanted {
        MemberValue::ConstString(constant) => {
            if !from_str(value.text).is_ok_and(|text: String| text == *constant) {
                let message = || format!("expected the constant {constant:?}");
                inspector.report(value.at, path, ViolationKind::Const, message);
            }
        }
        MemberValue::ConstInteger(_) => {
            expect(inspector, is_integer(value), "an integer", value, path)
        }
        MemberValue::Type(wanted) => inspect_value(inspector, wanted, value, path),
    }
}

/// Inspects a value within a document as a value of a type, whose formats and bounds do not matter there.
fn inspect_value<'i>(
    inspector: &mut Inspector<'i>,
    wanted: &'i Type,
    value: Value<'_>,
    path: &Path<'_>,
) {
    let is = |kind: Kind| value.kind == kind;
    match wanted {
        Type::Json | Type::Nullable(_) => {}
        Type::JsonObject => expect(inspector, is(Kind::Object), "an object", value, path),
        Type::String(_) => expect(inspector, is(Kind::String), "a string", value, path),
        Type::Boolean => expect(inspector, is(Kind::Boolean), "a boolean", value, path),
        Type::Integer(_) => expect(inspector, is_integer(value), "an integer", value, path),
        Type::Number(_) => expect(inspector, is(Kind::Number), "a number", value, path),
        Type::Ref { name } => {
            if let Some(alias) = alias(&inspector.model.ir, name) {
                inspect_value(inspector, alias, value, path);
            }
        }
        Type::Array { items: wanted, .. } => {
            expect(inspector, is(Kind::Array), "an array", value, path);
            for (index, item) in value.items().enumerate() {
                if let Some(item) = inspector.parts(value, path, item.map(Some)) {
                    inspect_value(inspector, wanted, item, &path.index(index));
                }
            }
        }
        Type::Map(wanted) => {
            expect(inspector, is(Kind::Object), "an object", value, path);
            let mut duplicates = (**wanted != Type::Json).then(|| Duplicates::of(value));
            for member in value.members() {
                let Some(member) = inspector.parts(value, path, member.map(Some)) else {
                    return;
                };
                let path = &path.member(&member.name);
                let is_repeated = duplicates
                    .as_mut()
                    .is_some_and(|duplicates| duplicates.is_repeated(member.name.clone()));
                if is_repeated {
                    report_duplicate(inspector, member.at, path);
                }
                inspect_value(inspector, wanted, member.value, path);
            }
        }
    }
}

/// Adds a deviation unless the value has the type `what`.
fn expect(
    inspector: &mut Inspector<'_>,
    has_type: bool,
    what: &str,
    value: Value<'_>,
    path: &Path<'_>,
) {
    if !has_type {
        let message = || format!("expected {what}");
        inspector.report(value.at, path, ViolationKind::Type, message);
    }
}

/// Returns true for a number whose value is an integer.
fn is_integer(value: Value<'_>) -> bool {
    from_str(value.text).is_ok_and(|number: Number| number.is_integer())
}

/// Returns the type that a definition is another name for.
fn alias<'i>(ir: &'i Ir, name: &str) -> Option<&'i Type> {
    match &ir.get(name)?.shape {
        Shape::Alias(alias) => Some(alias),
        _ => None,
    }
}
