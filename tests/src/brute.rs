//! SGM once more, written from sgm.md in another style than the reference and sharing nothing with
//! it but the parameters: signed wide integers, nested vectors, `None` for invalid, every path
//! listed pixel by pixel, every disparity change weighed against every other. Slow: tiny images only.

use stereo_host::{Census, Compat, GrayView, Params, Paths};

/// A row-major grid of anything, `grid[y][x]`.
pub type Grid<T> = Vec<Vec<T>>;
/// A value per pixel and disparity, `volume[y][x][d]`.
pub type Volume = Grid<Vec<i64>>;
/// A map with invalid pixels.
pub type Map = Grid<Option<i64>>;

/// Everything on the way to the final map.
pub struct Steps {
    /// The left image's comparisons.
    pub census_left: Grid<Vec<bool>>,
    /// The right image's comparisons.
    pub census_right: Grid<Vec<bool>>,
    /// The matching cost.
    pub cost: Volume,
    /// The path costs of every direction, in the order of [`steps`].
    pub paths: Vec<Volume>,
    /// Their sum.
    pub sums: Volume,
    /// The left winners.
    pub left: Map,
    /// The right winners.
    pub right: Map,
    /// The left median.
    pub left_median: Map,
    /// The right median.
    pub right_median: Map,
    /// The left map after the check.
    pub checked: Map,
    /// The final map in true disparities.
    pub map: Map,
}

/// Runs everything.
pub fn run(left: &GrayView<'_>, right: &GrayView<'_>, p: &Params) -> Steps {
    let left = pixels(left);
    let census_left = census(&left, p.census);
    let census_right = census(&pixels(right), p.census);
    let cost = cost(&census_left, &census_right, p);
    let paths: Vec<Volume> = steps(p.paths).iter().map(|&r| path_costs(&cost, &left, p, r)).collect();
    let sums = sum(&paths);
    let left_map = left_winners(&sums, p);
    let right_map = right_winners(&sums, p);
    let zero_border = p.compat == Compat::LibSgm;
    let left_median = median(&left_map, zero_border);
    let right_median = median(&right_map, zero_border);
    let checked = check(&left_median, &right_median, &left, p);
    let mut map = true_range(&checked, p);
    if let Some(speckle) = p.speckle {
        map = without_speckles(&map, speckle.max_size as usize, i64::from(speckle.max_diff) * scale(p));
    }
    if p.fill {
        map = median(&filled(&map), false);
    }
    Steps {
        census_left,
        census_right,
        cost,
        paths,
        sums,
        left: left_map,
        right: right_map,
        left_median,
        right_median,
        checked,
        map,
    }
}

/// The image as wide integers.
pub fn pixels(view: &GrayView<'_>) -> Grid<i64> {
    (0..view.height()).map(|y| (0..view.width()).map(|x| i64::from(view.get(x, y))).collect()).collect()
}

/// A grid of the same size from a function of `(x, y)`.
fn grid<T, U>(like: &Grid<T>, mut value: impl FnMut(i64, i64) -> U) -> Grid<U> {
    let (width, height) = size(like);
    (0..height).map(|y| (0..width).map(|x| value(x, y)).collect()).collect()
}

fn size<T>(grid: &Grid<T>) -> (i64, i64) {
    (grid[0].len() as i64, grid.len() as i64)
}

fn at<T>(grid: &Grid<T>, x: i64, y: i64) -> Option<&T> {
    grid.get(usize::try_from(y).ok()?)?.get(usize::try_from(x).ok()?)
}

/// Section 1: the comparisons of every pixel, the first one first.
pub fn census(image: &Grid<i64>, kind: Census) -> Grid<Vec<bool>> {
    let (width, height) = size(image);
    let clamped = |x: i64, y: i64| *at(image, x.clamp(0, width - 1), y.clamp(0, height - 1)).unwrap();
    let window = |half: i64| (-3..=3).flat_map(move |dy| (-half..=half).map(move |dx| (dx, dy)));
    grid(image, |x, y| match kind {
        Census::Window7x7 | Census::Window9x7 => {
            let half = if kind == Census::Window7x7 { 3 } else { 4 };
            let neighbours = window(half).filter(|&offset| offset != (0, 0));
            neighbours.map(|(dx, dy)| clamped(x + dx, y + dy) > clamped(x, y)).collect()
        }
        Census::Symmetric9x7 => {
            let inside = x - 4 >= 0 && x + 4 < width && y - 3 >= 0 && y + 3 < height;
            // Row by row, everything before the centre.
            let first_halves = window(4).take_while(|&offset| offset != (0, 0));
            first_halves.map(|(dx, dy)| inside && clamped(x + dx, y + dy) > clamped(x - dx, y - dy)).collect()
        }
    })
}

