//! Rewrites constructs with several spellings to one canonical form.
//!
//! The output has no `allOf`, no unions of one variant, `anyOf` instead of `oneOf`, and one form of untyped objects.
//! The normalised schema accepts the same instances, except where a notice reports a widened construct.

mod absorb;
pub mod nullable;
mod refine;

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Map, Value, json};

use crate::error::Result;
use crate::input::keywords::{is_annotation, is_container, is_unchecked};
use crate::input::schema::{Schema, escape};
use crate::notice::Notices;

/// Rewrites every definition.
///
/// # Errors
/// Returns an error if the members of an `allOf` cannot be merged, or definitions refer to themselves without end.
pub fn normalise(schema: &mut Schema, notices: &mut Notices) -> Result<()> {
    let mut pass = Normaliser {
        schema,
        notices,
        resolved: BTreeMap::new(),
        copied_values: 0,
    };
    let mut definitions = Map::new();
    for (name, definition) in schema.root[schema.definitions]
        .as_object()
        .into_iter()
        .flatten()
    {
        let mut seen = BTreeSet::from([name.clone()]);
        let rewritten = pass.rewrite(definition.clone(), &schema.pointer(name), &mut seen)?;
        definitions.insert(name.clone(), rewritten);
    }
    schema.root[schema.definitions] = Value::Object(definitions);
    Ok(())
}

/// Returns true if a schema allows every value.
pub fn is_open(schema: &Value) -> bool {
    match schema {
        Value::Bool(open) => *open,
        Value::Object(object) => object.keys().all(|key| is_annotation(key)),
        _ => false,
    }
}

/// State of the pass over one schema.
struct Normaliser<'s, 'n> {
    /// The schema, whose definitions are rewritten.
    schema: &'s Schema,
    /// Notices about widened constructs.
    notices: &'n mut Notices,
    /// Definitions that an `allOf` refers to, in canonical form.
    resolved: BTreeMap<String, Value>,
    /// Number of values that `allOf` has copied from other definitions.
    copied_values: usize,
}

/// Maximum length of a chain of definitions through `allOf`.
const MAX_ALL_OF_CHAIN: usize = 32;

/// Maximum number of values that `allOf` copies.
const MAX_COPIED_VALUES: usize = 1_000_000;
/// Maximum nesting depth of values that `allOf` copies.
const MAX_NESTING: usize = 128;

impl Normaliser<'_, '_> {
    /// Rewrites a schema and all schemas in it; `seen` contains the definitions that are being merged.
    fn rewrite(&mut self, at: Value, pointer: &str, seen: &mut BTreeSet<String>) -> Result<Value> {
        let Value::Object(mut object) = at else {
            return Ok(json!({}));
        };
        // A definition has the dialect of its document.
        object.remove("$schema");
        object.retain(|key, _| !is_container(key));
        absorb::widen_patterns(&mut object, pointer, self.notices);
        absorb::widen_boolean_constant(&mut object, pointer, self.notices);
        absorb::widen_integer_enum(&mut object, pointer, self.notices);
        if object.contains_key("prefixItems") {
            object.insert("items".into(), json!({}));
        }
        object.retain(|key, _| !is_unchecked(key));
        if let Some(any) = object.remove("oneOf")
            && object.insert("anyOf".into(), any).is_some()
        {
            let problem = "`anyOf` and `oneOf` stand beside each other";
            let remedy = "say it with one of them by an erratum";
            return Err(self.schema.error(pointer, problem, remedy));
        }
        if let Some(Value::Array(all)) = object.remove("allOf") {
            object = self.merge_all(object, all, pointer, seen)?;
        }
        if let Some(Value::Array(any)) = object.get_mut("anyOf") {
            self.remove_equal_variants(any, pointer);
            if any.iter().any(is_open) && any.len() > 1 {
                self.notices.add(
                    pointer,
                    "one member of this union is any value, so the whole is any value",
                );
                object.remove("anyOf");
            }
        }
        object = self.unwrap_single_variant(object, pointer)?;
        for key in ["items", "additionalProperties"] {
            if let Some(inner) = object.remove(key) {
                if inner == Value::Bool(false) {
                    object.insert(key.into(), inner);
                    continue;
                }
                let inner = self.rewrite(inner, &format!("{pointer}/{key}"), seen)?;
                object.insert(key.into(), inner);
            }
        }
        if object.get("additionalProperties").is_some_and(is_open) {
            object.remove("additionalProperties");
        }
        if let Some(Value::Object(properties)) = object.get_mut("properties") {
            for (name, property) in properties.iter_mut() {
                let pointer = format!("{pointer}/properties/{}", escape(name));
                *property = self.rewrite(property.take(), &pointer, seen)?;
            }
        }
        if let Some(Value::Array(any)) = object.get_mut("anyOf") {
            for (index, member) in any.iter_mut().enumerate() {
                *member = self.rewrite(member.take(), &format!("{pointer}/anyOf/{index}"), seen)?;
            }
            absorb::merge_arrays(self.schema, any, pointer, self.notices);
            // Members that differ only in descriptions are merged.
            self.remove_equal_variants(any, pointer);
        }
        object = self.unwrap_single_variant(object, pointer)?;
        let mut object = nullable::extract_null(object);
        if nullable::inner_mut(&mut object).is_some_and(|inner| inner["anyOf"].is_array())
            && let Some(inner) = nullable::inner_mut(&mut object)
        {
            *inner = Value::Object(simplify_union(as_object(inner.take())));
        }
        Ok(Value::Object(simplify_union(object)))
    }

