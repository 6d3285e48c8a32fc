//! Servers by name: a single word on the command line that is the name of a configured server stands for it.

use std::ffi::OsString;
use std::path::PathBuf;

use anyhow::{anyhow, bail};
use serde_json::Map;

use super::clients::{Folders, KnownClient, all_places, shown_path};
use super::entry::{Address, Entry};
use super::file;
use crate::names::suggest_similar;
use crate::output::{Painter, Style};
use crate::server_address::{self, Given, Named};
use crate::terminal::print_to_stderr;
use crate::text::{Untrusted, text};

/// A server in a file.
struct Configured {
    client: &'static KnownClient,
    name: String,
    shown_path: String,
    entry: Result<Entry, String>,
}

/// Servers of all clients.
#[derive(Default)]
struct AllConfigured {
    servers: Vec<Configured>,
    /// Why the servers of other files are not known, as sentences that name the file.
    unreadable: Vec<String>,
}

/// Returns the server that the words of a command line name: a single word that is the name of a configured server, or
/// `CLIENT/NAME`; `None` for a URL or a command, and for a name that is a program too: the file of a project that somebody else
/// has written cannot take its place. Prints which one it is, and whether it is switched off.
///
/// # Errors
/// Returns an error if several clients have different servers of this name, or its entry cannot be used; and if the word is
/// neither a configured server nor a program, but similar to the name of a server.
pub fn find(words: &[OsString], given: Given<'_>) -> anyhow::Result<Option<Named>> {
    let ([word], Some(folders)) = (words, Folders::of_user()) else {
        return Ok(None);
    };
    let Some(word) = word.to_str().filter(|word| is_name(word)) else {
        return Ok(None);
    };
    let lookup = |name: &str| variable(name, &folders);
    let Some(found) = find_in(word, &folders, given, &lookup)? else {
        return Ok(None);
    };
    let painter = Painter::stderr();
    let is_disabled = found.0.disabled_by.is_some();
    print_to_stderr(&text!(
        "{} `{}` of {} ({}){}",
        painter.paint(Style::Faint, "server"),
        Untrusted(word),
        found.1.name,
        Untrusted(&found.2),
        if is_disabled { " (disabled)" } else { "" }
    ));
    Ok(Some(found.0))
}

/// Returns true if a word may be the name of a server, such as `io.github.owner/name`: it is no URL, no option, and no path of a
/// program that says so by its beginning.
fn is_name(word: &str) -> bool {
    !word.is_empty()
        && !word.starts_with(['-', '.', '/', '~'])
        && !word.contains('\\')
        && !word.contains("://")
}

/// Returns true if a word that no server is called by may be meant as a name: it has no folder, or the name of a client.
fn looks_like_name(word: &str) -> bool {
    let folder = word.split_once('/').map(|(folder, _)| folder);
    folder.is_none_or(|folder| KnownClient::parse(folder).is_some())
}

/// Returns the value of a variable of a configuration file.
fn variable(name: &str, folders: &Folders) -> Option<String> {
    match name {
        "workspaceFolder" => folders.project.to_str().map(str::to_owned),
        "userHome" => folders.home.to_str().map(str::to_owned),
        name => std::env::var(name).ok(),
    }
}

/// Returns the server of a name, its client, and its file.
fn find_in(
    word: &str,
    folders: &Folders,
    given: Given<'_>,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> anyhow::Result<Option<(Named, &'static KnownClient, String)>> {
    let configured = configured(folders);
    let all = &configured.servers;
    let is_wanted = |one: &&Configured| {
        one.name == word || word.strip_prefix(one.client.id) == Some(&format!("/{}", one.name))
    };
    let mut found: Vec<&Configured> = all.iter().filter(is_wanted).collect();
    // The same server in several files is one.
    found.dedup_by(|other, one| one.entry == other.entry);
    if let Some(one) = found.first()
        && one.name == word
        && is_program(word)
    {
        print_to_stderr(&text!(
            "`{}` is a program; the server of this name is {}/{} ({})",
            Untrusted(word),
            one.client.id,
            Untrusted(&one.name),
            Untrusted(&one.shown_path)
        ));
        return Ok(None);
    }
    let one = match found.as_slice() {
        [] => {
            if looks_like_name(word) && !is_program(word) {
                return Err(unknown_name(word, &configured, folders));
            }
            return Ok(None);
        }
        [one] => one,
        several => {
            let names: Vec<String> = several
                .iter()
                .map(|one| format!("{}/{} ({})", one.client.id, one.name, one.shown_path))
                .collect();
            bail!(
                "several clients have a server `{word}`; write which one: {}",
                names.join(", ")
            );
        }
    };
    let entry = one.entry.clone();
    let entry = entry.and_then(|entry| entry.without(given).expand(lookup));
    match entry {
        Ok(entry) => {
            let named = named(entry, &one.shown_path);
            Ok(Some((named, one.client, one.shown_path.clone())))
        }
        Err(reason) => bail!("the server `{word}` of {}: {reason}", one.shown_path),
    }
}

