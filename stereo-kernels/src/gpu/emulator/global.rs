//! Views of device memory. On the host they carry their length, and each access is checked.

use core::ops::Range;
use std::{
    panic::Location,
    sync::atomic::{AtomicU32, Ordering::Relaxed},
};

pub use super::memory::Element;
use super::{
    fault::{Access, Cause, Space},
    memory::Mapped,
    scheduler::{self, Block},
    shadow::GlobalConflict,
};

/// Device memory that no thread writes during the launch: loads take the read-only path.
/// A bare pointer on the device; on the host it carries its length and every access is checked. The
/// pointer stands first, so that the driver, given the address of a view, finds a device pointer.
#[repr(C)]
pub struct Global<T> {
    pointer: *const T,
    len: usize,
}

/// Device memory that the launch may write. Different threads write different elements unless
/// they use the atomic operations. The pointer stands first, as in [`Global`].
#[repr(C)]
pub struct GlobalMut<T> {
    pointer: *mut T,
    len: usize,
}

macro_rules! view {
    ($View:ident, $pointer:ty) => {
        impl<T> Clone for $View<T> {
            fn clone(&self) -> Self {
                *self
            }
        }

        impl<T> Copy for $View<T> {}

        // SAFETY: a view is an address; what may be done with it is `from_raw`'s contract.
        unsafe impl<T: Send> Send for $View<T> {}
        // SAFETY: as above.
        unsafe impl<T: Sync> Sync for $View<T> {}

        impl<T> core::fmt::Debug for $View<T> {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                write!(f, "{}({:p}, {})", stringify!($View), self.pointer, self.len)
            }
        }

        impl<T> $View<T> {
            /// The `len` elements from `pointer` on: a device address for a launch on a device, an
            /// address in an emulator's buffer for one in the emulator.
            ///
            /// # Safety
            ///
            /// A launch on a device that is given the view accesses these elements unchecked: they
            /// must be device memory that lives until the launch has ended, and that nothing else
            /// accesses in conflict. The emulator itself checks what it accesses.
            pub const unsafe fn from_raw(pointer: $pointer, len: usize) -> Self {
                Self { pointer, len }
            }

            /// Elements in the view.
            #[allow(clippy::len_without_is_empty, reason = "kernels have no such method: a view is a launch argument")]
            pub const fn len(&self) -> usize {
                self.len
            }

            /// The address of the first element.
            pub const fn as_ptr(&self) -> $pointer {
                self.pointer
            }
        }
    };
}

view!(Global, *const T);
view!(GlobalMut, *mut T);

impl<T: Element> Global<T> {
    /// Element `i`.
    #[track_caller]
    #[inline(always)]
    pub fn get(self, i: usize) -> T {
        let at = Location::caller();
        scheduler::with(|block| {
            let p = self.read(block, i, size_of::<T>(), align_of::<T>(), Access::Read, at);
            // SAFETY: `read` has found the element in live memory, aligned.
            unsafe { T::load(p) }
        })
    }

    /// The 8 bytes from element `i` on; their address is a multiple of 8.
    #[track_caller]
    #[inline(always)]
    pub fn get_x2(self, i: usize) -> [u32; 2] {
        self.get_words(i)
    }

    /// The 16 bytes from element `i` on; their address is a multiple of 16.
    #[track_caller]
    #[inline(always)]
    pub fn get_x4(self, i: usize) -> [u32; 4] {
        self.get_words(i)
    }

    #[track_caller]
    #[inline(always)]
    fn get_words<const N: usize>(self, i: usize) -> [u32; N] {
        let at = Location::caller();
        scheduler::with(|block| {
            let bytes = size_of::<[u32; N]>();
            let p: *const u32 = self.read(block, i, bytes, bytes, Access::Read, at).cast();
            // SAFETY: `read` has found the words in live memory, aligned.
            std::array::from_fn(|k| unsafe { u32::load(p.add(k)) })
        })
    }

    /// Checks a read through the read-only path.
    #[inline(always)]
    pub(super) fn read(
        self,
        block: &Block,
        i: usize,
        bytes: usize,
        alignment: usize,
        access: Access,
        at: &'static Location<'static>,
    ) -> *const T {
        let (p, mapped, range) = checked(block, self.pointer, self.len, i, bytes, alignment, access, at);
        if block.checks() {
            uninitialised(block, mapped, range.clone(), access, at);
            if let Err(conflict) = mapped.shadow.read_only(range) {
                refuse(block, conflict, access, at);
            }
        }
        p
    }
}

impl<T: Element> GlobalMut<T> {
    /// Element `i`.
    #[track_caller]
    #[inline(always)]
    pub fn get(self, i: usize) -> T {
        let at = Location::caller();
        scheduler::with(|block| {
            let p = self.access(block, i, size_of::<T>(), align_of::<T>(), Access::Read, at);
            // SAFETY: `access` has found the element in live memory, aligned.
            unsafe { T::load(p) }
        })
    }

