//! What is measured.

use std::collections::BTreeMap;

use serde::Serialize;
use stereo_benches::{
    gpu::Frames,
    table::{delta, markdown, save_csv},
};
use stereo_host::{Direction, Params, PathKernel, Paths, Plan, Report, Result, Times, Tuning};

use crate::{Args, Part, ms};

/// How much slower the tuned plan may be before the check fails, beyond the noise.
const CHECK_MARGIN: f64 = 0.01;

/// What others published for a direction's isolated median, bulk against plain (tma.md): on 26 and on
/// 170 multiprocessors where both are known.
fn published_isolated(direction: Direction) -> &'static str {
    match direction.offset() {
        (_, 0) => "-10.7 % / -37 to -48 %",
        (0, _) => "-5.9 %",
        _ => "-3.8 %",
    }
}

/// The same for 8 paths end to end with oblique bulk copies.
const PUBLISHED_WHOLE: &str = "+2.9 % / -1.8 %";

/// Runs the parts that are asked for; whether the check held.
pub fn run(args: &Args) -> Result<bool> {
    let (width, height) = (args.size.0 as usize, args.size.1 as usize);
    let frames = Frames::new(width, height, args.disparities, args.device)?;
    let bench = Bench { args, frames };
    let wanted = |part| args.part.is_empty() || args.part.contains(&part);
    println!(
        "{width}x{height}, {} disparities on {}; {} warm-up and {} measured runs (published: 400 and 3,000)\n",
        args.disparities,
        bench.frames.device(),
        args.warmup,
        args.iterations
    );
    if wanted(Part::Isolated) {
        bench.isolated()?;
    }
    if wanted(Part::Whole) {
        bench.whole()?;
    }
    if wanted(Part::Contention) {
        bench.contention()?;
    }
    if wanted(Part::Check) { bench.check() } else { Ok(true) }
}

struct Bench<'a> {
    args: &'a Args,
    frames: Frames,
}

/// A line of a CSV file.
#[derive(Serialize)]
struct Row {
    kernels: String,
    paths: usize,
    streams: u32,
    priority: &'static str,
    what: String,
    runs: usize,
    median_ms: f64,
    min_ms: f64,
    std_ms: f64,
    error_ms: f64,
    /// The standard deviation as a share of the median.
    variation: f64,
    plan: String,
}

impl Row {
    fn new(kernels: &str, paths: Paths, plan: Plan, what: &str, runs: usize, times: &Times) -> Self {
        Self {
            kernels: kernels.to_owned(),
            paths: paths.count(),
            streams: plan.streams,
            priority: priority(plan),
            what: what.to_owned(),
            runs,
            median_ms: times.median_ms,
            min_ms: times.min_ms,
            std_ms: times.std_ms,
            error_ms: times.error_ms,
            variation: times.variation(),
            plan: plan.to_string(),
        }
    }
}

fn priority(plan: Plan) -> &'static str {
    if plan.horizontal_first { "horizontal" } else { "none" }
}

/// The times of every direction's kernel, in the order of [`Direction::ALL`].
#[derive(Default)]
struct PerDirection(BTreeMap<usize, Vec<f64>>);

impl PerDirection {
    fn add(&mut self, report: &Report) {
        for (i, direction) in Direction::ALL.into_iter().enumerate() {
            let found = report.stages.iter().find(|stage| stage.stage == direction.stage());
            if let Some(stage) = found {
                self.0.entry(i).or_default().push(stage.ms);
            }
        }
    }

    fn times(self) -> impl Iterator<Item = (Direction, Times)> {
        self.0.into_iter().map(|(i, times)| (Direction::ALL[i], Times::of(times)))
    }
}

