//! Memory between runs of servers that are silent on the probe for their revision: the first run waits for it, later ones begin
//! with `initialize`.
//!
//! A line of the file has the hash of a command or URL, the negotiated revision, and the time. Nothing in it is trusted: a
//! server that answers otherwise is probed again, and one that cannot be connected is forgotten.

use std::ffi::OsStr;
use std::hash::{DefaultHasher, Hash as _, Hasher as _};
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

#[cfg(feature = "bridge")]
use std::sync::Arc;

#[cfg(feature = "bridge")]
use mcp_exact::transport::{ClientHandle, ClientHandler};
use mcp_exact::{CachedNegotiation, NegotiationMemory};
#[cfg(feature = "bridge")]
use mcp_exact_bridge::{Connected, Prepared, Upstream, UpstreamSettings, UserAccess};
#[cfg(feature = "bridge")]
use mcp_exact_session::{ClientEvent, ClientSettings};

use super::data_folder::data_folder;

/// Time after which a server is probed again.
const MAX_AGE: Duration = Duration::from_secs(30 * 24 * 3600);
/// Number of servers that are remembered, the latest ones.
const MAX_SERVERS: usize = 256;
/// Size above which the file is none of this program.
const MAX_BYTES: u64 = 64 << 10;

/// Memory of one server in the file of all.
#[derive(Debug, Clone)]
pub struct FileMemory {
    /// The file; `None` if the system has no place for it.
    path: Option<PathBuf>,
    /// Hash of the command or URL.
    key: String,
    /// True if what is remembered is ignored.
    is_ignored: bool,
}

impl FileMemory {
    /// Creates the memory of a server: the words of its command in its folder, or its URL.
    pub fn new<'w>(
        words: impl IntoIterator<Item = &'w OsStr>,
        folder: Option<&Path>,
        is_ignored: bool,
    ) -> Self {
        let mut hasher = DefaultHasher::new();
        words.into_iter().for_each(|word| word.hash(&mut hasher));
        folder.hash(&mut hasher);
        Self {
            path: data_folder().map(|folder| folder.join("silent-servers")),
            key: format!("{:016x}", hasher.finish()),
            is_ignored,
        }
    }

    /// Returns the lines of servers that are remembered, without that of this one, and that one's revision.
    fn read(path: &Path, key: &str) -> (Vec<String>, Option<CachedNegotiation>) {
        let is_small = std::fs::metadata(path).is_ok_and(|found| found.len() <= MAX_BYTES);
        let text = is_small
            .then(|| std::fs::read_to_string(path).ok())
            .flatten();
        let (mut others, mut own) = (Vec::new(), None);
        for line in text.unwrap_or_default().lines() {
            let mut words = line.split(' ');
            let (Some(of), Some(revision), Some(time), None) =
                (words.next(), words.next(), words.next(), words.next())
            else {
                continue;
            };
            let time = time.parse().ok().map(Duration::from_secs);
            let is_fresh = time.is_some_and(|time| now().saturating_sub(time) <= MAX_AGE);
            if of != key {
                others.extend(is_fresh.then(|| line.to_owned()));
            } else if is_fresh {
                own = revision.parse().ok();
            }
        }
        (others, own)
    }

    fn write(path: &Path, key: &str, lines: &[String]) -> io::Result<()> {
        let folder = path.parent().unwrap_or(Path::new("."));
        std::fs::create_dir_all(folder)?;
        let part = folder.join(format!("silent-servers.{key}.{}", std::process::id()));
        let mut options = std::fs::OpenOptions::new();
        options.write(true).create(true).truncate(true);
        #[cfg(unix)]
        std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
        let written = options.open(&part).and_then(|mut file| {
            lines.iter().try_for_each(|line| writeln!(file, "{line}"))?;
            file.flush()
        });
        let renamed = written.and_then(|()| std::fs::rename(&part, path));
        if renamed.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        renamed
    }
}

#[cfg(feature = "bridge")]
impl FileMemory {
    /// Returns the negotiation that a connection begins with: that of the process, or what is remembered, which is forgotten until
    /// the connection has proved it.
    fn take(&self, prior: Option<&CachedNegotiation>) -> Option<CachedNegotiation> {
        prior.copied().or_else(|| {
            let known = self.load()?;
            self.store(None);
            Some(known)
        })
    }

    /// Returns a handler that remembers a negotiation in which the probe was silent.
    fn observe(&self, handler: Arc<dyn ClientHandler>) -> Arc<dyn ClientHandler> {
        let memory = self.clone();
        Arc::new(move |client: &ClientHandle, event: ClientEvent| {
            if let ClientEvent::Negotiated(_, negotiation) = &event
                && negotiation.probe_was_silent
            {
                memory.store(Some(*negotiation));
            }
            handler.handle(client, event);
        })
    }
}

impl NegotiationMemory for FileMemory {
    fn load(&self) -> Option<CachedNegotiation> {
        let path = self.path.as_deref().filter(|_| !self.is_ignored)?;
        let mut known = Self::read(path, &self.key).1?;
        known.probe_was_silent = true;
        Some(known)
    }

    fn store(&self, negotiation: Option<CachedNegotiation>) {
        let Some(path) = &self.path else { return };
        let (mut lines, own) = Self::read(path, &self.key);
        if negotiation.is_none() && own.is_none() {
            return;
        }
        lines.extend(negotiation.map(|known| format!("{} {known} {}", self.key, now().as_secs())));
        let older = lines.len().saturating_sub(MAX_SERVERS);
        // Without the file, the next run waits again.
        let _ = Self::write(path, &self.key, &lines[older..]);
    }
}

/// Returns the time since 1970.
fn now() -> Duration {
    let now = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
    now.unwrap_or_default()
}

/// Server of the gateway with its memory.
#[cfg(feature = "bridge")]
pub struct RememberedUpstream {
    pub upstream: Arc<dyn Upstream>,
    pub memory: FileMemory,
}

#[cfg(feature = "bridge")]
impl Upstream for RememberedUpstream {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        let known = self.memory.take(prior);
        let handler = self.memory.observe(handler);
        self.upstream.connect(settings, known.as_ref(), handler)
    }

    fn settings(&self) -> UpstreamSettings {
        self.upstream.settings()
    }

    fn prepare(&self) -> Option<Box<dyn Prepared>> {
        let prepared = self.upstream.prepare()?;
        let memory = self.memory.clone();
        Some(Box::new(RememberedServer { prepared, memory }))
    }

    fn users(&self) -> Option<Arc<dyn UserAccess>> {
        self.upstream.users()
    }
}

/// Server that was started in advance, with its memory.
#[cfg(feature = "bridge")]
struct RememberedServer {
    prepared: Box<dyn Prepared>,
    memory: FileMemory,
}

#[cfg(feature = "bridge")]
impl Prepared for RememberedServer {
    fn is_running(&mut self) -> bool {
        self.prepared.is_running()
    }

    fn connect(
        self: Box<Self>,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Connected {
        let known = self.memory.take(prior);
        let handler = self.memory.observe(handler);
        self.prepared.connect(settings, known.as_ref(), handler)
    }

    fn end(self: Box<Self>) -> tokio::task::JoinHandle<()> {
        self.prepared.end()
    }
}
