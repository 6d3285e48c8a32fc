//! Change bus for processes on one machine: each process sends lines to a hub, and the hub forwards each line to all
//! processes.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use mcp_exact_transport::store::{BusMessage, BusReceiver, BusSubscription, ChangeBus};
use tokio::io::{AsyncBufReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{broadcast, mpsc};

/// TCP server that forwards every line of a process to all connected processes.
pub struct Hub {
    /// Address of the hub.
    pub address: SocketAddr,
}

impl Hub {
    /// Starts a hub on a free port.
    pub async fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let (lines, _) = broadcast::channel::<String>(1000);
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (reader, mut writer) = stream.into_split();
                let (to_all, mut from_all) = (lines.clone(), lines.subscribe());
                tokio::spawn(async move {
                    let mut read = BufReader::new(reader).lines();
                    while let Ok(Some(line)) = read.next_line().await {
                        let _ = to_all.send(format!("{line}\n"));
                    }
                });
                tokio::spawn(async move {
                    while let Ok(line) = from_all.recv().await {
                        if writer.write_all(line.as_bytes()).await.is_err() {
                            return;
                        }
                    }
                });
            }
        });
        Self { address }
    }
}

/// Change bus of a process that sends and receives its messages through a [`Hub`].
pub struct HubBus {
    /// Lines that are sent to the hub.
    out: mpsc::UnboundedSender<String>,
    /// Subscribers to the bus, each with the number of its subscription.
    receivers: Arc<Mutex<Vec<(u64, BusReceiver)>>>,
}

impl HubBus {
    /// Connects to a hub.
    pub async fn connect(hub: SocketAddr) -> std::io::Result<Self> {
        let (reader, mut writer) = TcpStream::connect(hub).await?.into_split();
        let (out, mut waiting) = mpsc::unbounded_channel::<String>();
        let receivers: Arc<Mutex<Vec<(u64, BusReceiver)>>> = Arc::default();
        tokio::spawn(async move {
            while let Some(line) = waiting.recv().await {
                if writer.write_all(line.as_bytes()).await.is_err() {
                    return;
                }
            }
        });
        let all = Arc::clone(&receivers);
        tokio::spawn(async move {
            let mut lines = BufReader::new(reader).lines();
            while let Ok(Some(line)) = lines.next_line().await {
                let message: BusMessage = line.parse().expect("a bus message");
                let receivers = all.lock().expect("not poisoned").clone();
                receivers
                    .iter()
                    .for_each(|(_, receiver)| receiver(&message));
            }
        });
        Ok(Self { out, receivers })
    }
}

impl ChangeBus for HubBus {
    fn publish(&self, message: BusMessage) {
        let _ = self.out.send(format!("{message}\n"));
    }

    fn subscribe(&self, receiver: BusReceiver) -> BusSubscription {
        let mut receivers = self.receivers.lock().expect("not poisoned");
        let number = receivers.last().map_or(0, |(last, _)| last + 1);
        receivers.push((number, receiver));
        let all = Arc::downgrade(&self.receivers);
        BusSubscription::new(move || {
            if let Some(all) = all.upgrade() {
                let mut all = all.lock().expect("not poisoned");
                all.retain(|(known, _)| *known != number);
            }
        })
    }
}
