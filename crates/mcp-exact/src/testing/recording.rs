//! Recordings of sessions: the messages of a client and a server, which can be replayed to a newer version of the
//! server.
//!
//! A recording consists of lines of JSON, so that it can be stored alongside the tests and reviewed like code.

use std::collections::BTreeMap;
use std::fmt;
use std::str::FromStr;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use mcp_exact_transport::LineTransport;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use tokio::io::{
    AsyncBufReadExt as _, AsyncRead, AsyncWrite, AsyncWriteExt as _, BufReader, DuplexStream,
    ReadHalf, WriteHalf, duplex, split,
};

use crate::client::{Client, Connect};
use crate::server::Server;
use crate::sync::lock;

/// Size of the buffer for each direction, in bytes.
const PIPE_BYTES: usize = 256 << 10;
/// Default time limit of a replay for each message that the server is expected to send.
const MESSAGE_TIMEOUT: Duration = Duration::from_secs(30);
/// Members whose strings differ between runs, such as sealed states, random ids and timestamps. If the recorded client
/// has sent such a string back to the server, a replay sends the string that the server has sent in this run instead.
const VOLATILE_MEMBERS: [&str; 4] = ["requestState", "taskId", "createdAt", "lastUpdatedAt"];

/// One message of a session.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
enum RecordedMessage {
    /// Message of the client.
    Client(Value),
    /// Message of the server.
    Server(Value),
}

/// Messages of a session, in the order in which they were sent. [`record`] creates a recording.
///
/// The string form of a recording has a line per message: `{"client":…}` or `{"server":…}`.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Recording {
    messages: Vec<RecordedMessage>,
    /// Time limit of a replay for each message; `None` for the default.
    message_timeout: Option<Duration>,
}

impl fmt::Display for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for message in &self.messages {
            let line = serde_json::to_string(message).map_err(|_| fmt::Error)?;
            writeln!(f, "{line}")?;
        }
        Ok(())
    }
}

impl FromStr for Recording {
    type Err = serde_json::Error;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let lines = text.lines().filter(|line| !line.trim().is_empty());
        let messages = lines.map(serde_json::from_str).collect::<Result<_, _>>()?;
        Ok(Self {
            messages,
            message_timeout: None,
        })
    }
}

/// Recorder of a session; see [`record`].
#[derive(Debug, Clone, Default)]
pub struct Recorder(Arc<Mutex<Vec<RecordedMessage>>>);

impl Recorder {
    /// Locks the recorded messages.
    fn messages(&self) -> MutexGuard<'_, Vec<RecordedMessage>> {
        lock(&self.0)
    }

    /// Returns the messages that were recorded so far.
    pub fn recording(&self) -> Recording {
        Recording {
            messages: self.messages().clone(),
            message_timeout: None,
        }
    }

    /// Copies lines from one peer to the other and records them.
    async fn copy_and_record(
        self,
        from: impl AsyncRead + Unpin,
        mut to: impl AsyncWrite + Unpin,
        kind: fn(Value) -> RecordedMessage,
    ) {
        let mut lines = BufReader::new(from).lines();
        while let Ok(Some(line)) = lines.next_line().await {
            if let Ok(message) = serde_json::from_str(&line) {
                self.messages().push(kind(message));
            }
            let line = line + "\n";
            if to.write_all(line.as_bytes()).await.is_err() {
                break;
            }
        }
        // The peer may have closed the connection already.
        let _ = to.shutdown().await;
    }
}

/// Starts an in-memory connection whose messages are recorded.
///
/// ```
/// # use mcp_exact::{Server, testing::{Recording, record}};
/// # tokio::runtime::Builder::new_current_thread().enable_all().build()?.block_on(async {
/// let server = Server::builder("demo", "1.0.0").tool("hello", || async { "Hello!" }).build()?;
/// let (connect, recorder) = record(&server);
/// let client = connect.await?;
/// let _: String = client.call("hello", &()).await?;
///
/// // Kept in a file, the recording shows later what a client would notice of a change.
/// let recording: Recording = recorder.recording().to_string().parse()?;
/// recording.replay(&server).await?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// # })?;
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub fn record(server: &Server) -> (Connect, Recorder) {
    let recorder = Recorder::default();
    let (client, near) = duplex(PIPE_BYTES);
    let far = serve_connection(server);
    let taps = recorder.clone();
    let connect = Client::over_lazily(move || {
        let ((from_client, to_client), (from_server, to_server)) = (split(near), split(far()));
        tokio::spawn(
            taps.clone()
                .copy_and_record(from_client, to_server, RecordedMessage::Client),
        );
        tokio::spawn(taps.copy_and_record(from_server, to_client, RecordedMessage::Server));
        recorded_transport(client)
    });
    (connect, recorder)
}

/// Transport of newline-delimited messages over one end of a pipe whose traffic is recorded.
type RecordedLine = LineTransport<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>>;

/// Returns the transport over one end of a pipe.
fn recorded_transport(stream: DuplexStream) -> RecordedLine {
    let (reader, writer) = split(stream);
    LineTransport::new(
        reader,
        writer,
        crate::protocol::Limits::default().message_bytes,
    )
}

/// Returns a function that starts to serve one connection and returns the client's end of its pipe.
fn serve_connection(server: &Server) -> impl FnOnce() -> DuplexStream + Send + 'static {
    let server = server.clone();
    move || {
        let (near, far) = duplex(PIPE_BYTES);
        tokio::spawn(async move {
            if let Err(error) = server.serve(recorded_transport(far)).await {
                tracing::debug!(%error, "a connection of a recording ended");
            }
        });
        near
    }
}

