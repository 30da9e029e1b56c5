//! How costs lie in memory, for every kernel that touches a cost or path cost volume.
//!
//! A volume is `[y][x][d]`, 8 bits a cost, disparity innermost, its pixels [`padded`] disparities
//! apart. Disparities come in chunks of [`CHUNK`], and inside a chunk in the order
//! `0, 4, 1, 5, 2, 6, 3, 7`: one `prmt` then unpacks half a word into a register that holds
//! disparities `(i, i + 4)`, so that a register's neighbours in disparity are other registers of the
//! same lane. A padded disparity costs [`PADDING_COST`]: it then never wins, never lowers a minimum
//! and never serves as a neighbour, because the smallest path cost of a pixel is at most the largest
//! matching cost, and that plus `P2` fits 8 bits.

use crate::gpu::packed;

/// Disparities that are packed together: 8 bytes, [`REGISTERS`] registers.
pub const CHUNK: u32 = 8;

/// Packed registers that hold a chunk: two disparities each.
pub const REGISTERS: usize = CHUNK as usize / 2;

/// 32-bit words in a chunk.
pub const WORDS: usize = CHUNK as usize / 4;

/// Disparities that volumes are padded to, and that a lane holds where nothing else is said: two
/// chunks, one 16-byte load.
pub const LANE: u32 = 2 * CHUNK;

/// The matching cost of a padded disparity.
pub const PADDING_COST: u32 = 255;

/// Disparities between pixels of a volume: `disparities` rounded up to a power of two of [`LANE`], so
/// that a pixel's lanes are a power of two and its bytes can be copied in bulk.
pub const fn padded(disparities: u32) -> u32 {
    disparities.div_ceil(LANE).next_power_of_two() * LANE
}

/// The most lanes that a pixel's disparities are spread over: a warp.
const MAX_LANES: u32 = 32;

/// Lanes that a pixel of `padded` disparities is spread over: [`LANE`] disparities each, more when a
/// warp is not enough.
pub const fn lanes(padded: u32) -> u32 {
    let lanes = padded / LANE;
    if lanes < MAX_LANES { lanes } else { MAX_LANES }
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
    d - in_chunk + 2 * (in_chunk % (CHUNK / 2)) + in_chunk / (CHUNK / 2)
}

/// A chunk's words as registers: register `i` holds disparities `(i, i + 4)`. Words are passed one by
/// one: of pairs the compiler makes 64-bit registers.
#[inline(always)]
pub fn unpack(low: u32, high: u32) -> [u32; REGISTERS] {
    let first = |word: u32| packed::permute(word, 0, 0x4140);
    let second = |word: u32| packed::permute(word, 0, 0x4342);
    [first(low), second(low), first(high), second(high)]
}

/// Half the inverse of [`unpack`]: the word of two registers, from the low byte of every lane.
#[inline(always)]
pub fn pack(a: u32, b: u32) -> u32 {
    packed::permute(a, b, 0x6420)
}
