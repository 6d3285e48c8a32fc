//! `mcp-exact proxy`: forwards messages between a client and a server over stdio, and records and checks both
//! directions.
//!
//! Bytes are forwarded unchanged, and a message is recorded before it is forwarded. Checks run in another thread.

use std::ffi::OsString;
use std::io::{self, Read, Write};
use std::path::PathBuf;
use std::process::{ChildStdout, ExitStatus};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use clap::Args;
#[cfg(feature = "client")]
use mcp_exact_revisions::Side;

use crate::check::log_words;
use crate::conversation::{CheckedMessage, Conversation, Options};
use crate::interrupt;
use crate::message::Direction;
use crate::output::{Painter, Style, create, is_standard_stream};
use crate::process::{self, RunningServer, ServerStderr};
use crate::queue::{self, Received, Receiver, Sender};
use crate::registry::Registry;
use crate::terminal::{print_to_stderr, raw_stdout, stderr};
use crate::text::{Text, Untrusted, text};
use crate::{Outcome, recording};

/// The arguments of `mcp-exact proxy`.
#[derive(Args)]
#[command(after_help = "\
Put it before the command of a server in the configuration of a client: `mcp-exact proxy --record log.jsonl -- node \
server.js`. `mcp-exact check --log log.jsonl` checks the recording again, and `mcp-exact replay` plays it.

What is wrong goes to standard error, or to the file of --report.

Exit code: that of the server, and 128 with the number of the signal that ended it; 1 with --fail if a message was wrong; \
2 wrong usage or a command that does not start.")]
pub struct Arguments {
    /// Record all messages in a file, a line each, and replace the file of an earlier start; `-` is standard error, because standard
    /// output is the client's.
    #[arg(long, value_name = "FILE")]
    record: Option<PathBuf>,
    /// Write violations to a file instead of standard error.
    #[arg(long, value_name = "FILE")]
    report: Option<PathBuf>,
    /// Print each message to standard error, with direction and revision.
    #[arg(long)]
    trace: bool,
    /// List members that the revision does not define, too.
    #[arg(long)]
    unknown: bool,
    /// The revision of all messages; without it, the negotiated revision.
    #[arg(long, short, value_name = "R")]
    revision: Option<String>,
    /// Exit with code 1 if a message has a violation.
    #[arg(long)]
    fail: bool,
    /// Set a variable in the environment of the server's process.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// The command of the server, with its arguments.
    #[arg(
        value_name = "COMMAND",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    command: Vec<OsString>,
}

/// Sender and bytes of a complete message.
struct ForwardedMessage(Direction, Vec<u8>);

/// File or standard error, to which the proxy writes until an error.
struct OutputFile {
    /// `None` after an error: what came next would follow half of a line.
    out: Option<Box<dyn Write + Send>>,
    /// Name of the file, for the error.
    name: String,
}

impl OutputFile {
    /// Writes lines; the first error is printed, and the conversation continues without the file.
    fn write(&mut self, write: impl FnOnce(&mut dyn Write) -> io::Result<()>) {
        let written = self.out.as_deref_mut().map_or(Ok(()), |out| write(out));
        if let Err(error) = written {
            self.out = None;
            let error = error.to_string();
            print_to_stderr(&text!(
                "mcp-exact: cannot write {}: {}; it ends here",
                Untrusted(&self.name),
                Untrusted(&error)
            ));
        }
    }
}

/// Receiver of all complete messages, before they are forwarded: records each message, and passes it to the watcher.
#[derive(Clone)]
struct MessageSink {
    /// File to which all messages are recorded, if any.
    record: Option<Arc<Mutex<OutputFile>>>,
    /// Channel to the watcher.
    watcher: Sender<ForwardedMessage>,
}

impl MessageSink {
    /// Records the collected line as a message, passes it to the watcher, and clears it; an empty line is no message.
    fn take_line(&self, from: Direction, line: &mut Vec<u8>) {
        let message = line.trim_ascii().to_vec();
        line.clear();
        if message.is_empty() {
            return;
        }
        if let Some(record) = &self.record {
            let mut record = record.lock().unwrap_or_else(PoisonError::into_inner);
            record.write(|out| recording::write(out, from, &message));
        }
        // Small messages take more memory than their bytes.
        let size = message.len() + 128;
        self.watcher.send(ForwardedMessage(from, message), size);
    }
}

