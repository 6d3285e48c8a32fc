//! Unix sockets: several concurrent clients, and stale socket files.

use std::sync::{Arc, Mutex};

use mcp_exact_session::ServerEvent;
use mcp_exact_tests_transport::echo::{self, REVISIONS};
use mcp_exact_transport::{RequestContext, ServerHandle, UnixServer, connect_unix};
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

/// While a server that shuts down completes what is in flight, new clients are refused instead of waiting for nobody. A number of
/// connections that no system has is no limit.
#[tokio::test]
async fn draining_servers_accept_nobody() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("socket");
    let server = UnixServer::bind(&path).await.expect("bound");
    let (stop, stopped) = oneshot::channel::<()>();
    let (begun, has_begun) = oneshot::channel::<()>();
    let (end, ended) = oneshot::channel::<()>();
    let blocking = Mutex::new(Some((begun, ended)));
    let handler = move |server: &ServerHandle, event: ServerEvent<RequestContext>| {
        let blocks =
            matches!(&event, ServerEvent::Request(request) if request.method() == "tools/call");
        let blocking = blocking.lock().expect("not poisoned").take_if(|_| blocks);
        let Some((begun, ended)) = blocking else {
            return echo::handle(server, event);
        };
        let server = server.clone();
        tokio::spawn(async move {
            begun.send(()).expect("the test waits");
            let _ = ended.await;
            echo::handle(&server, event);
        });
    };
    let server = server.connections(usize::MAX);
    let serving = server.serve(echo::server_settings(), Arc::new(handler), async move {
        let _ = stopped.await;
    });
    let serving = tokio::spawn(serving);
    let config = echo::client_settings("2025-11-25");
    let connected = connect_unix(&path, config, None, Arc::new(echo::answer)).await;
    let (client, _) = connected.expect("connected");
    client.ready().await.expect("negotiated");
    let call = tokio::spawn(async move { echo::call(&client, "echo", "x").await });
    has_begun.await.expect("a call");
    stop.send(()).expect("serving");
    while tokio::net::UnixStream::connect(&path).await.is_ok() {
        tokio::task::yield_now().await;
    }
    end.send(()).expect("the call waits");
    assert_eq!(call.await.expect("no panic"), Ok("x".to_owned()));
    serving.await.expect("task").expect("clean end");
}

/// Binding a socket to the path of an ordinary file fails and keeps the file.
#[tokio::test]
async fn other_files_are_not_replaced() {
    let file = tempfile::NamedTempFile::new().expect("a file");
    assert!(UnixServer::bind(file.path()).await.is_err());
    assert!(file.path().exists());
}
