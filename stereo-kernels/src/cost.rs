//! Matching cost (sgm.md, section 2): the Hamming distance of census descriptors, one byte per
//! disparity, layout [`crate::layout`].
//!
//! A thread makes [`LANE`] costs of [`PIXELS`] neighbouring pixels: their 64 distances need only 19 right
//! descriptors, which stay in registers. The block's right descriptors lie in shared memory, one
//! element skipped after every 16, so that threads apart by that meet different banks.

use crate::{
    census::hamming,
    gpu::{
        global::{Global, GlobalMut},
        shared::Shared,
        thread,
    },
    layout::{LANE, PADDING_COST, byte_of},
};

/// 32-bit words of a thread's costs of a pixel.
const WORDS: usize = LANE as usize / 4;

/// Neighbouring pixels per thread.
pub const PIXELS: u32 = 4;

/// Threads per block.
pub const BLOCK: u32 = 256;

/// Pixels per block, for a volume of `padded` disparities per pixel.
pub const fn tile(padded: u32) -> u32 {
    BLOCK / (padded / LANE) * PIXELS
}

/// Bytes of shared memory per block.
pub const fn shared_bytes(padded: u32) -> u32 {
    (skewed(tile(padded) + padded) + 1) * size_of::<u64>() as u32
}

const fn skewed(i: u32) -> u32 {
    i + i / LANE
}

crate::kernels! {
    /// Launch with `grid = (ceil(width / tile(padded)), height)`, `block = BLOCK`, `shared_bytes(padded)`.
    pub struct Cost {
        /// Left descriptors, `[y][x]`.
        left: Global<u64>,
        /// Right descriptors, `[y][x]`.
        right: Global<u64>,
        /// Costs, `[y][x][d]`, `width * height * padded`.
        costs: GlobalMut<u8>,
        /// Pixels in a row.
        width: u32,
        /// Disparities that count.
        disparities: u32,
        /// Disparities in the volume, see [`crate::layout::padded`].
        padded: u32,
        /// The smallest disparity.
        min_disparity: i32,
    }
    /// Of centre descriptors: the right column is clamped to the row, the distance halved upwards.
    entry cost_centre = cost::<true>;
    /// Of symmetric descriptors: outside the row the right descriptor is 0.
    entry cost_symmetric = cost::<false>;
}

#[inline(always)]
fn cost<const CENTRE: bool>(args: Cost) {
    const WINDOW: usize = (LANE + PIXELS - 1) as usize;
    let Cost { left, right, costs, width, disparities, padded, min_disparity } = args;
    // At least one chunk, so that divisions need no check.
    let padded = padded.max(LANE);
    let w = width as i32;
    let row = thread::block_idx_y() as usize * width as usize;
    let tile_start = (thread::block_idx_x() * tile(padded)) as i32;

    // Shared element `i` is right column `first_column + i`.
    let first_column = tile_start - min_disparity - (padded as i32 - 1);
    let columns = Shared::<u64>::dynamic(0, skewed(tile(padded) + padded) + 1);
    let mut i = thread::thread_idx_x();
    while i < tile(padded) + padded {
        let column = first_column.wrapping_add(i as i32);
        let inside = column >= 0 && column < w;
        let descriptor = if CENTRE || inside { right.get(row + column.max(0).min(w - 1) as usize) } else { 0 };
        columns.set(skewed(i), descriptor);
        i += BLOCK;
    }
    thread::sync_threads();

    let parts = padded / LANE;
    let part = thread::thread_idx_x() % parts;
    let in_tile = thread::thread_idx_x() / parts * PIXELS;

    // Window element `k` is the descriptor that pixel `p` meets at disparity `part * 16 + 15 + p - k`.
    let window_start = in_tile + padded - (part + 1) * LANE;
    let mut window = [0; WINDOW];
    let mut k = 0;
    while k < WINDOW {
        window[k] = columns.get(skewed(window_start + k as u32));
        k += 1;
    }

    let mut p = 0;
    while p < PIXELS as usize {
        let x = tile_start as u32 + in_tile + p as u32;
        let descriptor = left.get(row + x.min(width - 1) as usize);
        let mut words = [0; WORDS];
        let mut i = 0;
        while i < LANE as usize {
            let hamming = hamming(descriptor, window[LANE as usize - 1 + p - i]);
            let byte = byte_of(i as u32) as usize;
            words[byte / 4] |= hamming << (8 * (byte % 4));
            i += 1;
        }
        if CENTRE {
            let mut word = 0;
            while word < WORDS {
                words[word] = ((words[word] + 0x0101_0101) >> 1) & 0x7f7f_7f7f;
                word += 1;
            }
        }
        if (part + 1) * LANE > disparities {
            words = pad(words, disparities.saturating_sub(part * LANE));
        }
        if x < width {
            costs.set_x4((row + x as usize) * padded as usize + (part * LANE) as usize, words);
        }
        p += 1;
    }
}

/// Replaces the costs of the part's disparities from `from` on.
#[inline(always)]
fn pad(mut words: [u32; WORDS], from: u32) -> [u32; WORDS] {
    let mut i = 0;
    while i < LANE as usize {
        let byte = byte_of(i as u32) as usize;
        if i as u32 >= from {
            words[byte / 4] |= PADDING_COST << (8 * (byte % 4));
        }
        i += 1;
    }
    words
}
