//! The parameters of a match: one type for every algorithm and backend.

use serde::{Deserialize, Serialize};

use crate::{Error, Result};

/// The largest number of disparities that any backend accepts.
pub const MAX_DISPARITIES: u32 = 1024;

/// The largest number of disparities that [`Algorithm::Masda`] accepts (masda.md, image plane).
pub const MAX_MASDA_DISPARITIES: u32 = 256;

/// The largest number of message passing iterations that [`Algorithm::Masda`] accepts.
pub const MAX_MASDA_ITERATIONS: u32 = 1000;

/// The largest image side that any backend accepts, in pixels.
pub const MAX_SIDE: usize = 32_768;

/// How many fractional bits a sub-pixel disparity has (sgm.md, section 4).
pub const SUBPIXEL_BITS: u32 = 4;

/// The largest value of one path cost: an 8-bit volume holds it (sgm.md, section 3).
pub const MAX_PATH_COST: u16 = u8::MAX as u16;

/// The census descriptor (sgm.md, section 1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Census {
    /// 7x7 centre census, 48 bits, clamped at the border; cost `(h + 1) / 2`. The default.
    #[serde(rename = "7x7")]
    Window7x7,
    /// 9 wide, 7 high centre census, 62 bits, clamped at the border; cost `(h + 1) / 2`.
    #[serde(rename = "9x7")]
    Window9x7,
    /// 9x7 with mirrored pairs, 31 bits, 0 where the window leaves the image; cost `h`.
    #[serde(rename = "symmetric9x7")]
    Symmetric9x7,
}

impl Census {
    /// The largest matching cost this descriptor can give.
    pub const fn max_cost(self) -> u16 {
        match self {
            Self::Window7x7 => 24,
            Self::Window9x7 | Self::Symmetric9x7 => 31,
        }
    }
}

/// How many path directions are aggregated (sgm.md, section 3).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Paths {
    /// Left-to-right, right-to-left, up-to-down, down-to-up.
    #[serde(rename = "4")]
    Four,
    /// The four of [`Paths::Four`] and the diagonals.
    #[serde(rename = "8")]
    Eight,
}

impl Paths {
    /// The number of directions.
    pub const fn count(self) -> usize {
        match self {
            Self::Four => 4,
            Self::Eight => 8,
        }
    }
}

/// Whose conventions the result follows where they differ (the points marked \[compat\] in sgm.md).
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Compat {
    /// This project's own definitions.
    #[default]
    None,
    /// libSGM 3.x and `cv::cuda::StereoSGBM`'s relative `cv::cuda::StereoSGM`, byte for byte.
    LibSgm,
}

/// What is computed.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Algorithm {
    /// Semi-global matching (sgm.md).
    #[default]
    Sgm,
    /// Matching by one-to-one assignment on each row (masda.md).
    Masda(MasdaParams),
}

impl Algorithm {
    /// The name as the command spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Sgm => "sgm",
            Self::Masda(_) => "masda",
        }
    }
}

/// The parameters that only [`Algorithm::Masda`] has, named as in masda.md.
///
/// Scores are Q14: 16384 is the best one possible. Of the fields of [`Params`], MASDA uses `disparities`
/// (at most [`MAX_MASDA_DISPARITIES`]), `min_disparity`, `subpixel`, `mask_zero`, `speckle` and `fill`; the others
/// describe SGM and have no effect, and `compat` must be [`Compat::None`].
///
/// The defaults are what `cargo xtask tune-masda` found on the eight scenes (BENCHMARKS.md).
#[derive(Debug, Clone, Copy, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct MasdaParams {
    /// Share `w_c` of the census in the score, above 0 and below 1; the rest is the intensity's.
    pub w_c: f64,
    /// Hamming distance at which the census score has fallen to `1/e`; above 0.
    pub lambda_c: f64,
    /// Grey levels (of 8 bits) at which the intensity score has fallen to `1/e`; above 0.
    pub lambda_a: f64,
    /// The filter's spatial scale in pixels; above 0.
    pub sigma_s: f64,
    /// The filter's range scale in grey levels (of 8 bits); above 0.
    pub sigma_r: f64,
    /// Score of leaving a pixel unmatched, a signed 16-bit number.
    pub theta: i32,
    /// Smallest belief of an accepted match. `i32::MIN` accepts all.
    pub margin: i32,
    /// Message passing iterations `n`, at most [`MAX_MASDA_ITERATIONS`].
    pub iterations: u32,
}

