//! Creates mutants of an instance: copies with one change each, most of them invalid, and copies with an unknown member
//! in every object.
//!
//! The caller determines with a validator if a mutant is valid.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::edit::{Change, Edit, EditCollector, change_number, change_string, similar_strings};
use crate::generate::Generator;
use crate::rng::Rng;
use crate::schema::{Constraints, Types};
use crate::text::{Doc, is_same_json};
use crate::values;

/// Kind of the change that makes a mutant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MutationKind {
    /// A required member is removed.
    MissingRequired,
    /// An optional member is removed.
    MissingOptional,
    /// A value is replaced by one of another JSON type.
    WrongType,
    /// The value of a `const` that is not the discriminator of a union is changed.
    WrongConst,
    /// An `enum` value is replaced by another value.
    WrongEnum,
    /// A discriminator gets an unknown value.
    UnknownTag,
    /// A discriminator gets the value of another variant of the same union.
    TagOfOtherVariant,
    /// An absent optional member is added with the value `null`.
    NullForAbsent,
    /// A value is replaced by `null`.
    NullForPresent,
    /// An object is replaced by an array.
    ArrayForObject,
    /// An array is replaced by an object.
    ObjectForArray,
    /// A container is emptied.
    EmptyContainer,
    /// A number, or the length of a string or array, is set just outside of its bounds.
    OutOfBounds,
    /// A string is replaced by one that violates its format.
    BadFormat,
    /// A member is added to an object.
    UnknownMember,
    /// An integer is replaced by a number with a fraction.
    FractionForInteger,
    /// An integer gets another spelling: `7.0` or `7e0`.
    RespelledInteger,
    /// A number or boolean is replaced by a string with its text.
    QuotedScalar,
}

impl MutationKind {
    /// All kinds of changes.
    pub const ALL: [Self; 18] = [
        Self::MissingRequired,
        Self::MissingOptional,
        Self::WrongType,
        Self::WrongConst,
        Self::WrongEnum,
        Self::UnknownTag,
        Self::TagOfOtherVariant,
        Self::NullForAbsent,
        Self::NullForPresent,
        Self::ArrayForObject,
        Self::ObjectForArray,
        Self::EmptyContainer,
        Self::OutOfBounds,
        Self::BadFormat,
        Self::UnknownMember,
        Self::FractionForInteger,
        Self::RespelledInteger,
        Self::QuotedScalar,
    ];
}

/// Instance with one change.
#[derive(Clone, Debug, PartialEq)]
pub struct Mutant {
    /// The changed instance.
    pub doc: Doc,
    /// Kind of change.
    pub kind: MutationKind,
    /// JSON pointer of the value that was replaced, removed or added.
    pub pointer: String,
}

/// Generator of mutants for the definitions of a schema document.
#[derive(Clone, Debug)]
pub struct Mutator<'s> {
    /// Generator of the values that are inserted.
    generator: Generator<'s>,
}

impl<'s> Mutator<'s> {
    /// Creates a mutator for a schema document whose keywords are checked.
    ///
    /// # Panics
    ///
    /// If the document uses a keyword that the mutator does not support.
    pub fn new(document: &'s Value, rng: Rng) -> Self {
        Self {
            generator: Generator::new(document, rng),
        }
    }

    /// Creates all mutants of an instance, about ten for each value in it.
    ///
    /// # Panics
    ///
    /// If there is no such definition.
    pub fn mutants(&mut self, definition: &str, doc: &Doc) -> Vec<Mutant> {
        let edits = self.collect_edits(definition, doc);
        edits.into_iter().map(|edit| edit.apply(doc)).collect()
    }

    /// Creates up to `count` mutants, distributed evenly over all kinds.
    ///
    /// # Panics
    ///
    /// If there is no such definition.
    pub fn sample(&mut self, definition: &str, doc: &Doc, count: usize) -> Vec<Mutant> {
        let mut by_kind: BTreeMap<MutationKind, Vec<Edit>> = BTreeMap::new();
        for edit in self.collect_edits(definition, doc) {
            by_kind.entry(edit.kind).or_default().push(edit);
        }
        let rng = &mut self.generator.rng;
        let mut piles: Vec<Vec<Edit>> = by_kind.into_values().collect();
        let mut mutants = Vec::new();
        while mutants.len() < count && !piles.is_empty() {
            let index = rng.below(piles.len());
            let pile = &mut piles[index];
            let edit = pile.swap_remove(rng.below(pile.len()));
            mutants.push(edit.apply(doc));
            if pile.is_empty() {
                piles.swap_remove(index);
            }
        }
        mutants
    }

