//! Starts the executable `mcp-exact` and collects its output.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;

/// Result of a run of the executable.
pub struct ProgramOutput {
    /// The exit code.
    pub code: i32,
    /// Text on standard output.
    pub out: String,
    /// Text on standard error.
    pub err: String,
}

impl ProgramOutput {
    /// Returns exit code, standard output and standard error as one text.
    pub fn transcript(&self) -> String {
        let mut text = format!("exit {}\n", self.code);
        for line in self.out.lines() {
            text.push_str(&format!("out: {line}\n"));
        }
        for line in self.err.lines() {
            text.push_str(&format!("err: {line}\n"));
        }
        text
    }
}

/// Creates the command that starts the executable `mcp-exact`.
pub fn program() -> Command {
    let mut program = Command::new(env!("CARGO_BIN_EXE_mcp-exact"));
    program.env("XDG_DATA_HOME", data_folder());
    program
}

/// Returns the folder for what the program keeps between runs: not that of the user, nor of another run of the tests.
pub fn data_folder() -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(std::process::id().to_string())
}

/// Starts `mcp-exact` in `directory`, with pipes for its output.
fn start(directory: &Path, arguments: &[&str], stdin: Stdio) -> Child {
    program()
        .args(arguments)
        .current_dir(directory)
        .stdin(stdin)
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the program starts")
}

/// Runs `mcp-exact` in `directory` with `input` on standard input, and returns its result.
pub fn run(directory: &Path, arguments: &[&str], input: &[u8]) -> ProgramOutput {
    let mut child = start(directory, arguments, Stdio::piped());
    let mut stdin = child.stdin.take().expect("standard input is a pipe");
    let output = thread::scope(|scope| {
        // A program that does not read its input closes the pipe; that is no failure of the test.
        scope.spawn(move || drop(stdin.write_all(input)));
        child.wait_with_output().expect("the program ends")
    });
    ProgramOutput {
        code: output.status.code().expect("no signal ended it"),
        out: String::from_utf8(output.stdout).expect("standard output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
    }
}

/// Runs `mcp-exact` as [`run`] does, for a client that has sent its messages before the program starts, and ends its
/// input only when its request with an id was answered.
#[cfg(all(feature = "bridge", unix))]
pub fn run_until_answered(
    directory: &Path,
    arguments: &[&str],
    input: &[u8],
    id: u64,
) -> ProgramOutput {
    use std::io::{BufRead as _, BufReader, Read as _};
    use std::time::Duration;

    let (stdin, mut client) = std::io::pipe().expect("a pipe");
    // The pipe holds all of it.
    client.write_all(input).expect("room in the pipe");
    let mut child = start(directory, arguments, stdin.into());
    let stdout = child.stdout.take().expect("standard output is a pipe");
    let (out, output) = thread::scope(|scope| {
        let (answered, is_answered) = std::sync::mpsc::channel::<()>();
        // Its input ends after a minute all the same.
        scope.spawn(move || {
            let _ = is_answered.recv_timeout(Duration::from_secs(60));
            drop(client);
        });
        let reading = scope.spawn(move || {
            let mut stdout = BufReader::new(stdout);
            let mut out = String::new();
            loop {
                let from = out.len();
                let count = stdout.read_line(&mut out).expect("UTF-8");
                let message = serde_json::from_str::<serde_json::Value>(&out[from..]);
                if count == 0 || message.is_ok_and(|message| message["id"] == id) {
                    break;
                }
            }
            drop(answered);
            stdout.read_to_string(&mut out).expect("UTF-8");
            out
        });
        let output = child.wait_with_output().expect("the program ends");
        (reading.join().expect("no panic"), output)
    });
    ProgramOutput {
        code: output.status.code().expect("no signal ended it"),
        out,
        err: String::from_utf8(output.stderr).expect("standard error is UTF-8"),
    }
}

/// Returns the root directory of the workspace.
pub fn workspace() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}
