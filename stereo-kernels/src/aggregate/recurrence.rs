//! The recurrence of path aggregation (sgm.md, section 3), in the registers of a group of lanes.
//!
//! A pixel's disparities are spread over the lanes of a group, [`CHUNK`](crate::layout::CHUNK) times
//! `C` each. With `M = min_d L(p-r, d)`, a step computes
//! `min(L(d), L(d-1) + P1, L(d+1) + P1, M + P2) + C(d) - M` in packed 16-bit lanes. Neighbours are
//! other registers; only a lane's two ends come from other lanes.

use crate::{
    gpu::{packed, warp},
    layout::{REGISTERS, WORDS, pack, unpack},
};

/// Larger than any path cost plus penalty, and an ordered positive half-precision pattern.
const UNREACHABLE: u32 = 0x3fff;

/// The path costs of one lane's disparities at the current pixel of a path.
pub struct Recurrence<const C: usize> {
    costs: [[u32; REGISTERS]; C],
    p1: u32,
    lanes: u32,
    below_first: u32,
    above_last: u32,
}

impl<const C: usize> Recurrence<C> {
    /// The state before a path's first pixel, where `p2 = 0` must be given. `lane` is this thread's
    /// index in its group of `lanes`.
    #[inline(always)]
    pub fn new(p1: u32, lane: u32, lanes: u32) -> Self {
        Self {
            costs: [[0; REGISTERS]; C],
            p1: packed::splat(p1),
            lanes,
            below_first: if lane == 0 { UNREACHABLE << 16 } else { 0 },
            above_last: if lane == lanes - 1 { UNREACHABLE } else { 0 },
        }
    }

    /// Moves on to the next pixel, whose matching costs are `matching`, and returns its path costs.
    /// `p2 = 0` restarts the path: the result is then `matching`.
    #[inline(always)]
    pub fn step(&mut self, matching: [[u32; WORDS]; C], p2: u32) -> [[u32; WORDS]; C] {
        let last = REGISTERS - 1;
        let previous_lane = warp::shuffle_up(self.costs[C - 1][last], 1, self.lanes) | self.below_first;
        let next_lane = warp::shuffle_down(self.costs[0][0], 1, self.lanes) | self.above_last;

        let smallest = self.smallest();
        let cap = packed::add(smallest, packed::splat(p2));

        let mut result = [[0; WORDS]; C];
        let mut next = [[0; REGISTERS]; C];
        let mut c = 0;
        while c < C {
            let l = self.costs[c];
            let low = if c == 0 { previous_lane } else { self.costs[c - 1][last] };
            let high = if c == C - 1 { next_lane } else { self.costs[c + 1][0] };
            let matching = unpack(matching[c]);
            let mut i = 0;
            while i < REGISTERS {
                let below = if i == 0 { packed::permute(low, l[last], 0x5432) } else { l[i - 1] };
                let above = if i == last { packed::permute(l[0], high, 0x5432) } else { l[i + 1] };
                let step = packed::add(packed::min(below, above), self.p1);
                let reached = packed::min(packed::min(l[i], step), cap);
                next[c][i] = packed::sub(packed::add(reached, matching[i]), smallest);
                i += 1;
            }
            result[c] = pack(next[c]);
            c += 1;
        }
        self.costs = next;
        result
    }

    /// The smallest path cost over all disparities, in both halves.
    #[inline(always)]
    fn smallest(&self) -> u32 {
        let mut smallest = self.costs[0][0];
        let mut c = 0;
        while c < C {
            let l = self.costs[c];
            let quarter = |i: usize| packed::min(l[i], l[i + 4]);
            let half = packed::min(packed::min(quarter(0), quarter(1)), packed::min(quarter(2), quarter(3)));
            smallest = if c == 0 { half } else { packed::min(smallest, half) };
            c += 1;
        }
        smallest = packed::min_across(smallest);
        let mut distance = 1;
        while distance < self.lanes {
            smallest = packed::min(smallest, warp::shuffle_xor(smallest, distance, self.lanes));
            distance *= 2;
        }
        smallest
    }
}
