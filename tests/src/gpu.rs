//! Comparisons of the GPU pipeline, on a device or in the emulator, with the reference.

use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};
use stereo_host::{Backend, DisparityMap, GrayView, Matcher, Options, Params, PathKernel, Plan, Result, Tuning};

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

/// Options that name a backend, and plain kernels where that is a GPU: nothing is measured.
pub fn on(backend: Backend) -> Options {
    with_plan(backend, Plan::PLAIN)
}

/// Options that name a backend and the plan that it uses if it is a GPU.
pub fn with_plan(backend: Backend, plan: Plan) -> Options {
    Options { backend, tuning: Tuning::Fixed(plan), ..Options::default() }
}

/// One match.
pub fn compute(options: &Options, left: &GrayView<'_>, right: &GrayView<'_>, params: &Params) -> Result<DisparityMap> {
    Matcher::new(left.width(), left.height(), params, options)?.compute(left, right)
}

/// Pixels that differ between a match with `options` and the reference.
pub fn differing(options: &Options, left: &GrayView<'_>, right: &GrayView<'_>, params: &Params) -> usize {
    let expected = compute(&on(Backend::Reference), left, right, params).expect("the reference takes these parameters");
    let got = compute(options, left, right, params).unwrap_or_else(|error| panic!("{options:?}: {error}"));
    expected.values().iter().zip(got.values()).filter(|(a, b)| a != b).count()
}

/// Plans of every kind, plain kernels as often as the others together.
pub fn plan() -> impl Strategy<Value = Plan> {
    let kernel = || {
        let bulk =
            (select(vec![1, 2, 4, 8, 16]), 2u32..=6).prop_map(|(chunk, stages)| PathKernel::Bulk { chunk, stages });
        prop_oneof![Just(PathKernel::Plain), bulk]
    };
    (kernel(), kernel(), kernel(), 1u32..=8, any::<bool>()).prop_map(
        |(horizontal, vertical, oblique, streams, horizontal_first)| Plan {
            horizontal,
            vertical,
            oblique,
            streams,
            horizontal_first,
        },
    )
}

/// Compares `count` random configurations, each with a random plan.
pub fn compare_random(backend: Backend, count: u32) {
    let config = Config { cases: count, failure_persistence: None, ..Config::default() };
    let check = |(case, plan): (Case, Plan)| {
        let options = with_plan(backend, plan);
        let differing = case.with_views(|left, right| differing(&options, left, right, &case.params));
        assert_eq!(differing, 0, "pixels of {}x{}", case.width, case.height);
        Ok(())
    };
    TestRunner::new(config).run(&(cases::case(), plan()), check).unwrap_or_else(|error| panic!("{error}"));
}
