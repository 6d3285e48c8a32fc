//! `mcp-exact replay`: sends the client's messages of a recording to a server, and compares the responses; with `--serve`, plays the
//! server of the recording.

mod differences;
mod serve;

use std::collections::HashMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, anyhow, bail};
use clap::Args;
use mcp_exact_wire::{Json, JsonObject, Kind};

use self::differences::add_differences;
use crate::Outcome;
use crate::check::{log_words, read_file};
use crate::conversation::{Conversation, Options};
use crate::interrupt;
use crate::message::Direction;
use crate::output::{Painter, Style, is_standard_stream};
use crate::process::{self, Process, ServerOutput, ServerStderr};
use crate::recording::Entry;
use crate::terminal::stdout;
use crate::text::{Untrusted, count, text};
use crate::time_limit;
use crate::value::Value;

/// The arguments of `mcp-exact replay`.
#[derive(Args)]
#[command(after_help = "\
Requests are sent in the order of the recording, each once the responses before it have come. Answers of the client to \
questions of the server get the ids that the server uses now. Notifications of the server are not compared.

With --serve, the program is the server of the recording, on standard streams: a request is answered as the recorded one of the same \
method and params (`_meta` and what --ignore names are not compared), with the notifications and questions that the server sent \
meanwhile; equal requests in the order of the recording. `mcp-exact bridge --listen 127.0.0.1:8931 -- mcp-exact replay --serve FILE` serves \
it over HTTP, to clients of every revision.

Exit code: 0 all responses are those of the recording, 1 one is another or breaks a rule, 2 wrong usage, a file that cannot \
be read, or a server that does not answer.")]
pub struct Arguments {
    /// The recording, as `mcp-exact proxy --record` writes it; `-` is standard input.
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Seconds to wait for a message.
    #[arg(long, value_name = "SECONDS", default_value_t = 30)]
    timeout: u64,
    /// Members of results that may differ, as JSON pointers into the response, such as /result/serverInfo/version; with --serve,
    /// members of params, such as /arguments/time.
    #[arg(long, value_name = "POINTER")]
    ignore: Vec<String>,
    /// Answer a client from the recording, instead of comparing a server with it.
    #[arg(long, conflicts_with_all = ["timeout", "command"])]
    serve: bool,
    /// Set a variable in the environment of the server's process.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The command of the server, with its arguments.
    #[arg(value_name = "COMMAND", required_unless_present = "serve", last = true)]
    command: Vec<OsString>,
}

/// Replays a recording: sends its client messages to the server, and compares the responses.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if arguments.serve {
        return run_server(arguments);
    }
    interrupt::end_processes_on_signals()?;
    let bytes = read_file(&arguments.file)
        .with_context(|| format!("cannot read {}", arguments.file.display()))?;
    let entries = read_entries(&arguments.file, &bytes)?;
    let options = Options {
        wants_unknown: false,
        is_ordered: true,
    };
    // The conversation determines the sender of a bare message.
    let mut senders = Conversation::new(None, options);
    let mut player = Player {
        server: Process::start(
            &process::command(&arguments.command, &arguments.env)?,
            ServerStderr::Inherited,
        )?,
        conversation: Conversation::new(None, options),
        limit: time_limit::from_seconds(arguments.timeout),
        ignored: &arguments.ignore,
        responses: HashMap::new(),
        requests: Vec::new(),
        current_ids: HashMap::new(),
        waiting_bytes: 0,
        compared: 0,
        differing_responses: 0,
        violating_messages: 0,
    };
    for entry in entries {
        let from = senders.observe(entry.from, &entry.text).from;
        player.replay_message(from, &entry.text)?;
    }
    let Player {
        compared,
        differing_responses,
        violating_messages,
        server,
        ..
    } = player;
    server.end(Duration::from_secs(5));
    stdout().line(&text!(
        "{} compared, {} different, {} with findings",
        count(compared, "response"),
        differing_responses,
        count(violating_messages, "message")
    ))?;
    Ok(match differing_responses + violating_messages {
        0 => Outcome::Valid,
        _ => Outcome::Invalid,
    })
}

