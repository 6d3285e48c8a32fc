//! `mcp-exact add`: writes a server into the configuration file of a client, after showing the difference.

use std::ffi::OsString;
use std::io::{BufRead, IsTerminal};
use std::path::Path;

use anyhow::{Context, anyhow, bail};
use clap::Args;
use serde_json::{Map, Value};

use super::client_names;
use super::clients::{Folders, KnownClient, shown_path};
use super::file::{self, Members};
use crate::Outcome;
use crate::output::{Painter, Style};
use crate::server_address;
use crate::terminal::{print_to_stderr, stdout};
use crate::text::{Text, Untrusted, text};

/// Number of unchanged lines that are shown around a difference.
const CONTEXT: usize = 2;

/// The arguments of `mcp-exact add`.
#[derive(Args)]
#[command(after_help = "\
Example: mcp-exact add files --to vscode --project -- npx -y @modelcontextprotocol/server-filesystem .

The difference is shown before anything is written, and a terminal asks whether to write it; the file before is kept beside it as .bak. Comments and all other text of \
the file stay as they are.

Exit code: 0 the file is written, or shown by --dry-run, 1 the difference was declined, 2 wrong usage, or the file cannot be read or written.")]
pub struct Arguments {
    /// The name of the server in the client.
    #[arg(value_name = "NAME")]
    name: String,
    /// The client whose file the server is added to.
    #[arg(long, value_name = "CLIENT", value_parser = client_names())]
    to: String,
    /// Write into the file of the project in this folder, not into that of the user.
    #[arg(long)]
    project: bool,
    /// Set a variable in the environment of the server's process.
    #[arg(long, value_name = "NAME=VALUE")]
    env: Vec<String>,
    /// Add a header to each HTTP request.
    #[arg(long, value_name = "NAME: VALUE")]
    header: Vec<String>,
    /// Replace a server of this name.
    #[arg(long)]
    replace: bool,
    /// Write without asking.
    #[arg(long)]
    yes: bool,
    /// Show the difference, and write nothing.
    #[arg(long, conflicts_with = "yes")]
    dry_run: bool,
    /// The URL of the server, or the command that starts it with its arguments.
    #[arg(value_name = "COMMAND|URL", required = true, last = true)]
    server: Vec<OsString>,
}

/// Adds the server.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let folders =
        Folders::of_user().context("there is no home directory; set the variable HOME")?;
    let client = KnownClient::parse(&arguments.to).context("an unknown client")?;
    let place = if arguments.project {
        client.project_place(&folders).with_context(|| {
            format!(
                "{} has no files of projects; leave --project out",
                client.name
            )
        })?
    } else {
        client.user_place(&folders)
    };
    let shown = shown_path(&place.path, &folders);
    let entry = arguments.entry(client)?;
    let in_file = |error: anyhow::Error| anyhow!("{shown}: {error:#}");
    let before = file::read(&place.path).map_err(in_file)?;
    let text = before.as_deref().unwrap_or_default();
    let known = file::servers(text, client, Path::new("")).map_err(in_file)?;
    if known.contains_key(&arguments.name) && !arguments.replace {
        bail!(
            "{shown} has a server `{}` already; add --replace, or choose another name",
            arguments.name
        );
    }
    let after = file::with_server(text, client, &arguments.name, &entry).map_err(in_file)?;
    let painter = Painter::stdout();
    let name = painter.paint(Style::Bold, client.name);
    stdout().line(&text!("{}  {}", name, Untrusted(&shown)))?;
    stdout().text(&difference(text, &after, painter))?;
    if arguments.dry_run {
        return Ok(Outcome::Valid);
    }
    if !arguments.yes && !confirm()? {
        return Ok(Outcome::Invalid);
    }
    let backup = file::replace(&place.path, before.as_deref(), &after).map_err(in_file)?;
    let kept = match backup {
        Some(backup) => {
            let backup = shown_path(&backup, &folders);
            text!("; the file before is {}", Untrusted(&backup))
        }
        None => Text::default(),
    };
    print_to_stderr(&text!("written{}", kept));
    Ok(Outcome::Valid)
}

/// Asks whether the difference is to be written.
fn confirm() -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!(
            "nothing is written: standard input is not a terminal, where the question whether to write could be answered; add --yes \
             to write, or --dry-run to see the difference alone"
        );
    }
    stdout().text(&text!("write this? [y/N] "))?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

