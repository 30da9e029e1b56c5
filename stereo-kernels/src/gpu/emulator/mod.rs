//! The device layer on the host: an emulator that runs kernels and checks what hardware does not.
//!
//! [`launch`] runs a kernel's body once per thread, each thread a stackful coroutine, so that
//! barriers and shuffles work in the middle of ordinary functions. On the way it finds, as a
//! [`Fault`]: accesses outside a view or a buffer and misaligned ones; reads of memory that nobody
//! wrote; data races, in shared memory between barriers and in device memory within the launch;
//! read-only views of memory that is written; barriers, shuffles and waits that not all threads
//! reach; reads of a bulk copy's bytes before the wait for it (copies are late at random), copies
//! over memory still in use, and wrong byte counts.
//!
//! Some rules are stricter than a device's: a thread that has returned still counts at barriers and
//! shuffles; shuffles order no memory accesses; an `mbarrier` orders the bytes of its copies alone.

pub mod bulk;
mod byte_set;
mod fault;
pub mod global;
mod memory;
pub mod packed;
mod scheduler;
mod shadow;
pub mod shared;
pub mod warp;

pub use fault::{Access, Cause, Fault, Space, Standstill};
pub use memory::Buffer;
use memory::Memory;
use rayon::prelude::*;
use scheduler::{Context, Worker};

use crate::kernel::{Args, Entry};

/// Most threads in a block, on every device.
const MAX_BLOCK: u32 = 1024;
/// Most blocks of a grid in y, on every device.
const MAX_GRID_Y: u32 = 65_535;
/// Most bytes of shared memory that a block can have, on any device yet.
const MAX_SHARED: u32 = 227 * 1024;

/// Indices of threads and blocks, and the block barrier.
pub mod thread {
    use std::panic::Location;

    use super::{
        fault::Cause,
        scheduler::{self, Wait},
    };

    /// This thread's index in its block.
    #[inline(always)]
    pub fn thread_idx_x() -> u32 {
        scheduler::with(|block| block.thread())
    }

    /// This block's x index in the grid.
    #[inline(always)]
    pub fn block_idx_x() -> u32 {
        scheduler::with(|block| block.index().0)
    }

    /// This block's y index in the grid.
    #[inline(always)]
    pub fn block_idx_y() -> u32 {
        scheduler::with(|block| block.index().1)
    }

    /// Threads in a block.
    #[inline(always)]
    pub fn block_dim_x() -> u32 {
        scheduler::with(|block| block.size())
    }

    /// Blocks in the grid, in x.
    #[inline(always)]
    pub fn grid_dim_x() -> u32 {
        scheduler::with(|block| block.grid().0)
    }

    /// Waits for all threads of the block; their shared and global writes before it are then visible.
    #[track_caller]
    #[inline(always)]
    pub fn sync_threads() {
        let at = Location::caller();
        scheduler::with(|block| block.suspend(Wait::Block { at }));
    }

    /// Ends the kernel with an error.
    #[track_caller]
    pub fn trap() -> ! {
        let at = Location::caller();
        scheduler::with(|block| block.fault(Some(at), Cause::Trap))
    }
}

/// How to run a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Launch {
    /// Blocks in x and y.
    pub grid: (u32, u32),
    /// Threads in a block, a multiple of [`warp::SIZE`], at most 1024.
    pub block: u32,
    /// Bytes of dynamic shared memory per block.
    pub shared_bytes: u32,
    /// Decides when bulk copies arrive and, with `random_order`, who runs next. The same seed gives
    /// the same course.
    pub seed: u64,
    /// Between two rendezvous, warps and threads run in random order, so that results that depend on
    /// it show; otherwise in ascending order.
    pub random_order: bool,
    /// Blocks run on all of rayon's threads; otherwise one after another.
    pub parallel: bool,
    /// Races and reads of unwritten memory are looked for. Without it, bounds, alignment, barriers
    /// and waits still are.
    pub checks: bool,
}

impl Default for Launch {
    /// One warp, all checks, in order, on one host thread.
    fn default() -> Self {
        Self {
            grid: (1, 1),
            block: warp::SIZE,
            shared_bytes: 0,
            seed: 0,
            random_order: false,
            parallel: false,
            checks: true,
        }
    }
}

/// Runs `entry` with `args`.
///
/// # Errors
///
/// The first fault that was found; the launch ends there, with its writes up to then made.
pub fn launch<A: Args>(entry: Entry<A>, args: A, launch: Launch) -> Result<(), Fault> {
    let memory = Memory::snapshot();
    let context = Context { kernel: entry.name, launch: &launch, memory: &memory };
    let blocks = blocks(&launch).map_err(|reason| context.refusal(Cause::Launch(reason)))?;
    let body = || (entry.body)(args);
    if launch.parallel && blocks > 1 {
        return (0..blocks).into_par_iter().try_for_each_init(
            || Worker::new(&context),
            |worker, block| match worker {
                Ok(worker) => worker.run(block, &body),
                Err(fault) => Err(fault.clone()),
            },
        );
    }
    let mut order: Vec<u32> = (0..blocks).collect();
    if launch.random_order {
        fastrand::Rng::with_seed(launch.seed).shuffle(&mut order);
    }
    let mut worker = Worker::new(&context)?;
    order.into_iter().try_for_each(|block| worker.run(block, &body))
}

/// The number of blocks of a valid launch.
fn blocks(launch: &Launch) -> Result<u32, String> {
    let Launch { grid: (x, y), block, shared_bytes, .. } = *launch;
    if block == 0 || block > MAX_BLOCK || !block.is_multiple_of(warp::SIZE) {
        return Err(format!("{block} threads in a block, not a multiple of {} up to {MAX_BLOCK}", warp::SIZE));
    }
    let blocks = u64::from(x) * u64::from(y);
    if blocks == 0 || blocks > shadow::MAX_BLOCKS {
        return Err(format!("a grid of {x} x {y} blocks, of which there may be 1 to {}", shadow::MAX_BLOCKS));
    }
    if y > MAX_GRID_Y {
        return Err(format!("a grid of {y} blocks in y, of which there may be {MAX_GRID_Y}"));
    }
    if shared_bytes > MAX_SHARED {
        return Err(format!("{shared_bytes} bytes of shared memory, of which there may be {MAX_SHARED}"));
    }
    Ok(blocks as u32)
}
