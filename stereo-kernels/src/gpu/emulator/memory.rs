//! Emulated device memory: buffers, their registry, and element-wise access.
//!
//! Kernels hold bare addresses, as on a device. An access finds its allocation in a snapshot of the
//! registry that the launch takes, so that a stray or stale pointer is a fault and never touches the
//! host's memory. Elements are accessed as relaxed atomics: a kernel with a data race stays defined
//! on the host.

use core::{
    cell::{Cell, UnsafeCell},
    marker::PhantomData,
    ops::Range,
    sync::atomic,
};
use std::{
    collections::BTreeMap,
    sync::{Arc, PoisonError, RwLock, atomic::Ordering::Relaxed},
};

use super::{
    byte_set::ByteSet,
    global::{Global, GlobalMut},
    shadow::GlobalShadow,
};

/// What new memory is filled with, so that results made of it stand out.
pub(super) const POISON: u8 = 0xa5;

/// Alignment of every buffer, as of the driver's allocations.
const ALIGNMENT: usize = 256;

#[repr(C, align(256))]
struct Chunk(UnsafeCell<[u8; ALIGNMENT]>);

const _: () = assert!(align_of::<Chunk>() == ALIGNMENT && size_of::<Chunk>() == ALIGNMENT);

/// Memory that views point into. Bytes are only accessed atomically.
pub(super) struct Allocation {
    chunks: Box<[Chunk]>,
    bytes: usize,
    /// The bytes that anybody wrote.
    pub(super) initialised: ByteSet,
}

// SAFETY: the chunks are accessed through atomics only (`Element::load` and `Element::store`).
unsafe impl Sync for Allocation {}
// SAFETY: the memory is plain bytes.
unsafe impl Send for Allocation {}

impl Allocation {
    fn new(bytes: usize) -> Self {
        let chunks = (0..bytes.div_ceil(ALIGNMENT).max(1)).map(|_| Chunk(UnsafeCell::new([POISON; ALIGNMENT])));
        Self { chunks: chunks.collect(), bytes, initialised: ByteSet::new(bytes) }
    }

    fn start(&self) -> *mut u8 {
        UnsafeCell::raw_get(self.chunks.as_ptr().cast::<UnsafeCell<u8>>())
    }
}

static REGISTRY: RwLock<BTreeMap<usize, Arc<Allocation>>> = RwLock::new(BTreeMap::new());

/// All buffers that are alive when a launch starts, with the launch's own shadow of each.
pub(super) struct Memory {
    mapped: Vec<Mapped>,
}

/// One buffer during a launch.
pub(super) struct Mapped {
    start: usize,
    bytes: usize,
    pub(super) allocation: Arc<Allocation>,
    pub(super) shadow: GlobalShadow,
}

impl Memory {
    pub(super) fn snapshot() -> Self {
        let registry = REGISTRY.read().unwrap_or_else(PoisonError::into_inner);
        let mapped = registry.iter().map(|(&start, allocation)| Mapped {
            start,
            bytes: allocation.bytes,
            allocation: Arc::clone(allocation),
            shadow: GlobalShadow::new(allocation.bytes),
        });
        Self { mapped: mapped.collect() }
    }

    /// The buffer that holds the `bytes` bytes at `address`, and where in it they are. `last` is the
    /// number of the buffer that was found last, which is likely to be it again.
    #[inline(always)]
    pub(super) fn find(&self, address: usize, bytes: usize, last: &Cell<usize>) -> Option<(&Mapped, usize)> {
        if let Some(mapped) = self.mapped.get(last.get())
            && let Some(offset) = mapped.offset(address, bytes)
        {
            return Some((mapped, offset));
        }
        let number = self.mapped.partition_point(|m| m.start <= address).checked_sub(1)?;
        let mapped = &self.mapped[number];
        last.set(number);
        mapped.offset(address, bytes).map(|offset| (mapped, offset))
    }
}

impl Mapped {
    #[inline(always)]
    fn offset(&self, address: usize, bytes: usize) -> Option<usize> {
        let offset = address.checked_sub(self.start)?;
        (bytes <= self.bytes.checked_sub(offset)?).then_some(offset)
    }
}

/// Owned emulated device memory: `len` elements, aligned to 256 bytes. Which bytes were written is
/// remembered from launch to launch.
pub struct Buffer<T: Element> {
    allocation: Arc<Allocation>,
    len: usize,
    element: PhantomData<T>,
}

impl<T: Element> Buffer<T> {
    /// `len` elements that nobody wrote yet.
    pub fn new(len: usize) -> Self {
        let allocation = Arc::new(Allocation::new(len * size_of::<T>()));
        let start = allocation.start() as usize;
        REGISTRY.write().unwrap_or_else(PoisonError::into_inner).insert(start, Arc::clone(&allocation));
        Self { allocation, len, element: PhantomData }
    }

