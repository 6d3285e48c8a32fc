//! Combines the constraints of several schemas that a value must satisfy.
//!
//! `$ref` is resolved and `allOf` is merged; the caller selects the branches of `anyOf` and `oneOf`. An unknown
//! keyword, or a `$ref` without a target, causes a panic with the JSON pointer.

use std::collections::BTreeSet;

use serde_json::{Map, Value};

use crate::rng::Rng;
use crate::text::{Doc, is_same_json};

/// Keywords without effect on validity.
const ANNOTATION_KEYWORDS: [&str; 11] = [
    "$comment",
    "$id",
    "$schema",
    "default",
    "definitions",
    "$defs",
    "deprecated",
    "description",
    "examples",
    "readOnly",
    "title",
];

/// Keywords that constrain a value and whose own value contains no schema.
const LEAF_KEYWORDS: [&str; 13] = [
    "$ref",
    "const",
    "enum",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "format",
    "maxItems",
    "maxLength",
    "maximum",
    "minItems",
    "minLength",
    "minimum",
    "required",
];

/// Maximum number of consecutive `$ref` and `allOf` steps; more steps mean that a definition refers to itself.
const MAX_STEPS: usize = 64;

/// Returns the sorted names of all definitions of a schema document.
///
/// # Panics
///
/// If the document has neither `definitions` nor `$defs`.
pub fn definition_names(document: &Value) -> Vec<&str> {
    let mut names: Vec<&str> = definitions_of(document)
        .keys()
        .map(String::as_str)
        .collect();
    names.sort_unstable();
    names
}

/// Returns the definitions of a schema document.
///
/// # Panics
///
/// If the document has neither `definitions` nor `$defs`.
pub(crate) fn definitions_of(document: &Value) -> &Map<String, Value> {
    ["definitions", "$defs"]
        .iter()
        .find_map(|key| document.get(key)?.as_object())
        .expect("a schema document has `definitions` or `$defs`")
}

/// Schema document whose keywords were checked.
#[derive(Clone, Debug)]
pub(crate) struct Definitions<'s> {
    /// Schemas of the definitions, by name.
    table: &'s Map<String, Value>,
    /// True if keywords next to a `$ref` apply, as in all dialects after draft-07.
    ref_has_siblings: bool,
    /// Names of all members that the schemas of the document declare, sorted.
    member_names: Vec<&'s str>,
}

/// Set of the JSON types that a value may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Types(u8);

impl Types {
    /// The type `null`.
    pub(crate) const NULL: Self = Self(1);
    /// The type `boolean`.
    pub(crate) const BOOL: Self = Self(2);
    /// Numbers with an integer value.
    pub(crate) const INTEGER: Self = Self(4);
    /// Numbers with a value that is not an integer.
    pub(crate) const FRACTION: Self = Self(8);
    /// The type `string`.
    pub(crate) const STRING: Self = Self(16);
    /// The type `array`.
    pub(crate) const ARRAY: Self = Self(32);
    /// The type `object`.
    pub(crate) const OBJECT: Self = Self(64);
    /// All numbers.
    pub(crate) const NUMBER: Self = Self(4 | 8);
    /// All types.
    pub(crate) const ALL: Self = Self(127);

    /// Returns the JSON type of a document.
    pub(crate) fn type_of(doc: &Doc) -> Self {
        match doc {
            Doc::Null => Self::NULL,
            Doc::Bool(_) => Self::BOOL,
            Doc::Number(text) if is_integer(text) => Self::INTEGER,
            Doc::Number(_) => Self::FRACTION,
            Doc::String(_) => Self::STRING,
            Doc::Array(_) => Self::ARRAY,
            Doc::Object(_) => Self::OBJECT,
        }
    }

