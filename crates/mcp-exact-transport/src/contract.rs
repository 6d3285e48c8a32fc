//! Test suites that every implementation of `EventLog`, `SessionStore` and `ChangeBus` must pass.
//!
//! Each function tests a new, empty implementation and panics with the rule that the implementation violates. The
//! functions need no particular async runtime.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use mcp_exact_session::Change;

use crate::event_log::{EventLog, EventLogError, LogEvent, LogStream};
use crate::store::{
    BusMessage, ChangeBus, Lineage, SessionRecord, SessionStore, SessionStoreError,
};

/// Creates the key of the stream with the number `stream` in a session.
fn stream(session: &str, stream: u64) -> LogStream {
    LogStream {
        session: session.into(),
        stream,
    }
}

/// Creates an event; `last` is true if the event ends its stream.
fn event(sequence: u64, data: &str, last: bool) -> LogEvent {
    LogEvent {
        sequence,
        data: Bytes::copy_from_slice(data.as_bytes()),
        last,
    }
}

/// Appends an event to the stream `to`, and panics if the log rejects the event.
async fn append(log: &dyn EventLog, to: &LogStream, sequence: u64, data: &str) {
    let appended = log.append(to, vec![event(sequence, data, false)]).await;
    assert!(
        appended.is_ok(),
        "event {sequence} was refused: {appended:?}"
    );
}

/// Returns the numbers and data of the events of the stream `of` after the event number `after`.
async fn read(log: &dyn EventLog, of: &LogStream, after: u64) -> Vec<(u64, String)> {
    let events = log.read_after(of, after, usize::MAX).await;
    let events = events.unwrap_or_else(|error| panic!("reading after {after} failed: {error}"));
    let text = |event: &LogEvent| String::from_utf8_lossy(&event.data).into_owned();
    events
        .iter()
        .map(|event| (event.sequence, text(event)))
        .collect()
}

/// Tests an event log.
///
/// # Panics
/// Panics with the rule that the log violates.
pub async fn event_log(log: &dyn EventLog) {
    let (first, second) = (stream("s-1", 1), stream("s-1", 2));
    let other = stream("s-2", 1);
    let unknown = log.read_after(&first, 0, usize::MAX).await;
    assert!(
        matches!(unknown, Err(EventLogError::UnknownStream)),
        "a stream without events must be unknown"
    );
    append(log, &first, 1, "a").await;
    let together = vec![event(2, "b", false), event(3, "c", false)];
    let appended = log.append(&first, together).await;
    assert!(
        appended.is_ok(),
        "several events were refused: {appended:?}"
    );
    append(log, &second, 1, "second").await;
    append(log, &other, 1, "other").await;
    let all = [
        (1, "a".to_owned()),
        (2, "b".to_owned()),
        (3, "c".to_owned()),
    ];
    assert_eq!(
        read(log, &first, 0).await,
        all,
        "events must be kept in order"
    );
    assert_eq!(
        read(log, &first, 1).await,
        all[1..],
        "only later events are read"
    );
    assert_eq!(
        read(log, &first, 3).await,
        [],
        "nothing is behind the last event"
    );
    let short = log.read_after(&first, 0, 1).await;
    assert!(
        short.is_ok_and(|events| events.len() == 1),
        "a limit that no event fits has to give one event"
    );
    // The append is repeated, as after an interrupted call.
    append(log, &first, 3, "repeated").await;
    assert_eq!(
        read(log, &first, 2).await,
        all[2..],
        "a known event must be ignored"
    );
    let end = log.append(&first, vec![event(4, "end", true)]).await;
    assert!(end.is_ok(), "the last event was refused");
    let ends = log.read_after(&first, 3, usize::MAX).await;
    assert!(
        ends.is_ok_and(|events| events == [event(4, "end", true)]),
        "the end of a stream must be kept"
    );
    check_trimming(log, &first).await;
    check_removal(log, &second, &other).await;
}

