//! Simulated network between clients and a server, which delays data and cuts connections on request.

use std::net::SocketAddr;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::time::sleep;

/// Current faults of a network.
#[derive(Debug, Clone, Copy, Default)]
struct Faults {
    /// Counter that is increased to cut all connections.
    cuts: u64,
    /// Delay of each read before it is forwarded.
    delay: Duration,
}

/// Proxy to one server, which delays data and cuts connections on request.
pub struct FaultyNetwork {
    address: SocketAddr,
    /// Sender of the current faults to all connections.
    faults: watch::Sender<Faults>,
}

impl FaultyNetwork {
    /// Starts a proxy to the server at the address `server`, without faults.
    pub async fn start(server: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let (sender, faults) = watch::channel(Faults::default());
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                tokio::spawn(forward_connection(client, server, faults.clone()));
            }
        });
        Self {
            address,
            faults: sender,
        }
    }

    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Cuts all connections immediately.
    pub fn cut(&self) {
        self.faults.send_modify(|faults| faults.cuts += 1);
    }

    /// Sets the delay of the data in all connections.
    pub fn delay(&self, delay: Duration) {
        self.faults.send_modify(|faults| faults.delay = delay);
    }
}

/// Connects to the server and forwards data in both directions, until both directions have ended or the connections are
/// cut.
async fn forward_connection(
    client: TcpStream,
    server: SocketAddr,
    faults: watch::Receiver<Faults>,
) {
    let Ok(server) = TcpStream::connect(server).await else {
        return;
    };
    let cuts = faults.borrow().cuts;
    let mut changes = faults.clone();
    let (client_in, client_out) = client.into_split();
    let (server_in, server_out) = server.into_split();
    let both = async {
        tokio::join!(
            pass(client_in, server_out, faults.clone()),
            pass(server_in, client_out, faults.clone()),
        )
    };
    tokio::select! {
        _ = both => {}
        _ = changes.wait_for(|faults| faults.cuts > cuts) => {}
    }
}

/// Forwards data in one direction until `from` ends or a read or write fails.
async fn pass(
    mut from: impl AsyncRead + Unpin,
    mut to: impl AsyncWrite + Unpin,
    faults: watch::Receiver<Faults>,
) {
    let mut bytes = vec![0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut bytes).await {
        let delay = faults.borrow().delay;
        if !delay.is_zero() {
            sleep(delay).await;
        }
        if to.write_all(&bytes[..count]).await.is_err() {
            return;
        }
    }
    let _ = to.shutdown().await;
}