/// Returns the error for a word that is neither a program nor the name of a server.
fn unknown_name(word: &str, configured: &AllConfigured, folders: &Folders) -> anyhow::Error {
    // A URL without its scheme, or a whole command, is more likely than a name.
    if let Err(mistake) = server_address::refuse_mistake(word) {
        return mistake;
    }
    let AllConfigured {
        servers,
        unreadable,
    } = configured;
    let mut problem = format!("there is no program and no configured server `{word}`");
    let length = problem.len();
    suggest_similar(&mut problem, word, servers.iter().map(|one| &*one.name));
    if problem.len() > length {
        problem.push_str(" `mcp-exact servers` lists them");
    } else {
        let has_project = all_places(folders)
            .iter()
            .any(|place| place.is_project && place.path.is_file());
        let remedy = match (servers.is_empty(), has_project) {
            (_, false) => {
                "; this folder has no file of a client, and the user's files no such server"
            }
            (true, true) if unreadable.is_empty() => "; the files of clients have no servers",
            (true, true) => "",
            (false, true) => "; `mcp-exact servers` lists those there are",
        };
        problem.push_str(remedy);
    }
    for reason in unreadable {
        problem.push_str(&format!("; {reason}"));
    }
    anyhow!(problem)
}

/// Returns what an entry of a file stands for.
fn named(entry: Entry, shown_path: &str) -> Named {
    let disabled_by = entry
        .disabled_by
        .map(|member| format!("{member} in {shown_path}"));
    let env = entry.env.into_iter();
    let headers = entry.headers.into_iter();
    match entry.address {
        Address::Command(words) => Named {
            words: words.into_iter().map(OsString::from).collect(),
            env: env.map(|(name, value)| format!("{name}={value}")).collect(),
            headers: Vec::new(),
            folder: entry.folder.map(PathBuf::from),
            disabled_by,
            tools: entry.tools,
            connection: entry.connection,
        },
        Address::Url(url) => Named {
            words: vec![OsString::from(url)],
            env: Vec::new(),
            headers: headers
                .map(|(name, value)| format!("{name}: {value}"))
                .collect(),
            folder: None,
            disabled_by,
            tools: entry.tools,
            connection: entry.connection,
        },
    }
}

/// Returns all configured servers, and why files have none that are not understood.
fn configured(folders: &Folders) -> AllConfigured {
    let mut all = AllConfigured::default();
    for place in all_places(folders) {
        let shown_path = shown_path(&place.path, folders);
        let servers = file::read(&place.path).and_then(|text| {
            let text = text.unwrap_or_default();
            file::servers(&text, place.client, &folders.project)
        });
        let servers = servers.unwrap_or_else(|error| {
            let reason = format!("{shown_path} may have it, and is not understood: {error:#}");
            all.unreadable.push(reason);
            Map::new()
        });
        for (name, value) in servers {
            all.servers.push(Configured {
                client: place.client,
                name,
                shown_path: shown_path.clone(),
                entry: Entry::read(&value, place.client),
            });
        }
    }
    all
}

