//! Documentation page with the results: date, machine, thresholds and the report.

use bench_record::machine;

use crate::compare::Run;
use crate::report;
use crate::threshold::{self, Verdict};

/// Returns the Markdown page with the thresholds and the report of a run.
pub fn page(run: &Run, verdicts: &[Verdict], report: &str) -> String {
    let rows = verdicts
        .iter()
        .map(threshold::cells)
        .map(|cells| format!("| {} |\n", cells.join(" | ")));
    let rows: String = rows.collect();
    format!(
        "# Decoding and encoding\n\n{}, {}. Written by `cargo xtask bench codec`; how it measures is in \
         [benches/README.md](../../benches/README.md).\n\n\
         | | demand | measured | |\n|---|---|--:|---|\n{rows}\n```text\n{}```\n",
        run.date,
        machine::name(),
        report::fenced(report),
    )
}

/// Returns the Markdown page with a table of instruction counts.
pub fn instructions(date: &str, table: &str) -> String {
    format!(
        "# Instructions\n\n{date}, {}. Instructions that callgrind counts for one message, drop included: ours, \
         `serde_json::Value` and the ratio. A change is compared with this table by\n\
         `cargo xtask bench codec --instructions`; the counts of one machine and toolchain repeat to within a few.\n\n{table}",
        machine::name(),
    )
}
