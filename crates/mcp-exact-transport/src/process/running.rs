//! Count of the running processes of a command and its clones, so that a program can wait for their end.

use tokio::sync::watch;

/// Count of running processes; clones share it.
#[derive(Debug, Clone, Default)]
pub(super) struct Running(watch::Sender<usize>);

impl Running {
    /// Counts a process until the returned value is dropped.
    pub(super) fn count(&self) -> Counted {
        self.0.send_modify(|count| *count += 1);
        Counted(self.0.clone())
    }

    /// Waits until no process runs.
    pub(super) async fn ended(&self) {
        // The sender lives as long as this borrow.
        let _ = self.0.subscribe().wait_for(|count| *count == 0).await;
    }
}

/// One running process.
#[derive(Debug)]
pub(super) struct Counted(watch::Sender<usize>);

impl Drop for Counted {
    fn drop(&mut self) {
        self.0.send_modify(|count| *count -= 1);
    }
}
