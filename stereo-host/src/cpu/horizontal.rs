//! The right-to-left direction of one row (sgm.md, section 3). Left-to-right is part of [`super::finish`].

// Every function here is one unsafe operation next to another; the contracts are on the types they take.
#![allow(unsafe_op_in_unsafe_fn)]

use super::{sweep::step, vector::Vector};

/// Two slots that the path costs of a horizontal path alternate between, and the `M` of the current one.
///
/// # Safety
/// `slots[i]` has `vectors * LANES` bytes, one byte of 255 on either side.
#[derive(Clone, Copy)]
pub(super) struct HorizontalPath {
    pub(super) slots: [*mut u8; 2],
    /// `P2` of every pixel in this direction.
    pub(super) p2: *const u8,
}

/// `S` of the right-to-left direction of a whole row.
///
/// # Safety
/// `cost` and `out` are `[x][d]` with `vectors * LANES` bytes per pixel; as [`HorizontalPath`].
pub(super) struct BackwardRow {
    pub(super) width: usize,
    pub(super) vectors: usize,
    pub(super) disparities: usize,
    pub(super) p1: u8,
    pub(super) path: HorizontalPath,
    pub(super) cost: *const u8,
    pub(super) out: *mut u8,
}

/// Makes `slot` the predecessor of a path's first pixel: zeros, 255 in padded disparities.
#[inline(always)]
pub(super) unsafe fn begin_path(slot: *mut u8, disparities: usize, bytes: usize) {
    slot.write_bytes(0, disparities);
    slot.add(disparities).write_bytes(u8::MAX, bytes - disparities);
}

#[inline(always)]
pub(super) unsafe fn backward_row<V: Vector>(row: &BackwardRow) {
    let bytes = row.vectors * V::LANES;
    let p1 = V::splat8(row.p1);
    let mut m = V::splat8(0);
    let [mut from, mut to] = row.path.slots;
    begin_path(from, row.disparities, bytes);
    for x in (0..row.width).rev() {
        let p2 = V::splat8(*row.path.p2.add(x));
        let mut lowest = V::splat8(255);
        for v in 0..row.vectors {
            let d = v * V::LANES;
            let at = from.add(d);
            let s = step(V::load(at), V::load(at.sub(1)), V::load(at.add(1)), m, p1, p2);
            s.store(row.out.add(x * bytes + d));
            let l = V::load(row.cost.add(x * bytes + d)).adds8(s);
            l.store(to.add(d));
            lowest = lowest.min8(l);
        }
        m = lowest.spread_min8();
        std::mem::swap(&mut from, &mut to);
    }
}
