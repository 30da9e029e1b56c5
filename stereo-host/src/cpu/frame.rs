//! What every later stage reads of a pair: the census planes of both images and the left intensities.

use rayon::prelude::*;

use super::{
    arch::Kernels,
    census::{CensusRow, MARGIN_X, MARGIN_Y, PenaltyRow, planes},
    plan::Plan,
};
use crate::{Census, GrayView, Pixels};

/// An image widened by copies of its border.
struct Padded<T> {
    pixels: Vec<T>,
    stride: usize,
}

impl<T: Copy + Default + Send + Sync> Padded<T> {
    fn new(plan: &Plan) -> Self {
        let stride = plan.width + 2 * MARGIN_X;
        Self { pixels: vec![T::default(); stride * (plan.height + 2 * MARGIN_Y)], stride }
    }

    fn fill(&mut self, plan: &Plan, pixels: &[T], stride: usize) {
        self.pixels.par_chunks_exact_mut(self.stride).enumerate().for_each(|(row, out)| {
            let y = row.saturating_sub(MARGIN_Y).min(plan.height - 1);
            let line = &pixels[y * stride..][..plan.width];
            out[..MARGIN_X].fill(line[0]);
            out[MARGIN_X..][..plan.width].copy_from_slice(line);
            out[MARGIN_X + plan.width..].fill(line[plan.width - 1]);
        });
    }

    /// Pixel `(dx, y + dy)` and what follows it.
    fn at(&self, dx: isize, y: usize, dy: isize) -> &[T] {
        let start = (y + MARGIN_Y) * self.stride + MARGIN_X;
        let offset = dy * self.stride as isize + dx;
        &self.pixels[start.checked_add_signed(offset).expect("offsets stay within the margins")..]
    }
}

/// Both images at one depth.
struct Pair<T> {
    left: Padded<T>,
    right: Padded<T>,
}

impl<T: Copy + Default + Send + Sync> Pair<T> {
    fn new(plan: &Plan) -> Self {
        Self { left: Padded::new(plan), right: Padded::new(plan) }
    }
}

/// The pair of a match. Images of a depth are allocated when the first pair of that depth comes.
pub(super) struct Frame {
    pairs8: Option<Pair<u8>>,
    pairs16: Option<Pair<u16>>,
    deep: bool,
    window: Vec<[[(isize, isize); 2]; 8]>,
    /// `[y][plane][x]`.
    left: Vec<u8>,
    /// `[y][plane][u]`, mirrored: see [`super::cost`].
    right: Vec<u8>,
}

impl Frame {
    pub(super) fn new(plan: &Plan) -> Self {
        Self {
            pairs8: None,
            pairs16: None,
            deep: false,
            window: planes(plan.census),
            left: vec![0; plan.height * plan.planes * plan.width],
            right: vec![0; plan.height * plan.planes * plan.mirrored()],
        }
    }

    /// Takes a pair of the built size and one depth.
    pub(super) fn load(&mut self, plan: &Plan, kernels: &Kernels, left: &GrayView<'_>, right: &GrayView<'_>) {
        match (left.pixels(), right.pixels()) {
            (Pixels::U8(l), Pixels::U8(r)) => {
                let mut pair = self.pairs8.take().unwrap_or_else(|| Pair::new(plan));
                pair.left.fill(plan, l, left.stride());
                pair.right.fill(plan, r, right.stride());
                self.census(plan, &pair, kernels.census8);
                (self.pairs8, self.deep) = (Some(pair), false);
            }
            (Pixels::U16(l), Pixels::U16(r)) => {
                let mut pair = self.pairs16.take().unwrap_or_else(|| Pair::new(plan));
                pair.left.fill(plan, l, left.stride());
                pair.right.fill(plan, r, right.stride());
                self.census(plan, &pair, kernels.census16);
                (self.pairs16, self.deep) = (Some(pair), true);
            }
            _ => unreachable!("the matcher has refused images of different depths"),
        }
    }

