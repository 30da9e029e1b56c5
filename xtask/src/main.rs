//! The project's chores. One file per chore: each has an `Args` (clap) and a `run`, and a variant of [`Chore`] here.

mod doctor;
mod error;
mod workspace;

use clap::Parser;
use error::Result;

/// The project's chores: `cargo xtask <CHORE>`.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", max_term_width = 120)]
enum Chore {
    Doctor(doctor::Args),
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
        Chore::Doctor(args) => doctor::run(&args),
    }
}