    /// Replaces a union of one variant by the variant.
    fn unwrap_single_variant(
        &self,
        mut object: Map<String, Value>,
        pointer: &str,
    ) -> Result<Map<String, Value>> {
        match object.get_mut("anyOf") {
            Some(Value::Array(any)) if any.len() == 1 => {
                let one = any.remove(0);
                object.remove("anyOf");
                self.merge(object, as_object(one), pointer)
            }
            _ => Ok(object),
        }
    }

    /// Keeps the first of several variants that are equal apart from descriptions.
    fn remove_equal_variants(&mut self, any: &mut Vec<Value>, pointer: &str) {
        let mut known = BTreeSet::new();
        let mut index = 0;
        any.retain(|member| {
            let mut member = as_object(member.clone());
            member.retain(|key, _| !is_annotation(key));
            let is_new = known.insert(Value::Object(member).to_string());
            if !is_new {
                let pointer = format!("{pointer}/anyOf/{index}");
                self.notices.add(
                    &pointer,
                    "this variant of the union is there already, and left out",
                );
            }
            index += 1;
            is_new
        });
    }

    /// Merges an `allOf` and its adjacent keywords into one object.
    fn merge_all(
        &mut self,
        beside: Map<String, Value>,
        all: Vec<Value>,
        pointer: &str,
        seen: &mut BTreeSet<String>,
    ) -> Result<Map<String, Value>> {
        let description = beside.get("description").cloned();
        let mut merged = beside;
        for (index, member) in all.into_iter().enumerate() {
            let pointer = format!("{pointer}/allOf/{index}");
            let resolved = as_object(self.resolve(member, &pointer, seen)?);
            merged = match (merged.remove("anyOf"), resolved.get("anyOf").is_some()) {
                (None, false) => self.merge(merged, resolved, &pointer)?,
                (None, true) => self.distribute_over_union(resolved, merged, &pointer, seen)?,
                (Some(any), false) => {
                    merged.insert("anyOf".into(), any);
                    self.distribute_over_union(merged, resolved, &pointer, seen)?
                }
                (Some(_), true) => {
                    let problem = "two unions are in one `allOf`";
                    let remedy = "say which of their members go together by an erratum";
                    return Err(self.schema.error(&pointer, problem, remedy));
                }
            };
        }
        match description {
            Some(description) => merged.insert("description".into(), description),
            None => merged.remove("description"),
        };
        Ok(merged)
    }

    /// Distributes an `allOf` over a union in it: each variant gets all other constraints.
    fn distribute_over_union(
        &mut self,
        mut union: Map<String, Value>,
        rest: Map<String, Value>,
        pointer: &str,
        seen: &mut BTreeSet<String>,
    ) -> Result<Map<String, Value>> {
        let annotation = |(key, _): &(&String, &Value)| is_annotation(key);
        let (words, mut rest): (Map<String, Value>, Map<String, Value>) = rest
            .into_iter()
            .partition(|(key, value)| annotation(&(key, value)));
        let members = match union.remove("anyOf") {
            Some(Value::Array(members)) => members,
            _ => Vec::new(),
        };
        let (mut kept, beside): (Map<String, Value>, Map<String, Value>) = union
            .into_iter()
            .partition(|(key, value)| annotation(&(key, value)));
        rest = self.merge(rest, beside, pointer)?;
        let mut distributed = Vec::new();
        for member in members {
            let member = as_object(self.resolve(member, pointer, seen)?);
            if member.contains_key("anyOf") {
                let problem = "a union inside a union is in an `allOf`";
                let remedy = "write the members of both as one union by an erratum";
                return Err(self.schema.error(pointer, problem, remedy));
            }
            let merged = self.merge(member, rest.clone(), pointer)?;
            self.count_copies(&Value::Object(merged.clone()), pointer)?;
            distributed.push(Value::Object(merged));
        }
        for (key, value) in words {
            kept.entry(key).or_insert(value);
        }
        kept.insert("anyOf".into(), Value::Array(distributed));
        Ok(kept)
    }

