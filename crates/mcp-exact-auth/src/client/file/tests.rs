//! Tests of the store in a folder: its files, and the locks of those who write.

use super::sweep::LEFTOVER_AGE;
use super::writing::{AT_A_STRETCH, PATIENCE, PAUSE, STRETCH, Turn, WRITING};
use super::*;

/// Returns the files in a folder with an extension.
fn files(folder: &Path, extension: &str) -> usize {
    let entries = std::fs::read_dir(folder).expect("a folder");
    let paths = entries.map(|entry| entry.expect("an entry").path());
    paths
        .filter(|path| path.extension().is_some_and(|known| known == extension))
        .count()
}

/// A file of an earlier version is counted as long as its key is not known, and names its key once it was read.
#[tokio::test]
async fn files_of_earlier_versions_are_counted() {
    let parent = tempfile::tempdir().expect("a folder");
    let store = FileStore::new(parent.path().join("tokens"));
    store.write("k", &Secret::new("v")).await.expect("written");
    let path = store.path_of_key("k", "json");
    std::fs::write(&path, "old").expect("a file");
    assert_eq!(store.keys().await, Ok(Vec::new()));
    assert_eq!(store.unlisted().await, Ok(1));
    assert_eq!(store.read("k").await, Ok(Some(Secret::new("old"))));
    assert_eq!(store.keys().await, Ok(vec!["k".to_owned()]));
    assert_eq!(store.unlisted().await, Ok(0));
    assert_eq!(store.read("k").await, Ok(Some(Secret::new("old"))));
}

/// A process that stalls while it writes takes no threads of another one.
#[test]
fn waiting_to_write_blocks_no_thread() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    let held = try_lock(&folder, &folder.join(WRITING)).expect("a file");
    assert!(held.is_some());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .enable_all()
        .build()
        .expect("a runtime");
    runtime.block_on(async {
        let store = FileStore::new(&folder);
        let writer = store.clone();
        let writing = tokio::spawn(async move { writer.write("k", &Secret::new("v")).await });
        for _ in 0..3 {
            assert_eq!(store.read("k").await, Ok(None));
        }
        drop(held);
        assert_eq!(writing.await.expect("no panic"), Ok(()));
        assert_eq!(store.read("k").await, Ok(Some(Secret::new("v"))));
    });
}

/// A process that stalls while it writes loses no value of others, however long it does.
#[tokio::test(start_paused = true)]
async fn waiting_to_write_has_no_limit() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    let held = try_lock(&folder, &folder.join(WRITING)).expect("a file");
    assert!(held.is_some());
    let (store, value) = (FileStore::new(&folder), Secret::new("v"));
    let writing = async {
        tokio::join!(
            store.write("a", &value),
            store.replace("b", None, Some(&value))
        )
    };
    let mut writing = std::pin::pin!(writing);
    let ended = tokio::time::timeout(PATIENCE * 3 / 2, writing.as_mut()).await;
    assert!(ended.is_err(), "the file is locked");
    assert_eq!(store.read("a").await, Ok(None));
    drop(held);
    assert_eq!(writing.await, (Ok(()), Ok(true)));
    for key in ["a", "b"] {
        assert_eq!(store.read(key).await, Ok(Some(value.clone())));
    }
}

/// A process that writes without a pause lets others write. The clock stands still as long as it does, so that others try again in
/// its pauses alone.
#[test]
fn busy_processes_let_others_write() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    // One thread does the work in the order in which it is asked for: the other process tries first while the lock is held.
    let runtime = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .enable_all()
        .start_paused(true)
        .build()
        .expect("a runtime");
    let (busy, other) = (FileStore::new(&folder), FileStore::new(&folder));
    let value = Secret::new("v");
    runtime.block_on(async {
        let writes = async {
            for _ in 0..2 * AT_A_STRETCH {
                busy.write("a", &value).await.expect("written");
            }
        };
        tokio::select! {
            biased;
            () = writes => panic!("the other process has written nothing"),
            written = other.write("b", &value) => assert_eq!(written, Ok(())),
        }
    });
}

/// On a slow disk, a process pauses once a second, even before it has written a hundred times.
#[tokio::test(start_paused = true)]
async fn slow_writes_let_others_write() {
    let (mut turn, began) = (Turn::default(), tokio::time::Instant::now());
    let mut pauses = 0;
    for _ in 0..AT_A_STRETCH {
        let before = tokio::time::Instant::now();
        turn.give_way().await;
        pauses += u32::from(before.elapsed() >= PAUSE);
        tokio::time::advance(STRETCH / 4).await;
        turn.end();
    }
    assert!(began.elapsed() > STRETCH * 25);
    assert_eq!(pauses, 24, "one after four writes");
}

