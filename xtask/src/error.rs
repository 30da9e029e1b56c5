//! The one error type of this crate.

use std::path::{Path, PathBuf};

/// What can go wrong in a chore. Every text says what to do about it where that is known.
#[derive(Debug, thiserror::Error)]
pub enum Error {
    /// A tool, a toolchain or a file that the chore needs is not there.
    #[error("{what} not found\n{advice}")]
    Missing {
        /// What is missing.
        what: String,
        /// How to get it.
        advice: String,
    },
    /// A program could not be started.
    #[error("cannot start {program}: {source}")]
    Start {
        /// The program.
        program: String,
        /// The system's own words.
        source: std::io::Error,
    },
    /// A program ran and failed.
    #[error("{program} failed ({status})\n{output}")]
    Failed {
        /// The program with its arguments.
        program: String,
        /// Its exit status.
        status: std::process::ExitStatus,
        /// What it said, where that was captured.
        output: String,
    },
    /// A file could not be read or written.
    #[error("{}: {action}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What was tried, for example "cannot read".
        action: &'static str,
        /// The system's own words.
        source: std::io::Error,
    },
    /// A tool's output is not what this chore understands.
    #[error("{what}: {reason}")]
    Format {
        /// What was read.
        what: String,
        /// What is wrong with it.
        reason: String,
    },
    /// The chore did its work and a check did not hold.
    #[error("{0}")]
    Check(String),
    /// The library refused.
    #[error(transparent)]
    Stereo(#[from] stereo_host::Error),
}

impl Error {
    /// For `map_err` on the file operations of `std`.
    pub fn file(path: impl AsRef<Path>, action: &'static str) -> impl FnOnce(std::io::Error) -> Self {
        let path = path.as_ref().to_path_buf();
        move |source| Self::File { path, action, source }
    }
}

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
