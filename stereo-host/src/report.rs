//! What a match did and how long it took.

use serde::Serialize;

/// One stage of a match.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageReport {
    /// The stage, named as in sgm.md or masda.md: `census`, `cost`, `aggregate left-to-right`, …
    pub stage: &'static str,
    /// Which implementation ran, for example a kernel's name with its chunk and stages.
    pub variant: String,
    /// Milliseconds: wall time on the CPU, event time on a GPU. Stages on parallel streams overlap.
    pub ms: f64,
}

/// What the last `compute` did. Filled only when [`crate::Options::timing`] is on, except for the names.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The backend that ran: `reference`, `cpu`, `cuda` or `emulator`.
    pub backend: &'static str,
    /// The device: a GPU's name, or the CPU features and thread count in use.
    pub device: String,
    /// Milliseconds from the call to the finished map.
    pub total_ms: f64,
    /// The stages in the order they were started.
    pub stages: Vec<StageReport>,
}

impl Report {
    /// Runs `work` and records it as a stage timed by the wall clock.
    pub(crate) fn time<T>(&mut self, stage: &'static str, variant: &str, work: impl FnOnce() -> T) -> T {
        let start = std::time::Instant::now();
        let result = work();
        self.stages.push(StageReport { stage, variant: variant.to_owned(), ms: start.elapsed().as_secs_f64() * 1e3 });
        result
    }
}
