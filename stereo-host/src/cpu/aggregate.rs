//! The order of the work: two sweeps over bands of rows, without a cost or sum volume.
//!
//! A sweep carries the path costs of one row in the directions that come from the row before. A first
//! pass runs the sweeps only for their states between bands. In the second pass a band has the state
//! that enters it from either side: one sweep is repeated into the band's 16-bit sums, the other then
//! crosses the band and finishes each of its rows. The sums never leave the caches, which costs a sweep
//! more arithmetic than a two-sweep scheme with a whole volume of sums, and saves writing and reading it.

use std::{ops::Range, sync::Mutex};

use rayon::prelude::*;

use super::{
    arch::Kernels,
    frame::Frame,
    plan::Plan,
    state::{Checkpoint, SweepState},
    workspace::Workspace,
};

/// Up to this many threads, the two sweeps meet in the middle of the image and each goes on where the
/// other has been: 11 directions' work. Beyond, both sweeps run to the end first, for 14 directions'
/// work in all, and then every band is on its own.
const MEETING_THREADS: usize = 2;

/// Whether a sweep goes to larger or to smaller `y`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Heading {
    Down,
    Up,
}

impl Heading {
    /// The offset of the row before.
    pub(super) fn before(self) -> isize {
        match self {
            Self::Down => -1,
            Self::Up => 1,
        }
    }

    pub(super) fn opposite(self) -> Self {
        match self {
            Self::Down => Self::Up,
            Self::Up => Self::Down,
        }
    }

    /// `range` in the order of this sweep.
    pub(super) fn order(self, range: Range<usize>) -> impl Iterator<Item = usize> {
        let Range { start, end } = range;
        (start..end).map(move |i| if self == Self::Down { i } else { start + end - 1 - i })
    }
}

/// What every task reads.
#[derive(Clone, Copy)]
pub(super) struct Context<'a> {
    pub(super) plan: &'a Plan,
    pub(super) kernels: &'a Kernels,
    pub(super) frame: &'a Frame,
}

/// The raw maps: left values with sub-pixel bits, right disparities, both [`super::finish::INVALID`] where invalid.
pub(super) struct RawMaps {
    pub(super) left: Vec<u16>,
    pub(super) right: Vec<u16>,
}

/// The memory of the aggregation.
pub(super) enum Aggregation {
    Meeting { workers: Box<[Worker; 2]>, entries: Vec<Checkpoint> },
    Independent { workers: Vec<Mutex<Worker>>, entries: [Vec<Checkpoint>; 2] },
}

/// What one thread works in.
pub(super) struct Worker {
    sweep: SweepState,
    /// The opposite sweep, repeated into a band's sums.
    repeated: SweepState,
    workspace: Workspace,
}

impl Worker {
    fn new(plan: &Plan) -> Self {
        Self { sweep: SweepState::new(plan), repeated: SweepState::new(plan), workspace: Workspace::new(plan) }
    }
}

impl Aggregation {
    /// How many workers and how many states between bands [`Aggregation::new`] allocates.
    pub(super) fn counts(plan: &Plan, threads: usize) -> (usize, usize) {
        if threads <= MEETING_THREADS { (2, plan.bands()) } else { (threads, 2 * plan.bands()) }
    }

    pub(super) fn new(plan: &Plan, threads: usize) -> Self {
        let entries = || (0..plan.bands()).map(|_| Checkpoint::new(plan)).collect();
        if threads <= MEETING_THREADS {
            Self::Meeting { workers: Box::new([Worker::new(plan), Worker::new(plan)]), entries: entries() }
        } else {
            let workers = (0..threads).map(|_| Mutex::new(Worker::new(plan))).collect();
            Self::Independent { workers, entries: [entries(), entries()] }
        }
    }

    /// The first pass: the states between bands. Runs in the pool of the calling thread.
    pub(super) fn states(&mut self, context: Context<'_>) {
        let plan = context.plan;
        match self {
            Self::Meeting { workers, entries } => {
                let middle = plan.bands() / 2;
                let [down, up] = &mut **workers;
                let (top, bottom) = entries.split_at_mut(middle);
                rayon::join(
                    || down.states(context, Heading::Down, 0, top),
                    || up.states(context, Heading::Up, middle, bottom),
                );
            }
            Self::Independent { workers, entries: [down, up] } => {
                rayon::join(
                    || strip_states(context, Heading::Down, workers, down),
                    || strip_states(context, Heading::Up, workers, up),
                );
            }
        }
    }

    /// The second pass: everything up to the raw maps.
    pub(super) fn winners(&mut self, context: Context<'_>, maps: &mut RawMaps) {
        let plan = context.plan;
        match self {
            Self::Meeting { workers, entries } => {
                let middle = plan.bands() / 2;
                let [down, up] = &mut **workers;
                let (top, bottom) = entries.split_at(middle);
                let row = (middle * plan.band_rows).min(plan.height) * plan.width;
                let (top_left, bottom_left) = maps.left.split_at_mut(row);
                let (top_right, bottom_right) = maps.right.split_at_mut(row);
                rayon::join(
                    || up.winners(context, Heading::Up, 0, top, top_left, top_right),
                    || down.winners(context, Heading::Down, middle, bottom, bottom_left, bottom_right),
                );
            }
            Self::Independent { workers, entries: [down, up] } => {
                let band_pixels = plan.band_rows * plan.width;
                let bands = maps.left.par_chunks_mut(band_pixels).zip(maps.right.par_chunks_mut(band_pixels));
                bands.enumerate().with_max_len(1).for_each(|(band, (left, right))| {
                    with_worker(workers, |worker| {
                        enter(plan, &mut worker.sweep, Heading::Down, band, &down[band], 0..plan.width);
                        worker.finish_band(context, Heading::Down, band, &up[band], left, right);
                    });
                });
            }
        }
    }
}

