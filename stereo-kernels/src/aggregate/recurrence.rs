//! The recurrence of path aggregation (sgm.md, section 3), in the registers of a group of lanes.
//!
//! A pixel's disparities are spread over the lanes of a group. With `M = min_d L(p-r, d)`, a step
//! computes `min(L(d), L(d-1) + P1, L(d+1) + P1, M + P2) + C(d) - M` in packed 16-bit lanes.
//! Neighbours are other registers; only a lane's ends come from other lanes.
//!
//! A lane holds one chunk of disparities or several: several take the fewest instructions per cost,
//! one has the shortest step, for directions with too few paths to fill a GPU.

use crate::{
    gpu::{
        global::{Global, GlobalMut},
        packed, warp,
    },
    layout::{CHUNK, REGISTERS, WORDS, pack, unpack},
};

/// Larger than any path cost plus penalty, and an ordered positive half-precision pattern.
const UNREACHABLE: u32 = 0x3fff;

/// The smallest of the group's values, each in both halves, and what `meanwhile` shuffles.
///
/// A warp issues in order, so that shuffles beside this chain cost a latency of their own unless they
/// run during one of its. The chain's second shuffle is made to hang on the highest bits of what
/// `meanwhile` returns, which path costs do not have: so the assembler cannot move those behind it.
#[inline(always)]
fn smallest_of_group(of_lane: u32, lanes: u32, meanwhile: impl FnOnce() -> [u32; 2]) -> (u32, [u32; 2]) {
    let mut smallest = packed::min_across(of_lane);
    let other = if lanes > 1 { warp::shuffle_xor(smallest, 1, lanes) } else { smallest };
    let shuffled = meanwhile();
    smallest = packed::min(smallest, other);
    let mut zero = (shuffled[0] & shuffled[1]) >> 31;
    let mut distance = 2;
    while distance < lanes {
        smallest = packed::min(smallest, warp::shuffle_xor(smallest, distance + zero, lanes));
        zero = 0;
        distance *= 2;
    }
    (smallest, shuffled)
}

/// One packed register's step: the costs, their neighbours below and above, `M`, `M + P2`, `P1` and
/// the matching cost.
#[inline(always)]
fn advance([cost, below, above]: [u32; 3], smallest: u32, cap: u32, p1: u32, matching: u32) -> u32 {
    let step = packed::add(packed::min(below, above), p1);
    let reached = packed::min(packed::min(cost, step), cap);
    packed::sub(packed::add(reached, matching), smallest)
}

/// A lane's costs of one pixel as they lie in memory: `C` chunks. Passed by reference and filled word
/// by word: of whole values the compiler makes 64-bit registers, which the code then takes apart.
pub type Words<const C: usize> = [[u32; WORDS]; C];

/// Bytes of [`Words`].
pub const fn bytes<const C: usize>() -> u32 {
    CHUNK * C as u32
}

/// The path costs of one lane's `C` chunks of disparities at the current pixel of a path.
pub struct Recurrence<const C: usize> {
    costs: [[u32; REGISTERS]; C],
    p1: u32,
    lanes: u32,
    below_first: u32,
    above_last: u32,
}

impl<const C: usize> Recurrence<C> {
    /// The state before a path's first pixel, where `p2 = 0` must be given. `p1` is packed, `lane`
    /// this thread's index in its group of `lanes`.
    #[inline(always)]
    pub fn new(p1: u32, lane: u32, lanes: u32) -> Self {
        Self {
            costs: [[0; REGISTERS]; C],
            p1,
            lanes,
            below_first: if lane == 0 { UNREACHABLE << 16 } else { 0 },
            above_last: if lane == lanes - 1 { UNREACHABLE } else { 0 },
        }
    }

