//! The CPU backend: whole matches, and the stages of one.
//!
//! `cargo bench -p stereo-benches --bench cpu_sgm -- 640x480`

use std::{hint::black_box, time::Duration};

use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};
use stereo_host::{Backend, CpuLevel, DisparityMap, Matcher, Options, Params, Paths, Scene, SceneSpec};

/// Size and number of disparities.
const SIZES: [(usize, usize, u32); 2] = [(640, 480, 64), (1920, 1080, 128)];

fn scene((width, height, disparities): (usize, usize, u32)) -> Scene {
    SceneSpec { width, height, disparities, ..SceneSpec::default() }.render().expect("a valid size")
}

fn name((width, height, disparities): (usize, usize, u32)) -> String {
    format!("{width}x{height}x{disparities}")
}

fn options(threads: usize, timing: bool) -> Options {
    Options { backend: Backend::Cpu, threads: Some(threads), timing, ..Options::default() }
}

/// A whole match, by size, path count, vector level and threads.
fn whole(c: &mut Criterion) {
    let all = std::thread::available_parallelism().map_or(1, usize::from);
    for size in SIZES {
        let scene = scene(size);
        let (left, right) = (scene.left.view().expect("a picture"), scene.right.view().expect("a picture"));
        let mut group = c.benchmark_group(format!("whole/{}", name(size)));
        group.sample_size(10);
        for paths in [Paths::Four, Paths::Eight] {
            let params = Params { disparities: size.2, paths, ..Params::default() };
            for level in CpuLevel::ALL.into_iter().filter(|level| level.is_available()) {
                for threads in if all > 1 { vec![1, all] } else { vec![1] } {
                    let mut matcher = Matcher::with_cpu_level(size.0, size.1, &params, &options(threads, false), level)
                        .expect("a valid matcher");
                    let mut map = DisparityMap::new(size.0, size.1, &params).expect("a valid size");
                    let id = BenchmarkId::new(format!("{} paths, {level}", paths.count()), threads);
                    group.bench_function(id, |b| {
                        b.iter(|| matcher.compute_into(black_box(&left), black_box(&right), &mut map));
                    });
                }
            }
        }
    }
}

/// Every stage of a match on one thread, from the matcher's own report.
fn stages(c: &mut Criterion) {
    for size in SIZES {
        let scene = scene(size);
        let (left, right) = (scene.left.view().expect("a picture"), scene.right.view().expect("a picture"));
        let params = Params { disparities: size.2, ..Params::default() };
        let mut matcher = Matcher::new(size.0, size.1, &params, &options(1, true)).expect("a valid matcher");
        let mut map = matcher.compute(&left, &right).expect("a valid pair");
        let names: Vec<_> = matcher.report().stages.iter().map(|stage| stage.stage).collect();
        let mut group = c.benchmark_group(format!("stages/{}", name(size)));
        group.sample_size(10);
        for (i, stage) in names.into_iter().enumerate() {
            group.bench_function(stage, |b| {
                b.iter_custom(|iterations| {
                    let mut ms = 0.0;
                    for _ in 0..iterations {
                        matcher.compute_into(&left, &right, &mut map).expect("a valid pair");
                        ms += matcher.report().stages[i].ms;
                    }
                    Duration::from_secs_f64(ms / 1e3)
                });
            });
        }
    }
}

criterion_group!(benches, whole, stages);
criterion_main!(benches);
