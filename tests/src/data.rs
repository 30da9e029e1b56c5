//! The shared stereo pairs: found beside the workspace, or the test says that it was skipped.

use std::path::PathBuf;

/// The folder of the stereo pairs, `None` (and a line that says so) where it is not there.
pub fn folder() -> Option<PathBuf> {
    let folder = crate::data_dir();
    if folder.is_none() {
        crate::skip("the stereo pairs are not there (../shared/data or STEREO_DATA_DIR)");
    }
    folder
}
