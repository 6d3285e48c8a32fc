//! TCP proxy between a client and a server: cuts one connection during a call, or forwards to a restarted server. The
//! proxy searches the bytes for one method name and does not parse messages.

use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;

/// Method name whose occurrences in the output of the server the proxy counts.
const COUNTED_METHOD: &[u8] = b"notifications/progress";

/// Number of occurrences after which the proxy cuts the connection.
const CUT_AFTER: usize = 5;

/// A proxy that accepts connections until the process exits.
pub(super) struct Proxy {
    /// Scheme, host and port.
    pub(super) origin: String,
    /// State that the threads of the proxy share.
    shared: Arc<ProxyState>,
}

/// State of a proxy.
struct ProxyState {
    /// Address of the server.
    target: Mutex<SocketAddr>,
    /// Number of forwarded progress notifications; `None` for a proxy that does not cut.
    forwarded_count: Option<AtomicUsize>,
}

impl Proxy {
    /// Starts a proxy to a server that cuts the connection after the fifth progress notification.
    pub(super) fn start_cutting(target: SocketAddr) -> io::Result<Self> {
        Self::start(target, Some(AtomicUsize::new(0)))
    }

    /// Starts a proxy to a server that never cuts a connection.
    pub(super) fn start_forwarding(target: SocketAddr) -> io::Result<Self> {
        Self::start(target, None)
    }

    /// Starts a proxy; with `forwarded_count`, the proxy cuts a connection.
    fn start(target: SocketAddr, forwarded_count: Option<AtomicUsize>) -> io::Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0")?;
        let origin = format!("http://{}", listener.local_addr()?);
        let target = Mutex::new(target);
        let shared = Arc::new(ProxyState {
            target,
            forwarded_count,
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || {
            for client_stream in listener.incoming().flatten() {
                let shared = Arc::clone(&accepting);
                thread::spawn(move || shared.serve(client_stream));
            }
        });
        Ok(Self { origin, shared })
    }

    /// Forwards new connections to the server at the address `target`.
    pub(super) fn forward_to(&self, target: SocketAddr) {
        let current = &self.shared.target;
        *current.lock().unwrap_or_else(PoisonError::into_inner) = target;
    }

    /// Returns true if a connection was cut.
    pub(super) fn has_cut(&self) -> bool {
        let forwarded_count = self.shared.forwarded_count.as_ref();
        forwarded_count
            .is_some_and(|forwarded_count| forwarded_count.load(Ordering::SeqCst) >= CUT_AFTER)
    }
}

impl ProxyState {
    /// Forwards the bytes of a connection in both directions until one side closes it or an error occurs.
    fn serve(&self, client_stream: TcpStream) {
        let target = *self.target.lock().unwrap_or_else(PoisonError::into_inner);
        let Ok(far) = TcpStream::connect(target) else {
            return;
        };
        let (Ok(from_near), Ok(to_far)) = (client_stream.try_clone(), far.try_clone()) else {
            return;
        };
        let upwards = thread::spawn(move || forward_bytes(from_near, to_far, |_| true));
        let mut previous_tail = Vec::new();
        forward_bytes(far, client_stream, |bytes| {
            self.count_and_may_forward(bytes, &mut previous_tail)
        });
        let _ = upwards.join();
    }

    /// Counts occurrences of the method name in the received bytes; returns false if the connection must be cut.
    /// `previous_tail` contains the end of the previous bytes.
    fn count_and_may_forward(&self, bytes: &[u8], previous_tail: &mut Vec<u8>) -> bool {
        let Some(forwarded_count) = &self.forwarded_count else {
            return true;
        };
        previous_tail.extend_from_slice(bytes);
        let windows = previous_tail.windows(COUNTED_METHOD.len());
        let count = windows.filter(|window| *window == COUNTED_METHOD).count();
        let rest = previous_tail.len().saturating_sub(COUNTED_METHOD.len() - 1);
        previous_tail.drain(..rest);
        let prefix = forwarded_count.fetch_add(count, Ordering::SeqCst);
        !(prefix < CUT_AFTER && prefix + count >= CUT_AFTER)
    }
}

/// Forwards bytes until the end, or until `may_forward` returns false.
fn forward_bytes(
    mut from: TcpStream,
    mut to: TcpStream,
    mut may_forward: impl FnMut(&[u8]) -> bool,
) {
    let mut buffer = [0; 16 << 10];
    while let Ok(count @ 1..) = from.read(&mut buffer) {
        let goes_on = may_forward(&buffer[..count]);
        if to.write_all(&buffer[..count]).is_err() {
            break;
        }
        if !goes_on {
            // Both directions are shut down, so that both sides notice the end.
            let _ = from.shutdown(Shutdown::Both);
            break;
        }
    }
    let _ = to.shutdown(Shutdown::Both);
    let _ = from.shutdown(Shutdown::Read);
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sends text through a proxy and returns the received text up to the end of the connection.
    fn send_through(proxy: &Proxy, listener: &TcpListener, text: &str) -> String {
        let address: SocketAddr = proxy.origin["http://".len()..].parse().expect("an address");
        let mut client_stream = TcpStream::connect(address).expect("connected");
        let (mut far, _) = listener.accept().expect("accepted");
        for half in [&text[..text.len() / 2], &text[text.len() / 2..]] {
            let _ = far.write_all(half.as_bytes());
        }
        let _ = far.shutdown(Shutdown::Write);
        let mut received = String::new();
        let _ = client_stream.read_to_string(&mut received);
        received
    }

    #[test]
    fn connection_is_cut_after_five_notifications() {
        let listener = TcpListener::bind("127.0.0.1:0").expect("bound");
        let target = listener.local_addr().expect("an address");
        let proxy = Proxy::start_cutting(target).expect("started");
        assert_eq!(
            send_through(&proxy, &listener, "notifications/progress"),
            "notifications/progress"
        );
        assert!(!proxy.has_cut());
        send_through(&proxy, &listener, &"notifications/progress ".repeat(4));
        assert!(proxy.has_cut());
        let all = "notifications/progress ".repeat(9);
        assert_eq!(send_through(&proxy, &listener, &all), all, "it cuts once");
    }

    #[test]
    fn new_connections_reach_the_new_server() {
        let (first, second) = (
            TcpListener::bind("127.0.0.1:0").expect("bound"),
            TcpListener::bind("127.0.0.1:0").expect("bound"),
        );
        let proxy =
            Proxy::start_forwarding(first.local_addr().expect("an address")).expect("started");
        assert_eq!(send_through(&proxy, &first, "one"), "one");
        proxy.forward_to(second.local_addr().expect("an address"));
        assert_eq!(send_through(&proxy, &second, "two"), "two");
    }
}
