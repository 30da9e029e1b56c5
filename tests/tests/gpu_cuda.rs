//! The matcher on a GPU against the reference, byte for byte: random configurations, real sizes and
//! the eight scenes. Without a GPU every test says that it was skipped.

use stereo_host::{Backend, Census, GrayView, Matcher, Params, PathKernel, Paths, Plan, SceneSpec, eval::SceneFiles};
use stereo_tests::{
    data,
    gpu::{compare_random, compute, differing, has_cuda, on, with_plan},
};

/// 2,000 random small configurations, in parts that run side by side on one device.
macro_rules! random {
    ($($name:ident)*) => {$(
        #[test]
        fn $name() {
            if has_cuda(stringify!($name)) {
                compare_random(Backend::Cuda, 250);
            }
        }
    )*};
}

random!(random_1 random_2 random_3 random_4 random_5 random_6 random_7 random_8);

/// Compares a rendered pair of a real size.
fn compare_size(test: &str, width: usize, height: usize, params: &Params) {
    compare_plan(test, width, height, params, Plan::PLAIN);
}

/// Compares a rendered pair of a real size, matched as `plan` says.
fn compare_plan(test: &str, width: usize, height: usize, params: &Params, plan: Plan) {
    if !has_cuda(test) {
        return;
    }
    let options = with_plan(Backend::Cuda, plan);
    let spec = SceneSpec { width, height, disparities: params.disparities, ..SceneSpec::default() };
    let scene = spec.render().unwrap();
    let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
    assert_eq!(differing(&options, &left, &right, params), 0, "{width}x{height}, {params:?}");
}

#[test]
fn full_hd_64() {
    compare_size("full_hd_64", 1920, 1080, &Params { disparities: 64, ..Params::default() });
}

#[test]
fn full_hd_128() {
    compare_size("full_hd_128", 1920, 1080, &Params::default());
}

#[test]
fn full_hd_128_four_paths() {
    compare_size("full_hd_128_four_paths", 1920, 1080, &Params { paths: Paths::Four, ..Params::default() });
}

#[test]
fn full_hd_256() {
    compare_size("full_hd_256", 1920, 1080, &Params { disparities: 256, ..Params::default() });
}

/// Every direction by bulk copies.
const BULK: Plan = {
    let bulk = PathKernel::Bulk { chunk: 8, stages: 4 };
    Plan { horizontal: bulk, vertical: bulk, oblique: bulk, ..Plan::PLAIN }
};

#[test]
fn bulk_copies_full_hd() {
    if !has_cuda("bulk_copies_full_hd") {
        return;
    }
    for disparities in [64, 128, 256] {
        let params = Params { disparities, ..Params::default() };
        compare_plan("bulk_copies_full_hd", 1920, 1080, &params, BULK);
    }
}

#[test]
fn tiles_of_every_class() {
    for (width, height, disparities, chunk) in
        [(1920, 1080, 64, 16), (1920, 1080, 128, 16), (1920, 1080, 256, 8), (1241, 377, 100, 4), (77, 301, 129, 1)]
    {
        let params = Params { disparities, min_disparity: -2, ..Params::default() };
        let plan = Plan { horizontal: PathKernel::Tiles { chunk, stages: 3 }, ..Plan::PLAIN };
        compare_plan("tiles_of_every_class", width, height, &params, plan);
    }
}

#[test]
fn bulk_copies_ultra_hd() {
    compare_plan("bulk_copies_ultra_hd", 3840, 2160, &Params { min_disparity: 5, ..Params::default() }, BULK);
}

#[test]
fn bulk_copies_odd_sizes() {
    if !has_cuda("bulk_copies_odd_sizes") {
        return;
    }
    for (width, height, disparities) in [(1241, 377, 100), (333, 701, 17), (77, 500, 1000), (501, 99, 3)] {
        let params = Params { disparities, min_disparity: -3, ..Params::default() };
        compare_plan("bulk_copies_odd_sizes", width, height, &params, BULK);
    }
}

#[test]
fn kitti_size() {
    compare_size("kitti_size", 1242, 375, &Params { min_disparity: -7, ..Params::default() });
}

#[test]
fn ultra_hd() {
    compare_size("ultra_hd", 3840, 2160, &Params::libsgm());
}

#[test]
fn many_disparities() {
    if !has_cuda("many_disparities") {
        return;
    }
    for disparities in [500, 1000] {
        compare_size("many_disparities", 640, 200, &Params { disparities, ..Params::default() });
    }
}

#[test]
fn eight_scenes() {
    let Some(folder) = data::folder() else { return };
    if !has_cuda("eight_scenes") {
        return;
    }
    let scenes = SceneFiles::find(&folder.join("middlebury")).unwrap();
    assert_eq!(scenes.len(), 8);
    for files in scenes {
        let scene = files.load().unwrap();
        let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
        let base = Params { disparities: scene.disparities, ..Params::default() };
        for params in [
            base.clone(),
            Params { paths: Paths::Four, fill: true, ..base.clone() },
            Params { census: Census::Window9x7, adaptive_p2: false, subpixel: false, ..base.clone() },
            Params { disparities: scene.disparities, ..Params::libsgm() },
        ] {
            assert_eq!(differing(&on(Backend::Cuda), &left, &right, &params), 0, "{}: {params:?}", scene.name);
        }
    }
}

