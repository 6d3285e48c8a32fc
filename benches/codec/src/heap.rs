//! Counts the allocations during a function call: their number, their bytes, and the peak. An atomic flag enables the
//! counting; while the counting is disabled, its cost is one load per allocation.

// An allocator cannot be written otherwise.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// Allocator of the system that also counts allocations.
pub struct Counting;

/// True while allocations are counted.
static IS_COUNTING: AtomicBool = AtomicBool::new(false);
/// Number of allocations since counting was enabled.
static ALLOCATION_COUNT: AtomicUsize = AtomicUsize::new(0);
/// Number of bytes that were requested since counting was enabled.
static REQUESTED_BYTES: AtomicUsize = AtomicUsize::new(0);
// Wraps below zero when something is freed that was there before; the difference still adds up.
/// Number of currently allocated bytes, counted from zero; wraps around if memory is freed that was allocated before
/// counting was enabled.
static ALLOCATED_BYTES: AtomicUsize = AtomicUsize::new(0);
/// Largest value of [`ALLOCATED_BYTES`] since counting was enabled.
static PEAK_BYTES: AtomicUsize = AtomicUsize::new(0);

/// Heap use of a function call.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// Number of allocations, including reallocations.
    pub count: usize,
    /// Number of requested bytes; a reallocation adds its new size.
    pub bytes: usize,
    /// Maximum number of bytes that were allocated at the same time.
    pub peak: usize,
}

/// Calls `work` and returns its heap use. The counters are global, so no other thread may allocate.
pub fn allocations_during(work: impl FnOnce()) -> Use {
    for counter in [
        &ALLOCATION_COUNT,
        &REQUESTED_BYTES,
        &ALLOCATED_BYTES,
        &PEAK_BYTES,
    ] {
        counter.store(0, Relaxed);
    }
    IS_COUNTING.store(true, Relaxed);
    work();
    IS_COUNTING.store(false, Relaxed);
    Use {
        count: ALLOCATION_COUNT.load(Relaxed),
        bytes: REQUESTED_BYTES.load(Relaxed),
        peak: PEAK_BYTES.load(Relaxed),
    }
}

/// Counts an allocation of `new` bytes that replaces an allocation of `old` bytes; `old` is 0 for a new allocation.
fn add(new: usize, old: usize) {
    ALLOCATION_COUNT.fetch_add(1, Relaxed);
    REQUESTED_BYTES.fetch_add(new, Relaxed);
    let held = ALLOCATED_BYTES.fetch_add(new.wrapping_sub(old), Relaxed);
    let held = held.wrapping_add(new.wrapping_sub(old));
    if held.cast_signed() > 0 {
        PEAK_BYTES.fetch_max(held, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator with the arguments that came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if IS_COUNTING.load(Relaxed) {
            add(layout.size(), 0);
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if IS_COUNTING.load(Relaxed) {
            add(layout.size(), 0);
        }
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if IS_COUNTING.load(Relaxed) {
            add(size, layout.size());
        }
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        if IS_COUNTING.load(Relaxed) {
            ALLOCATED_BYTES.fetch_sub(layout.size(), Relaxed);
        }
        unsafe { System.dealloc(old, layout) }
    }
}
