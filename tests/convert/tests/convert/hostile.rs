//! Conversions of values that are invalid in their own revision are refused or return an output, without panics or
//! unbounded memory.

use mcp_exact_convert::{Context, NewerMembers, convert_type};
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
