//! The forms that clients give to the entries of their configuration files: each becomes the one that `ServerEntry` describes.
//!
//! The program reads the files of clients by it, too.

use mcp_exact_tool_schema::ToolFilter;
use serde_json::{Map, Value};

/// Members with the URL of a server.
pub const URL_MEMBERS: [&str; 6] = [
    "url",
    "httpUrl",
    "serverUrl",
    "http_url",
    "server_url",
    "endpoint",
];

/// Members with the transport of a server.
const KINDS: [&str; 4] = ["type", "transport", "transportType", "transport_type"];

/// Lists of the only tools that are switched on.
const ALLOWED: [&str; 6] = [
    "includeTools",
    "include_tools",
    "enabledTools",
    "enabled_tools",
    "allowedTools",
    "allowed_tools",
];

/// Lists of tools that are switched off.
const DENIED: [&str; 8] = [
    "excludeTools",
    "excludedTools",
    "exclude_tools",
    "excluded_tools",
    "disabledTools",
    "disabled_tools",
    "blockedTools",
    "blocked_tools",
];

/// Members that are read as they are, by the names that clients give to them, and the names here.
const OWN: [(&str, &str); 11] = [
    ("revision", "revision"),
    ("protocolVersion", "revision"),
    ("message-bytes", "message-bytes"),
    ("messageBytes", "message-bytes"),
    ("max-pages", "max-pages"),
    ("maxPages", "max-pages"),
    ("ca", "ca"),
    ("client-cert", "client-cert"),
    ("clientCert", "client-cert"),
    ("client-key", "client-key"),
    ("clientKey", "client-key"),
];

/// Members for people, and of the shops that have written an entry: they say nothing about the connection.
const REMARKS: [&str; 16] = [
    "$schema",
    "_comment",
    "comment",
    "description",
    "displayName",
    "gallery",
    "homepage",
    "icon",
    "iconPath",
    "id",
    "metadata",
    "name",
    "note",
    "source",
    "title",
    "version",
];

/// Number of seconds from which on a `timeout` may be one in milliseconds.
const MAYBE_MILLISECONDS: u64 = 1000;

/// An entry in the members of `ServerEntry`.
#[derive(Debug, Default)]
pub struct EntryReading {
    /// Members without those of the other fields.
    pub members: Map<String, Value>,
    /// Tools that are switched on.
    pub tools: ToolFilter,
    /// Warnings: members without effect here, and values that may mean something else here.
    pub notes: Vec<String>,
}

/// Reads an entry. Of an entry that is switched off, mistakes do not matter.
///
/// # Errors
/// Returns which member is wrong.
pub fn read_entry(entry: Map<String, Value>) -> Result<EntryReading, String> {
    let is_off = |(name, value): (&String, &Value)| is_switch_off(name, value) == Ok(true);
    let is_off = entry.iter().any(is_off);
    let read = read_members(entry);
    if read.is_err() && is_off {
        let disabled = ("disabled".to_owned(), Value::Bool(true));
        return Ok(EntryReading {
            members: Map::from_iter([disabled]),
            ..EntryReading::default()
        });
    }
    read
}

/// Returns true if a member switches the server off, as `"disabled": true` and `"enabled": false` do.
fn is_switch_off(name: &str, value: &Value) -> Result<bool, String> {
    let when_off = match name {
        "disabled" => true,
        "enabled" | "isActive" => false,
        _ => return Ok(false),
    };
    let flag = match value {
        Value::Bool(flag) => Some(*flag),
        Value::String(text) => text.trim().to_ascii_lowercase().parse().ok(),
        _ => None,
    };
    let flag = flag.ok_or_else(|| format!("`{name}` must be true or false"))?;
    Ok(flag == when_off)
}

