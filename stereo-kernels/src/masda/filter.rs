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
    let pixel = |step: u32| start.wrapping_add_signed(step.min(steps - 1) as isize * stride);
    let load = |step: u32| {
        let pixel = pixel(step);
        (volume.get(pixel * padded as usize + k), coefficients.get(pixel))
    };

    let mut waiting = [(0, 0); DEPTH];
    let mut j = 0;
    while j < DEPTH {
        waiting[j] = load(j as u32);
        j += 1;
    }
    let mut carry = 0;
    let mut step = 0;
    while step < steps {
        let mut j = 0;
        while j < DEPTH {
            let here = step + j as u32;
            let (v, a) = waiting[j];
            waiting[j] = load(here + DEPTH as u32);
            carry = blend(v.into(), carry, a.into());
            if here < steps {
                volume.set(pixel(here) * padded as usize + k, carry as i16);
            }
            j += 1;
        }
        step += DEPTH as u32;
    }
}
