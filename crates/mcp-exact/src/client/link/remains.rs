//! What is left of a connection after its end: the task that ends the process or the session of the server, the one that
//! supervised the connection, and what the server has sent instead of a message.

use std::sync::{Arc, Mutex};

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::background;
use crate::sync::lock;

/// Count of what is left of connections, so that others can wait for their end; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remains {
    count: watch::Sender<()>,
    /// Beginning of the first text of the latest connection that was no message, before there was a session.
    stray: Arc<Mutex<Option<String>>>,
}

/// Part of a connection, which counts until it is dropped.
pub(super) struct Remnant {
    _counted: watch::Receiver<()>,
}

impl Remains {
    /// Counts a part of a connection until the returned value is dropped.
    pub(super) fn count(&self) -> Remnant {
        Remnant {
            _counted: self.count.subscribe(),
        }
    }

    /// Counts the driver of a connection until it ends; the returned task ends with it.
    pub(super) fn count_driver(&self, driver: JoinHandle<()>) -> JoinHandle<()> {
        let counted = self.count();
        background::spawn(async move {
            let _counted = counted;
            // A driver that was stopped has ended, too.
            let _ = driver.await;
        })
    }

    /// Waits until nothing is left.
    pub(crate) async fn gone(&self) {
        self.count.closed().await;
    }

    /// Keeps what the server of a connection has sent instead of a message.
    pub(super) fn note_stray(&self, text: Option<String>) {
        *lock(&self.stray) = text;
    }

    /// Returns what the server of the latest connection has sent instead of a message before there was a session.
    #[cfg(all(feature = "process", feature = "http-client"))]
    pub(crate) fn stray(&self) -> Option<String> {
        lock(&self.stray).clone()
    }
}
