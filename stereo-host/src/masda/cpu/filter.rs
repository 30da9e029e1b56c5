//! The recursive filter's step in 16-bit lanes (masda.md, image plane, point 3).

use super::LANES;
use crate::masda::{LEVELS, Tables};

/// The filter's coefficients, doubled as [`blend`] wants them.
pub(super) struct Coefficients([u16; LEVELS]);

impl Coefficients {
    pub(super) fn new(tables: &Tables) -> Self {
        // Coefficients are 0..=16384.
        Self(tables.coefficient.map(|a| 2 * a as u16))
    }

    /// The doubled coefficient of two intensities, `shift` bits wider than a byte.
    #[inline(always)]
    pub(super) fn between(&self, a: u16, b: u16, shift: u32) -> u16 {
        // The mask changes nothing: a difference shifted to 8 bits.
        self.0[usize::from(a.abs_diff(b) >> shift) & (LEVELS - 1)]
    }
}

/// `out = v + (a * (carry - v)) / 16384` per lane, division truncating toward zero, with `a2 = 2a`.
///
/// The quotient's magnitude is `a * |carry - v| >> 14`, which is the high half of the 16-bit product
/// `2a * 2|carry - v|`: both factors fit, since `a <= 16384` and values lie in `-1..=16385`.
#[inline(always)]
pub(super) fn blend(v: &[i16], carry: &[i16], a2: u16, out: &mut [i16]) {
    for ((v, carry), out) in v.chunks_exact(LANES).zip(carry.chunks_exact(LANES)).zip(out.chunks_exact_mut(LANES)) {
        for i in 0..LANES {
            let difference = carry[i].wrapping_sub(v[i]);
            let magnitude = difference.unsigned_abs().wrapping_mul(2);
            let quotient = ((u32::from(magnitude) * u32::from(a2)) >> 16) as i16;
            let quotient = if difference < 0 { quotient.wrapping_neg() } else { quotient };
            out[i] = v[i].wrapping_add(quotient);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equals_the_division_for_every_difference() {
        for a in [0, 1, 2, 3, 5000, 8191, 8192, 14_223, 16_383, 16_384] {
            for (base, sign) in [(0, 1), (16_385, -1), (-1, 1)] {
                let carry: Vec<i16> = (0..16_384).map(|n| base + sign * n).collect();
                let v = vec![base; carry.len()];
                let mut out = vec![0; carry.len()];
                blend(&v, &carry, 2 * a as u16, &mut out);
                for (carry, out) in carry.into_iter().zip(out) {
                    let (v, carry) = (i32::from(base), i32::from(carry));
                    assert_eq!(i32::from(out), v + (a * (carry - v)) / 16_384, "a {a}, v {v}, carry {carry}");
                }
            }
        }
    }
}