#[test]
fn a_matcher_is_reused_and_repeats_itself() {
    if !has_cuda("a_matcher_is_reused_and_repeats_itself") {
        return;
    }
    let params = Params { disparities: 64, ..Params::default() };
    let scenes = [1, 2].map(|seed| SceneSpec { seed, ..SceneSpec::default() }.render().unwrap());
    let mut matcher = Matcher::new(640, 480, &params, &on(Backend::Cuda)).unwrap();
    let views = |i: usize| (scenes[i].left.view().unwrap(), scenes[i].right.view().unwrap());
    let expected = [0, 1].map(|i| compute(&on(Backend::Reference), &views(i).0, &views(i).1, &params).unwrap());
    for frame in 0..40 {
        let (left, right) = views(frame % 2);
        assert_eq!(matcher.compute(&left, &right).unwrap(), expected[frame % 2], "frame {frame}");
    }
    let wide: Vec<u16> = (0..640 * 480).map(|i: usize| (i * 7919 % 65_521) as u16).collect();
    let view = GrayView::from_u16(&wide, 640, 480).unwrap();
    let expected = compute(&on(Backend::Reference), &view, &view, &params).unwrap();
    assert_eq!(matcher.compute(&view, &view).unwrap(), expected, "16 bits after 8");
}

#[test]
fn matchers_on_many_threads() {
    if !has_cuda("matchers_on_many_threads") {
        return;
    }
    std::thread::scope(|scope| {
        for seed in 0..4 {
            scope.spawn(move || {
                let spec = SceneSpec { width: 320 + seed as usize, height: 200, seed, ..SceneSpec::default() };
                let scene = spec.render().unwrap();
                let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
                let params = Params { disparities: 50 + seed as u32, ..Params::default() };
                let expected = compute(&on(Backend::Reference), &left, &right, &params).unwrap();
                let mut matcher = Matcher::new(left.width(), left.height(), &params, &on(Backend::Cuda)).unwrap();
                for _ in 0..20 {
                    assert_eq!(matcher.compute(&left, &right).unwrap(), expected, "seed {seed}");
                }
            });
        }
    });
}

#[test]
fn too_large_is_refused_before_it_is_allocated() {
    if !has_cuda("too_large_is_refused_before_it_is_allocated") {
        return;
    }
    let params = Params { disparities: 1024, ..Params::default() };
    let text = Matcher::new(32_768, 32_768, &params, &on(Backend::Cuda)).err().unwrap().to_string();
    assert!(text.contains("bytes") && text.contains("would fit"), "{text}");
}

/// Every kernel of the pipeline at least once, for compute-sanitizer (`run.sh --sanitize` of the bundle), under
/// which kernels take a hundred times as long: images little larger than a census window, one number of
/// disparities for each class of kernels.
fn compare_small(test: &str, plan: Plan) {
    if !has_cuda(test) {
        return;
    }
    let census = [Census::Window7x7, Census::Window9x7, Census::Symmetric9x7];
    for (disparities, census) in [1, 30, 64, 100, 256, 500, 1000].into_iter().zip(census.into_iter().cycle()) {
        for paths in [Paths::Four, Paths::Eight] {
            let params = Params { disparities, paths, census, min_disparity: -2, ..Params::default() };
            compare_plan(test, 45, 19, &params, plan);
        }
    }
}

#[test]
fn sanitize_plain() {
    compare_small("sanitize_plain", Plan::PLAIN);
}

#[test]
fn sanitize_bulk_copies() {
    compare_small("sanitize_bulk_copies", BULK);
}

#[test]
fn sanitize_masda() {
    if !has_cuda("sanitize_masda") {
        return;
    }
    for disparities in [20, 50, 90, 128, 150, 180, 220, 256] {
        let params = Params { disparities, min_disparity: -2, ..Params::masda() };
        compare_plan("sanitize_masda", 37, 11, &params, Plan::PLAIN);
    }
}

#[test]
fn sanitize_sixteen_bits() {
    if !has_cuda("sanitize_sixteen_bits") {
        return;
    }
    let (width, height) = (33, 17);
    let pixels: Vec<u16> = (0..width * height).map(|i: usize| (i * 7919 % 65_521) as u16).collect();
    let view = GrayView::from_u16(&pixels, width, height).unwrap();
    for census in [Census::Window7x7, Census::Window9x7, Census::Symmetric9x7] {
        let params = Params { census, disparities: 20, mask_zero: true, ..Params::default() };
        assert_eq!(differing(&on(Backend::Cuda), &view, &view, &params), 0, "{census:?}");
    }
    assert_eq!(differing(&on(Backend::Cuda), &view, &view, &Params { disparities: 20, ..Params::masda() }), 0);
}
