//! The device's primary context, shared by every matcher of the process.

use std::{
    collections::BTreeMap,
    marker::PhantomData,
    sync::{Arc, Mutex, PoisonError},
};

use cust::{context::Context, device::Device, sys};

use super::{
    call::{cu, named},
    device::{DeviceInfo, Driver},
    module::{Kernels, Loaded},
    ptx::Ptx,
};
use crate::{Error, Result};

/// Device memory comes in pages of this size; a smaller buffer may share one with others.
const PAGE: u64 = 2 << 20;

/// How many buffers [`CudaContext::check_memory`] names when they do not fit.
const NAMED_BUFFERS: usize = 3;

/// The primary context of one GPU: a handle to copy around and to use from any thread.
///
/// Making a context takes the driver up to half a second, so it is made once per GPU and process and
/// kept. Every call of this module enters the context it needs and leaves the calling thread's
/// current context as it was.
#[derive(Clone, Copy)]
pub struct CudaContext(&'static Shared);

struct Shared {
    context: Context,
    device: &'static DeviceInfo,
    modules: Mutex<Vec<Arc<Loaded>>>,
}

/// Bytes of device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MemoryInfo {
    /// Bytes not in use by any process.
    pub free: u64,
    /// Bytes that the device has.
    pub total: u64,
}

impl CudaContext {
    /// The context of GPU `ordinal`; without one, of the first.
    ///
    /// # Errors
    /// As [`Driver::get`] and [`Driver::device`], or the driver's refusal to make a context.
    pub fn new(ordinal: Option<u32>) -> Result<Self> {
        static CONTEXTS: Mutex<BTreeMap<u32, &'static Shared>> = Mutex::new(BTreeMap::new());
        let device = Driver::get()?.device(ordinal)?;
        let mut contexts = CONTEXTS.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(shared) = contexts.get(&device.ordinal) {
            return Ok(Self(shared));
        }
        let shared = Shared { context: retain(device.ordinal)?, device, modules: Mutex::default() };
        let shared: &'static Shared = Box::leak(Box::new(shared));
        contexts.insert(device.ordinal, shared);
        Ok(Self(shared))
    }

    /// The GPU.
    pub fn device(&self) -> &'static DeviceInfo {
        self.0.device
    }

    /// Free and total device memory now.
    ///
    /// # Errors
    /// The driver's.
    pub fn memory(&self) -> Result<MemoryInfo> {
        let _current = self.enter()?;
        let (mut free, mut total) = (0, 0);
        // SAFETY: the driver writes two integers.
        unsafe { cu!(cuMemGetInfo_v2(&raw mut free, &raw mut total)) }?;
        Ok(MemoryInfo { free: free as u64, total: total as u64 })
    }

    /// Checks that all `buffers` (name and bytes) fit the free device memory together, to be called
    /// before the first is allocated. `advice` says what would fit, given the free bytes.
    ///
    /// # Errors
    /// [`Error::Memory`] with the need, the free amount, the largest buffers and the advice.
    pub fn check_memory(&self, buffers: &[(&str, u64)], advice: impl FnOnce(u64) -> String) -> Result<()> {
        check_fit(buffers, self.memory()?.free, advice)
    }

    /// Loads PTX; the driver compiles it for this GPU (and keeps the result on disk). The same PTX is
    /// loaded once, and dropped when nobody uses it any more and another is loaded.
    ///
    /// # Errors
    /// [`Error::Cuda`] with the compiler's log.
    pub fn load(&self, ptx: &Ptx) -> Result<Kernels> {
        let mut modules = self.0.modules.lock().unwrap_or_else(PoisonError::into_inner);
        let known = modules.iter().find(|module| module.ptx() == ptx);
        let module = match known {
            Some(module) => Arc::clone(module),
            None => {
                modules.retain(|module| Arc::strong_count(module) > 1);
                let module = Arc::new(Loaded::new(*self, ptx)?);
                modules.push(Arc::clone(&module));
                module
            }
        };
        Ok(Kernels::new(module))
    }

    /// Waits for all work of all streams.
    ///
    /// # Errors
    /// The driver's, among them the failure of any earlier kernel.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.enter()?;
        // SAFETY: takes no argument; the context is current.
        unsafe { cu!(cuCtxSynchronize()) }
    }

    /// Makes the context current on this thread until the guard is dropped.
    pub(super) fn enter(&self) -> Result<Current> {
        let own = self.0.context.as_raw();
        let mut current = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        unsafe { cu!(cuCtxGetCurrent(&raw mut current)) }?;
        let pushed = current != own;
        if pushed {
            // SAFETY: the primary context is retained for the life of the process.
            unsafe { cu!(cuCtxPushCurrent_v2(own)) }?;
        }
        Ok(Current { pushed, _thread_bound: PhantomData })
    }
}

