//! The executable `mcp-exact`: parses the arguments, runs the command, and turns its outcome into an exit code.
//!
//! Exit codes are 0 if everything is valid, 1 if a document is invalid, and 2 if the command could not run. The
//! process ends without an error message if the reader of its output disconnects.

#[cfg(feature = "bridge")]
mod bridge;
mod check;
#[cfg(feature = "client")]
mod client;
mod conversation;
mod convert;
mod diff;
mod doctor;
mod generate;
mod interrupt;
mod jsonl;
mod last_words;
mod list;
mod message;
mod names;
#[cfg(feature = "client")]
mod new;
#[cfg_attr(
    not(feature = "client"),
    expect(dead_code, reason = "tables are for what servers offer")
)]
mod output;
mod process;
mod proxy;
mod queue;
mod recording;
mod registry;
mod replay;
mod revisions;
#[cfg_attr(
    all(not(feature = "http"), not(test)),
    expect(dead_code, reason = "rules of HTTP are checked over HTTP alone")
)]
mod rules;
mod server_address;
#[cfg(feature = "client")]
mod servers;
#[cfg(feature = "sessions")]
mod sessions;
mod show;
mod subject;
mod terminal;
mod text;
mod time_limit;
mod value;
mod verdict;

use std::ffi::OsString;
use std::io::{self, ErrorKind};
use std::process::ExitCode;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use clap::{CommandFactory, FromArgMatches, Parser, Subcommand};

use crate::last_words::LastWordsError;
use crate::registry::UnknownName;
use crate::terminal::print_to_stderr;
use crate::text::{Text, Untrusted, text};

/// Checks, converts and inspects messages of the Model Context Protocol, in every revision.
#[derive(Parser)]
#[command(
    name = "mcp-exact",
    version,
    arg_required_else_help = true,
    after_help = "\
Files: `-` is standard input, or standard output where something is written.

Colours: on terminals, unless the variable NO_COLOR is set.

Exit code: 0 all is well, 1 something is invalid, refused or different, 2 wrong usage, or something cannot be read, written \
or reached. Each command says what that means for it."
)]
struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand)]
enum Command {
    /// List the revisions that are compiled in.
    Revisions(list::Arguments),
    /// Check documents against a revision.
    Check(check::Arguments),
    /// Convert documents from one revision to another.
    Convert(convert::Arguments),
    /// List the changes between two revisions, or write one page with all revisions.
    Diff(diff::Arguments),
    /// Show a type or a method with its documentation and its later changes.
    Show(show::Arguments),
    /// Show the identity, tools, resources and prompts of a server.
    #[cfg(feature = "client")]
    Inspect(client::inspect::Arguments),
    /// Call a tool.
    #[cfg(feature = "client")]
    Call(client::call::Arguments),
    /// Read a resource.
    #[cfg(feature = "client")]
    Read(client::read::Arguments),
    /// Get a prompt.
    #[cfg(feature = "client")]
    Prompt(client::prompt::Arguments),
    /// List the skills of a server, or read a file of one.
    #[cfg(feature = "client")]
    Skills(client::skills::Arguments),
    /// Call tools, read resources and get prompts in one connection, from a prompt or a script.
    #[cfg(feature = "client")]
    Session(client::session::Arguments),
    /// Print the notifications of a server.
    #[cfg(feature = "client")]
    Listen(client::listen::Arguments),
    /// Examine a server: which rules of the specification does it break?
    Doctor(doctor::Arguments),
    #[cfg(feature = "client")]
    /// List the servers that the clients on this machine are configured with.
    Servers(servers::Arguments),
    #[cfg(feature = "client")]
    /// Add a server to the configuration of a client.
    Add(servers::add::Arguments),
    #[cfg(feature = "client")]
    /// Write a new server: a package of Cargo with tests, CI, and what publishes it.
    New(new::Arguments),
    #[cfg(feature = "client")]
    /// Pack the program of a package as a bundle for desktop clients (MCPB).
    Bundle(new::bundle::Arguments),
    /// Run a gateway in front of a server, so that clients of any revision can use it.
    #[cfg(feature = "bridge")]
    Bridge(Box<bridge::Arguments>),
    /// Forward messages between a client and a server, and record and check them.
    Proxy(proxy::Arguments),
    /// Send a recording to a server, and compare its responses.
    Replay(replay::Arguments),
    /// List, end and count the sessions that server processes share on Redis.
    #[cfg(feature = "sessions")]
    Sessions(sessions::Arguments),
    /// Print the completions of a shell.
    Completions(generate::Completions),
    /// Print or write the manual pages.
    Man(generate::Manual),
}

