//! Comparisons of the GPU pipeline, on a device or in the emulator, with the reference.

use proptest::test_runner::{Config, TestRunner};
use stereo_host::{Backend, DisparityMap, GrayView, Matcher, Options, Params, Result};

use crate::cases::{self, Case};

/// Makes a test fail where there is no GPU, instead of saying that it was skipped.
pub const REQUIRE_CUDA_VARIABLE: &str = "STEREO_REQUIRE_CUDA";

/// Whether there is a GPU to test on; without one the test says that it was skipped, or fails where
/// `STEREO_REQUIRE_CUDA` is set.
pub fn has_cuda(test: &str) -> bool {
    match Backend::Cuda.availability() {
        Ok(()) => true,
        Err(reason) => {
            assert!(std::env::var_os(REQUIRE_CUDA_VARIABLE).is_none(), "{test}: {reason}");
            crate::skip(&format!("{test}: {reason}"));
            false
        }
    }
}

/// One match on a backend.
pub fn compute(backend: Backend, left: &GrayView<'_>, right: &GrayView<'_>, params: &Params) -> Result<DisparityMap> {
    let options = Options { backend, ..Options::default() };
    Matcher::new(left.width(), left.height(), params, &options)?.compute(left, right)
}

/// Pixels that differ between `backend` and the reference.
pub fn differing(backend: Backend, left: &GrayView<'_>, right: &GrayView<'_>, params: &Params) -> usize {
    let expected = compute(Backend::Reference, left, right, params).expect("the reference takes these parameters");
    let got = compute(backend, left, right, params).unwrap_or_else(|error| panic!("{backend}: {error}"));
    expected.values().iter().zip(got.values()).filter(|(a, b)| a != b).count()
}

/// Compares `count` random configurations.
pub fn compare_random(backend: Backend, count: u32) {
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    let check = |case: Case| {
        let differing = case.with_views(|left, right| differing(backend, left, right, &case.params));
        assert_eq!(differing, 0, "pixels of {}x{}", case.width, case.height);
        Ok(())
    };
    TestRunner::new(config).run(&cases::case(), check).unwrap_or_else(|error| panic!("{error}"));
}
