//! Reservation of the process's standard input and output for the protocol, so that no other code reads or writes them
//! by accident.
//!
//! After the reservation, standard input is at its end, and other output to standard output goes to standard error:
//! "The server MUST NOT write anything to its `stdout` that is not a valid MCP message" (`basic/transports/stdio`).

use std::fs::File;
use std::io;
use std::sync::atomic::{AtomicBool, Ordering};

/// Standard input and output of the process under new file descriptors, for the protocol only.
pub(crate) struct Claimed {
    pub(crate) input: File,
    pub(crate) output: File,
}

/// Reserves the standard streams.
///
/// # Errors
/// An IO error if the streams are already reserved, or one of them is closed.
pub(crate) fn claim() -> io::Result<Claimed> {
    /// True after the streams were reserved.
    static IS_CLAIMED: AtomicBool = AtomicBool::new(false);
    if IS_CLAIMED.swap(true, Ordering::AcqRel) {
        let message = "the standard streams serve a client already; a process serves one";
        return Err(io::Error::new(io::ErrorKind::AlreadyExists, message));
    }
    take()
}

/// Moves standard input and output to new file descriptors; standard input is then empty, and standard output is
/// standard error.
#[cfg(unix)]
fn take() -> io::Result<Claimed> {
    use std::io::Write;

    use rustix::fs::{Mode, OFlags, open};
    use rustix::io::fcntl_dupfd_cloexec;
    use rustix::stdio::{dup2_stdin, dup2_stdout, stderr, stdin, stdout};

    io::stdout().flush()?;
    // Above the standard descriptors, in case one of those is closed.
    let input = fcntl_dupfd_cloexec(stdin(), 3)?;
    let output = fcntl_dupfd_cloexec(stdout(), 3)?;
    let null = open("/dev/null", OFlags::RDWR | OFlags::CLOEXEC, Mode::empty())?;
    dup2_stdin(&null)?;
    match fcntl_dupfd_cloexec(stderr(), 3) {
        Ok(stderr) => dup2_stdout(&stderr)?,
        Err(_) => dup2_stdout(&null)?,
    }
    Ok(Claimed {
        input: input.into(),
        output: output.into(),
    })
}

/// Duplicates standard input and output to new handles.
#[cfg(windows)]
fn take() -> io::Result<Claimed> {
    use std::os::windows::io::AsHandle;

    let input = io::stdin().as_handle().try_clone_to_owned()?;
    let output = io::stdout().as_handle().try_clone_to_owned()?;
    Ok(Claimed {
        input: input.into(),
        output: output.into(),
    })
}
