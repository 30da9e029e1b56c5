//! What a GPU pipeline needs of the machine it runs on.

use stereo_kernels::{
    gpu::global::{Element, Global, GlobalMut},
    kernel::{Args, Entry},
};

use crate::{DeviceCode, DeviceImage, Error, Result, StageReport};

/// What device memory holds.
#[cfg(cuda)]
pub(crate) trait Value: Element + Default + Send + crate::cuda::DeviceCopy {}
#[cfg(cuda)]
impl<T: Element + Default + Send + crate::cuda::DeviceCopy> Value for T {}

/// What device memory holds.
#[cfg(not(cuda))]
pub(crate) trait Value: Element + Default + Send {}
#[cfg(not(cuda))]
impl<T: Element + Default + Send> Value for T {}

/// Blocks in x and y, threads a block, and bytes of dynamic shared memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Shape {
    pub(crate) grid: (u32, u32),
    pub(crate) block: u32,
    pub(crate) shared: u32,
}

/// What a launch is called in the report.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Label {
    stage: &'static str,
    ring: Option<(u32, u32)>,
}

impl Label {
    /// A stage by a kernel with a ring of bulk-copy stages: steps of a chunk, and stages.
    pub(crate) fn with_ring(stage: &'static str, ring: Option<(u32, u32)>) -> Self {
        Self { stage, ring }
    }

    pub(crate) fn report(self, kernel: &str, stream: usize, ms: f64) -> StageReport {
        StageReport {
            chunk: self.ring.map(|ring| ring.0),
            stages: self.ring.map(|ring| ring.1),
            stream: Some(stream),
            ..StageReport::new(self.stage, kernel, ms)
        }
    }
}

impl From<&'static str> for Label {
    fn from(stage: &'static str) -> Self {
        Self { stage, ring: None }
    }
}

/// What a measured plan depends on besides the work.
#[derive(Debug, Clone)]
pub(crate) struct Identity {
    pub(crate) device: String,
    pub(crate) driver: String,
    pub(crate) program: String,
}

/// A matrix of bytes and the tiles that two-dimensional copies bring of it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct TileShape {
    /// Bytes of a row, a multiple of 16.
    pub(crate) row_bytes: usize,
    /// Rows.
    pub(crate) rows: usize,
    /// Bytes of a tile's row, a multiple of 16.
    pub(crate) tile_bytes: u32,
    /// Rows of a tile.
    pub(crate) tile_rows: u32,
}

/// Bytes of a tile map.
pub(crate) const TILE_MAP: usize = 128;

/// The stream that a frame begins and ends on.
pub(crate) const MAIN: usize = 0;

/// Streams of an executor: [`MAIN`], one per path direction, and as many with priority over those.
#[cfg_attr(not(cuda), allow(dead_code, reason = "only a device has streams"))]
pub(crate) const STREAMS: usize = 1 + 2 * super::plan::MAX_STREAMS as usize;

/// The first stream with priority.
pub(crate) const FIRST_PRIORITY: usize = 1 + super::plan::MAX_STREAMS as usize;

