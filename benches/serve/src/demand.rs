//! Thresholds for the transports, and their results in a run. The thresholds are only printed and fail no run, because
//! measurements on a busy machine are unreliable.

use crate::run::{Measure, Run};
use crate::stats::{Estimate, median, ratio};

/// Threshold with the value that a run has measured.
#[derive(Debug, Clone, PartialEq)]
pub struct Verdict {
    /// Description of the threshold, with its limit.
    pub demand: &'static str,
    /// Measured value with its confidence interval.
    pub measured: Estimate,
    /// True if the threshold is met.
    pub holds: bool,
}

/// Minimum or maximum that a threshold sets.
enum MeasuredLimit {
    /// The measured value must reach this minimum.
    AtLeast(f64),
    /// The measured value must not exceed this maximum.
    AtMost(f64),
}

/// Returns the verdicts on the thresholds whose values the run has measured.
pub fn verdicts(run: &Run) -> Vec<Verdict> {
    use Measure::*;
    use MeasuredLimit::{AtLeast, AtMost};

    let times = |measure, ours, base| {
        Some(ratio(
            run.samples(measure, ours)?,
            run.samples(measure, base)?,
        ))
    };
    let own = |measure, ours| Some(median(run.samples(measure, ours)?));
    let above = || {
        let of = |server| Some(median(run.samples(Idle, server)?).value);
        let value = (of("http-ours")? - of("sse-hyper")?) / 1024.0;
        Some(Estimate {
            value,
            low: value,
            high: value,
        })
    };
    let all = [
        (
            "stdio, blocking driver: times rmcp's calls/s, >= 30",
            AtLeast(30.0),
            times(StdioRate, "ours-blocking", "rmcp"),
        ),
        (
            "stdio, blocking driver: median µs, <= 15",
            AtMost(15.0),
            own(StdioTime, "ours-blocking"),
        ),
        (
            "stdio, tokio driver: times rmcp's calls/s, >= 20",
            AtLeast(20.0),
            times(StdioRate, "ours-tokio", "rmcp"),
        ),
        (
            "stdio, tokio driver: median µs, <= 40",
            AtMost(40.0),
            own(StdioTime, "ours-tokio"),
        ),
        (
            "start to first answer, blocking driver: ms, <= 10",
            AtMost(10.0),
            own(Start, "ours-blocking"),
        ),
        (
            "start to first answer, tokio driver: ms, <= 10",
            AtMost(10.0),
            own(Start, "ours-tokio"),
        ),
        (
            "HTTP, 2025-11-25: times rmcp's JSON answers, >= 2.3",
            AtLeast(2.3),
            times(HttpRate, "http-ours", "http-rmcp"),
        ),
        (
            "HTTP, 2026-07-28: times rmcp's JSON answers, >= 2.3",
            AtLeast(2.3),
            times(HttpRate, "http-ours-2026", "http-rmcp-2026"),
        ),
        (
            "HTTP, 2025-11-25, one connection: part of a bare hyper echo, >= 0.9",
            AtLeast(0.9),
            times(HttpRateOne, "http-ours", "http-hyper"),
        ),
        (
            "HTTP, 2025-11-25, 32 connections: part of a bare hyper echo, >= 0.9",
            AtLeast(0.9),
            times(HttpRate, "http-ours", "http-hyper"),
        ),
        (
            "idle event stream: KiB above a bare hyper server, <= 4",
            AtMost(4.0),
            above(),
        ),
    ];
    let verdict = |(demand, bound, measured): (_, _, Option<Estimate>)| {
        let measured = measured?;
        let holds = match bound {
            AtLeast(least) => measured.value >= least,
            AtMost(most) => measured.value <= most,
        };
        Some(Verdict {
            demand,
            measured,
            holds,
        })
    };
    all.into_iter().filter_map(verdict).collect()
}
