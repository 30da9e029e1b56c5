//! Plain arrays: any machine. The compiler turns them into whatever vectors the target has.

// Every method is one unsafe operation; the contract is the trait's.
#![allow(unsafe_op_in_unsafe_fn)]

use super::entry_points;
use crate::cpu::vector::Vector;

const LANES: usize = 16;

#[derive(Clone, Copy)]
pub(crate) struct V([u8; LANES]);

entry_points!("portable", V);

impl V {
    #[inline(always)]
    fn zip8(self, other: Self, op: impl Fn(u8, u8) -> u8) -> Self {
        Self(std::array::from_fn(|i| op(self.0[i], other.0[i])))
    }
    #[inline(always)]
    fn lanes16(self) -> [u16; LANES / 2] {
        std::array::from_fn(|i| u16::from_le_bytes([self.0[2 * i], self.0[2 * i + 1]]))
    }
    #[inline(always)]
    fn from16(lanes: [u16; LANES / 2]) -> Self {
        Self(std::array::from_fn(|i| lanes[i / 2].to_le_bytes()[i % 2]))
    }
    #[inline(always)]
    fn zip16(self, other: Self, op: impl Fn(u16, u16) -> u16) -> Self {
        let (a, b) = (self.lanes16(), other.lanes16());
        Self::from16(std::array::from_fn(|i| op(a[i], b[i])))
    }
    #[inline(always)]
    fn bits16(self, other: Self, test: impl Fn(u16, u16) -> bool) -> u32 {
        let (a, b) = (self.lanes16(), other.lanes16());
        (0..LANES / 2).fold(0, |bits, i| bits | u32::from(test(a[i], b[i])) << i)
    }
}

impl Vector for V {
    const LANES: usize = LANES;

    #[inline(always)]
    unsafe fn splat8(value: u8) -> Self {
        Self([value; LANES])
    }
    #[inline(always)]
    unsafe fn splat16(value: u16) -> Self {
        Self::from16([value; LANES / 2])
    }
    #[inline(always)]
    unsafe fn load(at: *const u8) -> Self {
        Self(at.cast::<[u8; LANES]>().read_unaligned())
    }
    #[inline(always)]
    unsafe fn store(self, at: *mut u8) {
        at.cast::<[u8; LANES]>().write_unaligned(self.0)
    }
    #[inline(always)]
    unsafe fn adds8(self, other: Self) -> Self {
        self.zip8(other, u8::saturating_add)
    }
    #[inline(always)]
    unsafe fn subs8(self, other: Self) -> Self {
        self.zip8(other, u8::saturating_sub)
    }
    #[inline(always)]
    unsafe fn min8(self, other: Self) -> Self {
        self.zip8(other, u8::min)
    }
    #[inline(always)]
    unsafe fn xor(self, other: Self) -> Self {
        self.zip8(other, |a, b| a ^ b)
    }
    #[inline(always)]
    unsafe fn popcount8(self) -> Self {
        Self(self.0.map(|lane| lane.count_ones() as u8))
    }
    #[inline(always)]
    unsafe fn halve_up8(self) -> Self {
        Self(self.0.map(|lane| (lane >> 1) + (lane & 1)))
    }
    #[inline(always)]
    unsafe fn spread_min8(self) -> Self {
        Self([self.0.into_iter().fold(u8::MAX, u8::min); LANES])
    }
    #[inline(always)]
    unsafe fn first8(self) -> u8 {
        self.0[0]
    }
    #[inline(always)]
    unsafe fn even(self) -> Self {
        Self::from16(self.lanes16().map(|lane| lane & 0xff))
    }
    #[inline(always)]
    unsafe fn odd(self) -> Self {
        Self::from16(self.lanes16().map(|lane| lane >> 8))
    }
    #[inline(always)]
    unsafe fn add16(self, other: Self) -> Self {
        self.zip16(other, u16::wrapping_add)
    }
    #[inline(always)]
    unsafe fn min16(self, other: Self) -> Self {
        self.zip16(other, u16::min)
    }
    #[inline(always)]
    unsafe fn lowest16(self) -> u16 {
        self.lanes16().into_iter().fold(u16::MAX, u16::min)
    }
    #[inline(always)]
    unsafe fn eq16(self, other: Self) -> u32 {
        self.bits16(other, |a, b| a == b)
    }
    #[inline(always)]
    unsafe fn lt16(self, other: Self) -> u32 {
        self.bits16(other, |a, b| a < b)
    }
    #[inline(always)]
    unsafe fn select_lt16(self, other: Self, yes: Self, no: Self) -> Self {
        let (a, b, y, n) = (self.lanes16(), other.lanes16(), yes.lanes16(), no.lanes16());
        Self::from16(std::array::from_fn(|i| if a[i] < b[i] { y[i] } else { n[i] }))
    }
}