/// Difference between the answers of a server and a recording.
#[derive(Debug, Clone, PartialEq)]
pub struct Mismatch {
    /// Recorded messages of which none was received.
    expected: Vec<Value>,
    /// Received message; `None` if none was received in time.
    actual: Option<Value>,
}

impl fmt::Display for Mismatch {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.actual {
            Some(found) => write!(f, "the server sent\n  {found}\ninstead of")?,
            None => write!(f, "the server did not send")?,
        }
        for expected in &self.expected {
            write!(f, "\n  {expected}")?;
        }
        f.write_str("\nrecord the session again if the change is intended")
    }
}

impl std::error::Error for Mismatch {}

impl Recording {
    /// Sets the time limit of [`replay`](Self::replay) for each message; the default is 30 seconds.
    #[must_use]
    pub fn message_timeout(mut self, limit: Duration) -> Self {
        self.message_timeout = Some(limit);
        self
    }

    /// Sends the recorded messages of the client to a server, and compares the messages of the server with the
    /// recording. Consecutive messages of the server may arrive in a different order.
    ///
    /// # Errors
    /// [`Mismatch`] with the first message that differs.
    pub async fn replay(&self, server: &Server) -> Result<(), Mismatch> {
        let (reader, mut writer) = split(serve_connection(server)());
        let mut replies = ServerMessages {
            lines: BufReader::new(reader).lines(),
            message_timeout: self.message_timeout.unwrap_or(MESSAGE_TIMEOUT),
        };
        let mut renamed = BTreeMap::new();
        let mut expected: Vec<Value> = Vec::new();
        for message in self.messages.iter().map(Some).chain([None]) {
            match message {
                Some(RecordedMessage::Server(message)) => expected.push(message.clone()),
                Some(RecordedMessage::Client(message)) => {
                    receive_messages(&mut replies, &mut expected, &mut renamed).await?;
                    let line = replace_volatile(message, &renamed).to_string() + "\n";
                    // If the server has closed the connection, the next read reports it.
                    let _ = writer.write_all(line.as_bytes()).await;
                }
                None => receive_messages(&mut replies, &mut expected, &mut renamed).await?,
            }
        }
        Ok(())
    }
}

/// Receiver of the messages of the server in a replay.
struct ServerMessages {
    /// Lines that the server sends.
    lines: tokio::io::Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// Time limit for each message.
    message_timeout: Duration,
}

impl ServerMessages {
    /// Returns the next message; `None` if no message is received in time.
    async fn next(&mut self) -> Option<Value> {
        let line = tokio::time::timeout(self.message_timeout, self.lines.next_line()).await;
        serde_json::from_str(&line.ok()?.ok()??).ok()
    }
}

/// Receives one message for each message in `expected`, in any order; pairs of volatile strings are added to `renamed`.
///
/// # Errors
/// [`Mismatch`] for a message that matches no expected message, or if no message is received in time.
async fn receive_messages(
    replies: &mut ServerMessages,
    expected: &mut Vec<Value>,
    renamed: &mut BTreeMap<String, String>,
) -> Result<(), Mismatch> {
    while !expected.is_empty() {
        let found = replies.next().await;
        let matching = found.as_ref().and_then(|found| {
            expected.iter().enumerate().find_map(|(at, expected)| {
                let mut names = Vec::new();
                matches_recording(expected, found, None, &mut names).then_some((at, names))
            })
        });
        let Some((at, names)) = matching else {
            return Err(Mismatch {
                expected: std::mem::take(expected),
                actual: found,
            });
        };
        expected.remove(at);
        renamed.extend(names);
    }
    Ok(())
}

/// Returns true if two values are equal except for volatile strings, which are added to `names` in pairs: the recorded
/// and the current string. `member` is the name of the object member that contains the values, if any.
fn matches_recording(
    before: &Value,
    now: &Value,
    member: Option<&str>,
    names: &mut Vec<(String, String)>,
) -> bool {
    match (before, now) {
        (Value::String(before), Value::String(now))
            if member.is_some_and(|member| VOLATILE_MEMBERS.contains(&member)) =>
        {
            names.push((before.clone(), now.clone()));
            true
        }
        (Value::Array(before), Value::Array(now)) => {
            let mut pairs = before.iter().zip(now);
            before.len() == now.len()
                && pairs.all(|(before, now)| matches_recording(before, now, member, names))
        }
        (Value::Object(before), Value::Object(now)) => {
            let mut members = before.iter();
            before.len() == now.len()
                && members.all(|(name, before)| {
                    let now = now.get(name);
                    now.is_some_and(|now| matches_recording(before, now, Some(name), names))
                })
        }
        _ => before == now,
    }
}

/// Replaces volatile strings of the recording in a message of the client by the strings that the server has sent in
/// this run.
fn replace_volatile(message: &Value, renamed: &BTreeMap<String, String>) -> Value {
    match message {
        Value::String(text) => Value::String(renamed.get(text).unwrap_or(text).clone()),
        Value::Array(items) => items
            .iter()
            .map(|item| replace_volatile(item, renamed))
            .collect(),
        Value::Object(members) => members
            .iter()
            .map(|(name, value)| (name.clone(), replace_volatile(value, renamed)))
            .collect(),
        other => other.clone(),
    }
}
