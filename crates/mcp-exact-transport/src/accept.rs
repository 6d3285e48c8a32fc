//! Classification of the errors of listeners as fatal or transient.

use std::io;
use std::time::Duration;

use tokio::time::sleep;

/// Delay before a listener accepts again after a transient error.
const RETRY_PAUSE: Duration = Duration::from_millis(100);

/// Waits until a listener may accept again after a transient error, such as a connection that failed before it was
/// accepted, or a lack of file descriptors.
///
/// # Errors
/// Returns `error` if it is fatal for the listener.
pub(crate) async fn wait_after_accept_error(error: io::Error) -> io::Result<()> {
    match error.kind() {
        io::ErrorKind::ConnectionRefused
        | io::ErrorKind::ConnectionAborted
        | io::ErrorKind::ConnectionReset => {}
        _ if is_listener_error(&error) => return Err(error),
        _ => sleep(RETRY_PAUSE).await,
    }
    Ok(())
}

/// Returns true if the error means that the socket is not a listener: EBADF, ENOTSOCK, EINVAL, EOPNOTSUPP.
fn is_listener_error(error: &io::Error) -> bool {
    #[cfg(target_os = "linux")]
    let broken = [9, 22, 88, 95];
    #[cfg(all(unix, not(target_os = "linux")))]
    let broken = [9, 22, 38, 45];
    #[cfg(not(unix))]
    let broken = [10009, 10022, 10038, 10045];
    error
        .raw_os_error()
        .is_some_and(|code| broken.contains(&code))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Only an error that means that the socket is not a listener ends the server; all other errors are retried.
    ///
    /// Linux, `accept(2)`: "applications should detect the network errors defined for the protocol after accept() and
    /// treat them like EAGAIN by retrying".
    #[cfg(target_os = "linux")]
    #[tokio::test]
    async fn only_broken_listeners_end() {
        // ENOMEM, ENFILE, EMFILE, EPERM, EPROTO, ENETDOWN, ENOBUFS, ECONNABORTED, EHOSTUNREACH.
        for code in [12, 23, 24, 1, 71, 100, 105, 103, 113] {
            let recovered = wait_after_accept_error(io::Error::from_raw_os_error(code)).await;
            assert!(recovered.is_ok(), "{code}");
        }
        for code in [9, 22, 88, 95] {
            let recovered = wait_after_accept_error(io::Error::from_raw_os_error(code)).await;
            assert!(recovered.is_err(), "{code}");
        }
    }
}
