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
pub(crate) fn fill_row(row: &mut [i16], invalid: i16) {
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

#[cfg(test)]
mod tests {
    use super::*;

    const INVALID: i16 = -4;

    fn filled(map: &[i16], width: usize) -> Vec<i16> {
        let params = Params { subpixel: false, min_disparity: INVALID as i32 + 1, ..Params::default() };
        let mut map = map.to_vec();
        fill(&mut map, width, &params);
        map
    }

    #[test]
    fn runs_take_the_smaller_end() {
        let i = INVALID;
        // Two rows have no inside, so the median leaves them.
        assert_eq!(filled(&[7, i, i, 5, i, 6], 6), [7, 5, 5, 5, 5, 6]);
        assert_eq!(filled(&[i, i, 3, i, -2, i], 6), [3, 3, 3, -2, -2, -2]);
        assert_eq!(filled(&[i, i, i, i], 2), [i; 4], "nothing to fill from");
        assert_eq!(filled(&[i, 2, i, i], 2), [2, 2, i, i], "rows do not help each other");
    }

    #[test]
    fn then_the_median_with_invalid_last_and_the_border_kept() {
        let i = INVALID;
        assert_eq!(filled(&[1, 1, 1, 9, 9, 9, -1, 2, 2], 3), [1, 1, 1, 9, 2, 9, -1, 2, 2]);
        // -1 -1 -1 1 1 3 and three invalid: the fifth is 1; sorted first they would make it -1.
        assert_eq!(filled(&[-1, -1, -1, 1, 3, 1, i, i, i], 3), [-1, -1, -1, 1, 1, 1, i, i, i]);
        assert_eq!(filled(&[i, i, i, 1, 3, 1, i, i, i], 3), [i, i, i, 1, i, 1, i, i, i]);
    }

    #[test]
    fn the_border_is_kept_with_libsgms_conventions_as_well() {
        let params = Params { subpixel: false, ..Params::libsgm() };
        let mut map = [5, -1, 5, 5, 7, 5, 5, 5, 5];
        fill(&mut map, 3, &params);
        assert_eq!(map, [5; 9]);
    }

    #[test]
    fn the_whole_range_of_sixteen_bits() {
        let params = Params { min_disparity: -2047, disparities: 1024, ..Params::default() };
        let low = i16::MIN + 16;
        let mut map = [low, i16::MIN, low + 9];
        fill(&mut map, 3, &params);
        assert_eq!(map, [low, low, low + 9]);
    }
}