/// Reads the members of an entry.
fn read_members(entry: Map<String, Value>) -> Result<EntryReading, String> {
    let mut reading = EntryReading::default();
    let (mut unused, mut words, mut args) = (Vec::new(), Vec::new(), Vec::new());
    let (mut env, mut headers, mut inherited) = (Map::new(), Map::new(), Vec::new());
    let (mut url, mut kind) = (None, None);
    for (name, value) in entry {
        match name.as_str() {
            // Some clients write all members.
            _ if value.is_null() || value == "" => {}
            "command" => words = command(value, &mut env)?,
            "args" => args = list(value, &name)?,
            "environment" if value.is_string() => unused.push(name),
            "env" | "environment" => env.append(&mut strings(value, &name)?),
            "inherit-env" | "inheritEnv" | "env_vars" => inherited.extend(list(value, &name)?),
            "cwd" | "workingDirectory" | "working_directory" => {
                reading
                    .members
                    .insert("cwd".to_owned(), string(value, &name)?);
            }
            "headers" | "http_headers" => headers.append(&mut strings(value, &name)?),
            "env_http_headers" => {
                for (header, variable) in strings(value, &name)? {
                    headers.insert(header, reference("", &variable));
                }
            }
            "bearer_token_env_var" => {
                let token = reference("Bearer ", &string(value, &name)?);
                headers.insert("Authorization".to_owned(), token);
            }
            "disabled" | "enabled" | "isActive" => {
                if is_switch_off(&name, &value)? {
                    let disabled = "disabled".to_owned();
                    reading.members.insert(disabled, Value::Bool(true));
                }
            }
            // Definitions of tools, which shops write for people.
            "tools" if is_list_of_objects(&value) => unused.push(name),
            "tools" => reading.tools = tools(reading.tools, value)?,
            key if ALLOWED.contains(&key) => {
                reading.tools = reading.tools.allow(key, texts(list(value, key)?));
            }
            key if DENIED.contains(&key) => {
                reading.tools = reading.tools.deny(key, texts(list(value, key)?));
            }
            key if URL_MEMBERS.contains(&key) => {
                let value = string(value, key)?;
                unused.extend(prefer(&URL_MEMBERS, &mut url, (name, value)));
            }
            key if KINDS.contains(&key) => {
                let value = string(value, key)?;
                unused.extend(prefer(&KINDS, &mut kind, (name, value)));
            }
            "timeout" => drop(reading.members.insert(name, whole_number(value))),
            key if REMARKS.contains(&key) || is_empty(&value) => {}
            key => match OWN.iter().find(|(of_client, _)| *of_client == key) {
                Some((_, own)) => drop(reading.members.insert((*own).to_owned(), value)),
                None => unused.push(name),
            },
        }
    }
    if !words.is_empty()
        && let Some((name, _)) = url.take_if(|(name, _)| name != "url")
    {
        // Of a client that has another use for it.
        unused.push(name);
    }
    if url.is_some() && !words.is_empty() {
        return Err("the entry has `command` and `url`; remove one of them".to_owned());
    }
    // Where a command is, other transports are those of another client.
    if let Some((name, value)) = kind {
        let is_used = words.is_empty() || matches!(value.as_str(), Some("stdio" | "local"));
        if is_used {
            reading.members.insert("type".to_owned(), value);
        } else {
            unused.push(name);
        }
    }
    reading.notes = notes(
        &reading.members,
        [("env", &env), ("headers", &headers)],
        unused,
    );
    if !words.is_empty() {
        let command = words.remove(0);
        reading.members.insert("command".to_owned(), command);
    }
    words.append(&mut args);
    let members = [
        ("args", Value::Array(words)),
        ("env", Value::Object(env)),
        ("headers", Value::Object(headers)),
        ("inherit-env", Value::Array(inherited)),
        ("url", url.map_or(Value::Null, |(_, url)| url)),
    ];
    let members = members.into_iter().filter(|(_, value)| !is_empty(value));
    let members = members.map(|(name, value)| (name.to_owned(), value));
    reading.members.extend(members);
    Ok(reading)
}

/// Returns what has no effect, or perhaps another one than is meant; `unused` are the members that nothing reads.
fn notes(
    members: &Map<String, Value>,
    values: [(&str, &Map<String, Value>); 2],
    mut unused: Vec<String>,
) -> Vec<String> {
    let mut notes = Vec::new();
    let seconds = members.get("timeout").and_then(Value::as_u64);
    if let Some(seconds) = seconds.filter(|seconds| *seconds >= MAYBE_MILLISECONDS) {
        notes.push(format!(
            "`timeout` is {seconds} seconds here; if milliseconds are meant, write {}",
            seconds / 1000
        ));
    }
    for (member, values) in values {
        for (name, value) in values {
            // The value may be a secret.
            if value.as_str().is_some_and(has_foreign_reference) {
                notes.push(format!(
                    "`{member}.{name}` is a text here; for the value of a variable, write `${{NAME}}`"
                ));
            }
        }
    }
    unused.sort_unstable();
    let names: Vec<String> = unused.iter().map(|name| format!("`{name}`")).collect();
    match names.as_slice() {
        [] => {}
        [name] => notes.push(format!("{name} has no effect here")),
        names => notes.push(format!("{} have no effect here", names.join(", "))),
    }
    notes
}

