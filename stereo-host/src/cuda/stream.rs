//! Streams, events and captured graphs.

use cust::sys::{self, CUevent, CUgraphExec, CUstream};

use super::{
    call::{cu, cu_code, describe},
    context::CudaContext,
    memory::{DeviceBuffer, DeviceCopy},
};
use crate::{DeviceImage, Error, Result};

/// Which streams' blocks the device starts first.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Priority {
    /// After all others.
    #[default]
    Low,
    /// Before all others.
    High,
}

/// A queue of work. It does not wait for the legacy default stream, nor that one for it.
pub struct Stream {
    context: CudaContext,
    raw: CUstream,
}

// SAFETY: the driver API may be called with a stream's handle from any thread.
unsafe impl Send for Stream {}
// SAFETY: as above.
unsafe impl Sync for Stream {}

impl Stream {
    /// A stream of its own.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(context: CudaContext, priority: Priority) -> Result<Self> {
        let _current = context.enter()?;
        let (mut least, mut greatest) = (0, 0);
        // SAFETY: the driver writes two integers.
        unsafe { cu!(cuCtxGetStreamPriorityRange(&raw mut least, &raw mut greatest)) }?;
        let priority = match priority {
            Priority::Low => least,
            Priority::High => greatest,
        };
        // Not `cust::stream::Stream`: it takes the flag away.
        let flags = sys::CUstream_flags_enum::CU_STREAM_NON_BLOCKING as u32;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        unsafe { cu!(cuStreamCreateWithPriority(&raw mut raw, flags, priority)) }?;
        Ok(Self { context, raw })
    }

    /// The context in which it is made.
    pub fn context(&self) -> CudaContext {
        self.context
    }

    /// Waits until all work queued so far is done.
    ///
    /// # Errors
    /// The driver's, among them the failure of an earlier kernel.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the stream is alive.
        unsafe { cu!(cuStreamSynchronize(self.raw)) }
    }

    /// Lets `event` happen when all work queued so far is done.
    ///
    /// # Errors
    /// The driver's.
    pub fn record(&self, event: &Event) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: stream and event are alive.
        unsafe { cu!(cuEventRecord(event.raw, self.raw)) }
    }

    /// Lets all work queued from now on wait for `event`, as recorded last.
    ///
    /// # Errors
    /// The driver's.
    pub fn wait(&self, event: &Event) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: stream and event are alive; the driver asks for flags 0.
        unsafe { cu!(cuStreamWaitEvent(self.raw, event.raw, 0)) }
    }

    /// Queues a copy of `source` to the start of `target`.
    ///
    /// # Safety
    /// Until the copy is done, `source` lives and is not written, and no work that is not ordered with
    /// the copy touches `target`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when `target` is shorter; the driver's.
    pub unsafe fn upload<T: DeviceCopy>(&self, source: &[T], target: &DeviceBuffer<T>) -> Result<()> {
        check_len("device buffer of an upload", target.len(), source.len())?;
        if source.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: both sides hold that many bytes; the caller answers for their lives.
        unsafe { cu!(cuMemcpyHtoDAsync_v2(target.device_ptr(), source.as_ptr().cast(), size_of_val(source), self.raw)) }
    }

    /// Queues a copy of `height` rows of `width` elements; rows start `source_stride` and
    /// `target_stride` elements apart.
    ///
    /// # Safety
    /// As [`Stream::upload`].
    ///
    /// # Errors
    /// [`Error::Mismatch`] when either side is shorter than that; the driver's.
    pub unsafe fn upload_rows<T: DeviceCopy>(
        &self,
        source: &[T],
        source_stride: usize,
        target: &DeviceBuffer<T>,
        target_stride: usize,
        width: usize,
        height: usize,
    ) -> Result<()> {
        if width == 0 || height == 0 {
            return Ok(());
        }
        if height == 1 || (source_stride == width && target_stride == width) {
            let len = width.saturating_mul(height);
            check_len("host rows of an upload", source.len(), len)?;
            // SAFETY: the caller's promise.
            return unsafe { self.upload(&source[..len], target) };
        }
        check_len("host row stride of an upload", source_stride, width)?;
        check_len("device row stride of an upload", target_stride, width)?;
        let span = |stride: usize| stride.saturating_mul(height - 1).saturating_add(width);
        check_len("host rows of an upload", source.len(), span(source_stride))?;
        check_len("device rows of an upload", target.len(), span(target_stride))?;
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_HOST,
            srcHost: source.as_ptr().cast(),
            srcDevice: 0,
            srcArray: std::ptr::null_mut(),
            srcPitch: source_stride * size_of::<T>(),
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: target.device_ptr(),
            dstArray: std::ptr::null_mut(),
            dstPitch: target_stride * size_of::<T>(),
            WidthInBytes: width * size_of::<T>(),
            Height: height,
        };
        let _current = self.context.enter()?;
        // SAFETY: both sides hold all rows; the caller answers for their lives. The driver reads the
        // description before it returns.
        unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, self.raw)) }
    }

    /// Queues a copy of the start of `source` to `target`.
    ///
    /// # Safety
    /// Until the copy is done, `target` lives and is neither read nor written, and no work that is not
    /// ordered with the copy writes `source`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when `source` is shorter; the driver's.
    pub unsafe fn download<T: DeviceCopy>(&self, source: &DeviceBuffer<T>, target: &mut [T]) -> Result<()> {
        check_len("device buffer of a download", source.len(), target.len())?;
        if target.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        let bytes = size_of_val(target);
        // SAFETY: both sides hold that many bytes; the caller answers for their lives.
        unsafe { cu!(cuMemcpyDtoHAsync_v2(target.as_mut_ptr().cast(), source.device_ptr(), bytes, self.raw)) }
    }

    /// Queues a copy of `source` to the start of `target`.
    ///
    /// # Safety
    /// No work that is not ordered with the copy writes `source` or touches `target`.
    ///
    /// # Errors
    /// [`Error::Mismatch`] when `target` is shorter; the driver's.
    pub unsafe fn copy<T: DeviceCopy>(&self, source: &DeviceBuffer<T>, target: &DeviceBuffer<T>) -> Result<()> {
        check_len("target of a device copy", target.len(), source.len())?;
        if source.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        let bytes = source.len() * size_of::<T>();
        // SAFETY: both sides hold that many bytes.
        unsafe { cu!(cuMemcpyDtoDAsync_v2(target.device_ptr(), source.device_ptr(), bytes, self.raw)) }
    }

    /// Queues a copy of `height` rows of `row_bytes` within device memory.
    ///
    /// # Safety
    /// Both sides hold those rows until the copy is done; no work that is not ordered with it writes
    /// the source or touches the target.
    ///
    /// # Errors
    /// [`Error::Mismatch`] for a pitch shorter than a row; the driver's.
    pub unsafe fn copy_rows(
        &self,
        source: DeviceImage,
        target: DeviceImage,
        row_bytes: usize,
        height: usize,
    ) -> Result<()> {
        check_len("source pitch of a device copy", source.pitch, row_bytes)?;
        check_len("target pitch of a device copy", target.pitch, row_bytes)?;
        if row_bytes == 0 || height == 0 {
            return Ok(());
        }
        let _current = self.context.enter()?;
        if source.pitch == row_bytes && target.pitch == row_bytes {
            let bytes = row_bytes * height;
            // SAFETY: the caller's promise.
            return unsafe { cu!(cuMemcpyDtoDAsync_v2(target.address, source.address, bytes, self.raw)) };
        }
        let copy = sys::CUDA_MEMCPY2D {
            srcXInBytes: 0,
            srcY: 0,
            srcMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            srcHost: std::ptr::null(),
            srcDevice: source.address,
            srcArray: std::ptr::null_mut(),
            srcPitch: source.pitch,
            dstXInBytes: 0,
            dstY: 0,
            dstMemoryType: sys::CUmemorytype::CU_MEMORYTYPE_DEVICE,
            dstHost: std::ptr::null_mut(),
            dstDevice: target.address,
            dstArray: std::ptr::null_mut(),
            dstPitch: target.pitch,
            WidthInBytes: row_bytes,
            Height: height,
        };
        // SAFETY: the caller's promise. The driver reads the description before it returns.
        unsafe { cu!(cuMemcpy2DAsync_v2(&raw const copy, self.raw)) }
    }

    /// Queues setting every byte of `target` to `value`.
    ///
    /// # Safety
    /// No work that is not ordered with it touches `target`; `T` may have that value.
    ///
    /// # Errors
    /// The driver's.
    pub unsafe fn fill_bytes<T: DeviceCopy>(&self, target: &DeviceBuffer<T>, value: u8) -> Result<()> {
        if target.is_empty() {
            return Ok(());
        }
        let _current = self.context.enter()?;
        // SAFETY: the buffer has that many bytes.
        unsafe { cu!(cuMemsetD8Async(target.device_ptr(), value, target.len() * size_of::<T>(), self.raw)) }
    }

    /// Records the work that `queue` queues, without running it. `queue` uses this stream and any
    /// that wait for an event of it; at its end this stream has waited for all of them. Events
    /// recorded inside only order the work: they have no times.
    ///
    /// # Errors
    /// Those of `queue`; the driver's, when the work cannot be captured.
    pub fn capture(&self, queue: impl FnOnce() -> Result<()>) -> Result<Graph> {
        let _current = self.context.enter()?;
        // Other threads' matchers go on allocating and synchronising meanwhile.
        let mode = sys::CUstreamCaptureMode::CU_STREAM_CAPTURE_MODE_THREAD_LOCAL;
        // SAFETY: the stream is alive.
        unsafe { cu!(cuStreamBeginCapture_v2(self.raw, mode)) }?;
        let capture = Capture { stream: self, ended: false };
        let queued = queue();
        let graph = capture.end();
        queued?;
        graph?.instantiate()
    }

    /// Queues all work of a graph.
    ///
    /// # Safety
    /// All memory that the captured work uses is alive and used by no work that is not ordered with
    /// this, until it is done.
    ///
    /// # Errors
    /// The driver's.
    pub unsafe fn launch(&self, graph: &Graph) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: stream and graph are alive; the caller answers for the rest.
        unsafe { cu!(cuGraphLaunch(graph.raw, self.raw)) }
    }

    /// The driver's handle.
    pub fn raw(&self) -> CUstream {
        self.raw
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: destroyed once, here; the driver finishes the queued work first.
            let _ = unsafe { cu!(cuStreamDestroy_v2(self.raw)) };
        }
    }
}

