//! One thread's buffers, and the rows and bands that are computed in them.

use std::ops::Range;

use super::{
    aggregate::{Context, Heading},
    buffer::Buffer,
    cost::CostBlock,
    finish::{FinishRow, INVALID, PADDED_SUM, RightRow, WinnerRow},
    horizontal::{BackwardRow, HorizontalPath},
    plan::Plan,
    state::{DIRECTIONS, SweepState},
    sweep::{PathRow, SweepBlock},
};

/// Room around a horizontal path's slot for its neighbours of 255.
const GUARD: usize = 64;

pub(super) struct Workspace {
    /// A band's sums, `[row][x][d]` as 16-bit even/odd vectors.
    sums: Buffer,
    /// A band's costs, `[row][x][d]`.
    costs: Buffer,
    /// The costs of a block of columns, `[x][d]`, where only path costs are wanted.
    block: Buffer,
    /// `S` of right-to-left of a row, `[x][d]`.
    backward: Buffer,
    /// `P2` of a row: one per direction of a sweep, left-to-right, right-to-left.
    penalties: [Vec<u8>; 5],
    slots: [Buffer; 2],
    /// One pixel's sums.
    scratch: Buffer,
    right_sums: [Buffer; 2],
    right_disparities: [Buffer; 2],
}

impl Workspace {
    pub(super) fn new(plan: &Plan) -> Self {
        let row = plan.width * plan.bytes;
        let right = plan.mirrored() / 2 + 1;
        Self {
            sums: Buffer::new(2 * row * plan.band_rows, 0),
            costs: Buffer::new(row * plan.band_rows, 0),
            block: Buffer::new(plan.block * plan.bytes, 0),
            backward: Buffer::new(row, 0),
            penalties: std::array::from_fn(|_| vec![0; plan.width]),
            slots: std::array::from_fn(|_| Buffer::new(2 * GUARD + plan.bytes, u8::MAX)),
            scratch: Buffer::new(2 * plan.bytes, 0),
            right_sums: std::array::from_fn(|_| Buffer::new16(right, PADDED_SUM)),
            right_disparities: std::array::from_fn(|_| Buffer::new16(right, INVALID)),
        }
    }

    /// Moves `sweep` to row `y` for `columns`; with `row`, writes the costs and sums of that row of a band.
    pub(super) fn sweep_row(
        &mut self,
        context: Context<'_>,
        sweep: &mut SweepState,
        heading: Heading,
        y: usize,
        columns: Range<usize>,
        row: Option<usize>,
    ) {
        let plan = context.plan;
        let paths = self.advance(context, sweep, heading, y);
        let sum = row
            .map_or(std::ptr::null_mut(), |row| self.sums.as_mut()[2 * row * plan.width * plan.bytes..].as_mut_ptr());
        for x0 in columns.clone().step_by(plan.block) {
            let x1 = (x0 + plan.block).min(columns.end);
            let cost = match row {
                Some(row) => self.costs.as_mut()[(row * plan.width + x0) * plan.bytes..].as_mut_ptr(),
                None => self.block.as_mut_ptr(),
            };
            compute_cost(context, y, x0..x1, cost);
            let block = SweepBlock {
                x0,
                x1,
                vectors: plan.vectors,
                slot: plan.slot,
                p1: plan.p1,
                directions: plan.directions,
                paths,
                cost,
                pad: plan.sum_pad.as_ptr(),
                sum,
                pairs: plan.pairs,
            };
            // SAFETY: the kernel table is this machine's; every buffer was sized by the same plan.
            unsafe { (context.kernels.sweep)(&block) };
        }
    }

