//! The directions that come from the row before (sgm.md, section 3): vertical alone, or with both obliques.
//!
//! # How the path costs of a row are kept
//! Every direction has a row of `L` in *slots*, one per path rather than per column, so that a pixel's
//! new `L` overwrites its predecessor's: an oblique direction's base pointer moves by one slot per row
//! instead ([`super::state`]). A slot holds the disparities and at least one byte of 255 after them,
//! which is at once this pixel's neighbour `D` and the next slot's neighbour `-1`. Padded disparities
//! cost 255 and stay 255 by saturation: `M <= 31` and `P2 <= 255 - 31`, so they are never the cheapest
//! neighbour. A path that begins is a slot of zeros with `M = 0`, for which `S` comes out 0.

// Every function here is one unsafe operation next to another; the contracts are on the types they take.
#![allow(unsafe_op_in_unsafe_fn)]

use super::vector::Vector;

/// One direction's row.
///
/// # Safety
/// `l`, `m` and `p2` are indexed by column over the columns that a kernel is asked for: `l` in steps of
/// a slot (one readable vector beyond its last and one byte before its first), the others in bytes.
#[derive(Clone, Copy)]
pub(super) struct PathRow {
    /// `L` of the predecessor, replaced by `L` of the pixel.
    pub(super) l: *mut u8,
    /// `M` of the predecessor, replaced by `M` of the pixel.
    pub(super) m: *mut u8,
    pub(super) p2: *const u8,
}

/// A step of `paths` directions from one row to the next, for the columns `x0..x1`.
///
/// # Safety
/// As [`PathRow`]; `cost` is `[x - x0][d]`, `pad` `[d]` as 16-bit even/odd vectors; `sum`, unless null,
/// is the row `[x][d]` in the same form.
pub(super) struct SweepBlock {
    pub(super) x0: usize,
    pub(super) x1: usize,
    pub(super) vectors: usize,
    /// Bytes from one slot to the next.
    pub(super) slot: usize,
    pub(super) p1: u8,
    /// 1 or 3 directions, the unused rows are not touched.
    pub(super) directions: usize,
    pub(super) paths: [PathRow; 3],
    pub(super) cost: *const u8,
    /// A sum that never wins in padded disparities, else 0.
    pub(super) pad: *const u8,
    /// Receives all paths' costs plus these directions' `S`.
    pub(super) sum: *mut u8,
    /// Whether two `S` fit one byte.
    pub(super) pairs: bool,
}

#[inline(always)]
pub(super) unsafe fn sweep_block<V: Vector>(b: &SweepBlock) {
    match (b.directions, b.sum.is_null(), b.pairs) {
        (1, true, _) => sweep::<V, 1, false, true>(b),
        (1, false, _) => sweep::<V, 1, true, true>(b),
        (3, true, _) => sweep::<V, 3, false, true>(b),
        (3, false, true) => sweep::<V, 3, true, true>(b),
        (3, false, false) => sweep::<V, 3, true, false>(b),
        _ => unreachable!("{} directions", b.directions),
    }
}

/// `min(L(d), L(d-1) + P1, L(d+1) + P1) - M`, at most `P2`.
#[inline(always)]
pub(super) unsafe fn step<V: Vector>(l: V, below: V, above: V, m: V, p1: V, p2: V) -> V {
    l.min8(below.min8(above).adds8(p1)).subs8(m).min8(p2)
}

/// The even and odd lanes of a sum of `S`, two of which fit a byte when `PAIRS`.
#[inline(always)]
pub(super) unsafe fn widen_sum<V: Vector, const N: usize, const PAIRS: bool>(s: [V; N]) -> (V, V) {
    let (mut even, mut odd) = (V::splat16(0), V::splat16(0));
    let mut i = 0;
    while i < N {
        let paired = PAIRS && i + 1 < N;
        let next = if paired { s[i].adds8(s[i + 1]) } else { s[i] };
        (even, odd) = (even.add16(next.even()), odd.add16(next.odd()));
        i += if paired { 2 } else { 1 };
    }
    (even, odd)
}

#[inline(always)]
unsafe fn sweep<V: Vector, const N: usize, const SUM: bool, const PAIRS: bool>(b: &SweepBlock) {
    let zero = V::splat8(0);
    let p1 = V::splat8(b.p1);
    let bytes = b.vectors * V::LANES;
    let mut cost = b.cost;
    for x in b.x0..b.x1 {
        let (mut m, mut p2, mut lowest, mut below) = ([zero; N], [zero; N], [V::splat8(255); N], [zero; N]);
        for i in 0..N {
            m[i] = V::splat8(*b.paths[i].m.add(x));
            p2[i] = V::splat8(*b.paths[i].p2.add(x));
            below[i] = V::load(b.paths[i].l.add(x * b.slot).sub(1));
        }
        for v in 0..b.vectors {
            let d = v * V::LANES;
            let c = V::load(cost);
            cost = cost.add(V::LANES);
            let mut s = [zero; N];
            for i in 0..N {
                let at = b.paths[i].l.add(x * b.slot + d);
                s[i] = step(V::load(at), below[i], V::load(at.add(1)), m[i], p1, p2[i]);
                // Read before the store below changes its first byte.
                below[i] = V::load(at.add(V::LANES).sub(1));
                let l = c.adds8(s[i]);
                l.store(at);
                lowest[i] = lowest[i].min8(l);
            }
            if SUM {
                let (even, odd) = widen_sum::<V, N, PAIRS>(s);
                // All paths' costs: 8 * 31 fits a byte.
                let twice = c.adds8(c);
                let four = twice.adds8(twice);
                let all = if N == 3 { four.adds8(four) } else { four };
                let (pad, sum) = (b.pad.add(2 * d), b.sum.add(2 * (x * bytes + d)));
                even.add16(all.even()).add16(V::load(pad)).store(sum);
                odd.add16(all.odd()).add16(V::load(pad.add(V::LANES))).store(sum.add(V::LANES));
            }
        }
        for (path, lowest) in b.paths.iter().zip(lowest) {
            *path.m.add(x) = lowest.spread_min8().first8();
        }
    }
}
