//! The device layer: all that a kernel may use of the machine it runs on.
//!
//! The modules are named after `cuda_std`'s: [`thread`] (indices, block barrier), [`warp`]
//! (shuffles), [`shared`] (the block's shared memory), and beside them [`global`] (checked device
//! pointers), [`packed`] (two 16-bit lanes in a register) and [`bulk`] (asynchronous bulk copies that
//! complete on an `mbarrier`; from sm_90 on) with the [`ring`] of stages that they fill.
//!
//! Two implementations, chosen at compile time: `emulator/` for the host, and inline PTX for the device
//! (`nvptx.rs`, the only place with instructions). Two compilers read that, and what they spell
//! differently is one file each: `builtin.rs` for rustc's own NVPTX backend and `rust_cuda.rs` for
//! rust-cuda (feature `rust-cuda`), over its `cuda_std`. Kernels see only this interface, so they are
//! the same functions everywhere.
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

#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
#[path = "builtin.rs"]
mod compiler;
// On the host only its types are checked: what it calls exists on the device alone.
#[cfg(feature = "rust-cuda")]
#[cfg_attr(not(target_arch = "nvptx64"), allow(dead_code, unused_imports))]
#[path = "rust_cuda.rs"]
mod compiler;

pub mod packed;
#[cfg(bulk_copies)]
pub mod ring;

#[cfg(bulk_copies)]
pub use imp::bulk;
pub use imp::{global, shared, thread, warp};
