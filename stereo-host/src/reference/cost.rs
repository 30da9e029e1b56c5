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
