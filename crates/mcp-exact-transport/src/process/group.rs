//! Child process with its descendants: a process group on Unix, a job object on Windows.
//!
//! When a [`Group`] is dropped, all of its processes are killed.

use std::io;
use std::process::ExitStatus;
use std::time::Duration;

use tokio::process::{ChildStderr, ChildStdin, ChildStdout, Command};
use tokio::time::timeout;

/// Standard input, output and error of a child process.
type Streams = (ChildStdin, ChildStdout, ChildStderr);

/// Child process and its process group.
#[cfg(unix)]
pub(super) struct Group {
    /// First process of the group.
    child: tokio::process::Child,
    /// Id of the process group; `None` after the group has ended.
    id: Option<rustix::process::Pid>,
}

#[cfg(unix)]
impl Group {
    /// Starts a process as the first process of a new process group.
    pub(super) fn spawn(mut command: Command) -> io::Result<Self> {
        command.process_group(0).kill_on_drop(true);
        let child = command.spawn()?;
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        let id = id.and_then(rustix::process::Pid::from_raw);
        Ok(Self { child, id })
    }

    /// Removes and returns the standard streams of the first process; `None` if they were already removed.
    pub(super) fn take_streams(&mut self) -> Option<Streams> {
        let child = &mut self.child;
        Some((
            child.stdin.take()?,
            child.stdout.take()?,
            child.stderr.take()?,
        ))
    }

    /// Returns true if the first process has not exited.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the exit of the first process.
    ///
    /// # Errors
    /// An IO error if waiting for the process fails.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the group, whose standard input must be closed, and returns the exit status of the first process.
    ///
    /// Waits for the exit during `after_close`, sends SIGTERM, waits during `after_terminate`, and kills the group.
    ///
    /// # Errors
    ///
    /// An IO error if waiting for the process fails.
    pub(super) async fn end(
        &mut self,
        after_close: Duration,
        after_terminate: Duration,
    ) -> io::Result<ExitStatus> {
        let mut status = timeout(after_close, self.child.wait()).await;
        if status.is_err() {
            self.signal(rustix::process::Signal::TERM);
            status = timeout(after_terminate, self.child.wait()).await;
        }
        // Those that the process has started and left behind go with it.
        self.kill();
        match status {
            Ok(status) => status,
            Err(_) => self.child.wait().await,
        }
    }

    /// Sends a signal to all processes of the group.
    fn signal(&self, signal: rustix::process::Signal) {
        if let Some(id) = self.id {
            // An error says that no process of the group is left.
            let _ = rustix::process::kill_process_group(id, signal);
        }
    }

    /// Kills all processes of the group.
    fn kill(&mut self) {
        self.signal(rustix::process::Signal::KILL);
        self.id = None;
    }
}

#[cfg(unix)]
impl Drop for Group {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Child process and its job object.
#[cfg(windows)]
pub(super) struct Group {
    /// First process of the job.
    child: Box<dyn process_wrap::tokio::ChildWrapper>,
}

#[cfg(windows)]
impl Group {
    /// Starts a process as the first process of a new job object.
    pub(super) fn spawn(command: Command) -> io::Result<Self> {
        use process_wrap::tokio::{CommandWrap, JobObject, KillOnDrop};

        let mut command = CommandWrap::from(command);
        command.wrap(KillOnDrop).wrap(JobObject);
        Ok(Self {
            child: command.spawn()?,
        })
    }

    /// Removes and returns the standard streams of the first process; `None` if they were already removed.
    pub(super) fn take_streams(&mut self) -> Option<Streams> {
        let child = &mut self.child;
        Some((
            child.stdin().take()?,
            child.stdout().take()?,
            child.stderr().take()?,
        ))
    }

    /// Returns true if the first process has not exited.
    pub(super) fn is_running(&mut self) -> bool {
        matches!(self.child.try_wait(), Ok(None))
    }

    /// Waits for the exit of the first process.
    ///
    /// # Errors
    /// An IO error if waiting for the processes fails.
    pub(super) async fn wait(&mut self) -> io::Result<ExitStatus> {
        self.child.wait().await
    }

    /// Ends the job, whose standard input must be closed, and returns the exit status of the first process.
    ///
    /// Windows has no signal that requests an exit: the processes of the job that have not exited within both time
    /// limits are killed.
    ///
    /// # Errors
    /// An IO error if waiting for the process fails.
    pub(super) async fn end(
        &mut self,
        after_close: Duration,
        after_terminate: Duration,
    ) -> io::Result<ExitStatus> {
        let status = timeout(after_close + after_terminate, self.child.wait()).await;
        let killed = self.child.start_kill();
        match status {
            Ok(status) => status,
            Err(_) => {
                killed?;
                self.child.wait().await
            }
        }
    }
}

#[cfg(windows)]
impl Drop for Group {
    fn drop(&mut self) {
        let _ = self.child.start_kill();
    }
}
