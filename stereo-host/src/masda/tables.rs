//! The tables of masda.md: the only place where an `exp` is evaluated.

use crate::MasdaParams;

/// One in the fixed-point numbers of masda.md, which have 14 fractional bits.
pub const ONE: i32 = 1 << 14;

/// Bits of the 7x7 census descriptor, which is the largest Hamming distance.
pub const CENSUS_BITS: usize = 48;

/// Grey levels that the tables tell apart. A 16-bit difference is shifted right by 8 to fit.
pub const LEVELS: usize = 256;

/// Score and filter tables in Q14, built once on the host in f64 and handed to every backend as data,
/// so that no backend evaluates `exp` for itself (masda.md, image plane, points 2 and 3).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tables {
    /// `T_c`, by Hamming distance.
    pub census: [i16; CENSUS_BITS + 1],
    /// `T_a`, by intensity difference in levels of 8 bits.
    pub intensity: [i16; LEVELS],
    /// `A`, the filter's coefficient, by intensity difference in levels of 8 bits; `0..=16384`.
    pub coefficient: [i16; LEVELS],
}

impl Tables {
    /// The tables of valid parameters.
    pub fn new(params: &MasdaParams) -> Self {
        // All three functions have values in 0..=1, so that the result fits.
        let q14 = |value: f64| (value * f64::from(ONE)).round() as i16;
        let decay = |scale: f64, n: usize| (-(n as f64) / scale).exp();
        let edge = |g: usize| {
            (-std::f64::consts::SQRT_2 / params.sigma_s * (1.0 + params.sigma_s / params.sigma_r * g as f64)).exp()
        };
        Self {
            census: std::array::from_fn(|h| q14(params.w_c * decay(params.lambda_c, h))),
            intensity: std::array::from_fn(|a| q14((1.0 - params.w_c) * decay(params.lambda_a, a))),
            coefficient: std::array::from_fn(|g| q14(edge(g))),
        }
    }
}

/// The index into the tables of two intensities: their difference in levels of 8 bits.
pub fn level_difference(a: u16, b: u16, bits: u32) -> usize {
    usize::from(a.abs_diff(b) >> (bits - 8))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_by_hand() {
        let params = MasdaParams {
            w_c: 0.75,
            lambda_c: 8.0,
            lambda_a: 16.0,
            sigma_s: 10.0,
            sigma_r: 20.0,
            ..Default::default()
        };
        let tables = Tables::new(&params);
        assert_eq!((tables.census[0], tables.intensity[0]), (12_288, 4096));
        // 12288 / e = 4520.5; 4096 / e = 1506.8; 16384 exp(-0.141421) = 14223.4; g = 20: 16384 exp(-0.141421 * 11) = 3458.
        assert_eq!((tables.census[8], tables.intensity[16]), (4521, 1507));
        assert_eq!((tables.coefficient[0], tables.coefficient[20]), (14_223, 3458));
    }

    #[test]
    fn extreme_parameters_stay_in_range() {
        let wide = MasdaParams {
            w_c: 0.5,
            lambda_c: 1e300,
            lambda_a: 1e300,
            sigma_s: 1e300,
            sigma_r: 1e300,
            ..Default::default()
        };
        assert!(Tables::new(&wide).coefficient.iter().all(|&a| i32::from(a) == ONE));
        let tiny = f64::MIN_POSITIVE;
        let narrow = MasdaParams {
            w_c: tiny,
            lambda_c: tiny,
            lambda_a: tiny,
            sigma_s: tiny,
            sigma_r: tiny,
            ..Default::default()
        };
        let tables = Tables::new(&narrow);
        assert_eq!(tables.coefficient, [0; LEVELS]);
        assert_eq!(i32::from(tables.intensity[0]), ONE);
        assert!(tables.intensity[1..].iter().all(|&t| t == 0));
    }

    #[test]
    fn sixteen_bit_levels() {
        assert_eq!(level_difference(0, 0xFFFF, 16), 255);
        assert_eq!(level_difference(0x1FF, 0x100, 16), 0);
        assert_eq!(level_difference(3, 200, 8), 197);
    }
}
