//! Formats the results of a run as text, as a Markdown page and as JSON.

use std::fmt::Write as _;

use bench_record::{date, machine};
use serde_json::json;

use crate::demand::Verdict;
use crate::instructions;
use crate::run::{Measure, Run};
use crate::stats::{Estimate, median, ratio};

/// Formats a number with about three significant digits, and with separators from 1,000 on.
pub fn digits(value: f64) -> String {
    match value.abs() {
        large if large >= 1000.0 => {
            let whole = format!("{value:.0}");
            let mut out = String::new();
            for (index, digit) in whole.chars().enumerate() {
                if index > 0 && (whole.len() - index) % 3 == 0 {
                    out.push(',');
                }
                out.push(digit);
            }
            out
        }
        middling if middling >= 100.0 => format!("{value:.0}"),
        middling if middling >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

/// Formats the ends of a confidence interval.
fn interval(estimate: Estimate) -> String {
    format!("{} to {}", digits(estimate.low), digits(estimate.high))
}

/// Returns the table rows of a measurement: server, median, confidence interval, ratio to the base server, and
/// confidence interval of the ratio.
fn rows(run: &Run, measure: Measure) -> Vec<[String; 5]> {
    let base = run.samples(measure, measure.base());
    let of_measure = run.series.iter().filter(|series| series.measure == measure);
    let row = |series: &crate::run::Series| {
        let own = median(&series.samples);
        let times = base.map(|base| ratio(&series.samples, base));
        [
            series.server.to_owned(),
            digits(own.value),
            interval(own),
            times.map_or_else(String::new, |times| digits(times.value)),
            times.map_or_else(String::new, interval),
        ]
    };
    of_measure.map(row).collect()
}

/// Returns the results of a run as text for the terminal.
pub fn text(run: &Run, demands: &[Verdict]) -> String {
    let mut out = String::new();
    for measure in Measure::ALL {
        let rows = rows(run, measure);
        if rows.is_empty() {
            continue;
        }
        let _ = writeln!(out, "\n{}", measure.title());
        for [server, value, range, times, times_range] in rows {
            let _ = writeln!(
                out,
                "  {server:<16} {value:>10}  ({range:<24}) {times:>7} x {}  ({times_range})",
                measure.base()
            );
        }
    }
    if !run.instructions.is_empty() {
        let _ = writeln!(out, "\nInstructions of the server a call");
        for (server, count) in &run.instructions {
            let _ = writeln!(out, "  {server:<16} {:>10}", digits(*count as f64));
        }
    }
    let _ = writeln!(out, "\nMust show");
    for verdict in demands {
        let _ = writeln!(
            out,
            "  {:<4}  {:<70} {:>8}  ({})",
            word(verdict),
            verdict.demand,
            digits(verdict.measured.value),
            interval(verdict.measured)
        );
    }
    out
}

/// Returns `ok` if the threshold is met, and `MISS` otherwise.
fn word(verdict: &Verdict) -> &'static str {
    if verdict.holds { "ok" } else { "MISS" }
}

/// Returns the Markdown page with the results of a run.
pub fn page(run: &Run, demands: &[Verdict]) -> String {
    let mut page = format!(
        "# Serving an echo tool\n\n{}, {}. Written by `cargo xtask bench serve`; how it measures is in \
         [benches/README.md](../../benches/README.md). Intervals hold with 95 % confidence.\n\n\
         | | demand | measured | interval |\n|---|---|--:|--:|\n",
        date::today(),
        machine::name(),
    );
    for verdict in demands {
        let (value, range) = (digits(verdict.measured.value), interval(verdict.measured));
        let _ = writeln!(
            page,
            "| {} | {} | {value} | {range} |",
            word(verdict),
            verdict.demand
        );
    }
    for measure in Measure::ALL {
        let rows = rows(run, measure);
        if rows.is_empty() {
            continue;
        }
        let (title, base) = (measure.title(), measure.base());
        let _ = writeln!(
            page,
            "\n## {title}\n\n| server | median | interval | times {base} | interval |\n|---|--:|--:|--:|--:|"
        );
        for row in rows {
            let _ = writeln!(page, "| {} |", row.join(" | "));
        }
    }
    if !run.instructions.is_empty() {
        let title = "Instructions of the server a call, by callgrind, without the kernel";
        let table = instructions::table(&run.instructions);
        let _ = write!(page, "\n## {title}\n\n{table}");
    }
    page
}

/// Returns the results of a run, with all samples, as JSON.
pub fn json(run: &Run, demands: &[Verdict]) -> String {
    let series: Vec<_> = run
        .series
        .iter()
        .map(|series| {
            json!({
                "measure": series.measure.title(),
                "server": series.server,
                "samples": series.samples,
            })
        })
        .collect();
    let demands: Vec<_> = demands
        .iter()
        .map(|verdict| {
            json!({
                "demand": verdict.demand,
                "measured": verdict.measured.value,
                "low": verdict.measured.low,
                "high": verdict.measured.high,
                "holds": verdict.holds,
            })
        })
        .collect();
    let page = json!({
        "date": date::today(),
        "machine": machine::name(),
        "idle streams": run.streams,
        "instructions": run.instructions,
        "demands": demands,
        "series": series,
    });
    format!("{page:#}\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Numbers have at least three significant digits, and thousands are separated.
    #[test]
    fn numbers_have_significant_digits() {
        let written = [1234567.8, 123.4, 12.34, 1.234].map(digits);
        assert_eq!(written, ["1,234,568", "123", "12.3", "1.23"]);
    }
}
