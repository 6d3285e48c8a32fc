//! One static HTML page over all revisions: what came when, at a glance, with the details a click away.
//!
//! Takes revisions in their order; gives a page that needs nothing from elsewhere. Without scripts all details are open.

mod rows;

use std::fmt::Write;

use rows::{Item, Row, State, Step};

use crate::diff::{Diff, Meaning, Status, diff};
use crate::ir::Ir;
use crate::render::{Sign, note_words, status_word, totals};

const HEAD: &str = include_str!("html/head.html");
const STYLE: &str = include_str!("html/page.css");
const SCRIPT: &str = include_str!("html/page.js");

/// A page with a matrix of methods and types by revision; `revisions` stand in their order, oldest first.
pub fn html(revisions: &[Ir]) -> String {
    let diffs: Vec<Diff> = revisions
        .windows(2)
        .map(|pair| diff(&pair[0], &pair[1]))
        .collect();
    let mut page = Page {
        text: String::new(),
        revisions: revisions.iter().map(|ir| ir.revision.as_str()).collect(),
        details: 0,
    };
    page.head();
    page.matrix("Methods", "method", &rows::methods(revisions, &diffs));
    page.matrix("Types", "type", &rows::types(revisions, &diffs));
    page.steps(&diffs);
    page.foot();
    page.text
}

struct Page<'i> {
    text: String,
    revisions: Vec<&'i str>,
    /// How many detail rows there are: each has a number.
    details: usize,
}

