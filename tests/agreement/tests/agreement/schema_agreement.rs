//! Decoding and `validate()` agree with a JSON Schema validator, except where a named rule applies. Inputs are seeded
//! instances and mutants of every definition of every revision, in compact and in random spelling. Where a rule
//! applies, the types must refuse the document.

use std::collections::{BTreeMap, BTreeSet};

use mcp_exact_tests_support::{
    Cases, Doc, Generator, MutationKind, Mutator, Rng, Style, definition_names,
};

use crate::inspection;
use crate::revisions::{Revision, revisions, selected_revision};
use crate::rules::{LONE_SURROGATE, RULES, is_open, known_exception};

/// Seed of the random instances.
const SEED: u64 = 20_250_618;

/// Minimum number of valid documents, and of invalid documents, for each revision.
const MIN_DOCUMENTS: Cases = Cases {
    short: 2_500,
    long: 10_000,
};

/// Number of mutants of each instance.
const MUTANT_COUNT: usize = 5;

/// Numbers of compared documents, by outcome.
#[derive(Default)]
struct Tally {
    /// Definition and text of each document that was compared.
    compared: BTreeSet<(&'static str, String)>,
    /// Number of valid documents by definition.
    valid: BTreeMap<&'static str, usize>,
    /// Number of invalid documents by definition.
    invalid: BTreeMap<&'static str, usize>,
    /// Number of mutants by kind of mutation.
    kinds: BTreeMap<MutationKind, usize>,
    /// Number of documents for which the types and the validator have the same verdict.
    agreed: usize,
    /// Number of documents that each rule refuses.
    refused_by_rule: [usize; RULES.len()],
    /// Descriptions of the documents for which the types and the validator have different verdicts.
    disagreements: Vec<String>,
}

impl Tally {
    /// Returns the numbers of valid and of invalid documents.
    fn totals(&self) -> (usize, usize) {
        (self.valid.values().sum(), self.invalid.values().sum())
    }

    /// Compares the verdicts of the types and the validator on one document, unless the same document was compared
    /// before.
    fn compare_document(
        &mut self,
        revision: &Revision,
        definition: &'static str,
        doc: &Doc,
        rng: &mut Rng,
    ) {
        if !self.compared.insert((definition, doc.to_string())) {
            return;
        }
        let valid = revision.schema.oracle.verdict(definition, doc);
        let valid = valid.expect("no exotic number was asked for");
        let counts = if valid {
            &mut self.valid
        } else {
            &mut self.invalid
        };
        *counts.entry(definition).or_default() += 1;
        let rule = if valid {
            known_exception(&revision.schema, definition, doc)
        } else {
            None
        };
        let text = write(doc, rng);
        let inspected = revision.definition(definition).inspect(text.as_bytes());
        inspection::compare(revision, definition, text.as_bytes(), &inspected);
        let accepted = inspected
            .as_ref()
            .is_ok_and(|inspected| inspected.violations.is_empty());
        match rule {
            _ if accepted != (valid && rule.is_none()) => {
                let rule = rule.map_or("no rule", |rule| RULES[rule].0);
                let errors = doc
                    .to_value()
                    .map(|v| revision.schema.oracle.errors(definition, &v));
                self.disagreements.push(format!(
                    "{definition} {text}\n  schema {errors:?}\n  types {inspected:?}\n  {rule}"
                ));
            }
            Some(rule) => self.refused_by_rule[rule] += 1,
            None => self.agreed += 1,
        }
    }

