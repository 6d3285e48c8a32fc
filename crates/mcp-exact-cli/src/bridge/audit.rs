//! Audit log of `mcp-exact bridge`: one line of JSON per completed request.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc::{self, SyncSender};
use std::thread::{self, JoinHandle};
use std::time::SystemTime;

use anyhow::Context;
use mcp_exact_bridge::{CallObserver, CallOutcome, CallReport};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// What the log says of the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arguments {
    /// Their SHA-256, as they were spelled: who knows the arguments can prove that they are the ones of the call.
    #[default]
    Sha256,
    /// The arguments themselves.
    Full,
    /// Nothing.
    None,
}

/// Maximum number of lines that wait to be written.
const MAX_WAITING_LINES: usize = 10_000;

/// Writer of the log. Dropping it waits until all lines of completed requests are written.
pub struct AuditLog {
    /// Sends a line, or `None` for the end.
    lines: SyncSender<Option<String>>,
    writer: Option<JoinHandle<()>>,
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        let _ = self.lines.send(None);
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}

/// Opens the log; `-` is standard error. Requests wait only while [`MAX_WAITING_LINES`] lines are not written.
pub fn open(path: &Path, arguments: Arguments) -> anyhow::Result<(CallObserver, AuditLog)> {
    let out: Box<dyn Write + Send> = if path == Path::new("-") {
        Box::new(io::stderr())
    } else {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Box::new(file.with_context(|| format!("cannot open the audit log {}", path.display()))?)
    };
    let log = AuditLog::start(out, path.display().to_string())?;
    let lines = log.lines.clone();
    let observer = CallObserver::new(move |report| {
        let _ = lines.send(Some(line(report, arguments, SystemTime::now())));
    });
    Ok((observer, log))
}

impl AuditLog {
    /// Starts the thread that writes the log.
    fn start(mut out: Box<dyn Write + Send>, name: String) -> io::Result<Self> {
        let (lines, received) = mpsc::sync_channel::<Option<String>>(MAX_WAITING_LINES);
        let write = move || {
            while let Ok(Some(line)) = received.recv() {
                if let Err(error) = out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
                    let _ = writeln!(
                        io::stderr(),
                        "the audit log {name} cannot be written: {error}"
                    );
                }
            }
        };
        let writer = thread::Builder::new().name("audit".to_owned());
        let writer = Some(writer.spawn(write)?);
        Ok(Self { lines, writer })
    }
}

fn line(report: &CallReport<'_>, arguments: Arguments, now: SystemTime) -> String {
    let call = report.call;
    let text = |text: &str| Value::String(text.to_owned());
    let mut line = Map::new();
    let mut add = |name: &str, value| drop(line.insert(name.to_owned(), value));
    add(
        "time",
        text(&humantime::format_rfc3339_millis(now).to_string()),
    );
    add(
        "principal",
        call.principal.as_deref().map_or(Value::Null, text),
    );
    if let Some(client) = &call.client {
        let name = client.view().find("name").and_then(|name| name.as_str());
        add("client", name.map_or(Value::Null, |name| text(&name)));
    }
    add("revision", text(call.revision.as_str()));
    add("server", text(&call.server));
    add("method", text(&call.method));
    if let Some(subject) = call.subject() {
        add("subject", text(&subject));
    }
    if let Some(spelled) = call.arguments() {
        match arguments {
            Arguments::Sha256 => {
                let digest = Sha256::digest(spelled.as_bytes());
                let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                add("arguments_sha256", text(&digest));
            }
            Arguments::Full => {
                let value = serde_json::from_str(&spelled).unwrap_or_else(|_| text(&spelled));
                add("arguments", value);
            }
            Arguments::None => {}
        }
    }
    add("outcome", text(report.outcome.name()));
    if let CallOutcome::Error(code) = report.outcome {
        add("code", Value::from(code));
    }
    let milliseconds = u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX);
    add("milliseconds", Value::from(milliseconds));
    format!("{}\n", Value::Object(line))
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};
    use std::time::Duration;

    use super::*;

    /// A disk that is slower than the requests.
    struct Slow(Arc<Mutex<Vec<u8>>>);

    impl Write for Slow {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            thread::sleep(Duration::from_millis(2));
            self.0.lock().expect("a lock").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn all_lines_are_written_at_the_end() {
        let written = Arc::default();
        let out = Box::new(Slow(Arc::clone(&written)));
        let log = AuditLog::start(out, "log".to_owned()).expect("a thread");
        for number in 0..100 {
            let line = Some(format!("{number}\n"));
            log.lines.send(line).expect("the thread receives");
        }
        drop(log);
        let written = written.lock().expect("a lock");
        let lines = String::from_utf8_lossy(&written).lines().count();
        assert_eq!(lines, 100);
    }
}