/// What cannot be removed is skipped, and reported once; the rest is removed.
#[tokio::test]
async fn sweeps_skip_what_cannot_be_removed() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    let (store, value) = (FileStore::new(&folder), Secret::new("v"));
    // Not by the first write.
    assert!(store.sweeps.is_due());
    let writing = store.write_for("over", &value, Duration::ZERO);
    writing.await.expect("written");
    drop(store.lock("free").await.expect("a lock"));
    let left = folder.join("left.new");
    std::fs::write(&left, "").expect("a file");
    let folders = ["a.lock", "b.new"].map(|name| folder.join(name));
    for path in &folders {
        std::fs::create_dir(path).expect("a folder");
    }
    for path in [store.path_of_key("free", "lock"), left]
        .iter()
        .chain(&folders)
    {
        let file = File::open(path).expect("a file");
        let before = SystemTime::now() - LEFTOVER_AGE;
        file.set_modified(before).expect("a file");
    }
    let count = || ["json", "lock", "new"].map(|extension| files(&folder, extension));
    // Another process writes it.
    std::fs::write(folder.join("fresh.new"), "").expect("a file");
    assert_eq!(count(), [1, 2, 3]);
    let running = store.sweeps.running.try_lock().expect("none runs");
    assert_eq!(store.sweep().await, 0, "one at a time");
    drop(running);
    assert_eq!(store.sweep().await, 2, "two problems");
    assert_eq!(count(), [0, 1, 2]);
    assert_eq!(store.sweep().await, 0, "they were reported");
}

/// A file whose first line is damaged, or that a newer version may have written, is no absent value: it is counted and never replaced
/// as if nothing were there, until it is written or removed on purpose.
#[tokio::test]
async fn files_with_unknown_first_lines_are_errors() {
    let parent = tempfile::tempdir().expect("a folder");
    let store = FileStore::new(parent.path().join("tokens"));
    let value = Secret::new("v");
    store.write("k", &value).await.expect("written");
    let path = store.path_of_key("k", "json");
    for damaged in [&b"#"[..], b"# aw", b"#x aw\nv", b"# aw\n\xff"] {
        std::fs::write(&path, damaged).expect("a file");
        let error = store.read("k").await.expect_err("an unknown form");
        assert!(error.contains("first line is not known"), "{error}");
        assert_eq!(store.is_malformed("k").await, Ok(true));
        assert!(store.replace("k", None, Some(&value)).await.is_err());
        assert_eq!(store.sweep().await, 0);
        assert_eq!(std::fs::read(&path).expect("a file"), damaged);
        assert_eq!(store.keys().await, Ok(Vec::new()));
        assert_eq!(store.unlisted().await, Ok(1));
        store.write("k", &value).await.expect("written");
        assert_eq!(store.is_malformed("k").await, Ok(false));
        assert_eq!(store.read("k").await, Ok(Some(value.clone())));
    }
    std::fs::write(&path, "#").expect("a file");
    assert_eq!(store.remove("k").await, Ok(()));
    assert_eq!(store.is_malformed("k").await, Ok(false));
}

/// A value is absent after its lifetime, and its file is removed while others are written; so are the files of old locks that
/// nobody holds. A lock whose file was removed excludes others as before.
#[tokio::test]
async fn expired_files_are_removed() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    let (store, hour) = (FileStore::new(&folder), Duration::from_secs(3600));
    let (value, marked) = (Secret::new("v"), Secret::new("#1 v\n1"));
    // Not by the first write.
    assert!(store.sweeps.is_due());
    store.write("mark", &marked).await.expect("written");
    store
        .write_for("over", &value, Duration::ZERO)
        .await
        .expect("written");
    assert_eq!(store.read("over").await, Ok(None));
    assert_eq!(store.read("mark").await, Ok(Some(marked)));
    let held = store.lock("held").await.expect("a lock");
    drop(store.lock("free").await.expect("a lock"));
    for entry in std::fs::read_dir(&folder).expect("a folder") {
        let path = entry.expect("an entry").path();
        if path.extension().is_some_and(|known| known == "lock") {
            let file = open_lock(&path).expect("a file");
            let before = SystemTime::now() - LEFTOVER_AGE;
            file.set_modified(before).expect("a file");
        }
    }
    assert_eq!((files(&folder, "json"), files(&folder, "lock")), (2, 2));
    // A process that starts.
    let other = FileStore::new(&folder);
    other
        .write_for("next", &value, hour)
        .await
        .expect("written");
    let sweeping = async {
        while (files(&folder, "json"), files(&folder, "lock")) != (2, 1) {
            tokio::task::yield_now().await;
        }
    };
    let swept = tokio::time::timeout(Duration::from_secs(60), sweeping).await;
    swept.expect("what is not needed is removed");
    assert_eq!(store.read("next").await, Ok(Some(value)));
    drop(store.lock("free").await.expect("a lock"));
    let path = other.path_of_key("held", "lock");
    assert!(try_lock(&folder, &path).expect("a file").is_none());
    drop(held);
    assert!(try_lock(&folder, &path).expect("a file").is_some());
}

