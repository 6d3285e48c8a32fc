//! A value that only one variant of a union accepts is decoded as that variant; if several accept it, the documented
//! order decides. Inputs are seeded instances of every union of every revision, with random member order and unknown
//! members. For methods: a known method with invalid params is an error at the params, an unknown method becomes the
//! unknown variant.

use codegen::ir::Union as Variants;
use mcp_exact_tests_support::{Cases, Doc, Generator, Mutator, Rng, Style};
use mcp_exact_wire::ViolationKind;

use crate::revisions::{Revision, Union, revisions};
use crate::rules::known_exception;
use crate::unions::select_variant;

/// Seed of the random instances.
const SEED: u64 = 20_241_105;

/// Number of instances of each union.
const INSTANCE_COUNT: Cases = Cases {
    short: 15,
    long: 200,
};

/// Numbers of checked values by outcome.
#[derive(Debug, Default)]
struct Tally {
    /// Number of values that exactly one variant accepts.
    one_variant: usize,
    /// Number of values that more than one variant accepts.
    several_variants: usize,
    /// Number of values that a documented rule refuses.
    refused: usize,
}

/// An instance is decoded as the only variant that accepts it, or as the variant that the documented rules select.
#[test]
fn instances_decode_as_the_accepting_variant() {
    for revision in revisions() {
        let mut rng = Rng::new(SEED);
        let mut generator = Generator::new(revision.schema.document, rng.fork());
        let mut mutator = Mutator::new(revision.schema.document, rng.fork());
        let mut tally = Tally::default();
        for union in revision.types.unions {
            for _ in 0..INSTANCE_COUNT.number() {
                let doc = generator.instance(union.name);
                let extended = mutator.with_unknown_members(union.name, &doc);
                check(revision, union, &doc, &mut rng, &mut tally);
                check(revision, union, &extended, &mut rng, &mut tally);
            }
        }
        println!(
            "{} (seed {SEED}): {} documents of one member, {} of several, {} refused by a rule",
            revision.id(),
            tally.one_variant,
            tally.several_variants,
            tally.refused
        );
        assert!(
            tally.refused * 50 < tally.one_variant + tally.several_variants,
            "{tally:?}"
        );
    }
}

/// Checks that a value is decoded as the expected variant, in compact and in random spelling; counts the outcome.
fn check(revision: &Revision, union: &Union, doc: &Doc, rng: &mut Rng, tally: &mut Tally) {
    let schema = &revision.schema;
    let at = schema.definition(union.name);
    let members = schema.variants(&at).expect("it is a union");
    let accepting: Vec<usize> = (0..members.len())
        .filter(|index| schema.oracle.verdict(members[*index].0, doc) == Some(true))
        .collect();
    let about = format!("{} {} {doc}", revision.id(), union.name);
    assert!(!accepting.is_empty(), "an instance is valid: {about}");
    let refused = known_exception(schema, union.name, doc).is_some();
    let expected = match accepting.as_slice() {
        [one] => *one,
        _ => select_variant(schema, &at, doc)
            .unwrap_or_else(|| panic!("the rules pick one: {about}")),
    };
    for style in [Style::default(), Style::ALL_VARIATIONS] {
        let text = doc.write(style, rng);
        match (union.decode)(text.as_bytes()) {
            Ok(decoded) if refused => assert!(!decoded.violations.is_empty(), "{about}"),
            Ok(decoded) => {
                let variant = &variants(revision, union.name).variants[expected];
                assert_eq!(decoded.variant, variant.name, "{about}");
                assert!(decoded.violations.is_empty(), "{about}");
            }
            Err(error) => assert!(refused, "{error}: {about}"),
        }
    }
    match accepting.len() {
        _ if refused => tally.refused += 1,
        1 => tally.one_variant += 1,
        _ => tally.several_variants += 1,
    }
}

/// Returns the variants of a union in the intermediate representation.
fn variants<'r>(revision: &'r Revision, union: &str) -> &'r Variants {
    revision.ir.union(union)
}

