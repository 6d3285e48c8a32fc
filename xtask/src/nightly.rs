//! `cargo xtask nightly`: runs checks that take too long for every change; [`Part`] lists them.
//!
//! Installs cargo-mutants and cargo-fuzz into `target/` if they are missing. After all mutants were tested, writes
//! their number to `docs/mutants.md`.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{conformance, examples, fuzz, interop, miri, oracle, quickstart, redis, rehearsal};

/// Version of cargo-mutants that is installed.
const CARGO_MUTANTS_VERSION: &str = "27.1.0";
/// Files whose mutants are tested: the rule table and the refusals of messages.
const MUTATED_FILES: &[&str] = &[
    "crates/mcp-exact-session/src/rules/*.rs",
    "crates/mcp-exact-session/src/refusal.rs",
];
/// Test arguments of the first pass: the unit tests, without the slow test that removes each row of the rule table.
const QUICK_TESTS: &[&str] = &[
    "--test-package",
    "mcp-exact-session",
    "--",
    "--lib",
    "--",
    "--skip",
    "every_row_counts",
];
/// Test arguments of the second pass: all tests that can detect a mutant.
const ALL_TESTS: &[&str] = &[
    "--test-package",
    "mcp-exact-session",
    "--test-package",
    "mcp-exact-tests-session",
];
/// Number of seeds of the property tests; a normal test run has 80.
const PROPERTY_SEEDS: &str = "4000";
/// Number of sessions that are opened and closed through the gateway with each server; a normal test run has 300.
const GATEWAY_SESSIONS: &str = "10000";
/// Number of exchanges of `chaos`; a normal test run has 400. With a failover, the number is a quarter.
const CHAOS_EXCHANGES: usize = 10_000;
/// Duration of the traffic of `soak`, in seconds.
const SOAK_SECONDS: u64 = 1800;
/// Duration of a fuzz target, in seconds.
const FUZZ_SECONDS: u64 = 240;
/// Number of processes that `chaos` simulates; a normal test run has 20.
const CHAOS_PROCESSES: &str = "1000";
/// Number of sessions that `chaos` simulates; a normal test run has 100,000.
const CHAOS_SESSIONS: &str = "1000000";
/// Minimum percentage of mutants that tests must detect.
const MIN_DETECTED_PERCENT: f64 = 95.0;
/// Path of the page with the number of mutants.
const MUTANTS_PAGE: &str = "docs/mutants.md";

/// Tasks to run; all of them if none is named.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Arguments {
    /// Parts to run.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Test only one share of the mutants, such as `0/4`; nothing is written then.
    #[arg(long, value_name = "N/COUNT")]
    shard: Option<String>,
    /// Duration of the traffic of `soak` (half an hour if it is not given), and of each target of `fuzz` (four minutes), in seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Fuzz targets that `fuzz` runs; all of them if none is named.
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Clone of the official repository, whose historic drafts `rehearsal` adds; those in schema/history by default.
    #[arg(long, value_name = "DIR")]
    clone: Option<PathBuf>,
    /// Seed of the traffic of `soak` and `chaos`, as printed by an earlier run; random by default.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// Part of the nightly checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// All tests with the many cases of the long tier, where a normal run has few.
    Tests,
    /// Property tests of the session with many seeds.
    Properties,
    /// Mutation testing of the session's rules and refusals.
    Mutants,
    /// Miri on the unsafe code of the reader and writer.
    Miri,
    /// Setup steps of the README for a new user.
    Quickstart,
    /// Invented revisions, an extension and historic drafts, added and removed in a copy of the workspace.
    Rehearsal,
    /// Comparison of conversions with the earlier typed implementation, which is built from its commit.
    Oracle,
    /// Random traffic with faults over all transports, with a check for leaks afterwards.
    Soak,
    /// The gateway: all pairs of real peers without a common revision, the conformance suite, thousands of sessions.
    Bridge,
    /// A million simulated sessions of a thousand processes, and ten thousand exchanges with servers that share their sessions on
    /// Redis, while servers and Redis are killed and connections are cut and delayed.
    Chaos,
    /// Fuzz targets under libFuzzer, which needs the nightly toolchain.
    Fuzz,
}

