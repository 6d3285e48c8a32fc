//! Generates random valid instances of the definitions of a schema document.
//!
//! Untyped values are random JSON, maps get all kinds of keys, and objects whose schema allows unknown members
//! sometimes get unknown members. The values are valid by construction; tests confirm their validity with a validator.
//! `oneOf` is treated like `anyOf`, which is correct if no value matches two branches.

use serde_json::Value;

use crate::rng::Rng;
use crate::schema::{Constraints, Definitions, Types, is_integer};
use crate::text::Doc;
use crate::values;

/// Number of values after which only required members are added.
const MAX_VALUES: usize = 250;

/// Maximum number of schema levels that [`Generator::minimum_depth`] searches.
const MAX_FLOOR_LEVELS: usize = 8;

/// Generator of valid instances.
#[derive(Clone, Debug)]
pub struct Generator<'s> {
    /// Definitions of the schema document.
    pub(crate) definitions: Definitions<'s>,
    /// Source of all random choices.
    pub(crate) rng: Rng,
    /// True if numbers that `serde_json` rounds or refuses are allowed.
    allows_exotic_numbers: bool,
    /// Probability of an optional member, in percent.
    optional_percent: usize,
    /// Number of values until only required members are added.
    values_left: usize,
}

impl<'s> Generator<'s> {
    /// Checks the schema document.
    ///
    /// # Panics
    ///
    /// If the document uses a keyword that the generator does not support, so that its instances could be invalid.
    pub fn new(document: &'s Value, rng: Rng) -> Self {
        Self {
            definitions: Definitions::new(document),
            rng,
            allows_exotic_numbers: false,
            optional_percent: 50,
            values_left: MAX_VALUES,
        }
    }

    /// Sets whether numbers that `serde_json` without `arbitrary_precision` rounds or refuses, such as `1e400`, are
    /// generated.
    #[must_use]
    pub fn exotic_numbers(mut self, on: bool) -> Self {
        self.allows_exotic_numbers = on;
        self
    }

    /// Creates a random valid instance of a definition, with few or many optional members.
    ///
    /// # Panics
    ///
    /// If there is no such definition, or it has no valid instance.
    pub fn instance(&mut self, definition: &str) -> Doc {
        let schema = self.definitions.definition(definition);
        let depth = *self.rng.pick(&[0, 1, 2, 3, 5, 8]);
        self.new_value(&[schema], depth)
    }

    /// Creates a random JSON value.
    pub fn open_value(&mut self) -> Doc {
        self.new_value(&[], 3)
    }

