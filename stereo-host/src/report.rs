//! What a match did and how long it took.

use serde::Serialize;

use crate::{DeviceCode, Plan, PlanSource};

/// One stage of a match.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StageReport {
    /// The stage, named as in sgm.md or masda.md: `census`, `cost`, `aggregate left-to-right`, …
    pub stage: &'static str,
    /// Which implementation ran, for example a kernel's name.
    pub variant: String,
    /// Steps of a path per bulk copy, where the variant uses them.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub chunk: Option<u32>,
    /// Bulk-copy stages in flight.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stages: Option<u32>,
    /// The GPU's stream, 0 being the one that a frame begins and ends on.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub stream: Option<usize>,
    /// Milliseconds: wall time on the CPU, event time on a GPU. Stages on parallel streams overlap.
    pub ms: f64,
}

impl StageReport {
    /// A stage whose variant has no more to say.
    pub(crate) fn new(stage: &'static str, variant: &str, ms: f64) -> Self {
        Self { stage, variant: variant.to_owned(), chunk: None, stages: None, stream: None, ms }
    }

    /// The variant with all that is known of it: `aggregate_right_d128_tma, chunk 16, stages 2, stream 1`.
    pub fn describe(&self) -> String {
        let mut text = self.variant.clone();
        let numbers = [("chunk", self.chunk), ("stages", self.stages), ("stream", self.stream.map(|s| s as u32))];
        for (name, number) in numbers {
            if let Some(number) = number {
                text += &format!(", {name} {number}");
            }
        }
        text
    }
}

/// What the last `compute` did. The stages are there only when [`crate::Options::timing`] is on.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// The backend that ran: `reference`, `cpu`, `cuda` or `emulator`.
    pub backend: &'static str,
    /// The device: a GPU's name, or the CPU features and thread count in use.
    pub device: String,
    /// The PTX that a GPU ran.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_code: Option<DeviceCode>,
    /// The kernels and streams that a GPU used, and the emulator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan: Option<Plan>,
    /// Where that plan comes from.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub plan_source: Option<PlanSource>,
    /// Milliseconds from the call to the finished map.
    pub total_ms: f64,
    /// Milliseconds that the frame took on a GPU: from the first kernel's turn to the finished map (with
    /// MASDA, the finished candidates) in device memory, without the copies from and to the host.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_ms: Option<f64>,
    /// The stages in the order they were started.
    pub stages: Vec<StageReport>,
}

impl Report {
    /// Runs `work` and records it as a stage timed by the wall clock.
    pub(crate) fn time<T>(&mut self, stage: &'static str, variant: &str, work: impl FnOnce() -> T) -> T {
        let start = std::time::Instant::now();
        let result = work();
        self.stages.push(StageReport::new(stage, variant, start.elapsed().as_secs_f64() * 1e3));
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stage_says_what_is_known_of_it() {
        let plain = StageReport { stream: Some(3), ..StageReport::new("cost", "cost_centre", 1.0) };
        assert_eq!(plain.describe(), "cost_centre, stream 3");
        let bulk = StageReport { chunk: Some(16), stages: Some(2), ..plain };
        assert_eq!(bulk.describe(), "cost_centre, chunk 16, stages 2, stream 3");
        let json = serde_json::to_value(StageReport::new("fill", "cpu", 0.5)).unwrap();
        assert_eq!(json, serde_json::json!({ "stage": "fill", "variant": "cpu", "ms": 0.5 }));
    }
}
