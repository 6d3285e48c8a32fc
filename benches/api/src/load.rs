//! Client over pipes that uses little CPU time: it writes prepared requests and counts the lines of the responses.

use std::io::{Read as _, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use anyhow::{Context as _, ensure};
use memchr::memchr_iter;

/// Text that each call sends as argument and receives as result.
pub const TEXT: &str = "the quick brown fox jumps over the lazy dog";

/// Request that starts a session, as one line.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}
"#;
/// Notification that completes the handshake, as one line.
const INITIALIZED: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

/// Server process whose pipes carry one session; the process is killed on drop.
pub struct Session {
    /// Process of the server.
    child: Child,
    /// Standard input of the server.
    input: ChildStdin,
    /// Standard output of the server.
    output: ChildStdout,
    /// Reused buffer for the bytes of responses.
    buffer: Vec<u8>,
    /// Id of the last request that was built.
    last_id: u64,
}

impl Drop for Session {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

impl Session {
    /// Starts the server `name` of this program as a process, completes the handshake, and checks one call.
    pub fn start(name: &str) -> anyhow::Result<Self> {
        let mut child = Command::new(std::env::current_exe()?)
            .args(["server", name])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()?;
        let mut session = Self {
            input: child.stdin.take().context("no input")?,
            output: child.stdout.take().context("no output")?,
            child,
            buffer: vec![0; 256 << 10],
            last_id: 0,
        };
        session.input.write_all(INITIALIZE.as_bytes())?;
        session.read_lines()?;
        session.input.write_all(INITIALIZED.as_bytes())?;
        session.check()?;
        Ok(session)
    }

    /// Reads from the server once; returns the number of complete lines and the number of bytes.
    fn read_lines(&mut self) -> anyhow::Result<(usize, usize)> {
        let count = self.output.read(&mut self.buffer)?;
        ensure!(count > 0, "the server has left");
        let lines = memchr_iter(b'\n', &self.buffer[..count]).count();
        Ok((lines, count))
    }

    /// Builds the next `count` requests; returns their bytes, and the offsets at which the requests end, preceded by 0.
    fn requests(&mut self, count: usize) -> (Vec<u8>, Vec<usize>) {
        let (mut text, mut ends) = (Vec::new(), vec![0]);
        for _ in 0..count {
            self.last_id += 1;
            let request = format!(
                "{{\"jsonrpc\":\"2.0\",\"id\":{},\"method\":\"tools/call\",\"params\":{{\"name\":\"echo\",\"arguments\":{{\"text\":\"{TEXT}\"}}}}}}\n",
                self.last_id
            );
            text.extend_from_slice(request.as_bytes());
            ends.push(text.len());
        }
        (text, ends)
    }

    /// Makes `calls` calls, of which at most `in_flight` wait for their responses at the same time.
    pub fn call_concurrently(&mut self, calls: usize, in_flight: usize) -> anyhow::Result<()> {
        let (text, ends) = self.requests(calls);
        let half = (in_flight / 2).max(1);
        let (mut sent, mut done) = (0, 0);
        while done < calls {
            while sent < calls && sent - done + half <= in_flight {
                let next = (sent + half).min(calls);
                self.input.write_all(&text[ends[sent]..ends[next]])?;
                sent = next;
            }
            done += self.read_lines()?.0;
        }
        ensure!(done == calls, "{done} answers to {calls} calls");
        Ok(())
    }

    /// Makes one call and checks the response.
    fn check(&mut self) -> anyhow::Result<()> {
        let (text, _) = self.requests(1);
        self.input.write_all(&text)?;
        let (_, count) = self.read_lines()?;
        let answer = String::from_utf8_lossy(&self.buffer[..count]);
        let expected = format!(r#""content":[{{"type":"text","text":"{TEXT}"}}]"#);
        ensure!(answer.contains(&expected), "{answer}");
        Ok(())
    }
}
