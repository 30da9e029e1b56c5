//! The fast graph solver: threads over rows, a row's whole problem in one small arena.
//!
//! It gives what `reference::{messages, decode}` give, but with fixed-size edges instead of lists: every left pixel has
//! exactly two, an absent one leading to a spare right pixel past the row with a score that no rival notices.
//!
//! Two observations replace the claimant lists and the sort:
//! - a message `beta` needs the best rival only, so a right pixel keeps its best two `rho`: a claimant whose own is the
//!   best one hears the second, which is the same value when two tie;
//! - the greedy order is strict, so an edge that comes first at both its ends is accepted whatever the others are. Only
//!   what those leave open is sorted.

use rayon::prelude::*;

use super::{
    Candidate, Candidates, GraphSolver,
    engine::{check_map, check_sizes, timed},
    stage,
    threads::Workers,
};
use crate::{DisparityMap, GrayView, MasdaParams, Options, Params, Report, Result, cpu::Finishing};

/// The variant's name in a [`Report`].
const ROWS: &str = "threads over rows";

/// The score of an absent edge: below every `theta`, and far enough from the ends of i32 to be added to.
const ABSENT: i32 = -(1 << 28);

/// Solves rows on a thread pool.
pub(crate) struct RowSolver {
    params: Params,
    masda: MasdaParams,
    workers: Workers<Arena>,
    finishing: Finishing,
    timing: bool,
}

impl RowSolver {
    pub(crate) fn new(params: &Params, masda: &MasdaParams, options: &Options, pinned: bool) -> Result<Self> {
        let workers = Workers::new("stereo-solve", options, pinned)?;
        let finishing = Finishing::new(params)?;
        Ok(Self { params: params.clone(), masda: *masda, workers, finishing, timing: options.timing })
    }
}

impl GraphSolver for RowSolver {
    fn solve(
        &mut self,
        candidates: &Candidates,
        left: &GrayView<'_>,
        map: &mut DisparityMap,
        report: &mut Report,
    ) -> Result<()> {
        check_sizes(left, candidates)?;
        check_map(candidates, map, &self.params)?;
        let (params, masda, workers) = (&self.params, &self.masda, &self.workers);
        let width = candidates.width();
        timed(report, self.timing, stage::SOLVE, ROWS, || {
            workers.install(|| {
                map.values_mut().par_chunks_exact_mut(width).enumerate().for_each(|(y, out)| {
                    workers.with_arena(|arena| arena.solve_row(candidates.row(y), params, masda, out));
                    if params.masks_zero() {
                        mask_zero(left, y, out, params.invalid_value() as i16);
                    }
                });
            });
        });
        let finishing = &mut self.finishing;
        if params.speckle.is_some() {
            timed(report, self.timing, stage::SPECKLE, ROWS, || workers.install(|| finishing.remove_speckles(map)));
        }
        if params.fill {
            timed(report, self.timing, stage::FILL, ROWS, || workers.install(|| finishing.fill(map)));
        }
        Ok(())
    }
}

fn mask_zero(left: &GrayView<'_>, y: usize, out: &mut [i16], invalid: i16) {
    for (x, value) in out.iter_mut().enumerate() {
        if left.get(x, y) == 0 {
            *value = invalid;
        }
    }
}

/// The two edges of a left pixel.
#[derive(Debug, Clone, Copy, Default)]
struct Pair {
    /// Right columns; the row's width for an absent edge.
    j: [u32; 2],
    score: [i32; 2],
    rho: [i32; 2],
}

/// The best two `rho` that claim a right pixel, at least 0.
#[derive(Debug, Clone, Copy, Default)]
struct Claims {
    best: i32,
    second: i32,
}

impl Claims {
    fn add(&mut self, rho: i32) {
        self.second = self.second.max(rho.min(self.best));
        self.best = self.best.max(rho);
    }

    /// The largest claim but one's own, which is among those added.
    fn rival(&self, rho: i32) -> i32 {
        if rho == self.best { self.second } else { self.best }
    }
}

/// One thread's working memory: it grows to the widest row seen and stays.
#[derive(Debug, Default)]
struct Arena {
    pairs: Vec<Pair>,
    /// Claims of this iteration and of the one before, with the spare pixel.
    claims: [Vec<Claims>; 2],
    /// Every left pixel's edges as [`Key`]s, 0 below the margin.
    keys: Vec<[u64; 2]>,
    /// The first edge in the decoding order of every right pixel, with the spare one.
    first: Vec<u64>,
    /// Which right pixels are matched.
    taken: Vec<bool>,
    /// The edges left open by the first look, with their right column.
    open: Vec<(u64, u32)>,
}

/// An edge's place in the decoding order as one integer, larger first: the belief, then the smaller `x`, then the smaller
/// `d`. Never 0.
fn key(belief: i32, x: usize, d: u8) -> u64 {
    // Flipping the sign bit makes the signed order the unsigned one.
    let belief = u64::from(belief as u32 ^ (1 << 31));
    (belief << 32) | u64::from(!((x as u32) << 8 | u32::from(d)))
}