    /// Returns true if the sets have a type in common.
    pub(crate) fn intersects(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the set for a type name of JSON Schema.
    fn from_name(name: &str) -> Self {
        match name {
            "null" => Self::NULL,
            "boolean" => Self::BOOL,
            "integer" => Self::INTEGER,
            "number" => Self::NUMBER,
            "string" => Self::STRING,
            "array" => Self::ARRAY,
            "object" => Self::OBJECT,
            other => panic!("unknown type {other:?}"),
        }
    }

    /// Returns the set for the value of `type`, which is a name or an array of names.
    fn from_keyword(value: &Value) -> Self {
        match value {
            Value::String(name) => Self::from_name(name),
            Value::Array(names) => Self(
                names
                    .iter()
                    .filter_map(Value::as_str)
                    .fold(0, |set, name| set | Self::from_name(name).0),
            ),
            other => panic!("`type` is neither a string nor an array: {other}"),
        }
    }
}

/// Returns true if a number is an integer in JSON Schema, such as `7`, `7.0` and `1e3`.
pub(crate) fn is_integer(number: &str) -> bool {
    let value = as_f64(number);
    !value.is_finite() || value.fract() == 0.0
}

/// Returns the rounded value of a number's text; infinite if it is too large.
pub(crate) fn as_f64(number: &str) -> f64 {
    number.parse().expect("the text of a number is a number")
}

/// All schemas that one value must satisfy, with `$ref` and `allOf` resolved.
#[derive(Clone, Debug, Default)]
pub(crate) struct Constraints<'s> {
    /// Schemas whose keywords apply to the value; `$ref` and `allOf` are replaced by the schemas to which they refer.
    schemas_without_references: Vec<&'s Map<String, Value>>,
    /// Branches of each `anyOf` and `oneOf` of which no branch was selected yet.
    pub(crate) open_choices: Vec<&'s [Value]>,
    /// Branches of each `anyOf` and `oneOf` of which a branch was selected.
    pub(crate) selected_choices: Vec<&'s [Value]>,
    /// True if one of the schemas is `false`, so that no value is valid.
    is_never: bool,
}

impl<'s> Definitions<'s> {
    /// Checks the keywords of a schema document and collects its definitions.
    pub(crate) fn new(document: &'s Value) -> Self {
        let table = definitions_of(document);
        let mut names = BTreeSet::new();
        for (name, schema) in table {
            check_keywords(schema, &format!("/{name}"), &mut names);
        }
        let dialect = document.get("$schema").and_then(Value::as_str);
        Self {
            table,
            ref_has_siblings: !dialect.is_some_and(|dialect| dialect.contains("draft-07")),
            member_names: names.into_iter().collect(),
        }
    }

    /// Returns the sorted names of all members in the document.
    pub(crate) fn member_names(&self) -> &[&'s str] {
        &self.member_names
    }

