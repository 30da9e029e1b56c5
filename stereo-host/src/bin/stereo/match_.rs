//! `stereo match`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use stereo_host::{
    Error, Matcher, Params, Report, Result, color,
    io::{self, Encoding},
};

use crate::{
    args::MatchCommand,
    interrupt,
    output::{self, Lossy},
};

/// What `--json` prints.
#[derive(Serialize)]
struct MatchReport<'a> {
    left: Lossy<'a>,
    right: Lossy<'a>,
    output: Lossy<'a>,
    encoding: String,
    color: Option<Lossy<'a>>,
    width: usize,
    height: usize,
    bits: u32,
    /// The share of pixels with a disparity.
    density: f64,
    params: &'a Params,
    #[serde(flatten)]
    report: &'a Report,
}

pub fn run(args: &MatchCommand) -> Result<()> {
    let params = args.matching.to_params();
    params.validate()?;
    let encoding = args.encoding.map_or_else(|| Encoding::for_path(&args.output), Ok)?;
    encoding.check_path(&args.output)?;
    let color = args.color.as_ref().map(|file| file.clone().unwrap_or_else(|| beside(&args.output)));
    check_outputs(args, color.as_deref())?;
    color.as_deref().map_or(Ok(()), io::check_picture)?;

    let (left, right) = (io::load_gray(&args.left)?, io::load_gray(&args.right)?);
    let (left, right) = (left.view()?, right.view()?);
    let (width, height) = (left.width(), left.height());
    let mut matcher = Matcher::new(width, height, &params, &args.run.to_options(args.run.timing || args.json))?;
    tracing::debug!("{params:?}");
    let spinner = output::spinner(format!("matching {width}x{height} on {}", matcher.backend()));
    let map = matcher.compute(&left, &right)?;
    spinner.finish_and_clear();

    interrupt::whole(|| map.save_as(&args.output, encoding))?;
    if let Some(color) = &color {
        let picture = color::preview(&map, output::range(&params));
        interrupt::whole(|| io::save_image(color, &picture.into()))?;
    }
    let report = matcher.report();
    tracing::info!(
        "{}: {width}x{height}, {:.1} % of the pixels have a disparity, {:.1} ms on {} ({})",
        args.output.display(),
        100.0 * map.density(),
        report.total_ms,
        report.backend,
        report.device
    );
    if args.json {
        return output::print_json(&MatchReport {
            left: Lossy(&args.left),
            right: Lossy(&args.right),
            output: Lossy(&args.output),
            encoding: encoding.to_string(),
            color: color.as_deref().map(Lossy),
            width,
            height,
            bits: left.pixels().bits(),
            density: map.density(),
            params: &params,
            report,
        });
    }
    if args.run.timing {
        output::print(&(output::stage_table(report) + &output::code_line(report.device_code.as_ref())))?;
    }
    Ok(())
}

/// The preview's name where none is given.
fn beside(output: &Path) -> PathBuf {
    let stem = output.file_stem().unwrap_or_default().to_string_lossy();
    output.with_file_name(format!("{stem}_color.png"))
}

/// Refuses, before any work, to write over an input or twice to one file.
fn check_outputs(args: &MatchCommand, color: Option<&Path>) -> Result<()> {
    for output in [Some(args.output.as_path()), color].into_iter().flatten() {
        if [&args.left, &args.right].into_iter().any(|input| same_file(input, output)) {
            return Err(refused(output, "it is an input; choose another name"));
        }
        io::check_target(output)?;
    }
    match color {
        Some(color) if same_place(color, &args.output) => {
            Err(refused(color, "the preview needs another name than the map"))
        }
        _ => Ok(()),
    }
}

fn refused(output: &Path, limit: &str) -> Error {
    Error::Parameter { name: "output", value: output.display().to_string(), limit: limit.to_owned() }
}

/// Whether two names, of files that may not exist yet, mean the same file.
fn same_place(a: &Path, b: &Path) -> bool {
    let folder = |path: &Path| path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned();
    same_file(a, b) || a.file_name() == b.file_name() && same_file(&folder(a), &folder(b))
}

fn same_file(a: &Path, b: &Path) -> bool {
    matches!((a.canonicalize(), b.canonicalize()), (Ok(a), Ok(b)) if a == b)
}
