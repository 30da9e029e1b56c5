//! Path aggregation (sgm.md, section 3; Hirschmüller 2008, section 2.3).

use crate::{Direction, GrayView, Params, params::MAX_PATH_COST};

/// The path costs `L_r` of one direction.
///
/// `cost`: the matching cost `C`, `[y][x][d]` with `params.disparities` values per pixel.
/// `left`: the left image, for the size and the adaptive P2.
/// `out`: `L_r`, laid out as `cost`, each at most `max C + p2`.
///
/// # Panics
/// When the lengths disagree, or when a path cost could exceed 255 (see [`Params::validate`]).
pub fn path_costs(cost: &[u8], left: &GrayView<'_>, params: &Params, direction: Direction, out: &mut [u8]) {
    let (width, height) = (left.width(), left.height());
    let disparities = params.disparities as usize;
    assert_eq!(cost.len(), width * height * disparities, "matching cost");
    assert_eq!(out.len(), cost.len(), "path cost output");
    let largest = u16::from(cost.iter().copied().max().unwrap_or(0));
    assert!(largest + params.p2 <= MAX_PATH_COST, "cost {largest} + p2 {} must fit 8 bits", params.p2);

    let (dx, dy) = direction.offset();
    let mut above = Above::new(disparities);
    for row in 0..height {
        // Every predecessor comes first: rows and columns are visited in the direction of travel.
        let y = if dy < 0 { height - 1 - row } else { row };
        for column in 0..width {
            let x = if dx < 0 { width - 1 - column } else { column };
            let here = (y * width + x) * disparities;
            let here = here..here + disparities;
            let Some((px, py)) = predecessor(x, y, direction, width, height) else {
                out[here.clone()].copy_from_slice(&cost[here]);
                continue;
            };
            let before = (py * width + px) * disparities;
            above.set(&out[before..before + disparities]);
            let p2 = step_penalty(params, left.get(x, y), left.get(px, py));
            step(&cost[here.clone()], &above, params.p1, p2, &mut out[here]);
        }
    }
}

/// Adds the path costs of one direction to the sums `S`.
///
/// `sums`: `[y][x][d]`, as long as `path`.
///
/// # Panics
/// When the lengths disagree.
pub fn add_to_sums(path: &[u8], sums: &mut [u16]) {
    assert_eq!(path.len(), sums.len(), "sums");
    for (sum, &path) in sums.iter_mut().zip(path) {
        *sum += u16::from(path);
    }
}

/// `P2` of the step between two left intensities: lower across an edge when it is adaptive.
pub fn step_penalty(params: &Params, here: u16, before: u16) -> u16 {
    if params.adaptive_p2 {
        let lowered = u32::from(params.p2) / (u32::from(here.abs_diff(before)) + 1);
        params.p1.max(lowered as u16)
    } else {
        params.p2
    }
}

/// `p - r`, or `None` where that lies outside the image.
fn predecessor(x: usize, y: usize, direction: Direction, width: usize, height: usize) -> Option<(usize, usize)> {
    let (dx, dy) = direction.offset();
    let px = x.checked_add_signed(-dx).filter(|&px| px < width)?;
    let py = y.checked_add_signed(-dy).filter(|&py| py < height)?;
    Some((px, py))
}

/// `L_r(p - r, d) - M` at index `d + 1`, between two terms that are never the smallest.
struct Above(Vec<u16>);

impl Above {
    fn new(disparities: usize) -> Self {
        Self(vec![u16::MAX; disparities + 2])
    }

    fn set(&mut self, previous: &[u8]) {
        let smallest = previous.iter().copied().min().unwrap_or(0);
        for (above, &path) in self.0[1..].iter_mut().zip(previous) {
            *above = u16::from(path - smallest);
        }
    }
}

