//! Test suites that every implementation of [`TaskStore`] must pass (feature `contract`).
//!
//! Each function tests new, empty stores and panics with the rule that the implementation violates.

use std::time::Duration;

use crate::protocol::JsonObject;
use crate::task::{MessageKind, TaskEnd, TaskMessage, TaskRecord, TaskStore, TaskStoreError};

/// Creates the record of a task of a client, which is a member of the record's origin, whose params have a size in bytes.
fn record_of(id: u64, client: &str, bytes: usize) -> TaskRecord {
    let params = "x".repeat(bytes);
    let client = if client.is_empty() {
        String::new()
    } else {
        format!(",{client}")
    };
    let text = format!(
        r#"{{"id":"{id:032x}","created":1,"updated":1,"origin":{{"tool":"ok","params":{{"x":"{params}"}},"revision":"2026-07-28","capabilities":{{}}{client}}},"record":{{"v":"1","q":[]}}}}"#
    );
    serde_json::from_str(&text).expect("a record")
}

/// Creates the record of a task that expires after a time.
fn expiring(id: u64, lifetime: Duration) -> TaskRecord {
    let record = record_of(id, "", 0);
    let mut value = serde_json::to_value(&record).expect("JSON");
    let now = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    let now = u64::try_from(now.unwrap_or_default().as_millis()).unwrap_or_default();
    value["created"] = now.into();
    value["lifetime"] = u64::try_from(lifetime.as_millis())
        .unwrap_or(u64::MAX)
        .into();
    serde_json::from_value(value).expect("a record")
}

/// Returns the record with its end.
fn finished(mut record: TaskRecord) -> TaskRecord {
    record.finish(TaskEnd::Completed(JsonObject::new()));
    record
}

async fn save(store: &dyn TaskStore, record: &TaskRecord) {
    let saved = store.save(record.clone()).await;
    assert!(saved.is_ok(), "a record was refused: {saved:?}");
}

async fn load(store: &dyn TaskStore, id: &str) -> Option<TaskRecord> {
    let found = store.load(id).await;
    found.unwrap_or_else(|error| panic!("a record was not loaded: {error}"))
}

async fn take(store: &dyn TaskStore, id: &str) -> bool {
    let taken = store.take(id).await;
    taken.unwrap_or_else(|error| panic!("a task was not taken: {error}"))
}

/// Returns the ids of the tasks that a store hands over, in order.
async fn take_unfinished(store: &dyn TaskStore) -> Vec<String> {
    let taken = store.take_unfinished().await;
    let taken = taken.unwrap_or_else(|error| panic!("tasks were not taken: {error}"));
    let mut ids: Vec<String> = taken.iter().map(|one| one.id().to_owned()).collect();
    ids.sort();
    ids
}

