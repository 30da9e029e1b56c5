//! Graded scores of every pixel and disparity (masda.md, image plane, point 2).

use crate::{GrayView, Params, masda::Tables, masda::tables::level_difference};

/// Scores in Q14, higher is better: `data[(y * width + x) * disparities + d]`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Volume {
    /// The scores, `d` innermost.
    pub data: Vec<i16>,
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Disparities `D`.
    pub disparities: usize,
}

impl Volume {
    /// The position of pixel `(x, y)`'s scores.
    pub fn at(&self, x: usize, y: usize) -> usize {
        (y * self.width + x) * self.disparities
    }
}

/// The raw scores of a pair, from the 7x7 census of both images, row-major.
pub fn volume(
    left: &GrayView<'_>,
    right: &GrayView<'_>,
    census_left: &[u64],
    census_right: &[u64],
    params: &Params,
    tables: &Tables,
) -> Volume {
    let (width, height, bits) = (left.width(), left.height(), left.pixels().bits());
    let disparities = params.disparities as usize;
    let mut data = Vec::with_capacity(width * height * disparities);
    for y in 0..height {
        for x in 0..width {
            for d in 0..disparities {
                let column = right_column(x, d, params.min_disparity).clamp(0, width as i64 - 1) as usize;
                let distance = (census_left[y * width + x] ^ census_right[y * width + column]).count_ones() as usize;
                let difference = level_difference(left.get(x, y), right.get(column, y), bits);
                data.push(tables.census[distance] + tables.intensity[difference]);
            }
        }
    }
    Volume { data, width, height, disparities }
}

/// The right column `x - d - m`, which may lie outside the image.
pub fn right_column(x: usize, d: usize, min_disparity: i32) -> i64 {
    x as i64 - d as i64 - i64::from(min_disparity)
}
