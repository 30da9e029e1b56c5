//! Gives what the target can do names that do not depend on the compiler: rustc's NVPTX backend calls an architecture
//! `sm_90`, rust-cuda `compute_90`. Each includes the older ones.
//!
//! - `sm_80`, `sm_90`, `sm_100`: the device has at least that compute capability;
//! - `bulk_copies`: there are asynchronous bulk copies, on the device from sm_90 on, and in the emulator.

use std::env;

fn main() {
    // Nothing else is read; and `rust-cuda/kernels` shares this script, so that a path would name two files.
    println!("cargo:rerun-if-env-changed=CARGO_CFG_TARGET_FEATURE");
    println!("cargo:rustc-check-cfg=cfg(sm_80, sm_90, sm_100, bulk_copies)");
    let variable = |name| env::var(name).unwrap_or_default();
    let features = variable("CARGO_CFG_TARGET_FEATURE");
    let at_least = |capability: u32| {
        let names = [format!("sm_{capability}"), format!("compute_{capability}")];
        features.split(',').any(|feature| names.iter().any(|name| name == feature))
    };
    for capability in [80, 90, 100] {
        if at_least(capability) {
            println!("cargo:rustc-cfg=sm_{capability}");
        }
    }
    if at_least(90) || variable("CARGO_CFG_TARGET_ARCH") != "nvptx64" {
        println!("cargo:rustc-cfg=bulk_copies");
    }
}
