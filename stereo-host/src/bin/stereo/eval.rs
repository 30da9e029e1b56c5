//! `stereo eval`.

use std::path::{Path, PathBuf};

use serde::Serialize;
use stereo_host::{
    Error, Matcher, Params, Result, Scene,
    eval::{SceneFiles, Score, score},
    io::Encoding,
};

use crate::{args::EvalCommand, interrupt, output};

/// One scene in what `--json` prints; shares from 0 to 1.
#[derive(Serialize)]
struct SceneReport {
    name: String,
    width: usize,
    height: usize,
    params: Params,
    total_ms: f64,
    #[serde(flatten)]
    score: Score,
}

/// What `--json` prints.
#[derive(Serialize)]
struct EvalReport {
    backend: &'static str,
    device: String,
    scenes: Vec<SceneReport>,
    mean: Score,
}

pub fn run(args: &EvalCommand) -> Result<()> {
    let files = scene_files(args)?;
    let mut report = EvalReport { backend: "", device: String::new(), scenes: Vec::new(), mean: Score::default() };
    let bar = output::progress(files.len() as u64, "scenes");
    for files in &files {
        interrupt::check()?;
        let scene = files.load()?;
        evaluate(args, &scene, &mut report)?;
        bar.inc(1);
    }
    bar.finish_and_clear();
    let scores: Vec<_> = report.scenes.iter().map(|scene| scene.score).collect();
    report.mean = Score::mean(&scores).unwrap_or_default();
    if args.json {
        return output::print_json(&report);
    }
    let mut rows: Vec<_> = report.scenes.into_iter().map(|scene| (scene.name, scene.score)).collect();
    if rows.len() > 1 {
        rows.push(("mean".to_owned(), report.mean));
    }
    tracing::info!("matched on {} ({})", report.backend, report.device);
    output::print(&output::score_table(&rows))
}

fn evaluate(args: &EvalCommand, scene: &Scene, report: &mut EvalReport) -> Result<()> {
    let params = args.matching.to_params_for(scene);
    let (width, height) = scene.left.size();
    let mut matcher = Matcher::new(width, height, &params, &args.run.to_options(args.run.timing))?;
    let map = matcher.compute(&scene.left.view()?, &scene.right.view()?)?;
    let score = score(&map, &scene.truth_left, &scene.truth_right)?;
    let done = matcher.report();
    tracing::debug!("{}: {:.1} ms", scene.name, done.total_ms);
    if args.run.timing {
        tracing::info!("{}:\n{}", scene.name, output::stage_table(done));
    }
    (report.backend, report.device) = (done.backend, done.device.clone());
    let total_ms = done.total_ms;
    report.scenes.push(SceneReport { name: scene.name.clone(), width, height, params, total_ms, score });
    Ok(())
}

fn scene_files(args: &EvalCommand) -> Result<Vec<SceneFiles>> {
    if let Some(data) = &args.data {
        return SceneFiles::find(data);
    }
    let given = |file: &Option<PathBuf>, name: &'static str| {
        // The argument reader asks for all four; this says so again should that ever change.
        file.clone().ok_or(Error::Parameter { name, value: "nothing".to_owned(), limit: "a file".to_owned() })
    };
    let left = given(&args.left, "left")?;
    let truth_left = given(&args.truth_left, "truth-left")?;
    Ok(vec![SceneFiles {
        name: left.parent().and_then(Path::file_name).unwrap_or(left.as_os_str()).to_string_lossy().into_owned(),
        right: given(&args.right, "right")?,
        truth_right: given(&args.truth_right, "truth-right")?,
        encoding: args.truth_encoding.map_or_else(|| Encoding::for_path(&truth_left), Ok)?,
        disparities: args.matching.to_params().disparities,
        left,
        truth_left,
    }])
}