impl Arguments {
    /// Returns the entry in the form that the client reads.
    fn entry(&self, client: &KnownClient) -> anyhow::Result<Members> {
        let mut entry = Members::new();
        let mut set = |name, value: Value| entry.push((name, value));
        let is_http = server_address::parse_url(&self.server)?;
        if let Some(url) = is_http {
            let Some(member) = client.url else {
                bail!(
                    "{} reads no URLs from this file; add it in its settings, or put the gateway in front: `mcp-exact add {} --to \
                     {} -- mcp-exact bridge {url}`",
                    client.name,
                    self.name,
                    client.id
                );
            };
            if !self.env.is_empty() {
                bail!("a server at a URL has no process here; leave --env out");
            }
            if let Some(kind) = client.http_type {
                set("type", kind.into());
            }
            set(member, url.into());
            if !self.header.is_empty() {
                set(client.headers, pairs(&self.header, ": ", "--header")?);
            }
            return Ok(entry);
        }
        if !self.header.is_empty() {
            bail!(
                "a command gets no HTTP requests; leave --header out, or give it values by --env"
            );
        }
        let words = self.server.iter().map(|word| {
            let word = word.to_str().context("a word of the command is not text")?;
            Ok(Value::from(word))
        });
        let mut words = words.collect::<anyhow::Result<Vec<_>>>()?.into_iter();
        if let Some(kind) = client.stdio_type {
            set("type", kind.into());
        }
        set("command", words.next().unwrap_or_default());
        set("args", words.collect());
        if !self.env.is_empty() {
            set("env", pairs(&self.env, "=", "--env")?);
        }
        Ok(entry)
    }
}

/// Returns the values of an option as an object.
fn pairs(values: &[String], separator: &str, option: &str) -> anyhow::Result<Value> {
    let mut object = Map::new();
    for value in values {
        let pair = value.split_once(separator.trim_end());
        let Some((name, value)) = pair.filter(|(name, _)| !name.is_empty()) else {
            bail!("{option}: `{value}` has no `{}`", separator.trim_end());
        };
        object.insert(name.trim().to_owned(), value.trim_start().into());
    }
    Ok(Value::Object(object))
}

/// Returns the lines that differ, with some lines around them. A server that is added is one run of lines.
fn difference(before: &str, after: &str, painter: Painter) -> Text {
    let (before, after): (Vec<&str>, Vec<&str>) =
        (before.lines().collect(), after.lines().collect());
    let same = before
        .iter()
        .zip(&after)
        .take_while(|(one, other)| one == other);
    let first = same.count();
    let mut rest = before[first..]
        .iter()
        .rev()
        .zip(after[first..].iter().rev());
    let last = rest
        .by_ref()
        .take_while(|(one, other)| one == other)
        .count();
    let mut out = Text::default();
    let mut lines = |lines: &[&str], mark: &'static str, style: Style| {
        for line in lines {
            let line = line.replace('\t', "    ");
            let line = text!("  {} {}", mark, Untrusted(&line));
            out.push_line(&painter.paint(style, line));
        }
    };
    lines(
        &after[first.saturating_sub(CONTEXT)..first],
        " ",
        Style::Faint,
    );
    lines(&before[first..before.len() - last], "-", Style::Red);
    lines(&after[first..after.len() - last], "+", Style::Green);
    let end = after.len() - last;
    lines(
        &after[end..(end + CONTEXT).min(after.len())],
        " ",
        Style::Faint,
    );
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The difference has what changes, and a little of what is around it.
    #[test]
    fn differences_are_shown() {
        let shown =
            |before: &str, after: &str| difference(before, after, Painter(false)).to_string();
        assert_eq!(
            shown("1\n2\n3\n4\n5\n6\n", "1\n2\n3\nx\ny\n5\n6\n"),
            "    2\n    3\n  - 4\n  + x\n  + y\n    5\n    6\n"
        );
        assert_eq!(shown("", "a\n"), "  + a\n");
        assert_eq!(shown("a\na\n", "a\na\na\n"), "    a\n    a\n  + a\n");
        assert_eq!(shown("a\n", "a\n"), "    a\n");
    }
}
