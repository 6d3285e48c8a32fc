//! `cargo xtask nightly mutants`: mutation testing. One place of the code is changed at a time, and the tests must notice it.
//!
//! Installs cargo-mutants into `target/` if it is missing. After all mutants of a set were tested, writes their number, and why
//! some are not detected, to its section of `docs/mutants.md`.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, bail};

use crate::nightly::install_program;

/// Version of cargo-mutants that is installed.
const CARGO_MUTANTS_VERSION: &str = "27.1.0";
/// Path of the page with the number of mutants.
const PAGE: &str = "docs/mutants.md";
/// Mutants that no test detects, and why. Their places in the file are left out, because they change.
const SURVIVORS: &str = include_str!("mutants/survivors.toml");
/// Beginning of the page, before the sections of the sets.
const PAGE_HEAD: &str = "# Mutants\n\n`cargo xtask nightly mutants` changes the code of the following parts, one place at a time, runs their tests \
    on each change,\nand writes this page.\n";

/// Part of the project whose mutants are tested.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Set {
    /// The rule table and the refusals of the session.
    Session,
    /// Authorization: the client and the resource server.
    Auth,
}

/// What is mutated in a set, and the tests that must notice it.
struct Plan {
    /// Heading of the section.
    title: &'static str,
    /// Files whose mutants are tested.
    files: &'static [&'static str],
    /// Arguments of each pass, the quickest tests first: the packages and programs with tests, and what is skipped.
    passes: &'static [&'static [&'static str]],
    /// Arguments for all tests that can detect a mutant.
    all_tests: &'static [&'static str],
    /// Minimum percentage of mutants that tests must detect.
    min_detected_percent: f64,
}

impl Set {
    /// All sets.
    const ALL: [Self; 2] = [Self::Session, Self::Auth];

    /// Returns what is mutated and tested.
    const fn plan(self) -> Plan {
        match self {
            Self::Session => Plan {
                title: "Rules and refusals of the session",
                files: &[
                    "crates/mcp-exact-session/src/rules/*.rs",
                    "crates/mcp-exact-session/src/refusal.rs",
                ],
                passes: &[
                    // Without the slow test that removes each row of the rule table.
                    &[
                        "--cargo-arg=--lib",
                        "--test-package",
                        "mcp-exact-session",
                        "--",
                        "--",
                        "--skip",
                        "every_row_counts",
                    ],
                    &[
                        "--test-package",
                        "mcp-exact-session",
                        "--test-package",
                        "mcp-exact-tests-session",
                    ],
                ],
                all_tests: &[
                    "--test-package",
                    "mcp-exact-session",
                    "--test-package",
                    "mcp-exact-tests-session",
                ],
                min_detected_percent: 95.0,
            },
            Self::Auth => Plan {
                title: "Authorization",
                files: &[
                    "crates/mcp-exact-auth/src/*.rs",
                    "crates/mcp-exact-auth/src/client/**/*.rs",
                    "crates/mcp-exact-auth/src/server/**/*.rs",
                ],
                passes: &[
                    // Without two tests that take longer than all others.
                    &[
                        "--cargo-arg=--lib",
                        "--features",
                        "mcp-exact-auth/client,mcp-exact-auth/server",
                        "--test-package",
                        "mcp-exact-auth",
                        "--",
                        "--",
                        "--skip",
                        "a_flood_leaves_room_for_others",
                        "--skip",
                        "busy_servers_accept_all_proofs",
                    ],
                    &[
                        "--cargo-arg=--test=auth",
                        "--cargo-arg=--test=logs",
                        "--test-package",
                        "mcp-exact-auth",
                        "--test-package",
                        "mcp-exact-tests-auth",
                    ],
                    &[
                        "--cargo-arg=--lib",
                        "--features",
                        "mcp-exact-auth/client,mcp-exact-auth/server",
                        "--test-package",
                        "mcp-exact-auth",
                    ],
                ],
                all_tests: &[
                    "--cargo-arg=--lib",
                    "--cargo-arg=--test=auth",
                    "--cargo-arg=--test=logs",
                    "--test-package",
                    "mcp-exact-auth",
                    "--test-package",
                    "mcp-exact-tests-auth",
                ],
                min_detected_percent: 90.0,
            },
        }
    }

