//! Allocator that counts the allocated bytes of the test process.
//!
//! A test holds the guard of [`count_alone`] while it runs, so that no other test is counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

struct Counting;

static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

#[global_allocator]
static ALLOCATOR: Counting = Counting;

#[allow(
    unsafe_code,
    reason = "an allocator cannot be written without unsafe code"
)]
// SAFETY: every function hands its arguments on to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let before = IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        PEAK.fetch_max(before + layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

static COUNTING: Mutex<()> = Mutex::new(());

/// Waits until no other test counts allocations; the guard excludes others.
pub(crate) fn count_alone() -> MutexGuard<'static, ()> {
    // A test that failed has nothing in use any more.
    COUNTING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of bytes that the process has allocated and not freed.
pub(crate) fn in_use() -> usize {
    IN_USE.load(Ordering::Relaxed)
}

/// Returns the peak of additional allocated bytes during a step.
pub(crate) fn peak_of(step: impl FnOnce()) -> usize {
    let before = in_use();
    PEAK.store(before, Ordering::Relaxed);
    step();
    PEAK.load(Ordering::Relaxed) - before
}