/// Section 2.
pub fn cost(left: &Grid<Vec<bool>>, right: &Grid<Vec<bool>>, p: &Params) -> Volume {
    let (width, _) = size(left);
    grid(left, |x, y| {
        let here = at(left, x, y).unwrap();
        let nothing = vec![false; here.len()];
        let cost = |d: i64| {
            let column = x - d - i64::from(p.min_disparity);
            let symmetric = p.census == Census::Symmetric9x7;
            let there = match at(right, column, y) {
                Some(there) => there,
                None if symmetric => &nothing,
                None if column < 0 => at(right, 0, y).unwrap(),
                None => at(right, width - 1, y).unwrap(),
            };
            let differing = here.iter().zip(there).filter(|(a, b)| a != b).count() as i64;
            if symmetric { differing } else { (differing + 1) / 2 }
        };
        (0..i64::from(p.disparities)).map(cost).collect()
    })
}

/// Section 3: the steps `(dx, dy)` of the directions, straight ones first.
pub fn steps(paths: Paths) -> Vec<(i64, i64)> {
    let straight = [(1, 0), (-1, 0), (0, 1), (0, -1)];
    let diagonal = [(1, 1), (-1, 1), (1, -1), (-1, -1)];
    match paths {
        Paths::Four => straight.to_vec(),
        Paths::Eight => straight.into_iter().chain(diagonal).collect(),
    }
}

/// Section 3: the paths of one direction, each the list of its pixels from border to border.
pub fn pixel_paths(width: i64, height: i64, (dx, dy): (i64, i64)) -> Vec<Vec<(i64, i64)>> {
    let inside = |&(x, y): &(i64, i64)| (0..width).contains(&x) && (0..height).contains(&y);
    let all = (0..height).flat_map(|y| (0..width).map(move |x| (x, y)));
    let starts = all.filter(|&(x, y)| !inside(&(x - dx, y - dy)));
    starts
        .map(|start| std::iter::successors(Some(start), |&(x, y)| Some((x + dx, y + dy)).filter(inside)).collect())
        .collect()
}

/// Section 3: the path costs of one direction.
///
/// Along each path the true cost of the best way to every disparity is carried, never reduced, and
/// every change of disparity is tried; `L_r` is what lies above the best way to the pixel before.
pub fn path_costs(cost: &Volume, left: &Grid<i64>, p: &Params, step: (i64, i64)) -> Volume {
    let (width, height) = size(cost);
    let (p1, p2) = (i64::from(p.p1), i64::from(p.p2));
    let mut out = grid(cost, |_, _| Vec::new());
    for path in pixel_paths(width, height, step) {
        let mut ways: Vec<i64> = Vec::new();
        let mut before = None;
        for (x, y) in path {
            let cost = at(cost, x, y).unwrap();
            let intensity = *at(left, x, y).unwrap();
            let (new, best_before) = match before {
                None => (cost.clone(), 0),
                Some(previous) => {
                    let edge: i64 = intensity - previous;
                    let jump = if p.adaptive_p2 { (p2 / (edge.abs() + 1)).max(p1) } else { p2 };
                    let change = |from: usize, to: usize| [0, p1, jump][from.abs_diff(to).min(2)];
                    let reach = |to| ways.iter().enumerate().map(|(from, w)| w + change(from, to)).min().unwrap();
                    let new = cost.iter().enumerate().map(|(d, c)| c + reach(d)).collect();
                    (new, *ways.iter().min().unwrap())
                }
            };
            out[y as usize][x as usize] = new.iter().map(|way| way - best_before).collect();
            ways = new;
            before = Some(intensity);
        }
    }
    out
}

/// Section 3: the sum over directions.
pub fn sum(paths: &[Volume]) -> Volume {
    grid(&paths[0], |x, y| {
        let pixel = |volume| at::<Vec<i64>>(volume, x, y).unwrap();
        (0..pixel(&paths[0]).len()).map(|d| paths.iter().map(|volume| pixel(volume)[d]).sum()).collect()
    })
}

fn scale(p: &Params) -> i64 {
    if p.subpixel { 16 } else { 1 }
}

