//! Client endpoint that is connected to a server process: writes the endpoint's output and reads input until a request
//! has ended. Requests of the server that arrive in the meantime are answered.

use std::io::Write;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{error, thread};

use mcp_exact_session::frame::{Line, Lines};
use mcp_exact_session::{
    Binding, CallOptions, ClientConfig, ClientEndpoint, ClientEvent, Json, Level, Outcome,
    SessionInfo, StreamEnd, StreamId, Time,
};
use serde_json::{Value, json};

use crate::{pipe, print_step, uses};

pub type AnyError = Box<dyn error::Error>;

/// Running server process with its client endpoint.
pub struct Peer {
    /// Client endpoint of the session.
    client: ClientEndpoint,
    /// Program of the server and its arguments.
    command_line: Vec<String>,
    /// Process of the server.
    child: Child,
    /// Standard input of the server; `None` after it was closed.
    input: Option<ChildStdin>,
    /// Bytes that a thread reads from the server's standard output.
    output: mpsc::Receiver<Vec<u8>>,
    /// Splits the server's output into lines.
    lines: Lines,
    /// Start time of the endpoint's timestamps.
    started_at: Instant,
}

/// Outcome of a request, with the events that preceded it.
pub struct RequestOutcome {
    /// Result, error or other end of the request.
    pub outcome: Outcome,
    /// Values of the progress notifications, in order.
    pub progress: Vec<f64>,
    /// Methods of the requests that the server has sent before the outcome.
    pub server_request_methods: Vec<String>,
}

impl Peer {
    /// Starts the server process and the negotiation.
    pub fn start(config: ClientConfig, command: Vec<String>) -> Result<Self, AnyError> {
        let lines = Lines::new(config.limits.message_bytes);
        let client = ClientEndpoint::new(config.build()?, Binding::Duplex, None, Time::ZERO);
        let (mut child, output) = spawn(&command)?;
        Ok(Self {
            client,
            command_line: command,
            input: child.stdin.take(),
            child,
            output,
            lines,
            started_at: Instant::now(),
        })
    }

    /// Waits for the negotiation and returns its result.
    pub fn session_info(&mut self) -> Result<SessionInfo, AnyError> {
        loop {
            match self.next_event()? {
                ClientEvent::Negotiated(agreed, _) => return Ok(agreed),
                ClientEvent::RestartServer => self.restart()?,
                event => self.handle_other_event(event)?,
            }
        }
    }

    /// Starts a new server process after the previous process has exited.
    ///
    /// Some servers before 2026-07-28 exit after a probe (`basic/transports/stdio`, "Backward Compatibility").
    fn restart(&mut self) -> Result<(), AnyError> {
        print_step("the server has left after a probe; it is started again")?;
        self.child.kill()?;
        self.child.wait()?;
        (self.child, self.output) = spawn(&self.command_line)?;
        self.input = self.child.stdin.take();
        // What the old one has said to its end is no part of what the new one says.
        while self.lines.next_line().is_some() {}
        self.lines.take_remaining();
        self.client.handle_restart(self.now());
        Ok(())
    }

    /// Sends a request and returns its result.
    pub fn request(&mut self, method: &str, params: Value) -> Result<Value, AnyError> {
        let error = match self.call_tool(method, params, false)?.outcome {
            Outcome::Result(result) => return Ok(result.object().parse()?),
            Outcome::Error(error) => error.into(),
            other => AnyError::from(format!("{other:?}")),
        };
        print_step(&format!("{method}: {error}"))?;
        Err(error)
    }

    /// Returns the entries of all pages of a list.
    pub fn list_all(&mut self, method: &str, member: &str) -> Result<Vec<Value>, AnyError> {
        let (mut items, mut params) = (Vec::new(), Value::Null);
        loop {
            let mut page = self.request(method, params)?;
            if let Value::Array(more) = page[member].take() {
                items.extend(more);
            }
            match page["nextCursor"].take() {
                Value::Null => break,
                cursor => params = json!({ "cursor": cursor }),
            }
        }
        print_step(&format!("{method}: {} of them", items.len()))?;
        Ok(items)
    }

