//! The one error type of this crate.

use std::path::PathBuf;

/// What can go wrong. Every text names the offending value and the limit it broke.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A parameter is outside its range.
    #[error("{name} = {value} is not allowed: {limit}")]
    Parameter {
        /// The parameter, as the library and the command spell it.
        name: &'static str,
        /// The refused value.
        value: String,
        /// What would have been accepted.
        limit: String,
    },
    /// An image view cannot be made from the given buffer.
    #[error("{what}: {value}, but {limit}")]
    Image {
        /// Which property of the image is at fault.
        what: &'static str,
        /// The refused value.
        value: String,
        /// What would have been accepted.
        limit: String,
    },
    /// The two images, or the images and the matcher, disagree in size or depth.
    #[error("{what}: got {got}, expected {expected}")]
    Mismatch {
        /// What disagrees.
        what: &'static str,
        /// What was given.
        got: String,
        /// What was needed.
        expected: String,
    },
    /// The backend asked for does not exist on this machine or in this build.
    #[error("backend {backend} is not available here: {reason}")]
    Unavailable {
        /// The backend's name.
        backend: &'static str,
        /// Why it is missing and, where that is known, what would bring it.
        reason: String,
    },
    /// A size needs more memory than there is.
    #[error("{what} needs {need} bytes, {available} are available; {advice}")]
    Memory {
        /// Whose memory.
        what: &'static str,
        /// Bytes needed.
        need: u64,
        /// Bytes available.
        available: u64,
        /// What would fit.
        advice: String,
    },
    /// The CUDA driver refused a call.
    #[error("CUDA: {call} failed: {message}")]
    Cuda {
        /// The call, as the driver API names it.
        call: &'static str,
        /// The driver's own words.
        message: String,
    },
    /// The emulator found a fault in a kernel.
    #[error("emulator: {0}")]
    Emulator(String),
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
    /// A file was read but is not what it should be.
    #[error("{}: {reason}", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// The work was interrupted by the user or by a dropped consumer.
    #[error("interrupted")]
    Interrupted,
}

impl Error {
    pub(crate) fn parameter(name: &'static str, value: impl ToString, limit: impl Into<String>) -> Self {
        Self::Parameter { name, value: value.to_string(), limit: limit.into() }
    }
}

/// This crate's result.
pub type Result<T, E = Error> = std::result::Result<T, E>;
