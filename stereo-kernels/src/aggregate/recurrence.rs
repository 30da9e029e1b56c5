//! The recurrence of path aggregation (sgm.md, section 3), in the registers of a group of lanes.
//!
//! A pixel's disparities are spread over the lanes of a group. With `M = min_d L(p-r, d)`, a step
//! computes `min(L(d), L(d-1) + P1, L(d+1) + P1, M + P2) + C(d) - M` in packed 16-bit lanes.
//! Neighbours are other registers; only a lane's ends come from other lanes.
//!
//! Two ways to spread them: [`Chunks`] keeps whole chunks in a lane, the fewest instructions per cost;
//! [`Half`] keeps half a chunk, a shorter step on twice the lanes, for directions with too few paths
//! to fill a GPU.

use crate::{
    gpu::{
        global::{Global, GlobalMut},
        packed,
        shared::Shared,
        warp,
    },
    layout::{CHUNK, REGISTERS, WORDS, pack, unpack},
};

/// Larger than any path cost plus penalty, and an ordered positive half-precision pattern.
const UNREACHABLE: u32 = 0x3fff;

/// A lane's part of a path: its disparities' path costs at the current pixel.
pub trait Part: Sized {
    /// A lane's costs of one pixel as they lie in memory.
    type Words: Copy;
    /// Bytes of [`Part::Words`].
    const BYTES: u32;
    /// Any value: what a pipeline holds before its first load.
    const EMPTY: Self::Words;

    /// The state before a path's first pixel, where `p2 = 0` must be given. `lane` is this thread's
    /// index in its group of `lanes`.
    fn new(p1: u32, lane: u32, lanes: u32) -> Self;

    /// Moves on to the next pixel, whose matching costs are `matching`, and returns its path costs.
    /// `p2 = 0` restarts the path: the result is then `matching`.
    fn step(&mut self, matching: Self::Words, p2: u32) -> Self::Words;

    /// Loads from byte `at` of a volume.
    fn load(volume: Global<u8>, at: usize) -> Self::Words;

    /// Loads from byte `at` of shared memory.
    fn load_shared(data: Shared<u8>, at: u32) -> Self::Words;

    /// Stores to byte `at` of a volume.
    fn store(volume: GlobalMut<u8>, at: usize, words: Self::Words);
}

/// The smallest of the group's values, each in both halves.
#[inline(always)]
fn smallest_of_group(of_lane: u32, lanes: u32) -> u32 {
    let mut smallest = packed::min_across(of_lane);
    let mut distance = 1;
    while distance < lanes {
        smallest = packed::min(smallest, warp::shuffle_xor(smallest, distance, lanes));
        distance *= 2;
    }
    smallest
}

/// One packed register's step: the costs, their neighbours below and above, `M`, `M + P2`, `P1` and
/// the matching cost.
#[inline(always)]
fn advance([cost, below, above]: [u32; 3], smallest: u32, cap: u32, p1: u32, matching: u32) -> u32 {
    let step = packed::add(packed::min(below, above), p1);
    let reached = packed::min(packed::min(cost, step), cap);
    packed::sub(packed::add(reached, matching), smallest)
}

/// `C` whole chunks in a lane.
pub struct Chunks<const C: usize> {
    costs: [[u32; REGISTERS]; C],
    p1: u32,
    lanes: u32,
    below_first: u32,
    above_last: u32,
}

impl<const C: usize> Part for Chunks<C> {
    type Words = [[u32; WORDS]; C];
    const BYTES: u32 = CHUNK * C as u32;
    const EMPTY: Self::Words = [[0; WORDS]; C];

    #[inline(always)]
    fn new(p1: u32, lane: u32, lanes: u32) -> Self {
        Self {
            costs: [[0; REGISTERS]; C],
            p1: packed::splat(p1),
            lanes,
            below_first: if lane == 0 { UNREACHABLE << 16 } else { 0 },
            above_last: if lane == lanes - 1 { UNREACHABLE } else { 0 },
        }
    }

