//! Report of the doctor in the format of JUnit: a test case for each rule in each revision, whose name is the same in every run.

use std::path::Path;

use super::report::{Finding, Report};
use crate::output::create;
use crate::text::Untrusted;

/// Name of the test case that says whether the server could be examined.
const ANSWERS: &str = "the server answers";
/// Name of the test case about the tools that were not called.
const CALLED: &str = "every tool is called";

/// Test case.
struct TestCase {
    /// Name of its class: `doctor`, and the revision if there is one.
    class: String,
    name: &'static str,
    /// Element that says how it has ended, with a message and lines.
    ending: Option<(Ending, String, Vec<String>)>,
}

/// How a test case has ended, if it has not passed without a word.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Ending {
    Failure,
    Error,
    Skipped,
    /// It has passed.
    Output,
}

impl Ending {
    /// Returns the name of the element.
    fn element(self) -> &'static str {
        match self {
            Self::Failure => "failure",
            Self::Error => "error",
            Self::Skipped => "skipped",
            Self::Output => "system-out",
        }
    }
}

/// Writes the report: a test case for each rule that the server was examined by in a revision, with the findings in it.
pub fn write(file: &Path, is_strict: bool, report: &Report) -> anyhow::Result<()> {
    let mut cases = vec![TestCase::of_server(ANSWERS, None)];
    for ((revision, rule), findings) in report.examined() {
        cases.push(TestCase {
            class: format!("doctor.{revision}"),
            name: rule,
            ending: ending(&findings, is_strict),
        });
    }
    let not_called = report.not_called_line();
    let skipped = not_called.map(|line| (Ending::Skipped, format!("not called: {line}"), vec![]));
    cases.push(TestCase::of_server(CALLED, skipped));
    write_cases(file, &cases)
}

/// Writes the report of a server that could not be examined.
pub fn write_failure(file: &Path, words: &[String]) -> anyhow::Result<()> {
    let first = words.first().cloned().unwrap_or_default();
    let ending = (Ending::Error, first, words.to_vec());
    write_cases(file, &[TestCase::of_server(ANSWERS, Some(ending))])
}

/// Returns how the test case of findings of one rule ends.
fn ending(findings: &[&Finding], is_strict: bool) -> Option<(Ending, String, Vec<String>)> {
    let first = findings.first()?;
    let is_failed = findings.iter().any(|finding| finding.is_failure(is_strict));
    let ending = if is_failed {
        Ending::Failure
    } else {
        Ending::Output
    };
    let more = match findings.len() {
        1 => String::new(),
        count => format!(", and {} more", count - 1),
    };
    let message = format!("{}{}{more}", first.words, first.subject_suffix());
    let mut lines = vec![
        format!(
            "{} {}: {}",
            first.level(),
            first.rule.id,
            first.rule.sentence
        ),
        first.page_url(),
        format!("repair: {}", first.repair_url()),
    ];
    lines.extend(findings.iter().flat_map(|finding| finding.lines()));
    Some((ending, message, lines))
}

impl TestCase {
    /// Creates a test case that is of no revision.
    fn of_server(name: &'static str, ending: Option<(Ending, String, Vec<String>)>) -> Self {
        Self {
            class: "doctor".to_owned(),
            name,
            ending,
        }
    }

    /// Returns the element of the test case.
    fn to_xml(&self) -> String {
        let start = format!(
            "  <testcase classname=\"{}\" name=\"{}\"",
            escape_xml(&self.class),
            escape_xml(self.name)
        );
        let Some((ending, message, lines)) = &self.ending else {
            return format!("{start}/>\n");
        };
        let element = ending.element();
        let message = match ending {
            Ending::Output => String::new(),
            _ => format!(" message=\"{}\"", escape_xml(message)),
        };
        let lines: Vec<String> = lines.iter().map(|line| escape_xml(line)).collect();
        let text = lines.join("\n");
        format!("{start}><{element}{message}>{text}</{element}></testcase>\n")
    }
}

fn write_cases(file: &Path, cases: &[TestCase]) -> anyhow::Result<()> {
    let count = |wanted: Ending| {
        let endings = cases.iter().filter_map(|case| case.ending.as_ref());
        endings.filter(|(ending, ..)| *ending == wanted).count()
    };
    let mut xml = format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"mcp-exact doctor\" tests=\"{}\" failures=\"{}\" \
         errors=\"{}\" skipped=\"{}\">\n",
        cases.len(),
        count(Ending::Failure),
        count(Ending::Error),
        count(Ending::Skipped),
    );
    cases.iter().for_each(|case| xml.push_str(&case.to_xml()));
    xml.push_str("</testsuite>\n");
    let mut out = create(file)?;
    Ok(out.write_all(xml.as_bytes())?)
}

/// Escapes a line for XML; characters that XML does not allow, and line breaks, are shown as escapes.
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

    /// Lines are lines, and what a server has written is none of its own.
    #[test]
    fn lines_are_kept() {
        let lines = vec!["one".to_owned(), "two\nthree".to_owned()];
        let case = TestCase::of_server(ANSWERS, Some((Ending::Error, lines[0].clone(), lines)));
        assert_eq!(
            case.to_xml(),
            "  <testcase classname=\"doctor\" name=\"the server answers\"><error message=\"one\">one\ntwo\\nthree</error></testcase>\n"
        );
    }
}
