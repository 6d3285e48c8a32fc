//! A server on standard input and output, without a runtime: an echo, something slow, something that asks the client, a
//! resource and a prompt. Speaks every revision, or those that its arguments name, the most preferred one first.

#[path = "stdio/pipe.rs"]
mod pipe;

use std::io::Write;
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};
use std::{env, error, io};

use mcp_exact_session::frame::{Line, Lines};
use mcp_exact_session::{
    Ask, Binding, Closed, Identity, Inbound, Incoming, Json, Level, Offer, Outcome, PeerError,
    Progress, RawResult, Reply, RequestKey, Scope, Server, ServerConfig, ServerEvent, StreamId,
    Time,
};
use serde_json::{Value, json};

const STEPS: u32 = 20;
const STEP: Duration = Duration::from_millis(50);

/// A call of the slow tool: how far it has come, and when it goes on.
struct Slow {
    key: RequestKey,
    step: u32,
    next: Instant,
}

fn main() -> Result<(), Box<dyn error::Error>> {
    let start = Instant::now();
    let now = || Time::since_start(start.elapsed());
    let input = pipe::read(io::stdin());
    let config = config()?;
    let mut lines = Lines::new(config.limits.message_bytes);
    let mut server = Server::new(Arc::new(config), Binding::Duplex, now())?;
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
        let mut stdout = io::stdout().lock();
        stdout.write_all(&pipe::lines(|out| server.poll_transmit(out)))?;
        stdout.flush()?;
        match lines.next_line() {
            Some(Line::Frame(line)) => {
                server.receive(StreamId::DUPLEX, line, Inbound::new(()), now())?;
                continue;
            }
            Some(Line::TooLong) => {
                complain(&"a line is too long");
                continue;
            }
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
                let (key, next) = (request.key, Instant::now() + STEP);
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

/// Asks everything that the client can be asked, all at once. The same request comes again with the answers.
fn ask(request: &Incoming<()>) -> Reply {
    if !request.answers.is_empty() {
        let told: Vec<String> = request.answers.iter().map(told).collect();
        return result_of(text(&told.join("\n")));
    }
    let message = json!({ "role": "user", "content": { "type": "text", "text": "Say something" } });
    let form = json!({ "type": "object", "properties": { "name": { "type": "string" } } });
    let questions = [
        ("roots", "roots/list", json!(null)),
        (
            "sampling",
            "sampling/createMessage",
            json!({ "messages": [message], "maxTokens": 100 }),
        ),
        (
            "elicitation",
            "elicitation/create",
            json!({ "message": "What is your name?", "requestedSchema": form }),
        ),
    ];
    let asks: Vec<_> = questions
        .into_iter()
        .filter(|(capability, ..)| can(request, capability))
        .map(|(capability, method, params)| {
            let params = Json::from(params).try_into().ok();
            (capability.to_owned(), Ask::new(method, params))
        })
        .collect();
    match asks.is_empty() {
        true => result_of(text("This client cannot be asked anything")),
        false => Reply::Ask { asks, state: None },
    }
}

/// Whether the client has declared that it can be asked this. One that elicits by URL may not have forms.
fn can(request: &Incoming<()>, capability: &str) -> bool {
    let declared = request.client().capabilities.get(capability);
    let modes: Option<Value> = declared.and_then(|declared| declared.text().parse().ok());
    modes.is_some_and(|modes| modes["url"].is_null() || !modes["form"].is_null())
}

/// What the client has answered to a question: the URI of its first root, what was sampled, what somebody has entered.
fn told((question, answer): (&str, &Outcome)) -> String {
    let Outcome::Result(result) = answer else {
        return format!("{question}: {answer:?}");
    };
    let result: Value = result.object().parse().unwrap_or_default();
    match question {
        "roots" => format!("root {}", result["roots"][0]["uri"]),
        // From 2025-11-25 on there may be several blocks.
        "sampling" => format!("sampled {}", result["content"]),
        _ => format!("{}: {}", result["action"], result["content"]),
    }
}

/// One step of a slow call; `false` once it is over.
fn go_on(server: &mut Server<()>, slow: &mut Slow, now: Time) -> bool {
    if slow.next > Instant::now() {
        return true;
    }
    slow.step += 1;
    slow.next += STEP;
    let progress = Progress::new(f64::from(slow.step)).of(f64::from(STEPS));
    if let Err(error) = server.progress(slow.key, &progress.with_message("Working")) {
        complain(&error);
    }
    if slow.step < STEPS {
        return true;
    }
    let steps = Json::string(&format!("{STEPS} steps"));
    if let Err(error) = server.log(Scope::During(slow.key), Level::Info, Some("slow"), steps) {
        complain(&error);
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
