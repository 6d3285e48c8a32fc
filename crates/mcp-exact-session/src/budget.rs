//! Budget for the messages that are being received at the same time: one count that many connections share.
//!
//! A framing counts the bytes of a message that has not arrived completely. Small messages are not counted, so that most
//! connections never touch the shared count.

use std::fmt;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};

use crate::limits::Limits;

/// Bytes of a budget that no program has set: 256 MiB.
const DEFAULT_BYTES: usize = 256 << 20;
/// Size up to which a message is not counted.
const FREE_BYTES: usize = 64 << 10;

/// Maximum total size of the messages that are being received at the same time by all connections with the same budget.
///
/// The clones of a budget are the same budget. The default is one budget of 256 MiB for the whole process.
#[derive(Clone)]
pub struct MessageBudget(Arc<Count>);

/// Size of a budget, and the bytes that connections hold of it.
struct Count {
    bytes: usize,
    held: AtomicUsize,
}

impl MessageBudget {
    /// Creates a budget of its own.
    pub fn new(bytes: usize) -> Self {
        let held = AtomicUsize::new(0);
        Self(Arc::new(Count { bytes, held }))
    }

    /// Returns the size of the budget in bytes.
    pub fn bytes(&self) -> usize {
        self.0.bytes
    }

    /// Returns the number of bytes that connections hold.
    pub fn held(&self) -> usize {
        self.0.held.load(Ordering::Relaxed)
    }
}

impl Default for MessageBudget {
    fn default() -> Self {
        static OF_PROCESS: OnceLock<MessageBudget> = OnceLock::new();
        let of_process = OF_PROCESS.get_or_init(|| Self::new(DEFAULT_BYTES));
        of_process.clone()
    }
}

impl PartialEq for MessageBudget {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for MessageBudget {}

impl fmt::Debug for MessageBudget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MessageBudget")
            .field("bytes", &self.bytes())
            .field("held", &self.held())
            .finish()
    }
}

/// What one connection holds of a budget; returned when the value is dropped.
#[derive(Debug)]
pub struct BudgetShare {
    budget: MessageBudget,
    /// Maximum of all shares together: a budget that is smaller than one message takes one message.
    most: usize,
    held: usize,
}

impl BudgetShare {
    /// Creates a share of the budget of some limits, without bytes.
    pub fn new(limits: &Limits) -> Self {
        let budget = limits.message_budget.clone();
        let most = budget.bytes().max(limits.message_bytes);
        let held = 0;
        Self { budget, most, held }
    }

    /// Sets the number of received bytes of a message that is not complete; returns false, and then holds nothing, if the
    /// budget does not have them.
    pub fn resize(&mut self, bytes: usize) -> bool {
        let wanted = if bytes > FREE_BYTES { bytes } else { 0 };
        let count = &self.budget.0.held;
        if wanted <= self.held {
            if wanted < self.held {
                count.fetch_sub(self.held - wanted, Ordering::Relaxed);
                self.held = wanted;
            }
            return true;
        }
        let more = wanted - self.held;
        let before = count.fetch_add(more, Ordering::Relaxed);
        self.held = wanted;
        let fits = before + more <= self.most;
        if !fits {
            self.resize(0);
        }
        fits
    }
}

impl Drop for BudgetShare {
    fn drop(&mut self) {
        self.resize(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn limits(budget: &MessageBudget, message_bytes: usize) -> Limits {
        Limits {
            message_bytes,
            message_budget: budget.clone(),
            ..Limits::default()
        }
    }

    /// Shares of one budget count together, and give back what they hold.
    #[test]
    fn shares_count_together() {
        let budget = MessageBudget::new(300_000);
        let limits = limits(&budget, 200_000);
        let (mut one, mut other) = (BudgetShare::new(&limits), BudgetShare::new(&limits));
        assert!(one.resize(FREE_BYTES));
        assert_eq!(budget.held(), 0, "small messages are free");
        assert!(one.resize(200_000) && other.resize(100_000));
        assert_eq!(budget.held(), 300_000);
        assert!(!other.resize(100_001), "the budget is spent");
        assert_eq!(
            budget.held(),
            200_000,
            "a message that is skipped holds nothing"
        );
        assert!(one.resize(100_000) && other.resize(200_000));
        drop(one);
        assert_eq!(budget.held(), 200_000);
        drop(other);
        assert_eq!(budget.held(), 0);
    }

    /// A budget below the size of one message takes one message.
    #[test]
    fn one_message_always_fits() {
        let budget = MessageBudget::new(1);
        let limits = limits(&budget, 200_000);
        let (mut one, mut other) = (BudgetShare::new(&limits), BudgetShare::new(&limits));
        assert!(one.resize(200_000) && !other.resize(100_000));
        drop(one);
        assert!(other.resize(100_000));
    }

    /// Limits that name no budget have that of the process.
    #[test]
    fn default_is_the_budget_of_the_process() {
        assert_eq!(Limits::default().message_budget, MessageBudget::default());
        assert_eq!(MessageBudget::default().bytes(), DEFAULT_BYTES);
        assert_ne!(MessageBudget::new(DEFAULT_BYTES), MessageBudget::default());
    }
}
