//! Generated schemas and values: a validator accepts the same values by a schema and by its equivalent.

use mcp_exact_tests_support::{Cases, Rng};
use mcp_exact_tool_schema::{SchemaOf, Shape, deviations, rewrite};
use mcp_exact_wire::JsonObject;
use serde_json::{Map, Value, json};

/// Number of generated schemas.
const SCHEMAS: Cases = Cases {
    short: 400,
    long: 20_000,
};
/// Names of properties, few enough that they meet.
const NAMES: [&str; 4] = ["a", "b", "c", "d"];
/// Names of definitions.
const DEFINITIONS: [&str; 3] = ["A", "B", "C"];
/// In [`Schemas::referable`]: all definitions, from all of them.
const ANY: usize = usize::MAX;
const TYPES: [&str; 7] = [
    "string", "integer", "number", "boolean", "object", "array", "null",
];

/// Generator of schemas with all shapes.
struct Schemas<'r> {
    rng: &'r mut Rng,
    /// Name of the member of definitions.
    definitions: &'static str,
    /// Index of the first definition that references may name; [`ANY`] if definitions may contain themselves.
    referable: usize,
    /// True if a definition may contain itself at this place: a value that is smaller has to be there.
    is_below: bool,
}

impl Schemas<'_> {
    fn root(&mut self) -> Value {
        let mut root = self.object(3);
        root.insert("type".to_owned(), json!("object"));
        if self.rng.chance(15) {
            root.insert("type".to_owned(), json!(["object", "null"]));
        }
        if self.rng.chance(25) {
            let keyword = *self.rng.pick(&["allOf", "anyOf", "oneOf"]);
            let count = 1 + self.rng.below(2);
            let branches = (0..count).map(|_| self.branch()).collect();
            root.insert(keyword.to_owned(), Value::Array(branches));
        }
        if self.rng.chance(10) {
            let reference = self.reference();
            root.insert("$ref".to_owned(), reference);
        }
        if self.rng.chance(20) {
            root.insert(
                "$schema".to_owned(),
                json!("http://json-schema.org/draft-07/schema#"),
            );
        }
        if self.rng.chance(10)
            && let Some(Value::Object(properties)) = root.get_mut("properties")
            && properties.contains_key("a")
        {
            properties.insert("d".to_owned(), json!({"$ref": "#/properties/a"}));
        }
        let mut definitions = Map::new();
        for (at, name) in DEFINITIONS.into_iter().enumerate() {
            // Each refers to those after it, or to all.
            let of_this = self.referable;
            if of_this == 0 {
                self.referable = at + 1;
            }
            definitions.insert(name.to_owned(), self.at(false, 2));
            self.referable = of_this;
        }
        root.insert(self.definitions.to_owned(), Value::Object(definitions));
        Value::Object(root)
    }

    /// Returns a schema for the same value as the one around it, or for a value below.
    fn at(&mut self, is_below: bool, depth: usize) -> Value {
        let before = std::mem::replace(&mut self.is_below, is_below);
        let schema = self.schema(depth);
        self.is_below = before;
        schema
    }

    fn branch(&mut self) -> Value {
        let mut branch = self.object(1);
        if self.rng.chance(40) {
            branch.remove("properties");
        }
        Value::Object(branch)
    }

    fn object(&mut self, depth: usize) -> Map<String, Value> {
        let mut schema = Map::new();
        if self.rng.chance(85) {
            let mut properties = Map::new();
            for name in NAMES {
                if self.rng.chance(50) {
                    properties.insert(name.to_owned(), self.at(true, depth.saturating_sub(1)));
                }
            }
            schema.insert("properties".to_owned(), Value::Object(properties));
        }
        if self.rng.chance(40) {
            let names: Vec<&str> = NAMES.into_iter().filter(|_| self.rng.chance(30)).collect();
            schema.insert("required".to_owned(), json!(names));
        }
        if self.rng.chance(20) {
            let rest = match self.rng.below(3) {
                0 => json!(false),
                1 => json!(true),
                _ => self.at(true, depth.saturating_sub(1)),
            };
            let keyword = *self
                .rng
                .pick(&["additionalProperties", "unevaluatedProperties"]);
            schema.insert(keyword.to_owned(), rest);
        }
        if self.rng.chance(10) {
            schema.insert(
                "patternProperties".to_owned(),
                json!({"^[cd]": self.at(true, 0)}),
            );
        }
        if self.rng.chance(8) {
            schema.insert("dependentRequired".to_owned(), json!({"a": ["b"]}));
        }
        schema
    }

    fn reference(&mut self) -> Value {
        let from = if self.referable == ANY {
            0
        } else {
            self.referable
        };
        let name = *self.rng.pick(&DEFINITIONS[from..]);
        json!(format!("#/{}/{name}", self.definitions))
    }

    fn schema(&mut self, depth: usize) -> Value {
        let may_refer = match self.referable {
            0 => true,
            ANY => self.is_below,
            after => after < DEFINITIONS.len(),
        };
        match self.rng.below(12) {
            0 => return json!(true),
            1 => return json!(false),
            2 | 3 if may_refer => return json!({"$ref": self.reference(), "description": "d"}),
            4 if may_refer => return json!({"$ref": self.reference(), "maxLength": 1}),
            _ => {}
        }
        let mut schema = if self.rng.chance(35) && depth > 0 {
            self.object(depth)
        } else {
            Map::new()
        };
        let mut kinds: Vec<&str> = TYPES.to_vec();
        self.rng.shuffle(&mut kinds);
        match self.rng.below(8) {
            0 => {}
            1..=3 => drop(schema.insert("type".to_owned(), json!(kinds[0]))),
            4 => drop(schema.insert("type".to_owned(), json!([kinds[0], "null"]))),
            _ => {
                let count = 1 + self.rng.below(TYPES.len());
                kinds.truncate(count);
                schema.insert("type".to_owned(), json!(kinds));
            }
        }
        if let Some(Value::Array(kinds)) = schema.get_mut("type") {
            kinds.dedup();
        }
        let some = [
            ("minLength", json!(1)),
            ("minimum", json!(-1)),
            ("maximum", json!(300)),
            ("minItems", json!(1)),
            ("enum", json!(["x", null, 1, 200, [], {"a": null}])),
            ("const", json!(null)),
            ("format", json!("uint8")),
            ("format", json!("int8")),
            ("format", json!("uint64")),
            ("format", json!("date")),
            ("format", json!("password")),
            ("description", json!("d")),
        ];
        for (keyword, value) in some {
            if self.rng.chance(9) {
                schema.insert(keyword.to_owned(), value);
            }
        }
        if depth > 0 && self.rng.chance(30) {
            let keyword = *self.rng.pick(&["anyOf", "oneOf", "allOf"]);
            let branches = (0..=self.rng.below(2)).map(|_| self.at(false, depth - 1));
            let branches = branches.collect();
            schema.insert(keyword.to_owned(), Value::Array(branches));
        }
        for keyword in ["items", "not", "if", "then", "contains"] {
            if depth > 0 && self.rng.chance(8) {
                let is_below = matches!(keyword, "items" | "contains");
                let below = self.at(is_below, depth - 1);
                schema.insert(keyword.to_owned(), below);
            }
        }
        Value::Object(schema)
    }
}

