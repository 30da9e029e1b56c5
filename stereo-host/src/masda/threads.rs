//! A thread pool with one arena per thread.

use std::sync::{Mutex, PoisonError};

use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::{Error, Options, Result};

/// Worker threads, each with its own `T` that outlives the frames: no work item allocates.
pub(super) struct Workers<T> {
    pool: ThreadPool,
    arenas: Vec<Mutex<T>>,
}

impl<T: Default + Send> Workers<T> {
    /// As many threads as `options` say, called `name-0`, `name-1`, … in a profiler; with `pinned` each stays on a core of
    /// its own, as far as there are cores that this process may use and the system can do it.
    pub(super) fn new(name: &'static str, options: &Options, pinned: bool) -> Result<Self> {
        let cores = if pinned { core_affinity::get_core_ids().unwrap_or_default() } else { Vec::new() };
        let pin = move |thread: usize| {
            if let Some(&core) = cores.get(thread % cores.len().max(1)) {
                core_affinity::set_for_current(core);
            }
        };
        let pool = ThreadPoolBuilder::new()
            .start_handler(pin)
            .num_threads(options.pool_threads())
            .thread_name(move |i| format!("{name}-{i}"))
            .build()
            .map_err(|error| Error::Unavailable { backend: "cpu", reason: error.to_string() })?;
        let arenas = (0..pool.current_num_threads()).map(|_| Mutex::default()).collect();
        Ok(Self { pool, arenas })
    }

    /// Runs `work` on the pool.
    pub(super) fn install<R: Send>(&self, work: impl FnOnce() -> R + Send) -> R {
        self.pool.install(work)
    }

    /// The number of threads.
    pub(super) fn count(&self) -> usize {
        self.arenas.len()
    }

    /// Gives `work` the arena of the current thread, which must be one of this pool.
    pub(super) fn with_arena<R>(&self, work: impl FnOnce(&mut T) -> R) -> R {
        let index = self.pool.current_thread_index().expect("called from inside install()");
        // Arenas hold scratch only, which every work item writes before it reads.
        let mut arena = self.arenas[index].lock().unwrap_or_else(PoisonError::into_inner);
        work(&mut arena)
    }
}
