//! The executor on an NVIDIA GPU.

use std::{
    cell::{Cell, RefCell},
    hash::{DefaultHasher, Hash, Hasher},
};

use stereo_kernels::{
    gpu::global::{Global, GlobalMut},
    kernel::{Args, Entry},
};

use super::executor::{Executor, FIRST_PRIORITY, Identity, Label, MAIN, STREAMS, Shape, TILE_MAP, TileShape, Value};
use crate::{
    DeviceCode, DeviceImage, PtxSource, Result, StageReport,
    cuda::{
        CudaContext, DeviceBuffer, Event, Graph, Kernels, LaunchConfig, PinnedBuffer, Priority, Stream,
        device::{self, Driver},
        ptx::Ptx,
        tensor,
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
    /// Around the frame on [`MAIN`], and whether there was one.
    frame: (Event, Event),
    has_frame: Cell<bool>,
    timing: Cell<bool>,
    timed: RefCell<Vec<Timed>>,
    program: String,
    code: DeviceCode,
}

/// A timed launch.
struct Timed {
    label: Label,
    kernel: &'static str,
    stream: usize,
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
    /// On GPU `ordinal` (without one, on the first), with PTX from `source`.
    pub(crate) fn new(ordinal: Option<u32>, source: &PtxSource) -> Result<Self> {
        let (_, ptx) = device::choose(ordinal, source)?;
        let context = CudaContext::new(ordinal)?;
        let kernels = context.load(&ptx)?;
        let priority = |stream| if stream >= FIRST_PRIORITY { Priority::High } else { Priority::Low };
        let streams = (0..STREAMS).map(|stream| Stream::new(context, priority(stream))).collect::<Result<_>>()?;
        let queued = (0..STREAMS).map(|_| Event::new(context)).collect::<Result<_>>()?;
        let bulk = ptx.arch() >= BULK_ARCH;
        let frame = (Event::with_timing(context)?, Event::with_timing(context)?);
        Ok(Self {
            context,
            kernels,
            bulk,
            streams,
            queued,
            frame,
            has_frame: Cell::default(),
            timing: Cell::default(),
            timed: RefCell::default(),
            program: program(&ptx),
            code: ptx.describe(source),
        })
    }

    fn timed_launch(
        &self,
        stream: usize,
        label: Label,
        kernel: &'static str,
        launch: impl FnOnce() -> Result<()>,
    ) -> Result<()> {
        let (start, end) = (Event::with_timing(self.context)?, Event::with_timing(self.context)?);
        self.streams[stream].record(&start)?;
        launch()?;
        self.streams[stream].record(&end)?;
        self.timed.borrow_mut().push(Timed { label, kernel, stream, start, end });
        Ok(())
    }

    /// The graph in `recording`, recorded first where there is none.
    fn recorded<'a>(
        &self,
        recording: &'a mut Option<Graph>,
        queue: impl FnOnce(&Self) -> Result<()>,
    ) -> Result<&'a Graph> {
        match recording {
            Some(graph) => Ok(graph),
            none => Ok(none.insert(self.streams[MAIN].capture(|| queue(self))?)),
        }
    }
}

impl Executor for CudaExecutor {
    type Memory<T: Value> = Memory<T>;
    type Recording = Graph;

    fn device(&self) -> String {
        self.context.device().name.clone()
    }

    fn device_code(&self) -> Option<DeviceCode> {
        Some(self.code.clone())
    }