/// Runs the parts in `root`.
pub fn run(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let wants = |part: Part| arguments.parts.is_empty() || arguments.parts.contains(&part);
    if wants(Part::Tests) {
        tests(root)?;
    }
    if wants(Part::Properties) {
        properties(root)?;
    }
    if wants(Part::Mutants) {
        mutants(root, arguments.shard.as_deref())?;
    }
    if wants(Part::Miri) {
        miri::run(root)?;
    }
    if wants(Part::Quickstart) {
        quickstart::run(root)?;
    }
    if wants(Part::Rehearsal) {
        rehearsal::run(root, arguments.clone.as_deref())?;
    }
    if wants(Part::Oracle) {
        oracle::run(root)?;
    }
    if wants(Part::Soak) {
        soak(root, arguments)?;
    }
    if wants(Part::Bridge) {
        bridge(root)?;
    }
    if wants(Part::Chaos) {
        chaos(root, arguments)?;
    }
    if wants(Part::Fuzz) {
        let seconds = arguments.seconds.unwrap_or(FUZZ_SECONDS);
        fuzz::run(root, &arguments.targets, seconds)?;
    }
    Ok(())
}

/// Runs the part `chaos`.
fn chaos(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let any = time.map_or(1, |time| u64::from(time.subsec_nanos()));
    let seed = arguments.seed.unwrap_or(any);
    let mut simulation = cargo();
    simulation
        .current_dir(root)
        .args(["test", "--locked", "--test", "simulation"]);
    simulation.args(crate::test::WHOLE_WORKSPACE);
    simulation.args(["--", "--nocapture", "processes_keep_every_promise"]);
    simulation.env("MCP_EXACT_SIMULATED_PROCESSES", CHAOS_PROCESSES);
    simulation.env("MCP_EXACT_SIMULATED_SESSIONS", CHAOS_SESSIONS);
    let mut exchanges = redis::test_command(root)?;
    exchanges.env("MCP_EXACT_EXCHANGES", CHAOS_EXCHANGES.to_string());
    exchanges.args(["--", "--nocapture", "--test-threads", "1"]);
    exchanges.args(["killed_processes_break_no_promise", "failovers_are_noticed"]);
    for mut command in [simulation, exchanges] {
        command.env("MCP_EXACT_SEED", seed.to_string());
        let status = command.status().context("cannot start cargo")?;
        if !status.success() {
            bail!(
                "a promise was broken ({status}); `--seed {seed}` makes the same exchanges and faults again"
            );
        }
    }
    Ok(())
}

/// Returns the command that runs cargo.
fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs the part `tests`.
fn tests(root: &Path) -> anyhow::Result<()> {
    let mut command = cargo();
    command.current_dir(root).env("MCP_EXACT_TIER", "long");
    command.args(["xtask", "test", "--locked"]);
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("a test fails with many cases ({status})");
    }
    Ok(())
}

/// Runs the part `properties`.
fn properties(root: &Path) -> anyhow::Result<()> {
    let mut command = cargo();
    command
        .current_dir(root)
        .env("MCP_EXACT_SEEDS", PROPERTY_SEEDS);
    command.args(["test", "--release", "--package", "mcp-exact-tests-session"]);
    command.args(["--test", "pipes", "--", "--nocapture"]);
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("a property does not hold ({status}); the last seed that is printed shows it again");
    }
    Ok(())
}

/// Runs the part `bridge`.
fn bridge(root: &Path) -> anyhow::Result<()> {
    interop::run(root, &interop::Arguments::through_gateway())?;
    conformance::run(root, &conformance::Arguments::through_gateway())?;
    let mut command = cargo();
    command
        .current_dir(root)
        .env("MCP_EXACT_SESSIONS", GATEWAY_SESSIONS);
    command.args(["test", "--locked", "--package", "mcp-exact-bridge"]);
    command.args(["--test", "bridge", "sessions_release_all_state"]);
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the gateway does not survive {GATEWAY_SESSIONS} sessions ({status})");
    }
    Ok(())
}