/// Outcome of a command, which decides the exit code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Outcome {
    /// All documents are valid.
    Valid,
    /// A document is invalid.
    Invalid,
    /// A document could not be checked.
    Unreadable,
}

/// Headings of the commands in the help, each with its commands.
const GROUPS: [(&str, &[&str]); 5] = [
    (
        "Use a server",
        &[
            "inspect", "call", "read", "prompt", "skills", "session", "listen", "servers", "add",
        ],
    ),
    ("Write a server", &["new", "bundle"]),
    ("Examine a server", &["doctor", "proxy", "replay"]),
    (
        "Work with messages and revisions",
        &["check", "convert", "revisions", "diff", "show"],
    ),
    (
        "Run and install",
        &["bridge", "sessions", "completions", "man"],
    ),
];

/// Returns the command line, whose help has the commands in groups.
fn command_line() -> clap::Command {
    let command = Arguments::command();
    let mut template = "{about-with-newline}\n{usage-heading} {usage}\n".to_owned();
    for (heading, names) in GROUPS {
        template.push_str(&format!("\n{heading}:\n"));
        for name in names {
            // Commands of features that this program was built without are left out.
            if let Some(found) = command.find_subcommand(name) {
                let about = found
                    .get_about()
                    .map(ToString::to_string)
                    .unwrap_or_default();
                template.push_str(&format!("  {name:<12} {about}\n"));
            }
        }
    }
    template.push_str("\nOptions:\n{options}{after-help}");
    command.help_template(template)
}

/// Parses the command line; ends the program with its help, or with a message about wrong usage.
fn parse_arguments() -> Arguments {
    let words = without_help_of_help(std::env::args_os());
    let mut command = command_line();
    let parsed = command
        .try_get_matches_from_mut(&words)
        .and_then(|matches| Ok((Arguments::from_arg_matches(&matches)?, matches)));
    let (arguments, matches) = parsed.unwrap_or_else(|error| error.exit());
    if let Some(note) = server_address::misplaced_option(&command, &matches, &words) {
        print_to_stderr(&note);
    }
    arguments
}

/// Returns the words of a command line; of `help --help` without the option, which would be taken for the name of a command.
fn without_help_of_help(words: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let mut words: Vec<OsString> = words.collect();
    if words.get(1).is_some_and(|word| word == "help") {
        words.retain(|word| word != "--help" && word != "-h");
    }
    words
}

