//! The choice of a plan on a real GPU: in time, not slower than plain kernels, the same bytes, and
//! remembered. One test, as it names a cache folder for the whole process.

use std::time::Instant;

use stereo_host::{Backend, Matcher, Options, Params, Plan, PlanSource, SceneSpec, Tuning};
use stereo_tests::gpu::{compute, has_cuda, on};

/// What a tuning may take, whatever the size.
const LIMIT_SECONDS: f64 = 2.0;

#[test]
fn a_measured_plan_is_quick_right_and_remembered() {
    if !has_cuda("a_measured_plan_is_quick_right_and_remembered") {
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    // SAFETY: the only test of this program, before it starts anything.
    unsafe { std::env::set_var("STEREO_CACHE_DIR", folder.path().join("new/folder")) };
    for (width, height, disparities) in [(64, 48, 16), (640, 480, 64), (1920, 1080, 128), (3840, 2160, 256)] {
        let params = Params { disparities, ..Params::default() };
        let tuned = |tuning| {
            let options = Options { backend: Backend::Cuda, tuning, ..Options::default() };
            Matcher::new(width, height, &params, &options).unwrap()
        };
        assert_eq!(tuned(Tuning::Cached).plan(), Some((Plan::PLAIN, PlanSource::Default)));
        let start = Instant::now();
        let mut matcher = tuned(Tuning::Auto);
        let built = start.elapsed().as_secs_f64();
        let (plan, source) = matcher.plan().unwrap();
        println!("{width}x{height}x{disparities}: {built:.2} s, {plan}");
        assert_eq!(source, PlanSource::Measured);

        for tuning in [Tuning::Auto, Tuning::Cached] {
            assert_eq!(tuned(tuning).plan(), Some((plan, PlanSource::Cache)));
        }
        let report = matcher.tune().unwrap();
        println!("{:.2} s, chosen {:?}, plain {:?}", report.seconds, report.chosen, report.plain);
        assert!(report.seconds < LIMIT_SECONDS, "{width}x{height}: {} s", report.seconds);
        assert!(report.chosen.median_ms <= report.plain.median_ms);
        assert!(report.file.unwrap().is_file());
        assert!(report.trials.iter().any(|trial| trial.plan.needs_bulk()), "bulk copies were tried");

        if width <= 640 {
            let spec = SceneSpec { width, height, disparities, ..SceneSpec::default() };
            let scene = spec.render().unwrap();
            let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
            let expected = compute(&on(Backend::Reference), &left, &right, &params).unwrap();
            assert_eq!(matcher.compute(&left, &right).unwrap(), expected, "{plan}");
            let told = matcher.report();
            assert_eq!((told.plan, told.plan_source), (Some(report.plan), Some(PlanSource::Measured)));
        }
    }
    assert_eq!(stereo_host::clear_cache().unwrap(), 4);
}
