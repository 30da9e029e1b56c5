//! Filling of invalid pixels from their row (sgm.md, section 5.4).

use super::median::median3x3;
use crate::{Compat, Params};

/// Fills every run of invalid pixels with the smaller of the valid values at its ends, then takes
/// the 3x3 median.
///
/// The median is the one of section 5.1: a pixel still invalid (its whole row is) sorts last. The
/// border keeps its values with every [`Compat`], since 0 would be a disparity here.
///
/// `map`: `[y][x]`, the values of a [`crate::DisparityMap`] in the units of `params`, changed in place.
pub fn fill(map: &mut [i16], width: usize, params: &Params) {
    // Both fit 16 bits, see `Params::validate`.
    let invalid = params.invalid_value() as i16;
    map.chunks_exact_mut(width).for_each(|row| fill_row(row, invalid));

    // Counted from one above the invalid value, so that this wraps to the largest key and sorts last.
    let lowest = (invalid as u16).wrapping_add(1);
    let keys: Vec<u16> = map.iter().map(|&value| (value as u16).wrapping_sub(lowest)).collect();
    let mut filtered = vec![0; keys.len()];
    median3x3(&keys, width, Compat::None, &mut filtered);
    for (value, key) in map.iter_mut().zip(filtered) {
        *value = key.wrapping_add(lowest) as i16;
    }
}

/// Fills the runs of one row; a row without a valid pixel stays as it is.
fn fill_row(row: &mut [i16], invalid: i16) {
    let mut start = 0;
    while start < row.len() {
        if row[start] != invalid {
            start += 1;
            continue;
        }
        let end = row[start..].iter().position(|&value| value != invalid).map_or(row.len(), |n| start + n);
        let left = start.checked_sub(1).map(|i| row[i]);
        let right = row.get(end).copied();
        if let Some(smaller) = [left, right].into_iter().flatten().min() {
            row[start..end].fill(smaller);
        }
        start = end;
    }
}
