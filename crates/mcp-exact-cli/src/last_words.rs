//! Standard error of a server as lines: shown, or kept for the report of why the server has ended.

use std::collections::VecDeque;
use std::io::{BufRead, BufReader, Read};
use std::process::ChildStderr;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, text};

/// Error of a server that has ended, with what it wrote last.
#[derive(Debug, Clone)]
pub struct LastWordsError {
    /// Description of the problem.
    pub problem: String,
    /// Lines of the server.
    pub words: String,
}

impl std::fmt::Display for LastWordsError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}: {}", self.problem, self.words)
    }
}

impl std::error::Error for LastWordsError {}

/// Maximum number of lines that are kept.
const MAX_LINES: usize = 12;
/// Maximum length of a line, in bytes; a longer one is read in pieces.
const MAX_LINE_BYTES: u64 = 16 << 10;
/// Time to wait for the end of standard error of a server that has exited: a descendant may keep it open.
const END_WAIT: Duration = Duration::from_millis(200);

/// Maximum time to wait until the lines of a server that has ended are shown: a descendant that has left its process group may keep
/// standard error open.
const SHOWN_WAIT: Duration = Duration::from_secs(1);

/// Lines that a server wrote last.
#[derive(Debug, Clone, Default)]
pub struct LastWords(Arc<(Mutex<State>, Condvar)>);

#[derive(Debug, Default)]
struct State {
    lines: VecDeque<String>,
    /// True while a thread reads.
    is_reading: bool,
    /// True if the lines are shown.
    is_shown: bool,
}

impl LastWords {
    /// Reads standard error of a server in another thread; shows each line if `is_shown` is true.
    pub fn read(&self, stderr: ChildStderr, is_shown: bool) {
        let words = self.clone();
        words.change(|state| {
            state.is_reading = true;
            state.is_shown = is_shown;
        });
        thread::spawn(move || {
            let mut stderr = BufReader::new(stderr);
            let mut line = Vec::new();
            loop {
                line.clear();
                let mut piece = Read::by_ref(&mut stderr).take(MAX_LINE_BYTES);
                if !matches!(piece.read_until(b'\n', &mut line), Ok(1..)) {
                    break;
                }
                let text = String::from_utf8_lossy(line.trim_ascii_end()).into_owned();
                if is_shown {
                    print_to_stderr(&text!("{}", Untrusted(&text)));
                }
                words.change(|state| {
                    if state.lines.len() == MAX_LINES {
                        state.lines.pop_front();
                    }
                    state
                        .lines
                        .extend((!text.trim().is_empty()).then_some(text));
                });
            }
            words.change(|state| state.is_reading = false);
            words.0.1.notify_all();
        });
    }

    fn change(&self, change: impl FnOnce(&mut State)) {
        change(&mut self.0.0.lock().unwrap_or_else(PoisonError::into_inner));
    }

    /// Returns the last lines of a server that has exited, the oldest first.
    pub fn lines(&self) -> Vec<String> {
        let state = self.ended(END_WAIT);
        state.lines.iter().cloned().collect()
    }

    /// Waits until all lines of a server that has ended are shown, if they are shown at all.
    pub fn wait_until_shown(&self) {
        if self.ended(Duration::ZERO).is_shown {
            drop(self.ended(SHOWN_WAIT));
        }
    }

    /// Returns the state once standard error has ended, or after `limit`.
    fn ended(&self, limit: Duration) -> MutexGuard<'_, State> {
        let (state, ended) = &*self.0;
        let state = state.lock().unwrap_or_else(PoisonError::into_inner);
        let waited = ended.wait_timeout_while(state, limit, |state| state.is_reading);
        waited.unwrap_or_else(PoisonError::into_inner).0
    }
}
