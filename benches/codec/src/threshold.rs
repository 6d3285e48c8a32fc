//! Thresholds for the codec, and their results in a run. The thresholds are only printed and fail no run, because
//! measurements on a busy machine are unreliable.

use std::fmt::Write as _;

use crate::compare::{Extreme, Operation, Run};
use crate::corpus::{MANY_TOOLS, tools};

/// Threshold with the value that a run has measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Description of the threshold, with its limit.
    pub demand: String,
    /// Measured value; `None` if the run did not measure it.
    pub measured: Option<f64>,
    /// True if the threshold is met.
    pub ok: bool,
    /// Name of the message that decides the result, or another remark.
    pub note: String,
}

/// Returns all thresholds with their results.
pub fn verdicts(run: &Run) -> Vec<Verdict> {
    let mut all = decoding(run);
    all.extend(encoding(run));
    all.extend(heap(run));
    all
}

/// Returns the section of the report about the thresholds.
pub fn text(verdicts: &[Verdict]) -> String {
    let mut out = String::from("\nMust show\n");
    for verdict in verdicts {
        let [word, demand, measured, note] = cells(verdict);
        let _ = writeln!(out, "  {word:<4}  {demand:<66} {measured:>8}  {note}");
    }
    out
}

/// Formats a threshold as four cells: `ok`, `MISS` or `n/a`, the description, the measured value, and the note.
pub fn cells(verdict: &Verdict) -> [String; 4] {
    let word = match (verdict.measured, verdict.ok) {
        (None, _) => "n/a",
        (_, true) => "ok",
        (_, false) => "MISS",
    };
    let measured = match verdict.measured {
        Some(value) if value >= 100.0 => format!("{value:.0}"),
        Some(value) => format!("{value:.3}"),
        None => "-".to_owned(),
    };
    [
        word.to_owned(),
        verdict.demand.clone(),
        measured,
        verdict.note.clone(),
    ]
}

/// Creates the verdict on a threshold that the measured value must not exceed.
fn at_most(demand: impl Into<String>, limit: f64, measured: Option<(f64, String)>) -> Verdict {
    verdict(demand.into(), measured, |value| value <= limit)
}

/// Creates the verdict on a threshold that the measured value must reach.
fn at_least(demand: impl Into<String>, limit: f64, measured: Option<(f64, String)>) -> Verdict {
    verdict(demand.into(), measured, |value| value >= limit)
}

/// Creates the verdict on a threshold; `holds` returns true if a value meets the threshold.
fn verdict(
    demand: String,
    measured: Option<(f64, String)>,
    holds: impl Fn(f64) -> bool,
) -> Verdict {
    Verdict {
        demand,
        ok: measured.as_ref().is_some_and(|(value, _)| holds(*value)),
        measured: measured.as_ref().map(|(value, _)| *value),
        note: measured.map(|(_, note)| note).unwrap_or_default(),
    }
}

/// Returns the geometric mean of the ratios of two libraries, and a note with the number of messages.
fn mean(run: &Run, operation: Operation, library: usize, base: usize) -> Option<(f64, String)> {
    let (mean, count) = run.mean(operation, library, base)?;
    Some((mean, format!("{count} messages")))
}

/// Returns a ratio and the name of its message as the note.
fn deciding(extreme: Option<Extreme>) -> Option<(f64, String)> {
    extreme.map(|it| (it.ratio, it.entry))
}

/// Returns the verdicts on the thresholds for decoding.
fn decoding(run: &Run) -> Vec<Verdict> {
    let worst = run.worst(Operation::Decode, run.ours, run.baseline);
    let faster_than = |name| mean(run, Operation::Decode, run.column(name)?, run.ours);
    vec![
        at_most(
            "decode, geometric mean of the ratios to serde_json::Value, <= 0.45",
            0.45,
            mean(run, Operation::Decode, run.ours, run.baseline),
        ),
        at_most(
            "decode, no message above serde_json::Value in any order, <= 1.0",
            1.0,
            deciding(worst),
        ),
        at_least(
            "decode, times faster than rmcp, >= 5",
            5.0,
            faster_than("rmcp"),
        ),
        at_least(
            "decode, times faster than rust-mcp-schema, >= 8",
            8.0,
            faster_than("rust-mcp-schema"),
        ),
    ]
}

/// Returns the verdicts on the thresholds for encoding.
fn encoding(run: &Run) -> Vec<Verdict> {
    let mut all = vec![at_most(
        "encode, geometric mean of the ratios to serde_json::Value, <= 0.35",
        0.35,
        mean(run, Operation::Encode, run.ours, run.baseline),
    )];
    for peer in run.peers() {
        let name = run.libraries[peer].0;
        all.push(at_most(
            format!("encode, on no message slower than {name}, <= 1.0"),
            1.0,
            deciding(run.worst(Operation::Encode, run.ours, peer)),
        ));
    }
    for name in ["result-image-1m", "result-text-1m"] {
        let ratio = run
            .ratios(Operation::Encode, run.ours, run.baseline, |entry| {
                entry.name == name
            })
            .next();
        all.push(at_most(
            "encode, string of 1 MB, ratio to serde_json <= 0.2",
            0.2,
            deciding(ratio),
        ));
    }
    all
}

/// Returns the verdicts on the thresholds for allocations.
fn heap(run: &Run) -> Vec<Verdict> {
    let ours = || {
        run.rows
            .iter()
            .filter_map(|row| Some((&row.entry, row.figures(run.ours)?.heap)))
    };
    let tools = ours()
        .find(|(entry, _)| entry.name == "tools-200")
        .map(|(_, heap)| {
            let note = format!(
                "{} of them for owned strings and raw values",
                owned_by_tools(MANY_TOOLS)
            );
            (heap.count as f64, note)
        });
    let largest =
        |values: &mut dyn Iterator<Item = (f64, String)>| values.max_by(|a, b| a.0.total_cmp(&b.0));
    let bulky = largest(
        &mut ours()
            .filter(|(entry, _)| entry.bulky)
            .map(|(entry, heap)| {
                (
                    heap.peak as f64 / entry.bytes.len() as f64,
                    entry.name.clone(),
                )
            }),
    );
    let against_value = largest(&mut run.rows.iter().filter_map(|row| {
        let ours = row.figures(run.ours)?.heap.peak as f64;
        let value = row.figures(run.baseline)?.heap.peak as f64;
        Some((ours / value, row.entry.name.clone()))
    }));
    vec![
        at_most("decode, allocations for 200 tools, <= 1,050", 1050.0, tools),
        at_most(
            "decode, peak heap / message, long strings or untyped JSON, <= 1.3",
            1.3,
            bulky,
        ),
        at_most(
            "decode, peak heap / that of serde_json::Value, <= 1.0",
            1.0,
            against_value,
        ),
    ]
}

/// Returns the number of strings and raw values that a decoded tool list owns: three strings and one or two schemas per
/// tool, and the cursor.
fn owned_by_tools(count: usize) -> usize {
    1 + (0..count)
        .map(|index| 4 + usize::from(tools::has_output(index)))
        .sum::<usize>()
}