/// Answers a client from the recording, until it closes standard input.
fn run_server(arguments: &Arguments) -> anyhow::Result<Outcome> {
    if is_standard_stream(&arguments.file) {
        bail!("standard input is the client's; name the file of the recording");
    }
    let bytes = read_file(&arguments.file)
        .with_context(|| format!("cannot read {}", arguments.file.display()))?;
    let entries = read_entries(&arguments.file, &bytes)?;
    let exchanges = serve::read_exchanges(&entries);
    let mut input = std::io::stdin().lock();
    let mut out = stdout().lock().document();
    serve::serve(exchanges, &arguments.ignore, &mut input, &mut out)?;
    Ok(Outcome::Valid)
}

/// Returns the lines of a recording.
///
/// # Errors
/// An error if there is no line, or if a line neither states a sender nor is a message.
fn read_entries(file: &Path, bytes: &[u8]) -> anyhow::Result<Vec<Entry>> {
    let lines = bytes.split(|byte| *byte == b'\n').map(<[u8]>::trim_ascii);
    let mut entries = Vec::new();
    for (at, line) in lines.enumerate().filter(|(_, line)| !line.is_empty()) {
        let entry = Entry::read(line);
        if entry.from.is_none() && !is_message(&entry.text) {
            bail!(
                "{}:{} is not a line of a recording; `mcp-exact proxy --record` writes one",
                file.display(),
                at + 1
            );
        }
        entries.push(entry);
    }
    if entries.is_empty() {
        bail!("{} has no messages", file.display());
    }
    Ok(entries)
}

/// Returns true if a text is a JSON-RPC message, or a batch of messages.
fn is_message(text: &str) -> bool {
    let is_single = |message: Value<'_>| {
        let mut members = ["method", "result", "error"].iter();
        members.any(|name| message.get(name).exists())
    };
    let Ok(json) = mcp_exact_wire::from_str::<Json>(text) else {
        return false;
    };
    let message = Value::of(&json);
    match message.kind() {
        Kind::Array => {
            let batch = message.items();
            !batch.is_empty() && batch.iter().map(Value::of).all(is_single)
        }
        _ => is_single(message),
    }
}

/// Maximum size of the messages that a server may send between two expected responses, in bytes.
const MAX_WAITING_BYTES: usize = 128 << 20;

/// State of a replay: sends the recorded messages of the client and compares the responses.
struct Player<'a> {
    /// Server to which the messages are sent.
    server: Process,
    /// Conversation that checks the messages.
    conversation: Conversation,
    /// Time limit for each expected message of the server.
    limit: Duration,
    /// JSON pointers of the members of responses whose differences are ignored.
    ignored: &'a [String],
    /// Received responses that were not compared yet, by id.
    responses: HashMap<String, Json>,
    /// Received requests of the server to which no recorded request was assigned yet: method and id.
    requests: Vec<(String, Json)>,
    /// Ids of the server's requests in this replay, by the ids in the recording.
    current_ids: HashMap<String, Json>,
    /// Size of the messages that were received and not compared, in bytes.
    waiting_bytes: usize,
    /// Number of compared responses.
    compared: usize,
    /// Number of responses that differ from the recording.
    differing_responses: usize,
    /// Number of messages of the server that violate a rule.
    violating_messages: usize,
}

