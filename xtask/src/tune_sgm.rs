//! `tune-sgm`: where the optimum of SGM's parameters lies on the scenes with ground truth.

use crate::error::{Error, Result};
use crate::workspace;
use indicatif::{ProgressBar, ProgressStyle};
use rayon::prelude::*;
use std::path::PathBuf;
use stereo_host::eval::{SceneFiles, Score, THRESHOLDS, score};
use stereo_host::{Backend, Census, Matcher, Options, Params, Paths, Scene};

/// The position of bad-1, which ranks the candidates, in [`THRESHOLDS`].
const BAD_1: usize = 1;

/// Search P1, P2, census, adaptive P2 and the checks on the eight scenes; print a sorted table.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Every combination of the lists is matched on every scene with fill, and ranked by the mean dense bad-1 over
non-occluded pixels; the shown ones are matched again without fill for given bad-1 and density.

Examples:
  cargo xtask tune-sgm                                   the whole grid, 8 paths
  cargo xtask tune-sgm --paths 4 --p1 8,10,12 --p2 120   a few, 4 paths
  cargo xtask tune-sgm --backend cpu --top 50 > tune.md")]
pub struct Args {
    /// The folder of scenes.
    #[arg(long, value_name = "DIR")]
    data: Option<PathBuf>,
    /// Penalties for a step of one.
    #[arg(long, value_delimiter = ',', default_values_t = [5, 10, 15, 20])]
    p1: Vec<u16>,
    /// Penalties for a larger step; those too large for a census are left out with it.
    #[arg(long, value_delimiter = ',', default_values_t = [60, 90, 120, 150, 180, 224])]
    p2: Vec<u16>,
    /// Census descriptors.
    #[arg(long, value_delimiter = ',', default_values = ["7x7", "9x7", "symmetric9x7"], value_parser = census)]
    census: Vec<Census>,
    /// Adaptive P2 on and off.
    #[arg(long, value_delimiter = ',', default_values_t = [true, false], action = clap::ArgAction::Set)]
    adaptive: Vec<bool>,
    /// Uniqueness factors; 1 is off.
    #[arg(long, value_delimiter = ',', default_values_t = [0.9, 0.95, 1.0])]
    uniqueness: Vec<f32>,
    /// Left-right differences; -1 is off.
    #[arg(long, value_delimiter = ',', default_values_t = [-1, 1, 2], allow_hyphen_values = true)]
    lr_max_diff: Vec<i32>,
    /// Path directions: 4 or 8.
    #[arg(long, default_value = "8", value_parser = paths)]
    paths: Paths,
    /// Where to run.
    #[arg(long, default_value = "auto")]
    backend: Backend,
    /// Rows to show; the defaults are always among them.
    #[arg(long, default_value_t = 20)]
    top: usize,
}

/// A candidate and its mean score with fill.
struct Row {
    rank: usize,
    params: Params,
    filled: Score,
}

/// Searches and prints the table, as Markdown.
///
/// # Errors
/// No scenes, a backend that is not available, or no valid combination.
pub fn run(args: &Args) -> Result<()> {
    let data = args.data.clone().unwrap_or_else(|| workspace::root().join("../shared/data/middlebury"));
    let scenes = SceneFiles::find(&data)?.iter().map(SceneFiles::load).collect::<stereo_host::Result<Vec<Scene>>>()?;
    let backend = args.backend.resolve();
    backend.availability()?;
    let candidates = candidates(args);
    if candidates.is_empty() {
        return Err(Error::Check("no combination of these lists is valid".to_owned()));
    }

    let bar = progress((candidates.len() * scenes.len()) as u64);
    let mut rows = Vec::with_capacity(candidates.len());
    for params in candidates {
        rows.push(Row { rank: 0, filled: mean_score(backend, &params, &scenes, &bar)?, params });
    }
    bar.finish_and_clear();
    rows.sort_by(|a, b| a.filled.dense_bad[BAD_1].total_cmp(&b.filled.dense_bad[BAD_1]));
    (1..).zip(&mut rows).for_each(|(rank, row)| row.rank = rank);
    println!(
        "{} combinations on {} scenes, backend {backend}, {} paths\n",
        rows.len(),
        scenes.len(),
        args.paths.count()
    );

    let defaults = Params { paths: args.paths, fill: true, ..Params::default() };
    let shown: Vec<_> = rows.iter().filter(|row| row.rank <= args.top || row.params == defaults).collect();
    let bar = progress((shown.len() * scenes.len()) as u64);
    let mut table = heading();
    for row in shown {
        let unfilled = Params { fill: false, ..row.params.clone() };
        let given = mean_score(backend, &unfilled, &scenes, &bar)?;
        table += &line(row, &given, row.params == defaults);
    }
    bar.finish_and_clear();
    print!("{table}");
    Ok(())
}

