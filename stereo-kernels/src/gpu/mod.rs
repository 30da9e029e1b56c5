//! The device layer: all that a kernel may use of the machine it runs on.
//!
//! The modules are named after `cuda_std`'s: [`thread`] (indices, block barrier), [`warp`]
//! (shuffles), [`shared`] (the block's shared memory), and beside them [`global`] (checked device
//! pointers), [`packed`] (two 16-bit lanes in a register) and [`bulk`] (asynchronous bulk copies that
//! complete on an `mbarrier`; from sm_90 on) with the [`ring`] of stages that they fill.
//!
//! One file per implementation, chosen at compile time: `nvptx.rs` for rustc's NVPTX target (the
//! only place with inline PTX) and `emulator/` for the host. Kernels see only this interface, so
//! they are the same functions everywhere.
//!
//! Rules that every kernel keeps, and the emulator checks:
//! - barriers, shuffles and `mbarrier` waits are reached by every thread of the block (of the warp);
//!   a thread without work computes on a clamped index and leaves its stores out;
//! - block sizes are multiples of [`warp::SIZE`].

#[cfg(not(target_arch = "nvptx64"))]
pub mod emulator;
#[cfg(target_arch = "nvptx64")]
#[path = "nvptx.rs"]
mod imp;
#[cfg(not(target_arch = "nvptx64"))]
use emulator as imp;

pub mod packed;
#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub mod ring;

#[cfg(any(not(target_arch = "nvptx64"), target_feature = "sm_90"))]
pub use imp::bulk;
pub use imp::{global, shared, thread, warp};
