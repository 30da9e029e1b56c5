//! Helpers for the integration tests.

pub mod brute;
pub mod cases;
pub mod data;
pub mod gpu;

use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Names the folder with the test data where it is not beside the workspace.
pub const DATA_DIR_VARIABLE: &str = "STEREO_DATA_DIR";

/// The folder with the eight scenes and libSGM's outputs: `STEREO_DATA_DIR`, else `../shared/data` from the workspace's
/// root. `None` where there is none; then a test says so with [`skip`] and returns.
pub fn data_dir() -> Option<PathBuf> {
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../../shared/data");
    let folder = std::env::var_os(DATA_DIR_VARIABLE).map_or_else(beside, PathBuf::from);
    folder.join("middlebury").is_dir().then_some(folder)
}

/// Says that the running test did not do its work, and why, in the form that `cargo xtask test` counts: a line
/// `skipped: REASON`, once per test, past the harness, which hides what passing tests print.
pub fn skip(reason: &str) {
    // Where even stderr is closed there is nobody to tell.
    let _ = writeln!(std::io::stderr(), "skipped: {reason}");
}
