//! Measures the cost of building a small program with each library: CPU time of a clean build in the dev and the
//! release profile, number of dependencies, and size of the stripped program. Options: `--json FILE` and `--only NAME`.

mod build;
mod table;

use std::path::{Path, PathBuf};
use std::process::ExitCode;

use bench_record::{date, machine};
use build::Cost;

/// Text of `--help`.
const USAGE: &str = "\
usage: compile-bench [--only NAME] [--json FILE] [--markdown FILE]

  --only NAME  only libraries whose name contains NAME, and the baseline; may be given again
  --json FILE  write the table to FILE
  --markdown FILE
               write the table to FILE as a page of the documentation";

/// Number of builds of each program whose cost decides a threshold.
const BUILDS_FOR_THRESHOLD: u32 = 3;

/// Programs in `compile/`: message parsers and servers, with the number of builds of each; the first one is the base of
/// the comparison.
const LIBRARIES: &[(&str, u32)] = &[
    ("serde-json", BUILDS_FOR_THRESHOLD),
    ("mcp-2025-06-18", BUILDS_FOR_THRESHOLD),
    ("mcp-revisions", BUILDS_FOR_THRESHOLD),
    ("mcp-exact-convert", 1),
    ("rmcp", 1),
    ("rust-mcp-schema", BUILDS_FOR_THRESHOLD),
    ("codex-mcp-types", 1),
    ("server-mcp-exact", BUILDS_FOR_THRESHOLD),
    ("server-rmcp", BUILDS_FOR_THRESHOLD),
];

fn main() -> ExitCode {
    match run(&mut std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Measures the programs that the options select, prints the table and writes the requested files.
fn run(given: &mut dyn Iterator<Item = String>) -> Result<(), String> {
    let (mut only, mut json, mut markdown) = (Vec::new(), None, None);
    while let Some(argument) = given.next() {
        let mut value = || {
            given
                .next()
                .ok_or(format!("{argument} needs a value\n\n{USAGE}"))
        };
        match argument.as_str() {
            "--only" => only.push(value()?),
            "--json" => json = Some(PathBuf::from(value()?)),
            "--markdown" => markdown = Some(PathBuf::from(value()?)),
            "--help" | "-h" => {
                println!("{USAGE}");
                return Ok(());
            }
            _ => return Err(format!("unknown argument {argument}\n\n{USAGE}")),
        }
    }
    let workspace = workspace();
    build::fetch(&workspace)?;
    let mut costs: Vec<Cost> = Vec::new();
    for (index, (library, times)) in LIBRARIES.iter().enumerate() {
        if index == 0 || only.is_empty() || only.iter().any(|name| library.contains(name)) {
            eprintln!("building on {library}");
            costs.push(build::cost(&workspace, library, *times)?);
        }
    }
    let verdicts = table::verdicts(&costs);
    print!("{}{}", table::text(&costs), table::verdict_text(&verdicts));
    if let Some(path) = json {
        let document = serde_json::json!({
            "date": date::today(),
            "libraries": table::json(&costs),
            "mustShow": table::verdict_json(&verdicts),
        });
        write(&path, &format!("{document:#}\n"))?;
    }
    if let Some(path) = markdown {
        write(
            &path,
            &table::page(&costs, &verdicts, &date::today(), &machine::name()),
        )?;
    }
    Ok(())
}

/// Writes a file; the error names the path.
fn write(path: &Path, text: &str) -> Result<(), String> {
    std::fs::write(path, text).map_err(|error| format!("cannot write {}: {error}", path.display()))
}

/// Returns the path of the directory `benches/`.
fn workspace() -> PathBuf {
    let package = Path::new(env!("CARGO_MANIFEST_DIR"));
    package.ancestors().nth(2).unwrap_or(package).to_owned()
}