impl Worker {
    /// Sweeps over the bands `first..first + entries.len()` from the image's border inwards, leaving in
    /// each band's entry the state before that band, and in `self` the state after the last.
    fn states(&mut self, context: Context<'_>, heading: Heading, first: usize, entries: &mut [Checkpoint]) {
        let plan = context.plan;
        self.sweep.begin(plan);
        for i in heading.order(0..entries.len()) {
            let Checkpoint { l, m } = &mut entries[i];
            self.sweep.save(plan, 0..plan.width, l.as_mut(), m.as_mut());
            for y in heading.order(plan.band(first + i)) {
                self.workspace.sweep_row(context, &mut self.sweep, heading, y, 0..plan.width, None);
            }
            self.sweep.rewind(plan);
        }
    }

    /// Goes on over the bands whose entries are the opposite sweep's, and finishes them.
    fn winners(
        &mut self,
        context: Context<'_>,
        heading: Heading,
        first: usize,
        entries: &[Checkpoint],
        left: &mut [u16],
        right: &mut [u16],
    ) {
        let plan = context.plan;
        let start = first * plan.band_rows;
        for i in heading.order(0..entries.len()) {
            let rows = plan.band(first + i);
            let pixels = (rows.start - start) * plan.width..(rows.end - start) * plan.width;
            let (left, right) = (&mut left[pixels.clone()], &mut right[pixels]);
            self.finish_band(context, heading, first + i, &entries[i], left, right);
            self.sweep.rewind(plan);
        }
    }

    /// Finishes a band: the sweep stands before it and is moved across, `entry` is the opposite sweep's
    /// state before it. `left` and `right` are the band's rows of the raw maps.
    fn finish_band(
        &mut self,
        context: Context<'_>,
        heading: Heading,
        band: usize,
        entry: &Checkpoint,
        left: &mut [u16],
        right: &mut [u16],
    ) {
        let plan = context.plan;
        let rows = plan.band(band);
        let Self { sweep, repeated, workspace } = self;
        let against = heading.opposite();
        enter(plan, repeated, against, band, entry, 0..plan.width);
        for y in against.order(rows.clone()) {
            workspace.sweep_row(context, repeated, against, y, 0..plan.width, Some(y - rows.start));
        }
        for y in heading.order(rows.clone()) {
            let row = y - rows.start;
            let pixels = row * plan.width..(row + 1) * plan.width;
            let (left, right) = (&mut left[pixels.clone()], &mut right[pixels]);
            workspace.finish_row(context, sweep, heading, (y, row), left, right);
        }
    }
}

/// Puts `sweep` before band `band`.
fn enter(
    plan: &Plan,
    sweep: &mut SweepState,
    heading: Heading,
    band: usize,
    entry: &Checkpoint,
    columns: Range<usize>,
) {
    let first = if heading == Heading::Down { 0 } else { plan.bands() - 1 };
    if band == first {
        sweep.begin(plan);
    } else {
        sweep.restore(plan, columns, entry);
    }
}

/// All states of one sweep, each band in strips of columns that do not wait for each other: an oblique
/// path moves one column per row, so a strip that starts a band's height wider on either side, and
/// loses a column per row there, ends with exactly its own columns right.
fn strip_states(context: Context<'_>, heading: Heading, workers: &[Mutex<Worker>], entries: &mut [Checkpoint]) {
    let plan = context.plan;
    let strip = plan.width.div_ceil(workers.len().div_ceil(2)).max(plan.band_rows);
    let (l_bytes, m_bytes) = (strip * plan.directions * plan.bytes, strip * plan.directions);
    let bands: Vec<usize> = heading.order(0..plan.bands()).collect();
    for step in bands.windows(2) {
        let (band, next) = (step[0], step[1]);
        // The entries of two bands at once, one read and one written.
        let (low, high) = entries.split_at_mut(band.max(next));
        let (from, to) = match heading {
            Heading::Down => (&low[band], &mut high[0]),
            Heading::Up => (&high[0], &mut low[next]),
        };
        let strips = to.l.as_mut().par_chunks_mut(l_bytes).zip(to.m.as_mut().par_chunks_mut(m_bytes));
        strips.enumerate().with_max_len(1).for_each(|(i, (l, m))| {
            let columns = i * strip..((i + 1) * strip).min(plan.width);
            let widened = |by: usize| columns.start.saturating_sub(by)..(columns.end + by).min(plan.width);
            with_worker(workers, |worker| {
                let rows = plan.band(band);
                let Worker { sweep, workspace, .. } = worker;
                enter(plan, sweep, heading, band, from, widened(rows.len()));
                for (row, y) in heading.order(rows.clone()).enumerate() {
                    workspace.sweep_row(context, sweep, heading, y, widened(rows.len() - 1 - row), None);
                }
                sweep.save(plan, columns.clone(), l, m);
            });
        });
    }
}

/// Runs `work` on the calling pool thread's worker.
fn with_worker(workers: &[Mutex<Worker>], work: impl FnOnce(&mut Worker)) {
    let index = rayon::current_thread_index().expect("runs inside the matcher's pool");
    // Only this thread takes this lock, and not twice: a poisoned one means that the match has panicked already.
    work(&mut workers[index].lock().unwrap_or_else(std::sync::PoisonError::into_inner));
}
