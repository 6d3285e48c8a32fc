//! The clients whose configuration files the program knows: where the files are, and what the clients read in them.

use std::path::{Path, PathBuf};

/// Format of a configuration file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Format {
    /// JSON with comments and trailing commas; a client that reads plain JSON has neither in its file.
    Json,
    Toml,
}

/// Client of the Model Context Protocol with configuration files.
#[derive(Debug)]
pub struct KnownClient {
    /// Name on the command line.
    pub id: &'static str,
    /// Name of the product.
    pub name: &'static str,
    pub format: Format,
    /// Path of the user's file: `{home}` is the home directory, `{config}` the folder for settings on this system.
    user_file: &'static str,
    /// Path of the project's file, relative to the project's folder, if there is one.
    project_file: Option<&'static str>,
    /// Member of the file with the servers by name.
    pub key: &'static str,
    /// Member of an entry with the URL of a server; `None` if the client reads commands only.
    pub url: Option<&'static str>,
    /// Value of `type` in the entry of a server at a URL, if the client reads one.
    pub http_type: Option<&'static str>,
    /// Value of `type` in the entry of a command, if the client needs one.
    pub stdio_type: Option<&'static str>,
    /// Member of an entry with the headers of requests.
    pub headers: &'static str,
    /// Number of units of `timeout` in a second: some clients count milliseconds.
    pub timeouts_per_second: u64,
}

/// The known clients, by their places as their documentation names them (2026-11).
pub const CLIENTS: [KnownClient; 8] = [
    KnownClient {
        id: "claude-desktop",
        name: "Claude Desktop",
        format: Format::Json,
        user_file: "{config}/Claude/claude_desktop_config.json",
        project_file: None,
        key: "mcpServers",
        url: None,
        http_type: None,
        stdio_type: None,
        headers: "headers",
        timeouts_per_second: 1,
    },
    KnownClient {
        id: "claude-code",
        name: "Claude Code",
        format: Format::Json,
        user_file: "{home}/.claude.json",
        project_file: Some(".mcp.json"),
        key: "mcpServers",
        url: Some("url"),
        http_type: Some("http"),
        stdio_type: Some("stdio"),
        headers: "headers",
        timeouts_per_second: 1,
    },
    KnownClient {
        id: "cursor",
        name: "Cursor",
        format: Format::Json,
        user_file: "{home}/.cursor/mcp.json",
        project_file: Some(".cursor/mcp.json"),
        key: "mcpServers",
        url: Some("url"),
        http_type: None,
        stdio_type: None,
        headers: "headers",
        timeouts_per_second: 1,
    },
    KnownClient {
        id: "vscode",
        name: "VS Code",
        format: Format::Json,
        user_file: "{config}/Code/User/mcp.json",
        project_file: Some(".vscode/mcp.json"),
        key: "servers",
        url: Some("url"),
        http_type: Some("http"),
        stdio_type: Some("stdio"),
        headers: "headers",
        timeouts_per_second: 1,
    },
    KnownClient {
        id: "windsurf",
        name: "Windsurf",
        format: Format::Json,
        user_file: "{home}/.codeium/windsurf/mcp_config.json",
        project_file: None,
        key: "mcpServers",
        url: Some("serverUrl"),
        http_type: None,
        stdio_type: None,
        headers: "headers",
        timeouts_per_second: 1,
    },
    KnownClient {
        id: "codex",
        name: "Codex",
        format: Format::Toml,
        user_file: "{home}/.codex/config.toml",
        project_file: Some(".codex/config.toml"),
        key: "mcp_servers",
        url: Some("url"),
        http_type: None,
        stdio_type: None,
        headers: "http_headers",
        timeouts_per_second: 1,
    },
    KnownClient {
        id: "gemini",
        name: "Gemini CLI",
        format: Format::Json,
        user_file: "{home}/.gemini/settings.json",
        project_file: Some(".gemini/settings.json"),
        key: "mcpServers",
        url: Some("httpUrl"),
        http_type: None,
        stdio_type: None,
        headers: "headers",
        timeouts_per_second: 1_000,
    },
    KnownClient {
        id: "zed",
        name: "Zed",
        format: Format::Json,
        user_file: "{zed}/settings.json",
        project_file: Some(".zed/settings.json"),
        key: "context_servers",
        url: Some("url"),
        http_type: None,
        stdio_type: None,
        headers: "headers",
        timeouts_per_second: 1,
    },
];

