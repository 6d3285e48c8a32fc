//! Checks `docs/requirements.toml`: every requirement names the tests that prove it, or the reason why there are none.
//!
//! Prints the number of proved requirements of each revision. The tests of the requirements run again through every
//! listed entry point, each entry point in a separate process.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::process::Command;

use mcp_exact_tests_session::{ENTRANCE_VARIABLE, Entrance, all_revisions};
use toml::{Table, Value};

/// Valid roles of a requirement.
const ROLES: [&str; 4] = ["client", "server", "both", "transport"];
/// Valid levels of a requirement (RFC 2119).
const LEVELS: [&str; 4] = ["MUST", "MUST NOT", "SHOULD", "SHOULD NOT"];
/// Those whose duty a requirement without a test can be: the beginning of its reason.
const PARTIES: [&str; 9] = [
    "host",
    "client program",
    "server program",
    "program that runs the tasks",
    "authorization server",
    "operator",
    "author of an OAuth proxy",
    "author of an intermediary",
    "author of a transport",
];
/// Prefixes of the names of tests, each with the folders that contain the tests.
const TEST_FOLDERS: [(&str, &[&str]); 7] = [
    ("session", &["tests/session/tests/session"]),
    ("unit", &["crates/mcp-exact-session/src"]),
    (
        "transport",
        &[
            "tests/transport/tests/transport",
            "crates/mcp-exact-transport/src",
        ],
    ),
    (
        "auth",
        &["tests/auth/tests/auth", "crates/mcp-exact-auth/src"],
    ),
    (
        "library",
        &[
            "crates/mcp-exact/tests/it",
            "crates/mcp-exact/tests/features",
            "crates/mcp-exact/src",
        ],
    ),
    (
        "bridge",
        &[
            "crates/mcp-exact-bridge/tests/bridge",
            "crates/mcp-exact-bridge/src",
        ],
    ),
    (
        "program",
        &["crates/mcp-exact-cli/tests/cli", "crates/mcp-exact-cli/src"],
    ),
];
/// Valid keys of a requirement in `docs/requirements.toml`.
const COLUMNS: [&str; 9] = [
    "id",
    "revisions",
    "role",
    "level",
    "page",
    "text",
    "tests",
    "entrances",
    "reason",
];

/// Requirement of `docs/requirements.toml`.
struct Requirement {
    /// Identifier of the requirement: its area and its name, separated by a period.
    id: String,
    /// Revisions of the specification that contain the requirement.
    revisions: Vec<String>,
    /// Role that must meet the requirement: one of [`ROLES`].
    role: String,
    /// Level of the requirement: one of [`LEVELS`].
    level: String,
    /// Page of the specification that contains the requirement.
    page: String,
    /// Content of the requirement, in the words of this project.
    text: String,
    /// Names of the tests that prove the requirement.
    tests: Vec<String>,
    /// Entry points that the tests of the requirement use.
    entrances: Vec<String>,
    /// Whose duty the requirement is, and why, if no test proves it; empty if there are tests.
    reason: String,
}

/// Returns the root folder of the repository.
fn repository_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

/// Reads all requirements of `docs/requirements.toml`.
fn requirements() -> Vec<Requirement> {
    let text = std::fs::read_to_string(repository_root().join("docs/requirements.toml"))
        .expect("the ledger");
    parse_requirements(&text)
}

/// Parses the text of `docs/requirements.toml`.
fn parse_requirements(text: &str) -> Vec<Requirement> {
    let ledger: Table = text.parse().expect("TOML");
    let rows = ledger["requirement"].as_array().expect("rows");
    rows.iter().map(parse_requirement).collect()
}

/// Parses one requirement; panics if it has an unknown key.
fn parse_requirement(row: &Value) -> Requirement {
    let row = row.as_table().expect("a table");
    for name in row.keys() {
        assert!(COLUMNS.contains(&&**name), "unknown column `{name}`: {row}");
    }
    let string = |name: &str| {
        let value = row.get(name).and_then(Value::as_str);
        let value = value.unwrap_or_else(|| panic!("`{name}` is missing: {row}"));
        value.to_owned()
    };
    let strings = |name: &str| -> Vec<String> {
        let value = row.get(name).and_then(Value::as_array);
        let value = value.unwrap_or_else(|| panic!("`{name}` is missing: {row}"));
        let text = |value: &Value| value.as_str().expect("a string").to_owned();
        value.iter().map(text).collect()
    };
    Requirement {
        id: string("id"),
        revisions: strings("revisions"),
        role: string("role"),
        level: string("level"),
        page: string("page"),
        text: string("text"),
        tests: strings("tests"),
        entrances: strings("entrances"),
        reason: string("reason"),
    }
}

