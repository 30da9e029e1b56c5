//! Every image plane against the plain one: the candidates are the same bytes (masda.md, image plane).

use proptest::prelude::*;
use stereo_host::{
    Algorithm, Backend, GrayView, MasdaParams, Matcher, Options, Params, Report,
    masda::{Candidates, image_plane},
};

/// A scene-like pair of noise, flat parts and a shifted middle, from a seed.
fn pair(width: usize, height: usize, seed: u64, shift: usize) -> [Vec<u16>; 2] {
    let mut state = seed.wrapping_mul(2).wrapping_add(1);
    let mut next = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as u32
    };
    let mut left: Vec<u16> = (0..width * height).map(|_| (next() & 0xffff) as u16).collect();
    for pixel in &mut left {
        // A third of the image is flat: many equal scores.
        if next().is_multiple_of(3) {
            *pixel = 0x4040;
        }
    }
    let mut right = left.clone();
    for (i, pixel) in right.iter_mut().enumerate() {
        let (x, y) = (i % width, i / width);
        *pixel = left[y * width + (x + shift).min(width - 1)];
    }
    [left, right]
}

fn candidates(left: &GrayView<'_>, right: &GrayView<'_>, params: &Params, options: &Options) -> Candidates {
    let mut candidates = Candidates::new(left.width(), left.height()).unwrap();
    let mut plane = image_plane(params, options).unwrap();
    plane.compute(left, right, &mut candidates, &mut Report::default()).unwrap();
    candidates
}

/// Compares `backend` with the plain definition at both depths, with and without sub-pixel.
fn compare(backend: Backend, (width, height): (usize, usize), params: &Params, seed: u64) {
    let words = pair(width, height, seed, 3);
    let bytes = words.each_ref().map(|pixels| pixels.iter().map(|&p| (p >> 8) as u8).collect::<Vec<u8>>());
    let words = words.each_ref().map(|pixels| GrayView::from_u16(pixels, width, height).unwrap());
    let bytes = bytes.each_ref().map(|pixels| GrayView::from_u8(pixels, width, height).unwrap());
    for [left, right] in [words, bytes] {
        for subpixel in [true, false] {
            let params = Params { subpixel, ..params.clone() };
            let on = |backend| candidates(&left, &right, &params, &Options { backend, ..Options::default() });
            let (expected, got) = (on(Backend::Reference), on(backend));
            let differ = expected.pairs().iter().zip(got.pairs()).position(|(a, b)| a != b);
            assert_eq!(
                differ.map(|i| ((i % width, i / width), expected.pairs()[i], got.pairs()[i])),
                None,
                "{backend} {width}x{height} {}-bit {params:?}",
                left.pixels().bits()
            );
        }
    }
}

#[test]
fn emulated_kernels_at_every_kind_of_disparity_count() {
    for disparities in [1, 33, 60, 64, 65, 80, 100, 128, 150, 161, 224, 255, 256] {
        let params = Params { disparities, ..Params::masda() };
        compare(Backend::Emulator, (21, 7), &params, disparities.into());
    }
}

#[test]
fn emulated_kernels_at_awkward_sizes_and_ranges() {
    for (size, disparities, min_disparity) in
        [((1, 1), 1, 0), ((1, 9), 33, -4), ((9, 1), 40, 5), ((17, 13), 64, -32), ((40, 3), 32, 12), ((33, 5), 20, -40)]
    {
        let params = Params { disparities, min_disparity, ..Params::masda() };
        compare(Backend::Emulator, size, &params, 5);
    }
}

#[test]
fn extreme_tables() {
    // Coefficients of 16384 (never anything but the first score) and of 0 (no filter), and scores up to 16385.
    for (sigma, w_c) in [(1e9, 0.5), (1e-9, 0.5), (10.0, 0.999_99), (10.0, 0.499_99)] {
        let masda = MasdaParams { w_c, sigma_s: sigma, sigma_r: sigma, ..MasdaParams::default() };
        let params = Params { algorithm: Algorithm::Masda(masda), disparities: 40, ..Params::default() };
        compare(Backend::Cpu, (50, 11), &params, 3);
        compare(Backend::Emulator, (18, 5), &params, 3);
    }
}

#[test]
fn eight_scenes() {
    let Some(folder) = stereo_tests::data::folder() else { return };
    let scenes = stereo_host::eval::SceneFiles::find(&folder.join("middlebury")).unwrap();
    assert_eq!(scenes.len(), 8);
    for files in scenes {
        let scene = files.load().unwrap();
        let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
        for (fill, subpixel) in [(true, true), (false, false)] {
            let params = Params { disparities: scene.disparities, fill, subpixel, ..Params::masda() };
            let map = |backend| {
                let options = Options { backend, ..Options::default() };
                let mut matcher = Matcher::new(left.width(), left.height(), &params, &options).unwrap();
                matcher.compute(&left, &right).unwrap()
            };
            assert_eq!(map(Backend::Reference), map(Backend::Cpu), "{}", files.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 40, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn cpu_on_random_inputs(
        width in 1usize..70,
        height in 1usize..20,
        disparities in 1u32..=256,
        min_disparity in -80i32..80,
        seed in any::<u64>(),
        w_c in 0.05f64..0.95,
        lambda in 0.5f64..40.0,
        sigma_s in 0.5f64..200.0,
        sigma_r in 0.5f64..200.0,
    ) {
        let masda = MasdaParams { w_c, lambda_c: lambda, lambda_a: lambda, sigma_s, sigma_r, ..MasdaParams::default() };
        let params = Params { algorithm: Algorithm::Masda(masda), disparities, min_disparity, ..Params::default() };
        compare(Backend::Cpu, (width, height), &params, seed);
    }
}
