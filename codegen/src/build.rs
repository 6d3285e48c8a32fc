//! From a schema in which everything has a name to the intermediate representation.
//!
//! Takes the lifted schema and what typify says of it; gives the representation, or an error for a shape that has no
//! exact type.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::dispatch;
use crate::error::Result;
use crate::ir::{Bounds, Definition, Ir, Member, MemberValue, Method, Shape, Type, Union, Variant};
use crate::lift::{Lifted, is_nullable};
use crate::load::{Schema, escape};
use crate::model::Model;
use crate::names;
use crate::normalise::is_open;

/// Builds the representation of one revision.
///
/// # Errors
/// For a shape that has no exact type, with its pointer.
pub fn build(schema: &Schema, lifted: &[Lifted], model: &Model) -> Result<Ir> {
    let pass = Pass { schema, model };
    let anonymous: BTreeMap<&str, &Lifted> = lifted.iter().map(|l| (l.name.as_str(), l)).collect();
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
            shape: pass.shape(name, definition, &pointers[0])?,
            pointers,
        });
    }
    let mut ir = Ir {
        revision: schema.revision.clone(),
        definitions,
        methods: Vec::new(),
    };
    dispatch::plan(schema, &mut ir)?;
    ir.methods = methods(&ir);
    Ok(ir)
}

struct Pass<'s> {
    schema: &'s Schema,
    model: &'s Model,
}

fn text(at: &Value, key: &str) -> Option<String> {
    at[key].as_str().map(str::to_owned)
}

