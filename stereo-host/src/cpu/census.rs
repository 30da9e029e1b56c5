//! Census descriptors (sgm.md, section 1) as byte planes, and the adaptive `P2` (section 3).
//!
//! A descriptor is only ever compared by its Hamming distance, so its bits may be stored in any order:
//! plane `b` of a row holds bits `8b..8b + 8` of every pixel, which is what comes out of comparing
//! whole rows and what [`super::cost`] wants to read. Plain loops: the compiler vectorises them.

// Every function here is one unsafe operation next to another; the contracts are on the types they take.
#![allow(unsafe_op_in_unsafe_fn)]

use crate::Census;

/// Columns and rows that every image is widened by on each side: the largest census window's reach.
pub(super) const MARGIN_X: usize = 4;
pub(super) const MARGIN_Y: usize = 3;

/// Two neighbours, `(dx, dy)` each: the bit is set when the first is brighter than the second.
type Pair = [(isize, isize); 2];
/// The pairs of one plane; `(0, 0)` against itself is the bit that is never set.
type PlanePairs = [Pair; 8];

const UNUSED: Pair = [(0, 0), (0, 0)];

/// The pairs of a census window, cut into planes.
pub(super) fn planes(census: Census) -> Vec<PlanePairs> {
    let window = |reach_x: isize| {
        (-3..=3isize).flat_map(move |dy| (-reach_x..=reach_x).map(move |dx| (dx, dy))).filter(|&at| at != (0, 0))
    };
    let pairs: Vec<Pair> = match census {
        Census::Window7x7 => window(3).map(|at| [at, (0, 0)]).collect(),
        Census::Window9x7 => window(4).map(|at| [at, (0, 0)]).collect(),
        // The first half of the window, each against its mirror image.
        Census::Symmetric9x7 => window(4).take(31).map(|(dx, dy)| [(dx, dy), (-dx, -dy)]).collect(),
    };
    pairs.chunks(8).map(|chunk| std::array::from_fn(|i| chunk.get(i).copied().unwrap_or(UNUSED))).collect()
}

/// One plane of one row.
///
/// # Safety
/// `pixels` points at pixel `(0, y)` of an image with [`MARGIN_X`] and [`MARGIN_Y`] readable pixels
/// around it and rows `stride` elements apart; `out` has `width` writable bytes that do not overlap it.
pub(super) struct CensusRow<T> {
    pub(super) pixels: *const T,
    pub(super) stride: usize,
    pub(super) width: usize,
    pub(super) pairs: PlanePairs,
    pub(super) out: *mut u8,
}

#[inline(always)]
pub(super) unsafe fn census_row<T: Copy + PartialOrd>(row: &CensusRow<T>) {
    let shifted = |(dx, dy): (isize, isize)| {
        std::slice::from_raw_parts(row.pixels.offset(dy * row.stride as isize + dx), row.width)
    };
    let out = std::slice::from_raw_parts_mut(row.out, row.width);
    let [p0, p1, p2, p3, p4, p5, p6, p7] = row.pairs;
    // Two halves: eight bits at once would need more registers for pointers than there are.
    let first = [p0, p1, p2, p3];
    let [a0, a1, a2, a3] = first.map(|pair| shifted(pair[0]));
    let [b0, b1, b2, b3] = first.map(|pair| shifted(pair[1]));
    for x in 0..row.width {
        out[x] = u8::from(a0[x] > b0[x]) << 3
            | u8::from(a1[x] > b1[x]) << 2
            | u8::from(a2[x] > b2[x]) << 1
            | u8::from(a3[x] > b3[x]);
    }
    let second = [p4, p5, p6, p7];
    let [a0, a1, a2, a3] = second.map(|pair| shifted(pair[0]));
    let [b0, b1, b2, b3] = second.map(|pair| shifted(pair[1]));
    for x in 0..row.width {
        out[x] = out[x] << 4
            | u8::from(a0[x] > b0[x]) << 3
            | u8::from(a1[x] > b1[x]) << 2
            | u8::from(a2[x] > b2[x]) << 1
            | u8::from(a3[x] > b3[x]);
    }
}

/// The adaptive `P2` of one row and one path direction.
///
/// # Safety
/// `pixels` and `predecessors` point at `width` readable elements (the second at the predecessor of the
/// first's pixel 0), `out` at `width` writable bytes that do not overlap them.
pub(super) struct PenaltyRow<T> {
    pub(super) pixels: *const T,
    pub(super) predecessors: *const T,
    pub(super) width: usize,
    pub(super) p1: u8,
    pub(super) p2: u8,
    pub(super) out: *mut u8,
}

#[inline(always)]
pub(super) unsafe fn penalty_row<T: Copy + Into<i32>>(row: &PenaltyRow<T>) {
    let pixels = std::slice::from_raw_parts(row.pixels, row.width);
    let predecessors = std::slice::from_raw_parts(row.predecessors, row.width);
    let out = std::slice::from_raw_parts_mut(row.out, row.width);
    let (p1, p2) = (i32::from(row.p1), f32::from(row.p2));
    for x in 0..row.width {
        let (a, b): (i32, i32) = (pixels[x].into(), predecessors[x].into());
        // The rounded quotient of integers up to 255 and 65536 truncates like the exact one: below a
        // whole number it stays at least 1 / 65536 away, far more than half a unit in the last place.
        let quotient = p2 / ((a - b).abs() + 1) as f32;
        // SAFETY: 0 <= quotient <= 255.
        out[x] = quotient.to_int_unchecked::<i32>().max(p1) as u8;
    }
}
