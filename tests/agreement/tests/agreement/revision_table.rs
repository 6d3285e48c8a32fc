//! Compares the table of `mcp-exact-revisions` with the type crates: identifiers of revisions, methods of each side,
//! and properties of messages.

use mcp_exact_revisions::{Lifecycle, Methods, RevisionSpec, Side, all, find};
use mcp_exact_wire::{Direction, RevisionTypes};

/// Defines [`IDS`] and the test that compares every revision's types with the table.
macro_rules! revisions {
    ($($id:literal $marker:ident $types:ident;)*) => {
        /// Identifiers of all revisions with types.
        const IDS: &[&str] = &[$($id),*];

        /// The constants of each revision's types agree with the table of revisions.
        #[test]
        fn types_agree_with_the_table() {
            $(check_revision::<mcp_exact_tests_types::$types::$marker>($id);)*
        }
    };
}

mcp_exact_tests_types::for_each_revision!(revisions);

/// Compares the constants of a revision's types with its row in the table of revisions.
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

/// Compares the constants of the messages from one side with the row of the revision.
fn check_direction<D: Direction>(spec: &RevisionSpec, side: Side) {
    let methods: &Methods = spec.methods(side);
    assert_eq!(methods.requests(), D::REQUESTS, "{spec} {side:?}");
    assert_eq!(methods.notifications(), D::NOTIFICATIONS, "{spec} {side:?}");
    assert_eq!(spec.has_batches(), D::BATCHES, "{spec}");
    assert_eq!(spec.has_envelope_in_types(), D::ENVELOPE_INSIDE, "{spec}");
    assert_eq!(spec.error_id_required(), D::ERROR_NEEDS_ID, "{spec}");
}

/// The table of revisions has exactly one row for each revision with types.
#[test]
fn every_revision_has_a_row() {
    let rows: Vec<&str> = all().iter().map(RevisionSpec::id).collect();
    assert_eq!(rows, IDS);
}