/// Tests a store: `restarted` returns the store of a later process, after the process of the first one has died. A store in
/// memory returns itself.
///
/// # Panics
/// Panics with the rule that the store violates.
pub async fn task_store<S: TaskStore>(store: &S, restarted: impl AsyncFnOnce() -> S) {
    let (first, second, third) = (
        record_of(1, "", 0),
        record_of(2, "", 10),
        record_of(3, "", 0),
    );
    assert_eq!(
        load(store, first.id()).await,
        None,
        "a new store is not empty"
    );
    for record in [&first, &second, &third] {
        save(store, record).await;
        let found = load(store, record.id()).await;
        assert_eq!(found.as_ref(), Some(record), "a record has changed");
        assert!(
            take(store, record.id()).await,
            "a task does not belong to its process"
        );
    }
    let end = finished(second.clone());
    save(store, &end).await;
    let found = load(store, second.id()).await;
    assert_eq!(found, Some(end.clone()), "a record was not replaced");
    for id in [
        "",
        "../1",
        "0000000000000000000000000000000g",
        &"f".repeat(32),
    ] {
        assert_eq!(load(store, id).await, None, "there is a record {id:?}");
    }
    // The time is long enough for a slow store, and short for a test.
    let short = expiring(4, Duration::from_millis(300));
    save(store, &short).await;
    while !short.is_expired() {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    assert_eq!(
        load(store, short.id()).await,
        None,
        "an expired record is there"
    );

    let next = restarted().await;
    let open = take_unfinished(&next).await;
    let expected = [first.id(), third.id()];
    assert_eq!(
        open, expected,
        "other tasks than the unfinished ones were taken"
    );
    assert_eq!(load(&next, second.id()).await, Some(end), "an end was lost");
    save(&next, &finished(first.clone())).await;
    assert!(take(&next, third.id()).await, "a task was not taken over");
}

/// Tests the limits of a store of four tasks: one client may have half of them.
///
/// # Panics
/// Panics with the rule that the store violates.
pub async fn task_limits(store: &dyn TaskStore) {
    for (id, client, is_saved) in [
        (1, r#""principal":"red""#, true),
        (2, r#""principal":"red""#, true),
        (3, r#""principal":"red""#, false),
        (2, r#""principal":"red""#, true),
        (4, r#""address":"192.0.2.1""#, true),
        (5, r#""address":"192.0.2.2""#, true),
        (6, r#""address":"192.0.2.2""#, false),
    ] {
        let saved = store.save(record_of(id, client, 0)).await;
        assert_eq!(saved.is_ok(), is_saved, "{id} {client}: {saved:?}");
        assert!(is_saved || is_refusal(&saved), "{saved:?}");
    }
    // The end of a task is always kept.
    save(store, &finished(record_of(1, r#""principal":"red""#, 0))).await;
}

/// Tests the limits of a store of 40,000 bytes, which keeps two tasks of 8,000 bytes of one client and two of another.
///
/// # Panics
/// Panics with the rule that the store violates.
pub async fn task_bytes(store: &dyn TaskStore) {
    let record = |id, client: &str| record_of(id, &format!(r#""principal":"{client}""#), 8_000);
    for (id, client, is_saved) in [
        (1, "red", true),
        (2, "red", true),
        (3, "red", false),
        (4, "blue", true),
        (5, "blue", true),
        (6, "green", false),
    ] {
        let saved = store.save(record(id, client)).await;
        assert_eq!(saved.is_ok(), is_saved, "{id} {client}: {saved:?}");
        assert!(is_saved || is_refusal(&saved), "{saved:?}");
    }
    // A task that has ended has no params any more.
    save(store, &finished(record(1, "red"))).await;
    save(store, &record(3, "red")).await;
}

/// Returns true if a store has refused a record because of its limits.
fn is_refusal(saved: &Result<(), TaskStoreError>) -> bool {
    matches!(saved, Err(TaskStoreError::Full | TaskStoreError::OverShare))
}

/// Tests two stores of two processes that share their tasks. `kill` ends the first process, and returns once the second one may
/// know.
///
/// # Panics
/// Panics with the rule that the stores violate.
pub async fn shared_task_store(
    first: &dyn TaskStore,
    second: &dyn TaskStore,
    kill: impl AsyncFnOnce(),
) {
    assert!(second.exchange().is_some(), "processes exchange nothing");
    let (task, other) = (record_of(1, "", 0), record_of(2, "", 0));
    save(first, &task).await;
    save(first, &other).await;
    let found = load(second, task.id()).await;
    assert_eq!(found.as_ref(), Some(&task), "another process has no record");
    assert!(
        !take(second, task.id()).await,
        "the task of a living process was taken"
    );
    assert_eq!(
        take_unfinished(second).await,
        [""; 0],
        "tasks of a living process were taken"
    );
    let refused = second.save(finished(task.clone())).await;
    let is_refused = matches!(refused, Err(TaskStoreError::TakenOver));
    assert!(
        is_refused,
        "the task of another process was saved: {refused:?}"
    );

    let answers = |task: &TaskRecord, text: &str| {
        let answers = JsonObject::from_iter([("key", crate::protocol::Json::string(text))]);
        TaskMessage::new(task.id(), MessageKind::Answers(answers))
    };
    let cancel = TaskMessage::new(task.id(), MessageKind::Cancel);
    let messages = [answers(&task, "a"), answers(&task, "b"), cancel];
    for message in messages.clone() {
        let sent = second.send(message).await;
        sent.unwrap_or_else(|error| panic!("a message was not sent: {error}"));
    }
    let none = second.receive().await.expect("messages");
    assert!(none.is_empty(), "another process has the messages");
    let received = first.receive().await.expect("messages");
    assert_eq!(received, messages, "messages were lost or repeated");
    assert!(
        first.receive().await.expect("messages").is_empty(),
        "messages were repeated"
    );
    save(first, &finished(task.clone())).await;
    second.send(answers(&task, "late")).await.expect("dropped");
    assert!(
        first.receive().await.expect("messages").is_empty(),
        "a task that has ended has messages"
    );

    second.send(answers(&other, "c")).await.expect("sent");
    kill().await;
    assert_eq!(
        take_unfinished(second).await,
        [other.id()],
        "a task was not taken over"
    );
    assert!(
        take(second, other.id()).await,
        "a task does not belong to its new process"
    );
    let received = second.receive().await.expect("messages");
    assert_eq!(
        received,
        [answers(&other, "c")],
        "messages were lost with their process"
    );
    let late = first.save(other.clone()).await;
    let is_refused = matches!(late, Err(TaskStoreError::TakenOver));
    assert!(is_refused, "a process that was dead has saved: {late:?}");
    save(second, &finished(other.clone())).await;
    assert_eq!(
        load(second, other.id()).await,
        Some(finished_like(second, &other).await)
    );
}

/// Returns the stored record of a task, which must be finished.
async fn finished_like(store: &dyn TaskStore, record: &TaskRecord) -> TaskRecord {
    let found = load(store, record.id()).await.expect("a record");
    assert!(found.is_finished(), "the end of a task was lost");
    found
}
