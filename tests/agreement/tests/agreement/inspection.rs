//! Inspections of the crate `mcp-exact-model` give the verdict of the types: the same documents decode and are valid, with
//! the same violations, the same first error and the same encoding. The types are the oracle; other modules compare the
//! types with the schemas, and pass their documents here, too.

use mcp_exact_model::{Deviation, Inspection, Wanted};
use mcp_exact_tests_support::{Cases, Generator, Rng};
use mcp_exact_tests_types::definitions::Inspected;
use mcp_exact_wire::{DecodeError, DecodeErrorKind, MAX_LISTED, Violations};

use crate::revisions::{Revision, reviewed_revisions, revisions, selected_revision};

/// Seed of the random instances and edits.
const SEED: u64 = 20_261_122;

/// Number of edited texts of each definition.
const EDIT_COUNT: Cases = Cases {
    short: 24,
    long: 400,
};

/// Position-independent part of a violation: JSON pointer, kind and message.
type Rule<'a> = (&'a str, &'a str, &'a str);

/// Asserts that the inspection of a text agrees with the outcome of decoding it as the definition.
pub fn compare(
    revision: &Revision,
    definition: &str,
    text: &[u8],
    decoded: &Result<Inspected, DecodeError>,
) {
    let wanted = Wanted {
        encoded: true,
        ..Wanted::default()
    };
    let inspection = revision.model.inspect(definition, text, wanted);
    let inspection = inspection.expect("the model has every definition");
    let problem = match decoded {
        Ok(inspected) => differs_from_value(&inspection, inspected),
        Err(error) => differs_from_error(&inspection, error, text),
    };
    assert!(
        problem.is_none(),
        "{} {definition} {}\n{}\ntypes {decoded:#?}\nmodel {inspection:#?}",
        revision.id(),
        String::from_utf8_lossy(text),
        problem.unwrap_or_default()
    );
}

/// Returns what differs between an inspection and a decoded value.
fn differs_from_value(inspection: &Inspection, inspected: &Inspected) -> Option<&'static str> {
    let violations = &inspected.violations;
    if inspection.encoded.as_ref() != Some(&inspected.encoded) {
        return Some("the encoding differs");
    }
    if inspection.count != violations.count() {
        return Some("the number of violations differs");
    }
    let is_listed = violations.count() <= MAX_LISTED;
    let differs = is_listed && rules_found(inspection) != rules_violated(violations);
    differs.then_some("the violations differ")
}

/// Returns the deviations of an inspection, in the order of their pointers.
fn rules_found(inspection: &Inspection) -> Vec<Rule<'_>> {
    let found = inspection.deviations.iter();
    let mut rules: Vec<Rule<'_>> = found
        .map(|found| (&*found.pointer, found.kind, &*found.message))
        .collect();
    rules.sort_unstable();
    rules
}

/// Returns the violations of a value, in the order of their pointers.
fn rules_violated(violations: &Violations) -> Vec<Rule<'_>> {
    let listed = violations.listed().iter();
    let mut rules: Vec<Rule<'_>> = listed
        .map(|found| (&*found.pointer, found.kind.name(), &*found.message))
        .collect();
    rules.sort_unstable();
    rules
}

/// Returns what differs between an inspection and the first error of a decoder.
fn differs_from_error(
    inspection: &Inspection,
    error: &DecodeError,
    text: &[u8],
) -> Option<&'static str> {
    if inspection.decodes || inspection.encoded.is_some() {
        return Some("the types do not decode the text");
    }
    if mcp_exact_wire::from_slice::<mcp_exact_wire::Json>(text).is_err() {
        // A decoder may stop before the place where the text is no JSON; an inspection does not begin then.
        let is_alone =
            matches!(&*inspection.deviations, [only] if matches!(only.kind, "syntax" | "utf8"));
        return (!is_alone).then_some("text that is no JSON has other deviations");
    }
    let is_error = |found: &Deviation| {
        // Decoders find a duplicate among unknown members at the end of the object, and have its position.
        let is_in_place =
            found.offset == error.offset() || error.kind() == DecodeErrorKind::Duplicate;
        found.pointer == error.pointer()
            && found.kind == error.kind().name()
            && found.message == error.detail()
            && is_in_place
    };
    let is_listed = inspection.deviations.iter().any(is_error);
    let is_cut = inspection.count > MAX_LISTED;
    (!is_listed && !is_cut).then_some("the first error is missing")
}

