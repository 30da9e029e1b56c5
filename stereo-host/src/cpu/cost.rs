//! The matching cost (sgm.md, section 2) of a run of pixels, one byte per disparity.
//!
//! The right image's planes are stored mirrored, so that the disparities of a left pixel read
//! ascending bytes; clamping or zeroing outside the row is part of that copy, not of this loop.

// Every function here is one unsafe operation next to another; the contracts are on the types they take.
#![allow(unsafe_op_in_unsafe_fn)]

use super::vector::Vector;

/// Costs of the left pixels `x0..x1` of a row.
///
/// # Safety
/// `left` points at `planes` rows of descriptor bytes, `left_stride` apart, each indexed by `x`;
/// `right` likewise at mirrored rows in which `width - 1 - x + d` is the byte that left `x` is compared
/// with at `d`, readable up to `d < vectors * LANES`; `pad` and `out` are `[d]` and `[x - x0][d]`, with
/// `vectors * LANES` bytes per pixel.
pub(super) struct CostBlock {
    pub(super) x0: usize,
    pub(super) x1: usize,
    pub(super) width: usize,
    pub(super) vectors: usize,
    pub(super) planes: usize,
    /// Whether the cost is `(h + 1) / 2` rather than `h`.
    pub(super) halve: bool,
    pub(super) left: *const u8,
    pub(super) left_stride: usize,
    pub(super) right: *const u8,
    pub(super) right_stride: usize,
    /// 255 in padded disparities, else 0.
    pub(super) pad: *const u8,
    pub(super) out: *mut u8,
}

#[inline(always)]
pub(super) unsafe fn cost_block<V: Vector>(block: &CostBlock) {
    match (block.planes, block.halve) {
        (4, false) => costs::<V, 4, false>(block),
        (6, true) => costs::<V, 6, true>(block),
        (8, true) => costs::<V, 8, true>(block),
        _ => unreachable!("no census has {} planes", block.planes),
    }
}

#[inline(always)]
unsafe fn costs<V: Vector, const PLANES: usize, const HALVE: bool>(b: &CostBlock) {
    let mut out = b.out;
    for x in b.x0..b.x1 {
        let mut left = [V::splat8(0); PLANES];
        for (plane, bytes) in left.iter_mut().enumerate() {
            *bytes = V::splat8(*b.left.add(plane * b.left_stride + x));
        }
        let right = b.right.add(b.width - 1 - x);
        for v in 0..b.vectors {
            let d = v * V::LANES;
            let mut h = V::splat8(0);
            for (plane, &bytes) in left.iter().enumerate() {
                h = h.adds8(bytes.xor(V::load(right.add(plane * b.right_stride + d))).popcount8());
            }
            if HALVE {
                h = h.halve_up8();
            }
            h.adds8(V::load(b.pad.add(d))).store(out);
            out = out.add(V::LANES);
        }
    }
}
