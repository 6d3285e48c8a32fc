//! Builds the intermediate representation from a lifted schema, in which every type has a name.
//!
//! The output has no methods and dispatch yet. A shape without an exact type is an error.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Result, brief};
use crate::input::keywords::{Construct, is_annotation, speaks_of};
use crate::input::schema::{Schema, escape};
use crate::ir::{Bounds, Definition, Ir, Member, MemberValue, Shape, Text, Type};
use crate::notice::Notices;
use crate::passes::lift::{LiftedDefinition, has_members, is_nullable};
use crate::passes::normalise::{is_open, nullable};

/// Builds the representation of one revision.
///
/// # Errors
/// For a shape that has no exact type, with its pointer.
pub fn build(schema: &Schema, lifted: &[LiftedDefinition], notices: &mut Notices) -> Result<Ir> {
    let mut pass = Pass { schema, notices };
    let anonymous: BTreeMap<&str, &LiftedDefinition> =
        lifted.iter().map(|l| (l.name.as_str(), l)).collect();
    let mut definitions = Vec::new();
    for (name, definition) in schema.root[schema.definitions]
        .as_object()
        .into_iter()
        .flatten()
    {
        let pointers = match anonymous.get(name.as_str()) {
            Some(lifted) => lifted.pointers.clone(),
            None => vec![schema.pointer(name)],
        };
        definitions.push(Definition {
            name: name.clone(),
            official: !anonymous.contains_key(name.as_str()),
            description: text(definition, "description"),
            closed: definition["additionalProperties"] == false,
            shape: pass.shape(name, definition, &pointers[0])?,
            pointers,
        });
    }
    Ok(Ir {
        revision: schema.revision.clone(),
        definitions,
        methods: Vec::new(),
    })
}

struct Pass<'s, 'n> {
    schema: &'s Schema,
    notices: &'n mut Notices,
}

fn text(at: &Value, key: &str) -> Option<String> {
    at[key].as_str().map(str::to_owned)
}

impl Pass<'_, '_> {
    fn shape(&mut self, name: &str, at: &Value, pointer: &str) -> Result<Shape> {
        if ["RequestId", "ProgressToken"].contains(&name) && string_or_integer(at) {
            return Ok(Shape::StringOrInteger);
        }
        if let Some(any) = at["anyOf"]
            .as_array()
            .filter(|_| nullable::inner(at).is_none())
        {
            self.only(at, pointer, Construct::Union)?;
            return self.union(any, pointer).map(Shape::Union);
        }
        if at["type"]
            .as_array()
            .is_some_and(|types| !is_nullable(types))
        {
            return self
                .union(std::slice::from_ref(at), pointer)
                .map(Shape::Union);
        }
        if let Some(values) = at["enum"].as_array() {
            return self.string_enum(values, at, pointer);
        }
        if let Some(value) = at.get("const") {
            return self.constant(value, at, pointer);
        }
        if has_members(at) {
            let members = self.members(at, pointer)?;
            return Ok(if at["x-document"] == true {
                Shape::Document(members)
            } else {
                Shape::Struct(members)
            });
        }
        self.value(at, pointer).map(Shape::Alias)
    }

    /// Refuses keywords other than those that describe a construct completely.
    fn only(&self, at: &Value, pointer: &str, construct: Construct) -> Result<()> {
        self.reject_others(at, pointer, construct.name(), construct.allowed_keywords())
    }

    /// Refuses keywords that the type of a value would not express.
    fn reject_others(&self, at: &Value, pointer: &str, what: &str, allowed: &[&str]) -> Result<()> {
        let said = |key: &&String| allowed.contains(&key.as_str()) || is_annotation(key);
        match at
            .as_object()
            .and_then(|at| at.keys().find(|key| !said(key)))
        {
            None => Ok(()),
            Some(key) => {
                let pointer = format!("{pointer}/{key}");
                let problem = format!("`{key}` is not supported for {what}");
                let remedy = "teach the generator what it means, or correct it by an erratum";
                Err(self.schema.error(&pointer, problem, remedy))
            }
        }
    }

    /// Refuses keywords that apply to none of these types.
    fn only_of_types(&self, at: &Value, pointer: &str, what: &str, types: &[Value]) -> Result<()> {
        let types: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
        let speaks = |key: &&String| types.iter().any(|one| speaks_of(key, one));
        let keys = at.as_object().into_iter().flatten().map(|(key, _)| key);
        let known: Vec<&str> = keys.filter(speaks).map(String::as_str).collect();
        self.reject_others(at, pointer, what, &known)
    }

