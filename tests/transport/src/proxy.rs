//! A proxy that cuts all its connections on request, and leads to another server after a restart.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

pub struct CuttingProxy {
    address: SocketAddr,
    target: Arc<Mutex<SocketAddr>>,
    cuts: watch::Sender<u64>,
}

impl CuttingProxy {
    pub async fn start(target: SocketAddr) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let (cuts, cut) = watch::channel(0);
        let target = Arc::new(Mutex::new(target));
        let current = Arc::clone(&target);
        tokio::spawn(async move {
            while let Ok((mut near, _)) = listener.accept().await {
                let mut cut = cut.clone();
                cut.mark_unchanged();
                let target = *current.lock().expect("unlocked");
                tokio::spawn(async move {
                    let Ok(mut far) = TcpStream::connect(target).await else {
                        return;
                    };
                    tokio::select! {
                        _ = tokio::io::copy_bidirectional(&mut near, &mut far) => {}
                        _ = cut.changed() => {}
                    }
                });
            }
        });
        Self {
            address,
            target,
            cuts,
        }
    }

    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Leads new connections to this server.
    pub fn lead_to(&self, target: SocketAddr) {
        *self.target.lock().expect("unlocked") = target;
    }

    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}
