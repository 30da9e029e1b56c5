//! Ctrl-C: work stops at the next frame or scene, or at once where that takes long, and never inside a write.

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use stereo_host::{Error, Result};

/// What shells report for a process that Ctrl-C ended: 128 + SIGINT.
pub const EXIT_CODE: u8 = 130;

/// How long the work may take to reach its next check before the process ends without it.
const GRACE: Duration = Duration::from_millis(300);

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// Held while files are written. The handler takes it before it ends the process, so that no temporary file stays.
static WRITING: Mutex<()> = Mutex::new(());

/// Takes over Ctrl-C and the termination signals.
pub fn install() -> Result<()> {
    ctrlc::set_handler(|| {
        REQUESTED.store(true, Ordering::Relaxed);
        std::thread::sleep(GRACE);
        let _no_write_is_under_way = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
        crate::output::print_error(&Error::Interrupted);
        std::process::exit(EXIT_CODE.into());
    })
    .map_err(|e| Error::File {
        path: "Ctrl-C".into(),
        action: "cannot install the handler",
        source: std::io::Error::other(e),
    })
}

/// Ends the work when Ctrl-C was pressed.
pub fn check() -> Result<()> {
    if REQUESTED.load(Ordering::Relaxed) { Err(Error::Interrupted) } else { Ok(()) }
}

/// Runs a write that Ctrl-C must not cut in half.
pub fn whole<T>(write: impl FnOnce() -> Result<T>) -> Result<T> {
    let _guard = WRITING.lock().unwrap_or_else(PoisonError::into_inner);
    check()?;
    write()
}
