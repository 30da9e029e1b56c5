//! What the defaults reach on the eight scenes (sgm.md, section 7).

use stereo_host::{Backend, GrayView, Matcher, Options, Params, Paths};
use stereo_tests::{data, score};

/// The mean dense bad-1.0 of the defaults with fill, in per cent, over all eight scenes.
fn mean_dense_bad_1(paths: Paths) -> Option<f64> {
    let folder = data::folder()?.join("middlebury");
    let scores = score::SCENES.iter().map(|scene| {
        let (left, right) = data::gray_pair(scene.name);
        let (left, right) = (GrayView::try_from(&left).unwrap(), GrayView::try_from(&right).unwrap());
        let params = Params { disparities: scene.disparities, paths, fill: true, ..Params::default() };
        let options = Options { backend: Backend::Reference, ..Options::default() };
        let mut matcher = Matcher::new(left.width(), left.height(), &params, &options).unwrap();
        let map = matcher.compute(&left, &right).unwrap();
        let [left, right] =
            scene.truth.map(|name| image::open(folder.join(scene.name).join(name)).unwrap().into_luma8());
        let percent = 100.0 * score::dense_bad(&map, &left, &right, scene.scale, 1.0);
        println!("{} {paths:?} paths: {percent:.2} %", scene.name);
        percent
    });
    Some(scores.sum::<f64>() / score::SCENES.len() as f64)
}

#[test]
fn eight_paths_reach_the_documented_score() {
    let Some(mean) = mean_dense_bad_1(Paths::Eight) else { return };
    println!("mean of 8 paths: {mean:.3} %");
    assert!(mean <= 7.65, "dense bad-1.0 {mean:.3} %");
}

#[test]
fn four_paths_reach_the_documented_score() {
    let Some(mean) = mean_dense_bad_1(Paths::Four) else { return };
    println!("mean of 4 paths: {mean:.3} %");
    assert!(mean <= 7.35, "dense bad-1.0 {mean:.3} %");
}
