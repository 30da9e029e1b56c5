//! AVX-512 with byte lanes (BW, VL) and byte population counts (BITALG): Ice Lake, Zen 4 and later.
//! Earlier AVX-512 machines lack BITALG and take the AVX2 level.

// Every method is one unsafe operation; the contract is the trait's.
#![allow(unsafe_op_in_unsafe_fn)]

use std::arch::x86_64::*;

use super::entry_points;
use crate::cpu::vector::Vector;

#[derive(Clone, Copy)]
pub(crate) struct V(__m512i);

pub(crate) fn is_available() -> bool {
    is_x86_feature_detected!("avx512f")
        && is_x86_feature_detected!("avx512bw")
        && is_x86_feature_detected!("avx512vl")
        && is_x86_feature_detected!("avx512bitalg")
        && is_x86_feature_detected!("bmi1")
        && is_x86_feature_detected!("bmi2")
        && is_x86_feature_detected!("lzcnt")
        && is_x86_feature_detected!("popcnt")
}

entry_points!("AVX-512", V, "avx512f,avx512bw,avx512vl,avx512bitalg,avx2,bmi1,bmi2,lzcnt,popcnt");

/// The smallest byte of 32, as 16-bit lane 0.
#[inline(always)]
unsafe fn lowest_of_32(v: __m256i) -> __m128i {
    let v = _mm_min_epu8(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
    _mm_minpos_epu16(_mm_min_epu8(v, _mm_srli_epi16::<8>(v)))
}

impl Vector for V {
    const LANES: usize = 64;

    #[inline(always)]
    unsafe fn splat8(value: u8) -> Self {
        Self(_mm512_set1_epi8(value as i8))
    }
    #[inline(always)]
    unsafe fn splat16(value: u16) -> Self {
        Self(_mm512_set1_epi16(value as i16))
    }
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        Self(_mm512_loadu_si512(at.cast()))
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        _mm512_storeu_si512(at.cast(), self.0)
    }
    #[inline(always)]
    unsafe fn adds8(self, other: Self) -> Self {
        Self(_mm512_adds_epu8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn subs8(self, other: Self) -> Self {
        Self(_mm512_subs_epu8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn min8(self, other: Self) -> Self {
        Self(_mm512_min_epu8(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        Self(_mm512_xor_si512(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn popcount8(self) -> Self {
        Self(_mm512_popcnt_epi8(self.0))
    }
    #[inline(always)]
    unsafe fn halve_up8(self) -> Self {
        Self(_mm512_avg_epu8(self.0, _mm512_setzero_si512()))
    }
    #[inline(always)]
    unsafe fn spread_min8(self) -> Self {
        let v = _mm256_min_epu8(_mm512_castsi512_si256(self.0), _mm512_extracti64x4_epi64::<1>(self.0));
        Self(_mm512_broadcastb_epi8(lowest_of_32(v)))
    }
    #[inline(always)]
    unsafe fn first8(self) -> u8 {
        _mm_cvtsi128_si32(_mm512_castsi512_si128(self.0)) as u8
    }
    #[inline(always)]
    unsafe fn even(self) -> Self {
        Self(_mm512_and_si512(self.0, _mm512_set1_epi16(0xff)))
    }
    #[inline(always)]
    unsafe fn odd(self) -> Self {
        Self(_mm512_srli_epi16::<8>(self.0))
    }
    #[inline(always)]
    unsafe fn add16(self, other: Self) -> Self {
        Self(_mm512_add_epi16(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn min16(self, other: Self) -> Self {
        Self(_mm512_min_epu16(self.0, other.0))
    }
    #[inline(always)]
    unsafe fn lowest16(self) -> u16 {
        let v = _mm256_min_epu16(_mm512_castsi512_si256(self.0), _mm512_extracti64x4_epi64::<1>(self.0));
        let v = _mm_min_epu16(_mm256_castsi256_si128(v), _mm256_extracti128_si256::<1>(v));
        _mm_cvtsi128_si32(_mm_minpos_epu16(v)) as u16
    }
    #[inline(always)]
    unsafe fn eq16(self, other: Self) -> u32 {
        _mm512_cmpeq_epi16_mask(self.0, other.0)
    }
    #[inline(always)]
    unsafe fn lt16(self, other: Self) -> u32 {
        _mm512_cmplt_epu16_mask(self.0, other.0)
    }
    #[inline(always)]
    unsafe fn select_lt16(self, other: Self, yes: Self, no: Self) -> Self {
        Self(_mm512_mask_blend_epi16(_mm512_cmplt_epu16_mask(self.0, other.0), no.0, yes.0))
    }
}
