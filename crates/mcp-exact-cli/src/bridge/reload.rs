//! Reloads the configuration while `mcp-exact bridge` runs: when the file changes, and on SIGHUP.

use std::path::PathBuf;
use std::sync::{Arc, PoisonError};
use std::time::Duration;

use mcp_exact_bridge::{Bridge, ServerUpdate, Update, Upstream};

use super::config::{Config, ConfiguredServer, LeftOut};
use super::log::Stderr;
use super::losses::Losses;
use super::operations::NamesLeftOut;
use super::setup::{Setup, create_rules, format_servers};
#[cfg(feature = "oauth")]
use super::users::UserServers;
use crate::text::{Untrusted, text};

/// Interval at which the configuration file is read.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);

/// Reloader that watches a configuration file and updates the bridge. If the file is invalid, the bridge keeps its
/// configuration.
pub struct ConfigReloader {
    /// Path of the configuration file.
    path: PathBuf,
    /// Bridge to update.
    bridge: Bridge,
    /// Standard error.
    stderr: Stderr,
    /// Configuration with which the process was started.
    config: Config,
    /// Servers that the bridge currently uses.
    servers: Vec<ConfiguredServer>,
    /// Names of the servers that are left out.
    left_out: NamesLeftOut,
    /// Path of the lock file that the file names, if it names one.
    lock: Option<PathBuf>,
    /// True if what is remembered of silent servers is ignored.
    probes: bool,
    /// Credentials of users; `None` if the process was started without.
    #[cfg(feature = "oauth")]
    users: Option<UserServers>,
    /// Policy for losses of the command line, which overrides that of the file.
    losses: Option<Losses>,
}

impl ConfigReloader {
    /// Creates the reloader of the configuration file; `None` without a file.
    pub fn new(
        setup: &Setup<'_>,
        bridge: &Bridge,
        stderr: &Stderr,
        left_out: &NamesLeftOut,
    ) -> Option<Self> {
        Some(Self {
            path: setup.arguments.config.clone()?,
            bridge: bridge.clone(),
            stderr: stderr.clone(),
            config: setup.config.clone(),
            servers: setup.servers.clone(),
            left_out: Arc::clone(left_out),
            lock: setup.config.pins.as_ref().map(|pins| pins.file.clone()),
            probes: setup.arguments.settings.probes(),
            #[cfg(feature = "oauth")]
            users: setup.users.clone(),
            losses: setup.arguments.losses,
        })
    }

    /// Reloads the file whenever it changes and on SIGHUP, until the task is cancelled.
    pub async fn watch(mut self, mut hangup: HangupSignal) {
        // A change since the start counts, too.
        let mut known = Some(self.with_lock(self.config.text.clone()));
        let mut before = known.clone();
        loop {
            tokio::select! {
                () = tokio::time::sleep(CHECK_INTERVAL) => {
                    let now = self.read_text();
                    // A file that is being replaced may be missing or incomplete for a moment: two reads have to agree.
                    let is_written = now == before;
                    before.clone_from(&now);
                    if now.is_none() || now == known || !is_written {
                        continue;
                    }
                    known = now;
                }
                () = hangup.received() => known = self.read_text(),
            }
            let lock = self.lock.clone();
            let words = self.reload().await.unwrap_or_else(|error| {
                format!("the configuration was not reloaded, nothing has changed: {error:#}")
            });
            if lock != self.lock {
                // Another lock file is no change of the text, and is watched even if it could not be read.
                known = self.read_text();
                before.clone_from(&known);
            }
            self.stderr.line(&text!("{}", Untrusted(&words)));
        }
    }

    /// Reads the text of the file and of its lock file; `None` if the file cannot be read.
    fn read_text(&self) -> Option<String> {
        let text = std::fs::read_to_string(&self.path).ok()?;
        Some(self.with_lock(text))
    }

    /// Appends the text of the lock file. A lock file that is missing is told by the reload, and read once it is there.
    fn with_lock(&self, mut text: String) -> String {
        if let Some(Ok(lock)) = self.lock.as_ref().map(std::fs::read_to_string) {
            text.push_str(&lock);
        }
        text
    }

    /// Reads the file and updates the bridge; returns a message for the user.
    async fn reload(&mut self) -> anyhow::Result<String> {
        let (config, servers) = Config::read(&self.path)?;
        self.lock = config.pins.as_ref().map(|pins| pins.file.clone());
        // Clients keep a server whose new entry has a mistake.
        let is_served = |left_out: &&LeftOut| {
            let mut servers = self.servers.iter();
            servers.any(|server| server.name == left_out.name)
        };
        if let Some(left_out) = config.left_out.iter().find(is_served) {
            anyhow::bail!("{}: {left_out}", self.path.display());
        }
        let restart = config.needs_restart(&self.config);
        let changes = servers.iter().map(|server| {
            let known = self.servers.iter().find(|known| known.name == server.name);
            let change = match known {
                Some(known) if known.is_same(server) => ServerUpdate::Keep,
                _ => ServerUpdate::Connect(self.upstream_of(server)?),
            };
            Ok((server.name.clone(), change))
        });
        let is_new = |server: &&ConfiguredServer| {
            let mut known = self.servers.iter();
            !known.any(|known| known.is_same(server))
        };
        let new: Vec<_> = servers.iter().filter(is_new).cloned().collect();
        let mut update = Update::default();
        update.servers = Some(changes.collect::<anyhow::Result<_>>()?);
        update.rules = Some(create_rules(&config, self.losses)?);
        self.bridge.update(update).await?;
        config.warn(&new);
        *self.left_out.lock().unwrap_or_else(PoisonError::into_inner) =
            config.left_out.iter().map(LeftOut::name).collect();
        self.servers = servers;
        let mut words = format!(
            "the configuration was reloaded, {}",
            format_servers(&self.bridge, &config.left_out)
        );
        if !restart.is_empty() {
            words.push_str("; these settings change with the next start: ");
            words.push_str(&restart.join(", "));
        }
        Ok(words)
    }
}

impl ConfigReloader {
    /// Returns a server of the file as an upstream of the bridge.
    fn upstream_of(&self, server: &ConfiguredServer) -> anyhow::Result<Arc<dyn Upstream>> {
        if !server.is_of_users() {
            return Ok(server.upstream(self.probes));
        }
        #[cfg(feature = "oauth")]
        if let Some(users) = &self.users {
            return users.upstream_of(server);
        }
        anyhow::bail!(
            "server {:?}: `auth = \"user\"` needs [auth] with a `client-id`, which takes effect with the next start",
            server.name
        )
    }
}

/// Receiver of SIGHUP, on systems that have this signal.
pub struct HangupSignal {
    /// Stream of SIGHUP signals; `None` if the signal cannot be received.
    #[cfg(unix)]
    signal: Option<tokio::signal::unix::Signal>,
}

impl HangupSignal {
    /// Creates the receiver; a signal counts from this call on.
    pub fn new() -> Self {
        Self {
            #[cfg(unix)]
            signal: tokio::signal::unix::signal(tokio::signal::unix::SignalKind::hangup()).ok(),
        }
    }

    /// Waits for the next signal; waits forever on systems without SIGHUP.
    async fn received(&mut self) {
        #[cfg(unix)]
        if let Some(signal) = &mut self.signal
            && signal.recv().await.is_some()
        {
            return;
        }
        std::future::pending().await
    }
}
