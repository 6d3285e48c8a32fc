//! `cargo xtask interop --tolerance`: what the clients of other libraries deliver in front of the untidy servers of
//! `tests/tolerance`.
//!
//! Each client runs once for each case, revision and transport, in a process of its own. A run updates its lines of the
//! record; a test compares it with what our clients deliver, and writes it into
//! `docs/tolerance.md`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

use anyhow::{Context, bail};
use serde::{Deserialize, Serialize};

use super::install::InstalledPeer;
use super::peers::{Peer, Transport};
use super::process::{self, ListeningServer};
use super::rows::{MAX_CONCURRENT_PAIRS, log_name, run_all};
use crate::examples;

/// Time after which a client counts as waiting for ever; a client takes about a tenth of it.
const DEADLINE: Duration = Duration::from_secs(15);

/// Revisions of the servers, with their transports.
const MODES: [(&str, Transport); 3] = [
    ("2025-11-25", Transport::Stdio),
    ("2025-11-25", Transport::Http),
    ("2026-07-28", Transport::Stdio),
];

/// The record, below the root of the workspace.
const RECORD: &str = "tests/tolerance/other_clients.jsonl";

/// A case of the zoo, as the program `zoo` lists it.
#[derive(Debug, Deserialize)]
struct Case {
    name: String,
    method: String,
    revisions: Revisions,
}

/// Oldest and newest revision of the servers of a case.
#[derive(Debug, Deserialize)]
struct Revisions {
    since: String,
    until: String,
}

/// One line of the record: what a client has delivered. A line without text and error is a client that waits for an
/// answer until its timeout.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Record {
    /// Name of the case.
    case: String,
    /// Name of the peer.
    client: String,
    /// Revision of the server.
    revision: String,
    /// Transport to the server.
    transport: String,
    /// What the client gives its application: the names of the items of a list, the texts of a result, or the capabilities.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    delivered: Option<String>,
    /// First line of the client's error.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    error: Option<String>,
}

/// What a client prints.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Printed {
    delivered: Option<String>,
    error: Option<String>,
}

/// A client in front of one server.
struct Run<'a> {
    case: &'a Case,
    peer: &'a Peer,
    command: Vec<std::ffi::OsString>,
    revision: &'static str,
    transport: Transport,
}

/// Runs the clients of peers in front of the cases whose name contains one of `parts`, or of every case without parts,
/// and updates the record.
///
/// # Errors
/// Returns an error if the zoo does not build, or a client ends without the line that it has to print.
pub(super) fn run(
    root: &Path,
    chosen: &[(&Peer, InstalledPeer)],
    parts: &[String],
    logs: &Path,
) -> anyhow::Result<()> {
    let zoo = examples::build_program(root, "mcp-exact-tests-tolerance", "zoo")?;
    let cases = list_cases(&zoo)?;
    let mut runs = Vec::new();
    let is_wanted =
        |case: &&Case| parts.is_empty() || parts.iter().any(|part| case.name.contains(part));
    for case in cases.iter().filter(is_wanted) {
        for (peer, installed) in chosen {
            let program = peer.tolerance.as_ref().context("a peer without a client")?;
            for (revision, transport) in MODES {
                let Revisions { since, until } = &case.revisions;
                if (since.as_str()..=until.as_str()).contains(&revision) {
                    runs.push(Run {
                        case,
                        peer,
                        command: installed.program(program),
                        revision,
                        transport,
                    });
                }
            }
        }
    }
    let records = run_all(runs, MAX_CONCURRENT_PAIRS, |run| {
        let record = run.record(&zoo, logs)?;
        println!("{}", record.to_output_line());
        Ok(record)
    })?;
    let file = root.join(RECORD);
    let kept = fs::read_to_string(&file).unwrap_or_default();
    fs::write(&file, merged(&kept, records, &cases)?)
        .with_context(|| format!("cannot write {}", file.display()))?;
    println!("wrote {RECORD}; UPDATE_EXPECT=1 cargo xtask test tolerance writes the page");
    Ok(())
}

/// Returns the cases of the zoo.
fn list_cases(zoo: &Path) -> anyhow::Result<Vec<Case>> {
    let output = Command::new(zoo).output().context("cannot start the zoo")?;
    let text = String::from_utf8(output.stdout).context("the zoo lists no cases")?;
    let cases = text.lines().map(serde_json::from_str);
    cases.collect::<Result<_, _>>().context("a line of the zoo")
}

