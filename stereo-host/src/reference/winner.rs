//! Winner takes all, uniqueness and sub-pixel (sgm.md, section 4).

use super::INVALID;
use crate::{Compat, Params, SUBPIXEL_BITS};

/// The left map before post-processing.
///
/// `sums`: `S`, `[y][x][d]` with `params.disparities` values per pixel.
/// `out`: `[y][x]`, relative disparities, times 16 with `params.subpixel`; [`INVALID`] where the
/// winner is not unique.
///
/// # Panics
/// When the lengths disagree.
pub fn left_map(sums: &[u16], params: &Params, out: &mut [u16]) {
    let disparities = params.disparities as usize;
    assert_eq!(sums.len(), out.len() * disparities, "sums");
    for (sums, value) in sums.chunks_exact(disparities).zip(out) {
        let winner = argmin(sums.iter().copied().enumerate()).unwrap_or(0);
        *value = if !is_unique(sums, winner, params.uniqueness) {
            INVALID
        } else if params.subpixel {
            subpixel(sums, winner)
        } else {
            winner as u16
        };
    }
}

/// The right map, from the same sums, in whole relative disparities.
///
/// `sums`: `S`, `[y][x][d]` of the left image, rows of `width` pixels.
/// `out`: `[y][c]`; [`INVALID`] for a right column that no left pixel is compared with. With
/// [`Compat::LibSgm`] the column is that of the right image shifted by `min_disparity`.
///
/// # Panics
/// When the lengths disagree.
pub fn right_map(sums: &[u16], width: usize, params: &Params, out: &mut [u16]) {
    let disparities = params.disparities as usize;
    assert_eq!(sums.len(), out.len() * disparities, "sums");
    let shift = match params.compat {
        Compat::None => params.min_disparity as isize,
        Compat::LibSgm => 0,
    };
    for (row, out) in sums.chunks_exact(width * disparities).zip(out.chunks_exact_mut(width)) {
        for (column, value) in out.iter_mut().enumerate() {
            let candidates = (0..disparities).filter_map(|d| {
                let x = column.checked_add_signed(d as isize + shift).filter(|&x| x < width)?;
                Some((d, row[x * disparities + d]))
            });
            *value = argmin(candidates).map_or(INVALID, |d| d as u16);
        }
    }
}

/// The disparity of the smallest sum, the smaller disparity on ties.
fn argmin(candidates: impl Iterator<Item = (usize, u16)>) -> Option<usize> {
    // `min_by_key` keeps the first of equals, and disparities come in ascending order.
    candidates.min_by_key(|&(_, sum)| sum).map(|(d, _)| d)
}

/// Whether no disparity farther than 1 from the winner comes close to its sum. In `f32`, as defined.
fn is_unique(sums: &[u16], winner: usize, uniqueness: f32) -> bool {
    let best = f32::from(sums[winner]);
    !sums.iter().enumerate().any(|(d, &sum)| d.abs_diff(winner) > 1 && f32::from(sum) * uniqueness < best)
}

/// The winner in 1/16 px, moved to the vertex of the parabola through its neighbours' sums.
fn subpixel(sums: &[u16], winner: usize) -> u16 {
    let whole = (winner as i32) << SUBPIXEL_BITS;
    if winner == 0 || winner + 1 == sums.len() {
        return whole as u16;
    }
    let (before, best, after) = (i32::from(sums[winner - 1]), i32::from(sums[winner]), i32::from(sums[winner + 1]));
    let numerator = before - after;
    let curvature = before - 2 * best + after;
    if curvature == 0 {
        return whole as u16;
    }
    // Never negative: the correction is within half a pixel and the winner at least 1.
    (whole + ((numerator << SUBPIXEL_BITS) + curvature) / (2 * curvature)) as u16
}
