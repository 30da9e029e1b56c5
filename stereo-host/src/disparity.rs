//! The result of a match.

use crate::{Error, Params, Result, view::check_size};

/// A dense disparity map of the left image: signed 16-bit values, row-major without padding.
///
/// A value is the disparity in pixels times [`scale`](Self::scale) (16 with sub-pixel, else 1);
/// [`invalid`](Self::invalid) marks pixels without a disparity.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DisparityMap {
    values: Vec<i16>,
    width: usize,
    height: usize,
    scale: i16,
    invalid: i16,
}

impl DisparityMap {
    /// A map of `width x height` invalid pixels in the units that `params` give.
    ///
    /// # Errors
    /// A refused size or refused parameters.
    pub fn new(width: usize, height: usize, params: &Params) -> Result<Self> {
        check_size(width, height)?;
        params.validate()?;
        // `validate` has checked that both fit.
        let (scale, invalid) = (params.scale() as i16, params.invalid_value() as i16);
        Ok(Self { values: vec![invalid; width * height], width, height, scale, invalid })
    }

    /// A map around existing values.
    ///
    /// # Errors
    /// [`Error::Image`] for a refused size, [`Error::Mismatch`] when `values` is not `width * height` long,
    /// [`Error::Parameter`] for a scale below 1.
    pub fn from_values(values: Vec<i16>, width: usize, height: usize, scale: i16, invalid: i16) -> Result<Self> {
        check_size(width, height)?;
        if scale < 1 {
            return Err(Error::parameter("scale", scale, "at least 1"));
        }
        if values.len() != width * height {
            return Err(Error::Mismatch {
                what: "disparity values",
                got: values.len().to_string(),
                expected: format!("{width}x{height} = {}", width * height),
            });
        }
        Ok(Self { values, width, height, scale, invalid })
    }

    /// Pixels in a row.
    pub fn width(&self) -> usize {
        self.width
    }

    /// Rows.
    pub fn height(&self) -> usize {
        self.height
    }

    /// Units per pixel of disparity: 16 with sub-pixel, else 1.
    pub fn scale(&self) -> i16 {
        self.scale
    }

    /// The value of a pixel without a disparity.
    pub fn invalid(&self) -> i16 {
        self.invalid
    }

    /// The raw values, row-major.
    pub fn values(&self) -> &[i16] {
        &self.values
    }

    /// The raw values, row-major, for writing.
    pub fn values_mut(&mut self) -> &mut [i16] {
        &mut self.values
    }

    /// The disparity at `(x, y)` in pixels, `None` where it is invalid.
    ///
    /// # Panics
    /// Outside the map.
    pub fn get(&self, x: usize, y: usize) -> Option<f32> {
        assert!(x < self.width && y < self.height, "pixel ({x}, {y}) of a {}x{} map", self.width, self.height);
        self.to_pixels(self.values[y * self.width + x])
    }

    /// Every pixel as `(x, y, disparity)`, row by row; the disparity in pixels, `None` where invalid.
    pub fn iter(&self) -> impl Iterator<Item = (usize, usize, Option<f32>)> + '_ {
        let width = self.width;
        self.values.iter().enumerate().map(move |(i, &v)| (i % width, i / width, self.to_pixels(v)))
    }

    /// All disparities in pixels, row-major, NaN where invalid.
    pub fn to_f32(&self) -> Vec<f32> {
        self.values.iter().map(|&v| self.to_pixels(v).unwrap_or(f32::NAN)).collect()
    }

    /// The share of valid pixels, 0 to 1.
    pub fn density(&self) -> f64 {
        let valid = self.values.iter().filter(|&&v| v != self.invalid).count();
        valid as f64 / self.values.len() as f64
    }

    fn to_pixels(&self, value: i16) -> Option<f32> {
        (value != self.invalid).then(|| f32::from(value) / f32::from(self.scale))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_and_invalid_pixels() {
        let params = Params { min_disparity: -3, ..Params::default() };
        let mut map = DisparityMap::new(2, 2, &params).unwrap();
        assert_eq!((map.scale(), map.invalid()), (16, -64));
        map.values_mut()[1] = 24;
        map.values_mut()[2] = -48;
        assert_eq!(map.get(1, 0), Some(1.5));
        assert_eq!(map.get(0, 1), Some(-3.0));
        assert!(map.to_f32()[0].is_nan());
        assert_eq!(map.density(), 0.5);
        assert_eq!(
            map.iter().filter(|(_, _, d)| d.is_some()).map(|(x, y, _)| (x, y)).collect::<Vec<_>>(),
            [(1, 0), (0, 1)]
        );
        assert!(DisparityMap::from_values(vec![0; 3], 2, 2, 16, -16).is_err());
        assert!(DisparityMap::from_values(vec![0; 4], 2, 2, 0, -16).is_err());
    }
}
