//! Running one pair: its server, a proxy with the fault of the pair, and its client.

use std::ffi::OsString;
use std::path::Path;
use std::process::Command;

use anyhow::Context;

use super::outcome::{Outcome, RequiredOutcome};
use super::pairs::{Fault, Pair};
use super::process::{self, ListeningServer};
use super::proxy::Proxy;
use super::rows::{PAIR_TIMEOUT, Row};

/// Output line of the example client after it has started its call and waits for the restart of the server.
const RESTART_PROMPT: &str = "restart: waiting";

impl Pair {
    /// Starts the server, runs the client, and compares its output with the required outcome.
    pub(super) fn run(mut self, logs: &Path) -> anyhow::Result<Row> {
        let mut row = Row {
            peer: self.peer,
            direction: self.direction,
            transport: self.transport,
            mode: self.mode,
            revision: "-".into(),
            verdict: "FAILED",
            failures: Vec::new(),
        };
        let log = logs.join(row.log_basename());
        let mut site = PairServer::start(&self.server, self.fault, &log)?;
        if let Some(origin) = site.origin() {
            let url = format!("{origin}{}", self.transport.path());
            self.command.push(url.into());
        }
        let (program, arguments) = self.command.split_first().context("an empty command")?;
        let mut command = Command::new(program);
        let ended =
            process::run_with_observer(command.args(arguments), PAIR_TIMEOUT, &log, |printed| {
                if self.fault == Some(Fault::RestartServer) && printed.contains(RESTART_PROMPT) {
                    site.restart()
                } else {
                    Ok(())
                }
            })?;
        let outcome = Outcome::parse_output(&ended);
        row.failures = outcome.failures(&self.required_outcome);
        if !site.has_seen_fault() {
            row.failures.push("the fault never happened".to_owned());
        }
        drop(site);
        if row.failures.is_empty() {
            row.verdict = self.required_outcome.success_verdict();
        }
        if let (RequiredOutcome::Session(_), Some(revision)) =
            (&self.required_outcome, outcome.revision)
        {
            row.revision = revision;
        }
        Ok(row)
    }
}

/// Server of a pair, and the proxy in front of the server.
struct PairServer {
    /// Server for new connections; `None` if the client starts the server.
    server: Option<ListeningServer>,
    /// Server that is started for a restart and not used yet.
    replacement: Option<ListeningServer>,
    /// Proxy in front of the server, for runs with a fault.
    proxy: Option<Proxy>,
    /// Fault that must occur during the run.
    fault: Option<Fault>,
}

impl PairServer {
    /// Starts the server, its replacement, and the proxy, as the fault requires.
    fn start(command: &[OsString], fault: Option<Fault>, log: &Path) -> anyhow::Result<Self> {
        let start = |log: &Path| -> anyhow::Result<Option<ListeningServer>> {
            let Some((program, arguments)) = command.split_first() else {
                return Ok(None);
            };
            let mut command = Command::new(program);
            ListeningServer::start(command.args(arguments), log).map(Some)
        };
        let server = start(log)?;
        // Some servers take longer to start than the call during which they replace the first server.
        let next = match fault {
            Some(Fault::RestartServer) => {
                let name = log.file_name().unwrap_or_default().to_string_lossy();
                start(&log.with_file_name(format!("{name}_again")))?
            }
            _ => None,
        };
        let proxy = match (&server, fault) {
            (Some(server), Some(Fault::CutConnection)) => {
                Some(Proxy::start_cutting(server.address()?)?)
            }
            (Some(server), Some(Fault::RestartServer)) => {
                Some(Proxy::start_forwarding(server.address()?)?)
            }
            _ => None,
        };
        Ok(Self {
            server,
            replacement: next,
            proxy,
            fault,
        })
    }

    /// Returns the origin that the client connects to.
    fn origin(&self) -> Option<&str> {
        let proxy = self.proxy.as_ref().map(|proxy| proxy.origin.as_str());
        proxy.or(self.server.as_ref().map(|server| server.origin.as_str()))
    }

    /// Forwards new connections to the replacement and kills the server; later calls have no effect.
    fn restart(&mut self) -> anyhow::Result<()> {
        if let (Some(next), Some(proxy)) = (self.replacement.take(), &self.proxy) {
            proxy.forward_to(next.address()?);
            // The old process is killed here.
            self.server = Some(next);
        }
        Ok(())
    }

    /// Returns true if the fault has occurred, or no fault was required.
    fn has_seen_fault(&self) -> bool {
        match self.fault {
            None => true,
            Some(Fault::CutConnection) => self.proxy.as_ref().is_some_and(Proxy::has_cut),
            Some(Fault::RestartServer) => self.replacement.is_none(),
        }
    }
}
