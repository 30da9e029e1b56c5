//! Every frame of a pipeline is what the matcher alone gives for that pair (masda.md, pipeline).

use std::sync::{Arc, mpsc};

use stereo_host::{
    Backend, DisparityMap, Matcher, Options, Params, SceneSpec, StageReport,
    io::Gray,
    pipeline::{Pipeline, PipelineOptions, StereoPair},
};
use stereo_tests::gpu::on;

/// As many frames as the published system was verified with, and some.
const FRAMES: usize = 36;

/// A camera that moves over a wider rendered scene: frame `t` is a window at column `t * speed`.
fn moving(width: usize, height: usize, disparities: u32) -> Vec<(Gray, Gray)> {
    let speed = 3;
    let spec = SceneSpec { width: width + FRAMES * speed, height, disparities, seed: 7, ..SceneSpec::default() };
    let scene = spec.render().unwrap();
    let window = |image: &Gray, t: usize| match image {
        Gray::U8(image) => {
            Gray::U8(image::imageops::crop_imm(image, (t * speed) as u32, 0, width as u32, height as u32).to_image())
        }
        Gray::U16(_) => unreachable!("rendered scenes have 8 bits"),
    };
    (0..FRAMES).map(|t| (window(&scene.left, t), window(&scene.right, t))).collect()
}

/// What the matcher gives for every pair.
fn alone<P: StereoPair>(pairs: &[P], params: &Params, options: &Options) -> Vec<DisparityMap> {
    let (left, _) = pairs[0].views().unwrap();
    let mut matcher = Matcher::new(left.width(), left.height(), params, options).unwrap();
    let compute = |pair: &P| {
        let (left, right) = pair.views().unwrap();
        matcher.compute(&left, &right).unwrap()
    };
    pairs.iter().map(compute).collect()
}

fn check<P: StereoPair + Clone + Sync>(pairs: &[P], params: &Params, options: &Options) {
    let expected = alone(pairs, params, options);
    let (left, _) = pairs[0].views().unwrap();
    for depth in [1, 2, 5] {
        let pipeline_options = PipelineOptions { depth, pin_solver: depth == 2, ..PipelineOptions::default() };
        let pipeline = Pipeline::new(left.width(), left.height(), params, options, &pipeline_options).unwrap();
        let source: Vec<_> = pairs.to_vec();
        let mut stream = pipeline.start(source.into_iter().map(Ok)).unwrap();
        let mut count = 0;
        for (i, frame) in stream.by_ref().enumerate() {
            let frame = frame.unwrap();
            assert_eq!(frame.index, i as u64);
            assert_eq!(frame.map, expected[i], "frame {i}, depth {depth}");
            assert!(frame.latency.as_secs_f64() * 1e3 >= frame.report.total_ms);
            count += 1;
        }
        assert_eq!(count, pairs.len());
        let summary = stream.summary();
        assert_eq!((summary.frames, summary.dropped), (pairs.len() as u64, 0));
        assert!(summary.frames_per_second > 0.0 && summary.latency.max_ms >= summary.latency.p50_ms);
    }
}

#[test]
fn moving_sequence_masda() {
    let pairs: Vec<_> = moving(150, 60, 40).into_iter().map(Arc::new).collect();
    for fill in [false, true] {
        let params = Params { disparities: 40, fill, ..Params::masda() };
        check(&pairs, &params, &on(Backend::Auto));
    }
    let reference = Options { backend: Backend::Reference, ..Options::default() };
    check(&pairs, &Params { disparities: 40, ..Params::masda() }, &reference);
}

#[test]
fn moving_sequence_sgm() {
    let pairs: Vec<_> = moving(90, 40, 24).into_iter().map(Arc::new).collect();
    check(&pairs, &Params { disparities: 24, ..Params::default() }, &on(Backend::Auto));
}

#[test]
fn scenes_of_changing_content_masda() {
    // Neighbouring frames have nothing in common, so that a stale buffer shows.
    let pairs: Vec<_> = (0..FRAMES as u64)
        .map(|seed| {
            let spec = SceneSpec { width: 120, height: 50, disparities: 33, seed, ..SceneSpec::default() };
            Arc::new(spec.render().unwrap())
        })
        .collect();
    check(&pairs, &Params { disparities: 33, ..Params::masda() }, &on(Backend::Auto));
}

#[test]
fn all_eight_scenes_repeated() {
    let Some(folder) = stereo_tests::data::folder() else { return };
    let scenes = stereo_host::eval::SceneFiles::find(&folder.join("middlebury")).unwrap();
    assert_eq!(scenes.len(), 8);
    for files in scenes {
        let scene = Arc::new(files.load().unwrap());
        let (width, height) = scene.left.size();
        let params = Params { disparities: scene.disparities, fill: true, ..Params::masda() };
        let expected = alone(std::slice::from_ref(&scene), &params, &on(Backend::Auto)).remove(0);
        let pipeline = Pipeline::new(width, height, &params, &on(Backend::Auto), &PipelineOptions::default()).unwrap();
        let source = std::iter::repeat_n(scene, FRAMES).map(Ok);
        let mut count = 0;
        let summary = pipeline
            .run(source, |frame| {
                assert_eq!(frame.map, expected, "{} frame {}", files.name, frame.index);
                count += 1;
                Ok(())
            })
            .unwrap();
        assert_eq!((count, summary.frames), (FRAMES, FRAMES as u64));
    }
}

#[test]
fn a_channel_is_a_source_and_roles_have_names() {
    let spec = SceneSpec { width: 64, height: 48, disparities: 16, ..SceneSpec::default() };
    let scene = Arc::new(spec.render().unwrap());
    let params = Params { disparities: 16, ..Params::masda() };
    let options = Options { timing: true, ..on(Backend::Auto) };
    let pipeline = Pipeline::new(64, 48, &params, &options, &PipelineOptions::default()).unwrap();
    let (sender, receiver) = mpsc::sync_channel(1);
    let feeder = std::thread::spawn(move || (0..5).for_each(|_| sender.send(scene.clone()).unwrap()));
    let source = receiver.into_iter().map(|pair| {
        assert_eq!(std::thread::current().name(), Some("stereo-load"));
        Ok(pair)
    });
    let mut seen = 0;
    pipeline
        .run(source, |frame| {
            assert_eq!(std::thread::current().name(), Some("stereo-emit"));
            let stages: Vec<&str> = frame.report.stages.iter().map(|StageReport { stage, .. }| *stage).collect();
            assert_eq!((stages.first(), stages.last()), (Some(&"census"), Some(&"solve")));
            assert!(!frame.report.device.is_empty() && frame.report.backend == "cpu");
            seen += 1;
            Ok(())
        })
        .unwrap();
    assert_eq!(seen, 5);
    feeder.join().unwrap();
}
