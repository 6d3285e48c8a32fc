//! What the clients of other libraries deliver in front of the zoo, as `cargo xtask interop --tolerance` has recorded it:
//! ours deliver at least as much, or a reason says why not.

use std::collections::BTreeSet;
use std::path::Path;

use mcp_exact_tests_tolerance::zoo::{CASES, Case};
use serde_json::Value;

/// Cases in which another client delivers what ours does not, with the reason.
pub const LESS: &[(&str, &str)] = &[
    (
        "tool with a member twice",
        "which of the two names is meant is unknown, and a call could reach another tool. The tool is left out and reported",
    ),
    (
        "half of an emoji",
        "strings of Rust are Unicode, which half of a surrogate pair is not. It becomes U+FFFD; the rest of the text is the same",
    ),
    (
        "NaN in a result",
        "NaN is not JSON (RFC 8259, section 6). The call ends at once, with an error that shows the text",
    ),
    (
        "a byte that is not UTF-8",
        "JSON is UTF-8 (RFC 8259, section 8.1), and which text the byte stands for is unknown. The call ends at once, with an error that shows the text",
    ),
];

/// What a client of another library does in one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Outcome {
    /// What the client gives its application: the names of the items of a list, the texts of a result, or the capabilities.
    Delivered(String),
    /// The client reports an error, whose first line this is.
    Error(String),
    /// The client neither delivers nor reports anything before its timeout.
    Waits,
}

/// One line of the record.
#[derive(Debug, Clone)]
pub struct Record {
    case: String,
    client: String,
    /// Revision of the server, and the transport.
    mode: (String, String),
    outcome: Outcome,
}

/// Reads the record.
pub fn records() -> Vec<Record> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("other_clients.jsonl");
    let text = std::fs::read_to_string(path).expect("the record");
    let read = |line: &str| {
        let line: Value = serde_json::from_str(line).expect("a line of the record");
        let text = |name: &str| line[name].as_str().map(str::to_owned);
        let named = |name: &str| text(name).expect("a member of the record");
        let outcome = match (text("delivered"), text("error")) {
            (Some(delivered), _) => Outcome::Delivered(delivered),
            (None, Some(error)) => Outcome::Error(error),
            (None, None) => Outcome::Waits,
        };
        Record {
            case: named("case"),
            client: named("client"),
            mode: (named("revision"), named("transport")),
            outcome,
        }
    };
    text.lines().map(read).collect()
}

/// Returns the names of the clients, in the order of the columns.
pub fn clients(records: &[Record]) -> Vec<String> {
    let clients: BTreeSet<&str> = records
        .iter()
        .map(|record| record.client.as_str())
        .collect();
    let mut clients: Vec<String> = clients.into_iter().map(str::to_owned).collect();
    let order = ["rmcp", "python", "typescript", "fastmcp"];
    clients.sort_by_key(|client| order.iter().position(|name| client.starts_with(name)));
    clients
}

/// Returns the heading of a client's column.
pub fn heading(client: &str) -> String {
    let (name, version) = client.rsplit_once('-').expect("a version");
    let name = match name {
        "python" => "Python SDK",
        "typescript" => "TypeScript SDK",
        "fastmcp" => "FastMCP",
        name => name,
    };
    format!("{name} {version}")
}

/// Returns the cell of a client in the row of a case: one outcome, or one for each server if they differ.
pub fn cell(records: &[Record], case: &Case, client: &str) -> String {
    let of_case = |record: &&Record| record.case == case.name && record.client == client;
    let mut outcomes: Vec<(String, Vec<(&str, &str)>)> = Vec::new();
    for record in records.iter().filter(of_case) {
        let word = word(case, &record.outcome);
        let (revision, transport) = &record.mode;
        let mode = (revision.as_str(), transport.as_str());
        match outcomes.iter_mut().find(|(known, _)| *known == word) {
            Some((_, modes)) => modes.push(mode),
            None => outcomes.push((word, vec![mode])),
        }
    }
    if let [(word, _)] = &outcomes[..] {
        return word.clone();
    }
    let parts = outcomes.iter().map(|(word, modes)| {
        let servers = match modes[..] {
            [("2025-11-25", "http")] => "HTTP",
            [("2025-11-25", "stdio"), ("2026-07-28", "stdio")] => "stdio",
            [("2025-11-25", _), ("2025-11-25", _)] => "2025-11-25",
            [("2026-07-28", _)] => "2026-07-28",
            [("2025-11-25", "stdio")] => "2025-11-25, stdio",
            _ => "others",
        };
        format!("{word} ({servers})")
    });
    parts.collect::<Vec<_>>().join(", ")
}

/// Returns an outcome as the page shows it.
fn word(case: &Case, outcome: &Outcome) -> String {
    match outcome {
        Outcome::Delivered(text) if text == case.delivers => "same".to_owned(),
        Outcome::Delivered(text) if text.is_empty() => "nothing".to_owned(),
        Outcome::Delivered(text) => format!("`{text}`"),
        // What the server says reaches the person.
        Outcome::Error(text) => match case.delivers.strip_prefix("error: ") {
            Some(reason) if text.contains(reason) => "same".to_owned(),
            _ => "error".to_owned(),
        },
        Outcome::Waits => "waits".to_owned(),
    }
}

/// Returns true if ours delivers everything that the other client delivers.
fn is_at_least(case: &Case, outcome: &Outcome) -> bool {
    let Outcome::Delivered(theirs) = outcome else {
        return true;
    };
    let ours = case.delivers;
    if case.method == "initialize" {
        let keys = |text: &str| -> BTreeSet<String> {
            let object: Value = serde_json::from_str(text).expect("capabilities");
            let object = object.as_object().expect("an object");
            object.keys().cloned().collect()
        };
        return keys(theirs).is_subset(&keys(ours));
    }
    if ours.starts_with("error: ") {
        return false;
    }
    if case.method.ends_with("/list") {
        let names = |text: &'_ str| -> BTreeSet<String> {
            let names = text.split(", ").filter(|name| !name.is_empty());
            names.map(str::to_owned).collect()
        };
        return names(theirs).is_subset(&names(ours));
    }
    theirs.is_empty() || theirs == ours
}

#[test]
fn ours_deliver_at_least_as_much() {
    let records = records();
    let mut less = BTreeSet::new();
    for case in CASES {
        for client in clients(&records) {
            let of_case = |record: &&Record| record.case == case.name && record.client == client;
            let own: Vec<&Record> = records.iter().filter(of_case).collect();
            assert!(!own.is_empty(), "{client} {:?}", case.name);
            for record in own {
                if !is_at_least(case, &record.outcome) {
                    less.insert(case.name);
                }
            }
        }
    }
    // A row says why ours delivers less, and no row that does not need it.
    let expected: BTreeSet<&str> = LESS.iter().map(|(case, _)| *case).collect();
    assert_eq!(less, expected);
    for record in &records {
        let is_known = CASES.iter().any(|case| case.name == record.case);
        assert!(is_known, "{:?} is not a case any more", record.case);
    }
}
