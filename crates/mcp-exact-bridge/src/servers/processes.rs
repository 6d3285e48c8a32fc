//! Tasks that drive the connections to a server, and processes that were started before their client is known. These have
//! received no message, so that they carry nothing of another client.

use std::sync::Arc;

use mcp_exact_session::{CachedNegotiation, ClientSettings};
use mcp_exact_transport::ClientHandler;
use parking_lot::Mutex;
use tokio::task::JoinHandle;

use crate::servers::upstream::{Connected, Prepared, Upstream};

/// Servers that are ready for the next connections.
#[derive(Default)]
pub(crate) struct Spares(Mutex<Vec<Box<dyn Prepared>>>);

impl Spares {
    /// Starts servers until there are `count`, if the upstream can be started in advance.
    pub(crate) fn fill(&self, upstream: &dyn Upstream, count: usize) {
        let mut spares = self.0.lock();
        spares.retain_mut(|spare| spare.is_running());
        while spares.len() < count
            && let Some(spare) = upstream.prepare()
        {
            spares.push(spare);
        }
    }

    /// Connects to a server that was started in advance; `None` if there is none.
    pub(crate) fn connect(
        &self,
        settings: &Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: &Arc<dyn ClientHandler>,
    ) -> Option<Connected> {
        loop {
            let mut spare = self.0.lock().pop()?;
            if spare.is_running() {
                return Some(spare.connect(Arc::clone(settings), prior, Arc::clone(handler)));
            }
        }
    }

    /// Ends all servers, and returns the tasks that wait for their ends.
    pub(crate) fn end(&self) -> Vec<JoinHandle<()>> {
        let spares = std::mem::take(&mut *self.0.lock());
        spares.into_iter().map(Prepared::end).collect()
    }
}

/// Tasks that drive the connections to one server. Each ends when its connection and the process of the server have ended.
#[derive(Debug, Default)]
pub(crate) struct Drivers(Mutex<Vec<JoinHandle<()>>>);

impl Drivers {
    pub(crate) fn add(&self, driver: JoinHandle<()>) {
        let mut drivers = self.0.lock();
        drivers.retain(|driver| !driver.is_finished());
        drivers.push(driver);
    }

    /// Returns the number of connections that have not ended, including those that are being opened and closed.
    pub(crate) fn count(&self) -> usize {
        let drivers = self.0.lock();
        let running = drivers.iter().filter(|driver| !driver.is_finished());
        running.count()
    }

    /// Waits until all connections have ended.
    pub(crate) async fn ended(&self) {
        let drivers = std::mem::take(&mut *self.0.lock());
        for driver in drivers {
            let _ = driver.await;
        }
    }
}
