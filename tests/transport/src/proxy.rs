//! Proxies: a TCP proxy to a server, which can cut its connections and change its target, and an HTTP proxy that
//! clients are configured to use.

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use tokio::io::{AsyncRead, AsyncReadExt, AsyncWrite, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

/// TCP proxy that can cut its connections.
pub struct CuttingProxy {
    /// Address of the proxy.
    address: SocketAddr,
    /// Address of the server for new connections.
    target: Arc<Mutex<SocketAddr>>,
    /// Number of times that the connections were cut; every change of the number closes all connections.
    cuts: watch::Sender<u64>,
}

impl CuttingProxy {
    /// Starts a proxy to a server.
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
                let target = *current.lock().expect("not poisoned");
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

    /// Returns the URL of a path through the proxy.
    pub fn url(&self, path: &str) -> String {
        format!("http://{}{path}", self.address)
    }

    /// Forwards new connections to this server.
    pub fn forward_to(&self, target: SocketAddr) {
        *self.target.lock().expect("not poisoned") = target;
    }

    /// Cuts all open connections.
    pub fn cut(&self) {
        self.cuts.send_modify(|cuts| *cuts += 1);
    }
}

/// HTTP proxy to one server, for URLs (RFC 9112, section 3.2.2: clients send the absolute URI) and for tunnels (`CONNECT`).
///
/// Clients cannot resolve the server's name themselves.
pub struct ForwardProxy {
    /// Address of the proxy.
    address: SocketAddr,
    /// What the proxy has received.
    heads: ReceivedHeads,
}

/// Request line and headers of the first request of each connection.
pub type ReceivedHeads = Arc<Mutex<Vec<String>>>;

/// What a proxy does with a request.
#[derive(Clone)]
pub enum ProxyReaction {
    /// It forwards the request to a server, regardless of the server in the URI.
    Forward(SocketAddr),
    /// It answers with a status.
    Refuse(&'static str),
    /// It never answers.
    Silence,
}

impl ForwardProxy {
    /// Starts a proxy that forwards all requests to `target`, regardless of the server in the URI.
    pub async fn start(target: SocketAddr) -> Self {
        Self::start_with(ProxyReaction::Forward(target)).await
    }

    /// Starts a proxy that reacts to all requests in one way.
    pub async fn start_with(reaction: ProxyReaction) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("bound");
        let address = listener.local_addr().expect("an address");
        let heads = ReceivedHeads::default();
        let seen = Arc::clone(&heads);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(react(near, reaction.clone(), Arc::clone(&seen)));
            }
        });
        Self { address, heads }
    }

    /// Returns the URL of the proxy.
    pub fn url(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Returns the URL of the proxy with a user name and a password.
    pub fn url_with_credentials(&self) -> String {
        format!("http://user:s3cret@{}", self.address)
    }

    /// Returns the request line and headers of the first request of each connection.
    pub fn heads(&self) -> Vec<String> {
        self.heads.lock().expect("not poisoned").clone()
    }
}

/// Handles a connection of a proxy; appends the request line and headers of its first request to `seen`.
pub async fn react(
    mut near: impl AsyncRead + AsyncWrite + Unpin,
    reaction: ProxyReaction,
    seen: ReceivedHeads,
) {
    let mut bytes = Vec::new();
    while !bytes.windows(4).any(|end| end == b"\r\n\r\n") {
        match near.read_buf(&mut bytes).await {
            Ok(1..) => {}
            _ => return,
        }
    }
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let head = text.split("\r\n\r\n").next().unwrap_or_default();
    seen.lock().expect("not poisoned").push(head.to_owned());
    let target = match reaction {
        ProxyReaction::Forward(target) => target,
        ProxyReaction::Refuse(status) => {
            let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\n\r\n");
            near.write_all(answer.as_bytes()).await.expect("written");
            return;
        }
        ProxyReaction::Silence => return std::future::pending().await,
    };
    let mut far = TcpStream::connect(target).await.expect("the server");
    if head.starts_with("CONNECT ") {
        let answer = b"HTTP/1.1 200 Connection established\r\n\r\n";
        near.write_all(answer).await.expect("written");
    } else {
        // Servers have to understand the form that is for proxies, so that it is passed on as it is.
        far.write_all(&bytes).await.expect("written");
    }
    // The client or the server ends the connection.
    let _ = tokio::io::copy_bidirectional(&mut near, &mut far).await;
}
