//! Formats the build costs as text, as a page and as JSON; the text shows the differences to the first library.

use std::time::Duration;

use serde_json::{Value, json};

use crate::build::Cost;

/// Returns the costs as a text table with the differences to the first entry.
pub fn text(costs: &[Cost]) -> String {
    let Some(base) = costs.first() else {
        return String::new();
    };
    let mut out = String::from(
        "clean build, CPU time of cargo and rustc (user and system); in brackets over the first line\n\n",
    );
    out.push_str(&format!(
        "{:<18} {:>12} {:>18} {:>18} {:>20}\n",
        "library", "dependencies", "dev s", "release s", "stripped program kB"
    ));
    for cost in costs {
        let seconds = |time: Duration, base: Duration| {
            let difference = time.as_secs_f64() - base.as_secs_f64();
            format!("{:.2} ({difference:+.2})", time.as_secs_f64())
        };
        let kilobytes = (cost.size as f64 - base.size as f64) / 1e3;
        let size = format!("{:.0} ({kilobytes:+.0})", cost.size as f64 / 1e3);
        out.push_str(&format!(
            "{:<18} {:>12} {:>18} {:>18} {:>20}\n",
            cost.library,
            cost.dependencies,
            seconds(cost.dev, base.dev),
            seconds(cost.release, base.release),
            size,
        ));
    }
    out
}

/// Threshold with the cost that a run has measured.
#[derive(Debug, PartialEq)]
pub struct Verdict {
    /// Description of the threshold.
    pub demand: &'static str,
    /// Measured value and the maximum; `None` if a needed library was not measured.
    pub measured: Option<(f64, f64)>,
}

impl Verdict {
    /// Returns `ok`, `MISS` or, if the value was not measured, `n/a`.
    pub fn word(&self) -> &'static str {
        match self.measured {
            None => "n/a",
            Some((value, limit)) if value <= limit => "ok",
            Some(_) => "MISS",
        }
    }

    /// Returns the measured value and the maximum as text.
    fn numbers(&self) -> String {
        self.measured.map_or_else(
            || "-".to_owned(),
            |(value, limit)| format!("{value:.2} <= {limit:.2}"),
        )
    }
}

/// Returns the verdicts on all thresholds for build costs.
pub fn verdicts(costs: &[Cost]) -> Vec<Verdict> {
    let cost = |library: &str| costs.iter().find(|cost| cost.library == library);
    let base = cost("serde-json");
    // Additional cost of a library over the baseline.
    let over = |library: &str, of: fn(&Cost) -> f64| Some(of(cost(library)?) - of(base?));
    let less_than_peer =
        |of: fn(&Cost) -> f64| Some((over("mcp-revisions", of)?, over("rust-mcp-schema", of)?));
    // A server of notes may cost so many times the same one on rmcp.
    let notes = |demand, times: f64, of: fn(&Cost) -> f64| Verdict {
        demand,
        measured: cost("server-mcp-exact")
            .zip(cost("server-rmcp"))
            .map(|(ours, rmcp)| (of(ours), times * of(rmcp))),
    };
    vec![
        Verdict {
            demand: "dependencies of one type crate, itself included",
            measured: cost("mcp-2025-06-18").map(|cost| (cost.dependencies as f64, 14.0)),
        },
        Verdict {
            demand: "dev, s over serde_json: all revisions beside one of rust-mcp-schema",
            measured: less_than_peer(|cost| cost.dev.as_secs_f64()),
        },
        Verdict {
            demand: "release, s over serde_json: all revisions beside one of rust-mcp-schema",
            measured: less_than_peer(|cost| cost.release.as_secs_f64()),
        },
        Verdict {
            demand: "small stripped program of one revision, kB over serde_json",
            measured: over("mcp-2025-06-18", |cost| cost.size as f64 / 1e3)
                .map(|size| (size, 200.0)),
        },
        Verdict {
            demand: "release, s over serde_json: raw conversion between all revisions",
            measured: over("mcp-exact-convert", |cost| cost.release.as_secs_f64())
                .map(|time| (time, 12.0)),
        },
        Verdict {
            demand: "stripped program with raw conversion, kB over serde_json",
            measured: over("mcp-exact-convert", |cost| cost.size as f64 / 1e3)
                .map(|size| (size, 600.0)),
        },
        notes(
            "release, s: a server of notes beside the same one on rmcp",
            0.7,
            |cost| cost.release.as_secs_f64(),
        ),
        notes(
            "stripped size, MB: a server of notes beside rmcp",
            0.7,
            |cost| cost.size as f64 / 1e6,
        ),
        notes("dependencies: a server of notes beside rmcp", 0.8, |cost| {
            cost.dependencies as f64
        }),
    ]
}

