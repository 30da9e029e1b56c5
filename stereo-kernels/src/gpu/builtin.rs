//! What rustc's own NVPTX backend spells in its own way: special registers, barriers, dynamic shared
//! memory and entries.
#![allow(clippy::undocumented_unsafe_blocks, reason = "as in nvptx.rs")]

use core::arch::asm;

core::arch::global_asm!(".extern .shared .align 128 .b8 stereo_shared[];");

/// Indices of threads and blocks, and the block barrier.
pub mod thread {
    use core::arch::{asm, nvptx};

    /// This thread's index in its block.
    #[inline(always)]
    pub fn thread_idx_x() -> u32 {
        unsafe { nvptx::_thread_idx_x() as u32 }
    }

    /// This block's x index in the grid.
    #[inline(always)]
    pub fn block_idx_x() -> u32 {
        unsafe { nvptx::_block_idx_x() as u32 }
    }

    /// This block's y index in the grid.
    #[inline(always)]
    pub fn block_idx_y() -> u32 {
        unsafe { nvptx::_block_idx_y() as u32 }
    }

    /// Threads in a block.
    #[inline(always)]
    pub fn block_dim_x() -> u32 {
        unsafe { nvptx::_block_dim_x() as u32 }
    }

    /// Blocks in the grid, in x.
    #[inline(always)]
    pub fn grid_dim_x() -> u32 {
        unsafe { nvptx::_grid_dim_x() as u32 }
    }

    /// Waits for all threads of the block; their shared and global writes before it are then visible.
    #[inline(always)]
    pub fn sync_threads() {
        unsafe { asm!("bar.sync 0;", options(nostack)) }
    }
}

/// Orders shared-memory accesses among the threads of the warp.
#[inline(always)]
pub fn sync_warp() {
    unsafe { asm!("bar.warp.sync 0xffffffff;", options(nostack)) }
}

/// The address of the block's dynamic shared memory in the shared window; a multiple of 128.
#[inline(always)]
pub fn dynamic_shared() -> u32 {
    let address;
    unsafe { asm!("mov.u32 {}, stereo_shared;", out(reg32) address, options(pure, nomem, nostack)) }
    address
}

/// Makes a function a PTX entry.
#[macro_export]
#[doc(hidden)]
macro_rules! device_entry {
    (fn $name:ident($($parameter:ident: $type:ty),*) $body:block) => {
        #[unsafe(no_mangle)]
        unsafe extern "ptx-kernel" fn $name($($parameter: $type),*) $body
    };
}
