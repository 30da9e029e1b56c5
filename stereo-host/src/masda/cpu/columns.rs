//! The column sweep: vertical forward, vertical backward, top two.

use super::{
    LANES, Layout,
    descriptors::Descriptors,
    filter::{Coefficients, blend},
    isa::{Isa, multiversion},
    rows::MAX_PADDED,
    scatter::Scatter,
};
use crate::{
    Params,
    masda::{
        Candidate, Tables,
        reference::{score::right_column, top_two::subpixel_offset},
    },
};

/// What the sweep needs to know.
pub(super) struct Job<'a> {
    pub(super) layout: Layout,
    pub(super) params: &'a Params,
    pub(super) tables: &'a Tables,
    pub(super) left: &'a Descriptors,
    pub(super) isa: Isa,
}

/// One thread's strip.
#[derive(Debug, Default)]
pub(super) struct ColumnScratch {
    /// Filtered forward, `[y][x in strip][k]`.
    forward: Vec<i16>,
    /// The last filtered row, `[x in strip][k]`.
    carry: Vec<i16>,
}

impl Job<'_> {
    /// Picks the candidates of the strip that starts at column `start`; `strip` is its `[y][x][k]`.
    ///
    /// # Safety
    /// Nothing else uses these columns of `out` meanwhile.
    pub(super) unsafe fn strip(
        &self,
        start: usize,
        strip: &[i16],
        scratch: &mut ColumnScratch,
        out: &Scatter<'_, [Candidate; 2]>,
    ) {
        scratch.forward.resize(strip.len(), 0);
        scratch.carry.resize(strip.len() / self.layout.height, 0);
        // SAFETY: the columns are this caller's.
        sweep(self.isa, self, start, strip, scratch, out);
    }
}

multiversion! {
    fn sweep(
        job: &Job<'_>,
        start: usize,
        strip: &[i16],
        scratch: &mut ColumnScratch,
        out: &Scatter<'_, [Candidate; 2]>,
    ) = sweep_generic;
}

#[inline(always)]
fn sweep_generic(
    job: &Job<'_>,
    start: usize,
    strip: &[i16],
    scratch: &mut ColumnScratch,
    out: &Scatter<'_, [Candidate; 2]>,
) {
    let Layout { width, height, padded, .. } = job.layout;
    let columns = job.layout.strip_width(start);
    let row_len = columns * padded;
    let shift = job.left.shift;
    let coefficients = Coefficients::new(job.tables);
    let (forward, carry) = (&mut scratch.forward[..], &mut scratch.carry[..]);

    forward[..row_len].copy_from_slice(&strip[..row_len]);
    for y in 1..height {
        let (here, above) = (&job.left.intensities(y)[start..], &job.left.intensities(y - 1)[start..]);
        let (done, rest) = forward.split_at_mut(y * row_len);
        let previous = &done[(y - 1) * row_len..];
        for x in 0..columns {
            let a2 = coefficients.between(here[x], above[x], shift);
            let at = x * padded;
            let v = &strip[y * row_len + at..][..padded];
            blend(v, &previous[at..][..padded], a2, &mut rest[at..][..padded]);
        }
    }

    let mut filtered = [0; MAX_PADDED];
    let filtered = &mut filtered[..padded];
    for y in (0..height).rev() {
        let here = &job.left.intensities(y)[start..];
        // The last row has no row below and does not read `below`.
        let below = &job.left.intensities((y + 1).min(height - 1))[start..];
        // SAFETY: these columns are this caller's alone, see `Job::strip`.
        let out = unsafe { out.part(y * width + start, columns) };
        for x in 0..columns {
            let v = &forward[y * row_len + x * padded..][..padded];
            let carry = &mut carry[x * padded..][..padded];
            if y + 1 == height {
                filtered.copy_from_slice(v);
            } else {
                blend(v, carry, coefficients.between(here[x], below[x], shift), filtered);
            }
            carry.copy_from_slice(filtered);
            out[x] = job.pick(start + x, filtered);
        }
    }
}

impl Job<'_> {
    /// The candidates of column `x` from its filtered scores, padding included.
    #[inline(always)]
    fn pick(&self, x: usize, scores: &[i16]) -> [Candidate; 2] {
        let width = self.layout.width as i64;
        let inside = |d: usize| (0..width).contains(&right_column(x, d, self.params.min_disparity));
        let candidate = |(score, d): (i16, usize)| {
            let offset = if self.params.subpixel { subpixel_offset(&scores[..self.layout.disparities], d) } else { 0 };
            Candidate { score, d: d as u8, offset }
        };
        let (first, second) = best_two(scores);
        let mut pair = [Candidate::NONE; 2];
        if inside(first.1) {
            pair[0] = candidate(first);
            // The padding's score is negative: it is never a candidate.
            if second.0 >= 0 && inside(second.1) {
                pair[1] = candidate(second);
            }
        }
        pair
    }
}

/// The best two `(score, k)`: ordered by (score descending, `k` ascending). The second's score is negative if
/// there is none.
///
/// A maximum and the first place that has it, twice: two reductions that vectorise where one
/// comparison of pairs does not.
#[inline(always)]
pub(super) fn best_two(scores: &[i16]) -> ((i16, usize), (i16, usize)) {
    let first = best_except(scores, usize::MAX);
    (first, best_except(scores, first.1))
}

/// The best `(score, k)` with `k != except`.
#[inline(always)]
fn best_except(scores: &[i16], except: usize) -> (i16, usize) {
    // As i16, so that the comparison has the scores' lanes; never equal to a k when there is no exception.
    let except = if except == usize::MAX { -1 } else { except as i16 };
    let mut best = [i16::MIN; LANES];
    for (chunk, base) in scores.chunks_exact(LANES).zip((0..).step_by(LANES)) {
        for i in 0..LANES {
            let score = if base + i as i16 == except { i16::MIN } else { chunk[i] };
            best[i] = best[i].max(score);
        }
    }
    let score = best.into_iter().fold(i16::MIN, i16::max);
    let mut place = [i16::MAX; LANES];
    for (chunk, base) in scores.chunks_exact(LANES).zip((0..).step_by(LANES)) {
        for i in 0..LANES {
            let k = base + i as i16;
            let found = chunk[i] == score && k != except;
            place[i] = place[i].min(if found { k } else { i16::MAX });
        }
    }
    (score, place.into_iter().fold(i16::MAX, i16::min) as usize)
}
