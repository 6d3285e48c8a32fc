//! Finds, in the output of cargo, what a maintainer has to know about a failure: the property that fails, with definition, pointer
//! and smallest instance, and what to do. The whole output stays in a file.

/// Maximum number of lines of a reason.
const MAX_LINES: usize = 24;
/// Maximum number of characters of a line.
const MAX_LINE: usize = 600;

/// What to do when the test with a name fails.
const REMEDIES: &[(&str, &str)] = &[
    (
        "types_and_schema_agree",
        "teach the generator what stands at this pointer of the schema, or correct the schema by an erratum",
    ),
    (
        "tables_agree_with_types",
        "teach the tables of conversions (codegen/src/convert) what the types check there",
    ),
    (
        "every_difference_is_reported",
        "choose a conversion of this definition in schema/conversions.toml",
    ),
];

/// Returns the reason of a failure: the failed tests without backtraces, the first error of the compiler, or the last lines.
pub fn reason(output: &str) -> String {
    let lines: Vec<&str> = output.lines().collect();
    let tests = failed_tests(&lines);
    let shown = if tests.is_empty() {
        let first = lines.iter().position(|line| line.starts_with("error"));
        let from = first.unwrap_or(lines.len().saturating_sub(MAX_LINES));
        let block = lines[from..].iter();
        let block = block.take_while(|line| first.is_none() || !line.trim().is_empty());
        block.map(|line| shorten(line)).collect()
    } else {
        tests
    };
    shown[..shown.len().min(MAX_LINES)].join("\n")
}

/// Returns the lines that describe failed tests: the property, what its test says, and the remedy.
fn failed_tests(lines: &[&str]) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = lines.iter().peekable();
    while let Some(line) = rest.next() {
        let name = line.strip_prefix("---- ");
        let Some(name) = name.and_then(|line| line.strip_suffix(" stdout ----")) else {
            continue;
        };
        found.push(format!("the property `{name}` fails:"));
        let mut has_panicked = false;
        while let Some(line) =
            rest.next_if(|line| !line.starts_with("---- ") && **line != "failures:")
        {
            if line.contains("panicked at ") {
                has_panicked = true;
            } else if line.starts_with("stack backtrace:") || line.starts_with("note: ") {
                break;
            } else if has_panicked && !line.trim().is_empty() {
                found.push(format!("  {}", shorten(line)));
            }
        }
        let test = name.rsplit("::").next().unwrap_or(name);
        let remedy = REMEDIES.iter().find(|(known, _)| *known == test);
        let remedy = remedy.map_or("read the description of the test", |(_, remedy)| remedy);
        found.push(format!("  what to do: {remedy}"));
    }
    found
}

/// Returns a line without what exceeds the limit.
fn shorten(line: &str) -> String {
    match line.char_indices().nth(MAX_LINE) {
        Some((end, _)) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use expect_test::{Expect, expect};

    use super::reason;

    /// Compares the reason in the output.
    fn check(output: &str, expected: &Expect) {
        expected.assert_eq(&reason(output));
    }

    /// A failed test is named with what it says and what to do, without the backtrace.
    #[test]
    fn failed_tests_are_named() {
        check(
            "\nrunning 2 tests\n.F\nfailures:\n\n---- tables::tables_agree_with_types stdout ----\nprinted before\n\
             \nthread 'x' (7) panicked at tests/a.rs:1:2:\n2099-01-01 Tool: {\"a\":[]}\n  left: 1\nstack backtrace:\n   0: main\n\
             note: run with `RUST_BACKTRACE=full`\n\n\nfailures:\n    tables::tables_agree_with_types\n\n\
             test result: FAILED. 1 passed\n\nerror: test failed, to rerun pass `-p x`\n",
            &expect![[r#"
                the property `tables::tables_agree_with_types` fails:
                  2099-01-01 Tool: {"a":[]}
                    left: 1
                  what to do: teach the tables of conversions (codegen/src/convert) what the types check there"#]],
        );
    }

    /// The first error of the compiler is shown alone.
    #[test]
    fn first_error_of_the_compiler_is_shown() {
        check(
            "warning: unused\n\nerror[E0425]: cannot find value `x`\n --> a.rs:1:1\n  |\n\nerror: could not compile\n",
            &expect![[r#"
                error[E0425]: cannot find value `x`
                 --> a.rs:1:1
                  |"#]],
        );
    }

    /// Without a test or an error, the last lines are shown.
    #[test]
    fn last_lines_are_shown_otherwise() {
        check(
            "one\ntwo\n",
            &expect![[r#"
            one
            two"#]],
        );
    }
}
