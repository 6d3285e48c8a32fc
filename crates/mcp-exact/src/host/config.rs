//! Configuration of hosts, in the formats of the `mcp.json` files of all clients, which `dialects` reads.
//!
//! The module parses the entries of a configuration and substitutes variables in their values.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use http::{HeaderName, HeaderValue};
use mcp_exact_tool_schema::ToolFilter;
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer};
use serde_json::{Map, Value};

use super::file;
use crate::client::{Client, ClientError, Connect};
use crate::dialects;
use crate::protocol::Revision;
#[cfg(feature = "tls")]
use crate::transport::http::client::CertificateFiles;
use crate::transport::http::client::{HttpEndpoint, HttpTransport, HyperOptions};
use crate::transport::http::is_protocol_header;
use crate::transport::{INHERITED_ENV, ServerCommand};

/// Error of a configuration that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ConfigFileError {
    /// The file with this path cannot be read, for this reason.
    #[error("the configuration {0:?} cannot be read: {1}")]
    Read(String, String),
    /// The file contents do not have the format of a configuration.
    #[error(
        "the configuration has another form: {0}; it needs an object `mcpServers` of servers by name"
    )]
    InvalidFormat(String),
}

/// Entry of a configuration that describes one server. It is deserialized from the members of every client that
/// [`HostBuilder::config_file`](super::HostBuilder::config_file) names.
#[derive(Clone, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct ServerEntry {
    /// Transport: `stdio` or `local`, `http` or `remote`, `streamable-http`, `sse`. By default, the transport follows from the
    /// other members.
    pub kind: Option<String>,
    /// Executable to start.
    pub command: Option<String>,
    /// Command-line arguments of the executable.
    pub args: Vec<String>,
    /// Environment variables of the process, in addition to those that it inherits.
    pub env: BTreeMap<String, String>,
    /// Names of further environment variables of the host that the process inherits; a name that ends with `*` stands for
    /// all variables that begin with the rest of it. Without them it inherits `PATH`, `HOME` and a few others
    /// ([`INHERITED_ENV`](crate::transport::INHERITED_ENV)).
    pub inherit_env: Vec<String>,
    /// Working directory of the process.
    pub cwd: Option<String>,
    /// URL of an HTTP server.
    pub url: Option<String>,
    /// Headers of every HTTP request.
    pub headers: BTreeMap<String, String>,
    /// File in PEM format with certificates that are trusted for the URL besides those of the system.
    pub ca: Option<String>,
    /// File in PEM format with the certificate that the client presents to the URL, and its intermediate certificates.
    pub client_cert: Option<String>,
    /// File in PEM format with the private key of `client_cert`.
    pub client_key: Option<String>,
    /// True if the server must not be connected: `"disabled": true`, `"enabled": false` or `"isActive": false`.
    pub disabled: bool,
    /// Tools that are switched on: all without a list such as `includeTools` or `disabledTools`.
    pub tools: ToolFilter,
    /// What of the entry has no effect here, or perhaps another one than is meant, each as a sentence that names the member.
    pub notes: Vec<String>,
    /// The only revision that is offered to the server; without it, all revisions are offered.
    pub revision: Option<String>,
    /// Time limit in seconds for the connection to the server, and for an answer of the server; progress of a tool restarts the
    /// latter, up to ten minutes in all or [`Connect::request_timeout`].
    pub timeout: Option<u64>,
    /// Maximum size of a message of the server, in bytes.
    pub message_bytes: Option<usize>,
    /// Maximum number of pages of a list of the server.
    pub max_pages: Option<usize>,
}

impl<'de> Deserialize<'de> for ServerEntry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let entry = Map::deserialize(deserializer)?;
        Self::read(entry).map_err(D::Error::custom)
    }
}

impl fmt::Debug for ServerEntry {
    /// The output omits the arguments, the values of environment variables and headers, and the URL, which may contain
    /// secrets.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServerEntry")
            .field("kind", &self.kind)
            .field("command", &self.command)
            .field("env", &self.env.keys())
            .field("headers", &self.headers.keys())
            .field("disabled", &self.disabled)
            .field("tools", &self.tools)
            .finish_non_exhaustive()
    }
}