/// Returns a value, in which names and scalars are those that schemas name.
fn value(rng: &mut Rng, depth: usize) -> Value {
    let scalars = [
        json!(null),
        json!(true),
        json!("x"),
        json!(""),
        json!("2026-01-01"),
        json!(1),
        json!(200),
        json!(-2),
        json!(1.5),
        json!(70000),
    ];
    match rng.below(5) {
        0 if depth > 0 => arguments(rng, depth - 1),
        1 if depth > 0 => (0..rng.below(3)).map(|_| value(rng, depth - 1)).collect(),
        _ => rng.pick(&scalars).clone(),
    }
}

fn arguments(rng: &mut Rng, depth: usize) -> Value {
    let mut members = Map::new();
    for name in NAMES {
        if rng.chance(45) {
            members.insert(name.to_owned(), value(rng, depth));
        }
    }
    Value::Object(members)
}

/// Returns a schema whose formats of numbers are the bounds that they mean, since validators ignore them.
fn with_bounds(schema: &Value) -> Value {
    let mut schema = schema.clone();
    let bounds = match schema.get("format").and_then(Value::as_str) {
        Some("uint8") => json!({"minimum": 0, "maximum": 255}),
        Some("int8") => json!({"minimum": -128, "maximum": 127}),
        Some("uint64") => json!({"minimum": 0}),
        _ => json!({}),
    };
    match &mut schema {
        Value::Object(members) => {
            for value in members.values_mut() {
                *value = with_bounds(value);
            }
            let is_number = |kind: &Value| kind == "integer" || kind == "number";
            let is_numeric = match members.get("type") {
                None => true,
                Some(Value::Array(kinds)) => kinds.iter().any(is_number),
                Some(kind) => is_number(kind),
            };
            let is_reference = members.contains_key("$ref");
            if is_numeric && !is_reference && bounds.as_object().is_some_and(|it| !it.is_empty()) {
                let all = members.entry("allOf").or_insert_with(|| json!([]));
                if let Some(all) = all.as_array_mut() {
                    all.push(bounds);
                }
            }
        }
        Value::Array(values) => values
            .iter_mut()
            .for_each(|value| *value = with_bounds(value)),
        _ => {}
    }
    schema
}