/// Maximum length of a message that is checked and recorded, in bytes; longer messages are only forwarded.
const MAX_CHECKED_BYTES: usize = 64 << 20;

/// Runs the server and forwards messages until the server ends.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let revision = match &arguments.revision {
        Some(id) => Some(Registry::new().revision(id)?.revision.id()),
        None => None,
    };
    let options = Options {
        wants_unknown: arguments.unknown,
        is_ordered: true,
    };
    let record = create_file(arguments.record.as_ref())?;
    let mut watcher = Watcher {
        conversation: Conversation::new(revision, options),
        report: create_file(arguments.report.as_ref())?,
        is_tracing: arguments.trace,
        violating_messages: 0,
    };
    interrupt::end_processes_on_signals()?;
    let (server, output) = RunningServer::start(
        &process::command(&arguments.command, &arguments.env)?,
        ServerStderr::Inherited,
    )?;
    let input = ServerInput(Arc::clone(&server));
    let (sender, passed) = queue::bounded();
    let of_server = MessageSink {
        record: record.map(|record| Arc::new(Mutex::new(record))),
        watcher: sender,
    };
    let of_client = of_server.clone();
    // This thread is not joined, because it may block in a read after the server has ended.
    thread::spawn(move || forward_bytes(Direction::Client, io::stdin(), input, &of_client));
    let (done, is_done) = mpsc::channel();
    let is_reading = Arc::new(AtomicBool::new(false));
    let output = ServerOutput {
        output,
        is_reading: Arc::clone(&is_reading),
    };
    thread::spawn(move || {
        forward_bytes(Direction::Server, output, raw_stdout(), &of_server);
        let _ = done.send(());
    });
    let watching: JoinHandle<Watcher> = thread::spawn(move || {
        watcher.watch(&passed);
        watcher
    });
    let status = server.wait_for_exit();
    // A descendant of the server may keep its output open.
    while is_done.recv_timeout(REST_WAIT) == Err(mpsc::RecvTimeoutError::Timeout)
        && !is_reading.load(Ordering::Acquire)
    {}
    server.end(Duration::ZERO);
    // The server has ended: further messages of the client are not awaited.
    let violating_messages = if watching.is_finished() {
        watching
            .join()
            .map_or(0, |watcher| watcher.violating_messages)
    } else {
        IS_FINISHED.store(true, Ordering::Release);
        watching
            .join()
            .map_or(0, |watcher| watcher.violating_messages)
    };
    if arguments.fail && violating_messages > 0 {
        return Ok(Outcome::Invalid);
    }
    interrupt::wait_for_end();
    std::process::exit(exit_code(status));
}

/// Time without output of a server that has exited, after which nothing more is expected.
const REST_WAIT: Duration = Duration::from_millis(200);

/// Standard input of the server, which is closed when this value is dropped.
struct ServerInput(Arc<RunningServer>);

