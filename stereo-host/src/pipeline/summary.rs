//! What a stream did: frames, rate and latencies.

use std::time::{Duration, Instant};

use serde::Serialize;

/// Percentiles of the time from a pair's arrival to its map, in milliseconds, by the nearest rank.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Latency {
    /// The smallest.
    pub min_ms: f64,
    /// Half of the frames took at most this.
    pub p50_ms: f64,
    /// 95 of 100 frames took at most this.
    pub p95_ms: f64,
    /// 99 of 100 frames took at most this.
    pub p99_ms: f64,
    /// The largest.
    pub max_ms: f64,
}

/// What a [`super::Stream`] has done so far.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Summary {
    /// Frames given to the consumer.
    pub frames: u64,
    /// Frames that a newer one replaced; 0 unless only the latest were asked for.
    pub dropped: u64,
    /// Seconds from the start to the last frame given.
    pub seconds: f64,
    /// Frames per second over that time; 0 without a frame.
    pub frames_per_second: f64,
    /// From arrival to the finished map.
    pub latency: Latency,
}

/// Collects what a [`Summary`] needs.
#[derive(Debug)]
pub(super) struct Meter {
    start: Instant,
    last: Instant,
    latencies: Vec<Duration>,
}

impl Meter {
    pub(super) fn start() -> Self {
        let now = Instant::now();
        Self { start: now, last: now, latencies: Vec::new() }
    }

    pub(super) fn frame(&mut self, latency: Duration) {
        self.last = Instant::now();
        self.latencies.push(latency);
    }

    pub(super) fn summary(&self, dropped: u64) -> Summary {
        let mut sorted = self.latencies.clone();
        sorted.sort_unstable();
        // The smallest value that at least `percent` of all do not exceed.
        let rank = |percent: usize| match sorted.len() {
            0 => 0.0,
            n => sorted[(n * percent).div_ceil(100).clamp(1, n) - 1].as_secs_f64() * 1e3,
        };
        let seconds = (self.last - self.start).as_secs_f64();
        let frames = sorted.len() as u64;
        Summary {
            frames,
            dropped,
            seconds,
            frames_per_second: if seconds > 0.0 { frames as f64 / seconds } else { 0.0 },
            latency: Latency {
                min_ms: rank(0),
                p50_ms: rank(50),
                p95_ms: rank(95),
                p99_ms: rank(99),
                max_ms: rank(100),
            },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn percentiles_by_nearest_rank() {
        let mut meter = Meter::start();
        assert_eq!(meter.summary(0).latency, Latency::default());
        (1..=200).rev().for_each(|ms| meter.frame(Duration::from_millis(ms)));
        let Summary { latency, frames, dropped, .. } = meter.summary(3);
        assert_eq!((frames, dropped), (200, 3));
        let got = [latency.min_ms, latency.p50_ms, latency.p95_ms, latency.p99_ms, latency.max_ms];
        assert_eq!(got.map(f64::round), [1.0, 100.0, 190.0, 198.0, 200.0]);
    }
}
