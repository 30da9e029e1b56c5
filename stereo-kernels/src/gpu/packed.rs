//! Two 16-bit lanes in one 32-bit register.
//!
//! Sums and differences are plain 32-bit ones: path costs stay far below 2^15 and are never
//! subtracted below zero, so that no carry crosses the lanes; the compiler may then fuse them into
//! three-operand adds. Only the minimum needs an instruction of its own.

pub use super::imp::packed::{min, permute};

/// The same value in both lanes.
#[inline(always)]
pub fn splat(value: u32) -> u32 {
    value * 0x0001_0001
}

/// Lane-wise `a + b`; no lane may exceed 16 bits.
#[inline(always)]
pub fn add(a: u32, b: u32) -> u32 {
    a.wrapping_add(b)
}

/// Lane-wise `a - b`; no lane of `b` may exceed that of `a`.
#[inline(always)]
pub fn sub(a: u32, b: u32) -> u32 {
    a.wrapping_sub(b)
}

/// The smaller of the two lanes, in both lanes.
#[inline(always)]
pub fn min_across(a: u32) -> u32 {
    min(a, permute(a, a, 0x1032))
}