fn validator(schema: &Value) -> jsonschema::Validator {
    let options = jsonschema::options().should_validate_formats(true);
    let built = options.should_ignore_unknown_formats(true).build(schema);
    built.unwrap_or_else(|error| panic!("{schema}: {error}"))
}

/// Returns true if a member of an object is null.
fn has_null_member(value: &Value) -> bool {
    match value {
        Value::Object(members) => members
            .values()
            .any(|value| value.is_null() || has_null_member(value)),
        Value::Array(values) => values.iter().any(has_null_member),
        _ => false,
    }
}

/// The equivalent of a schema of results accepts the same values. That of a schema of arguments does, too, but for `null` of
/// properties, which it may not accept. What is left of the shapes is reported, and only shapes without an equivalent are left.
#[test]
fn equivalents_accept_the_same_values() {
    let mut rewritten_schemas = 0;
    for seed in 0..SCHEMAS.number() {
        let mut rng = Rng::new(seed as u64);
        let definitions = *rng.pick(&["$defs", "definitions"]);
        let referable = if rng.chance(75) { 0 } else { ANY };
        let schema = Schemas {
            rng: &mut rng,
            definitions,
            referable,
            is_below: true,
        };
        let schema = { schema }.root();
        let text: JsonObject = schema.to_string().parse().expect("an object");
        for of in [SchemaOf::Arguments, SchemaOf::Results] {
            let rewritten = rewrite(&text, of, 256 << 10);
            let Some(new) = rewritten.schema else {
                assert_eq!(rewritten.remaining, deviations(&text));
                continue;
            };
            rewritten_schemas += 1;
            assert_eq!(rewritten.remaining, deviations(&new));
            let is_left = |shape| rewritten.remaining.iter().any(|left| left.shape == shape);
            assert!(
                !is_left(Shape::NoProperties) && !is_left(Shape::BooleanSchema),
                "{new}"
            );
            let new: Value = serde_json::from_str(new.text()).expect("JSON");
            let (before, after) = match of {
                SchemaOf::Arguments => (
                    validator(&with_bounds(&schema)),
                    validator(&with_bounds(&new)),
                ),
                SchemaOf::Results => (validator(&schema), validator(&new)),
            };
            for _ in 0..40 {
                let value = arguments(&mut rng, 3);
                let verdicts = (before.is_valid(&value), after.is_valid(&value));
                let place = format!("seed {seed}, {of:?}\n{schema}\n{new}\n{value}");
                if of == SchemaOf::Results || !has_null_member(&value) {
                    assert_eq!(verdicts.0, verdicts.1, "{place}");
                } else {
                    assert!(verdicts.0 || !verdicts.1, "{place}");
                }
            }
        }
    }
    assert!(rewritten_schemas > 300, "{rewritten_schemas}");
}
