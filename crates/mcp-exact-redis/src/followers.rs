//! Reads the streams of other processes that clients of this process follow: one blocking read for all streams, on a
//! separate connection.
//!
//! If a client follows a further stream, the read is interrupted (`CLIENT UNBLOCK`) and restarted with this stream.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use redis::aio::MultiplexedConnection;
use redis::{RedisResult, Value};
use tokio::sync::{Notify, oneshot};
use tokio::time::{sleep, timeout};

use crate::connection::SharedConnection;
use crate::process::lock;

/// Maximum time that a read blocks.
const BLOCK_TIMEOUT: Duration = Duration::from_secs(1);

/// Interval at which the interruption of a blocking read is retried.
const UNBLOCK_INTERVAL: Duration = Duration::from_millis(10);

/// Readers that wait for further events of a stream.
struct WaitingReaders {
    /// Lowest sequence number after which a reader waits for an event.
    after: u64,
    /// Channels that notify the readers of the stream.
    readers: Vec<oneshot::Sender<()>>,
}

/// Readers in this process that wait for events of streams of other processes.
pub(crate) struct Followers {
    /// Shared connection, which interrupts the blocking read.
    shared: Arc<SharedConnection>,
    /// Waiting readers, by the key of the stream.
    waiting: Mutex<HashMap<String, WaitingReaders>>,
    /// Notifies the reading task of a further reader.
    added: Notify,
}

impl Followers {
    /// Starts the task that reads the streams, which ends when the followers are dropped.
    pub(crate) fn start(shared: &Arc<SharedConnection>) -> Arc<Self> {
        let followers = Arc::new(Self {
            shared: Arc::clone(shared),
            waiting: Mutex::default(),
            added: Notify::new(),
        });
        let weak = Arc::downgrade(&followers);
        tokio::spawn(async move {
            let mut connection = None;
            while let Some(followers) = weak.upgrade() {
                if followers.streams().is_empty() {
                    let _ = timeout(BLOCK_TIMEOUT, followers.added.notified()).await;
                    continue;
                }
                if followers.read(&mut connection).await.is_err() {
                    connection = None;
                    drop(followers);
                    sleep(BLOCK_TIMEOUT / 4).await;
                }
            }
        });
        followers
    }

    /// Waits until the stream may have an event after a sequence number.
    pub(crate) async fn wait(&self, key: String, after: u64) {
        let (sender, receiver) = oneshot::channel();
        {
            let mut waiting = lock(&self.waiting);
            let stream = waiting.entry(key).or_insert_with(|| WaitingReaders {
                after,
                readers: Vec::new(),
            });
            stream.after = stream.after.min(after);
            stream.readers.push(sender);
        }
        self.added.notify_one();
        let _ = receiver.await;
    }

    /// Returns the keys of the streams that readers wait for, with the sequence numbers to read after; removes streams
    /// without readers.
    fn streams(&self) -> Vec<(String, u64)> {
        let mut waiting = lock(&self.waiting);
        waiting.retain(|_, stream| {
            stream.readers.retain(|reader| !reader.is_closed());
            !stream.readers.is_empty()
        });
        let streams = waiting
            .iter()
            .map(|(key, stream)| (key.clone(), stream.after));
        streams.collect()
    }

    /// Notifies the readers of a stream.
    fn wake(&self, key: &str) {
        let stream = lock(&self.waiting).remove(key);
        for reader in stream.into_iter().flat_map(|stream| stream.readers) {
            let _ = reader.send(());
        }
    }

    /// Runs one blocking read, until a stream has an event or a further reader waits. `connection` is the separate
    /// connection with its client id.
    async fn read(&self, connection: &mut Option<(MultiplexedConnection, u64)>) -> Result<(), ()> {
        let (reader, id) = match connection {
            Some(open) => open,
            None => {
                let mut reader = self.shared.open_dedicated().await.map_err(drop)?;
                let mut command = redis::cmd("CLIENT");
                let asked = command.arg("ID").query_async(&mut reader);
                let id = timeout(BLOCK_TIMEOUT, asked)
                    .await
                    .map_err(drop)?
                    .map_err(drop)?;
                connection.insert((reader, id))
            }
        };
        let streams = self.streams();
        let milliseconds = u64::try_from(BLOCK_TIMEOUT.as_millis()).unwrap_or(1000);
        let mut command = redis::cmd("XREAD");
        command
            .arg("COUNT")
            .arg(1)
            .arg("BLOCK")
            .arg(milliseconds)
            .arg("STREAMS");
        for (key, _) in &streams {
            command.arg(key);
        }
        for (_, after) in &streams {
            command.arg(format!("{after}-0"));
        }
        let reading = async { timeout(BLOCK_TIMEOUT * 3, command.query_async(reader)).await };
        let interrupt = async {
            self.added.notified().await;
            let mut unblock = redis::cmd("CLIENT");
            unblock.arg("UNBLOCK").arg(*id);
            // The read may not have reached Redis yet. Without the permission, it ends slightly later by its own timeout.
            while let Ok(false) = self.shared.command::<bool>(&unblock).await {
                sleep(UNBLOCK_INTERVAL).await;
            }
            std::future::pending::<()>().await;
        };
        let read: Result<RedisResult<Value>, _> = tokio::select! {
            read = reading => read,
            () = interrupt => return Ok(()),
        };
        let found = match read.map_err(drop)? {
            Ok(found) => found,
            // A cluster can read streams together only if they belong to one session. All readers read again after some
            // time in any case.
            Err(error) if error.code().is_some() => {
                tracing::debug!(%error, "streams cannot be followed together");
                sleep(BLOCK_TIMEOUT).await;
                return Ok(());
            }
            Err(_) => return Err(()),
        };
        for key in keys_of(&found) {
            self.wake(&key);
        }
        Ok(())
    }
}

/// Returns the keys of the streams in an `XREAD` reply.
fn keys_of(reply: &Value) -> Vec<String> {
    let Value::Array(streams) = reply else {
        return Vec::new();
    };
    let names = streams.iter().filter_map(|stream| match stream {
        Value::Array(parts) => match parts.first() {
            Some(Value::BulkString(name)) => String::from_utf8(name.clone()).ok(),
            _ => None,
        },
        _ => None,
    });
    names.collect()
}