impl Write for ServerInput {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.write(bytes).map(|()| bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for ServerInput {
    fn drop(&mut self) {
        self.0.close_input();
    }
}

/// Standard output of the server, which knows whether it is waited for.
struct ServerOutput {
    output: ChildStdout,
    is_reading: Arc<AtomicBool>,
}

impl Read for ServerOutput {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        self.is_reading.store(true, Ordering::Release);
        let read = self.output.read(buffer);
        self.is_reading.store(false, Ordering::Release);
        read
    }
}

/// True once the server has ended, so that the watcher waits for no further messages.
static IS_FINISHED: AtomicBool = AtomicBool::new(false);

/// Creates a file that the command line specifies; `-` is standard error.
fn create_file(path: Option<&PathBuf>) -> anyhow::Result<Option<OutputFile>> {
    let Some(path) = path else {
        return Ok(None);
    };
    let out: Box<dyn Write + Send> = if is_standard_stream(path) {
        Box::new(stderr().document())
    } else {
        create(path)?
    };
    Ok(Some(OutputFile {
        out: Some(out),
        name: path.display().to_string(),
    }))
}

/// Returns the exit code of the server, or 128 plus the signal number if a signal has ended the server, as shells do.
fn exit_code(status: Option<ExitStatus>) -> i32 {
    let Some(status) = status else {
        return 2;
    };
    #[cfg(unix)]
    if let Some(signal) = std::os::unix::process::ExitStatusExt::signal(&status) {
        return 128 + signal;
    }
    status.code().unwrap_or(2)
}

/// Forwards bytes from `input` to `output`. The sink receives each message before its last byte is forwarded: a request
/// is recorded before its response, and what a peer has received is recorded even if the peer then ends this process.
fn forward_bytes(
    from: Direction,
    mut input: impl Read,
    mut output: impl Write,
    sink: &MessageSink,
) {
    let mut buffer = vec![0; 64 << 10];
    let mut line = Vec::new();
    let mut is_too_long = false;
    while let Ok(count @ 1..) = input.read(&mut buffer) {
        let bytes = &buffer[..count];
        for piece in bytes.split_inclusive(|byte| *byte == b'\n') {
            is_too_long |= line.len() + piece.len() > MAX_CHECKED_BYTES;
            if is_too_long {
                line.clear();
            } else {
                line.extend_from_slice(piece);
            }
            if piece.ends_with(b"\n") {
                is_too_long = false;
                sink.take_line(from, &mut line);
            }
        }
        if output.write_all(bytes).is_err() || output.flush().is_err() {
            break;
        }
    }
    sink.take_line(from, &mut line);
}

/// Receiver of all forwarded messages, which checks and prints them.
struct Watcher {
    /// Conversation that checks the messages.
    conversation: Conversation,
    /// File to which violations are written; without it, and after an error, they are written to standard error.
    report: Option<OutputFile>,
    /// True if each message is printed to standard error.
    is_tracing: bool,
    /// Number of messages with violations.
    violating_messages: usize,
}

impl Watcher {
    /// Checks forwarded messages until both directions or the server have ended.
    fn watch(&mut self, passed: &Receiver<ForwardedMessage>) {
        let pause = std::time::Duration::from_millis(20);
        loop {
            match passed.receive(pause) {
                Received::Item(ForwardedMessage(from, message)) => {
                    self.check_message(from, &message);
                }
                Received::Timeout => {
                    if IS_FINISHED.load(Ordering::Acquire) {
                        return;
                    }
                }
                Received::End => return,
            }
        }
    }

    /// Checks a message.
    fn check_message(&mut self, from: Direction, message: &[u8]) {
        let text = String::from_utf8_lossy(message);
        let observed = self.conversation.observe(Some(from), &text);
        self.violating_messages += usize::from(!observed.breaches.is_empty());
        let painter = Painter::stderr();
        if self.is_tracing {
            print_to_stderr(&format_trace(&observed, &text, painter));
        }
        if observed.breaches.is_empty() {
            return;
        }
        let report = self.report.as_mut();
        match report.filter(|report| report.out.is_some()) {
            Some(report) => {
                let words = log_words(&observed, Painter(false));
                let words = words.as_str();
                report.write(|out| writeln!(out, "{words}").and_then(|()| out.flush()));
            }
            None if self.is_tracing => {}
            None => {
                let words = log_words(&observed, painter);
                print_to_stderr(&text!("mcp-exact: {}", words));
            }
        }
    }
}

/// Returns the observer of one connection of a client, which prints each message as `--trace` does.
#[cfg(feature = "client")]
pub fn trace_observer() -> impl FnMut(Side, &[u8]) + Send + 'static {
    let options = Options {
        wants_unknown: false,
        is_ordered: true,
    };
    let mut conversation = Conversation::new(None, options);
    move |sender, message| {
        let from = match sender {
            Side::Client => Direction::Client,
            Side::Server => Direction::Server,
        };
        let text = String::from_utf8_lossy(message.trim_ascii());
        let observed = conversation.observe(Some(from), &text);
        print_to_stderr(&format_trace(&observed, &text, Painter::stderr()));
    }
}

/// Formats a message for `--trace`: direction, revision, description, text, and violations.
pub fn format_trace(observed: &CheckedMessage, text: &str, painter: Painter) -> Text {
    let revision = observed.revision.unwrap_or("-");
    let mut lines = text!(
        "{} {} {}  {}",
        painter.paint(Style::Bold, observed.from.arrow()),
        painter.paint(Style::Faint, revision),
        painter.paint(Style::Bold, Untrusted(&observed.label)),
        Untrusted(text.trim()),
    );
    for breach in &observed.breaches {
        let words = painter.paint(Style::Red, Untrusted(&breach.to_line()));
        let rule = painter.paint(Style::Faint, breach.rule.id);
        lines.push(&text!("\n    {} ({})", words, rule));
    }
    if observed.omitted > 0 {
        lines.push(&text!("\n    and {} more", observed.omitted));
    }
    lines
}
