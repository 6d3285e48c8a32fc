//! Picture of a recorded trace for the book: a line for each span, and its time as a bar.

use std::fmt::Write as _;

use super::trace::Recorded;

/// The picture in the book.
const FILE: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/book/src/trace.svg");

/// Height of a line, width of the names and width of the bars, in pixels.
const SIZES: (usize, f64, f64) = (22, 380.0, 420.0);

/// Checks that the picture shows the spans of the trace in order; with `UPDATE_EXPECT`, writes the picture.
pub(super) fn check(trace: &[Recorded]) {
    let drawn = draw(trace);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(FILE, &drawn).expect("written");
    }
    let kept = std::fs::read_to_string(FILE).expect("the picture");
    assert_eq!(
        names(&kept),
        names(&drawn),
        "UPDATE_EXPECT=1 draws the picture anew"
    );
}

/// Returns the lines of a picture that name the spans.
fn names(picture: &str) -> Vec<&str> {
    let lines = picture.lines();
    lines
        .filter(|line| line.contains("class=\"name\""))
        .collect()
}

/// Draws a trace as an SVG.
fn draw(trace: &[Recorded]) -> String {
    let (line, left, bars) = SIZES;
    let begin = trace.iter().map(|span| span.times.0).min().unwrap_or(0);
    let end = trace.iter().map(|span| span.times.1).max().unwrap_or(1);
    #[allow(clippy::cast_precision_loss, reason = "a position in a picture")]
    let at = |time: u64| (time - begin) as f64 / (end - begin).max(1) as f64 * bars;
    #[allow(clippy::cast_precision_loss, reason = "a text in a picture")]
    let milliseconds = |from: u64, to: u64| (to - from) as f64 / 1e6;
    let height = line * (trace.len() + 2);
    let width = left + bars + 80.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" font-family=\"sans-serif\" font-size=\"12\">\n\
         <title>A recorded trace of calls through the gateway</title>\n\
         <rect width=\"{width}\" height=\"{height}\" fill=\"#ffffff\"/>\n"
    );
    for (index, (process, colour)) in COLOURS.iter().enumerate() {
        #[allow(clippy::cast_precision_loss, reason = "four processes")]
        let x = 10.0 + 90.0 * index as f64;
        let y = line - 8;
        writeln!(
            svg,
            "<rect x=\"{x}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{colour}\"/><text x=\"{}\" y=\"{y}\">{process}</text>",
            y - 10,
            x + 18.0,
        )
        .expect("written");
    }
    for (index, span) in trace.iter().enumerate() {
        let y = line * (index + 2) - 7;
        let x = 10 + 14 * span.depth;
        let (from, to) = span.times;
        let colour = COLOURS.iter().find(|(process, _)| *process == span.process);
        let colour = colour.map_or("#888888", |(_, colour)| colour);
        let (text, error) = if span.is_error {
            ("#b00020", " (error)")
        } else {
            ("#222222", "")
        };
        let name = span.name.replace('&', "&amp;").replace('<', "&lt;");
        let kind = span.kind;
        writeln!(
            svg,
            "<text class=\"name\" x=\"{x}\" y=\"{y}\" fill=\"{text}\">{kind} {name}{error}</text>"
        )
        .expect("written");
        let (start, length) = (left + at(from), (at(to) - at(from)).max(1.5));
        writeln!(
            svg,
            "<rect x=\"{start:.1}\" y=\"{}\" width=\"{length:.1}\" height=\"14\" fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{y}\" fill=\"#555555\">{:.1} ms</text>",
            y - 11,
            start + length + 5.0,
            milliseconds(from, to),
        )
        .expect("written");
    }
    svg.push_str("</svg>\n");
    svg
}

/// Processes with the colours of their spans.
const COLOURS: [(&str, &str); 4] = [
    ("agent", "#7f7f7f"),
    ("client", "#4c78a8"),
    ("gateway", "#f58518"),
    ("server", "#54a24b"),
];
