//! The GPU kernels of this project: census, matching cost, path aggregation, winner-takes-all and
//! post-processing, byte-identical to the scalar reference of `stereo-host`.
//!
//! Every kernel is an ordinary function over the device layer [`gpu`]. Compiled for
//! `nvptx64-nvidia-cuda` it becomes PTX (`cargo xtask build-ptx`); compiled for the host, the very
//! same function runs in the emulator. [`kernels!`](crate::kernel) ties a kernel's body to its PTX
//! entry and to a typed set of launch arguments.
//!
//! Feature `rust-cuda`: the device layer over `cuda_std`, for `rustc_codegen_nvvm` instead of rustc's own
//! NVPTX backend (`cargo xtask build-ptx --codegen rust-cuda`). On the host it changes nothing.
// rust-cuda says `no_std` itself.
#![cfg_attr(all(target_arch = "nvptx64", not(feature = "rust-cuda")), no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(asm_experimental_arch))]
#![cfg_attr(all(target_arch = "nvptx64", not(feature = "rust-cuda")), feature(abi_ptx, stdarch_nvptx))]

pub mod gpu;
#[macro_use]
pub mod kernel;

pub mod aggregate;
pub mod census;
pub mod consistency;
pub mod cost;
pub mod layout;
pub mod masda;
pub mod median;
pub mod penalty;
pub mod winner;

// `cuda_std` brings its own.
#[cfg(all(target_arch = "nvptx64", not(feature = "rust-cuda")))]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    gpu::thread::trap()
}
