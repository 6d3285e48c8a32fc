//! The differences between neighbouring revisions, compared with the official changelogs, and as the page that is made of
//! them.

mod changelogs;
mod facts;
mod page;
mod revisions;
