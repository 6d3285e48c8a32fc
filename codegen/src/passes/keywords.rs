//! Traverses a schema and refuses every keyword and shape that the generator does not support.
//!
//! Returns an error with the JSON pointer, and adds notices for keywords that the generated types do not check.
//! Accepted keywords are handled by a later pass or are annotations.

use std::collections::BTreeSet;

use serde_json::{Map, Value, json};

use crate::error::{Result, shorten_value};
use crate::input::keywords::{is_annotation, is_container, is_count, is_known, is_unchecked};
use crate::input::schema::{Schema, escape};
use crate::notice::Notices;

/// Maximum nesting depth of schemas, and maximum length of a chain of references; official schemas stay below 20.
const MAX_DEPTH: usize = 64;

/// Maximum number of definitions in a schema; official schemas stay below 200.
const MAX_DEFINITIONS: usize = 2000;

/// Maximum number of variants in a union, which is above the protocol's unions and below the limit of `UnionDispatch`.
const MAX_MEMBERS: usize = 200;

/// Checks every definition for unsupported keywords, shapes and references.
///
/// # Errors
/// Returns an error for the first unsupported keyword or reference.
pub fn check(schema: &Schema, notices: &mut Notices) -> Result<()> {
    for (key, value) in schema.root.as_object().into_iter().flatten() {
        let known =
            key == schema.definitions || (is_annotation(key) && !is_container(key)) || key == "$id";
        if !known {
            let pointer = format!("/{}", escape(key));
            let problem = format!("the keyword `{key}` is not understood at the root of a schema");
            let remedy = "teach the generator what it means, or correct it by an erratum";
            return Err(schema.error(
                &pointer,
                format!("{problem} ({})", shorten_value(value)),
                remedy,
            ));
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
    let mut walk = KeywordCheck {
        schema,
        notices,
        acyclic_definitions: BTreeSet::new(),
    };
    for (name, definition) in definitions.into_iter().flatten() {
        walk.check_schema(definition, &schema.pointer(name), 0)?;
    }
    for name in definitions.into_iter().flatten().map(|(name, _)| name) {
        walk.check_references_end(name, &mut Vec::new())?;
    }
    Ok(())
}

/// Check of all keywords of a schema.
struct KeywordCheck<'s, 'n> {
    /// The checked schema.
    schema: &'s Schema,
    /// Notices about keywords that the generated types do not check.
    notices: &'n mut Notices,
    /// Definitions that were already checked to have no cycle of references.
    acyclic_definitions: BTreeSet<&'s str>,
}

impl<'s> KeywordCheck<'s, '_> {
    /// Checks a schema and the schemas in it.
    fn check_schema(&mut self, at: &Value, pointer: &str, depth: usize) -> Result<()> {
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
                return Err(self.schema.error(pointer, "this is not a schema", remedy));
            }
        };
        for (key, value) in object {
            let pointer = format!("{pointer}/{}", escape(key));
            // The keyword `items` is about the items behind a tuple, which are any JSON too.
            if is_annotation(key) || key == "items" && object.contains_key("prefixItems") {
                continue;
            }
            if key != "$ref" && object.contains_key("$ref") {
                let problem = format!("`{key}` stands beside `$ref`");
                let remedy = "teach the generator what it means, or correct it by an erratum";
                return Err(self.schema.error(&pointer, problem, remedy));
            }
            if !is_known(key) {
                let problem = format!("the keyword `{key}` is not understood");
                let remedy = "teach the generator what it means, or correct it by an erratum";
                return Err(self.schema.error(&pointer, problem, remedy));
            }
            self.check_keyword(key, value, &pointer, depth)?;
        }
        self.check_no_other_keywords(object, pointer)
    }

    /// Checks that no other keyword constrains the values of a union, because its variants describe them completely.
    fn check_no_other_keywords(&self, object: &Map<String, Value>, pointer: &str) -> Result<()> {
        let several = |key: &&&str| {
            object
                .get(**key)
                .and_then(Value::as_array)
                .is_some_and(|any| any.len() > 1)
        };
        let Some(union) = ["anyOf", "oneOf"].iter().find(several) else {
            return Ok(());
        };
        let beside = |key: &&String| key != union && !is_annotation(key);
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

    /// Checks the value of a keyword.
    fn check_keyword(
        &mut self,
        key: &str,
        value: &Value,
        pointer: &str,
        depth: usize,
    ) -> Result<()> {
        match key {
            "$ref" => self.check_reference(value, pointer),
            "properties" | "patternProperties" => {
                self.check_children(value.as_object().into_iter().flatten(), pointer, depth)
            }
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
                self.check_children(
                    named.iter().map(|(at, member)| (at, *member)),
                    pointer,
                    depth,
                )
            }
            "items" => self.check_schema(value, pointer, depth + 1),
            _ if is_count(key) && value.as_u64().is_none_or(|n| n > u64::from(u32::MAX)) => {
                let problem = format!("`{key}` is {}", shorten_value(value));
                let remedy = "write it without a fraction, and below 4294967296";
                Err(self.schema.error(pointer, problem, remedy))
            }
            "additionalProperties" if value != &Value::Bool(false) => {
                self.check_schema(value, pointer, depth + 1)
            }
            "propertyNames" => {
                if *value != json!({ "type": "string" }) {
                    self.notices
                        .add(pointer, "`validate()` does not check the names of members");
                }
                Ok(())
            }
            "pattern" => {
                let words = "`validate()` does not check strings against regular expressions, which differ between languages";
                self.notices.add(pointer, words);
                Ok(())
            }
            "prefixItems" => {
                let words =
                    "the items of this tuple are any JSON; `validate()` does not check them";
                self.notices.add(pointer, words);
                Ok(())
            }
            _ if is_unchecked(key) => {
                let words = format!("`validate()` does not check `{key}`");
                self.notices.add(pointer, &words);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Checks the schemas in a keyword's value.
    fn check_children<'v>(
        &mut self,
        children: impl Iterator<Item = (&'v String, &'v Value)>,
        pointer: &str,
        depth: usize,
    ) -> Result<()> {
        for (name, child) in children {
            self.check_schema(child, &format!("{pointer}/{}", escape(name)), depth + 1)?;
        }
        Ok(())
    }

    /// Checks that every chain of references ends. Follows references, and the variants of unions and intersections,
    /// but not the members or items of a value.
    fn check_references_end(&mut self, name: &'s str, path: &mut Vec<&'s str>) -> Result<()> {
        if self.acyclic_definitions.contains(name) {
            return Ok(());
        }
        let problem = if path.contains(&name) {
            format!("`{name}` is defined by itself")
        } else if path.len() > MAX_DEPTH {
            format!("`{name}` stands at the end of more than {MAX_DEPTH} references")
        } else {
            let schema = self.schema;
            path.push(name);
            for target in referenced_definitions(schema, &schema.root[schema.definitions][name]) {
                self.check_references_end(target, path)?;
            }
            path.pop();
            self.acyclic_definitions.insert(name);
            return Ok(());
        };
        let pointer = self.schema.pointer(path.last().unwrap_or(&name));
        let remedy = "take the reference out by an erratum";
        Err(self.schema.error(&pointer, problem, remedy))
    }

    /// Checks that a `$ref` refers to a definition of the schema.
    fn check_reference(&self, value: &Value, pointer: &str) -> Result<()> {
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

/// Returns the definitions that a schema refers to, directly or as a variant.
fn referenced_definitions<'s>(schema: &'s Schema, at: &'s Value) -> Vec<&'s str> {
    let reference = at["$ref"]
        .as_str()
        .and_then(|reference| schema.target(reference));
    let members = ["anyOf", "oneOf", "allOf"]
        .into_iter()
        .filter_map(|key| at[key].as_array())
        .flatten();
    let below = members.flat_map(|member| referenced_definitions(schema, member));
    reference.into_iter().chain(below).collect()
}
