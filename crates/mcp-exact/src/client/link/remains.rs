//! What is left of a connection after its end: the task that ends the process or the session of the server, and the one that
//! supervised the connection.

use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::background;

/// Count of what is left of connections, so that others can wait for their end; clones share it.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remains(watch::Sender<()>);

/// Part of a connection, which counts until it is dropped.
pub(super) struct Remnant {
    _counted: watch::Receiver<()>,
}

impl Remains {
    /// Counts a part of a connection until the returned value is dropped.
    pub(super) fn count(&self) -> Remnant {
        Remnant {
            _counted: self.0.subscribe(),
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
        self.0.closed().await;
    }
}