/// Returns true if a program of this name is on the path, or a file in this folder.
fn is_program(word: &str) -> bool {
    let paths = std::env::var_os("PATH").unwrap_or_default();
    let names = [
        word.to_owned(),
        format!("{word}.exe"),
        format!("{word}.cmd"),
    ];
    let is_here = std::path::Path::new(word).is_file();
    is_here
        || std::env::split_paths(&paths)
            .any(|folder| names.iter().any(|name| folder.join(name).is_file()))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Writes files of clients below a folder, and returns the folders of a user.
    fn user(folder: &std::path::Path, files: &[(&str, &str)]) -> Folders {
        for (path, text) in files {
            let path = folder.join(path);
            std::fs::create_dir_all(path.parent().expect("a folder")).expect("a folder");
            std::fs::write(path, text).expect("a file");
        }
        Folders {
            home: folder.join("home"),
            config: folder.join("home/.config"),
            zed: folder.join("home/.config/zed"),
            project: folder.join("project"),
        }
    }

    /// A name stands for the server of the project or the user; several different ones are told apart by their clients.
    #[test]
    fn names_stand_for_servers() {
        let folder = tempfile::tempdir().expect("a folder");
        let files = [
            (
                "home/.cursor/mcp.json",
                r#"{"mcpServers":{"one":{"command":"a","env":{"K":"${env:KEY}"}},"both":{"command":"b"},"sh":{"command":"c"},"io.github.a/b":{"command":"d"}}}"#,
            ),
            (
                "project/.vscode/mcp.json",
                r#"{"servers":{"both":{"type":"http","url":"https://b/mcp","headers":{"X":"1"}},"bad":{}}} // mine"#,
            ),
            (
                "home/.codex/config.toml",
                "[mcp_servers.one]\ncommand = \"a\"\nenv = { K = \"${KEY}\" }\n",
            ),
            ("home/.gemini/settings.json", "{"),
        ];
        let folders = user(folder.path(), &files);
        let find = |word: &str| {
            let lookup = |name: &str| (name == "KEY").then(|| "secret".to_owned());
            let found = find_in(word, &folders, Given::default(), &lookup);
            found
                .map(|found| found.map(|(named, ..)| named))
                .map_err(|error| error.to_string())
        };
        let of_vscode = find("vscode/both").expect("found").expect("a server");
        assert_eq!(of_vscode.words, ["https://b/mcp"]);
        assert_eq!(of_vscode.headers, ["X: 1"]);
        assert_eq!(
            find("cursor/both").expect("found").expect("a server").words,
            ["b"]
        );
        let error = find("both").expect_err("two servers");
        assert!(
            error.contains("vscode/both (.vscode/mcp.json), cursor/both (~/.cursor/mcp.json)"),
            "{error}"
        );
        let of_cursor = find("cursor/one").expect("found").expect("a server");
        assert_eq!(
            (of_cursor.words, of_cursor.env),
            (vec!["a".into()], vec!["K=secret".to_owned()])
        );
        let error = find("bad").expect_err("no entry");
        assert!(
            error.contains("the server `bad` of .vscode/mcp.json: the entry needs"),
            "{error}"
        );
        assert_eq!(find("sh"), Ok(None), "a program comes first");
        let of_cursor = find("cursor/sh").expect("found").expect("a server");
        assert_eq!(of_cursor.words, ["c"]);
        let error = find("bothh").expect_err("a misspelt name");
        assert!(error.contains("did you mean `both`?"), "{error}");
        let error = find("nothing-like-it").expect_err("no name");
        assert!(error.contains("`mcp-exact servers` lists those"), "{error}");
        let broken = "; ~/.gemini/settings.json may have it, and is not understood: Unterminated";
        assert!(error.contains(broken), "{error}");
        assert_eq!(find("no/such-file"), Ok(None));
        let with_slash = find("io.github.a/b").expect("found").expect("a server");
        assert_eq!(with_slash.words, ["d"]);
        let elsewhere = Folders {
            project: folder.path().join("elsewhere"),
            ..folders.clone()
        };
        let error = find_in("memory", &elsewhere, Given::default(), &|_| None);
        let error = error.expect_err("no name").to_string();
        assert!(
            error.contains("this folder has no file of a client"),
            "{error}"
        );
    }

    /// A file with a fault is named where a server is not found; it is not said that it has no servers.
    #[test]
    fn faulty_files_are_named() {
        let folder = tempfile::tempdir().expect("a folder");
        let file = r#"{"mcpServers": {"mine": {"command": "a"}}"#;
        let folders = user(folder.path(), &[("project/.mcp.json", file)]);
        let error = find_in("mine", &folders, Given::default(), &|_| None);
        let error = error.expect_err("the file is cut off").to_string();
        let expected = "there is no program and no configured server `mine`; .mcp.json may have it, and is not understood: Unterminated";
        assert!(error.starts_with(expected), "{error}");
    }

    /// URLs, options and paths of programs are no names.
    #[test]
    fn paths_are_not_names() {
        for word in ["./server", "/a/b", "--help", "", "C:\\a", "http://a/mcp"] {
            assert!(!is_name(word), "{word}");
        }
        for word in ["cursor/a/b", "Azure MCP Server", "io.github.a/b"] {
            assert!(is_name(word), "{word}");
        }
        assert!(looks_like_name("cursor/a/b") && !looks_like_name("a/b"));
    }
}
