//! A server as a child process: writes lines to its standard input and reads lines from its standard output, with a
//! time limit.

use std::ffi::OsString;
use std::io::{self, BufRead, BufReader, Write};
use std::process::{Child, ChildStdin, Command, ExitStatus, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::Context;

/// Maximum length of a line from a server, in bytes.
const MAX_LINE_BYTES: u64 = 256 << 20;

/// Running server, which is killed when this value is dropped.
#[derive(Debug)]
pub struct Process {
    /// Process of the server.
    child: Child,
    /// Standard input of the server; `None` after it was closed.
    input: Option<ChildStdin>,
    /// Channel of the lines of standard output.
    lines: Receiver<Vec<u8>>,
}

/// Result of waiting for a line of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ServerOutput {
    /// A line, without the line break.
    Line(Vec<u8>),
    /// No line was received within the time limit.
    Timeout,
    /// The server has closed its standard output.
    End,
}

impl Process {
    /// Starts a server; if `shows_stderr` is true, the server inherits standard error of this process.
    pub fn start(command: &[OsString], shows_stderr: bool) -> anyhow::Result<Self> {
        let (program, arguments) = command.split_first().context("there is no command")?;
        let mut child = Command::new(program)
            .args(arguments)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(if shows_stderr {
                Stdio::inherit()
            } else {
                Stdio::null()
            })
            .spawn()
            .with_context(|| format!("cannot start {}", program.to_string_lossy()))?;
        let input = child.stdin.take();
        let output = child.stdout.take().context("the server has no output")?;
        let (sender, lines) = mpsc::channel();
        thread::spawn(move || {
            let mut output = BufReader::new(output);
            loop {
                let mut line = Vec::new();
                let read = io::Read::by_ref(&mut output);
                let read = io::Read::take(read, MAX_LINE_BYTES).read_until(b'\n', &mut line);
                if !matches!(read, Ok(1..)) || sender.send(line).is_err() {
                    return;
                }
            }
        });
        Ok(Self {
            child,
            input,
            lines,
        })
    }

    /// Writes a line to standard input of the server.
    pub fn send(&mut self, line: &str) -> io::Result<()> {
        let input = self.input.as_mut().ok_or(io::ErrorKind::BrokenPipe)?;
        input.write_all(line.as_bytes())?;
        input.write_all(b"\n")?;
        input.flush()
    }

    /// Waits for the next line that is not empty, for at most `limit`.
    pub fn receive(&mut self, limit: Duration) -> ServerOutput {
        let until = Instant::now() + limit;
        loop {
            let left = until.saturating_duration_since(Instant::now());
            match self.lines.recv_timeout(left) {
                Ok(line) if line.trim_ascii().is_empty() => {}
                Ok(line) => {
                    let end = line.strip_suffix(b"\n").unwrap_or(&line);
                    return ServerOutput::Line(end.strip_suffix(b"\r").unwrap_or(end).to_vec());
                }
                Err(RecvTimeoutError::Timeout) => return ServerOutput::Timeout,
                Err(RecvTimeoutError::Disconnected) => return ServerOutput::End,
            }
        }
    }

    /// Closes standard input of the server and waits for its exit; kills the server after the time limit. Returns
    /// `None` if the server was killed.
    pub fn end(mut self, limit: Duration) -> Option<ExitStatus> {
        drop(self.input.take());
        let until = Instant::now() + limit;
        while Instant::now() < until {
            if let Ok(Some(status)) = self.child.try_wait() {
                return Some(status);
            }
            thread::sleep(Duration::from_millis(10));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        drop(self.input.take());
        if !matches!(self.child.try_wait(), Ok(Some(_))) {
            let _ = self.child.kill();
            let _ = self.child.wait();
        }
    }
}
