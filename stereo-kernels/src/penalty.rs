//! The penalty `P2` of every step (sgm.md, section 3), one 8-bit image per axis.
//!
//! Pixel `p` of an image holds the `P2` of the step from `p - r` to `p` for the axis's forward
//! direction `r`, and 0 where `p - r` lies outside: 0 restarts a path. The backward direction needs,
//! at `p`, the step between `p` and `p + r`: the value at `p + r`. Read `W * r.y + r.x` elements
//! further on, the same image serves it, zeros included, provided that [`tail`] zeros follow the
//! last row.

use crate::gpu::{
    global::{Element, Global, GlobalMut},
    thread,
};

/// The axes in the images' order, as their forward direction `(x, y)`: horizontal, vertical and the
/// two diagonals.
pub const AXES: [(i32, i32); 4] = [(1, 0), (0, 1), (1, 1), (-1, 1)];

/// Threads per block.
pub const BLOCK: u32 = 256;

/// Zeros behind each image.
pub const fn tail(width: usize) -> usize {
    width + 1
}

crate::kernels! {
    /// Launch with `grid = ceil((width * height + tail(width)) / BLOCK)`, `block = BLOCK`.
    pub struct Penalty<T> {
        /// Left grey image, `[y][x]`.
        image: Global<T>,
        /// `axes` images, each `width * height + tail(width)` elements.
        penalties: GlobalMut<u8>,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Images to write, 2 or 4.
        axes: u32,
        /// The smallest penalty.
        p1: u32,
        /// The penalty where the image is flat.
        p2: u32,
        /// 1 to divide `p2` by the intensity step plus one, 0 to keep it.
        adaptive: u32,
    }
    /// For 8-bit images.
    entry penalty_u8<u8> = penalty::<u8>;
    /// For 16-bit images.
    entry penalty_u16<u16> = penalty::<u16>;
}

#[inline(always)]
fn penalty<T: Element + Into<u32>>(args: Penalty<T>) {
    let Penalty { image, penalties, width, height, axes, p1, p2, adaptive } = args;
    // At least 1, so that divisions need no check.
    let width = width.max(1);
    let pixels = (width * height) as usize;
    let per_image = pixels + tail(width as usize);
    let i = (thread::block_idx_x() * BLOCK + thread::thread_idx_x()) as usize;
    if i >= per_image {
        return;
    }
    let (x, y) = ((i as u32 % width) as i32, (i as u32 / width) as i32);
    let mut axis = 0;
    while axis < AXES.len() {
        let (dx, dy) = AXES[axis];
        let from_x = x - dx;
        let inside = i < pixels && from_x >= 0 && from_x < width as i32 && y >= dy;
        let value = if !inside {
            0
        } else if adaptive == 0 {
            p2
        } else {
            let here: u32 = image.get(i).into();
            let before: u32 = image.get((y - dy) as usize * width as usize + from_x as usize).into();
            p1.max(p2 / (here.abs_diff(before) + 1))
        };
        if (axis as u32) < axes {
            penalties.set(axis * per_image + i, value as u8);
        }
        axis += 1;
    }
}