impl Page<'_> {
    fn push(&mut self, text: &str) {
        self.text.push_str(text);
        self.text.push('\n');
    }

    fn head(&mut self) {
        let title = "Model Context Protocol: what came when";
        let range = match self.revisions.as_slice() {
            [] => String::new(),
            [only] => format!(" of revision {only}"),
            [first, .., last] => format!(
                " of the {} revisions from {first} to {last}",
                self.revisions.len()
            ),
        };
        let meanings = [
            (Meaning::Additive, "something new can be said"),
            (
                Meaning::BreaksReading,
                "a newer peer sends what older types do not know",
            ),
            (
                Meaning::BreaksWriting,
                "what was right to send is wrong or unheard now",
            ),
            (Meaning::Neutral, "the same is sent as before"),
        ];
        let meanings: String = meanings
            .iter()
            .map(|(meaning, words)| format!("<li>{} {}</li>", badge(*meaning), escape(words)))
            .collect();
        let head = HEAD
            .replace("{title}", title)
            .replace("{range}", &escape(&range))
            .replace("{meanings}", &meanings)
            .replace("{style}", STYLE);
        self.push(&head);
    }

    fn foot(&mut self) {
        self.push("</main>");
        let script = format!("<script>\n{SCRIPT}</script>\n</body>\n</html>");
        self.push(&script);
    }

    fn matrix(&mut self, title: &str, kind: &str, rows: &[Row]) {
        let id = title.to_lowercase();
        let open = format!(
            "<section aria-labelledby=\"{id}\">\n<h2 id=\"{id}\">{title} <small>{}</small></h2>\n\
             <div class=\"scroll\" role=\"region\" aria-labelledby=\"{id}\" tabindex=\"0\">\n<table>\n\
             <thead>\n<tr><th scope=\"col\">{}</th>",
            rows.len(),
            capital(kind),
        );
        self.push(&open);
        for (index, revision) in self.revisions.clone().iter().enumerate() {
            let states: Vec<State> = rows.iter().map(|row| row.states[index]).collect();
            let cell = format!(
                "<th scope=\"col\">{}<small class=\"wide\">{}</small></th>",
                escape(revision).replacen('-', "-<wbr>", 1),
                tally(index, &states)
            );
            self.push(&cell);
        }
        self.push("</tr>\n</thead>");
        for row in rows {
            self.row(kind, row);
        }
        self.push("</table>\n</div>\n</section>");
    }

    fn row(&mut self, kind: &str, row: &Row) {
        self.details += 1;
        let details = format!("d{}", self.details);
        let constant = if row.is_constant() {
            " data-constant"
        } else {
            ""
        };
        let caption = if row.caption.is_empty() {
            String::new()
        } else {
            format!("<small>{}</small>", escape(&row.caption))
        };
        let head = format!(
            "<tbody id=\"{}\"{constant}>\n<tr><th scope=\"row\"><button type=\"button\" class=\"name\" \
             aria-expanded=\"false\" aria-controls=\"{details}\">{}</button>{caption}</th>",
            anchor(kind, &row.name),
            breakable(&row.name),
        );
        self.push(&head);
        for (index, state) in row.states.iter().enumerate() {
            let told = row.steps.iter().any(|step| step.revision == index);
            let cell = self.cell(row, index, *state, told.then_some(details.as_str()));
            self.push(&cell);
        }
        let span = self.revisions.len() + 1;
        let open = format!(
            "</tr>\n<tr class=\"more\" id=\"{details}\" hidden><td colspan=\"{span}\"><div class=\"sheet\">"
        );
        self.push(&open);
        if let Some((revision, words)) = &row.now {
            let now = format!(
                "<p class=\"now\">{} in {}: <code>{}</code></p>",
                breakable(&row.name),
                escape(revision),
                escape(words)
            );
            self.push(&now);
        }
        if row.steps.is_empty() {
            self.push("<p>Nothing changed about it.</p>");
        }
        for step in &row.steps {
            self.step(step);
        }
        self.push("</div></td></tr>\n</tbody>");
    }

    fn cell(&self, row: &Row, index: usize, state: State, details: Option<&str>) -> String {
        let Face {
            class,
            mark,
            short,
            words,
        } = face(state, index == 0);
        let mark = format!("<span class=\"mark\" aria-hidden=\"true\">{mark}</span>");
        let Some(details) = details else {
            return format!(
                "<td class=\"{class}\"><span>{mark}<span class=\"unseen\">{words}</span></span></td>"
            );
        };
        format!(
            "<td class=\"{class}\"><button type=\"button\" data-step=\"{index}\" aria-expanded=\"false\" \
             aria-controls=\"{details}\" aria-label=\"{} in {}: {words}\">{mark}<span class=\"wide\">{words}</span>\
             <span class=\"narrow\">{short}</span></button></td>",
            escape(&row.name),
            escape(self.revisions[index]),
        )
    }

    fn step(&mut self, step: &Step) {
        let before = step.revision.checked_sub(1);
        let before = before.map_or("", |before| self.revisions[before]);
        let open = format!(
            "<section data-step=\"{}\"><h3>{} → {}</h3>\n<ul>",
            step.revision,
            escape(before),
            escape(self.revisions[step.revision]),
        );
        self.push(&open);
        for item in &step.items {
            let item = match item {
                Item::Words(words, meaning) => {
                    let badge = meaning.map_or(String::new(), badge);
                    format!("<li>{} {badge}</li>", escape(words))
                }
                Item::Change(line) => {
                    let also = line.elsewhere();
                    let also = also.map_or(String::new(), |also| format!(" ({})", escape(&also)));
                    let class = sign_class(line.sign);
                    format!(
                        "<li class=\"{class}\"><code>{} {}</code>{also} {}</li>",
                        line.sign.letter(),
                        escape(&line.words()),
                        badge(line.meaning)
                    )
                }
                Item::See(name) => {
                    let at = anchor("type", name);
                    format!(
                        "<li class=\"type\"><a href=\"#{at}\">{}</a></li>",
                        escape(name)
                    )
                }
            };
            self.push(&item);
        }
        self.push("</ul></section>");
    }

    fn steps(&mut self, diffs: &[Diff]) {
        self.push(
            "<section aria-labelledby=\"steps\" class=\"steps\">\n<h2 id=\"steps\">Steps</h2>",
        );
        for diff in diffs {
            let mut items = String::new();
            for (label, count) in totals(diff) {
                _ = writeln!(items, "<li>{label}: {}</li>", escape(&count));
            }
            for note in &diff.notes {
                _ = writeln!(items, "<li>{}</li>", escape(&note_words(note)));
            }
            let step = format!(
                "<details open><summary>{} → {}</summary>\n<ul>\n{items}</ul></details>",
                escape(&diff.from),
                escape(&diff.to),
            );
            self.push(&step);
        }
        self.push("</section>");
    }
}

