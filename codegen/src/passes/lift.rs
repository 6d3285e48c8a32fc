//! Gives every anonymous object, union and enum a name and a definition.
//!
//! The input is a normalised schema and the entries of `schema/names.toml`. In the output, every member is a scalar, a
//! reference, an untyped value, or an array or map of these. Equal anonymous schemas share one name: the one from
//! `schema/names.toml`, or the shortest of the automatic names.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use crate::error::Result;
use crate::input::names::Name;
use crate::input::schema::{Schema, escape};
use crate::ir::names::{is_type_name, member_type, value_variant};
use crate::notice::Notices;
use crate::passes::normalise::nullable;

/// A generated definition for schemas that are anonymous in the official schema.
#[derive(Debug, Clone)]
pub struct LiftedDefinition {
    /// Generated name.
    pub name: String,
    /// JSON pointers of the anonymous schemas that the definition replaces.
    pub pointers: Vec<String>,
}

/// Lifts anonymous schemas; returns the lifted definitions.
///
/// # Errors
/// Returns an error if two different definitions would have the same name, or a name cannot be a Rust type.
pub fn lift(
    schema: &mut Schema,
    names: &[Name],
    notices: &mut Notices,
) -> Result<Vec<LiftedDefinition>> {
    let mut pass = Lifter::new(schema);
    let mut scratch = schema.root[schema.definitions].clone();
    pass.visit_all(schema, &mut scratch);
    pass.choose_names(schema, names, notices)?;
    pass.is_replacing = true;
    let mut definitions = schema.root[schema.definitions].clone();
    pass.visit_all(schema, &mut definitions);
    let Some(all) = definitions.as_object_mut() else {
        return Ok(Vec::new());
    };
    for (name, definition) in pass.lifted_definitions {
        all.insert(name, definition);
    }
    definitions.sort_all_objects();
    schema.root[schema.definitions] = definitions;
    let groups = pass.groups.into_values();
    let lifted = groups.map(|group| LiftedDefinition {
        name: group.name,
        pointers: group.pointers,
    });
    Ok(lifted.collect())
}

/// Anonymous schemas with the same structural key, which share one definition.
#[derive(Default)]
struct Group {
    /// Name that the pass has chosen for the definition.
    name: String,
    /// Automatic names of the schemas in the group.
    proposals: BTreeSet<String>,
    /// JSON pointers of the schemas in the group.
    pointers: Vec<String>,
}

/// Pass over a schema: the first traversal collects anonymous schemas, the second replaces them by references.
struct Lifter {
    /// Prefix of a `$ref` to a definition.
    prefix: String,
    /// Names of the schema's own definitions, by their structural keys.
    official: BTreeMap<String, String>,
    /// Groups of anonymous schemas, by their structural keys.
    groups: BTreeMap<String, Group>,
    /// True during the second traversal.
    is_replacing: bool,
    /// Lifted schemas by their names.
    lifted_definitions: BTreeMap<String, Value>,
}

/// Location in the schema: the name that an anonymous schema would get, and the JSON pointer.
#[derive(Clone)]
struct Location {
    /// Name that an anonymous schema at this location would get.
    name: String,
    /// JSON pointer of the location.
    pointer: String,
    /// True for a required member: a `const` schema there needs no definition, because the type of the object writes
    /// the constant.
    required: bool,
}

impl Location {
    /// Returns the location of a subschema; `name` is appended to the automatic name, and `tokens` to the JSON pointer.
    fn child_location(&self, name: &str, tokens: &str, required: bool) -> Self {
        Self {
            name: format!("{}{name}", self.name),
            pointer: format!("{}/{tokens}", self.pointer),
            required,
        }
    }
}

impl Lifter {
    /// Creates the state before the first traversal.
    fn new(schema: &Schema) -> Self {
        let definitions = schema.root[schema.definitions].as_object();
        let official = definitions
            .into_iter()
            .flatten()
            .map(|(name, definition)| (structural_key(definition, ""), name.clone()))
            .rev()
            .collect();
        Self {
            prefix: format!("#/{}/", schema.definitions),
            official,
            groups: BTreeMap::new(),
            is_replacing: false,
            lifted_definitions: BTreeMap::new(),
        }
    }

    /// Visits the subschemas of all definitions.
    fn visit_all(&mut self, schema: &Schema, definitions: &mut Value) {
        for (name, definition) in definitions.as_object_mut().into_iter().flatten() {
            let place = Location {
                name: name.clone(),
                pointer: schema.pointer(name),
                required: true,
            };
            self.visit_children(definition, &place, "Item");
        }
    }