/// One step of the recurrence: `L_r(p, ·)` from `C(p, ·)` and `L_r(p - r, ·)`.
fn step(cost: &[u8], above: &Above, p1: u16, p2: u16, out: &mut [u8]) {
    for ((out, &cost), above) in out.iter_mut().zip(cost).zip(above.0.windows(3)) {
        let changed = above[0].min(above[2]).saturating_add(p1);
        let s = above[1].min(changed).min(p2);
        // Cannot wrap: C + P2 fits.
        *out = cost.wrapping_add(s as u8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Paths;

    /// Path costs over an image of `width` pixels a row, three disparities, P1 = 2 and P2 = 5.
    fn paths(cost: &[u8], pixels: &[u8], width: usize, adaptive_p2: bool, direction: Direction) -> Vec<u8> {
        let params = Params { disparities: 3, p1: 2, p2: 5, adaptive_p2, ..Params::default() };
        let left = GrayView::from_u8(pixels, width, pixels.len() / width).unwrap();
        let mut out = vec![u8::MAX; cost.len()];
        path_costs(cost, &left, &params, direction, &mut out);
        out
    }

    #[test]
    fn along_a_row_both_ways() {
        let cost = [0, 9, 9, 7, 1, 0, 3, 3, 3];
        // From 0 9 9 (M = 0): S = 0, 0 + P1, P2. From 7 3 5 (M = 3): S = 2 (from the neighbour), 0, 2.
        assert_eq!(paths(&cost, &[8; 3], 3, false, Direction::LeftToRight), [0, 9, 9, 7, 3, 5, 5, 3, 5]);
        // From 3 3 3: S = 0. From 7 1 0 (M = 0): S = 1 + P1, 1, 0.
        assert_eq!(paths(&cost, &[8; 3], 3, false, Direction::RightToLeft), [3, 10, 9, 7, 1, 0, 3, 3, 3]);
    }

    #[test]
    fn every_direction_reads_its_own_predecessor() {
        // Nine pixels whose only difference is the preferred disparity; the centre is indifferent, so
        // its path costs show where they came from.
        let preferred = [0, 1, 2, 2, 0, 0, 1, 2, 0];
        let mut cost: Vec<u8> =
            preferred.iter().flat_map(|&p| (0..3).map(move |d| if d == p { 0 } else { 9 })).collect();
        cost[12..15].fill(4);
        let from = |p: usize| -> [u8; 3] { [[4, 6, 9], [6, 4, 6], [9, 6, 4]][preferred[p]] };
        let origins = [3, 5, 1, 7, 0, 2, 6, 8];
        for (direction, origin) in Direction::ALL.into_iter().zip(origins) {
            // With P2 = 5 the third disparity costs min(9, 9 + 2, 5) = 5 more.
            let out = paths(&cost, &[8; 9], 3, false, direction);
            assert_eq!(out[12..15], from(origin), "{direction}");
        }
    }

    #[test]
    fn a_path_starts_with_the_cost_alone() {
        let cost: Vec<u8> = (0..12).collect();
        for direction in Direction::ALL {
            let (dx, dy) = direction.offset();
            let out = paths(&cost, &[8; 4], 2, false, direction);
            for (x, y) in [(0, 0), (1, 0), (0, 1), (1, 1)] {
                if !(0..2).contains(&(x - dx)) || !(0..2).contains(&(y - dy)) {
                    let here = (y * 2 + x) as usize * 3;
                    assert_eq!(out[here..here + 3], cost[here..here + 3], "{direction} at ({x}, {y})");
                }
            }
        }
    }

    #[test]
    fn adaptive_p2_falls_with_the_step_and_stops_at_p1() {
        let params = Params { p1: 10, p2: 120, ..Params::default() };
        let steps = [(7, 7, 120), (8, 7, 60), (0, 6, 17), (10, 0, 10), (11, 0, 10), (0, u16::MAX, 10), (5, 0x0105, 10)];
        for (here, before, p2) in steps {
            assert_eq!(step_penalty(&params, here, before), p2, "{here} after {before}");
        }
        assert_eq!(step_penalty(&Params { adaptive_p2: false, ..params }, 0, 255), 120);
        // In a row: |8 - 7| halves P2 = 5 to 2.
        let cost = [0, 9, 9, 0, 0, 0];
        assert_eq!(paths(&cost, &[7, 8], 2, true, Direction::LeftToRight), [0, 9, 9, 0, 2, 2]);
        assert_eq!(paths(&cost, &[7, 7], 2, true, Direction::LeftToRight), [0, 9, 9, 0, 2, 5]);
    }

    /// Five pixels that all favour the first of two disparities, the second by `cost` worse.
    fn growing_path(cost: u8) -> Vec<u8> {
        let params = Params { disparities: 2, p1: 200, p2: 200, adaptive_p2: false, ..Params::default() };
        let left = GrayView::from_u8(&[0; 5], 5, 1).unwrap();
        let mut out = vec![0; 10];
        path_costs(&[0, cost].repeat(5), &left, &params, Direction::LeftToRight, &mut out);
        out
    }

    #[test]
    fn the_largest_path_cost_fits_and_so_does_the_sum() {
        // 55 more at every pixel, until P2 cuts it.
        let out = growing_path(55);
        assert_eq!(out, [0, 55, 0, 110, 0, 165, 0, 220, 0, 255]);
        let mut sums = [0; 10];
        (0..Paths::Eight.count()).for_each(|_| add_to_sums(&out, &mut sums));
        assert_eq!(sums[9], 8 * 255);
    }

    #[test]
    #[should_panic(expected = "cost 56 + p2 200 must fit 8 bits")]
    fn a_path_cost_never_wraps() {
        growing_path(56);
    }
}