    /// Returns an element of an `allOf` in canonical form; a reference is replaced by its definition.
    fn resolve(
        &mut self,
        member: Value,
        pointer: &str,
        seen: &mut BTreeSet<String>,
    ) -> Result<Value> {
        let Some(name) = member["$ref"].as_str().and_then(|r| self.schema.target(r)) else {
            return self.rewrite(member, pointer, seen);
        };
        if let Some(resolved) = self.resolved.get(name) {
            let resolved = resolved.clone();
            self.count_copies(&resolved, pointer)?;
            return Ok(resolved);
        }
        if seen.len() > MAX_ALL_OF_CHAIN {
            let problem =
                format!("`allOf` leads on to `allOf` for more than {MAX_ALL_OF_CHAIN} steps");
            let remedy = "a schema of the protocol has one or two; look at the file";
            return Err(self.schema.error(pointer, problem, remedy));
        }
        if !seen.insert(name.into()) {
            let problem = format!("`{name}` is a part of itself");
            let remedy = "take the cycle out of `allOf` by an erratum";
            return Err(self.schema.error(pointer, problem, remedy));
        }
        let definition = self.schema.root[self.schema.definitions][name].clone();
        let resolved = self.rewrite(definition, &self.schema.pointer(name), seen)?;
        seen.remove(name);
        self.count_copies(&resolved, pointer)?;
        self.resolved.insert(name.to_owned(), resolved.clone());
        Ok(resolved)
    }

    /// Counts the values that `allOf` copies, and returns an error above the limits: copies of copies grow
    /// exponentially.
    fn count_copies(&mut self, copied_values: &Value, pointer: &str) -> Result<()> {
        let (values, depth) = count_and_depth(copied_values);
        self.copied_values += values;
        if self.copied_values <= MAX_COPIED_VALUES && depth <= MAX_NESTING {
            return Ok(());
        }
        let problem = "`allOf` copies more and more into itself";
        let remedy = "a schema of the protocol does not grow like that; look at the file";
        Err(self.schema.error(pointer, problem, remedy))
    }

    /// Merges two object schemas into one with the constraints of both.
    fn merge(
        &self,
        mut a: Map<String, Value>,
        b: Map<String, Value>,
        pointer: &str,
    ) -> Result<Map<String, Value>> {
        self.check_closed(&a, &b, pointer)?;
        for (key, from_b) in b {
            let from_a = a.get(&key).cloned();
            let merged = match (key.as_str(), from_a) {
                (_, None) => from_b,
                (_, Some(from_a)) if from_a == from_b => from_a,
                (key, Some(from_a)) if is_annotation(key) => from_a,
                ("required", Some(from_a)) => combine_types(&from_a, &from_b),
                // The types differ: one is `number`, and the other is `integer`, whose values are all numbers.
                ("type", Some(from_a)) if both_numbers(&from_a, &from_b) => json!("integer"),
                ("properties", Some(from_a)) => self.merge_properties(from_a, from_b, pointer)?,
                ("$ref", Some(from_a)) if refine::refines(self.schema, &from_b, &from_a) => from_b,
                ("$ref", Some(from_a)) if refine::refines(self.schema, &from_a, &from_b) => from_a,
                (key, Some(_)) => {
                    let problem = format!("two schemas disagree about `{key}` of the same value");
                    let remedy = "say one of them by an erratum";
                    return Err(self.schema.error(pointer, problem, remedy));
                }
            };
            a.insert(key, merged);
        }
        Ok(a)
    }

    /// Checks the closed objects of an `allOf`, which allow only the members that they define.
    fn check_closed(
        &self,
        a: &Map<String, Value>,
        b: &Map<String, Value>,
        pointer: &str,
    ) -> Result<()> {
        let is_closed =
            |one: &Map<String, Value>| one.get("additionalProperties") == Some(&Value::Bool(false));
        let names = |one: &Map<String, Value>| -> BTreeSet<String> {
            let properties = one.get("properties").and_then(Value::as_object);
            properties
                .into_iter()
                .flatten()
                .map(|(name, _)| name.clone())
                .collect()
        };
        let forbidden = |closed: &Map<String, Value>, other: &Map<String, Value>| {
            let (own, others) = (names(closed), names(other));
            let mut forbidden = others.difference(&own).cloned();
            is_closed(closed).then(|| forbidden.next()).flatten()
        };
        let Some(name) = forbidden(a, b).or_else(|| forbidden(b, a)) else {
            return Ok(());
        };
        let problem =
            format!("a closed object in this `allOf` forbids the member `{name}` of another one");
        let remedy = "close the whole instead of its part by an erratum";
        Err(self.schema.error(pointer, problem, remedy))
    }

