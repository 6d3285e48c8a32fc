//! Unix sockets: several concurrent clients, and stale socket files.

use std::sync::Arc;

use mcp_exact_tests_transport::echo::{self, REVISIONS};
use mcp_exact_transport::{UnixServer, connect_unix};
use tokio::sync::oneshot;

/// Concurrent clients of every revision can call all tools over a Unix socket; binding the socket replaces a stale
/// socket file.
#[tokio::test]
async fn every_revision_is_served_at_once() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    drop(std::os::unix::net::UnixListener::bind(&path).expect("bound"));
    let server = UnixServer::bind(&path)
        .await
        .expect("the old socket is replaced");
    assert!(
        UnixServer::bind(&path).await.is_err(),
        "somebody listens there"
    );
    let (stop, stopped) = oneshot::channel::<()>();
    let serving = tokio::spawn(server.serve(
        echo::server_settings(),
        Arc::new(echo::handle),
        async move {
            let _ = stopped.await;
        },
    ));
    let mut clients = Vec::new();
    for revision in REVISIONS {
        let config = echo::client_settings(revision);
        let (client, _) = connect_unix(&path, config, None, Arc::new(echo::answer))
            .await
            .expect("connected");
        clients.push((client, revision));
    }
    for (client, revision) in &clients {
        echo::use_all(client, revision).await;
    }
    let client = clients[0].0.clone();
    let last = echo::call_slow(&client, || stop.send(()).expect("serving"));
    assert_eq!(last.await, Ok("slow".to_owned()));
    serving.await.expect("task").expect("clean end");
}

/// Binding a socket to the path of an ordinary file fails and keeps the file.
#[tokio::test]
async fn other_files_are_not_replaced() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    assert!(UnixServer::bind(file.path()).await.is_err());
    assert!(file.path().exists());
}
