//! What a matcher's size and parameters fix once: strides, band heights, lookup tables.

use std::ops::Range;

use super::{arch::Kernels, buffer::Buffer, finish::PADDED_SUM};
use crate::{Census, Compat, Params, Paths, params::MAX_PATH_COST};

/// Bytes of one band's 16-bit sums: small enough that two threads' share a last-level cache, large
/// enough that the path states between bands stay a small part of the traffic.
const BAND_BYTES: usize = 4 << 20;
/// Band heights: below, states between bands outweigh the sums; above, nothing is gained.
const BAND_ROWS: Range<usize> = 8..33;
/// Bytes of one block of costs: half a first-level data cache.
const BLOCK_BYTES: usize = 16 << 10;

/// Sizes, strides and tables.
pub(super) struct Plan {
    pub(super) width: usize,
    pub(super) height: usize,
    pub(super) disparities: usize,
    /// Vectors per pixel.
    pub(super) vectors: usize,
    /// Padded disparities, `vectors` whole vectors.
    pub(super) bytes: usize,
    /// Bytes of a slot (see [`super::sweep`]): at least one more than `disparities`.
    pub(super) slot: usize,
    /// Directions per sweep: 3, or 1 with four paths.
    pub(super) directions: usize,
    /// Whether two `S` fit one byte.
    pub(super) pairs: bool,
    pub(super) census: Census,
    pub(super) planes: usize,
    pub(super) min_disparity: isize,
    /// What the right map is shifted by: `m`, or 0 by \[compat\] (sgm.md, section 4).
    pub(super) right_shift: isize,
    pub(super) p1: u8,
    pub(super) p2: u8,
    pub(super) adaptive_p2: bool,
    pub(super) subpixel: bool,
    /// Columns whose costs are computed at a time.
    pub(super) block: usize,
    /// Rows of a band, the last one may have fewer.
    pub(super) band_rows: usize,
    /// 255 in padded disparities, else 0.
    pub(super) cost_pad: Buffer,
    /// [`PADDED_SUM`] in padded disparities, else 0, as even/odd vectors.
    pub(super) sum_pad: Buffer,
    /// The disparity of every lane of even/odd vectors.
    pub(super) indices: Buffer,
    /// By winning sum: other sums below this make the pixel ambiguous.
    pub(super) thresholds: Vec<u16>,
}

impl Plan {
    pub(super) fn new(width: usize, height: usize, params: &Params, kernels: &Kernels) -> Self {
        let lanes = kernels.lanes;
        let disparities = params.disparities as usize;
        let vectors = disparities.div_ceil(lanes);
        let bytes = vectors * lanes;
        let slot = if bytes > disparities { bytes } else { bytes + lanes };
        let (directions, paths) = match params.paths {
            Paths::Four => (1, 4),
            Paths::Eight => (3, 8),
        };
        let by_lane = |value: &dyn Fn(usize) -> u16| {
            let mut table = Buffer::new16(bytes, 0);
            for (i, entry) in table.as_mut16().iter_mut().enumerate() {
                let (vector, lane) = (i / lanes, i % lanes);
                let (parity, pair) = (lane / (lanes / 2), lane % (lanes / 2));
                *entry = value(vector * lanes + 2 * pair + parity);
            }
            table
        };
        let mut cost_pad = Buffer::new(bytes, u8::MAX);
        cost_pad.as_mut()[..disparities].fill(0);
        Self {
            width,
            height,
            disparities,
            vectors,
            bytes,
            slot,
            directions,
            pairs: 2 * params.p2 <= MAX_PATH_COST,
            census: params.census,
            planes: super::census::planes(params.census).len(),
            min_disparity: params.min_disparity as isize,
            right_shift: if params.compat == Compat::LibSgm { 0 } else { params.min_disparity as isize },
            // `Params::validate` has bounded both by `MAX_PATH_COST`.
            p1: params.p1 as u8,
            p2: params.p2 as u8,
            adaptive_p2: params.adaptive_p2,
            subpixel: params.subpixel,
            block: (BLOCK_BYTES / bytes).clamp(1, width),
            band_rows: (BAND_BYTES / (2 * width * bytes)).clamp(BAND_ROWS.start, BAND_ROWS.end - 1).min(height),
            cost_pad,
            sum_pad: by_lane(&|d| if d < disparities { 0 } else { PADDED_SUM }),
            indices: by_lane(&|d| d as u16),
            thresholds: thresholds(params.uniqueness, paths * MAX_PATH_COST),
        }
    }

    /// Bytes that a matcher with this plan holds, not counting tables.
    pub(super) fn memory(&self, workers: usize, entries: usize) -> u64 {
        let pixels = self.width * self.height;
        let row = self.width * self.bytes;
        let states = 2 * self.directions * (self.width + self.band_rows) * self.slot;
        let worker = states + 3 * row * self.band_rows + row;
        let entry = self.directions * row;
        // Both padded images at 16 bits, the census planes, two pairs of raw maps.
        let frame = 4 * pixels + self.planes * (pixels + self.height * self.mirrored()) + 8 * pixels;
        (worker * workers + entry * entries + frame) as u64
    }

    pub(super) fn bands(&self) -> usize {
        self.height.div_ceil(self.band_rows)
    }

    pub(super) fn band(&self, index: usize) -> Range<usize> {
        index * self.band_rows..((index + 1) * self.band_rows).min(self.height)
    }

    /// Where left column `x` and disparity `d` fall in a mirrored row ends before this many bytes.
    pub(super) fn mirrored(&self) -> usize {
        self.width + self.bytes
    }
}

/// For every winning sum `c`, the smallest sum `s` for which `(s as f32) * u < c as f32` does not hold:
/// the uniqueness check (sgm.md, section 4) without floating point. The product rises with `s`.
fn thresholds(uniqueness: f32, max_sum: u16) -> Vec<u16> {
    let mut s = 0;
    (0..=max_sum)
        .map(|c| {
            while s < PADDED_SUM && f32::from(s) * uniqueness < f32::from(c) {
                s += 1;
            }
            s
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_say_what_the_product_says() {
        for u in [0.0, 0.3, 0.5, 0.85, 0.95, 0.999, 1.0] {
            for (c, &t) in thresholds(u, 2040).iter().enumerate() {
                for s in 0..=2040u16 {
                    assert_eq!(s < t, f32::from(s) * u < c as f32, "u {u}, c {c}, s {s}");
                }
            }
        }
    }
}
