//! An entry of a configuration file: how a client starts a server or where the server is, whatever the client calls it.

use std::collections::BTreeMap;

use mcp_exact::{EntryReading, ToolFilter, URL_MEMBERS, read_entry};
use serde_json::{Map, Value};

use super::clients::KnownClient;
use crate::server_address::{ConnectionSettings, Given};

/// Address of a configured server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Address {
    /// Words of the command that starts the server.
    Command(Vec<String>),
    Url(String),
}

/// Entry of a server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    pub address: Address,
    /// Variables for the environment of the process.
    pub env: BTreeMap<String, String>,
    /// Names and patterns of variables that the process inherits; here, it inherits all.
    pub inherited: Vec<String>,
    /// Headers of each request.
    pub headers: BTreeMap<String, String>,
    /// Folder of the process.
    pub folder: Option<String>,
    /// Members that switch the server off; `None` if it is on.
    pub disabled_by: Option<&'static str>,
    /// Tools that are switched on.
    pub tools: ToolFilter,
    /// Settings of the connection.
    pub connection: ConnectionSettings,
    /// What the client does not read as it is written, with what to write.
    pub notes: Vec<String>,
}

impl Entry {
    /// Reads an entry.
    ///
    /// # Errors
    /// Returns what is wrong with the entry, and what to write.
    pub fn read(value: &Value, client: &KnownClient) -> Result<Self, String> {
        let Value::Object(members) = value else {
            return Err("the entry must be an object".to_owned());
        };
        let EntryReading {
            members: read,
            tools,
            notes: _,
        } = read_entry(members.clone())?;
        let mut notes = Vec::new();
        let address = match (read.get("command"), read.get("url")) {
            (Some(command), _) => {
                let args = list(&read, "args");
                Address::Command(text(command).chain(args).collect())
            }
            (None, Some(url)) => {
                let found = URL_MEMBERS.iter().find(|name| members.contains_key(**name));
                if let Some(name) = found {
                    note_url_member(name, client, &mut notes);
                }
                Address::Url(text(url).collect())
            }
            (None, None) => return Err("the entry needs `command` or a URL".to_owned()),
        };
        note_type(members, &address, client, &mut notes);
        if members.contains_key("envFile") {
            notes.push("the variables of `envFile` are not read here".to_owned());
        }
        Ok(Self {
            address,
            env: strings(&read, "env"),
            inherited: list(&read, "inherit-env"),
            headers: strings(&read, "headers"),
            folder: read.get("cwd").and_then(Value::as_str).map(str::to_owned),
            disabled_by: read
                .contains_key("disabled")
                .then(|| disabling_member(members, client)),
            tools,
            connection: connection_settings(&read, client),
            notes,
        })
    }

    /// Returns the entry without what the command line gives in its place.
    pub fn without(mut self, given: Given<'_>) -> Self {
        for assignment in given.env {
            let name = assignment.split('=').next().unwrap_or_default();
            self.env.remove(name);
        }
        for header in given.headers {
            let name = header.split(':').next().unwrap_or_default().trim();
            self.headers
                .retain(|own, _| !own.eq_ignore_ascii_case(name));
        }
        self
    }