/// Folders in which the files are.
#[derive(Debug, Clone)]
pub struct Folders {
    pub home: PathBuf,
    /// Folder of the settings of desktop programs.
    pub config: PathBuf,
    /// Folder of the settings of Zed, which follows another convention on macOS.
    pub zed: PathBuf,
    /// Folder of the project: the current directory.
    pub project: PathBuf,
}

impl Folders {
    /// Returns the folders of this user; `None` without a home directory.
    pub fn of_user() -> Option<Self> {
        let set = |name: &str| {
            let value = std::env::var_os(name).filter(|value| !value.is_empty());
            value.map(PathBuf::from)
        };
        let home = set("HOME").or_else(|| set("USERPROFILE"))?;
        let xdg = set("XDG_CONFIG_HOME").unwrap_or_else(|| home.join(".config"));
        let (config, zed) = if cfg!(windows) {
            let roaming = set("APPDATA").unwrap_or_else(|| home.join("AppData/Roaming"));
            (roaming.clone(), roaming.join("Zed"))
        } else if cfg!(target_os = "macos") {
            let support = home.join("Library/Application Support");
            (support, home.join(".config/zed"))
        } else {
            (xdg.clone(), xdg.join("zed"))
        };
        Some(Self {
            home,
            config,
            zed,
            project: std::env::current_dir().ok()?,
        })
    }
}

/// A place where a client is configured.
#[derive(Debug, Clone)]
pub struct Place {
    pub client: &'static KnownClient,
    pub path: PathBuf,
    /// True for the file of a project.
    pub is_project: bool,
}

impl KnownClient {
    /// Returns the client with a name on the command line.
    pub fn parse(id: &str) -> Option<&'static Self> {
        CLIENTS.iter().find(|client| client.id == id)
    }

    /// Returns the place of the user's file.
    pub fn user_place(&'static self, folders: &Folders) -> Place {
        let named = [
            ("{home}", &folders.home),
            ("{config}", &folders.config),
            ("{zed}", &folders.zed),
        ];
        let found = named.iter().find_map(|(name, folder)| {
            let rest = self.user_file.strip_prefix(name)?;
            Some(folder.join(rest.trim_start_matches('/')))
        });
        Place {
            client: self,
            path: found.unwrap_or_else(|| PathBuf::from(self.user_file)),
            is_project: false,
        }
    }

    /// Returns the place of the project's file, if the client has such files.
    pub fn project_place(&'static self, folders: &Folders) -> Option<Place> {
        Some(Place {
            client: self,
            path: folders.project.join(self.project_file?),
            is_project: true,
        })
    }
}

/// Returns all places, the project's before the user's.
pub fn all_places(folders: &Folders) -> Vec<Place> {
    let of_project = CLIENTS.iter().filter_map(|one| one.project_place(folders));
    let of_user = CLIENTS.iter().map(|one| one.user_place(folders));
    of_project.chain(of_user).collect()
}

/// Returns a path as it is shown: with `~` for the home directory, and relative to the project's folder.
pub fn shown_path(path: &Path, folders: &Folders) -> String {
    if let Ok(rest) = path.strip_prefix(&folders.project) {
        return rest.display().to_string();
    }
    match path.strip_prefix(&folders.home) {
        Ok(rest) => format!("~/{}", rest.display()),
        Err(_) => path.display().to_string(),
    }
}
