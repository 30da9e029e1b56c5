//! `stereo bench --compare-ptx`.

use serde::Serialize;
use stereo_host::{
    Backend, DeviceCode, DisparityMap, Error, Options, Params, Plan, PlanSource, PtxSource, Report, Result, Times,
    Tuning,
};

use crate::{
    args::BenchCommand,
    bench::{self, Runs, Side},
    output,
};

/// Times of both, measured in turn.
#[derive(Serialize)]
struct Ratio {
    a: Times,
    b: Times,
    /// Of the medians.
    b_over_a: f64,
}

#[derive(Serialize)]
struct StageRatio {
    stage: &'static str,
    variant: String,
    #[serde(flatten)]
    times: Ratio,
}

/// How many bytes of the maps differ: the largest number of any pair that was compared.
#[derive(Default, Serialize)]
struct Differing {
    a_and_b: usize,
    a_and_cpu: usize,
    b_and_cpu: usize,
    /// How many were compared.
    of: usize,
}

/// What `--json` prints.
#[derive(Serialize)]
struct Comparison {
    backend: &'static str,
    device: String,
    a: Option<DeviceCode>,
    b: Option<DeviceCode>,
    width: usize,
    height: usize,
    /// Of each.
    iterations: u32,
    plan: Option<Plan>,
    plan_source: Option<PlanSource>,
    differing_bytes: Differing,
    /// From host to host.
    whole: Ratio,
    /// Without the copies from and to the host.
    device_ms: Ratio,
    stages: Vec<StageRatio>,
    params: Params,
}

/// Measures and prints; maps that differ are an error after that.
pub fn run(args: &BenchCommand, params: Params, sources: [&PtxSource; 2]) -> Result<()> {
    if !matches!(args.run.backend, Backend::Auto | Backend::Cuda) {
        return Err(Error::Parameter {
            name: "backend",
            value: args.run.backend.to_string(),
            limit: "cuda with --compare-ptx, which compares GPU code".to_owned(),
        });
    }
    let options = |ptx: &PtxSource, timing| Options {
        backend: Backend::Cuda,
        ptx: ptx.clone(),
        ..args.run.to_options_for_many(timing)
    };
    let first = bench::matcher(args, &params, &options(sources[0], false))?;
    let (plan, plan_source) = first.plan().unzip();
    let planned = |source, timing| {
        let options = options(source, timing);
        let tuning = plan.map_or(options.tuning, Tuning::Fixed);
        bench::matcher(args, &params, &Options { tuning, ..options })
    };
    let second = planned(sources[1], false)?;

    let scene = bench::render(args, &params)?;
    let cpu = Options { backend: Backend::Cpu, ..args.run.to_options(false) };
    let expected = bench::matcher(args, &params, &cpu)?.compute(&scene.left.view()?, &scene.right.view()?)?;
    let bar = output::progress(4 * bench::rounds(args), "runs");
    let whole = bench::measure(args, [Side::new(first, &scene)?, Side::new(second, &scene)?], &scene, &bar)?;
    // The stages in runs of their own, as without a comparison.
    let [first, second] = sources.map(|source| planned(source, true));
    let staged = bench::measure(args, [Side::new(first?, &scene)?, Side::new(second?, &scene)?], &scene, &bar)?;
    bar.finish_and_clear();

    let mut differing = Differing { of: size_of_val(expected.values()), ..Differing::default() };
    for [a, b] in [&whole, &staged] {
        differing.add([&a.map, &b.map], &expected);
    }
    let any = differing.a_and_b.max(differing.a_and_cpu).max(differing.b_and_cpu);

    let [a, b] = whole;
    let Report { backend, device, .. } = a.last;
    let report = Comparison {
        backend,
        device,
        a: a.last.device_code,
        b: b.last.device_code,
        width: args.size.width,
        height: args.size.height,
        iterations: args.iterations,
        plan,
        plan_source,
        differing_bytes: differing,
        whole: Ratio::of(a.ms, b.ms),
        device_ms: Ratio::of(a.device_ms, b.device_ms),
        stages: stages(staged),
        params,
    };
    if args.json { output::print_json(&report) } else { output::print(&report.table()) }?;
    if any > 0 {
        let got = format!("{any} differing bytes");
        return Err(Error::Mismatch { what: "disparity maps", got, expected: "none".to_owned() });
    }
    Ok(())
}