/// Every valid combination, once.
fn candidates(args: &Args) -> Vec<Params> {
    let mut candidates = Vec::new();
    for &census in &args.census {
        for &adaptive_p2 in &args.adaptive {
            for &p1 in &args.p1 {
                for &p2 in &args.p2 {
                    for &uniqueness in &args.uniqueness {
                        for &lr_max_diff in &args.lr_max_diff {
                            let (paths, fill) = (args.paths, true);
                            let preset = Params::default();
                            candidates.push(Params {
                                census,
                                adaptive_p2,
                                p1,
                                p2,
                                uniqueness,
                                lr_max_diff,
                                paths,
                                fill,
                                ..preset
                            });
                        }
                    }
                }
            }
        }
    }
    candidates.retain(|params| params.validate().is_ok());
    candidates
}

/// The mean over the scenes, each with its own range.
fn mean_score(backend: Backend, params: &Params, scenes: &[Scene], bar: &ProgressBar) -> Result<Score> {
    let one = |scene: &Scene, threads: Option<usize>| -> stereo_host::Result<Score> {
        let params = Params { disparities: scene.disparities, min_disparity: scene.min_disparity, ..params.clone() };
        let (width, height) = scene.left.size();
        let mut matcher = Matcher::new(width, height, &params, &Options { backend, threads, ..Options::default() })?;
        let map = matcher.compute(&scene.left.view()?, &scene.right.view()?)?;
        bar.inc(1);
        score(&map, &scene.truth_left, &scene.truth_right)
    };
    // Scenes are small: a scene per thread keeps the processor busier than threads within one. A GPU takes
    // them one after the other.
    let scores: stereo_host::Result<Vec<_>> = match backend {
        Backend::Cuda => scenes.iter().map(|scene| one(scene, None)).collect(),
        _ => scenes.par_iter().map(|scene| one(scene, Some(1))).collect(),
    };
    Score::mean(&scores?).ok_or_else(|| Error::Check("no scenes".to_owned()))
}

fn heading() -> String {
    let bad: String = THRESHOLDS.iter().map(|t| format!(" bad-{t} |")).collect();
    let columns = THRESHOLDS.len();
    format!(
        "Dense scores with fill, then given bad-1 and density without; per cent and pixels, means of the scenes.\n\n\
         | rank | census | adaptive P2 | P1 | P2 | uniqueness | LR |{bad} error | given bad-1 | density |\n\
         |---|---|---|---|---|---|---|{}---|---|---|\n",
        "---|".repeat(columns)
    )
}

fn line(row: &Row, given: &Score, is_default: bool) -> String {
    let p = &row.params;
    let census = match p.census {
        Census::Window7x7 => "7x7",
        Census::Window9x7 => "9x7",
        Census::Symmetric9x7 => "symmetric 9x7",
    };
    let bad: String = row.filled.dense_bad.iter().map(|share| format!(" {:.2} |", 100.0 * share)).collect();
    format!(
        "| {}{} | {census} | {} | {} | {} | {} | {} |{bad} {:.3} | {:.2} | {:.2} |\n",
        row.rank,
        if is_default { " (default)" } else { "" },
        if p.adaptive_p2 { "on" } else { "off" },
        p.p1,
        p.p2,
        p.uniqueness,
        if p.lr_max_diff < 0 { "off".to_owned() } else { p.lr_max_diff.to_string() },
        row.filled.average_error,
        100.0 * given.given_bad[BAD_1],
        100.0 * given.density,
    )
}

fn progress(steps: u64) -> ProgressBar {
    // The template is a constant that the library knows how to read; without a terminal nothing is drawn.
    let style = ProgressStyle::with_template("{wide_bar} {pos}/{len} matches, {eta} left").expect("a valid template");
    ProgressBar::new(steps).with_style(style)
}

fn census(name: &str) -> Result<Census, String> {
    serde_json::from_value(name.into()).map_err(|e| e.to_string())
}

fn paths(name: &str) -> Result<Paths, String> {
    serde_json::from_value(name.into()).map_err(|e| e.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::Parser;

    #[derive(Parser)]
    struct Cli {
        #[command(flatten)]
        args: Args,
    }

    #[test]
    fn the_grid_holds_the_defaults_and_nothing_invalid() {
        let args = Cli::parse_from(["tune-sgm"]).args;
        let all = candidates(&args);
        assert!(all.contains(&Params { fill: true, ..Params::default() }));
        assert!(all.iter().all(|params| params.validate().is_ok()));
        // 3 census, 2 adaptive, 4 P1, 6 P2, 3 uniqueness, 3 checks; 224 fits the largest cost of 31.
        assert_eq!(all.len(), 3 * 2 * 4 * 6 * 3 * 3);
        let few = Cli::parse_from(["tune-sgm", "--p2", "225", "--census", "7x7,9x7", "--lr-max-diff", "-1,1"]).args;
        assert_eq!(candidates(&few).len(), 2 * 4 * 3 * 2, "225 is too large for 9x7");
    }
}
