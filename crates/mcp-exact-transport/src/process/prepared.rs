//! Server process that was started before its client is known.

use std::sync::Arc;

use mcp_exact_session::{CachedNegotiation, ClientSettings};
use tokio::task::JoinHandle;

use super::{Process, ServerCommand};
use crate::endpoint::{ClientHandle, ClientHandler};

/// Server process to which no message was sent yet, see [`ServerCommand::prepare`]. The process is killed when this value
/// is dropped.
pub struct PreparedServer {
    /// Command of the process.
    command: ServerCommand,
    process: Process,
}

impl PreparedServer {
    pub(super) fn new(command: ServerCommand, process: Process) -> Self {
        Self { command, process }
    }

    /// Returns true if the process has not exited.
    pub fn is_running(&mut self) -> bool {
        let is_running = self.process.group.is_running();
        if !is_running {
            // Another process is started in its place.
            self.process.stderr.precede(&self.command.earlier_lines);
        }
        is_running
    }

    /// Connects a client to the process, as [`ServerCommand::connect`] does.
    pub fn connect(
        self,
        settings: Arc<ClientSettings>,
        prior: Option<&CachedNegotiation>,
        handler: Arc<dyn ClientHandler>,
    ) -> (ClientHandle, JoinHandle<()>) {
        self.command
            .connect_to(self.process, settings, prior, handler)
    }

    /// Ends the process as a client does: closes its input, then sends SIGTERM, then kills it. The returned task completes
    /// when all processes of the server have ended.
    pub fn end(self) -> JoinHandle<()> {
        let Self { command, process } = self;
        tokio::spawn(async move {
            let Process {
                input,
                output: _output,
                mut group,
                stderr: _stderr,
                running: _running,
            } = process;
            drop(input);
            // The group is killed when it is dropped, whether waiting for it has failed or not.
            let _ = group.end(command.close_wait, command.terminate_wait).await;
        })
    }
}

impl std::fmt::Debug for PreparedServer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PreparedServer")
            .field("command", &self.command)
            .finish_non_exhaustive()
    }
}
