//! Compiles the kernels for one architecture: `builder CRATE ARCHITECTURE FILE`, for example
//! `builder ../kernels compute_100 out.ptx`. People call `cargo xtask build-ptx --codegen rust-cuda`, which checks
//! the arguments and the machine first.

use cuda_builder::{CudaBuilder, NvvmArch};
use std::process::ExitCode;

fn main() -> ExitCode {
    match run(std::env::args().skip(1).collect()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: Vec<String>) -> Result<(), String> {
    let [crate_folder, architecture, file] = arguments
        .try_into()
        .map_err(|given: Vec<String>| format!("3 arguments expected (CRATE ARCHITECTURE FILE), {} given", given.len()))?;
    let arch: NvvmArch =
        architecture.parse().map_err(|reason| format!("architecture {architecture} is unknown here: {reason}"))?;
    CudaBuilder::new(crate_folder)
        .arch(arch)
        // The kernels have no floating point; what libm offers is not used.
        .override_libm(false)
        .copy_to(file)
        .build()
        .map(|_| ())
        .map_err(|error| format!("{architecture}: {error}"))
}
