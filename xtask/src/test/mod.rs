//! `cargo xtask test`: builds all tests of the workspace with one set of features, runs several programs at a time, and
//! prints a line for each program and one summary. Needs Rust and a C compiler alone.
//!
//! `--changed` runs the packages that a change reaches. Everything is built in either case, so that no dependency is
//! compiled with other features.

mod build;
mod changed;
mod run;

use std::path::Path;

use anyhow::bail;

pub(crate) use build::{WHOLE_WORKSPACE, cargo, package_name};

/// Arguments of `cargo xtask test`.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Arguments {
    /// Run only the packages that depend on what has changed since `--base`, uncommitted changes included.
    #[arg(long)]
    changed: bool,
    /// Revision that `--changed` compares with.
    #[arg(long, value_name = "REVISION", default_value = "main")]
    base: String,
    /// Run only the tests of this package.
    #[arg(short, long = "package", value_name = "NAME")]
    packages: Vec<String>,
    /// Require that Cargo.lock is up to date.
    #[arg(long)]
    locked: bool,
    /// Number of rounds: `--rounds 50` finds tests that fail sometimes. Doc tests run in the first round only.
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    rounds: usize,
    /// Number of programs at a time; by default one more than there are processors.
    #[arg(long, value_name = "NUMBER")]
    programs: Option<usize>,
    /// Run only tests whose name contains this text.
    filter: Option<String>,
}

/// Builds and runs the tests of the workspace `root`.
///
/// # Errors
/// Returns an error if a prerequisite is missing, a test does not compile, a test fails, or no test ran.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    if !build::is_installed("cc") {
        bail!("the tests need a C compiler (Debian package build-essential)");
    }
    let selection = changed::Selection::new(root, arguments)?;
    if selection.is_empty() {
        println!("no package is changed");
        return Ok(());
    }
    let mut programs = build::build(root, arguments.locked)?;
    programs.retain(|program| selection.contains(&program.package));
    println!("running {} programs", programs.len());
    let mut summary = run::Summary::default();
    for round in 0..arguments.rounds.max(1) {
        let jobs = if round == 0 {
            run::jobs(root, &programs, &selection, arguments)?
        } else {
            run::program_jobs(root, &programs, arguments)
        };
        summary.add(run::run_all(root, jobs, arguments.programs)?);
    }
    println!("\n{summary}");
    summary.into_result()
}
