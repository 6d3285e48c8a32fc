//! `cargo xtask schema`: the official schema files, their lists, and adding and removing revisions. Each command has
//! its own file.

pub mod add;
pub mod check;
mod extension;
mod failure;
pub mod fetch;
pub mod history;
mod interrupt;
pub mod kept;
mod lists;
pub mod origin;
pub mod remove;
pub mod review;
pub mod revisions_toml;
pub mod rollback;
pub mod source;
pub mod verify;
pub mod watch;

use std::path::Path;
use std::process::ExitCode;

use clap::Subcommand;

/// Commands of `cargo xtask schema`.
#[derive(Debug, Subcommand)]
pub enum Action {
    /// Add a revision: its entry, its crate, and all generated lists of revisions; build and test it.
    Add(add::Arguments),
    /// Run the generator over every schema in the history of a clone of the official repository, or take the drafts among
    /// them through `schema add`.
    History(history::Arguments),
    /// Compare with the official repository: new revisions, amended files, drafts.
    Check {
        /// URL or local clone of the official repository; by default the URL in schema/revisions.toml.
        #[arg(long, value_name = "URL|DIR")]
        upstream: Vec<String>,
    },
    /// Remove a revision.
    Remove {
        /// Identifier of the revision.
        revision: String,
    },
    /// Download the files again from the packages that schema/revisions.toml names.
    Fetch {
        /// The revisions to download; all of them if none is given.
        #[arg(value_name = "REVISION")]
        revisions: Vec<String>,
    },
    /// Check all files against schema/revisions.toml, offline.
    Verify,
    /// Report what the official draft would cost: what `schema add` absorbs, and what a person has to decide.
    Watch(watch::Arguments),
}

/// Runs a command; the exit code is success, or that of `watch`.
///
/// # Errors
/// Returns the error of the command.
pub fn run(root: &Path, action: &Action) -> anyhow::Result<ExitCode> {
    let folder = root.join("schema");
    match action {
        Action::Add(arguments) => add::add(root, arguments),
        Action::History(arguments) => history::run(root, arguments),
        Action::Check { upstream } => check::check(root, upstream),
        Action::Remove { revision } => remove::remove(root, revision),
        Action::Fetch { revisions } => fetch::fetch(&folder, revisions),
        Action::Verify => verify::verify(&folder),
        Action::Watch(arguments) => return watch::watch(root, arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}
