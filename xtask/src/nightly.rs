//! `cargo xtask nightly`: what takes too long for every change: the property tests with many seeds, mutation testing of the
//! session's rules and refusals, Miri, the getting started of the README, an invented revision, the conversions next to those of
//! an earlier implementation, random traffic with faults over all transports, servers on Redis that are killed at random
//! points, the fuzz targets under libFuzzer, and the gateway between real peers.
//!
//! Takes the parts to run and a shard; installs cargo-mutants and cargo-fuzz into `target/` if they are missing. Writes the count of
//! mutants to `docs/mutants.md` when all of them were tested.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{conformance, fuzz, interop, miri, oracle, quickstart, redis, rehearsal};

/// Release of cargo-mutants that is installed.
const MUTANTS: &str = "27.1.0";
/// Files whose mutants are tested: the rule table, and why messages are refused.
const FILES: &[&str] = &[
    "crates/mcp-exact-session/src/rules/*.rs",
    "crates/mcp-exact-session/src/refusal.rs",
];
/// Quick tests: the unit tests without the test that removes each row.
const QUICK: &[&str] = &[
    "--test-package",
    "mcp-exact-session",
    "--",
    "--lib",
    "--",
    "--skip",
    "every_row_counts",
];
/// All tests that must notice a mutant.
const TESTS: &[&str] = &[
    "--test-package",
    "mcp-exact-session",
    "--test-package",
    "mcp-exact-tests-session",
];
/// Number of seeds of the property tests; a normal test run has 80.
const SEEDS: &str = "4000";
/// Sessions of the gateway that come and go with each server; a usual test run has 300.
const GATEWAY_SESSIONS: &str = "10000";
/// Exchanges of `chaos`; a usual test run has 400. With a failover there is a quarter of them.
const EXCHANGES: usize = 10_000;
/// Duration of the traffic of `soak`, in seconds.
const SOAK_SECONDS: u64 = 1800;
/// Duration of a fuzz target, in seconds.
const FUZZ_SECONDS: u64 = 240;
/// Processes and sessions that `chaos` simulates; a usual test run has 20 and 100,000.
const PROCESSES: &str = "1000";
const SESSIONS: &str = "1000000";
/// Minimum percentage of mutants that tests must detect.
const NOTICED: f64 = 95.0;
const PAGE: &str = "docs/mutants.md";

/// Tasks to run; all of them if none is named.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Arguments {
    /// Parts to run.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Tests one share of the mutants only, such as `0/4`; then nothing is written.
    #[arg(long, value_name = "N/COUNT")]
    shard: Option<String>,
    /// Duration of the traffic of `soak` (half an hour if it is not given), and of each target of `fuzz` (four minutes), in seconds.
    #[arg(long, value_name = "SECONDS")]
    seconds: Option<u64>,
    /// Fuzz targets that `fuzz` runs; all of them if none is named.
    #[arg(long = "target", value_name = "NAME")]
    targets: Vec<String>,
    /// Seed of the traffic of `soak` and `chaos`, as a run has printed it; without it, each run has one of its own.
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
}

/// Part of the nightly checks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Part {
    /// Property tests of the session with many seeds.
    Properties,
    /// Mutation testing of the session's rules and refusals.
    Mutants,
    /// Miri on the unsafe code of the reader and writer.
    Miri,
    /// Steps that the README tells a new user to take.
    Quickstart,
    /// An invented revision and an extension of it, added and removed in a copy of the workspace.
    Rehearsal,
    /// Conversions next to those of the implementation by types, which is built from its commit.
    Oracle,
    /// Random traffic with faults over all transports; afterwards nothing may be left of it.
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
        rehearsal::run(root)?;
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

