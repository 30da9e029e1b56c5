//! The row solver against the plain one, ties above all (masda.md, graph).

use proptest::prelude::*;
use stereo_host::{
    Algorithm, Backend, DisparityMap, GrayView, MasdaParams, Options, Params, Report, Speckle,
    masda::{
        Candidate, Candidates, graph_solver,
        reference::{
            decode::decode,
            messages::{Edge, beliefs},
        },
    },
};

/// A small generator: the tests need many random rows, not good ones.
struct Random(u64);

impl Random {
    fn below(&mut self, n: u32) -> u32 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as u32) % n
    }
}

/// Random candidates in view, with scores from a few `levels` so that they tie.
fn random_candidates(width: usize, height: usize, params: &Params, levels: u32, random: &mut Random) -> Candidates {
    let mut candidates = Candidates::new(width, height).unwrap();
    for (i, pair) in candidates.pairs_mut().iter_mut().enumerate() {
        let x = (i % width) as i64;
        let visible: Vec<u8> = (0..params.disparities)
            .filter(|&d| (0..width as i64).contains(&(x - i64::from(d) - i64::from(params.min_disparity))))
            .map(|d| d as u8)
            .collect();
        let mut pick = |except: Option<u8>| {
            let choices: Vec<u8> = visible.iter().copied().filter(|&d| Some(d) != except).collect();
            let d = *choices.get(random.below(choices.len().max(1) as u32) as usize)?;
            let score = (random.below(levels) * 16_385 / levels) as i16;
            let inner = d > 0 && u32::from(d) + 1 < params.disparities;
            let offset = if inner { random.below(17) as i8 - 8 } else { 0 };
            Some(Candidate { score, d, offset })
        };
        let count = [1, 2, 2, 2, 0][pick_index(i)];
        if let (true, Some(first)) = (count > 0, pick(None)) {
            pair[0] = first;
            if let (true, Some(second)) = (count > 1, pick(Some(first.d))) {
                let ordered = (second.score, std::cmp::Reverse(second.d)) < (first.score, std::cmp::Reverse(first.d));
                *pair = if ordered { [first, second] } else { [second, first] };
            }
        }
    }
    candidates
}

/// Mixes counts along a row without taking random numbers.
fn pick_index(i: usize) -> usize {
    (i * 7 + i / 5) % 5
}

fn solve(candidates: &Candidates, left: &GrayView<'_>, params: &Params, options: &Options) -> DisparityMap {
    let mut map = DisparityMap::new(candidates.width(), candidates.height(), params).unwrap();
    let mut solver = graph_solver(params, options).unwrap();
    solver.solve(candidates, left, &mut map, &mut Report::default()).unwrap();
    map
}

fn compare(width: usize, height: usize, params: &Params, levels: u32, seed: u64) {
    let mut random = Random(seed);
    let candidates = random_candidates(width, height, params, levels, &mut random);
    let pixels: Vec<u8> = (0..width * height).map(|_| random.below(4) as u8).collect();
    let left = GrayView::from_u8(&pixels, width, height).unwrap();
    let reference = Options { backend: Backend::Reference, ..Options::default() };
    let expected = solve(&candidates, &left, params, &reference);
    for threads in [1, 2, 5] {
        let options = Options { backend: Backend::Cpu, threads: Some(threads), ..Options::default() };
        assert_eq!(
            solve(&candidates, &left, params, &options),
            expected,
            "{width}x{height}, {levels} levels, seed {seed}"
        );
    }
}

#[test]
fn many_random_rows_with_many_ties() {
    for seed in 0..120u64 {
        for levels in [1, 2, 3, 40, 16_000] {
            let masda = MasdaParams {
                theta: [4000, 0, -20_000, 16_000][seed as usize % 4],
                margin: [300, i32::MIN, 0, -5000, i32::MAX][seed as usize % 5],
                iterations: [2, 0, 1, 5, 40][seed as usize % 5],
                ..MasdaParams::default()
            };
            let params = Params {
                algorithm: Algorithm::Masda(masda),
                disparities: [12, 1, 60, 256][seed as usize % 4],
                min_disparity: [0, -6, 3][seed as usize % 3],
                subpixel: seed.is_multiple_of(2),
                fill: seed.is_multiple_of(3),
                mask_zero: seed.is_multiple_of(5),
                speckle: seed.is_multiple_of(7).then_some(Speckle { max_size: 3, max_diff: 1 }),
                ..Params::default()
            };
            compare(64, 5, &params, levels, seed);
        }
    }
}

proptest! {
    #[test]
    fn random_sizes(
        width in 1usize..300,
        height in 1usize..6,
        disparities in 1u32..=256,
        min_disparity in -100i32..100,
        levels in 1u32..50,
        theta in -32_768i32..=32_767,
        margin in -30_000i32..30_000,
        iterations in 0u32..8,
        seed in any::<u64>(),
    ) {
        let masda = MasdaParams { theta, margin, iterations, ..MasdaParams::default() };
        let params = Params { algorithm: Algorithm::Masda(masda), disparities, min_disparity, ..Params::default() };
        compare(width, height, &params, levels, seed);
    }
}

#[test]
fn all_scores_equal() {
    // Every pixel sees d = 0 and d = 1 at the same score: all beliefs of a kind tie, and the order alone decides.
    let (width, height) = (50, 3);
    let mut candidates = Candidates::new(width, height).unwrap();
    for (i, pair) in candidates.pairs_mut().iter_mut().enumerate() {
        let of = |d| Candidate { score: 8000, d, offset: 0 };
        *pair = if i % width == 0 { [of(0), Candidate::NONE] } else { [of(0), of(1)] };
    }
    let pixels = vec![1; width * height];
    let left = GrayView::from_u8(&pixels, width, height).unwrap();
    for iterations in 0..6 {
        let masda = MasdaParams { iterations, margin: i32::MIN, ..MasdaParams::default() };
        let params = Params { algorithm: Algorithm::Masda(masda), disparities: 2, ..Params::default() };
        let on = |backend| solve(&candidates, &left, &params, &Options { backend, ..Options::default() });
        let expected = on(Backend::Reference);
        assert_eq!(on(Backend::Cpu), expected);
        // One to one: no right pixel is taken twice, and the assignment is as large as it can be.
        let mut taken: Vec<usize> = (0..width).filter_map(|x| expected.get(x, 1).map(|d| x - d as usize)).collect();
        let count = taken.len();
        taken.dedup();
        assert_eq!(taken.len(), count);
        assert!(count >= width / 2, "{count} matches after {iterations} iterations");
    }
}

#[test]
fn the_order_of_edges_is_irrelevant() {
    let mut random = Random(11);
    let params = Params { disparities: 16, ..Params::masda() };
    let masda = MasdaParams { margin: i32::MIN, ..MasdaParams::default() };
    for round in 0..300 {
        let candidates = random_candidates(40, 1, &params, 1 + round % 4, &mut random);
        let mut edges: Vec<Edge> = beliefs(candidates.row(0), 0, &masda);
        let expected = decode(edges.clone(), 40, masda.margin);
        for _ in 0..5 {
            for i in (1..edges.len()).rev() {
                edges.swap(i, random.below(i as u32 + 1) as usize);
            }
            assert_eq!(decode(edges.clone(), 40, masda.margin), expected);
        }
    }
}