    /// A buffer that holds `values`.
    pub fn from_slice(values: &[T]) -> Self {
        let mut buffer = Self::new(values.len());
        buffer.upload(values);
        buffer
    }

    /// Elements in the buffer.
    pub fn len(&self) -> usize {
        self.len
    }

    /// Whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Writes all elements from the host.
    ///
    /// # Panics
    ///
    /// If `values` has another length than the buffer.
    pub fn upload(&mut self, values: &[T]) {
        assert_eq!(values.len(), self.len, "upload of {} elements into a buffer of {}", values.len(), self.len);
        self.upload_at(0, values);
    }

    /// Writes `values` from element `start` on, from the host.
    ///
    /// # Panics
    ///
    /// If they do not fit.
    pub fn upload_at(&mut self, start: usize, values: &[T]) {
        let range = self.checked(start..start + values.len());
        for (i, &value) in range.clone().zip(values) {
            // SAFETY: `i` is below the buffer's length.
            unsafe { T::store(self.pointer().add(i), value) }
        }
        self.allocation.initialised.insert(range.start * size_of::<T>()..range.end * size_of::<T>());
    }

    /// Sets every element to `value`.
    pub fn fill(&mut self, value: T) {
        for i in 0..self.len {
            // SAFETY: `i` is below the buffer's length.
            unsafe { T::store(self.pointer().add(i), value) }
        }
        self.allocation.initialised.insert(0..self.len * size_of::<T>());
    }

    /// All elements, also those that nobody wrote.
    pub fn download(&self) -> Vec<T> {
        // SAFETY: `i` is below the buffer's length.
        (0..self.len).map(|i| unsafe { T::load(self.pointer().add(i)) }).collect()
    }

    /// The first element of which nobody wrote all bytes.
    pub fn first_unwritten(&self) -> Option<usize> {
        self.allocation.initialised.first_not_in(0..self.allocation.bytes).map(|byte| byte / size_of::<T>())
    }

    /// A read-only view of all elements, for launches in which nobody writes them.
    pub fn global(&self) -> Global<T> {
        self.global_at(0..self.len)
    }

    /// A view of all elements.
    pub fn global_mut(&mut self) -> GlobalMut<T> {
        self.global_mut_at(0..self.len)
    }

    /// A read-only view of the elements in `range`.
    ///
    /// # Panics
    ///
    /// If `range` leaves the buffer.
    pub fn global_at(&self, range: Range<usize>) -> Global<T> {
        let range = self.checked(range);
        // SAFETY: the range lies within the buffer.
        unsafe { Global::from_raw(self.pointer().add(range.start).cast_const(), range.len()) }
    }

    /// A view of the elements in `range`.
    ///
    /// # Panics
    ///
    /// If `range` leaves the buffer.
    pub fn global_mut_at(&mut self, range: Range<usize>) -> GlobalMut<T> {
        let range = self.checked(range);
        // SAFETY: the range lies within the buffer.
        unsafe { GlobalMut::from_raw(self.pointer().add(range.start), range.len()) }
    }

    fn checked(&self, range: Range<usize>) -> Range<usize> {
        assert!(
            range.start <= range.end && range.end <= self.len,
            "elements {} to {} of a buffer of {}",
            range.start,
            range.end,
            self.len
        );
        range
    }

    fn pointer(&self) -> *mut T {
        self.allocation.start().cast()
    }
}

impl<T: Element> Drop for Buffer<T> {
    fn drop(&mut self) {
        let start = self.allocation.start() as usize;
        REGISTRY.write().unwrap_or_else(PoisonError::into_inner).remove(&start);
    }
}

impl<T: Element> core::fmt::Debug for Buffer<T> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Buffer").field("start", &self.allocation.start()).field("len", &self.len).finish()
    }
}

/// A type that memory holds: implemented for the integers of 8 to 64 bits that kernels use.
pub trait Element: Copy + Send + Sync + 'static {
    #[doc(hidden)]
    unsafe fn load(p: *const Self) -> Self;
    #[doc(hidden)]
    unsafe fn store(p: *mut Self, value: Self);
}

macro_rules! elements {
    ($($t:ty, $atomic:ident;)*) => {$(
        impl Element for $t {
            #[inline(always)]
            unsafe fn load(p: *const Self) -> Self {
                // SAFETY: the caller gives an aligned address in live memory.
                unsafe { atomic::$atomic::from_ptr(p.cast_mut()) }.load(Relaxed)
            }
            #[inline(always)]
            unsafe fn store(p: *mut Self, value: Self) {
                // SAFETY: the caller gives an aligned address in live memory.
                unsafe { atomic::$atomic::from_ptr(p) }.store(value, Relaxed)
            }
        }
    )*};
}

elements! {
    u8, AtomicU8;
    u16, AtomicU16;
    i16, AtomicI16;
    u32, AtomicU32;
    i32, AtomicI32;
    u64, AtomicU64;
}