    /// Moves on to the next pixel: turns its matching costs into its path costs. `p2 = 0` restarts the
    /// path: the path costs are then the matching costs.
    #[inline(always)]
    pub fn step(&mut self, words: &mut Words<C>, p2: u32) {
        let last = REGISTERS - 1;
        let (smallest, ends) = smallest_of_group(self.smallest(), self.lanes, || {
            let previous = warp::shuffle_up(self.costs[C - 1][last], 1, self.lanes);
            [previous, warp::shuffle_down(self.costs[0][0], 1, self.lanes)]
        });
        let (previous_lane, next_lane) = (ends[0] | self.below_first, ends[1] | self.above_last);
        let cap = packed::add(smallest, packed::splat(p2));

        let mut next = [[0; REGISTERS]; C];
        let mut c = 0;
        while c < C {
            let l = self.costs[c];
            let low = if c == 0 { previous_lane } else { self.costs[c - 1][last] };
            let high = if c == C - 1 { next_lane } else { self.costs[c + 1][0] };
            let matching = unpack(words[c][0], words[c][1]);
            let mut i = 0;
            while i < REGISTERS {
                // Below the first register lie the last disparity of the chunk before and, in the
                // upper half, this chunk's own last of the lower half; above the last the reverse.
                let below = if i == 0 { packed::permute(low, l[last], 0x5432) } else { l[i - 1] };
                let above = if i == last { packed::permute(l[0], high, 0x5432) } else { l[i + 1] };
                next[c][i] = advance([l[i], below, above], smallest, cap, self.p1, matching[i]);
                i += 1;
            }
            words[c][0] = pack(next[c][0], next[c][1]);
            words[c][1] = pack(next[c][2], next[c][3]);
            c += 1;
        }
        self.costs = next;
    }

    /// The smallest path cost of this lane, per half.
    #[inline(always)]
    fn smallest(&self) -> u32 {
        let mut smallest = self.costs[0][0];
        let mut c = 0;
        while c < C {
            let [l0, l1, l2, l3] = self.costs[c];
            let of_chunk = packed::min(packed::min(l0, l1), packed::min(l2, l3));
            smallest = if c == 0 { of_chunk } else { packed::min(smallest, of_chunk) };
            c += 1;
        }
        smallest
    }
}

/// Loads from byte `at` of a volume.
#[inline(always)]
pub fn load<const C: usize>(volume: Global<u8>, at: usize, words: &mut Words<C>) {
    if C == 1 {
        let [w0, w1] = volume.get_x2(at);
        words[0][0] = w0;
        words[0][1] = w1;
    }
    let mut c = 0;
    while c + 1 < C {
        let [w0, w1, w2, w3] = volume.get_x4(at + c * CHUNK as usize);
        words[c][0] = w0;
        words[c][1] = w1;
        words[c + 1][0] = w2;
        words[c + 1][1] = w3;
        c += 2;
    }
}

/// Loads from byte `at` of shared memory.
#[cfg(bulk_copies)]
#[inline(always)]
pub fn load_shared<const C: usize>(data: crate::gpu::shared::Shared<u8>, at: u32, words: &mut Words<C>) {
    if C == 1 {
        let [w0, w1] = data.get_x2(at);
        words[0][0] = w0;
        words[0][1] = w1;
    }
    let mut c = 0;
    while c + 1 < C {
        let [w0, w1, w2, w3] = data.get_x4(at + c as u32 * CHUNK);
        words[c][0] = w0;
        words[c][1] = w1;
        words[c + 1][0] = w2;
        words[c + 1][1] = w3;
        c += 2;
    }
}

/// Stores to byte `at` of a volume.
#[inline(always)]
pub fn store<const C: usize>(volume: GlobalMut<u8>, at: usize, words: &Words<C>) {
    if C == 1 {
        volume.set_x2(at, [words[0][0], words[0][1]]);
    }
    let mut c = 0;
    while c + 1 < C {
        let four = [words[c][0], words[c][1], words[c + 1][0], words[c + 1][1]];
        volume.set_x4(at + c * CHUNK as usize, four);
        c += 2;
    }
}
