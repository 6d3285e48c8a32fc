//! Shared parts of the benchmarks: alternating measurement of two functions, date, machine, and the Markdown page with
//! the results.
//!
//! Thresholds are only printed; no benchmark fails because of a time.
#![allow(clippy::print_stdout)]

pub mod date;
pub mod machine;

use std::time::Duration;

use cpu_time::ProcessTime;

/// Number of measurements of each function, of which the minimum is used.
pub const ROUNDS: usize = 40;

/// Runs two functions in turn for [`ROUNDS`] rounds; returns the smallest time per call of each. The argument of each
/// function is the number of calls, and the result of the function is the time of all calls.
pub fn take_turns(
    calls: u32,
    mut base: impl FnMut(u32) -> Duration,
    mut measured: impl FnMut(u32) -> Duration,
) -> (Duration, Duration) {
    let mut best = (Duration::MAX, Duration::MAX);
    for _ in 0..ROUNDS {
        best.0 = best.0.min(base(calls) / calls);
        best.1 = best.1.min(measured(calls) / calls);
    }
    best
}

/// Returns a function that calls `f` a number of times and returns the CPU time of the process.
pub fn repeated(mut f: impl FnMut()) -> impl FnMut(u32) -> Duration {
    move |calls| {
        let start = ProcessTime::now();
        (0..calls).for_each(|_| f());
        start.elapsed()
    }
}

/// Time of a measured operation, compared with the time of another operation.
#[derive(Debug)]
pub struct Row {
    /// Name of the measured operation.
    pub what: String,
    /// Name of the operation for comparison.
    pub base: &'static str,
    /// Maximum of the ratio of the times; `None` without a threshold.
    pub demanded: Option<f64>,
    /// Time per call of the operation for comparison, and of the measured operation.
    pub cost: (Duration, Duration),
}

impl Row {
    /// Returns the time of the measured operation divided by the time of the operation for comparison.
    fn ratio(&self) -> f64 {
        self.cost.1.as_secs_f64() / self.cost.0.as_secs_f64()
    }

    /// Returns `ok` or `MISS`; empty without a threshold.
    fn verdict(&self) -> &'static str {
        match self.demanded {
            Some(demanded) if self.ratio() > demanded => "MISS",
            Some(_) => "ok",
            None => "",
        }
    }

    /// Returns the cells of the table row: verdict, name, time, name and time of the operation for comparison, ratio,
    /// and threshold.
    fn cells(&self) -> [String; 7] {
        let demanded = self.demanded.map(|demanded| format!("<= {demanded:.2}"));
        [
            self.verdict().to_owned(),
            self.what.clone(),
            format!("{:.2}", microseconds(self.cost.1)),
            self.base.to_owned(),
            format!("{:.2}", microseconds(self.cost.0)),
            format!("{:.2}", self.ratio()),
            demanded.unwrap_or_default(),
        ]
    }
}

/// Converts a duration to microseconds.
fn microseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// Prints the rows as a text table.
pub fn print(rows: &[Row]) {
    for row in rows {
        let [verdict, what, cost, base, base_cost, ratio, demand] = row.cells();
        println!(
            "{verdict:<4} {what:<44} {cost:>10} µs  {base:<8} {base_cost:>10} µs  ratio {ratio:>5} {demand}"
        );
    }
}

/// Returns the Markdown page with the rows; `command` is the command that writes the page.
pub fn page(title: &str, command: &str, rows: &[Row]) -> String {
    let mut page = format!(
        "# {title}\n\n{}, {}. Written by `{command}`; how it measures is in [benches/README.md](../../benches/README.md).\n\n\
         | | measured | µs | next to | µs | ratio | demand |\n|---|---|--:|---|--:|--:|--:|\n",
        date::today(),
        machine::name(),
    );
    for row in rows {
        page += &format!("| {} |\n", row.cells().join(" | "));
    }
    page
}

/// Returns the argument that follows the option on the command line.
pub fn after(arguments: &[String], option: &str) -> Option<String> {
    let at = arguments.iter().position(|argument| argument == option)?;
    arguments.get(at + 1).cloned()
}

/// Prints the rows, and writes the page if `--markdown FILE` is given.
///
/// # Errors
/// If the file cannot be written.
pub fn report(
    arguments: &[String],
    title: &str,
    command: &str,
    rows: &[Row],
) -> std::io::Result<()> {
    print(rows);
    match after(arguments, "--markdown") {
        Some(path) => {
            let page = page(title, command, rows);
            write_page(&path, &page)
        }
        None => Ok(()),
    }
}

/// Replaces the file of a page, and keeps the hand-written notes of the previous page.
pub fn write_page(path: &str, page: &str) -> std::io::Result<()> {
    let before = std::fs::read_to_string(path).unwrap_or_default();
    std::fs::write(path, page.to_owned() + notes(&before))
}

/// Returns the hand-written notes at the end of a page, with their heading; empty without notes.
fn notes(page: &str) -> &str {
    page.find(NOTES).map_or("", |at| &page[at..])
}

/// Heading before the hand-written notes of a page.
const NOTES: &str = "\n## Notes\n";

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns a row with this threshold and a ratio of 2.5.
    fn row(demanded: Option<f64>) -> Row {
        Row {
            what: "a call".to_owned(),
            base: "codec",
            demanded,
            cost: (Duration::from_micros(2), Duration::from_micros(5)),
        }
    }

    /// A row shows `MISS` for a ratio above the threshold, `ok` otherwise, and nothing without a threshold.
    #[test]
    fn rows_show_if_thresholds_are_met() {
        let verdicts = [Some(2.0), Some(3.0), None].map(|demanded| row(demanded).verdict());
        assert_eq!(verdicts, ["MISS", "ok", ""]);
    }

    /// The page has a heading and a table line with all values for each row.
    #[test]
    fn page_has_one_line_per_row() {
        let page = page("Sessions", "a command", &[row(Some(3.0)), row(None)]);
        assert!(page.starts_with("# Sessions\n"));
        assert!(page.contains("| ok | a call | 5.00 | codec | 2.00 | 2.50 | <= 3.00 |\n"));
        assert!(page.ends_with("|  | a call | 5.00 | codec | 2.00 | 2.50 |  |\n"));
    }

    /// The notes of a page start at their heading and are empty without a heading.
    #[test]
    fn replaced_pages_keep_notes() {
        let before = format!("# Sessions\n\n| a |\n{NOTES}\nBy hand.\n");
        assert_eq!(notes(&before), "\n## Notes\n\nBy hand.\n");
        assert_eq!(notes("# Sessions\n"), "");
    }

    /// The value of an option is the argument after the option, if there is one.
    #[test]
    fn next_argument_is_option_value() {
        let arguments = ["--quick", "--markdown", "x.md"].map(str::to_owned);
        assert_eq!(after(&arguments, "--markdown").as_deref(), Some("x.md"));
        assert_eq!(after(&arguments, "x.md"), None);
    }
}
