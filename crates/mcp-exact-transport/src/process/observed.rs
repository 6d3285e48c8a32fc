//! Transport that shows the messages of a connection to an observer, in the order in which they are sent and received.

use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll};

use mcp_exact_session::Side;

use crate::transport::{Received, Transport};

/// Function that receives the sender of a message, and its bytes.
pub(super) type MessageObserver = Box<dyn FnMut(Side, &[u8]) + Send>;

/// Function that creates the observer of one connection.
pub(super) type CreateObserver = Arc<dyn Fn() -> MessageObserver + Send + Sync>;

/// Observer of one connection, also when another process of the server continues it.
pub(super) type SharedObserver = Arc<Mutex<MessageObserver>>;

/// Transport with an observer of its messages.
pub(super) struct Observed<T> {
    transport: T,
    observer: SharedObserver,
    /// The outgoing message that is not complete.
    message: Vec<u8>,
}

impl<T: Transport> Observed<T> {
    pub(super) fn new(transport: T, observer: SharedObserver) -> Self {
        Self {
            transport,
            observer,
            message: Vec::new(),
        }
    }
}

/// Shows a message to an observer.
fn show(observer: &SharedObserver, sender: Side, message: &[u8]) {
    let mut observer = observer.lock().unwrap_or_else(PoisonError::into_inner);
    observer(sender, message);
}

impl<T: Transport> Transport for Observed<T> {
    fn name(&self) -> &'static str {
        self.transport.name()
    }

    fn poll_receive(
        &mut self,
        cx: &mut Context<'_>,
        sink: &mut dyn FnMut(Received<'_>) -> bool,
    ) -> Poll<io::Result<bool>> {
        let observer = &self.observer;
        self.transport.poll_receive(cx, &mut |received| {
            let message = match &received {
                Received::Frame(frame) => frame,
                Received::Oversized(message) => message.head,
            };
            show(observer, Side::Server, message);
            sink(received)
        })
    }

    fn output(&mut self) -> &mut Vec<u8> {
        &mut self.message
    }

    fn end_frame(&mut self) {
        show(&self.observer, Side::Client, &self.message);
        self.transport.output().append(&mut self.message);
        self.transport.end_frame();
    }

    fn queued(&self) -> usize {
        self.transport.queued() + self.message.len()
    }

    fn poll_flush(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.poll_flush(cx)
    }

    fn poll_close(&mut self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.transport.poll_close(cx)
    }
}
