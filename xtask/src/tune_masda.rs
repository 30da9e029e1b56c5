//! `tune-masda`: searches MASDA's parameters on scenes with ground truth and writes down what it found.

use crate::error::{Error, Result};
use crate::workspace::root;
use std::path::PathBuf;
use stereo_host::eval::{self, SceneFiles, Score};
use stereo_host::masda::{Candidates, graph_solver, image_plane};
use stereo_host::{Algorithm, DisparityMap, MasdaParams, Options, Params, Report, Scene};

/// Where bad-1.0 stands in [`eval::THRESHOLDS`].
const BAD_1: usize = 1;

/// The factors by which a parameter is moved, coarse to fine: the search is over when the last one finds nothing.
const FACTORS: [f64; 3] = [1.5, 1.2, 1.08];

/// Significant digits of a tried value, so that the result can be written down.
const DIGITS: i32 = 3;

/// Steps of `w_c`, which is a share: for every one of [`FACTORS`] the amount to add.
const SHARES: [f64; 3] = [0.1, 0.04, 0.015];

/// Where the search starts when nothing else is said, as `[w_c, lambda_c, lambda_a, sigma_s, sigma_r, theta]`: the
/// prototype of masda.md first, then points around it in every direction.
const STARTS: [[f64; 6]; 6] = [
    [0.8, 8.0, 16.0, 10.0, 20.0, 4000.0],
    [0.65, 37.5, 10.0, 6.0, 14.0, 10_000.0],
    [0.8, 25.0, 30.0, 7.0, 20.0, 9000.0],
    [0.9, 50.0, 8.0, 12.0, 10.0, 11_000.0],
    [0.5, 30.0, 12.0, 8.0, 12.0, 9000.0],
    [0.8, 37.5, 16.0, 9.0, 14.0, 10_600.0],
];

/// The margin and the iterations that every start has.
const START_MARGIN: i32 = 200;
const START_ITERATIONS: u32 = 1;