    /// Visits the direct subschemas of a schema; `item` is the word that names the items of an array.
    fn visit_children(&mut self, at: &mut Value, place: &Location, item: &str) {
        if let Some(items) = at.get_mut("items") {
            self.visit(items, &place.child_location(item, "items", false));
        }
        if let Some(values) = at.get_mut("additionalProperties") {
            self.visit(
                values,
                &place.child_location("Value", "additionalProperties", false),
            );
        }
        let required = at["required"].clone();
        let is_required = |name: &str| {
            required
                .as_array()
                .is_some_and(|all| all.iter().any(|n| n == name))
        };
        for (name, property) in at
            .get_mut("properties")
            .and_then(Value::as_object_mut)
            .into_iter()
            .flatten()
        {
            let tokens = format!("properties/{}", escape(name));
            let below = Location {
                name: member_type(&place.name, name),
                ..place.child_location("", &tokens, is_required(name))
            };
            self.visit(property, &below);
        }
        if let Some(inner) = at.as_object_mut().and_then(nullable::inner_mut) {
            // A nullable type has the name of its value type, unless a definition has that name.
            let name = if item.is_empty() { "" } else { "Value" };
            self.visit(inner, &place.child_location(name, "anyOf/0", false));
            return;
        }
        let words = variant_words(at["anyOf"].as_array().map_or(&[], Vec::as_slice));
        for (index, member) in at
            .get_mut("anyOf")
            .and_then(Value::as_array_mut)
            .into_iter()
            .flatten()
            .enumerate()
        {
            let below = place.child_location(&words[index], &format!("anyOf/{index}"), false);
            self.visit_variant(member, &below);
        }
    }

    /// Visits an anonymous variant of a union.
    fn visit_variant(&mut self, at: &mut Value, place: &Location) {
        if let Some(name) = self
            .official
            .get(&structural_key(at, ""))
            .filter(|_| at["type"] == "array")
        {
            *at = json!({"$ref": format!("{}{name}", self.prefix)});
            return;
        }
        if at["type"].is_array() {
            return;
        }
        self.visit(at, place);
    }

    /// Visits a subschema: collects or replaces the schema if it needs a definition, and visits the schemas in it.
    fn visit(&mut self, at: &mut Value, place: &Location) {
        if !is_liftable(at, place.required) {
            self.visit_children(at, place, "");
            return;
        }
        let own = if is_json_schema_document(at, place) {
            place.name.as_str()
        } else {
            ""
        };
        let meaning = structural_key(at, own);
        if self.is_replacing {
            self.replace(at, place, &meaning);
        } else {
            if !self.official.contains_key(&meaning) {
                let group = self.groups.entry(meaning).or_default();
                group.proposals.insert(place.name.clone());
                group.pointers.push(place.pointer.clone());
            }
            self.visit_children(at, place, "Item");
        }
    }

    /// Replaces a schema by a reference to the definition whose structural key is `meaning`.
    fn replace(&mut self, at: &mut Value, place: &Location, meaning: &str) {
        let name = match (self.official.get(meaning), self.groups.get(meaning)) {
            (Some(name), _) => name.clone(),
            (None, Some(group)) => group.name.clone(),
            (None, None) => return,
        };
        let description = at.get("description").cloned();
        self.visit_children(at, place, "Item");
        if !self.official.contains_key(meaning) && !self.lifted_definitions.contains_key(&name) {
            if is_json_schema_document(at, place) {
                at["x-document"] = json!(true);
            }
            self.lifted_definitions.insert(name.clone(), at.take());
        }
        *at = json!({"$ref": format!("{}{name}", self.prefix)});
        if let Some(description) = description {
            at["description"] = description;
        }
    }

    /// Chooses the name of each group from `schema/names.toml` or the automatic names; checks that every entry is used.
    fn choose_names(
        &mut self,
        schema: &Schema,
        names: &[Name],
        notices: &mut Notices,
    ) -> Result<()> {
        let mut used: BTreeMap<&str, &str> = BTreeMap::new();
        let wanted: Vec<&Name> = names
            .iter()
            .filter(|name| name.revisions.contains(&schema.revision))
            .collect();
        for name in &wanted {
            if !self
                .groups
                .values()
                .any(|group| group.pointers.contains(&name.pointer))
            {
                let problem = format!(
                    "there is nothing anonymous here to be named `{}`",
                    name.name
                );
                return Err(schema.error(&name.pointer, problem, "amend schema/names.toml"));
            }
        }
        let mut given_names: BTreeSet<String> =
            wanted.iter().map(|name| name.name.clone()).collect();
        for group in self.groups.values_mut() {
            let mut given = wanted
                .iter()
                .filter(|name| group.pointers.contains(&name.pointer));
            let (given, second) = (given.next(), given.next());
            if let (Some(given), Some(second)) = (given, second) {
                let problem = format!(
                    "`{}` names what `{}` at {} names already: equal schemas share one name",
                    second.name, given.name, given.pointer
                );
                let remedy = "take one of the two out of schema/names.toml";
                return Err(schema.error(&second.pointer, problem, remedy));
            }
            group.name = match given {
                Some(name) => name.name.clone(),
                None => {
                    let name = self::unused_name(&group.proposals, |name| {
                        schema.root[schema.definitions].get(name).is_some()
                            || given_names.contains(name)
                    });
                    if name != shortest(&group.proposals) {
                        let words = format!(
                            "what is anonymous here is called `{name}`, as a shorter name is taken"
                        );
                        notices.add(&group.pointers[0], words);
                    }
                    name
                }
            };
            given_names.insert(group.name.clone());
        }
        for group in self.groups.values() {
            let pointer = &group.pointers[0];
            let taken = schema.root[schema.definitions].get(&group.name).is_some()
                || used.insert(&group.name, pointer).is_some();
            if taken || !is_type_name(&group.name) {
                let why = if taken {
                    "is taken"
                } else {
                    "can be no Rust type"
                };
                let problem = format!("the name `{}` {why}", group.name);
                return Err(schema.error(pointer, problem, "add a name to schema/names.toml"));
            }
        }
        Ok(())
    }
}

