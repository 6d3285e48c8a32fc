//! Encodes a document as the type of its definition does: without white space between the tokens of known types, strings
//! with the fewest escape sequences, and the members of objects in one order: constants, required members, optional
//! members, and those that the schema does not define. Untyped JSON and numbers keep their spelling.

use mcp_exact_wire::{DecodeFailed, Json, Kind, ReadResult, from_str};

use super::select::{Selected, select};
use super::value::Value;
use crate::{Definition, Member, MemberValue, Model, Shape, Type};

/// Encodes a document, which must decode; returns `None` if a part of it has no encoding, which no such document has.
pub(super) fn encode(model: &Model, definition: &Definition, value: Value<'_>) -> Option<String> {
    let mut text = String::with_capacity(value.text.len());
    let encoded = encode_definition(model, definition, value, &mut text);
    encoded.ok().map(|()| text)
}

/// Appends a value of a definition.
fn encode_definition(
    model: &Model,
    definition: &Definition,
    value: Value<'_>,
    to: &mut String,
) -> ReadResult<()> {
    match &definition.shape {
        Shape::Struct(members) => {
            let index_of = |name: &str| members.iter().position(|known| known.name == name);
            let mut found = vec![None; members.len()];
            for member in value.members() {
                let member = member?;
                if let Some(index) = index_of(&member.name) {
                    found[index].get_or_insert(member.value);
                }
            }
            let mut first = true;
            let mut ordered: Vec<(&Member, Option<Value<'_>>)> =
                members.iter().zip(found).collect();
            ordered.sort_by_key(|(member, _)| rank(member));
            for (known, found) in ordered {
                let Some(found) = found else {
                    continue;
                };
                push_name(&known.name, &mut first, to);
                match &known.value {
                    MemberValue::ConstString(constant) => push_string(constant, to),
                    MemberValue::ConstInteger(constant) => to.push_str(&constant.to_string()),
                    MemberValue::Type(wanted) => encode_value(model, wanted, found, to)?,
                }
            }
            for member in value.members() {
                let member = member?;
                if index_of(&member.name).is_none() {
                    push_name(&member.name, &mut first, to);
                    to.push_str(member.value.text);
                }
            }
            to.push_str(if first { "{}" } else { "}" });
            Ok(())
        }
        Shape::Union(variants) => {
            let dispatch = model.dispatch.get(&definition.name).ok_or(DecodeFailed)?;
            match select(dispatch, &definition.name, value)? {
                Selected::Variant(index) => encode_value(model, &variants[index], value, to),
                Selected::Unrecognized(_) => {
                    to.push_str(value.text);
                    Ok(())
                }
                Selected::Mismatch(_) => Err(DecodeFailed),
            }
        }
        Shape::Alias(alias) => encode_value(model, alias, value, to),
        Shape::Enum(_) | Shape::Constant(_) | Shape::StringOrInteger => encode_scalar(value, to),
        Shape::Document(_) => {
            to.push_str(value.text);
            Ok(())
        }
    }
}

/// Returns the rank of a known member among those of its object.
fn rank(member: &Member) -> u8 {
    match (&member.value, member.required) {
        (MemberValue::ConstString(_) | MemberValue::ConstInteger(_), _) => 0,
        (MemberValue::Type(_), true) => 1,
        (MemberValue::Type(_), false) => 2,
    }
}

/// Appends a value of a type.
fn encode_value(model: &Model, wanted: &Type, value: Value<'_>, to: &mut String) -> ReadResult<()> {
    match wanted {
        Type::Nullable(_) if value.kind == Kind::Null => to.push_str("null"),
        Type::Nullable(inner) => return encode_value(model, inner, value, to),
        Type::Ref { name } => {
            let definition = model.ir.get(name).ok_or(DecodeFailed)?;
            return encode_definition(model, definition, value, to);
        }
        Type::Array { items: wanted, .. } => {
            to.push('[');
            for (index, item) in value.items().enumerate() {
                if index > 0 {
                    to.push(',');
                }
                encode_value(model, wanted, item?, to)?;
            }
            to.push(']');
        }
        Type::Map(wanted) => {
            let mut first = true;
            for member in value.members() {
                let member = member?;
                push_name(&member.name, &mut first, to);
                encode_value(model, wanted, member.value, to)?;
            }
            to.push_str(if first { "{}" } else { "}" });
        }
        Type::String(_) | Type::Boolean | Type::Integer(_) | Type::Number(_) => {
            return encode_scalar(value, to);
        }
        Type::Json | Type::JsonObject => to.push_str(value.text),
    }
    Ok(())
}

/// Appends a string, a number or a boolean.
fn encode_scalar(value: Value<'_>, to: &mut String) -> ReadResult<()> {
    // Without an escape, a string is as short as it can be.
    if value.kind == Kind::String && value.text.contains('\\') {
        let text: String = from_str(value.text).map_err(|_| DecodeFailed)?;
        push_string(&text, to);
    } else {
        to.push_str(value.text);
    }
    Ok(())
}

/// Appends the name of a member, after a brace for the first member of an object, or a comma.
fn push_name(name: &str, first: &mut bool, to: &mut String) {
    to.push(if *first { '{' } else { ',' });
    *first = false;
    push_string(name, to);
    to.push(':');
}

/// Appends a string in quotes.
fn push_string(text: &str, to: &mut String) {
    to.push_str(Json::string(text).text());
}
