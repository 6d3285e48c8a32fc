//! `mcp-exact revisions`: prints the compiled revisions, as a table or one JSON array.

use std::collections::BTreeSet;

use clap::Args;
use mcp_exact_revisions::{Side, Status};
use serde::Serialize;

use crate::Outcome;
use crate::registry::{CompiledRevision, official_definitions};
use crate::revisions::COMPILED;
use crate::terminal::stdout;
use crate::text::{Text, text};

/// The arguments of `mcp-exact revisions`.
#[derive(Args)]
pub struct Arguments {
    /// Print one JSON array.
    #[arg(long)]
    json: bool,
}

/// Row of the table, which describes a compiled revision.
#[derive(Serialize)]
struct Row {
    /// Identifier of the revision.
    revision: &'static str,
    /// Status of the revision: `release` or `draft`.
    status: &'static str,
    /// Number of definitions in the schema of the revision.
    definitions: usize,
    /// Number of request methods of both sides.
    requests: usize,
    /// Number of notification methods of both sides.
    notifications: usize,
}

impl Row {
    /// Creates the row of a revision; fails if the embedded data of the revision is damaged.
    fn new(compiled: &CompiledRevision) -> anyhow::Result<Self> {
        let spec = compiled.spec;
        let [client, server] = [Side::Client, Side::Server].map(|side| spec.methods(side));
        Ok(Self {
            revision: spec.id(),
            status: match spec.status() {
                Status::Release => "release",
                Status::Draft => "draft",
            },
            definitions: official_definitions(&compiled.ir()?).count(),
            requests: count_distinct(client.requests(), server.requests()),
            notifications: count_distinct(client.notifications(), server.notifications()),
        })
    }
}

/// Returns the number of different methods in both lists.
fn count_distinct(of_client: &[&str], of_server: &[&str]) -> usize {
    of_client
        .iter()
        .chain(of_server)
        .collect::<BTreeSet<_>>()
        .len()
}

/// Prints the compiled revisions as a table or as JSON.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let rows = COMPILED.iter().map(Row::new);
    let rows: Vec<Row> = rows.collect::<anyhow::Result<_>>()?;
    if arguments.json {
        stdout().pretty_json(&rows)?;
    } else {
        stdout().text(&format_rows(&rows))?;
    }
    Ok(Outcome::Valid)
}

/// Formats the rows as a table with fixed column widths.
fn format_rows(rows: &[Row]) -> Text {
    let mut table = text!(
        "{:<12}{:<9}{:>11}{:>10}{:>15}\n",
        "revision",
        "status",
        "definitions",
        "requests",
        "notifications"
    );
    for row in rows {
        table.push(&text!(
            "{:<12}{:<9}{:>11}{:>10}{:>15}\n",
            row.revision,
            row.status,
            row.definitions,
            row.requests,
            row.notifications
        ));
    }
    table
}
