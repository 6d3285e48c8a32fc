//! One static HTML page for several revisions: migration tasks between two revisions, and the history of all
//! definitions.
//!
//! The page loads no external resources. This module fills the templates in `html/`. Without scripts all details are
//! open.

mod advice;
mod options;
mod reach;
mod rows;

use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;

use crate::diff::{Diff, diff};
use crate::ir::Ir;
use crate::render::words::{change_counts, note_words};
use options::{CONSEQUENCES, Consequence};

pub use options::{PageOptions, SchemaSource};

/// Template of the page.
const PAGE: &str = include_str!("html/page.html");
/// Template of a matrix.
const MATRIX: &str = include_str!("html/matrix.html");
/// CSS of the page.
const STYLE: &str = include_str!("html/page.css");
/// JavaScript of the page.
const SCRIPT: &str = include_str!("html/page.js");

/// A revision with its links.
#[derive(Serialize)]
struct Revision<'i> {
    /// Identifier of the revision.
    id: &'i str,
    /// URL of its specification.
    specification: String,
    /// URL of its changelog.
    changelog: String,
}

/// Counts and notes for two consecutive revisions.
#[derive(Serialize)]
struct Step<'d> {
    /// Identifier of the older revision.
    from: &'d str,
    /// Identifier of the newer revision.
    to: &'d str,
    /// Counts of changes, with their labels.
    totals: Vec<(&'static str, String)>,
    /// Changes that concern many definitions, as phrases.
    notes: Vec<String>,
}

/// Returns a page with migration advice, and a matrix of methods and types by revision; `revisions` must be ordered,
/// oldest first.
///
/// # Errors
/// No revision causes an error; an error is a defect of a template.
pub fn html(revisions: &[Ir], options: &PageOptions) -> Result<String, minijinja::Error> {
    let diffs: Vec<Diff> = revisions
        .windows(2)
        .map(|pair| diff(&pair[0], &pair[1]))
        .collect();
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_filter("breakable", with_line_breaks);
    environment.add_template("page.html", PAGE)?;
    environment.add_template("matrix.html", MATRIX)?;
    let ids: Vec<&str> = revisions.iter().map(|ir| ir.revision.as_str()).collect();
    let listed = ids.iter().map(|id| Revision {
        id,
        specification: format!("https://modelcontextprotocol.io/specification/{id}"),
        changelog: format!("https://modelcontextprotocol.io/specification/{id}/changelog"),
    });
    let steps = diffs.iter().map(|diff| Step {
        from: &diff.from,
        to: &diff.to,
        totals: change_counts(diff),
        notes: diff.notes.iter().map(note_words).collect(),
    });
    let title = match ids.as_slice() {
        [first, last] => format!("Model Context Protocol: from {first} to {last}"),
        [first, .., last] => format!("Model Context Protocol: {first} to {last}"),
        [only] => format!("Model Context Protocol {only}"),
        [] => "Model Context Protocol".to_owned(),
    };
    let page = environment.get_template("page.html")?;
    let consequences = CONSEQUENCES.map(Consequence::of);
    let kinds = [
        "request",
        "notification",
        "object",
        "union",
        "enum",
        "other",
    ];
    page.render(context! {
        title,
        generator => options.generator,
        date => options.date,
        style => STYLE,
        script => SCRIPT,
        revisions => listed.collect::<Vec<_>>(),
        consequences,
        kinds,
        advice => advice::advice_pairs(revisions),
        matrices => [
            context! { id => "methods", title => "Methods", kind => "method", rows => rows::method_rows(revisions, &diffs, options) },
            context! { id => "types", title => "Types", kind => "type", rows => rows::type_rows(revisions, &diffs, options) },
        ],
        steps => steps.collect::<Vec<_>>(),
    })
}

/// Returns a name as HTML with optional line breaks before capitals and after slashes.
fn with_line_breaks(name: &str) -> minijinja::Value {
    let mut text = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        if (letter.is_uppercase() && before.is_lowercase()) || before == '/' || before == '_' {
            text.push_str("<wbr>");
        }
        match letter {
            '&' => text.push_str("&amp;"),
            '<' => text.push_str("&lt;"),
            '>' => text.push_str("&gt;"),
            '"' => text.push_str("&quot;"),
            other => text.push(other),
        }
        before = letter;
    }
    minijinja::Value::from_safe_string(text)
}
