//! A configuration file of a client: its servers, and its text with another server in it, which keeps everything else.

use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use anyhow::{Context, anyhow, bail};
use jsonc_parser::ParseOptions;
use jsonc_parser::cst::{CstInputValue, CstRootNode};
use serde_json::{Map, Value};
use toml_edit::{DocumentMut, InlineTable, Item, Table};

use super::clients::{Format, KnownClient};

/// Byte order mark, which editors of Windows write.
const BYTE_ORDER_MARK: char = '\u{feff}';

/// Members of an entry, in the order in which they are written.
pub type Members = Vec<(&'static str, Value)>;

/// Returns the text of a file; `None` if there is no file.
pub fn read(path: &Path) -> anyhow::Result<Option<String>> {
    match fs::read_to_string(path) {
        Ok(text) => Ok(Some(text)),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(anyhow!("cannot be read: {error}")),
    }
}

/// Returns the servers in the text of a file by name, with those that Claude Code keeps for one project, `folder`.
pub fn servers(
    text: &str,
    client: &KnownClient,
    folder: &Path,
) -> anyhow::Result<Map<String, Value>> {
    let text = text.strip_prefix(BYTE_ORDER_MARK).unwrap_or(text);
    let value = match client.format {
        Format::Json => {
            let root = parse_json(text)?;
            root.to_serde_value().unwrap_or(Value::Null)
        }
        Format::Toml => toml::from_str(text)?,
    };
    let Value::Object(mut members) = value else {
        // An empty file has no servers.
        return Ok(Map::new());
    };
    let of_project = members.get_mut("projects").and_then(|projects| {
        let project = projects.get_mut(folder.to_str()?)?;
        Some(project.get_mut(client.key)?.take())
    });
    let mut servers = match members.remove(client.key) {
        None | Some(Value::Null) => Map::new(),
        Some(Value::Object(servers)) => servers,
        Some(_) => bail!("`{}` must be an object of servers by name", client.key),
    };
    if let Some(Value::Object(own)) = of_project {
        servers.extend(own);
    }
    mcp_exact::switch_off(&mut servers, &members);
    Ok(servers)
}

fn parse_json(text: &str) -> anyhow::Result<CstRootNode> {
    CstRootNode::parse(text, &ParseOptions::default()).map_err(|error| anyhow!("{error}"))
}

/// Returns the text of a file with a server added, or put in the place of the one with its name; all else stays as it is.
///
/// # Errors
/// Returns an error if the file cannot be parsed, so that nothing in it is lost.
pub fn with_server(
    text: &str,
    client: &KnownClient,
    name: &str,
    entry: &Members,
) -> anyhow::Result<String> {
    let (mark, text) = match text.strip_prefix(BYTE_ORDER_MARK) {
        Some(text) => (BYTE_ORDER_MARK.to_string(), text),
        None => (String::new(), text),
    };
    let edited = match client.format {
        Format::Json => json_with_server(text, client.key, name, entry)?,
        Format::Toml => toml_with_server(text, client.key, name, entry)?,
    };
    Ok(mark + &edited)
}

fn json_with_server(text: &str, key: &str, name: &str, entry: &Members) -> anyhow::Result<String> {
    let is_empty = text.trim().is_empty();
    let root = parse_json(if is_empty { "{}\n" } else { text })?;
    let object = root
        .object_value_or_create()
        .context("the file must be one JSON object")?;
    let servers = object
        .object_value_or_create(key)
        .with_context(|| format!("`{key}` must be an object of servers by name"))?;
    let members = entry.iter();
    let value = CstInputValue::Object(
        members
            .map(|(name, value)| ((*name).to_owned(), input(value)))
            .collect(),
    );
    match servers.get(name) {
        Some(known) => known.set_value(value),
        None => drop(servers.append(name, value)),
    }
    // A file of one line stays one.
    if is_empty || text.contains('\n') {
        object.ensure_multiline();
        servers.ensure_multiline();
    }
    Ok(root.to_string())
}

/// Returns a value in the form in which the parser takes it.
fn input(value: &Value) -> CstInputValue {
    match value {
        Value::Null => CstInputValue::Null,
        Value::Bool(value) => CstInputValue::Bool(*value),
        Value::Number(number) => CstInputValue::Number(number.to_string()),
        Value::String(text) => CstInputValue::String(text.clone()),
        Value::Array(items) => CstInputValue::Array(items.iter().map(input).collect()),
        Value::Object(members) => {
            let members = members.iter();
            CstInputValue::Object(
                members
                    .map(|(name, value)| (name.clone(), input(value)))
                    .collect(),
            )
        }
    }
}

fn toml_with_server(text: &str, key: &str, name: &str, entry: &Members) -> anyhow::Result<String> {
    let mut document: DocumentMut = text.parse()?;
    let servers = document.entry(key).or_insert_with(|| {
        let mut servers = Table::new();
        // The header of the table itself would be a line that says nothing.
        servers.set_implicit(true);
        Item::Table(servers)
    });
    let servers = servers
        .as_table_like_mut()
        .with_context(|| format!("`{key}` must be a table of servers by name"))?;
    let mut table = Table::new();
    for (member, value) in entry {
        let value = toml_value(value).with_context(|| format!("`{member}` has no form in TOML"))?;
        table.insert(member, Item::Value(value));
    }
    servers.insert(name, Item::Table(table));
    Ok(document.to_string())
}

fn toml_value(value: &Value) -> Option<toml_edit::Value> {
    Some(match value {
        Value::Null => return None,
        Value::Bool(value) => (*value).into(),
        Value::Number(number) => number.as_i64()?.into(),
        Value::String(text) => text.as_str().into(),
        Value::Array(items) => {
            let items = items.iter().map(toml_value);
            let array: toml_edit::Array = items.collect::<Option<_>>()?;
            array.into()
        }
        Value::Object(members) => {
            let mut table = InlineTable::new();
            for (name, value) in members {
                table.insert(name, toml_value(value)?);
            }
            table.into()
        }
    })
}

/// Replaces the text of a file at once, so that no reader sees a part of it, and keeps a copy of the one before; returns the
/// path of the copy. A new file can be read by this user alone; a link stays one.
///
/// # Errors
/// Returns an error if the file is no longer `before`, or cannot be written; the file is unchanged then.
pub fn replace(path: &Path, before: Option<&str>, after: &str) -> anyhow::Result<Option<PathBuf>> {
    let path = match before {
        Some(_) => fs::canonicalize(path)?,
        None => path.to_owned(),
    };
    let folder = path.parent().context("a file is in a folder")?;
    fs::create_dir_all(folder)?;
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(after.as_bytes())?;
    let backup = match before {
        Some(before) => {
            file.as_file()
                .set_permissions(fs::metadata(&path)?.permissions())?;
            let backup = copy(&path)?;
            if read(&backup)?.as_deref() != Some(before) {
                fs::remove_file(&backup)?;
                bail!("the file was changed meanwhile; run the command again");
            }
            Some(backup)
        }
        None => None,
    };
    file.as_file().sync_all()?;
    match before {
        Some(_) => drop(file.persist(&path)?),
        None => drop(file.persist_noclobber(&path)?),
    }
    Ok(backup)
}

/// Copies a file to a name beside it that no file has.
fn copy(path: &Path) -> anyhow::Result<PathBuf> {
    for number in 0..1000 {
        let mut name = path.file_name().unwrap_or_default().to_owned();
        name.push(if number == 0 {
            ".bak".to_owned()
        } else {
            format!(".bak{number}")
        });
        let copy = path.with_file_name(name);
        // Claims the name, so that no other copy is written over.
        match fs::OpenOptions::new()
            .write(true)
            .create_new(true)
            .open(&copy)
        {
            Ok(_) => {
                fs::copy(path, &copy)?;
                return Ok(copy);
            }
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
            Err(error) => return Err(error.into()),
        }
    }
    bail!(
        "there are a thousand copies of {}; remove some",
        path.display()
    )
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn client(id: &str) -> &'static KnownClient {
        KnownClient::parse(id).expect("a client")
    }

    fn entry() -> Members {
        vec![("command", json!("npx")), ("args", json!(["-y", "a"]))]
    }

    /// Adding a server keeps comments, trailing commas, the byte order mark, line breaks and all other text.
    #[test]
    fn nothing_else_is_changed() {
        let texts = [
            "{\n  // mine\n  \"servers\": {\n    /* first */\n    \"one\": { \"command\": \"a\" }, // kept\n  },\n  \"inputs\": [],\n}\n",
            "\u{feff}{\r\n\t\"servers\": {\r\n\t\t\"one\": {\"command\": \"a\"}\r\n\t}\r\n}\r\n",
            "{\"x\":1.0e5,\"servers\":{\"one\":{\"command\":\"\\u0061\"}}}",
            "{ \"other\": true }",
            "",
        ];
        for text in texts {
            let found = with_server(text, client("vscode"), "two", &entry()).expect(text);
            // What was there is still there, in its order.
            let mut rest = found.as_str();
            for word in text
                .split_whitespace()
                .flat_map(|word| word.split(['}', '{', ',']))
            {
                let at = rest
                    .find(word)
                    .unwrap_or_else(|| panic!("{word}:\n{found}"));
                rest = &rest[at + word.len()..];
            }
            assert_eq!(
                found.starts_with(BYTE_ORDER_MARK),
                text.starts_with(BYTE_ORDER_MARK)
            );
            assert_eq!(found.contains("\r\n"), text.contains("\r\n"), "{found:?}");
            let read = servers(&found, client("vscode"), Path::new("/")).expect("servers");
            assert_eq!(read["two"], json!({"command": "npx", "args": ["-y", "a"]}));
            assert_eq!(read.len(), 1 + usize::from(text.contains("one")), "{found}");
            // The same once more, in the place of the first.
            let again = with_server(&found, client("vscode"), "two", &entry()).expect(text);
            let read = servers(&again, client("vscode"), Path::new("/")).expect("servers");
            assert_eq!(read["two"], json!({"command": "npx", "args": ["-y", "a"]}));
        }
    }

    /// TOML keeps its comments too.
    #[test]
    fn toml_keeps_its_comments() {
        let text = "# mine\nmodel = \"m\" # kept\n\n[mcp_servers.one]\ncommand = \"a\"\n";
        let found = with_server(text, client("codex"), "two", &entry()).expect(text);
        assert!(found.starts_with(text), "{found}");
        let added = &found[text.len()..];
        assert_eq!(
            added,
            "\n[mcp_servers.two]\ncommand = \"npx\"\nargs = [\"-y\", \"a\"]\n"
        );
        let read = servers(&found, client("codex"), Path::new("/")).expect("servers");
        assert_eq!(read.len(), 2);
    }

    /// A file that cannot be parsed is not changed, and the place of the fault is named.
    #[test]
    fn faulty_files_are_refused() {
        for (id, text, expected) in [
            ("cursor", "{\"mcpServers\": {", "Unterminated"),
            ("cursor", "[]", "must be one JSON object"),
            (
                "cursor",
                "{\"mcpServers\": []}",
                "`mcpServers` must be an object",
            ),
            ("codex", "a = \n", "TOML"),
            (
                "codex",
                "mcp_servers = 1\n",
                "`mcp_servers` must be a table",
            ),
        ] {
            let error = with_server(text, client(id), "two", &entry()).expect_err(text);
            assert!(format!("{error:#}").contains(expected), "{error:#}");
        }
    }

    /// Claude Code keeps servers of one project in the user's file.
    #[test]
    fn servers_of_a_project_are_found() {
        let text = r#"{"mcpServers":{"a":{}},"projects":{"/p":{"mcpServers":{"b":{}}},"/q":{"mcpServers":{"c":{}}}}}"#;
        let found = servers(text, client("claude-code"), Path::new("/p")).expect("servers");
        assert_eq!(found.keys().collect::<Vec<_>>(), ["a", "b"]);
    }

    /// A file is replaced with a copy beside it, and keeps its permissions; what was changed meanwhile is not.
    #[test]
    fn files_are_replaced_with_a_copy() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("below").join("mcp.json");
        assert_eq!(replace(&path, None, "1").expect("written"), None);
        assert!(replace(&path, None, "2").is_err(), "it is there now");
        let copy = replace(&path, Some("1"), "2")
            .expect("written")
            .expect("a copy");
        assert_eq!(read(&copy).expect("a file").as_deref(), Some("1"));
        let other = replace(&path, Some("2"), "3")
            .expect("written")
            .expect("a copy");
        assert_ne!(copy, other);
        assert!(replace(&path, Some("2"), "4").is_err());
        assert_eq!(read(&path).expect("a file").as_deref(), Some("3"));
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode =
                |path: &Path| fs::metadata(path).expect("a file").permissions().mode() & 0o777;
            assert_eq!(mode(&path), 0o600);
            fs::set_permissions(&path, fs::Permissions::from_mode(0o640)).expect("set");
            replace(&path, Some("3"), "4").expect("written");
            assert_eq!(mode(&path), 0o640);
        }
    }
}
