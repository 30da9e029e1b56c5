//! The CUDA layer: with a real GPU where there is one, with a driver made up for the purpose
//! (`fake_driver.c`) and with none.
//!
//! The tests named `cuda_*` need a GPU. Without one each writes a line `skipped: …` with the reason
//! to stderr; with `STEREO_REQUIRE_CUDA=1` in the environment it fails instead. The tests named
//! `fake_driver_*` run this program again with the made-up driver in the library path, so that the
//! same `cuda_*` tests also run where there is no GPU.
#![cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]

mod fake;
mod smoke;

/// Says that a test could not run; past the test harness, which hides what passing tests print.
fn skipped(test: &str, reason: impl std::fmt::Display) {
    use std::io::Write;
    let mut stderr = std::io::stderr();
    writeln!(stderr, "skipped: {test}: {reason}").expect("stderr");
}