    /// Returns the name of the set's folder.
    const fn name(self) -> &'static str {
        match self {
            Self::Session => "session",
            Self::Auth => "auth",
        }
    }
}

/// Tests the mutants of these sets, or of all; with `shard`, only one share of them.
///
/// # Errors
/// Returns an error if too many mutants are missed, or cargo-mutants cannot run.
pub fn run(root: &Path, sets: &[Set], shard: Option<&str>) -> anyhow::Result<()> {
    let sets = if sets.is_empty() { &Set::ALL[..] } else { sets };
    for set in sets {
        run_set(root, *set, shard)?;
    }
    Ok(())
}

/// Tests the mutants of a set.
fn run_set(root: &Path, set: Set, shard: Option<&str>) -> anyhow::Result<()> {
    let program = install_program(root, "cargo-mutants", CARGO_MUTANTS_VERSION)?;
    let output = root.join("target").join("mutants").join(set.name());
    std::fs::create_dir_all(&output)
        .with_context(|| format!("cannot create {}", output.display()))?;
    let plan = set.plan();
    let mut count = Counts::default();
    for pass in test_passes(&plan, shard) {
        let mut command = Command::new(&program);
        // A backtrace of each test that fails takes longer than the test.
        command
            .current_dir(root)
            .env("RUST_BACKTRACE", "0")
            .args(arguments(&plan, &output, shard, &pass));
        let status = command.status().context("cannot start cargo-mutants")?;
        // 2: mutants were missed; 3: tests of some took too long, which counts as noticed.
        if !matches!(status.code(), Some(0 | 2 | 3)) {
            bail!("cargo-mutants failed ({status}); the output above says why");
        }
        let results = output.join("mutants.out");
        count.add(Counts::read(&results)?);
        skip_timeouts(&results)?;
        if count.missed.is_empty() {
            break;
        }
    }
    if count.detected + count.missed.len() == 0 {
        bail!("no mutant was tested: the files in xtask/src/mutants.rs are gone");
    }
    println!("{}", count.summary_line());
    if shard.is_none() {
        let path = root.join(PAGE);
        let page = std::fs::read_to_string(&path).unwrap_or_default();
        let section = count.section(&reasons(SURVIVORS)?);
        std::fs::write(&path, with_section(&page, plan.title, &section))
            .with_context(|| format!("cannot write {}", path.display()))?;
    }
    if count.detected_percent() < plan.min_detected_percent {
        bail!(
            "tests must notice {} % of the mutants: add tests for those in {}",
            plan.min_detected_percent,
            output.join("mutants.out").join("missed.txt").display()
        )
    }
    Ok(())
}

/// List of mutants that no test detects.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Survivors {
    #[serde(rename = "survivor")]
    survivors: Vec<Survivor>,
}

/// Mutant that no test detects.
#[derive(serde::Deserialize)]
#[serde(deny_unknown_fields)]
struct Survivor {
    /// Path of the mutated file.
    file: String,
    /// Description by cargo-mutants, without the place in the file.
    mutant: String,
    /// Why no test detects it.
    why: String,
}

/// Returns why mutants are not detected, by file and description.
fn reasons(survivors: &str) -> anyhow::Result<BTreeMap<(String, String), String>> {
    let Survivors { survivors } =
        toml::from_str(survivors).context("xtask/src/mutants/survivors.toml is wrong")?;
    let known = survivors
        .into_iter()
        .map(|known| ((known.file, known.mutant), known.why));
    Ok(known.collect())
}

/// Splits the name of a mutant into the path of its file and its description, without the place in the file.
fn without_place(name: &str) -> Option<(String, String)> {
    let (file, rest) = name.split_once(".rs:")?;
    let (_, mutant) = rest.split_once(": ")?;
    Some((format!("{file}.rs"), mutant.to_owned()))
}

/// Returns the page with a new section of a title; the other sections stay, in the order of the sets.
fn with_section(page: &str, title: &str, section: &str) -> String {
    let mut whole = PAGE_HEAD.to_owned();
    for set in Set::ALL {
        let heading = set.plan().title;
        let old = page.split("\n## ").skip(1).find_map(|old| {
            let (found, text) = old.split_once('\n')?;
            (found == heading).then(|| text.trim_matches('\n'))
        });
        let text = if heading == title { Some(section) } else { old };
        if let Some(text) = text {
            // Writing to a string cannot fail.
            let _ = write!(whole, "\n## {heading}\n\n{}\n", text.trim_matches('\n'));
        }
    }
    whole
}

