//! The two passes between score and top two (masda.md, image plane, point 3), in place.

use super::blend;
use crate::gpu::{
    global::{Global, GlobalMut},
    thread,
};

/// Threads per block.
pub const BLOCK: u32 = 64;

/// Pixels loaded ahead of the recursion.
const DEPTH: usize = 8;

crate::kernels! {
    /// Launch one warp per path and 32 disparities: `grid = ceil(paths * padded / BLOCK)`, `block = BLOCK`, with a path per
    /// row (horizontal) or column (vertical).
    pub struct Filter {
        /// Scores, `[y][x][k]`, `width * height * padded`.
        volume: GlobalMut<i16>,
        /// The axis's coefficients, see [`coefficients`](super::coefficients); for the backward pass from the second
        /// element (horizontal) on.
        coefficients: Global<i16>,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Disparities between pixels of the volume.
        padded: u32,
    }
    /// From `x + 1` to `x`.
    entry masda_horizontal_backward = horizontal_backward;
    /// From `y - 1` to `y`.
    entry masda_vertical_forward = vertical_forward;
}

#[inline(always)]
fn horizontal_backward(args: Filter) {
    let Filter { width, height, .. } = args;
    walk(args, height, width, |path| path as usize * width as usize + width as usize - 1, -1);
}

#[inline(always)]
fn vertical_forward(args: Filter) {
    let Filter { width, height, .. } = args;
    walk(args, width, height, |path| path as usize, width as isize);
}

/// Filters `paths` paths of `steps` pixels from their `first` pixel on, `stride` pixels apart.
#[inline(always)]
fn walk(args: Filter, paths: u32, steps: u32, first: impl Fn(u32) -> usize, stride: isize) {
    let Filter { volume, coefficients, padded, .. } = args;
    let index = thread::block_idx_x() * BLOCK + thread::thread_idx_x();
    let (path, k) = (index / padded, (index % padded) as usize);
    // A warp never spans two paths, and no warp waits for another.
    if path >= paths {
        return;
    }
    let start = first(path);
    let stride_in_volume = stride * padded as isize;
    let mut here = start * padded as usize + k;

    // Positions advance by addition: products of 64 bits in every step would cost more than the filter.
    let (mut ahead, mut ahead_pixel, mut ahead_steps) = (here, start, steps - 1);
    let mut load = || {
        let loaded = (volume.get(ahead), coefficients.get(ahead_pixel));
        if ahead_steps > 0 {
            ahead = ahead.wrapping_add_signed(stride_in_volume);
            ahead_pixel = ahead_pixel.wrapping_add_signed(stride);
            ahead_steps -= 1;
        }
        loaded
    };

    let mut waiting = [(0, 0); DEPTH];
    let mut j = 0;
    while j < DEPTH {
        waiting[j] = load();
        j += 1;
    }
    let mut carry = 0;
    let mut step = 0;
    while step < steps {
        let mut j = 0;
        while j < DEPTH {
            let (v, a) = waiting[j];
            waiting[j] = load();
            carry = blend(v.into(), carry, a.into());
            if step + (j as u32) < steps {
                volume.set(here, carry as i16);
            }
            here = here.wrapping_add_signed(stride_in_volume);
            j += 1;
        }
        step += DEPTH as u32;
    }
}