fn main() -> ExitCode {
    let arguments = parse_arguments();
    let ended = match &arguments.command {
        Command::Revisions(arguments) => list::run(arguments),
        Command::Check(arguments) if arguments.jsonl => jsonl::run(),
        Command::Check(arguments) => check::run(arguments),
        Command::Convert(arguments) => convert::run(arguments),
        Command::Diff(arguments) => diff::run(arguments),
        Command::Show(arguments) => show::run(arguments),
        #[cfg(feature = "client")]
        Command::Inspect(arguments) => client::inspect::run(arguments),
        #[cfg(feature = "client")]
        Command::Call(arguments) => client::call::run(arguments),
        #[cfg(feature = "client")]
        Command::Read(arguments) => client::read::run(arguments),
        #[cfg(feature = "client")]
        Command::Prompt(arguments) => client::prompt::run(arguments),
        #[cfg(feature = "client")]
        Command::Skills(arguments) => client::skills::run(arguments),
        #[cfg(feature = "client")]
        Command::Session(arguments) => client::session::run(arguments),
        #[cfg(feature = "client")]
        Command::Listen(arguments) => client::listen::run(arguments),
        Command::Doctor(arguments) => doctor::run(arguments),
        #[cfg(feature = "client")]
        Command::Servers(arguments) => servers::run(arguments),
        #[cfg(feature = "client")]
        Command::Add(arguments) => servers::add::run(arguments),
        #[cfg(feature = "client")]
        Command::New(arguments) => new::run(arguments),
        #[cfg(feature = "client")]
        Command::Bundle(arguments) => new::bundle::run(arguments),
        #[cfg(feature = "bridge")]
        Command::Bridge(arguments) => bridge::run(arguments),
        Command::Proxy(arguments) => proxy::run(arguments),
        Command::Replay(arguments) => replay::run(arguments),
        #[cfg(feature = "sessions")]
        Command::Sessions(arguments) => sessions::run(arguments),
        Command::Completions(arguments) => generate::completions(arguments, Arguments::command()),
        Command::Man(arguments) => generate::manual(arguments, Arguments::command()),
    };
    interrupt::wait_for_end();
    match ended {
        Ok(Outcome::Valid) => ExitCode::SUCCESS,
        Ok(Outcome::Invalid) => ExitCode::from(1),
        Ok(Outcome::Unreadable) => ExitCode::from(2),
        Err(error) if is_broken_pipe(&error) => ExitCode::SUCCESS,
        Err(error) => match error.downcast_ref::<interrupt::Interrupted>() {
            Some(interrupted) => ExitCode::from(interrupted.exit_code()),
            None => {
                print_error(&describe(&error));
                ExitCode::from(2)
            }
        },
    }
}

/// Returns true if the error is that the reader of standard output has disconnected.
fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error
        .chain()
        .filter_map(|cause| cause.downcast_ref::<io::Error>())
        .any(|cause| cause.kind() == ErrorKind::BrokenPipe)
}

/// Time limit for printing an error message.
const PRINT_TIMEOUT: Duration = Duration::from_millis(1500);

/// Describes an error, and lists the known names below an unknown one; each line but the first is indented.
fn describe(error: &anyhow::Error) -> Text {
    let words = format!("{error:#}");
    if let Some(UnknownName { known_names, .. }) = error.downcast_ref()
        && let Some(problem) = words.strip_suffix(&format!("; {known_names}"))
    {
        let known_names = Untrusted(known_names).indented();
        return text!("{}\n  {}", Untrusted(problem), known_names);
    }
    if let Some(LastWordsError { problem, words }) = error.downcast_ref() {
        let words = Untrusted(words).indented();
        return text!("{}:\n  {}", Untrusted(problem), words);
    }
    text!("{}", Untrusted(&words).indented())
}

/// Prints an error message to standard error; failures to print are ignored. The program does not wait for a pipe that
/// nobody reads.
fn print_error(words: &Text) {
    let line = text!("error: {}", words);
    if cfg!(target_family = "wasm") {
        return print_to_stderr(&line);
    }
    let (done, is_done) = mpsc::channel();
    let print = move || {
        print_to_stderr(&line);
        let _ = done.send(());
    };
    if thread::Builder::new().spawn(print).is_ok() {
        let _ = is_done.recv_timeout(PRINT_TIMEOUT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every command is in one group of the help, and options of commands that share a name mean the same.
    #[test]
    fn commands_are_grouped() {
        let command = Arguments::command();
        let grouped: Vec<&str> = GROUPS
            .iter()
            .flat_map(|(_, names)| *names)
            .copied()
            .collect();
        for found in command.get_subcommands() {
            let count = grouped
                .iter()
                .filter(|name| **name == found.get_name())
                .count();
            assert_eq!(count, 1, "{}", found.get_name());
        }
        command_line().debug_assert();
        let options = |name: &str| {
            let found = command.find_subcommand(name).expect("a command");
            let options = found.get_arguments().filter_map(|option| option.get_long());
            options.map(str::to_owned).collect::<Vec<_>>()
        };
        let (check, convert) = (options("check"), options("convert"));
        for option in [
            "revision",
            "part",
            "method",
            "direction",
            "type",
            "log",
            "jsonl",
        ] {
            let has = |options: &[String]| options.iter().any(|found| found == option);
            assert!(has(&check) && has(&convert), "{option}");
        }
    }
}
