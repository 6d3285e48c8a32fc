//! Counts the instructions of an HTTP server for one call with callgrind: exact enough to compare a change with the state
//! before it, on a busy machine too. Each server runs twice, with few and with many calls; the difference is the calls.

use std::fmt::Write as _;

use crate::load::http::{Connection, many};
use crate::markdown::digits;
use crate::process::Server;
use crate::run::HTTP;

const FEW: usize = 100;
const MANY: usize = 1_100;

/// A server and its instructions for a call, kernel not included.
pub type Row = (&'static str, u64);

/// Counts for every server over HTTP.
pub async fn rows() -> anyhow::Result<Vec<Row>> {
    let mut rows = Vec::new();
    for (name, server, style) in HTTP {
        let count = async |calls| {
            let mut server = Server::start_counting(server)?;
            let mut one = vec![Connection::ready(server.address()?, style).await?];
            many(&mut one, calls).await?;
            server.instructions()
        };
        rows.push((name, each(count(FEW).await?, count(MANY).await?)));
    }
    Ok(rows)
}

fn each(few: u64, many: u64) -> u64 {
    many.saturating_sub(few) / (MANY - FEW) as u64
}

/// The counts as a table.
pub fn table(rows: &[Row]) -> String {
    let mut out = String::from("| server | instructions a call |\n|---|--:|\n");
    for (name, count) in rows {
        // Writing to a `String` does not fail.
        let _ = writeln!(out, "| {name} | {} |", digits(*count as f64));
    }
    out
}
