//! `mcp-exact servers` and `mcp-exact add`: the servers that the clients on this machine are configured with.
//!
//! Every command that talks to a server takes the name of one in place of its command or URL.

pub mod add;
mod clients;
mod entry;
mod file;
pub mod find;

use clap::Args;
use serde_json::json;

use self::clients::{CLIENTS, Folders, Place, all_places, shown_path};
use self::entry::{Address, Entry};
use crate::Outcome;
use crate::output::{Painter, Style};
use crate::terminal::stdout;
use crate::text::{Text, Untrusted, text};

/// The arguments of `mcp-exact servers`.
#[derive(Args)]
#[command(after_help = "\
Example: mcp-exact servers, then mcp-exact inspect NAME

Files of Claude Desktop, Claude Code, Cursor, VS Code, Windsurf, Codex, Gemini CLI and Zed: those of the user, and those of the \
project in this folder. Values of variables and headers are not shown.

Exit code: 0 every file could be read, 1 a file or an entry is wrong, 2 wrong usage.")]
pub struct Arguments {
    /// Show the servers of this client only.
    #[arg(long, value_name = "CLIENT", value_parser = client_names())]
    client: Option<String>,
    /// Print one JSON array.
    #[arg(long)]
    json: bool,
}

/// Returns the parser of the names of clients.
fn client_names() -> clap::builder::PossibleValuesParser {
    CLIENTS.iter().map(|client| client.id).into()
}

/// A file with the servers in it, or the reason why it cannot be read.
struct Listed {
    place: Place,
    shown_path: String,
    servers: Result<Vec<NamedEntry>, String>,
}

/// A server with its name, or the reason why its entry cannot be used.
type NamedEntry = (String, Result<Entry, String>);

/// Prints the servers of all clients.
pub fn run(arguments: &Arguments) -> anyhow::Result<Outcome> {
    let Some(folders) = Folders::of_user() else {
        anyhow::bail!("there is no home directory; set the variable HOME");
    };
    let mut all = list(&folders);
    if let Some(id) = &arguments.client {
        all.retain(|listed| listed.place.client.id == id);
    }
    if arguments.json {
        stdout().pretty_json(&all.iter().flat_map(Listed::to_json).collect::<Vec<_>>())?;
    } else if all.is_empty() {
        stdout().line(&text!(
            "no client is configured; `mcp-exact add NAME --to CLIENT -- COMMAND|URL` adds a server to one"
        ))?;
    } else {
        let painter = Painter::stdout();
        let texts: Vec<Text> = all.iter().map(|listed| listed.to_text(painter)).collect();
        stdout().text(&Text::join(texts, "\n"))?;
    }
    let is_well = all.iter().all(|listed| match &listed.servers {
        Ok(servers) => servers.iter().all(|(_, entry)| entry.is_ok()),
        Err(_) => false,
    });
    Ok(if is_well {
        Outcome::Valid
    } else {
        Outcome::Invalid
    })
}

/// Returns the files of clients that are there, with their servers; files without any are left out.
fn list(folders: &Folders) -> Vec<Listed> {
    let read = |place: Place| {
        let text = file::read(&place.path);
        let servers = match text {
            Ok(None) => return None,
            Ok(Some(text)) => file::servers(&text, place.client, &folders.project),
            Err(error) => Err(error),
        };
        let servers = servers
            .map_err(|error| format!("{error:#}"))
            .map(|servers| {
                let servers = servers.into_iter();
                let entry = |value| Entry::read(&value, place.client);
                servers
                    .map(|(name, value)| (name, entry(value)))
                    .collect::<Vec<_>>()
            });
        let is_empty = servers.as_ref().is_ok_and(Vec::is_empty);
        (!is_empty).then(|| Listed {
            shown_path: shown_path(&place.path, folders),
            place,
            servers,
        })
    };
    all_places(folders).into_iter().filter_map(read).collect()
}

impl Listed {
    /// Returns the lines of the file.
    fn to_text(&self, painter: Painter) -> Text {
        let mut out = Text::default();
        let scope = if self.place.is_project {
            ", this project"
        } else {
            ""
        };
        let path = painter.paint(
            Style::Faint,
            text!("{}{}", Untrusted(&self.shown_path), scope),
        );
        out.push_line(&text!(
            "{}  {}",
            painter.paint(Style::Bold, self.place.client.name),
            path
        ));
        let servers = match &self.servers {
            Ok(servers) => servers,
            Err(reason) => {
                let wrong = painter.paint(Style::Red, "wrong");
                out.push_line(&text!("  {}: {}", wrong, Untrusted(reason)));
                return out;
            }
        };
        for (name, entry) in servers {
            let name = painter.paint(Style::Bold, Untrusted(name));
            match entry {
                Err(reason) => {
                    let wrong = painter.paint(Style::Red, "wrong");
                    out.push_line(&text!("  {}  {}: {}", name, wrong, Untrusted(reason)));
                }
                Ok(entry) => {
                    let disabled = if entry.disabled_by.is_some() {
                        " (disabled)"
                    } else {
                        ""
                    };
                    let address = entry.address.shown();
                    out.push_line(&text!("  {}  {}{}", name, Untrusted(&address), disabled));
                    if !entry.tools.is_empty() {
                        let tools = entry.tools.to_string();
                        out.push_line(&text!("    tools: {}", Untrusted(&tools)));
                    }
                    for note in &entry.notes {
                        let mark = painter.paint(Style::Yellow, "note");
                        out.push_line(&text!("    {}: {}", mark, Untrusted(note)));
                    }
                }
            }
        }
        out
    }

    /// Returns an object for each server, or one for a file that cannot be read.
    fn to_json(&self) -> Vec<serde_json::Value> {
        let of_file = json!({
            "client": self.place.client.id,
            "file": self.place.path,
            "project": self.place.is_project,
        });
        let with = |more: serde_json::Value| {
            let mut object = of_file.clone();
            if let (Some(object), serde_json::Value::Object(more)) = (object.as_object_mut(), more)
            {
                object.extend(more);
            }
            object
        };
        let servers = match &self.servers {
            Ok(servers) => servers,
            Err(reason) => return vec![with(json!({ "error": reason }))],
        };
        let object = |(name, entry): &NamedEntry| match entry {
            Err(reason) => with(json!({ "name": name, "error": reason })),
            Ok(entry) => with(json!({
                "name": name,
                "command": match &entry.address {
                    Address::Command(words) => Some(words),
                    Address::Url(_) => None,
                },
                "url": match &entry.address {
                    Address::Command(_) => None,
                    Address::Url(url) => Some(url),
                },
                "env": entry.env.keys().chain(&entry.inherited).collect::<Vec<_>>(),
                "headers": entry.headers.keys().collect::<Vec<_>>(),
                "disabled": entry.disabled_by.is_some(),
                "tools": (!entry.tools.is_empty()).then(|| entry.tools.to_string()),
                "notes": entry.notes,
            })),
        };
        servers.iter().map(object).collect()
    }
}

impl Address {
    /// Returns the command with quoted words, or the URL.
    fn shown(&self) -> String {
        match self {
            Self::Command(words) => words
                .iter()
                .map(|word| {
                    if word.is_empty() || word.contains(char::is_whitespace) {
                        format!("'{word}'")
                    } else {
                        word.clone()
                    }
                })
                .collect::<Vec<_>>()
                .join(" "),
            Self::Url(url) => url.clone(),
        }
    }
}
