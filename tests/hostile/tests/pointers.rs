//! Takes valid instances of every definition and breaks them in one place; expects an error that points there.
//!
//! Instances come from the official schema and a fixed seed. Changes that break nothing, because the schema leaves the place
//! open, are counted apart. The few instances that a correction of the schema refuses are left out.
#![allow(clippy::print_stdout, reason = "how much was broken is worth reading")]

use std::collections::BTreeMap;
use std::path::Path;

use mcp_2025_06_18::DEFINITIONS;
use mcp_exact_tests_support::{Doc, Generator, Rng, Style};
use serde_json::Value;

const SEED: u64 = 0x6901;
const INSTANCES: usize = 60;
const BREAKS: usize = 12;

fn schema() -> Value {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../schema/2025-06-18/schema.json");
    let text = std::fs::read_to_string(path).expect("the schema is there");
    serde_json::from_str(&text).expect("a schema is JSON")
}

/// One step from a value to one inside it.
#[derive(Clone, Debug)]
enum Step {
    Member(String),
    Item(usize),
}

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

/// All places of a document, each with its path.
fn places(doc: &Doc) -> Vec<Vec<Step>> {
    fn walk(doc: &Doc, path: &mut Vec<Step>, out: &mut Vec<Vec<Step>>) {
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
            walk(value, path, out);
            path.pop();
        }
    }
    let mut out = Vec::new();
    walk(doc, &mut Vec::new(), &mut out);
    out
}

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

/// Defect of a broken document, and the errors that are allowed for it.
struct Broken {
    doc: Doc,
    how: &'static str,
    pointer: String,
    kinds: &'static [&'static str],
}

/// Puts a value of another JSON type into a place.
fn other_type(doc: &Doc, rng: &mut Rng) -> Broken {
    let mut doc = doc.clone();
    let places = places(&doc);
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
    Broken {
        how: "another type",
        pointer: pointer(path),
        kinds: &["type", "anyOf"],
        doc,
    }
}

/// Takes a member out of an object.
fn without_member(doc: &Doc, rng: &mut Rng) -> Option<Broken> {
    let mut doc = doc.clone();
    let places: Vec<_> = places(&doc)
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
    Some(Broken {
        how: "a member less",
        pointer: pointer(parent),
        kinds: &["required", "anyOf"],
        doc,
    })
}

/// Puts another string into the place of a string.
fn other_string(doc: &Doc, rng: &mut Rng) -> Option<Broken> {
    let mut doc = doc.clone();
    let mut strings = places(&doc);
    strings.retain(|path| matches!(value_at(&mut doc, path), Doc::String(_)));
    if strings.is_empty() {
        return None;
    }
    let path = rng.pick(&strings);
    *value_at(&mut doc, path) = Doc::String("\u{1}?".to_owned());
    Some(Broken {
        how: "another string",
        pointer: pointer(path),
        kinds: &["const"],
        doc,
    })
}

/// Puts a member into an object once more.
fn twice(doc: &Doc, rng: &mut Rng) -> Option<Broken> {
    let mut doc = doc.clone();
    let mut objects = places(&doc);
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
    Some(Broken {
        how: "a member twice",
        pointer: pointer(&path),
        kinds: &["duplicate"],
        doc,
    })
}

#[test]
fn errors_point_to_the_broken_place() {
    let schema = schema();
    let mut generator = Generator::new(&schema, Rng::new(SEED));
    let mut rng = Rng::new(SEED);
    let mut refused: BTreeMap<(&str, &str), usize> = BTreeMap::new();
    let (mut accepted, mut corrected) = (0, 0);
    for definition in DEFINITIONS {
        for _ in 0..INSTANCES {
            let doc = generator.instance(definition.name);
            if (definition.inspect)(doc.to_string().as_bytes()).is_err() {
                corrected += 1;
                continue;
            }
            for round in 0..BREAKS {
                let broken = match round % 4 {
                    0 => Some(other_type(&doc, &mut rng)),
                    1 => without_member(&doc, &mut rng),
                    2 => other_string(&doc, &mut rng),
                    _ => twice(&doc, &mut rng),
                };
                let Some(broken) = broken else { continue };
                let style = Style {
                    shuffle: false,
                    ..Style::WILD
                };
                let text = broken.doc.write(style, &mut rng);
                let Err(error) = (definition.inspect)(text.as_bytes()) else {
                    accepted += 1;
                    continue;
                };
                let kind = error.kind().name();
                let what = format!("{} with {}: {error}\n{text}", definition.name, broken.how);
                assert_eq!(error.pointer(), broken.pointer, "{what}");
                assert!(broken.kinds.contains(&kind), "{what}");
                *refused.entry((broken.how, kind)).or_default() += 1;
            }
        }
    }
    println!("refused: {refused:#?}, accepted because the place is open: {accepted}");
    println!("instances that the corrections of the schema refuse: {corrected}");
    assert!(corrected < DEFINITIONS.len() * INSTANCES / 20);
    assert!(refused.values().sum::<usize>() > 10_000);
}

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
        let error = (definition.inspect)(text.as_bytes()).expect_err("it is broken");
        assert_eq!(
            (error.kind().name(), error.pointer()),
            (kind, pointer),
            "{text}"
        );
        assert!(text[error.offset()..].starts_with(at), "{text}: {error}");
    }
}
