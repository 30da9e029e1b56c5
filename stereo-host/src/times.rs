//! Statistics of repeated measurements.

use serde::Serialize;

/// Median, minimum and spread of a set of times, in milliseconds.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Times {
    /// The middle value; of an even number, the mean of the middle two.
    pub median_ms: f64,
    /// The smallest.
    pub min_ms: f64,
    /// The sample standard deviation; 0 of a single time.
    pub std_ms: f64,
    /// The standard error of the median, from the median absolute deviation, so that a few
    /// interrupted runs do not count.
    pub error_ms: f64,
}

/// The standard deviation of a normal distribution whose median absolute deviation is 1.
const MAD_TO_DEVIATION: f64 = 1.4826;

/// The standard error of the median of `n` normal values, in deviations over the root of `n`.
const MEDIAN_ERROR: f64 = 1.2533;

/// How many standard errors two medians differ by when the difference is not noise.
const CLEAR: f64 = 2.0;

impl Times {
    /// Of `times`, in any order.
    ///
    /// # Panics
    /// Without a single time.
    pub fn of(mut times: Vec<f64>) -> Self {
        assert!(!times.is_empty(), "no time was measured");
        let median_ms = median(&mut times);
        let (count, min_ms) = (times.len() as f64, times[0]);
        let mean = times.iter().sum::<f64>() / count;
        let squares: f64 = times.iter().map(|t| (t - mean).powi(2)).sum();
        let mut deviations: Vec<_> = times.iter().map(|t| (t - median_ms).abs()).collect();
        Self {
            median_ms,
            min_ms,
            std_ms: if count > 1.0 { (squares / (count - 1.0)).sqrt() } else { 0.0 },
            error_ms: MEDIAN_ERROR * MAD_TO_DEVIATION * median(&mut deviations) / count.sqrt(),
        }
    }

    /// Whether the median is below `other`'s by more than the share `margin` and by more than both
    /// medians' noise.
    pub fn clearly_below(&self, other: &Self, margin: f64) -> bool {
        let noise = CLEAR * self.error_ms.hypot(other.error_ms);
        self.median_ms + noise < other.median_ms && self.median_ms < other.median_ms * (1.0 - margin)
    }

    /// The standard deviation as a share of the median.
    pub fn variation(&self) -> f64 {
        if self.median_ms > 0.0 { self.std_ms / self.median_ms } else { 0.0 }
    }
}

/// Sorts, and returns the middle.
fn median(values: &mut [f64]) -> f64 {
    values.sort_by(f64::total_cmp);
    f64::midpoint(values[(values.len() - 1) / 2], values[values.len() / 2])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn median_minimum_and_deviation() {
        let t = Times::of(vec![4.0, 1.0, 3.0, 2.0]);
        assert_eq!((t.median_ms, t.min_ms), (2.5, 1.0));
        assert!((t.std_ms - (5.0f64 / 3.0).sqrt()).abs() < 1e-12);
        let t = Times::of(vec![7.0]);
        assert_eq!((t.median_ms, t.min_ms, t.std_ms, t.error_ms), (7.0, 7.0, 0.0, 0.0));
    }

    #[test]
    fn noise_is_no_difference() {
        let around = |middle: f64, spread: f64| Times::of((-5..=5).map(|i| middle + spread * f64::from(i)).collect());
        assert!(around(0.9, 0.001).clearly_below(&around(1.0, 0.001), 0.005));
        assert!(!around(0.9, 0.1).clearly_below(&around(1.0, 0.1), 0.005), "within the noise");
        assert!(!around(0.999, 0.0).clearly_below(&around(1.0, 0.0), 0.005), "within the margin");
        assert!(!around(1.1, 0.0).clearly_below(&around(1.0, 0.0), 0.005));
        let interrupted = Times::of(vec![1.0, 1.0, 1.0, 1.0, 50.0]);
        assert_eq!((interrupted.median_ms, interrupted.error_ms), (1.0, 0.0), "one interruption is no spread");
    }
}
