//! `stereo bench`.

use std::time::Instant;

use serde::Serialize;
use stereo_host::{Matcher, Params, Result, Scene, SceneSpec};

use crate::{args::BenchCommand, interrupt, output};

/// Median, minimum and standard deviation of a set of times, in milliseconds.
#[derive(Debug, Clone, Copy, Serialize)]
struct Times {
    median_ms: f64,
    min_ms: f64,
    std_ms: f64,
}

#[derive(Serialize)]
struct StageTimes {
    stage: &'static str,
    variant: String,
    #[serde(flatten)]
    times: Times,
}

/// What `--json` prints.
#[derive(Serialize)]
struct BenchReport {
    backend: &'static str,
    device: String,
    width: usize,
    height: usize,
    iterations: u32,
    #[serde(flatten)]
    times: Times,
    stages: Vec<StageTimes>,
    params: Params,
}

pub fn run(args: &BenchCommand) -> Result<()> {
    let params = args.matching.to_params();
    params.validate()?;
    let scene = SceneSpec {
        width: args.size.width,
        height: args.size.height,
        min_disparity: params.min_disparity,
        disparities: params.disparities,
        ..SceneSpec::default()
    }
    .render()?;
    tracing::debug!("{params:?}");
    let bar = output::progress(2 * u64::from(args.iterations + args.warmup), "runs");

    // Measuring the stages costs time itself (events between kernels, no overlap of streams), so that the
    // whole is timed without, and one matcher after the other keeps the memory of one.
    let mut whole = Vec::new();
    measure(args, &params, &scene, false, &bar, |_, ms| whole.push(ms))?;
    let mut stages: Vec<(&'static str, String, Vec<f64>)> = Vec::new();
    let (backend, device) = measure(args, &params, &scene, true, &bar, |matcher, _| {
        for (i, stage) in matcher.report().stages.iter().enumerate() {
            match stages.get_mut(i) {
                Some((_, _, times)) => times.push(stage.ms),
                None => stages.push((stage.stage, stage.variant.clone(), vec![stage.ms])),
            }
        }
    })?;
    bar.finish_and_clear();

    let report = BenchReport {
        backend,
        device,
        width: args.size.width,
        height: args.size.height,
        iterations: args.iterations,
        times: Times::of(whole),
        stages: stages
            .into_iter()
            .map(|(stage, variant, times)| StageTimes { stage, variant, times: Times::of(times) })
            .collect(),
        params,
    };
    if args.json { output::print_json(&report) } else { output::print(&report.table()) }
}

/// Warms up and runs; calls `record` after every measured run with its wall time in milliseconds.
fn measure(
    args: &BenchCommand,
    params: &Params,
    scene: &Scene,
    timing: bool,
    bar: &indicatif::ProgressBar,
    mut record: impl FnMut(&Matcher, f64),
) -> Result<(&'static str, String)> {
    let (left, right) = (scene.left.view()?, scene.right.view()?);
    let mut matcher = Matcher::new(args.size.width, args.size.height, params, &args.run.to_options(timing))?;
    let mut map = matcher.compute(&left, &right)?;
    for run in 0..args.warmup + args.iterations {
        interrupt::check()?;
        let start = Instant::now();
        matcher.compute_into(&left, &right, &mut map)?;
        if run >= args.warmup {
            record(&matcher, start.elapsed().as_secs_f64() * 1e3);
        }
        bar.inc(1);
    }
    Ok((matcher.report().backend, matcher.report().device.clone()))
}

impl Times {
    fn of(mut times: Vec<f64>) -> Self {
        times.sort_by(f64::total_cmp);
        let count = times.len();
        let mean = times.iter().sum::<f64>() / count as f64;
        let squares: f64 = times.iter().map(|t| (t - mean).powi(2)).sum();
        Self {
            median_ms: f64::midpoint(times[(count - 1) / 2], times[count / 2]),
            min_ms: times[0],
            std_ms: if count > 1 { (squares / (count - 1) as f64).sqrt() } else { 0.0 },
        }
    }
}

impl BenchReport {
    fn table(&self) -> String {
        let rows = || self.stages.iter().map(|s| (s.stage, s.variant.as_str(), s.times));
        let width = |of: fn((&str, &str, Times)) -> usize| rows().map(of).max().unwrap_or(0);
        let (stage, variant) = (width(|r| r.0.chars().count()).max(5), width(|r| r.1.chars().count()));
        let mut table = format!(
            "{}x{}, {} disparities, {} paths, {} runs on {} ({})\n{:stage$}  {:variant$}  {:>10} {:>10} {:>10}\n",
            self.width,
            self.height,
            self.params.disparities,
            self.params.paths.count(),
            self.iterations,
            self.backend,
            self.device,
            "ms",
            "",
            "median",
            "min",
            "std",
        );
        for (name, kind, t) in rows().chain([("whole", "", self.times)]) {
            table +=
                &format!("{name:stage$}  {kind:variant$}  {:10.3} {:10.3} {:10.3}\n", t.median_ms, t.min_ms, t.std_ms);
        }
        table
    }
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
        assert_eq!((t.median_ms, t.min_ms, t.std_ms), (7.0, 7.0, 0.0));
    }
}