impl Default for MasdaParams {
    fn default() -> Self {
        Self {
            w_c: 0.8,
            lambda_c: 25.0,
            lambda_a: 20.0,
            sigma_s: 7.0,
            sigma_r: 20.0,
            theta: 9000,
            margin: 300,
            iterations: 2,
        }
    }
}

impl MasdaParams {
    fn validate(&self) -> Result<()> {
        if !(self.w_c > 0.0 && self.w_c < 1.0) {
            return Err(Error::parameter("masda.w_c", self.w_c, "above 0 and below 1"));
        }
        for (name, value) in [
            ("masda.lambda_c", self.lambda_c),
            ("masda.lambda_a", self.lambda_a),
            ("masda.sigma_s", self.sigma_s),
            ("masda.sigma_r", self.sigma_r),
        ] {
            if !(value > 0.0 && value.is_finite()) {
                return Err(Error::parameter(name, value, "a finite number above 0"));
            }
        }
        if i16::try_from(self.theta).is_err() {
            return Err(Error::parameter("masda.theta", self.theta, format!("{} to {}", i16::MIN, i16::MAX)));
        }
        if self.iterations > MAX_MASDA_ITERATIONS {
            return Err(Error::parameter(
                "masda.iterations",
                self.iterations,
                format!("at most {MAX_MASDA_ITERATIONS}"),
            ));
        }
        Ok(())
    }
}

/// Speckle removal (sgm.md, section 5.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Speckle {
    /// Regions of at most this many pixels are made invalid.
    pub max_size: u32,
    /// Neighbours belong to one region when their disparities differ by at most this many pixels.
    pub max_diff: u32,
}

/// The parameters of a match. [`Params::default`] is what sgm.md calls the default;
/// [`Params::libsgm`] is the preset that equals libSGM byte for byte.
///
/// ```
/// use stereo_host::Params;
/// let params = Params { disparities: 64, fill: true, ..Params::default() };
/// params.validate()?;
/// # Ok::<(), stereo_host::Error>(())
/// ```
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Params {
    /// What is computed. Default SGM.
    pub algorithm: Algorithm,
    /// Number of disparities `D`, `1..=1024` (`1..=256` for MASDA). Default 128.
    pub disparities: u32,
    /// Smallest disparity `m` in pixels; may be negative. Default 0.
    pub min_disparity: i32,
    /// Path directions. Default 8.
    pub paths: Paths,
    /// Penalty for a disparity step of one. Default 10.
    pub p1: u16,
    /// Penalty for a larger step; `p2 + census.max_cost() <= 255`. Default 120.
    pub p2: u16,
    /// Lower `p2` where the left image has an edge (sgm.md, section 3). Default on.
    pub adaptive_p2: bool,
    /// The census descriptor. Default 7x7.
    pub census: Census,
    /// Uniqueness factor `u` in `0..=1`: the winner's sum must not exceed `u` times any other's.
    /// 1 switches the check off in effect. Default 0.95.
    pub uniqueness: f32,
    /// 4 fractional bits in the result. Default on.
    pub subpixel: bool,
    /// Largest difference between left and right map in pixels; negative switches the check off. Default 1.
    pub lr_max_diff: i32,
    /// Pixels whose left intensity is 0 are invalid. Default off (always on with [`Compat::LibSgm`]).
    pub mask_zero: bool,
    /// Whose conventions to follow. Default this project's.
    pub compat: Compat,
    /// Speckle removal. Default off.
    pub speckle: Option<Speckle>,
    /// Fill invalid pixels from their row, then a median (sgm.md, section 5.4). Default off.
    pub fill: bool,
}