/// A point in a stream's work.
pub struct Event {
    context: CudaContext,
    raw: CUevent,
}

// SAFETY: the driver API may be called with an event's handle from any thread.
unsafe impl Send for Event {}
// SAFETY: as above.
unsafe impl Sync for Event {}

impl Event {
    /// An event that only orders work.
    ///
    /// # Errors
    /// The driver's.
    pub fn new(context: CudaContext) -> Result<Self> {
        Self::with_flags(context, sys::CUevent_flags_enum::CU_EVENT_DISABLE_TIMING)
    }

    /// An event that also takes the time.
    ///
    /// # Errors
    /// The driver's.
    pub fn with_timing(context: CudaContext) -> Result<Self> {
        Self::with_flags(context, sys::CUevent_flags_enum::CU_EVENT_DEFAULT)
    }

    fn with_flags(context: CudaContext, flags: sys::CUevent_flags_enum) -> Result<Self> {
        let _current = context.enter()?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        unsafe { cu!(cuEventCreate(&raw mut raw, flags as u32)) }?;
        Ok(Self { context, raw })
    }

    /// Waits until it happens.
    ///
    /// # Errors
    /// The driver's, among them the failure of an earlier kernel.
    pub fn synchronize(&self) -> Result<()> {
        let _current = self.context.enter()?;
        // SAFETY: the event is alive.
        unsafe { cu!(cuEventSynchronize(self.raw)) }
    }

