//! `stereo tune`.

use stereo_host::{
    Backend, Matcher, Options, Params, PathKernel, Plan, Result, Trial, Tuning, TuningReport, clear_cache, io,
};

use crate::{args::TuneCommand, interrupt, output};

pub fn run(args: &TuneCommand) -> Result<()> {
    if args.clear {
        let removed = clear_cache()?;
        tracing::info!("{removed} stored {} removed", if removed == 1 { "plan" } else { "plans" });
        return Ok(());
    }
    let preset = Params::default();
    let params = Params {
        disparities: args.disparities.unwrap_or(preset.disparities),
        paths: args.paths.unwrap_or(preset.paths),
        ..preset
    };
    params.validate()?;
    args.pin.as_deref().map_or(Ok(()), io::check_target)?;
    let options = Options {
        backend: Backend::Cuda,
        device: args.device,
        tuning: Tuning::Fixed(Plan::PLAIN),
        ..Options::default()
    };
    let mut matcher = Matcher::new(args.size.width, args.size.height, &params, &options)?;
    let spinner = output::spinner(format!("measuring plans for {}", args.size));
    let report = matcher.tune()?;
    spinner.finish_and_clear();
    interrupt::check()?;
    if let Some(file) = &args.pin {
        interrupt::whole(|| io::save_text(file, &format!("{}\n", report.plan)))?;
    }
    if args.json { output::print_json(&report) } else { output::print(&text(&report)) }
}

/// Every candidate, the choice, and last its JSON on a line of its own.
fn text(report: &TuningReport) -> String {
    let TuningReport { key, plan, chosen, plain, .. } = report;
    let mut text = format!(
        "{}x{}, {} disparities, {} paths on {}\n{:>9} {:>9} {:>9} {:>5}  {:10}  {:10}  {:10}  {:>7}  priority\n",
        key.width,
        key.height,
        key.disparities,
        key.paths.count(),
        key.device,
        "median ms",
        "min",
        "std",
        "runs",
        "horizontal",
        "vertical",
        "oblique",
        "streams"
    );
    for trial in &report.trials {
        text += &row(trial, trial.plan == *plan);
    }
    let gain = 100.0 * (chosen.median_ms / plain.median_ms - 1.0);
    text += &format!(
        "* chosen in {:.2} s: {:.3} ms, plain {:.3} ms ({gain:+.1} %)\n",
        report.seconds, chosen.median_ms, plain.median_ms
    );
    if !report.complete {
        text += "the time was up before every candidate was measured\n";
    }
    if let Some(file) = &report.file {
        text += &format!("stored in {}\n", file.display());
    }
    text + &format!("{plan}\n")
}

fn row(trial: &Trial, chosen: bool) -> String {
    let Trial { plan, runs, times } = trial;
    format!(
        "{:9.3} {:9.3} {:9.3} {runs:5}  {:10}  {:10}  {:10}  {:7}  {}{}\n",
        times.median_ms,
        times.min_ms,
        times.std_ms,
        kernel(plan.horizontal),
        kernel(plan.vertical),
        kernel(plan.oblique),
        plan.streams,
        if plan.horizontal_first { "horizontal" } else { "none" },
        if chosen { "  *" } else { "" }
    )
}

/// `plain`, or `bulk 16x2` for chunks of 16 steps in 2 stages.
fn kernel(kernel: PathKernel) -> String {
    match kernel {
        PathKernel::Plain => "plain".to_owned(),
        PathKernel::Bulk { chunk, stages } => format!("bulk {chunk}x{stages}"),
        PathKernel::Tiles { chunk, stages } => format!("tiles {chunk}x{stages}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use stereo_host::{Paths, Times, TuningKey};

    #[test]
    fn the_last_line_is_the_plan() {
        let plan = Plan { oblique: PathKernel::Bulk { chunk: 16, stages: 2 }, ..Plan::PLAIN };
        let (chosen, plain) = (Times::of(vec![1.5]), Times::of(vec![2.0]));
        let trial = |plan, times| Trial { plan, runs: 1, times };
        let report = TuningReport {
            key: TuningKey {
                device: "a GPU".to_owned(),
                driver: String::new(),
                program: String::new(),
                width: 64,
                height: 48,
                disparities: 128,
                paths: Paths::Eight,
            },
            plan,
            chosen,
            plain,
            complete: false,
            seconds: 1.0,
            trials: vec![trial(Plan::PLAIN, plain), trial(plan, chosen)],
            file: None,
        };
        let text = text(&report);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(lines.last().unwrap().parse::<Plan>().unwrap(), plan);
        assert_eq!(lines.iter().filter(|line| line.ends_with("  *")).count(), 1);
        assert!(text.contains("bulk 16x2") && text.contains("-25.0 %") && text.contains("time was up"), "{text}");
    }
}
