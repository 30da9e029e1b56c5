//! The vector operations that the kernels are written over, and nothing else.

/// A register of unsigned 8-bit lanes, also seen as half as many little-endian 16-bit lanes.
///
/// A 16-bit lane `i` is made of the 8-bit lanes `2i` (low) and `2i + 1` (high): [`even`](Self::even)
/// and [`odd`](Self::odd) widen without a shuffle, which is why the sums of a row are kept as
/// alternating vectors of its even and its odd disparities.
///
/// # Safety
/// Every method requires the instructions of the implementing machine (`arch`), and a caller that was
/// compiled for them, so that the method is inlined. Beyond that, only the pointers have contracts:
/// [`load`](Self::load) and [`store`](Self::store) need `LANES` readable or writable bytes at `at`,
/// aligned or not.
pub(super) trait Vector: Copy {
    /// 8-bit lanes.
    const LANES: usize;

    /// `value` in every 8-bit lane.
    unsafe fn splat8(value: u8) -> Self;
    /// `value` in every 16-bit lane.
    unsafe fn splat16(value: u16) -> Self;
    /// `LANES` bytes from `at`.
    unsafe fn load(at: *const u8) -> Self;
    /// `LANES` bytes to `at`.
    unsafe fn store(self, at: *mut u8);

    /// Saturating sum of 8-bit lanes.
    unsafe fn adds8(self, other: Self) -> Self;
    /// Saturating difference of 8-bit lanes.
    unsafe fn subs8(self, other: Self) -> Self;
    /// Smaller of 8-bit lanes.
    unsafe fn min8(self, other: Self) -> Self;
    /// Bits that differ.
    unsafe fn xor(self, other: Self) -> Self;
    /// Bits set in each 8-bit lane.
    unsafe fn popcount8(self) -> Self;
    /// `(lane + 1) >> 1` of each 8-bit lane.
    unsafe fn halve_up8(self) -> Self;
    /// The smallest 8-bit lane, in every lane.
    unsafe fn spread_min8(self) -> Self;
    /// 8-bit lane 0.
    unsafe fn first8(self) -> u8;

    /// The even 8-bit lanes, widened.
    unsafe fn even(self) -> Self;
    /// The odd 8-bit lanes, widened.
    unsafe fn odd(self) -> Self;
    /// Wrapping sum of 16-bit lanes.
    unsafe fn add16(self, other: Self) -> Self;
    /// Smaller of 16-bit lanes.
    unsafe fn min16(self, other: Self) -> Self;
    /// The smallest 16-bit lane.
    unsafe fn lowest16(self) -> u16;
    /// Bit `i` is set where 16-bit lane `i` equals `other`'s.
    unsafe fn eq16(self, other: Self) -> u32;
    /// Bit `i` is set where 16-bit lane `i` is below `other`'s; lanes below 2^15 only.
    unsafe fn lt16(self, other: Self) -> u32;
    /// 16-bit lanes of `yes` where `self` is below `other`, else of `no`; lanes below 2^15 only.
    unsafe fn select_lt16(self, other: Self, yes: Self, no: Self) -> Self;
}
