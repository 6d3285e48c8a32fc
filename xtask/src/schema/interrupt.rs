//! Signals that ask the program to end while it changes files: the running command ends, and what was written is put back.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, OnceLock};

use anyhow::{Context, bail};
use signal_hook::consts::{SIGINT, SIGTERM};

/// Registers the signals, at the first call; returns the flag that they set.
fn flag() -> anyhow::Result<&'static AtomicBool> {
    /// Flag of the process.
    static FLAG: OnceLock<Arc<AtomicBool>> = OnceLock::new();
    if let Some(flag) = FLAG.get() {
        return Ok(flag);
    }
    let flag = Arc::new(AtomicBool::new(false));
    for signal in [SIGINT, SIGTERM] {
        signal_hook::flag::register(signal, Arc::clone(&flag)).context("cannot handle signals")?;
    }
    Ok(FLAG.get_or_init(|| flag))
}

/// Catches the signals from now on.
///
/// # Errors
/// Returns an error if the system refuses, or a signal has arrived since the first call.
pub(super) fn check() -> anyhow::Result<()> {
    if flag()?.load(Ordering::Acquire) {
        bail!("interrupted; every file is as it was");
    }
    Ok(())
}
