//! The program `mcp-exact`: reads the arguments, runs the command, turns its outcome into an exit code.
//!
//! 0 everything is valid, 1 something is not, 2 the program could not do what it was asked to do. A reader that goes
//! away ends the program quietly.

mod check;
mod convert;
mod diff;
mod jsonl;
mod list;
mod message;
mod registry;
mod revisions;
mod verdict;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;

use clap::{Parser, Subcommand};

/// Exact types of the Model Context Protocol, on the command line.
#[derive(Parser)]
#[command(name = "mcp-exact", version, arg_required_else_help = true)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the revisions that are compiled in.
    Revisions(list::Arguments),
    /// Check documents against a revision.
    Check(check::Arguments),
    /// Convert documents from one revision to another.
    Convert(convert::Arguments),
    /// Say what changed between two revisions, or write one page over all of them.
    Diff(diff::Arguments),
}

/// How a command ended that did what it was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// Everything is valid.
    Valid,
    /// Something is not valid.
    Invalid,
    /// Something could not be looked at.
    Unreadable,
}

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    let ended = match &arguments.command {
        Command::Revisions(arguments) => list::run(arguments),
        Command::Check(arguments) if arguments.jsonl => jsonl::run(),
        Command::Check(arguments) => check::run(arguments),
        Command::Convert(arguments) => convert::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
    };
    match ended {
        Ok(Outcome::Valid) => ExitCode::SUCCESS,
        Ok(Outcome::Invalid) => ExitCode::from(1),
        Ok(Outcome::Unreadable) => ExitCode::from(2),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => {
            report(&format!("{error:#}"));
            ExitCode::from(2)
        }
    }
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

/// Tells what went wrong. Nobody is left to tell when standard error is gone too.
fn report(words: &str) {
    let _ = writeln!(io::stderr(), "error: {words}");
}