/// Address of a configured server.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub enum ServerAddress {
    /// The server is a child process on stdio.
    Command(ServerCommand),
    /// The server is reached over HTTP.
    Http(HttpEndpoint),
}

impl ServerEntry {
    /// Reads a configuration in the form that [`HostBuilder::config_file`](super::HostBuilder::config_file) describes:
    /// servers by name, including disabled ones. An invalid entry is a [`ClientError::Config`] that names the member;
    /// the other entries are still parsed.
    ///
    /// # Errors
    /// [`ConfigFileError::InvalidFormat`] if the text does not have this form.
    pub fn parse_all(
        text: &str,
    ) -> Result<BTreeMap<String, Result<Self, ClientError>>, ConfigFileError> {
        // Editors of Windows write a byte order mark.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let root = serde_json::from_str(&file::without_comments(text))
            .map_err(|error| ConfigFileError::InvalidFormat(error.to_string()))?;
        let servers = file::servers(root).map_err(ConfigFileError::InvalidFormat)?;
        let read = |entry| {
            let read = match entry {
                Value::Object(entry) => Self::read(entry),
                _ => Err("it must be an object".to_owned()),
            };
            read.map_err(|error| ClientError::Config(format!("the entry cannot be read: {error}")))
        };
        let servers = servers.into_iter();
        Ok(servers.map(|(name, entry)| (name, read(entry))).collect())
    }

    /// Reads the members of an entry.
    fn read(entry: Map<String, Value>) -> Result<Self, String> {
        let reading = dialects::read_entry(entry)?;
        let mut members = reading.members;
        Ok(Self {
            kind: take(&mut members, "type")?,
            command: take(&mut members, "command")?,
            args: take(&mut members, "args")?,
            env: take(&mut members, "env")?,
            inherit_env: take(&mut members, "inherit-env")?,
            cwd: take(&mut members, "cwd")?,
            url: take(&mut members, "url")?,
            headers: take(&mut members, "headers")?,
            ca: take(&mut members, "ca")?,
            client_cert: take(&mut members, "client-cert")?,
            client_key: take(&mut members, "client-key")?,
            disabled: take(&mut members, "disabled")?,
            tools: reading.tools,
            notes: reading.notes,
            revision: take(&mut members, "revision")?,
            timeout: take(&mut members, "timeout")?,
            message_bytes: take(&mut members, "message-bytes")?,
            max_pages: take(&mut members, "max-pages")?,
        })
    }

    /// Returns the address of the server, with variables substituted: those of [`env`](Self::env), and of the environment.
    ///
    /// # Errors
    /// [`ClientError::Config`] if a variable is missing, or the entry names neither a command nor a URL, or both.
    pub fn address(&self) -> Result<ServerAddress, ClientError> {
        self.resolve_address(|name| std::env::var(name).ok())
    }

    /// Returns the settings of connections to the URL: proxies of the environment, and certificates of `ca`, `client_cert` and
    /// `client_key`, whose files are read once, here.
    ///
    /// # Errors
    /// [`ClientError::Config`] for a file that cannot be read or used, for one of two files that belong together, and without the
    /// feature `tls`.
    pub fn http_options(&self) -> Result<HyperOptions, ClientError> {
        let of_process = |name: &str| std::env::var(name).ok();
        self.resolve_http_options(&|name| self.variable(name, &of_process))
    }

    /// Creates the client builder for the server, with the tools that are switched on, such as for
    /// [`Host::add`](super::Host::add). It does not look at [`disabled`](Self::disabled).
    ///
    /// # Errors
    /// [`ClientError::Config`] for a member that cannot be used; the text names it.
    pub fn connect(&self) -> Result<Connect, ClientError> {
        let mut connect = match self.address()? {
            ServerAddress::Command(command) => Client::spawn(command),
            ServerAddress::Http(endpoint) => Client::http(endpoint),
        };
        if let Some(revision) = self.pinned_revision()? {
            connect = connect.revision(revision);
        }
        if let Some(limit) = self.time_limit()? {
            connect = connect.connect_timeout(limit).idle_timeout(limit);
        }
        if let Some(size) = self.message_bytes {
            connect = connect.message_bytes(size);
        }
        if let Some(pages) = self.max_pages {
            connect = connect.max_pages(pages);
        }
        Ok(connect.tool_filter(self.tools.clone()))
    }