fn chaos(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let time = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let any = time.map_or(1, |time| u64::from(time.subsec_nanos()));
    let seed = arguments.seed.unwrap_or(any);
    let mut simulation = cargo();
    simulation.current_dir(root).args(["test", "--locked"]);
    simulation.args(["--package", "mcp-exact-tests-redis", "--test", "simulation"]);
    simulation.args(["--", "--nocapture", "processes_keep_every_promise"]);
    simulation.env("MCP_EXACT_SIMULATED_PROCESSES", PROCESSES);
    simulation.env("MCP_EXACT_SIMULATED_SESSIONS", SESSIONS);
    let mut exchanges = redis::test_command(root)?;
    exchanges.env("MCP_EXACT_EXCHANGES", EXCHANGES.to_string());
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

fn cargo() -> Command {
    Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

fn properties(root: &Path) -> anyhow::Result<()> {
    let mut command = cargo();
    command.current_dir(root).env("MCP_EXACT_SEEDS", SEEDS);
    command.args(["test", "--release", "--package", "mcp-exact-tests-session"]);
    command.args(["--test", "pipes", "--", "--nocapture"]);
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("a property does not hold ({status}); the last seed that is printed shows it again");
    }
    Ok(())
}

fn bridge(root: &Path) -> anyhow::Result<()> {
    interop::run(root, &interop::Arguments::through_gateway())?;
    conformance::run(root, &conformance::Arguments::through_gateway())?;
    let mut command = cargo();
    command
        .current_dir(root)
        .env("MCP_EXACT_SESSIONS", GATEWAY_SESSIONS);
    command.args(["test", "--locked", "--package", "mcp-exact-bridge"]);
    command.args(["--test", "bridge", "sessions_leave_nothing"]);
    let status = command.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the gateway does not survive {GATEWAY_SESSIONS} sessions ({status})");
    }
    Ok(())
}

fn soak(root: &Path, arguments: &Arguments) -> anyhow::Result<()> {
    let mut build = cargo();
    build.current_dir(root).args(["build", "--locked"]);
    build.args(["--package", "mcp-exact-tests-transport", "--bins"]);
    let status = build.status().context("cannot start cargo")?;
    if !status.success() {
        bail!("the programs of tests/transport do not build ({status})");
    }
    let target = std::env::var_os("CARGO_TARGET_DIR").map_or(root.join("target"), PathBuf::from);
    let name = format!("soak{}", std::env::consts::EXE_SUFFIX);
    let mut command = Command::new(target.join("debug").join(name));
    let seconds = arguments.seconds.unwrap_or(SOAK_SECONDS);
    command.arg(seconds.to_string());
    command.args(arguments.seed.map(|seed| seed.to_string()));
    let status = command.status().context("cannot start the traffic")?;
    if !status.success() {
        bail!("random traffic has found a fault ({status}); `--seed` makes the same traffic again");
    }
    Ok(())
}

fn mutants(root: &Path, shard: Option<&str>) -> anyhow::Result<()> {
    let program = installed(root, "cargo-mutants", MUTANTS)?;
    let output = root.join("target").join("mutants");
    let mut count = Count::default();
    for pass in passes(shard) {
        let mut command = Command::new(&program);
        command
            .current_dir(root)
            .args(mutants_line(&output, shard, &pass));
        let status = command.status().context("cannot start cargo-mutants")?;
        // 2: mutants were missed; 3: tests of some took too long, which counts as noticed.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("cargo-mutants failed ({status}); the output above says why");
        }
        count.add(Count::read(&output.join("mutants.out"))?);
        if count.missed.is_empty() {
            break;
        }
    }
    if count.noticed + count.missed.len() == 0 {
        bail!("no mutant was tested: the files in xtask/src/nightly.rs are gone");
    }
    println!("{}", count.line());
    if shard.is_none() {
        let page = root.join(PAGE);
        std::fs::write(&page, count.page())
            .with_context(|| format!("cannot write {}", page.display()))?;
    }
    if count.percent() < NOTICED {
        bail!(
            "tests must notice {NOTICED} % of the mutants: add tests for those in {}",
            output.join("mutants.out").join("missed.txt").display()
        )
    } else {
        Ok(())
    }
}