    /// Replaces variables in all values of the entry by those of its `env`, and by what `lookup` returns.
    ///
    /// # Errors
    /// Returns the reason why a variable has no value, and the option that gives one.
    pub fn expand(&self, lookup: &dyn Fn(&str) -> Option<String>) -> Result<Self, String> {
        let all = |values: &BTreeMap<String, String>,
                   of: &dyn Fn(&str) -> ValueOf,
                   lookup: &dyn Fn(&str) -> Option<String>| {
            let values = values.iter();
            values
                .map(|(name, value)| Ok((name.clone(), expand(value, &of(name), lookup)?)))
                .collect::<Result<BTreeMap<_, _>, String>>()
        };
        let for_env = |name: &str| {
            let own = self.env.get(name).filter(|own| !own.contains("${"));
            lookup(name).or_else(|| own.cloned())
        };
        let of_variable = |name: &str| ValueOf::Variable(name.to_owned());
        let env = all(&self.env, &of_variable, &for_env)?;
        let with_env = |name: &str| env.get(name).cloned().or_else(|| lookup(name));
        let other = |text: &str| expand(text, &ValueOf::Other, &with_env);
        let address = match &self.address {
            Address::Command(words) => {
                let words = words.iter().map(|word| other(word));
                Address::Command(words.collect::<Result<_, _>>()?)
            }
            Address::Url(url) => Address::Url(other(url)?),
        };
        let of_header = |name: &str| ValueOf::Header(name.to_owned());
        let headers = all(&self.headers, &of_header, &with_env)?;
        let folder = self.folder.as_deref();
        let file = |path: &Option<String>| path.as_deref().map(other).transpose();
        Ok(Self {
            address,
            headers,
            folder: folder.map(other).transpose()?,
            env: env.clone(),
            inherited: self.inherited.clone(),
            disabled_by: self.disabled_by,
            tools: self.tools.clone(),
            connection: ConnectionSettings {
                ca: file(&self.connection.ca)?,
                client_cert: file(&self.connection.client_cert)?,
                client_key: file(&self.connection.client_key)?,
                ..self.connection.clone()
            },
            notes: self.notes.clone(),
        })
    }
}

/// Returns the settings of the connection in an entry.
fn connection_settings(members: &Map<String, Value>, client: &KnownClient) -> ConnectionSettings {
    let text = |name: &str| members.get(name).and_then(Value::as_str).map(str::to_owned);
    let timeout = members.get("timeout").and_then(Value::as_u64);
    ConnectionSettings {
        revision: text("revision"),
        timeout: timeout
            .filter(|&limit| limit > 0)
            .map(|limit| limit.div_ceil(client.timeouts_per_second)),
        ca: text("ca"),
        client_cert: text("client-cert"),
        client_key: text("client-key"),
    }
}

/// Returns the text of a member, which the reading has made one.
fn text(value: &Value) -> impl Iterator<Item = String> {
    value.as_str().map(str::to_owned).into_iter()
}

fn list(members: &Map<String, Value>, name: &str) -> Vec<String> {
    let items = members.get(name).and_then(Value::as_array);
    items.into_iter().flatten().flat_map(text).collect()
}

fn strings(members: &Map<String, Value>, name: &str) -> BTreeMap<String, String> {
    let values = members.get(name).and_then(Value::as_object);
    let values = values.into_iter().flatten();
    values
        .flat_map(|(name, value)| text(value).map(|value| (name.clone(), value)))
        .collect()
}

/// Returns the member that switches a server off, in backquotes for an error text.
fn disabling_member(members: &Map<String, Value>, client: &KnownClient) -> &'static str {
    let is = |name: &str, value: bool| members.get(name) == Some(&Value::Bool(value));
    match client.id {
        // The lists were read into the entry.
        "gemini" if is("disabled", true) => "`disabled`, `mcp.excluded` or `mcp.allowed`",
        _ if is("disabled", true) => "`disabled`",
        _ if is("enabled", false) => "`enabled`",
        _ => "`isActive`",
    }
}

/// Notes a URL under a name that the client does not read.
fn note_url_member(name: &str, client: &KnownClient, notes: &mut Vec<String>) {
    let Some(own) = client.url else {
        let name = client.name;
        return notes.push(format!(
            "{name} reads no URLs from this file; put a command there, such as `mcp-exact bridge URL`"
        ));
    };
    if name != own && name != "url" {
        notes.push(format!(
            "{} does not read `{name}`; write `{own}`",
            client.name
        ));
    }
}

/// Notes a `type` that the client does not know, or that does not fit the rest of the entry.
fn note_type(
    members: &Map<String, Value>,
    address: &Address,
    client: &KnownClient,
    notes: &mut Vec<String>,
) {
    let found = ["type", "transport", "transportType"];
    let found = found
        .iter()
        .find_map(|name| Some((*name, members.get(*name)?.as_str()?)));
    let (expected, own) = match address {
        Address::Command(_) => (&["stdio"][..], client.stdio_type),
        Address::Url(_) => (
            &["http", "sse", "streamable-http", "streamableHttp"][..],
            client.http_type,
        ),
    };
    match (found, own) {
        (Some((name, kind)), own) => {
            let is_own = own == Some(kind) || kind == "sse";
            if !expected.contains(&kind) || (own.is_some() && !is_own) || name != "type" {
                let remedy = own.unwrap_or(expected[0]);
                notes.push(format!(
                    "{} does not read `\"{name}\": \"{kind}\"`; write `\"type\": \"{remedy}\"`",
                    client.name
                ));
            }
        }
        (None, Some(own)) if matches!(address, Address::Url(_)) => {
            notes.push(format!("{} needs `\"type\": \"{own}\"`", client.name));
        }
        (None, _) => {}
    }
}

