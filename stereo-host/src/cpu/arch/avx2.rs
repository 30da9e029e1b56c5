//! AVX2: every x86 machine since 2013 (Haswell, Zen).

// Every method is one unsafe operation; the contract is the trait's.
#![allow(unsafe_op_in_unsafe_fn)]

use std::arch::x86_64::*;

use super::entry_points;
use crate::cpu::vector::Vector;

#[derive(Clone, Copy)]
pub(crate) struct V(__m256i);

pub(crate) fn is_available() -> bool {
    is_x86_feature_detected!("avx2")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

entry_points!("AVX2", V, "avx2,bmi1,bmi2,lzcnt,popcnt");

/// One bit per 16-bit lane of a comparison's result.
#[inline(always)]
unsafe fn lane_bits(compared: __m256i) -> u32 {
    _pext_u32(_mm256_movemask_epi8(compared) as u32, 0x5555_5555)
}

impl Vector for V {
    const LANES: usize = 32;

    #[inline(always)]
    unsafe fn splat8(value: u8) -> Self {
        Self(_mm256_set1_epi8(value as i8))
    }
    #[inline(always)]
    unsafe fn splat16(value: u16) -> Self {
        Self(_mm256_set1_epi16(value as i16))
    }
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        Self(_mm256_loadu_si256(at.cast()))
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        _mm256_storeu_si256(at.cast(), self.0)
    }
    #[inline(always)]
    unsafe fn adds8(self, other: Self) -> Self {
        Self(_mm256_adds_epu8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn subs8(self, other: Self) -> Self {
        Self(_mm256_subs_epu8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn min8(self, other: Self) -> Self {
        Self(_mm256_min_epu8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(_mm256_xor_si256(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn popcount8(self) -> Self {
        // Population counts of 0..16, once per 128-bit half, looked up by nibble.
        let counts = _mm256_broadcastsi128_si256(_mm_setr_epi8(0, 1, 1, 2, 1, 2, 2, 3, 1, 2, 2, 3, 2, 3, 3, 4));
        let nibble = _mm256_set1_epi8(0x0f);
        let low = _mm256_shuffle_epi8(counts, _mm256_and_si256(self.0, nibble));
        let high = _mm256_shuffle_epi8(counts, _mm256_and_si256(_mm256_srli_epi16::<4>(self.0), nibble));
        Self(_mm256_add_epi8(low, high))
    }
    #[inline(always)]
    unsafe fn halve_up8(self) -> Self {
        Self(_mm256_avg_epu8(self.0, _mm256_setzero_si256()))
    }
    #[inline(always)]
    unsafe fn spread_min8(self) -> Self {
        let v = _mm_min_epu8(_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
        let v = _mm_minpos_epu16(_mm_min_epu8(v, _mm_srli_epi16::<8>(v)));
        Self(_mm256_broadcastb_epi8(v))
    }
    #[inline(always)]
    unsafe fn first8(self) -> u8 {
        _mm_cvtsi128_si32(_mm256_castsi256_si128(self.0)) as u8
    }
    #[inline(always)]
    unsafe fn even(self) -> Self {
        Self(_mm256_and_si256(self.0, _mm256_set1_epi16(0xff)))
    }
    #[inline(always)]
    unsafe fn odd(self) -> Self {
        Self(_mm256_srli_epi16::<8>(self.0))
    }
    #[inline(always)]
    unsafe fn add16(self, other: Self) -> Self {
        Self(_mm256_add_epi16(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn min16(self, other: Self) -> Self {
        Self(_mm256_min_epu16(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn lowest16(self) -> u16 {
        let v = _mm_min_epu16(_mm256_castsi256_si128(self.0), _mm256_extracti128_si256::<1>(self.0));
        _mm_cvtsi128_si32(_mm_minpos_epu16(v)) as u16
    }
    #[inline(always)]
    unsafe fn eq16(self, other: Self) -> u32 {
        lane_bits(_mm256_cmpeq_epi16(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn lt16(self, other: Self) -> u32 {
        lane_bits(_mm256_cmpgt_epi16(other.0, self.0))
    }
    #[inline(always)]
    unsafe fn select_lt16(self, other: Self, yes: Self, no: Self) -> Self {
        Self(_mm256_blendv_epi8(no.0, yes.0, _mm256_cmpgt_epi16(other.0, self.0)))
    }
}
