//! Walks a schema and refuses every keyword and shape that the generator does not understand.
//!
//! Takes a corrected schema; gives nothing but an error with the pointer. What passes here is handled by a later pass or
//! is an annotation.

use serde_json::Value;

use crate::error::Result;
use crate::load::{Schema, escape};

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
    "required",
    "type",
];

/// How deep schemas may be nested in each other; the official ones stay below 20.
const MAX_DEPTH: usize = 64;

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
            return Err(schema.error(&pointer, format!("{problem} ({value})"), remedy));
        }
    }
    for (name, definition) in schema.root[schema.definitions]
        .as_object()
        .into_iter()
        .flatten()
    {
        Walk { schema }.schema(definition, &schema.pointer(name), 0)?;
    }
    Ok(())
}

struct Walk<'s> {
    schema: &'s Schema,
}

impl Walk<'_> {
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
            if !UNDERSTOOD.contains(&key.as_str()) {
                let problem = format!("the keyword `{key}` is not understood");
                let remedy = "teach the generator what it means, or correct it by an erratum";
                return Err(self.schema.error(&pointer, problem, remedy));
            }
            self.keyword(key, value, &pointer, depth)?;
        }
        Ok(())
    }

    fn keyword(&self, key: &str, value: &Value, pointer: &str, depth: usize) -> Result<()> {
        match key {
            "$ref" => self.reference(value, pointer),
            "properties" => self.children(value.as_object().into_iter().flatten(), pointer, depth),
            "anyOf" | "oneOf" | "allOf" => {
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
            "additionalProperties" if value != &Value::Bool(false) => {
                self.schema(value, pointer, depth + 1)
            }
            "additionalProperties" => {
                let remedy = "teach the generator closed objects, or correct it by an erratum";
                Err(self
                    .schema
                    .error(pointer, "closed objects are not supported", remedy))
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
