//! Allocator that counts what each thread holds, so that a property can bound the memory of one call.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

/// System allocator that counts the bytes of the current thread.
struct CountingAllocator;

/// Allocator of the fuzz targets and of the seeded runs.
#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

thread_local! {
    /// Bytes that this thread has allocated, minus those that it has freed, and their maximum.
    static IN_USE: Cell<(isize, isize)> = const { Cell::new((0, 0)) };
}

/// Counts bytes that the thread allocates or frees.
fn count(bytes: usize, sign: isize) {
    let bytes = isize::try_from(bytes).unwrap_or(isize::MAX) * sign;
    // A thread that ends has no counter any more.
    let _ = IN_USE.try_with(|counts| {
        let (in_use, peak) = counts.get();
        counts.set((in_use + bytes, peak.max(in_use + bytes)));
    });
}

#[allow(
    unsafe_code,
    reason = "an allocator cannot be written without unsafe code"
)]
// SAFETY: every function hands its arguments on to the system's allocator unchanged.
unsafe impl GlobalAlloc for CountingAllocator {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size(), 1);
        // SAFETY: the caller keeps the contract of `alloc`.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, pointer: *mut u8, layout: Layout) {
        count(layout.size(), -1);
        // SAFETY: the caller keeps the contract of `dealloc`.
        unsafe { System.dealloc(pointer, layout) }
    }
}

/// Returns the result of a step, and the largest number of bytes that the thread held during it beyond those before.
pub fn peak_bytes_during<T>(step: impl FnOnce() -> T) -> (T, usize) {
    let (before, _) = IN_USE.get();
    IN_USE.set((before, before));
    let result = step();
    let (_, peak) = IN_USE.get();
    (result, usize::try_from(peak - before).unwrap_or_default())
}