/// A machine that runs kernels in order on each of [`STREAMS`] streams.
///
/// Everything is queued; only [`Executor::download`] waits.
pub(crate) trait Executor: Send + Sized + 'static {
    /// Device memory of `T`, unwritten at first.
    type Memory<T: Value>: Send;
    /// A recorded sequence of launches.
    type Recording: Send;

    /// The device's name for the report.
    fn device(&self) -> String;

    /// The PTX in use; `None` where it is not a GPU.
    fn device_code(&self) -> Option<DeviceCode>;

    /// What plans are measured for; `None` where time says nothing about a GPU.
    fn identity(&self) -> Option<Identity>;

    /// Bytes of shared memory that a block may have where the kernels can use bulk copies; `None`
    /// where they cannot.
    fn bulk_shared_memory(&self) -> Option<u32>;

    /// Checks that all `buffers` (name and bytes) fit together. `advice` says what would fit, given
    /// the free bytes.
    fn check_memory(&self, buffers: &[(&str, u64)], advice: impl FnOnce(u64) -> String) -> Result<()>;

    /// Allocates `len` elements.
    fn allocate<T: Value>(&self, len: usize) -> Result<Self::Memory<T>>;

    /// The elements from `from` on, for reading.
    fn view<T: Value>(memory: &Self::Memory<T>, from: usize) -> Global<T>;

    /// The elements from `from` on, for writing.
    fn view_mut<T: Value>(memory: &Self::Memory<T>, from: usize) -> GlobalMut<T>;

    /// The tile map of a matrix in `memory`.
    fn tile_map(&self, memory: &Self::Memory<u8>, shape: TileShape) -> Result<[u8; TILE_MAP]>;

    /// Sets every bit, on `stream`.
    fn fill_ones(&self, stream: usize, memory: &Self::Memory<u32>) -> Result<()>;

    /// Copies `height` rows of `width` elements, `stride` apart, to the start of `memory`, on [`MAIN`].
    fn upload<T: Value>(
        &self,
        rows: &[T],
        stride: usize,
        width: usize,
        height: usize,
        memory: &mut Self::Memory<T>,
    ) -> Result<()>;

    /// Waits for [`MAIN`] and copies the start of `memory` to `target`.
    fn download<T: Value>(&self, memory: &mut Self::Memory<T>, target: &mut [T]) -> Result<()>;

    /// Copies `height` rows of `width` elements from anywhere in device memory to the start of
    /// `memory`, on [`MAIN`]. Only for a real device.
    ///
    /// # Safety
    /// The rows are there, and nothing that is not ordered with [`MAIN`] writes them.
    unsafe fn copy_in<T: Value>(
        &self,
        _rows: DeviceImage,
        _width: usize,
        _height: usize,
        _memory: &mut Self::Memory<T>,
    ) -> Result<()> {
        Err(self.no_device_memory())
    }

    /// The way back.
    ///
    /// # Safety
    /// The rows are there, and nothing that is not ordered with [`MAIN`] touches them.
    unsafe fn copy_out<T: Value>(
        &self,
        _memory: &Self::Memory<T>,
        _rows: DeviceImage,
        _width: usize,
        _height: usize,
    ) -> Result<()> {
        Err(self.no_device_memory())
    }

    /// The error of an executor without device memory that others could own.
    fn no_device_memory(&self) -> Error {
        let reason = "device memory is taken by the cuda backend only".to_owned();
        Error::Unavailable { backend: "emulator", reason }
    }

    /// Waits for [`MAIN`].
    fn synchronize(&self) -> Result<()>;

    /// The driver's handle of [`MAIN`], where there is one.
    fn main_stream(&self) -> Option<u64> {
        None
    }

    /// Queues a kernel on `stream`.
    ///
    /// # Safety
    /// Every element that the kernel touches lies in the memory that `args` view, and no work that is
    /// not ordered with it writes what it reads or touches what it writes.
    unsafe fn launch<A: Args>(
        &self,
        stream: usize,
        label: impl Into<Label>,
        entry: Entry<A>,
        shape: Shape,
        args: A,
    ) -> Result<()>;

    /// What is queued on `later` from now on waits for what is on `earlier` now.
    fn order(&self, earlier: usize, later: usize) -> Result<()>;

    /// Queues what `queue` queues. Where that is faster it is recorded the first time and replayed
    /// from `recording` after that, so it must be the same every time. While stages are timed nothing
    /// is recorded.
    fn replay(&self, recording: &mut Option<Self::Recording>, queue: impl FnOnce(&Self) -> Result<()>) -> Result<()>;

    /// Whether [`Executor::replay`] takes the time of every launch.
    fn time_stages(&self, on: bool);

    /// Milliseconds on the device of the last [`Executor::replay`], for which it waits; `None` where
    /// there is no such time.
    fn frame_ms(&self) -> Result<Option<f64>>;

    /// The times of the stages of the last [`Executor::replay`], when they are timed and it is done.
    fn take_stages(&self) -> Result<Vec<StageReport>>;
}
