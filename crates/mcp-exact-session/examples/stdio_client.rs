//! A client without a runtime: starts the server that its arguments name, uses everything that the server offers, and prints
//! a line a step; the last line is the revision that was negotiated. Fails when a step fails.
//!
//! `stdio_client [--offer REVISION,…] COMMAND…`

use std::io::{Read, Write};
use std::process::{Child, ChildStdin, Command, ExitCode, Stdio};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{env, error, io, thread};

use mcp_exact_session::frame::{Line, Lines, end_line};
use mcp_exact_session::{
    Asked, Binding, CallOptions, Client, ClientConfig, ClientEvent, Closed, Identity, Json,
    JsonObject, Level, Offer, Outcome, PeerError, RawResult, StreamId, Time, Transmit,
};
use serde_json::{Map, Value, json};

type Failed = Box<dyn error::Error>;

fn main() -> ExitCode {
    match run() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stderr(), "failed: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run() -> Result<(), Failed> {
    let mut command: Vec<String> = env::args().skip(1).collect();
    let mut config = ClientConfig::new(Identity::new("stdio_client", env!("CARGO_PKG_VERSION")));
    if command.first().is_some_and(|first| first == "--offer") {
        let offer = command.get(1).ok_or("--offer REVISION,…")?;
        config.offer = Offer::of(offer.split(','))?;
        command.drain(..2);
    }
    config.capabilities = r#"{"roots":{},"sampling":{},"elicitation":{}}"#.parse()?;
    config.probe = Duration::from_secs(2);
    let mut peer = Peer::start(command, config)?;
    let (revision, capabilities) = peer.agreed()?;
    let able = |name: &str| capabilities.get(name).is_some();
    if !revision.starts_with("2026") {
        peer.step("ping", None, CallOptions::default())?;
    }
    if able("tools") {
        for tool in peer.list("tools/list", "tools")? {
            peer.use_tool(&tool)?;
        }
    }
    if able("resources") {
        for resource in peer.list("resources/list", "resources")? {
            let params = json!({ "uri": resource["uri"] });
            peer.step("resources/read", Some(params), CallOptions::default())?;
        }
    }
    if able("prompts") {
        for prompt in peer.list("prompts/list", "prompts")? {
            let arguments = prompt["arguments"].as_array().into_iter().flatten();
            let names = arguments.filter_map(|argument| argument["name"].as_str());
            let arguments: Map<_, _> = names.map(|name| (name.into(), "hello".into())).collect();
            let params = json!({ "name": prompt["name"], "arguments": arguments });
            peer.step("prompts/get", Some(params), CallOptions::default())?;
        }
    }
    peer.stop()?;
    say(&format!("negotiated {revision}"))
}

/// A server that is running, and the machine that talks to it.
struct Peer {
    client: Client,
    command: Vec<String>,
    child: Child,
    input: Option<ChildStdin>,
    output: mpsc::Receiver<Vec<u8>>,
    lines: Lines,
    start: Instant,
}

impl Peer {
    fn start(command: Vec<String>, config: ClientConfig) -> Result<Self, Failed> {
        let (mut child, output) = spawn(&command)?;
        let client = Client::new(Arc::new(config), Binding::Duplex, None, Time::ZERO)?;
        Ok(Self {
            client,
            command,
            input: child.stdin.take(),
            child,
            output,
            lines: Lines::new(4 << 20),
            start: Instant::now(),
        })
    }

    fn now(&self) -> Time {
        Time::since_start(self.start.elapsed())
    }

    fn agreed(&mut self) -> Result<(String, JsonObject), Failed> {
        loop {
            match self.event()? {
                ClientEvent::Agreed(agreed, _) => {
                    let info = agreed.info.map(|info| info.to_string()).unwrap_or_default();
                    say(&format!("agreed on {} with {info}", agreed.revision))?;
                    return Ok((agreed.revision.to_string(), agreed.capabilities));
                }
                ClientEvent::Restart => {
                    say("the server has left after a probe; starting it again")?;
                    (self.child, self.output) = spawn(&self.command)?;
                    self.input = self.child.stdin.take();
                    self.client.restarted(self.now());
                }
                event => self.other(event)?,
            }
        }
    }

    /// The next event: sends what is to be sent and waits for what comes.
    fn event(&mut self) -> Result<ClientEvent, Failed> {
        loop {
            if let Some(event) = self.client.poll_event() {
                return Ok(event);
            }
            self.send()?;
            let now = self.now();
            if let Some(Line::Frame(line)) = self.lines.next_line() {
                self.client.receive(StreamId::DUPLEX, line, now)?;
                continue;
            }
            let wait = self.client.poll_timeout().map(|at| at.after(now));
            match self
                .output
                .recv_timeout(wait.unwrap_or(Duration::from_secs(60)))
            {
                Ok(bytes) => self.lines.push(&bytes),
                Err(mpsc::RecvTimeoutError::Timeout) => self.client.handle_timeout(self.now()),
                Err(mpsc::RecvTimeoutError::Disconnected) => {
                    self.client
                        .closed(StreamId::DUPLEX, Closed::Lost, self.now());
                }
            }
        }
    }

    fn send(&mut self) -> Result<(), Failed> {
        let mut out = Vec::new();
        while let Some(transmit) = self.client.poll_transmit(&mut out) {
            if matches!(transmit, Transmit::Frame { .. }) {
                end_line(&mut out);
            }
        }
        if let Some(input) = &mut self.input {
            // A server that has left is noticed where its output ends.
            let _ = input.write_all(&out).and_then(|()| input.flush());
        }
        Ok(())
    }

