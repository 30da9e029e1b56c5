//! Matching cost (sgm.md, section 2).

use crate::{Census, Params};

/// The matching cost of every pixel and disparity, from the descriptors of both images.
///
/// `left`, `right`: `[y][x]`, rows of `width` descriptors of kind `params.census`.
/// `out`: `[y][x][d]` with `params.disparities` costs per pixel, each at most [`Census::max_cost`].
///
/// # Panics
/// When the lengths disagree.
pub fn matching_cost(left: &[u64], right: &[u64], width: usize, params: &Params, out: &mut [u8]) {
    let disparities = params.disparities as usize;
    assert_eq!(left.len(), right.len(), "descriptors");
    assert_eq!(out.len(), left.len() * disparities, "matching cost output");
    for (i, costs) in out.chunks_exact_mut(disparities).enumerate() {
        let x = i % width;
        let right_row = &right[i - x..i - x + width];
        for (d, cost) in costs.iter_mut().enumerate() {
            let column = x as isize - d as isize - params.min_disparity as isize;
            *cost = pixel_cost(left[i], right_row, column, params.census);
        }
    }
}

/// The cost of one descriptor against column `column` of the right row, which may lie outside it.
fn pixel_cost(left: u64, right_row: &[u64], column: isize, census: Census) -> u8 {
    let last = right_row.len() as isize - 1;
    let hamming = |right: u64| (left ^ right).count_ones() as u8;
    match census {
        Census::Window7x7 | Census::Window9x7 => {
            let nearest = column.clamp(0, last) as usize;
            (hamming(right_row[nearest]) + 1) >> 1
        }
        Census::Symmetric9x7 => {
            let inside = (0..=last).contains(&column);
            hamming(if inside { right_row[column as usize] } else { 0 })
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn costs(left: &[u64], right: &[u64], params: &Params) -> Vec<u8> {
        let mut out = vec![u8::MAX; left.len() * params.disparities as usize];
        matching_cost(left, right, left.len(), params, &mut out);
        out
    }

    #[test]
    fn halved_and_clamped_with_the_centre_census() {
        let params = Params { disparities: 3, min_disparity: -1, ..Params::default() };
        // Columns compared at x = 0: 1, 0, -1 -> 0; at x = 1: 2 -> 1, 1, 0.
        let costs = costs(&[0b000, 0b111], &[0b001, 0b111], &params);
        assert_eq!(costs, [2, 1, 1, 0, 0, 1]);
    }

    #[test]
    fn whole_and_zero_outside_with_the_symmetric_census() {
        let params = Params { disparities: 3, min_disparity: -1, census: Census::Symmetric9x7, ..Params::default() };
        // Outside the row the right descriptor is 0: at x = 0 for d = 2, at x = 1 for d = 0.
        let costs = costs(&[0b010, 0b111], &[0b001, 0b111], &params);
        assert_eq!(costs, [2, 2, 1, 3, 0, 2]);
    }

    #[test]
    fn the_largest_costs() {
        for (census, bits, largest) in
            [(Census::Window7x7, 48, 24), (Census::Window9x7, 62, 31), (Census::Symmetric9x7, 31, 31)]
        {
            let params = Params { disparities: 1, census, ..Params::default() };
            assert_eq!(costs(&[(1 << bits) - 1], &[0], &params), [largest], "{census:?}");
            assert_eq!(u16::from(largest), census.max_cost());
        }
    }

    #[test]
    fn far_out_of_the_row() {
        for min_disparity in [-2000, 2000] {
            let params = Params { disparities: 1, min_disparity, ..Params::default() };
            let nearest = if min_disparity < 0 { [1, 0] } else { [0, 1] };
            assert_eq!(costs(&[0, 1], &[0, 1], &params), nearest);
        }
    }
}
