//! The CPU backend against the reference, byte for byte: every vector level of this machine, several
//! thread counts.

use proptest::prelude::*;
use stereo_host::{Backend, CpuLevel, GrayView, Matcher, Options, Params, Paths, eval::SceneFiles};
use stereo_tests::{cases, data};

/// One and two threads meet in the middle; more take the independent bands.
const THREADS: [usize; 4] = [1, 2, 3, 7];

fn levels() -> impl Iterator<Item = CpuLevel> {
    CpuLevel::ALL.into_iter().filter(|level| level.is_available())
}

fn reference(left: &GrayView<'_>, right: &GrayView<'_>, params: &Params) -> Vec<i16> {
    let options = Options { backend: Backend::Reference, ..Options::default() };
    let mut matcher = Matcher::new(left.width(), left.height(), params, &options).unwrap();
    matcher.compute(left, right).unwrap().values().to_vec()
}

fn matcher(left: &GrayView<'_>, params: &Params, level: CpuLevel, threads: usize) -> Matcher {
    let options = Options { backend: Backend::Cpu, threads: Some(threads), ..Options::default() };
    Matcher::with_cpu_level(left.width(), left.height(), params, &options, level).unwrap()
}

/// One level and thread count, three frames on one matcher: nothing of a frame may leak into the next.
fn check(
    left: &GrayView<'_>,
    right: &GrayView<'_>,
    params: &Params,
    expected: &[i16],
    level: CpuLevel,
    threads: usize,
) {
    let mut matcher = matcher(left, params, level, threads);
    let first = matcher.compute(left, right).unwrap();
    let width = left.width();
    if let Some(i) = (0..expected.len()).find(|&i| first.values()[i] != expected[i]) {
        panic!(
            "{level}, {threads} threads: ({}, {}) is {}, the reference says {}; {width}x{}, {params:?}",
            i % width,
            i / width,
            first.values()[i],
            expected[i],
            left.height()
        );
    }
    matcher.compute(right, left).unwrap();
    assert_eq!(first, matcher.compute(left, right).unwrap(), "a matcher's third frame differs from its first");
}

/// Every level and thread count.
fn check_all(left: &GrayView<'_>, right: &GrayView<'_>, params: &Params) {
    let expected = reference(left, right, params);
    for level in levels() {
        for threads in THREADS {
            check(left, right, params, &expected, level, threads);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(200))]

    #[test]
    fn random_cases(case in cases::case()) {
        case.with_views(|left, right| check_all(left, right, &case.params));
    }
}

/// A texture of `levels` grey values and the same moved.
fn texture(width: usize, height: usize, levels: u32, shift: usize) -> (Vec<u8>, Vec<u8>) {
    let mut state = 0x9e37_79b9u32;
    let left: Vec<u8> = (0..width * height)
        .map(|_| {
            state ^= state << 13;
            state ^= state >> 17;
            state ^= state << 5;
            (state % levels) as u8
        })
        .collect();
    let right = (0..left.len()).map(|i| left[i - i % width + (i % width + shift) % width]).collect();
    (left, right)
}

#[test]
fn awkward_sizes_and_every_lane_count() {
    let default = Params::default();
    // Heights of several bands; disparities around every vector length, and more than a vector's.
    for (width, height, disparities) in [
        (1, 1, 128),
        (17, 13, 16),
        (100, 75, 15),
        (67, 90, 64),
        (40, 37, 65),
        (130, 70, 127),
        (90, 40, 128),
        (33, 35, 300),
    ] {
        let (left, right) = texture(width, height, 7, 5);
        let left = GrayView::from_u8(&left, width, height).unwrap();
        let right = GrayView::from_u8(&right, width, height).unwrap();
        check_all(&left, &right, &Params { disparities, ..default.clone() });
        let four = Params { paths: Paths::Four, p2: 231, min_disparity: -9, ..default.clone() };
        check_all(&left, &right, &Params { disparities, ..four });
        check_all(&left, &right, &Params { disparities, p2: 200, p1: 60, subpixel: false, ..default.clone() });
    }
}

#[test]
fn the_eight_scenes() {
    let Some(folder) = data::folder() else { return };
    for files in SceneFiles::find(&folder.join("middlebury")).unwrap() {
        let scene = files.load().unwrap();
        let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
        let whole = Params { disparities: 80, fill: true, ..Params::default() };
        for params in [whole, Params { disparities: 64, ..Params::libsgm() }] {
            let expected = reference(&left, &right, &params);
            for (level, threads) in levels().zip([3, 2, 1]) {
                check(&left, &right, &params, &expected, level, threads);
            }
        }
    }
}

#[test]
fn every_depth_on_one_matcher() {
    let (width, height) = (50, 40);
    let (left, right) = texture(width, height, 7, 3);
    // The same order of intensities, so the same descriptors; other differences, so other penalties.
    let [deep_left, deep_right] = [&left, &right].map(|p| p.iter().map(|&v| u16::from(v) * 257).collect::<Vec<_>>());
    let params = Params { disparities: 20, ..Params::default() };
    let (l8, r8) =
        (GrayView::from_u8(&left, width, height).unwrap(), GrayView::from_u8(&right, width, height).unwrap());
    let (l16, r16) = (
        GrayView::from_u16(&deep_left, width, height).unwrap(),
        GrayView::from_u16(&deep_right, width, height).unwrap(),
    );
    let expected = [reference(&l8, &r8, &params), reference(&l16, &r16, &params)];
    assert_ne!(expected[0], expected[1]);
    for level in levels() {
        let mut matcher = matcher(&l8, &params, level, 2);
        for _ in 0..2 {
            assert_eq!(matcher.compute(&l8, &r8).unwrap().values(), expected[0], "{level}, 8 bits");
            assert_eq!(matcher.compute(&l16, &r16).unwrap().values(), expected[1], "{level}, 16 bits");
        }
    }
}

#[test]
fn a_level_of_another_machine_is_refused() {
    let params = Params::default();
    for level in CpuLevel::ALL.into_iter().filter(|level| !level.is_available()) {
        let refused = Matcher::with_cpu_level(8, 8, &params, &Options::default(), level).map(|_| ()).unwrap_err();
        assert!(refused.to_string().contains(level.name()), "{refused}");
    }
}