    #[inline(always)]
    fn step(&mut self, matching: Self::Words, p2: u32) -> Self::Words {
        let last = REGISTERS - 1;
        let previous_lane = warp::shuffle_up(self.costs[C - 1][last], 1, self.lanes) | self.below_first;
        let next_lane = warp::shuffle_down(self.costs[0][0], 1, self.lanes) | self.above_last;
        let smallest = smallest_of_group(self.smallest(), self.lanes);
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
                next[c][i] = advance([l[i], below, above], smallest, cap, self.p1, matching[i]);
                i += 1;
            }
            result[c] = pack(next[c]);
            c += 1;
        }
        self.costs = next;
        result
    }

    #[inline(always)]
    fn load(volume: Global<u8>, at: usize) -> Self::Words {
        let mut words = Self::EMPTY;
        let mut c = 0;
        while c < C {
            words[c] = volume.get_x4(at + c * CHUNK as usize);
            c += 1;
        }
        words
    }

    #[inline(always)]
    fn load_shared(data: Shared<u8>, at: u32) -> Self::Words {
        let mut words = Self::EMPTY;
        let mut c = 0;
        while c < C {
            words[c] = data.get_x4(at + c as u32 * CHUNK);
            c += 1;
        }
        words
    }

    #[inline(always)]
    fn store(volume: GlobalMut<u8>, at: usize, words: Self::Words) {
        let mut c = 0;
        while c < C {
            volume.set_x4(at + c * CHUNK as usize, words[c]);
            c += 1;
        }
    }
}

impl<const C: usize> Chunks<C> {
    /// The smallest path cost of this lane, per half.
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
        smallest
    }
}

/// Registers of half a chunk: an even lane holds disparities `(i, i + 8)` for `i` in `0..4`, the odd
/// lane after it those for `i` in `4..8`.
const HALF_REGISTERS: usize = REGISTERS / 2;

/// Half a chunk in a lane.
pub struct Half {
    costs: [u32; HALF_REGISTERS],
    p1: u32,
    lanes: u32,
    /// How the neighbours below the first register and above the last come out of the two lanes'.
    select_below: u32,
    select_above: u32,
    below_first: u32,
    above_last: u32,
}

impl Part for Half {
    type Words = [u32; WORDS / 2];
    const BYTES: u32 = CHUNK / 2;
    const EMPTY: Self::Words = [0; WORDS / 2];

    #[inline(always)]
    fn new(p1: u32, lane: u32, lanes: u32) -> Self {
        // Below an even lane's first register (0, 8) are 15 of the chunk before, in the high half of
        // the previous lane's last register, and 7, in the low half of the next lane's last. Above an
        // odd lane's last (7, 15) are 8, in the high half of the previous lane's first register, and
        // 0 of the chunk after, in the low half of the next lane's first. The other two are whole
        // registers of the neighbour lane.
        let even = lane.is_multiple_of(2);
        Self {
            costs: [0; HALF_REGISTERS],
            p1: packed::splat(p1),
            lanes,
            select_below: if even { 0x5432 } else { 0x3210 },
            select_above: if even { 0x3210 } else { 0x1076 },
            below_first: if lane == 0 { UNREACHABLE } else { 0 },
            above_last: if lane == lanes - 1 { UNREACHABLE << 16 } else { 0 },
        }
    }

    #[inline(always)]
    fn step(&mut self, matching: Self::Words, p2: u32) -> Self::Words {
        let last = HALF_REGISTERS - 1;
        let l = self.costs;
        let of_previous = |register: u32| warp::shuffle_up(register, 1, self.lanes);
        let of_next = |register: u32| warp::shuffle_down(register, 1, self.lanes);
        let below_first = packed::permute(of_previous(l[last]), of_next(l[last]), self.select_below) | self.below_first;
        let above_last = packed::permute(of_next(l[0]), of_previous(l[0]), self.select_above) | self.above_last;

        let smallest = packed::min(packed::min(l[0], l[1]), packed::min(l[2], l[3]));
        let smallest = smallest_of_group(smallest, self.lanes);
        let cap = packed::add(smallest, packed::splat(p2));

        let [low, high] = matching;
        let matching = unpack([low, high, 0, 0]);
        let mut next = [0; REGISTERS];
        let mut i = 0;
        while i < HALF_REGISTERS {
            let below = if i == 0 { below_first } else { l[i - 1] };
            let above = if i == last { above_last } else { l[i + 1] };
            next[i] = advance([l[i], below, above], smallest, cap, self.p1, matching[i]);
            self.costs[i] = next[i];
            i += 1;
        }
        let [low, high, ..] = pack(next);
        [low, high]
    }

    #[inline(always)]
    fn load(volume: Global<u8>, at: usize) -> Self::Words {
        volume.get_x2(at)
    }

    #[inline(always)]
    fn load_shared(data: Shared<u8>, at: u32) -> Self::Words {
        data.get_x2(at)
    }

    #[inline(always)]
    fn store(volume: GlobalMut<u8>, at: usize, words: Self::Words) {
        volume.set_x2(at, words);
    }
}
