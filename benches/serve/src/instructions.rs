//! Counts the instructions of an HTTP server per call with callgrind, which is exact enough to compare versions even on
//! a busy machine. Each server runs with few and with many calls, and the difference is divided by the number of calls.

use std::fmt::Write as _;

use crate::load::http::{Connection, call_concurrently};
use crate::markdown::digits;
use crate::process::Server;
use crate::run::HTTP;

/// Number of calls of the run with few calls.
const FEW_CALLS: usize = 100;
/// Number of calls of the run with many calls.
const MANY_CALLS: usize = 1_100;

/// Name of a server in the report, and its instructions per call outside of the kernel.
pub type Row = (&'static str, u64);

/// Counts the instructions per call of every server over HTTP.
pub async fn rows() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, server, style) in HTTP {
        let count = async |calls| {
            let mut server = Server::start_counting(server)?;
            let mut one = vec![Connection::ready(server.address()?, style).await?];
            call_concurrently(&mut one, calls).await?;
            server.instructions()
        };
        rows.push((
            name,
            each(count(FEW_CALLS).await?, count(MANY_CALLS).await?),
        ));
    }
    Ok(rows)
}

/// Returns the instructions per call; `few` and `many` are the counts of the runs with few and with many calls.
fn each(few: u64, many: u64) -> u64 {
    many.saturating_sub(few) / (MANY_CALLS - FEW_CALLS) as u64
}

/// Returns the counts as a Markdown table.
pub fn table(rows: &[Row]) -> String {
    let mut out = String::from("| server | instructions a call |\n|---|--:|\n");
    for (name, count) in rows {
        // Writing to a `String` does not fail.
        let _ = writeln!(out, "| {name} | {} |", digits(*count as f64));
    }
    out
}
