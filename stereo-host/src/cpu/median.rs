//! The 3x3 median of raw maps (sgm.md, section 5.1). A plain loop: the compiler vectorises it.

// Every function here is one unsafe operation next to another; the contracts are on the types they take.
#![allow(unsafe_op_in_unsafe_fn)]

/// One row of the median; all four rows have the same width.
pub(super) struct MedianRow<'a> {
    pub(super) above: &'a [u16],
    pub(super) row: &'a [u16],
    pub(super) below: &'a [u16],
    pub(super) out: &'a mut [u16],
}

/// Writes the inner pixels of `out`; the first and last keep what they held.
#[inline(always)]
pub(super) unsafe fn median_row(rows: &mut MedianRow<'_>) {
    let width = rows.out.len();
    if width < 3 {
        return;
    }
    let (a, r, b) = (&rows.above[..width], &rows.row[..width], &rows.below[..width]);
    for (i, out) in rows.out[1..width - 1].iter_mut().enumerate() {
        let column = |x: usize| {
            let (low, high) = (a[x].min(r[x]), a[x].max(r[x]));
            let (middle, high) = (high.min(b[x]), high.max(b[x]));
            (low.min(middle), low.max(middle), high)
        };
        let (l0, m0, h0) = column(i);
        let (l1, m1, h1) = column(i + 1);
        let (l2, m2, h2) = column(i + 2);
        let middle = |x: u16, y: u16, z: u16| x.min(y).max(x.max(y).min(z));
        *out = middle(l0.max(l1).max(l2), middle(m0, m1, m2), h0.min(h1).min(h2));
    }
}
