//! Draws the results of a benchmark run as an SVG bar chart: geometric means of decoding and encoding times relative to `serde_json::Value`, readable on
//! light and dark pages.

use std::fmt::Write as _;

use crate::compare::{Operation, Run};
use crate::contestant::Role;

/// Horizontal position at which the bars start, in pixels.
const LEFT: f64 = 150.0;
/// Length of the longest bar, in pixels.
const BARS: f64 = 480.0;
/// Height of a bar, in pixels.
const BAR: f64 = 20.0;
/// Vertical distance between the tops of two bars, in pixels.
const STEP: f64 = 28.0;

/// Style sheet of the chart.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}\
.small{font-size:12px;fill:#59636e}.bar{fill:#9aa4af}.ours{fill:#c2410c}.one{stroke:#59636e;stroke-dasharray:3 3}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.bar{fill:#57606a}.ours{fill:#fb923c}\
.one{stroke:#9198a1}}";

/// Returns the bar chart of a run as an SVG document.
pub fn chart(run: &Run) -> String {
    let mut body = String::new();
    let mut y = 30.0;
    let _ = writeln!(
        body,
        r#"<text class="title" x="12" y="{y}">Time relative to serde_json::Value, shorter is faster</text>"#
    );
    y += 20.0;
    let _ = writeln!(
        body,
        r#"<text class="small" x="12" y="{y}">Geometric mean over {} messages, {}</text>"#,
        run.rows.len(),
        run.date
    );
    y += 14.0;
    for operation in Operation::BOTH {
        y = group(run, operation, y, &mut body);
    }
    let (width, height) = (LEFT + BARS + 60.0, y + 14.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"Decoding and encoding time by library\">\n<style>{STYLE}</style>\n{body}</svg>\n"
    )
}

/// Draws the bars of an operation below the vertical position `top`; returns the vertical position of their lower end.
fn group(run: &Run, operation: Operation, top: f64, body: &mut String) -> f64 {
    let bars: Vec<(usize, f64)> = (0..run.libraries.len())
        .filter_map(|index| Some((index, run.mean(operation, index, run.baseline)?.0)))
        .collect();
    let largest = bars.iter().map(|bar| bar.1).fold(1.0, f64::max);
    let scale = BARS / largest;
    let title = match operation {
        Operation::Decode => "Decode",
        Operation::Encode => "Encode",
    };
    let mut y = top + 24.0;
    let _ = writeln!(body, r#"<text class="title" x="12" y="{y}">{title}</text>"#);
    y += 12.0;
    let one = LEFT + scale;
    let bottom = y + STEP * bars.len() as f64;
    for (index, mean) in bars {
        let (name, role) = run.libraries[index];
        let class = if role == Role::Ours { "ours" } else { "bar" };
        let (baseline, width) = (y + 15.0, mean * scale);
        let _ = writeln!(
            body,
            r#"<text x="{}" y="{baseline}" text-anchor="end">{name}</text>"#,
            LEFT - 8.0
        );
        let _ = writeln!(
            body,
            r#"<rect class="{class}" x="{LEFT}" y="{y}" width="{width:.1}" height="{BAR}" rx="2"/>"#
        );
        let _ = writeln!(
            body,
            r#"<text x="{:.1}" y="{baseline}">{mean:.2}</text>"#,
            LEFT + width + 6.0
        );
        y += STEP;
    }
    let _ = writeln!(
        body,
        r#"<line class="one" x1="{one:.1}" x2="{one:.1}" y1="{}" y2="{bottom}"/>"#,
        top + 32.0
    );
    bottom
}
