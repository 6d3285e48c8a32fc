//! Rows of the table: running what they are about, their logs, and printing them.

use std::sync::{Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use anyhow::bail;

use super::peers::Transport;

/// Timeout of one client and its server; even on a slow machine, a pair needs about a tenth of this time.
pub(super) const PAIR_TIMEOUT: Duration = Duration::from_secs(120);

/// Maximum number of pairs that run concurrently; on two cores, more than half of the time of two pairs is spent waiting.
pub(super) const MAX_CONCURRENT_PAIRS: usize = 4;
/// One row of the table.
pub(super) struct Row {
    /// Name of the peer.
    pub(super) peer: String,
    /// Names of the two sides in the table.
    pub(super) direction: &'static str,
    /// Transport between client and server.
    pub(super) transport: Transport,
    /// Modes of the client and the server.
    pub(super) mode: String,
    /// Negotiated revision.
    pub(super) revision: String,
    /// Result in the table.
    pub(super) verdict: &'static str,
    /// Deviations from the required outcome.
    pub(super) failures: Vec<String>,
}

impl Row {
    /// Returns the base name of the pair's logs.
    pub(super) fn log_basename(&self) -> String {
        let transport = self.transport.name();
        log_name(&format!(
            "{} {} {transport} {}",
            self.peer, self.direction, self.mode
        ))
    }

    /// Returns the row as a line for the terminal.
    pub(super) fn to_output_line(&self) -> String {
        let Self {
            peer,
            direction,
            transport,
            mode,
            revision,
            verdict,
            ..
        } = self;
        let transport = transport.name();
        format!("{peer:<18}{direction:<24}{transport:<7}{mode:<24}{revision:<12}{verdict}")
    }
}

/// Returns a file name for logs: the alphanumeric words of `name`, joined by underscores.
pub(super) fn log_name(name: &str) -> String {
    let words: Vec<&str> = name
        .split(|letter: char| !letter.is_ascii_alphanumeric())
        .filter(|word| !word.is_empty())
        .collect();
    words.join("_")
}

/// Prints a line of a table, followed by its failures.
pub(super) fn print_table_row(line: &str, failures: &[String]) {
    let mut text = format!("{line}\n");
    for failure in failures {
        text.push_str(&format!("    {failure}\n"));
    }
    print!("{text}");
}

/// Runs pairs concurrently, `at_once` at a time; the rows keep the order of the pairs.
pub(super) fn run_all<P: Send, R: Send>(
    pairs: Vec<P>,
    at_once: usize,
    run: impl Fn(P) -> anyhow::Result<R> + Sync,
) -> anyhow::Result<Vec<R>> {
    let queue = Mutex::new(pairs.into_iter().enumerate());
    let rows = Mutex::new(Vec::new());
    let work = || -> anyhow::Result<()> {
        loop {
            let next = queue.lock().unwrap_or_else(PoisonError::into_inner).next();
            let Some((at, pair)) = next else {
                return Ok(());
            };
            let row = run(pair)?;
            let mut rows = rows.lock().unwrap_or_else(PoisonError::into_inner);
            rows.push((at, row));
        }
    };
    thread::scope(|scope| {
        let workers: Vec<_> = (0..at_once).map(|_| scope.spawn(work)).collect();
        workers.into_iter().try_for_each(|worker| {
            let ended = worker.join();
            ended.unwrap_or_else(|_| bail!("a worker panicked; run again with --only"))
        })
    })?;
    let mut rows = rows.into_inner().unwrap_or_else(PoisonError::into_inner);
    rows.sort_by_key(|(at, _)| *at);
    Ok(rows.into_iter().map(|(_, row)| row).collect())
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    /// The logs of a row are named after its peer, direction, transport and modes, so that rows do not overwrite the
    /// logs of others.
    #[test]
    fn rows_have_separate_logs() {
        let row = Row {
            peer: "python-2.3.0".into(),
            direction: "its client, our server",
            transport: Transport::Http,
            mode: "2026-07-28".into(),
            revision: String::new(),
            verdict: "ok",
            failures: Vec::new(),
        };
        let log = Path::new("logs")
            .join(row.log_basename())
            .with_extension("out");
        let name = "logs/python_2_3_0_its_client_our_server_http_2026_07_28.out";
        assert_eq!(log, Path::new(name));
    }
}