    /// Returns the schema of a definition.
    pub(crate) fn definition(&self, name: &str) -> &'s Value {
        self.table
            .get(name)
            .unwrap_or_else(|| panic!("no definition is called {name:?}"))
    }

    /// Returns the constraints on a value that must satisfy all of several schemas.
    pub(crate) fn resolve(&self, schemas: &[&'s Value]) -> Constraints<'s> {
        let mut parts = Constraints::default();
        for schema in schemas {
            self.add(schema, &mut parts);
        }
        parts
    }

    /// Adds a schema that the value must also satisfy to the constraints.
    pub(crate) fn add(&self, schema: &'s Value, parts: &mut Constraints<'s>) {
        self.add_step(schema, parts, 0);
    }

    /// Adds a schema that was reached by `step` consecutive steps through `$ref` and `allOf`.
    fn add_step(&self, schema: &'s Value, parts: &mut Constraints<'s>, step: usize) {
        assert!(step < MAX_STEPS, "a definition refers to itself: {schema}");
        let map = match schema {
            Value::Object(map) => map,
            Value::Bool(holds) => {
                parts.is_never |= !holds;
                return;
            }
            other => panic!("neither an object nor a boolean: {other}"),
        };
        if let Some(Value::String(reference)) = map.get("$ref") {
            let name = reference.rsplit('/').next().unwrap_or_default();
            self.add_step(self.definition(name), parts, step + 1);
            if !self.ref_has_siblings {
                return;
            }
        }
        for branch in branches(map, "allOf") {
            self.add_step(branch, parts, step + 1);
        }
        for keyword in ["anyOf", "oneOf"] {
            if map.contains_key(keyword) {
                parts.open_choices.push(branches(map, keyword));
            }
        }
        parts.schemas_without_references.push(map);
    }

    /// Returns true if no value can satisfy the constraints, because of its type or because of a required member.
    pub(crate) fn is_impossible(&self, parts: &Constraints<'s>) -> bool {
        let refused = |name: &&str| self.resolve(&parts.member(name)).is_impossible();
        parts.is_impossible() || parts.required().iter().any(refused)
    }

    /// Returns true if the document satisfies all schemas, without regard to formats.
    pub(crate) fn is_satisfied_by(&self, schemas: &[&'s Value], doc: &Doc) -> bool {
        let parts = self.resolve(schemas);
        parts.allows_value(doc)
            && self.are_children_valid(&parts, doc)
            && parts.open_choices.iter().all(|group| {
                group
                    .iter()
                    .any(|branch| self.is_satisfied_by(&[branch], doc))
            })
    }

    /// Returns true if all items or members of the document satisfy their schemas.
    fn are_children_valid(&self, parts: &Constraints<'s>, doc: &Doc) -> bool {
        match doc {
            Doc::Array(items) => {
                let schemas = parts.items();
                items
                    .iter()
                    .all(|item| self.is_satisfied_by(&schemas, item))
            }
            Doc::Object(members) => members.iter().all(|(name, value)| {
                self.is_name_allowed(parts, name)
                    && self.is_satisfied_by(&parts.member(name), value)
            }),
            _ => true,
        }
    }

    /// Returns true if `propertyNames` allows a member of that name.
    pub(crate) fn is_name_allowed(&self, parts: &Constraints<'s>, name: &str) -> bool {
        let schemas = parts.property_name_schemas();
        schemas.is_empty() || self.is_satisfied_by(&schemas, &Doc::String(name.to_owned()))
    }

    /// Selects, for every `anyOf` and `oneOf`, the branch that the document satisfies, or a random branch if the
    /// document satisfies none.
    pub(crate) fn select_branches(&self, parts: &mut Constraints<'s>, doc: &Doc, rng: &mut Rng) {
        while let Some(group) = parts.open_choices.pop() {
            let fitting: Vec<&Value> = group
                .iter()
                .filter(|branch| self.is_satisfied_by(&[branch], doc))
                .collect();
            let branch = if fitting.is_empty() {
                rng.pick(group)
            } else {
                rng.pick(&fitting)
            };
            parts.selected_choices.push(group);
            self.add(branch, parts);
        }
    }
}

impl<'s> Constraints<'s> {
    /// Returns true if the constraints allow every JSON value.
    pub(crate) fn is_open(&self) -> bool {
        let annotation = |keyword: &String| ANNOTATION_KEYWORDS.contains(&keyword.as_str());
        !self.is_never
            && self.open_choices.is_empty()
            && self
                .schemas_without_references
                .iter()
                .all(|map| map.keys().all(annotation))
    }

    /// Returns true if no JSON type satisfies the constraints.
    pub(crate) fn is_impossible(&self) -> bool {
        self.is_never
            || self.types() == Types(0)
            || self.literals().is_some_and(|literals| literals.is_empty())
    }

    /// Returns the JSON types that all schemas allow.
    pub(crate) fn types(&self) -> Types {
        Types(
            self.keyword_values("type")
                .fold(Types::ALL.0, |set, value| {
                    set & Types::from_keyword(value).0
                }),
        )
    }

    /// Returns the values that `const` and `enum` allow; `None` if the schemas have neither keyword.
    pub(crate) fn literals(&self) -> Option<Vec<Doc>> {
        let mut left: Option<Vec<Doc>> = None;
        for map in &self.schemas_without_references {
            let single = map.get("const").map(std::slice::from_ref);
            let listed = map.get("enum").and_then(Value::as_array).map(Vec::as_slice);
            for values in [single, listed].into_iter().flatten() {
                let values: Vec<Doc> = values.iter().map(Doc::from_value).collect();
                left = Some(match left {
                    Some(left) => left
                        .into_iter()
                        .filter(|doc| contains_equal(&values, doc))
                        .collect(),
                    None => values,
                });
            }
        }
        left
    }

    /// Returns true if a schema fixes the value by `const`.
    pub(crate) fn has_const(&self) -> bool {
        self.keyword_values("const").next().is_some()
    }

    /// Returns the sorted names of the declared and the required members.
    pub(crate) fn properties(&self) -> BTreeSet<&'s str> {
        let declared = self
            .keyword_values("properties")
            .filter_map(Value::as_object)
            .flat_map(Map::keys);
        declared
            .map(String::as_str)
            .chain(self.required())
            .collect()
    }

    /// Returns the names of the required members.
    pub(crate) fn required(&self) -> BTreeSet<&'s str> {
        let lists = self.keyword_values("required").filter_map(Value::as_array);
        lists.flatten().filter_map(Value::as_str).collect()
    }

    /// Returns the schemas of the member `name`: from `properties`, or else from `additionalProperties`.
    pub(crate) fn member(&self, name: &str) -> Vec<&'s Value> {
        let schema = |map: &&'s Map<String, Value>| {
            let declared = map
                .get("properties")
                .and_then(|properties| properties.get(name));
            declared.or_else(|| map.get("additionalProperties"))
        };
        self.schemas_without_references
            .iter()
            .filter_map(schema)
            .collect()
    }

    /// Returns the schemas of the items of an array.
    pub(crate) fn items(&self) -> Vec<&'s Value> {
        self.keyword_values("items").collect()
    }

    /// Returns the schemas that member names must satisfy.
    pub(crate) fn property_name_schemas(&self) -> Vec<&'s Value> {
        self.keyword_values("propertyNames").collect()
    }

    /// Returns the formats that a string must have.
    pub(crate) fn formats(&self) -> Vec<&'s str> {
        self.keyword_values("format")
            .filter_map(Value::as_str)
            .collect()
    }

    /// Returns the greatest value of a keyword that sets a lower bound.
    pub(crate) fn lower_bound(&self, keyword: &str) -> Option<f64> {
        self.keyword_values(keyword)
            .filter_map(Value::as_f64)
            .reduce(f64::max)
    }

    /// Returns the least value of a keyword that sets an upper bound.
    pub(crate) fn upper_bound(&self, keyword: &str) -> Option<f64> {
        self.keyword_values(keyword)
            .filter_map(Value::as_f64)
            .reduce(f64::min)
    }

    /// Returns true if a length satisfies the keywords `min` and `max`, such as `minItems` and `maxItems`.
    pub(crate) fn allows_length(&self, min: &str, max: &str, length: usize) -> bool {
        let length = length as f64;
        self.lower_bound(min).is_none_or(|bound| length >= bound)
            && self.upper_bound(max).is_none_or(|bound| length <= bound)
    }

    /// Returns true if a number satisfies the keywords for its bounds.
    pub(crate) fn allows_number(&self, number: &str) -> bool {
        let value = as_f64(number);
        self.lower_bound("minimum")
            .is_none_or(|bound| value >= bound)
            && self
                .upper_bound("maximum")
                .is_none_or(|bound| value <= bound)
            && self
                .lower_bound("exclusiveMinimum")
                .is_none_or(|bound| value > bound)
            && self
                .upper_bound("exclusiveMaximum")
                .is_none_or(|bound| value < bound)
    }

    /// Returns true if the document satisfies all keywords except formats and the keywords for items and members.
    pub(crate) fn allows_value(&self, doc: &Doc) -> bool {
        let shape = match doc {
            Doc::Number(number) => self.allows_number(number),
            Doc::String(string) => {
                self.allows_length("minLength", "maxLength", string.chars().count())
            }
            Doc::Array(items) => self.allows_length("minItems", "maxItems", items.len()),
            Doc::Object(_) => self
                .required()
                .iter()
                .all(|name| doc.member(name).is_some()),
            Doc::Null | Doc::Bool(_) => true,
        };
        shape
            && !self.is_never
            && self.types().intersects(Types::type_of(doc))
            && self
                .literals()
                .is_none_or(|literals| contains_equal(&literals, doc))
    }

    /// Returns the value of a keyword in each schema that has it.
    fn keyword_values<'p>(&'p self, keyword: &'p str) -> impl Iterator<Item = &'s Value> + 'p {
        self.schemas_without_references
            .iter()
            .filter_map(move |map| map.get(keyword))
    }
}