/// What a value of an entry is.
#[derive(Debug)]
enum ValueOf {
    /// Value of a variable of the process.
    Variable(String),
    Header(String),
    /// A word of the command, a URL or a folder.
    Other,
}

impl ValueOf {
    /// Returns how the command line gives the value.
    fn remedy(&self) -> String {
        match self {
            Self::Variable(name) => format!("give it here by --env {name}=…"),
            Self::Header(name) => format!("give it here by --header '{name}: …'"),
            Self::Other => {
                "write the whole command or URL here, in the place of the name".to_owned()
            }
        }
    }
}

/// Replaces `${env:NAME}`, `${NAME}`, `${NAME:-default}` and `${workspaceFolder}` by values; `${userHome}` too.
fn expand(
    text: &str,
    value_of: &ValueOf,
    lookup: &dyn Fn(&str) -> Option<String>,
) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        let Some(length) = rest[start..].find('}') else {
            break;
        };
        let inside = &rest[start + 2..start + length];
        out.push_str(&rest[..start]);
        rest = &rest[start + length + 1..];
        if let Some(input) = inside.strip_prefix("input:") {
            return Err(format!(
                "the client asks for `{input}` when it starts the server; {}",
                value_of.remedy()
            ));
        }
        let (name, default) = match inside.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inside, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        let value = lookup(name).or_else(|| default.map(str::to_owned));
        let Some(value) = value else {
            return Err(format!(
                "the variable `{name}` is not set in the environment; set it, or {}",
                value_of.remedy()
            ));
        };
        out.push_str(&value);
    }
    out.push_str(rest);
    Ok(out)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn read(client: &str, value: Value) -> Result<Entry, String> {
        Entry::read(&value, KnownClient::parse(client).expect("a client"))
    }

    /// Gemini CLI counts milliseconds, and other clients seconds.
    #[test]
    fn timeouts_are_in_the_unit_of_their_client() {
        for (client, timeout, expected) in [
            ("gemini", json!(1500), Some(2)),
            ("gemini", json!(600_000), Some(600)),
            ("cursor", json!(1500), Some(1500)),
            ("cursor", json!(0), None),
        ] {
            let entry = read(client, json!({"command": "x", "timeout": timeout}));
            let connection = entry.expect("an entry").connection;
            assert_eq!(connection.timeout, expected, "{client} {timeout}");
        }
    }

    /// The forms of all clients are understood; what the client of the file itself does not read is noted.
    #[test]
    fn entries_of_all_clients_are_read() {
        let url = |text: &str| Address::Url(text.to_owned());
        let command = |words: &[&str]| {
            Address::Command(words.iter().map(|word| (*word).to_owned()).collect())
        };
        for (client, value, address, notes) in [
            (
                "cursor",
                json!({"command": "npx", "args": ["-y", "x", 1]}),
                command(&["npx", "-y", "x", "1"]),
                0,
            ),
            (
                "zed",
                json!({"command": {"path": "x", "args": ["a"]}, "settings": {}}),
                command(&["x", "a"]),
                0,
            ),
            (
                "zed",
                json!({"command": ["x", "a"]}),
                command(&["x", "a"]),
                0,
            ),
            (
                "gemini",
                json!({"httpUrl": "https://a/mcp"}),
                url("https://a/mcp"),
                0,
            ),
            (
                "windsurf",
                json!({"serverUrl": "https://a/mcp"}),
                url("https://a/mcp"),
                0,
            ),
            (
                "cursor",
                json!({"httpUrl": "https://a/mcp"}),
                url("https://a/mcp"),
                1,
            ),
            (
                "vscode",
                json!({"url": "https://a/mcp", "type": "http"}),
                url("https://a/mcp"),
                0,
            ),
            (
                "vscode",
                json!({"url": "https://a/mcp", "type": "streamable_http"}),
                url("https://a/mcp"),
                1,
            ),
            (
                "vscode",
                json!({"url": "https://a/mcp", "type": "streamable-http"}),
                url("https://a/mcp"),
                1,
            ),
            (
                "claude-code",
                json!({"url": "https://a/mcp"}),
                url("https://a/mcp"),
                1,
            ),
            (
                "claude-code",
                json!({"url": "https://a/sse", "type": "sse"}),
                url("https://a/sse"),
                0,
            ),
            (
                "claude-desktop",
                json!({"url": "https://a/mcp"}),
                url("https://a/mcp"),
                1,
            ),
            (
                "claude-desktop",
                json!({"command": "x", "type": "http"}),
                command(&["x"]),
                1,
            ),
            (
                "codex",
                json!({"url": "https://a/mcp"}),
                url("https://a/mcp"),
                0,
            ),
        ] {
            let entry = read(client, value.clone()).expect("an entry");
            assert_eq!(entry.address, address, "{value}");
            assert_eq!(entry.notes.len(), notes, "{value}: {:?}", entry.notes);
        }
    }

    /// What cannot be an entry is refused, by the member that is wrong.
    #[test]
    fn other_entries_are_refused() {
        for (value, expected) in [
            (json!("x"), "must be an object"),
            (json!({}), "needs `command` or a URL"),
            (json!({"command": "x", "url": "y"}), "`command` and `url`"),
            (json!({"command": ""}), "needs `command` or a URL"),
            (
                json!({"command": "x", "args": "a"}),
                "`args` must be a list",
            ),
            (
                json!({"command": "x", "env": ["A=1"]}),
                "`env` must be an object",
            ),
            (json!({"url": {}}), "`url` must be a string"),
        ] {
            let error = read("cursor", value).expect_err(expected);
            assert!(error.contains(expected), "{error}");
        }
    }

    /// Variables that a process inherits may have no value, and patterns stand for several.
    #[test]
    fn inherited_variables_may_be_unset() {
        let value =
            json!({"command": "x", "inherit-env": ["WANTED_*", "GONE"], "env": {"OWN": "1"}});
        let entry = read("cursor", value).expect("an entry");
        let entry = entry.expand(&|_| None).expect("values");
        assert_eq!(entry.env.into_keys().collect::<Vec<_>>(), ["OWN"]);
        assert_eq!(entry.inherited, ["WANTED_*", "GONE"]);
    }

    /// Variables come from the environment; one without a value, and one that a client asks for, are named.
    #[test]
    fn variables_are_replaced() {
        let value = json!({"url": "https://${HOST:-localhost}/${env:PATH_OF}", "type": "http",
            "bearer_token_env_var": "TOKEN", "env_http_headers": {"X-Team": "TEAM"}});
        let lookup = |name: &str| {
            ["PATH_OF", "TOKEN", "TEAM"]
                .contains(&name)
                .then(|| name.to_lowercase())
        };
        let entry = read("codex", value)
            .expect("an entry")
            .expand(&lookup)
            .expect("values");
        assert_eq!(
            entry.address,
            Address::Url("https://localhost/path_of".to_owned())
        );
        let headers: Vec<_> = entry.headers.into_iter().collect();
        let expected = [("Authorization", "Bearer token"), ("X-Team", "team")];
        assert_eq!(
            headers,
            expected.map(|(name, value)| (name.to_owned(), value.to_owned()))
        );
        for (text, expected) in [
            ("${input:key}", "asks for `key`"),
            ("${GONE}", "`GONE` is not set"),
        ] {
            for (of, remedy) in [
                (ValueOf::Variable("K".to_owned()), "by --env K=…"),
                (ValueOf::Header("X-K".to_owned()), "by --header 'X-K: …'"),
                (ValueOf::Other, "in the place of the name"),
            ] {
                let error = expand(text, &of, &lookup).expect_err(text);
                assert!(error.contains(expected), "{error}");
                assert!(error.ends_with(remedy), "{error}");
            }
        }
        let plain = expand("a $b ${c", &ValueOf::Other, &lookup);
        assert_eq!(plain.as_deref(), Ok("a $b ${c"));
    }
}