/// Path of a program in `target/`, where this version of it is installed if it is missing.
pub(crate) fn installed(root: &Path, package: &str, version: &str) -> anyhow::Result<PathBuf> {
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

/// Arguments of each run: all tests at once, or quick ones first and then all of them for what these have missed. A share of the
/// mutants is not the same share of those that are left.
fn passes(shard: Option<&str>) -> Vec<Vec<&'static str>> {
    match shard {
        Some(_) => vec![TESTS.to_vec()],
        None => vec![QUICK.to_vec(), [&["--iterate"][..], TESTS].concat()],
    }
}

fn mutants_line(output: &Path, shard: Option<&str>, pass: &[&str]) -> Vec<String> {
    let mut line = vec!["mutants".to_owned(), "--no-shuffle".to_owned()];
    line.extend(["--output".to_owned(), output.display().to_string()]);
    for file in FILES {
        line.extend(["--file".to_owned(), (*file).to_owned()]);
    }
    if let Some(shard) = shard {
        line.extend(["--shard".to_owned(), shard.to_owned()]);
    }
    line.extend(pass.iter().map(|word| (*word).to_owned()));
    line
}

/// Outcomes of the mutants.
#[derive(Debug, Default, PartialEq, Eq)]
struct Count {
    /// Mutants that tests have noticed, by failing or by not ending.
    noticed: usize,
    missed: Vec<String>,
    unviable: usize,
}

impl Count {
    /// Reads the lists that cargo-mutants has written.
    fn read(directory: &Path) -> anyhow::Result<Self> {
        let lines = |name: &str| -> anyhow::Result<Vec<String>> {
            let path = directory.join(name);
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(Self {
            noticed: lines("caught.txt")?.len() + lines("timeout.txt")?.len(),
            missed: lines("missed.txt")?,
            unviable: lines("unviable.txt")?.len(),
        })
    }

    /// Adds what another pass has found out about the mutants that were missed.
    fn add(&mut self, pass: Self) {
        self.noticed += pass.noticed;
        self.unviable += pass.unviable;
        self.missed = pass.missed;
    }

    fn percent(&self) -> f64 {
        let tested = self.noticed + self.missed.len();
        100.0 * self.noticed as f64 / tested as f64
    }

    fn line(&self) -> String {
        format!(
            "{} mutants noticed, {} missed, {} do not compile: {:.1} % noticed",
            self.noticed,
            self.missed.len(),
            self.unviable,
            self.percent()
        )
    }

    fn page(&self) -> String {
        let mut page = format!(
            "# Mutants\n\n`cargo xtask nightly mutants` changes the rules and refusals of the session, one place at a time, runs their \
             tests on each change,\nand writes this page: {}.\n",
            self.line()
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

    #[test]
    fn mutants_line_names_files_and_tests() {
        let lines = |shard: Option<&str>| -> Vec<String> {
            let passes = passes(shard).into_iter();
            passes
                .map(|pass| mutants_line(Path::new("out"), shard, &pass).join(" "))
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
        for file in FILES {
            let path = root.join(file.replace("*", "mod"));
            assert!(path.exists(), "{}", path.display());
        }
    }

    #[test]
    fn survivors_stand_on_the_page() {
        let count = Count {
            noticed: 19,
            missed: vec!["src/a.rs:1: replace x with y".to_owned()],
            unviable: 2,
        };
        assert!(count.percent() >= NOTICED);
        let page = count.page();
        assert!(page.contains("19 mutants noticed, 1 missed, 2 do not compile: 95.0 % noticed"));
        assert!(page.ends_with("- `src/a.rs:1: replace x with y`\n"));
        let mut both = Count {
            noticed: 7,
            missed: vec!["a".to_owned(), "b".to_owned()],
            unviable: 3,
        };
        both.add(count);
        assert_eq!((both.noticed, both.missed.len(), both.unviable), (26, 1, 5));
    }
}