/// Disables the servers that the settings of Gemini CLI switch off: by `mcp.excluded` and `mcp.allowed`, or by `excludeMCPServers` and
/// `allowMCPServers` of earlier ones. The names there may differ in case.
pub fn switch_off(servers: &mut Map<String, Value>, file: &Map<String, Value>) {
    for (name, entry) in servers {
        let of_mcp = |list: &str| file.get("mcp")?.get(list)?.as_array();
        let list = |earlier: &str| file.get(earlier)?.as_array();
        let is_same = |one: &str| one.trim().eq_ignore_ascii_case(name.trim());
        let has = |names: &Vec<Value>| {
            let mut names = names.iter().filter_map(Value::as_str);
            names.any(is_same)
        };
        let is_off = [of_mcp("excluded"), list("excludeMCPServers")]
            .into_iter()
            .flatten()
            .any(has)
            || ![of_mcp("allowed"), list("allowMCPServers")]
                .into_iter()
                .flatten()
                .all(has);
        if let Some(entry) = entry.as_object_mut().filter(|_| is_off) {
            entry.insert("disabled".to_owned(), Value::Bool(true));
        }
    }
}

/// Keeps the member whose name comes first in `names`; returns the name of the other one, if it has another value.
fn prefer(
    names: &[&str],
    known: &mut Option<(String, Value)>,
    found: (String, Value),
) -> Option<String> {
    let place = |name: &str| names.iter().position(|one| *one == name);
    let Some(other) = known.take() else {
        *known = Some(found);
        return None;
    };
    let (kept, left) = if place(&found.0) < place(&other.0) {
        (found, other)
    } else {
        (other, found)
    };
    let is_other = kept.1 != left.1;
    *known = Some(kept);
    is_other.then_some(left.0)
}

/// Returns a number that is written with a fraction of zero as the integer that it is.
fn whole_number(value: Value) -> Value {
    match value.as_f64() {
        Some(number) if value.is_f64() && number >= 0.0 && number.fract() == 0.0 => {
            format!("{number}").parse().unwrap_or(value)
        }
        _ => value,
    }
}

fn is_list_of_objects(value: &Value) -> bool {
    let items = value.as_array();
    items.is_some_and(|items| !items.is_empty() && items.iter().all(Value::is_object))
}

/// Returns the words of a command: a string, a list, or the object of older files of Zed, with its variables.
fn command(command: Value, env: &mut Map<String, Value>) -> Result<Vec<Value>, String> {
    let words = match command {
        Value::Object(mut members) => {
            let path = members.remove("path").ok_or("`command` needs `path`")?;
            let mut words = vec![string(path, "path")?];
            words.extend(list(members.remove("args").unwrap_or_default(), "args")?);
            env.append(&mut strings(
                members.remove("env").unwrap_or_default(),
                "env",
            )?);
            words
        }
        Value::Array(_) => list(command, "command")?,
        command => vec![string(command, "command")?],
    };
    match words.first() {
        Some(Value::String(program)) if !program.is_empty() => Ok(words),
        _ => Err("`command` is empty".to_owned()),
    }
}

/// Adds the member `tools`: a list of the tools that are switched on (Copilot CLI), or an object of tools by name that says of each
/// whether it is (MCPHub).
fn tools(filter: ToolFilter, value: Value) -> Result<ToolFilter, String> {
    let tools = match value {
        Value::Object(tools) => tools,
        Value::Bool(true) => return Ok(filter),
        Value::Array(_) => return Ok(filter.allow("tools", texts(list(value, "tools")?))),
        _ => {
            let message = "`tools` must be a list of names, or an object of tools by name";
            return Err(message.to_owned());
        }
    };
    let mut off = Vec::new();
    for (name, value) in tools {
        let flag = value.get("enabled").unwrap_or(&value);
        match flag {
            Value::Bool(false) => off.push(name),
            Value::Bool(true) | Value::Object(_) => {}
            _ => return Err(format!("`tools.{name}` must be true or false")),
        }
    }
    if off.is_empty() {
        return Ok(filter);
    }
    Ok(filter.deny("tools", off))
}

/// Returns a value that names a variable.
fn reference(before: &str, variable: &Value) -> Value {
    let variable = variable.as_str().unwrap_or_default();
    Value::String(format!("{before}${{{variable}}}"))
}

/// Returns true if a value has a reference for some clients, and a text for others: `$NAME` of Gemini CLI, `{env:NAME}` of opencode.
fn has_foreign_reference(value: &str) -> bool {
    let is_letter = |letter: char| letter.is_ascii_alphanumeric() || letter == '_';
    let is_name = |name: &str| {
        name.starts_with(|first: char| is_letter(first) && !first.is_ascii_digit())
            && name.chars().all(is_letter)
    };
    let mut words = value.split_whitespace();
    value.contains("{env:") && !value.contains("${env:")
        || words.any(|word| word.strip_prefix('$').is_some_and(is_name))
}

