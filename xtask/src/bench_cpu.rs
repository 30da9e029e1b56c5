//! `bench-cpu`: the comparison that textbooks on GPU programming print, one matcher from plain loops to the GPU.

use crate::error::{Error, Result};
use crate::workspace;
use std::time::Instant;
use stereo_host::{Backend, DisparityMap, Matcher, Options, Params, Scene, SceneSpec};

/// Time one pair on the reference, one thread, all threads; GPU columns come from BENCHMARKS.md.
///
/// The published figures beside ours are those of the textbook comparison at the default size: an i9-13900K and an
/// RTX 4090. Build with --release: `cargo run --release -p xtask -- bench-cpu`.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
The GPU columns are the lines `<!-- textbook basic-gpu: MS -->` and `<!-- textbook optimised-gpu: MS -->` of
BENCHMARKS.md, written by whoever measured there; without them they stay empty.

Examples:
  cargo run --release -p xtask -- bench-cpu
  cargo run --release -p xtask -- bench-cpu --width 640 --height 480 --disparities 64 --iterations 20")]
pub struct Args {
    /// Pixels in a row
    #[arg(long, default_value_t = 1240)]
    width: usize,
    /// Rows
    #[arg(long, default_value_t = 1110)]
    height: usize,
    /// Number of disparities
    #[arg(long, default_value_t = 128)]
    disparities: u32,
    /// Matches on one and on all threads, taken alternately; the reference runs once
    #[arg(long, default_value_t = 10, value_parser = clap::value_parser!(u32).range(1..))]
    iterations: u32,
}

/// What the textbook comparison has published, in milliseconds, in the order of the columns.
const PUBLISHED: [&str; 5] = ["", "4850", "620", "28", "11"];

/// Prints the table.
///
/// # Errors
/// Refused sizes; BENCHMARKS.md is there but cannot be read.
pub fn run(args: &Args) -> Result<()> {
    let Args { width, height, disparities, .. } = *args;
    if cfg!(debug_assertions) {
        eprintln!("note: this is not a release build");
    }
    let scene = SceneSpec { width, height, disparities, ..SceneSpec::default() }.render()?;
    let params = Params { disparities, ..Params::default() };
    let all = std::thread::available_parallelism().map_or(1, usize::from);

    let mut matchers = [1, all].into_iter().map(|threads| cpu(args, &params, threads)).collect::<Result<Vec<_>>>()?;
    let mut map = DisparityMap::new(width, height, &params)?;
    let mut best = [f64::INFINITY; 2];
    // The first round warms up.
    for round in 0..=args.iterations {
        for (matcher, best) in matchers.iter_mut().zip(&mut best) {
            let ms = time(matcher, &scene, &mut map)?;
            if round > 0 {
                *best = best.min(ms);
            }
        }
    }
    let device = matchers[1].report().device.clone();
    drop(matchers);
    let options = Options { backend: Backend::Reference, ..Options::default() };
    let reference = time(&mut Matcher::new(width, height, &params, &options)?, &scene, &mut map)?;

    let gpu = gpu_columns()?;
    println!("{width}x{height}, {disparities} disparities, {} paths, ms; CPU: {device}\n", params.paths.count());
    println!("| | reference | one thread | all threads ({all}) | basic GPU | optimised GPU |");
    println!("|---|---|---|---|---|---|");
    println!("| this project | {reference:.0} | {:.1} | {:.1} | {} | {} |", best[0], best[1], gpu[0], gpu[1]);
    if (width, height, disparities) == (1240, 1110, 128) {
        println!("| published (i9-13900K, RTX 4090) | {} |", PUBLISHED.join(" | "));
    }
    Ok(())
}

fn cpu(args: &Args, params: &Params, threads: usize) -> Result<Matcher> {
    let options = Options { backend: Backend::Cpu, threads: Some(threads), ..Options::default() };
    Ok(Matcher::new(args.width, args.height, params, &options)?)
}

/// One match, in milliseconds.
fn time(matcher: &mut Matcher, scene: &Scene, map: &mut DisparityMap) -> Result<f64> {
    let (left, right) = (scene.left.view()?, scene.right.view()?);
    let start = Instant::now();
    matcher.compute_into(&left, &right, map)?;
    Ok(start.elapsed().as_secs_f64() * 1e3)
}

/// The two GPU cells, empty where BENCHMARKS.md has none.
fn gpu_columns() -> Result<[String; 2]> {
    let path = workspace::root().join("BENCHMARKS.md");
    if !path.is_file() {
        return Ok(Default::default());
    }
    let text = std::fs::read_to_string(&path).map_err(Error::file(&path, "cannot read"))?;
    Ok(["basic-gpu", "optimised-gpu"].map(|column| marked(&text, column).unwrap_or_default()))
}

/// The figure in the line `<!-- textbook COLUMN: MS -->`.
fn marked(text: &str, column: &str) -> Option<String> {
    let start = format!("<!-- textbook {column}:");
    let value = text.lines().find_map(|line| line.trim().strip_prefix(&start)?.strip_suffix("-->"))?;
    Some(value.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gpu_figures_are_read_from_their_marks() {
        let text = "# Title\n<!-- textbook basic-gpu: 12.5 -->\ntext <!-- textbook optimised-gpu: 1 -->\n";
        assert_eq!(marked(text, "basic-gpu").as_deref(), Some("12.5"));
        assert_eq!(marked(text, "optimised-gpu"), None, "a mark is a line of its own");
    }
}