/// Returns true if the document is equal to one of the literals in the sense of JSON Schema.
fn contains_equal(literals: &[Doc], doc: &Doc) -> bool {
    literals.iter().any(|literal| match (literal, doc) {
        (Doc::Number(left), Doc::Number(right)) => as_f64(left) == as_f64(right),
        (left, right) => is_same_json(left, right),
    })
}

/// Returns the branches of an `anyOf` or `oneOf`; empty if the keyword is absent.
fn branches<'s>(map: &'s Map<String, Value>, keyword: &str) -> &'s [Value] {
    map.get(keyword)
        .and_then(Value::as_array)
        .map(Vec::as_slice)
        .unwrap_or_default()
}

/// Panics if a schema contains an unknown keyword; adds the declared member names to `names`.
fn check_keywords<'s>(schema: &'s Value, pointer: &str, names: &mut BTreeSet<&'s str>) {
    let Value::Object(map) = schema else {
        assert!(
            schema.is_boolean(),
            "{pointer}: neither an object nor a boolean"
        );
        return;
    };
    for (keyword, value) in map {
        let pointer = format!("{pointer}/{keyword}");
        match (keyword.as_str(), value) {
            ("properties", Value::Object(members)) => {
                for (name, schema) in members {
                    names.insert(name);
                    check_keywords(schema, &format!("{pointer}/{name}"), names);
                }
            }
            ("allOf" | "anyOf" | "oneOf", Value::Array(schemas)) => {
                for schema in schemas {
                    check_keywords(schema, &pointer, names);
                }
            }
            ("items" | "additionalProperties" | "propertyNames", _) => {
                check_keywords(value, &pointer, names)
            }
            ("type", _) => _ = Types::from_keyword(value),
            (known, _)
                if ANNOTATION_KEYWORDS.contains(&known) || LEAF_KEYWORDS.contains(&known) => {}
            _ => panic!(
                "{pointer}: this keyword is unknown here; teach it to Constraints, Generator and Mutator"
            ),
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{Definitions, Types, definition_names};
    use crate::text::Doc;

    /// `definition_names` returns sorted names from `definitions` and from `$defs`.
    #[test]
    fn names_come_sorted_from_either_keyword() {
        assert_eq!(
            definition_names(&json!({"$defs": {"B": {}, "A": {}}})),
            ["A", "B"]
        );
        assert_eq!(definition_names(&json!({"definitions": {"C": {}}})), ["C"]);
    }

    /// A schema document with an unknown keyword causes a panic.
    #[test]
    #[should_panic(expected = "/X/items/pattern: this keyword is unknown")]
    fn unknown_keywords_are_refused() {
        Definitions::new(&json!({"definitions": {"X": {"items": {"pattern": "a"}}}}));
    }

    /// Keywords next to a `$ref` are ignored in draft-07 and apply in 2020-12.
    #[test]
    fn reference_siblings_depend_on_the_dialect() {
        let body =
            json!({"X": {"$ref": "#/d/Y", "type": "string"}, "Y": {"type": ["string", "integer"]}});
        let types = |document: &serde_json::Value| {
            let definitions = Definitions::new(document);
            definitions.resolve(&[definitions.definition("X")]).types()
        };
        let old =
            json!({"$schema": "http://json-schema.org/draft-07/schema#", "definitions": body});
        assert!(types(&old).intersects(Types::INTEGER));
        let new = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": body});
        assert_eq!(types(&new), Types::STRING);
    }

    /// A value is checked against the targets of `$ref` and the branches of `anyOf` and `allOf`.
    #[test]
    fn references_and_branches_are_followed() {
        let document = json!({"$defs": {
            "U": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "array", "items": {"$ref": "#/$defs/U"}, "maxItems": 2}]},
            "A": {
                "allOf": [{"properties": {"t": {"const": "a"}}, "required": ["t"]}],
                "properties": {"n": {"type": "integer", "minimum": 0}},
                "additionalProperties": true,
                "type": "object",
            },
        }});
        let definitions = Definitions::new(&document);
        let fits = |text: &str| {
            definitions.is_satisfied_by(
                &[definitions.definition("U")],
                &Doc::parse(text).expect("JSON"),
            )
        };
        for text in [
            r#"{"t":"a"}"#,
            r#"{"t":"a","n":7.0,"z":null}"#,
            r#"[[],{"t":"a"}]"#,
        ] {
            assert!(fits(text), "{text}");
        }
        for text in [
            "{}",
            r#"{"t":"b"}"#,
            r#"{"t":"a","n":-1}"#,
            r#"{"t":"a","n":1.5}"#,
            "[[],[],[]]",
            "[1]",
            "null",
        ] {
            assert!(!fits(text), "{text}");
        }
    }
}