/// Texts of every definition in which single characters were removed, repeated and replaced, so that most of them are no
/// JSON, and some have a member twice, a lone surrogate or another number.
#[test]
fn edited_texts_are_inspected_alike() {
    let (mut texts, mut decoded_count, mut json) = (0, 0, 0);
    for revision in revisions() {
        let mut rng = Rng::new(SEED);
        let mut generator = Generator::new(revision.schema.document, rng.fork());
        for definition in revision.types.definitions {
            for _ in 0..EDIT_COUNT.number() {
                let text = generator.instance(definition.name).to_string();
                let text = edit(&text, &mut rng);
                let decoded = definition.inspect(text.as_bytes());
                compare(revision, definition.name, text.as_bytes(), &decoded);
                texts += 1;
                decoded_count += usize::from(decoded.is_ok());
                let is_json = mcp_exact_wire::from_str::<mcp_exact_wire::Json>(&text).is_ok();
                json += usize::from(is_json);
            }
        }
    }
    println!("{texts} edited texts (seed {SEED}), {json} of them JSON, {decoded_count} decode");
    // A revision or an extension alone may have few definitions.
    let is_varied = decoded_count > 0 && json > decoded_count && texts > json;
    assert!(is_varied || selected_revision().is_some());
}

/// Returns the text with one to three edits.
fn edit(text: &str, rng: &mut Rng) -> String {
    /// Replacements of a character.
    const PIECES: [&str; 14] = [
        "{", "}", "[", "]", ",", ":", "\"", "\\ud800", "\\u0061", "1e400", "-0.0", "null", " ", "",
    ];
    let mut letters: Vec<String> = text.chars().map(String::from).collect();
    for _ in 0..=rng.below(3) {
        if letters.is_empty() {
            break;
        }
        let at = rng.below(letters.len());
        match rng.below(4) {
            0 => letters.truncate(at),
            1 => letters[at] = (*rng.pick(&PIECES)).to_owned(),
            2 => letters.insert(at, (*rng.pick(&PIECES)).to_owned()),
            // A part of the text again: sometimes a whole member.
            _ => {
                let end = at + rng.below(letters.len() - at);
                let part = letters[at..end].to_vec();
                letters.splice(at..at, part);
            }
        }
    }
    letters.concat()
}

/// Texts that are no JSON, or not UTF-8, have one deviation at the place of the decoder's error.
#[test]
fn broken_text_has_one_deviation() {
    for revision in reviewed_revisions().filter(|revision| !revision.is_extension) {
        let definition = revision.definition("Tool");
        for text in [
            &b""[..],
            b" ",
            b"{\"name\":",
            b"{\"name\":\"a\",}",
            b"{\"inputSchema\":{\"type\":\"object\"},\"name\":\"a\"} x",
            b"{\"name\":\"\xff\"}",
            b"\xef\xbb\xbf{}",
            b"{\"name\":\"\\x\"}",
        ] {
            let error = definition.inspect(text).expect_err("it is no JSON");
            let inspection = revision.model.inspect("Tool", text, Wanted::default());
            let inspection = inspection.expect("a tool");
            let [only] = &*inspection.deviations else {
                panic!("{text:?} {inspection:?}");
            };
            assert_eq!(
                (only.offset, &*only.pointer, only.kind, &*only.message),
                (
                    error.offset(),
                    error.pointer(),
                    error.kind().name(),
                    error.detail()
                ),
                "{text:?}"
            );
        }
    }
}

/// An unknown member is listed with the defined members that the object lacks, except in `_meta` and in JSON Schema
/// documents.
#[test]
fn unknown_members_are_listed() {
    let tool = r#"{"name":"echo","descripton":"a slip of the finger",
        "inputSchema":{"type":"object","additionalProperties":false},
        "annotations":{"readonlyHint":true},"_meta":{"example.com/a":1}}"#;
    for revision in reviewed_revisions().filter(|revision| !revision.is_extension) {
        let model = &revision.model;
        let wanted = Wanted {
            unknown_outside: Some(&[]),
            ..Wanted::default()
        };
        let inspection = model
            .inspect("Tool", tool.as_bytes(), wanted)
            .expect("every revision has tools");
        let unknown = inspection.unknown;
        let pointers: Vec<&str> = unknown.iter().map(|found| found.pointer.as_str()).collect();
        assert!(
            !pointers.iter().any(|at| at.starts_with("/inputSchema")),
            "{pointers:?}"
        );
        let slip = unknown.iter().find(|found| found.pointer == "/descripton");
        let slip = slip.expect("it is among them");
        assert_eq!((&*slip.definition, &*slip.name), ("Tool", "descripton"));
        assert!(tool[slip.offset..].starts_with("\"descripton\""));
        assert!(slip.missing_members.contains(&"description".to_owned()));
        if model.ir.get("ToolAnnotations").is_some() {
            assert!(
                pointers.contains(&"/annotations/readonlyHint"),
                "{pointers:?}"
            );
            assert!(
                !pointers.iter().any(|at| at.starts_with("/_meta/")),
                "{pointers:?}"
            );
        }
    }
}