impl Pass<'_> {
    fn shape(&self, name: &str, at: &Value, pointer: &str) -> Result<Shape> {
        if !names::is_type_name(name) {
            let problem = format!("the definition's name `{name}` can be no Rust type");
            return Err(self
                .schema
                .error(pointer, problem, "rename it by an erratum"));
        }
        if crate::emit::IMPORTED.contains(&name) || name == "String" {
            let problem = format!("the definition's name `{name}` is one of the runtime's");
            return Err(self.schema.error(
                pointer,
                problem,
                "rename the runtime's in generated code",
            ));
        }
        if ["RequestId", "ProgressToken"].contains(&name) && string_or_integer(at) {
            return Ok(Shape::Runtime(name.to_owned()));
        }
        if let Some(any) = at["anyOf"].as_array() {
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
        if let Some(value) = at["const"].as_str() {
            return Ok(Shape::Constant(value.to_owned()));
        }
        if at["properties"].as_object().is_some_and(|p| !p.is_empty()) {
            let members = self.members(name, at, pointer)?;
            return Ok(if at["x-document"] == true {
                Shape::Document(members)
            } else {
                Shape::Struct(members)
            });
        }
        self.value(at, pointer).map(Shape::Alias)
    }

    fn string_enum(&self, values: &[Value], at: &Value, pointer: &str) -> Result<Shape> {
        let strings: Vec<String> = values
            .iter()
            .filter_map(Value::as_str)
            .map(str::to_owned)
            .collect();
        if strings.len() != values.len() || at["type"] != "string" {
            let problem = "only enums of strings are supported";
            return Err(self
                .schema
                .error(pointer, problem, "teach the generator this enum"));
        }
        let mut variants: Vec<String> = strings.iter().map(|value| names::variant(value)).collect();
        variants.sort();
        let clash = variants.windows(2).any(|pair| pair[0] == pair[1]);
        if clash
            || variants
                .iter()
                .any(|v| !names::is_type_name(v) || v == "Unrecognized")
        {
            let problem = "the values of this enum do not make distinct Rust names";
            return Err(self
                .schema
                .error(pointer, problem, "teach the generator names for them"));
        }
        Ok(Shape::Enum(strings))
    }

    fn members(&self, name: &str, at: &Value, pointer: &str) -> Result<Vec<Member>> {
        let additional = &at["additionalProperties"];
        if !additional.is_null() && !is_open(additional) {
            let pointer = format!("{pointer}/additionalProperties");
            let problem = "known members beside additional ones of a type are not supported";
            return Err(self
                .schema
                .error(&pointer, problem, "teach the generator such objects"));
        }
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
                field: names::field(json),
                required: required.contains(&json.as_str()),
                description: text(property, "description"),
                value: self.member_value(name, json, property, &pointer)?,
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
        let mut fields: Vec<&str> = members.iter().map(|m| m.field.as_str()).collect();
        fields.sort_unstable();
        if let Some(pair) = fields.windows(2).find(|pair| pair[0] == pair[1]) {
            let problem = format!("two members would both be the field `{}`", pair[0]);
            return Err(self.schema.error(
                pointer,
                problem,
                "teach the generator a name for one of them",
            ));
        }
        Ok(())
    }

    fn member_value(
        &self,
        owner: &str,
        name: &str,
        at: &Value,
        pointer: &str,
    ) -> Result<MemberValue> {
        if let Some(value) = at.get("const") {
            return match value {
                Value::String(value) => Ok(MemberValue::ConstString(value.clone())),
                Value::Number(value) if value.is_i64() => Ok(MemberValue::ConstInteger(
                    value.as_i64().unwrap_or_default(),
                )),
                _ => {
                    let problem =
                        format!("the constant {value} is neither a string nor an integer");
                    Err(self
                        .schema
                        .error(pointer, problem, "teach the generator this constant"))
                }
            };
        }
        let mut value = self.value(at, pointer)?;
        if let Type::Ref { boxed, .. } = &mut value {
            *boxed = self.model.is_boxed(owner, name);
        }
        Ok(MemberValue::Type(value))
    }

    fn value(&self, at: &Value, pointer: &str) -> Result<Type> {
        if let Some(name) = at["$ref"].as_str().and_then(|r| self.schema.target(r)) {
            let open = &self.schema.root[self.schema.definitions][name];
            return Ok(if is_open(open) {
                Type::Json
            } else {
                Type::Ref {
                    name: name.to_owned(),
                    boxed: false,
                }
            });
        }
        if is_open(at) {
            return Ok(Type::Json);
        }
        if let Some(types) = at["type"].as_array() {
            let mut inner = at.clone();
            inner["type"] = types
                .iter()
                .find(|t| *t != "null")
                .cloned()
                .unwrap_or_default();
            return Ok(Type::Nullable(Box::new(self.value(&inner, pointer)?)));
        }
        match at["type"].as_str() {
            Some("string") => Ok(Type::String {
                format: text(at, "format"),
            }),
            Some("boolean") => Ok(Type::Boolean),
            Some("integer") => Ok(Type::Integer(self.bounds(at, pointer)?)),
            Some("number") => Ok(Type::Number(self.bounds(at, pointer)?)),
            Some("array") => Ok(Type::Array {
                items: Box::new(self.value(&at["items"], &format!("{pointer}/items"))?),
                min_items: at["minItems"].as_u64(),
                max_items: at["maxItems"].as_u64(),
            }),
            Some("object") => self.map(at, pointer),
            _ => {
                let problem = format!("this schema has no exact type: {at}");
                Err(self
                    .schema
                    .error(pointer, problem, "teach the generator this shape"))
            }
        }
    }

    fn map(&self, at: &Value, pointer: &str) -> Result<Type> {
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

    fn union(&self, any: &[Value], pointer: &str) -> Result<Union> {
        let mut members = Vec::new();
        for member in any {
            match member["type"].as_array() {
                Some(types) => members.extend(types.iter().map(|t| with_type(member, t))),
                None => members.push(member.clone()),
            }
        }
        let mut variants = Vec::new();
        for (index, member) in members.iter().enumerate() {
            let pointer = format!("{pointer}/anyOf/{index}");
            let value = if member["type"] == "null" {
                return Err(self.schema.error(
                    &pointer,
                    "null among several types is not supported",
                    "teach the generator",
                ));
            } else {
                self.value(member, &pointer)?
            };
            variants.push(Variant {
                name: kind_name(&value),
                value,
            });
        }
        Ok(Union {
            variants,
            dispatch: dispatch::Dispatch::default(),
        })
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

fn with_type(member: &Value, one: &Value) -> Value {
    let mut member = member.clone();
    member["type"] = one.clone();
    member
}

/// The name of a variant that has no definition of its own.
fn kind_name(value: &Type) -> String {
    let name = match value {
        Type::Ref { name, .. } => name,
        Type::Json => "Json",
        Type::JsonObject | Type::Map(_) => "Object",
        Type::String { .. } => "String",
        Type::Boolean => "Boolean",
        Type::Integer(_) => "Integer",
        Type::Number(_) => "Number",
        Type::Array { .. } => "Array",
        Type::Nullable(_) => "Nullable",
    };
    name.to_owned()
}

/// Requests and notifications: definitions with a constant `method`.
fn methods(ir: &Ir) -> Vec<Method> {
    let mut methods: Vec<Method> = ir
        .definitions
        .iter()
        .filter_map(|d| method(ir, d))
        .collect();
    methods.sort_by(|a, b| (&a.method, &a.definition).cmp(&(&b.method, &b.definition)));
    methods
}

fn method(ir: &Ir, definition: &Definition) -> Option<Method> {
    let Shape::Struct(members) = &definition.shape else {
        return None;
    };
    let MemberValue::ConstString(method) = &members.iter().find(|m| m.name == "method")?.value
    else {
        return None;
    };
    let stem = definition.name.strip_suffix("Request");
    let params = members.iter().find(|m| m.name == "params");
    let sent_by = |side: &str| {
        let kind = if stem.is_some() {
            "Request"
        } else {
            "Notification"
        };
        is_member(ir, &format!("{side}{kind}"), &definition.name)
    };
    Some(Method {
        method: method.clone(),
        definition: definition.name.clone(),
        request: stem.is_some(),
        params: params.and_then(|member| match &member.value {
            MemberValue::Type(value) => Some(value.clone()),
            _ => None,
        }),
        params_required: params.is_some_and(|member| member.required),
        result: stem.and_then(|stem| {
            let own = format!("{stem}Result");
            let name = [own.as_str(), "EmptyResult"]
                .into_iter()
                .find(|name| ir.get(name).is_some());
            name.map(str::to_owned)
        }),
        from_client: sent_by("Client"),
        from_server: sent_by("Server"),
    })
}

fn is_member(ir: &Ir, union: &str, name: &str) -> bool {
    let is = |value: &Type| matches!(value, Type::Ref { name: found, .. } if found == name);
    match ir.get(union).map(|definition| &definition.shape) {
        Some(Shape::Union(union)) => union.variants.iter().any(|variant| is(&variant.value)),
        Some(Shape::Alias(value)) => is(value),
        _ => union == name,
    }
}
