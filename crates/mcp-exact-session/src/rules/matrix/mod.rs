//! Tests of the rule table against `matrix.txt`, which was compared with the specification. The matrix shows the behaviour of
//! every method in every revision at every entry point of an endpoint, with all capabilities declared and with none.
//!
//! A further test omits one row of the table at a time, and expects a change at every entry point that the row affects.
//! `UPDATE_EXPECT=1` rewrites the files.

mod entrances;
mod peers;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use mcp_exact_revisions::{RevisionSpec, Side};

use super::{Handler, MessageKind, RULES, Rule, SendingParty};
use entrances::*;

thread_local! {
    /// Number of the row that [`is_present`] omits in this thread.
    static OMITTED_ROW: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns false for the row that the test omits.
pub(super) fn is_present(rule: &Rule) -> bool {
    let left_out = OMITTED_ROW.get().and_then(|at| RULES.get(at));
    !left_out.is_some_and(|left_out| std::ptr::eq(left_out, rule))
}

/// Returns the methods of a kind that either role sends, and one method that no revision defines.
fn methods(kind: MessageKind) -> Vec<&'static str> {
    let mut methods = BTreeSet::from(["vendor/unknown"]);
    for spec in mcp_exact_revisions::released() {
        for side in [Side::Client, Side::Server] {
            let all = spec.methods(side);
            methods.extend(match kind {
                MessageKind::Notification => all.notifications(),
                MessageKind::Request | MessageKind::InputRequest => all.requests(),
            });
        }
    }
    methods.into_iter().collect()
}

/// Cells of a section by entry point; each cell has a revision and a value.
type CellsByEntrance<'a> = BTreeMap<&'a str, Vec<(&'a str, &'a str)>>;

/// Section, entry point and revision of a cell.
type CellPosition = (String, String, &'static str);

/// Returns the behaviour at every entry point, in every revision.
fn matrix() -> Vec<(CellPosition, String)> {
    let mut matrix = Vec::new();
    let mut add = |section: String, of: &dyn Fn(&RevisionSpec) -> MethodCells| {
        for spec in mcp_exact_revisions::released() {
            for (entrance, value) in of(spec) {
                matrix.push(((section.clone(), entrance, spec.id()), value));
            }
        }
    };
    for method in methods(MessageKind::Request) {
        add(format!("client requests {method}"), &|spec| {
            client_requests(spec, method)
        });
        add(format!("server requests {method}"), &|spec| {
            server_requests(spec, method)
        });
        add(format!("server requires input by {method}"), &|spec| {
            input_requests(spec, method)
        });
    }
    for method in methods(MessageKind::Notification) {
        add(format!("client notifies {method}"), &|spec| {
            client_notifications(spec, method)
        });
        add(format!("server notifies {method}"), &|spec| {
            server_notifications(spec, method)
        });
    }
    for kind in ["tools", "prompts", "resources", "resource a:b"] {
        add(format!("server publishes a change of {kind}"), &|spec| {
            announced_changes(spec, kind)
        });
    }
    matrix
}

/// Returns the text of the matrix.
///
/// The columns `A B C D E` are the five revisions, oldest first; a value that is the same in all revisions is printed
/// once.
fn matrix_text(matrix: &[(CellPosition, String)]) -> String {
    let ids: Vec<&str> = mcp_exact_revisions::released()
        .map(|spec| spec.id())
        .collect();
    let letters = |of: &BTreeSet<&str>| -> String {
        let all = ids.iter().zip('A'..);
        all.filter(|(id, _)| of.contains(**id))
            .map(|(_, letter)| letter)
            .collect()
    };
    let mut sections: BTreeMap<&str, CellsByEntrance<'_>> = BTreeMap::new();
    for ((section, entrance, revision), value) in matrix {
        let section = sections.entry(section).or_default();
        section.entry(entrance).or_default().push((revision, value));
    }
    let mut text = String::new();
    for (id, letter) in ids.iter().zip('A'..) {
        writeln!(text, "{letter} = {id}").expect("a string");
    }
    for (section, entrances) in sections {
        writeln!(text, "\n{section}").expect("a string");
        // Entrances that do the same are one line.
        let mut lines: Vec<(String, Vec<&str>)> = Vec::new();
        for (entrance, values) in entrances {
            let mut by_value: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
            for (revision, value) in values {
                by_value.entry(value).or_default().insert(revision);
            }
            let mut values: Vec<(String, &str)> = by_value
                .iter()
                .map(|(value, of)| (letters(of), *value))
                .collect();
            values.sort_unstable();
            let line: Vec<String> = values
                .iter()
                .map(|(of, value)| format!("{of} {value}"))
                .collect();
            let line = line.join(" | ");
            match lines.iter_mut().find(|(known, _)| *known == line) {
                Some((_, same)) => same.push(entrance),
                None => lines.push((line, vec![entrance])),
            }
        }
        for (line, entrances) in lines {
            writeln!(text, "  {}: {line}", entrances.join("; ")).expect("a string");
        }
    }
    text
}

/// Returns the path of a file with recorded text.
fn file_path(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/rules/matrix");
    folder.join(name)
}

/// Compares a text with an expected file.
fn check_file(name: &str, text: &str) {
    let path = file_path(name);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, text).expect("a file");
        return;
    }
    let expected = std::fs::read_to_string(&path).expect("a file");
    for (at, (line, expected)) in text.lines().zip(expected.lines()).enumerate() {
        assert_eq!(line, expected, "line {} of {name}", at + 1);
    }
    assert_eq!(text.lines().count(), expected.lines().count(), "{name}");
}

