//! The tables of `docs/tolerance.md`: the rules from the code, the cases from the zoo, other clients from the record. `UPDATE_EXPECT=1` writes them.

use std::fmt::Write as _;
use std::path::Path;

use mcp_exact_convert::RULES;
use mcp_exact_tests_tolerance::clients::{ANSWERS, CLIENTS, Phase};
use mcp_exact_tests_tolerance::entrance::Entrance;
use mcp_exact_tests_tolerance::zoo::CASES;

use super::client::reports;
use super::others::{self, LESS};

/// Marks of a table in the page.
fn marks(name: &str) -> (String, String) {
    (
        format!("<!-- {name}: begin -->\n"),
        format!("<!-- {name}: end -->"),
    )
}

/// Replaces a table of the page.
fn with_table(page: &str, name: &str, table: &str) -> String {
    let (begin, end) = marks(name);
    let (before, rest) = page.split_once(&begin).expect("a mark");
    let (_, after) = rest.split_once(&end).expect("a mark");
    format!("{before}{begin}{table}{end}{after}")
}

/// Returns the table of untidy servers, with what the clients of other libraries do.
async fn cases_table() -> String {
    let records = others::records();
    let clients = others::clients(&records);
    let headings: Vec<_> = clients.iter().map(|name| others::heading(name)).collect();
    let mut table = format!(
        "| what the server sends | in | what the client delivers | what the program prints after `repaired: ` | {} |\n|{}\n",
        headings.join(" | "),
        "---|".repeat(4 + headings.len()),
    );
    for case in CASES {
        let lines = reports(case).await;
        let lines = lines.iter().map(|line| format!("`` {line} ``"));
        let lines = lines.collect::<Vec<_>>().join("<br>");
        let delivers = match case.delivers {
            "" => "nothing, without an error".to_owned(),
            words => format!("`{}`", words.replace('\n', "`<br>`")),
        };
        let cells = clients
            .iter()
            .map(|client| others::cell(&records, case, client));
        let cells = cells.collect::<Vec<_>>().join(" | ");
        let _ = writeln!(
            table,
            "| {} | `{}` | {delivers} | {lines} | {cells} |",
            case.name, case.method
        );
    }
    table
}

/// Returns the list of cases in which another client delivers more.
fn less_list() -> String {
    let lines = LESS.iter();
    let lines = lines.map(|(case, reason)| format!("- {case}: {reason}\n"));
    lines.collect()
}

/// Returns the table of untidy clients.
fn clients_table() -> String {
    let mut table =
        String::from("| what the client sends | when | what is reported |\n|---|---|---|\n");
    for case in CLIENTS {
        let phase = match case.phase {
            Phase::Handshake => "handshake",
            Phase::Session => "after the handshake",
            Phase::Request => "in every revision",
        };
        let _ = writeln!(table, "| {} | {phase} | `{}` |", case.name, case.rule);
    }
    for case in ANSWERS {
        let (name, method, rule) = (case.name, case.method, case.rule);
        let _ = writeln!(table, "| {name} | answer to `{method}` | `{rule}` |");
    }
    table
}

/// Returns the table of entrances with the number of their cases.
fn entrances_table() -> String {
    let mut table = String::from("| entrance | cases |\n|---|--:|\n");
    let servers = Entrance::ALL.map(|entrance| (entrance.name(), entrance.cases().count()));
    let clients = [
        ("server, every revision", CLIENTS.len()),
        ("server, answers to its requests", ANSWERS.len()),
        ("gateway in front of untidy clients", CLIENTS.len()),
    ];
    let mut sum = 0;
    for (name, count) in servers.into_iter().chain(clients) {
        let _ = writeln!(table, "| {name} | {count} |");
        sum += count;
    }
    let _ = writeln!(table, "| together | {sum} |");
    assert!(sum >= 120, "{sum} cases");
    table
}

#[tokio::test]
async fn page_has_every_rule_and_case() {
    let mut rules = String::from("| rule | what it does | reports |\n|---|---|---|\n");
    for rule in RULES {
        let links = rule.reports.iter().map(|report| {
            let (repository, number) = report.split_once('#').expect("a number");
            format!("[{report}](https://github.com/{repository}/issues/{number})")
        });
        let links: Vec<_> = links.collect();
        let _ = writeln!(
            rules,
            "| `{}` | {} | {} |",
            rule.name,
            rule.effect,
            links.join(", ")
        );
        assert!(!rule.reports.is_empty(), "{} has no reason", rule.name);
    }
    let cases = cases_table().await;
    let of_clients = CLIENTS.iter().map(|case| &case.rule);
    let of_clients = of_clients.chain(ANSWERS.iter().map(|case| &case.rule));
    for rule in CASES.iter().flat_map(|case| case.rules).chain(of_clients) {
        assert!(
            RULES.iter().any(|row| row.name == *rule),
            "{rule} is not a rule"
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tolerance.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let mut expected = page.clone();
    for (name, table) in [
        ("rules", rules),
        ("cases", cases),
        ("less", less_list()),
        ("clients", clients_table()),
        ("entrances", entrances_table()),
    ] {
        expected = with_table(&expected, name, &table);
    }
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, expected).expect("a write");
    } else {
        assert_eq!(page, expected, "run the test with UPDATE_EXPECT=1");
    }
}
