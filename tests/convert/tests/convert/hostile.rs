//! Conversions of values that are invalid in their own revision are refused or return an output, without panics or
//! unbounded memory.

use mcp_exact_convert::{
    Context, KnownRevision, MAX_LOSSES, MessageKind, NewerMembers, Payload, Role, convert,
    convert_type,
};
use mcp_exact_tests_support::{Generator, Mutator, Rng, Style};
use serde_json::Value;

use crate::revisions::revisions;

/// Seed of the random mutants.
const SEED: u64 = 20_251_125;

/// A conversion of an invalid value returns JSON, the unchanged text or a refusal with a reason.
#[test]
fn mutants_never_panic() {
    let mut rng = Rng::new(SEED);
    let (mut converted, mut refused) = (0, 0);
    for from in revisions() {
        for name in from.revision.types() {
            let doc = Generator::new(from.document, rng.fork()).instance(name);
            let mutants = Mutator::new(from.document, rng.fork()).sample(name, &doc, 6);
            for mutant in mutants {
                let text = mutant.doc.write(Style::ALL_VARIATIONS, &mut rng);
                for to in revisions() {
                    let mut cx = Context::new().newer_members(
                        *rng.pick(&[NewerMembers::Report, NewerMembers::KeepInExtra]),
                    );
                    match convert_type(name, &text, from.revision, to.revision, &mut cx) {
                        Ok(out) => {
                            let json: Result<Value, _> = serde_json::from_str(&out);
                            assert!(json.is_ok() || *out == text, "{name}: {text}\n{out}");
                            converted += 1;
                        }
                        Err(error) => {
                            assert!(!error.reason().is_empty(), "{name}: {text}");
                            refused += 1;
                        }
                    }
                }
            }
        }
    }
    println!("{converted} converted, {refused} refused");
    assert!(
        converted > 3_000 && refused > 3_000,
        "{converted}, {refused}"
    );
}

/// Deeply nested values and large arrays are converted or refused without a stack overflow.
#[test]
fn depth_and_width_are_limited() {
    let [older, .., newer] = revisions() else {
        panic!("at least two revisions");
    };
    let deep = format!("{}1{}", "[".repeat(100_000), "]".repeat(100_000));
    let blocks: Vec<String> = (0..50_000)
        .map(|n| format!(r#"{{"type":"text","text":"{n}"}}"#))
        .collect();
    let documents = [
        ("CallToolResult", format!(r#"{{"content":[],"x":{deep}}}"#)),
        ("CallToolResult", format!(r#"{{"content":{deep}}}"#)),
        (
            "CallToolResult",
            format!(r#"{{"content":[{}]}}"#, blocks.join(",")),
        ),
    ];
    for (name, text) in documents {
        let mut cx = Context::new();
        let out = convert_type(name, &text, older.revision, newer.revision, &mut cx);
        if let Ok(out) = out {
            assert!(
                out.len() + 10 > text.len(),
                "nothing is lost of what is long"
            );
        }
    }
}

/// Returns a result of `resources/list` in 2025-06-18 with a number of resources, each with a title.
fn resources_with_titles(count: usize) -> String {
    let resource = |n| format!(r#"{{"uri":"r:{n}","name":"r{n}","title":"T"}}"#);
    let resources: Vec<String> = (0..count).map(resource).collect();
    format!(r#"{{"resources":[{}]}}"#, resources.join(","))
}

/// `Context::max_losses` is the number of losses beyond which a conversion is refused; losses up to it are reported.
#[test]
fn losses_beyond_the_limit_refuse() {
    let (from, to) = (KnownRevision::V2025_06_18, KnownRevision::V2025_03_26);
    let text = resources_with_titles(4);
    let mut cx = Context::new().max_losses(4);
    convert_type("ListResourcesResult", &text, from, to, &mut cx).expect("four losses");
    assert_eq!(cx.losses().len(), 4);

    let mut cx = Context::new().max_losses(3);
    let root = Payload {
        kind: MessageKind::Result,
        method: "resources/list",
        sender: Role::Server,
    };
    let error = convert(root, Some(&text), from, to, &mut cx).expect_err("one loss too many");
    assert_eq!(error.pointer(), "/resources/3/title");
    assert!(error.reason().starts_with("more than 3 losses"), "{error}");
    assert!(cx.losses().is_empty());
    let same = convert_type("ListResourcesResult", &text, from, to, &mut cx);
    assert_eq!(same.expect_err("the same limit"), error);
}

/// The limit applies to the members of one JSON Schema document too.
#[test]
fn limit_applies_inside_of_documents() {
    let names: Vec<String> = (0..40).map(|n| format!(r#""p{n}":true"#)).collect();
    let text = format!(
        r#"{{"name":"t","inputSchema":{{"type":"object","properties":{{{}}}}}}}"#,
        names.join(",")
    );
    let (from, to) = (KnownRevision::V2026_07_28, KnownRevision::V2024_11_05);
    let mut cx = Context::new();
    convert_type("Tool", &text, from, to, &mut cx).expect("the default limit allows it");
    assert_eq!(cx.losses().len(), 40);
    let mut cx = Context::new().max_losses(39);
    convert_type("Tool", &text, from, to, &mut cx).expect_err("40 losses");
}

/// Without another limit, a conversion has at most `MAX_LOSSES` losses.
#[test]
fn default_limit_bounds_the_losses() {
    let (from, to) = (KnownRevision::V2025_06_18, KnownRevision::V2024_11_05);
    let text = resources_with_titles(MAX_LOSSES + 1);
    let mut cx = Context::new();
    convert_type("ListResourcesResult", &text, from, to, &mut cx).expect_err("one loss too many");
    let mut cx = Context::new().max_losses(usize::MAX);
    convert_type("ListResourcesResult", &text, from, to, &mut cx).expect("no limit");
    assert!(cx.losses().len() > MAX_LOSSES);
}