/// The variants of a union are in the order of the official schema.
#[test]
fn variants_keep_schema_order() {
    for revision in revisions() {
        for union in revision.types.unions {
            let at = revision.schema.definition(union.name);
            let members = revision.schema.variants(&at).expect("it is a union");
            let variants = &variants(revision, union.name).variants;
            assert_eq!(members.len(), variants.len(), "{}", union.name);
            for ((name, _), variant) in members.iter().zip(variants) {
                if let codegen::ir::Type::Ref { name: refers, .. } = &variant.value
                    && !name.starts_with('.')
                {
                    assert_eq!(name, refers, "{}", union.name);
                }
            }
        }
    }
}

/// Returns the unions of the revision whose variants are selected by method: requests and notifications.
fn unions_by_method(revision: &Revision) -> impl Iterator<Item = &'static Union> {
    let tag = |union: &&Union| variants(revision, union.name).open_tag() == Some("method");
    revision.types.unions.iter().filter(tag)
}

/// A known method with invalid params gives an error with a pointer into the params.
#[test]
fn invalid_params_are_reported_with_pointer() {
    let mut cases = 0;
    for revision in revisions() {
        let mut generator = Generator::new(revision.schema.document, Rng::new(SEED));
        for union in unions_by_method(revision) {
            for _ in 0..INSTANCE_COUNT.number() {
                let doc = generator.instance(union.name);
                for bad in ["5", "[]", "null", "\"a\"", r#"{"_meta":[]}"#] {
                    let bad = Doc::parse(bad).expect("a case is JSON");
                    let changed = with_member(&doc, "params", bad);
                    if revision.schema.oracle.verdict(union.name, &changed) == Some(true) {
                        assert!(!revision.is_reviewed, "{} {changed}", revision.id());
                        continue;
                    }
                    let text = changed.to_string();
                    let error = match (union.decode)(text.as_bytes()) {
                        Ok(decoded) => panic!("{} {text} {}", union.name, decoded.variant),
                        Err(error) => error,
                    };
                    assert!(error.pointer().starts_with("/params"), "{text} {error}");
                    cases += 1;
                }
            }
        }
    }
    println!("{cases} known methods with bad params are errors");
}

