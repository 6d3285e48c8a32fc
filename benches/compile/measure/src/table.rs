//! The costs as a table with differences to the first library, as text and as JSON.

use std::time::Duration;

use serde_json::{Value, json};

use crate::build::Cost;

/// The table; the first line of `costs` is the baseline.
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

/// The same for tools, without the differences.
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

    #[test]
    fn differences_are_to_the_first_line() {
        let cost = |library: &str, seconds, size| Cost {
            library: library.to_owned(),
            dependencies: 3,
            dev: Duration::from_secs(seconds),
            release: Duration::from_secs(2 * seconds),
            size,
        };
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
