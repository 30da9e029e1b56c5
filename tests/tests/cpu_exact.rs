//! The CPU backend against the reference, byte for byte: every vector level of this machine, several
//! thread counts.

use proptest::prelude::*;
use stereo_host::{Backend, CpuLevel, GrayView, Matcher, Options, Params};
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

fn cpu(left: &GrayView<'_>, right: &GrayView<'_>, params: &Params, level: CpuLevel, threads: usize) -> Vec<i16> {
    let options = Options { backend: Backend::Cpu, threads: Some(threads), timing: false };
    let mut matcher = Matcher::with_cpu_level(left.width(), left.height(), params, &options, level).unwrap();
    let first = matcher.compute(left, right).unwrap();
    // Nothing of a frame may leak into the next.
    matcher.compute(right, left).unwrap();
    assert_eq!(first, matcher.compute(left, right).unwrap(), "a matcher's second use differs");
    first.values().to_vec()
}

/// Every level and thread count against the reference.
fn check(left: &GrayView<'_>, right: &GrayView<'_>, params: &Params) {
    let expected = reference(left, right, params);
    for level in levels() {
        for threads in THREADS {
            let got = cpu(left, right, params, level, threads);
            let width = left.width();
            if let Some(i) = (0..got.len()).find(|&i| got[i] != expected[i]) {
                panic!(
                    "{level}, {threads} threads: ({}, {}) is {}, the reference says {}; {width}x{}, {params:?}",
                    i % width,
                    i / width,
                    got[i],
                    expected[i],
                    left.height()
                );
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_cases(case in cases::case()) {
        case.with_views(|left, right| check(left, right, &case.params));
    }
}

/// A texture of `levels` grey values and the same moved, without a library.
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
    // Sizes of several bands; disparities around every vector length and beyond.
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
        check(&left, &right, &Params { disparities, ..default.clone() });
        let four = stereo_host::Paths::Four;
        check(&left, &right, &Params { disparities, paths: four, p2: 231, min_disparity: -9, ..default.clone() });
        check(&left, &right, &Params { disparities, p2: 200, p1: 60, subpixel: false, ..default.clone() });
    }
}

#[test]
fn the_eight_scenes() {
    if data::folder().is_none() {
        return;
    }
    for scene in ["Teddy", "Cones", "Art", "Books", "Dolls", "Moebius", "Laundry", "Reindeer"] {
        let (left, right) = data::gray_pair(scene);
        let (left, right) = (GrayView::try_from(&left).unwrap(), GrayView::try_from(&right).unwrap());
        for params in [
            Params { disparities: 80, fill: true, ..Params::default() },
            Params { disparities: 64, ..Params::libsgm() },
        ] {
            check(&left, &right, &params);
        }
    }
}
