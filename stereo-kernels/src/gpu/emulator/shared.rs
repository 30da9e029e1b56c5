//! The block's shared memory.

use core::{cell::UnsafeCell, marker::PhantomData};
use std::panic::Location;

use super::{
    fault::{Access, Cause, Space},
    memory::{Element, POISON},
    scheduler::{self, Block},
    shadow::{Byte, Record, SharedShadow},
};

/// Bytes of a wide load or store.
const WIDE: u32 = 16;

/// A typed part of the block's dynamic shared memory.
#[derive(Debug)]
pub struct Shared<T> {
    base: u32,
    len: u32,
    element: PhantomData<T>,
}

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Shared<T> {}

impl<T: Element> Shared<T> {
    /// `len` elements that start `offset` bytes into the block's dynamic shared memory, which is
    /// aligned to 128 bytes.
    #[track_caller]
    pub fn dynamic(offset: u32, len: u32) -> Self {
        let at = Location::caller();
        scheduler::with(|block| {
            let bytes = u64::from(len) * size_of::<T>() as u64;
            let shared = block.shared.bytes;
            if u64::from(offset) + bytes > u64::from(shared) {
                let (access, space) = (Access::Write, Space::Shared);
                let (offset, bytes, len) = (offset.into(), bytes as usize, shared as usize);
                block.fault(Some(at), Cause::OutOfBounds { access, space, offset, bytes, len });
            }
        });
        Self { base: offset, len, element: PhantomData }
    }

    /// Element `i`.
    #[track_caller]
    #[inline(always)]
    pub fn get(self, i: u32) -> T {
        let at = Location::caller();
        scheduler::with(|block| {
            let p = self.access(block, i, size_of::<T>() as u32, align_of::<T>() as u32, Access::Read, at);
            // SAFETY: `access` has found the element in the block's memory, aligned.
            unsafe { T::load(p) }
        })
    }

    /// Writes element `i`.
    #[track_caller]
    #[inline(always)]
    pub fn set(self, i: u32, value: T) {
        let at = Location::caller();
        scheduler::with(|block| {
            let p = self.access(block, i, size_of::<T>() as u32, align_of::<T>() as u32, Access::Write, at);
            // SAFETY: `access` has found the element in the block's memory, aligned.
            unsafe { T::store(p, value) }
        });
    }

    /// The 8 bytes from element `i` on; their address is a multiple of 8.
    #[track_caller]
    #[inline(always)]
    pub fn get_x2(self, i: u32) -> [u32; 2] {
        self.get_words(i)
    }

    /// The 16 bytes from element `i` on; their address is a multiple of 16.
    #[track_caller]
    #[inline(always)]
    pub fn get_x4(self, i: u32) -> [u32; 4] {
        self.get_words(i)
    }

    #[track_caller]
    #[inline(always)]
    fn get_words<const N: usize>(self, i: u32) -> [u32; N] {
        let at = Location::caller();
        scheduler::with(|block| {
            let bytes = size_of::<[u32; N]>() as u32;
            let p: *const u32 = self.access(block, i, bytes, bytes, Access::Read, at).cast();
            // SAFETY: `access` has found the words in the block's memory, aligned.
            std::array::from_fn(|k| unsafe { u32::load(p.add(k)) })
        })
    }

    /// Writes the 16 bytes from element `i` on; their address is a multiple of 16.
    #[track_caller]
    #[inline(always)]
    pub fn set_x4(self, i: u32, values: [u32; 4]) {
        let at = Location::caller();
        scheduler::with(|block| {
            let p: *mut u32 = self.access(block, i, WIDE, WIDE, Access::Write, at).cast();
            for (k, value) in values.into_iter().enumerate() {
                // SAFETY: `access` has found 16 bytes in the block's memory, aligned.
                unsafe { u32::store(p.add(k), value) }
            }
        });
    }

    #[inline(always)]
    fn access(
        self,
        block: &Block,
        i: u32,
        bytes: u32,
        alignment: u32,
        access: Access,
        at: &'static Location<'static>,
    ) -> *mut T {
        let address = self.checked(block, i, bytes, alignment, access, at);
        if block.checks() {
            block.shared.record(block, address, bytes, access, at);
        }
        block.shared.pointer(address).cast()
    }

