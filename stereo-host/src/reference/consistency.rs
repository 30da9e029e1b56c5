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
