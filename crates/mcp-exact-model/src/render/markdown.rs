//! Formats differences as Markdown for a changelog or the description of a pull request.

use std::fmt::Write;

use crate::diff::{DefinitionDiff, Diff, MethodDiff, Rewording, Status};
use crate::render::words::{
    Line, ORDER, change_counts, definitions_with_status, message_kind, method_words, note_words,
    repeated_changes, status_heading, unrepeated_lines,
};

/// Returns differences as Markdown: one second-level heading, and lists under third-level headings.
pub fn markdown(diff: &Diff) -> String {
    let mut text = format!("## {} → {}\n\n", diff.from, diff.to);
    for (label, count) in change_counts(diff) {
        push_item(&mut text, 0, &format!("{label}: {count}"));
    }
    if !diff.notes.is_empty() {
        push_heading(&mut text, "Notes");
        for note in &diff.notes {
            push_item(&mut text, 0, &note_words(note));
        }
    }
    if !diff.methods.is_empty() {
        push_heading(&mut text, "Methods");
        for method in &diff.methods {
            push_item(&mut text, 0, &method_line(method));
        }
    }
    let repeated = repeated_changes(diff);
    if !repeated.is_empty() {
        push_heading(&mut text, "In many types");
        for (line, names) in &repeated {
            let names: Vec<String> = names.iter().map(|name| code(name)).collect();
            push_item(&mut text, 0, &add_change(line));
            push_item(&mut text, 1, &format!("in {}", names.join(", ")));
        }
    }
    for status in ORDER {
        push_definitions(&mut text, diff, status, &repeated);
    }
    if !diff.rewordings.is_empty() {
        push_heading(&mut text, "Reworded descriptions");
        for rewording in &diff.rewordings {
            add_rewording(&mut text, rewording);
        }
    }
    text
}

/// Appends the list of definitions with a status, without changes that are reported once for many types.
fn push_definitions(
    text: &mut String,
    diff: &Diff,
    status: Status,
    repeated: &[(Line, Vec<&str>)],
) {
    let mut first = true;
    for definition in definitions_with_status(diff, status) {
        let lines = unrepeated_lines(definition, repeated);
        if status == Status::Changed && lines.is_empty() {
            continue;
        }
        if std::mem::take(&mut first) {
            push_heading(text, status_heading(status));
        }
        push_item(text, 0, &definition_line(definition));
        for line in lines {
            push_item(text, 1, &add_change(&line));
        }
    }
}

/// Appends a third-level heading.
fn push_heading(text: &mut String, heading: &str) {
    _ = write!(text, "\n### {heading}\n\n");
}

/// Appends a list item; `indent` is its nesting level.
fn push_item(text: &mut String, indent: usize, line: &str) {
    _ = writeln!(text, "{}- {line}", "  ".repeat(indent));
}

/// Formats text as a code span, with as many backticks as necessary.
fn code(text: &str) -> String {
    if text.contains('`') {
        format!("`` {text} ``")
    } else {
        format!("`{text}`")
    }
}

/// Formats a method as a list item.
fn method_line(method: &MethodDiff) -> String {
    let name = code(&method.method);
    if method.status != Status::Changed {
        let word = if method.status == Status::Added {
            "new"
        } else {
            "removed"
        };
        let kind = message_kind(method);
        let (way, compatibility) = (method.directions.words(), method.compatibility.words());
        return format!("{name} {word}: {kind}, {way} *({compatibility})*");
    }
    let changes = method.changes.iter();
    let mut words: Vec<String> = changes
        .map(|change| {
            format!(
                "{} *({})*",
                method_words(change),
                change.compatibility.words()
            )
        })
        .collect();
    if !method.through.is_empty() {
        let names: Vec<String> = method.through.iter().map(|name| code(name)).collect();
        words.push(format!("see {}", names.join(", ")));
    }
    format!("{name}: {}", words.join("; "))
}

/// Formats a definition as a list item.
fn definition_line(definition: &DefinitionDiff) -> String {
    let name = format!("**{}**", code(&definition.name));
    match (&definition.before, &definition.outline) {
        (Some(before), _) => {
            let word = match definition.status {
                Status::Renamed => "was",
                Status::Named => "stood at",
                _ => "stands at",
            };
            format!("{name} {word} {}", code(before))
        }
        (None, Some(outline)) => {
            let compatibility = definition.compatibility.words();
            format!("{name} {} *({compatibility})*", code(outline))
        }
        _ => name,
    }
}

/// Formats a change as a list item.
fn add_change(line: &Line) -> String {
    let elsewhere = line.other_locations();
    let elsewhere = elsewhere.map_or(String::new(), |places| format!(", {places}"));
    let words = code(&format!("{} {}", line.sign.letter(), line.words()));
    format!("{words}{elsewhere} *({})*", line.compatibility.words())
}

/// Appends both texts of a changed description.
fn add_rewording(text: &mut String, rewording: &Rewording) {
    let name = if rewording.path.is_empty() {
        code(&rewording.definition)
    } else {
        format!("{}: {}", code(&rewording.definition), code(&rewording.path))
    };
    push_item(text, 0, &name);
    for (word, description) in [("before", &rewording.before), ("now", &rewording.after)] {
        if let Some(description) = description {
            let description = description.split_whitespace().collect::<Vec<_>>().join(" ");
            push_item(text, 1, &format!("{word}: {}", code(&description)));
        }
    }
}