/// Files are looked through once in ten minutes, and only while values with a lifetime are written. A folder that is not there has
/// nothing to remove; one that cannot be read is a problem.
#[tokio::test]
async fn sweeps_are_rare() {
    let parent = tempfile::tempdir().expect("a folder");
    let store = FileStore::new(parent.path().join("tokens"));
    assert_eq!(store.sweep().await, 0, "there is no folder");
    let value = Secret::new("v");
    store.write("k", &value).await.expect("written");
    assert!(store.sweeps.is_due());
    assert!(!store.sweeps.is_due());
    let path = parent.path().join("file");
    std::fs::write(&path, "").expect("a file");
    assert_eq!(FileStore::new(path).sweep().await, 1, "it is no folder");
}

/// What cannot be read is an error that names the file, and neither absent nor damaged: its value may be there.
#[tokio::test]
async fn unreadable_files_are_not_absent() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    let (store, value) = (FileStore::new(&folder), Secret::new("v"));
    assert_eq!(store.keys().await, Ok(Vec::new()), "there is no folder");
    assert_eq!(store.unlisted().await, Ok(0));
    let path = store.path_of_key("k", "json");
    std::fs::create_dir_all(&path).expect("a folder");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&folder, private).expect("changed");
    let named = format!("{}: ", path.display());
    for error in [
        store.read("k").await.map(drop),
        store.replace("k", None, Some(&value)).await.map(drop),
        store.write("k", &value).await,
        store.remove("k").await,
        store.is_malformed("k").await.map(drop),
    ] {
        let error = error.expect_err("it is a folder");
        assert!(error.starts_with(&named), "{error}");
    }
    assert_eq!(store.unlisted().await, Ok(1));
    // A path below a file, and a file instead of a folder.
    let file = parent.path().join("file");
    std::fs::write(&file, "").expect("a file");
    let private = std::os::unix::fs::PermissionsExt::from_mode(0o600);
    std::fs::set_permissions(&file, private).expect("changed");
    for folder in [file.join("tokens"), file] {
        let store = FileStore::new(&folder);
        let named = format!("{}: ", folder.display());
        let error = store.keys().await.expect_err("no folder");
        assert!(error.starts_with(&named), "{error}");
        let error = store.write("k", &value).await.expect_err("no folder");
        assert!(error.starts_with(&named), "{error}");
    }
    let store = FileStore::new(parent.path().join("file").join("tokens"));
    let error = store.read("k").await.expect_err("no folder");
    assert!(error.contains("tokens: "), "{error}");
}

/// A lock whose file was removed or replaced after it was opened excludes nobody, and is not a lock.
#[test]
fn locks_of_removed_files_are_none() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    create_folder(&folder).expect("a folder");
    let path = folder.join("a.lock");
    let file = open_lock(&path).expect("a file");
    assert_eq!(is_still_at(&file, &path), Ok(true));
    std::fs::remove_file(&path).expect("removed");
    assert_eq!(is_still_at(&file, &path), Ok(false));
    let other = open_lock(&path).expect("a file");
    assert_eq!(is_still_at(&file, &path), Ok(false));
    assert_eq!(is_still_at(&other, &path), Ok(true));
    std::fs::remove_dir_all(&folder).expect("removed");
    std::fs::write(&folder, "").expect("a file");
    let error = is_still_at(&other, &path).expect_err("its folder is a file");
    assert!(error.contains("a.lock: "), "{error}");
}
