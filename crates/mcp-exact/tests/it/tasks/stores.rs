//! Consistency of tasks with their store: a record is saved before the client is informed.

use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use mcp_exact::{
    Call, Cx, DirectoryTaskStore, Error, FromCall, MemoryTaskStore, Result, Server, TaskExchange,
    TaskMessage, TaskRecord, TaskStore, TaskStoreError, Tasks, Tool,
};
use tokio::sync::{Notify, Semaphore};

use super::restart::Folder;
use super::{Confirm, client, create_task, get_task, object, poll_until, text};

/// Future of an operation of the store.
type StoreFuture<'a, T> = Pin<Box<dyn Future<Output = Result<T, TaskStoreError>> + Send + 'a>>;

/// Store in memory that delays writes until the test permits them.
#[derive(Clone)]
struct GatedStore(Arc<StoreGate>);

/// State of a [`GatedStore`], shared by its clones.
struct StoreGate {
    /// Store that contains the records.
    store: MemoryTaskStore,
    /// Returns true for records whose writes are delayed.
    is_closed: fn(&TaskRecord) -> bool,
    /// Notified when a delayed write starts.
    write_started: Notify,
    /// Permits, one for each delayed write.
    opened: Semaphore,
    /// Number of saved records.
    saved_records: AtomicUsize,
}

impl GatedStore {
    /// Creates a store that delays the writes of the records for which `waits` returns true.
    fn new(waits: fn(&TaskRecord) -> bool) -> Self {
        Self(Arc::new(StoreGate {
            store: MemoryTaskStore::default(),
            is_closed: waits,
            write_started: Notify::new(),
            opened: Semaphore::new(0),
            saved_records: AtomicUsize::new(0),
        }))
    }

    /// Creates a server with this store and at most one running task.
    fn server(&self) -> Server {
        let tasks = Tasks::new().store(self.clone()).limit(1);
        Server::builder("test", "1.0.0")
            .tasks(tasks.poll_interval(Duration::from_millis(10)))
            .tool(Tool::new("ok").task(), || async { "done" })
            .tool(Tool::new("forever").task(), std::future::pending::<()>)
            .build()
            .expect("a server")
    }
}

impl TaskStore for GatedStore {
    fn save(&self, record: TaskRecord) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            if (self.0.is_closed)(&record) {
                self.0.write_started.notify_one();
                drop(self.0.opened.acquire().await);
            }
            self.0.store.save(record).await?;
            self.0.saved_records.fetch_add(1, Ordering::SeqCst);
            Ok(())
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<TaskRecord>> {
        self.0.store.load(id)
    }

    fn take_unfinished(&self) -> StoreFuture<'_, Vec<TaskRecord>> {
        self.0.store.take_unfinished()
    }
}

/// Store in memory that fails in several ways, and that another process seems to use.
#[derive(Clone, Default)]
struct FailingStore(Arc<Failures>);

/// State of a [`FailingStore`], shared by its clones.
#[derive(Default)]
struct Failures {
    store: MemoryTaskStore,
    /// True while no operation on records ends.
    hangs: AtomicBool,
    /// Messages of the other process.
    received: Mutex<Vec<TaskMessage>>,
    /// Number of messages that the store still refuses to take.
    refused: AtomicUsize,
    /// Messages that the store has taken.
    sent: Mutex<Vec<TaskMessage>>,
    /// Notified with each of them.
    was_sent: Notify,
}

impl FailingStore {
    /// Waits for ever if operations hang.
    async fn work(&self) {
        if self.0.hangs.load(Ordering::SeqCst) {
            std::future::pending().await
        }
    }

    /// Creates a server with this store.
    fn server(&self) -> Server {
        Server::builder("test", "1.0.0")
            .tasks(Tasks::new().store(self.clone()))
            .tool(Tool::new("forever").task(), std::future::pending::<()>)
            .build()
            .expect("a server")
    }
}

