//! Text report of a run: tables of times, geometric means and allocations, and the reasons why libraries do not support
//! messages.

use std::fmt::Write as _;

use crate::compare::{Operation, Run, geometric};
use crate::contestant::Role;
use crate::entry::{Entry, Layout};
use crate::measure::Figures;

/// Returns the report without the thresholds.
pub fn text(run: &Run) -> String {
    let mut out = heading(run);
    for operation in Operation::BOTH {
        out.push_str(&times(run, operation));
    }
    out.push_str(&means(run));
    out.push_str(&heap(run));
    out.push_str(&notes(run));
    out
}

/// Removes trailing spaces from a report, which is then shown as a code block.
pub fn fenced(report: &str) -> String {
    report
        .lines()
        .map(|line| format!("{}\n", line.trim_end()))
        .collect()
}

/// Returns the heading of the report: date, number of messages and samples, and method.
fn heading(run: &Run) -> String {
    format!(
        "mcp-exact codec benchmark, {}\n\
         {} messages, {} samples of {:?} CPU time each, the least disturbed one counts; plain release profile, system allocator.\n\
         Times are relative to serde_json::Value. Decoding includes the drop; encoding goes into a buffer that is kept.\n",
        run.date,
        run.rows.len(),
        run.effort.samples,
        run.effort.sample,
    )
}

