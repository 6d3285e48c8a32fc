//! Repairs of seeded instances and mutants of every definition: valid text is never touched, and repaired text is valid.

use std::collections::BTreeMap;

use mcp_exact_convert::{
    Context, KnownRevision, MAX_REPAIRS, MessageKind, Payload, Role, check_type, convert, decodes,
    repair_type, violations,
};
use mcp_exact_tests_support::{Generator, Mutator, Rng, Style};
use mcp_exact_wire::ViolationKind;

use crate::revisions::revisions;

/// Seed of the instances and mutants.
const SEED: u64 = 20_261_128;

/// Kinds of deviations that decoding accepts, so that they are kept and are no reason for a repair.
const KEPT: &[ViolationKind] = &[ViolationKind::Enum, ViolationKind::Tag];

#[test]
fn repaired_text_is_valid_and_valid_text_is_untouched() {
    let mut rng = Rng::new(SEED);
    let (mut valid, mut rules) = (0, BTreeMap::<&str, usize>::new());
    for of in revisions() {
        for name in of.revision.types() {
            let doc = Generator::new(of.document, rng.fork()).instance(name);
            let text = doc.write(Style::ALL_VARIATIONS, &mut rng);
            assert_eq!(
                check_type(name, &text, of.revision),
                Ok(()),
                "{name}: {text}"
            );
            assert_eq!(
                repair_type(name, &text, of.revision),
                None,
                "{name}: {text}"
            );
            let mutants = Mutator::new(of.document, rng.fork()).sample(name, &doc, 30);
            for mutant in mutants {
                let text = mutant.doc.write(Style::ALL_VARIATIONS, &mut rng);
                let decodes = check_type(name, &text, of.revision).is_ok();
                // Decoding keeps schemas of tools as they are.
                let is_valid = violations(name, &text, of.revision).is_ok_and(|f| f.is_empty());
                match repair_type(name, &text, of.revision) {
                    Some(_) if is_valid => panic!("{name} was valid: {text}"),
                    Some(repaired) => {
                        check_repaired(name, &text, &repaired.text, of.revision);
                        assert!(repaired.count > 0 && repaired.repairs.len() <= MAX_REPAIRS);
                        for repair in &repaired.repairs {
                            *rules.entry(repair.rule.name()).or_default() += 1;
                        }
                    }
                    None => valid += usize::from(decodes),
                }
            }
        }
    }
    println!("{valid} valid, repairs {rules:?}");
    for rule in [
        "null-member",
        "wrong-type",
        "left-out",
        "missing-member",
        "neutral-schema",
    ] {
        assert!(
            rules.get(rule).is_some_and(|count| *count > 10),
            "{rule}: {rules:?}"
        );
    }
}

/// Checks that repaired text decodes, needs no further repair, and deviates only where decoding does not mind.
fn check_repaired(name: &str, before: &str, after: &str, of: KnownRevision) {
    let context = format!("{of} {name}\n{before}\n{after}");
    assert_eq!(check_type(name, after, of), Ok(()), "{context}");
    assert_eq!(repair_type(name, after, of), None, "{context}");
    let found = violations(name, after, of).expect("it decodes");
    let minded = found
        .listed()
        .iter()
        .find(|found| !KEPT.contains(&found.kind));
    // A mutant has one deviation, which the repair has removed or decoding does not mind.
    assert!(minded.is_none(), "{context}\n{minded:?}");
}

/// Where a conversion decodes its text, it refuses what does not have its type; elsewhere, it returns every text unchanged. Each
/// result of an older revision is decoded on its way to 2026-07-28, whose results have kinds.
#[test]
fn decoding_conversions_are_known() {
    let all = KnownRevision::ALL;
    let with_kinds = KnownRevision::V2026_07_28;
    let mut read = 0;
    for (from, to) in all
        .iter()
        .flat_map(|from| all.iter().map(move |to| (*from, *to)))
    {
        let methods = from
            .methods()
            .filter(|method| method.request && method.from_client);
        for method in methods.map(|method| method.method) {
            let root = Payload {
                kind: MessageKind::Result,
                method,
                sender: Role::Server,
            };
            let decodes = decodes(root, from, to);
            let converted = convert(root, Some("5"), from, to, &mut Context::new());
            match converted {
                Ok(text) => assert!(
                    !decodes && text.as_deref() == Some("5"),
                    "{method} {from} {to}"
                ),
                Err(_) => read += usize::from(decodes),
            }
            let is_known = to.method(method, true).is_some();
            let gets_kind = to == with_kinds && from.revision().as_str() < to.revision().as_str();
            assert!(decodes || !is_known || !gets_kind, "{method} {from}");
        }
    }
    assert!(read > 40, "{read}");
}

/// A long list in which each item needs a repair takes time and memory in proportion to its length.
#[test]
fn repairs_are_linear() {
    let item = r#"{"name":"a","description":null,"annotations":{"title":null},"inputSchema":{"type":"object"}}"#;
    for count in [1_000, 20_000] {
        let text = format!(r#"{{"tools":[{}]}}"#, vec![item; count].join(","));
        let repaired = repair_type("ListToolsResult", &text, KnownRevision::V2025_06_18);
        let repaired = repaired.expect("a repair");
        assert_eq!(
            (repaired.count, repaired.repairs.len()),
            (2 * count, MAX_REPAIRS)
        );
        assert!(repaired.text.len() < text.len());
    }
    let deep = format!(
        r#"{{"tools":{}null{}}}"#,
        "[".repeat(100_000),
        "]".repeat(100_000)
    );
    let _ = repair_type("ListToolsResult", &deep, KnownRevision::V2025_06_18);
}
