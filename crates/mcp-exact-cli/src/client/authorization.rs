//! Authorization at servers that require it: client registration, sign-in of the user, and storage of tokens.
//!
//! Opens the system browser, or prints the URL and reads the URL of the redirect. Requires the feature `oauth`.

#[cfg(unix)]
use std::path::PathBuf;

#[cfg(unix)]
use anyhow::Context;
use clap::Args;
#[cfg(unix)]
use mcp_exact::auth::client::FileStore;
use mcp_exact::auth::client::{Browser, Headless, OAuth, open_browser};

use super::answer::tell;

/// Environment variable with the secret of a registered client, because other users can see command-line arguments.
const SECRET: &str = "MCP_EXACT_CLIENT_SECRET";

/// Authorization of the program. Nothing is asked before a server demands it.
#[derive(Debug, Clone, Args)]
pub struct Authorization {
    /// Do not open a browser: print the URL to sign in at, and read the URL that the browser ends at.
    #[arg(long)]
    headless: bool,
    /// The id that this program is registered with, instead of registering it. The variable MCP_EXACT_CLIENT_SECRET holds its
    /// secret, if it has one.
    #[arg(long, value_name = "ID", requires = "issuer")]
    client_id: Option<String>,
    /// The authorization server to use, if the server names several.
    #[arg(long, value_name = "URL")]
    issuer: Option<String>,
    /// Ask for a scope, besides those that the server names.
    #[arg(long, value_name = "SCOPE")]
    scope: Vec<String>,
    /// Keep no token after this command.
    #[arg(long)]
    forget: bool,
}

impl Authorization {
    /// Returns the OAuth options.
    pub fn oauth(&self) -> anyhow::Result<OAuth> {
        let oauth = match (&self.client_id, &self.issuer) {
            (Some(id), Some(issuer)) => {
                let oauth = OAuth::registered(issuer, id);
                match std::env::var(SECRET) {
                    Ok(secret) => oauth.secret(secret),
                    Err(_) => oauth,
                }
            }
            (_, Some(issuer)) => OAuth::new("mcp-exact").issuer(issuer),
            (_, None) => OAuth::new("mcp-exact"),
        };
        let oauth = if self.headless {
            oauth.user_agent(Headless::terminal())
        } else {
            oauth.user_agent(Browser::default().open_with(|url| {
                tell(&format!("Sign in at {url}"));
                open_browser(url).map_err(|error| format!("{error}; or add --headless"))
            }))
        };
        let oauth = oauth.scopes(&self.scope);
        if self.forget {
            Ok(oauth)
        } else {
            stored(oauth)
        }
    }
}

#[cfg(unix)]
fn stored(oauth: OAuth) -> anyhow::Result<OAuth> {
    Ok(oauth.store(FileStore::new(tokens()?)))
}

#[cfg(not(unix))]
fn stored(oauth: OAuth) -> anyhow::Result<OAuth> {
    Ok(oauth)
}

/// Returns the folder for tokens (XDG Base Directory Specification).
#[cfg(unix)]
fn tokens() -> anyhow::Result<PathBuf> {
    let set = |name: &str| std::env::var_os(name).filter(|value| !value.is_empty());
    let data = set("XDG_DATA_HOME").map(PathBuf::from);
    let data = data.or_else(|| set("HOME").map(|home| PathBuf::from(home).join(".local/share")));
    let data = data.context("the variable HOME is not set; add --forget to keep no token")?;
    Ok(data.join("mcp-exact/tokens"))
}
