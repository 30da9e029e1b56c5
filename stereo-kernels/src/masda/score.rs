//! Score and horizontal forward pass in one (masda.md, image plane, points 2 and 3): the raw volume is never stored.

use super::{CENSUS_ENTRIES, LEVELS, blend, table};
use crate::{
    census::hamming,
    gpu::{
        global::{Element, Global, GlobalMut},
        shared::Shared,
        thread,
    },
};

/// Threads per block: two warps, so that the few rows spread evenly over the multiprocessors.
pub const BLOCK: u32 = 64;

/// Bytes of dynamic shared memory: both score tables.
pub const SHARED_BYTES: u32 = ENTRIES * size_of::<i16>() as u32;

/// The table entries that scores need; they come first in the tables' buffer.
const ENTRIES: u32 = CENSUS_ENTRIES + LEVELS;

/// Pixels loaded ahead of the recursion.
const DEPTH: usize = 8;

crate::kernels! {
    /// Launch one warp per row and 32 disparities: `grid = ceil(height * padded / BLOCK)`, `block = BLOCK`,
    /// `shared = SHARED_BYTES`.
    pub struct Score<T> {
        /// 7x7 census of the left image, `[y][x]`.
        census_left: Global<u64>,
        /// 7x7 census of the right image, `[y][x]`.
        census_right: Global<u64>,
        /// Left grey image, `[y][x]`.
        left: Global<T>,
        /// Right grey image, `[y][x]`.
        right: Global<T>,
        /// The tables, see [`table`].
        tables: Global<i16>,
        /// The horizontal coefficients, see [`coefficients`](super::coefficients).
        coefficients: Global<i16>,
        /// The filtered scores, `[y][x][k]`, `width * height * padded`.
        volume: GlobalMut<i16>,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Disparities between pixels of the volume.
        padded: u32,
        /// Smallest disparity.
        min_disparity: i32,
        /// How many bits an intensity is wider than 8.
        shift: u32,
    }
    /// For 8-bit images.
    entry masda_score_u8<u8> = score::<u8>;
    /// For 16-bit images.
    entry masda_score_u16<u16> = score::<u16>;
}

#[inline(always)]
fn score<T: Element + Into<u32>>(args: Score<T>) {
    let Score {
        census_left,
        census_right,
        left,
        right,
        tables,
        coefficients,
        volume,
        width,
        height,
        padded,
        min_disparity,
        shift,
    } = args;
    let shared = Shared::<i16>::dynamic(0, ENTRIES);
    let mut i = thread::thread_idx_x();
    while i < ENTRIES {
        shared.set(i, tables.get(i as usize));
        i += BLOCK;
    }
    thread::sync_threads();

    // All rows' disparities in one line of threads; a warp never spans two rows.
    let index = thread::block_idx_x() * BLOCK + thread::thread_idx_x();
    let (y, k) = (index / padded, index % padded);
    if y >= height {
        return;
    }
    let row = y as usize * width as usize;
    let last = width as i32 - 1;
    // The right column of `x` is `x - reach`.
    let reach = k as i32 + min_disparity;
    let load = |x: u32| {
        let x = (x as i32).min(last);
        let (l, r) = (row + x as usize, row + (x - reach).max(0).min(last) as usize);
        let difference = {
            let (a, b): (u32, u32) = (left.get(l).into(), right.get(r).into());
            a.abs_diff(b) >> shift
        };
        (hamming(census_left.get(l), census_right.get(r)), difference, coefficients.get(l))
    };

    let mut waiting = [(0, 0, 0); DEPTH];
    let mut j = 0;
    while j < DEPTH {
        waiting[j] = load(j as u32);
        j += 1;
    }
    let mut carry = 0;
    let mut at = row * padded as usize + k as usize;
    let mut x = 0;
    while x < width {
        let mut j = 0;
        while j < DEPTH {
            let here = x + j as u32;
            let (distance, difference, a) = waiting[j];
            waiting[j] = load(here + DEPTH as u32);
            let by_census = i32::from(shared.get(table::CENSUS + distance));
            let by_intensity = i32::from(shared.get(table::INTENSITY + difference));
            carry = blend(by_census + by_intensity, carry, a.into());
            if here < width {
                volume.set(at, carry as i16);
            }
            at += padded as usize;
            j += 1;
        }
        x += DEPTH as u32;
    }
}