/// Returns the arguments of each pass. Without a shard, quick tests run first, and others for the mutants that these have
/// missed; with a shard, all tests run in one pass, because the remaining mutants cannot be sharded in the same way.
fn test_passes(plan: &Plan, shard: Option<&str>) -> Vec<Vec<&'static str>> {
    match shard {
        Some(_) => vec![plan.all_tests.to_vec()],
        None => {
            let passes = plan.passes.iter().enumerate();
            passes
                .map(|(index, pass)| match index {
                    0 => pass.to_vec(),
                    _ => [&["--iterate"][..], pass].concat(),
                })
                .collect()
        }
    }
}

/// Lets the next pass skip the mutants whose tests did not end: cargo-mutants skips only those that it calls caught.
fn skip_timeouts(results: &Path) -> anyhow::Result<()> {
    let read = |name: &str| {
        let path = results.join(name);
        std::fs::read_to_string(&path).with_context(|| format!("cannot read {}", path.display()))
    };
    let all = read("caught.txt")? + &read("timeout.txt")?;
    let path = results.join("caught.txt");
    std::fs::write(&path, all).with_context(|| format!("cannot write {}", path.display()))
}

/// Returns the arguments of cargo-mutants for a pass.
fn arguments(plan: &Plan, output: &Path, shard: Option<&str>, pass: &[&str]) -> Vec<String> {
    // Two at a time: while one is linked or tested, the other is compiled.
    let mut line: Vec<String> = ["mutants", "--no-shuffle", "--jobs", "2"]
        .map(str::to_owned)
        .to_vec();
    line.extend(["--output".to_owned(), output.display().to_string()]);
    for file in plan.files {
        line.extend(["--file".to_owned(), (*file).to_owned()]);
    }
    if let Some(shard) = shard {
        line.extend(["--shard".to_owned(), shard.to_owned()]);
    }
    line.extend(pass.iter().map(|word| (*word).to_owned()));
    line
}

/// Numbers of mutants by outcome.
#[derive(Debug, Default, PartialEq, Eq)]
struct Counts {
    /// Number of mutants that tests have detected, by failing or by not ending.
    detected: usize,
    /// Descriptions of the mutants that tests have not detected.
    missed: Vec<String>,
    /// Number of mutants that do not compile.
    unviable: usize,
}

impl Counts {
    /// Reads the results of cargo-mutants.
    fn read(directory: &Path) -> anyhow::Result<Self> {
        let lines = |name: &str| -> anyhow::Result<Vec<String>> {
            let path = directory.join(name);
            let text = std::fs::read_to_string(&path);
            let text = text.with_context(|| format!("cannot read {}", path.display()))?;
            Ok(text.lines().map(str::to_owned).collect())
        };
        Ok(Self {
            detected: lines("caught.txt")?.len() + lines("timeout.txt")?.len(),
            missed: lines("missed.txt")?,
            unviable: lines("unviable.txt")?.len(),
        })
    }

    /// Adds the results of a second pass over the mutants that the first pass has not detected.
    fn add(&mut self, pass: Self) {
        self.detected += pass.detected;
        self.unviable += pass.unviable;
        self.missed = pass.missed;
    }

    /// Returns the percentage of the tested mutants that tests have detected.
    fn detected_percent(&self) -> f64 {
        let tested = self.detected + self.missed.len();
        100.0 * self.detected as f64 / tested as f64
    }

    /// Returns the counts as a line for the terminal.
    fn summary_line(&self) -> String {
        format!(
            "{} mutants noticed, {} missed, {} do not compile: {:.1} % noticed",
            self.detected,
            self.missed.len(),
            self.unviable,
            self.detected_percent()
        )
    }

