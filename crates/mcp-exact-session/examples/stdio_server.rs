//! Server over stdio without an async runtime: an echo tool, a slow tool, a tool that sends requests to the client, a
//! resource and a prompt. Supports every revision, or the revisions that the arguments list by descending preference.

#[path = "stdio/pipe.rs"]
mod pipe;
#[path = "stdio/tools.rs"]
mod tools;

use std::io::Write;
use std::sync::mpsc;
use std::time::{Duration, Instant};
use std::{env, error, io};

use mcp_exact_session::frame::{Line, Lines};
use mcp_exact_session::{
    Binding, FrameContext, Identity, IncomingRequest, Offer, PeerError, Reply, ServerConfig,
    ServerEndpoint, ServerEvent, StreamEnd, StreamId, Time,
};

use tools::{SlowCall, reply_to_request, run_slow_step};

fn main() -> Result<(), Box<dyn error::Error>> {
    let start = Instant::now();
    let now = || Time::since_start(start.elapsed());
    let input = pipe::spawn_reader(io::stdin());
    let config = server_config()?;
    let mut lines = Lines::new(config.limits.message_bytes);
    let mut server = ServerEndpoint::new(config.build()?, Binding::Duplex, now());
    let mut slow: Vec<SlowCall> = Vec::new();
    let mut closed = false;
    loop {
        while let Some(event) = server.poll_event() {
            match event {
                ServerEvent::Request(request) => serve(&mut server, &request, &mut slow, now()),
                ServerEvent::Cancelled { key, .. } => slow.retain(|slow| slow.key != key),
                ServerEvent::Violation(violation) => print_error(&violation),
                ServerEvent::Closed => closed = true,
                _ => {}
            }
        }
        slow.retain_mut(|slow| run_slow_step(&mut server, slow, now()));
        let mut stdout = io::stdout().lock();
        stdout.write_all(&pipe::queued_lines(|out| server.poll_transmit(out)))?;
        stdout.flush()?;
        if closed {
            return Ok(());
        }
        match lines.next_line() {
            Some(Line::Frame(line)) => {
                server.receive(StreamId::DUPLEX, line, FrameContext::new(()), now())?;
                continue;
            }
            Some(Line::Oversized(message)) => {
                let context = FrameContext::new(());
                server.receive_oversized(StreamId::DUPLEX, &message, context, now())?;
                continue;
            }
            None => {}
        }
        let deadline = server.poll_timeout().map(|at| at.saturating_since(now()));
        let step = slow
            .iter()
            .map(|slow| slow.next_step_at.saturating_duration_since(Instant::now()));
        let wait = step.chain(deadline).min().unwrap_or(Duration::MAX);
        match input.recv_timeout(wait) {
            Ok(bytes) => lines.push(&bytes),
            Err(mpsc::RecvTimeoutError::Timeout) => server.handle_timeout(now()),
            // A server exits at the end of its input, once it has answered what is in flight.
            Err(mpsc::RecvTimeoutError::Disconnected) => {
                server.handle_close(StreamId::DUPLEX, StreamEnd::Clean, now());
                if !slow.is_empty() {
                    std::thread::sleep(wait);
                }
            }
        }
    }
}

/// Returns the configuration with the revisions that the arguments name.
fn server_config() -> Result<ServerConfig, Box<dyn error::Error>> {
    let mut config = ServerConfig::new(Identity::new("stdio_server", env!("CARGO_PKG_VERSION")));
    let revisions: Vec<String> = env::args().skip(1).collect();
    if !revisions.is_empty() {
        config.offer = Offer::new(revisions.iter().map(String::as_str))?;
    }
    config.capabilities = r#"{"tools":{},"resources":{},"prompts":{},"logging":{}}"#.parse()?;
    config.instructions = Some("Call `echo`, `slow` or `ask`.".into());
    Ok(config)
}

/// Replies to a request, or adds a call of the slow tool to `slow`.
fn serve(
    server: &mut ServerEndpoint<()>,
    request: &IncomingRequest<()>,
    slow: &mut Vec<SlowCall>,
    now: Time,
) {
    let reply = match reply_to_request(request, slow) {
        Ok(Some(reply)) => reply,
        Ok(None) => return,
        Err(error) => Reply::Error(error),
    };
    if let Err(error) = server.reply(request.key, reply, now) {
        let error = PeerError::internal(error.to_string());
        let _ = server.reply(request.key, error, now);
    }
}

/// Prints an error to standard error, because standard output contains only messages.
fn print_error(about: &dyn std::fmt::Display) {
    let _ = writeln!(io::stderr(), "{about}");
}