    /// The place in shared memory of the `bytes` bytes from element `i` on.
    #[inline(always)]
    pub(super) fn checked(
        self,
        block: &Block,
        i: u32,
        bytes: u32,
        alignment: u32,
        access: Access,
        at: &'static Location<'static>,
    ) -> u32 {
        let size = size_of::<T>() as u64;
        let (offset, len) = (u64::from(i) * size, u64::from(self.len) * size);
        if offset + u64::from(bytes) > len {
            let (space, offset, bytes, len) = (Space::Shared, offset.into(), bytes as usize, len as usize);
            block.fault(Some(at), Cause::OutOfBounds { access, space, offset, bytes, len });
        }
        // Fits: `dynamic` has checked that the part ends within shared memory.
        let address = self.base + offset as u32;
        if !address.is_multiple_of(alignment) {
            let (space, value, of) = (Space::Shared, address as usize, alignment as usize);
            block.fault(Some(at), Cause::Misaligned { access, space, value, of });
        }
        address
    }
}

impl Shared<u32> {
    /// Atomically lowers element `i` to `value` if that is smaller.
    #[track_caller]
    #[inline(always)]
    pub fn fetch_min(self, i: u32, value: u32) {
        let at = Location::caller();
        scheduler::with(|block| {
            let p = self.access(block, i, size_of::<u32>() as u32, align_of::<u32>() as u32, Access::Atomic, at);
            // SAFETY: `access` has found the element in the block's memory, aligned; the threads of
            // a block take turns on one host thread.
            unsafe { u32::store(p, u32::load(p).min(value)) }
        });
    }
}

/// A block's shared memory and its shadow.
pub(super) struct SharedMemory {
    words: Box<[UnsafeCell<u128>]>,
    pub(super) bytes: u32,
    /// Absent without checks.
    shadow: Option<SharedShadow>,
}

impl SharedMemory {
    pub(super) fn new(bytes: u32, checks: bool) -> Self {
        let words = (0..bytes.div_ceil(WIDE)).map(|_| UnsafeCell::new(0)).collect();
        Self { words, bytes, shadow: checks.then(|| SharedShadow::new(bytes as usize)) }
    }

    /// What a new block finds.
    pub(super) fn poison(&mut self) {
        for word in &mut self.words {
            *word.get_mut() = u128::from_ne_bytes([POISON; WIDE as usize]);
        }
    }

    #[inline(always)]
    pub(super) fn pointer(&self, address: u32) -> *mut u8 {
        UnsafeCell::raw_get(self.words.as_ptr().cast::<UnsafeCell<u8>>()).wrapping_add(address as usize)
    }

    /// Checks an access against the accesses before it, and records it.
    pub(super) fn record(
        &self,
        block: &Block,
        address: u32,
        bytes: u32,
        access: Access,
        at: &'static Location<'static>,
    ) {
        let Some(shadow) = &self.shadow else { return };
        let now = block.now();
        let writes = matches!(access, Access::Write | Access::BulkCopy);
        shadow.update(address as usize..(address + bytes) as usize, now, |offset, known| {
            if known.write == Record::NONE && !writes {
                block.fault(Some(at), Cause::Uninitialised { access, space: Space::Shared, offset });
            }
            let mut byte = known;
            if byte.write.bulk_copy().is_some_and(|copy| block.has_seen(copy)) {
                // Having waited for a copy orders it before everything that follows.
                byte.write = Record::NONE;
            }
            let updated = match access {
                Access::Read => byte.reading(now).map(|read| Byte { read, ..known }),
                Access::Write => byte.writing(now, true).map(|write| Byte { write, ..known }),
                Access::Atomic => byte.updating(now).map(|write| Byte { write, ..known }),
                // The copy engine is another agent than the thread that starts it: even that one's
                // own accesses are not ordered before the copy's.
                Access::BulkCopy => {
                    byte.writing(now, false).map(|_| Byte { write: now.bulk(block.next_copy()), ..known })
                }
            };
            updated.unwrap_or_else(|conflict| {
                let cause = match (access, conflict.earlier.bulk_copy()) {
                    (Access::Read | Access::Atomic, Some(_)) => Cause::NotWaitedFor { access, offset },
                    _ => {
                        let by = conflict.earlier.describe(block.grid().0);
                        Cause::Race { space: Space::Shared, offset, access, earlier: conflict.access, by }
                    }
                };
                block.fault(Some(at), cause)
            })
        });
    }

    /// Checks that the 8 bytes of an `mbarrier` were written before, and that this is ordered.
    pub(super) fn check_barrier(&self, block: &Block, address: u32, at: &'static Location<'static>) {
        let Some(shadow) = &self.shadow else { return };
        let now = block.now();
        if let Err(conflict) = shadow.get(address as usize, now).reading(now) {
            let (space, offset, access) = (Space::Shared, address as usize, Access::Atomic);
            let by = conflict.earlier.describe(block.grid().0);
            block.fault(Some(at), Cause::Race { space, offset, access, earlier: conflict.access, by });
        }
    }
}