/// Runs the part `soak`.
fn soak(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let program = examples::build_program(root, "mcp-exact-tests-transport", "soak")?;
    let mut command = Command::new(program);
    let seconds = arguments.seconds.unwrap_or(SOAK_SECONDS);
    command.arg(seconds.to_string());
    command.args(arguments.seed.map(|seed| seed.to_string()));
    let status = command.status().context("cannot start the traffic")?;
    if !status.success() {
        bail!("random traffic has found a fault ({status}); `--seed` makes the same traffic again");
    }
    Ok(())
}

/// Runs the part `mutants`.
fn mutants(root: &Path, shard: Option<&str>) -> anyhow::Result<()> {
    let program = install_program(root, "cargo-mutants", CARGO_MUTANTS_VERSION)?;
    let output = root.join("target").join("mutants");
    let mut count = MutantCounts::default();
    for pass in test_passes(shard) {
        let mut command = Command::new(&program);
        command
            .current_dir(root)
            .args(mutants_arguments(&output, shard, &pass));
        let status = command.status().context("cannot start cargo-mutants")?;
        // 2: mutants were missed; 3: tests of some took too long, which counts as noticed.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("cargo-mutants failed ({status}); the output above says why");
        }
        count.add(MutantCounts::read(&output.join("mutants.out"))?);
        if count.missed.is_empty() {
            break;
        }
    }
    if count.detected + count.missed.len() == 0 {
        bail!("no mutant was tested: the files in xtask/src/nightly.rs are gone");
    }
    println!("{}", count.summary_line());
    if shard.is_none() {
        let page = root.join(MUTANTS_PAGE);
        std::fs::write(&page, count.markdown_page())
            .with_context(|| format!("cannot write {}", page.display()))?;
    }
    if count.detected_percent() < MIN_DETECTED_PERCENT {
        bail!(
            "tests must notice {MIN_DETECTED_PERCENT} % of the mutants: add tests for those in {}",
            output.join("mutants.out").join("missed.txt").display()
        )
    } else {
        Ok(())
    }
}

/// Returns the path of a program in `target/`; installs this version of the program if it is missing.
pub(crate) fn install_program(
    root: &Path,
    package: &str,
    version: &str,
) -> anyhow::Result<PathBuf> {
    let place = root.join("target").join("tools");
    let name = format!("{package}{}", std::env::consts::EXE_SUFFIX);
    let program = place.join("bin").join(name);
    if program.exists() {
        return Ok(program);
    }
    let mut command = cargo();
    command.args(["install", "--locked", package, "--version", version]);
    command.arg("--root").arg(&place);
    let status = command.status().context("cannot start cargo")?;
    if status.success() {
        Ok(program)
    } else {
        bail!("cannot install {package} {version} ({status}); check the network")
    }
}

/// Returns the arguments of each pass. Without a shard, quick tests run first, and all tests run for the mutants that
/// quick tests have missed; with a shard, all tests run in one pass, because the remaining mutants cannot be sharded in
/// the same way.
fn test_passes(shard: Option<&str>) -> Vec<Vec<&'static str>> {
    match shard {
        Some(_) => vec![ALL_TESTS.to_vec()],
        None => vec![
            QUICK_TESTS.to_vec(),
            [&["--iterate"][..], ALL_TESTS].concat(),
        ],
    }
}

/// Returns the arguments of cargo-mutants for a pass.
fn mutants_arguments(output: &Path, shard: Option<&str>, pass: &[&str]) -> Vec<String> {
    let mut line = vec!["mutants".to_owned(), "--no-shuffle".to_owned()];
    line.extend(["--output".to_owned(), output.display().to_string()]);
    for file in MUTATED_FILES {
        line.extend(["--file".to_owned(), (*file).to_owned()]);
    }
    if let Some(shard) = shard {
        line.extend(["--shard".to_owned(), shard.to_owned()]);
    }
    line.extend(pass.iter().map(|word| (*word).to_owned()));
    line
}

