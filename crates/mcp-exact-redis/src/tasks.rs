//! Task store on Redis, with which any process answers requests about the tasks of all processes.
//!
//! A task is a hash: its record, and the process that runs it. Only the owner saves the record of a task, as long as its
//! lease shows that it lives; then another process takes over the task. Messages for a task wait in a list until its
//! owner asks for them.

use std::collections::{BTreeSet, HashMap};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, LazyLock, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use mcp_exact::{TaskExchange, TaskMessage, TaskRecord, TaskStore, TaskStoreError};
use redis::{Script, ScriptInvocation};

use crate::connection::{CommandError, SharedConnection};
use crate::keys::Keys;
use crate::process::Process;

/// Future of an operation of the store.
type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, TaskStoreError>> + Send + 'a>>;

/// Interval at which a process asks for messages of other processes.
const MESSAGE_INTERVAL: Duration = Duration::from_millis(500);
/// Maximum number of tasks of which one command reads the owners.
const OWNERS_PER_COMMAND: usize = 500;

/// Saves a record. Returns `saved`, `full`, `share` or `owner`.
static SAVE: LazyLock<Script> =
    LazyLock::new(|| Script::new(include_str!("scripts/task_save.lua")));

/// Changes the owner of a task if it has not changed yet. Returns 1, or 0 if it has.
static TAKE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local owner = redis.call('HGET', KEYS[1], 'owner')
        if not owner then return 0 end
        if owner == ARGV[2] then return 1 end
        if owner ~= ARGV[1] or redis.call('SISMEMBER', KEYS[2], ARGV[3]) == 0 then return 0 end
        redis.call('HSET', KEYS[1], 'owner', ARGV[2])
        return 1
        ",
    )
});

/// Appends a message to the messages of an unfinished task.
static SEND: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        if redis.call('SISMEMBER', KEYS[1], ARGV[1]) == 0 then return 0 end
        if redis.call('LLEN', KEYS[2]) >= tonumber(ARGV[3]) then return -1 end
        redis.call('RPUSH', KEYS[2], ARGV[2])
        redis.call('SADD', KEYS[3], ARGV[1])
        return 1
        ",
    )
});

/// Removes and returns the messages for the tasks of a process. If the connection breaks before the
/// reply, the messages are lost, and clients see that the task has not changed.
static RECEIVE: LazyLock<Script> = LazyLock::new(|| {
    Script::new(
        r"
        local found = {}
        for _, id in ipairs(redis.call('SMEMBERS', KEYS[1])) do
            local owner = redis.call('HGET', ARGV[2] .. id, 'owner')
            if not owner or owner == ARGV[1] then
                local list = ARGV[3] .. id
                if owner then
                    for _, message in ipairs(redis.call('LRANGE', list, 0, -1)) do
                        table.insert(found, message)
                    end
                end
                redis.call('DEL', list)
                redis.call('SREM', KEYS[1], id)
            end
        end
        return found
        ",
    )
});

/// Maximum number of messages that wait for one task.
const MAX_MESSAGES: usize = 100;

/// Store of tasks on Redis (feature `tasks`), which [`Redis::task_store`](crate::Redis::task_store) returns. One client, which is
/// a principal or the address of anonymous clients, may have half of its tasks and bytes.
///
/// ```no_run
/// # async fn example() -> mcp_exact::Result {
/// use mcp_exact::{Server, Tasks, Tool};
/// use mcp_exact_redis::{Redis, RedisOptions};
///
/// let redis = Redis::start(&RedisOptions::new("redis://127.0.0.1/"))?;
/// let server = Server::builder("reports", "1.0.0")
///     .tasks(Tasks::new().store(redis.task_store()))
///     .tool(Tool::new("report").task(), || async { "a long report" })
///     .build()?;
/// # Ok(())
/// # }
/// ```
#[derive(Clone)]
pub struct RedisTaskStore {
    connection: Arc<SharedConnection>,
    process: Arc<Process>,
    /// Name by which this store owns tasks: its process, and its number in the process, which may have several servers.
    owner: Arc<str>,
    /// Ids of tasks that this store takes over, and whose records it has not returned yet.
    taking: Arc<Mutex<BTreeSet<String>>>,
    keys: Arc<TaskKeys>,
    /// Maximum number of tasks.
    tasks: usize,
    /// Maximum size of all records, in bytes.
    bytes: usize,
}