/// Section 4: the left map.
pub fn left_winners(sums: &Volume, p: &Params) -> Map {
    grid(sums, |x, y| {
        let sums = at(sums, x, y).unwrap();
        let mut ranked: Vec<(i64, usize)> = sums.iter().enumerate().map(|(d, &s)| (s, d)).collect();
        ranked.sort_unstable();
        let (best, winner) = ranked[0];
        let close = |&(s, d): &(i64, usize)| d.abs_diff(winner) > 1 && s as f32 * p.uniqueness < best as f32;
        if ranked.iter().any(close) {
            return None;
        }
        if !p.subpixel {
            return Some(winner as i64);
        }
        let mut value = 16 * winner as i64;
        if winner > 0 && winner < sums.len() - 1 {
            let (a, b) = (sums[winner - 1], sums[winner + 1]);
            let (n, q) = (a - b, a - 2 * best + b);
            if q > 0 {
                let top = 16 * n + q;
                value += top.signum() * (top.abs() / (2 * q));
            }
        }
        Some(value)
    })
}

/// Section 4: the right map, by asking every left pixel and disparity which column it belongs to.
pub fn right_winners(sums: &Volume, p: &Params) -> Map {
    let m = if p.compat == Compat::LibSgm { 0 } else { i64::from(p.min_disparity) };
    let mut best: Grid<Option<(i64, i64)>> = grid(sums, |_, _| None);
    for (y, row) in sums.iter().enumerate() {
        for (x, sums) in row.iter().enumerate() {
            for (d, &sum) in sums.iter().enumerate() {
                let candidate = (sum, d as i64);
                let column = usize::try_from(x as i64 - d as i64 - m).ok();
                if let Some(best) = column.and_then(|c| best[y].get_mut(c)) {
                    *best = Some(best.map_or(candidate, |known| known.min(candidate)));
                }
            }
        }
    }
    grid(&best, |x, y| at(&best, x, y).unwrap().map(|(_, d)| d))
}

/// Section 5.1: invalid pixels are larger than any other.
pub fn median(map: &Map, zero_border: bool) -> Map {
    grid(map, |x, y| {
        let around = (-1..=1).flat_map(|dy| (-1..=1).map(move |dx| (x + dx, y + dy)));
        let mut window: Vec<Option<i64>> = around.filter_map(|(x, y)| at(map, x, y).copied()).collect();
        if window.len() < 9 {
            return if zero_border { Some(0) } else { *at(map, x, y).unwrap() };
        }
        window.sort_by_key(|value| value.unwrap_or(i64::MAX));
        window[4]
    })
}

/// Section 5.2.
pub fn check(map: &Map, right: &Map, left: &Grid<i64>, p: &Params) -> Map {
    let compat = p.compat == Compat::LibSgm;
    grid(map, |x, y| {
        let value = (*at(map, x, y).unwrap())?;
        if (compat || p.mask_zero) && *at(left, x, y).unwrap() == 0 {
            return None;
        }
        if p.lr_max_diff >= 0 {
            let d = value / scale(p);
            let column = x - d - if compat { 0 } else { i64::from(p.min_disparity) };
            match at(right, column, y) {
                Some(other) if ((*other)? - d).abs() > i64::from(p.lr_max_diff) => return None,
                None if !compat => return None,
                _ => {}
            }
        }
        Some(value)
    })
}

/// Section 5.3, without a number for invalid pixels.
pub fn true_range(map: &Map, p: &Params) -> Map {
    grid(map, |x, y| at(map, x, y).unwrap().map(|value| value + i64::from(p.min_disparity) * scale(p)))
}

/// Section 5.4: labels spread from pixel to pixel until nothing changes.
pub fn without_speckles(map: &Map, max_size: usize, max_diff: i64) -> Map {
    let (width, _) = size(map);
    let mut labels = grid(map, |x, y| y * width + x);
    loop {
        let spread = grid(map, |x, y| {
            let here = *at(&labels, x, y).unwrap();
            let Some(value) = *at(map, x, y).unwrap() else { return here };
            let beside = [(x - 1, y), (x + 1, y), (x, y - 1), (x, y + 1)];
            let joined = beside.into_iter().filter(|&(x, y)| {
                at(map, x, y).copied().flatten().is_some_and(|other| (value - other).abs() <= max_diff)
            });
            joined.map(|(x, y)| *at(&labels, x, y).unwrap()).chain([here]).min().unwrap()
        });
        if spread == labels {
            break;
        }
        labels = spread;
    }
    grid(map, |x, y| {
        let label = at(&labels, x, y).unwrap();
        let members = labels.iter().flatten().filter(|&other| other == label).count();
        at(map, x, y).unwrap().filter(|_| members > max_size)
    })
}

/// Section 5.4: filling, without the median after it.
pub fn filled(map: &Map) -> Map {
    let (width, _) = size(map);
    grid(map, |x, y| {
        let valid = |x: i64| at(map, x, y).copied().flatten();
        let ends = [(0..x).rev().find_map(valid), (x + 1..width).find_map(valid)];
        valid(x).or_else(|| ends.into_iter().flatten().min())
    })
}
