//! A server of the zoo as a process: `zoo REVISION CASE` on standard streams, `zoo REVISION CASE --http` on a free port of
//! this machine. `zoo` alone prints a line of JSON for each case: its name, its method, and its revisions.

#![expect(
    clippy::print_stdout,
    clippy::print_stderr,
    reason = "the program prints where it listens, and how it is used"
)]

use std::io;
use std::process::ExitCode;

use mcp_exact_tests_tolerance::http;
use mcp_exact_tests_tolerance::zoo::{CASES, Peer, REVISIONS};
use serde_json::json;
use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

#[tokio::main(flavor = "current_thread")]
async fn main() -> io::Result<ExitCode> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let arguments: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let (revision, name, is_http) = match arguments[..] {
        [] => {
            for case in CASES {
                let (name, method) = (case.name, case.method);
                let revisions = json!({ "since": case.since, "until": case.until });
                println!(
                    "{}",
                    json!({ "name": name, "method": method, "revisions": revisions })
                );
            }
            return Ok(ExitCode::SUCCESS);
        }
        [revision, name] => (revision, name, false),
        [revision, name, "--http"] => (revision, name, true),
        _ => ("", "", false),
    };
    let revision = REVISIONS.into_iter().find(|known| *known == revision);
    let case = CASES.iter().find(|case| case.name == name);
    let (Some(revision), Some(case)) = (revision, case) else {
        eprintln!("usage: zoo [REVISION CASE [--http]]; `zoo` lists the cases");
        return Ok(ExitCode::FAILURE);
    };
    let peer = Peer::new(*case, revision);
    if is_http {
        let url = http::serve(&peer).await?;
        println!("listening on {}", url.trim_end_matches("/mcp"));
        std::future::pending::<()>().await;
    }
    let mut lines = BufReader::new(tokio::io::stdin()).lines();
    let mut out = tokio::io::stdout();
    while let Some(line) = lines.next_line().await? {
        for answer in peer.answers(&line) {
            out.write_all(&answer).await?;
            out.write_all(b"\n").await?;
        }
        out.flush().await?;
    }
    Ok(ExitCode::SUCCESS)
}
