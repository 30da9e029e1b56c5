//! `stereo bench`.

use std::time::Instant;

use indicatif::ProgressBar;
use serde::Serialize;
use stereo_host::{
    DeviceCode, DisparityMap, Matcher, Options, Params, Plan, PlanSource, Report, Result, Scene, SceneSpec,
    StageReport, Times,
};

use crate::{args::BenchCommand, compare, interrupt, output};

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
    /// The PTX of a GPU.
    device_code: Option<DeviceCode>,
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
    if let Some([a, b]) = args.compare_ptx.as_deref() {
        return compare::run(args, params, [a, b]);
    }
    let scene = render(args, &params)?;
    let bar = output::progress(2 * rounds(args), "runs");
    let pass = |timing| {
        let matcher = matcher(args, &params, &args.run.to_options_for_many(timing))?;
        let [runs] = measure(args, [Side::new(matcher, &scene)?], &scene, &bar)?;
        Ok::<_, stereo_host::Error>(runs)
    };

    // Measuring the stages costs time itself (events between kernels, no overlap of streams), so that the
    // whole is timed without, and one matcher after the other keeps the memory of one.
    let (whole, staged) = (pass(false)?, pass(true)?);
    bar.finish_and_clear();

    let Report { backend, device, device_code, plan, plan_source, .. } = whole.last;
    let report = BenchReport {
        backend,
        device,
        device_code,
        width: args.size.width,
        height: args.size.height,
        iterations: args.iterations,
        plan,
        plan_source,
        times: Times::of(whole.ms),
        device_ms: (!whole.device_ms.is_empty()).then(|| Times::of(whole.device_ms)),
        stages: staged.stages.into_iter().map(|(last, ms)| StageTimes { last, times: Times::of(ms) }).collect(),
        params,
    };
    if args.json { output::print_json(&report) } else { output::print(&report.table()) }
}

/// The pair that is matched.
pub fn render(args: &BenchCommand, params: &Params) -> Result<Scene> {
    tracing::debug!("{params:?}");
    SceneSpec {
        width: args.size.width,
        height: args.size.height,
        min_disparity: params.min_disparity,
        disparities: params.disparities,
        ..SceneSpec::default()
    }
    .render()
}

/// A matcher of the benchmark's size.
pub fn matcher(args: &BenchCommand, params: &Params, options: &Options) -> Result<Matcher> {
    Matcher::new(args.size.width, args.size.height, params, options)
}

/// A matcher that is measured.
pub struct Side {
    matcher: Matcher,
    runs: Runs,
}

/// What the measured runs of a matcher gave; times in milliseconds, a value a run.
pub struct Runs {
    /// The last run's.
    pub map: DisparityMap,
    /// The last run's.
    pub last: Report,
    /// From host to host.
    pub ms: Vec<f64>,
    /// On a GPU, without the copies from and to the host; else empty.
    pub device_ms: Vec<f64>,
    /// The stages, if the matcher times them, as the first run reported them.
    pub stages: Vec<(StageReport, Vec<f64>)>,
}

impl Side {
    /// Matches once.
    pub fn new(mut matcher: Matcher, scene: &Scene) -> Result<Self> {
        let map = matcher.compute(&scene.left.view()?, &scene.right.view()?)?;
        let runs = Runs { map, last: Report::default(), ms: Vec::new(), device_ms: Vec::new(), stages: Vec::new() };
        Ok(Self { matcher, runs })
    }
}

impl Runs {
    fn record(&mut self, report: &Report, ms: f64) {
        self.ms.push(ms);
        self.device_ms.extend(report.device_ms);
        for (i, stage) in report.stages.iter().enumerate() {
            match self.stages.get_mut(i) {
                Some((_, times)) => times.push(stage.ms),
                None => self.stages.push((stage.clone(), vec![stage.ms])),
            }
        }
        self.last = report.clone();
    }
}

/// Warms up and runs, in every round each side once, so that what changes on the machine meanwhile meets all alike.
pub fn measure<const N: usize>(
    args: &BenchCommand,
    mut sides: [Side; N],
    scene: &Scene,
    bar: &ProgressBar,
) -> Result<[Runs; N]> {
    let (left, right) = (scene.left.view()?, scene.right.view()?);
    for round in 0..rounds(args) {
        for Side { matcher, runs } in &mut sides {
            interrupt::check()?;
            let start = Instant::now();
            matcher.compute_into(&left, &right, &mut runs.map)?;
            let ms = start.elapsed().as_secs_f64() * 1e3;
            if round >= u64::from(args.warmup) {
                runs.record(matcher.report(), ms);
            }
            bar.inc(1);
        }
    }
    Ok(sides.map(|side| side.runs))
}

/// Both numbers may be the largest of their type.
pub fn rounds(args: &BenchCommand) -> u64 {
    u64::from(args.warmup) + u64::from(args.iterations)
}

/// What was measured, the first line of a table.
pub fn heading(width: usize, height: usize, params: &Params, runs: &str) -> String {
    format!("{width}x{height}, {} disparities, {} paths, {runs}", params.disparities, params.paths.count())
}

/// The widths of the columns of stages and of their variants.
pub fn widths<'a>(rows: impl Iterator<Item = (&'a str, &'a str)>) -> (usize, usize) {
    rows.fold((0, 0), |(name, kind), (a, b)| (name.max(a.chars().count()), kind.max(b.chars().count())))
}

impl BenchReport {
    fn table(&self) -> String {
        let mut rows: Vec<_> = self.stages.iter().map(|s| (s.last.stage, s.last.describe(), s.times)).collect();
        rows.extend(self.device_ms.map(|times| ("on the device", String::new(), times)));
        rows.push(("whole", String::new(), self.times));
        let (stage, variant) = widths(rows.iter().map(|row| (row.0, row.1.as_str())));
        let runs = format!("{} runs on {} ({})", self.iterations, self.backend, self.device);
        let mut table = heading(self.width, self.height, &self.params, &runs);
        table += &format!("\n{:stage$}  {:variant$}  {:>10} {:>10} {:>10}\n", "ms", "", "median", "min", "std");
        for (name, kind, t) in rows {
            table +=
                &format!("{name:stage$}  {kind:variant$}  {:10.3} {:10.3} {:10.3}\n", t.median_ms, t.min_ms, t.std_ms);
        }
        if let (Some(plan), Some(source)) = (self.plan, self.plan_source) {
            table += &format!("plan ({source}): {plan}\n");
        }
        table + &output::code_line(self.device_code.as_ref())
    }
}
