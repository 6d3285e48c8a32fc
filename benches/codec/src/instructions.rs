//! Counts instructions with callgrind, message by message: exact enough to show the effect of a small change of the
//! code. Runs this program under valgrind with few and with many repetitions; the difference is the measured work. No
//! times are measured.

use std::fmt::Write as _;
use std::process::Command;

use crate::contestant::{self, Role};
use crate::corpus;
use crate::entry::Entry;

/// Names of the messages whose counts are recorded.
const RECORDED_MESSAGES: &[&str] = &[
    "ping",
    "call-small",
    "initialize-result",
    "tools-20",
    "result-50-blocks",
    "result-50-blocks reversed",
    "result-image-1m",
    "result-text-1m",
];

/// Operation that runs repeatedly under valgrind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Work {
    Decode,
    Encode,
}

impl Work {
    /// Returns the command-line argument that selects the operation.
    fn name(self) -> &'static str {
        match self {
            Self::Decode => "decode",
            Self::Encode => "encode",
        }
    }
}

/// Instruction counts of one message, for the library of this repository and for `serde_json::Value`.
struct Row {
    /// Name of the message.
    name: String,
    /// Size of the message in bytes.
    bytes: usize,
    /// Instructions of decoding once: by the library of this repository, and by `serde_json::Value`.
    decode: [u64; 2],
    /// Instructions of encoding once: by the library of this repository, and by `serde_json::Value`.
    encode: [u64; 2],
}

/// Counts the instructions of the messages whose names contain a string of `only`, or equal one of `RECORDED_MESSAGES`
/// if `only` is empty; returns the table.
///
/// # Errors
/// If valgrind is missing or fails.
pub fn table(only: &[String]) -> Result<String, String> {
    let chosen = |entry: &Entry| {
        if only.is_empty() {
            RECORDED_MESSAGES.contains(&entry.name.as_str())
        } else {
            only.iter().any(|name| entry.name.contains(name.as_str()))
        }
    };
    let mut rows = Vec::new();
    for entry in corpus::corpus().into_iter().filter(chosen) {
        rows.push(row(&entry)?);
    }
    Ok(text(&rows))
}

/// Counts the instructions of decoding and of encoding one message.
fn row(entry: &Entry) -> Result<Row, String> {
    let both = |work| {
        Ok::<_, String>([
            count(entry, Role::Ours, work)?,
            count(entry, Role::Baseline, work)?,
        ])
    };
    Ok(Row {
        name: entry.name.clone(),
        bytes: entry.bytes.len(),
        decode: both(Work::Decode)?,
        encode: both(Work::Encode)?,
    })
}

/// Formats the counts as a Markdown table.
fn text(rows: &[Row]) -> String {
    let mut out = String::from(
        "| message | bytes | decode | `Value` | ratio | encode | `Value` | ratio |\n\
         |---|--:|--:|--:|--:|--:|--:|--:|\n",
    );
    for row in rows {
        let ratio = |[ours, value]: [u64; 2]| ours as f64 / value.max(1) as f64;
        // Writing to a `String` does not fail.
        let _ = writeln!(
            out,
            "| {} | {} | {} | {} | {:.3} | {} | {} | {:.3} |",
            row.name,
            row.bytes,
            row.decode[0],
            row.decode[1],
            ratio(row.decode),
            row.encode[0],
            row.encode[1],
            ratio(row.encode),
        );
    }
    out
}

/// Returns the number of instructions of one decoding or encoding, excluding the start of the process.
fn count(entry: &Entry, role: Role, work: Work) -> Result<u64, String> {
    let more = if entry.bytes.len() > 100_000 { 2 } else { 20 };
    let (few, many) = (1, 1 + more);
    let counted = |repeats: u32| under_valgrind(&entry.name, role, work, repeats);
    Ok(counted(many)?.saturating_sub(counted(few)?) / u64::from(many - few))
}

/// Runs this program under valgrind with `repeats` repetitions of the operation; returns the counted instructions.
fn under_valgrind(name: &str, role: Role, work: Work, repeats: u32) -> Result<u64, String> {
    let program = std::env::current_exe().map_err(|error| error.to_string())?;
    let output = Command::new("valgrind")
        .args(["--tool=callgrind", "--callgrind-out-file=/dev/null"])
        .arg("--toggle-collect=*instructions*repeated*")
        .arg(program)
        .args([
            "--repeat",
            name,
            role_name(role),
            work.name(),
            &repeats.to_string(),
        ])
        .env_clear()
        .output()
        .map_err(|error| format!("cannot start valgrind: {error}; install it"))?;
    let words = String::from_utf8_lossy(&output.stderr);
    let collected = words
        .lines()
        .find_map(|line| line.split_once("Collected : "))
        .and_then(|(_, count)| count.trim().parse().ok());
    match collected {
        Some(count) if output.status.success() => Ok(count),
        _ => Err(format!("valgrind failed on {name}:\n{words}")),
    }
}

/// Returns the command-line argument that selects a library by its role.
fn role_name(role: Role) -> &'static str {
    match role {
        Role::Ours => "ours",
        _ => "value",
    }
}

/// Decodes or encodes the message `name` a number of times; this function runs in the process under valgrind.
///
/// # Errors
/// If an argument is not known or the message is not decoded.
pub fn repeat(name: &str, who: &str, work: &str, times: &str) -> Result<(), String> {
    let times: u32 = times.parse().map_err(|_| "no number of repetitions")?;
    let entry = corpus::corpus()
        .into_iter()
        .find(|entry| entry.name == name);
    let entry = entry.ok_or_else(|| format!("no message is called {name}"))?;
    let role = if who == "ours" {
        Role::Ours
    } else {
        Role::Baseline
    };
    let library = contestant::all()
        .into_iter()
        .find(|library| library.role() == role);
    let library = library.ok_or("the library is not there")?;
    let prepared = library.prepare(&entry)?;
    let mut out = Vec::new();
    match work {
        "decode" => repeated(times, &mut || library.decode(&entry)),
        "encode" => repeated(times, &mut || {
            out.clear();
            prepared.encode(&mut out);
        }),
        _ => return Err(format!("{work} is neither decode nor encode")),
    }
    Ok(())
}

/// Calls `work` a number of times. Valgrind finds this function by its name and counts its instructions.
#[inline(never)]
fn repeated(times: u32, work: &mut dyn FnMut()) {
    for _ in 0..times {
        work();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each recorded message exists in the corpus.
    #[test]
    fn corpus_contains_representative_messages() {
        let corpus = corpus::corpus();
        for name in RECORDED_MESSAGES {
            assert!(corpus.iter().any(|entry| entry.name == *name), "{name}");
        }
        assert_eq!(RECORDED_MESSAGES.len(), 8);
    }

    /// A table row contains the counts of both libraries and their ratio, for decoding and encoding.
    #[test]
    fn rows_contain_counts_and_ratios() {
        let row = Row {
            name: "ping".to_owned(),
            bytes: 37,
            decode: [50, 100],
            encode: [10, 40],
        };
        let text = text(&[row]);
        assert_eq!(
            text.lines().last(),
            Some("| ping | 37 | 50 | 100 | 0.500 | 10 | 40 | 0.250 |")
        );
    }
}