    fn identity(&self) -> Option<Identity> {
        let driver = Driver::get().ok()?;
        let package = device::driver_package().map_or_else(String::new, |version| format!(", {version}"));
        Some(Identity {
            device: self.context.device().to_string(),
            driver: format!("CUDA {}{package}", driver.version),
            program: self.program.clone(),
        })
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

    fn tile_map(&self, memory: &Memory<u8>, shape: TileShape) -> Result<[u8; TILE_MAP]> {
        tensor::encode(self.context, memory.device.device_ptr(), shape)
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

    unsafe fn copy_in<T: Value>(
        &self,
        rows: DeviceImage,
        width: usize,
        height: usize,
        memory: &mut Memory<T>,
    ) -> Result<()> {
        let to = DeviceImage::dense(memory.device.device_ptr(), width * size_of::<T>());
        // SAFETY: the memory holds `width * height` elements; the caller answers for the rows.
        unsafe { self.streams[MAIN].copy_rows(rows, to, to.pitch, height) }
    }

    unsafe fn copy_out<T: Value>(
        &self,
        memory: &Memory<T>,
        rows: DeviceImage,
        width: usize,
        height: usize,
    ) -> Result<()> {
        let from = DeviceImage::dense(memory.device.device_ptr(), width * size_of::<T>());
        // SAFETY: as for `copy_in`.
        unsafe { self.streams[MAIN].copy_rows(from, rows, from.pitch, height) }
    }

    fn synchronize(&self) -> Result<()> {
        self.streams[MAIN].synchronize()
    }

    fn main_stream(&self) -> Option<u64> {
        Some(self.streams[MAIN].raw() as u64)
    }

    unsafe fn launch<A: Args>(
        &self,
        stream: usize,
        label: impl Into<Label>,
        entry: Entry<A>,
        shape: Shape,
        args: A,
    ) -> Result<()> {
        let kernel = self.kernels.kernel(entry.name)?;
        let mut parameters = Vec::with_capacity(16);
        args.parameters(&mut |parameter| parameters.push(parameter));
        let config =
            LaunchConfig { grid: [shape.grid.0, shape.grid.1, 1], block: [shape.block, 1, 1], shared: shape.shared };
        // SAFETY: the parameters are those of the entry, by `Args`; the caller answers for the memory.
        let launch = || unsafe { kernel.launch(&self.streams[stream], config, &parameters) };
        if self.timing.get() { self.timed_launch(stream, label.into(), entry.name, launch) } else { launch() }
    }

    fn order(&self, earlier: usize, later: usize) -> Result<()> {
        self.streams[earlier].record(&self.queued[earlier])?;
        self.streams[later].wait(&self.queued[earlier])
    }

    fn replay(&self, recording: &mut Option<Graph>, queue: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        let main = &self.streams[MAIN];
        if self.timing.get() {
            self.timed.borrow_mut().clear();
            main.record(&self.frame.0)?;
            queue(self)?;
        } else {
            // Recorded first: the time of a frame has none of it.
            let graph = self.recorded(recording, queue)?;
            main.record(&self.frame.0)?;
            // SAFETY: the graph's memory belongs to the pipeline that owns the recording.
            unsafe { main.launch(graph) }?;
        }
        main.record(&self.frame.1)?;
        self.has_frame.set(true);
        Ok(())
    }

    fn time_stages(&self, on: bool) {
        self.timing.set(on);
    }

    fn frame_ms(&self) -> Result<Option<f64>> {
        if !self.has_frame.get() {
            return Ok(None);
        }
        self.frame.1.synchronize()?;
        Ok(Some(self.frame.1.ms_since(&self.frame.0)?.into()))
    }

    fn take_stages(&self) -> Result<Vec<StageReport>> {
        let timed = std::mem::take(&mut *self.timed.borrow_mut());
        timed
            .into_iter()
            .map(|Timed { label, kernel, stream, start, end }| {
                Ok(label.report(kernel, stream, end.ms_since(&start)?.into()))
            })
            .collect()
    }
}

/// The version of this program and a digest of its device code.
fn program(ptx: &Ptx) -> String {
    let mut digest = DefaultHasher::new();
    ptx.text().hash(&mut digest);
    format!("{} sm_{} {:016x}", env!("CARGO_PKG_VERSION"), ptx.arch(), digest.finish())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_are_kept_apart_by_their_ptx() {
        let of = |arch, compiler: &str| {
            let text = format!("// compiler: {compiler}\n.version 8.3\n.target sm_90\n");
            program(&Ptx::parse(arch, text.into(), "test").unwrap())
        };
        assert_eq!(of(90, "rustc"), of(90, "rustc"));
        assert_ne!(of(90, "rustc"), of(90, "rust-cuda"));
        assert_ne!(of(90, "rustc"), of(80, "rustc"));
    }
}
