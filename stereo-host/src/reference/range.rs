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