/// A message with a known method and invalid params is not decoded as an unknown message.
#[test]
fn known_methods_never_become_unknown() {
    let (mut errors, mut violations) = (0, 0);
    for revision in revisions() {
        let mut generator = Generator::new(revision.schema.document, Rng::new(SEED));
        let mut mutator = Mutator::new(revision.schema.document, Rng::new(SEED));
        for union in unions_by_method(revision) {
            for _ in 0..INSTANCE_COUNT.number() {
                let doc = generator.instance(union.name);
                for mutant in mutator.sample(union.name, &doc, 5) {
                    let in_params = mutant.pointer.starts_with("/params");
                    let valid = revision.schema.oracle.verdict(union.name, &mutant.doc);
                    if !in_params || valid != Some(false) {
                        continue;
                    }
                    match (union.decode)(mutant.doc.to_string().as_bytes()) {
                        Ok(decoded) => {
                            assert_ne!(decoded.variant, "Unrecognized", "{}", mutant.doc);
                            let all = decoded.violations.listed();
                            assert!(all[0].pointer.starts_with("/params"), "{}", mutant.doc);
                            violations += 1;
                        }
                        Err(error) => {
                            let whole = mutant.pointer == "/params" && error.pointer().is_empty();
                            assert!(
                                whole || error.pointer().starts_with("/params"),
                                "{error} {}",
                                mutant.doc
                            );
                            errors += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{errors} errors and {violations} violations point at params");
}

/// Returns the members of the JSON-RPC envelope that a message of this union has to have: those that any of its
/// messages requires.
fn envelope(revision: &Revision, union: &Union) -> Vec<(&'static str, Doc)> {
    let schema = &revision.schema;
    let at = schema.definition(union.name);
    let messages = schema.variants(&at).expect("it is a union");
    let requires = |name: &str| {
        let mut messages = messages.iter().map(|(_, at)| schema.resolve(at));
        messages.any(|at| {
            let names = at.schema["required"].as_array();
            names.is_some_and(|names| names.iter().any(|required| required == name))
        })
    };
    let members = [("jsonrpc", r#""2.0""#), ("id", "1")];
    let members = members.into_iter().filter(|(name, _)| requires(name));
    let member = |(name, text)| (name, Doc::parse(text).expect("a value is JSON"));
    members.map(member).collect()
}

/// A message with an unknown method is decoded as the unknown variant and preserved.
#[test]
fn unknown_methods_round_trip() {
    for revision in revisions() {
        let mut generator = Generator::new(revision.schema.document, Rng::new(SEED));
        for union in unions_by_method(revision) {
            for method in ["", "tools/Call", "tools/call ", "x/y", "\u{0}"] {
                let doc = generator.instance(union.name);
                // A message with a method has neither a result nor an error.
                if has_member(&doc, "result") || has_member(&doc, "error") {
                    continue;
                }
                let mut doc = with_member(&doc, "method", Doc::String(method.into()));
                for (name, value) in envelope(revision, union) {
                    if !has_member(&doc, name) {
                        doc = with_member(&doc, name, value);
                    }
                }
                let text = doc.to_string();
                let decoded = (union.decode)(text.as_bytes()).expect("an unknown method is kept");
                assert_eq!(decoded.variant, "Unrecognized", "{} {text}", union.name);
                assert_eq!(decoded.encoded, text, "{}", union.name);
                let kinds = decoded.violations.listed().iter();
                let kinds: Vec<ViolationKind> = kinds.map(|violation| violation.kind).collect();
                assert_eq!(kinds, [ViolationKind::Tag], "{} {text}", union.name);
            }
        }
    }
}

/// A value with an unknown discriminant is decoded as the unknown variant and preserved.
#[test]
fn unknown_tags_are_kept() {
    for revision in revisions() {
        for union in revision.types.unions {
            let Some(tag) = variants(revision, union.name).open_tag() else {
                continue;
            };
            let envelope = match tag {
                "method" => envelope(revision, union),
                _ => Vec::new(),
            };
            let text: String = envelope
                .iter()
                .map(|(name, value)| format!(r#""{name}":{value},"#))
                .collect();
            let text = format!(r#"{{{text}"a":[ 1.0 ],"{tag}":"x-unknown"}}"#);
            let decoded = (union.decode)(text.as_bytes()).expect("an unknown tag is kept");
            assert_eq!(
                (decoded.variant.as_str(), decoded.encoded.as_str()),
                ("Unrecognized", text.as_str())
            );
            let takes_arrays = !variants(revision, union.name).dispatch.arrays.is_empty();
            for bad in ["{}", "[]", "null", &format!(r#"{{"{tag}":1}}"#)] {
                if bad == "[]" && takes_arrays {
                    continue;
                }
                assert!(
                    (union.decode)(bad.as_bytes()).is_err(),
                    "{} {bad}",
                    union.name
                );
            }
        }
    }
}

/// Returns true if a value is an object with a member of this name.
fn has_member(doc: &Doc, name: &str) -> bool {
    matches!(doc, Doc::Object(members) if members.iter().any(|(known, _)| known == name))
}

/// Returns an object with the member `name` set to `value`.
fn with_member(doc: &Doc, name: &str, value: Doc) -> Doc {
    let Doc::Object(members) = doc else {
        panic!("a message is an object: {doc}");
    };
    let mut members = members.clone();
    match members.iter_mut().find(|(other, _)| other == name) {
        Some((_, old)) => *old = value,
        None => members.push((name.to_owned(), value)),
    }
    Doc::Object(members)
}