/// Returns a string, or the text of a number or a boolean.
fn string(value: Value, name: &str) -> Result<Value, String> {
    match value {
        Value::String(_) => Ok(value),
        Value::Number(_) | Value::Bool(_) => Ok(Value::String(value.to_string())),
        _ => Err(format!("`{name}` must be a string")),
    }
}

fn list(value: Value, name: &str) -> Result<Vec<Value>, String> {
    match value {
        Value::Null => Ok(Vec::new()),
        Value::Array(items) => items.into_iter().map(|item| string(item, name)).collect(),
        _ => Err(format!("`{name}` must be a list of strings")),
    }
}

fn strings(value: Value, name: &str) -> Result<Map<String, Value>, String> {
    match value {
        Value::Null => Ok(Map::new()),
        Value::Object(members) => {
            let members = members.into_iter().filter(|(_, value)| !value.is_null());
            let texts = members.map(|(key, value)| {
                let text = string(value, &format!("{name}.{key}"))?;
                Ok::<_, String>((key, text))
            });
            texts.collect()
        }
        _ => Err(format!("`{name}` must be an object of strings")),
    }
}

fn texts(list: Vec<Value>) -> impl Iterator<Item = String> {
    let texts = list.into_iter();
    texts.filter_map(|text| text.as_str().map(str::to_owned))
}

