//! Walks a schema and refuses every keyword and shape that the generator does not understand.
//!
//! Takes a corrected schema; gives nothing but an error with the pointer. What passes here is handled by a later pass or
//! is an annotation.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::error::{Result, brief};
use crate::input::schema::{Schema, escape};

/// Keywords that say nothing about instances.
const ANNOTATIONS: &[&str] = &[
    "$comment",
    "$schema",
    "default",
    "deprecated",
    "description",
    "examples",
    "title",
];

/// Keywords that later passes read.
const UNDERSTOOD: &[&str] = &[
    "$ref",
    "additionalProperties",
    "allOf",
    "anyOf",
    "const",
    "enum",
    "format",
    "items",
    "maxItems",
    "maximum",
    "minItems",
    "minimum",
    "oneOf",
    "properties",
    "propertyNames",
    "required",
    "type",
];

/// How deep schemas may be nested in each other, and how many references may lead on to each other; the official ones
/// stay below 20.
const MAX_DEPTH: usize = 64;

/// How many definitions a schema may have; the official ones stay below 200.
const MAX_DEFINITIONS: usize = 2000;

/// How many members a union may have: more than any of the protocol's, and less than the runtime's tables can number.
const MAX_MEMBERS: usize = 200;

/// Checks every definition.
///
/// # Errors
/// At the first keyword or reference that is not understood.
pub fn check(schema: &Schema) -> Result<()> {
    for (key, value) in schema.root.as_object().into_iter().flatten() {
        let known =
            key == schema.definitions || ANNOTATIONS.contains(&key.as_str()) || key == "$id";
        if !known {
            let pointer = format!("/{}", escape(key));
            let problem = format!("the keyword `{key}` is not understood at the root of a schema");
            let remedy = "teach the generator what it means, or correct it by an erratum";
            return Err(schema.error(&pointer, format!("{problem} ({})", brief(value)), remedy));
        }
    }
    let definitions = schema.root[schema.definitions].as_object();
    let count = definitions.map_or(0, Map::len);
    if count > MAX_DEFINITIONS {
        let pointer = format!("/{}", schema.definitions);
        let problem = format!("there are {count} definitions");
        let remedy = "a schema of the protocol has some hundreds; look at the file";
        return Err(schema.error(&pointer, problem, remedy));
    }
    let mut walk = Walk {
        schema,
        ends: BTreeSet::new(),
    };
    for (name, definition) in definitions.into_iter().flatten() {
        walk.schema(definition, &schema.pointer(name), 0)?;
    }
    for name in definitions.into_iter().flatten().map(|(name, _)| name) {
        walk.ends(name, &mut Vec::new())?;
    }
    Ok(())
}

struct Walk<'s> {
    schema: &'s Schema,
    /// Definitions whose references come to an end.
    ends: BTreeSet<&'s str>,
}

impl<'s> Walk<'s> {
    fn schema(&self, at: &Value, pointer: &str, depth: usize) -> Result<()> {
        if depth > MAX_DEPTH {
            let remedy = "a schema of the protocol is not nested like that; look at the file";
            return Err(self.schema.error(
                pointer,
                "schemas are nested deeper than 64 levels",
                remedy,
            ));
        }
        let object = match at {
            Value::Bool(true) => return Ok(()),
            Value::Object(object) => object,
            _ => {
                let remedy = "use an object; `false` as a schema is not supported";
                return Err(self.schema.error(pointer, "this is no schema", remedy));
            }
        };
        for (key, value) in object {
            let pointer = format!("{pointer}/{}", escape(key));
            if ANNOTATIONS.contains(&key.as_str()) {
                continue;
            }
            if key != "$ref" && object.contains_key("$ref") {
                let problem = format!("`{key}` stands beside `$ref`");
                let remedy = "teach the generator what it means, or correct it by an erratum";
                return Err(self.schema.error(&pointer, problem, remedy));
            }
            if key == "pattern" {
                let problem = "a string is restricted by a regular expression, and regular expressions differ \
                               between languages";
                let remedy = "the schema has to say it with `format` or `enum`; or take `pattern` out by an erratum, \
                              with the prose that the type then leaves to its user";
                return Err(self.schema.error(&pointer, problem, remedy));
            }
            if !UNDERSTOOD.contains(&key.as_str()) {
                let problem = format!("the keyword `{key}` is not understood");
                let remedy = "teach the generator what it means, or correct it by an erratum";
                return Err(self.schema.error(&pointer, problem, remedy));
            }
            self.keyword(key, value, &pointer, depth)?;
        }
        self.alone(object, pointer)
    }

