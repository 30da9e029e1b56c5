//! The executor on an NVIDIA GPU.

use std::cell::RefCell;

use stereo_kernels::{
    gpu::global::{Global, GlobalMut},
    kernel::{Args, Entry},
};

use super::executor::{Executor, FIRST_PRIORITY, MAIN, STREAMS, Shape, Value};
use crate::{
    Options, Result, StageReport,
    cuda::{
        CudaContext, DeviceBuffer, Event, Graph, Kernels, LaunchConfig, PinnedBuffer, Priority, Stream, device,
        ptx::PtxSource,
    },
};

/// The first architecture whose kernels use bulk copies (90 for `sm_90`).
const BULK_ARCH: u32 = 90;

/// Streams, kernels and timing on one GPU.
pub(crate) struct CudaExecutor {
    context: CudaContext,
    kernels: Kernels,
    bulk: bool,
    streams: Vec<Stream>,
    /// One per stream: the point up to which others wait.
    queued: Vec<Event>,
    timing: bool,
    timed: RefCell<Vec<Timed>>,
}

/// A timed launch.
struct Timed {
    stage: &'static str,
    kernel: &'static str,
    start: Event,
    end: Event,
}

/// Device memory and, once it was copied from or to, page-locked memory of the same size to stage it.
pub(crate) struct Memory<T: Value> {
    device: DeviceBuffer<T>,
    staging: Option<PinnedBuffer<T>>,
}

impl<T: Value> Memory<T> {
    fn staging(&mut self) -> Result<&mut PinnedBuffer<T>> {
        match &mut self.staging {
            Some(staging) => Ok(staging),
            none => Ok(none.insert(PinnedBuffer::new(self.device.context(), self.device.len())?)),
        }
    }
}

impl CudaExecutor {
    /// On the GPU that `options` name.
    pub(crate) fn new(options: &Options) -> Result<Self> {
        let (_, ptx) = device::choose(options.device, &PtxSource::from_env())?;
        let context = CudaContext::new(options.device)?;
        let kernels = context.load(&ptx)?;
        let priority = |stream| if stream >= FIRST_PRIORITY { Priority::High } else { Priority::Low };
        let streams = (0..STREAMS).map(|stream| Stream::new(context, priority(stream))).collect::<Result<_>>()?;
        let queued = (0..STREAMS).map(|_| Event::new(context)).collect::<Result<_>>()?;
        let bulk = ptx.arch() >= BULK_ARCH;
        Ok(Self { context, kernels, bulk, streams, queued, timing: options.timing, timed: RefCell::default() })
    }

    fn timed_launch(
        &self,
        stream: &Stream,
        stage: &'static str,
        kernel: &'static str,
        launch: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (start, end) = (Event::with_timing(self.context)?, Event::with_timing(self.context)?);
        stream.record(&start)?;
        launch()?;
        stream.record(&end)?;
        self.timed.borrow_mut().push(Timed { stage, kernel, start, end });
        Ok(())
    }
}

impl Executor for CudaExecutor {
    type Memory<T: Value> = Memory<T>;
    type Recording = Graph;

    fn device(&self) -> String {
        self.context.device().name.clone()
    }

    fn bulk_shared_memory(&self) -> Option<u32> {
        self.bulk.then(|| self.context.device().shared_memory_per_block)
    }

    fn check_memory(&self, buffers: &[(&str, u64)], advice: impl FnOnce(u64) -> String) -> Result<()> {
        self.context.check_memory(buffers, advice)
    }

    fn allocate<T: Value>(&self, len: usize) -> Result<Memory<T>> {
        Ok(Memory { device: DeviceBuffer::new(self.context, len)?, staging: None })
    }

    fn view<T: Value>(memory: &Memory<T>, from: usize) -> Global<T> {
        let address = memory.device.device_ptr() as *const T;
        // SAFETY: the view lies in the buffer, which lives as long as the pipeline that launches with it.
        unsafe { Global::from_raw(address.wrapping_add(from), memory.device.len().saturating_sub(from)) }
    }

    fn view_mut<T: Value>(memory: &Memory<T>, from: usize) -> GlobalMut<T> {
        let address = memory.device.device_ptr() as *mut T;
        // SAFETY: as for `view`.
        unsafe { GlobalMut::from_raw(address.wrapping_add(from), memory.device.len().saturating_sub(from)) }
    }

    fn fill_ones(&self, stream: usize, memory: &Memory<u32>) -> Result<()> {
        // SAFETY: the pipeline orders its streams; all ones is a value of every integer.
        unsafe { self.streams[stream].fill_bytes(&memory.device, 0xff) }
    }

    fn upload<T: Value>(
        &self,
        rows: &[T],
        stride: usize,
        width: usize,
        height: usize,
        memory: &mut Memory<T>,
    ) -> Result<()> {
        let staging = memory.staging()?;
        for (source, target) in rows.chunks(stride).zip(staging.chunks_mut(width)).take(height) {
            target.copy_from_slice(&source[..width]);
        }
        let Memory { device, staging } = memory;
        let Some(staging) = staging else { return Ok(()) };
        // SAFETY: the staging memory is written again only for the next frame, after this one's
        // download has waited; it lives as long as the pipeline.
        unsafe { self.streams[MAIN].upload(&staging[..width * height], device) }
    }

    fn download<T: Value>(&self, memory: &mut Memory<T>, target: &mut [T]) -> Result<()> {
        memory.staging()?;
        let Memory { device, staging: Some(staging) } = memory else { return Ok(()) };
        // SAFETY: nothing else uses the staging memory until the stream has been waited for.
        unsafe { self.streams[MAIN].download(device, &mut staging[..target.len()]) }?;
        self.streams[MAIN].synchronize()?;
        target.copy_from_slice(&staging[..target.len()]);
        Ok(())
    }

    unsafe fn launch<A: Args>(
        &self,
        stream: usize,
        stage: &'static str,
        entry: Entry<A>,
        shape: Shape,
        args: A,
    ) -> Result<()> {
        let kernel = self.kernels.kernel(entry.name)?;
        let mut parameters = Vec::with_capacity(16);
        args.parameters(&mut |parameter| parameters.push(parameter));
        let config =
            LaunchConfig { grid: [shape.grid.0, shape.grid.1, 1], block: [shape.block, 1, 1], shared: shape.shared };
        let stream = &self.streams[stream];
        // SAFETY: the parameters are those of the entry, by `Args`; the caller answers for the memory.
        let launch = || unsafe { kernel.launch(stream, config, &parameters) };
        if self.timing { self.timed_launch(stream, stage, entry.name, launch) } else { launch() }
    }

    fn order(&self, earlier: usize, later: usize) -> Result<()> {
        self.streams[earlier].record(&self.queued[earlier])?;
        self.streams[later].wait(&self.queued[earlier])
    }

    fn replay(&self, recording: &mut Option<Graph>, queue: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        if self.timing {
            return queue(self);
        }
        let main = &self.streams[MAIN];
        let graph = match recording {
            Some(graph) => graph,
            none => none.insert(main.capture(|| queue(self))?),
        };
        // SAFETY: the graph's memory belongs to the pipeline that owns the recording.
        unsafe { main.launch(graph) }
    }

    fn take_stages(&self) -> Result<Vec<StageReport>> {
        let timed = std::mem::take(&mut *self.timed.borrow_mut());
        timed
            .into_iter()
            .map(|Timed { stage, kernel, start, end }| {
                Ok(StageReport { stage, variant: kernel.to_owned(), ms: end.ms_since(&start)?.into() })
            })
            .collect()
    }
}
