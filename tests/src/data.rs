//! The shared stereo pairs: found beside the workspace, or the test says that it was skipped.

use std::path::PathBuf;

/// The folder of the stereo pairs, `None` (and a line on stderr) where it is not there.
pub fn folder() -> Option<PathBuf> {
    let folder = PathBuf::from(concat!(env!("CARGO_MANIFEST_DIR"), "/../../shared/data"));
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("SKIPPED: the stereo pairs are not at {}", folder.display());
    None
}
