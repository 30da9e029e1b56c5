//! The filter's coefficients (masda.md, image plane, point 3): one image per axis.
//!
//! Pixel `p` holds the coefficient of the step between `p - r` and `p` for the axis's forward direction `r`, and 0 where
//! `p - r` lies outside: 0 starts a path. The backward direction needs, at `p`, the step between `p` and `p + r`: the value
//! at `p + r`. Read 1 (horizontal) or `width` (vertical) elements further on, the same image serves it, zeros included,
//! provided that [`tail`] zeros follow the last row.

use super::table;
use crate::gpu::{
    global::{Element, Global, GlobalMut},
    thread,
};

/// Threads per block.
pub const BLOCK: u32 = 256;

/// The images, one after the other: horizontal, vertical.
pub const AXES: usize = 2;

/// Zeros behind each image.
pub const fn tail(width: usize) -> usize {
    width
}

crate::kernels! {
    /// Launch with `grid = ceil((width * height + tail(width)) / BLOCK)`, `block = BLOCK`.
    pub struct Coefficients<T> {
        /// Left grey image, `[y][x]`, `width * height`.
        image: Global<T>,
        /// The tables, see [`table`].
        tables: Global<i16>,
        /// The images of [`AXES`], each `width * height + tail(width)` elements.
        coefficients: GlobalMut<i16>,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// How many bits an intensity is wider than 8.
        shift: u32,
    }
    /// For 8-bit images.
    entry masda_coefficients_u8<u8> = both_axes::<u8>;
    /// For 16-bit images.
    entry masda_coefficients_u16<u16> = both_axes::<u16>;
}

#[inline(always)]
fn both_axes<T: Element + Into<u32>>(args: Coefficients<T>) {
    let Coefficients { image, tables, coefficients, width, height, shift } = args;
    let pixels = width as usize * height as usize;
    let per_image = pixels + tail(width as usize);
    let i = thread::block_idx_x() as usize * BLOCK as usize + thread::thread_idx_x() as usize;
    if i >= per_image {
        return;
    }
    let inside = i < pixels;
    let between = |before: usize| {
        let (here, before): (u32, u32) = (image.get(i).into(), image.get(before).into());
        tables.get((table::COEFFICIENT + (here.abs_diff(before) >> shift)) as usize)
    };
    let horizontal = if inside && !(i as u32).is_multiple_of(width) { between(i - 1) } else { 0 };
    let vertical = if inside && i >= width as usize { between(i - width as usize) } else { 0 };
    coefficients.set(i, horizontal);
    coefficients.set(per_image + i, vertical);
}
