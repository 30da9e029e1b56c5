//! The last pass over a row: the remaining directions, the sum, and both maps' winners
//! (sgm.md, sections 3 and 4), pixel by pixel while the sums are in the nearest cache.

// Every function here is one unsafe operation next to another; the contracts are on the types they take.
#![allow(unsafe_op_in_unsafe_fn)]

use super::{
    horizontal::HorizontalPath,
    sweep::{PathRow, step, widen_sum},
    vector::Vector,
};
use crate::SUBPIXEL_BITS;

/// A sum that never wins and that no uniqueness threshold exceeds; real sums are at most 8 * 255.
pub(super) const PADDED_SUM: u16 = 0x4000;
/// An invalid pixel of a raw map (sgm.md, section 5.1).
pub(super) const INVALID: u16 = u16::MAX;

/// What winner-takes-all needs and keeps of a row.
///
/// # Safety
/// `thresholds` has an entry per possible sum, `scratch` and `indices` hold one pixel's sums as 16-bit
/// even/odd vectors, `right` is as [`RightRow`] says, `left` has one entry per column.
#[derive(Clone, Copy)]
pub(super) struct WinnerRow {
    pub(super) disparities: usize,
    pub(super) subpixel: bool,
    /// By winning sum: other sums below this make the pixel ambiguous.
    pub(super) thresholds: *const u16,
    pub(super) scratch: *mut u8,
    /// The disparity of every lane.
    pub(super) indices: *const u8,
    pub(super) right: RightRow,
    /// The row of the left map.
    pub(super) left: *mut u16,
}

/// The running winners of the right map's columns: entry `u = width - 1 - x + d` is the right column that
/// left `x` meets at `d`. Even and odd `u` are apart, as even and odd `d` of the sums are: for a given
/// `x`, one parity of `d` falls on one parity of `u`, in the same order.
///
/// # Safety
/// Every array has `(width + vectors * LANES) / 2 + 1` entries.
#[derive(Clone, Copy)]
pub(super) struct RightRow {
    pub(super) sums: [*mut u16; 2],
    pub(super) disparities: [*mut u16; 2],
}

/// The last pass over a row.
///
/// # Safety
/// As the types of its fields; `cost` and `backward` are `[x][d]` bytes, `sum` is `[x][d]` as 16-bit
/// even/odd vectors, all with `vectors * LANES` disparities.
pub(super) struct FinishRow {
    pub(super) width: usize,
    pub(super) vectors: usize,
    pub(super) slot: usize,
    pub(super) p1: u8,
    pub(super) directions: usize,
    pub(super) paths: [PathRow; 3],
    pub(super) pairs: bool,
    /// Left-to-right.
    pub(super) forward: HorizontalPath,
    pub(super) cost: *const u8,
    /// `S` of right-to-left.
    pub(super) backward: *const u8,
    pub(super) sum: *const u8,
    pub(super) winner: WinnerRow,
}

#[inline(always)]
pub(super) unsafe fn finish_row<V: Vector>(b: &FinishRow) {
    match (b.directions, b.pairs) {
        (1, false) => finish::<V, 1, 3, false>(b),
        (1, true) => finish::<V, 1, 3, true>(b),
        (3, false) => finish::<V, 3, 5, false>(b),
        (3, true) => finish::<V, 3, 5, true>(b),
        _ => unreachable!("{} directions", b.directions),
    }
}

