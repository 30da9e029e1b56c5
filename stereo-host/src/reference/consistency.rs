//! Left-right consistency and the zero mask (sgm.md, section 5.2).

use super::INVALID;
use crate::{Compat, GrayView, Params, SUBPIXEL_BITS};

/// Makes every left value invalid that the right map contradicts, or that the mask takes out.
///
/// `map`: `[y][x]`, the left map after the median, changed in place.
/// `right`: `[y][c]`, the right map after the median. `left`: the left image, for the mask.
///
/// # Panics
/// When the lengths disagree.
pub fn check_consistency(map: &mut [u16], right: &[u16], left: &GrayView<'_>, params: &Params) {
    let width = left.width();
    assert_eq!(map.len(), width * left.height(), "left map");
    assert_eq!(right.len(), map.len(), "right map");
    let mask = params.masks_zero();
    for (i, value) in map.iter_mut().enumerate() {
        let (x, y) = (i % width, i / width);
        let masked = mask && left.get(x, y) == 0;
        if *value != INVALID && (masked || !is_consistent(*value, x, &right[i - x..i - x + width], params)) {
            *value = INVALID;
        }
    }
}

/// Whether the right row agrees with a valid `value` at column `x`.
fn is_consistent(value: u16, x: usize, right_row: &[u16], params: &Params) -> bool {
    if params.lr_max_diff < 0 {
        return true;
    }
    let disparity = if params.subpixel { value >> SUBPIXEL_BITS } else { value };
    let (shift, outside_passes) = match params.compat {
        Compat::None => (params.min_disparity as isize, false),
        Compat::LibSgm => (0, true),
    };
    let column = x as isize - disparity as isize - shift;
    match usize::try_from(column).ok().and_then(|column| right_row.get(column)) {
        None => outside_passes,
        Some(&INVALID) => false,
        Some(&other) => other.abs_diff(disparity) <= params.lr_max_diff as u16,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One row of whole disparities, checked with `lr_max_diff = 1`.
    fn check(map: &[u16], right: &[u16], pixels: &[u8], params: Params) -> Vec<u16> {
        let left = GrayView::from_u8(pixels, map.len(), 1).unwrap();
        let mut map = map.to_vec();
        check_consistency(&mut map, right, &left, &params);
        map
    }

    fn whole() -> Params {
        Params { subpixel: false, ..Params::default() }
    }

    #[test]
    fn agreement_within_the_limit() {
        // x = 3: d = 1 -> column 2 says 2, off by one. x = 2: d = 1 -> column 1 says 3, off by two.
        let out = check(&[0, 0, 1, 1], &[0, 3, 2, 0], &[9; 4], whole());
        assert_eq!(out, [0, INVALID, INVALID, 1]);
        let out = check(&[0, 0, 1, 1], &[0, 3, 2, 0], &[9; 4], Params { lr_max_diff: 0, ..whole() });
        assert_eq!(out, [0, INVALID, INVALID, INVALID]);
        let out = check(&[0, 0, 1, 1], &[0, 3, 2, 0], &[9; 4], Params { lr_max_diff: 2, ..whole() });
        assert_eq!(out, [0, INVALID, 1, 1]);
    }

    #[test]
    fn subpixel_values_are_cut_to_whole_ones() {
        let right = [0, 0, 0];
        let out = check(&[15, 31, 47], &right, &[9; 3], Params { lr_max_diff: 1, ..Params::default() });
        assert_eq!(out, [15, 31, INVALID], "0, 1 and 2 against 0");
    }

    #[test]
    fn matches_out_of_view() {
        let m = |min_disparity, compat| Params { min_disparity, compat, ..whole() };
        // x - d: -1, 0, 1 (the last two agree); with m = 1 the columns move out by one.
        let (map, right) = ([1, 1, 1], [1, 1, 1]);
        assert_eq!(check(&map, &right, &[9; 3], m(0, Compat::None)), [INVALID, 1, 1]);
        assert_eq!(check(&map, &right, &[9; 3], m(0, Compat::LibSgm)), [1, 1, 1]);
        assert_eq!(check(&map, &right, &[9; 3], m(1, Compat::None)), [INVALID, INVALID, 1]);
        assert_eq!(check(&map, &right, &[9; 3], m(1, Compat::LibSgm)), [1, 1, 1]);
        assert_eq!(check(&map, &right, &[9; 3], m(-2, Compat::None)), [1, 1, INVALID]);
    }

    #[test]
    fn invalid_on_either_side() {
        let right = [INVALID, 0];
        assert_eq!(check(&[0, INVALID], &right, &[9; 2], whole()), [INVALID, INVALID]);
        // Off, the right map is not looked at.
        let off = Params { lr_max_diff: -1, ..whole() };
        assert_eq!(check(&[5, INVALID], &right, &[9; 2], off), [5, INVALID]);
    }

    #[test]
    fn zero_intensities_are_masked_on_demand() {
        let off = Params { lr_max_diff: -1, ..whole() };
        let check = |params| check(&[2, 2, 2], &[0; 3], &[0, 1, 0], params);
        assert_eq!(check(off.clone()), [2, 2, 2]);
        assert_eq!(check(Params { mask_zero: true, ..off.clone() }), [INVALID, 2, INVALID]);
        assert_eq!(check(Params { compat: Compat::LibSgm, ..off }), [INVALID, 2, INVALID]);
    }
}
