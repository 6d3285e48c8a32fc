//! Compares the table of revisions with the type crates: revisions, methods of each side, and properties of messages.

use mcp_exact_revisions::{Lifecycle, Methods, RevisionSpec, Side, all, find};
use mcp_exact_wire::{Direction, RevisionTypes};

/// Defines the tests for all revisions.
macro_rules! revisions {
    ($($id:literal $marker:ident $types:ident;)*) => {
        const IDS: &[&str] = &[$($id),*];

        #[test]
        fn types_agree_with_the_table() {
            $(check_revision::<mcp_exact_tests_types::$types::$marker>($id);)*
        }
    };
}

mcp_exact_tests_types::for_each_revision!(revisions);

/// Compares the constants of a revision's types with its row.
fn check_revision<R: RevisionTypes>(id: &str) {
    let spec = find(id).expect("a row");
    assert_eq!(spec.revision(), R::REVISION);
    check_direction::<R::FromClient>(spec, Side::Client);
    check_direction::<R::FromServer>(spec, Side::Server);
    let opening = match spec.lifecycle() {
        Lifecycle::Initialize => "initialize",
        Lifecycle::Discover => "server/discover",
    };
    assert!(R::FromClient::REQUESTS.contains(&opening), "{id}");
}

/// Compares the constants of a direction with the properties of the revision.
fn check_direction<D: Direction>(spec: &RevisionSpec, side: Side) {
    let methods: &Methods = spec.methods(side);
    assert_eq!(methods.requests(), D::REQUESTS, "{spec} {side:?}");
    assert_eq!(methods.notifications(), D::NOTIFICATIONS, "{spec} {side:?}");
    assert_eq!(spec.has_batches(), D::BATCHES, "{spec}");
    assert_eq!(spec.has_envelope_in_types(), D::ENVELOPE_INSIDE, "{spec}");
    assert_eq!(spec.error_id_required(), D::ERROR_NEEDS_ID, "{spec}");
}

#[test]
fn every_revision_has_a_row() {
    let rows: Vec<&str> = all().iter().map(RevisionSpec::id).collect();
    assert_eq!(rows, IDS);
}
