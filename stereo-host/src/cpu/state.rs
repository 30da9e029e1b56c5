//! The path costs of one row in every direction of a sweep, and their copies between bands.

use std::ops::Range;

use super::{buffer::Buffer, plan::Plan, sweep::PathRow};

/// Bytes before the first and after the last slot that vectors may touch.
const GUARD: usize = 64;

/// Where a direction's path comes from, in columns: the predecessor is at `(x + dx, y - dy)`.
/// The vertical direction is first, so that four paths use just that one.
pub(super) const DIRECTIONS: [isize; 3] = [0, -1, 1];

/// `L` and `M` of one row in each direction, in slots (see [`super::sweep`]).
///
/// After `rows` steps, every direction's column 0 has moved; [`SweepState::rewind`] moves it back.
pub(super) struct SweepState {
    paths: Vec<Path>,
    rows: usize,
}

struct Path {
    dx: isize,
    l: Buffer,
    m: Buffer,
}

impl SweepState {
    pub(super) fn new(plan: &Plan) -> Self {
        let paths = DIRECTIONS[..plan.directions].iter().map(|&dx| {
            let slots = plan.width + margin(plan, dx);
            Path { dx, l: Buffer::new(2 * GUARD + slots * plan.slot, u8::MAX), m: Buffer::new(slots, 0) }
        });
        let mut state = Self { paths: paths.collect(), rows: 0 };
        state.begin(plan);
        state
    }

    /// The state before an image's first row: every path begins.
    pub(super) fn begin(&mut self, plan: &Plan) {
        self.rows = 0;
        for path in &mut self.paths {
            path.clear(plan, 0..plan.width + margin(plan, path.dx));
        }
    }

    /// Advances by a row; the returned rows are for the kernel that computes it.
    pub(super) fn advance(&mut self, plan: &Plan) -> [PathRow; 3] {
        debug_assert!(self.rows < plan.band_rows);
        self.rows += 1;
        let rows = self.rows;
        let mut out = [PathRow { l: std::ptr::null_mut(), m: std::ptr::null_mut(), p2: std::ptr::null() }; 3];
        for (row, path) in out.iter_mut().zip(&mut self.paths) {
            let origin = path.origin(plan, rows);
            row.l = path.l.as_mut()[GUARD + origin * plan.slot..].as_mut_ptr();
            row.m = path.m.as_mut()[origin..].as_mut_ptr();
        }
        out
    }

    /// Brings column 0 back to where a band's first step expects it.
    pub(super) fn rewind(&mut self, plan: &Plan) {
        let rows = std::mem::take(&mut self.rows);
        for path in &mut self.paths {
            let (from, to) = (path.origin(plan, rows), path.origin(plan, 0));
            path.m.as_mut().copy_within(from..from + plan.width, to);
            let slots = GUARD + from * plan.slot..GUARD + (from + plan.width) * plan.slot;
            path.l.as_mut().copy_within(slots, GUARD + to * plan.slot);
            path.clear_margin(plan);
        }
    }

    /// Copies `columns` to a checkpoint's part that holds exactly these.
    pub(super) fn save(&self, plan: &Plan, columns: Range<usize>, l: &mut [u8], m: &mut [u8]) {
        let bytes = plan.bytes;
        let pixels = l.chunks_exact_mut(bytes * self.paths.len()).zip(m.chunks_exact_mut(self.paths.len()));
        for (x, (l, m)) in columns.zip(pixels) {
            for (i, path) in self.paths.iter().enumerate() {
                let at = path.origin(plan, self.rows) + x;
                l[i * bytes..][..bytes].copy_from_slice(&path.l.as_slice()[GUARD + at * plan.slot..][..bytes]);
                m[i] = path.m.as_slice()[at];
            }
        }
    }

    /// Takes `columns` from a checkpoint; the others are not valid afterwards.
    pub(super) fn restore(&mut self, plan: &Plan, columns: Range<usize>, from: &Checkpoint) {
        self.rows = 0;
        let (bytes, n) = (plan.bytes, self.paths.len());
        for (i, path) in self.paths.iter_mut().enumerate() {
            path.clear_margin(plan);
            let origin = path.origin(plan, 0);
            for x in columns.clone() {
                let l = &from.l.as_slice()[(x * n + i) * bytes..][..bytes];
                path.l.as_mut()[GUARD + (origin + x) * plan.slot..][..bytes].copy_from_slice(l);
                path.m.as_mut()[origin + x] = from.m.as_slice()[x * n + i];
            }
        }
    }
}

/// Slots that a direction needs beyond the width: its base moves by one per row of a band.
fn margin(plan: &Plan, dx: isize) -> usize {
    if dx == 0 { 0 } else { plan.band_rows }
}

impl Path {
    /// The slot of column 0 after `rows` steps. A path's slot is fixed, and its column moves by `-dx` per row.
    fn origin(&self, plan: &Plan, rows: usize) -> usize {
        match self.dx {
            0 => 0,
            -1 => plan.band_rows - rows,
            _ => rows,
        }
    }

    /// Paths that enter the image within a band begin with what is in the margin.
    fn clear_margin(&mut self, plan: &Plan) {
        match self.dx {
            0 => {}
            -1 => self.clear(plan, 0..plan.band_rows),
            _ => self.clear(plan, plan.width..plan.width + plan.band_rows),
        }
    }

    fn clear(&mut self, plan: &Plan, slots: Range<usize>) {
        self.m.as_mut()[slots.clone()].fill(0);
        let bytes = &mut self.l.as_mut()[GUARD + slots.start * plan.slot..GUARD + slots.end * plan.slot];
        for slot in bytes.chunks_exact_mut(plan.slot) {
            slot[..plan.disparities].fill(0);
            slot[plan.disparities..].fill(u8::MAX);
        }
    }
}

/// A sweep's state between two bands: `L` as `[x][direction][d]` without the slots' gaps, `M` as `[x][direction]`.
pub(super) struct Checkpoint {
    pub(super) l: Buffer,
    pub(super) m: Buffer,
}

impl Checkpoint {
    pub(super) fn new(plan: &Plan) -> Self {
        let slots = plan.width * plan.directions;
        Self { l: Buffer::new(slots * plan.bytes, 0), m: Buffer::new(slots, 0) }
    }
}
