//! MASDA with its image plane on a GPU against the plain twin, byte for byte. Without a GPU every test
//! says that it was skipped.

use stereo_host::{
    Algorithm, Backend, MasdaParams, Options, Params, SceneSpec,
    eval::SceneFiles,
    pipeline::{Pipeline, PipelineOptions},
};
use stereo_tests::{
    data,
    gpu::{compute, differing, has_cuda, on},
};

fn masda(disparities: u32) -> Params {
    Params { disparities, algorithm: Algorithm::Masda(MasdaParams::default()), ..Params::default() }
}

#[test]
fn masda_every_class_of_disparities() {
    if !has_cuda("masda_every_class_of_disparities") {
        return;
    }
    for (i, disparities) in [1, 33, 60, 64, 65, 80, 100, 128, 255, 256].into_iter().enumerate() {
        let spec = SceneSpec {
            width: 301 + 7 * i,
            height: 97 + i,
            disparities: disparities.min(40),
            seed: i as u64,
            ..SceneSpec::default()
        };
        let scene = spec.render().unwrap();
        let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
        for (min_disparity, subpixel, fill) in [(0, true, true), (-5, false, false)] {
            let params = Params { min_disparity, subpixel, fill, ..masda(disparities) };
            assert_eq!(differing(&on(Backend::Cuda), &left, &right, &params), 0, "D = {disparities}, {params:?}");
        }
    }
}

#[test]
fn masda_awkward_sizes() {
    if !has_cuda("masda_awkward_sizes") {
        return;
    }
    for (width, height) in [(1, 1), (17, 13), (8, 1), (1, 40), (848, 480), (1242, 375), (1920, 1080)] {
        let scene = SceneSpec { width, height, disparities: 60, ..SceneSpec::default() }.render().unwrap();
        let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
        assert_eq!(differing(&on(Backend::Cuda), &left, &right, &masda(60)), 0, "{width}x{height}");
    }
}

#[test]
fn masda_eight_scenes() {
    let Some(folder) = data::folder() else { return };
    if !has_cuda("masda_eight_scenes") {
        return;
    }
    for files in SceneFiles::find(&folder.join("middlebury")).unwrap() {
        let scene = files.load().unwrap();
        let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
        let params = Params { fill: true, ..masda(scene.disparities) };
        assert_eq!(differing(&on(Backend::Cuda), &left, &right, &params), 0, "{}", scene.name);
    }
}

#[test]
fn pipelined_frames_equal_single_ones() {
    if !has_cuda("pipelined_frames_equal_single_ones") {
        return;
    }
    for params in [masda(60), Params { disparities: 60, ..Params::default() }] {
        let spec = |seed| SceneSpec { width: 424, height: 240, disparities: 60, seed, ..SceneSpec::default() };
        let scenes: Vec<_> = (0..6).map(|seed| spec(seed).render().unwrap()).collect();
        let pair = |i: usize| (scenes[i % 6].left.clone(), scenes[i % 6].right.clone());
        let expected: Vec<_> = (0..6)
            .map(|i| {
                let (left, right) = pair(i);
                compute(&on(Backend::Reference), &left.view().unwrap(), &right.view().unwrap(), &params).unwrap()
            })
            .collect();
        let options = Options { backend: Backend::Cuda, ..Options::default() };
        let pipeline = Pipeline::new(424, 240, &params, &options, &PipelineOptions::default()).unwrap();
        let mut frames = 0;
        let source: Vec<_> = (0..36).map(|i| Ok(pair(i))).collect();
        pipeline
            .run(source, |frame| {
                assert_eq!(frame.map, expected[frames % 6], "frame {frames}, {params:?}");
                frames += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!(frames, 36);
    }
}
