//! Client over pipes that uses little CPU time: it writes prepared requests and counts the lines of the responses.

use std::io::{Read, Write};
use std::process::{ChildStdin, ChildStdout};
use std::time::{Duration, Instant};

use anyhow::ensure;
use memchr::memchr_iter;

use super::{TEXT, check_answer};
use crate::process::Server;
use crate::stats::quantile;

/// Request that starts a session, as one line.
const INITIALIZE: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"load","version":"1"}}}
"#;
/// Notification that completes the handshake, as one line.
const INITIALIZED: &str = "{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n";

/// Server process whose pipes carry one session.
pub struct Session {
    /// Process of the server.
    pub server: Server,
    /// Standard input of the server.
    input: ChildStdin,
    /// Standard output of the server.
    output: ChildStdout,
    /// Reused buffer for the bytes of responses.
    buffer: Vec<u8>,
    /// Id of the last request that was built.
    last_id: u64,
    /// Time from the start of the process to the response to `initialize`.
    pub first_answer: Duration,
}

impl Session {
    /// Starts the server `name` of this program as a process, and a session with it.
    pub fn start(name: &str) -> anyhow::Result<Self> {
        let started = Instant::now();
        Self::begin(Server::start(name)?, started)
    }

    /// Starts a session with a server process that was started at the time `started`.
    pub fn begin(mut server: Server, started: Instant) -> anyhow::Result<Self> {
        let (mut input, output) = server.pipes()?;
        input.write_all(INITIALIZE.as_bytes())?;
        let mut session = Self {
            server,
            input,
            output,
            buffer: vec![0; 256 << 10],
            last_id: 0,
            first_answer: Duration::ZERO,
        };
        session.read_lines()?;
        session.first_answer = started.elapsed();
        session.input.write_all(INITIALIZED.as_bytes())?;
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

    /// Makes `calls` calls, of which at most `in_flight` wait for their responses at the same time; returns the calls
    /// per second.
    pub fn call_concurrently(&mut self, calls: usize, in_flight: usize) -> anyhow::Result<f64> {
        let (text, ends) = self.requests(calls);
        let half = (in_flight / 2).max(1);
        let (mut sent, mut done) = (0, 0);
        let start = Instant::now();
        while done < calls {
            while sent < calls && sent - done + half <= in_flight {
                let next = (sent + half).min(calls);
                self.input.write_all(&text[ends[sent]..ends[next]])?;
                sent = next;
            }
            done += self.read_lines()?.0;
        }
        let elapsed = start.elapsed();
        ensure!(done == calls, "{done} answers to {calls} calls");
        self.call()?;
        Ok(calls as f64 / elapsed.as_secs_f64())
    }

    /// Makes `calls` calls one after the other; returns the median of their durations, in microseconds.
    pub fn one_by_one(&mut self, calls: usize) -> anyhow::Result<f64> {
        let (text, ends) = self.requests(calls);
        let mut times = Vec::with_capacity(calls);
        for index in 0..calls {
            let start = Instant::now();
            self.input.write_all(&text[ends[index]..ends[index + 1]])?;
            while self.read_lines()?.0 == 0 {}
            times.push(start.elapsed().as_secs_f64() * 1e6);
        }
        self.call()?;
        Ok(quantile(&mut times, 0.5))
    }

    /// Makes one call and checks the response.
    fn call(&mut self) -> anyhow::Result<()> {
        let (text, _) = self.requests(1);
        self.input.write_all(&text)?;
        let (_, count) = self.read_lines()?;
        check_answer(&self.buffer[..count], self.last_id)
    }
}