    /// Returns the time limit for the connection to the server and for its answers; `None` for that of the host.
    ///
    /// # Errors
    /// [`ClientError::Config`] for a limit of 0.
    pub fn time_limit(&self) -> Result<Option<Duration>, ClientError> {
        match self.timeout {
            Some(0) => {
                let message = "the `timeout` is 0; write a number of seconds, or leave it out";
                Err(ClientError::Config(message.to_owned()))
            }
            limit => Ok(limit.map(Duration::from_secs)),
        }
    }

    /// Returns the only revision that is offered to the server; `None` if all of them are.
    ///
    /// # Errors
    /// [`ClientError::Config`] if the revision is not known.
    pub fn pinned_revision(&self) -> Result<Option<Revision>, ClientError> {
        let Some(id) = &self.revision else {
            return Ok(None);
        };
        let found = crate::revisions().find(|revision| revision.as_str() == id);
        let unknown = || {
            let known: Vec<_> = crate::revisions()
                .map(|revision| revision.to_string())
                .collect();
            let known = known.join(", ");
            ClientError::Config(format!(
                "the revision {id:?} is not known; use one of {known}"
            ))
        };
        found.map(Some).ok_or_else(unknown)
    }

    /// Returns the address of the server; `variable` looks up environment variables.
    fn resolve_address(
        &self,
        variable: impl Fn(&str) -> Option<String>,
    ) -> Result<ServerAddress, ClientError> {
        let of_process = variable;
        // Of `env` of a server with a URL, only what its other members name is looked at.
        let variable = |name: &str| self.variable(name, &of_process);
        let expand = |member: &str, text: &String| expand_member(member, text, variable);
        match (&self.command, &self.url) {
            (Some(_), None) if self.has_certificates() => {
                let message = "`ca`, `client-cert` and `client-key` are for servers with a `url`";
                Err(ClientError::Config(message.to_owned()))
            }
            (Some(command), None) => {
                let mut command = ServerCommand::new(expand("command", command)?);
                for (place, argument) in self.args.iter().enumerate() {
                    command = command.arg(expand(&format!("args[{place}]"), argument)?);
                }
                let inherited = INHERITED_ENV.iter().copied();
                let further = self.inherit_env.iter().map(String::as_str);
                command = command.inherit_env(inherited.chain(further));
                for (name, value) in &self.env {
                    command = command.env(name, self.expand_env(name, value, &of_process)?);
                }
                if let Some(directory) = &self.cwd {
                    command = command.directory(expand("cwd", directory)?);
                }
                Ok(ServerAddress::Command(command))
            }
            (None, Some(url)) => {
                let invalid = |error: String| ClientError::Config(error);
                let url = expand("url", url)?;
                if self.client_cert.is_some() && is_plain_http(&url) {
                    let message = "`client-cert` needs a `url` with https: a certificate is presented over TLS alone";
                    return Err(invalid(message.to_owned()));
                }
                let endpoint = HttpEndpoint::new(&url);
                let mut endpoint = endpoint.map_err(|error| invalid(error.to_string()))?;
                for (name, value) in &self.headers {
                    let member = format!("headers.{name}");
                    let wrong = |reason: String| invalid(format!("`{member}`: {reason}"));
                    let header = HeaderName::try_from(name.as_str())
                        .map_err(|error| wrong(error.to_string()))?;
                    if is_protocol_header(&header) {
                        let message = "is a header of the protocol, which the client sets itself";
                        return Err(invalid(format!(
                            "the header `{header}` {message}; remove it"
                        )));
                    }
                    let value = HeaderValue::try_from(expand(&member, value)?)
                        .map_err(|error| wrong(error.to_string()))?;
                    endpoint = endpoint.header(header, value);
                }
                if self.has_certificates() {
                    let options = self.resolve_http_options(&variable)?;
                    endpoint = endpoint.client(Arc::new(options.build()));
                }
                let endpoint = endpoint.transport(self.transport()?);
                Ok(ServerAddress::Http(endpoint))
            }
            _ => {
                let message = "a server needs either a `command` or a `url`";
                Err(ClientError::Config(message.to_owned()))
            }
        }
    }

