//! A server on standard input and output, without a runtime: an echo, something slow, something that asks the client, a
//! resource and a prompt. Speaks every revision, or those that its arguments name, the most preferred one first.

use std::io::{Read, Write};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{env, error, io, thread};

use mcp_exact_session::frame::{Line, Lines, end_line};
use mcp_exact_session::{
    Ask, Binding, Closed, Identity, Inbound, Incoming, Json, Level, Offer, Outcome, PeerError,
    Progress, RawResult, Reply, RequestKey, Scope, Server, ServerConfig, ServerEvent, StreamId,
    Time, Transmit,
};
use serde_json::{Value, json};

const STEPS: u32 = 5;

/// A call of the slow tool: how far it has come, and when it goes on.
struct Slow {
    key: RequestKey,
    step: u32,
    next: Instant,
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let start = Instant::now();
    let now = || Time::since_start(start.elapsed());
    let input = read(io::stdin());
    let mut server = Server::new(Arc::new(config()?), Binding::Duplex, now())?;
    let mut lines = Lines::new(4 << 20);
    let mut slow: Vec<Slow> = Vec::new();
    loop {
        while let Some(event) = server.poll_event() {
            match event {
                ServerEvent::Request(request) => serve(&mut server, &request, &mut slow, now()),
                ServerEvent::Cancelled { key, .. } => slow.retain(|slow| slow.key != key),
                ServerEvent::Violation(violation) => complain(&violation),
                ServerEvent::Closed => return Ok(()),
                _ => {}
            }
        }
        slow.retain_mut(|slow| go_on(&mut server, slow, now()));
        write(&mut server)?;
        match lines.next_line() {
            Some(Line::Frame(line)) => {
                server.receive(StreamId::DUPLEX, line, Inbound::new(()), now())?;
                continue;
            }
            Some(Line::TooLong) => complain(&"a line is too long"),
            None => {}
        }
        let deadline = server.poll_timeout().map(|at| at.after(now()));
        let step = slow
            .iter()
            .map(|slow| slow.next.saturating_duration_since(Instant::now()));
        let wait = step.chain(deadline).min().unwrap_or(Duration::MAX);
        match input.recv_timeout(wait) {
            Ok(bytes) => lines.push(&bytes),
            Err(mpsc::RecvTimeoutError::Timeout) => server.handle_timeout(now()),
            // A server exits at the end of its input.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                server.closed(StreamId::DUPLEX, Closed::Clean, now());
            }
        }
    }
}

fn config() -> Result<ServerConfig, Box<dyn error::Error>> {
    let mut config = ServerConfig::new(Identity::new("stdio_server", env!("CARGO_PKG_VERSION")));
    let revisions: Vec<String> = env::args().skip(1).collect();
    if !revisions.is_empty() {
        config.offer = Offer::of(revisions.iter().map(String::as_str))?;
    }
    config.capabilities = r#"{"tools":{},"resources":{},"prompts":{},"logging":{}}"#.parse()?;
    config.instructions = Some("Call `echo`, `slow` or `ask`.".into());
    Ok(config)
}

fn serve(server: &mut Server<()>, request: &Incoming<()>, slow: &mut Vec<Slow>, now: Time) {
    let reply = match answer(request, slow) {
        Ok(Some(reply)) => reply,
        Ok(None) => return,
        Err(error) => Reply::Error(error),
    };
    if let Err(error) = server.reply(request.key, reply, now) {
        let error = PeerError::internal(error.to_string());
        let _ = server.reply(request.key, error, now);
    }
}