    /// Creates a value that satisfies all of several schemas.
    pub(crate) fn new_value(&mut self, schemas: &[&'s Value], depth: usize) -> Doc {
        self.optional_percent = *self.rng.pick(&[10, 35, 60, 90, 100]);
        self.values_left = MAX_VALUES;
        self.value_of(schemas, depth)
    }

    /// Creates a value that satisfies all of several schemas, with at most `depth` levels if possible.
    fn value_of(&mut self, schemas: &[&'s Value], depth: usize) -> Doc {
        self.values_left = self.values_left.saturating_sub(1);
        let depth = if self.values_left == 0 { 0 } else { depth };
        let mut parts = self.definitions.resolve(schemas);
        self.choose_branches(&mut parts, depth);
        if let Some(literals) = parts.literals() {
            return self.rng.pick(&literals).clone();
        }
        if parts.is_open() {
            return self.any_value(depth);
        }
        match self.choose_type(parts.types(), depth) {
            Types::NULL => Doc::Null,
            Types::BOOL => Doc::Bool(self.rng.chance(50)),
            Types::NUMBER => self.number_of(&parts),
            Types::STRING => Doc::String(self.string_of(&parts)),
            Types::ARRAY => self.array_of(&parts, depth),
            _ => self.object_of(&parts, depth),
        }
    }

    /// Selects a branch of every `anyOf` and `oneOf`: a random branch, or the branch with the least nesting if the
    /// maximum depth is reached.
    fn choose_branches(&mut self, parts: &mut Constraints<'s>, depth: usize) {
        while let Some(group) = parts.open_choices.pop() {
            let mut branches: Vec<&Value> = group.iter().collect();
            self.rng.shuffle(&mut branches);
            if depth == 0 {
                branches
                    .sort_by_cached_key(|branch| self.minimum_depth(&[branch], MAX_FLOOR_LEVELS));
            }
            let chosen = branches.into_iter().find_map(|branch| {
                let mut with_branch = parts.clone();
                self.definitions.add(branch, &mut with_branch);
                (!self.definitions.is_impossible(&with_branch)).then_some(with_branch)
            });
            *parts = chosen.unwrap_or_else(|| panic!("no branch can be satisfied: {group:?}"));
        }
    }

    /// Returns the minimum nesting depth of a value that satisfies the schemas; `levels` limits the search.
    fn minimum_depth(&self, schemas: &[&'s Value], levels: usize) -> usize {
        if levels == 0 {
            return 1;
        }
        let parts = self.definitions.resolve(schemas);
        if let Some(group) = parts.open_choices.first() {
            let floors = group
                .iter()
                .map(|branch| self.minimum_depth(&[branch], levels - 1));
            return floors.min().unwrap_or_default();
        }
        let types = parts.types();
        if types.intersects(Types::NULL)
            || types.intersects(Types::BOOL)
            || types.intersects(Types::NUMBER)
            || types.intersects(Types::STRING)
        {
            return 0;
        }
        if types.intersects(Types::ARRAY) {
            let filled = parts
                .lower_bound("minItems")
                .is_some_and(|bound| bound > 0.0);
            return 1 + if filled {
                self.minimum_depth(&parts.items(), levels - 1)
            } else {
                0
            };
        }
        let required = parts.required();
        let members = required
            .iter()
            .map(|name| self.minimum_depth(&parts.member(name), levels - 1));
        1 + members.max().unwrap_or_default()
    }

    /// Selects one of the allowed types at random; if `depth` is 0, a scalar type if possible.
    fn choose_type(&mut self, types: Types, depth: usize) -> Types {
        let scalars = [Types::NULL, Types::BOOL, Types::NUMBER, Types::STRING];
        let nested = [Types::ARRAY, Types::OBJECT];
        let mut allowed: Vec<Types> = scalars
            .into_iter()
            .filter(|kind| types.intersects(*kind))
            .collect();
        if depth > 0 || allowed.is_empty() {
            allowed.extend(nested.into_iter().filter(|kind| types.intersects(*kind)));
        }
        assert!(!allowed.is_empty(), "no type can satisfy the schema");
        *self.rng.pick(&allowed)
    }

    /// Creates a random JSON value of at most `depth` levels.
    fn any_value(&mut self, depth: usize) -> Doc {
        self.values_left = self.values_left.saturating_sub(1);
        let kinds = if depth == 0 || self.values_left == 0 {
            6
        } else {
            9
        };
        match self.rng.below(kinds) {
            0 => Doc::Null,
            1 => Doc::Bool(self.rng.chance(50)),
            2 => Doc::Number(values::number(self.allows_exotic_numbers, &mut self.rng)),
            3 => Doc::String(values::string(&mut self.rng)),
            4 => Doc::Array(Vec::new()),
            5 => Doc::Object(Vec::new()),
            6 => Doc::Array(
                (0..1 + self.rng.below(3))
                    .map(|_| self.any_value(depth - 1))
                    .collect(),
            ),
            _ => {
                let mut members: Vec<(String, Doc)> = Vec::new();
                for _ in 0..1 + self.rng.below(4) {
                    let name = values::name(self.definitions.member_names(), &mut self.rng);
                    if members.iter().all(|(other, _)| *other != name) {
                        members.push((name, self.any_value(depth - 1)));
                    }
                }
                Doc::Object(members)
            }
        }
    }

    /// Creates a number within the bounds.
    fn number_of(&mut self, parts: &Constraints<'s>) -> Doc {
        let fractions = parts.types().intersects(Types::FRACTION);
        let admits = |text: &str| (fractions || is_integer(text)) && parts.allows_number(text);
        for _ in 0..10 {
            let text = values::number(self.allows_exotic_numbers, &mut self.rng);
            if admits(&text) {
                return Doc::Number(text);
            }
        }
        let listed: Vec<&str> = values::NUMBERS
            .into_iter()
            .filter(|text| admits(text))
            .collect();
        if !listed.is_empty() {
            return Doc::Number((*self.rng.pick(&listed)).to_owned());
        }
        let low = parts
            .lower_bound("minimum")
            .or(parts.lower_bound("exclusiveMinimum"));
        let high = parts
            .upper_bound("maximum")
            .or(parts.upper_bound("exclusiveMaximum"));
        let low = low.unwrap_or_else(|| high.unwrap_or_default() - 1000.0);
        let high = high.unwrap_or(low + 1000.0);
        for _ in 0..100 {
            let between = low + (high - low) * self.rng.fraction();
            for value in [between, between.ceil(), low, high] {
                if admits(&value.to_string()) {
                    return Doc::Number(value.to_string());
                }
            }
        }
        panic!("no number found between {low} and {high}")
    }

    /// Creates a string of the required format and length.
    pub(crate) fn string_of(&mut self, parts: &Constraints<'s>) -> String {
        let formats = parts.formats();
        let fits = |text: &str| parts.allows_length("minLength", "maxLength", text.chars().count());
        for _ in 0..50 {
            let text = match formats.first() {
                Some(format) => values::string_of_format(format, &mut self.rng),
                None => values::string(&mut self.rng),
            };
            if fits(&text) {
                return text;
            }
        }
        assert!(formats.is_empty(), "no {formats:?} of that length found");
        let min = parts.lower_bound("minLength").unwrap_or_default() as usize;
        let text = "x".repeat(min);
        assert!(fits(&text), "minLength and maxLength exclude each other");
        text
    }

    /// Creates an array whose number of items the schema allows.
    fn array_of(&mut self, parts: &Constraints<'s>, depth: usize) -> Doc {
        let schemas = parts.items();
        let min = parts.lower_bound("minItems").unwrap_or_default() as usize;
        let max = parts
            .upper_bound("maxItems")
            .map_or(usize::MAX, |bound| bound as usize);
        let wanted = if depth == 0 {
            0
        } else {
            *self.rng.pick(&[0, 1, 1, 2, 3])
        };
        let length = wanted.min(max).max(min);
        Doc::Array(
            (0..length)
                .map(|_| self.value_of(&schemas, depth.saturating_sub(1)))
                .collect(),
        )
    }

    /// Creates an object with its required members and a random selection of the optional members.
    fn object_of(&mut self, parts: &Constraints<'s>, depth: usize) -> Doc {
        let below = depth.saturating_sub(1);
        let required = parts.required();
        let mut members = Vec::new();
        for name in parts.properties() {
            let optional = !required.contains(name);
            if optional && (depth == 0 || !self.rng.chance(self.optional_percent)) {
                continue;
            }
            let schemas = parts.member(name);
            if optional && self.definitions.resolve(&schemas).is_impossible() {
                continue;
            }
            members.push((name.to_owned(), self.value_of(&schemas, below)));
        }
        if depth > 0 {
            self.add_undeclared(parts, &mut members, below);
        }
        if self.rng.chance(30) {
            self.rng.shuffle(&mut members);
        }
        Doc::Object(members)
    }

    /// Adds members that the schema does not declare: up to three if it declares no members (a map), and otherwise
    /// sometimes one or two.
    fn add_undeclared(
        &mut self,
        parts: &Constraints<'s>,
        members: &mut Vec<(String, Doc)>,
        depth: usize,
    ) {
        let declared = parts.properties();
        let count = if declared.is_empty() {
            self.rng.below(4)
        } else if self.rng.chance(15) {
            1 + self.rng.below(2)
        } else {
            0
        };
        for _ in 0..count {
            let name = self.undeclared_name(parts);
            let schemas = parts.member(&name);
            let taken =
                declared.contains(name.as_str()) || members.iter().any(|(other, _)| *other == name);
            let refused = self.definitions.resolve(&schemas).is_impossible()
                || !self.definitions.is_name_allowed(parts, &name);
            if !taken && !refused {
                members.push((name, self.value_of(&schemas, depth)));
            }
        }
    }

    /// Returns a name for an undeclared member that `propertyNames` allows.
    fn undeclared_name(&mut self, parts: &Constraints<'s>) -> String {
        let schemas = parts.property_name_schemas();
        if !schemas.is_empty()
            && let Doc::String(name) = self.value_of(&schemas, 0)
        {
            return name;
        }
        values::name(self.definitions.member_names(), &mut self.rng)
    }
}

#[cfg(all(test, feature = "oracle"))]
mod tests {
    use serde_json::json;

    use super::Generator;
    use crate::oracle::Oracle;
    use crate::rng::Rng;

    /// Instances of schemas with every supported keyword are valid.
    #[test]
    fn instances_obey_every_keyword() {
        let document = json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": {
            "Bounds": {"type": "number", "minimum": 0.3, "exclusiveMaximum": 0.4},
            "Integers": {"type": "integer", "minimum": 1_000_001, "maximum": 1_000_003},
            "Length": {"type": "string", "minLength": 30, "maxLength": 31},
            "Items": {"type": "array", "items": {"type": ["null", "boolean"]}, "minItems": 2, "maxItems": 3},
            "Closed": {"type": "object", "properties": {"a": {"const": [1, {"b": null}]}}, "additionalProperties": false},
            "Merged": {
                "allOf": [{"$ref": "#/$defs/Closed"}, {"required": ["a"]}],
                "anyOf": [{"properties": {"a": false}}, true],
            },
            "Names": {
                "type": "object",
                "propertyNames": {"enum": ["x", "y"]},
                "additionalProperties": {"$ref": "#/$defs/Names"},
            },
            "Formats": {"type": "array", "minItems": 5, "items": {"anyOf": [
                {"type": "string", "format": "uri"},
                {"type": "string", "format": "uri-template"},
                {"type": "string", "format": "byte"},
                {"type": "string", "format": "date"},
                {"type": "string", "format": "date-time"},
                {"type": "string", "format": "email"},
            ]}},
            "List": {"oneOf": [
                {"type": "object", "properties": {"next": {"$ref": "#/$defs/List"}}, "required": ["next"]},
                {"enum": ["end", 1, null]},
            ]},
        }});
        let oracle = Oracle::new(&document);
        let mut generator = Generator::new(&document, Rng::new(5));
        for definition in crate::definition_names(&document) {
            for _ in 0..200 {
                let doc = generator.instance(definition);
                let value = doc.to_value().expect("no exotic number was asked for");
                assert!(
                    oracle.is_valid(definition, &value),
                    "{definition} {doc} {:?}",
                    oracle.errors(definition, &value)
                );
            }
        }
    }

    /// Numbers such as `1e400` are generated only if they are enabled.
    #[test]
    fn exotic_numbers_are_optional() {
        let document = json!({"$defs": {"N": {"type": "number"}}});
        let exotic = |on| {
            let mut generator = Generator::new(&document, Rng::new(1)).exotic_numbers(on);
            (0..500).any(|_| generator.instance("N").to_string() == "1e400")
        };
        assert!(exotic(true));
        assert!(!exotic(false));
    }
}
