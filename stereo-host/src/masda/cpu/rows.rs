//! The row sweep: score, horizontal forward, horizontal backward.

use super::{
    LANES, Layout,
    descriptors::{Descriptors, PLANES},
    filter::{Coefficients, blend},
    isa::{Isa, multiversion},
    scatter::Scatter,
};
use crate::{
    Params,
    masda::{LEVELS, Tables},
};

/// The census table's length, padded to a power of two so that masked indices need no check.
pub(super) const CENSUS_ENTRIES: usize = 64;

/// The score of a padded `k`: below every score, and the filter keeps it, so that it never wins.
pub(super) const PADDING: i16 = -1;

/// What the sweep needs to know.
pub(super) struct Job<'a> {
    pub(super) layout: Layout,
    pub(super) params: &'a Params,
    pub(super) tables: &'a Tables,
    pub(super) left: &'a Descriptors,
    pub(super) right: &'a Descriptors,
    pub(super) isa: Isa,
}

/// One thread's row.
#[derive(Debug, Default)]
pub(super) struct RowScratch {
    /// The right descriptors and intensities in the order of `d`: element `i` is column `W - 1 - i - m`, clamped.
    reversed: [Vec<u16>; PLANES + 1],
    /// Filtered forward, `[x][k]`.
    line: Vec<i16>,
}

/// The right image's side of a row, see [`RowScratch`].
type Reversed<'a> = [&'a [u16]; PLANES + 1];

/// The left image's side of a row: descriptors, then intensities.
type Left<'a> = [&'a [u16]; PLANES + 1];

/// The score tables, padded.
pub(super) struct ScoreTables {
    pub(super) census: [i16; CENSUS_ENTRIES],
    pub(super) intensity: [i16; LEVELS],
}

impl ScoreTables {
    fn new(tables: &Tables) -> Self {
        let mut census = [0; CENSUS_ENTRIES];
        census[..tables.census.len()].copy_from_slice(&tables.census);
        Self { census, intensity: tables.intensity }
    }
}

impl Job<'_> {
    /// Writes row `y` of the horizontally filtered volume.
    ///
    /// # Safety
    /// Nothing else uses row `y` of `out` meanwhile.
    pub(super) unsafe fn row(&self, y: usize, scratch: &mut RowScratch, out: &Scatter<'_, i16>) {
        let Layout { width, padded, .. } = self.layout;
        let [left0, left1, left2] = self.left.row(y);
        let [right0, right1, right2] = self.right.row(y);
        for (reversed, row) in scratch.reversed.iter_mut().zip([right0, right1, right2, self.right.intensities(y)]) {
            reverse(row, padded, self.params.min_disparity, reversed);
        }
        scratch.line.resize(width * padded, 0);
        let left = [left0, left1, left2, self.left.intensities(y)];
        let reversed: Reversed<'_> = std::array::from_fn(|i| scratch.reversed[i].as_slice());
        // SAFETY: row `y` is this caller's.
        sweep(self.isa, self, y, &left, &reversed, &mut scratch.line, out);
    }
}

/// Lays a right row out in the order of `d` for every left column.
fn reverse(row: &[u16], padded: usize, min_disparity: i32, out: &mut Vec<u16>) {
    let last = row.len() as i64 - 1;
    out.clear();
    out.extend((0..row.len() as i64 + padded as i64).map(|i| {
        let column = last - i - i64::from(min_disparity);
        row[column.clamp(0, last) as usize]
    }));
}

multiversion! {
    fn sweep(
        job: &Job<'_>,
        y: usize,
        left: &Left<'_>,
        right: &Reversed<'_>,
        line: &mut [i16],
        out: &Scatter<'_, i16>,
    ) = sweep_generic;
}

#[inline(always)]
fn sweep_generic(
    job: &Job<'_>,
    y: usize,
    left: &Left<'_>,
    right: &Reversed<'_>,
    line: &mut [i16],
    out: &Scatter<'_, i16>,
) {
    let Layout { width, padded, disparities, .. } = job.layout;
    let shift = job.left.shift;
    let tables = ScoreTables::new(job.tables);
    let coefficients = Coefficients::new(job.tables);
    let intensities = left[PLANES];
    let mut scores = [0; MAX_PADDED];
    let scores = &mut scores[..padded];
    for x in 0..width {
        let here = left.map(|row| row[x]);
        let candidates = right.map(|row| &row[width - 1 - x..][..padded]);
        score(job.isa, &here, &candidates, shift, &tables, scores);
        scores[disparities..].fill(PADDING);
        let (done, rest) = line.split_at_mut(x * padded);
        let current = &mut rest[..padded];
        if x == 0 {
            current.copy_from_slice(scores);
        } else {
            let a2 = coefficients.between(intensities[x], intensities[x - 1], shift);
            blend(scores, &done[(x - 1) * padded..], a2, current);
        }
    }

    let mut carry = [0; MAX_PADDED];
    let carry = &mut carry[..padded];
    for x in (0..width).rev() {
        let v = &line[x * padded..][..padded];
        // SAFETY: row `y` is this caller's alone, see `Job::row`.
        let current = unsafe { out.part(job.layout.at(x, y), padded) };
        if x + 1 == width {
            current.copy_from_slice(v);
        } else {
            let a2 = coefficients.between(intensities[x], intensities[x + 1], shift);
            blend(v, carry, a2, current);
        }
        carry.copy_from_slice(current);
    }
}

