//! Output for people and programs: optional colours, and files where `-` is standard output.

use std::fs;
use std::io::Write;
use std::path::Path;

use anyhow::Context;

use crate::terminal::{stderr, stdout};
use crate::text::{Shown, Text, Untrusted, text};

/// Styles of text on a terminal.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// Headings and names.
    Bold,
    /// Secondary text.
    Faint,
    /// Valid or added.
    Green,
    /// Invalid or removed.
    Red,
    /// Warning.
    Yellow,
}

/// Returns true if text on a stream may have colours: the stream is a terminal, and `NO_COLOR` is unset or empty
/// (<https://no-color.org>).
pub fn wants_colour(is_terminal: bool) -> bool {
    let is_refused = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
    let is_dumb = std::env::var_os("TERM").is_some_and(|value| value == "dumb");
    is_terminal && !is_refused && !is_dumb
}

/// Adds terminal colours to text if the field is true; returns text unchanged otherwise.
#[derive(Debug, Clone, Copy)]
pub struct Painter(pub bool);

impl Painter {
    /// Creates a painter for standard output.
    pub fn stdout() -> Self {
        Self(wants_colour(stdout().is_terminal()))
    }

    /// Creates a painter for standard error.
    pub fn stderr() -> Self {
        Self(wants_colour(stderr().is_terminal()))
    }

    /// Returns the text in a style.
    pub fn paint(self, style: Style, text: impl Shown) -> Text {
        let code = match style {
            Style::Bold => "1",
            Style::Faint => "2",
            Style::Green => "32",
            Style::Red => "31",
            Style::Yellow => "33",
        };
        if self.0 {
            text!("\u{1b}[{}m{}\u{1b}[0m", code, text)
        } else {
            text!("{}", text)
        }
    }
}

/// Returns true if the path is `-`, which means standard input or standard output.
pub fn is_standard_stream(file: &Path) -> bool {
    file.as_os_str() == "-"
}

/// Writes a document to a file; the path `-` means standard output.
pub fn write(file: &Path, text: &[u8]) -> anyhow::Result<()> {
    if is_standard_stream(file) {
        let mut out = stdout().lock().document();
        out.write_all(text)?;
        return Ok(out.flush()?);
    }
    fs::write(file, text).with_context(|| format!("cannot write {}", file.display()))
}

/// Creates a file for incremental writing, which only its owner can read: it holds messages of others. The path `-` means
/// standard output.
pub fn create(file: &Path) -> anyhow::Result<Box<dyn Write + Send>> {
    if is_standard_stream(file) {
        return Ok(Box::new(stdout().document()));
    }
    let mut options = fs::OpenOptions::new();
    options.write(true).create(true).truncate(true);
    let created = private(&mut options).open(file);
    let created = created.with_context(|| format!("cannot write {}", file.display()))?;
    Ok(Box::new(created))
}

/// Lets only the owner of a file that is created read and write it.
pub fn private(options: &mut fs::OpenOptions) -> &mut fs::OpenOptions {
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(options, 0o600);
    options
}

/// Formats rows as a table with aligned columns; the last column is truncated to the width of a terminal.
pub fn format_table(heading: &[&str], rows: &[Vec<String>], painter: Painter) -> Text {
    let count = heading.len();
    let width = |text: &str| text.chars().count();
    let mut widths: Vec<usize> = heading.iter().map(|text| width(text)).collect();
    for row in rows {
        for (index, cell) in row.iter().enumerate().take(count) {
            widths[index] = widths[index].max(width(cell)).min(MAX_COLUMN_WIDTH);
        }
    }
    let line = |cells: &[String]| {
        let mut line = String::new();
        for (index, cell) in cells.iter().enumerate().take(count) {
            let is_last = index + 1 == count;
            let room = if is_last {
                MAX_LINE_WIDTH
                    .saturating_sub(width(&line))
                    .max(MAX_COLUMN_WIDTH)
            } else {
                MAX_COLUMN_WIDTH
            };
            let text = truncate_text(cell, room);
            line.push_str(&text);
            if !is_last {
                let gap = (widths[index] + 2).saturating_sub(width(&text)).max(2);
                line.push_str(&" ".repeat(gap));
            }
        }
        line.trim_end().to_owned()
    };
    let heading: Vec<String> = heading.iter().map(|text| (*text).to_owned()).collect();
    let mut text = Text::default();
    text.push_line(&painter.paint(Style::Bold, Untrusted(&line(&heading))));
    for row in rows {
        text.push_line(&text!("{}", Untrusted(&line(row))));
    }
    text
}

/// Maximum width of a column other than the last one, in characters.
const MAX_COLUMN_WIDTH: usize = 44;
/// Maximum width of a line, in characters.
const MAX_LINE_WIDTH: usize = 118;

/// Returns the first line of a text, truncated to `room` characters with an ellipsis.
fn truncate_text(text: &str, room: usize) -> String {
    let text = Untrusted(text.lines().next().unwrap_or_default()).to_string();
    match text.char_indices().nth(room) {
        Some(_) => {
            let kept: String = text.chars().take(room.saturating_sub(1)).collect();
            format!("{kept}…")
        }
        None => text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Columns have the width of their longest cell, and a cell contains only the first line of its text.
    #[test]
    fn tables_align_their_columns() {
        let rows = [["a", "one\ntwo"], ["long name", "\u{1b}[31m"]];
        let rows = rows.map(|row| row.map(str::to_owned).to_vec());
        let text = format_table(&["name", "words"], &rows, Painter(false));
        assert_eq!(
            text.as_str(),
            "name       words\na          one\nlong name  \\u{1b}[31m\n"
        );
    }

    /// A painter without colours returns the text unchanged.
    #[test]
    fn text_is_unchanged_without_colour() {
        assert_eq!(Painter(false).paint(Style::Red, "x").as_str(), "x");
        let red = Painter(true).paint(Style::Red, "x");
        assert_eq!(red.as_str(), "\u{1b}[31mx\u{1b}[0m");
    }
}
