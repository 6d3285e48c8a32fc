//! Compares the losses of conversions between all ordered pairs of revisions with a file.
//!
//! The documents are those of the fuzz target. `UPDATE_EXPECT=1` rewrites the file; review its changes then.

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use mcp_exact_convert::{Context, KnownRevision, convert_type, counterpart};

/// Returns name, definition and text of each document.
fn documents() -> Vec<(String, String, String)> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/conversion");
    let files = fs::read_dir(folder).expect("a corpus");
    let mut paths: Vec<_> = files.map(|file| file.expect("a file").path()).collect();
    paths.sort();
    let documents = paths.iter().map(|path| {
        let text = fs::read_to_string(path).expect("a readable file");
        let (line, text) = text.split_once('\n').expect("a line and a text");
        let definition = line.split(' ').next().unwrap_or_default();
        let name = path.file_name().expect("a name").to_string_lossy();
        (name.into_owned(), definition.to_owned(), text.to_owned())
    });
    documents.collect()
}

fn compare_pair(from: KnownRevision, to: KnownRevision, report: &mut String) {
    for (name, definition, text) in documents() {
        if counterpart(&definition, from, to).is_none() {
            continue;
        }
        let mut cx = Context::new().request_id(1);
        let out = convert_type(&definition, &text, from, to, &mut cx);
        // Writing to a `String` does not fail.
        let _ = writeln!(report, "{from} → {to} {name} {definition}");
        match out {
            Ok(_) => {
                for loss in cx.losses() {
                    assert!(!loss.reason.is_empty());
                    let _ = writeln!(report, "  {}: {loss}", loss.revision);
                }
            }
            Err(refused) => {
                let _ = writeln!(report, "  refused: {refused}");
            }
        }
    }
}

#[test]
fn losses_match_the_recorded_file() {
    let mut report = String::new();
    for from in KnownRevision::ALL {
        for to in KnownRevision::ALL.iter().filter(|to| *to != from) {
            compare_pair(*from, *to, &mut report);
        }
    }
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/convert/losses.txt");
    if std::env::var_os("UPDATE_EXPECT").is_some() {
        fs::write(&path, &report).expect("a writable file");
    }
    let expected = fs::read_to_string(&path).unwrap_or_default();
    let (report, expected) = (compared_lines(&report), compared_lines(&expected));
    let differs = report.iter().zip(&expected).find(|(new, old)| new != old);
    assert_eq!(differs, None, "UPDATE_EXPECT=1 writes losses.txt again");
    assert_eq!(report.len(), expected.len());
}

/// Returns the lines of all pairs except those of the revision in the environment variable: `schema add` tests a
/// revision before a person has reviewed the losses of its conversions.
fn compared_lines(report: &str) -> Vec<&str> {
    let named = std::env::var("MCP_EXACT_REVISION").ok();
    let mut is_compared = true;
    let lines = report.lines().filter(|line| {
        if !line.starts_with(' ') {
            let mut pair = line.split(' ').take(3);
            is_compared = pair.all(|word| Some(word) != named.as_deref());
        }
        is_compared
    });
    lines.collect()
}
