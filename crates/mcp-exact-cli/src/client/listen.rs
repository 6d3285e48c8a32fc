//! `mcp-exact listen`: prints the notifications of a server: changes of lists and resources, and log messages.

use std::ffi::OsString;

use anyhow::anyhow;
use clap::{Args, ValueEnum};
use mcp_exact::{ClientChange, JsonObject, RawJson};
use mcp_exact_revisions::method;
use tokio::sync::mpsc;

use super::{Settings, add_hint, run_with_server};
use crate::Outcome;
use crate::interrupt::Interrupted;
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, text};
use crate::time_limit;

/// The arguments of `mcp-exact listen`.
#[derive(Args)]
#[command(after_help = "\
It ends with Ctrl-C, with the server, or as --for and --count say. Log messages go to standard error.

Exit code: 0 it has listened, 2 wrong usage, or the server cannot be reached or has ended.")]
pub struct Arguments {
    /// Subscribe to changes of a resource.
    #[arg(long, value_name = "URI")]
    resource: Vec<String>,
    /// Request log messages of at least this level (before 2026-07-28).
    #[arg(long, value_name = "LEVEL")]
    level: Option<LogLevel>,
    /// Seconds to listen.
    #[arg(long = "for", value_name = "SECONDS")]
    duration: Option<u64>,
    /// End after this number of notifications.
    #[arg(long, value_name = "N")]
    count: Option<usize>,
    #[command(flatten)]
    settings: Settings,
    /// The URL of the server, or the command that starts it with its arguments. Options go before it.
    #[arg(
        value_name = "COMMAND|URL",
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true
    )]
    server: Vec<OsString>,
}

/// Levels of log messages.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub enum LogLevel {
    Debug,
    Info,
    Notice,
    Warning,
    Error,
    Critical,
    Alert,
    Emergency,
}

/// Prints notifications until a limit is reached.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let listened = run_with_server(&arguments.settings, async {
        let (sender, mut announced) = mpsc::unbounded_channel();
        let connect = arguments.settings.connect(&arguments.server)?;
        let connect = connect.on_change(move |change| drop(sender.send(change)));
        let client = connect.await.map_err(add_hint)?;
        if let Some(level) = arguments.level {
            let name = format!("{level:?}").to_lowercase();
            let params = JsonObject::from_iter([("level", RawJson::string(&name))]);
            let set = client.request(method::LOGGING_SET_LEVEL, Some(params));
            set.await.map_err(add_hint)?;
        }
        let resources = arguments.resource.iter().map(String::as_str);
        let _subscription = if arguments.resource.is_empty() {
            None
        } else {
            Some(client.subscribe(resources).await.map_err(add_hint)?)
        };
        let revision = client.revision().to_string();
        stdout().line(&text!("listening, revision {}", Untrusted(&revision)))?;
        let end = async {
            match arguments.duration {
                Some(seconds) => tokio::time::sleep(time_limit::from_seconds(seconds)).await,
                None => std::future::pending().await,
            }
        };
        let closed = client.closed();
        tokio::pin!(end, closed);
        let mut left = arguments.count.unwrap_or(usize::MAX);
        while left > 0 {
            tokio::select! {
                // What the server has announced before its end is printed.
                biased;
                () = &mut end => break,
                change = announced.recv() => match change {
                    Some(change) => {
                        left -= 1;
                        stdout().line(&describe_change(&change))?;
                    }
                    None => break,
                },
                reason = &mut closed => return Err(anyhow!("listening has ended: {reason}")),
            }
        }
        client.close();
        Ok(Outcome::Valid)
    });
    match listened {
        // That is how listening ends.
        Err(error) if error.is::<Interrupted>() => Ok(Outcome::Valid),
        listened => listened,
    }
}

/// Formats a change notification as a line of text.
fn describe_change(change: &ClientChange) -> Text {
    match change {
        ClientChange::Tools => "the list of tools has changed".into(),
        ClientChange::Prompts => "the list of prompts has changed".into(),
        ClientChange::Resources => "the list of resources has changed".into(),
        ClientChange::Resource(uri) => text!("the resource {} has changed", Untrusted(uri)),
        _ => "something else has changed".into(),
    }
}