    /// Returns a value of `env` with variables substituted: those of the environment, or else other values of `env` that have no
    /// references.
    fn expand_env(
        &self,
        name: &str,
        value: &str,
        of_process: &dyn Fn(&str) -> Option<String>,
    ) -> Result<String, ClientError> {
        expand_member(&format!("env.{name}"), value, |wanted| {
            let own = self.env.get(wanted).filter(|own| !own.contains("${"));
            of_process(wanted).or_else(|| own.cloned())
        })
    }

    /// Returns the value of a variable for the other members: that of `env`, or of the environment.
    fn variable(&self, name: &str, of_process: &dyn Fn(&str) -> Option<String>) -> Option<String> {
        let own = self.env.get(name);
        let own = own.and_then(|own| self.expand_env(name, own, of_process).ok());
        own.or_else(|| of_process(name))
    }

    /// Returns true if the entry names files of certificates.
    fn has_certificates(&self) -> bool {
        let files = [&self.ca, &self.client_cert, &self.client_key];
        files.into_iter().any(Option::is_some)
    }

    /// Returns the settings of connections; `variable` looks up environment variables.
    #[cfg(feature = "tls")]
    fn resolve_http_options(
        &self,
        variable: &dyn Fn(&str) -> Option<String>,
    ) -> Result<HyperOptions, ClientError> {
        let path = |member: &str, file: &Option<String>| match file {
            Some(file) => expand_member(member, file, variable).map(|file| Some(file.into())),
            None => Ok(None),
        };
        let files = CertificateFiles {
            ca: path("ca", &self.ca)?,
            client_cert: path("client-cert", &self.client_cert)?,
            client_key: path("client-key", &self.client_key)?,
        };
        let options = HyperOptions::default().certificate_files(&files);
        options.map_err(|error| ClientError::Config(error.to_string()))
    }

    /// Returns the settings of connections; an error for certificates, which this build cannot use.
    #[cfg(not(feature = "tls"))]
    fn resolve_http_options(
        &self,
        _: &dyn Fn(&str) -> Option<String>,
    ) -> Result<HyperOptions, ClientError> {
        if self.has_certificates() {
            let message = "`ca`, `client-cert` and `client-key` need the feature `tls`";
            return Err(ClientError::Config(message.to_owned()));
        }
        Ok(HyperOptions::default())
    }

    /// Returns the HTTP transport that the member `type` selects.
    fn transport(&self) -> Result<HttpTransport, ClientError> {
        let Some(kind) = self.kind.as_deref() else {
            return Ok(HttpTransport::Automatic);
        };
        // Clients write `streamable-http`, `streamableHttp` and `streamable_http`.
        let letters = kind.chars().filter(|letter| !matches!(letter, '-' | '_'));
        match &*letters.collect::<String>().to_ascii_lowercase() {
            "http" | "remote" => Ok(HttpTransport::Automatic),
            "streamablehttp" | "streamable" | "httpstream" => Ok(HttpTransport::Streamable),
            "sse" => Ok(HttpTransport::Sse),
            _ => {
                let message =
                    format!("the type {kind:?} has no `url`; use http, streamable-http or sse");
                Err(ClientError::Config(message))
            }
        }
    }
}

/// Substitutes environment variables for `${NAME}` and `${NAME:-default}`, as in the values of a [`ServerEntry`].
///
/// # Errors
/// [`ClientError::Config`] if a variable is missing, or a brace is not closed.
pub fn expand_variables(text: &str) -> Result<String, ClientError> {
    expand_with(text, |name| std::env::var(name).ok()).map_err(ClientError::Config)
}

/// Removes and returns a member, or the default without one.
fn take<T: DeserializeOwned + Default>(
    members: &mut Map<String, Value>,
    name: &str,
) -> Result<T, String> {
    let value = members.remove(name).map(serde_json::from_value::<T>);
    let value = value.transpose();
    value
        .map(Option::unwrap_or_default)
        .map_err(|error| format!("`{name}`: {error}"))
}

/// Substitutes variables in a member of an entry; `variable` returns the value of a variable.
fn expand_member(
    member: &str,
    text: &str,
    variable: impl Fn(&str) -> Option<String>,
) -> Result<String, ClientError> {
    let expanded = expand_with(text, variable);
    expanded.map_err(|error| ClientError::Config(format!("`{member}`: {error}")))
}

