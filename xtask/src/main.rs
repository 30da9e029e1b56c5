//! The project's chores. One file per chore: each has an `Args` (clap) and a `run`, and a variant of [`Chore`] here.

mod bench_cpu;
mod build_ptx;
mod bundle;
mod cuda_tools;
mod device_toolchain;
mod doctor;
mod error;
mod ptx_file;
mod ptx_report;
mod rust_cuda;
mod sass;
mod test;
mod tune_masda;
mod tune_sgm;
mod workspace;

use clap::Parser;
use error::Result;

/// The project's chores: `cargo xtask <CHORE>`.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 120)]
enum Chore {
    BenchCpu(bench_cpu::Args),
    BuildPtx(build_ptx::Args),
    Bundle(bundle::Args),
    Doctor(doctor::Args),
    PtxReport(ptx_report::Args),
    Test(test::Args),
    TuneMasda(tune_masda::Args),
    TuneSgm(tune_sgm::Args),
}

fn main() -> std::process::ExitCode {
    match run(Chore::parse()) {
        Ok(()) => std::process::ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            std::process::ExitCode::FAILURE
        }
    }
}

fn run(chore: Chore) -> Result<()> {
    match chore {
        Chore::BenchCpu(args) => bench_cpu::run(&args),
        Chore::BuildPtx(args) => build_ptx::run(&args),
        Chore::Bundle(args) => bundle::run(&args),
        Chore::Doctor(args) => doctor::run(&args),
        Chore::PtxReport(args) => ptx_report::run(&args),
        Chore::Test(args) => test::run(&args),
        Chore::TuneMasda(args) => tune_masda::run(&args),
        Chore::TuneSgm(args) => tune_sgm::run(&args),
    }
}
