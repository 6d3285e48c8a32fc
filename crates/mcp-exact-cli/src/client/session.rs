//! `mcp-exact session`: several calls, reads, prompts and completions in one connection, from a prompt or a script.

mod line;
mod prompt;
mod run;

use std::ffi::OsString;
use std::io::{self, IsTerminal};

use clap::Args;

use self::line::LINES;
use self::run::Options;
use super::{add_hint, run_with_server};
use crate::Outcome;

/// The arguments of `mcp-exact session`.
#[derive(Args)]
#[command(after_help = format!("\
Each line of standard input is:

{LINES}

At a terminal, Tab completes names and arguments, and lines are kept for the next session. Words with spaces are quoted: \
message='two words'. A value that begins with [ or {{ is JSON up to the bracket that ends it: \
items=[{{\"name\": \"Ada\", \"tags\": [\"a b\"]}}]. In a script, a line that begins with # is a comment, and a line that fails ends the \
session with --stop-on-error alone. Each line is answered before the next one is read, and the session ends after the last one.

Example: printf 'echo message=hello\\nget-sum a=1 b=2\\n' | mcp-exact session node server.js

Exit code: 0 every line has done its work, 1 a line failed, 2 wrong usage, or the server cannot be reached. At a terminal, lines do \
not count."))]
pub struct Arguments {
    #[command(flatten)]
    options: Options,
    /// The URL of the server, or the command that starts it with its arguments. Options go before it.
    #[arg(
        value_name = "COMMAND|URL",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    server: Vec<OsString>,
}

/// Runs the session until the end of input.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    run_with_server(&arguments.options.settings, async {
        let connect = arguments.options.settings.connect(&arguments.server)?;
        let client = connect.await.map_err(add_hint)?;
        let mut session = run::Session::new(&client, &arguments.options);
        let is_interactive = io::stdin().is_terminal();
        let outcome = if is_interactive {
            prompt::run(&mut session).await
        } else {
            session.run_script().await
        };
        client.close();
        outcome
    })
}
