//! Forms in which the doctor prints its report: text, JSON, annotations of GitHub Actions, and a JUnit file.

use std::fmt::Write as _;
use std::path::Path;

use serde_json::json;

use super::report::{Finding, Report};
use super::{Arguments, ExaminedServer};
use crate::output::{Painter, Style, create};
use crate::rules::Level;
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, text};

/// Prints the identity of the server and the findings.
pub fn print(
    arguments: &Arguments,
    examined: &ExaminedServer,
    report: &Report,
) -> anyhow::Result<()> {
    if let Some(file) = &arguments.junit {
        write_junit(file, arguments.strict, examined, report)?;
    }
    let mut out = stdout();
    if arguments.json {
        return Ok(out.pretty_json(&json!({
            "server": examined.info,
            "revisions": examined.revisions,
            "checks": report.checks,
            "findings": report.to_lines(),
        }))?);
    }
    let painter = Painter::stdout();
    let word = |name: &str| Untrusted(examined.info[name].as_str().unwrap_or("?"));
    let mut heading = text!(
        "{} {}, revisions: {}",
        painter.paint(Style::Bold, word("name")),
        word("version"),
        Untrusted(&examined.revisions.join(", "))
    );
    if examined.has_more {
        heading.push(&"; --all-revisions examines older ones, too".into());
    }
    out.line(&heading)?;
    out.text(&report.to_text(painter))?;
    out.line(&text!("\n{}", summary(report, painter)))?;
    if arguments.github {
        for finding in report.findings() {
            out.line(&annotation(finding, arguments.strict))?;
        }
    }
    Ok(())
}

/// Returns a number with the noun that it counts.
fn count(number: usize, noun: &'static str) -> Text {
    let plural = if number == 1 { "" } else { "s" };
    text!("{} {}{}", number, noun, plural)
}

/// Summarizes the findings in one line.
fn summary(report: &Report, painter: Painter) -> Text {
    let [must, should, note] =
        [Level::Must, Level::Should, Level::Note].map(|level| report.count(level));
    let mut parts = Vec::new();
    if must > 0 {
        parts.push(text!("{} of a MUST", count(must, "finding")));
    }
    if should > 0 {
        parts.push(text!("{} of a SHOULD", count(should, "finding")));
    }
    let words = match (must, should) {
        (0, 0) => painter.paint(Style::Green, "no rule is violated"),
        (0, _) => painter.paint(Style::Yellow, Text::join(parts, ", ")),
        _ => painter.paint(Style::Red, Text::join(parts, ", ")),
    };
    let notes = match note {
        0 => Text::default(),
        note => text!(", {}", count(note, "note")),
    };
    text!("{}{}; {}", words, notes, count(report.checks, "check"))
}

/// Returns true if a finding decides the exit code.
fn is_failure(finding: &Finding, is_strict: bool) -> bool {
    match finding.rule.level {
        Level::Must => true,
        Level::Should => is_strict,
        Level::Note => false,
    }
}

/// Formats a finding as an annotation of GitHub Actions: a workflow command, whose message ends with its line.
fn annotation(finding: &Finding, is_strict: bool) -> Text {
    let kind = match finding.rule.level {
        _ if is_failure(finding, is_strict) => "error",
        Level::Note => "notice",
        _ => "warning",
    };
    let escape = |words: &str| words.replace('%', "%25");
    let words = escape(&finding.words);
    text!(
        "::{} title={} {}::{}{}. {} {}",
        kind,
        finding.level(),
        finding.rule.id,
        Untrusted(&words),
        Untrusted(&escape(&finding.subject_suffix())),
        finding.rule.sentence,
        Untrusted(&finding.repair_url())
    )
}

/// Writes the report as JUnit XML: a test case for each finding, and one for the examination.
fn write_junit(
    file: &Path,
    is_strict: bool,
    examined: &ExaminedServer,
    report: &Report,
) -> anyhow::Result<()> {
    let failures = report
        .findings()
        .filter(|finding| is_failure(finding, is_strict));
    let (tests, failures) = (report.findings().count() + 1, failures.count());
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"mcp-exact doctor\" tests=\"{tests}\" failures=\"{failures}\">\n"
    );
    let name = examined.info["name"].as_str().unwrap_or("?");
    _ = writeln!(
        xml,
        "  <testcase classname=\"doctor\" name=\"{} speaks {}\"/>",
        escape_xml(name),
        examined.revisions.join(", ")
    );
    for finding in report.findings() {
        _ = write!(
            xml,
            "  <testcase classname=\"{}\" name=\"{}{}\">",
            finding.rule.id,
            escape_xml(&finding.words),
            escape_xml(&finding.subject_suffix())
        );
        let details = escape_xml(&format!(
            "{} {}: {}\n{}",
            finding.level(),
            finding.rule.id,
            finding.rule.sentence,
            finding.repair_url()
        ));
        let words = escape_xml(&finding.words);
        if is_failure(finding, is_strict) {
            _ = write!(xml, "<failure message=\"{words}\">{details}</failure>");
        } else {
            _ = write!(xml, "<system-out>{details}</system-out>");
        }
        xml.push_str("</testcase>\n");
    }
    xml.push_str("</testsuite>\n");
    let mut out = create(file)?;
    Ok(out.write_all(xml.as_bytes())?)
}

/// Escapes text for XML; characters that XML does not allow are shown as escapes.
fn escape_xml(text: &str) -> String {
    let text = Untrusted(text).to_string();
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            '\u{fffe}' | '\u{ffff}' => escaped.extend(letter.escape_unicode()),
            letter => escaped.push(letter),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Text of a server is text in XML.
    #[test]
    fn xml_is_escaped() {
        let text = "<a b=\"c\">&\u{1b}\u{ffff}\n";
        assert_eq!(
            escape_xml(text),
            "&lt;a b=&quot;c&quot;&gt;&amp;\\u{1b}\\u{ffff}\\n"
        );
    }
}