/// `N` directions from the row before, `S` = `N` + both horizontal ones.
#[inline(always)]
unsafe fn finish<V: Vector, const N: usize, const S: usize, const PAIRS: bool>(b: &FinishRow) {
    let zero = V::splat8(0);
    let p1 = V::splat8(b.p1);
    let bytes = b.vectors * V::LANES;
    let [mut from, mut to] = b.forward.slots;
    let mut forward_m = V::splat8(0);
    super::horizontal::begin_path(from, b.winner.disparities, bytes);
    for x in 0..b.width {
        let (mut m, mut p2, mut lowest, mut below) = ([zero; N], [zero; N], [V::splat8(255); N], [zero; N]);
        for i in 0..N {
            m[i] = V::splat8(*b.paths[i].m.add(x));
            p2[i] = V::splat8(*b.paths[i].p2.add(x));
            below[i] = V::load(b.paths[i].l.add(x * b.slot).sub(1));
        }
        let forward_p2 = V::splat8(*b.forward.p2.add(x));
        let mut forward_lowest = V::splat8(255);
        let mut lowest_sum = V::splat16(PADDED_SUM);
        let u = b.width - 1 - x;
        for v in 0..b.vectors {
            let d = v * V::LANES;
            let c = V::load(b.cost.add(x * bytes + d));
            let mut s = [zero; S];
            for i in 0..N {
                let at = b.paths[i].l.add(x * b.slot + d);
                s[i] = step(V::load(at), below[i], V::load(at.add(1)), m[i], p1, p2[i]);
                // Read before the store below changes its first byte.
                below[i] = V::load(at.add(V::LANES).sub(1));
                let l = c.adds8(s[i]);
                l.store(at);
                lowest[i] = lowest[i].min8(l);
            }
            let at = from.add(d);
            s[N] = step(V::load(at), V::load(at.sub(1)), V::load(at.add(1)), forward_m, p1, forward_p2);
            let l = c.adds8(s[N]);
            l.store(to.add(d));
            forward_lowest = forward_lowest.min8(l);
            s[N + 1] = V::load(b.backward.add(x * bytes + d));

            let (even, odd) = widen_sum::<V, S, PAIRS>(s);
            let sum = b.sum.add(2 * (x * bytes + d));
            let even = even.add16(V::load(sum));
            let odd = odd.add16(V::load(sum.add(V::LANES)));
            lowest_sum = lowest_sum.min16(even.min16(odd));
            even.store(b.winner.scratch.add(2 * d));
            odd.store(b.winner.scratch.add(2 * d + V::LANES));
            let indices = b.winner.indices.add(2 * d);
            b.winner.right.update(u, d, even, V::load(indices));
            b.winner.right.update(u + 1, d, odd, V::load(indices.add(V::LANES)));
        }
        for (path, lowest) in b.paths.iter().zip(lowest) {
            *path.m.add(x) = lowest.spread_min8().first8();
        }
        forward_m = forward_lowest.spread_min8();
        std::mem::swap(&mut from, &mut to);
        *b.winner.left.add(x) = b.winner.left_winner::<V>(b.vectors, lowest_sum.lowest16());
    }
}

impl RightRow {
    /// Offers the sums of `LANES / 2` disparities, every second one from `u` and `d` on. `x` ascends, so
    /// `d` does for a given column, and the first of equal sums stays.
    #[inline(always)]
    unsafe fn update<V: Vector>(&self, u: usize, d: usize, sums: V, disparities: V) {
        let at = (u + d) / 2;
        let best = self.sums[u % 2].add(at).cast::<u8>();
        let best_d = self.disparities[u % 2].add(at).cast::<u8>();
        let old = V::load(best);
        sums.select_lt16(old, disparities, V::load(best_d)).store(best_d);
        sums.min16(old).store(best);
    }
}

impl WinnerRow {
    /// The left map's value for the sums in `scratch`, whose smallest is `lowest`.
    #[inline(always)]
    unsafe fn left_winner<V: Vector>(&self, vectors: usize, lowest: u16) -> u16 {
        let threshold = *self.thresholds.add(lowest.into());
        let (equal, below) = (V::splat16(lowest), V::splat16(threshold));
        let mut winner = u32::MAX;
        let mut rivals = 0;
        for v in 0..vectors {
            let d = v * V::LANES;
            let even = V::load(self.scratch.add(2 * d));
            let odd = V::load(self.scratch.add(2 * d + V::LANES));
            rivals += even.lt16(below).count_ones() + odd.lt16(below).count_ones();
            let (in_even, in_odd) = (even.eq16(equal), odd.eq16(equal));
            if in_even | in_odd != 0 {
                // `trailing_zeros` of no bit is 32: beyond every lane.
                let first = (2 * in_even.trailing_zeros()).min(2 * in_odd.trailing_zeros() + 1);
                winner = winner.min(d as u32 + first);
            }
        }
        let d = winner as usize;
        let sum = |d: usize| {
            let (v, lane) = (d / V::LANES, d % V::LANES);
            *self.scratch.cast::<u16>().add(v * V::LANES + lane % 2 * (V::LANES / 2) + lane / 2)
        };
        let inner = d > 0 && d + 1 < self.disparities;
        let before = if d > 0 { sum(d - 1) } else { PADDED_SUM };
        let after = if d + 1 < self.disparities { sum(d + 1) } else { PADDED_SUM };
        let near = [lowest, before, after].into_iter().filter(|&s| s < threshold).count() as u32;
        if rivals > near {
            return INVALID;
        }
        if !self.subpixel {
            return winner as u16;
        }
        let (a, b, c) = (i32::from(before), i32::from(after), i32::from(lowest));
        let (n, q) = (a - b, a - 2 * c + b);
        let correction = if inner && q != 0 { ((n << SUBPIXEL_BITS) + q) / (2 * q) } else { 0 };
        (((winner as i32) << SUBPIXEL_BITS) + correction) as u16
    }
}
