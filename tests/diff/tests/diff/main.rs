//! Compares the computed differences between neighbouring revisions with the official changelogs, and tests the HTML
//! page that shows the differences.

mod changelogs;
mod facts;
mod page;
mod revisions;