/// The reply to a request; `None` when it comes later.
fn answer(request: &Incoming<()>, slow: &mut Vec<Slow>) -> Result<Option<Reply>, PeerError> {
    // The parameters have to fit the revision that the client speaks.
    request.typed()?;
    let params: Value = match request.params() {
        Some(params) => params
            .parse()
            .map_err(|e| PeerError::internal(e.to_string()))?,
        None => Value::Null,
    };
    let schema = |properties: Value| json!({ "type": "object", "properties": properties });
    let result = match request.method() {
        "tools/list" => json!({ "tools": [
            { "name": "echo", "description": "Says it again",
              "inputSchema": schema(json!({ "text": { "type": "string" } })) },
            { "name": "slow", "description": "Takes its time and says how far it is",
              "inputSchema": schema(json!({})) },
            { "name": "ask", "description": "Asks the client something",
              "inputSchema": schema(json!({})) },
        ] }),
        "tools/call" => match params["name"].as_str() {
            Some("echo") => text(params["arguments"]["text"].as_str().unwrap_or("")),
            Some("slow") => {
                let (key, next) = (request.key, Instant::now());
                slow.push(Slow { key, step: 0, next });
                return Ok(None);
            }
            Some("ask") => return Ok(Some(ask(request))),
            _ => return Err(PeerError::invalid_params("unknown tool")),
        },
        "resources/list" => json!({ "resources": [
            { "name": "greeting", "uri": "example:greeting", "mimeType": "text/plain" },
        ] }),
        "resources/templates/list" => json!({ "resourceTemplates": [] }),
        "resources/read" if params["uri"] == "example:greeting" => json!({ "contents": [
            { "uri": "example:greeting", "mimeType": "text/plain", "text": "Hello" },
        ] }),
        "resources/read" => return Err(PeerError::new(-32002, "Resource not found")),
        "prompts/list" => json!({ "prompts": [
            { "name": "greet", "arguments": [{ "name": "whom", "required": true }] },
        ] }),
        "prompts/get" if params["name"] == "greet" => {
            let whom = params["arguments"]["whom"].as_str().unwrap_or("you");
            let content = json!({ "type": "text", "text": format!("Say hello to {whom}") });
            json!({ "messages": [{ "role": "user", "content": content }] })
        }
        "prompts/get" => return Err(PeerError::invalid_params("unknown prompt")),
        other => return Err(PeerError::method_not_found(other)),
    };
    Ok(Some(result_of(result)))
}

fn text(text: &str) -> Value {
    json!({ "content": [{ "type": "text", "text": text }] })
}

fn result_of(result: Value) -> Reply {
    RawResult::of(&Json::from(result)).map_or_else(
        |error| Reply::Error(PeerError::internal(error.to_string())),
        Reply::Result,
    )
}

/// Asks what the client can be asked; what it answers comes with the same request in its next round.
fn ask(request: &Incoming<()>) -> Reply {
    match request.answers.get("question") {
        Some(Outcome::Result(answer)) => {
            return result_of(text(&format!("The client says {}", answer.object())));
        }
        Some(other) => return result_of(text(&format!("No answer: {other:?}"))),
        None => {}
    }
    let able = |name: &str| request.client().capabilities.get(name).is_some();
    let (method, params) = if able("elicitation") {
        let schema = json!({ "type": "object", "properties": { "name": { "type": "string" } },
                             "required": ["name"] });
        let params = json!({ "message": "What is your name?", "requestedSchema": schema });
        ("elicitation/create", Some(params))
    } else if able("sampling") {
        let content = json!({ "type": "text", "text": "What is your name?" });
        let messages = json!([{ "role": "user", "content": content }]);
        (
            "sampling/createMessage",
            Some(json!({ "messages": messages, "maxTokens": 100 })),
        )
    } else if able("roots") {
        ("roots/list", None)
    } else {
        return result_of(text("This client cannot be asked anything"));
    };
    let params = params.and_then(|params| Json::from(params).try_into().ok());
    Reply::Ask {
        asks: vec![("question".into(), Ask::new(method, params))],
        state: None,
    }
}

/// One step of a slow call; `false` once it is over.
fn go_on(server: &mut Server<()>, slow: &mut Slow, now: Time) -> bool {
    if slow.next > Instant::now() {
        return true;
    }
    slow.step += 1;
    slow.next += Duration::from_millis(40);
    let progress = Progress::new(f64::from(slow.step)).of(f64::from(STEPS));
    let said = server.progress(slow.key, &progress.with_message("Working"));
    let step = Json::string(&format!("step {}", slow.step));
    let logged = server.log(Scope::During(slow.key), Level::Info, Some("slow"), step);
    if let Some(error) = said.err().or(logged.err()) {
        complain(&error);
        return false;
    }
    if slow.step < STEPS {
        return true;
    }
    if let Err(error) = server.reply(slow.key, result_of(text("Done")), now) {
        complain(&error);
    }
    false
}

/// Standard output carries nothing but messages.
fn complain(about: &dyn std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{about}");
}

fn write(server: &mut Server<()>) -> io::Result<()> {
    let mut out = Vec::new();
    while let Some(transmit) = server.poll_transmit(&mut out) {
        if matches!(transmit, Transmit::Frame { .. }) {
            end_line(&mut out);
        }
    }
    let mut stdout = io::stdout().lock();
    stdout.write_all(&out)?;
    stdout.flush()
}

/// Reads in a thread of its own; the channel ends with the input.
fn read(mut from: impl Read + Send + 'static) -> mpsc::Receiver<Vec<u8>> {
    let (to, bytes) = mpsc::sync_channel(16);
    thread::spawn(move || {
        let mut buffer = vec![0; 16 << 10];
        while let Ok(count @ 1..) = from.read(&mut buffer) {
            if to.send(buffer[..count].to_vec()).is_err() {
                break;
            }
        }
    });
    bytes
}
