//! A session store and a change bus for processes of one machine: a directory, and a hub that passes lines on.

use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::{Duration, SystemTime};

use mcp_exact_transport::event_log::StoreFuture;
use mcp_exact_transport::store::{
    BusMessage, BusReceiver, BusSubscription, ChangeBus, SessionRecord, SessionStore,
    SessionStoreError,
};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, mpsc};

/// Session store in a directory: a file for each session.
#[derive(Debug)]
pub struct DirectoryStore {
    directory: PathBuf,
}

impl DirectoryStore {
    pub fn new(directory: &Path) -> Self {
        Self {
            directory: directory.to_owned(),
        }
    }

    fn file(&self, id: &str) -> PathBuf {
        let name: String = id.bytes().map(|byte| format!("{byte:02x}")).collect();
        self.directory.join(name)
    }

    fn write(&self, id: &str, record: &SessionRecord, lifetime: Duration) -> std::io::Result<()> {
        let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH);
        let expires = since.unwrap_or_default() + lifetime;
        let principal = record.principal.as_deref();
        let text = format!(
            "{}\n{}\n{}",
            expires.as_secs(),
            principal.map(|name| format!("={name}")).unwrap_or_default(),
            record.snapshot
        );
        // Whole or not at all, for whoever reads it.
        let file = self.file(id);
        let new = file.with_extension(std::process::id().to_string());
        std::fs::write(&new, text)?;
        std::fs::rename(new, file)
    }

    fn read(&self, id: &str) -> Option<SessionRecord> {
        let text = std::fs::read_to_string(self.file(id)).ok()?;
        let mut lines = text.splitn(3, '\n');
        let expires = Duration::from_secs(lines.next()?.parse().ok()?);
        let principal = lines.next()?.strip_prefix('=').map(str::to_owned);
        let snapshot = lines.next()?.to_owned();
        let is_live = SystemTime::UNIX_EPOCH + expires > SystemTime::now();
        is_live.then_some(SessionRecord {
            snapshot,
            principal,
        })
    }
}

impl SessionStore for DirectoryStore {
    fn save<'a>(
        &'a self,
        id: &'a str,
        record: SessionRecord,
        lifetime: Duration,
    ) -> StoreFuture<'a, (), SessionStoreError> {
        let written = self.write(id, &record, lifetime);
        let result = written.map_err(|error| SessionStoreError::Unavailable(Box::new(error)));
        Box::pin(std::future::ready(result))
    }

    fn load<'a>(
        &'a self,
        id: &'a str,
    ) -> StoreFuture<'a, Option<SessionRecord>, SessionStoreError> {
        Box::pin(std::future::ready(Ok(self.read(id))))
    }

    fn remove<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool, SessionStoreError> {
        let had = self.read(id).is_some();
        let _ = std::fs::remove_file(self.file(id));
        Box::pin(std::future::ready(Ok(had)))
    }
}

/// Passes every line that a process sends on to all of them.
pub struct Hub {
    pub address: SocketAddr,
}

impl Hub {
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let (lines, _) = broadcast::channel::<String>(1000);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (reader, mut writer) = stream.into_split();
                let (to_all, mut from_all) = (lines.clone(), lines.subscribe());
                tokio::spawn(async move {
                    let mut read = BufReader::new(reader).lines();
                    while let Ok(Some(line)) = read.next_line().await {
                        let _ = to_all.send(format!("{line}\n"));
                    }
                });
                tokio::spawn(async move {
                    while let Ok(line) = from_all.recv().await {
                        if writer.write_all(line.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address }
    }
}

/// Change bus over a hub.
pub struct HubBus {
    out: mpsc::UnboundedSender<String>,
    receivers: Arc<Mutex<Vec<(u64, BusReceiver)>>>,
}

impl HubBus {
    pub async fn connect(hub: SocketAddr) -> std::io::Result<Self> {
        let (reader, mut writer) = TcpStream::connect(hub).await?.into_split();
        let (out, mut waiting) = mpsc::unbounded_channel::<String>();
        let receivers: Arc<Mutex<Vec<(u64, BusReceiver)>>> = Arc::default();
        tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                if writer.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let all = Arc::clone(&receivers);
        tokio::spawn(async move {
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: BusMessage = line.parse().expect("a bus message");
                let receivers = all.lock().expect("unlocked").clone();
                receivers
                    .iter()
                    .for_each(|(_, receiver)| receiver(&message));
            }
        });
        Ok(Self { out, receivers })
    }
}

impl ChangeBus for HubBus {
    fn publish(&self, message: BusMessage) {
        let _ = self.out.send(format!("{message}\n"));
    }

    fn subscribe(&self, receiver: BusReceiver) -> BusSubscription {
        let mut receivers = self.receivers.lock().expect("unlocked");
        let number = receivers.last().map_or(0, |(last, _)| last + 1);
        receivers.push((number, receiver));
        let all = Arc::downgrade(&self.receivers);
        BusSubscription::new(move || {
            if let Some(all) = all.upgrade() {
                let mut all = all.lock().expect("unlocked");
                all.retain(|(known, _)| *known != number);
            }
        })
    }
}