impl std::fmt::Debug for CudaContext {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "CudaContext({}: {})", self.0.device.ordinal, self.0.device)
    }
}

/// Retains the primary context. `cust` makes it current, too, which is undone.
fn retain(ordinal: u32) -> Result<Context> {
    let device = Device::get_device(ordinal).map_err(named("cuDeviceGet"))?;
    let mut before: sys::CUcontext = std::ptr::null_mut();
    // SAFETY: the driver writes one handle.
    unsafe { cu!(cuCtxGetCurrent(&raw mut before)) }?;
    let context = Context::new(device).map_err(named("cuDevicePrimaryCtxRetain"))?;
    // SAFETY: this was the thread's current context (or none) a moment ago.
    unsafe { cu!(cuCtxSetCurrent(before)) }?;
    Ok(context)
}

/// The context is current on this thread while this lives.
pub(super) struct Current {
    pushed: bool,
    _thread_bound: PhantomData<*const ()>,
}

impl Drop for Current {
    fn drop(&mut self) {
        if self.pushed {
            let mut popped = std::ptr::null_mut();
            // SAFETY: the driver writes one handle. It can fail only after the driver has shut down,
            // when there is nothing left to restore.
            let _ = unsafe { cu!(cuCtxPopCurrent_v2(&raw mut popped)) };
        }
    }
}

fn check_fit(buffers: &[(&str, u64)], free: u64, advice: impl FnOnce(u64) -> String) -> Result<()> {
    let paged = |bytes: u64| if bytes >= PAGE / 2 { bytes.next_multiple_of(PAGE) } else { bytes };
    let need = buffers.iter().map(|&(_, bytes)| paged(bytes)).fold(0, u64::saturating_add);
    if need <= free {
        return Ok(());
    }
    let mut largest: Vec<_> = buffers.iter().copied().filter(|&(_, bytes)| bytes > 0).collect();
    largest.sort_by_key(|&(_, bytes)| std::cmp::Reverse(bytes));
    largest.truncate(NAMED_BUFFERS);
    let largest: Vec<_> = largest.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect();
    Err(Error::Memory {
        what: "the GPU matcher",
        need,
        available: free,
        advice: format!("{} (largest buffers: {})", advice(free), largest.join(", ")),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_that_does_not_fit_is_named() {
        let advice = |free: u64| format!("half would fit {free}");
        check_fit(&[("a", 1000), ("b", 24)], 1024, advice).unwrap();
        let refused =
            check_fit(&[("a", 1000), ("none", 0), ("cost", 4 * PAGE + 1), ("c", 2), ("d", 3)], 5 * PAGE, advice);
        let text = refused.unwrap_err().to_string();
        assert_eq!(
            text,
            format!(
                "the GPU matcher needs {} bytes, {} are available; half would fit {} (largest buffers: cost {}, a 1000, d 3)",
                5 * PAGE + 1005,
                5 * PAGE,
                5 * PAGE,
                4 * PAGE + 1
            )
        );
        assert!(check_fit(&[("a", u64::MAX - PAGE), ("b", u64::MAX - PAGE)], u64::MAX - 1, advice).is_err());
    }
}
