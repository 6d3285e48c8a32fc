//! Compares the parse tables of the conversions with the types: both give the same verdict, pointer and error text for
//! every definition of every revision. Inputs are seeded instances, mutants for each rule, and truncated texts; the
//! decoding to the types determines the expected result.

use mcp_exact_convert::KnownRevision;
use mcp_exact_tests_support::{Generator, Mutator, Rng, Style};
use mcp_exact_tests_tables::check_agreement;

use crate::revisions::{revisions, selected_revision};

/// Seed of the random instances.
const SEED: u64 = 20_260_728;

/// Number of instances of each definition.
const INSTANCE_COUNT: usize = 6;

/// Number of mutants of each instance.
const MUTANT_COUNT: usize = 8;

/// Parsing a document by the tables has the same outcome as decoding it to its type.
#[test]
fn tables_agree_with_types() {
    let mut texts = 0;
    for revision in revisions() {
        // Conversions do not support extensions.
        let Some(known) = KnownRevision::parse(revision.id()) else {
            continue;
        };
        let mut rng = Rng::new(SEED);
        let document = revision.schema.document;
        for definition in revision.types.definitions {
            let mut generator = Generator::new(document, rng.fork());
            let mut mutator = Mutator::new(document, rng.fork());
            let mut inputs = Vec::new();
            for _ in 0..INSTANCE_COUNT {
                let doc = generator.instance(definition.name);
                let mutants = mutator.sample(definition.name, &doc, MUTANT_COUNT);
                let mutants = mutants.into_iter().map(|mutant| mutant.doc);
                for doc in mutants.chain([doc]) {
                    let text = doc.write(Style::ALL_VARIATIONS, &mut rng);
                    let mut cut = rng.below(text.len() + 1);
                    while !text.is_char_boundary(cut) {
                        cut -= 1;
                    }
                    inputs.push(text[..cut].to_owned());
                    inputs.push(text);
                }
            }
            // The smallest text fails first.
            inputs.sort_by_key(String::len);
            for text in &inputs {
                check_agreement(definition, known, text);
            }
            texts += inputs.len();
        }
    }
    println!("{texts} texts (seed {SEED})");
    assert!(selected_revision().is_some() || texts > 40_000, "{texts}");
}
