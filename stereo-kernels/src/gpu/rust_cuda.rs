//! What rust-cuda spells in its own way, over its `cuda_std`: special registers, barriers, dynamic shared
//! memory and entries. The rest is the same inline PTX as everywhere.
//!
//! Two versions of `cuda_std` are meant. Its main branch is what the device build takes (see
//! `rust-cuda/Cargo.toml`); the registry's 0.2.2 is older, does not compile for the device any more, and serves
//! to check this file's types on the host. So this file uses what both have. They differ in
//! - warp shuffles, which only the main branch has (`warp::warp_shuffle_xor` and others): `nvptx.rs` writes them;
//! - `#[kernel]`, which in 0.2.2 writes `#[no_mangle]`, an error in edition 2024: on the host no entry is made.

/// Indices of threads and blocks, and the block barrier.
pub mod thread {
    pub use cuda_std::thread::{block_dim_x, block_idx_x, block_idx_y, grid_dim_x, sync_threads, thread_idx_x};
}

/// Orders shared-memory accesses among the threads of the warp.
#[inline(always)]
pub fn sync_warp() {
    // SAFETY: kernels call this with all threads of the warp, as the device layer's rules say.
    unsafe { cuda_std::warp::sync_warp(u32::MAX) }
}

/// The address of the block's dynamic shared memory in the shared window; a multiple of 128, as
/// `cargo xtask build-ptx` raises the alignment of `cuda_std`'s symbol.
#[inline(always)]
pub fn dynamic_shared() -> u32 {
    let generic = cuda_std::shared::dynamic_shared_mem::<u8>();
    #[cfg(target_arch = "nvptx64")]
    {
        let address: u64;
        // SAFETY: the pointer is one of shared memory; nothing is accessed.
        unsafe {
            core::arch::asm!("cvta.to.shared.u64 {}, {};", out(reg64) address, in(reg64) generic,
                options(pure, nomem, nostack));
        }
        address as u32
    }
    #[cfg(not(target_arch = "nvptx64"))]
    {
        generic.addr() as u32
    }
}

/// Makes a function a PTX entry.
#[cfg(target_arch = "nvptx64")]
#[macro_export]
#[doc(hidden)]
macro_rules! device_entry {
    (fn $name:ident($($parameter:ident: $type:ty),*) $body:block) => {
        #[cuda_std::kernel]
        pub unsafe fn $name($($parameter: $type),*) $body
    };
}