/// Search MASDA's parameters on scenes with ground truth.
///
/// Coordinate descent on the mean dense bad-1.0 with fill, from several starting points: every parameter is moved up and down by a factor, image plane
/// parameters with `theta` and `margin` searched again below them (the candidates are computed once for those), until the
/// smallest factor finds nothing better. The search is deterministic: the same data give the same parameters.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  cargo xtask tune-masda                        search from the built-in starting points
  cargo xtask tune-masda --report-only          score the defaults, search nothing
  cargo xtask tune-masda --start params.json    search from a file of parameters (\"w_c\", \"lambda_c\", …)
  cargo xtask tune-masda --markdown > found.md  progress on stderr, the tables on stdout")]
pub struct Args {
    /// Folder of scenes: each a folder with both images and both ground truths.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Parameters to start from, JSON; those left out have the library's defaults.
    #[arg(long, value_name = "FILE")]
    start: Option<PathBuf>,
    /// Only score the starting parameters.
    #[arg(long)]
    report_only: bool,
    /// Whole disparities instead of sub-pixel ones.
    #[arg(long)]
    no_subpixel: bool,
    /// Message passing iterations that the search does not exceed: each costs time in every frame.
    #[arg(long, value_name = "N", default_value_t = 2)]
    max_iterations: u32,
    /// Print the tables as Markdown.
    #[arg(long)]
    markdown: bool,
}

/// Runs the search.
pub fn run(args: &Args) -> Result<()> {
    let data = args.data.clone().unwrap_or_else(|| root().join("../shared/data/middlebury"));
    let scenes = SceneFiles::find(&data)?.iter().map(SceneFiles::load).collect::<Result<Vec<_>, _>>()?;
    let starts = match &args.start {
        None if args.report_only => vec![MasdaParams::default()],
        None => STARTS.map(from_start).to_vec(),
        Some(path) => {
            let text = std::fs::read_to_string(path).map_err(Error::file(path, "cannot read"))?;
            let params = serde_json::from_str(&text)
                .map_err(|error| Error::Format { what: path.display().to_string(), reason: error.to_string() })?;
            vec![params]
        }
    };
    let mut search =
        Search { scenes, subpixel: !args.no_subpixel, max_iterations: args.max_iterations, planes: 0, solves: 0 };
    let mut best: Option<(MasdaParams, f64)> = None;
    for start in starts {
        let (found, loss) = if args.report_only { (start, 0.0) } else { search.descend(start)? };
        if best.is_none_or(|(_, smallest)| loss < smallest) {
            best = Some((found, loss));
        }
    }
    best.map_or(Ok(()), |(found, _)| search.print(&found, args.markdown))
}

fn from_start([w_c, lambda_c, lambda_a, sigma_s, sigma_r, theta]: [f64; 6]) -> MasdaParams {
    let (theta, margin, iterations) = (theta as i32, START_MARGIN, START_ITERATIONS);
    MasdaParams { w_c, lambda_c, lambda_a, sigma_s, sigma_r, theta, margin, iterations }
}

/// The scenes and what was spent on them.
struct Search {
    scenes: Vec<Scene>,
    subpixel: bool,
    max_iterations: u32,
    planes: usize,
    solves: usize,
}

/// One parameter that the search moves.
#[derive(Clone, Copy)]
enum Knob {
    Share,
    Factor(fn(&mut MasdaParams) -> &mut f64),
}

/// The image plane's parameters.
const KNOBS: [Knob; 5] = [
    Knob::Factor(|p| &mut p.sigma_s),
    Knob::Factor(|p| &mut p.sigma_r),
    Knob::Factor(|p| &mut p.lambda_a),
    Knob::Factor(|p| &mut p.lambda_c),
    Knob::Share,
];

impl Knob {
    /// The parameters with this one moved up or down by step number `step`; `None` where that leaves its range.
    fn moved(self, params: &MasdaParams, step: usize, up: bool) -> Option<MasdaParams> {
        let mut moved = *params;
        match self {
            Self::Share => {
                let share = params.w_c + if up { SHARES[step] } else { -SHARES[step] };
                moved.w_c = (share * 1e3).round() / 1e3;
                (moved.w_c > 0.0 && moved.w_c < 1.0).then_some(moved)
            }
            Self::Factor(of) => {
                let value = of(&mut moved);
                *value = rounded(*value * if up { FACTORS[step] } else { 1.0 / FACTORS[step] });
                Some(moved)
            }
        }
    }
}

/// A value with [`DIGITS`] significant digits.
fn rounded(value: f64) -> f64 {
    let unit = 10f64.powi(value.abs().log10().floor() as i32 + 1 - DIGITS);
    // Dividing by the reciprocal gives the nearest number to the decimal one for units below 1.
    (value / unit).round() / unit.recip()
}

impl Search {
    /// The best parameters found from `start`, with their loss.
    fn descend(&mut self, start: MasdaParams) -> Result<(MasdaParams, f64)> {
        eprintln!("from {}", text(&start));
        let (mut best, mut loss) = self.best_graph(start)?;
        self.say(&best, loss);
        for step in 0..FACTORS.len() {
            let mut improved = true;
            while improved {
                improved = false;
                for knob in KNOBS {
                    for up in [true, false] {
                        // On in one direction for as long as it helps.
                        while let Some(moved) = knob.moved(&best, step, up) {
                            let (candidate, candidate_loss) = self.best_graph(moved)?;
                            if candidate_loss >= loss {
                                break;
                            }
                            (best, loss, improved) = (candidate, candidate_loss, true);
                            self.say(&best, loss);
                        }
                    }
                }
            }
        }
        Ok((best, loss))
    }

    /// The best `theta`, `margin` and `iterations` near the given ones, with the loss.
    fn best_graph(&mut self, mut params: MasdaParams) -> Result<(MasdaParams, f64)> {
        let candidates = self.candidates(&params)?;
        let mut loss = self.loss(&candidates, &params)?;
        for step in [800, 300, 100] {
            let mut improved = true;
            while improved {
                improved = false;
                let mut tried = Vec::new();
                for change in [-step, step] {
                    tried.push(MasdaParams { theta: (params.theta + change).clamp(0, 16_384), ..params });
                    tried.push(MasdaParams { margin: params.margin + change, ..params });
                }
                tried.push(MasdaParams { iterations: (params.iterations + 1).min(self.max_iterations), ..params });
                tried.push(MasdaParams { iterations: params.iterations.saturating_sub(1), ..params });
                for tried in tried {
                    let tried_loss = self.loss(&candidates, &tried)?;
                    if tried_loss < loss {
                        (params, loss, improved) = (tried, tried_loss, true);
                    }
                }
            }
        }
        Ok((params, loss))
    }

    fn params(&self, scene: &Scene, masda: &MasdaParams, fill: bool) -> Params {
        Params {
            algorithm: Algorithm::Masda(*masda),
            disparities: scene.disparities,
            min_disparity: scene.min_disparity,
            subpixel: self.subpixel,
            fill,
            ..Params::default()
        }
    }

    /// Every scene's candidates.
    fn candidates(&mut self, masda: &MasdaParams) -> Result<Vec<Candidates>> {
        self.planes += 1;
        let mut all = Vec::new();
        for scene in &self.scenes {
            let (left, right) = (scene.left.view()?, scene.right.view()?);
            let mut plane = image_plane(&self.params(scene, masda, true), &Options::default())?;
            let mut candidates = Candidates::new(left.width(), left.height())?;
            plane.compute(&left, &right, &mut candidates, &mut Report::default())?;
            all.push(candidates);
        }
        Ok(all)
    }

    /// The mean dense bad-1.0 of the filled maps.
    fn loss(&mut self, candidates: &[Candidates], masda: &MasdaParams) -> Result<f64> {
        let scores = self.scores(candidates, masda, true)?;
        Ok(Score::mean(&scores).map_or(1.0, |mean| mean.dense_bad[BAD_1]))
    }

    fn scores(&mut self, candidates: &[Candidates], masda: &MasdaParams, fill: bool) -> Result<Vec<Score>> {
        self.solves += 1;
        let mut scores = Vec::new();
        for (scene, candidates) in self.scenes.iter().zip(candidates) {
            let params = self.params(scene, masda, fill);
            let mut map = DisparityMap::new(candidates.width(), candidates.height(), &params)?;
            let mut solver = graph_solver(&params, &Options::default())?;
            solver.solve(candidates, &scene.left.view()?, &mut map, &mut Report::default())?;
            scores.push(eval::score(&map, &scene.truth_left, &scene.truth_right)?);
        }
        Ok(scores)
    }

    fn say(&self, p: &MasdaParams, loss: f64) {
        eprintln!("{:.3} %  {}  ({} image planes, {} solves)", loss * 100.0, text(p), self.planes, self.solves);
    }

    /// Prints the scores of the parameters: filled, and with and without the margin gate unfilled.
    fn print(&mut self, found: &MasdaParams, markdown: bool) -> Result<()> {
        let spent = (self.planes, self.solves);
        let candidates = self.candidates(found)?;
        let filled = self.scores(&candidates, found, true)?;
        let gated = self.scores(&candidates, found, false)?;
        let ungated = self.scores(&candidates, &MasdaParams { margin: i32::MIN, ..*found }, false)?;
        let (bar, end) = if markdown { ("| ", " |") } else { ("", "") };
        let row = |cells: [&str; 7]| {
            let [name, numbers @ ..] = cells;
            let numbers: String = numbers.iter().map(|cell| format!(" {bar}{cell:>9}")).collect();
            println!("{bar}{name:<9}{numbers}{end}");
        };
        println!("{}{}", text(found), if self.subpixel { ", sub-pixel" } else { ", whole disparities" });
        if spent.0 > 0 {
            println!("found with {} image planes and {} solves of all scenes", spent.0, spent.1);
        }
        println!();
        row(["bad-1.0 %", "filled", "gated", "given", "density", "ungated", "density"]);
        if markdown {
            println!("|---|---|---|---|---|---|---|");
        }
        let line = |name: &str, [filled, gated, ungated]: [&Score; 3]| {
            let percent = |share: f64| format!("{:.2}", share * 100.0);
            row([
                name,
                &percent(filled.dense_bad[BAD_1]),
                &percent(gated.dense_bad[BAD_1]),
                &percent(gated.given_bad[BAD_1]),
                &percent(gated.density),
                &percent(ungated.given_bad[BAD_1]),
                &percent(ungated.density),
            ]);
        };
        for (i, scene) in self.scenes.iter().enumerate() {
            line(&scene.name, [&filled[i], &gated[i], &ungated[i]]);
        }
        if let (Some(filled), Some(gated), Some(ungated)) =
            (Score::mean(&filled), Score::mean(&gated), Score::mean(&ungated))
        {
            line("mean", [&filled, &gated, &ungated]);
        }
        println!(
            "\nfilled: dense, with fill. gated: dense, without fill. given and density: of the gated map, then of"
        );
        println!("the map without the margin gate (every left pixel that found a free partner).");
        Ok(())
    }
}

fn text(p: &MasdaParams) -> String {
    format!(
        "w_c {}, lambda_c {}, lambda_a {}, sigma_s {}, sigma_r {}, theta {}, margin {}, n {}",
        p.w_c, p.lambda_c, p.lambda_a, p.sigma_s, p.sigma_r, p.theta, p.margin, p.iterations
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_are_rounded_to_three_digits() {
        for (value, expected) in [(12.345, 12.3), (0.123_45, 0.123), (99.96, 100.0), (1234.0, 1230.0), (8.0, 8.0)] {
            assert_eq!(rounded(value), expected);
        }
    }

    #[test]
    fn knobs_stay_in_range() {
        let params = MasdaParams { w_c: 0.95, ..MasdaParams::default() };
        assert!(Knob::Share.moved(&params, 0, true).is_none());
        assert_eq!(Knob::Share.moved(&params, 0, false).unwrap().w_c, 0.85);
    }
}
