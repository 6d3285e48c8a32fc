//! The differences between neighbouring revisions: held against what the official changelogs say, and looked at as the
//! page that is made of them.

mod changelogs;
mod facts;
mod page;
mod revisions;