/// Names of the keys of all tasks, which have one hash tag.
struct TaskKeys {
    /// Start of the keys of the records; the id of a task follows.
    records: String,
    /// Start of the keys of the messages; the id of a task follows.
    messages: String,
    /// Ids of the unfinished tasks.
    unfinished: String,
    /// Ids of the tasks with messages.
    addressed: String,
    /// Ids of all tasks by the time at which they expire.
    expiry: String,
    /// What each task counts: its bytes and its client.
    counted: String,
    /// Sums: number and bytes of all tasks, and of those of each client.
    sums: String,
}

impl TaskKeys {
    fn new(keys: &Keys) -> Self {
        let key = |name: &str| format!("{{{}:t}}:{name}", keys.prefix);
        Self {
            records: key("r:"),
            messages: key("m:"),
            unfinished: key("open"),
            addressed: key("mail"),
            expiry: key("expiry"),
            counted: key("counted"),
            sums: key("sums"),
        }
    }
}

impl std::fmt::Debug for RedisTaskStore {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RedisTaskStore")
            .field("tasks", &self.tasks)
            .field("bytes", &self.bytes)
            .finish_non_exhaustive()
    }
}

impl RedisTaskStore {
    pub(crate) fn new(
        connection: &Arc<SharedConnection>,
        process: &Arc<Process>,
        keys: &Keys,
    ) -> Self {
        /// Number of stores so far.
        static STORES: AtomicU64 = AtomicU64::new(0);
        let number = STORES.fetch_add(1, Ordering::Relaxed);
        Self {
            connection: Arc::clone(connection),
            process: Arc::clone(process),
            owner: format!("{}:{number}", process.id).into(),
            taking: Arc::default(),
            keys: Arc::new(TaskKeys::new(keys)),
            tasks: 10_000,
            bytes: 256 << 20,
        }
    }

    /// Sets the maximum number of tasks of all processes; the default is 10,000. Further calls do not become tasks.
    #[must_use]
    pub fn limit(mut self, tasks: usize) -> Self {
        self.tasks = tasks;
        self
    }

    /// Sets the maximum size of the params and results of all tasks, in bytes; the default is 256 MiB. Further calls do not become
    /// tasks.
    #[must_use]
    pub fn bytes(mut self, bytes: usize) -> Self {
        self.bytes = bytes;
        self
    }

    /// Returns the key of the record of a task; `None` for what is no id of a task.
    fn record_key(&self, id: &str) -> Option<String> {
        let is_id = id.len() == 32 && id.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_id.then(|| format!("{}{id}", self.keys.records))
    }

    async fn save_record(&self, record: &TaskRecord) -> Result<(), TaskStoreError> {
        let Some(key) = self.record_key(record.id()) else {
            return Err(unavailable("the id of the task is not hexadecimal"));
        };
        let text = serde_json::to_string(record).map_err(unavailable)?;
        let expires = record.expires_at().map(millis).unwrap_or_default();
        let share = |limit: usize| limit.div_ceil(2);
        let keys = &self.keys;
        let mut script = SAVE.key(key);
        script
            .key(&keys.unfinished)
            .key(&keys.expiry)
            .key(&keys.counted)
            .key(&keys.sums)
            .arg(record.id())
            .arg(text)
            .arg(&*self.owner)
            .arg(u8::from(record.is_finished()))
            .arg(expires)
            .arg(record.bytes())
            .arg(record.client_key().unwrap_or_default())
            .arg(self.tasks)
            .arg(self.bytes)
            .arg(share(self.tasks))
            .arg(share(self.bytes))
            .arg(&keys.records)
            .arg(&keys.messages);
        let saved: String = self.run(&script).await?;
        match &*saved {
            "saved" => Ok(()),
            "full" => Err(TaskStoreError::Full),
            "share" => Err(TaskStoreError::OverShare),
            _ => Err(TaskStoreError::TakenOver),
        }
    }