    /// What a union of several members is says everything; nothing else may speak of the same value.
    fn alone(&self, object: &Map<String, Value>, pointer: &str) -> Result<()> {
        let several = |key: &&&str| {
            object
                .get(**key)
                .and_then(Value::as_array)
                .is_some_and(|any| any.len() > 1)
        };
        let Some(union) = ["anyOf", "oneOf"].iter().find(several) else {
            return Ok(());
        };
        let beside = |key: &&String| key != union && !ANNOTATIONS.contains(&key.as_str());
        match object.keys().find(beside) {
            None => Ok(()),
            Some(key) => {
                let pointer = format!("{pointer}/{key}");
                let problem = format!("`{key}` stands beside `{union}`");
                let remedy = "teach the generator what it means, or correct it by an erratum";
                Err(self.schema.error(&pointer, problem, remedy))
            }
        }
    }

    fn keyword(&self, key: &str, value: &Value, pointer: &str, depth: usize) -> Result<()> {
        match key {
            "$ref" => self.reference(value, pointer),
            "properties" => self.children(value.as_object().into_iter().flatten(), pointer, depth),
            "anyOf" | "oneOf" | "allOf" => {
                let count = value.as_array().map_or(0, Vec::len);
                if count > MAX_MEMBERS {
                    let problem = format!("`{key}` has {count} members");
                    let remedy = format!("{MAX_MEMBERS} are supported; look at the file");
                    return Err(self.schema.error(pointer, problem, remedy));
                }
                let members = value.as_array().into_iter().flatten().enumerate();
                let named: Vec<_> = members
                    .map(|(at, member)| (at.to_string(), member))
                    .collect();
                self.children(
                    named.iter().map(|(at, member)| (at, *member)),
                    pointer,
                    depth,
                )
            }
            "items" => self.schema(value, pointer, depth + 1),
            "maxItems" | "minItems" if value.as_u64().is_none_or(|n| n > u64::from(u32::MAX)) => {
                let problem = format!("`{key}` is {}", brief(value));
                let remedy = "write it without a fraction, and below 4294967296";
                Err(self.schema.error(pointer, problem, remedy))
            }
            "propertyNames"
                if value["type"] == "string" && value.as_object().map_or(0, Map::len) == 1 =>
            {
                Ok(())
            }
            "propertyNames" => {
                let problem = "`propertyNames` asks for more than that names are strings";
                let remedy = "take it out by an erratum, with the prose that the type then leaves to its user";
                Err(self.schema.error(pointer, problem, remedy))
            }
            "additionalProperties" if value != &Value::Bool(false) => {
                self.schema(value, pointer, depth + 1)
            }
            "additionalProperties" => {
                let problem =
                    "this object is closed, so that no later revision could add a member to it";
                let remedy = "objects of the protocol are open: the schema has to say `{}` here; correct it by an \
                              erratum, with the prose or the TypeScript source as its proof";
                Err(self.schema.error(pointer, problem, remedy))
            }
            _ => Ok(()),
        }
    }

    fn children<'v>(
        &self,
        children: impl Iterator<Item = (&'v String, &'v Value)>,
        pointer: &str,
        depth: usize,
    ) -> Result<()> {
        for (name, child) in children {
            self.schema(child, &format!("{pointer}/{}", escape(name)), depth + 1)?;
        }
        Ok(())
    }

    /// Follows what a definition is instead of what it holds: references, and members of unions and intersections.
    fn ends(&mut self, name: &'s str, path: &mut Vec<&'s str>) -> Result<()> {
        if self.ends.contains(name) {
            return Ok(());
        }
        let problem = if path.contains(&name) {
            format!("`{name}` is defined by itself")
        } else if path.len() > MAX_DEPTH {
            format!("`{name}` stands at the end of more than {MAX_DEPTH} references")
        } else {
            let schema = self.schema;
            path.push(name);
            for target in targets(schema, &schema.root[schema.definitions][name]) {
                self.ends(target, path)?;
            }
            path.pop();
            self.ends.insert(name);
            return Ok(());
        };
        let pointer = self.schema.pointer(path.last().unwrap_or(&name));
        let remedy = "take the reference out by an erratum";
        Err(self.schema.error(&pointer, problem, remedy))
    }

    fn reference(&self, value: &Value, pointer: &str) -> Result<()> {
        let target = value
            .as_str()
            .and_then(|reference| self.schema.target(reference));
        let found = target.is_some_and(|name| {
            self.schema.root[self.schema.definitions]
                .get(name)
                .is_some()
        });
        if found {
            return Ok(());
        }
        let problem = format!("the reference {value} names no definition");
        let remedy = format!("refer to a member of `{}`", self.schema.definitions);
        Err(self.schema.error(pointer, problem, remedy))
    }
}

/// The definitions that a schema is, or may be.
fn targets<'s>(schema: &'s Schema, at: &'s Value) -> Vec<&'s str> {
    let reference = at["$ref"]
        .as_str()
        .and_then(|reference| schema.target(reference));
    let members = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .filter_map(|key| at[key].as_array())
        .flatten();
    let below = members.flat_map(|member| targets(schema, member));
    reference.into_iter().chain(below).collect()
}
