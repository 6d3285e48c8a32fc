//! `cargo xtask schema`: the official schema files, the lists that name them, and what comes and goes with a revision.

pub mod add;
pub mod check;
mod extension;
pub mod files;
pub mod history;
pub mod origin;
pub mod review;
pub mod revisions_toml;
pub mod rollback;
pub mod source;
