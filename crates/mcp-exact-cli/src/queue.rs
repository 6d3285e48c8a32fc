//! Queue between two threads that holds a bounded number of bytes: a sender waits for room.

use std::collections::VecDeque;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Maximum number of bytes in a queue; one larger item fits an empty queue.
const MAX_BYTES: usize = 64 << 20;

/// Item, or the reason why there is none.
#[derive(Debug, PartialEq, Eq)]
pub enum Received<T> {
    /// The next item.
    Item(T),
    /// No item has come in time.
    Timeout,
    /// No item is left, and all senders are gone.
    End,
}

/// Items that wait.
struct State<T> {
    /// Items with their sizes.
    items: VecDeque<(T, usize)>,
    /// Size of all items.
    bytes: usize,
    senders: usize,
    has_receiver: bool,
}

struct Shared<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

impl<T> Shared<T> {
    fn lock(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Sending end of a queue.
pub struct Sender<T>(Arc<Shared<T>>);

/// Receiving end of a queue.
pub struct Receiver<T>(Arc<Shared<T>>);

/// Creates a queue.
pub fn bounded<T>() -> (Sender<T>, Receiver<T>) {
    let state = State {
        items: VecDeque::new(),
        bytes: 0,
        senders: 1,
        has_receiver: true,
    };
    let shared = Arc::new(Shared {
        state: Mutex::new(state),
        changed: Condvar::new(),
    });
    (Sender(Arc::clone(&shared)), Receiver(shared))
}

impl<T> Sender<T> {
    /// Adds an item of a size in bytes, once there is room; returns false if nobody receives items any more.
    pub fn send(&self, item: T, size: usize) -> bool {
        let is_full = |state: &mut State<T>| {
            state.has_receiver && state.bytes > 0 && state.bytes + size > MAX_BYTES
        };
        let state = self.0.changed.wait_while(self.0.lock(), is_full);
        let mut state = state.unwrap_or_else(PoisonError::into_inner);
        if state.has_receiver {
            state.items.push_back((item, size));
            state.bytes += size;
            self.0.changed.notify_all();
        }
        state.has_receiver
    }
}

impl<T> Clone for Sender<T> {
    fn clone(&self) -> Self {
        self.0.lock().senders += 1;
        Self(Arc::clone(&self.0))
    }
}

impl<T> Drop for Sender<T> {
    fn drop(&mut self) {
        self.0.lock().senders -= 1;
        self.0.changed.notify_all();
    }
}

impl<T> Receiver<T> {
    /// Waits for the next item, for at most `limit`.
    pub fn receive(&self, limit: Duration) -> Received<T> {
        let until = Instant::now() + limit;
        let mut state = self.0.lock();
        loop {
            if let Some((item, size)) = state.items.pop_front() {
                state.bytes -= size;
                self.0.changed.notify_all();
                return Received::Item(item);
            }
            if state.senders == 0 {
                return Received::End;
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Received::Timeout;
            }
            let waited = self.0.changed.wait_timeout(state, left);
            state = waited.unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

impl<T> Drop for Receiver<T> {
    fn drop(&mut self) {
        let mut state = self.0.lock();
        state.has_receiver = false;
        state.items.clear();
        state.bytes = 0;
        self.0.changed.notify_all();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Duration = Duration::ZERO;
    const LONG: Duration = Duration::from_secs(60);

    /// A sender waits for room, and both ends learn that the other one is gone.
    #[test]
    fn senders_wait_for_room() {
        let (sender, receiver) = bounded();
        assert!(sender.send('a', MAX_BYTES + 1), "one item always fits");
        std::thread::scope(|scope| {
            let second = scope.spawn(|| sender.send('b', 1));
            assert_eq!(receiver.receive(LONG), Received::Item('a'));
            assert_eq!(receiver.receive(LONG), Received::Item('b'));
            assert!(second.join().expect("no panic"));
        });
        assert_eq!(receiver.receive(NOW), Received::Timeout);
        let other = sender.clone();
        drop(sender);
        assert!(other.send('c', 1));
        drop(other);
        assert_eq!(receiver.receive(LONG), Received::Item('c'));
        assert_eq!(receiver.receive(LONG), Received::End);
    }

    /// A sender that waits ends when nobody receives any more.
    #[test]
    fn senders_do_not_wait_for_nobody() {
        let (sender, receiver) = bounded();
        assert!(sender.send((), MAX_BYTES));
        std::thread::scope(|scope| {
            let waiting = scope.spawn(|| sender.send((), 1));
            drop(receiver);
            assert!(!waiting.join().expect("no panic"));
        });
    }
}
