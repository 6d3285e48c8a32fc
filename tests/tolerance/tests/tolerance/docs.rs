//! The tables of `docs/tolerance.md`: the rules from the code, the cases from the zoo. `UPDATE_EXPECT=1` writes them.

use std::fmt::Write as _;
use std::path::Path;

use mcp_exact_convert::RULES;
use mcp_exact_tests_tolerance::zoo::CASES;

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

#[test]
fn page_has_every_rule_and_case() {
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
    let mut cases = String::from(
        "| what the server sends | in | what the client delivers | what is reported |\n|---|---|---|---|\n",
    );
    for case in CASES {
        let rules = case.rules.iter().map(|rule| format!("`{rule}`"));
        let rules = rules.collect::<Vec<_>>().join(", ");
        let delivers = match case.delivers {
            "" => "nothing, without an error".to_owned(),
            words => format!("`{words}`"),
        };
        let _ = writeln!(
            cases,
            "| {} | `{}` | {delivers} | {rules} |",
            case.name, case.method
        );
    }
    for rule in CASES.iter().flat_map(|case| case.rules) {
        assert!(
            RULES.iter().any(|row| row.name == *rule),
            "{rule} is no rule"
        );
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/tolerance.md");
    let page = std::fs::read_to_string(&path).expect("the page");
    let expected = with_table(&with_table(&page, "rules", &rules), "cases", &cases);
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        std::fs::write(&path, expected).expect("a write");
    } else {
        assert_eq!(page, expected, "run the test with UPDATE_EXPECT=1");
    }
}
