//! Census transform (sgm.md, section 1): one descriptor per pixel, `u64`, layout `[y][x]`.
//!
//! A thread makes the descriptors of [`ROWS`] pixels below each other, so that a row of neighbours is
//! loaded once for all of them: 17 loads a pixel instead of 49.

use crate::gpu::{
    global::{Element, Global, GlobalMut},
    thread,
};

/// Pixels that one thread handles, below each other.
pub const ROWS: u32 = 4;

/// Threads per block; block `x` covers this many columns.
pub const BLOCK: u32 = 128;

crate::kernels! {
    /// Launch with `grid = (ceil(width / BLOCK), ceil(height / ROWS))`, `block = BLOCK`.
    pub struct Census<T> {
        /// Grey image, `[y][x]`, `width * height`.
        image: Global<T>,
        /// Descriptors, `[y][x]`, `width * height`.
        descriptors: GlobalMut<u64>,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
    }
    /// 7x7 centre census of 8-bit images: 48 bits.
    entry census_7x7_u8<u8> = centre::<u8, 3>;
    /// 7x7 centre census of 16-bit images: 48 bits.
    entry census_7x7_u16<u16> = centre::<u16, 3>;
    /// 9 wide, 7 high centre census of 8-bit images: 62 bits.
    entry census_9x7_u8<u8> = centre::<u8, 4>;
    /// 9 wide, 7 high centre census of 16-bit images: 62 bits.
    entry census_9x7_u16<u16> = centre::<u16, 4>;
    /// Symmetric 9x7 census of 8-bit images: 31 bits.
    entry census_symmetric_u8<u8> = symmetric::<u8>;
    /// Symmetric 9x7 census of 16-bit images: 31 bits.
    entry census_symmetric_u16<u16> = symmetric::<u16>;
}

/// In how many bits two descriptors differ.
///
/// Counted by halves, as the device does it anyway: rust-cuda's compiler loses the count of any integer that has not 32
/// bits (its issue 401).
#[inline(always)]
pub fn hamming(a: u64, b: u64) -> u32 {
    let different = a ^ b;
    (different as u32).count_ones() + ((different >> 32) as u32).count_ones()
}

/// Half the window's height, in every census.
const RADIUS_Y: i32 = 3;

/// Centre census with a window of `2 * RX + 1` by 7 and coordinates clamped to the image.
#[inline(always)]
fn centre<T: Element + PartialOrd + Default, const RX: i32>(args: Census<T>) {
    let Census { image, descriptors, width, height } = args;
    let x = (thread::block_idx_x() * BLOCK + thread::thread_idx_x()) as i32;
    let y0 = (thread::block_idx_y() * ROWS) as i32;
    let (w, h) = (width as i32, height as i32);
    if x >= w {
        return;
    }
    let row = |y: i32| y.max(0).min(h - 1) as usize * width as usize;

    let mut centres = [T::default(); ROWS as usize];
    for (j, centre) in centres.iter_mut().enumerate() {
        *centre = image.get(row(y0 + j as i32) + x as usize);
    }
    // The bits before and after the centre, as many each.
    let half = (2 * RX + 1) * RADIUS_Y + RX;
    let mut bits = [[0u32; 2]; ROWS as usize];
    let mut dy = -RADIUS_Y;
    while dy < ROWS as i32 + RADIUS_Y {
        let start = row(y0 + dy);
        let mut dx = -RX;
        while dx <= RX {
            let neighbour = image.get(start + (x + dx).max(0).min(w - 1) as usize);
            let mut j = 0;
            while j < ROWS as i32 {
                let in_window = dy - j >= -RADIUS_Y && dy - j <= RADIUS_Y;
                if in_window && !(dx == 0 && dy == j) {
                    let part = &mut bits[j as usize][usize::from((dy, dx) > (j, 0))];
                    *part = (*part << 1) | u32::from(neighbour > centres[j as usize]);
                }
                j += 1;
            }
            dx += 1;
        }
        dy += 1;
    }
    let f = bits.map(|[before, after]| (u64::from(before) << half) | u64::from(after));
    store(descriptors, f, x, y0, w, h);
}

/// Symmetric census: 31 mirrored pairs of a 9x7 window, 0 where the window leaves the image.
#[inline(always)]
fn symmetric<T: Element + PartialOrd + Default>(args: Census<T>) {
    const RX: i32 = 4;
    let Census { image, descriptors, width, height } = args;
    let x = (thread::block_idx_x() * BLOCK + thread::thread_idx_x()) as i32;
    let y0 = (thread::block_idx_y() * ROWS) as i32;
    let (w, h) = (width as i32, height as i32);
    if x >= w {
        return;
    }
    // A bound that the compiler does not know keeps the code small: rows share nothing here.
    let mut y = y0;
    while y < h.min(y0 + ROWS as i32) {
        let mut bits = 0u32;
        if x >= RX && x < w - RX && y >= RADIUS_Y && y < h - RADIUS_Y {
            let at = |dx: i32, dy: i32| image.get((y + dy) as usize * width as usize + (x + dx) as usize);
            let mut dy = -RADIUS_Y;
            while dy <= 0 {
                let mut dx = -RX;
                while dx <= if dy == 0 { -1 } else { RX } {
                    bits = (bits << 1) | u32::from(at(dx, dy) > at(-dx, -dy));
                    dx += 1;
                }
                dy += 1;
            }
        }
        descriptors.set(y as usize * w as usize + x as usize, bits.into());
        y += 1;
    }
}

#[inline(always)]
fn store(descriptors: GlobalMut<u64>, f: [u64; ROWS as usize], x: i32, y0: i32, w: i32, h: i32) {
    for (j, bits) in f.into_iter().enumerate() {
        let y = y0 + j as i32;
        if y < h {
            descriptors.set(y as usize * w as usize + x as usize, bits);
        }
    }
}
