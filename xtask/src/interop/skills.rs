//! Skills (SEP-2640) with the libraries that have them: their clients read those of our server, and our client those of theirs.
//!
//! Both sides serve `crates/mcp-exact/examples/skills` over Streamable HTTP. A client lists the skills and verifies all their files;
//! what it has read is compared with the files in the folder.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, ensure};
use serde::Deserialize;

use super::install::InstalledPeer;
use super::pairs::{OUR_CLIENT, OUR_SERVER};
use super::peers::{FIRST_WITHOUT_HANDSHAKE, Peer, Transport};
use super::process::{self, Announcement, ListeningServer, ProcessResult};
use super::rows::{PAIR_TIMEOUT, Row, log_name, print_table_row};
use crate::examples;

/// Folder of the skills.
const FOLDER: &str = "crates/mcp-exact/examples/skills";

/// Hashes of files by their URIs.
type Hashes = BTreeMap<String, String>;

/// An entry in the output of `mcp-exact skills list --json`.
#[derive(Deserialize)]
struct Entry {
    /// URI of its `SKILL.md`.
    uri: String,
    /// Its files.
    resources: Vec<Resource>,
}

/// A file of an entry.
#[derive(Deserialize)]
struct Resource {
    uri: String,
}

/// A file that a client of a peer has verified.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Verified {
    /// URI of the file.
    file: String,
    /// Hash of its contents.
    sha256: String,
}

/// Our programs.
struct Ours {
    /// The program `mcp-exact`, which is the client.
    client: PathBuf,
    /// The example that serves the folder.
    server: PathBuf,
}

/// Runs the clients and servers of the peers that have skills, and prints a row for each.
///
/// # Errors
/// Returns an error if our programs do not build, or a program cannot be started.
pub(super) fn run(
    root: &Path,
    chosen: &[(&Peer, InstalledPeer)],
    logs: &Path,
) -> anyhow::Result<Vec<Row>> {
    let programs = chosen.iter().filter_map(|(peer, installed)| {
        let program = peer.skills.as_ref()?;
        Some((peer.name.as_str(), installed.program(program)))
    });
    let programs: Vec<(&str, Vec<OsString>)> = programs.collect();
    if programs.is_empty() {
        return Ok(Vec::new());
    }
    let [server] = examples::build(root, "mcp-exact", ["everything_server"])?;
    let ours = Ours {
        client: examples::build_program(root, "mcp-exact-cli", "mcp-exact")?,
        server,
    };
    let folder = root.join(FOLDER);
    let mut expected = Hashes::new();
    add_hashes(&folder, "skill:/", &mut expected)?;
    let mut rows = Vec::new();
    for (peer, program) in &programs {
        let serve = [program.as_slice(), &["serve".into(), folder.clone().into()]].concat();
        let read = [program.as_slice(), &["read".into()]].concat();
        for (direction, found) in [
            (OUR_CLIENT, ours.read_from(peer, &serve, logs)),
            (OUR_SERVER, ours.serve_to(peer, &read, logs)),
        ] {
            let failures = match found {
                Ok(found) => differences(&expected, &found),
                Err(error) => vec![format!("{error:#}")],
            };
            let row = row(peer, direction, failures);
            print_table_row(&row.to_output_line(), &row.failures);
            rows.push(row);
        }
    }
    Ok(rows)
}

impl Ours {
    /// Starts a server, and reads its skills with our client.
    fn read_from(&self, peer: &str, serve: &[OsString], logs: &Path) -> anyhow::Result<Hashes> {
        let log = logs.join(log_name(&format!("{peer} skills our client")));
        let (program, arguments) = serve.split_first().context("an empty command")?;
        let server = ListeningServer::start(Command::new(program).args(arguments), &log)?;
        let url = format!("{}{}", server.origin, Transport::Http.path());
        let client = |arguments: &[&str]| -> anyhow::Result<String> {
            let mut command = Command::new(&self.client);
            let revision = ["--revision", FIRST_WITHOUT_HANDSHAKE];
            let (action, rest) = arguments.split_at(2);
            command.args(action).args(revision).args(rest);
            let ended = process::run(command.args(["--", &url]), PAIR_TIMEOUT, &log)?;
            output(ended, &arguments.join(" "))
        };
        let listed = client(&["skills", "list", "--json"])?;
        let entries: Vec<Entry> =
            serde_json::from_str(&listed).context("the list is not the JSON that was expected")?;
        let mut found = Hashes::new();
        for entry in &entries {
            let directory = entry.uri.strip_suffix("SKILL.md");
            let directory = directory.context("an entry is not that of a SKILL.md")?;
            for Resource { uri } in &entry.resources {
                let file = uri.strip_prefix(directory);
                let file = file.with_context(|| format!("{uri} is not below {directory}"))?;
                let contents = client(&["skills", "read", &entry.uri, file])?;
                found.insert(uri.clone(), codegen::sha256(contents.as_bytes()));
            }
        }
        Ok(found)
    }

