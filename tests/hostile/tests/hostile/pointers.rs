//! The pointer of an error is the position of the defect: each valid instance of a definition, generated from the
//! official schema with a fixed seed, is changed to have one defect.
//!
//! Changed instances that remain valid, because the schema does not constrain the changed value, are counted
//! separately. Instances that errata make invalid are skipped.

use std::collections::BTreeMap;
use std::path::Path;

use mcp_exact_tests_support::{Cases, Doc, Generator, Rng, Style};
use mcp_exact_tests_types::definitions::mcp_2025_06_18::DEFINITIONS;
use serde_json::Value;

/// Seed of the random instances.
const SEED: u64 = 0x6901;
/// Number of instances of each definition.
const INSTANCE_COUNT: Cases = Cases {
    short: 12,
    long: 60,
};
/// Number of documents that are created from each instance, each with one defect.
const DEFECTS_PER_INSTANCE: usize = 12;

/// Returns the official schema of 2025-06-18.
fn official_schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/2025-06-18/schema.json");
    let text = std::fs::read_to_string(path).expect("the schema is there");
    serde_json::from_str(&text).expect("a schema is JSON")
}

/// Step from a value to an item or member of it.
#[derive(Clone, Debug)]
enum Step {
    /// Step to a member, by its name.
    Member(String),
    /// Step to an item, by its index.
    Item(usize),
}

/// Returns the JSON pointer of a path.
fn pointer(path: &[Step]) -> String {
    let mut out = String::new();
    for step in path {
        out.push('/');
        match step {
            Step::Member(name) => out += &name.replace('~', "~0").replace('/', "~1"),
            Step::Item(index) => out += &index.to_string(),
        }
    }
    out
}

/// Returns the paths of all values of a document.
fn value_paths(doc: &Doc) -> Vec<Vec<Step>> {
    /// Adds the paths of a value and of all values in it.
    fn collect_paths(doc: &Doc, path: &mut Vec<Step>, out: &mut Vec<Vec<Step>>) {
        out.push(path.clone());
        let inner: Vec<(Step, &Doc)> = match doc {
            Doc::Array(items) => (0..).map(Step::Item).zip(items).collect(),
            Doc::Object(members) => members
                .iter()
                .map(|(name, value)| (Step::Member(name.clone()), value))
                .collect(),
            _ => Vec::new(),
        };
        for (step, value) in inner {
            path.push(step);
            collect_paths(value, path, out);
            path.pop();
        }
    }
    let mut out = Vec::new();
    collect_paths(doc, &mut Vec::new(), &mut out);
    out
}

/// Returns the value at a path.
fn value_at<'d>(doc: &'d mut Doc, path: &[Step]) -> &'d mut Doc {
    path.iter().fold(doc, |doc, step| match (doc, step) {
        (Doc::Array(items), Step::Item(index)) => &mut items[*index],
        (Doc::Object(members), Step::Member(name)) => {
            let found = members.iter_mut().find(|(known, _)| known == name);
            &mut found.expect("the path leads somewhere").1
        }
        _ => panic!("the path leads nowhere"),
    })
}

/// Document with one defect, and the errors that its decoding may give.
struct DefectiveDocument {
    /// The document.
    doc: Doc,
    /// Description of the defect.
    description: &'static str,
    /// JSON pointer at which the error must be reported.
    pointer: String,
    /// Kinds of error that are allowed.
    kinds: &'static [&'static str],
}

/// Replaces a random value of the document by a value of another JSON type.
fn change_type(doc: &Doc, rng: &mut Rng) -> DefectiveDocument {
    let mut doc = doc.clone();
    let places = value_paths(&doc);
    let path = rng.pick(&places);
    let place = value_at(&mut doc, path);
    let others = [
        Doc::Null,
        Doc::Bool(true),
        Doc::Number("1.5".to_owned()),
        Doc::String("\u{1}?".to_owned()),
        Doc::Array(vec![Doc::Null]),
        Doc::Object(vec![("\u{1}?".to_owned(), Doc::Null)]),
    ];
    let same_type = |other: &Doc| std::mem::discriminant(other) == std::mem::discriminant(&*place);
    let others: Vec<Doc> = others.into_iter().filter(|doc| !same_type(doc)).collect();
    *place = rng.pick(&others).clone();
    DefectiveDocument {
        description: "another type",
        pointer: pointer(path),
        kinds: &["type", "anyOf"],
        doc,
    }
}

/// Removes a random member of the document; `None` if the document has no member.
fn remove_member(doc: &Doc, rng: &mut Rng) -> Option<DefectiveDocument> {
    let mut doc = doc.clone();
    let places: Vec<_> = value_paths(&doc)
        .into_iter()
        .filter(|path| matches!(path.last(), Some(Step::Member(_))))
        .collect();
    if places.is_empty() {
        return None;
    }
    let path = rng.pick(&places);
    let (last, parent) = path.split_last()?;
    if let (Doc::Object(members), Step::Member(name)) = (value_at(&mut doc, parent), last) {
        members.retain(|(known, _)| known != name);
    }
    Some(DefectiveDocument {
        description: "a member less",
        pointer: pointer(parent),
        kinds: &["required", "anyOf"],
        doc,
    })
}