    /// Adds one unknown member, whose value is allowed, to every object whose schema allows unknown members. A valid
    /// instance remains valid.
    ///
    /// # Panics
    ///
    /// If there is no such definition.
    pub fn with_unknown_members(&mut self, definition: &str, doc: &Doc) -> Doc {
        let schema = self.generator.definitions.definition(definition);
        self.with_extra_members(&[schema], doc)
    }

    /// Returns a copy of a value in which each object whose schema allows unknown members has an additional unknown
    /// member.
    fn with_extra_members(&mut self, schemas: &[&'s Value], doc: &Doc) -> Doc {
        let parts = self.select_schemas(schemas, doc);
        match doc {
            Doc::Array(items) => {
                let schemas = parts.items();
                Doc::Array(
                    items
                        .iter()
                        .map(|item| self.with_extra_members(&schemas, item))
                        .collect(),
                )
            }
            Doc::Object(members) => {
                let mut extended: Vec<(String, Doc)> = members
                    .iter()
                    .map(|(name, value)| {
                        (
                            name.clone(),
                            self.with_extra_members(&parts.member(name), value),
                        )
                    })
                    .collect();
                let (at, name) = unknown_member_position(members, &mut self.generator.rng);
                let schemas = parts.member(&name);
                let definitions = &self.generator.definitions;
                let refused = definitions.is_impossible(&definitions.resolve(&schemas));
                if !refused && definitions.is_name_allowed(&parts, &name) {
                    extended.insert(at, (name, self.generator.new_value(&schemas, 2)));
                }
                Doc::Object(extended)
            }
            scalar => scalar.clone(),
        }
    }

    /// Returns all possible changes of an instance.
    fn collect_edits(&mut self, definition: &str, doc: &Doc) -> Vec<Edit> {
        let schema = self.generator.definitions.definition(definition);
        let mut collector = EditCollector::default();
        self.visit_value(&mut collector, &[schema], doc);
        collector.edits
    }

    /// Returns the constraints of a value; of each `anyOf` and `oneOf`, the branch that the value satisfies is
    /// selected.
    fn select_schemas(&mut self, schemas: &[&'s Value], doc: &Doc) -> Constraints<'s> {
        let definitions = &self.generator.definitions;
        let mut parts = definitions.resolve(schemas);
        definitions.select_branches(&mut parts, doc, &mut self.generator.rng);
        parts
    }

    /// Collects the changes of a value and of the values in it.
    fn visit_value(&mut self, collector: &mut EditCollector, schemas: &[&'s Value], doc: &Doc) {
        let parts = self.select_schemas(schemas, doc);
        if !parts.is_open() {
            self.change_type(collector, doc);
        }
        match doc {
            Doc::Number(text) => change_number(collector, &parts, text),
            Doc::String(text) => change_string(collector, &parts, text),
            Doc::Array(items) => self.visit_items(collector, &parts, items),
            Doc::Object(members) => self.visit_members(collector, &parts, members),
            Doc::Null | Doc::Bool(_) => {}
        }
    }

    /// Adds changes that replace a value by a value of each other JSON type.
    fn change_type(&mut self, collector: &mut EditCollector, doc: &Doc) {
        let others = [
            Doc::Null,
            Doc::Bool(self.generator.rng.chance(50)),
            Doc::Number("3".to_owned()),
            Doc::Number("0.25".to_owned()),
            Doc::String(values::string(&mut self.generator.rng)),
            Doc::Array(vec![Doc::String("a".to_owned())]),
            Doc::Object(vec![("a".to_owned(), Doc::Bool(true))]),
        ];
        for other in others {
            let kind = match (doc, &other) {
                (Doc::Number(_), Doc::Number(_)) => continue,
                _ if Types::type_of(doc) == Types::type_of(&other) => continue,
                (_, Doc::Null) => MutationKind::NullForPresent,
                (Doc::Object(_), Doc::Array(_)) => MutationKind::ArrayForObject,
                (Doc::Array(_), Doc::Object(_)) => MutationKind::ObjectForArray,
                _ => MutationKind::WrongType,
            };
            collector.add_replacement(kind, other);
        }
        if let Doc::Bool(_) | Doc::Number(_) = doc {
            collector.add_replacement(MutationKind::QuotedScalar, Doc::String(doc.to_string()));
        }
    }

    /// Collects the changes of an array and its items.
    fn visit_items(
        &mut self,
        collector: &mut EditCollector,
        parts: &Constraints<'s>,
        items: &[Doc],
    ) {
        let schemas = parts.items();
        if !parts.is_open() {
            collector.add_replacement(MutationKind::ObjectForArray, Doc::Object(Vec::new()));
            collector.add_replacement(
                MutationKind::ObjectForArray,
                Doc::Object(number_items(items)),
            );
            if !items.is_empty() {
                collector.add_replacement(MutationKind::EmptyContainer, Doc::Array(Vec::new()));
            }
            self.change_length(collector, parts, items);
        }
        for (index, item) in items.iter().enumerate() {
            collector.at_child(index, &index.to_string(), |collector| {
                self.visit_value(collector, &schemas, item)
            });
        }
    }

    /// Adds changes that make an array too long or too short.
    fn change_length(
        &mut self,
        collector: &mut EditCollector,
        parts: &Constraints<'s>,
        items: &[Doc],
    ) {
        if let Some(max) = parts.upper_bound("maxItems") {
            let mut longer = items.to_vec();
            while longer.len() <= max as usize {
                let item = match items.first() {
                    Some(first) => first.clone(),
                    None => self.generator.new_value(&parts.items(), 1),
                };
                longer.push(item);
            }
            collector.add_replacement(MutationKind::OutOfBounds, Doc::Array(longer));
        }
        if let Some(min) = parts.lower_bound("minItems").filter(|min| *min >= 1.0) {
            let shorter = items.iter().take(min as usize - 1).cloned().collect();
            collector.add_replacement(MutationKind::OutOfBounds, Doc::Array(shorter));
        }
    }

    /// Collects the changes of an object and its members.
    fn visit_members(
        &mut self,
        collector: &mut EditCollector,
        parts: &Constraints<'s>,
        members: &[(String, Doc)],
    ) {
        if !parts.is_open() {
            collector.add_replacement(MutationKind::ArrayForObject, Doc::Array(Vec::new()));
            let values = members.iter().map(|(_, value)| value.clone()).collect();
            collector.add_replacement(MutationKind::ArrayForObject, Doc::Array(values));
            if !members.is_empty() {
                collector.add_replacement(MutationKind::EmptyContainer, Doc::Object(Vec::new()));
            }
        }
        self.add_members(collector, parts, members);
        let required = parts.required();
        for (index, (name, value)) in members.iter().enumerate() {
            let kind = if required.contains(name.as_str()) {
                MutationKind::MissingRequired
            } else {
                MutationKind::MissingOptional
            };
            collector.add_member_edit(kind, name, Change::Remove(index));
            collector.at_child(index, name, |collector| {
                self.change_tag(collector, parts, name, value);
                self.visit_value(collector, &parts.member(name), value);
            });
        }
    }

    /// Adds changes that insert `null` for each absent member, a member with an unknown name, and a member that only
    /// other objects declare.
    fn add_members(
        &mut self,
        collector: &mut EditCollector,
        parts: &Constraints<'s>,
        members: &[(String, Doc)],
    ) {
        let declared = parts.properties();
        let is_taken = |name: &str| members.iter().any(|(other, _)| other == name);
        for name in declared.iter().filter(|name| !is_taken(name)) {
            let at = self.generator.rng.below(members.len() + 1);
            let change = Change::Insert(at, (*name).to_owned(), Doc::Null);
            collector.add_member_edit(MutationKind::NullForAbsent, name, change);
        }
        let (at, unknown) = unknown_member_position(members, &mut self.generator.rng);
        let mut names = vec![unknown];
        let known = self.generator.definitions.member_names();
        if !known.is_empty() {
            let other = *self.generator.rng.pick(known);
            if !declared.contains(other) && !is_taken(other) {
                names.push(other.to_owned());
            }
        }
        for name in names {
            let value = self.generator.open_value();
            let change = Change::Insert(at, name.clone(), value);
            collector.add_member_edit(MutationKind::UnknownMember, &name, change);
        }
    }

    /// Adds changes of a member that has a `const`: the discriminator of a union variant, or a fixed value.
    fn change_tag(
        &mut self,
        collector: &mut EditCollector,
        parts: &Constraints<'s>,
        name: &str,
        value: &Doc,
    ) {
        let definitions = &self.generator.definitions;
        let schema = definitions.resolve(&parts.member(name));
        if !schema.has_const() {
            return;
        }
        let mut others: Vec<Doc> = Vec::new();
        for branch in parts.selected_choices.iter().flat_map(|group| group.iter()) {
            let tag = definitions.resolve(&definitions.resolve(&[branch]).member(name));
            for literal in tag.literals().unwrap_or_default() {
                if !is_same_json(&literal, value)
                    && others.iter().all(|other| !is_same_json(other, &literal))
                {
                    others.push(literal);
                }
            }
        }
        let kind = if others.is_empty() {
            MutationKind::WrongConst
        } else {
            MutationKind::UnknownTag
        };
        for wrong in similar_strings(value) {
            collector.add_replacement(kind, wrong);
        }
        for other in others {
            collector.add_replacement(MutationKind::TagOfOtherVariant, other);
        }
    }
}

/// Returns items with their indices as names.
fn number_items(items: &[Doc]) -> Vec<(String, Doc)> {
    let indices = (0..items.len()).map(|index| index.to_string());
    indices.zip(items.iter().cloned()).collect()
}

/// Returns a random position for an additional member, and a name that neither the object nor a specification uses.
fn unknown_member_position(members: &[(String, Doc)], rng: &mut Rng) -> (usize, String) {
    let at = rng.below(members.len() + 1);
    (
        at,
        values::unknown_name(members.iter().map(|(name, _)| name.as_str()), rng),
    )
}

/// Adds one unknown member to every object of a document, at a random position, without regard to a schema;
/// [`Mutator::with_unknown_members`] keeps documents valid whose schema constrains unknown members.
pub fn with_unknown_members(doc: &Doc, rng: &mut Rng) -> Doc {
    match doc {
        Doc::Array(items) => Doc::Array(
            items
                .iter()
                .map(|item| with_unknown_members(item, rng))
                .collect(),
        ),
        Doc::Object(members) => {
            let mut extended: Vec<(String, Doc)> = members
                .iter()
                .map(|(name, value)| (name.clone(), with_unknown_members(value, rng)))
                .collect();
            let (at, name) = unknown_member_position(members, rng);
            extended.insert(at, (name, unknown_value(rng)));
            Doc::Object(extended)
        }
        scalar => scalar.clone(),
    }
}

/// Returns a random value for an unknown member.
fn unknown_value(rng: &mut Rng) -> Doc {
    match rng.below(6) {
        0 => Doc::Null,
        1 => Doc::Bool(rng.chance(50)),
        2 => Doc::Number(values::number(false, rng)),
        3 => Doc::String(values::string(rng)),
        4 => Doc::Array(vec![Doc::Null, Doc::Object(Vec::new())]),
        _ => Doc::Object(vec![(values::name(&[], rng), Doc::Array(Vec::new()))]),
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use serde_json::{Value, json};

    use super::{MutationKind, Mutator, with_unknown_members};
    use crate::rng::Rng;
    use crate::text::{Doc, is_same_json};

    /// Returns the schema document of these tests.
    fn document() -> Value {
        json!({"$defs": {
            "Block": {"anyOf": [
                {"type": "object", "properties": {"t": {"const": "a"}, "n": {"type": "integer"}}, "required": ["t"]},
                {
                    "type": "object",
                    "properties": {"t": {"const": "b"}, "u": {"type": "string", "format": "uri"}},
                    "required": ["t", "u"],
                },
            ]},
            "Version": {"type": "object", "properties": {"v": {"const": "2.0"}, "e": {"enum": ["x", "y"]}}},
            "Map": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0, "maximum": 1}},
            "List": {"type": "array", "items": {"type": "boolean"}, "maxItems": 3},
            "Any": {},
        }})
    }

    /// Returns the pointer and the text of each mutant of one kind.
    fn mutants(definition: &str, text: &str, kind: MutationKind) -> Vec<String> {
        let document = document();
        let doc = Doc::parse(text).expect("the text is JSON");
        let mutants = Mutator::new(&document, Rng::new(2)).mutants(definition, &doc);
        let of_kind = mutants.into_iter().filter(|mutant| mutant.kind == kind);
        of_kind
            .map(|mutant| format!("{} {}", mutant.pointer, mutant.doc))
            .collect()
    }

    /// A value of a union is changed by the constraints of the branch that it satisfies.
    #[test]
    fn matching_branch_determines_the_edits() {
        let block = r#"{"t":"b","u":"a:b","n":1}"#;
        assert_eq!(
            mutants("Block", block, MutationKind::MissingRequired),
            [r#"/t {"u":"a:b","n":1}"#, r#"/u {"t":"b","n":1}"#]
        );
        assert_eq!(
            mutants("Block", block, MutationKind::TagOfOtherVariant),
            [r#"/t {"t":"a","u":"a:b","n":1}"#]
        );
        assert!(
            mutants("Block", block, MutationKind::UnknownTag)
                .contains(&r#"/t {"t":"B","u":"a:b","n":1}"#.to_owned())
        );
        assert!(mutants("Block", block, MutationKind::BadFormat).len() > 20);
        assert!(mutants("Block", block, MutationKind::FractionForInteger).is_empty());
        assert_eq!(
            mutants("Block", r#"{"t":"a"}"#, MutationKind::NullForAbsent).len(),
            1
        );
    }

    /// The mutants of each kind have the change that the kind describes.
    #[test]
    fn kinds_describe_their_changes() {
        assert_eq!(
            mutants("List", "[true]", MutationKind::OutOfBounds),
            [" [true,true,true,true]"]
        );
        assert_eq!(
            mutants("List", "[true]", MutationKind::QuotedScalar),
            [r#"/0 ["true"]"#]
        );
        assert!(
            mutants("Map", r#"{"a/b":0}"#, MutationKind::OutOfBounds)
                .contains(&r#"/a~1b {"a/b":1.5}"#.to_owned())
        );
        assert_eq!(
            mutants("Map", r#"{"a":1}"#, MutationKind::RespelledInteger),
            [r#"/a {"a":1.0}"#, r#"/a {"a":1e0}"#]
        );
        assert_eq!(
            mutants("Version", r#"{"v":"2.0"}"#, MutationKind::WrongConst).len(),
            4
        );
        assert_eq!(
            mutants("Version", r#"{"e":"x"}"#, MutationKind::WrongEnum).len(),
            5
        );
    }

    /// A value that its schema does not constrain is changed only by additional members.
    #[test]
    fn untyped_values_only_get_members() {
        assert!(mutants("Any", "[1,\"a\"]", MutationKind::WrongType).is_empty());
        assert!(!mutants("Any", r#"{"a":{}}"#, MutationKind::UnknownMember).is_empty());
    }

    /// Samples of mutants include all kinds about equally often.
    #[test]
    fn samples_include_all_kinds_equally() {
        let document = document();
        let mut mutator = Mutator::new(&document, Rng::new(9));
        let doc = Doc::parse(r#"{"t":"b","u":"a:b"}"#).expect("the text is JSON");
        let all = mutator.mutants("Block", &doc).len();
        assert_eq!(mutator.sample("Block", &doc, usize::MAX).len(), all);
        let mut kinds: BTreeMap<MutationKind, usize> = BTreeMap::new();
        for _ in 0..100 {
            let sample = mutator.sample("Block", &doc, 4);
            assert_eq!(sample.len(), 4);
            for mutant in sample {
                *kinds.entry(mutant.kind).or_default() += 1;
            }
        }
        assert!(
            kinds.len() >= 9 && kinds.values().all(|count| *count > 10),
            "{kinds:?}"
        );
    }

    /// `with_unknown_members` adds exactly one member to each object.
    #[test]
    fn every_object_gets_an_unknown_member() {
        let doc = Doc::parse(r#"{"x-unknown":[{},{"b":{}}],"ünï":1}"#).expect("the text is JSON");
        for seed in 0..50 {
            let extended = with_unknown_members(&doc, &mut Rng::new(seed));
            let Doc::Object(members) = &extended else {
                panic!("an object stays an object: {extended}");
            };
            assert_eq!(members.len(), 3);
            let Some(Doc::Array(items)) = extended.member("x-unknown") else {
                panic!("a member keeps its name: {extended}");
            };
            let sizes = items.iter().map(|item| match item {
                Doc::Object(members) => members.len(),
                _ => 0,
            });
            assert_eq!(sizes.collect::<Vec<_>>(), [1, 2]);
            let read_back = Doc::parse(&extended.to_string()).expect("no name comes twice");
            assert!(is_same_json(&extended, &read_back));
        }
    }

    /// The unknown members of a map have a value that the schema of the map allows.
    #[test]
    fn maps_stay_valid_with_unknown_members() {
        let document = document();
        let mut mutator = Mutator::new(&document, Rng::new(4));
        let doc = Doc::parse(r#"{"a":1}"#).expect("the text is JSON");
        for _ in 0..20 {
            let Doc::Object(members) = mutator.with_unknown_members("Map", &doc) else {
                panic!("an object stays an object");
            };
            assert_eq!(members.len(), 2);
            assert!(
                members
                    .iter()
                    .all(|(_, value)| matches!(value, Doc::Number(_)))
            );
        }
    }
}
