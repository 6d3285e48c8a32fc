//! Forms in which the doctor prints its report: text, JSON, annotations of GitHub Actions, and a JUnit file.

use std::path::PathBuf;

use clap::Args;
use serde_json::json;

use super::examined::ExaminedServer;
use super::junit;
use super::report::{Finding, Report};
use crate::output::{Painter, Style, is_standard_stream};
use crate::rules::Level;
use crate::terminal::{stderr, stdout};
use crate::text::{Text, Untrusted, count, text};

/// Forms of the report besides text.
#[derive(Args)]
pub struct Formats {
    /// Print one JSON object.
    #[arg(long)]
    pub json: bool,
    /// Print annotations of GitHub Actions, besides the report.
    #[arg(long, conflicts_with = "json")]
    pub github: bool,
    /// Write a report in the format of JUnit to a file; `-` is standard output, and the other report goes to standard error then.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
}

/// Prints the identity of the server and the findings; `is_strict` is true if violations of SHOULD decide the exit code.
pub fn print(
    formats: &Formats,
    is_strict: bool,
    examined: &ExaminedServer,
    report: &Report,
) -> anyhow::Result<()> {
    if let Some(file) = &formats.junit {
        junit::write(file, is_strict, report)?;
    }
    if formats.json {
        return Ok(stdout().pretty_json(&json!({
            "server": examined.info,
            "revisions": examined.revisions,
            "checks": report.checks,
            "notCalled": report.tools_not_called(),
            "findings": report.to_lines(),
        }))?);
    }
    let is_stdout_taken = formats.junit.as_deref().is_some_and(is_standard_stream);
    if is_stdout_taken {
        let report = to_text(formats, is_strict, examined, report, Painter::stderr());
        Ok(stderr().text(&report)?)
    } else {
        let report = to_text(formats, is_strict, examined, report, Painter::stdout());
        Ok(stdout().text(&report)?)
    }
}

/// Reports an examination that has failed, in the forms that other programs read.
pub fn print_failure(formats: &Formats, error: &anyhow::Error) -> anyhow::Result<()> {
    let words = crate::describe(error);
    let lines: Vec<String> = words.as_str().lines().map(str::to_owned).collect();
    if let Some(file) = &formats.junit {
        junit::write_failure(file, &lines)?;
    }
    if formats.github {
        let words = annotation_lines(&lines);
        let line = text!("::error title=mcp-exact doctor::{}", Untrusted(&words));
        let is_stdout_taken = formats.junit.as_deref().is_some_and(is_standard_stream);
        if is_stdout_taken {
            stderr().line(&line)?;
        } else {
            stdout().line(&line)?;
        }
    }
    Ok(())
}

/// Formats the report as text.
fn to_text(
    formats: &Formats,
    is_strict: bool,
    examined: &ExaminedServer,
    report: &Report,
    painter: Painter,
) -> Text {
    let mut out = Text::default();
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
    out.push_line(&heading);
    out.push(&report.to_text(painter));
    out.push_line(&text!("\n{}", summary(report, painter)));
    let not_called = report.not_called_line();
    if let Some(line) = &not_called {
        out.push_line(&text!("not called: {}", Untrusted(line)));
    }
    if formats.github {
        for finding in report.findings() {
            out.push_line(&annotation(finding, is_strict));
        }
        if let Some(line) = not_called {
            let line = annotation_lines(&[line]);
            out.push_line(&text!("::notice title=not called::{}", Untrusted(&line)));
        }
    }
    out
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

/// Returns lines as the message of an annotation.
fn annotation_lines(lines: &[String]) -> String {
    let lines = lines.iter().map(|line| {
        let line = Untrusted(line).to_string();
        line.replace('%', "%25")
    });
    lines.collect::<Vec<_>>().join("%0A")
}

/// Formats a finding as an annotation of GitHub Actions: a workflow command, whose message ends with its line.
fn annotation(finding: &Finding, is_strict: bool) -> Text {
    let kind = match finding.rule.level {
        _ if finding.is_failure(is_strict) => "error",
        Level::Note => "notice",
        _ => "warning",
    };
    let found = format!(
        "{}{}. “{}” Repair: {}",
        finding.words,
        finding.subject_suffix(),
        finding.rule.sentence,
        finding.repair_url()
    );
    let lines: Vec<String> = [found].into_iter().chain(finding.last_words()).collect();
    text!(
        "::{} title={} {}::{}",
        kind,
        finding.level(),
        finding.rule.id,
        Untrusted(&annotation_lines(&lines))
    )
}