    /// Whether it has happened.
    ///
    /// # Errors
    /// The driver's, among them the failure of an earlier kernel.
    pub fn happened(&self) -> Result<bool> {
        let _current = self.context.enter()?;
        // SAFETY: the event is alive.
        match unsafe { cu_code!(cuEventQuery(self.raw)) } {
            0 => Ok(true),
            code if code == sys::cudaError_enum::CUDA_ERROR_NOT_READY as i32 => Ok(false),
            code => Err(Error::Cuda { call: "cuEventQuery", message: describe(code) }),
        }
    }

    /// Milliseconds from `start` to this event, both made [`with_timing`](Self::with_timing) and past.
    ///
    /// # Errors
    /// The driver's, when either has not happened or takes no time.
    pub fn ms_since(&self, start: &Self) -> Result<f32> {
        let _current = self.context.enter()?;
        let mut ms = 0.0;
        // SAFETY: both events are alive; the driver writes one number.
        unsafe { cu!(cuEventElapsedTime(&raw mut ms, start.raw, self.raw)) }?;
        Ok(ms)
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: destroyed once, here; a pending record keeps what it needs.
            let _ = unsafe { cu!(cuEventDestroy_v2(self.raw)) };
        }
    }
}

/// Captured work of one or more streams, launched as one.
pub struct Graph {
    context: CudaContext,
    raw: CUgraphExec,
}

