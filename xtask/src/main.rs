//! Command line of `cargo xtask`: parses the arguments, calls the task, and turns an error into an exit code. Every
//! task is a function of the library `xtask`.

use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::{
    apps, bench, book, codegen, conformance, diff, dist, interop, miri, new_server, nightly,
    package, page, providers, quickstart, redis, schema, test, transcripts, wasm, workspace_root,
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
    /// Show pages of servers (MCP Apps) in a host with the official library, in headless Chromium.
    Apps(apps::Arguments),
    /// Run a benchmark.
    Bench {
        #[command(subcommand)]
        what: bench::Task,
    },
    /// Generate the revision crates from the official schemas.
    Codegen {
        /// Write nothing; fail if the files differ from the generator's output.
        #[arg(long)]
        check: bool,
    },
    /// Build the documentation site into target/book.
    Book,
    /// Run the official conformance suite against our server and our client.
    Conformance(conformance::Arguments),
    /// Test our OAuth clients and resource servers with third-party authorization servers.
    Providers,
    /// List the changes between two revisions, or write one page with all revisions.
    Diff(diff::Arguments),
    /// Pack the program for people without Rust: the archive of a release, npm packages and a wheel.
    Dist(dist::Arguments),
    /// Run the stdio examples against the official SDKs, in both directions.
    Interop(interop::Arguments),
    /// Interpret the tests of unsafe code with Miri, which finds undefined behaviour; needs the nightly toolchain.
    Miri,
    /// Write, test, examine and pack a server of `mcp-exact new` outside of the workspace.
    NewServer,
    /// Run the checks that take too long for every change: property tests with many seeds, mutation testing, Miri.
    Nightly(nightly::Arguments),
    /// Package the crates, and build and test them outside of the workspace.
    Package(package::Arguments),
    /// Test the page of revisions in headless Chromium.
    Page(page::Arguments),
    /// Run the README's steps for a new user in an empty folder.
    Quickstart,
    /// Test servers that share their sessions on Redis, behind HAProxy; both are installed if they are missing.
    Redis(redis::Arguments),
    /// Add, fetch or check the official schemas.
    Schema {
        #[command(subcommand)]
        action: schema::Action,
    },
    /// Run all tests, doc tests included: Rust and a C compiler are enough.
    Test(test::Arguments),
    /// Run the commands in docs/cli.md again, and update their output.
    Transcripts(transcripts::Arguments),
    /// Build and test the WebAssembly targets, and test their page in headless Chromium.
    Wasm(wasm::Arguments),
}

fn main() -> ExitCode {
    match run_task(Arguments::parse().task) {
        Ok(code) => code,
        Err(error) => {
            print_error(&error);
            ExitCode::FAILURE
        }
    }
}

fn run_task(task: Task) -> anyhow::Result<ExitCode> {
    let root = workspace_root();
    match task {
        Task::Apps(arguments) => apps::run(&root, &arguments),
        Task::Bench { what } => bench::run(&root, &what),
        Task::Codegen { check } => codegen::run(&root, check),
        Task::Conformance(arguments) => conformance::run(&root, &arguments),
        Task::Providers => providers::run(&root),
        Task::Diff(arguments) => diff::run(&root, &arguments),
        Task::Dist(arguments) => dist::run(&root, &arguments),
        Task::Interop(arguments) => interop::run(&root, &arguments),
        Task::Miri => miri::run(&root),
        Task::NewServer => new_server::run(&root),
        Task::Nightly(arguments) => nightly::run(&root, &arguments),
        Task::Redis(arguments) => redis::run(&root, &arguments),
        Task::Quickstart => quickstart::run(&root),
        Task::Schema { action } => return schema::run(&root, &action),
        Task::Book => book::run(&root),
        Task::Package(arguments) => package::run(&root, &arguments),
        Task::Page(arguments) => page::run(&root, &arguments),
        Task::Test(arguments) => test::run(&root, &arguments),
        Task::Transcripts(arguments) => transcripts::run(&root, &arguments),
        Task::Wasm(arguments) => wasm::run(&root, &arguments),
    }?;
    Ok(ExitCode::SUCCESS)
}

/// Prints the error and its causes without a backtrace: errors are mistakes of input, not of xtask.
#[allow(clippy::print_stderr)]
fn print_error(error: &anyhow::Error) {
    eprintln!("error: {error}");
    for cause in error.chain().skip(1) {
        eprintln!("  because: {cause}");
    }
}
