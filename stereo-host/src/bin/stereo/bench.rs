//! `stereo bench`.

use std::time::Instant;

use serde::Serialize;
use stereo_host::{Matcher, Params, Plan, PlanSource, Report, Result, Scene, SceneSpec, StageReport, Times};

use crate::{args::BenchCommand, interrupt, output};

#[derive(Serialize)]
struct StageTimes {
    /// The last run's.
    #[serde(flatten)]
    last: StageReport,
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
    /// The kernels and streams of a GPU.
    plan: Option<Plan>,
    plan_source: Option<PlanSource>,
    /// From host to host.
    #[serde(flatten)]
    times: Times,
    /// On a GPU, without the copies from and to the host.
    device_ms: Option<Times>,
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
    let bar = output::progress(2 * runs(args), "runs");

    // Measuring the stages costs time itself (events between kernels, no overlap of streams), so that the
    // whole is timed without, and one matcher after the other keeps the memory of one.
    let (mut whole, mut device) = (Vec::new(), Vec::new());
    let first = measure(args, &params, &scene, false, &bar, |report, ms| {
        whole.push(ms);
        device.extend(report.device_ms);
    })?;
    let mut stages: Vec<(StageReport, Vec<f64>)> = Vec::new();
    measure(args, &params, &scene, true, &bar, |report, _| {
        for (i, stage) in report.stages.iter().enumerate() {
            match stages.get_mut(i) {
                Some((_, times)) => times.push(stage.ms),
                None => stages.push((stage.clone(), vec![stage.ms])),
            }
        }
    })?;
    bar.finish_and_clear();

    let report = BenchReport {
        backend: first.backend,
        device: first.device,
        width: args.size.width,
        height: args.size.height,
        iterations: args.iterations,
        plan: first.plan,
        plan_source: first.plan_source,
        times: Times::of(whole),
        device_ms: (!device.is_empty()).then(|| Times::of(device)),
        stages: stages.into_iter().map(|(last, times)| StageTimes { last, times: Times::of(times) }).collect(),
        params,
    };
    if args.json { output::print_json(&report) } else { output::print(&report.table()) }
}

/// Warms up and runs; calls `record` after every measured run with its report and its wall time in
/// milliseconds. Returns the last report.
fn measure(
    args: &BenchCommand,
    params: &Params,
    scene: &Scene,
    timing: bool,
    bar: &indicatif::ProgressBar,
    mut record: impl FnMut(&Report, f64),
) -> Result<Report> {
    let (left, right) = (scene.left.view()?, scene.right.view()?);
    let mut matcher = Matcher::new(args.size.width, args.size.height, params, &args.run.to_options_for_many(timing))?;
    let mut map = matcher.compute(&left, &right)?;
    for run in 0..runs(args) {
        interrupt::check()?;
        let start = Instant::now();
        matcher.compute_into(&left, &right, &mut map)?;
        if run >= u64::from(args.warmup) {
            record(matcher.report(), start.elapsed().as_secs_f64() * 1e3);
        }
        bar.inc(1);
    }
    Ok(matcher.report().clone())
}

/// Both numbers may be the largest of their type.
fn runs(args: &BenchCommand) -> u64 {
    u64::from(args.warmup) + u64::from(args.iterations)
}

impl BenchReport {
    fn table(&self) -> String {
        let mut rows: Vec<_> = self.stages.iter().map(|s| (s.last.stage, s.last.describe(), s.times)).collect();
        rows.extend(self.device_ms.map(|times| ("on the device", String::new(), times)));
        rows.push(("whole", String::new(), self.times));
        let stage = rows.iter().map(|row| row.0.chars().count()).max().unwrap_or(0);
        let variant = rows.iter().map(|row| row.1.chars().count()).max().unwrap_or(0);
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
        for (name, kind, t) in rows {
            table +=
                &format!("{name:stage$}  {kind:variant$}  {:10.3} {:10.3} {:10.3}\n", t.median_ms, t.min_ms, t.std_ms);
        }
        if let (Some(plan), Some(source)) = (self.plan, self.plan_source) {
            table += &format!("plan ({source}): {plan}\n");
        }
        table
    }
}
