//! NEON: every 64-bit Arm machine.

// Every method is one unsafe operation; the contract is the trait's.
#![allow(unsafe_op_in_unsafe_fn)]

use std::arch::aarch64::*;

use super::entry_points;
use crate::cpu::vector::Vector;

#[derive(Clone, Copy)]
pub(crate) struct V(uint8x16_t);

pub(crate) fn is_available() -> bool {
    std::arch::is_aarch64_feature_detected!("neon")
}

entry_points!("NEON", V, "neon");

impl V {
    #[inline(always)]
    unsafe fn wide(self) -> uint16x8_t {
        vreinterpretq_u16_u8(self.0)
    }
    #[inline(always)]
    unsafe fn from_wide(wide: uint16x8_t) -> Self {
        Self(vreinterpretq_u8_u16(wide))
    }
}

/// One bit per 16-bit lane of a comparison's result.
#[inline(always)]
unsafe fn lane_bits(compared: uint16x8_t) -> u32 {
    const BITS: [u16; 8] = [1, 2, 4, 8, 16, 32, 64, 128];
    u32::from(vaddvq_u16(vandq_u16(compared, vld1q_u16(BITS.as_ptr()))))
}

impl Vector for V {
    const LANES: usize = 16;

    #[inline(always)]
    unsafe fn splat8(value: u8) -> Self {
        Self(vdupq_n_u8(value))
    }
    #[inline(always)]
    unsafe fn splat16(value: u16) -> Self {
        Self::from_wide(vdupq_n_u16(value))
    }
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        Self(vld1q_u8(at))
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        vst1q_u8(at, self.0)
    }
    #[inline(always)]
    unsafe fn adds8(self, other: Self) -> Self {
        Self(vqaddq_u8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn subs8(self, other: Self) -> Self {
        Self(vqsubq_u8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn min8(self, other: Self) -> Self {
        Self(vminq_u8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(veorq_u8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn popcount8(self) -> Self {
        Self(vcntq_u8(self.0))
    }
    #[inline(always)]
    unsafe fn halve_up8(self) -> Self {
        Self(vrhaddq_u8(self.0, vdupq_n_u8(0)))
    }
    #[inline(always)]
    unsafe fn spread_min8(self) -> Self {
        Self(vdupq_n_u8(vminvq_u8(self.0)))
    }
    #[inline(always)]
    unsafe fn first8(self) -> u8 {
        vgetq_lane_u8::<0>(self.0)
    }
    #[inline(always)]
    unsafe fn even(self) -> Self {
        Self::from_wide(vandq_u16(self.wide(), vdupq_n_u16(0xff)))
    }
    #[inline(always)]
    unsafe fn odd(self) -> Self {
        Self::from_wide(vshrq_n_u16::<8>(self.wide()))
    }
    #[inline(always)]
    unsafe fn add16(self, other: Self) -> Self {
        Self::from_wide(vaddq_u16(self.wide(), other.wide()))
    }
    #[inline(always)]
    unsafe fn min16(self, other: Self) -> Self {
        Self::from_wide(vminq_u16(self.wide(), other.wide()))
    }
    #[inline(always)]
    unsafe fn lowest16(self) -> u16 {
        vminvq_u16(self.wide())
    }
    #[inline(always)]
    unsafe fn eq16(self, other: Self) -> u32 {
        lane_bits(vceqq_u16(self.wide(), other.wide()))
    }
    #[inline(always)]
    unsafe fn lt16(self, other: Self) -> u32 {
        lane_bits(vcltq_u16(self.wide(), other.wide()))
    }
    #[inline(always)]
    unsafe fn select_lt16(self, other: Self, yes: Self, no: Self) -> Self {
        Self::from_wide(vbslq_u16(vcltq_u16(self.wide(), other.wide()), yes.wide(), no.wide()))
    }
}