/// Substitutes variables for `${NAME}`, `${env:NAME}` and `${NAME:-default}`, and the places that editors name; `variable` returns
/// the value of a variable.
fn expand_with(text: &str, variable: impl Fn(&str) -> Option<String>) -> Result<String, String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some(start) = rest.find("${") {
        out.push_str(&rest[..start]);
        let (inner, after) = rest[start + 2..]
            .split_once('}')
            .ok_or_else(|| format!("`${{` in {text:?} has no closing brace"))?;
        let (name, default) = match inner.split_once(":-") {
            Some((name, default)) => (name, Some(default)),
            None => (inner, None),
        };
        let name = name.strip_prefix("env:").unwrap_or(name);
        if name.contains(':') && default.is_none() {
            return Err(format!(
                "`${{{inner}}}` is known to the client of this file alone; set a variable of the environment, and write `${{NAME}}`"
            ));
        }
        let value = variable(name).or_else(|| place_of_editor(name));
        let value = value.or_else(|| default.map(str::to_owned));
        out.push_str(&value.ok_or_else(|| {
            format!(
                "the environment has no variable {name:?}; set it, or write `${{{name}:-default}}`"
            )
        })?);
        rest = after;
    }
    out.push_str(rest);
    Ok(out)
}

/// Returns the value of a variable that editors set: the folder in which this process was started is that of the project.
fn place_of_editor(name: &str) -> Option<String> {
    let folder = || std::env::current_dir().ok();
    match name {
        "workspaceFolder" => folder()?.to_str().map(str::to_owned),
        "workspaceFolderBasename" => folder()?.file_name()?.to_str().map(str::to_owned),
        "userHome" => ["HOME", "USERPROFILE"]
            .into_iter()
            .find_map(|name| std::env::var(name).ok()),
        "pathSeparator" | "/" => Some(std::path::MAIN_SEPARATOR.to_string()),
        _ => None,
    }
}

