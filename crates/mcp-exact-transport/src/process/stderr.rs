//! Reader of a child process's standard error: forwards each line, and stores the last lines for error messages. What a process
//! repeats that was started in the place of another one is not forwarded again.
//!
//! A line that is too long is forwarded in pieces.

use std::collections::VecDeque;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::AsyncReadExt;
use tokio::process::ChildStderr;
use tokio::task::JoinHandle;

use super::StderrCallback;
use crate::observe;

/// Number of bytes at which a line without a line end is forwarded in pieces.
const LINE_BYTES: usize = 8 << 10;
/// Maximum number of last lines that are stored for error messages.
const MAX_LINES: usize = 20;
/// Maximum number of characters of a line that are stored for error messages.
const MAX_LINE_CHARS: usize = 500;
/// Time limit for reading the remaining output after the exit, because a process that has left the process group may
/// keep the stream open.
const REMAINING_OUTPUT_TIMEOUT: Duration = Duration::from_millis(200);

/// Maximum number of first lines that are compared with those of the next process.
const MAX_FIRST_LINES: usize = 50;

/// Lines of standard error, each cut to [`MAX_LINE_CHARS`].
#[derive(Debug, Default)]
struct Lines {
    first: Vec<String>,
    /// Last lines, oldest first.
    last: VecDeque<String>,
}

type SharedLines = Arc<Mutex<Lines>>;

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Lines of a process that has ended, and in whose place the next one is started.
#[derive(Debug, Clone, Default)]
pub(super) struct EarlierLines(Arc<Mutex<Option<SharedLines>>>);

/// Comparison of the lines of a process with those of the process before it.
struct Repetition {
    /// Lines of the process before; `None` once a line differs.
    earlier: Option<SharedLines>,
    /// Index of the next line.
    at: usize,
}

impl Repetition {
    /// Returns true if this line and all before it are those of the process before.
    fn continues_with(&mut self, line: &str) -> bool {
        let Some(earlier) = &self.earlier else {
            return false;
        };
        let is_same = lock(earlier)
            .first
            .get(self.at)
            .is_some_and(|it| it == line);
        self.at += 1;
        if !is_same {
            self.earlier = None;
        }
        is_same
    }
}

/// Task that reads the standard error of a child process, and its lines.
pub(super) struct Stderr {
    /// Lines that were read.
    kept: SharedLines,
    /// Task that reads the stream.
    task: JoinHandle<()>,
}

impl Stderr {
    /// Starts a task that reads the stream and forwards its lines, but those that repeat what an earlier process has written.
    pub(super) fn forward(
        mut stream: ChildStderr,
        callback: Option<StderrCallback>,
        earlier: &EarlierLines,
    ) -> Self {
        let kept = SharedLines::default();
        let mut forwarder = Forwarder {
            kept: Arc::clone(&kept),
            callback,
            repetition: Repetition {
                earlier: lock(&earlier.0).take(),
                at: 0,
            },
        };
        let task = tokio::spawn(async move {
            let mut pending = Vec::new();
            let mut buffer = vec![0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                pending.extend_from_slice(&buffer[..count]);
                let mut rest = &pending[..];
                while let Some(end) = memchr::memchr(b'\n', rest) {
                    forwarder.note(&rest[..end]);
                    rest = &rest[end + 1..];
                }
                if rest.len() > LINE_BYTES {
                    forwarder.note(rest);
                    rest = &[];
                }
                let done = pending.len() - rest.len();
                pending.drain(..done);
            }
            if !pending.is_empty() {
                forwarder.note(&pending);
            }
        });
        Self { kept, task }
    }

    /// Compares the lines of the next process with those of this one, in whose place it is started.
    pub(super) fn precede(&self, next: &EarlierLines) {
        *lock(&next.0) = Some(Arc::clone(&self.kept));
    }

    /// Waits for the end of the stream and returns the last lines.
    pub(super) async fn last_lines(mut self) -> String {
        if tokio::time::timeout(REMAINING_OUTPUT_TIMEOUT, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
        }
        let kept = lock(&self.kept);
        Vec::from_iter(kept.last.iter().map(String::as_str)).join("\n")
    }
}

/// Receiver of the lines of a process.
struct Forwarder {
    kept: SharedLines,
    callback: Option<StderrCallback>,
    repetition: Repetition,
}

impl Forwarder {
    /// Passes a line to the callback, and stores it.
    fn note(&mut self, line: &[u8]) {
        let line = String::from_utf8_lossy(line.trim_ascii_end());
        let cut: String = line.chars().take(MAX_LINE_CHARS).collect();
        let is_repeated = self.repetition.continues_with(&cut);
        match &self.callback {
            _ if is_repeated => {}
            // A panic of the application must not end the reading: the process would wait for room in the pipe.
            Some(callback) => {
                if catch_unwind(AssertUnwindSafe(|| callback(&line))).is_err() {
                    observe::stderr_callback_panicked();
                }
            }
            None => observe::stderr_line(&line),
        }
        let mut kept = lock(&self.kept);
        if kept.first.len() < MAX_FIRST_LINES {
            kept.first.push(cut.clone());
        }
        if kept.last.len() == MAX_LINES {
            kept.last.pop_front();
        }
        kept.last.push_back(cut);
    }
}
