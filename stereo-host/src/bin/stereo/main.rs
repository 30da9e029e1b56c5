//! The `stereo` command: exit code 0 when the work is done, 1 when it failed, 2 for wrong use, 130 when interrupted.

mod args;
mod bench;
mod compare;
mod demo;
mod eval;
mod frames;
mod info;
mod interrupt;
mod match_;
mod output;
mod stream;
mod tune;

use std::{io::ErrorKind, process::ExitCode};

use clap::{CommandFactory, Parser};
use stereo_host::{Error, Result};

use args::{Cli, Command};

/// The code for wrong use; the argument reader uses the same.
const WRONG_USE: u8 = 2;

fn main() -> ExitCode {
    let cli = Cli::parse();
    output::start_logging(cli.verbose, cli.quiet);
    match interrupt::install().and_then(|()| run(cli.command)) {
        Ok(()) => ExitCode::SUCCESS,
        // The reader of our output, `head` for example, has seen enough.
        Err(Error::File { source, .. }) if source.kind() == ErrorKind::BrokenPipe => ExitCode::SUCCESS,
        Err(Error::Interrupted) => {
            output::print_error(&Error::Interrupted);
            ExitCode::from(interrupt::EXIT_CODE)
        }
        Err(error) => {
            output::print_error(&error);
            let wrong_use = matches!(error, Error::Parameter { .. });
            if wrong_use { ExitCode::from(WRONG_USE) } else { ExitCode::FAILURE }
        }
    }
}

fn run(command: Command) -> Result<()> {
    match command {
        Command::Match(args) => match_::run(&args),
        Command::Demo(args) => demo::run(&args),
        Command::Eval(args) => eval::run(&args),
        Command::Bench(args) => bench::run(&args),
        Command::Stream(args) => stream::run(&args),
        Command::Tune(args) => tune::run(&args),
        Command::Info(args) => info::run(&args),
        Command::Completions { shell } => {
            let mut script = Vec::new();
            clap_complete::generate(shell, &mut Cli::command(), "stereo", &mut script);
            output::print(&String::from_utf8_lossy(&script))
        }
    }
}