    async fn load_record(&self, id: &str) -> Result<Option<TaskRecord>, TaskStoreError> {
        let Some(key) = self.record_key(id) else {
            return Ok(None);
        };
        let mut command = redis::cmd("HGET");
        command.arg(key).arg("record");
        let text = self.connection.command::<Option<String>>(&command).await;
        let Some(text) = text.map_err(store_error)? else {
            return Ok(None);
        };
        match serde_json::from_str::<TaskRecord>(&text) {
            Ok(record) => Ok(Some(record).filter(|record| !record.is_expired())),
            Err(error) => {
                tracing::warn!(%error, "a record of Redis is not a task");
                Ok(None)
            }
        }
    }

    /// Takes over a task of a process that has died; returns true if the task belongs to this process.
    async fn take_from(&self, id: &str, owner: &str) -> Result<bool, TaskStoreError> {
        if owner == &*self.owner {
            return Ok(true);
        }
        let Some(key) = self.record_key(id) else {
            return Ok(false);
        };
        if !self.is_dead(owner).await? {
            return Ok(false);
        }
        let mut script = TAKE.key(key);
        script
            .key(&self.keys.unfinished)
            .arg(owner)
            .arg(&*self.owner)
            .arg(id);
        self.run(&script).await
    }

    async fn take_task(&self, id: &str) -> Result<bool, TaskStoreError> {
        let Some(key) = self.record_key(id) else {
            return Ok(false);
        };
        let mut command = redis::cmd("HGET");
        command.arg(key).arg("owner");
        let owner = self.connection.command::<Option<String>>(&command).await;
        match owner.map_err(store_error)? {
            Some(owner) => self.take_from(id, &owner).await,
            None => Ok(false),
        }
    }

    /// Returns true if the process of an owner is dead.
    async fn is_dead(&self, owner: &str) -> Result<bool, TaskStoreError> {
        let process = owner.rsplit_once(':').map_or(owner, |(process, _)| process);
        self.process.is_dead(process).await.map_err(store_error)
    }

    fn taking(&self) -> MutexGuard<'_, BTreeSet<String>> {
        self.taking.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes over the unfinished tasks of dead processes. After an error, the tasks that were taken over before it are returned.
    async fn take_all(&self) -> Result<Vec<TaskRecord>, TaskStoreError> {
        let mut taken = Vec::new();
        match self.take_into(&mut taken).await {
            Err(error) if taken.is_empty() => Err(error),
            Err(error) => {
                tracing::warn!(%error, "not all tasks of dead processes were taken over");
                Ok(taken)
            }
            Ok(()) => Ok(taken),
        }
    }

    async fn take_into(&self, taken: &mut Vec<TaskRecord>) -> Result<(), TaskStoreError> {
        let mut command = redis::cmd("SMEMBERS");
        command.arg(&self.keys.unfinished);
        let ids = self.connection.command::<Vec<String>>(&command).await;
        let ids = ids.map_err(store_error)?;
        // Most tasks belong to few processes.
        let mut is_dead: HashMap<String, bool> = HashMap::new();
        for ids in ids.chunks(OWNERS_PER_COMMAND) {
            let mut pipeline = redis::pipe();
            for id in ids {
                let key = format!("{}{id}", self.keys.records);
                pipeline.cmd("HGET").arg(key).arg("owner");
            }
            let owners = self.connection.pipeline::<Vec<Option<String>>>(&pipeline);
            let owners = owners.await.map_err(store_error)?;
            for (id, owner) in ids.iter().zip(owners) {
                let Some(owner) = owner else {
                    continue;
                };
                let is_own = owner == *self.owner;
                // A task of this store runs already, or is about to, unless an error came in between.
                let may_take = match is_dead.get(&owner) {
                    _ if is_own => self.taking().contains(id),
                    Some(dead) => *dead,
                    None => {
                        let dead = self.is_dead(&owner).await?;
                        is_dead.insert(owner.clone(), dead);
                        dead
                    }
                };
                if !may_take {
                    continue;
                }
                self.taking().insert(id.clone());
                if self.take_from(id, &owner).await? {
                    taken.extend(self.load_record(id).await?);
                }
                self.taking().remove(id);
            }
        }
        Ok(())
    }