/// Returns the errors in the requirements; `known` are the names of the existing tests.
fn ledger_errors(rows: &[Requirement], known: &BTreeSet<String>) -> Vec<String> {
    let mut faults = Vec::new();
    for pair in rows.windows(2) {
        if pair[0].id >= pair[1].id {
            faults.push(format!(
                "`{}` does not come after `{}`",
                pair[1].id, pair[0].id
            ));
        }
    }
    let revisions = all_revisions();
    for row in rows {
        let mut fault = |words: String| faults.push(format!("{}: {words}", row.id));
        match (row.tests.is_empty(), row.reason.trim().is_empty()) {
            (true, true) => fault("neither a test nor a reason".to_owned()),
            (false, false) => fault("a reason although a test proves it".to_owned()),
            (true, false) if !names_a_party(&row.reason) => {
                fault("the reason does not say whose duty it is".to_owned());
            }
            _ => {}
        }
        for test in row.tests.iter().filter(|test| !known.contains(*test)) {
            fault(format!("no such test: {test}"));
        }
        for name in references(&row.reason) {
            let is_row = rows.iter().any(|row| row.id == name);
            if !is_row && !known.iter().any(|test| test.starts_with(name)) {
                fault(format!("the reason refers to nothing: {name}"));
            }
        }
        let named: BTreeSet<&String> = row.tests.iter().collect();
        if named.len() < row.tests.len() {
            fault("a test is named twice".to_owned());
        }
        let place = |id: &String| revisions.iter().position(|known| known == id);
        let places: Option<Vec<usize>> = row.revisions.iter().map(place).collect();
        match places {
            None => fault(format!("an unknown revision: {:?}", row.revisions)),
            Some(places) if places.is_empty() => fault("no revision".to_owned()),
            Some(places) if !places.is_sorted_by(|a, b| a < b) => {
                fault("revisions out of order".to_owned());
            }
            Some(_) => {}
        }
        if !ROLES.contains(&&*row.role) {
            fault(format!("an unknown role: {}", row.role));
        }
        if !LEVELS.contains(&&*row.level) {
            fault(format!("an unknown level: {}", row.level));
        }
        if row.page.trim().is_empty() || row.text.trim().is_empty() {
            fault("no page or no text".to_owned());
        }
        let area = row.id.split_once('.').map_or("", |(area, _)| area);
        if area.is_empty() || !area.bytes().all(|byte| byte.is_ascii_uppercase()) {
            fault("an id is AREA.name".to_owned());
        }
    }
    faults
}

/// Returns what a reason refers to in brackets: tests, modules of tests, and rows.
fn references(reason: &str) -> impl Iterator<Item = &str> {
    let bracketed = reason.split('(').skip(1);
    let bracketed = bracketed.filter_map(|rest| rest.split(')').next());
    bracketed.filter(|name| name.contains(['.', ':']) && !name.contains(' '))
}

/// Returns true if a reason begins with whose duty the requirement is, and goes on with an explanation.
fn names_a_party(reason: &str) -> bool {
    let party = reason.strip_prefix("duty of the ").unwrap_or_default();
    PARTIES.iter().any(|known| {
        let rest = party.strip_prefix(known);
        rest.and_then(|rest| rest.strip_prefix(": "))
            .is_some_and(|why| !why.trim().is_empty())
    })
}

/// Prefix of the names of the tests in this executable.
const TEST_PREFIX: &str = "session::";

/// Returns the names of the tests that requirements can list: the prefix of a folder in [`TEST_FOLDERS`], the modules below
/// the folder, and the function.
fn known_tests() -> BTreeSet<String> {
    let mut known = BTreeSet::new();
    for (prefix, folders) in TEST_FOLDERS {
        let before = known.len();
        for folder in folders {
            collect_tests(&repository_root().join(folder), prefix, &mut known);
        }
        assert!(known.len() > before, "{prefix}: no tests in {folders:?}");
    }
    known
}

/// Adds the tests of the source files in a folder, prefixed by the path of their module.
fn collect_tests(folder: &Path, prefix: &str, known: &mut BTreeSet<String>) {
    for entry in std::fs::read_dir(folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        let stem = path
            .file_stem()
            .and_then(|stem| stem.to_str())
            .expect("a name");
        let inner = match stem {
            "main" | "lib" | "mod" => prefix.to_owned(),
            stem => format!("{prefix}::{stem}"),
        };
        if path.is_dir() {
            collect_tests(&path, &inner, known);
        } else if path.extension().is_some_and(|extension| extension == "rs") {
            let source = std::fs::read_to_string(&path).expect("a source");
            let tests = tests_in(&source).into_iter();
            for test in tests.map(|test| format!("{inner}::{test}")) {
                assert!(known.insert(test.clone()), "{test} is there twice");
            }
        }
    }
}