/// Returns true if a value says nothing, as the empty list of tools that need no approval does.
fn is_empty(value: &Value) -> bool {
    match value {
        Value::Null | Value::Bool(false) => true,
        Value::String(text) => text.is_empty(),
        Value::Array(items) => items.is_empty(),
        Value::Object(members) => members.is_empty(),
        Value::Bool(true) | Value::Number(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read_value(entry: Value) -> Result<EntryReading, String> {
        let Value::Object(entry) = entry else {
            return Err("no object".to_owned());
        };
        read_entry(entry)
    }

    /// The members of all clients become those of an entry.
    #[test]
    fn entries_of_all_clients_are_read() {
        for (client, entry, expected) in [
            (
                "Gemini CLI",
                json!({"httpUrl": "https://h/", "headers": {"A": 1}}),
                json!({"url": "https://h/", "headers": {"A": "1"}}),
            ),
            (
                "Windsurf",
                json!({"serverUrl": "https://h/", "disabled": true}),
                json!({"url": "https://h/", "disabled": true}),
            ),
            (
                "Codex",
                json!({"command": "x", "enabled": false, "env_vars": ["A"], "cwd": "/c"}),
                json!({"command": "x", "disabled": true, "inherit-env": ["A"], "cwd": "/c"}),
            ),
            (
                "Codex",
                json!({"url": "https://h/", "bearer_token_env_var": "T", "env_http_headers": {"X": "Y"}}),
                json!({"url": "https://h/", "headers": {"Authorization": "Bearer ${T}", "X": "${Y}"}}),
            ),
            (
                "opencode",
                json!({"type": "local", "command": ["npx", "-y", "x"], "environment": {"A": "b"}, "enabled": true}),
                json!({"type": "local", "command": "npx", "args": ["-y", "x"], "env": {"A": "b"}}),
            ),
            (
                "Zed",
                json!({"source": "custom", "command": {"path": "x", "args": ["a"], "env": {"A": "b"}}, "settings": {}}),
                json!({"command": "x", "args": ["a"], "env": {"A": "b"}}),
            ),
            (
                "Cherry Studio",
                json!({"isActive": false, "command": "x", "args": null, "name": "n"}),
                json!({"command": "x", "disabled": true}),
            ),
        ] {
            let reading = read_value(entry).expect(client);
            assert_eq!(Value::Object(reading.members), expected, "{client}");
            assert_eq!(reading.notes, Vec::<String>::new(), "{client}");
        }
    }

    /// Members of several clients in one entry, and members that say nothing, are no mistakes; what is switched off has none.
    #[test]
    fn entries_for_several_clients_are_read() {
        for (entry, expected, unused) in [
            (
                json!({"url": "https://a/", "httpUrl": "https://b/", "type": "http", "transportType": "sse"}),
                json!({"url": "https://a/", "type": "http"}),
                "`httpUrl`, `transportType` have no effect here",
            ),
            (
                json!({"transport": "sse", "server_url": "https://b/", "serverUrl": "https://a/", "timeout": 60.0}),
                json!({"url": "https://a/", "type": "sse", "timeout": 60}),
                "`server_url` has no effect here",
            ),
            (
                json!({"command": "x", "endpoint": "/mcp", "environment": "prod", "tools": [{"name": "a"}]}),
                json!({"command": "x"}),
                "`endpoint`, `environment`, `tools` have no effect here",
            ),
            (
                json!({"command": "", "url": "https://a/", "bearer_token_env_var": "", "enabled": "True", "tools": true}),
                json!({"url": "https://a/"}),
                "",
            ),
            (
                json!({"command": "x", "env": ["A=1"], "isActive": "false"}),
                json!({"disabled": true}),
                "",
            ),
        ] {
            let reading = read_value(entry).expect(unused);
            assert_eq!(Value::Object(reading.members), expected, "{unused}");
            assert_eq!(reading.notes.join("; "), unused);
            assert!(reading.tools.is_empty(), "{unused}");
        }
    }

    /// Names in the settings of Gemini CLI differ in case; earlier settings have other members.
    #[test]
    fn settings_switch_servers_off() {
        for (settings, expected) in [
            (json!({"mcp": {"excluded": [" a "]}}), ["A"].as_slice()),
            (json!({"mcp": {"allowed": ["B"]}}), &["A"]),
            (json!({"excludeMCPServers": ["b"]}), &["b"]),
            (json!({"allowMCPServers": []}), &["A", "b"]),
            (json!({"mcp": {}}), &[]),
        ] {
            let mut servers = Map::from_iter(["A", "b"].map(|name| (name.to_owned(), json!({}))));
            switch_off(&mut servers, settings.as_object().expect("an object"));
            let off = servers
                .iter()
                .filter(|(_, entry)| entry["disabled"] == true);
            let off: Vec<&str> = off.map(|(name, _)| name.as_str()).collect();
            assert_eq!(off, expected, "{settings}");
        }
    }

    /// Lists of tools have the keys of their clients.
    #[test]
    fn lists_of_tools_are_read() {
        for (entry, expected) in [
            (
                json!({"includeTools": ["a", "b"], "excludeTools": ["b"]}),
                "not b (`excludeTools`); only a, b (`includeTools`)",
            ),
            (
                json!({"enabled_tools": [], "disabled_tools": ["c"]}),
                "not c (`disabled_tools`); none (`enabled_tools`)",
            ),
            (json!({"disabledTools": ["a"]}), "not a (`disabledTools`)"),
            (json!({"tools": ["*"]}), "only * (`tools`)"),
            (
                json!({"tools": {"a": {"enabled": false}, "b": {"description": "x"}, "c": true}}),
                "not a (`tools`)",
            ),
        ] {
            let reading = read_value(entry).expect(expected);
            assert_eq!(reading.tools.to_string(), expected);
        }
    }

    /// What has no effect is named once; what is wrong is an error that names the member.
    #[test]
    fn unused_members_are_named() {
        let entry = json!({"command": "x", "type": "http", "autoApprove": ["a"], "alwaysAllow": [], "envFile": ".env", "timeout": 60000});
        let notes = read_value(entry).expect("an entry").notes;
        assert_eq!(
            notes,
            [
                "`timeout` is 60000 seconds here; if milliseconds are meant, write 60",
                "`autoApprove`, `envFile`, `type` have no effect here"
            ]
        );
        let entry = json!({"command": "x", "env": {"A": "$B_1", "C": "{env:D}", "E": "$5", "F": "${G}", "H": "Bearer $I", "J": "${env:K}"}});
        assert_eq!(
            read_value(entry).expect("an entry").notes,
            [
                "`env.A` is a text here; for the value of a variable, write `${NAME}`",
                "`env.C` is a text here; for the value of a variable, write `${NAME}`",
                "`env.H` is a text here; for the value of a variable, write `${NAME}`"
            ]
        );
        for (entry, expected) in [
            (
                json!({"command": "x", "url": "y"}),
                "the entry has `command` and `url`; remove one of them",
            ),
            (json!({"command": []}), "`command` is empty"),
            (json!({"args": "a"}), "`args` must be a list of strings"),
            (
                json!({"env": ["A=1"]}),
                "`env` must be an object of strings",
            ),
            (json!({"env": {"A": []}}), "`env.A` must be a string"),
            (json!({"enabled": 2}), "`enabled` must be true or false"),
            (
                json!({"tools": "a"}),
                "`tools` must be a list of names, or an object of tools by name",
            ),
            (
                json!({"disabledTools": "a"}),
                "`disabledTools` must be a list of strings",
            ),
            (
                json!({"tools": {"a": 1}}),
                "`tools.a` must be true or false",
            ),
        ] {
            assert_eq!(read_value(entry).err().as_deref(), Some(expected));
        }
    }
}
