//! Futures that wait for a change of a client's connection.
//!
//! When such a future is dropped, its waker is unregistered.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use mcp_exact_session::ClientEndpoint;

use super::{ClientConnection, Shared};

/// Wakers of the futures that wait for a change of a client's connection.
#[derive(Debug, Default)]
pub(super) struct Waiters {
    /// Number that was assigned to the latest future.
    last: u64,
    /// Number and waker of each waiting future.
    wakers: Vec<(u64, Waker)>,
}

impl Waiters {
    /// Registers the waker of a future and replaces its previous waker; assigns a number to a future that has none.
    fn register(&mut self, number: &mut Option<u64>, waker: &Waker) {
        let number = *number.get_or_insert_with(|| {
            self.last += 1;
            self.last
        });
        match self
            .wakers
            .iter_mut()
            .find(|(registered, _)| *registered == number)
        {
            Some((_, registered)) => registered.clone_from(waker),
            None => self.wakers.push((number, waker.clone())),
        }
    }

    /// Removes the waker of the future with this number.
    fn remove(&mut self, number: u64) {
        self.wakers.retain(|(registered, _)| *registered != number);
    }

    /// Wakes all futures.
    pub(super) fn wake_all(&mut self) {
        for (_, waker) in self.wakers.drain(..) {
            waker.wake();
        }
    }
}

/// Future that completes with the value of `condition` as soon as `condition` returns one for the state of the
/// connection.
pub(super) struct Wait<'a, F> {
    /// Endpoint whose connection is observed.
    shared: &'a Shared<ClientEndpoint>,
    /// Function of the connection's state that returns `None` as long as the future must wait.
    condition: F,
    /// Number of the future; `None` before it is first polled.
    number: Option<u64>,
}

impl<'a, F> Wait<'a, F> {
    pub(super) fn new(shared: &'a Shared<ClientEndpoint>, condition: F) -> Self {
        Self {
            shared,
            condition,
            number: None,
        }
    }
}

impl<T, F> Future for Wait<'_, F>
where
    F: Fn(&ClientConnection) -> Option<T> + Unpin,
{
    type Output = T;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let mut state = self.shared.lock();
        match (self.condition)(&state.role) {
            Some(value) => Poll::Ready(value),
            None => {
                state.role.waiters.register(&mut self.number, cx.waker());
                Poll::Pending
            }
        }
    }
}

impl<F> Drop for Wait<'_, F> {
    fn drop(&mut self) {
        if let Some(number) = self.number {
            self.shared.lock().role.waiters.remove(number);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The waker of a removed future is dropped, and a repeated registration replaces the earlier waker.
    #[test]
    fn removed_future_is_not_woken() {
        let mut waiters = Waiters::default();
        let (mut first, mut second) = (None, None);
        waiters.register(&mut first, Waker::noop());
        waiters.register(&mut second, Waker::noop());
        waiters.register(&mut first, Waker::noop());
        assert_eq!(waiters.wakers.len(), 2);
        waiters.remove(first.expect("registered"));
        assert_eq!(waiters.wakers.len(), 1);
        waiters.wake_all();
        assert_eq!(waiters.wakers.len(), 0);
    }
}