impl Bench<'_> {
    fn params(&self, paths: Paths) -> Params {
        Params { disparities: self.args.disparities, paths, ..Params::default() }
    }

    fn runs(&self) -> (u32, u32) {
        (self.args.warmup, self.args.iterations)
    }

    fn save(&self, name: &str, rows: &[Row]) -> Result<()> {
        let file = save_csv(&self.args.out, name, rows)?;
        println!("({})\n", file.display());
        Ok(())
    }

    /// Bulk copies for the groups that are asked for.
    fn bulk(&self, horizontal: bool, vertical: bool, oblique: bool) -> Plan {
        let kernel = |wanted, (chunk, stages): (u32, u32)| match wanted {
            true => PathKernel::Bulk { chunk, stages },
            false => PathKernel::Plain,
        };
        Plan {
            horizontal: kernel(horizontal, self.args.horizontal),
            vertical: kernel(vertical, self.args.vertical),
            oblique: kernel(oblique, self.args.oblique),
            ..Plan::PLAIN
        }
    }

    /// Bytes that a direction's kernel reads and writes: costs, path costs and penalties.
    fn bytes(&self) -> f64 {
        const CHUNK: u32 = 16;
        let padded = self.args.disparities.div_ceil(CHUNK).next_power_of_two() * CHUNK;
        f64::from(self.args.size.0) * f64::from(self.args.size.1) * f64::from(2 * padded + 1)
    }

    /// Every direction alone: one stream, so that kernels follow each other.
    fn isolated(&self) -> Result<()> {
        let alone = |plan| Plan { streams: 1, horizontal_first: false, ..plan };
        let params = self.params(Paths::Eight);
        let mut plans = vec![("plain", alone(Plan::PLAIN)), ("bulk", alone(self.bulk(true, true, true)))];
        let (chunk, stages) = self.args.horizontal;
        let tiles = alone(Plan { horizontal: PathKernel::Tiles { chunk, stages }, ..Plan::PLAIN });
        if self.frames.matcher(&params, Tuning::Fixed(tiles), false).is_ok() {
            plans.push(("tiles", tiles));
        }
        let mut rows = Vec::new();
        let mut measured = Vec::new();
        for &(name, plan) in &plans {
            let mut kernels = PerDirection::default();
            self.frames.measure_plan(&params, plan, true, self.runs(), |report| kernels.add(report))?;
            let times: Vec<_> = kernels.times().collect();
            for (direction, times) in &times {
                let runs = self.args.iterations as usize;
                rows.push(Row::new(name, params.paths, plan, direction.name(), runs, times));
            }
            measured.push(times);
        }
        let rate = |times: &Times| format!("{:.0}", self.bytes() / times.median_ms / 1e6);
        let line = |name: String, direction: Direction, plain: &Times, bulk: &Times| {
            vec![
                name,
                ms(plain),
                format!("{:.3}", plain.std_ms),
                rate(plain),
                ms(bulk),
                format!("{:.3}", bulk.std_ms),
                rate(bulk),
                delta(bulk.median_ms, plain.median_ms),
                published_isolated(direction).to_owned(),
            ]
        };
        let mut lines = Vec::new();
        for (kind, times) in plans.iter().zip(&measured).skip(1) {
            for ((direction, plain), (_, times)) in measured[0].iter().zip(times) {
                // Tiles are for the horizontal directions only.
                if kind.0 == "bulk" || direction.offset().1 == 0 {
                    lines.push(line(format!("{direction}, {}", kind.0), *direction, plain, times));
                }
            }
        }
        let heading =
            ["isolated", "plain, ms", "std", "GB/s", "copied, ms", "std", "GB/s", "delta", "published (26 / 170 SMs)"];
        print!("{}", markdown(&heading, &lines));
        self.save("isolated", &rows)
    }

    /// Whole frames on the device.
    fn whole(&self) -> Result<()> {
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        for paths in [Paths::Four, Paths::Eight] {
            let mut plans = vec![("plain", Plan::PLAIN), ("horizontal bulk", self.bulk(true, false, false))];
            if paths == Paths::Eight {
                plans.push(("vertical and oblique bulk", self.bulk(false, true, true)));
                plans.push(("horizontal and oblique bulk", self.bulk(true, false, true)));
                plans.push(("no oblique bulk", self.bulk(true, true, false)));
            } else {
                plans.push(("vertical bulk", self.bulk(false, true, false)));
            }
            plans.push(("all bulk", self.bulk(true, true, true)));
            let tuned = self.frames.matcher(&self.params(paths), Tuning::Auto, false)?;
            plans.push(("tuned", tuned.plan().map_or(Plan::PLAIN, |(plan, _)| plan)));
            drop(tuned);
            let mut plain = None;
            for (name, plan) in plans {
                let mut frame = Vec::new();
                self.frames.measure_plan(&self.params(paths), plan, false, self.runs(), |report| {
                    frame.extend(report.device_ms);
                })?;
                let runs = frame.len();
                let times = Times::of(frame);
                let base = *plain.get_or_insert(times.median_ms);
                let published = if paths == Paths::Eight && name.starts_with("vertical and oblique") {
                    PUBLISHED_WHOLE
                } else {
                    ""
                };
                lines.push(vec![
                    format!("{} paths, {name}", paths.count()),
                    ms(&times),
                    format!("{:.3}", times.min_ms),
                    format!("{:.3}", times.std_ms),
                    delta(times.median_ms, base),
                    published.to_owned(),
                ]);
                rows.push(Row::new(name, paths, plan, "frame", runs, &times));
            }
        }
        let heading = ["frame on the device", "median, ms", "min", "std", "against plain", "published (26 / 170 SMs)"];
        print!("{}", markdown(&heading, &lines));
        self.save("whole", &rows)
    }

    /// Kernels beside each other.
    fn contention(&self) -> Result<()> {
        let params = self.params(Paths::Eight);
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        for (name, base) in [("plain", Plan::PLAIN), ("bulk", self.bulk(true, true, true))] {
            for streams in [1, 2, 4, 8] {
                for horizontal_first in [false, true] {
                    let plan = Plan { streams, horizontal_first, ..base };
                    let (mut kernels, mut frame) = (PerDirection::default(), Vec::new());
                    self.frames.measure_plan(&params, plan, true, self.runs(), |report| {
                        kernels.add(report);
                        frame.extend(report.device_ms);
                    })?;
                    let runs = frame.len();
                    let frame = Times::of(frame);
                    let kernels: Vec<_> = kernels.times().collect();
                    let variations: Vec<_> = kernels.iter().map(|(_, times)| times.variation()).collect();
                    let mean = variations.iter().sum::<f64>() / variations.len().max(1) as f64;
                    let most = variations.iter().copied().fold(0.0, f64::max);
                    lines.push(vec![
                        format!("{name}, {streams} streams, priority {}", priority(plan)),
                        format!("{:.1} %", 100.0 * mean),
                        format!("{:.1} %", 100.0 * most),
                        ms(&frame),
                        format!("{:.3}", frame.std_ms),
                    ]);
                    for (direction, times) in &kernels {
                        rows.push(Row::new(name, params.paths, plan, direction.name(), runs, times));
                    }
                    rows.push(Row::new(name, params.paths, plan, "frame", runs, &frame));
                }
            }
        }
        let heading = ["contention", "kernel's variation, mean", "most", "frame with events, ms", "std"];
        print!("{}", markdown(&heading, &lines));
        println!(
            "A kernel's variation is its standard deviation over its median; with one stream kernels run alone \
             (with priority, horizontal ones beside the others). Published: with 8 streams bulk-copy kernels vary \
             three times as much as plain ones."
        );
        self.save("contention", &rows)
    }

    /// The tuned plan against the plain one, in turn.
    fn check(&self) -> Result<bool> {
        let (mut rows, mut lines) = (Vec::new(), Vec::new());
        let mut holds = true;
        for paths in [Paths::Four, Paths::Eight] {
            let params = self.params(paths);
            let mut matchers = [
                self.frames.matcher(&params, Tuning::Fixed(Plan::PLAIN), false)?,
                self.frames.matcher(&params, Tuning::Auto, false)?,
            ];
            let tuned_plan = matchers[1].plan().map_or(Plan::PLAIN, |(plan, _)| plan);
            let mut frames = [Vec::new(), Vec::new()];
            self.frames.measure(&mut matchers, self.args.warmup, self.args.iterations, |i, report| {
                frames[i].extend(report.device_ms);
            })?;
            let runs = frames[0].len();
            let [plain, tuned] = frames.map(Times::of);
            let slower = plain.clearly_below(&tuned, CHECK_MARGIN);
            holds &= !slower;
            lines.push(vec![
                format!("{} paths", paths.count()),
                ms(&plain),
                ms(&tuned),
                delta(tuned.median_ms, plain.median_ms),
                (if slower { "SLOWER" } else { "yes" }).to_owned(),
                tuned_plan.to_string(),
            ]);
            rows.push(Row::new("plain", paths, Plan::PLAIN, "frame", runs, &plain));
            rows.push(Row::new("tuned", paths, tuned_plan, "frame", runs, &tuned));
        }
        print!("{}", markdown(&["check", "plain, ms", "tuned, ms", "delta", "not slower", "plan"], &lines));
        self.save("check", &rows)?;
        Ok(holds)
    }
}