impl Default for Params {
    fn default() -> Self {
        Self {
            algorithm: Algorithm::Sgm,
            disparities: 128,
            min_disparity: 0,
            paths: Paths::Eight,
            p1: 10,
            p2: 120,
            adaptive_p2: true,
            census: Census::Window7x7,
            uniqueness: 0.95,
            subpixel: true,
            lr_max_diff: 1,
            mask_zero: false,
            compat: Compat::None,
            speckle: None,
            fill: false,
        }
    }
}

impl Params {
    /// The preset that computes what libSGM 3.x does, byte for byte: symmetric census,
    /// fixed `P2`, and the conventions marked \[compat\] in sgm.md.
    pub fn libsgm() -> Self {
        Self { adaptive_p2: false, census: Census::Symmetric9x7, compat: Compat::LibSgm, ..Self::default() }
    }

    /// MASDA with its defaults.
    pub fn masda() -> Self {
        Self { algorithm: Algorithm::Masda(MasdaParams::default()), ..Self::default() }
    }

    /// Whether pixels of left intensity 0 become invalid.
    pub fn masks_zero(&self) -> bool {
        self.mask_zero || self.compat == Compat::LibSgm
    }

    /// How many units of a map's value make one pixel of disparity: 16 with sub-pixel, else 1.
    pub fn scale(&self) -> i32 {
        if self.subpixel { 1 << SUBPIXEL_BITS } else { 1 }
    }

    /// The map's value of an invalid pixel: `(m - 1)` in the map's units (sgm.md, section 5.3).
    pub fn invalid_value(&self) -> i32 {
        (self.min_disparity - 1) * self.scale()
    }

    /// Checks every parameter against its range and against the others.
    ///
    /// # Errors
    /// [`Error::Parameter`] names the first value that is refused and its limit.
    pub fn validate(&self) -> Result<()> {
        if !(1..=MAX_DISPARITIES).contains(&self.disparities) {
            return Err(Error::parameter("disparities", self.disparities, format!("1 to {MAX_DISPARITIES}")));
        }
        if self.p1 == 0 || self.p1 > self.p2 {
            return Err(Error::parameter("p1", self.p1, format!("1 to p2 = {}", self.p2)));
        }
        let p2_limit = MAX_PATH_COST - self.census.max_cost();
        if self.p2 > p2_limit {
            return Err(Error::parameter(
                "p2",
                self.p2,
                format!(
                    "at most {p2_limit} with this census (its costs reach {}, and cost + p2 must fit 8 bits)",
                    self.census.max_cost()
                ),
            ));
        }
        if !(0.0..=1.0).contains(&self.uniqueness) {
            return Err(Error::parameter("uniqueness", self.uniqueness, "a finite number from 0 to 1"));
        }
        let max_diff = MAX_DISPARITIES as i32;
        if self.lr_max_diff > max_diff {
            return Err(Error::parameter(
                "lr_max_diff",
                self.lr_max_diff,
                format!("at most {max_diff} (negative switches the check off)"),
            ));
        }
        if let Some(speckle) = self.speckle
            && speckle.max_diff > MAX_DISPARITIES
        {
            return Err(Error::parameter("speckle.max_diff", speckle.max_diff, format!("at most {MAX_DISPARITIES}")));
        }
        if let Algorithm::Masda(masda) = &self.algorithm {
            masda.validate()?;
            if self.disparities > MAX_MASDA_DISPARITIES {
                let limit = format!("1 to {MAX_MASDA_DISPARITIES} with the algorithm masda");
                return Err(Error::parameter("disparities", self.disparities, limit));
            }
            if self.compat != Compat::None {
                return Err(Error::parameter("compat", "libsgm", "none with the algorithm masda"));
            }
        }
        self.validate_range()
    }