/// Returns the section of the report about the thresholds.
pub fn verdict_text(verdicts: &[Verdict]) -> String {
    let lines = verdicts.iter().map(|verdict| {
        let (word, numbers) = (verdict.word(), verdict.numbers());
        format!("  {word:<4}  {:<72} {numbers:>18}\n", verdict.demand)
    });
    "\nMust show\n".to_owned() + &lines.collect::<String>()
}

/// Returns the Markdown page with the thresholds and the costs.
pub fn page(costs: &[Cost], verdicts: &[Verdict], date: &str, machine: &str) -> String {
    let rows = verdicts
        .iter()
        .map(|it| format!("| {} | {} | {} |\n", it.word(), it.demand, it.numbers()));
    format!(
        "# Building\n\n{date}, {machine}. Written by `cargo xtask bench compile`; how it measures is in \
         [benches/README.md](../../benches/README.md).\n\n\
         | | demand | measured |\n|---|---|--:|\n{}\n```text\n{}```\n",
        rows.collect::<String>(),
        text(costs),
    )
}

/// Returns a JSON array with the description and the measurement of each threshold.
pub fn verdict_json(verdicts: &[Verdict]) -> Value {
    let one = |it: &Verdict| {
        json!({
            "demand": it.demand,
            "measured": it.measured.map(|(value, _)| value),
            "limit": it.measured.map(|(_, limit)| limit),
            "ok": it.word() == "ok",
        })
    };
    verdicts.iter().map(one).collect()
}

/// Returns the costs of all libraries as JSON, without the differences.
pub fn json(costs: &[Cost]) -> Value {
    costs
        .iter()
        .map(|cost| {
            json!({
                "library": cost.library,
                "dependencies": cost.dependencies,
                "devSeconds": cost.dev.as_secs_f64(),
                "releaseSeconds": cost.release.as_secs_f64(),
                "strippedBytes": cost.size,
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a cost with a dev build of `seconds` and a release build of twice that time.
    fn cost(library: &str, seconds: u64, size: u64) -> Cost {
        Cost {
            library: library.to_owned(),
            dependencies: 3,
            dev: Duration::from_secs(seconds),
            release: Duration::from_secs(2 * seconds),
            size,
        }
    }

    /// Thresholds for the type crates compare the costs that a library adds to the baseline.
    #[test]
    fn demands_are_relative_to_baseline() {
        let mut costs = vec![
            cost("serde-json", 1, 400_000),
            cost("mcp-2025-06-18", 3, 700_000),
            cost("mcp-revisions", 5, 900_000),
        ];
        let words = |costs: &[Cost]| {
            verdicts(costs)
                .iter()
                .take(4)
                .map(Verdict::word)
                .collect::<Vec<_>>()
        };
        assert_eq!(words(&costs), ["ok", "n/a", "n/a", "MISS"]);
        costs.push(cost("rust-mcp-schema", 6, 400_000));
        assert_eq!(words(&costs), ["ok", "ok", "ok", "MISS"]);
        costs[3].dev = Duration::from_secs(4);
        assert_eq!(words(&costs), ["ok", "MISS", "ok", "MISS"]);
    }

    /// A server may take 0.7 of the time and size, and 0.8 of the dependencies of the one that uses rmcp.
    #[test]
    fn servers_are_compared_with_peer() {
        let costs = [
            cost("server-mcp-exact", 5, 700_000),
            cost("server-rmcp", 9, 900_000),
        ];
        let verdicts = verdicts(&costs);
        let is_server = |verdict: &&Verdict| verdict.demand.contains("a server of notes");
        let words = verdicts.iter().filter(is_server).map(Verdict::word);
        assert_eq!(words.collect::<Vec<_>>(), ["ok", "MISS", "MISS"]);
    }

    /// The table shows the difference of each cost to the first line.
    #[test]
    fn differences_are_to_the_first_line() {
        let text = text(&[cost("base", 1, 400_000), cost("other", 3, 450_000)]);
        let line = text.lines().last().unwrap_or_default();
        let cells: Vec<&str> = line.split_whitespace().collect();
        assert_eq!(
            cells,
            [
                "other", "3", "3.00", "(+2.00)", "6.00", "(+4.00)", "450", "(+50)"
            ]
        );
    }
}
