//! `cargo xtask nightly`: runs checks that take too long for every change; [`Part`] lists them.
//!
//! Installs cargo-mutants and cargo-fuzz into `target/` if they are missing. After all mutants were tested, writes
//! their number to `docs/mutants.md`.

use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};

use crate::{
    apps, conformance, dist, examples, fuzz, interop, miri, mutants, oracle, quickstart, redis,
    rehearsal,
};

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
/// Tasks to run; all of them if none is named.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct Arguments {
    /// Parts to run.
    #[arg(value_enum)]
    parts: Vec<Part>,
    /// Test only one share of the mutants, such as `0/4`; nothing is written then.
    #[arg(long, value_name = "N/COUNT")]
    shard: Option<String>,
    /// Test only the mutants of these parts of the project; of all if none is named.
    #[arg(long = "set", value_enum)]
    sets: Vec<mutants::Set>,
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
    /// Mutation testing of the session's rules and refusals, and of authorization.
    Mutants,
    /// Miri on the unsafe code of the reader and writer.
    Miri,
    /// Setup steps of the README for a new user, and the example with a chat model of `genai`.
    Quickstart,
    /// Pages of servers in Chromium, in a host with the official library of MCP Apps.
    Apps,
    /// npm packages, wheel and archive of the program, installed where there is no Rust.
    Dist,
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
        mutants::run(root, &arguments.sets, arguments.shard.as_deref())?;
    }
    if wants(Part::Miri) {
        miri::run(root)?;
    }
    if wants(Part::Quickstart) {
        quickstart::run(root)?;
        genai_example(root)?;
    }
    if wants(Part::Apps) {
        apps::run(root, &apps::Arguments::default())?;
    }
    if wants(Part::Dist) {
        dist::run(root, &dist::Arguments::checked())?;
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

/// Runs the tests of `examples/genai`, a workspace of its own.
fn genai_example(root: &Path) -> anyhow::Result<()> {
    let mut command = cargo();
    command.current_dir(root).args(["test", "--locked"]);
    command.args(["--manifest-path", "examples/genai/Cargo.toml"]);
    command.args(["--target-dir", "target/genai"]);
    let status = command.status().context("cannot start cargo")?;
    anyhow::ensure!(status.success(), "tests of examples/genai failed");
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
