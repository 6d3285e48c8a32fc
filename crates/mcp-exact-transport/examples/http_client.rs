//! Client over HTTP: uses all features of a server and prints one line per step; the last line is the negotiated
//! revision.
//!
//! `cargo run -p mcp-exact-transport --example http_client -- [--sse] [--offer REVISION,…] [--restart] URL`. The exit
//! code is not 0 if a step fails. With `--sse`, only HTTP+SSE of 2024-11-05 is used. With `--restart`, the client
//! prints `restart: waiting` during a call, and then expects the restart of the server and a new session.

#[path = "everything/uses.rs"]
mod uses;

use std::io::Write;
use std::process::ExitCode;
use std::time::Duration;

use mcp_exact_session::{
    ClientConfig, Identity, Lifecycle, Offer, Outcome, SessionInfo, lifecycle,
};
use mcp_exact_transport::http::client::{HttpEndpoint, HttpTransport};
use serde_json::{Value, json};

use uses::{AnyError, Session};

#[tokio::main]
async fn main() -> ExitCode {
    match run().await {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(std::io::stderr(), "failed: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Parses the arguments, connects to the server and uses it.
async fn run() -> Result<(), AnyError> {
    let mut config = ClientConfig::new(Identity::new("http_client", env!("CARGO_PKG_VERSION")));
    config.capabilities = r#"{"roots":{},"sampling":{},"elicitation":{}}"#.parse()?;
    let (mut url, mut transport, mut restart) = (None, HttpTransport::Automatic, false);
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--sse" => transport = HttpTransport::Sse,
            "--restart" => restart = true,
            "--offer" => {
                let offer = arguments.next().ok_or("--offer REVISION,…")?;
                config.offer = Offer::new(offer.split(','))?;
            }
            _ => url = Some(argument),
        }
    }
    let url = url.ok_or("http_client [--sse] [--offer REVISION,…] [--restart] URL")?;
    let endpoint = HttpEndpoint::new(&url)?
        .transport(transport)
        .retry(Duration::from_millis(200));
    let (session, driver) = Session::connect(endpoint, config.build()?);
    let (info, _) = session.client.ready().await?;
    say(&format!("connect: {info}"))?;
    if restart {
        survive_restart(&session).await?
    } else {
        use_everything(&session, &info).await?
    }
    session.client.close();
    driver.await?;
    say("shutdown: the session has ended")?;
    say(&format!("negotiated {}", info.revision))
}

/// Uses every feature that the server declares.
async fn use_everything(session: &Session, info: &SessionInfo) -> Result<(), AnyError> {
    if lifecycle(info.revision.as_str()) == Some(Lifecycle::Initialize) {
        session.request("ping", Value::Null).await?;
        say("ping: answered")?;
    }
    let offers = |name: &str| info.capabilities.get(name).is_some();
    if offers("tools") {
        for tool in session.list("tools/list", "tools").await? {
            uses::use_tool(session, &tool).await?;
        }
    }
    if offers("resources") {
        uses::use_resources(session).await?;
    }
    if offers("prompts") {
        uses::use_prompts(session, offers("completions")).await?;
    }
    Ok(())
}

/// Calls the slow tool and waits for the restart of the server.
///
/// The call ends without a result and is not repeated. The client then starts a new session automatically.
async fn survive_restart(session: &Session) -> Result<(), AnyError> {
    session.list("tools/list", "tools").await?;
    let slow = json!({ "name": "slow", "arguments": {} });
    let call = session.call_with("tools/call", slow, || {
        let _ = say("restart: waiting");
    });
    let ended = call.await?;
    match ended.outcome {
        Outcome::Result(_) => {
            return Err("restart: the call has a result although its server has ended".into());
        }
        other => say(&format!("call: {other:?}"))?,
    }
    session.client.ready().await?;
    session.list("tools/list", "tools").await?;
    let echo = json!({ "name": "echo", "arguments": { "text": "hello" } });
    let result = session.request("tools/call", echo).await?;
    match result["content"][0]["text"].as_str() {
        Some("hello") => say("restart: another session goes on"),
        _ => Err(format!("restart: another answer came: {result}").into()),
    }
}

/// Prints a line to standard output.
pub(crate) fn say(line: &str) -> Result<(), AnyError> {
    let mut stdout = std::io::stdout();
    writeln!(stdout, "{line}")?;
    Ok(stdout.flush()?)
}
