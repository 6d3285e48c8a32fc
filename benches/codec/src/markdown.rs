//! What was measured as a page of the documentation: date, machine, demands and the report itself.

use crate::compare::Run;
use crate::report;
use crate::threshold::{self, Verdict};

/// The page of a run.
pub fn page(run: &Run, verdicts: &[Verdict], report: &str) -> String {
    let rows = verdicts.iter().map(threshold::cells).map(|cells| format!("| {} |\n", cells.join(" | ")));
    let rows: String = rows.collect();
    format!(
        "# Decoding and encoding\n\n{}, {}. Written by `cargo xtask bench codec`; how it measures is in \
         [benches/README.md](../../benches/README.md).\n\n\
         | | demand | measured | |\n|---|---|--:|---|\n{rows}\n```text\n{}```\n",
        run.date,
        machine(),
        report::fenced(report),
    )
}

/// The page of counted instructions.
pub fn instructions(date: &str, table: &str) -> String {
    format!(
        "# Instructions\n\n{date}, {}. Instructions that callgrind counts for one message, drop included: ours, \
         `serde_json::Value` and the ratio. A change is compared with this table by\n\
         `cargo xtask bench codec --instructions`; the counts of one machine and toolchain repeat to within a few.\n\n{table}",
        machine(),
    )
}

/// What the processor calls itself, and how many there are.
fn machine() -> String {
    let about = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = about
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(": "))
        .map_or(std::env::consts::ARCH, |(_, name)| name.trim());
    let count = std::thread::available_parallelism().map_or(1, usize::from);
    format!("{name}, {count} cores, {}", std::env::consts::OS)
}
