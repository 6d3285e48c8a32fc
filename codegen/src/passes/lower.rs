//! Builds the intermediate representation from a lifted schema, in which every type has a name.
//!
//! Later passes add methods and the dispatch of unions. A schema without an exact type is an error.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::error::{Result, shorten_value};
use crate::input::keywords::{SchemaKind, is_annotation, may_occur_with_type};
use crate::input::schema::{Schema, escape};
use crate::ir::{Bounds, Definition, Ir, Member, MemberValue, Shape, Text, Type};
use crate::notice::Notices;
use crate::passes::lift::{LiftedDefinition, has_members, is_nullable};
use crate::passes::normalise::{is_open, nullable};

/// Builds the intermediate representation of one revision.
///
/// # Errors
/// Returns an error for a schema without an exact type, with its JSON pointer.
pub fn build(schema: &Schema, lifted: &[LiftedDefinition], notices: &mut Notices) -> Result<Ir> {
    let mut pass = Lowering { schema, notices };
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
            description: string_keyword(definition, "description"),
            closed: definition["additionalProperties"] == false,
            shape: pass.lower_shape(name, definition, &pointers[0])?,
            pointers,
        });
    }
    Ok(Ir {
        revision: schema.revision.clone(),
        definitions,
        methods: Vec::new(),
    })
}

/// State of the pass.
struct Lowering<'s, 'n> {
    /// The lifted schema.
    schema: &'s Schema,
    /// Notices about parts that the types do not express.
    notices: &'n mut Notices,
}

/// Returns the value of a keyword that is a string.
fn string_keyword(at: &Value, key: &str) -> Option<String> {
    at[key].as_str().map(str::to_owned)
}

impl Lowering<'_, '_> {
    /// Returns the shape of the definition `name`, whose schema is `at`.
    fn lower_shape(&mut self, name: &str, at: &Value, pointer: &str) -> Result<Shape> {
        if ["RequestId", "ProgressToken"].contains(&name) && is_string_or_integer(at) {
            return Ok(Shape::StringOrInteger);
        }
        if let Some(any) = at["anyOf"]
            .as_array()
            .filter(|_| nullable::inner(at).is_none())
        {
            self.allow_only_construct(at, pointer, SchemaKind::Union)?;
            return self.lower_union(any, pointer).map(Shape::Union);
        }
        if at["type"]
            .as_array()
            .is_some_and(|types| !is_nullable(types))
        {
            return self
                .lower_union(std::slice::from_ref(at), pointer)
                .map(Shape::Union);
        }
        if let Some(values) = at["enum"].as_array() {
            return self.lower_string_enum(values, at, pointer);
        }
        if let Some(value) = at.get("const") {
            return self.lower_constant(value, at, pointer);
        }
        if has_members(at) {
            let members = self.lower_members(at, pointer)?;
            return Ok(if at["x-document"] == true {
                Shape::Document(members)
            } else {
                Shape::Struct(members)
            });
        }
        self.lower_type(at, pointer).map(Shape::Alias)
    }

    /// Refuses keywords that this kind of schema does not allow.
    fn allow_only_construct(&self, at: &Value, pointer: &str, construct: SchemaKind) -> Result<()> {
        self.reject_other_keywords(at, pointer, construct.name(), construct.allowed_keywords())
    }