impl Player<'_> {
    /// Sends a recorded message of the client, or waits for the message that corresponds to a recorded response or
    /// request of the server.
    fn replay_message(&mut self, from: Direction, text: &str) -> anyhow::Result<()> {
        // What is no JSON is no message: it is sent as it is, and nothing is compared with it.
        let json: Json = mcp_exact_wire::from_str(text).unwrap_or_else(|_| Json::null());
        let message = Value::of(&json);
        let (method, id) = (
            message.get("method").existing(),
            message.get("id").existing(),
        );
        match (from, method, id) {
            (Direction::Client, None, Some(id)) => {
                let now = self.current_ids.get(&id.key()).cloned();
                match (now, JsonObject::try_from(json.clone())) {
                    (Some(now), Ok(mut answer)) => {
                        answer.insert("id", now);
                        self.send(answer.text())
                    }
                    _ => self.send(text),
                }
            }
            (Direction::Client, ..) => self.send(text),
            (Direction::Server, None, Some(id)) if !id.is_null() => self.compare(message, id),
            (Direction::Server, Some(method), Some(id)) => {
                let method = method.as_str().unwrap_or_default();
                let now = self.receive_until(|player| {
                    let asked = player
                        .requests
                        .iter()
                        .position(|(asked, _)| *asked == method)?;
                    Some(player.requests.remove(asked).1)
                });
                let now = now.with_context(|| format!("the server did not send {method}"))?;
                self.current_ids.insert(id.key(), now);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Sends a message to the server.
    fn send(&mut self, text: &str) -> anyhow::Result<()> {
        self.conversation.observe(Some(Direction::Client), text);
        // An error of the pipe must not look like an error of standard output.
        let sent = self.server.send(text);
        sent.map_err(|error| anyhow!("the server has closed its input: {error}"))
    }

    /// Waits for the response to a request, and prints its differences from the recorded response.
    fn compare(&mut self, recorded: Value<'_>, id: Value<'_>) -> anyhow::Result<()> {
        let (key, id) = (id.key(), id.text());
        let now = self.receive_until(|player| player.responses.remove(&key));
        self.waiting_bytes = 0;
        let now = now.with_context(|| format!("the server did not answer the request {id}"))?;
        self.compared += 1;
        let mut found = Vec::new();
        add_differences("", recorded, Value::of(&now), self.ignored, &mut found);
        if !found.is_empty() {
            self.differing_responses += 1;
            let painter = Painter::stdout();
            let mut out = stdout();
            out.line(&text!("response {}", Untrusted(id)))?;
            for (pointer, before, after) in found {
                let before = painter.paint(Style::Red, text!("- {}", Untrusted(&before)));
                let after = painter.paint(Style::Green, text!("+ {}", Untrusted(&after)));
                let pointer = Untrusted(&pointer);
                out.line(&text!("  {}\n    {}\n    {}", pointer, before, after))?;
            }
        }
        Ok(())
    }

    /// Receives messages until `found` returns a value; returns an error if the time limit expires or the server ends.
    fn receive_until<T>(&mut self, found: impl Fn(&mut Self) -> Option<T>) -> anyhow::Result<T> {
        let until = Instant::now() + self.limit;
        loop {
            if let Some(found) = found(self) {
                return Ok(found);
            }
            let left = until.saturating_duration_since(Instant::now());
            match self.server.receive(left) {
                ServerOutput::Line(line) => self.receive_message(&line)?,
                ServerOutput::Timeout => bail!("no answer within {} s", self.limit.as_secs()),
                ServerOutput::End => bail!("the server has ended"),
            }
        }
    }

    /// Checks a received message, and stores it if it is a request or a response.
    fn receive_message(&mut self, line: &[u8]) -> anyhow::Result<()> {
        self.waiting_bytes += line.len();
        if self.waiting_bytes > MAX_WAITING_BYTES {
            bail!("the server sends much more than the recording has");
        }
        let text = String::from_utf8_lossy(line);
        let observed = self.conversation.observe(Some(Direction::Server), &text);
        if !observed.breaches.is_empty() {
            self.violating_messages += 1;
            stdout().line(&log_words(&observed, Painter::stdout()))?;
        }
        let Ok(json) = mcp_exact_wire::from_str::<Json>(&text) else {
            return Ok(());
        };
        let message = Value::of(&json);
        let id = message.get("id").existing();
        match (message.get("method").as_str(), id) {
            (Some(method), Some(id)) => {
                self.requests.push((method.into_owned(), id.to_json()));
            }
            (None, Some(id)) => drop(self.responses.insert(id.key(), json.clone())),
            _ => {}
        }
        Ok(())
    }
}