impl TaskStore for FailingStore {
    fn save(&self, record: TaskRecord) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            self.work().await;
            self.0.store.save(record).await
        })
    }

    fn load<'a>(&'a self, id: &'a str) -> StoreFuture<'a, Option<TaskRecord>> {
        Box::pin(async move {
            self.work().await;
            self.0.store.load(id).await
        })
    }

    fn take_unfinished(&self) -> StoreFuture<'_, Vec<TaskRecord>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn send(&self, message: TaskMessage) -> StoreFuture<'_, ()> {
        Box::pin(async move {
            let left = |left: usize| left.checked_sub(1);
            let refused = &self.0.refused;
            let is_refused = refused.fetch_update(Ordering::SeqCst, Ordering::SeqCst, left);
            if is_refused.is_ok() {
                return Err(TaskStoreError::Unavailable("it is down".into()));
            }
            self.0.sent.lock().expect("a lock").push(message);
            self.0.was_sent.notify_one();
            Ok(())
        })
    }

    fn receive(&self) -> StoreFuture<'_, Vec<TaskMessage>> {
        let received = std::mem::take(&mut *self.0.received.lock().expect("a lock"));
        Box::pin(async { Ok(received) })
    }

    fn exchange(&self) -> Option<TaskExchange> {
        Some(TaskExchange {
            messages: Duration::from_millis(100),
            takeover: Duration::from_secs(3600),
        })
    }
}

