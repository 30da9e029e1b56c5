//! The path aggregation on a GPU, timed by events on the device: plain kernels against bulk copies,
//! each alone, all in a frame, and beside each other on several streams (tma.md).
//!
//! `--help` explains the parts. The program needs nothing but the driver: `cargo xtask bundle` carries
//! it to a machine without Rust.

use std::{path::PathBuf, process::ExitCode};

use clap::{Parser, ValueEnum};
use stereo_host::{Result, Times};

#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
mod parts;

/// Times the path aggregation on a GPU: CSV files in a folder, Markdown tables on standard output.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "\
The published tables used --warmup 400 --iterations 3000; the defaults are fewer, and every table says how many.

Examples:
  gpu_paths
  gpu_paths --warmup 400 --iterations 3000 --out results
  gpu_paths --part check --size 1280x720 -d 64

Exit codes: 0 done, 1 failed or the tuned plan is slower than the plain one by more than noise, 2 wrong use."
)]
struct Args {
    /// What to measure [default: everything]
    #[arg(long, value_enum, value_delimiter = ',')]
    part: Vec<Part>,
    /// The images' size
    #[arg(long, value_name = "WxH", default_value = "1920x1080", value_parser = parse_pair)]
    size: (u32, u32),
    /// Disparities
    #[arg(short, long, value_name = "D", default_value_t = 128)]
    disparities: u32,
    /// Runs before the first measured one
    #[arg(long, value_name = "N", default_value_t = 20)]
    warmup: u32,
    /// Measured runs
    #[arg(short, long, value_name = "N", default_value_t = 200, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
    /// Chunk and stages of the horizontal bulk copies
    #[arg(long, value_name = "CxS", default_value = "16x2", value_parser = parse_pair)]
    horizontal: (u32, u32),
    /// Chunk and stages of the vertical bulk copies
    #[arg(long, value_name = "CxS", default_value = "8x4", value_parser = parse_pair)]
    vertical: (u32, u32),
    /// Chunk and stages of the oblique bulk copies
    #[arg(long, value_name = "CxS", default_value = "8x4", value_parser = parse_pair)]
    oblique: (u32, u32),
    /// Which GPU, by the driver's number [default: the first]
    #[arg(long, value_name = "N")]
    device: Option<u32>,
    /// The folder for the CSV files
    #[arg(long, value_name = "DIR", default_value = "bench-gpu-paths")]
    out: PathBuf,
    /// What cargo passes to every benchmark
    #[arg(long, hide = true)]
    bench: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, ValueEnum)]
enum Part {
    /// Every direction's kernel alone on the device, plain and bulk
    Isolated,
    /// Whole frames of 4 and 8 paths with plain, bulk and mixed kernels
    Whole,
    /// How much a kernel's time varies alone and beside others, by streams and priorities
    Contention,
    /// The tuned plan against the plain one
    Check,
}

/// Two numbers, written as `16x2`.
fn parse_pair(text: &str) -> std::result::Result<(u32, u32), String> {
    let parsed = text.split_once('x').and_then(|(a, b)| Some((a.parse().ok()?, b.parse().ok()?)));
    parsed.ok_or_else(|| "expected two numbers like 16x2".to_owned())
}

fn main() -> ExitCode {
    let args = Args::parse();
    match run(&args) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::FAILURE,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Whether the check held.
#[cfg(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64")))]
fn run(args: &Args) -> Result<bool> {
    parts::run(args)
}

/// Whether the check held.
#[cfg(not(all(target_os = "linux", any(target_arch = "x86_64", target_arch = "aarch64"))))]
fn run(_args: &Args) -> Result<bool> {
    stereo_host::cuda::device::availability(None).map(|()| true)
}

/// Milliseconds with three digits.
fn ms(times: &Times) -> String {
    format!("{:.3}", times.median_ms)
}
