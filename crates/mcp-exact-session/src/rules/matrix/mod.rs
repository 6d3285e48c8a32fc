//! The rule table against `matrix.txt`, which was read against the specification: every method in every revision, through every
//! way into and out of an endpoint, with all capabilities declared and with none.
//!
//! And every row against its absence: without it, something changes at each entry point that it guards. `UPDATE_EXPECT=1` writes
//! the files again.

mod entrances;
mod peers;

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::path::Path;

use mcp_exact_revisions::{RevisionSpec, Side};

use super::{Handler, Kind, Local, RULES, Rule};
use entrances::*;

thread_local! {
    static LEFT_OUT: Cell<Option<usize>> = const { Cell::new(None) };
}

/// Returns false for the row that the test leaves out.
pub(super) fn is_present(rule: &Rule) -> bool {
    let left_out = LEFT_OUT.get().and_then(|at| RULES.get(at));
    !left_out.is_some_and(|left_out| std::ptr::eq(left_out, rule))
}

/// All methods of a kind, of both roles, and one that no revision defines.
fn methods(kind: Kind) -> Vec<&'static str> {
    let mut methods = BTreeSet::from(["vendor/unknown"]);
    for spec in mcp_exact_revisions::all() {
        for side in [Side::Client, Side::Server] {
            let all = spec.methods(side);
            methods.extend(match kind {
                Kind::Notification => all.notifications(),
                Kind::Request | Kind::InputRequest => all.requests(),
            });
        }
    }
    methods.into_iter().collect()
}

/// Revisions and values of a section's cells, by entry point.
type Entrances<'a> = BTreeMap<&'a str, Vec<(&'a str, &'a str)>>;

/// Section, entry point and revision of a cell.
type Place = (String, String, &'static str);

fn matrix() -> Vec<(Place, String)> {
    let mut matrix = Vec::new();
    let mut add = |section: String, of: &dyn Fn(&RevisionSpec) -> Cells| {
        for spec in mcp_exact_revisions::all() {
            for (entrance, value) in of(spec) {
                matrix.push(((section.clone(), entrance, spec.id()), value));
            }
        }
    };
    for method in methods(Kind::Request) {
        add(format!("client requests {method}"), &|spec| {
            request_by_client(spec, method)
        });
        add(format!("server requests {method}"), &|spec| {
            request_by_server(spec, method)
        });
        add(format!("server requires input by {method}"), &|spec| {
            input_request(spec, method)
        });
    }
    for method in methods(Kind::Notification) {
        add(format!("client notifies {method}"), &|spec| {
            notification_by_client(spec, method)
        });
        add(format!("server notifies {method}"), &|spec| {
            notification_by_server(spec, method)
        });
    }
    for kind in ["tools", "prompts", "resources", "resource a:b"] {
        add(format!("server publishes a change of {kind}"), &|spec| {
            published(spec, kind)
        });
    }
    matrix
}

/// `A B C D E` are the five revisions, oldest first; a result that all of them share is printed once.
fn text(matrix: &[(Place, String)]) -> String {
    let ids: Vec<&str> = mcp_exact_revisions::all()
        .iter()
        .map(|spec| spec.id())
        .collect();
    let letters = |of: &BTreeSet<&str>| -> String {
        let all = ids.iter().zip('A'..);
        all.filter(|(id, _)| of.contains(**id))
            .map(|(_, letter)| letter)
            .collect()
    };
    let mut sections: BTreeMap<&str, Entrances<'_>> = BTreeMap::new();
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

/// Compares with a file that was read line by line.
fn check(name: &str, text: &str) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src/rules/matrix")
        .join(name);
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
fn rule_matrix_is_that_of_the_specification() {
    check("matrix.txt", &text(&matrix()));
}

/// Entrances that a row guards.
fn guarded(rule: &Rule) -> Vec<String> {
    let client = rule.sender == Side::Client;
    let sender = if client { "client" } else { "server" };
    let (section, send) = match rule.kind {
        Kind::Request => (format!("{sender} requests {}", rule.method), "request"),
        Kind::Notification if rule.handler == Handler::Acknowledged => (
            format!("{sender} notifies {}", rule.method),
            "notify during a subscription",
        ),
        Kind::Notification if client => (format!("{sender} notifies {}", rule.method), "notify"),
        Kind::Notification => (
            format!("{sender} notifies {}", rule.method),
            "notify to the client",
        ),
        Kind::InputRequest => (
            format!("server requires input by {}", rule.method),
            "reply InputRequired",
        ),
    };
    let mut entrances = vec![send];
    match rule.kind {
        Kind::InputRequest => entrances.extend(["reply raw", "receive in a result"]),
        Kind::Request if rule.may_require_input => {
            entrances.extend([
                "receive",
                "reply of type input_required",
                "reply InputRequired",
            ]);
        }
        _ if rule.handler == Handler::Initialized => entrances.push("receive before initialized"),
        _ => entrances.push("receive"),
    }
    let by_endpoint = rule.sent_by == Local::Endpoint && rule.kind == Kind::Request;
    // Whoever sends it without the function of the endpoint is refused either way.
    entrances.retain(|entrance| !(by_endpoint && *entrance == "request"));
    entrances
        .into_iter()
        .map(|entrance| format!("{section}: {entrance}"))
        .collect()
}

/// Without a row something changes at every entry point that it guards.
#[test]
fn every_row_counts_at_every_entrance() {
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
    for (at, rule) in RULES.iter().enumerate() {
        LEFT_OUT.set(Some(at));
        let without: BTreeMap<Place, String> = matrix().into_iter().collect();
        LEFT_OUT.set(None);
        let changed: Vec<&Place> = whole
            .iter()
            .filter(|(place, value)| without.get(place) != Some(value))
            .map(|(place, _)| place)
            .collect();
        let names: BTreeSet<String> = changed
            .iter()
            .map(|(section, entrance, _)| format!("{section}: {entrance}"))
            .collect();
        unguarded.extend(
            guarded(rule)
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
    check("left_out.txt", &summary);
}
