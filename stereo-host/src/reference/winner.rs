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
            // The d for which x = column + d + shift lies in the row.
            let nearest = column as isize + shift;
            let first = nearest.min(0).unsigned_abs();
            let end = disparities.min((width as isize - nearest).max(0) as usize);
            let candidates =
                (first..end).map(|d| (d, row[nearest.wrapping_add_unsigned(d) as usize * disparities + d]));
            *value = argmin(candidates).map_or(INVALID, |d| d as u16);
        }
    }
}

/// The disparity of the smallest sum, the smaller disparity on ties, from candidates in ascending order.
fn argmin(candidates: impl Iterator<Item = (usize, u16)>) -> Option<usize> {
    let mut winner = None;
    for (d, sum) in candidates {
        if winner.is_none_or(|(_, best)| sum < best) {
            winner = Some((d, sum));
        }
    }
    winner.map(|(d, _)| d)
}

/// Whether no disparity farther than 1 from the winner comes close to its sum. In `f32`, as defined.
fn is_unique(sums: &[u16], winner: usize, uniqueness: f32) -> bool {
    let best = f32::from(sums[winner]);
    let close = |&sum: &u16| f32::from(sum) * uniqueness < best;
    let below = &sums[..winner.saturating_sub(1)];
    let above = sums.get(winner + 2..).unwrap_or_default();
    !below.iter().chain(above).any(close)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The left value of one pixel.
    fn left(sums: &[u16], uniqueness: f32, subpixel: bool) -> u16 {
        let params = Params { disparities: sums.len() as u32, uniqueness, subpixel, ..Params::default() };
        let mut out = [0];
        left_map(sums, &params, &mut out);
        out[0]
    }

    /// The right row of a left row of three pixels with two disparities.
    fn right(sums: &[u16; 6], min_disparity: i32, compat: Compat) -> Vec<u16> {
        let params = Params { disparities: 2, min_disparity, compat, ..Params::default() };
        let mut out = vec![7; 3];
        right_map(sums, 3, &params, &mut out);
        out
    }

    #[test]
    fn the_smaller_disparity_wins_a_tie() {
        assert_eq!(left(&[5, 3, 4, 3], 1.0, false), 1);
        assert_eq!(left(&[9], 0.95, true), 0);
        assert_eq!(left(&[0, 0, 0], 0.95, true), 0, "zero everywhere is unique: 0 < 0 is false");
    }

    #[test]
    fn uniqueness_spares_the_winner_and_its_neighbours() {
        assert_eq!(left(&[96, 96, 200], 0.95, false), 0, "a neighbour may be as good");
        assert_eq!(left(&[200, 97, 96], 0.95, false), 2, "on either side");
        assert_eq!(left(&[96, 200, 100], 0.95, false), INVALID, "100 * 0.95 < 96");
        // 0.95 in f32 is a little less than 0.95, but the product rounds to 95: f32 it is.
        assert_eq!(left(&[95, 200, 100], 0.95, false), 0);
        assert_eq!(left(&[95, 200, 95], 1.0, false), 0, "1 switches it off");
        assert_eq!(left(&[1, 200, 2000], 0.0, false), INVALID, "0 leaves only a zero winner");
        assert_eq!(left(&[100, 200, 300, 96], 0.95, false), INVALID, "below the winner as well");
    }

    #[test]
    fn subpixel_truncates_toward_zero() {
        // n = 2, q = 10: (32 + 10) / 20 = 2.
        assert_eq!(left(&[10, 4, 8], 1.0, true), 16 + 2);
        // n = -2, q = 10: (-32 + 10) / 20 = -1.1, toward zero -1.
        assert_eq!(left(&[8, 4, 10], 1.0, true), 16 - 1);
        // n = q = 6: (96 + 6) / 12 = 8, the largest correction; n = -q: (-96 + 6) / 12 = -7.
        assert_eq!(left(&[10, 4, 4], 1.0, true), 16 + 8);
        assert_eq!(subpixel(&[4, 4, 10], 1), 16 - 7);
        assert_eq!(left(&[4, 5, 6], 1.0, true), 0, "no neighbour below");
        assert_eq!(left(&[6, 5, 4], 1.0, true), 32, "no neighbour above");
        assert_eq!(subpixel(&[5, 5, 5], 1), 16, "no curvature, no correction");
    }

    #[test]
    fn right_columns_look_along_the_diagonal() {
        // Pixels x = 0, 1, 2 with sums for d = 0, 1.
        let sums = [4, 9, 5, 4, 3, 2];
        // Column c sees (c, 0) and (c + 1, 1); the last one only (2, 0).
        assert_eq!(right(&sums, 0, Compat::None), [0, 1, 0]);
        assert_eq!(right(&sums, 0, Compat::LibSgm), [0, 1, 0]);
        // m = 1: column c sees (c + 1, 0) and (c + 2, 1); column 2 nothing.
        assert_eq!(right(&sums, 1, Compat::None), [1, 0, INVALID]);
        assert_eq!(right(&sums, 1, Compat::LibSgm), [0, 1, 0], "shifted by m, so as with m = 0");
        // m = -1: column c sees (c - 1, 0) and (c, 1); column 0 only (0, 1).
        assert_eq!(right(&sums, -1, Compat::None), [1, 0, 1]);
        assert_eq!(right(&sums, 40, Compat::None), [INVALID; 3]);
    }
}
