//! First step of `cargo xtask`: starts the package `xtask`, which has many dependencies.
//!
//! Before `cargo xtask test`, the tests are built. They have the dependencies of `xtask` too: one build of everything keeps
//! all processors busy, where a build of `xtask` alone often waits for one crate. This package depends on nothing.

use std::env;
use std::process::{Command, ExitCode, ExitStatus};

use xtask_start::{BUILD_TESTS, WHOLE_WORKSPACE};

fn main() -> ExitCode {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let has = |wanted: &str| arguments.iter().any(|argument| argument == wanted);
    if arguments.first().is_some_and(|task| task == "test") && !has("--help") && !has("-h") {
        for arguments in BUILD_TESTS {
            let mut build = cargo();
            build.args(arguments).args(WHOLE_WORKSPACE);
            if has("--locked") {
                build.arg("--locked");
            }
            // The names of the programs that cargo prints are of no use here; its progress stays.
            build.arg("--message-format=json-render-diagnostics");
            build.stdout(std::process::Stdio::null());
            if let Err(code) = run(&mut build) {
                return code;
            }
        }
    }
    let mut xtask = cargo();
    xtask.args(["run", "--quiet", "--package", "xtask", "--"]);
    become_program(xtask.args(arguments))
}

/// Runs a command in place of this program, so that signals reach it.
#[cfg(unix)]
#[allow(clippy::print_stderr)]
fn become_program(command: &mut Command) -> ExitCode {
    let error = std::os::unix::process::CommandExt::exec(command);
    eprintln!("error: cannot start cargo: {error}; install Rust: https://rustup.rs");
    ExitCode::FAILURE
}

/// Runs a command and returns its exit code.
#[cfg(not(unix))]
fn become_program(command: &mut Command) -> ExitCode {
    match run(command) {
        Ok(()) => ExitCode::SUCCESS,
        Err(code) => code,
    }
}

/// Returns a command of the cargo that runs this program.
fn cargo() -> Command {
    Command::new(env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
}

/// Runs a command; the error is its exit code.
#[allow(clippy::print_stderr)]
fn run(command: &mut Command) -> Result<(), ExitCode> {
    match command.status() {
        Ok(status) if status.success() => Ok(()),
        Ok(status) => Err(exit_code(status)),
        Err(error) => {
            eprintln!("error: cannot start cargo: {error}; install Rust: https://rustup.rs");
            Err(ExitCode::FAILURE)
        }
    }
}

/// Returns the exit code of a process that has failed.
fn exit_code(status: ExitStatus) -> ExitCode {
    let code = status.code().and_then(|code| u8::try_from(code).ok());
    code.map_or(ExitCode::FAILURE, ExitCode::from)
}
