//! `stereo demo`.

use std::path::{Path, PathBuf};

use image::DynamicImage;
use serde::Serialize;
use stereo_host::{
    DisparityMap, Error, Matcher, Params, Report, Result, Scene, SceneSpec, color,
    eval::{self, Score},
    io::{self, Gray},
};

use crate::{
    args::DemoCommand,
    interrupt,
    output::{self, Lossy},
};

/// Enough for the parallax to show at 640 pixels, little enough for the scalar reference to answer in seconds.
const DISPARITIES: u32 = 64;

/// What `--json` prints.
#[derive(Serialize)]
struct DemoReport<'a> {
    files: Vec<Lossy<'a>>,
    /// None where no pixel of the left view is visible in the right one.
    score: Option<Score>,
    params: &'a Params,
    #[serde(flatten)]
    report: &'a Report,
}

pub fn run(args: &DemoCommand) -> Result<()> {
    let spec = SceneSpec {
        width: args.size.width,
        height: args.size.height,
        min_disparity: args.matching.min_disparity.unwrap_or(0),
        disparities: args.matching.disparities.unwrap_or(DISPARITIES),
        seed: args.seed,
        ..SceneSpec::default()
    };
    let scene = spec.render()?;
    let params = args.matching.to_params_for(&scene);
    let mut matcher =
        Matcher::new(spec.width, spec.height, &params, &args.run.to_options(args.run.timing || args.json))?;
    std::fs::create_dir_all(&args.out).map_err(|source| Error::File {
        path: args.out.clone(),
        action: "cannot make the folder",
        source,
    })?;
    let spinner = output::spinner(format!("matching {} on {}", scene.name, matcher.backend()));
    let map = matcher.compute(&scene.left.view()?, &scene.right.view()?)?;
    spinner.finish_and_clear();
    let files = save(&args.out, &scene, &params, &map)?;
    // Images of a few pixels may be occluded whole: then there is nothing to score, and nothing wrong.
    let (score, unscored) = match eval::score(&map, &scene.truth_left, &scene.truth_right) {
        Ok(score) => (Some(score), None),
        Err(error @ Error::Image { .. }) => (None, Some(error)),
        Err(error) => return Err(error),
    };
    let report = matcher.report();
    if args.json {
        return output::print_json(&DemoReport {
            files: files.iter().map(|file| Lossy(file)).collect(),
            score,
            params: &params,
            report,
        });
    }
    let mut text = String::new();
    for file in &files {
        text += &format!("{}\n", file.display());
    }
    text += &format!("{}: {:.1} ms on {} ({})\n", scene.name, report.total_ms, report.backend, report.device);
    text += &output::code_line(report.device_code.as_ref());
    if args.run.timing {
        text += &output::stage_table(report);
    }
    text += &score.map_or_else(String::new, |score| output::score_table(&[(scene.name, score)]));
    text += &unscored.map_or_else(String::new, |reason| format!("no score: {reason}\n"));
    output::print(&text)
}

/// Writes everything that there is to see; returns the files.
fn save(folder: &Path, scene: &Scene, params: &Params, map: &DisparityMap) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    let mut write = |name: &str, save: &dyn Fn(&Path) -> Result<()>| {
        let path = folder.join(name);
        interrupt::whole(|| save(&path))?;
        files.push(path);
        Ok::<_, Error>(())
    };
    write("left.png", &|path| io::save_image(path, &picture(&scene.left)))?;
    write("right.png", &|path| io::save_image(path, &picture(&scene.right)))?;
    write("truth_left.pfm", &|path| io::save_pfm(path, &scene.truth_left))?;
    write("truth_right.pfm", &|path| io::save_pfm(path, &scene.truth_right))?;
    write("disparity.pfm", &|path| map.save(path))?;
    write("color.png", &|path| io::save_image(path, &color::preview(map, output::range(params)).into()))?;
    let errors = color::errors(map, &scene.truth_left, &scene.truth_right);
    write("error.png", &|path| io::save_image(path, &errors.clone().into()))?;
    Ok(files)
}

fn picture(image: &Gray) -> DynamicImage {
    match image.clone() {
        Gray::U8(image) => image.into(),
        Gray::U16(image) => image.into(),
    }
}
