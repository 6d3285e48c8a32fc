//! Formats differences as text for a terminal.

use crate::diff::{Compatibility, DefinitionDiff, Diff, MethodDiff, Status};
use crate::render::words::{
    Line, ORDER, Sign, change_counts, definitions_with_status, message_kind, method_words,
    note_words, repeated_changes, status_heading, unrepeated_lines,
};

/// Returns differences as grouped text with one line per change; `colour` adds terminal escape sequences.
pub fn text(diff: &Diff, colour: bool) -> String {
    let mut page = Page {
        text: String::new(),
        colour,
    };
    page.add_line(0, &page.bold(&format!("{} → {}", diff.from, diff.to)));
    for (label, count) in change_counts(diff) {
        page.add_line(1, &format!("{label:<12}  {count}"));
    }
    if !diff.notes.is_empty() {
        page.add_heading("Notes");
        for note in &diff.notes {
            page.add_line(1, &note_words(note));
        }
    }
    if !diff.methods.is_empty() {
        page.add_heading("Methods");
        page.add_methods(&diff.methods);
    }
    let repeated = repeated_changes(diff);
    if !repeated.is_empty() {
        page.add_heading("In many types");
        for (line, names) in &repeated {
            page.add_change(1, line);
            page.add_line(3, &format!("in {}", names.join(", ")));
        }
    }
    for status in ORDER {
        let definitions = definitions_with_status(diff, status);
        let shown = |d: &&DefinitionDiff| {
            status != Status::Changed || !unrepeated_lines(d, &repeated).is_empty()
        };
        let definitions: Vec<_> = definitions.into_iter().filter(shown).collect();
        if !definitions.is_empty() {
            page.add_heading(status_heading(status));
        }
        for definition in definitions {
            page.add_definition(definition);
            for line in unrepeated_lines(definition, &repeated) {
                page.add_change(3, &line);
            }
        }
    }
    page.add_rewordings(diff);
    page.text
}

/// Text under construction.
struct Page {
    /// The text so far.
    text: String,
    /// True if the text contains terminal escape sequences.
    colour: bool,
}

impl Page {
    /// Appends a line; `indent` is its nesting level.
    fn add_line(&mut self, indent: usize, text: &str) {
        self.text.push_str(&"  ".repeat(indent));
        self.text.push_str(text);
        self.text.push('\n');
    }

    /// Appends an empty line and a heading.
    fn add_heading(&mut self, text: &str) {
        self.text.push('\n');
        let text = self.bold(text);
        self.add_line(0, &text);
    }

    /// Returns text in the style of a terminal escape code, if colours are on.
    fn paint(&self, code: &str, text: &str) -> String {
        if self.colour {
            format!("\u{1b}[{code}m{text}\u{1b}[0m")
        } else {
            text.to_owned()
        }
    }

    /// Returns text in bold, if colours are on.
    fn bold(&self, text: &str) -> String {
        self.paint("1", text)
    }

    /// Returns text after its sign, in the colour of the sign.
    fn paint_by_sign(&self, sign: Sign, text: &str) -> String {
        let code = match sign {
            Sign::Plus => "32",
            Sign::Minus => "31",
            Sign::Changed => "33",
        };
        format!("{} {text}", self.paint(code, &sign.letter().to_string()))
    }

    /// Returns a compatibility in brackets, coloured if it is breaking.
    fn compatibility_suffix(&self, compatibility: Compatibility) -> String {
        let breaking = compatibility.breaks_reading() || compatibility.breaks_writing();
        let code = if breaking { "31" } else { "2" };
        self.paint(code, &format!("[{}]", compatibility.words()))
    }

    /// Appends the methods with their changes.
    fn add_methods(&mut self, methods: &[MethodDiff]) {
        let width = methods.iter().map(|m| m.method.len()).max().unwrap_or(0);
        for method in methods {
            let mut words: Vec<String> = Vec::new();
            if method.status == Status::Changed {
                for change in &method.changes {
                    let compatibility = self.compatibility_suffix(change.compatibility);
                    words.push(format!("{} {compatibility}", method_words(change)));
                }
                if !method.through.is_empty() {
                    words.push(format!("see {}", method.through.join(", ")));
                }
            } else {
                let kind = message_kind(method);
                let compatibility = self.compatibility_suffix(method.compatibility);
                words.push(format!(
                    "{kind}, {} {compatibility}",
                    method.directions.words()
                ));
            }
            let line = format!("{:<width$}  {}", method.method, words.join("; "));
            let line = self.paint_by_sign(Sign::of(method.status), &line);
            self.add_line(1, &line);
        }
    }

    /// Appends the name of a definition, with its former location or its outline.
    fn add_definition(&mut self, definition: &DefinitionDiff) {
        let name = self.bold(&definition.name);
        let line = match (&definition.before, &definition.outline) {
            (Some(before), _) if definition.status == Status::Renamed => {
                format!("{name}  was {before}")
            }
            (Some(before), _) if definition.status == Status::Named => {
                format!("{name}  stood at {before}")
            }
            (Some(before), _) => format!("{name}  stands at {before}"),
            (None, Some(outline)) => {
                let compatibility = self.compatibility_suffix(definition.compatibility);
                format!("{name}  {outline} {compatibility}")
            }
            _ => name,
        };
        let line = self.paint_by_sign(Sign::of(definition.status), &line);
        self.add_line(1, &line);
    }

    /// Appends a change.
    fn add_change(&mut self, indent: usize, line: &Line) {
        let compatibility = self.compatibility_suffix(line.compatibility);
        let elsewhere = line
            .other_locations()
            .map_or(String::new(), |at| format!(" ({at})"));
        let text = format!("{}{elsewhere} {compatibility}", line.words());
        let text = self.paint_by_sign(line.sign, &text);
        self.add_line(indent, &text);
    }

    /// Appends the changed descriptions.
    fn add_rewordings(&mut self, diff: &Diff) {
        if diff.rewordings.is_empty() {
            return;
        }
        self.add_heading("Reworded descriptions");
        for rewording in &diff.rewordings {
            let name = if rewording.path.is_empty() {
                rewording.definition.clone()
            } else {
                format!("{}: {}", rewording.definition, rewording.path)
            };
            let name = self.bold(&name);
            self.add_line(1, &name);
            for (sign, text) in [
                (Sign::Minus, &rewording.before),
                (Sign::Plus, &rewording.after),
            ] {
                for text in text.iter().flat_map(|text| text.lines()) {
                    let text = self.paint_by_sign(sign, text);
                    self.add_line(2, &text);
                }
            }
        }
    }
}
