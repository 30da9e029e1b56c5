//! What the image plane hands to the graph.

use crate::{Result, view::check_size};

/// One possible match of a left pixel: one 32-bit word, in this order from its low end, on the host and on the device.
#[repr(C, align(4))]
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Candidate {
    /// The filtered score, `0..=16385`; negative in [`Candidate::NONE`].
    pub score: i16,
    /// The relative disparity, `0..D`.
    pub d: u8,
    /// The sub-pixel correction in 1/16 pixel, `-8..=8`; 0 when sub-pixel is off.
    pub offset: i8,
}

impl Candidate {
    /// No candidate.
    pub const NONE: Self = Self { score: -1, d: 0, offset: 0 };

    /// Whether this is a candidate at all.
    pub const fn is_some(self) -> bool {
        self.score >= 0
    }
}

/// The best two candidates of every left pixel, row-major, the better one first (masda.md, image plane, point 4).
///
/// A pixel has 0, 1 or 2 of them; the rest are [`Candidate::NONE`], never before a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidates {
    pairs: Vec<[Candidate; 2]>,
    width: usize,
    height: usize,
}

impl Candidates {
    /// No candidates for `width x height` pixels.
    ///
    /// # Errors
    /// A refused size.
    pub fn new(width: usize, height: usize) -> Result<Self> {
        check_size(width, height)?;
        Ok(Self { pairs: vec![[Candidate::NONE; 2]; width * height], width, height })
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Every pixel's candidates, row-major.
    pub fn pairs(&self) -> &[[Candidate; 2]] {
        &self.pairs
    }

    /// Every pixel's candidates, row-major, for writing.
    pub fn pairs_mut(&mut self) -> &mut [[Candidate; 2]] {
        &mut self.pairs
    }

    /// The same memory as the device writes it: one word per candidate.
    pub(crate) fn words_mut(&mut self) -> &mut [u32] {
        const { assert!(size_of::<[Candidate; 2]>() == 2 * size_of::<u32>() && cfg!(target_endian = "little")) };
        let len = 2 * self.pairs.len();
        // SAFETY: as large and as aligned as the words, and every bit pattern is a value of both types.
        unsafe { std::slice::from_raw_parts_mut(self.pairs.as_mut_ptr().cast(), len) }
    }

    /// The candidates of row `y`.
    ///
    /// # Panics
    /// Outside the image.
    pub fn row(&self, y: usize) -> &[[Candidate; 2]] {
        &self.pairs[y * self.width..][..self.width]
    }
}