    /// Returns the section of the page, with the reasons why mutants are missed.
    fn section(&self, reasons: &BTreeMap<(String, String), String>) -> String {
        let mut section = format!("{}.\n", self.summary_line());
        if !self.missed.is_empty() {
            section.push_str("\nMissed:\n\n");
        }
        for mutant in &self.missed {
            let why = without_place(mutant).and_then(|key| reasons.get(&key));
            let why = why.map_or("a test is missing", String::as_str);
            // Writing to a string cannot fail.
            let _ = writeln!(section, "- `{mutant}`: {why}");
        }
        section
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The arguments of each pass name the mutated files and the packages whose tests run.
    #[test]
    fn arguments_name_files_and_tests() {
        let lines = |shard: Option<&str>| -> Vec<String> {
            let plan = Set::Session.plan();
            let passes = test_passes(&plan, shard).into_iter();
            passes
                .map(|pass| arguments(&plan, Path::new("out"), shard, &pass).join(" "))
                .collect()
        };
        let all = "--test-package mcp-exact-session --test-package mcp-exact-tests-session";
        let whole = lines(None);
        assert!(whole[0].starts_with("mutants --no-shuffle --jobs 2 --output out --file crates/"));
        assert!(whole[0].contains("--cargo-arg=--lib --test-package mcp-exact-session -- --"));
        assert!(whole[1].ends_with(&format!("--iterate {all}")));
        let share = lines(Some("1/4"));
        assert!(share.len() == 1 && share[0].ends_with(&format!("--shard 1/4 {all}")));
    }

    /// A mutant whose tests did not end is counted once: the next pass skips it.
    #[test]
    fn timeouts_are_counted_once() {
        let results = tempfile::tempdir().expect("a folder");
        let write = |name: &str, text: &str| std::fs::write(results.path().join(name), text);
        for (name, text) in [
            ("caught.txt", "a\n"),
            ("timeout.txt", "b\n"),
            ("missed.txt", "c\n"),
            ("unviable.txt", ""),
        ] {
            write(name, text).expect("a file");
        }
        let counts = Counts::read(results.path()).expect("counts");
        assert_eq!((counts.detected, counts.missed.len()), (2, 1));
        skip_timeouts(results.path()).expect("the file of the next pass");
        let skipped = std::fs::read_to_string(results.path().join("caught.txt"));
        assert_eq!(skipped.expect("a file"), "a\nb\n");
    }

    #[test]
    fn mutated_files_exist() {
        let root = crate::workspace_root();
        for (file, mutant) in reasons(SURVIVORS).expect("the list is right").keys() {
            assert!(root.join(file).exists(), "{file}: {mutant}");
        }
        for set in Set::ALL {
            for file in set.plan().files {
                let (folder, _) = file.split_once("/*").unwrap_or((file, ""));
                let path = root.join(folder);
                assert!(path.exists(), "{}", path.display());
            }
        }
    }

    /// A run for one set of mutants replaces the section of this set in the page, and keeps the sections of the others.
    #[test]
    fn page_has_a_section_for_each_set() {
        let count = Counts {
            detected: 19,
            missed: vec![
                "src/a.rs:1:7: replace x with y".to_owned(),
                "src/a.rs:2:7: replace y with z".to_owned(),
            ],
            unviable: 2,
        };
        let survivors = r#"[[survivor]]
file = "src/a.rs"
mutant = "replace y with z"
why = "both are the same"
"#;
        let section = count.section(&reasons(survivors).expect("a list"));
        let [session, auth] = Set::ALL.map(|set| set.plan().title);
        let first = with_section("", auth, &section);
        let both = with_section(&first, session, "old\n");
        let both = with_section(&both, session, "new\n");
        let line = "19 mutants noticed, 2 missed, 2 do not compile: 90.5 % noticed.";
        let missed = "- `src/a.rs:1:7: replace x with y`: a test is missing\n- `src/a.rs:2:7: replace y with z`: both are the same\n";
        let expected = format!(
            "{PAGE_HEAD}\n## {session}\n\nnew\n\n## {auth}\n\n{line}\n\nMissed:\n\n{missed}"
        );
        assert_eq!(both, expected);
        let mut sum = Counts {
            detected: 7,
            missed: vec!["a".to_owned(), "b".to_owned()],
            unviable: 3,
        };
        sum.add(count);
        assert_eq!((sum.detected, sum.missed.len(), sum.unviable), (26, 2, 5));
    }
}
