//! The command line of `cargo xtask`: reads the arguments, calls the task, turns an error into an exit code.
//! Every task is a function of the library beside it.

use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand};
use xtask::bench::{self, Bench};
use xtask::{
    book, codegen, conformance, diff, interop, miri, nightly, package, page, providers, quickstart,
    schema, test, transcripts, wasm, workspace_root,
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
        what: BenchTask,
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
    /// Run the commands in docs/cli.md again, and write down what they print.
    Transcripts(transcripts::Arguments),
    /// Build and test what runs as WebAssembly, and use the page that runs it in headless Chromium.
    Wasm(wasm::Arguments),
}

#[derive(Subcommand)]
enum BenchTask {
    /// Calls through the macro API, next to the drivers and endpoints below it.
    Api {
        /// Handed on, such as `--calls N` and `--markdown FILE`.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<String>,
    },
    /// Speed and allocations of decoding and encoding.
    Codec {
        /// Handed on, such as `--quick`, `--only NAME`, `--json FILE` and `--svg FILE`.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<String>,
    },
    /// Conversions between revisions, next to looking at and decoding the same messages.
    Convert {
        /// Handed on, such as `--markdown FILE`.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<String>,
    },
    /// Servers of an echo tool over stdio and HTTP, next to hand-written floors and rmcp.
    Serve {
        /// Handed on, such as `--quick`, `--only NAME`, `--markdown FILE`, `--json FILE` and `--svg FILE`.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<String>,
    },
    /// A tool call through both endpoints of a session, next to decoding and encoding its messages.
    Session {
        /// Handed on, such as `--calls N`.
        #[arg(
            trailing_var_arg = true,
            allow_hyphen_values = true,
            value_name = "ARGUMENT"
        )]
        arguments: Vec<String>,
    },
    /// CPU time of a clean build, dependencies and size of a small program.
    Compile {
        /// Handed on, such as `--only NAME` and `--json FILE`.
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
    /// Take a revision in: its entry, its crate, and its place in everything that lists revisions; build and test it.
    Add(schema::add::Arguments),
    /// Run the generator over every schema in the history of a clone of the official repository.
    #[command(hide = true)]
    History {
        /// The clone.
        clone: PathBuf,
    },
    /// Compare with the official repository: new revisions, amended files, drafts.
    Check {
        /// An address or a clone, instead of the one that schema/revisions.toml names.
        #[arg(long, value_name = "URL|DIR")]
        upstream: Vec<String>,
    },
    /// Take a revision out again.
    Remove {
        /// The revision.
        revision: String,
    },
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
        Task::Bench { what } => match what {
            BenchTask::Codec { arguments } => bench::run(&root, Bench::Codec, &arguments),
            BenchTask::Api { arguments } => bench::run(&root, Bench::Api, &arguments),
            BenchTask::Compile { arguments } => bench::run(&root, Bench::Compile, &arguments),
            BenchTask::Convert { arguments } => bench::run(&root, Bench::Convert, &arguments),
            BenchTask::Serve { arguments } => bench::run(&root, Bench::Serve, &arguments),
            BenchTask::Session { arguments } => bench::run(&root, Bench::Session, &arguments),
        },
        Task::Codegen { check } => codegen::run(&root, check),
        Task::Conformance(arguments) => conformance::run(&root, &arguments),
        Task::Providers => providers::run(&root),
        Task::Diff(arguments) => diff::run(&root, &arguments),
        Task::Interop(arguments) => interop::run(&root, &arguments),
        Task::Miri => miri::run(&root),
        Task::Nightly(arguments) => nightly::run(&root, &arguments),
        Task::Quickstart => quickstart::run(&root),
        Task::Schema {
            action: SchemaAction::Add(arguments),
        } => schema::add::add(&root, &arguments),
        Task::Schema {
            action: SchemaAction::Check { upstream },
        } => schema::check::check(&root, &upstream),
        Task::Schema {
            action: SchemaAction::History { clone },
        } => schema::history::run(&root, &clone),
        Task::Schema {
            action: SchemaAction::Remove { revision },
        } => schema::add::remove(&root, &revision),
        Task::Schema {
            action: SchemaAction::Fetch { revisions },
        } => schema::files::fetch(&root.join("schema"), &revisions),
        Task::Schema {
            action: SchemaAction::Verify,
        } => schema::files::verify(&root.join("schema")),
        Task::Book => book::run(&root),
        Task::Package(arguments) => package::run(&root, &arguments),
        Task::Page(arguments) => page::run(&root, &arguments),
        Task::Test { arguments } => test::run(&root, &arguments),
        Task::Transcripts(arguments) => transcripts::run(&root, &arguments),
        Task::Wasm(arguments) => wasm::run(&root, &arguments),
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
