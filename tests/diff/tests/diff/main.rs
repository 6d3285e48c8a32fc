//! Compares the differences between neighbouring revisions with the official changelogs, and tests their HTML page.

mod changelogs;
mod facts;
mod page;
mod revisions;