    /// The remaining directions of row `y`, whose costs and sums are row `row` of the band's, and its rows of both raw maps.
    pub(super) fn finish_row(
        &mut self,
        context: Context<'_>,
        sweep: &mut SweepState,
        heading: Heading,
        (y, row): (usize, usize),
        left: &mut [u16],
        right: &mut [u16],
    ) {
        let (plan, kernels) = (context.plan, context.kernels);
        assert_eq!(left.len(), plan.width);
        let paths = self.advance(context, sweep, heading, y);
        for (penalties, dx) in self.penalties[3..].iter_mut().zip([-1, 1]) {
            context.frame.penalties(plan, kernels, y, (dx, 0), penalties);
        }
        let cost = self.costs.as_slice()[row * plan.width * plan.bytes..].as_ptr();
        let slots = self.slots.each_mut().map(|slot| slot.as_mut()[GUARD..].as_mut_ptr());
        let horizontal = |penalties: &[u8]| HorizontalPath { slots, p2: penalties.as_ptr() };
        let backward = BackwardRow {
            width: plan.width,
            vectors: plan.vectors,
            disparities: plan.disparities,
            p1: plan.p1,
            path: horizontal(&self.penalties[4]),
            cost,
            out: self.backward.as_mut_ptr(),
        };
        for buffer in &mut self.right_sums {
            buffer.as_mut16().fill(PADDED_SUM);
        }
        let entries = |buffers: &mut [Buffer; 2]| buffers.each_mut().map(|buffer| buffer.as_mut16().as_mut_ptr());
        let winner = WinnerRow {
            disparities: plan.disparities,
            subpixel: plan.subpixel,
            thresholds: plan.thresholds.as_ptr(),
            scratch: self.scratch.as_mut_ptr(),
            indices: plan.indices.as_ptr(),
            right: RightRow { sums: entries(&mut self.right_sums), disparities: entries(&mut self.right_disparities) },
            left: left.as_mut_ptr(),
        };
        let finish = FinishRow {
            width: plan.width,
            vectors: plan.vectors,
            slot: plan.slot,
            p1: plan.p1,
            directions: plan.directions,
            paths,
            pairs: plan.pairs,
            forward: horizontal(&self.penalties[3]),
            cost,
            backward: self.backward.as_ptr(),
            sum: self.sums.as_slice()[2 * row * plan.width * plan.bytes..].as_ptr(),
            winner,
        };
        // SAFETY: the kernel table is this machine's; every buffer was sized by the same plan.
        unsafe {
            (kernels.backward)(&backward);
            (kernels.finish)(&finish);
        }
        self.right_row(plan, right);
    }

    /// The right map's row from the running winners.
    fn right_row(&mut self, plan: &Plan, right: &mut [u16]) {
        let sums = self.right_sums.each_mut().map(|buffer| &*buffer.as_mut16());
        let disparities = self.right_disparities.each_mut().map(|buffer| &*buffer.as_mut16());
        let last = plan.width as isize - 1 - plan.right_shift;
        for (column, out) in right.iter_mut().enumerate() {
            let u = last - column as isize;
            *out = match usize::try_from(u) {
                Ok(u) if u < plan.mirrored() && sums[u % 2][u / 2] < PADDED_SUM => disparities[u % 2][u / 2],
                _ => INVALID,
            };
        }
    }

    /// Moves `sweep` on to row `y`, with that row's penalties.
    fn advance(&mut self, context: Context<'_>, sweep: &mut SweepState, heading: Heading, y: usize) -> [PathRow; 3] {
        let plan = context.plan;
        let mut paths = sweep.advance(plan);
        for ((path, penalties), dx) in paths.iter_mut().zip(&mut self.penalties).zip(DIRECTIONS).take(plan.directions) {
            context.frame.penalties(plan, context.kernels, y, (dx, heading.before()), penalties);
            path.p2 = penalties.as_ptr();
        }
        paths
    }
}

/// The costs of `columns` of row `y`; `out` has room for them.
fn compute_cost(context: Context<'_>, y: usize, columns: Range<usize>, out: *mut u8) {
    let plan = context.plan;
    let (left, left_stride) = context.frame.left_planes(plan, y);
    let (right, right_stride) = context.frame.right_planes(plan, y);
    let block = CostBlock {
        x0: columns.start,
        x1: columns.end,
        width: plan.width,
        vectors: plan.vectors,
        planes: plan.planes,
        halve: plan.census != crate::Census::Symmetric9x7,
        left,
        left_stride,
        right,
        right_stride,
        pad: plan.cost_pad.as_ptr(),
        out,
    };
    // SAFETY: the kernel table is this machine's; the planes cover `width` and `mirrored()` columns, and
    // both callers' buffers hold the columns they ask for.
    unsafe { (context.kernels.cost)(&block) };
}
