//! `compat = LibSgm` against what libSGM 3.1 itself computed: 12 files, every byte.

use stereo_host::{Backend, Matcher, Options, Params, Paths, eval::SceneFiles, io::load_raw16};
use stereo_tests::data;

const SCENES: [&str; 4] = ["Art", "Laundry", "Reindeer", "Teddy"];

/// The parameter sets of the data folder's README, by file suffix.
fn parameter_sets() -> [(&'static str, Params); 3] {
    let a = Params { disparities: 64, ..Params::libsgm() };
    let b = Params { disparities: 128, subpixel: false, paths: Paths::Four, ..Params::libsgm() };
    let d = Params {
        disparities: 64,
        p1: 20,
        p2: 100,
        uniqueness: 1.0,
        paths: Paths::Four,
        min_disparity: 12,
        lr_max_diff: -1,
        ..Params::libsgm()
    };
    [("a", a), ("b", b), ("d", d)]
}

#[test]
fn compat_equals_libsgm_byte_for_byte() {
    let Some(folder) = data::folder() else { return };
    for scene in SCENES {
        let scene_files = SceneFiles::in_folder(&folder.join("middlebury").join(scene)).unwrap();
        let pair = scene_files.load().unwrap();
        let (left, right) = (pair.left.view().unwrap(), pair.right.view().unwrap());
        for (suffix, params) in parameter_sets() {
            let options = Options { backend: Backend::Reference, ..Options::default() };
            let mut matcher = Matcher::new(left.width(), left.height(), &params, &options).unwrap();
            let map = matcher.compute(&left, &right).unwrap();
            let file = folder.join("libsgm").join(format!("{scene}_{suffix}.png"));
            let expected = load_raw16(&file, map.scale(), map.invalid()).unwrap();
            assert_eq!((expected.width(), expected.height()), (map.width(), map.height()), "{scene}_{suffix}");
            let differing = map.values().iter().zip(expected.values()).filter(|(a, b)| a != b).count();
            assert_eq!(differing, 0, "{scene}_{suffix}: differing pixels");
        }
    }
}