/// Returns true if the scheme of a URL is `http`, so that connections to it have no TLS.
fn is_plain_http(url: &str) -> bool {
    let scheme = url.trim_start().split(':').next().unwrap_or_default();
    scheme.eq_ignore_ascii_case("http")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The servers may be the member `mcpServers` or the member `servers`.
    #[test]
    fn both_configuration_formats_are_read() {
        let file = r#"{"mcpServers":{"a":{"command":"x","args":["1"],"env":{"K":"v"}},"b":{"url":"http://h/mcp","type":"sse"}}}"#;
        let servers = ServerEntry::parse_all(file).expect("a configuration");
        let entry = |name: &str| servers[name].as_ref().expect("an entry");
        assert_eq!(entry("a").args, ["1"]);
        assert_eq!(entry("b").transport(), Ok(HttpTransport::Sse));
        assert!(
            ServerEntry::parse_all(r#"{"servers":{}}"#)
                .expect("an empty one")
                .is_empty()
        );
        let error = ServerEntry::parse_all("[]")
            .expect_err("an array")
            .to_string();
        assert!(
            error.ends_with("it needs an object `mcpServers` of servers by name"),
            "{error}"
        );
        let commented = "{ // mine\n \"mcpServers\": {\"a\": {\"enabled\": false,}, /* b */}, }";
        let servers = ServerEntry::parse_all(commented).expect("a configuration");
        assert!(servers["a"].as_ref().expect("an entry").disabled);
    }

    /// `env` of an entry has variables for its other members; an error names the member.
    #[test]
    fn variables_come_from_the_entry() {
        let address = |members: &str| {
            let file = format!(r#"{{"mcpServers":{{"a":{{{members}}}}}}}"#);
            let servers = ServerEntry::parse_all(&file).expect("a configuration");
            let entry = servers["a"].as_ref().expect("an entry");
            let of_process = |name: &str| (name == "P").then(|| "p".to_owned());
            match entry.resolve_address(of_process) {
                Ok(ServerAddress::Command(command)) => format!("{command:?}"),
                Ok(ServerAddress::Http(endpoint)) => format!("{endpoint:?}"),
                Err(error) => error.to_string(),
            }
        };
        let env = r#""env":{"X":"x","Y":"${P}y","P":"${P}+","Z":"${X}z"}"#;
        let shown = address(&format!(
            r#""url":"http://h/${{X}}/${{Y}}/${{P}}/${{Z}}",{env}"#
        ));
        assert!(shown.contains("\"/x/py/p+/xz\""), "{shown}");
        for (members, expected) in [
            (
                r#""command":"x","args":["a","${GONE}"]"#,
                "`args[1]`: the environment has no variable \"GONE\"; set it, or write `${GONE:-default}`",
            ),
            (
                r#""command":"x","env":{"A":"${A}"}"#,
                "`env.A`: the environment has no variable \"A\"; set it, or write `${A:-default}`",
            ),
            (
                r#""url":"http://h/","headers":{"B":"${input:b}"}"#,
                "`headers.B`: `${input:b}` is known to the client of this file alone; set a variable of the environment, and write `${NAME}`",
            ),
        ] {
            assert_eq!(address(members), expected);
        }
    }

    /// An entry may pin the revision of its server; an unknown revision is an error that lists the known ones.
    #[test]
    fn entries_may_pin_a_revision() {
        let pinned = |member: &str| {
            let file = format!(r#"{{"mcpServers":{{"a":{{"command":"x"{member}}}}}}}"#);
            let servers = ServerEntry::parse_all(&file).expect("a configuration");
            servers["a"].as_ref().expect("an entry").pinned_revision()
        };
        assert_eq!(pinned(""), Ok(None));
        for name in ["revision", "protocolVersion"] {
            let found = pinned(&format!(r#","{name}":"2025-06-18""#)).expect("known");
            assert_eq!(
                found.map(|revision| revision.to_string()).as_deref(),
                Some("2025-06-18")
            );
        }
        let error = pinned(r#","revision":"2025-01-01""#).expect_err("unknown");
        assert!(
            error.to_string().contains("use one of 2024-11-05, "),
            "{error}"
        );
    }

    #[test]
    fn debug_output_hides_secrets() {
        let file = r#"{"mcpServers":{"a":{"command":"x","args":["--key=s3cret"],"env":{"K":"s3cret"},"headers":{"H":"s3cret"}},"b":{"url":"https://h/?key=s3cret"}}}"#;
        for entry in ServerEntry::parse_all(file).expect("entries").values() {
            let shown = format!("{entry:?}");
            assert!(!shown.contains("s3cret"), "{shown}");
        }
    }

    /// Files of certificates belong to a URL, and to each other.
    #[test]
    fn certificates_need_their_keys() {
        let error = |members: &str| {
            let file = format!(r#"{{"mcpServers":{{"a":{{{members}}}}}}}"#);
            let servers = ServerEntry::parse_all(&file).expect("a configuration");
            let entry = servers["a"].as_ref().expect("an entry");
            entry.address().expect_err(members).to_string()
        };
        assert_eq!(
            error(r#""command":"x","clientCert":"c.pem""#),
            "`ca`, `client-cert` and `client-key` are for servers with a `url`"
        );
        assert_eq!(
            error(r#""url":"HTTP://h/","client-cert":"c.pem","client-key":"k.pem""#),
            "`client-cert` needs a `url` with https: a certificate is presented over TLS alone"
        );
        if cfg!(feature = "tls") {
            assert_eq!(
                error(r#""url":"https://h/","client-cert":"c.pem""#),
                "client-key: required besides `client-cert`"
            );
            let words = error(r#""url":"https://h/","ca":"${NO_SUCH:-/no/such}.pem""#);
            assert!(
                words.starts_with("ca \"/no/such.pem\": cannot read the file: "),
                "{words}"
            );
        }
    }

    #[test]
    fn server_entries_need_command_or_url() {
        let error = ServerEntry::default().address().expect_err("neither");
        assert_eq!(
            error.to_string(),
            "a server needs either a `command` or a `url`"
        );
    }

    #[test]
    fn environment_variables_are_expanded() {
        let variable = |name: &str| (name == "A").then(|| "1".to_owned());
        assert_eq!(
            expand_with("x${A}y${env:A}${B:-2}", variable).as_deref(),
            Ok("x1y12")
        );
        assert_eq!(
            expand_with("${B}", variable),
            Err(
                "the environment has no variable \"B\"; set it, or write `${B:-default}`"
                    .to_owned()
            )
        );
        assert!(expand_with("${A", variable).is_err());
    }
}