/// Returns the tests of a source file: the names of functions with `#[test]`, with the enclosing modules.
fn tests_in(source: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut modules: Vec<(usize, String)> = Vec::new();
    let mut is_test = false;
    for line in source.lines() {
        let indent = line.len() - line.trim_start().len();
        let line = line.trim();
        if line == "}" {
            modules.retain(|(at, _)| *at < indent);
        }
        if let Some(module) = line
            .strip_prefix("mod ")
            .and_then(|rest| rest.strip_suffix(" {"))
        {
            modules.push((indent, module.to_owned()));
        }
        if line == "#[test]" || line.starts_with("#[tokio::test") {
            is_test = true;
        } else if let Some(rest) = line.trim_start_matches("async ").strip_prefix("fn ") {
            let name = rest.split('(').next().unwrap_or_default();
            if std::mem::take(&mut is_test) {
                let path = modules.iter().map(|(_, module)| &**module);
                found.push(path.chain([name]).collect::<Vec<_>>().join("::"));
            }
        } else if !line.starts_with("#[") && !line.starts_with("//") {
            is_test = false;
        }
    }
    found
}

/// Every requirement in `docs/requirements.toml` lists existing tests or a reason why there are none.
#[test]
fn every_requirement_is_proved_or_explained() {
    let (rows, known) = (requirements(), known_tests());
    assert!(rows.len() > 300, "{} rows", rows.len());
    assert!(known.contains("session::lifecycle::handshake::server_confirms_requested_revision"));
    for test in [
        "unit::frame::tests::end_line_and_split_line_agree",
        "transport::sse::tests::fields_cannot_be_injected",
        "auth::client::attacks_fail_with_an_error",
        "auth::client::flow::redirect::tests::redirect_uris_are_safe",
        "library::tasks::scopes::all_requests_require_the_scope",
        "bridge::headers::tokens_of_clients_stay_in_the_bridge",
        "program::ends::records_are_private",
    ] {
        assert!(known.contains(test), "{test} is not found");
    }
    assert!(!known.contains("auth::client::attacks_fail"));
    let faults = ledger_errors(&rows, &known);
    assert!(faults.is_empty(), "{}", faults.join("\n"));
    let mut counts: BTreeMap<&str, (usize, usize)> = BTreeMap::new();
    for row in &rows {
        let revisions = row.revisions.iter().map(|id| &**id).chain(["all"]);
        for revision in revisions {
            let (proved, reasoned) = counts.entry(revision).or_default();
            *if row.reason.is_empty() {
                proved
            } else {
                reasoned
            } += 1;
        }
    }
    for revision in all_revisions().into_iter().chain(["all"]) {
        let Some((proved, reasoned)) = counts.get(revision) else {
            let is_newest = Some(&revision) == all_revisions().last();
            assert!(is_newest, "docs/requirements.toml has no row of {revision}");
            eprintln!("left out: {revision}, of which docs/requirements.toml has no row yet");
            continue;
        };
        eprintln!("{revision}: {proved} proved, {reasoned} with a reason");
        assert!(*proved > 0);
    }
}

/// Returns the tests that are not run through an entry point, because they depend on one transport.
fn excluded_tests(entrance: Entrance) -> BTreeSet<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/session/one_transport.txt");
    let text = std::fs::read_to_string(path).expect("a list");
    let tests = text.lines().filter_map(|line| line.split_once(' '));
    tests
        .filter(|(name, _)| *name == entrance.name())
        .map(|(_, test)| test.to_owned())
        .collect()
}

/// Runs tests of this executable again through the entry point `entrance`. Returns pairs of a test and an entry point
/// that the test has used; the entry point differs from `entrance` if a test sets its own transport.
fn run_through_entrance(entrance: Entrance, tests: &BTreeSet<&str>) -> Vec<(String, String)> {
    let mut command = Command::new(std::env::current_exe().expect("a path"));
    command.env(ENTRANCE_VARIABLE, entrance.name());
    // With one thread, tests would run on the main one, which does not have their names.
    command.args(["--exact", "--nocapture", "--test-threads", "2"]);
    let output = command.args(tests).output().expect("it starts");
    let (text, printed) = (
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr),
    );
    let passed = text.contains(&format!("{} passed; 0 failed", tests.len()));
    assert!(
        output.status.success() && passed,
        "{entrance:?}:\n{text}\n{printed}"
    );
    let taken = printed.lines().filter_map(|line| {
        let (name, test) = line.strip_prefix("through ")?.split_once(": ")?;
        Some((test.to_owned(), name.to_owned()))
    });
    taken.collect()
}

