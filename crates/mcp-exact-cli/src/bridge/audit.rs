//! Audit log of `mcp-exact bridge`: one line of JSON per completed request.

use std::fs::OpenOptions;
use std::io::{self, Write};
use std::path::Path;
use std::sync::mpsc;
use std::thread;
use std::time::SystemTime;

use anyhow::Context;
use mcp_exact_bridge::{CallObserver, CallOutcome, CallReport};
use serde::Deserialize;
use serde_json::{Map, Value};
use sha2::{Digest, Sha256};

/// What the log says of the arguments of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Arguments {
    /// Their SHA-256, as they were spelled: who knows the arguments can prove that they are the ones of the call.
    #[default]
    Sha256,
    /// The arguments themselves.
    Full,
    /// Nothing.
    None,
}

/// Opens the log; `-` is standard error. A thread writes the log, so that requests do not wait.
pub fn open(path: &Path, arguments: Arguments) -> anyhow::Result<CallObserver> {
    let mut out: Box<dyn Write + Send> = if path == Path::new("-") {
        Box::new(io::stderr())
    } else {
        let file = OpenOptions::new().append(true).create(true).open(path);
        Box::new(file.with_context(|| format!("cannot open the audit log {}", path.display()))?)
    };
    let (sender, lines) = mpsc::channel::<String>();
    let name = path.display().to_string();
    let write = move || {
        for line in lines {
            if let Err(error) = out.write_all(line.as_bytes()).and_then(|()| out.flush()) {
                let _ = writeln!(
                    io::stderr(),
                    "the audit log {name} cannot be written: {error}"
                );
            }
        }
    };
    thread::Builder::new()
        .name("audit".to_owned())
        .spawn(write)?;
    Ok(CallObserver::new(move |report| {
        let _ = sender.send(line(report, arguments, SystemTime::now()));
    }))
}

fn line(report: &CallReport<'_>, arguments: Arguments, now: SystemTime) -> String {
    let call = report.call;
    let text = |text: &str| Value::String(text.to_owned());
    let mut line = Map::new();
    let mut add = |name: &str, value| drop(line.insert(name.to_owned(), value));
    add(
        "time",
        text(&humantime::format_rfc3339_millis(now).to_string()),
    );
    add(
        "principal",
        call.principal.as_deref().map_or(Value::Null, text),
    );
    if let Some(client) = &call.client {
        let name = client.view().find("name").and_then(|name| name.as_str());
        add("client", name.map_or(Value::Null, |name| text(&name)));
    }
    add("revision", text(call.revision.as_str()));
    add("server", text(&call.server));
    add("method", text(&call.method));
    if let Some(subject) = call.subject() {
        add("subject", text(&subject));
    }
    if let Some(spelled) = call.arguments() {
        match arguments {
            Arguments::Sha256 => {
                let digest = Sha256::digest(spelled.as_bytes());
                let digest: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
                add("arguments_sha256", text(&digest));
            }
            Arguments::Full => {
                let value = serde_json::from_str(&spelled).unwrap_or_else(|_| text(&spelled));
                add("arguments", value);
            }
            Arguments::None => {}
        }
    }
    add("outcome", text(report.outcome.name()));
    if let CallOutcome::Error(code) = report.outcome {
        add("code", Value::from(code));
    }
    let milliseconds = u64::try_from(report.duration.as_millis()).unwrap_or(u64::MAX);
    add("milliseconds", Value::from(milliseconds));
    format!("{}\n", Value::Object(line))
}
