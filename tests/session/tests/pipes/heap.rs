//! Allocator that counts the allocated bytes of the test process.
//!
//! A test holds the guard of [`lock_counting`] while it runs, so that the allocations of other tests are not counted.

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// System allocator that counts the allocated bytes.
struct CountingAllocator;

/// Number of bytes that are allocated.
static BYTES_IN_USE: AtomicUsize = AtomicUsize::new(0);
/// Maximum of [`BYTES_IN_USE`] since the last reset.
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Global allocator of this test executable.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[allow(
    unsafe_code,
    reason = "an allocator cannot be written without unsafe code"
)]
// SAFETY: every function hands its arguments on to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let before = BYTES_IN_USE.fetch_add(layout.size(), Ordering::Relaxed);
        PEAK_BYTES.fetch_max(before + layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        BYTES_IN_USE.fetch_sub(layout.size(), Ordering::Relaxed);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Mutex that a test holds while allocations are counted.
static COUNT_LOCK: Mutex<()> = Mutex::new(());

/// Waits until no other test counts allocations; other tests wait until the guard is dropped.
pub(crate) fn lock_counting() -> MutexGuard<'static, ()> {
    // A test that failed has nothing in use any more.
    COUNT_LOCK.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Returns the number of bytes that the process has allocated and not freed.
pub(crate) fn bytes_in_use() -> usize {
    BYTES_IN_USE.load(Ordering::Relaxed)
}

/// Returns the peak of the allocated bytes during a step, minus the bytes that were allocated before the step.
pub(crate) fn peak_bytes_during(step: impl FnOnce()) -> usize {
    let before = bytes_in_use();
    PEAK_BYTES.store(before, Ordering::Relaxed);
    step();
    PEAK_BYTES.load(Ordering::Relaxed) - before
}
