//! How costs lie in memory, for every kernel that touches a cost or path cost volume.
//!
//! A volume is `[y][x][d]`, 8 bits a cost, disparity innermost, its pixels [`padded`] disparities
//! apart. Disparities come in chunks of [`CHUNK`], and inside a chunk in the order
//! `0, 8, 1, 9, … 7, 15`: one `prmt` then unpacks a word into registers that hold disparities
//! `(i, i + 8)`, so that a register's neighbours in disparity are other registers of the same lane.
//! A padded disparity costs [`PADDING_COST`]: it then never wins, never lowers a minimum and never
//! serves as a neighbour, because the smallest path cost of a pixel is at most the largest matching
//! cost, and that plus `P2` fits 8 bits.

use crate::gpu::packed;

/// Disparities that are loaded, stored and held together: 16 bytes, [`REGISTERS`] packed registers.
pub const CHUNK: u32 = 16;

/// Packed registers that hold a chunk: two disparities each.
pub const REGISTERS: usize = CHUNK as usize / 2;

/// 32-bit words in a chunk.
pub const WORDS: usize = CHUNK as usize / 4;

/// The matching cost of a padded disparity.
pub const PADDING_COST: u32 = 255;

/// Disparities between pixels of a volume: `disparities` rounded up to a power of two of chunks, so
/// that a pixel's lanes are a power of two.
pub const fn padded(disparities: u32) -> u32 {
    disparities.div_ceil(CHUNK).next_power_of_two() * CHUNK
}

/// The most lanes that a pixel's disparities are spread over: a warp.
const MAX_LANES: u32 = 32;

/// Lanes that a pixel of `padded` disparities is spread over: one per chunk, up to a warp.
pub const fn lanes(padded: u32) -> u32 {
    let chunks = padded / CHUNK;
    if chunks < MAX_LANES { chunks } else { MAX_LANES }
}

/// How kernels' names spell the sizes that they are made for: `d128` for volumes of 128 disparities,
/// `any` for those without a kernel of their own.
pub const fn class(padded: u32) -> &'static str {
    match padded {
        64 => "d64",
        128 => "d128",
        256 => "d256",
        1024 => "d1024",
        _ => "any",
    }
}

/// Where disparity `d` of a pixel lies among the pixel's bytes.
pub const fn byte_of(d: u32) -> u32 {
    let in_chunk = d % CHUNK;
    d - in_chunk + 2 * (in_chunk % 8) + in_chunk / 8
}

/// A chunk's words as registers: register `i` holds disparities `(i, i + 8)`.
#[inline(always)]
pub fn unpack(words: [u32; WORDS]) -> [u32; REGISTERS] {
    let mut registers = [0; REGISTERS];
    let mut i = 0;
    while i < REGISTERS {
        let selector = if i.is_multiple_of(2) { 0x4140 } else { 0x4342 };
        registers[i] = packed::permute(words[i / 2], 0, selector);
        i += 1;
    }
    registers
}

/// The inverse of [`unpack`]; keeps the low byte of every lane.
#[inline(always)]
pub fn pack(registers: [u32; REGISTERS]) -> [u32; WORDS] {
    let mut words = [0; WORDS];
    let mut i = 0;
    while i < WORDS {
        words[i] = packed::permute(registers[2 * i], registers[2 * i + 1], 0x6420);
        i += 1;
    }
    words
}