    /// Writes element `i`.
    #[track_caller]
    #[inline(always)]
    pub fn set(self, i: usize, value: T) {
        let at = Location::caller();
        scheduler::with(|block| {
            let p = self.access(block, i, size_of::<T>(), align_of::<T>(), Access::Write, at);
            // SAFETY: `access` has found the element in live memory, aligned.
            unsafe { T::store(p, value) }
        });
    }

    /// Writes the 8 bytes from element `i` on; their address is a multiple of 8.
    #[track_caller]
    #[inline(always)]
    pub fn set_x2(self, i: usize, values: [u32; 2]) {
        self.set_words(i, values);
    }

    /// Writes the 16 bytes from element `i` on; their address is a multiple of 16.
    #[track_caller]
    #[inline(always)]
    pub fn set_x4(self, i: usize, values: [u32; 4]) {
        self.set_words(i, values);
    }

    #[track_caller]
    #[inline(always)]
    fn set_words<const N: usize>(self, i: usize, values: [u32; N]) {
        let at = Location::caller();
        scheduler::with(|block| {
            let bytes = size_of::<[u32; N]>();
            let p: *mut u32 = self.access(block, i, bytes, bytes, Access::Write, at).cast();
            for (k, value) in values.into_iter().enumerate() {
                // SAFETY: `access` has found the words in live memory, aligned.
                unsafe { u32::store(p.add(k), value) }
            }
        });
    }

    #[inline(always)]
    fn access(
        self,
        block: &Block,
        i: usize,
        bytes: usize,
        alignment: usize,
        access: Access,
        at: &'static Location<'static>,
    ) -> *mut T {
        let (p, mapped, range) = checked(block, self.pointer, self.len, i, bytes, alignment, access, at);
        if block.checks() {
            if access != Access::Write {
                uninitialised(block, mapped, range.clone(), access, at);
            }
            if let Err(conflict) = mapped.shadow.access(range.clone(), access, block.now()) {
                refuse(block, conflict, access, at);
            }
            if access != Access::Read {
                mapped.allocation.initialised.insert(range);
            }
        }
        p.cast_mut()
    }
}

impl GlobalMut<u32> {
    /// Atomically lowers element `i` to `value` if that is smaller.
    #[track_caller]
    #[inline(always)]
    pub fn fetch_min(self, i: usize, value: u32) {
        let at = Location::caller();
        scheduler::with(|block| {
            let p = self.access(block, i, size_of::<u32>(), align_of::<u32>(), Access::Atomic, at);
            // SAFETY: `access` has found the element in live memory, aligned.
            unsafe { AtomicU32::from_ptr(p) }.fetch_min(value, Relaxed);
        });
    }
}

/// The address of element `i` of a view, after all checks that keep the host's memory safe, and
/// which bytes of which buffer it is.
#[inline(always)]
#[allow(clippy::too_many_arguments, reason = "an access has that many properties")]
fn checked<'b, T>(
    block: &'b Block,
    pointer: *const T,
    len: usize,
    i: usize,
    bytes: usize,
    alignment: usize,
    access: Access,
    at: &'static Location<'static>,
) -> (*const T, &'b Mapped, Range<usize>) {
    let size = size_of::<T>();
    // `len` elements need not exist (see `from_raw`), so that their bytes may exceed a usize.
    let end = i.checked_mul(size).and_then(|offset| offset.checked_add(bytes));
    if end.is_none_or(|end| end > len.saturating_mul(size)) {
        let (space, offset, len) = (Space::Global, i as u128 * size as u128, len.saturating_mul(size));
        block.fault(Some(at), Cause::OutOfBounds { access, space, offset, bytes, len });
    }
    let p = pointer.wrapping_add(i);
    let address = p as usize;
    if !address.is_multiple_of(alignment) {
        let (space, value, of) = (Space::Global, address, alignment);
        block.fault(Some(at), Cause::Misaligned { access, space, value, of });
    }
    match block.find(address, bytes) {
        Some((mapped, offset)) => (p, mapped, offset..offset + bytes),
        None => block.fault(Some(at), Cause::Unmapped { access, address, bytes }),
    }
}

fn uninitialised(block: &Block, mapped: &Mapped, range: Range<usize>, access: Access, at: &'static Location<'static>) {
    if let Some(offset) = mapped.allocation.initialised.first_not_in(range) {
        block.fault(Some(at), Cause::Uninitialised { access, space: Space::Global, offset });
    }
}

#[cold]
fn refuse(block: &Block, conflict: GlobalConflict, access: Access, at: &'static Location<'static>) -> ! {
    let cause = match conflict {
        GlobalConflict::ReadOnlyWritten(offset) => Cause::ReadOnlyWritten { offset },
        GlobalConflict::Race(offset, conflict) => {
            let by = conflict.earlier.describe(block.grid().0);
            Cause::Race { space: Space::Global, offset, access, earlier: conflict.access, by }
        }
    };
    block.fault(Some(at), cause)
}
