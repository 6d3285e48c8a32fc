//! Time limits of what the server waits for from its clients.
//!
//! The time during which the machine or the process was suspended counts for little: what has arrived in the meantime is
//! read before the client is considered silent.

use std::future::{Future, poll_fn};
use std::pin::Pin;
use std::task::Poll;
use std::time::Duration;

use tokio::time::sleep;

/// Number of timers that measure a time limit one after the other.
///
/// When a process continues, a timer that has expired meanwhile may fire before the socket is known to be readable; only
/// one of them can.
pub(super) const TIMERS_PER_LIMIT: u32 = 4;

/// Waits for a future up to a time limit; a future that is immediately ready needs no timer.
///
/// The future is pinned by the caller: an async function contains its arguments twice.
pub(super) async fn within<T>(
    limit: Duration,
    mut future: Pin<&mut impl Future<Output = T>>,
) -> Option<T> {
    if let Poll::Ready(value) = poll_fn(|cx| Poll::Ready(future.as_mut().poll(cx))).await {
        return Some(value);
    }
    let patience = async {
        for _ in 0..TIMERS_PER_LIMIT {
            sleep(limit / TIMERS_PER_LIMIT).await;
        }
    };
    tokio::select! {
        biased;
        value = future => Some(value),
        () = patience => None,
    }
}
