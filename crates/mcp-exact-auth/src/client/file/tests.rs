//! Tests of the store in a folder: its files, and the locks of those who write.

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

/// A value is absent after its lifetime, and its file is removed while others are written; so are the files of old locks that
/// nobody holds. A lock whose file was removed excludes others as before.
#[tokio::test]
async fn expired_files_are_removed() {
    let parent = tempfile::tempdir().expect("a folder");
    let folder = parent.path().join("tokens");
    let (store, hour) = (FileStore::new(&folder), Duration::from_secs(3600));
    let (value, marked) = (Secret::new("v"), Secret::new("#1 v\n1"));
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
    assert_eq!((files(&folder, "json"), files(&folder, "lock")), (2, 1));
    assert_eq!(store.read("next").await, Ok(Some(value)));
    drop(store.lock("free").await.expect("a lock"));
    let path = other.path_of_key("held", "lock");
    assert!(try_lock(&folder, &path).expect("a file").is_none());
    drop(held);
    assert!(try_lock(&folder, &path).expect("a file").is_some());
}