    /// Refuses keywords that are neither `allowed` nor annotations; `what` names the construct in the error.
    fn reject_other_keywords(
        &self,
        at: &Value,
        pointer: &str,
        what: &str,
        allowed: &[&str],
    ) -> Result<()> {
        // An empty list of required members demands nothing.
        let demands_nothing = at["required"].as_array().is_some_and(Vec::is_empty);
        let said = |key: &&String| {
            allowed.contains(&key.as_str())
                || is_annotation(key)
                || (*key == "required" && demands_nothing)
        };
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

    /// Refuses keywords that constrain values of none of the given types; `what` names the construct in the error.
    fn allow_only_types(
        &self,
        at: &Value,
        pointer: &str,
        what: &str,
        types: &[Value],
    ) -> Result<()> {
        let types: Vec<&str> = types.iter().filter_map(Value::as_str).collect();
        let speaks = |key: &&String| types.iter().any(|one| may_occur_with_type(key, one));
        let keys = at.as_object().into_iter().flatten().map(|(key, _)| key);
        let known: Vec<&str> = keys.filter(speaks).map(String::as_str).collect();
        self.reject_other_keywords(at, pointer, what, &known)
    }

    /// Returns the shape of a definition that is a constant; the presence of such a value is significant.
    fn lower_constant(&self, value: &Value, at: &Value, pointer: &str) -> Result<Shape> {
        self.allow_only_construct(at, pointer, SchemaKind::Constant)?;
        match value.as_str() {
            Some(value) if is_of_type(at, &["string"]) => Ok(Shape::Constant(value.to_owned())),
            _ => {
                let pointer = format!("{pointer}/const");
                let problem = format!(
                    "the constant {} is not a string and may be absent",
                    shorten_value(value)
                );
                Err(self
                    .schema
                    .error(&pointer, problem, "teach the generator this constant"))
            }
        }
    }

    /// Returns the shape of an enum of strings.
    fn lower_string_enum(&self, values: &[Value], at: &Value, pointer: &str) -> Result<Shape> {
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
        self.allow_only_construct(at, pointer, SchemaKind::Enum)?;
        Ok(Shape::Enum(strings))
    }

    /// Returns the members of an object, in the order of the schema.
    fn lower_members(&self, at: &Value, pointer: &str) -> Result<Vec<Member>> {
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
        self.allow_only_construct(at, pointer, SchemaKind::Object)?;
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
                description: string_keyword(property, "description"),
                value: self.lower_member_value(property, &pointer)?,
            });
        }
        self.check_members(&members, pointer)?;
        Ok(members)
    }

    /// Checks that an object has at most 64 members, which is the limit of `ObjectLayout`.
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

    /// Returns the value of a member: a constant or a type.
    fn lower_member_value(&self, at: &Value, pointer: &str) -> Result<MemberValue> {
        if let Some(value) = at.get("const") {
            self.allow_only_construct(at, pointer, SchemaKind::Constant)?;
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
                        shorten_value(value)
                    );
                    Err(self
                        .schema
                        .error(pointer, problem, "teach the generator this constant"))
                }
            };
        }
        self.lower_type(at, pointer).map(MemberValue::Type)
    }

    /// Returns the type of a value.
    fn lower_type(&self, at: &Value, pointer: &str) -> Result<Type> {
        if let Some(inner) = nullable::inner(at) {
            self.allow_only_construct(at, pointer, SchemaKind::Nullable)?;
            let inner = self.lower_type(inner, &format!("{pointer}/anyOf/0"))?;
            return Ok(Type::Nullable(Box::new(inner)));
        }
        if let Some(name) = at["$ref"].as_str().and_then(|r| self.schema.target(r)) {
            self.allow_only_construct(at, pointer, SchemaKind::Reference)?;
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
            self.allow_only_types(at, pointer, "several types", types)?;
            let [one] = types.iter().filter(|t| *t != "null").collect::<Vec<_>>()[..] else {
                let problem = format!(
                    "a value of several types has no name here: {}",
                    shorten_value(at)
                );
                let remedy = "teach the generator this shape";
                return Err(self.schema.error(pointer, problem, remedy));
            };
            let inner = self.lower_type(&constraints_of_type(at, one), pointer)?;
            return Ok(Type::Nullable(Box::new(inner)));
        }
        let Some(one) = at["type"]
            .as_str()
            .filter(|one| NON_NULL_TYPES.contains(one))
        else {
            let problem = format!("this schema has no exact type: {}", shorten_value(at));
            let remedy = "teach the generator this shape";
            return Err(self.schema.error(pointer, problem, remedy));
        };
        self.allow_only_types(at, pointer, &format!("the type `{one}`"), &[one.into()])?;
        Ok(match one {
            "string" => Type::String(Text {
                format: string_keyword(at, "format"),
            }),
            "boolean" => Type::Boolean,
            "integer" => Type::Integer(self.lower_bounds(at, pointer)?),
            "number" => Type::Number(self.lower_bounds(at, pointer)?),
            "array" => Type::Array {
                items: Box::new(match at.get("items") {
                    Some(items) => self.lower_type(items, &format!("{pointer}/items"))?,
                    // Without the keyword, each item may be any value.
                    None => Type::Json,
                }),
                min_items: at["minItems"].as_u64(),
                max_items: at["maxItems"].as_u64(),
            },
            _ => self.lower_map(at, pointer)?,
        })
    }

    /// Returns the type of an object without known members: a map or an untyped object.
    fn lower_map(&self, at: &Value, pointer: &str) -> Result<Type> {
        if at["properties"].as_object().is_some_and(|p| !p.is_empty()) {
            let problem = "an object with members has no name here";
            let remedy = "teach the generator this shape";
            return Err(self.schema.error(pointer, problem, remedy));
        }
        let values = &at["additionalProperties"];
        if values.is_null() || is_open(values) {
            return Ok(Type::JsonObject);
        }
        match self.lower_type(values, &format!("{pointer}/additionalProperties"))? {
            Type::Json => Ok(Type::JsonObject),
            value => Ok(Type::Map(Box::new(value))),
        }
    }

    /// Returns the bounds of a number.
    fn lower_bounds(&self, at: &Value, pointer: &str) -> Result<Bounds> {
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

    /// Returns the types of a union's variants; a list of types yields one variant per type.
    fn lower_union(&mut self, any: &[Value], pointer: &str) -> Result<Vec<Type>> {
        let mut members = Vec::new();
        for (index, member) in any.iter().enumerate() {
            let pointer = match any {
                [only] if only["anyOf"].is_null() && only["type"].is_array() => pointer.to_owned(),
                _ => format!("{pointer}/anyOf/{index}"),
            };
            match member["type"].as_array() {
                Some(types) => {
                    self.allow_only_types(member, &pointer, "several types", types)?;
                    members.extend(
                        types
                            .iter()
                            .map(|t| (constraints_of_type(member, t), pointer.clone())),
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
            let value = self.lower_type(&member, &pointer)?;
            // Keeps one of two schemas if one of them accepts all values of the other.
            if let Some(known) = variants
                .iter_mut()
                .find(|known| accepts_scalars(known, &value) || accepts_scalars(&value, known))
            {
                let words = "another member of this union takes all values of this one, and stands for both";
                self.notices.add(&pointer, words);
                if !accepts_scalars(known, &value) {
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
fn accepts_scalars(a: &Type, b: &Type) -> bool {
    match (a, b) {
        (Type::String(a), Type::String(b)) => a.is_unrestricted() || a == b,
        (Type::Integer(a), Type::Integer(b)) | (Type::Number(a), Type::Number(b)) => a.includes(*b),
        _ => a == b,
    }
}

/// Returns true if the types are exactly `string` and `integer`.
fn is_string_or_integer(at: &Value) -> bool {
    let mut types: Vec<_> = at["type"]
        .as_array()
        .into_iter()
        .flatten()
        .filter_map(Value::as_str)
        .collect();
    types.sort_unstable();
    types == ["integer", "string"]
}

/// Returns true if the `type` of a schema is one of the given types, or is absent.
fn is_of_type(at: &Value, types: &[&str]) -> bool {
    at["type"].is_null() || types.iter().any(|one| at["type"] == *one)
}

/// JSON types of all values except null.
const NON_NULL_TYPES: &[&str] = &["array", "boolean", "integer", "number", "object", "string"];

/// Returns the part of a schema with several types that constrains one of them.
fn constraints_of_type(member: &Value, one: &Value) -> Value {
    let mut member = member.clone();
    if let (Some(one), Some(member)) = (one.as_str(), member.as_object_mut()) {
        member.retain(|key, _| may_occur_with_type(key, one) || is_annotation(key));
    }
    member["type"] = one.clone();
    member
}