    /// Merges the members of two objects; a member of both must satisfy both schemas.
    fn merge_properties(&self, a: Value, b: Value, pointer: &str) -> Result<Value> {
        let mut merged = as_object(a);
        for (name, from_b) in as_object(b) {
            let pointer = format!("{pointer}/properties/{}", escape(&name));
            let both = match merged.remove(&name) {
                None => from_b,
                Some(from_a) if is_open(&from_a) => with_description(from_b, &from_a),
                Some(from_a) if is_open(&from_b) => from_a,
                Some(from_a) if is_constant_of(&from_b, &from_a) => {
                    with_description(from_b, &from_a)
                }
                Some(from_a) if is_any_object(&from_a) && is_objects(&from_b) => {
                    with_description(from_b, &from_a)
                }
                Some(from_a) => {
                    Value::Object(self.merge(as_object(from_a), as_object(from_b), &pointer)?)
                }
            };
            merged.insert(name, both);
        }
        Ok(Value::Object(merged))
    }
}

/// Simplifies a union that is equivalent to one type: a union of constants becomes an enum, a type and null become a
/// nullable type.
fn simplify_union(mut object: Map<String, Value>) -> Map<String, Value> {
    let Some(Value::Array(any)) = object.get("anyOf") else {
        return object;
    };
    let constant = |member: &Value| {
        let only = member
            .as_object()?
            .keys()
            .all(|k| k == "const" || k == "type");
        let value = member["const"].as_str()?;
        (only && member["type"] == "string").then(|| value.to_owned())
    };
    let constants: Option<Vec<String>> = any.iter().map(constant).collect();
    let or_null = match &any[..] {
        [one, null] if *null == json!({"type": "null"}) => one.as_object(),
        _ => None,
    };
    let one = if let Some(constants) = constants {
        json!({"type": "string", "enum": constants})
    } else if let Some(one) = or_null.filter(|one| {
        one.get("type").is_some_and(Value::is_string)
            && !one.contains_key("const")
            && !one.contains_key("enum")
            && !one.contains_key("properties")
    }) {
        let mut one = one.clone();
        one.insert("type".into(), json!([one["type"], "null"]));
        Value::Object(one)
    } else {
        return object;
    };
    object.remove("anyOf");
    for (key, value) in as_object(one) {
        object.entry(key).or_insert(value);
    }
    object
}

/// Returns true if `a` is a constant, and `b` is a schema that only requires the type of this constant.
fn is_constant_of(a: &Value, b: &Value) -> bool {
    let wanted = b["type"].as_str();
    let only_type = as_object(b.clone())
        .keys()
        .all(|key| key == "type" || is_annotation(key));
    only_type
        && match &a["const"] {
            Value::Number(number) => {
                wanted == Some("number") || (wanted == Some("integer") && number.is_i64())
            }
            Value::String(_) => wanted == Some("string"),
            _ => false,
        }
}

/// Returns true if a schema allows exactly all objects.
fn is_any_object(schema: &Value) -> bool {
    let open = |(key, value): (&String, &Value)| {
        key == "type" || is_annotation(key) || (key == "additionalProperties" && is_open(value))
    };
    schema["type"] == "object" && schema.as_object().is_some_and(|s| s.iter().all(open))
}

/// Returns true for a union of objects.
fn is_objects(schema: &Value) -> bool {
    let members = schema["anyOf"].as_array();
    members.is_some_and(|members| members.iter().all(|member| member["type"] == "object"))
}

/// Adds the description of `from` to a schema without a description.
fn with_description(mut schema: Value, from: &Value) -> Value {
    if let (Some(object), Some(words)) = (schema.as_object_mut(), from.get("description")) {
        object.entry("description").or_insert(words.clone());
    }
    schema
}

/// Returns true if each of two types is `number` or `integer`.
fn both_numbers(a: &Value, b: &Value) -> bool {
    let is_number = |value: &Value| value == "number" || value == "integer";
    is_number(a) && is_number(b)
}

/// Returns the union of two lists of types.
fn combine_types(a: &Value, b: &Value) -> Value {
    let names = a.as_array().into_iter().chain(b.as_array()).flatten();
    let names: BTreeSet<_> = names.filter_map(Value::as_str).collect();
    json!(names)
}

/// Returns the members of a JSON object; empty for other values.
fn as_object(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(object) => object,
        _ => Map::new(),
    }
}

/// Returns the number of nested values, and their depth.
fn count_and_depth(value: &Value) -> (usize, usize) {
    let inner: Vec<&Value> = match value {
        Value::Array(items) => items.iter().collect(),
        Value::Object(object) => object.values().collect(),
        _ => Vec::new(),
    };
    inner
        .into_iter()
        .map(count_and_depth)
        .fold((1, 1), |(values, depth), (more, below)| {
            (values + more, depth.max(below + 1))
        })
}

#[cfg(test)]
mod tests;