/// A store that never answers is one that is not available: each request ends, and says so.
#[tokio::test(start_paused = true)]
async fn requests_end_while_the_store_hangs() {
    let store = FailingStore::default();
    let client = client(&store.server()).await;
    let task = create_task(&client, "forever").await;
    store.0.hangs.store(true, Ordering::SeqCst);
    let params = object(r#"{"name":"forever","arguments":{}}"#);
    let created = client.request("tools/call", Some(params)).await;
    let error = created.expect_err("no task").to_string();
    assert!(error.contains("it has not answered in time"), "{error}");
    store.0.hangs.store(false, Ordering::SeqCst);
    assert_eq!(text(&get_task(&client, &task).await, "status"), "working");
}

/// A message for a task that is not here yet is sent back until the store takes it.
#[tokio::test(start_paused = true)]
async fn messages_wait_for_the_store() {
    let store = FailingStore::default();
    let client = client(&store.server()).await;
    create_task(&client, "forever").await;
    store.0.refused.store(3, Ordering::SeqCst);
    let messages = ["first", "second"].map(|task| {
        let message = object(&format!(r#"{{"task":"{task}","kind":"cancel"}}"#));
        message.parse::<TaskMessage>().expect("a message")
    });
    *store.0.received.lock().expect("a lock") = messages.to_vec();
    for _ in &messages {
        store.0.was_sent.notified().await;
    }
    assert_eq!(*store.0.sent.lock().expect("a lock"), messages);
}

/// A record is saved before the client is informed of its content ([`TaskStore`]).
#[tokio::test]
async fn task_ends_are_saved_before_notification() {
    let store = GatedStore::new(TaskRecord::is_finished);
    let client = client(&store.server()).await;
    let task = create_task(&client, "ok").await;
    store.0.write_started.notified().await;
    assert_eq!(text(&get_task(&client, &task).await, "status"), "working");
    store.0.opened.add_permits(1);
    poll_until(&client, &task, "completed").await;
}

/// The limit of tasks includes tasks that are being created.
#[tokio::test]
async fn task_slots_are_reserved_before_saving() {
    let store = GatedStore::new(|record| !record.is_finished());
    let client = client(&store.server()).await;
    let first = client.clone();
    let first = tokio::spawn(async move { create_task(&first, "forever").await });
    store.0.write_started.notified().await;
    let params = object(r#"{"name":"forever","arguments":{}}"#);
    tokio::select! {
        second = client.request("tools/call", Some(params)) => {
            let error = second.expect_err("one place").to_string();
            assert!(error.contains("1 tasks are running already"), "{error}");
        }
        () = store.0.write_started.notified() => panic!("two tasks have one place"),
    }
    store.0.opened.add_permits(1);
    first.await.expect("a task");
}

/// A call that is cancelled while its task is being saved leaves no unfinished task.
#[tokio::test]
async fn cancelled_calls_leave_no_unfinished_task() {
    let store = GatedStore::new(|record| !record.is_finished());
    let client = client(&store.server()).await;
    let calling = client.clone();
    let call = tokio::spawn(async move { create_task(&calling, "forever").await });
    store.0.write_started.notified().await;
    call.abort();
    call.await.expect_err("it was aborted");
    // The response arrives after the server has handled the cancellation.
    client.tools().all().await.expect("tools");
    store.0.opened.add_permits(1);
    while store.0.saved_records.load(Ordering::SeqCst) < 2 {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    assert!(store.take_unfinished().await.expect("records").is_empty());
}

/// True if the server of [`PanickingExtractor`] was restarted.
static IS_RESUMED: AtomicBool = AtomicBool::new(false);

/// Extractor that panics in resumed calls.
struct PanickingExtractor;

impl FromCall for PanickingExtractor {
    fn from_call(_: &Call) -> Result<Self, Error> {
        assert!(!IS_RESUMED.load(Ordering::SeqCst), "it has no headers");
        Ok(Self)
    }
}

/// A panicking extractor ends its task, but does not prevent the start of the server.
#[tokio::test]
async fn panics_of_extractors_end_resumed_tasks() {
    let folder = Folder::new("extractor");
    let process = || {
        let store = DirectoryTaskStore::open(&folder.0).expect("a store");
        Server::builder("test", "1.0.0")
            .tasks(Tasks::new().store(store))
            .tool(
                Tool::new("ask").task(),
                |_: PanickingExtractor, cx: Cx| async move {
                    cx.elicit::<Confirm>("Sure?").await?;
                    Ok::<_, Error>("done")
                },
            )
            .build()
            .expect("a server")
    };
    let task = {
        let client = client(&process()).await;
        let task = create_task(&client, "ask").await;
        poll_until(&client, &task, "input_required").await;
        task
    };
    IS_RESUMED.store(true, Ordering::SeqCst);
    let next = process();
    assert_eq!(next.resume_tasks().await.expect("a store"), 1);
    poll_until(&client(&next).await, &task, "failed").await;
}

/// Files of expired tasks are removed while the store is used, and files of unfinished writes when the store is opened.
#[tokio::test]
async fn expired_task_files_are_removed() -> Result {
    let folder = Folder::new("sweep");
    let store = DirectoryTaskStore::open(&folder.0)?;
    let record = |id: &str, lifetime: &str| {
        let text = format!(
            r#"{{"id":"{id}","created":1,"updated":1{lifetime},"origin":{{"tool":"ok","params":{{}},"revision":"2026-07-28","capabilities":{{}}}},"record":{{"v":"1","q":[]}}}}"#
        );
        object(&text).parse::<TaskRecord>().expect("a record")
    };
    store.save(record("0a", r#","lifetime":1"#)).await?;
    let expired = folder.0.join("0a.json");
    assert!(expired.exists());
    for _ in 0..256 {
        store.save(record("0b", "")).await?;
    }
    assert!(!expired.exists() && folder.0.join("0b.json").exists());
    let (old, new) = (folder.0.join("0c.1.new"), folder.0.join("0c.2.new"));
    std::fs::write(&new, "")?;
    let two_hours = Duration::from_secs(7200);
    let written = std::fs::File::create(&old)?;
    written.set_modified(std::time::SystemTime::now() - two_hours)?;
    DirectoryTaskStore::open(&folder.0)?;
    assert!(!old.exists() && new.exists());
    Ok(())
}

/// A task that has ended keeps nothing of its call: a cancelled one drops its params.
#[tokio::test]
async fn ended_tasks_drop_their_params() -> Result {
    let folder = Folder::new("params");
    let store = DirectoryTaskStore::open(&folder.0)?;
    let server = Server::builder("test", "1.0.0")
        .tasks(
            Tasks::new()
                .store(store)
                .poll_interval(Duration::from_millis(10)),
        )
        .tool(Tool::new("forever").task(), |_: Call| {
            std::future::pending::<()>()
        })
        .build()?;
    let client = client(&server).await;
    let params = object(&format!(
        r#"{{"name":"forever","arguments":{{"x":"{}"}}}}"#,
        "x".repeat(100_000)
    ));
    let task = client.request("tools/call", Some(params)).await?;
    let file = folder.0.join(format!("{}.json", text(&task, "taskId")));
    assert!(
        std::fs::metadata(&file)?.len() > 100_000,
        "the handler may run again"
    );
    client
        .request("tasks/cancel", Some(super::params_of(&task)))
        .await?;
    poll_until(&client, &task, "cancelled").await;
    assert!(std::fs::metadata(&file)?.len() < 2_000);
    Ok(())
}
