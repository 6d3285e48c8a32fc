//! Logs that a thread writes: adding a line never waits for the file, and lines that have no room are counted.

use std::collections::VecDeque;
use std::io::{self, Write};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, text};

/// Maximum number of lines that wait to be written.
pub(super) const MAX_WAITING_LINES: usize = 10_000;
/// Maximum total size of the lines that wait to be written, in bytes.
pub(super) const MAX_WAITING_BYTES: usize = 64 << 20;

/// Log that a thread writes, so that nobody waits for its file. Dropping the value waits until all lines are written, for a
/// limited time.
pub struct LineLog {
    /// Path of the log, for error messages; `None` for standard error.
    name: Option<String>,
    /// Lines that the thread has not written yet.
    pub(super) queue: Arc<LineQueue>,
    /// Time limit for the last lines.
    within: Duration,
}

/// Queue of lines to write. Adding a line never blocks, so that requests do not wait for the disk.
#[derive(Default)]
pub struct LineQueue {
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
    pub fn add_line(&self, line: String) {
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
    pub(super) fn finish(&self, within: Duration) -> bool {
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

impl Drop for LineLog {
    fn drop(&mut self) {
        if !self.queue.finish(self.within)
            && let Some(name) = &self.name
        {
            let seconds = self.within.as_secs();
            let line = text!(
                "the log {} has not taken its last lines in {} seconds",
                Untrusted(name),
                seconds
            );
            // Standard error may take nothing, either.
            thread::spawn(move || print_to_stderr(&line));
            thread::sleep(Duration::from_millis(50));
        }
    }
}

/// Writer of lines. A line that was written in part, because the disk was full, is ended before the next one.
pub struct LineWriter {
    out: Box<dyn Write + Send>,
    /// True if what was written last is not the end of a line.
    is_cut: bool,
}

impl LineWriter {
    /// Creates a writer; `is_cut` is true if the file ends within a line.
    pub fn new(out: Box<dyn Write + Send>, is_cut: bool) -> Self {
        Self { out, is_cut }
    }

    /// Writes a line with its line break.
    fn write_line(&mut self, line: &str) -> io::Result<()> {
        if self.is_cut {
            self.write_all(b"\n")?;
        }
        self.write_all(line.as_bytes())?;
        self.out.flush()
    }

    fn write_all(&mut self, mut bytes: &[u8]) -> io::Result<()> {
        while let Some(last) = bytes.len().checked_sub(1) {
            match self.out.write(bytes) {
                Ok(0) => return Err(io::ErrorKind::WriteZero.into()),
                Ok(count) => {
                    let count = count.min(last + 1);
                    self.is_cut = bytes[count - 1] != b'\n';
                    bytes = &bytes[count..];
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }
}

impl LineLog {
    /// Starts a thread that writes the lines of a log to `out`; `left_out` formats the line that states the number of dropped
    /// lines.
    pub fn start(
        mut out: LineWriter,
        name: Option<String>,
        within: Duration,
        left_out: fn(u64) -> String,
    ) -> io::Result<Self> {
        let waiting = Arc::new(LineQueue::default());
        let (received, of_log) = (Arc::clone(&waiting), name.clone());
        let mut write = move |line: String| {
            if let Err(error) = out.write_line(&line)
                && let Some(name) = &of_log
            {
                let (name, error) = (Untrusted(name), error.to_string());
                let error = Untrusted(&error);
                print_to_stderr(&text!("the log {} cannot be written: {}", name, error));
            }
        };
        let write = move || {
            while let Some((lines, dropped)) = received.take_lines() {
                lines.into_iter().for_each(&mut write);
                if dropped > 0 {
                    write(left_out(dropped));
                }
            }
        };
        let writer = thread::Builder::new().name("log".to_owned());
        writer.spawn(write)?;
        Ok(Self {
            name,
            queue: waiting,
            within,
        })
    }
}