/// The tests of every requirement pass through each entry point. A requirement lists the entry points that its tests
/// have used; `UPDATE_EXPECT=1` updates the list.
#[test]
fn requirements_hold_on_every_transport() {
    let rows = requirements();
    let ours = |row: &Requirement| -> Vec<String> {
        let ours = row
            .tests
            .iter()
            .filter_map(|test| test.strip_prefix(TEST_PREFIX));
        ours.map(str::to_owned).collect()
    };
    let all: BTreeSet<String> = rows.iter().flat_map(ours).collect();
    let mut taken = BTreeSet::new();
    for entrance in Entrance::ALL {
        let left_out = excluded_tests(entrance);
        let tests = all.iter().filter(|test| !left_out.contains(*test));
        let tests: BTreeSet<&str> = tests.map(|test| &**test).collect();
        taken.extend(run_through_entrance(entrance, &tests));
    }
    let of = |row: &Requirement| -> Vec<&str> {
        let names = Entrance::ALL.iter().map(|entrance| entrance.name());
        let takes = |name: &&str| {
            let mut tests = ours(row).into_iter();
            tests.any(|test| taken.contains(&(test, (*name).to_owned())))
        };
        names.filter(takes).collect()
    };
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        let listed: BTreeMap<&str, Vec<&str>> =
            rows.iter().map(|row| (&*row.id, of(row))).collect();
        write_entrances(&listed);
        return;
    }
    for row in &rows {
        assert_eq!(row.entrances, of(row), "entrances of {}", row.id);
    }
}

/// Writes the used entry points of each requirement to `docs/requirements.toml`.
fn write_entrances(listed: &BTreeMap<&str, Vec<&str>>) {
    let path = repository_root().join("docs/requirements.toml");
    let text = std::fs::read_to_string(&path).expect("the ledger");
    let (mut id, mut written) = (String::new(), String::new());
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("id = ") {
            id = rest.trim_matches('"').to_owned();
        }
        if line.starts_with("entrances = ") {
            written.push_str(&format!("entrances = {:?}", listed[&*id]))
        } else {
            written.push_str(line)
        }
        written.push('\n');
    }
    std::fs::write(path, written).expect("the ledger");
}

/// Errors in a table of requirements, such as an unknown test, are found.
#[test]
fn invalid_requirements_are_detected() {
    let known = BTreeSet::from(["session::a::b".to_owned()]);
    let good = |id: &str| {
        format!(
            "[[requirement]]\nid = \"{id}\"\nrevisions = [\"2024-11-05\", \"2025-11-25\"]\nrole = \"both\"\nlevel = \"MUST\"\n\
             page = \"basic#x\"\ntext = \"t\"\ntests = [\"session::a::b\"]\nentrances = [\"duplex\", \"http\"]\nreason = \"\"\n"
        )
    };
    let check = |text: &str| ledger_errors(&parse_requirements(text), &known);
    assert_eq!(check(&(good("A.a") + &good("A.b"))), Vec::<String>::new());
    let a = good("A.a");
    for (from, to, words) in [
        ("[\"session::a::b\"]", "[]", "neither"),
        (
            "reason = \"\"",
            "reason = \"duty of the host: r\"",
            "although",
        ),
        ("session::a::b", "session::a::c", "no such test"),
        (
            "\"session::a::b\"",
            "\"session::a::b\", \"session::a::b\"",
            "twice",
        ),
        ("2024-11-05", "2024-11-06", "unknown revision"),
        (
            "[\"2024-11-05\", \"2025-11-25\"]",
            "[\"2025-11-25\", \"2024-11-05\"]",
            "out of order",
        ),
        ("[\"2024-11-05\", \"2025-11-25\"]", "[]", "no revision"),
        ("\"both\"", "\"host\"", "unknown role"),
        ("\"MUST\"", "\"MAY\"", "unknown level"),
        ("\"t\"", "\"\"", "no text"),
        ("A.a", "a", "AREA.name"),
    ] {
        let found = check(&a.replace(from, to));
        assert!(
            found.len() == 1 && found[0].contains(words),
            "{words}: {found:?}"
        );
    }
    let without_tests = a.replace("[\"session::a::b\"]", "[]");
    for (reason, is_valid) in [
        ("duty of the host: it draws", true),
        ("duty of the host: it draws (session::a)", true),
        ("duty of the host: it draws (session::x)", false),
        ("duty of the host: it draws (A.a)", true),
        ("duty of the host: it draws (A.b)", false),
        ("duty of the session: it draws", false),
        ("duty of the host", false),
        ("duty of the host: ", false),
        ("the session does no HTTP", false),
    ] {
        let found = check(&without_tests.replace("\"\"", &format!("{reason:?}")));
        assert_eq!(found.is_empty(), is_valid, "{reason}: {found:?}");
    }
    assert!(check(&(good("A.b") + &a))[0].contains("does not come after"));
    assert!(check(&(a.clone() + &a))[0].contains("does not come after"));
}
