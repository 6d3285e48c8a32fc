//! One static HTML page over several revisions: what a program has to do to go from one to another, then what came when.
//!
//! Takes revisions in their order; gives a page that loads nothing. Templates are in `html/`; here is what they are filled
//! with. Without scripts all details are open.

mod advice;
mod reach;
mod rows;

use std::collections::BTreeMap;

use minijinja::{AutoEscape, Environment, context};
use serde::Serialize;

use crate::diff::{Diff, Meaning, diff};
use crate::ir::Ir;
use crate::render::{note_words, totals};

const PAGE: &str = include_str!("html/page.html");
const MATRIX: &str = include_str!("html/matrix.html");
const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// What a page says of itself and where it leads.
#[derive(Debug, Clone, Default)]
pub struct PageOptions {
    /// The program that wrote the page, with its version.
    pub generator: String,
    /// The day on which it was written, such as `2026-11-22`; empty for pages that have to be the same every day.
    pub date: String,
    /// Schema files, by revision.
    pub sources: BTreeMap<String, SchemaSource>,
}

/// Where the definitions of a revision are written down.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, serde::Deserialize)]
pub struct SchemaSource {
    /// Address of the schema file.
    pub url: String,
    /// Line of each definition in it.
    pub lines: BTreeMap<String, usize>,
}

/// Consequence of a change, as legend, cells and badges show it: one class, hence one colour, for each.
#[derive(Debug, Clone, Serialize)]
struct Consequence {
    class: &'static str,
    name: &'static str,
    words: &'static str,
}

const CONSEQUENCES: [Meaning; 5] = [
    Meaning::BreaksBoth,
    Meaning::BreaksWriting,
    Meaning::BreaksReading,
    Meaning::Additive,
    Meaning::Neutral,
];

impl Consequence {
    fn of(meaning: Meaning) -> Self {
        let (class, words) = match meaning {
            Meaning::Neutral => ("neutral", "the same is sent as before"),
            Meaning::Additive => (
                "additive",
                "something new can be sent, and nobody has to know it",
            ),
            Meaning::BreaksReading => (
                "reading",
                "the newer side sends what the older one does not understand",
            ),
            Meaning::BreaksWriting => (
                "writing",
                "what was right to send is wrong now, or has no effect",
            ),
            Meaning::BreaksBoth => ("both", "both of the above"),
        };
        Self {
            class,
            name: meaning.words(),
            words,
        }
    }
}

#[derive(Serialize)]
struct Revision<'i> {
    id: &'i str,
    specification: String,
    changelog: String,
}

#[derive(Serialize)]
struct Step<'d> {
    from: &'d str,
    to: &'d str,
    totals: Vec<(&'static str, String)>,
    notes: Vec<String>,
}

/// Returns a page with advice, and a matrix of methods and types by revision; `revisions` are in their order, oldest first.
///
/// # Errors
/// None that revisions can cause: a defect of a template.
pub fn html(revisions: &[Ir], options: &PageOptions) -> Result<String, minijinja::Error> {
    let diffs: Vec<Diff> = revisions
        .windows(2)
        .map(|pair| diff(&pair[0], &pair[1]))
        .collect();
    let mut environment = Environment::new();
    environment.set_auto_escape_callback(|_| AutoEscape::Html);
    environment.set_trim_blocks(true);
    environment.set_lstrip_blocks(true);
    environment.add_filter("breakable", breakable);
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
        totals: totals(diff),
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
        advice => advice::pairs(revisions),
        matrices => [
            context! { id => "methods", title => "Methods", kind => "method", rows => rows::methods(revisions, &diffs, options) },
            context! { id => "types", title => "Types", kind => "type", rows => rows::types(revisions, &diffs, options) },
        ],
        steps => steps.collect::<Vec<_>>(),
    })
}

/// Returns a name that may be broken before its capitals and after its slashes, as HTML.
fn breakable(name: &str) -> minijinja::Value {
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