    /// Returns a constant that is not part of an object, so that its presence has a meaning.
    fn constant(&self, value: &Value, at: &Value, pointer: &str) -> Result<Shape> {
        self.only(at, pointer, Construct::Constant)?;
        match value.as_str() {
            Some(value) if is_of_type(at, &["string"]) => Ok(Shape::Constant(value.to_owned())),
            _ => {
                let pointer = format!("{pointer}/const");
                let problem = format!(
                    "the constant {} is no string and may be absent",
                    brief(value)
                );
                Err(self
                    .schema
                    .error(&pointer, problem, "teach the generator this constant"))
            }
        }
    }

    fn string_enum(&self, values: &[Value], at: &Value, pointer: &str) -> Result<Shape> {
        let strings: Vec<String> = values
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if strings.len() != values.len() || !is_of_type(at, &["string"]) {
            let pointer = format!("{pointer}/enum");
            let problem = "only enums of strings are supported";
            return Err(self
                .schema
                .error(&pointer, problem, "teach the generator this enum"));
        }
        self.only(at, pointer, Construct::Enum)?;
        Ok(Shape::Enum(strings))
    }

    fn members(&self, at: &Value, pointer: &str) -> Result<Vec<Member>> {
        if at["type"] != "object" {
            let problem = "a schema with members has to have the type `object`";
            return Err(self
                .schema
                .error(pointer, problem, "say the type by an erratum"));
        }
        let additional = &at["additionalProperties"];
        if !additional.is_null() && !is_open(additional) && *additional != false {
            let pointer = format!("{pointer}/additionalProperties");
            let problem = "known members beside additional ones of a type are not supported";
            return Err(self
                .schema
                .error(&pointer, problem, "teach the generator such objects"));
        }
        self.only(at, pointer, Construct::Object)?;
        let required: Vec<&str> = at["required"]
            .as_array()
            .into_iter()
            .flatten()
            .filter_map(Value::as_str)
            .collect();
        let properties = at["properties"].as_object();
        if let Some(missing) = required
            .iter()
            .find(|name| properties.is_none_or(|p| !p.contains_key(**name)))
        {
            let problem = format!("the required member `{missing}` is not described");
            return Err(self
                .schema
                .error(pointer, problem, "describe it by an erratum"));
        }
        let mut members = Vec::new();
        for (json, property) in properties.into_iter().flatten() {
            let pointer = format!("{pointer}/properties/{}", escape(json));
            members.push(Member {
                name: json.clone(),
                required: required.contains(&json.as_str()),
                description: text(property, "description"),
                value: self.member_value(property, &pointer)?,
            });
        }
        self.check_members(&members, pointer)?;
        Ok(members)
    }

    fn check_members(&self, members: &[Member], pointer: &str) -> Result<()> {
        if members.len() > 64 {
            let problem = "an object of more than 64 members is not supported";
            return Err(self.schema.error(
                pointer,
                problem,
                "widen `Shape::required` in the runtime",
            ));
        }
        Ok(())
    }

    fn member_value(&self, at: &Value, pointer: &str) -> Result<MemberValue> {
        if let Some(value) = at.get("const") {
            self.only(at, pointer, Construct::Constant)?;
            return match value {
                Value::String(value) if is_of_type(at, &["string"]) => {
                    Ok(MemberValue::ConstString(value.clone()))
                }
                Value::Number(value)
                    if value.is_i64() && is_of_type(at, &["integer", "number"]) =>
                {
                    Ok(MemberValue::ConstInteger(
                        value.as_i64().unwrap_or_default(),
                    ))
                }
                _ => {
                    let problem = format!(
                        "the constant {} of this type is not supported",
                        brief(value)
                    );
                    Err(self
                        .schema
                        .error(pointer, problem, "teach the generator this constant"))
                }
            };
        }
        self.value(at, pointer).map(MemberValue::Type)
    }

    fn value(&self, at: &Value, pointer: &str) -> Result<Type> {
        if let Some(inner) = nullable::inner(at) {
            self.only(at, pointer, Construct::Nullable)?;
            let inner = self.value(inner, &format!("{pointer}/anyOf/0"))?;
            return Ok(Type::Nullable(Box::new(inner)));
        }
        if let Some(name) = at["$ref"].as_str().and_then(|r| self.schema.target(r)) {
            self.only(at, pointer, Construct::Reference)?;
            let open = &self.schema.root[self.schema.definitions][name];
            return Ok(if is_open(open) {
                Type::Json
            } else {
                Type::Ref {
                    name: name.to_owned(),
                }
            });
        }
        if is_open(at) {
            return Ok(Type::Json);
        }
        if let Some(types) = at["type"].as_array() {
            self.only_of_types(at, pointer, "several types", types)?;
            let [one] = types.iter().filter(|t| *t != "null").collect::<Vec<_>>()[..] else {
                let problem = format!("a value of several types has no name here: {}", brief(at));
                let remedy = "teach the generator this shape";
                return Err(self.schema.error(pointer, problem, remedy));
            };
            let inner = self.value(&with_type(at, one), pointer)?;
            return Ok(Type::Nullable(Box::new(inner)));
        }
        let Some(one) = at["type"].as_str().filter(|one| TYPES.contains(one)) else {
            let problem = format!("this schema has no exact type: {}", brief(at));
            let remedy = "teach the generator this shape";
            return Err(self.schema.error(pointer, problem, remedy));
        };
        self.only_of_types(at, pointer, &format!("the type `{one}`"), &[one.into()])?;
        Ok(match one {
            "string" => Type::String(Text {
                format: text(at, "format"),
            }),
            "boolean" => Type::Boolean,
            "integer" => Type::Integer(self.bounds(at, pointer)?),
            "number" => Type::Number(self.bounds(at, pointer)?),
            "array" => Type::Array {
                items: Box::new(self.value(&at["items"], &format!("{pointer}/items"))?),
                min_items: at["minItems"].as_u64(),
                max_items: at["maxItems"].as_u64(),
            },
            _ => self.map(at, pointer)?,
        })
    }

