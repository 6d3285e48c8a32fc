//! Audit log of `mcp-exact bridge`: one line of JSON per completed request, one per kind of repair, one per tool and shape of
//! its schema that hosts may refuse, and one per definition that is not the pinned one.

use std::fs::{File, OpenOptions};
use std::io::{self, Read as _, Seek as _, SeekFrom};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use anyhow::Context;
use mcp_exact_bridge::{
    CallObserver, CallOutcome, CallReport, NewRepair, PinObserver, RepairObserver, SchemaObserver,
    UnpinnedTool, UnportableSchema,
};
use mcp_exact_revisions::method;
use serde::Deserialize;
use serde_json::{Map, Value};

use super::lines::{LineLog, LineWriter};
use super::lock::sha256;
use crate::output::private;
use crate::terminal::stderr;

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

/// Time limit for writing the last lines at the end of the program.
const END_TIMEOUT: Duration = Duration::from_secs(5);

/// What stands in the place of an argument that the catalogue fixes, in lines with complete arguments.
const FIXED: &str = "(fixed)";

/// Observers that add a line to the log each.
pub struct Observers {
    pub calls: CallObserver,
    pub repairs: RepairObserver,
    pub schemas: SchemaObserver,
    pub pins: PinObserver,
}

/// Opens the audit log at `path`; `-` is standard error. Returns the observers, and the log.
///
/// If too many lines wait, further lines are dropped, and the log contains their number.
pub fn open_log(path: &Path, arguments: Arguments) -> anyhow::Result<(Observers, LineLog)> {
    let is_stderr = path == Path::new("-");
    let out = if is_stderr {
        LineWriter::new(Box::new(stderr().document()), false)
    } else {
        let mut options = OpenOptions::new();
        let file = private(options.append(true).create(true)).open(path);
        let file = file.with_context(|| format!("cannot open the audit log {}", path.display()))?;
        LineWriter::new(Box::new(file), ends_within_line(path))
    };
    let name = (!is_stderr).then(|| path.display().to_string());
    let log = start(out, name)?;
    let waiting = Arc::clone(&log.queue);
    let calls = CallObserver::new(move |report| {
        waiting.add_line(log_line(report, arguments, SystemTime::now()));
    });
    let waiting = Arc::clone(&log.queue);
    let repairs = RepairObserver::new(move |repaired| {
        waiting.add_line(repair_line(repaired, SystemTime::now()));
    });
    let waiting = Arc::clone(&log.queue);
    let schemas = SchemaObserver::new(move |report| {
        waiting.add_line(schema_line(report, SystemTime::now()));
    });
    let waiting = Arc::clone(&log.queue);
    let pins = PinObserver::new(move |report| {
        waiting.add_line(pin_line(report, SystemTime::now()));
    });
    let observers = Observers {
        calls,
        repairs,
        schemas,
        pins,
    };
    Ok((observers, log))
}

/// Returns true if a file ends within a line, which an earlier process could not write completely. What is no file, such as a pipe,
/// or must not be read has no such line.
fn ends_within_line(path: &Path) -> bool {
    let mut last = [b'\n'];
    let is_file = path.metadata().is_ok_and(|metadata| metadata.is_file());
    if is_file && let Ok(mut file) = File::open(path) {
        // An empty file has no last byte.
        let _ = file
            .seek(SeekFrom::End(-1))
            .and_then(|_| file.read_exact(&mut last));
    }
    last != [b'\n']
}

/// Starts the log.
fn start(out: LineWriter, name: Option<String>) -> io::Result<LineLog> {
    LineLog::start(out, name, END_TIMEOUT, dropped_lines_entry)
}

