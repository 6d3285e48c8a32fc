//! Number of writes of a connection: output that is ready at the same time is written together.

use std::future::pending;
use std::io::{self, Cursor};
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};

use mcp_exact_transport::{ConnectionOptions, LineTransport, serve};
use serde_json::json;
use tokio::io::AsyncWrite;

use mcp_exact_tests_transport::echo;

/// Writer that records the bytes of each write separately.
#[derive(Clone, Default)]
struct WriteRecorder(Arc<Mutex<Vec<Vec<u8>>>>);

impl AsyncWrite for WriteRecorder {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        self.0.lock().expect("no panic").push(bytes.to_vec());
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

/// All output that is ready is written at once: the replies to requests of one read are sent with one write.
#[tokio::test]
async fn replies_of_one_read_share_a_write() {
    /// Number of requests in one read.
    const CALLS: usize = 20;
    let initialize = json!({"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": {
        "protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "raw", "version": "1"},
    }});
    let initialized = json!({"jsonrpc": "2.0", "method": "notifications/initialized"});
    let calls = (1..=CALLS).map(|id| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
            "params": {"name": "echo", "arguments": {"text": "hello"}}})
    });
    let input: String = [initialize, initialized]
        .into_iter()
        .chain(calls)
        .map(|message| format!("{message}\n"))
        .collect();
    let output = WriteRecorder::default();
    let transport = LineTransport::new(Cursor::new(input.into_bytes()), output.clone(), 1 << 20);
    let (settings, handler) = (echo::server_settings(), Arc::new(echo::handle));
    let options = ConnectionOptions::default();
    let served = serve(settings, handler, transport, options, pending()).await;
    served.expect("served to the end of input");
    let writes = output.0.lock().expect("no panic");
    let lines = writes
        .iter()
        .map(|bytes| bytes.iter().filter(|byte| **byte == b'\n').count());
    assert_eq!(lines.collect::<Vec<_>>(), [CALLS + 1]);
}
