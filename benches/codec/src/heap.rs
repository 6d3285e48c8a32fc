//! Counts the allocations between two points: their number, their bytes, and the peak. A relaxed flag switches it on; while
//! it is off it costs one load an allocation.

// An allocator cannot be written otherwise.
#![allow(unsafe_code)]

use std::alloc::{GlobalAlloc, Layout, System};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};

/// The system's allocator, with counters.
pub struct Counting;

static ON: AtomicBool = AtomicBool::new(false);
static COUNT: AtomicUsize = AtomicUsize::new(0);
static BYTES: AtomicUsize = AtomicUsize::new(0);
// Wraps below zero when something is freed that was there before; the difference still adds up.
static HELD: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);

/// Allocations of a piece of work.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Use {
    /// Allocations, reallocations included.
    pub count: usize,
    /// Bytes that were asked for; a reallocation adds its new size.
    pub bytes: usize,
    /// The most bytes that were held at once.
    pub peak: usize,
}

/// Returns the allocations of `work`. Nothing else may allocate meanwhile: the counters are those of the process.
pub fn during(work: impl FnOnce()) -> Use {
    for counter in [&COUNT, &BYTES, &HELD, &PEAK] {
        counter.store(0, Relaxed);
    }
    ON.store(true, Relaxed);
    work();
    ON.store(false, Relaxed);
    Use {
        count: COUNT.load(Relaxed),
        bytes: BYTES.load(Relaxed),
        peak: PEAK.load(Relaxed),
    }
}

fn add(new: usize, old: usize) {
    COUNT.fetch_add(1, Relaxed);
    BYTES.fetch_add(new, Relaxed);
    let held = HELD.fetch_add(new.wrapping_sub(old), Relaxed);
    let held = held.wrapping_add(new.wrapping_sub(old));
    if held.cast_signed() > 0 {
        PEAK.fetch_max(held, Relaxed);
    }
}

// SAFETY: every call goes to the system's allocator with the arguments that came.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            add(layout.size(), 0);
        }
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        if ON.load(Relaxed) {
            add(layout.size(), 0);
        }
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn realloc(&self, old: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        if ON.load(Relaxed) {
            add(size, layout.size());
        }
        unsafe { System.realloc(old, layout, size) }
    }

    unsafe fn dealloc(&self, old: *mut u8, layout: Layout) {
        if ON.load(Relaxed) {
            HELD.fetch_sub(layout.size(), Relaxed);
        }
        unsafe { System.dealloc(old, layout) }
    }
}
