//! Command line of `cargo xtask`: parses the arguments, calls the task, and turns an error into an exit code. Every
//! task is a function of the library `xtask`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{
    bench, book, codegen, conformance, diff, interop, miri, nightly, package, page, providers,
    quickstart, redis, schema, test, transcripts, wasm, workspace_root,
};

/// The commands that build this workspace.
#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask")]
struct Arguments {
    #[command(subcommand)]
    task: Task,
}

#[derive(Subcommand)]
enum Task {
    /// Measure, next to other libraries.
    Bench {
        #[command(subcommand)]
        what: bench::Task,
    },
    /// Generate the revision crates from the official schemas.
    Codegen {
        /// Write nothing; fail if what is there differs from what would be written.
        #[arg(long)]
        check: bool,
    },
    /// Build the documentation site into target/book.
    Book,
    /// Run the official conformance suite against our server and our client.
    Conformance(conformance::Arguments),
    /// Run our OAuth clients and resource servers with authorization servers of other people.
    Providers,
    /// Say what changed between two revisions, or write one page over all of them.
    Diff(diff::Arguments),
    /// Run the stdio examples against the official SDKs, in both directions.
    Interop(interop::Arguments),
    /// Interpret the tests of unsafe code with Miri, which finds undefined behaviour; needs the nightly toolchain.
    Miri,
    /// Run what takes too long for every change: property tests with many seeds, mutation testing, Miri.
    Nightly(nightly::Arguments),
    /// Package the crates, and build and test them outside of the workspace.
    Package(package::Arguments),
    /// Use the page of revisions in headless Chromium, as a person does.
    Page(page::Arguments),
    /// Do what the README tells a new user to do, in an empty folder.
    Quickstart,
    /// Run servers that share their sessions on Redis, behind HAProxy; both are installed where they are missing.
    Redis(redis::Arguments),
    /// Bring or check the official schemas.
    Schema {
        #[command(subcommand)]
        action: schema::Action,
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
    /// Run the commands in docs/cli.md again, and write down what they print.
    Transcripts(transcripts::Arguments),
    /// Build and test what runs as WebAssembly, and use the page that runs it in headless Chromium.
    Wasm(wasm::Arguments),
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
        Task::Bench { what } => bench::run(&root, &what),
        Task::Codegen { check } => codegen::run(&root, check),
        Task::Conformance(arguments) => conformance::run(&root, &arguments),
        Task::Providers => providers::run(&root),
        Task::Diff(arguments) => diff::run(&root, &arguments),
        Task::Interop(arguments) => interop::run(&root, &arguments),
        Task::Miri => miri::run(&root),
        Task::Nightly(arguments) => nightly::run(&root, &arguments),
        Task::Redis(arguments) => redis::run(&root, &arguments),
        Task::Quickstart => quickstart::run(&root),
        Task::Schema { action } => schema::run(&root, &action),
        Task::Book => book::run(&root),
        Task::Package(arguments) => package::run(&root, &arguments),
        Task::Page(arguments) => page::run(&root, &arguments),
        Task::Test { arguments } => test::run(&root, &arguments),
        Task::Transcripts(arguments) => transcripts::run(&root, &arguments),
        Task::Wasm(arguments) => wasm::run(&root, &arguments),
    }
}

/// Prints the error and its causes without a backtrace: errors are mistakes of input, not of xtask.
#[allow(clippy::print_stderr)]
fn report(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}