/// Numbers of mutants by outcome.
#[derive(Debug, Default, PartialEq, Eq)]
struct MutantCounts {
    /// Number of mutants that tests have detected, by failing or by not ending.
    detected: usize,
    /// Descriptions of the mutants that tests have not detected.
    missed: Vec<String>,
    /// Number of mutants that do not compile.
    unviable: usize,
}

impl MutantCounts {
    /// Reads the results of cargo-mutants.
    fn read(directory: &Path) -> anyhow::Result<Self> {
        let lines = |name: &str| -> anyhow::Result<Vec<String>> {
            let path = directory.join(name);
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(Self {
            detected: lines("caught.txt")?.len() + lines("timeout.txt")?.len(),
            missed: lines("missed.txt")?,
            unviable: lines("unviable.txt")?.len(),
        })
    }

    /// Adds the results of a second pass over the mutants that the first pass has not detected.
    fn add(&mut self, pass: Self) {
        self.detected += pass.detected;
        self.unviable += pass.unviable;
        self.missed = pass.missed;
    }

    /// Returns the percentage of the tested mutants that tests have detected.
    fn detected_percent(&self) -> f64 {
        let tested = self.detected + self.missed.len();
        100.0 * self.detected as f64 / tested as f64
    }

    /// Returns the counts as a line for the terminal.
    fn summary_line(&self) -> String {
        format!(
            "{} mutants noticed, {} missed, {} do not compile: {:.1} % noticed",
            self.detected,
            self.missed.len(),
            self.unviable,
            self.detected_percent()
        )
    }

    /// Returns the page for the documentation.
    fn markdown_page(&self) -> String {
        let mut page = format!(
            "# Mutants\n\n`cargo xtask nightly mutants` changes the rules and refusals of the session, one place at a time, runs their \
             tests on each change,\nand writes this page: {}.\n",
            self.summary_line()
        );
        if !self.missed.is_empty() {
            page.push_str("\nMissed:\n\n");
        }
        for mutant in &self.missed {
            // Writing to a string cannot fail.
            let _ = writeln!(page, "- `{mutant}`");
        }
        page
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments of each pass name the mutated files and the packages whose tests run.
    #[test]
    fn mutants_line_names_files_and_tests() {
        let lines = |shard: Option<&str>| -> Vec<String> {
            let passes = test_passes(shard).into_iter();
            passes
                .map(|pass| mutants_arguments(Path::new("out"), shard, &pass).join(" "))
                .collect()
        };
        let all = "--test-package mcp-exact-session --test-package mcp-exact-tests-session";
        let whole = lines(None);
        assert!(whole[0].starts_with("mutants --no-shuffle --output out --file crates/"));
        assert!(whole[0].contains("--test-package mcp-exact-session -- --lib"));
        assert!(whole[1].ends_with(&format!("--iterate {all}")));
        let share = lines(Some("1/4"));
        assert!(share.len() == 1 && share[0].ends_with(&format!("--shard 1/4 {all}")));
    }

    #[test]
    fn mutated_files_exist() {
        let root = crate::workspace_root();
        for file in MUTATED_FILES {
            let path = root.join(file.replace("*", "mod"));
            assert!(path.exists(), "{}", path.display());
        }
    }

    #[test]
    fn page_lists_missed_mutants() {
        let count = MutantCounts {
            detected: 19,
            missed: vec!["src/a.rs:1: replace x with y".to_owned()],
            unviable: 2,
        };
        assert!(count.detected_percent() >= MIN_DETECTED_PERCENT);
        let page = count.markdown_page();
        assert!(page.contains("19 mutants noticed, 1 missed, 2 do not compile: 95.0 % noticed"));
        assert!(page.ends_with("- `src/a.rs:1: replace x with y`\n"));
        let mut both = MutantCounts {
            detected: 7,
            missed: vec!["a".to_owned(), "b".to_owned()],
            unviable: 3,
        };
        both.add(count);
        assert_eq!(
            (both.detected, both.missed.len(), both.unviable),
            (26, 1, 5)
        );
    }
}