/// Tests that the first events of a stream can be removed, and that a client that has missed them gets an error.
async fn check_trimming(log: &dyn EventLog, first: &LogStream) {
    let trimmed = log.trim(first, 2).await;
    assert!(trimmed.is_ok(), "trimming failed");
    let gone = log.read_after(first, 1, usize::MAX).await;
    assert!(
        matches!(gone, Err(EventLogError::Trimmed { first: 3 })),
        "reading behind a trimmed event has to fail"
    );
    assert_eq!(
        read(log, first, 2).await.len(),
        2,
        "trimming has to keep later events"
    );
    assert!(
        log.trim(first, 100).await.is_ok(),
        "trimming everything failed"
    );
    assert_eq!(
        read(log, first, 4).await,
        [],
        "a trimmed stream stays known"
    );
    append(log, first, 1 << 40, "after").await;
    let after = [(1 << 40, "after".to_owned())];
    assert_eq!(
        read(log, first, 4).await,
        after,
        "a process that resumes skips numbers"
    );
    assert_eq!(
        read(log, first, 5).await,
        after,
        "numbers between two events are valid"
    );
}

/// Tests trimming and removal of a stream that was created with two events, of which the second is the last.
async fn check_trimming_of_complete_stream(log: &dyn EventLog, complete: &LogStream) {
    assert!(log.trim(complete, 1).await.is_ok(), "trimming failed");
    let gone = log.read_after(complete, 0, usize::MAX).await;
    assert!(
        matches!(gone, Err(EventLogError::Trimmed { first: 2 })),
        "reading behind a trimmed event has to fail: {gone:?}"
    );
    let kept = log.read_after(complete, 1, usize::MAX).await;
    assert!(
        kept.is_ok_and(|kept| kept == [event(2, "end", true)]),
        "trimming has to keep later events"
    );
    assert!(log.trim(complete, 100).await.is_ok(), "trimming failed");
    assert_eq!(
        read(log, complete, 2).await,
        [],
        "a trimmed stream stays known"
    );
    let removed = log.remove_session(&complete.session).await;
    assert!(removed.is_ok(), "removing failed");
    let gone = log.read_after(complete, 2, usize::MAX).await;
    assert!(
        matches!(gone, Err(EventLogError::UnknownStream)),
        "streams of a removed session must be unknown: {gone:?}"
    );
}

/// Tests that the removal of a session removes its streams and keeps the streams of other sessions.
async fn check_removal(log: &dyn EventLog, second: &LogStream, other: &LogStream) {
    assert!(log.remove_session("s-1").await.is_ok(), "removing failed");
    assert!(
        log.remove_session("s-1").await.is_ok(),
        "removing twice must be allowed"
    );
    let gone = log.read_after(second, 0, usize::MAX).await;
    assert!(
        matches!(gone, Err(EventLogError::UnknownStream)),
        "streams of a removed session must be unknown"
    );
    assert_eq!(
        read(log, other, 0).await.len(),
        1,
        "other sessions have to stay"
    );
}

/// Tests an event log whose streams another process can continue: last wills, abandoned streams and waiting readers.
///
/// # Panics
///
/// Panics with the rule that the log violates.
pub async fn shared_event_log(log: &dyn EventLog) {
    let (call, standalone) = (stream("s-1", 1), stream("s-1", 2));
    let will = Bytes::from_static(b"lost");
    let begun = log.begin(&call, Some(will.clone()), Vec::new()).await;
    assert!(begun.is_ok(), "a stream was refused: {begun:?}");
    assert!(log.begin(&standalone, None, Vec::new()).await.is_ok());
    assert_eq!(
        read(log, &call, 0).await,
        [],
        "a stream is known once it has begun"
    );
    append(log, &call, 1, "a").await;
    append(log, &standalone, 1, "b").await;
    assert!(
        log.wait_after(&call, 0).await.is_ok(),
        "an event is there at once"
    );

    assert!(log.abandon(&call).await.is_ok(), "abandoning failed");
    assert!(
        log.abandon(&call).await.is_ok(),
        "abandoning twice must be allowed"
    );
    assert!(
        log.wait_after(&call, 1).await.is_ok(),
        "the last will is an event"
    );
    let last = log.read_after(&call, 1, usize::MAX).await;
    let last = last.unwrap_or_else(|error| panic!("reading the last will failed: {error}"));
    assert!(
        matches!(&last[..], [last] if last.data == will && last.last && last.sequence > 1),
        "the last will of an abandoned stream must be its last event, once: {last:?}"
    );
    let fenced = log.append(&call, vec![event(2, "late", true)]).await;
    assert!(
        matches!(fenced, Err(EventLogError::Fenced)),
        "nothing follows a last will: {fenced:?}"
    );

    assert!(log.abandon(&standalone).await.is_ok(), "abandoning failed");
    assert_eq!(read(log, &standalone, 0).await.len(), 1, "events stay");
    let abandoned = log.read_after(&standalone, 1, usize::MAX).await;
    assert!(
        matches!(abandoned, Err(EventLogError::Abandoned)),
        "an abandoned stream without a last will has no end: {abandoned:?}"
    );

    let done = stream("s-1", 3);
    let begun = log.begin(&done, Some(will.clone()), Vec::new()).await;
    assert!(begun.is_ok(), "a stream was refused: {begun:?}");
    let end = log.append(&done, vec![event(1, "end", true)]).await;
    assert!(end.is_ok(), "the last event was refused");
    assert!(log.abandon(&done).await.is_ok(), "abandoning failed");
    assert_eq!(
        read(log, &done, 0).await.len(),
        1,
        "a stream that has ended has no last will"
    );
    check_first_events(log, &will).await;
}

