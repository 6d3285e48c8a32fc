//! Peers that write JSON text as they like: a server of any revision whose answers are templates, in memory, as a process
//! and over HTTP; and the ends of raw connections.

pub mod clients;
pub mod entrance;
pub mod http;
pub mod zoo;

use std::collections::VecDeque;
use std::future::poll_fn;
use std::sync::Arc;
use std::task::Poll;

use mcp_exact_bridge::Upstream;
use mcp_exact_session::{CachedNegotiation, ClientSettings};
use mcp_exact_transport::{
    ClientHandle, ClientHandler, ConnectError, ConnectionOptions, MemoryTransport, Received,
    Transport, connect, memory_pair,
};
use tokio::task::JoinHandle;

use self::zoo::Peer;

/// Maximum size of a message, and of all queued messages, in bytes.
const MAX_BYTES: usize = 1 << 20;

/// Connection that writes texts as messages without a change.
pub struct RawConnection {
    transport: MemoryTransport,
    received: VecDeque<String>,
}

impl RawConnection {
    /// Creates the two ends of a connection.
    pub fn pair() -> (MemoryTransport, Self) {
        let (local, transport) = memory_pair(MAX_BYTES, MAX_BYTES);
        let received = VecDeque::new();
        (
            local,
            Self {
                transport,
                received,
            },
        )
    }

    /// Returns the next message; `None` at the end of input.
    pub async fn receive(&mut self) -> Option<String> {
        while self.received.is_empty() {
            let (transport, received) = (&mut self.transport, &mut self.received);
            let is_open = poll_fn(|cx| {
                transport.poll_receive(cx, &mut |message| {
                    if let Received::Frame(bytes) = message {
                        received.push_back(String::from_utf8_lossy(bytes).into_owned());
                    }
                    true
                })
            });
            if !is_open.await.ok()? {
                break;
            }
        }
        self.received.pop_front()
    }

    /// Sends bytes as a message without a change.
    pub async fn send(&mut self, message: &[u8]) {
        self.transport.output().extend_from_slice(message);
        self.transport.end_frame();
        let transport = &mut self.transport;
        // A peer that has disconnected reads nothing.
        let _ = poll_fn(|cx| match transport.poll_flush(cx) {
            Poll::Ready(flushed) => Poll::Ready(flushed),
            Poll::Pending => Poll::Pending,
        })
        .await;
    }
}

/// Serves a peer on a connection in memory; returns the end of its client.
pub fn in_memory(peer: &Peer) -> MemoryTransport {
    let (local, mut remote) = RawConnection::pair();
    let peer = peer.clone();
    tokio::spawn(async move {
        while let Some(request) = remote.receive().await {
            for answer in peer.answers(&request) {
                remote.send(&answer).await;
            }
        }
    });
    local
}

impl Upstream for Peer {
    fn connect(
        &self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> Result<(ClientHandle, JoinHandle<()>), ConnectError> {
        let options = ConnectionOptions::default();
        Ok(connect(settings, prior, handler, in_memory(self), options))
    }
}
