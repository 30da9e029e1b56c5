//! The executor on the kernels' host build: every launch runs at once, checked for what hardware does
//! not check.

use std::{
    cell::{Cell, RefCell},
    time::Instant,
};

use stereo_kernels::{
    gpu::{
        emulator::{self, Buffer, Launch, bulk::Tiles},
        global::{Global, GlobalMut},
    },
    kernel::{Args, Entry},
};

use super::executor::{Executor, Identity, Label, Shape, TILE_MAP, TileShape, Value};
use crate::{DeviceCode, Error, Result, StageReport};

/// The most bytes of device memory that an emulated matcher may have: it keeps several bytes of
/// shadow for each, and takes minutes where a GPU takes milliseconds.
const MEMORY: u64 = 2 << 30;

/// Shared memory of a block, as on Hopper.
const SHARED_MEMORY: u32 = 227 << 10;

/// Runs launches one after another, in the order in which they are queued.
pub(crate) struct EmulatorExecutor {
    timing: Cell<bool>,
    launches: Cell<u64>,
    stages: RefCell<Vec<StageReport>>,
}

impl EmulatorExecutor {
    /// Always possible.
    pub(crate) fn new() -> Self {
        Self { timing: Cell::default(), launches: Cell::default(), stages: RefCell::default() }
    }
}

impl Executor for EmulatorExecutor {
    type Memory<T: Value> = RefCell<Buffer<T>>;
    type Recording = ();

    fn device(&self) -> String {
        "emulated GPU, checked".to_owned()
    }

    fn device_code(&self) -> Option<DeviceCode> {
        None
    }

    fn identity(&self) -> Option<Identity> {
        None
    }

    fn bulk_shared_memory(&self) -> Option<u32> {
        Some(SHARED_MEMORY)
    }

    fn check_memory(&self, buffers: &[(&str, u64)], advice: impl FnOnce(u64) -> String) -> Result<()> {
        let need = buffers.iter().map(|(_, bytes)| bytes).sum();
        if need > MEMORY {
            return Err(Error::Memory { what: "the emulated GPU", need, available: MEMORY, advice: advice(MEMORY) });
        }
        Ok(())
    }

    fn allocate<T: Value>(&self, len: usize) -> Result<Self::Memory<T>> {
        Ok(RefCell::new(Buffer::new(len)))
    }

    fn view<T: Value>(memory: &Self::Memory<T>, from: usize) -> Global<T> {
        let memory = memory.borrow();
        memory.global_at(from..memory.len())
    }

    fn view_mut<T: Value>(memory: &Self::Memory<T>, from: usize) -> GlobalMut<T> {
        let mut memory = memory.borrow_mut();
        let len = memory.len();
        memory.global_mut_at(from..len)
    }

    fn tile_map(&self, memory: &Self::Memory<u8>, shape: TileShape) -> Result<[u8; TILE_MAP]> {
        let TileShape { row_bytes, rows, tile_bytes, tile_rows } = shape;
        Ok(Tiles { source: Self::view(memory, 0), row_bytes, rows, tile_bytes, tile_rows }.encode())
    }

    fn fill_ones(&self, _stream: usize, memory: &Self::Memory<u32>) -> Result<()> {
        memory.borrow_mut().fill(u32::MAX);
        Ok(())
    }

    fn upload<T: Value>(
        &self,
        rows: &[T],
        stride: usize,
        width: usize,
        height: usize,
        memory: &mut Self::Memory<T>,
    ) -> Result<()> {
        for (y, row) in rows.chunks(stride).take(height).enumerate() {
            memory.get_mut().upload_at(y * width, &row[..width]);
        }
        Ok(())
    }

    fn download<T: Value>(&self, memory: &mut Self::Memory<T>, target: &mut [T]) -> Result<()> {
        target.copy_from_slice(&memory.get_mut().download()[..target.len()]);
        Ok(())
    }

    unsafe fn launch<A: Args>(
        &self,
        stream: usize,
        label: impl Into<Label>,
        entry: Entry<A>,
        shape: Shape,
        args: A,
    ) -> Result<()> {
        let start = Instant::now();
        // Another order of threads and another lateness of copies for every launch.
        let seed = self.launches.replace(self.launches.get() + 1);
        let launch = Launch {
            grid: shape.grid,
            block: shape.block,
            shared_bytes: shape.shared,
            seed,
            random_order: true,
            ..Launch::default()
        };
        emulator::launch(entry, args, launch).map_err(|fault| Error::Emulator(fault.to_string()))?;
        if self.timing.get() {
            let ms = start.elapsed().as_secs_f64() * 1e3;
            self.stages.borrow_mut().push(label.into().report(entry.name, stream, ms));
        }
        Ok(())
    }

    fn order(&self, _earlier: usize, _later: usize) -> Result<()> {
        Ok(())
    }

    fn replay(&self, _recording: &mut Option<()>, queue: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        queue(self)
    }

    fn synchronize(&self) -> Result<()> {
        Ok(())
    }

    fn time_stages(&self, on: bool) {
        self.timing.set(on);
    }

    fn frame_ms(&self) -> Result<Option<f64>> {
        Ok(None)
    }

    fn take_stages(&self) -> Result<Vec<StageReport>> {
        Ok(std::mem::take(&mut *self.stages.borrow_mut()))
    }
}
