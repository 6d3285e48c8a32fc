//! Audit log of `mcp-exact bridge`: one line of JSON per completed request, and one per kind of repair.

use std::collections::VecDeque;
use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use mcp_exact_bridge::{CallObserver, CallOutcome, CallReport, NewRepair, RepairObserver};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// Form in which the audit log records the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arguments {
    /// SHA-256 hash of the text of the arguments, by which a reader can verify arguments that are known.
    #[default]
    Sha256,
    /// The complete arguments.
    Full,
    /// The arguments are omitted.
    None,
}

/// Maximum number of lines that wait to be written.
const MAX_WAITING_LINES: usize = 10_000;
/// Maximum total size of the lines that wait to be written, in bytes.
const MAX_WAITING_BYTES: usize = 64 << 20;

/// Time limit for writing the last lines at the end of the program.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// Audit log that a thread writes. Dropping the value waits until all lines of completed requests are written, for at
/// most [`END_TIMEOUT`].
pub struct AuditLog {
    /// Path of the log, for error messages.
    name: String,
    /// Lines that the thread has not written yet.
    queue: Arc<LineQueue>,
}

/// Queue of lines to write. Adding a line never blocks, so that requests do not wait for the disk.
#[derive(Default)]
struct LineQueue {
    /// Waiting lines, behind a lock.
    state: Mutex<State>,
    /// Notifies the writer of new lines, and `finish` of the end of writing.
    state_changed: Condvar,
}

/// Waiting lines, and progress of the writer.
#[derive(Default)]
struct State {
    /// Lines that wait to be written.
    lines: VecDeque<String>,
    /// Size of the waiting lines, in bytes.
    bytes: usize,
    /// Number of lines that were dropped after the waiting lines because a limit was exceeded; no line is added before
    /// the writer has recorded this number.
    dropped: u64,
    /// True once the program ends, so that no further line is added.
    is_ending: bool,
    /// True once the writer has written all lines and has ended.
    is_written: bool,
}

impl LineQueue {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a line, or counts it as dropped if a limit is exceeded.
    fn add_line(&self, line: String) {
        let mut state = self.lock();
        let bytes = state.bytes + line.len();
        // After a dropped line, all lines are dropped until the writer has recorded their number, so that the log has
        // one gap in one place.
        if state.dropped > 0 || state.lines.len() >= MAX_WAITING_LINES || bytes > MAX_WAITING_BYTES
        {
            state.dropped += 1;
            return;
        }
        state.bytes = bytes;
        state.lines.push_back(line);
        self.state_changed.notify_all();
    }

    /// Waits for lines; removes and returns all waiting lines, with the number of lines that were dropped after them.
    /// Returns `None` once all lines were returned and the program ends.
    fn take_lines(&self) -> Option<(VecDeque<String>, u64)> {
        let state = self.lock();
        let is_idle =
            |state: &mut State| state.lines.is_empty() && state.dropped == 0 && !state.is_ending;
        let state = self.state_changed.wait_while(state, is_idle);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        let lines = std::mem::take(&mut state.lines);
        let dropped = std::mem::take(&mut state.dropped);
        state.bytes = 0;
        if lines.is_empty() && dropped == 0 {
            state.is_written = true;
            self.state_changed.notify_all();
            return None;
        }
        Some((lines, dropped))
    }

    /// Ends the queue and waits until the writer has written all lines; returns false if the time limit `within`
    /// expires before.
    fn finish(&self, within: Duration) -> bool {
        let mut state = self.lock();
        state.is_ending = true;
        self.state_changed.notify_all();
        let is_writing = |state: &mut State| !state.is_written;
        let ended = self
            .state_changed
            .wait_timeout_while(state, within, is_writing);
        let (state, _) = ended.unwrap_or_else(PoisonError::into_inner);
        state.is_written
    }
}

impl Drop for AuditLog {
    fn drop(&mut self) {
        if !self.queue.finish(END_TIMEOUT) {
            let _ = writeln!(
                io::stderr(),
                "the audit log {} has not taken its last lines in {} seconds",
                self.name,
                END_TIMEOUT.as_secs()
            );
        }
    }
}

/// Opens the audit log at `path`; `-` is standard error. Returns the observers of calls and of repairs, which add a line
/// each, and the log.
///
/// If more than [`MAX_WAITING_LINES`] lines or [`MAX_WAITING_BYTES`] bytes wait, further lines are dropped, and the log
/// contains their number.
pub fn open_log(
    path: &Path,
    arguments: Arguments,
) -> anyhow::Result<((CallObserver, RepairObserver), AuditLog)> {
    let out: Box<dyn Write + Send> = if path == Path::new("-") {
        Box::new(io::stderr())
    } else {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Box::new(file.with_context(|| format!("cannot open the audit log {}", path.display()))?)
    };
    let log = AuditLog::start(out, path.display().to_string())?;
    let waiting = Arc::clone(&log.queue);
    let observer = CallObserver::new(move |report| {
        waiting.add_line(log_line(report, arguments, SystemTime::now()));
    });
    let waiting = Arc::clone(&log.queue);
    let of_repairs = RepairObserver::new(move |repaired| {
        waiting.add_line(repair_line(repaired, SystemTime::now()));
    });
    Ok(((observer, of_repairs), log))
}

