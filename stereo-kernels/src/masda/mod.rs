//! MASDA's image plane (masda.md): from a pair and its 7x7 census to two candidates per left pixel.
//!
//! | kernel | reads | writes |
//! |---|---|---|
//! | [`coefficients`] | left image | filter coefficients of both axes |
//! | [`score`]: score + horizontal forward | descriptors, images, coefficients | volume |
//! | [`filter`]: horizontal backward, vertical forward | volume, coefficients | volume |
//! | [`top_two`]: vertical backward + top two | volume, coefficients | candidates |
//!
//! The volume is `[y][x][k]`, `i16`, its pixels [`padded`] disparities apart. A lane holds one disparity and a warp 32
//! consecutive ones, so the recursion has nothing serial across lanes. The padded `k` are filtered like the others, but
//! never become candidates. A walk is one dependent step after another: loads run ahead of it in registers.
//!
//! The volume passes work in place: a thread touches its own disparity of its own path alone.

pub mod coefficients;
pub mod filter;
pub mod score;
pub mod top_two;

use crate::gpu::warp;

/// The largest number of disparities: `d` has 8 bits in a candidate.
pub const MAX_DISPARITIES: u32 = 256;

/// One in the fixed-point numbers of tables and coefficients, which have 14 fractional bits.
pub const ONE: i32 = 1 << 14;

/// Entries of the census score table: 49 and padding.
pub const CENSUS_ENTRIES: u32 = 64;

/// Entries of the tables by intensity difference.
pub const LEVELS: u32 = 256;

/// Where the tables lie in their buffer of `i16`: census scores, intensity scores, filter coefficients.
pub mod table {
    /// Scores by Hamming distance.
    pub const CENSUS: u32 = 0;
    /// Scores by intensity difference.
    pub const INTENSITY: u32 = CENSUS + super::CENSUS_ENTRIES;
    /// Filter coefficients by intensity difference.
    pub const COEFFICIENT: u32 = INTENSITY + super::LEVELS;
    /// All entries.
    pub const LEN: u32 = COEFFICIENT + super::LEVELS;
}

/// Disparities between pixels of a volume: `disparities` rounded up to whole warps.
pub const fn padded(disparities: u32) -> u32 {
    disparities.next_multiple_of(warp::SIZE)
}

/// One step of the filter: `v` blended with the path's value so far, division truncating toward zero.
/// With `a = 0`, where a path starts, it is `v`.
#[inline(always)]
pub fn blend(v: i32, carry: i32, a: i32) -> i32 {
    // Scores and coefficients have at most 15 bits, so that nothing wraps.
    v.wrapping_add(a.wrapping_mul(carry.wrapping_sub(v)) / ONE)
}
