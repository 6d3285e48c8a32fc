//! Bar chart of a run: calls per second over stdio and HTTP on a logarithmic scale, readable on light and dark pages.

use std::fmt::Write as _;

use bench_record::date;

use crate::markdown::digits;
use crate::run::{Measure, Run};
use crate::stats::median;

/// Horizontal position at which the bars start, in pixels.
const LEFT: f64 = 150.0;
/// Length of the longest bar, in pixels.
const BARS: f64 = 460.0;
/// Height of a bar, in pixels.
const BAR: f64 = 20.0;
/// Vertical distance between the tops of two bars, in pixels.
const STEP: f64 = 28.0;

/// Style sheet of the chart.
const STYLE: &str = "text{font:13px system-ui,sans-serif;fill:#1f2328}.title{font-weight:600;font-size:15px}\
.small{font-size:12px;fill:#59636e}.bar{fill:#9aa4af}.ours{fill:#c2410c}\
@media(prefers-color-scheme:dark){text{fill:#e6edf3}.small{fill:#9198a1}.bar{fill:#57606a}.ours{fill:#fb923c}}";

/// Returns the bar chart of a run as an SVG document.
pub fn chart(run: &Run) -> String {
    let mut body = String::new();
    let title = "Calls of an echo tool a second, longer is faster";
    let _ = writeln!(body, r#"<text class="title" x="12" y="30">{title}</text>"#);
    let _ = writeln!(
        body,
        r#"<text class="small" x="12" y="50">Median of interleaved rounds, logarithmic scale, {}</text>"#,
        date::today()
    );
    let mut y = 64.0;
    for measure in [Measure::StdioRate, Measure::HttpRate] {
        y = group(run, measure, y, &mut body);
    }
    let (width, height) = (LEFT + BARS + 100.0, y + 14.0);
    format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" \
         role=\"img\" aria-label=\"{title}\">\n<style>{STYLE}</style>\n{body}</svg>\n"
    )
}

/// Draws the bars of a measurement below the vertical position `top`; returns the vertical position of their lower end.
fn group(run: &Run, measure: Measure, top: f64, body: &mut String) -> f64 {
    let bars: Vec<(&str, f64)> = run
        .series
        .iter()
        .filter(|series| series.measure == measure)
        .map(|series| (series.server, median(&series.samples).value))
        .collect();
    let largest = bars.iter().map(|bar| bar.1).fold(1.0, f64::max);
    let least = bars.iter().map(|bar| bar.1).fold(largest, f64::min);
    // The shortest bar keeps a tenth of the width.
    let low = (least.ln() - 0.1 * largest.ln()) / 0.9;
    let mut y = top + 24.0;
    let title = measure.title();
    let _ = writeln!(body, r#"<text class="title" x="12" y="{y}">{title}</text>"#);
    y += 12.0;
    for (name, rate) in bars {
        let class = if name.contains("ours") { "ours" } else { "bar" };
        let width = match largest.ln() - low {
            span if span > 0.0 => BARS * (rate.ln() - low) / span,
            _ => BARS,
        };
        let baseline = y + 15.0;
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
            r#"<text x="{:.1}" y="{baseline}">{}</text>"#,
            LEFT + width + 6.0,
            digits(rate)
        );
        y += STEP;
    }
    y
}