    /// Sends a request and waits for its outcome; if `cancel` is true, cancels the request at its first progress
    /// notification.
    pub fn call_tool(
        &mut self,
        method: &str,
        params: Value,
        cancel: bool,
    ) -> Result<RequestOutcome, AnyError> {
        let tool = method == "tools/call";
        let options = CallOptions {
            progress: tool,
            log_level: tool.then_some(Level::Debug),
            ..CallOptions::default()
        };
        let params = Json::from(params).try_into().ok();
        let request = self.client.request(method, params, options, self.now())?;
        let (mut progress, mut asked) = (Vec::new(), Vec::new());
        loop {
            match self.next_event()? {
                ClientEvent::Completed(key, outcome) if key == request => {
                    return Ok(RequestOutcome {
                        outcome,
                        progress,
                        server_request_methods: asked,
                    });
                }
                ClientEvent::Progress {
                    key,
                    progress: made,
                    ..
                } if key == request => {
                    progress.push(made.done);
                    if cancel {
                        self.client.cancel(request, "no longer wanted", self.now());
                    }
                }
                ClientEvent::Request {
                    key, request: ask, ..
                } => {
                    asked.push(ask.method().to_owned());
                    self.client
                        .answer(key, uses::answer_server_request(&ask), self.now())?;
                }
                event => self.handle_other_event(event)?,
            }
        }
    }

    /// Handles an event that does not belong to the pending request.
    fn handle_other_event(&mut self, event: ClientEvent) -> Result<(), AnyError> {
        match event {
            ClientEvent::Request {
                key, request: ask, ..
            } => {
                self.client
                    .answer(key, uses::answer_server_request(&ask), self.now())?;
            }
            ClientEvent::Log {
                related_request: _,
                message: logged,
                ..
            } => {
                print_step(&format!("  log, {}: {}", logged.level, logged.data))?;
            }
            ClientEvent::Violation(violation) => print_step(&format!("  violation: {violation}"))?,
            ClientEvent::Failed(error) => return Err(error.into()),
            ClientEvent::Closed => return Err("the server has left".into()),
            _ => {}
        }
        Ok(())
    }

    /// Sends queued messages and waits for the next event.
    fn next_event(&mut self) -> Result<ClientEvent, AnyError> {
        loop {
            if let Some(event) = self.client.poll_event() {
                return Ok(event);
            }
            let out = pipe::queued_lines(|out| self.client.poll_transmit(out));
            if let Some(input) = &mut self.input {
                // A server that has gone away is noticed where its output ends.
                let _ = input.write_all(&out).and_then(|()| input.flush());
            }
            let now = self.now();
            match self.lines.next_line() {
                Some(Line::Frame(line)) => {
                    self.client.receive(StreamId::DUPLEX, line, now)?;
                    continue;
                }
                Some(Line::Oversized(message)) => {
                    self.client
                        .receive_oversized(StreamId::DUPLEX, &message, now)?;
                    continue;
                }
                None => {}
            }
            let deadline = self.client.poll_timeout();
            let wait = deadline.map_or(Duration::MAX, |at| at.saturating_since(now));
            match self.output.recv_timeout(wait) {
                Ok(bytes) => self.lines.push(&bytes),
                Err(mpsc::RecvTimeoutError::Timeout) => self.client.handle_timeout(self.now()),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    let now = self.now();
                    self.client
                        .handle_close(StreamId::DUPLEX, StreamEnd::Lost, now);
                }
            }
        }
    }

    /// Returns the time since the start.
    fn now(&self) -> Time {
        Time::since_start(self.started_at.elapsed())
    }

    /// Closes the server's input, and waits up to five seconds for its exit (`basic/lifecycle`, "Shutdown").
    pub fn stop(mut self) -> Result<(), AnyError> {
        self.client.shutdown(self.now());
        self.input = None;
        for _ in 0..250 {
            if self.child.try_wait()?.is_some() {
                return print_step("shutdown: the server has left");
            }
            thread::sleep(Duration::from_millis(20));
        }
        self.child.kill()?;
        self.child.wait()?;
        Err("shutdown: the server did not leave at the end of its input".into())
    }
}

/// Starts a process and a thread that reads its standard output.
fn spawn(command: &[String]) -> Result<(Child, mpsc::Receiver<Vec<u8>>), AnyError> {
    let (program, arguments) = command.split_first().ok_or("stdio_client COMMAND…")?;
    let mut command = Command::new(program);
    command.args(arguments);
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let output = child.stdout.take().ok_or("the server has no output")?;
    Ok((child, pipe::spawn_reader(output)))
}