    /// Deals with what belongs to no step.
    fn other(&mut self, event: ClientEvent) -> Result<(), Failed> {
        match event {
            ClientEvent::Ask { key, ask, .. } => {
                say(&format!("  asked {}", ask.method()))?;
                self.client.answer(key, answer(&ask), self.now())?;
            }
            ClientEvent::Log(_, logged) => {
                say(&format!("  log {}: {}", logged.level, logged.data))?
            }
            ClientEvent::Violation(violation) => say(&format!("  violation: {violation}"))?,
            ClientEvent::Failed(error) => return Err(error.into()),
            ClientEvent::Closed => return Err("the server has left".into()),
            _ => {}
        }
        Ok(())
    }

    /// A request until it ends; with `cancel`, it is cancelled at its first progress.
    fn call(
        &mut self,
        method: &str,
        params: Option<Value>,
        options: CallOptions,
        cancel: bool,
    ) -> Result<Outcome, Failed> {
        let params = params.and_then(|params| Json::from(params).try_into().ok());
        let request = self.client.request(method, params, options, self.now())?;
        loop {
            match self.event()? {
                ClientEvent::Done(key, outcome) if key == request => return Ok(outcome),
                ClientEvent::Progress(key, progress) if key == request => {
                    say(&format!("  progress {}", progress.done))?;
                    if cancel {
                        self.client.cancel(request, "no longer wanted", self.now());
                    }
                }
                event => self.other(event)?,
            }
        }
    }

    fn step(
        &mut self,
        method: &str,
        params: Option<Value>,
        options: CallOptions,
    ) -> Result<Value, Failed> {
        match self.call(method, params.clone(), options, false)? {
            Outcome::Result(result) => {
                let shown = params.map(|params| params.to_string()).unwrap_or_default();
                say(&format!("{method} {shown} -> {}", result.object()))?;
                Ok(result.object().parse()?)
            }
            other => Err(format!("{method}: {other:?}").into()),
        }
    }

    /// All pages of a list.
    fn list(&mut self, method: &str, member: &str) -> Result<Vec<Value>, Failed> {
        let (mut items, mut params) = (Vec::new(), None);
        loop {
            let mut page = self.step(method, params, CallOptions::default())?;
            if let Value::Array(more) = page[member].take() {
                items.extend(more);
            }
            match page["nextCursor"].take() {
                Value::Null => return Ok(items),
                cursor => params = Some(json!({ "cursor": cursor })),
            }
        }
    }

    fn use_tool(&mut self, tool: &Value) -> Result<(), Failed> {
        let arguments = sample(&tool["inputSchema"]);
        let params = json!({ "name": tool["name"], "arguments": arguments });
        let options = CallOptions {
            progress: true,
            log_level: Some(Level::Debug),
            ..CallOptions::default()
        };
        self.step("tools/call", Some(params.clone()), options)?;
        if tool["name"] == "slow" {
            match self.call("tools/call", Some(params), options, true)? {
                Outcome::Cancelled => say("tools/call slow -> cancelled")?,
                other => return Err(format!("not cancelled: {other:?}").into()),
            }
        }
        Ok(())
    }

    /// Closes the server's input and waits for it to leave (`basic/lifecycle`, "Shutdown").
    fn stop(&mut self) -> Result<(), Failed> {
        let now = self.now();
        self.client.shutdown(now);
        self.input = None;
        for _ in 0..100 {
            if self.child.try_wait()?.is_some() {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(50));
        }
        self.child.kill()?;
        Ok(())
    }
}

/// A value for every property of a schema.
fn sample(schema: &Value) -> Value {
    let properties = schema["properties"].as_object().into_iter().flatten();
    let value = |schema: &Value| match schema["type"].as_str() {
        Some("integer" | "number") => json!(1),
        Some("boolean") => json!(true),
        Some("array") => json!([]),
        Some("object") => json!({}),
        _ => json!("hello"),
    };
    properties
        .map(|(name, schema)| (name.clone(), value(schema)))
        .collect::<Map<_, _>>()
        .into()
}

fn answer(ask: &Asked) -> Result<RawResult, PeerError> {
    let params: Value = match ask.params() {
        Some(params) => params
            .parse()
            .map_err(|e| PeerError::invalid_params(e.to_string()))?,
        None => Value::Null,
    };
    let answer = match ask.method() {
        "roots/list" => json!({ "roots": [{ "uri": "file:///tmp", "name": "tmp" }] }),
        "sampling/createMessage" => json!({ "role": "assistant", "model": "example",
            "content": { "type": "text", "text": "I am an example" } }),
        "elicitation/create" => {
            json!({ "action": "accept", "content": sample(&params["requestedSchema"]) })
        }
        other => return Err(PeerError::method_not_found(other)),
    };
    RawResult::of(&Json::from(answer)).map_err(|error| PeerError::internal(error.to_string()))
}

fn spawn(command: &[String]) -> Result<(Child, mpsc::Receiver<Vec<u8>>), Failed> {
    let (program, arguments) = command.split_first().ok_or("stdio_client COMMAND…")?;
    let mut command = Command::new(program);
    command
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped());
    let mut child = command.spawn()?;
    let mut from = child.stdout.take().ok_or("no output")?;
    let (to, bytes) = mpsc::sync_channel(16);
    thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    Ok((child, bytes))
}

fn say(line: &str) -> Result<(), Failed> {
    let mut stdout = io::stdout().lock();
    writeln!(stdout, "{line}")?;
    Ok(())
}