/// Formats rows of cells as lines; the first column is left-aligned, the others are right-aligned.
pub fn table(rows: &[Vec<String>]) -> String {
    let columns = rows.iter().map(Vec::len).max().unwrap_or(0);
    let width = |column: usize| {
        let cells = rows.iter().filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(width).collect();
    let mut out = String::new();
    for row in rows {
        let mut line = String::new();
        for (column, cell) in row.iter().enumerate() {
            // Writing to a string cannot fail.
            let _ = if column == 0 {
                write!(line, "{cell:<width$}", width = widths[column])
            } else {
                write!(line, "  {cell:>width$}", width = widths[column])
            };
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
    out
}

/// Returns the table with the times of an operation for all messages and libraries.
fn times(run: &Run, operation: Operation) -> String {
    let mut head = vec![
        operation.name().to_owned(),
        "bytes".to_owned(),
        "Value ns".to_owned(),
        "ours ns".to_owned(),
    ];
    let columns: Vec<usize> = (0..run.libraries.len())
        .filter(|&index| index != run.baseline)
        .collect();
    head.extend(
        columns
            .iter()
            .map(|&index| run.libraries[index].0.to_owned()),
    );
    let mut rows = vec![head];
    for row in &run.rows {
        let absolute = |library| {
            let time = row
                .figures(library)
                .and_then(|figures| operation.time(figures));
            time.map_or_else(|| "n/a".to_owned(), |time| format!("{time:.0}"))
        };
        let mut cells = vec![
            row.entry.name.clone(),
            row.entry.bytes.len().to_string(),
            absolute(run.baseline),
            absolute(run.ours),
        ];
        cells.extend(
            columns
                .iter()
                .map(|&library| ratio(run.ratio(row, operation, library, run.baseline))),
        );
        rows.push(cells);
    }
    for (name, usual_only) in [("geometric mean", false), ("of the usual order", true)] {
        let mut cells = vec![name.to_owned(), String::new(), String::new(), String::new()];
        cells.extend(columns.iter().map(|&library| {
            let choose = |entry: &Entry| !usual_only || entry.layout == Layout::Usual;
            let ratios = run.ratios(operation, library, run.baseline, choose);
            ratio(geometric(ratios.map(|it| it.ratio)).map(|mean| mean.0))
        }));
        rows.push(cells);
    }
    format!("\n{}", table(&rows))
}

/// Formats a ratio with three decimals; returns `n/a` without a value.
fn ratio(ratio: Option<f64>) -> String {
    ratio.map_or_else(|| "n/a".to_owned(), |ratio| format!("{ratio:.3}"))
}

/// Returns the lines with the speed of our library relative to each other library, as geometric means.
fn means(run: &Run) -> String {
    let mut out = String::from(
        "\nmcp-exact beside the others, geometric mean over the messages that both can do:\n",
    );
    for library in (0..run.libraries.len()).filter(|&index| index != run.ours) {
        for operation in Operation::BOTH {
            let Some((mean, count)) = run.mean(operation, library, run.ours) else {
                continue;
            };
            let _ = writeln!(
                out,
                "  {}: {mean:.2} times the speed of {} ({count} messages)",
                operation.name(),
                run.libraries[library].0,
            );
        }
    }
    out
}

/// Returns the table with the allocations and the peak heap use of decoding.
fn heap(run: &Run) -> String {
    let columns: Vec<usize> = (0..run.libraries.len())
        .filter(|&index| run.libraries[index].1 != Role::Limit)
        .collect();
    let mut head = vec![
        "decode: allocations, peak heap / message".to_owned(),
        "bytes".to_owned(),
    ];
    for &index in &columns {
        head.extend([run.libraries[index].0.to_owned(), "peak".to_owned()]);
    }
    let mut rows = vec![head];
    for row in &run.rows {
        let mut cells = vec![row.entry.name.clone(), row.entry.bytes.len().to_string()];
        for &index in &columns {
            match row.figures(index) {
                Some(Figures { heap, .. }) => {
                    let peak = heap.peak as f64 / row.entry.bytes.len() as f64;
                    cells.extend([heap.count.to_string(), format!("{peak:.2}")]);
                }
                None => cells.extend(["n/a".to_owned(), String::new()]),
            }
        }
        rows.push(cells);
    }
    format!("\n{}", table(&rows))
}

/// Returns the notes of the report: noise, reasons for unsupported messages, and messages that are encoded differently.
fn notes(run: &Run) -> String {
    let mut out = String::from("\nNotes\n");
    let (noisy, all) = noise(run);
    let _ = writeln!(
        out,
        "  noise: in {noisy} of {all} measurements the median is more than a quarter above the least disturbed sample"
    );
    for (index, (name, _)) in run.libraries.iter().enumerate() {
        let cells = || {
            run.rows
                .iter()
                .map(|row| (&row.entry.name, &row.cells[index]))
        };
        for (entry, reason) in
            cells().filter_map(|(entry, cell)| Some((entry, cell.as_ref().err()?)))
        {
            let reason: String = reason.chars().take(110).collect();
            let _ = writeln!(out, "  {name}: n/a for {entry}: {reason}");
        }
        let changed: Vec<&str> = cells()
            .filter(|(_, cell)| {
                matches!(
                    cell,
                    Ok(Figures {
                        equal: Some(false),
                        ..
                    })
                )
            })
            .map(|(entry, _)| entry.as_str())
            .collect();
        if !changed.is_empty() {
            let _ = writeln!(
                out,
                "  {name}: {} messages come back changed: {}",
                changed.len(),
                changed.join(", ")
            );
        }
    }
    out
}

/// Returns the number of measurements whose median is more than a quarter above the minimum, and the number of all
/// measurements.
fn noise(run: &Run) -> (usize, usize) {
    let cells = run.rows.iter().flat_map(|row| row.cells.iter().flatten());
    let times: Vec<_> = cells
        .flat_map(|figures| [Some(figures.decode), figures.encode])
        .flatten()
        .collect();
    let wide = times.iter().filter(|time| time.median > time.min * 1.25);
    (wide.count(), times.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The first column of a table is left-aligned, and the other columns are right-aligned.
    #[test]
    fn only_first_column_is_left_aligned() {
        let row = |cells: [&str; 3]| cells.map(str::to_owned).to_vec();
        let text = table(&[row(["name", "ns", "ratio"]), row(["a", "12345", "n/a"])]);
        assert_eq!(text, "name     ns  ratio\na     12345    n/a\n");
    }
}