/// Returns the shortest proposal that no definition has, or the shortest proposal with an additional word.
fn unused_name(proposals: &BTreeSet<String>, is_taken: impl Fn(&str) -> bool) -> String {
    let mut sorted: Vec<&String> = proposals.iter().collect();
    sorted.sort_by_key(|name| name.len());
    let found = sorted.into_iter().find(|name| !is_taken(name));
    let words = ["Inline", "Value", "Item", "Part"];
    let mut longer = words.iter().map(|word| shortest(proposals) + word);
    found
        .cloned()
        .or_else(|| longer.find(|name| !is_taken(name)))
        .unwrap_or_else(|| shortest(proposals))
}

/// Returns the shortest proposal.
fn shortest(proposals: &BTreeSet<String>) -> String {
    let shortest = proposals.iter().min_by_key(|name| name.len());
    shortest.cloned().unwrap_or_default()
}

/// Returns the structural key of a schema: `own` and the contents of the schema without its own description.
fn structural_key(schema: &Value, own: &str) -> String {
    let mut schema = schema.clone();
    if let Some(object) = schema.as_object_mut() {
        object.remove("description");
    }
    format!("{own}{schema}")
}

/// Returns a word that names each anonymous variant of a union: the value of one of its constants, preferably one that
/// no other variant has.
fn variant_words(members: &[Value]) -> Vec<String> {
    let constants = |member: &Value| -> Vec<(String, String)> {
        let own = member["const"].as_str().map(|value| ("", value));
        let properties = member["properties"].as_object().into_iter().flatten();
        let inner = properties.filter_map(|(name, p)| Some((name.as_str(), p["const"].as_str()?)));
        let all = own.into_iter().chain(inner);
        all.map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect()
    };
    let all: Vec<Vec<(String, String)>> = members.iter().map(constants).collect();
    let count = |constant: &(String, String)| all.iter().filter(|c| c.contains(constant)).count();
    let word = |constants: &Vec<(String, String)>| {
        let own = constants.iter().find(|constant| count(constant) == 1);
        let word = own.or(constants.first());
        word.map_or_else(String::new, |(_, value)| value_variant(value))
    };
    all.iter().map(word).collect()
}

/// Returns true if a schema needs a definition; `required` is true for required members, whose constants need none.
fn is_liftable(at: &Value, required: bool) -> bool {
    let constant = at.get("const").is_some();
    let several = at["type"]
        .as_array()
        .is_some_and(|types| !is_nullable(types));
    has_members(at)
        || (at.get("anyOf").is_some() && nullable::inner(at).is_none())
        || (at.get("enum").is_some() && !constant)
        || (constant && !required)
        || several
}

/// Returns true for the schema of an object with known members or without additional members.
pub fn has_members(at: &Value) -> bool {
    let has_properties = at["properties"].as_object().is_some_and(|p| !p.is_empty());
    has_properties || (at["type"] == "object" && at["additionalProperties"] == false)
}

/// Returns true if a list of types consists of one type and null.
pub fn is_nullable(types: &[Value]) -> bool {
    types.len() == 2 && types.iter().any(|t| t == "null")
}

/// Returns true for JSON Schema documents inside messages: members called `…Schema` without references to definitions
/// of the protocol.
fn is_json_schema_document(at: &Value, place: &Location) -> bool {
    at["properties"].is_object()
        && place.pointer.ends_with("Schema")
        && place.pointer.contains("/properties/")
        && !at.to_string().contains("\"$ref\"")
}

#[cfg(test)]
mod tests;
