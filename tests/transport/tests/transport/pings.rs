//! Detection of peers that disappear without closing, by pings (`basic/utilities/ping`).

use std::future::pending;
use std::io::ErrorKind;
use std::sync::Arc;
use std::time::Duration;

use mcp_exact_transport::{
    ConnectError, ConnectionOptions, LineTransport, ServeError, connect, serve,
};
use serde_json::{Value, json};
use tokio::io::{
    AsyncBufReadExt, AsyncWriteExt, BufReader, DuplexStream, Lines, ReadHalf, WriteHalf,
};

use mcp_exact_tests_transport::echo;

/// Connection options with a ping interval of 50 milliseconds.
const OPTIONS: ConnectionOptions = ConnectionOptions {
    drain: Duration::from_secs(2),
    close: Duration::from_secs(2),
    ping: Some(Duration::from_millis(50)),
};

/// Scripted peer of the tested endpoint.
struct Peer {
    /// Received lines.
    lines: Lines<BufReader<ReadHalf<DuplexStream>>>,
    /// Output to the tested endpoint.
    out: WriteHalf<DuplexStream>,
}

impl Peer {
    /// Creates a peer on one end of a stream.
    fn new(stream: DuplexStream) -> Self {
        let (reader, out) = tokio::io::split(stream);
        let lines = BufReader::new(reader).lines();
        Self { lines, out }
    }

    /// Reads the next message.
    async fn read(&mut self) -> Value {
        let line = self.lines.next_line().await.expect("read");
        serde_json::from_str(&line.expect("a message")).expect("JSON")
    }

    /// Writes a message.
    async fn write(&mut self, message: Value) {
        let line = format!("{message}\n");
        self.out.write_all(line.as_bytes()).await.expect("written");
    }

    /// Reads and answers `count` pings of the tested endpoint.
    async fn answer_pings(&mut self, count: usize) {
        for _ in 0..count {
            let ping = self.read().await;
            assert_eq!(ping["method"], "ping", "{ping}");
            self.write(json!({"jsonrpc": "2.0", "id": ping["id"], "result": {}}))
                .await;
        }
    }
}

/// Creates the transport of the tested endpoint.
fn transport(
    stream: DuplexStream,
) -> LineTransport<ReadHalf<DuplexStream>, WriteHalf<DuplexStream>> {
    let (reader, writer) = tokio::io::split(stream);
    LineTransport::new(reader, writer, 1 << 20)
}

/// "If no response is received within a reasonable timeout period, the sender MAY: consider the connection stale,
/// terminate the connection" (2025-11-25, `basic/utilities/ping`): a server closes the connection to a client that does
/// not answer its pings.
#[tokio::test(start_paused = true)]
async fn silent_client_is_given_up() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (settings, handler) = (echo::server_settings(), Arc::new(echo::handle));
    let serving = serve(settings, handler, transport(far), OPTIONS, pending());
    let server = tokio::spawn(serving);
    let mut peer = Peer::new(near);
    peer.write(json!({"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"},
    }}))
    .await;
    assert_eq!(peer.read().await["id"], 1);
    peer.write(json!({"jsonrpc": "2.0", "method": "notifications/initialized"}))
        .await;
    // As long as it answers it is alive.
    peer.answer_pings(3).await;
    assert_eq!(peer.read().await["method"], "ping");
    let ended = server.await.expect("no panic");
    match ended {
        Err(ServeError::Io(error)) => assert_eq!(error.kind(), ErrorKind::TimedOut),
        other => panic!("{other:?}"),
    }
}

/// A client closes the connection to a server that does not answer its pings.
#[tokio::test(start_paused = true)]
async fn silent_server_is_given_up() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let settings = echo::client_settings("2025-11-25");
    let handler = Arc::new(echo::answer);
    let (client, driver) = connect(settings, None, handler, transport(far), OPTIONS);
    let mut peer = Peer::new(near);
    let initialize = peer.read().await;
    assert_eq!(initialize["method"], "initialize");
    peer.write(json!({"jsonrpc": "2.0", "id": initialize["id"], "result": {
        "protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "raw", "version": "1"},
    }}))
    .await;
    assert_eq!(peer.read().await["method"], "notifications/initialized");
    peer.answer_pings(3).await;
    match client.closed().await {
        ConnectError::Transport(words) => assert!(words.contains("no ping"), "{words}"),
        other => panic!("{other}"),
    }
    driver.await.expect("no panic");
}

/// In 2026-07-28, which has no pings, a silent peer is not disconnected.
#[tokio::test(start_paused = true)]
async fn no_pings_where_revision_has_none() {
    let (near, far) = tokio::io::duplex(1 << 16);
    let (settings, handler) = (echo::server_settings(), Arc::new(echo::handle));
    let server = tokio::spawn(serve(settings, handler, transport(far), OPTIONS, pending()));
    let settings = echo::client_settings("2026-07-28");
    let handler = Arc::new(echo::answer);
    let (client, driver) = connect(settings, None, handler, transport(near), OPTIONS);
    client.ready().await.expect("connected");
    // Longer than the silence that would end the connection.
    tokio::time::sleep(Duration::from_millis(300)).await;
    let answer = echo::call(&client, "echo", "still there").await;
    assert_eq!(answer, Ok("still there".to_owned()));
    client.close();
    driver.await.expect("no panic");
    server.await.expect("no panic").expect("a clean end");
}