/// One plan queues the same stages in the same order, whatever the code.
fn stages([a, b]: [Runs; 2]) -> Vec<StageRatio> {
    let pairs = a.stages.into_iter().zip(b.stages);
    pairs
        .map(|((stage, a), (_, b))| StageRatio {
            stage: stage.stage,
            variant: stage.describe(),
            times: Ratio::of(a, b),
        })
        .collect()
}

impl Ratio {
    fn of(a: Vec<f64>, b: Vec<f64>) -> Self {
        let (a, b) = (Times::of(a), Times::of(b));
        Self { a, b, b_over_a: b.median_ms / a.median_ms }
    }
}

impl Differing {
    fn add(&mut self, [a, b]: [&DisparityMap; 2], cpu: &DisparityMap) {
        for (most, pair) in
            [(&mut self.a_and_b, [a, b]), (&mut self.a_and_cpu, [a, cpu]), (&mut self.b_and_cpu, [b, cpu])]
        {
            *most = (*most).max(differing_bytes(pair));
        }
    }
}

fn differing_bytes([a, b]: [&DisparityMap; 2]) -> usize {
    let bytes = |map: &DisparityMap| map.values().iter().flat_map(|value| value.to_ne_bytes()).collect::<Vec<_>>();
    bytes(a).iter().zip(&bytes(b)).filter(|(a, b)| a != b).count()
}

impl Comparison {
    fn table(&self) -> String {
        let mut rows: Vec<_> = self.stages.iter().map(|s| (s.stage, s.variant.as_str(), &s.times)).collect();
        rows.push(("on the device", "", &self.device_ms));
        rows.push(("whole", "", &self.whole));
        let (stage, variant) = bench::widths(rows.iter().map(|row| (row.0, row.1)));
        let runs = format!("{} runs of each in turn on {} ({})\n", self.iterations, self.backend, self.device);
        let mut table = bench::heading(self.width, self.height, &self.params, &runs);
        for (name, code) in [("A", &self.a), ("B", &self.b)] {
            table += &code.as_ref().map_or_else(String::new, |code| format!("{name}: {code}\n"));
        }
        table += &format!("{:stage$}  {:variant$}  {:>10} {:>10} {:>7}\n", "ms, median", "", "A", "B", "B/A");
        for (name, kind, times) in rows {
            table += &format!(
                "{name:stage$}  {kind:variant$}  {:10.3} {:10.3} {:7.3}\n",
                times.a.median_ms, times.b.median_ms, times.b_over_a
            );
        }
        let Differing { a_and_b, a_and_cpu, b_and_cpu, of } = self.differing_bytes;
        table += &format!("differing bytes of {of}: A and B {a_and_b}, A and cpu {a_and_cpu}, B and cpu {b_and_cpu}\n");
        if let (Some(plan), Some(source)) = (self.plan, self.plan_source) {
            table += &format!("plan ({source}): {plan}\n");
        }
        table
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_differing_byte_counts() {
        let map = |values: [i16; 4]| DisparityMap::from_values(values.to_vec(), 2, 2, 16, -16).unwrap();
        let (a, b) = (map([0, 1, 2, 3]), map([0, 1, 0x102, -4]));
        assert_eq!(differing_bytes([&a, &a]), 0);
        assert_eq!(differing_bytes([&a, &b]), 3);
        let mut differing = Differing::default();
        differing.add([&a, &b], &a);
        differing.add([&a, &a], &a);
        assert_eq!((differing.a_and_b, differing.a_and_cpu, differing.b_and_cpu), (3, 0, 3), "the largest stays");
    }
}
