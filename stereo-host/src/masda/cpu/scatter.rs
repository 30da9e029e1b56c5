//! A slice that several threads write at positions of their own.

use std::marker::PhantomData;

/// A mutable slice shared by threads that promise to write apart.
pub(super) struct Scatter<'a, T> {
    start: *mut T,
    len: usize,
    owner: PhantomData<&'a mut [T]>,
}

// SAFETY: threads only write, through `write`, whose callers keep their ranges apart.
unsafe impl<T: Send> Sync for Scatter<'_, T> {}

impl<'a, T: Copy> Scatter<'a, T> {
    pub(super) fn new(slice: &'a mut [T]) -> Self {
        Self { start: slice.as_mut_ptr(), len: slice.len(), owner: PhantomData }
    }

    /// The elements `at .. at + len`.
    ///
    /// # Panics
    /// Outside the slice.
    ///
    /// # Safety
    /// No other reference to any of these elements exists while the result is in use.
    #[allow(clippy::mut_from_ref)] // The whole purpose; the contract is the caller's.
    pub(super) unsafe fn part(&self, at: usize, len: usize) -> &mut [T] {
        assert!(at <= self.len && len <= self.len - at, "{len} elements at {at} of {}", self.len);
        // SAFETY: inside the slice that `owner` borrows, and not aliased by the caller's promise.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(at), len) }
    }
}