/// How a cell looks: its class, its mark, what a narrow page shows beside the mark, and the words.
struct Face {
    class: &'static str,
    mark: &'static str,
    short: String,
    words: String,
}

fn face(state: State, first: bool) -> Face {
    let face = |class, mark, count: usize, words: &str| Face {
        class,
        mark,
        short: if count == 0 {
            String::new()
        } else {
            count.to_string()
        },
        words: words.to_owned(),
    };
    match state {
        State::Absent => face("absent", "", 0, "not there"),
        State::Unnamed => face("same", "○", 0, "there without a name"),
        State::Same if first => face("same", "●", 0, "there"),
        State::Same => face("same", "●", 0, "unchanged"),
        State::Replaced => face("changed", "~", 0, "replaced"),
        State::New(Status::Added, _) => face("added", "+", 0, "new"),
        State::New(Status::Removed, _) => face("removed", "−", 0, "removed"),
        State::New(Status::Changed, 1) => face("changed", "~", 1, "1 change"),
        State::New(Status::Changed, count) => {
            face("changed", "~", count, &format!("{count} changes"))
        }
        State::New(status, 0) => face("named", "»", 0, status_word(status)),
        State::New(status, count) => {
            let words = format!("{}, {count} ch.", status_word(status));
            face("changed", "»", count, &words)
        }
    }
}

/// How many rows came, changed and went with a revision.
fn tally(index: usize, states: &[State]) -> String {
    let count = |is: fn(&State) -> bool| states.iter().filter(|state| is(state)).count();
    if index == 0 {
        return format!("{} there", count(|state| *state == State::Same));
    }
    let added = count(|state| matches!(state, State::New(Status::Added, _)));
    let removed = count(|state| matches!(state, State::New(Status::Removed, _)));
    let changed = count(|state| matches!(state, State::Replaced | State::New(..)));
    format!("+{added} ~{} −{removed}", changed - added - removed)
}

fn sign_class(sign: Sign) -> &'static str {
    match sign {
        Sign::Plus => "added",
        Sign::Minus => "removed",
        Sign::Other => "changed",
    }
}

fn badge(meaning: Meaning) -> String {
    let class = match meaning {
        Meaning::Neutral => "neutral",
        Meaning::Additive => "additive",
        Meaning::BreaksReading => "reading",
        Meaning::BreaksWriting => "writing",
        Meaning::BreaksBoth => "both",
    };
    format!("<span class=\"badge {class}\">{}</span>", meaning.words())
}

fn anchor(kind: &str, name: &str) -> String {
    format!("{kind}-{}", escape(name))
}

fn capital(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

/// A name that may be broken before its capitals and after its slashes.
fn breakable(name: &str) -> String {
    let mut text = String::new();
    let mut before = ' ';
    for letter in name.chars() {
        if (letter.is_uppercase() && before.is_lowercase()) || before == '/' || before == '_' {
            text.push_str("<wbr>");
        }
        text.push_str(&escape(&letter.to_string()));
        before = letter;
    }
    text
}

fn escape(text: &str) -> String {
    let mut escaped = String::with_capacity(text.len());
    for letter in text.chars() {
        match letter {
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '>' => escaped.push_str("&gt;"),
            '"' => escaped.push_str("&quot;"),
            other => escaped.push(other),
        }
    }
    escaped
}
