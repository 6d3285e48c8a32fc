//! Every definition of every official schema has a type with its name, and the tables contain no other types. The tests
//! also check that the tables of this package are complete, so that every revision and every union is tested.

use std::collections::BTreeSet;

use codegen::ir::Shape;
use mcp_exact_tests_support::definition_names;

use crate::revisions::{DEFINITION_COUNTS, all_types, identifiers, revisions, selected_revision};

/// The table of this package lists exactly the revisions and extensions of `schema/revisions.toml` and
/// `schema/extensions.toml`.
#[test]
fn table_lists_every_revision() {
    let (listed, table) = identifiers();
    assert_eq!(
        listed, table,
        "schema/revisions.toml and the table `types!` name the same revisions"
    );
}

/// The types of a revision have exactly the names of the definitions in its official schema.
#[test]
fn every_definition_has_a_type() {
    for revision in revisions() {
        let types = revision.types.definitions.iter();
        let types: Vec<&str> = types.map(|definition| definition.name).collect();
        println!(
            "{}: {} definitions, each with its type",
            revision.id(),
            types.len()
        );
        assert_eq!(
            definition_names(&revision.official),
            types,
            "{}",
            revision.id()
        );
    }
}

/// Each revision and extension has the number of definitions that [`DEFINITION_COUNTS`] lists.
#[test]
fn definition_counts_match_the_specification() {
    for (id, count) in DEFINITION_COUNTS {
        match all_types().find(|types| types.id == id) {
            Some(types) => assert_eq!(types.definitions.len(), count, "{id}"),
            None => assert!(
                selected_revision().is_some(),
                "{id}: a released revision stays"
            ),
        }
    }
}

/// The table of this package lists exactly the unions that the generator has created.
#[test]
fn table_lists_every_union() {
    for revision in revisions() {
        let unions = revision.ir.definitions.iter();
        let unions = unions.filter(|definition| matches!(definition.shape, Shape::Union(_)));
        let unions: BTreeSet<&str> = unions.map(|definition| definition.name.as_str()).collect();
        let table = revision.types.unions.iter().map(|union| union.name);
        assert_eq!(unions, table.collect(), "{}", revision.id());
    }
}
