//! The command line of `cargo xtask`: reads the arguments, calls the task, turns an error into an exit code.
//! Every task is a function of the library beside it.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{codegen, schema, test, workspace_root};

/// The commands that build this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Generate the revision crates from the official schemas.
    Codegen {
        /// Write nothing; fail if what is there differs from what would be written.
        #[arg(long)]
        check: bool,
    },
    /// Bring or check the official schemas.
    Schema {
        #[command(subcommand)]
        action: SchemaAction,
    },
    /// Run all tests, doc tests included.
    Test {
        /// Handed on to `cargo test`; `-p` leaves the other packages out.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<String>,
    },
}

#[derive(Subcommand)]
enum SchemaAction {
    /// Take the files again from the packages that schema/revisions.toml names.
    Fetch {
        /// The revisions to take; all of them when none is named.
        #[arg(value_name = "REVISION")]
        revisions: Vec<String>,
    },
    /// Check all files against schema/revisions.toml, offline.
    Verify,
}

fn main() -> ExitCode {
    match run(Arguments::parse().task) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            report(&error);
            ExitCode::FAILURE
        }
    }
}

fn run(task: Task) -> anyhow::Result<()> {
    let root = workspace_root();
    match task {
        Task::Codegen { check } => codegen::run(&root, check),
        Task::Schema {
            action: SchemaAction::Fetch { revisions },
        } => schema::fetch(&root.join("schema"), &revisions),
        Task::Schema {
            action: SchemaAction::Verify,
        } => schema::verify(&root.join("schema")),
        Task::Test { arguments } => test::run(&root, &arguments),
    }
}

/// Prints the error and its causes, and never a backtrace: these are mistakes of input, not of this program.
#[allow(clippy::print_stderr)]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}