    fn census<T: Copy + Default + Send + Sync>(
        &mut self,
        plan: &Plan,
        pair: &Pair<T>,
        census_row: unsafe fn(&CensusRow<T>),
    ) {
        let window = &self.window;
        let row = |image: &Padded<T>, y: usize, out: &mut [u8]| {
            let length = out.len() / plan.planes;
            for (&pairs, out) in window.iter().zip(out.chunks_exact_mut(length)) {
                let pixels = image.at(0, y, 0).as_ptr();
                let row = CensusRow { pixels, stride: image.stride, width: plan.width, pairs, out: out.as_mut_ptr() };
                // SAFETY: the kernel table is this machine's; the image has its margins, `out` holds a row.
                unsafe { census_row(&row) };
                if plan.census == Census::Symmetric9x7 {
                    clear_partial_windows(plan, y, &mut out[..plan.width]);
                }
            }
        };
        let left = self.left.par_chunks_exact_mut(plan.planes * plan.width);
        let right = self.right.par_chunks_exact_mut(plan.planes * plan.mirrored());
        left.zip(right).enumerate().for_each(|(y, (left, right))| {
            row(&pair.left, y, left);
            row(&pair.right, y, right);
            right.chunks_exact_mut(plan.mirrored()).for_each(|plane| mirror(plan, plane));
        });
    }

    /// The left descriptors of row `y`, plane after plane, and the distance between planes.
    pub(super) fn left_planes(&self, plan: &Plan, y: usize) -> (*const u8, usize) {
        (self.left[y * plan.planes * plan.width..].as_ptr(), plan.width)
    }

    /// The mirrored right descriptors of row `y`, likewise.
    pub(super) fn right_planes(&self, plan: &Plan, y: usize) -> (*const u8, usize) {
        (self.right[y * plan.planes * plan.mirrored()..].as_ptr(), plan.mirrored())
    }

    /// `P2` of the pixels of row `y` whose predecessors are at `(x + dx, y + dy)`; what lies outside the
    /// image is replaced by its border, and not used.
    pub(super) fn penalties(&self, plan: &Plan, kernels: &Kernels, y: usize, (dx, dy): (isize, isize), out: &mut [u8]) {
        if !plan.adaptive_p2 {
            out[..plan.width].fill(plan.p2);
            return;
        }
        assert!(out.len() >= plan.width);
        let (width, p1, p2, out) = (plan.width, plan.p1, plan.p2, out.as_mut_ptr());
        // SAFETY: the kernel table is this machine's; both rows have `width` pixels, the margin included.
        unsafe {
            if self.deep {
                let image = &self.pairs16.as_ref().expect("loaded before").left;
                let (pixels, predecessors) = (image.at(0, y, 0).as_ptr(), image.at(dx, y, dy).as_ptr());
                (kernels.penalties16)(&PenaltyRow { pixels, predecessors, width, p1, p2, out });
            } else {
                let image = &self.pairs8.as_ref().expect("loaded before").left;
                let (pixels, predecessors) = (image.at(0, y, 0).as_ptr(), image.at(dx, y, dy).as_ptr());
                (kernels.penalties8)(&PenaltyRow { pixels, predecessors, width, p1, p2, out });
            }
        }
    }
}

/// Symmetric descriptors whose window leaves the image are 0.
fn clear_partial_windows(plan: &Plan, y: usize, row: &mut [u8]) {
    if y < MARGIN_Y || y + MARGIN_Y >= plan.height || plan.width <= 2 * MARGIN_X {
        row.fill(0);
    } else {
        row[..MARGIN_X].fill(0);
        row[plan.width - MARGIN_X..].fill(0);
    }
}

/// Turns a row of descriptor bytes by `x` into one by `u`, where `u` stands for the right column
/// `width - 1 - m - u`: clamped to the row, or 0 outside it (sgm.md, section 2).
fn mirror(plan: &Plan, row: &mut [u8]) {
    let width = plan.width;
    row[..width].reverse();
    let outside = plan.census == Census::Symmetric9x7;
    let (first, last) = if outside { (0, 0) } else { (row[0], row[width - 1]) };
    // Now entry `j` is column `width - 1 - j`, and entry `u` shall be what `u + m` is.
    let shift = plan.min_disparity.unsigned_abs();
    if plan.min_disparity >= 0 {
        let kept = width.saturating_sub(shift);
        row.copy_within(width - kept..width, 0);
        row[kept..].fill(last);
    } else {
        let start = shift.min(row.len());
        let end = (start + width).min(row.len());
        row.copy_within(..end - start, start);
        row[..start].fill(first);
        row[end..].fill(last);
    }
}