    fn map(&self, at: &Value, pointer: &str) -> Result<Type> {
        if at["properties"].as_object().is_some_and(|p| !p.is_empty()) {
            let problem = "an object with members has no name here";
            let remedy = "teach the generator this shape";
            return Err(self.schema.error(pointer, problem, remedy));
        }
        let values = &at["additionalProperties"];
        if values.is_null() || is_open(values) {
            return Ok(Type::JsonObject);
        }
        match self.value(values, &format!("{pointer}/additionalProperties"))? {
            Type::Json => Ok(Type::JsonObject),
            value => Ok(Type::Map(Box::new(value))),
        }
    }

    fn bounds(&self, at: &Value, pointer: &str) -> Result<Bounds> {
        let bound = |key: &str| match &at[key] {
            Value::Null => Ok(None),
            value => value.as_i64().map(Some).ok_or_else(|| {
                let pointer = format!("{pointer}/{key}");
                self.schema.error(
                    &pointer,
                    "only whole bounds are supported",
                    "teach the generator this bound",
                )
            }),
        };
        Ok(Bounds {
            minimum: bound("minimum")?,
            maximum: bound("maximum")?,
        })
    }

    fn union(&mut self, any: &[Value], pointer: &str) -> Result<Vec<Type>> {
        let mut members = Vec::new();
        for (index, member) in any.iter().enumerate() {
            let pointer = match any {
                [only] if only["anyOf"].is_null() && only["type"].is_array() => pointer.to_owned(),
                _ => format!("{pointer}/anyOf/{index}"),
            };
            match member["type"].as_array() {
                Some(types) => {
                    self.only_of_types(member, &pointer, "several types", types)?;
                    members.extend(
                        types
                            .iter()
                            .map(|t| (with_type(member, t), pointer.clone())),
                    );
                }
                None => members.push((member.clone(), pointer)),
            }
        }
        let mut variants: Vec<Type> = Vec::new();
        for (member, pointer) in members {
            if member["type"] == "null" {
                let problem = "null among several types is not supported";
                return Err(self.schema.error(&pointer, problem, "teach the generator"));
            }
            let value = self.value(&member, &pointer)?;
            // Keeps one of several schemas with the same type, or whose values one of them accepts completely.
            if let Some(known) = variants
                .iter_mut()
                .find(|known| takes_scalars(known, &value) || takes_scalars(&value, known))
            {
                let words = "another member of this union takes all values of this one, and stands for both";
                self.notices.add(&pointer, words);
                if !takes_scalars(known, &value) {
                    *known = value;
                }
                continue;
            }
            variants.push(value);
        }
        Ok(variants)
    }
}

/// Returns true if every scalar value of the type `b` is a value of the type `a`.
fn takes_scalars(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::String(a), Type::String(b)) => a.takes_all() || a == b,
        (Type::Integer(a), Type::Integer(b)) | (Type::Number(a), Type::Number(b)) => a.takes(*b),
        _ => a == b,
    }
}

fn string_or_integer(at: &Value) -> bool {
    let mut types: Vec<_> = at["type"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    types.sort_unstable();
    types == ["integer", "string"]
}

/// Returns true if a schema names one of these types, or no type.
fn is_of_type(at: &Value, types: &[&str]) -> bool {
    at["type"].is_null() || types.iter().any(|one| at["type"] == *one)
}

/// Types that a value can have in addition to null.
const TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// Returns the part of a schema with several types that constrains one of them.
fn with_type(member: &Value, one: &Value) -> Value {
    let mut member = member.clone();
    if let (Some(one), Some(member)) = (one.as_str(), member.as_object_mut()) {
        member.retain(|key, _| speaks_of(key, one) || is_annotation(key));
    }
    member["type"] = one.clone();
    member
}
