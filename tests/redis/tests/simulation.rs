//! Runs the simulation of processes that share sessions, without faults and with each injected fault, which must be
//! detected.
#![allow(
    clippy::print_stdout,
    reason = "counts belong into the output of a test run"
)]

use mcp_exact_tests_redis::simulation::{Fault, Plan, Report, run};

/// Environment variable with the number of processes; `cargo xtask nightly chaos` simulates a thousand.
const PROCESSES_VARIABLE: &str = "MCP_EXACT_SIMULATED_PROCESSES";
/// Environment variable with the number of sessions; `cargo xtask nightly chaos` simulates a million.
const SESSIONS_VARIABLE: &str = "MCP_EXACT_SIMULATED_SESSIONS";
/// Environment variable with the seed of the simulation.
const SEED_VARIABLE: &str = "MCP_EXACT_SEED";

/// Returns the number in an environment variable, or a default.
fn number(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().expect("a number"))
}

/// Returns the plan of a simulation without faults.
fn plan() -> Plan {
    Plan {
        processes: usize::try_from(number(PROCESSES_VARIABLE, 20)).expect("a number"),
        sessions: u32::try_from(number(SESSIONS_VARIABLE, 100_000)).expect("a number"),
        seed: number(SEED_VARIABLE, 1),
        fault: None,
    }
}

/// Without a fault, the simulation finds no violation, and most calls have a result although processes are killed and
/// suspended.
#[test]
fn processes_keep_every_promise() {
    let plan = plan();
    let Report {
        ends,
        violations,
        killed,
        stopped,
        steps,
        time,
    } = run(plan);
    let seconds = time / 1000;
    println!(
        "{plan:?}: {ends:?}; {killed} killed, {stopped} stopped; {steps} steps in {seconds} virtual seconds"
    );
    assert_eq!(violations, [""; 0], "{plan:?}");
    assert!(killed > 0 && stopped > 0, "nothing was disturbed");
    assert!(
        ends["result"] * 10 > u64::from(plan.sessions) * 9,
        "{ends:?}"
    );
}

/// Equal seeds yield equal simulations.
#[test]
fn seeds_repeat_runs() {
    let plan = Plan {
        sessions: 20_000,
        ..plan()
    };
    assert_eq!(run(plan), run(plan));
}

/// Each deliberate fault causes a violation that the simulation reports.
#[test]
fn injected_faults_are_detected() {
    for (fault, words, sessions) in [
        (Fault::LostEvent, "comes after", 20_000),
        (Fault::NoFence, "behind its end", 20_000),
        (Fault::DeadForever, "lives", 100_000),
        (Fault::EarlyWill, "no end", 20_000),
        (Fault::RepeatedMessage, "delivered twice", 20_000),
    ] {
        let plan = Plan {
            processes: 20,
            sessions,
            seed: 1,
            fault: Some(fault),
        };
        let found = run(plan).violations;
        let is_found = found.iter().any(|violation| violation.contains(words));
        assert!(is_found, "{fault:?}: {found:?}");
    }
}
