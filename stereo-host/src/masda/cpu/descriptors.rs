//! Census descriptors in planes of 16 bits, beside the intensities in 16-bit lanes.

use rayon::prelude::*;

use super::isa::{Isa, multiversion};
use crate::{GrayView, Pixels};

/// Half the census window.
const HALF: usize = 3;

/// Bits of one plane.
pub(super) const PLANE_BITS: usize = 16;

/// Planes of a 48-bit descriptor.
pub(super) const PLANES: usize = 3;

/// An image's 7x7 census, split into its upper, middle and lower 16 bits, so that all lanes of the volume's loops are equally
/// wide. The order of bits is irrelevant to a Hamming distance, but kept.
#[derive(Debug, Default)]
pub(super) struct Descriptors {
    /// Bits, `[y][plane][x]`.
    planes: Vec<u16>,
    /// Intensities, `[y][x]` with the rows and columns that clamping adds around.
    pixels: Vec<u16>,
    width: usize,
    /// How many bits an intensity is wider than 8.
    pub(super) shift: u32,
}

impl Descriptors {
    /// Computes all rows; called on the pool to use.
    pub(super) fn compute(&mut self, image: &GrayView<'_>, isa: Isa) {
        let (width, height) = (image.width(), image.height());
        self.width = width;
        self.shift = image.pixels().bits() - 8;
        let padded = width + 2 * HALF;
        self.pixels.resize(padded * (height + 2 * HALF), 0);
        self.pixels.par_chunks_exact_mut(padded).enumerate().for_each(|(row, out)| {
            copy_row(image, row.saturating_sub(HALF).min(height - 1), out);
        });
        self.planes.resize(PLANES * width * height, 0);
        let pixels = &self.pixels;
        self.planes.par_chunks_exact_mut(PLANES * width).enumerate().for_each(|(y, out)| {
            census_row(isa, &pixels[y * padded..][..(2 * HALF + 1) * padded], width, out);
        });
    }

    /// Row `y` of every plane.
    pub(super) fn row(&self, y: usize) -> [&[u16]; PLANES] {
        let row = &self.planes[PLANES * y * self.width..][..PLANES * self.width];
        std::array::from_fn(|plane| &row[plane * self.width..][..self.width])
    }

    /// The intensities of row `y`.
    pub(super) fn intensities(&self, y: usize) -> &[u16] {
        &self.pixels[(y + HALF) * (self.width + 2 * HALF) + HALF..][..self.width]
    }
}

/// Copies row `y` into the middle of `out` and repeats its ends.
fn copy_row(image: &GrayView<'_>, y: usize, out: &mut [u16]) {
    let width = image.width();
    let start = y * image.stride();
    let middle = &mut out[HALF..][..width];
    match image.pixels() {
        Pixels::U8(pixels) => middle.iter_mut().zip(&pixels[start..][..width]).for_each(|(o, &p)| *o = p.into()),
        Pixels::U16(pixels) => middle.copy_from_slice(&pixels[start..][..width]),
    }
    let (first, last) = (out[HALF], out[HALF + width - 1]);
    out[..HALF].fill(first);
    out[HALF + width..].fill(last);
}

multiversion! {
    /// The planes of one row from the seven padded rows around it.
    fn census_row(rows: &[u16], width: usize, out: &mut [u16]) = census_row_generic;
}

#[inline(always)]
fn census_row_generic(rows: &[u16], width: usize, out: &mut [u16]) {
    let padded = width + 2 * HALF;
    let centre = &rows[HALF * padded + HALF..][..width];
    let window = 2 * HALF + 1;
    let neighbours = (0..window * window).filter(|n| *n != window * window / 2);
    for (n, at) in neighbours.enumerate() {
        let neighbour = &rows[at / window * padded + at % window..][..width];
        let plane = &mut out[n / PLANE_BITS * width..][..width];
        for ((bits, &neighbour), &centre) in plane.iter_mut().zip(neighbour).zip(centre) {
            // What an earlier frame left is shifted out: a plane takes 16 bits.
            *bits = (*bits << 1) | u16::from(neighbour > centre);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Census, reference};

    #[test]
    fn equals_the_reference() {
        for (width, height) in [(1, 1), (5, 3), (17, 13), (70, 9)] {
            let pixels: Vec<u16> = (0..width * height).map(|i| (i * 40_503 % 65_521) as u16).collect();
            let bytes: Vec<u8> = pixels.iter().map(|&p| (p >> 8) as u8).collect();
            for view in
                [GrayView::from_u16(&pixels, width, height).unwrap(), GrayView::from_u8(&bytes, width, height).unwrap()]
            {
                let mut expected = vec![0; width * height];
                reference::census(&view, Census::Window7x7, &mut expected);
                for isa in Isa::available() {
                    let mut descriptors = Descriptors::default();
                    descriptors.compute(&view, isa);
                    descriptors.compute(&view, isa);
                    for y in 0..height {
                        let [high, middle, low] = descriptors.row(y);
                        for x in 0..width {
                            let got = u64::from(high[x]) << 32 | u64::from(middle[x]) << 16 | u64::from(low[x]);
                            assert_eq!(got, expected[y * width + x], "{isa:?} {width}x{height} ({x}, {y})");
                            assert_eq!(descriptors.intensities(y)[x], view.get(x, y));
                        }
                    }
                }
            }
        }
    }
}
