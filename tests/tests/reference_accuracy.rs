//! What the defaults reach on the eight scenes (sgm.md, section 7).

use stereo_host::{
    Backend, Matcher, Options, Params, Paths,
    eval::{self, Score, THRESHOLDS},
};
use stereo_tests::data;

/// The mean dense bad-1.0 of the defaults with fill, in per cent, over all eight scenes.
fn mean_dense_bad_1(paths: Paths) -> Option<f64> {
    let scenes = eval::SceneFiles::find(&data::folder()?.join("middlebury")).unwrap();
    assert_eq!(scenes.len(), 8);
    let bad_1 = THRESHOLDS.iter().position(|&threshold| threshold == 1.0).unwrap();
    let scores = scenes.iter().map(|files| {
        let scene = files.load().unwrap();
        let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
        let params = Params { disparities: files.disparities, paths, fill: true, ..Params::default() };
        let options = Options { backend: Backend::Reference, ..Options::default() };
        let mut matcher = Matcher::new(left.width(), left.height(), &params, &options).unwrap();
        let map = matcher.compute(&left, &right).unwrap();
        let score = eval::score(&map, &scene.truth_left, &scene.truth_right).unwrap();
        println!("{} with {} paths: {:.2} %", files.name, paths.count(), 100.0 * score.dense_bad[bad_1]);
        score
    });
    let mean = Score::mean(&scores.collect::<Vec<_>>()).unwrap();
    println!("mean with {} paths: {:.3} %", paths.count(), 100.0 * mean.dense_bad[bad_1]);
    Some(100.0 * mean.dense_bad[bad_1])
}

#[test]
fn eight_paths_reach_the_documented_score() {
    let Some(mean) = mean_dense_bad_1(Paths::Eight) else { return };
    assert!(mean <= 7.65, "dense bad-1.0 {mean:.3} %");
}

#[test]
fn four_paths_reach_the_documented_score() {
    let Some(mean) = mean_dense_bad_1(Paths::Four) else { return };
    assert!(mean <= 7.35, "dense bad-1.0 {mean:.3} %");
}