    async fn send_message(&self, message: &TaskMessage) -> Result<(), TaskStoreError> {
        let id = message.task_id();
        if self.record_key(id).is_none() {
            return Ok(());
        }
        let text = serde_json::to_string(message).map_err(unavailable)?;
        let mut script = SEND.key(&self.keys.unfinished);
        script
            .key(format!("{}{id}", self.keys.messages))
            .key(&self.keys.addressed)
            .arg(id)
            .arg(text)
            .arg(MAX_MESSAGES);
        match self.run::<i64>(&script).await? {
            -1 => Err(unavailable(
                "too many messages wait for the task; try again",
            )),
            _ => Ok(()),
        }
    }

    async fn receive_messages(&self) -> Result<Vec<TaskMessage>, TaskStoreError> {
        let keys = &self.keys;
        let mut script = RECEIVE.key(&keys.addressed);
        script
            .arg(&*self.owner)
            .arg(&keys.records)
            .arg(&keys.messages);
        let found: Vec<String> = self.run(&script).await?;
        let decode = |text: &String| match serde_json::from_str(text) {
            Ok(message) => Some(message),
            Err(error) => {
                tracing::warn!(%error, "a message for a task is not known");
                None
            }
        };
        Ok(found.iter().filter_map(decode).collect())
    }

    /// Runs a script.
    async fn run<T: redis::FromRedisValue>(
        &self,
        script: &ScriptInvocation<'_>,
    ) -> Result<T, TaskStoreError> {
        self.connection.script(script).await.map_err(store_error)
    }
}

/// Returns the time in milliseconds since the Unix epoch.
fn millis(time: SystemTime) -> u64 {
    let time = time.duration_since(UNIX_EPOCH).unwrap_or_default();
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

fn unavailable(error: impl Into<Box<dyn std::error::Error + Send + Sync>>) -> TaskStoreError {
    TaskStoreError::Unavailable(error.into())
}

/// Returns the error for a failed command.
fn store_error(failure: CommandError) -> TaskStoreError {
    match failure {
        CommandError::Full => TaskStoreError::Full,
        CommandError::Unavailable(_) => TaskStoreError::Unavailable(failure.into()),
    }
}

impl TaskStore for RedisTaskStore {
    fn save(&self, record: TaskRecord) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.save_record(&record).await })
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<TaskRecord>> {
        Box::pin(self.load_record(id))
    }

    fn take_unfinished(&self) -> StoreFuture<'_, Vec<TaskRecord>> {
        Box::pin(self.take_all())
    }

    fn take<'a>(&'a self, id: &'a str) -> StoreFuture<'a, bool> {
        Box::pin(self.take_task(id))
    }

    fn send(&self, message: TaskMessage) -> StoreFuture<'_, ()> {
        Box::pin(async move { self.send_message(&message).await })
    }

    fn receive(&self) -> StoreFuture<'_, Vec<TaskMessage>> {
        Box::pin(self.receive_messages())
    }

    fn exchange(&self) -> Option<TaskExchange> {
        Some(TaskExchange {
            messages: MESSAGE_INTERVAL.min(self.process.lease()),
            takeover: self.process.lease(),
        })
    }
}