/// Returns the line of the log that states the number of dropped lines.
fn dropped_lines_entry(dropped: u64) -> String {
    let time = humantime::format_rfc3339_millis(SystemTime::now()).to_string();
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

/// Returns the log line of a shape that hosts may refuse in the schema of a tool.
fn schema_line(report: &UnportableSchema<'_>, now: SystemTime) -> String {
    let line = serde_json::json!({
        "time": humantime::format_rfc3339_millis(now).to_string(),
        "server": report.server,
        "method": method::TOOLS_LIST,
        "subject": report.tool,
        "unportable": report.shape.name(),
        "pointer": report.pointer,
    });
    format!("{line}\n")
}

/// Returns the log line of a tool whose definition is not the pinned one.
fn pin_line(report: &UnpinnedTool<'_>, now: SystemTime) -> String {
    let pointers = report.differences.iter();
    let pointers: Vec<&str> = pointers.map(|found| found.pointer.as_str()).collect();
    let line = serde_json::json!({
        "time": humantime::format_rfc3339_millis(now).to_string(),
        "server": report.server,
        "method": method::TOOLS_LIST,
        "subject": report.tool,
        "unpinned": report.change.name(),
        "withheld": report.is_withheld,
        "definition_sha256": sha256(report.definition.text()),
        "pointers": pointers,
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
    if let Some(listed) = &call.listed_as {
        add("listed_as", text(listed));
    }
    if let Some(spelled) = call.arguments() {
        match arguments {
            Arguments::Sha256 => {
                add("arguments_sha256", text(&sha256(&spelled)));
            }
            Arguments::Full => {
                let mut value = serde_json::from_str(&spelled).unwrap_or_else(|_| text(&spelled));
                // A fixed value may be a key that no reader of the log should know.
                for name in &call.fixed {
                    if let Some(value) = value.get_mut(name) {
                        *value = text(FIXED);
                    }
                }
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
    if report.retries > 0 {
        add("retries", Value::from(report.retries));
    }
    if report.is_cached {
        add("cached", Value::from(true));
    }
    format!("{}\n", Value::Object(line))
}

#[cfg(test)]
mod tests {
    use std::io::Write;
    use std::sync::Mutex;
    use std::sync::mpsc::{self, Receiver, Sender};

    use super::super::lines::{MAX_WAITING_BYTES, MAX_WAITING_LINES};
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
        log: LineLog,
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
            let out = LineWriter::new(out, false);
            let log = start(out, Some("log".to_owned())).expect("a thread");
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

    /// A line that the disk has taken in part only, now or before the start, is not continued by the next one.
    #[test]
    fn cut_lines_are_ended() {
        /// Disk that is full after some bytes, and has room again afterwards.
        struct FullDisk {
            written: Arc<Mutex<Vec<u8>>>,
            /// Results of the next writes: numbers of bytes, and 0 for a full disk.
            room: Vec<usize>,
        }

        impl Write for FullDisk {
            fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
                let room = self.room.pop().unwrap_or(bytes.len()).min(bytes.len());
                if room == 0 {
                    return Err(io::ErrorKind::StorageFull.into());
                }
                let mut written = self.written.lock().expect("no panic");
                written.extend_from_slice(&bytes[..room]);
                Ok(room)
            }

            fn flush(&mut self) -> io::Result<()> {
                Ok(())
            }
        }

        for (is_cut, mut room, expected) in [
            // The line break does not fit, either: the second line is lost.
            (false, vec![2, 0, 0], "fi\nthird\n"),
            (false, vec![2, 0], "fi\nsecond\nthird\n"),
            (false, vec![0], "second\nthird\n"),
            (true, vec![1, 0], "\nsecond\nthird\n"),
            (true, vec![], "\nfirst\nsecond\nthird\n"),
        ] {
            room.reverse();
            let written = Arc::default();
            let disk = FullDisk {
                written: Arc::clone(&written),
                room,
            };
            let out = LineWriter::new(Box::new(disk), is_cut);
            let log = start(out, None).expect("a thread");
            for line in ["first", "second", "third"] {
                log.queue.add_line(format!("{line}\n"));
            }
            drop(log);
            let written = String::from_utf8(written.lock().expect("no panic").clone());
            assert_eq!(written.expect("UTF-8"), expected);
        }
    }

    /// A log that ends within a line is continued on the next one.
    #[test]
    fn existing_logs_are_continued_on_a_new_line() {
        let folder = tempfile::tempdir().expect("a folder");
        for (found, is_cut) in [("", false), ("a\n", false), ("a\nb", true)] {
            let path = folder.path().join("audit.jsonl");
            std::fs::write(&path, found).expect("a file");
            assert_eq!(ends_within_line(&path), is_cut, "{found:?}");
        }
        assert!(!ends_within_line(&folder.path().join("none")));
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