/// The largest padded `D`.
pub(super) const MAX_PADDED: usize = crate::MAX_MASDA_DISPARITIES as usize;

/// The scores of one left pixel: `out[k]` from the right column of `k`.
#[inline(always)]
fn score(isa: Isa, left: &[u16; PLANES + 1], right: &Reversed<'_>, shift: u32, tables: &ScoreTables, out: &mut [i16]) {
    match isa {
        // SAFETY: this set is only ever made where the machine has it, see `Isa::available`.
        #[cfg(target_arch = "x86_64")]
        Isa::Avx512 => unsafe { score_avx512(left, right, shift, tables, out) },
        _ => score_generic(left, right, shift, tables, out),
    }
}

#[inline(always)]
fn score_generic(left: &[u16; PLANES + 1], right: &Reversed<'_>, shift: u32, tables: &ScoreTables, out: &mut [i16]) {
    for (chunk, out) in out.chunks_exact_mut(LANES).enumerate() {
        let right: [&[u16; LANES]; PLANES + 1] =
            right.map(|row| row[chunk * LANES..][..LANES].try_into().expect("a slice of LANES elements"));
        let mut distance = [0u16; LANES];
        let mut difference = [0u16; LANES];
        for i in 0..LANES {
            for plane in 0..PLANES {
                distance[i] += (left[plane] ^ right[plane][i]).count_ones() as u16;
            }
            difference[i] = left[PLANES].abs_diff(right[PLANES][i]) >> shift;
        }
        for i in 0..LANES {
            // The masks change nothing: a distance is at most 48, a difference has 8 bits.
            out[i] = tables.census[usize::from(distance[i]) & (CENSUS_ENTRIES - 1)]
                + tables.intensity[usize::from(difference[i]) & (LEVELS - 1)];
        }
    }
}

/// [`score_generic`] with both tables in registers: what the compiler cannot find by itself is the lookup as a permutation.
#[cfg(target_arch = "x86_64")]
#[inline]
#[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512bitalg")]
fn score_avx512(left: &[u16; PLANES + 1], right: &Reversed<'_>, shift: u32, tables: &ScoreTables, out: &mut [i16]) {
    use std::arch::x86_64::*;

    // SAFETY: LANES elements of 2 bytes are 64 bytes, and the slice is that long.
    let load = |slice: &[u16; LANES]| unsafe { _mm512_loadu_si512(slice.as_ptr().cast()) };
    // SAFETY: as above; the offset leaves LANES elements in both tables.
    let table = |entries: &[i16], at: usize| unsafe { _mm512_loadu_si512(entries[at..at + LANES].as_ptr().cast()) };
    let census = [table(&tables.census, 0), table(&tables.census, LANES)];
    let intensity: [__m512i; LEVELS / LANES] = std::array::from_fn(|i| table(&tables.intensity, i * LANES));
    let left = left.map(|value| _mm512_set1_epi16(value as i16));
    let shift = _mm_cvtsi32_si128(shift as i32);
    let (bit6, bit7) = (_mm512_set1_epi16(1 << 6), _mm512_set1_epi16(1 << 7));
    for (chunk, out) in out.chunks_exact_mut(LANES).enumerate() {
        let right: [__m512i; PLANES + 1] =
            right.map(|row| load(row[chunk * LANES..][..LANES].try_into().expect("a slice of LANES elements")));
        let count = |plane: usize| _mm512_popcnt_epi16(_mm512_xor_si512(left[plane], right[plane]));
        let distance = _mm512_add_epi16(_mm512_add_epi16(count(0), count(1)), count(2));
        let (a, b) = (left[PLANES], right[PLANES]);
        let difference = _mm512_or_si512(_mm512_subs_epu16(a, b), _mm512_subs_epu16(b, a));
        let difference = _mm512_srl_epi16(difference, shift);
        // A permutation of two registers looks up 64 entries by the lower six bits; the upper two choose among four.
        let quarter = |i: usize| _mm512_permutex2var_epi16(intensity[2 * i], difference, intensity[2 * i + 1]);
        let upper = _mm512_test_epi16_mask(difference, bit7);
        let odd = _mm512_test_epi16_mask(difference, bit6);
        let low = _mm512_mask_blend_epi16(odd, quarter(0), quarter(1));
        let high = _mm512_mask_blend_epi16(odd, quarter(2), quarter(3));
        let by_intensity = _mm512_mask_blend_epi16(upper, low, high);
        let by_census = _mm512_permutex2var_epi16(census[0], distance, census[1]);
        let sum = _mm512_add_epi16(by_census, by_intensity);
        // SAFETY: `out` is a chunk of LANES elements.
        unsafe { _mm512_storeu_si512(out.as_mut_ptr().cast(), sum) };
    }
}