/// Tests streams that are created with events: the last will must follow these events, because the client may have
/// received any of them.
async fn check_first_events(log: &dyn EventLog, will: &Bytes) {
    let (open, whole) = (stream("s-1", 4), stream("s-1", 5));
    let first = vec![event(1, "a", false), event(2, "b", false)];
    let begun = log.begin(&open, Some(will.clone()), first.clone()).await;
    assert!(begun.is_ok(), "a stream with events was refused: {begun:?}");
    let again = [&first[..], &[event(3, "c", false)]].concat();
    let appended = log.append(&open, again).await;
    assert!(appended.is_ok(), "more events were refused: {appended:?}");
    for known in 0..=3 {
        let missed = read(log, &open, known).await;
        let numbers: Vec<u64> = missed.iter().map(|(number, _)| *number).collect();
        let expected: Vec<u64> = (known + 1..=3).collect();
        assert_eq!(numbers, expected, "a client resumes after any event");
    }
    assert!(log.abandon(&open).await.is_ok(), "abandoning failed");
    let last = log.read_after(&open, 3, usize::MAX).await;
    assert!(
        last.is_ok_and(|last| matches!(&last[..], [last] if last.data == will && last.last)),
        "the last will comes behind the first events"
    );

    let all = vec![event(1, "a", false), event(2, "end", true)];
    let begun = log.begin(&whole, Some(will.clone()), all.clone()).await;
    assert!(begun.is_ok(), "a whole stream was refused: {begun:?}");
    assert!(log.abandon(&whole).await.is_ok(), "abandoning failed");
    let found = log.read_after(&whole, 0, usize::MAX).await;
    assert!(
        found.is_ok_and(|found| found == all),
        "a stream that begins with its last event has no last will"
    );
    check_trimming_of_complete_stream(log, &whole).await;
}