impl AuditLog {
    /// Starts a thread that writes the lines of the log to `out`.
    fn start(mut out: Box<dyn Write + Send>, name: String) -> io::Result<Self> {
        let waiting = Arc::new(LineQueue::default());
        let (received, of_log) = (Arc::clone(&waiting), name.clone());
        let mut write = move |line: String| {
            if let Err(error) = out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
                let _ = writeln!(
                    io::stderr(),
                    "the audit log {of_log} cannot be written: {error}"
                );
            }
        };
        let write = move || {
            while let Some((lines, dropped)) = received.take_lines() {
                lines.into_iter().for_each(&mut write);
                if dropped > 0 {
                    write(dropped_lines_entry(dropped, SystemTime::now()));
                }
            }
        };
        let writer = thread::Builder::new().name("audit".to_owned());
        writer.spawn(write)?;
        Ok(Self {
            name,
            queue: waiting,
        })
    }
}

/// Returns the line of the log that states the number of dropped lines.
fn dropped_lines_entry(dropped: u64, now: SystemTime) -> String {
    let time = humantime::format_rfc3339_millis(now).to_string();
    let line = serde_json::json!({ "time": time, "left_out": dropped });
    format!("{line}\n")
}

/// Returns the log line of a repair.
fn repair_line(repaired: &NewRepair<'_>, now: SystemTime) -> String {
    let repair = repaired.repair;
    let line = serde_json::json!({
        "time": humantime::format_rfc3339_millis(now).to_string(),
        "server": repaired.server,
        "method": repaired.method,
        "subject": repair.subject.as_deref(),
        "repaired": repair.rule.name(),
        "pointer": &*repair.pointer,
    });
    format!("{line}\n")
}

/// Returns the log line of a completed request.
fn log_line(report: &CallReport<'_>, arguments: Arguments, now: SystemTime) -> String {
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
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::*;

    /// Writer whose writes wait for a permission of the test.
    struct SlowWriter {
        /// Bytes that were written so far.
        written: Arc<Mutex<Vec<u8>>>,
        /// Sends a message to the test when a write begins.
        write_requests: Sender<()>,
        /// Receives a permission for each write; once the sender is dropped, all writes are permitted.
        permissions: Receiver<()>,
    }

    impl Write for SlowWriter {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            let _ = self.write_requests.send(());
            // After the sender was dropped, writes no longer wait.
            let _ = self.permissions.recv();
            self.written.lock().expect("a lock").write(bytes)
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Audit log whose writer is a [`SlowWriter`], and the test's ends of the channels of the writer.
    struct LogOnSlowDisk {
        /// Audit log under test.
        log: AuditLog,
        /// Bytes that were written so far.
        written: Arc<Mutex<Vec<u8>>>,
        /// Receives a message when a write begins.
        write_requests: Receiver<()>,
        /// Sends a permission for one write.
        permissions: Sender<()>,
    }

    impl LogOnSlowDisk {
        /// Starts a log whose writer waits for permissions.
        fn start() -> Self {
            let written = Arc::default();
            let ((write_requests, is_asked), (may, permissions)) =
                (mpsc::channel(), mpsc::channel());
            let out = Box::new(SlowWriter {
                written: Arc::clone(&written),
                write_requests,
                permissions,
            });
            let log = AuditLog::start(out, "log".to_owned()).expect("a thread");
            Self {
                log,
                written,
                write_requests: is_asked,
                permissions: may,
            }
        }

        /// Permits all writes, and returns all written lines.
        fn finish(self) -> Vec<String> {
            drop(self.permissions);
            drop(self.log);
            let written = self.written.lock().expect("a lock");
            let lines = String::from_utf8_lossy(&written).into_owned();
            lines.lines().map(str::to_owned).collect()
        }
    }

    /// Dropping the log writes all waiting lines in their order.
    #[test]
    fn shutdown_writes_all_lines() {
        let slow = LogOnSlowDisk::start();
        for number in 0..100 {
            slow.log.queue.add_line(format!("{number}\n"));
        }
        let all: Vec<String> = (0..100).map(|number| number.to_string()).collect();
        assert_eq!(slow.finish(), all);
    }

    /// If the disk hangs, lines beyond the maximum number are dropped without blocking, and the log contains their
    /// number.
    #[test]
    fn excess_lines_are_counted() {
        let slow = LogOnSlowDisk::start();
        slow.log.queue.add_line("first\n".to_owned());
        slow.write_requests.recv().expect("the disk is asked");
        for number in 0..MAX_WAITING_LINES + 3 {
            slow.log.queue.add_line(format!("{number}\n"));
        }
        let lines = slow.finish();
        assert_eq!(lines.len(), 1 + MAX_WAITING_LINES + 1);
        assert!(lines[MAX_WAITING_LINES + 1].contains(r#""left_out":3"#));
    }

    /// A line beyond the maximum total size is dropped, and the log contains the number of dropped lines.
    #[test]
    fn excess_bytes_are_counted() {
        let slow = LogOnSlowDisk::start();
        slow.log.queue.add_line("first\n".to_owned());
        slow.write_requests.recv().expect("the disk is asked");
        slow.log.queue.add_line("second\n".to_owned());
        slow.log.queue.add_line("x".repeat(MAX_WAITING_BYTES));
        let lines = slow.finish();
        assert_eq!(lines.len(), 3);
        assert!(lines[2].contains(r#""left_out":1"#), "{}", lines[2]);
    }

    /// `finish` returns false if the writer has not written all lines within the time limit.
    #[test]
    fn shutdown_waits_at_most_the_timeout() {
        let slow = LogOnSlowDisk::start();
        slow.log.queue.add_line("first\n".to_owned());
        slow.write_requests.recv().expect("the disk is asked");
        assert!(!slow.log.queue.finish(Duration::ZERO));
        assert_eq!(slow.finish(), ["first"]);
    }
}
