//! Path aggregation (sgm.md, section 3; Hirschmüller 2008, section 2.3).

use crate::{Direction, GrayView, Params};

/// The path costs `L_r` of one direction.
///
/// `cost`: the matching cost `C`, `[y][x][d]` with `params.disparities` values per pixel.
/// `left`: the left image, for the size and the adaptive P2.
/// `out`: `L_r`, laid out as `cost`, each at most `max C + p2`.
///
/// # Panics
/// When the lengths disagree, or when a path cost exceeds 255 (see [`Params::validate`]).
pub fn path_costs(cost: &[u8], left: &GrayView<'_>, params: &Params, direction: Direction, out: &mut [u8]) {
    let (width, height) = (left.width(), left.height());
    let disparities = params.disparities as usize;
    assert_eq!(cost.len(), width * height * disparities, "matching cost");
    assert_eq!(out.len(), cost.len(), "path cost output");

    let (dx, dy) = direction.offset();
    let mut previous = vec![0; disparities];
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
            previous.copy_from_slice(&out[before..before + disparities]);
            let p2 = step_penalty(params, left.get(x, y), left.get(px, py));
            step(&cost[here.clone()], &previous, params.p1, p2, &mut out[here]);
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

/// One step of the recurrence: `L_r(p, ·)` from `C(p, ·)` and `L_r(p - r, ·)`.
fn step(cost: &[u8], previous: &[u8], p1: u16, p2: u16, out: &mut [u8]) {
    let smallest = previous.iter().copied().min().unwrap_or(0);
    let above = |d: usize| u16::from(previous[d] - smallest);
    for d in 0..cost.len() {
        let mut s = p2.min(above(d));
        if d > 0 {
            s = s.min(above(d - 1) + p1);
        }
        if d + 1 < cost.len() {
            s = s.min(above(d + 1) + p1);
        }
        let path = u16::from(cost[d]) + s;
        debug_assert!(path <= u16::from(u8::MAX), "path cost {path}");
        out[d] = path as u8;
    }
}
