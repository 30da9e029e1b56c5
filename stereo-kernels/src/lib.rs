//! The GPU kernels of this project: census, matching cost, path aggregation, winner-takes-all and
//! post-processing, byte-identical to the scalar reference of `stereo-host`.
//!
//! Every kernel is an ordinary function over the device layer [`gpu`]. Compiled for
//! `nvptx64-nvidia-cuda` it becomes PTX (`cargo xtask build-ptx`); compiled for the host, the very
//! same function runs in the emulator. [`kernels!`](crate::kernel) ties a kernel's body to its PTX
//! entry and to a typed set of launch arguments.
#![cfg_attr(target_arch = "nvptx64", no_std)]
#![cfg_attr(target_arch = "nvptx64", feature(abi_ptx, asm_experimental_arch, stdarch_nvptx))]

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

#[cfg(target_arch = "nvptx64")]
#[panic_handler]
fn panic(_: &core::panic::PanicInfo<'_>) -> ! {
    gpu::thread::trap()
}