/// Tests a session store. The test takes slightly more than one second.
///
/// # Panics
/// Panics with the rule that the store violates.
pub async fn session_store(store: &dyn SessionStore, sleep: impl AsyncFn(Duration)) {
    let hour = Duration::from_secs(3600);
    let record = |version: u64| SessionRecord {
        snapshot: format!("{{\"version\":{version}}}\n"),
        principal: (version != 2).then(|| "p\u{e9}ter \"x\"\n".to_owned()),
        version,
        // The third version replaces the first one; the others are made by processes that know neither.
        lineage: match version {
            1 => Lineage::default().successor(10),
            3 => Lineage::default().successor(10).successor(30),
            _ => Lineage::default().successor(90),
        },
    };
    let superseded = async |id: &str, version: u64| {
        let saved = store.save(id, record(version), hour).await;
        matches!(saved, Err(SessionStoreError::Superseded))
    };
    let load = async |id: &str| {
        let loaded = store.load(id).await;
        loaded.unwrap_or_else(|error| panic!("loading failed: {error}"))
    };
    assert_eq!(load("a").await, None, "an unknown session has no record");
    assert!(store.save("a", record(1), hour).await.is_ok());
    assert!(store.save("b", record(2), hour).await.is_ok());
    assert_eq!(
        load("a").await,
        Some(record(1)),
        "a record must be kept whole"
    );
    assert!(superseded("a", 1).await, "the same version was saved twice");
    assert!(
        superseded("a", 9).await,
        "a record was replaced that another process has saved"
    );
    assert!(store.save("a", record(3), hour).await.is_ok());
    assert!(superseded("a", 2).await, "an older version was saved");
    assert_eq!(
        load("a").await,
        Some(record(3)),
        "a record must be replaced"
    );
    assert!(
        matches!(store.remove("a", hour).await, Ok(true)),
        "removing has to say what was there"
    );
    assert!(
        matches!(store.remove("a", hour).await, Ok(false)),
        "a removed record was there again"
    );
    assert_eq!(load("a").await, None, "a removed record must be gone");
    assert!(
        superseded("a", 4).await,
        "a removed session was saved again"
    );
    assert_eq!(load("a").await, None, "a removed session was saved again");
    assert!(
        matches!(store.remove("lost", hour).await, Ok(false)),
        "a record that is not there was removed"
    );
    assert!(
        superseded("lost", 1).await,
        "a session that was removed without a record was saved again"
    );
    assert_eq!(
        load("b").await,
        Some(record(2)),
        "other records have to stay"
    );
    assert!(
        store
            .remove("d", Duration::from_secs(1))
            .await
            .is_ok_and(|was_there| !was_there)
    );
    assert!(
        store
            .save("c", record(4), Duration::from_secs(1))
            .await
            .is_ok()
    );
    sleep(Duration::from_millis(1200)).await;
    assert_eq!(load("c").await, None, "an expired record must be gone");
    let saved = store.save("c", record(5), hour).await;
    assert!(saved.is_ok(), "an expired session was refused");
    let saved = store.save("d", record(1), hour).await;
    assert!(saved.is_ok(), "the note of an ended session has to expire");
}

/// Tests a change bus. `settle` waits until published messages have arrived.
///
/// # Panics
/// Panics with the rule that the bus violates.
pub async fn change_bus(bus: &dyn ChangeBus, settle: impl AsyncFn()) {
    let seen = Arc::new(Mutex::new(Vec::new()));
    let receiver = |name: &'static str| {
        let seen = Arc::clone(&seen);
        Arc::new(move |message: &BusMessage| {
            let mut seen = seen.lock().unwrap_or_else(PoisonError::into_inner);
            seen.push((name, message.clone()));
        })
    };
    let take = || std::mem::take(&mut *seen.lock().unwrap_or_else(PoisonError::into_inner));
    let frame = BusMessage::Frame {
        session: "s".to_owned(),
        frame: b"{}".to_vec(),
        scopes: vec!["a".to_owned()],
    };
    bus.publish(frame.clone());
    settle().await;
    let first = bus.subscribe(receiver("first"));
    let second = bus.subscribe(receiver("second"));
    bus.publish(frame.clone());
    let changed = BusMessage::Changed {
        change: Change::Resource("a:b".to_owned()),
        origin: 1,
    };
    bus.publish(changed.clone());
    settle().await;
    let mut found = take();
    found.sort_by_key(|(name, _)| *name);
    let of = |name| [(name, frame.clone()), (name, changed.clone())];
    assert_eq!(
        found,
        [of("first"), of("second")].concat(),
        "every receiver gets every message, in order"
    );
    drop(second);
    bus.publish(frame.clone());
    settle().await;
    assert_eq!(
        take(),
        [("first", frame)],
        "a dropped receiver gets nothing"
    );
    drop(first);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event_log::MemoryEventLog;
    use crate::store::{MemoryChangeBus, MemorySessionStore};

    #[tokio::test]
    async fn memory_event_log_keeps_contract() {
        event_log(&MemoryEventLog::default()).await;
        shared_event_log(&MemoryEventLog::default()).await;
    }

    #[tokio::test]
    async fn memory_session_store_keeps_contract() {
        session_store(&MemorySessionStore::default(), tokio::time::sleep).await;
    }

    #[tokio::test]
    async fn memory_change_bus_keeps_contract() {
        change_bus(&MemoryChangeBus::default(), async || {}).await;
    }
}
