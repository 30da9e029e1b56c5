//! Matching cost (sgm.md, section 2): the Hamming distance of census descriptors, one byte per
//! disparity, layout [`crate::layout`].
//!
//! A thread makes the chunk of [`PIXELS`] neighbouring pixels: their 64 distances need only 19 right
//! descriptors, which stay in registers. The block's right descriptors lie in shared memory, one
//! element skipped after every 16, so that lanes a chunk apart meet different banks.

use crate::{
    gpu::{
        global::{Global, GlobalMut},
        shared::Shared,
        thread,
    },
    layout::{CHUNK, PADDING_COST, WORDS},
};

/// Neighbouring pixels per thread.
pub const PIXELS: u32 = 4;

/// Threads per block.
pub const BLOCK: u32 = 256;

/// Pixels per block, for a volume of `padded` disparities per pixel.
pub const fn tile(padded: u32) -> u32 {
    BLOCK / (padded / CHUNK) * PIXELS
}

/// Bytes of shared memory per block.
pub const fn shared_bytes(padded: u32) -> u32 {
    (skewed(tile(padded) + padded) + 1) * size_of::<u64>() as u32
}

const fn skewed(i: u32) -> u32 {
    i + i / CHUNK
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
    const WINDOW: usize = (CHUNK + PIXELS - 1) as usize;
    let Cost { left, right, costs, width, disparities, padded, min_disparity } = args;
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

    let chunks = padded / CHUNK;
    let chunk = thread::thread_idx_x() % chunks;
    let in_tile = thread::thread_idx_x() / chunks * PIXELS;

    // Window element `k` is the descriptor that pixel `p` meets at disparity `chunk * 16 + 15 + p - k`.
    let window_start = in_tile + padded - (chunk + 1) * CHUNK;
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
        while i < CHUNK as usize {
            let hamming = (descriptor ^ window[CHUNK as usize - 1 + p - i]).count_ones();
            let byte = 2 * (i % 8) + i / 8;
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
        if (chunk + 1) * CHUNK > disparities {
            words = pad(words, disparities.saturating_sub(chunk * CHUNK));
        }
        if x < width {
            costs.set_x4((row + x as usize) * padded as usize + (chunk * CHUNK) as usize, words);
        }
        p += 1;
    }
}

/// Replaces the costs of the chunk's disparities from `from` on.
#[inline(always)]
fn pad(mut words: [u32; WORDS], from: u32) -> [u32; WORDS] {
    let mut i = 0;
    while i < CHUNK as usize {
        let byte = 2 * (i % 8) + i / 8;
        if i as u32 >= from {
            words[byte / 4] |= PADDING_COST << (8 * (byte % 4));
        }
        i += 1;
    }
    words
}
