//! The GPU's shuffle tree for the best two candidates, simulated lane by lane with the kernel's own functions: whatever
//! the tree's order, the result is the one of masda.md, image plane, point 4.

use stereo_kernels::{
    gpu::warp,
    masda::{
        MAX_DISPARITIES,
        top_two::{CANDIDATES, UNRANKED, disparity, merge, rank, score},
    },
};

const LANES: usize = warp::SIZE as usize;

/// Enough for every shape of tie, cheap enough to run always.
const TRIALS: usize = 500_000;

struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        ((self.0 >> 33) as usize) % n
    }
}

/// What the kernel's warp does: lane `l` holds disparities `32 c + l`, merges its own, then with the lane across, from the
/// largest distance to the smallest.
fn tree(scores: &[i32], distances: &[usize]) -> [[i32; CANDIDATES]; LANES] {
    let mut best = [[UNRANKED; CANDIDATES]; LANES];
    for (d, &score) in scores.iter().enumerate() {
        best[d % LANES] = merge(best[d % LANES], [rank(score, d as u32), UNRANKED]);
    }
    for distance in distances {
        best = std::array::from_fn(|lane| merge(best[lane], best[lane ^ distance]));
    }
    best
}

/// The definition: by score descending, then by disparity ascending.
fn definition(scores: &[i32]) -> [Option<(i32, u32)>; CANDIDATES] {
    let mut best: [Option<(i32, u32)>; CANDIDATES] = [None; CANDIDATES];
    for (d, &score) in scores.iter().enumerate() {
        // A later disparity passes an earlier one only with a larger score.
        let passes = |other: Option<(i32, u32)>| other.is_none_or(|(s, _)| score > s);
        if passes(best[0]) {
            best = [Some((score, d as u32)), best[0]];
        } else if passes(best[1]) {
            best[1] = Some((score, d as u32));
        }
    }
    best
}

#[test]
fn randomized_shuffle_tree() {
    let mut random = Random(1);
    for trial in 0..TRIALS {
        let disparities = 1 + if trial.is_multiple_of(50) { random.below(256) } else { random.below(100) };
        let levels = 1 + random.below(4);
        let top = random.below(16_386 - levels);
        let scores: Vec<i32> = (0..disparities).map(|_| (top + random.below(levels)) as i32).collect();
        // The kernel's order, and the reverse: disparity ranges that are merged are then not adjacent.
        let distances: &[usize] = if trial.is_multiple_of(2) { &[16, 8, 4, 2, 1] } else { &[1, 2, 4, 8, 16] };
        let lanes = tree(&scores, distances);
        let expected = definition(&scores);
        for best in lanes {
            let got = best.map(|rank| (rank != UNRANKED).then(|| (score(rank), disparity(rank))));
            assert_eq!(got, expected, "{scores:?}");
        }
    }
}

#[test]
fn ranks_order_and_unpack() {
    let mut previous = UNRANKED;
    for value in [0, 1, 8000, 16_385] {
        for d in (0..MAX_DISPARITIES).rev() {
            let rank = rank(value, d);
            assert!(rank > previous);
            assert_eq!((score(rank), disparity(rank)), (value, d));
            previous = rank;
        }
    }
}