/// The left column of a [`key`].
fn key_x(key: u64) -> usize {
    (!(key as u32) >> 8) as usize
}

/// The relative disparity of a [`key`].
fn key_d(key: u64) -> u8 {
    !(key as u32) as u8
}

impl Arena {
    fn solve_row(&mut self, row: &[[Candidate; 2]], params: &Params, masda: &MasdaParams, out: &mut [i16]) {
        self.load(row, params.min_disparity);
        self.pass_messages(row, masda);
        out.fill(params.invalid_value() as i16);
        let base = params.min_disparity * params.scale();
        self.decode(row, |x, candidate| {
            let fraction = if params.subpixel { i32::from(candidate.offset) } else { 0 };
            // `Params::validate` has checked that the range fits.
            out[x] = (base + i32::from(candidate.d) * params.scale() + fraction) as i16;
        });
    }

    fn load(&mut self, row: &[[Candidate; 2]], min_disparity: i32) {
        let spare = row.len() as u32;
        self.pairs.clear();
        self.pairs.extend(row.iter().enumerate().map(|(x, candidates)| {
            let edge = |c: Candidate| {
                // In view, so not negative; `min` is for the spare pixel alone.
                let j = (x as i32 - i32::from(c.d) - min_disparity) as u32;
                if c.is_some() { (j.min(spare), i32::from(c.score)) } else { (spare, ABSENT) }
            };
            let (first, second) = (edge(candidates[0]), edge(candidates[1]));
            Pair { j: [first.0, second.0], score: [first.1, second.1], rho: [0; 2] }
        }));
    }

    /// Runs all iterations and leaves the keys of the beliefs in `keys`.
    fn pass_messages(&mut self, row: &[[Candidate; 2]], masda: &MasdaParams) {
        let theta = masda.theta;
        let width = self.pairs.len();
        let [now, before] = &mut self.claims;
        before.clear();
        before.resize(width + 1, Claims::default());
        for _ in 0..masda.iterations {
            now.clear();
            now.resize(width + 1, Claims::default());
            // `before` is all zero and so is `rho` in the first iteration: beta = 0.
            for pair in &mut self.pairs {
                pair.step(before, theta);
                now[pair.j[0] as usize].add(pair.rho[0]);
                now[pair.j[1] as usize].add(pair.rho[1]);
            }
            std::mem::swap(now, before);
        }
        self.keys.clear();
        let margin = masda.margin;
        self.keys.extend(self.pairs.iter_mut().zip(row).enumerate().map(|(x, (pair, candidates))| {
            let beta = pair.step(before, theta);
            [0, 1].map(|e| {
                let belief = pair.rho[e] - beta[e];
                let possible = belief >= margin && pair.score[e] != ABSENT;
                if possible { key(belief, x, candidates[e].d) } else { 0 }
            })
        }));
    }

    /// Accepts edges greedily and reports each accepted one.
    fn decode(&mut self, row: &[[Candidate; 2]], mut accept: impl FnMut(usize, Candidate)) {
        let width = row.len();
        self.first.clear();
        self.first.resize(width + 1, 0);
        for (keys, pair) in self.keys.iter().zip(&self.pairs) {
            for (&key, &j) in keys.iter().zip(&pair.j) {
                let first = &mut self.first[j as usize];
                *first = key.max(*first);
            }
        }

        self.taken.clear();
        self.taken.resize(width + 1, false);
        for (x, (keys, pair)) in self.keys.iter_mut().zip(&self.pairs).enumerate() {
            let e = usize::from(keys[1] > keys[0]);
            let j = pair.j[e] as usize;
            if keys[e] != 0 && self.first[j] == keys[e] {
                self.taken[j] = true;
                accept(x, row[x][e]);
                *keys = [0; 2];
            }
        }

        self.open.clear();
        for (keys, pair) in self.keys.iter().zip(&self.pairs) {
            for (&key, &j) in keys.iter().zip(&pair.j) {
                if key != 0 && !self.taken[j as usize] {
                    self.open.push((key, j));
                }
            }
        }
        self.open.sort_unstable_by(|a, b| b.cmp(a));
        for &(key, j) in &self.open {
            let x = key_x(key);
            if self.keys[x] != [0; 2] && !self.taken[j as usize] {
                self.taken[j as usize] = true;
                self.keys[x] = [0; 2];
                let e = usize::from(row[x][0].d != key_d(key));
                accept(x, row[x][e]);
            }
        }
    }
}

impl Pair {
    /// One iteration at a left pixel: new `rho` from the claims of the iteration before; gives the `beta` used.
    #[inline(always)]
    fn step(&mut self, before: &[Claims], theta: i32) -> [i32; 2] {
        let beta = [0, 1].map(|e| before[self.j[e] as usize].rival(self.rho[e]));
        self.rho =
            [self.score[0] - theta.max(self.score[1] - beta[1]), self.score[1] - theta.max(self.score[0] - beta[0])];
        beta
    }
}
