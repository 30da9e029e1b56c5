//! 3x3 median of a disparity map (sgm.md, section 5.1), one thread per pixel.

use crate::{
    gpu::{
        global::{Element, Global, GlobalMut},
        thread,
    },
    winner::INVALID,
};

/// Threads per block.
pub const BLOCK: u32 = 256;

crate::kernels! {
    /// Launch with `grid = (ceil(width / BLOCK), height)`, `block = BLOCK`.
    pub struct Median<T> {
        /// The map, `[y][x]`; the low 16 bits count, [`INVALID`] sorts last.
        source: Global<T>,
        /// The filtered map, `[y][x]`.
        target: GlobalMut<u16>,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// 1 to set the border pixels to 0, 0 to keep their value.
        zero_border: u32,
    }
    /// Of a left map.
    entry median_u16<u16> = median::<u16>;
    /// Of a right map's candidates, whose low half is the disparity.
    entry median_u32<u32> = median::<u32>;
}

#[inline(always)]
fn median<T: Element + Into<u32>>(args: Median<T>) {
    let Median { source, target, width, height, zero_border } = args;
    let x = thread::block_idx_x() * BLOCK + thread::thread_idx_x();
    let y = thread::block_idx_y();
    if x >= width {
        return;
    }
    let at = |x: u32, y: u32| -> u32 {
        let value: u32 = source.get(y as usize * width as usize + x as usize).into();
        value & u32::from(INVALID)
    };
    let inner = x > 0 && y > 0 && x + 1 < width && y + 1 < height;
    let value = if inner {
        let mut v = [0; 9];
        let mut i = 0;
        while i < 9 {
            v[i as usize] = at(x - 1 + i % 3, y - 1 + i / 3);
            i += 1;
        }
        middle(v)
    } else if zero_border != 0 {
        0
    } else {
        at(x, y)
    };
    target.set(y as usize * width as usize + x as usize, value as u16);
}

/// The fifth smallest of nine: sorts the columns, then the largest of the minima, the middle of the
/// medians and the smallest of the maxima have the median as their own.
#[inline(always)]
fn middle(v: [u32; 9]) -> u32 {
    let sorted = |a: u32, b: u32, c: u32| {
        let (low, high) = (a.min(b), a.max(b));
        (low.min(c), low.max(high.min(c)), high.max(c))
    };
    let (a, b, c) = (sorted(v[0], v[3], v[6]), sorted(v[1], v[4], v[7]), sorted(v[2], v[5], v[8]));
    let largest_minimum = a.0.max(b.0).max(c.0);
    let (_, middle_median, _) = sorted(a.1, b.1, c.1);
    let smallest_maximum = a.2.min(b.2).min(c.2);
    sorted(largest_minimum, middle_median, smallest_maximum).1
}