// SAFETY: the handle is used by one call at a time: launching is ordered by the stream, and the
// driver API allows any thread to make it.
unsafe impl Send for Graph {}

impl Drop for Graph {
    fn drop(&mut self) {
        if let Ok(_current) = self.context.enter() {
            // SAFETY: destroyed once, here; a launch under way is finished first.
            let _ = unsafe { cu!(cuGraphExecDestroy(self.raw)) };
        }
    }
}

/// A capture that has begun. It ends when dropped, so that a panic does not leave the stream capturing.
struct Capture<'a> {
    stream: &'a Stream,
    ended: bool,
}

impl Capture<'_> {
    fn end(mut self) -> Result<Template> {
        self.ended = true;
        let mut graph = std::ptr::null_mut();
        // SAFETY: the stream is alive and capturing; the driver writes one handle.
        unsafe { cu!(cuStreamEndCapture(self.stream.raw, &raw mut graph)) }?;
        Ok(Template { context: self.stream.context, raw: graph })
    }
}

impl Drop for Capture<'_> {
    fn drop(&mut self) {
        if !self.ended {
            let mut graph = std::ptr::null_mut();
            // SAFETY: as in `end`.
            if unsafe { cu!(cuStreamEndCapture(self.stream.raw, &raw mut graph)) }.is_ok() {
                drop(Template { context: self.stream.context, raw: graph });
            }
        }
    }
}

/// A captured graph that is not yet launchable.
struct Template {
    context: CudaContext,
    raw: sys::CUgraph,
}

impl Template {
    fn instantiate(self) -> Result<Graph> {
        const NO_FLAGS: u64 = 0;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the driver writes one handle.
        unsafe { cu!(cuGraphInstantiateWithFlags(&raw mut raw, self.raw, NO_FLAGS)) }?;
        Ok(Graph { context: self.context, raw })
    }
}

impl Drop for Template {
    fn drop(&mut self) {
        if self.raw.is_null() {
            return;
        }
        // SAFETY: destroyed once, here; what was instantiated from it lives on. Its makers are inside
        // the context.
        let _ = unsafe { cu!(cuGraphDestroy(self.raw)) };
    }
}

fn check_len(what: &'static str, len: usize, need: usize) -> Result<()> {
    if len < need {
        return Err(Error::Mismatch { what, got: format!("{len} elements"), expected: format!("at least {need}") });
    }
    Ok(())
}
