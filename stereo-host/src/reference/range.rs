//! From relative to true disparities (sgm.md, section 5.3).

use super::INVALID;
use crate::Params;

/// Adds `min_disparity` in the map's units; invalid pixels take [`Params::invalid_value`].
///
/// `map`: `[y][x]`, relative disparities; `out`: the values of a [`crate::DisparityMap`].
///
/// # Panics
/// When the lengths disagree, or when a value does not fit (see [`Params::validate`]).
pub fn to_true_range(map: &[u16], params: &Params, out: &mut [i16]) {
    assert_eq!(map.len(), out.len(), "range output");
    let offset = params.min_disparity * params.scale();
    for (&value, out) in map.iter().zip(out) {
        let value = if value == INVALID { params.invalid_value() } else { i32::from(value) + offset };
        *out = i16::try_from(value).expect("Params::validate has checked the range");
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shifted(map: &[u16], min_disparity: i32, subpixel: bool, disparities: u32) -> Vec<i16> {
        let params = Params { min_disparity, subpixel, disparities, ..Params::default() };
        params.validate().unwrap();
        let mut out = vec![0; map.len()];
        to_true_range(map, &params, &mut out);
        out
    }

    #[test]
    fn minimum_added_in_the_maps_units() {
        assert_eq!(shifted(&[0, 5, INVALID], 3, false, 8), [3, 8, 2]);
        assert_eq!(shifted(&[0, 5, INVALID], -3, true, 8), [-48, -43, -64]);
        assert_eq!(shifted(&[0, 20, INVALID], 0, true, 8), [0, 20, -16]);
    }

    #[test]
    fn the_ends_of_sixteen_bits() {
        assert_eq!(shifted(&[INVALID, 16383], -2047, true, 1024), [i16::MIN, 16383 - 2047 * 16]);
        assert_eq!(shifted(&[16 * 1023], 1024, true, 1024), [16 * 2047]);
    }
}