impl Run<'_> {
    /// Runs the client, and returns what it has delivered.
    fn record(self, zoo: &PathBuf, logs: &Path) -> anyhow::Result<Record> {
        let (case, transport) = (self.case, self.transport.name());
        let name = format!(
            "tolerance {} {} {} {transport}",
            self.peer.name, case.name, self.revision
        );
        let log = logs.join(log_name(&name));
        let (program, arguments) = self.command.split_first().context("an empty command")?;
        let mut client = Command::new(program);
        client.args(arguments).arg(&case.method);
        let mut listening = None;
        if self.transport == Transport::Stdio {
            client.arg(zoo).args([self.revision, &case.name]);
        } else {
            let mut server = Command::new(zoo);
            server.args([self.revision, &case.name, "--http"]);
            let server = ListeningServer::start(&mut server, &log)?;
            let url = format!("{}{}", server.origin, self.transport.path());
            client.args(["--http", &url]);
            listening = Some(server);
        }
        let ended = process::run(&mut client, DEADLINE, &log)?;
        drop(listening);
        let printed = match ended.stdout.lines().last() {
            Some(line) => serde_json::from_str(line).with_context(|| format!("{name}: {line}"))?,
            None if ended.status.is_none() => Printed::default(),
            None => bail!("{name} printed nothing:\n{}", ended.stderr),
        };
        Ok(Record {
            case: case.name.clone(),
            client: self.peer.name.clone(),
            revision: self.revision.to_owned(),
            transport: transport.to_owned(),
            delivered: printed.delivered,
            error: printed.error.map(|error| without_ports(&error)),
        })
    }
}

impl Record {
    /// Returns the record as a line for the terminal.
    fn to_output_line(&self) -> String {
        let Self {
            case,
            client,
            revision,
            transport,
            delivered,
            error,
        } = self;
        let outcome = match (delivered, error) {
            (Some(text), _) => text.clone(),
            (None, Some(error)) => format!("error: {error}"),
            (None, None) => "waits".to_owned(),
        };
        format!("{case:<36}{client:<18}{revision:<12}{transport:<7}{outcome}")
    }
}

/// Replaces the ports of this machine, which differ from run to run.
fn without_ports(text: &str) -> String {
    const HOST: &str = "127.0.0.1:";
    let mut parts = text.split(HOST);
    let mut out = parts.next().unwrap_or_default().to_owned();
    for part in parts {
        let rest = part.trim_start_matches(|letter: char| letter.is_ascii_digit());
        out.push_str(HOST);
        out.push_str("PORT");
        out.push_str(rest);
    }
    out
}

/// Returns the text of the record: the new lines, and the old ones of runs that were not repeated and of cases that are
/// still there, in the order of the cases.
fn merged(kept: &str, new: Vec<Record>, cases: &[Case]) -> anyhow::Result<String> {
    let old = kept.lines().map(serde_json::from_str::<Record>);
    let mut all: Vec<Record> = old.collect::<Result<_, _>>().context("the old record")?;
    let is_same = |old: &Record, new: &Record| old.client == new.client && old.case == new.case;
    all.retain(|old| !new.iter().any(|new| is_same(old, new)));
    all.extend(new);
    let place = |record: &Record| cases.iter().position(|case| case.name == record.case);
    all.retain(|record| place(record).is_some());
    all.sort_by_cached_key(|record| {
        let Record {
            client,
            revision,
            transport,
            ..
        } = record.clone();
        (place(record), client, revision, transport)
    });
    let mut text = String::new();
    for record in &all {
        text.push_str(&serde_json::to_string(record)?);
        text.push('\n');
    }
    Ok(text)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(case: &str, client: &str, delivered: &str) -> Record {
        Record {
            case: case.into(),
            client: client.into(),
            revision: "2025-11-25".into(),
            transport: "stdio".into(),
            delivered: Some(delivered.into()),
            error: None,
        }
    }

    #[test]
    fn ports_are_no_part_of_errors() {
        let text = "no http://127.0.0.1:4711/mcp, and no http://127.0.0.1:3/mcp";
        let expected = "no http://127.0.0.1:PORT/mcp, and no http://127.0.0.1:PORT/mcp";
        assert_eq!(without_ports(text), expected);
    }

    /// A run of some clients and cases keeps the lines of the others, but not those of cases that are gone.
    #[test]
    fn record_keeps_other_lines() {
        let cases = ["b", "a"].map(|name| Case {
            name: name.into(),
            method: String::new(),
            revisions: Revisions {
                since: String::new(),
                until: String::new(),
            },
        });
        let old = [
            record("a", "x", "1"),
            record("a", "y", "1"),
            record("b", "y", "1"),
            record("gone", "x", "1"),
        ];
        let lines = |records: &[Record]| {
            let lines = records.iter().map(serde_json::to_string);
            let lines: Vec<_> = lines.map(|line| line.expect("a line") + "\n").collect();
            lines.concat()
        };
        let new = vec![record("a", "y", "2")];
        let text = merged(&lines(&old), new, &cases).expect("a record");
        let expected = [
            record("b", "y", "1"),
            record("a", "x", "1"),
            record("a", "y", "2"),
        ];
        assert_eq!(text, lines(&expected));
    }
}