/// Replaces a random string of the document by another string; `None` if the document has no string.
fn change_string(doc: &Doc, rng: &mut Rng) -> Option<DefectiveDocument> {
    let mut doc = doc.clone();
    let mut strings = value_paths(&doc);
    strings.retain(|path| matches!(value_at(&mut doc, path), Doc::String(_)));
    if strings.is_empty() {
        return None;
    }
    let path = rng.pick(&strings);
    *value_at(&mut doc, path) = Doc::String("\u{1}?".to_owned());
    Some(DefectiveDocument {
        description: "another string",
        pointer: pointer(path),
        kinds: &["const"],
        doc,
    })
}

/// Adds a copy of a random member to its object; `None` if the document has no member.
fn duplicate_member(doc: &Doc, rng: &mut Rng) -> Option<DefectiveDocument> {
    let mut doc = doc.clone();
    let mut objects = value_paths(&doc);
    objects.retain(|path| matches!(value_at(&mut doc, path), Doc::Object(m) if !m.is_empty()));
    if objects.is_empty() {
        return None;
    }
    let mut path = rng.pick(&objects).clone();
    if let Doc::Object(members) = value_at(&mut doc, &path) {
        let again = rng.pick(members).clone();
        path.push(Step::Member(again.0.clone()));
        let at = rng.below(members.len() + 1);
        members.insert(at, again);
    }
    Some(DefectiveDocument {
        description: "a member twice",
        pointer: pointer(&path),
        kinds: &["duplicate"],
        doc,
    })
}

/// The error for a document with one defect has an allowed kind and the pointer of the defect.
#[test]
fn errors_point_to_the_defect() {
    let schema = official_schema();
    let mut generator = Generator::new(&schema, Rng::new(SEED));
    let mut rng = Rng::new(SEED);
    let mut refused: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let (mut accepted, mut corrected) = (0, 0);
    for definition in DEFINITIONS {
        for _ in 0..INSTANCE_COUNT.number() {
            let doc = generator.instance(definition.name);
            if definition.inspect(doc.to_string().as_bytes()).is_err() {
                corrected += 1;
                continue;
            }
            for round in 0..DEFECTS_PER_INSTANCE {
                let broken = match round % 4 {
                    0 => Some(change_type(&doc, &mut rng)),
                    1 => remove_member(&doc, &mut rng),
                    2 => change_string(&doc, &mut rng),
                    _ => duplicate_member(&doc, &mut rng),
                };
                let Some(broken) = broken else { continue };
                let style = Style {
                    shuffle: false,
                    ..Style::ALL_VARIATIONS
                };
                let text = broken.doc.write(style, &mut rng);
                let Err(error) = definition.inspect(text.as_bytes()) else {
                    accepted += 1;
                    continue;
                };
                let kind = error.kind().name();
                let what = format!(
                    "{} with {}: {error}\n{text}",
                    definition.name, broken.description
                );
                assert_eq!(error.pointer(), broken.pointer, "{what}");
                assert!(broken.kinds.contains(&kind), "{what}");
                *refused.entry((broken.description, kind)).or_default() += 1;
            }
        }
    }
    println!("refused: {refused:#?}, accepted because the place is open: {accepted}");
    println!("instances that the corrections of the schema refuse: {corrected}");
    assert!(corrected < DEFINITIONS.len() * INSTANCE_COUNT.number() / 20);
    assert!(refused.values().sum::<usize>() > 160 * INSTANCE_COUNT.number());
}

/// The offset of an error is the position of the defect in the text.
#[test]
fn offsets_point_into_the_text() {
    for (text, definition, kind, pointer, at) in [
        (
            r#"{"text":"t","type":5}"#,
            "TextContent",
            "type",
            "/type",
            "5}",
        ),
        (
            r#"{"text":"t","type":"x"}"#,
            "TextContent",
            "const",
            "/type",
            r#""x""#,
        ),
        (r#"{"type":"text"}"#, "TextContent", "required", "", "{"),
        (
            r#"[{"method":"ping"},{}]"#,
            "ClientRequest",
            "type",
            "",
            "[",
        ),
        (
            r#"{"messages":[{"role":"user","content":{"type":"text"}}]}"#,
            "GetPromptResult",
            "required",
            "/messages/0/content",
            r#"{"type""#,
        ),
        (
            r#"{"contents":[{"uri":"a:b","blob":""},{"uri":"a:b"}]}"#,
            "ReadResourceResult",
            "anyOf",
            "/contents/1",
            r#"{"uri":"a:b"}"#,
        ),
        (
            r#"{"_meta":{"progressToken":null}}"#,
            "PingRequest",
            "required",
            "",
            "{",
        ),
    ] {
        let definition = DEFINITIONS.iter().find(|known| known.name == definition);
        let definition = definition.expect("there is such a definition");
        let error = definition
            .inspect(text.as_bytes())
            .expect_err("it is broken");
        assert_eq!(
            (error.kind().name(), error.pointer()),
            (kind, pointer),
            "{text}"
        );
        assert!(text[error.offset()..].starts_with(at), "{text}: {error}");
    }
}
