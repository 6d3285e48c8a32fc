//! Signals that end a command: interrupt, termination and hangup. A command that is ended has the exit code of shells, 128
//! with the number of the signal.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};

/// A signal has ended the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Interrupted {
    /// Number of the signal.
    pub signal: u8,
}

impl Interrupted {
    /// Returns the exit code of the program.
    pub fn exit_code(self) -> u8 {
        128 + self.signal
    }
}

impl fmt::Display for Interrupted {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("the command was interrupted")
    }
}

impl std::error::Error for Interrupted {}

/// Returns a future that completes when the process receives a signal that ends commands, from this call on.
#[cfg(all(feature = "client", unix))]
pub fn received() -> impl Future<Output = Interrupted> {
    use tokio::signal::unix::{SignalKind, signal};
    let wait = |kind: SignalKind| {
        let received = signal(kind);
        async move {
            match received {
                Ok(mut signal) => drop(signal.recv().await),
                // The signal ends the process at once.
                Err(_) => std::future::pending().await,
            }
            let signal = u8::try_from(kind.as_raw_value()).unwrap_or(0);
            Interrupted { signal }
        }
    };
    let interrupt = wait(SignalKind::interrupt());
    let terminate = wait(SignalKind::terminate());
    let hangup = wait(SignalKind::hangup());
    async {
        tokio::select! {
            interrupted = interrupt => interrupted,
            interrupted = terminate => interrupted,
            interrupted = hangup => interrupted,
        }
    }
}

/// Completes when the user presses Ctrl-C.
#[cfg(all(feature = "client", not(unix)))]
pub async fn received() -> Interrupted {
    if tokio::signal::ctrl_c().await.is_err() {
        std::future::pending::<()>().await;
    }
    Interrupted { signal: 2 }
}

/// True once a signal ends this process.
static IS_ENDING: AtomicBool = AtomicBool::new(false);

/// Does not return if a signal ends this process: a command that fails because its servers are ended has nothing to say.
pub fn wait_for_end() {
    while IS_ENDING.load(Ordering::Acquire) {
        std::thread::park();
    }
}

/// Lets signals end the servers that [`process`](crate::process) has started, and then this process, for commands that do
/// not run on a runtime.
#[cfg(feature = "client")]
pub fn end_processes_on_signals() -> std::io::Result<()> {
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let received = {
        let _entered = runtime.enter();
        received()
    };
    std::thread::Builder::new().spawn(move || {
        let interrupted = runtime.block_on(received);
        IS_ENDING.store(true, Ordering::Release);
        crate::process::end_all();
        std::process::exit(interrupted.exit_code().into());
    })?;
    Ok(())
}

/// Leaves signals as they are: this build has no runtime that receives them.
#[cfg(not(feature = "client"))]
pub fn end_processes_on_signals() -> std::io::Result<()> {
    Ok(())
}
