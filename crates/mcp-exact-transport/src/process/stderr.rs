//! Reader of a child process's standard error: forwards each line, and stores the last lines for error messages.
//!
//! A line that is too long is forwarded in pieces.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
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

/// Last lines of standard error, oldest first.
type LastLines = Arc<Mutex<VecDeque<String>>>;

/// Task that reads the standard error of a child process, and its last lines.
pub(super) struct Stderr {
    /// Last lines that were read.
    kept: LastLines,
    /// Task that reads the stream.
    task: JoinHandle<()>,
}

impl Stderr {
    /// Starts a task that reads the stream and forwards its lines.
    pub(super) fn forward(mut stream: ChildStderr, callback: Option<StderrCallback>) -> Self {
        let kept = LastLines::default();
        let lines = Arc::clone(&kept);
        let task = tokio::spawn(async move {
            let mut pending = Vec::new();
            let mut buffer = vec![0; 4096];
            while let Ok(count @ 1..) = stream.read(&mut buffer).await {
                pending.extend_from_slice(&buffer[..count]);
                let mut rest = &pending[..];
                while let Some(end) = memchr::memchr(b'\n', rest) {
                    note(&lines, callback.as_ref(), &rest[..end]);
                    rest = &rest[end + 1..];
                }
                if rest.len() > LINE_BYTES {
                    note(&lines, callback.as_ref(), rest);
                    rest = &[];
                }
                let done = pending.len() - rest.len();
                pending.drain(..done);
            }
            if !pending.is_empty() {
                note(&lines, callback.as_ref(), &pending);
            }
        });
        Self { kept, task }
    }

    /// Waits for the end of the stream and returns the last lines.
    pub(super) async fn last_lines(mut self) -> String {
        if tokio::time::timeout(REMAINING_OUTPUT_TIMEOUT, &mut self.task)
            .await
            .is_err()
        {
            self.task.abort();
        }
        let kept = self.kept.lock().unwrap_or_else(PoisonError::into_inner);
        Vec::from_iter(kept.iter().map(String::as_str)).join("\n")
    }
}

/// Passes a line to the callback and stores it among the last lines.
fn note(kept: &LastLines, callback: Option<&StderrCallback>, line: &[u8]) {
    let line = String::from_utf8_lossy(line.trim_ascii_end());
    match callback {
        Some(callback) => callback(&line),
        None => observe::stderr_line(&line),
    }
    let mut kept = kept.lock().unwrap_or_else(PoisonError::into_inner);
    if kept.len() == MAX_LINES {
        kept.pop_front();
    }
    kept.push_back(line.chars().take(MAX_LINE_CHARS).collect());
}