/// "Both parties MUST respect the negotiated protocol version" and "only use capabilities that were successfully negotiated"
/// (`basic/lifecycle`, "Operation"), for every method and entry point.
#[test]
fn rule_matrix_follows_the_specification() {
    check_file("matrix.txt", &matrix_text(&matrix()));
}

/// Returns the entry points whose behaviour the omission of a row must change.
fn guarded_entrances(rule: &Rule) -> Vec<String> {
    let client = rule.sender == Side::Client;
    let sender = if client { "client" } else { "server" };
    let (section, send) = match rule.kind {
        MessageKind::Request => (format!("{sender} requests {}", rule.method), "request"),
        MessageKind::Notification if rule.handler == Handler::Acknowledged => (
            format!("{sender} notifies {}", rule.method),
            "notify during a subscription",
        ),
        MessageKind::Notification if client => {
            (format!("{sender} notifies {}", rule.method), "notify")
        }
        MessageKind::Notification => (
            format!("{sender} notifies {}", rule.method),
            "notify to the client",
        ),
        MessageKind::InputRequest => (
            format!("server requires input by {}", rule.method),
            "reply InputRequired",
        ),
    };
    let mut entrances = vec![send];
    match rule.kind {
        MessageKind::InputRequest => entrances.extend(["reply raw", "receive in a result"]),
        MessageKind::Request if rule.may_require_input => {
            entrances.extend([
                "receive",
                "reply of type input_required",
                "reply InputRequired",
            ]);
        }
        _ if rule.handler == Handler::Initialized => entrances.push("receive before initialized"),
        _ => entrances.push("receive"),
    }
    let by_endpoint =
        rule.sending_party == SendingParty::Endpoint && rule.kind == MessageKind::Request;
    // Whoever sends it without the function of the endpoint is refused either way.
    entrances.retain(|entrance| !(by_endpoint && *entrance == "request"));
    entrances
        .into_iter()
        .map(|entrance| format!("{section}: {entrance}"))
        .collect()
}

/// Step between the rows that `every_row_has_an_effect` omits in a short run; `MCP_EXACT_TIER=long` omits every row.
const ROW_STEP: usize = 8;

/// The omission of a row changes the behaviour at every entry point of [`guarded_entrances`].
#[test]
fn every_row_has_an_effect() {
    let whole = matrix();
    let entrances: BTreeSet<&str> = whole
        .iter()
        .map(|((_, entrance, _), _)| &**entrance)
        .collect();
    let mut summary = format!(
        "{} rows, {} entrances, {} cells\n\n",
        RULES.len(),
        entrances.len(),
        whole.len()
    );
    let mut unguarded = Vec::new();
    let every_row =
        std::env::var_os("MCP_EXACT_TIER").is_some() || std::env::var_os("UPDATE_EXPECT").is_some();
    let step = if every_row { 1 } else { ROW_STEP };
    for (at, rule) in RULES.iter().enumerate().step_by(step) {
        OMITTED_ROW.set(Some(at));
        let without: BTreeMap<CellPosition, String> = matrix().into_iter().collect();
        OMITTED_ROW.set(None);
        let changed: Vec<&CellPosition> = whole
            .iter()
            .filter(|(place, value)| without.get(place) != Some(value))
            .map(|(place, _)| place)
            .collect();
        let names: BTreeSet<String> = changed
            .iter()
            .map(|(section, entrance, _)| format!("{section}: {entrance}"))
            .collect();
        unguarded.extend(
            guarded_entrances(rule)
                .into_iter()
                .filter(|name| !names.contains(name)),
        );
        writeln!(
            summary,
            "{:?} {:?} {}: {} cells",
            rule.kind,
            rule.sender,
            rule.method,
            changed.len()
        )
        .expect("a string");
    }
    assert!(unguarded.is_empty(), "{unguarded:#?}");
    if every_row {
        check_file("left_out.txt", &summary);
        return;
    }
    let recorded = std::fs::read_to_string(file_path("left_out.txt")).expect("a file");
    let lines: BTreeSet<&str> = recorded.lines().collect();
    for line in summary.lines() {
        assert!(lines.contains(line), "{line} is not in left_out.txt");
    }
}