    /// Starts our server, and lets the client of a peer read its skills.
    fn serve_to(&self, peer: &str, read: &[OsString], logs: &Path) -> anyhow::Result<Hashes> {
        let log = logs.join(log_name(&format!("{peer} skills our server")));
        let mut server = Command::new(&self.server);
        let server =
            ListeningServer::start_until_announced(server.arg("0"), &log, Announcement::URL)?;
        let url = format!("{}{}", server.origin, Transport::Http.path());
        let (program, arguments) = read.split_first().context("an empty command")?;
        let mut client = Command::new(program);
        let ended = process::run(client.args(arguments).arg(url), PAIR_TIMEOUT, &log)?;
        parse_verified(&output(ended, "the client")?)
    }
}

/// Returns the standard output of a process that has succeeded.
fn output(ended: ProcessResult, what: &str) -> anyhow::Result<String> {
    let is_success = ended.status.is_some_and(|status| status.success());
    let last = ended.stderr.lines().rev().find(|line| !line.is_empty());
    ensure!(
        is_success,
        "{what} failed: {}",
        last.unwrap_or("it printed no reason")
    );
    Ok(ended.stdout)
}

/// Returns the hashes that a client has printed, a line each.
fn parse_verified(printed: &str) -> anyhow::Result<Hashes> {
    let lines = printed.lines();
    let files = lines.map(|line| -> anyhow::Result<(String, String)> {
        let verified: Verified =
            serde_json::from_str(line).with_context(|| format!("unexpected output: {line}"))?;
        Ok((verified.file, verified.sha256))
    });
    files.collect()
}

/// Adds the hashes of the files below a folder whose URI is `uri`.
fn add_hashes(folder: &Path, uri: &str, hashes: &mut Hashes) -> anyhow::Result<()> {
    let entries = fs::read_dir(folder);
    for entry in entries.with_context(|| format!("cannot list {}", folder.display()))? {
        let entry = entry?;
        let uri = format!("{uri}/{}", entry.file_name().to_string_lossy());
        if entry.file_type()?.is_dir() {
            add_hashes(&entry.path(), &uri, hashes)?;
        } else {
            hashes.insert(uri, codegen::sha256(&fs::read(entry.path())?));
        }
    }
    Ok(())
}

/// Describes the files that were not read, and those that are others than in the folder.
fn differences(expected: &Hashes, found: &Hashes) -> Vec<String> {
    let missing = expected.keys().filter(|file| !found.contains_key(*file));
    let missing = missing.map(|file| format!("{file} was not read"));
    let other = found
        .iter()
        .filter(|(file, hash)| expected.get(*file) != Some(hash));
    let other = other.map(|(file, _)| format!("{file} is not the file in {FOLDER}"));
    missing.chain(other).collect()
}

/// Returns the row of a peer.
fn row(peer: &str, direction: &'static str, failures: Vec<String>) -> Row {
    Row {
        peer: peer.to_owned(),
        direction,
        transport: Transport::Http,
        mode: "skills".to_owned(),
        revision: FIRST_WITHOUT_HANDSHAKE.to_owned(),
        verdict: if failures.is_empty() { "ok" } else { "FAILED" },
        failures,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A file that is missing or differs is a failure; the client has to read exactly those of the folder.
    #[test]
    fn other_files_are_failures() {
        let line =
            |file: &str, hash: &str| format!("{{\"file\":\"{file}\",\"sha256\":\"{hash}\"}}\n");
        let hashes = |lines: &[String]| parse_verified(&lines.concat()).expect("hashes");
        let expected = hashes(&[line("a", "1"), line("b", "2")]);
        assert_eq!(differences(&expected, &expected), [""; 0]);
        let found = hashes(&[line("a", "1"), line("c", "2")]);
        assert_eq!(
            differences(&expected, &found),
            [
                "b was not read".to_owned(),
                format!("c is not the file in {FOLDER}")
            ]
        );
        let error = parse_verified("Traceback\n").expect_err("no line of a file");
        assert!(error.to_string().ends_with("Traceback"), "{error}");
    }
}
