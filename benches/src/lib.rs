//! Helpers for the benchmarks.

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
pub mod gpu;
pub mod table;