    /// The signed 16-bit output must hold every value and the invalid one.
    fn validate_range(&self) -> Result<()> {
        let scale = i64::from(self.scale());
        let lowest = (i64::from(self.min_disparity) - 1) * scale;
        let highest = (i64::from(self.min_disparity) + i64::from(self.disparities)) * scale - 1;
        if lowest < i64::from(i16::MIN) || highest > i64::from(i16::MAX) {
            let low = i64::from(i16::MIN).div_euclid(scale) + 1;
            let high = (i64::from(i16::MAX) + 1) / scale - i64::from(self.disparities);
            return Err(Error::parameter(
                "min_disparity",
                self.min_disparity,
                format!(
                    "{low} to {high} with {} disparities{}, so that the 16-bit map holds the whole range",
                    self.disparities,
                    if self.subpixel { " and sub-pixel" } else { "" }
                ),
            ));
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(params: Params) -> String {
        params.validate().expect_err("must be refused").to_string()
    }

    #[test]
    fn defaults_and_presets_are_valid() {
        Params::default().validate().unwrap();
        Params::libsgm().validate().unwrap();
    }

    #[test]
    fn refusals_name_value_and_limit() {
        let d = Params::default();
        assert_eq!(refused(Params { disparities: 0, ..d.clone() }), "disparities = 0 is not allowed: 1 to 1024");
        assert!(refused(Params { disparities: 1025, ..d.clone() }).contains("1025"));
        assert!(refused(Params { p1: 121, ..d.clone() }).contains("p2 = 120"));
        assert!(refused(Params { p1: 0, ..d.clone() }).contains("p1 = 0"));
        assert!(refused(Params { p2: 232, ..d.clone() }).contains("at most 231"));
        assert!(refused(Params { p2: 225, census: Census::Symmetric9x7, ..d.clone() }).contains("at most 224"));
        for u in [f32::NAN, f32::INFINITY, -0.1, 1.5] {
            assert!(refused(Params { uniqueness: u, ..d.clone() }).contains("uniqueness"));
        }
        assert!(refused(Params { lr_max_diff: 5000, ..d.clone() }).contains("5000"));
        assert!(refused(Params { min_disparity: i32::MAX, ..d.clone() }).contains("min_disparity"));
        assert!(refused(Params { min_disparity: i32::MIN, ..d }).contains("min_disparity"));
    }

    #[test]
    fn masda_refusals() {
        Params::masda().validate().unwrap();
        let with = |change: fn(&mut MasdaParams)| {
            let mut masda = MasdaParams::default();
            change(&mut masda);
            refused(Params { algorithm: Algorithm::Masda(masda), ..Params::default() })
        };
        assert!(with(|p| p.w_c = 0.0).contains("masda.w_c = 0 "));
        assert!(with(|p| p.w_c = 1.0).contains("below 1"));
        assert!(with(|p| p.lambda_a = f64::NAN).contains("masda.lambda_a"));
        assert!(with(|p| p.sigma_s = f64::INFINITY).contains("masda.sigma_s"));
        assert!(with(|p| p.sigma_r = -1.0).contains("masda.sigma_r = -1"));
        assert!(with(|p| p.theta = 40_000).contains("32767"));
        assert!(with(|p| p.iterations = 1001).contains("at most 1000"));
        assert!(refused(Params { disparities: 257, ..Params::masda() }).contains("1 to 256"));
        assert!(refused(Params { compat: Compat::LibSgm, ..Params::masda() }).contains("masda"));
    }

    #[test]
    fn range_limits_are_exact() {
        for subpixel in [false, true] {
            for disparities in [1, 128, 1024] {
                let with = |m| Params { subpixel, disparities, min_disparity: m, ..Params::default() };
                let low = (-40_000..0).find(|&m| with(m).validate().is_ok()).unwrap();
                let high = (0..40_000).rev().find(|&m| with(m).validate().is_ok()).unwrap();
                assert!(with(low).invalid_value() >= i32::from(i16::MIN));
                assert!(with(low - 1).invalid_value() < i32::from(i16::MIN));
                let text = refused(with(high + 1));
                assert!(text.contains(&format!("{low} to {high} ")), "{text}");
            }
        }
    }
}
