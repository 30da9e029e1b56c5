//! The GPU pipeline in the emulator against the reference, byte for byte.

use stereo_host::{Backend, Params, PathKernel, Paths, Plan, SceneSpec};
use stereo_tests::gpu::{compare_random, compute, differing, on, with_plan};

#[test]
fn random_configurations() {
    compare_random(Backend::Emulator, 120);
}

/// One number of disparities for each class of kernels, and its neighbours.
const DISPARITIES: [u32; 15] = [1, 15, 16, 17, 32, 33, 64, 65, 127, 128, 129, 256, 257, 513, 1024];

#[test]
fn every_class_of_disparities() {
    for (i, disparities) in DISPARITIES.into_iter().enumerate() {
        let spec = SceneSpec {
            width: 40 + 3 * i,
            height: 12 + i,
            disparities: disparities.min(20),
            seed: i as u64,
            ..SceneSpec::default()
        };
        let scene = spec.render().unwrap();
        let paths = if i % 2 == 0 { Paths::Eight } else { Paths::Four };
        let params = Params { disparities, paths, min_disparity: 3 - i as i32, ..Params::default() };
        let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
        let bulk = PathKernel::Bulk { chunk: 4, stages: 3 };
        let plan = Plan { horizontal: bulk, vertical: bulk, oblique: bulk, ..Plan::PLAIN };
        for plan in [Plan::PLAIN, plan] {
            let options = with_plan(Backend::Emulator, plan);
            assert_eq!(differing(&options, &left, &right, &params), 0, "D = {disparities}, {plan:?}");
        }
    }
}

#[test]
fn the_largest_size_that_ci_affords() {
    let scene = SceneSpec { width: 96, height: 64, disparities: 48, ..SceneSpec::default() }.render().unwrap();
    let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
    let params = Params { disparities: 48, ..Params::default() };
    assert_eq!(differing(&on(Backend::Emulator), &left, &right, &params), 0);
}

#[test]
fn what_does_not_fit_is_refused_before_it_is_allocated() {
    let pixels = vec![0u8; 4000 * 3000];
    let view = stereo_host::GrayView::from_u8(&pixels, 4000, 3000).unwrap();
    let text = compute(&on(Backend::Emulator), &view, &view, &Params::default()).unwrap_err().to_string();
    assert!(text.contains("needs") && text.contains("would fit"), "{text}");
}

#[test]
fn tiles_of_every_size() {
    for (i, disparities) in [33u32, 64, 65, 100, 128, 129, 200, 256].into_iter().enumerate() {
        for (j, chunk) in [1, 2, 4, 8, 16].into_iter().enumerate() {
            let padded = disparities.next_power_of_two();
            if chunk * padded > 2048 {
                continue;
            }
            let (width, height) = (3 + 5 * i + 7 * j, 1 + i + 2 * j);
            let spec =
                SceneSpec { width, height, disparities: disparities.min(9), seed: i as u64, ..SceneSpec::default() };
            let scene = spec.render().unwrap();
            let params = Params { disparities, paths: Paths::Four, min_disparity: 1 - i as i32, ..Params::default() };
            let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
            let plan = Plan { horizontal: PathKernel::Tiles { chunk, stages: 2 + j as u32 }, ..Plan::PLAIN };
            let options = with_plan(Backend::Emulator, plan);
            assert_eq!(differing(&options, &left, &right, &params), 0, "{width}x{height}, D = {disparities}, {plan:?}");
        }
    }
}

#[test]
fn tiles_are_refused_where_there_are_none() {
    let pixels = vec![0u8; 64 * 8];
    let view = stereo_host::GrayView::from_u8(&pixels, 64, 8).unwrap();
    let tiles = PathKernel::Tiles { chunk: 16, stages: 2 };
    let refused = |plan, disparities| {
        let params = Params { disparities, ..Params::default() };
        compute(&with_plan(Backend::Emulator, plan), &view, &view, &params).unwrap_err().to_string()
    };
    assert!(refused(Plan { horizontal: tiles, ..Plan::PLAIN }, 256).contains("2048 bytes"));
    assert!(refused(Plan { horizontal: tiles, ..Plan::PLAIN }, 20).contains("64, 128 or 256"));
    assert!(refused(Plan { vertical: tiles, ..Plan::PLAIN }, 128).contains("horizontal directions"));
}
