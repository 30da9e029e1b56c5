//! The edge-aware recursive filter: one domain transform iteration, after E. S. L. Gastal and M. M. Oliveira,
//! "Domain Transform for Edge-Aware Image and Video Processing", SIGGRAPH 2011, section 5 (recursive filtering);
//! the integer form is masda.md, image plane, point 3. Every pass works in place on `volume[y][x][d]`.

use super::score::Volume;
use crate::{
    GrayView,
    masda::{
        Tables,
        tables::{ONE, level_difference},
    },
};

/// From `x - 1` to `x`.
pub fn horizontal_forward(volume: &mut Volume, left: &GrayView<'_>, tables: &Tables) {
    for y in 0..volume.height {
        for x in 1..volume.width {
            step(volume, left, tables, (x - 1, y), (x, y));
        }
    }
}

/// From `x + 1` to `x`.
pub fn horizontal_backward(volume: &mut Volume, left: &GrayView<'_>, tables: &Tables) {
    for y in 0..volume.height {
        for x in (0..volume.width - 1).rev() {
            step(volume, left, tables, (x + 1, y), (x, y));
        }
    }
}

/// From `y - 1` to `y`.
pub fn vertical_forward(volume: &mut Volume, left: &GrayView<'_>, tables: &Tables) {
    for y in 1..volume.height {
        for x in 0..volume.width {
            step(volume, left, tables, (x, y - 1), (x, y));
        }
    }
}

/// From `y + 1` to `y`.
pub fn vertical_backward(volume: &mut Volume, left: &GrayView<'_>, tables: &Tables) {
    for y in (0..volume.height - 1).rev() {
        for x in 0..volume.width {
            step(volume, left, tables, (x, y + 1), (x, y));
        }
    }
}

/// Filters one pixel from its predecessor in the pass. The stored value is the carry: a convex
/// combination of scores fits 16 bits as they do.
fn step(volume: &mut Volume, left: &GrayView<'_>, tables: &Tables, from: (usize, usize), to: (usize, usize)) {
    let difference = level_difference(left.get(to.0, to.1), left.get(from.0, from.1), left.pixels().bits());
    let a = i32::from(tables.coefficient[difference]);
    let (previous, current) = (volume.at(from.0, from.1), volume.at(to.0, to.1));
    for d in 0..volume.disparities {
        let carry = i32::from(volume.data[previous + d]);
        let v = i32::from(volume.data[current + d]);
        volume.data[current + d] = (v + (a * (carry - v)) / ONE) as i16;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::MasdaParams;

    #[test]
    fn truncates_toward_zero_in_both_directions() {
        let pixels = [10u8, 10];
        let left = GrayView::from_u8(&pixels, 2, 1).unwrap();
        let tables = Tables { coefficient: [8191; 256], ..Tables::new(&MasdaParams::default()) };
        let mut volume = Volume { data: vec![101, 100, 100, 101], width: 2, height: 1, disparities: 2 };
        horizontal_forward(&mut volume, &left, &tables);
        // 8191 / 16384 and -8191 / 16384 are both 0.
        assert_eq!(volume.data, [101, 100, 100, 101]);
        volume.data = vec![103, 100, 100, 103];
        horizontal_forward(&mut volume, &left, &tables);
        // +-3 * 8191 / 16384 = +-1.4998.
        assert_eq!(volume.data, [103, 100, 101, 102]);
        volume.data = vec![103, 100, 100, 103];
        horizontal_backward(&mut volume, &left, &tables);
        assert_eq!(volume.data, [102, 101, 100, 103]);
    }
}
