//! Device buffers and pinned host buffers.

use std::{
    mem::ManuallyDrop,
    ops::{Deref, DerefMut},
};

pub use cust::memory::DeviceCopy;
use cust::{
    error::CudaError,
    memory::{DeviceBuffer as CustDeviceBuffer, LockedBuffer},
};

use super::{call::named, context::CudaContext};
use crate::{Error, Result};

/// `len` elements of device memory, freed when dropped (which waits for work that uses them).
pub struct DeviceBuffer<T: DeviceCopy> {
    context: CudaContext,
    buffer: ManuallyDrop<CustDeviceBuffer<T>>,
}

impl<T: DeviceCopy> DeviceBuffer<T> {
    /// Allocates without writing: the contents are whatever was there.
    ///
    /// # Errors
    /// [`Error::Memory`] when the device has too little free, else the driver's.
    pub fn new(context: CudaContext, len: usize) -> Result<Self> {
        let _current = context.enter()?;
        // SAFETY: `DeviceCopy` elements; the host reads them only after work has written them, which
        // those who order that work answer for.
        let buffer = unsafe { CustDeviceBuffer::uninitialized(len) }
            .map_err(|error| refused::<T>(context, "cuMemAlloc", "a device buffer", len, error))?;
        Ok(Self { context, buffer: ManuallyDrop::new(buffer) })
    }

    /// Elements.
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Whether it has no elements.
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }

    /// The address on the device, as kernels take it; 0 for an empty buffer.
    pub fn device_ptr(&self) -> u64 {
        self.buffer.as_device_ptr().as_raw()
    }

    /// The context in which it is allocated.
    pub fn context(&self) -> CudaContext {
        self.context
    }
}

impl<T: DeviceCopy> Drop for DeviceBuffer<T> {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: dropped once, here; without a context the memory is gone already.
            unsafe { ManuallyDrop::drop(&mut self.buffer) };
        }
    }
}

/// `len` elements of page-locked host memory, which the device copies from and to on its own.
pub struct PinnedBuffer<T: DeviceCopy> {
    context: CudaContext,
    buffer: ManuallyDrop<LockedBuffer<T>>,
}

impl<T: DeviceCopy + Default> PinnedBuffer<T> {
    /// Allocates `len` elements of the default value.
    ///
    /// # Errors
    /// [`Error::Memory`] when the system does not lock so much, else the driver's.
    pub fn new(context: CudaContext, len: usize) -> Result<Self> {
        let _current = context.enter()?;
        let buffer = LockedBuffer::new(&T::default(), len).map_err(|error| match error {
            CudaError::OutOfMemory | CudaError::InvalidMemoryAllocation => Error::Memory {
                what: "a page-locked host buffer",
                need: bytes::<T>(len),
                available: 0,
                advice: "the system does not lock so much memory: choose a smaller size".to_owned(),
            },
            other => named("cuMemAllocHost")(other),
        })?;
        Ok(Self { context, buffer: ManuallyDrop::new(buffer) })
    }
}

impl<T: DeviceCopy> Deref for PinnedBuffer<T> {
    type Target = [T];

    fn deref(&self) -> &[T] {
        &self.buffer
    }
}

impl<T: DeviceCopy> DerefMut for PinnedBuffer<T> {
    fn deref_mut(&mut self) -> &mut [T] {
        &mut self.buffer
    }
}

impl<T: DeviceCopy> Drop for PinnedBuffer<T> {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: as for `DeviceBuffer`.
            unsafe { ManuallyDrop::drop(&mut self.buffer) };
        }
    }
}

fn bytes<T>(len: usize) -> u64 {
    (len as u64).saturating_mul(size_of::<T>() as u64)
}

fn refused<T>(context: CudaContext, call: &'static str, what: &'static str, len: usize, error: CudaError) -> Error {
    match error {
        CudaError::OutOfMemory | CudaError::InvalidMemoryAllocation => Error::Memory {
            what,
            need: bytes::<T>(len),
            available: context.memory().map_or(0, |memory| memory.free),
            advice: "choose a smaller size, fewer disparities or paths, or end other users of the GPU".to_owned(),
        },
        other => named(call)(other),
    }
}