    /// Prints the numbers; panics if the types and the validator disagree on a document. `what` describes the
    /// documents.
    fn report(&self, revision: &Revision, what: &str) {
        let (revision, definitions) = (revision.id(), revision.types.definitions.len());
        let (valid, invalid) = self.totals();
        let rules = RULES.iter().zip(self.refused_by_rule);
        let rules: Vec<String> = rules.map(|((name, _), n)| format!("{name} {n}")).collect();
        println!(
            "{revision} {what}: {definitions} definitions, {} documents, {valid} valid, {invalid} invalid, {} agreed, excused {}; all inspected alike",
            self.compared.len(),
            self.agreed,
            rules.join(" ")
        );
        let mut shown: Vec<&str> = self.disagreements.iter().map(String::as_str).collect();
        // The smallest document says the most.
        shown.sort_by_key(|text| text.len());
        shown.truncate(10);
        assert!(
            shown.is_empty(),
            "{revision}: {} verdicts differ (seed {SEED})\n{}",
            self.disagreements.len(),
            shown.join("\n")
        );
        let excused: usize = self.refused_by_rule.iter().sum();
        assert_eq!(self.agreed + excused, self.compared.len(), "{revision}");
    }
}

/// Writes the document in a random style, with lone surrogates instead of placeholders.
fn write(doc: &Doc, rng: &mut Rng) -> String {
    let mut style = *rng.pick(&[Style::default(), Style::ALL_VARIATIONS]);
    style.escapes &= !doc.to_string().contains(LONE_SURROGATE);
    doc.write(style, rng).replace(LONE_SURROGATE, "\\ud800")
}

/// The types accept an instance or mutant exactly if it is valid and no rule applies.
#[test]
fn types_and_schema_agree() {
    for revision in revisions() {
        let tally = compare_revision(revision);
        tally.report(revision, "instances and mutants");
        let kinds: BTreeSet<_> = MutationKind::ALL.into_iter().collect();
        if revision.is_reviewed {
            assert_eq!(kinds, tally.kinds.keys().copied().collect(), "every kind");
        }
        for definition in definition_names(&revision.official) {
            let both = [&tally.valid, &tally.invalid].map(|counts| counts.contains_key(definition));
            let can_be_invalid = !is_open(revision.schema.definition(definition).schema);
            assert_eq!(
                both,
                [true, can_be_invalid],
                "{} {definition}",
                revision.id()
            );
        }
        let (valid, _) = tally.totals();
        assert!(
            tally.refused_by_rule[2] * 50 < valid,
            "R3 excuses less than one in fifty"
        );
    }
}

/// Compares instances and mutants of all definitions of a revision.
fn compare_revision(revision: &'static Revision) -> Tally {
    let document = revision.schema.document;
    let mut rng = Rng::new(SEED);
    let mut generator = Generator::new(document, rng.fork());
    let mut mutator = Mutator::new(document, rng.fork());
    let mut tally = Tally::default();
    let least = MIN_DOCUMENTS.number();
    while tally.totals().0 < least || tally.totals().1 < least {
        for definition in revision.types.definitions {
            let name = definition.name;
            let doc = generator.instance(name);
            let extended = mutator.with_unknown_members(name, &doc);
            for mutant in mutator.sample(name, &doc, MUTANT_COUNT) {
                *tally.kinds.entry(mutant.kind).or_default() += 1;
                tally.compare_document(revision, name, &mutant.doc, &mut rng);
            }
            tally.compare_document(revision, name, &doc, &mut rng);
            tally.compare_document(revision, name, &extended, &mut rng);
        }
    }
    tally
}

/// Documents that are changed to trigger the rules (members of another definition, null ids, duplicate members, lone
/// surrogates) are refused exactly if they are invalid or a rule applies.
#[test]
fn rules_match_the_refused_documents() {
    let mut needed = [false; RULES.len()];
    for revision in revisions() {
        let mut rng = Rng::new(SEED);
        let mut generator = Generator::new(revision.schema.document, rng.fork());
        let mut tally = Tally::default();
        for definition in revision.types.definitions {
            let unions = revision.types.unions.iter();
            let is_union = unions
                .map(|union| union.name)
                .any(|name| name == definition.name);
            let (short, long) = if is_union { (40, 300) } else { (3, 20) };
            for _ in 0..(Cases { short, long }).number() {
                let doc = generator.instance(definition.name);
                for change in [add_member, repeat_member, add_lone_surrogate] {
                    let mut changed = doc.clone();
                    change(pick_value(&mut changed, &mut rng), &mut rng);
                    tally.compare_document(revision, definition.name, &changed, &mut rng);
                }
            }
        }
        tally.report(revision, "provoked");
        for (needed, count) in needed.iter_mut().zip(tally.refused_by_rule) {
            *needed |= count > 0;
        }
    }
    // A revision alone need not have a union or an id that a rule is about.
    assert!(
        selected_revision().is_some() || needed.iter().all(|needed| *needed),
        "every rule is needed: {needed:?}"
    );
}

/// Returns a random value in the document.
fn pick_value<'d>(doc: &'d mut Doc, rng: &mut Rng) -> &'d mut Doc {
    let inside = match doc {
        Doc::Array(items) => items.len(),
        Doc::Object(members) => members.len(),
        _ => 0,
    };
    if inside == 0 || rng.chance(50) {
        return doc;
    }
    let index = rng.below(inside);
    match doc {
        Doc::Array(items) => pick_value(&mut items[index], rng),
        Doc::Object(members) => pick_value(&mut members[index].1, rng),
        scalar => scalar,
    }
}

/// Adds a random member that may cause a union to select the wrong variant.
fn add_member(doc: &mut Doc, rng: &mut Rng) {
    /// Names of members that select variants; some are repeated to be chosen more often.
    const NAMES: [&str; 11] = [
        "action", "blob", "content", "enum", "error", "id", "id", "id", "result", "roots", "tools",
    ];
    if let Doc::Object(members) = doc {
        let name = *rng.pick(&NAMES);
        let fraction = Doc::Number("1.5".into());
        let values = [Doc::Null, Doc::Null, fraction, Doc::Array(Vec::new())];
        if members.iter().all(|(other, _)| other != name) {
            members.push((name.to_owned(), rng.pick(&values).clone()));
        }
    }
}

/// Adds a second copy of a member to an object.
fn repeat_member(doc: &mut Doc, rng: &mut Rng) {
    if let Doc::Object(members) = doc
        && !members.is_empty()
    {
        let member = rng.pick(members).clone();
        members.push(member);
    }
}

/// Inserts a lone surrogate into a string, or adds to an object a member with a lone surrogate in its name.
fn add_lone_surrogate(doc: &mut Doc, rng: &mut Rng) {
    match doc {
        Doc::String(text) => text.push_str(LONE_SURROGATE),
        Doc::Object(members) => members.insert(
            rng.below(members.len() + 1),
            (
                format!("x{LONE_SURROGATE}"),
                Doc::String(LONE_SURROGATE.into()),
            ),
        ),
        _ => {}
    }
}
