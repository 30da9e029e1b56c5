//! Properties of the definition itself, as far as they are true, on random pairs.

use std::ops::Range;

use proptest::prelude::*;
use stereo_host::{Census, Compat, Direction, GrayView, Params, reference, reference::Stages};
use stereo_tests::{brute, cases, cases::Case};

fn config(cases: u32) -> ProptestConfig {
    ProptestConfig { cases, failure_persistence: None, ..ProptestConfig::default() }
}

/// The pair of a case as 16-bit images without padding, its parameters, and what can be done to them.
#[derive(Clone)]
struct Pair {
    left: Vec<u16>,
    right: Vec<u16>,
    width: usize,
    height: usize,
}

impl Pair {
    fn of(case: &Case) -> Self {
        let pixels = |view: &GrayView<'_>| {
            let all = (0..view.height()).flat_map(|y| (0..view.width()).map(move |x| (x, y)));
            all.map(|(x, y)| view.get(x, y)).collect()
        };
        let (left, right) = case.with_views(|left, right| (pixels(left), pixels(right)));
        Self { left, right, width: case.width, height: case.height }
    }

    fn stages(&self, params: &Params) -> Stages {
        let [left, right] = [&self.left, &self.right].map(|p| GrayView::from_u16(p, self.width, self.height).unwrap());
        Stages::compute(&left, &right, params)
    }

    fn left_view(&self) -> GrayView<'_> {
        GrayView::from_u16(&self.left, self.width, self.height).unwrap()
    }

    /// Both images mirrored left to right.
    fn mirrored(&self) -> Self {
        let [left, right] = [&self.left, &self.right].map(|p| mirrored(p, self.width));
        Self { left, right, ..*self }
    }

    /// Both images turned upside down.
    fn upside_down(&self) -> Self {
        let [left, right] = [&self.left, &self.right].map(|p| upside_down(p, self.width));
        Self { left, right, ..*self }
    }

    /// The pair as the other camera sees it in a mirror: the right image is the left one.
    fn swapped_and_mirrored(&self) -> Self {
        let Self { left, right, .. } = self.mirrored();
        Self { left: right, right: left, ..*self }
    }

    /// Every intensity replaced by another.
    fn mapped(&self, f: impl Fn(u16) -> u16) -> Self {
        let [left, right] = [&self.left, &self.right].map(|p| p.iter().map(|&v| f(v)).collect());
        Self { left, right, ..*self }
    }

    /// Every intensity replaced by its rank, so that no two of an image are equal.
    fn without_ties(&self) -> Self {
        let [left, right] = [&self.left, &self.right].map(|pixels| {
            let mut order: Vec<usize> = (0..pixels.len()).collect();
            order.sort_by_key(|&i| pixels[i]);
            let mut ranks = vec![0; pixels.len()];
            order.iter().enumerate().for_each(|(rank, &i)| ranks[i] = rank as u16);
            ranks
        });
        Self { left, right, ..*self }
    }
}

/// The symmetric census replaced by the centre census of its size, whose comparisons turn with the image.
fn centred(params: Params) -> Params {
    let census = if params.census == Census::Symmetric9x7 { Census::Window9x7 } else { params.census };
    Params { census, ..params }
}

fn mirrored<T: Copy>(map: &[T], width: usize) -> Vec<T> {
    map.chunks(width).flat_map(|row| row.iter().rev().copied()).collect()
}

fn upside_down<T: Copy>(map: &[T], width: usize) -> Vec<T> {
    map.chunks(width).rev().flatten().copied().collect()
}

/// The left columns `x = k + d + m` in `inside` that right column `k` is compared with, as `(d, x)`.
fn columns(k: usize, params: &Params, inside: Range<usize>) -> Vec<(usize, usize)> {
    let column = |d: usize| k.checked_add_signed(d as isize + params.min_disparity as isize);
    let all = (0..params.disparities as usize).filter_map(|d| Some((d, column(d)?)));
    all.filter(|(_, x)| inside.contains(x)).collect()
}

proptest! {
    #![proptest_config(config(150))]

    /// `S = paths * C + sum S_r` with `0 <= S_r <= P2` (of the step), `S_r = 0` where a path starts, and
    /// somewhere along every other pixel's disparities: the best way to it goes straight on.
    #[test]
    fn sums_are_costs_and_penalties(case in cases::case()) {
        let (pair, params) = (Pair::of(&case), &case.params);
        let stages = pair.stages(params);
        let (left, disparities) = (pair.left_view(), params.disparities as usize);
        let count = params.paths.count() as u16;
        let mut sums: Vec<u16> = stages.cost.iter().map(|&c| count * u16::from(c)).collect();
        let mut path = vec![0; stages.cost.len()];
        for &direction in params.paths.directions() {
            reference::path_costs(&stages.cost, &left, params, direction, &mut path);
            let (dx, dy) = direction.offset();
            for (i, (path, cost)) in path.chunks(disparities).zip(stages.cost.chunks(disparities)).enumerate() {
                let (x, y) = (i % pair.width, i / pair.width);
                let s: Vec<u8> = path.iter().zip(cost).map(|(&path, &cost)| path - cost).collect();
                let (px, py) = (x.wrapping_add_signed(-dx), y.wrapping_add_signed(-dy));
                let limit = if px < pair.width && py < pair.height {
                    prop_assert_eq!(s.iter().min(), Some(&0));
                    reference::step_penalty(params, left.get(x, y), left.get(px, py))
                } else {
                    0
                };
                prop_assert!(s.iter().all(|&s| u16::from(s) <= limit));
                prop_assert!(limit <= params.p2);
                sums[i * disparities..][..disparities].iter_mut().zip(s).for_each(|(sum, s)| *sum += u16::from(s));
            }
        }
        prop_assert_eq!(sums, stages.sums);
    }

    /// Upside down, the whole map is upside down, with every check and filter: rows have no order but
    /// the paths', and those come in pairs. Not with the symmetric census: turned around, a comparison
    /// of its middle column gives the opposite bit, which the descriptor 0 at the border does not.
    #[test]
    fn upside_down_pairs_give_upside_down_maps(case in cases::case()) {
        let (pair, params) = (Pair::of(&case), &centred(case.params));
        let expected = upside_down(&pair.stages(params).map, pair.width);
        prop_assert_eq!(pair.upside_down().stages(params).map, expected);
    }

    /// Mirrored, disparities change their sign: with `m' = -(m + D - 1)` the sums are those of the
    /// mirrored pixel in reverse order, exactly. So is a whole winner where no second disparity ties;
    /// ties (the smaller one wins) and sub-pixel digits (truncated) are what a mirror does not keep. Not
    /// with the symmetric census, for the reason above.
    #[test]
    fn mirrored_pairs_give_reversed_sums(case in cases::case()) {
        let pair = Pair::of(&case);
        let params = Params { subpixel: false, ..centred(case.params) };
        let disparities = params.disparities as usize;
        let min_disparity = -(params.min_disparity + params.disparities as i32 - 1);
        let plain = pair.stages(&params);
        let mirror = pair.mirrored().stages(&Params { min_disparity, ..params });
        for y in 0..pair.height {
            for x in 0..pair.width {
                let (i, j) = (y * pair.width + x, y * pair.width + pair.width - 1 - x);
                let sums = &plain.sums[i * disparities..][..disparities];
                let reversed: Vec<u16> = mirror.sums[j * disparities..][..disparities].iter().rev().copied().collect();
                prop_assert_eq!(sums, &reversed, "({}, {})", x, y);
                let best = sums.iter().min();
                if sums.iter().filter(|&sum| Some(sum) == best).count() == 1 {
                    let expected = match mirror.left[j] {
                        reference::INVALID => reference::INVALID,
                        d => params.disparities as u16 - 1 - d,
                    };
                    prop_assert_eq!(plain.left[i], expected, "({}, {})", x, y);
                }
            }
        }
    }

    /// Swapped and mirrored, the same `m` and `D` hold and every matching cost between two columns
    /// inside the image is the same: `C'(W-1-k, d) = C(k+d+m, d)`. The right map of those costs is
    /// therefore the other pair's left map where all its columns are inside. Path costs are not
    /// symmetric: a path follows the pixels of the left image, and a step in disparity is a step
    /// along the row of the right one.
    #[test]
    fn swapped_and_mirrored_pairs_have_the_same_costs(case in cases::case()) {
        let pair = Pair::of(&case);
        let params = Params { subpixel: false, uniqueness: 1.0, compat: Compat::None, ..centred(case.params) };
        let (width, disparities) = (pair.width, params.disparities as usize);
        let plain = pair.stages(&params).cost;
        let swapped = pair.swapped_and_mirrored().stages(&params).cost;

        let sums = |cost: &[u8]| cost.iter().map(|&c| c.into()).collect::<Vec<u16>>();
        let mut right = vec![0; width * pair.height];
        reference::right_map(&sums(&plain), width, &params, &mut right);
        let mut left = vec![0; width * pair.height];
        reference::left_map(&sums(&swapped), &params, &mut left);

        for (i, &right) in right.iter().enumerate() {
            let (k, row) = (i % width, i - i % width);
            let mirror = row + width - 1 - k;
            let inside = columns(k, &params, 0..width);
            for &(d, x) in &inside {
                let (here, there) = (plain[(row + x) * disparities + d], swapped[mirror * disparities + d]);
                prop_assert_eq!(here, there, "column {}, d = {}", x, d);
            }
            if inside.len() == disparities {
                prop_assert_eq!(right, left[mirror], "column {}", k);
            }
        }
    }

    /// With the symmetric census the same is true of two whole windows, and without ties alone: equal
    /// intensities give 0 from either side.
    #[test]
    fn symmetric_costs_of_swapped_and_mirrored_pairs(case in cases::case(), columns_more in 0usize..9) {
        let census = Census::Symmetric9x7;
        let params = Params { census, p1: 10, p2: 120, disparities: case.params.disparities.min(9), ..case.params };
        let params = Params { min_disparity: params.min_disparity.clamp(-9, 9), ..params };
        // Large enough for some windows.
        let (width, height) = (12 + columns_more, 8);
        let cycled = |pixels: &[u16]| pixels.iter().copied().cycle().take(width * height).collect();
        let pair = Pair { left: cycled(&case.left), right: cycled(&case.right), width, height }.without_ties();
        let plain = pair.stages(&params).cost;
        let swapped = pair.swapped_and_mirrored().stages(&params).cost;
        let disparities = params.disparities as usize;
        for y in 3..height - 3 {
            for k in 4..width - 4 {
                for (d, x) in columns(k, &params, 4..width - 4) {
                    let here = plain[(y * width + x) * disparities + d];
                    let there = swapped[(y * width + width - 1 - k) * disparities + d];
                    prop_assert_eq!(here, there, "({}, {}), d = {}", x, y, d);
                }
            }
        }
    }

    /// What a larger D keeps: the costs of the disparities that were there. And the cost of the best way
    /// to a disparity (a path cost with all that was subtracted along the path added again) never
    /// grows, as there are only more ways. Path costs, sums and winners may move either way.
    #[test]
    fn more_disparities_keep_costs_and_never_lengthen_ways(case in cases::case(), more in 1u32..=8) {
        let (pair, params) = (Pair::of(&case), &case.params);
        let (few, many) = (params.disparities as usize, (params.disparities + more) as usize);
        // The range may end beyond what a map can hold; the costs do not care.
        let larger = Params { disparities: many as u32, min_disparity: params.min_disparity.min(900), ..params.clone() };
        let params = Params { min_disparity: larger.min_disparity, ..params.clone() };
        let (small, large) = (pair.stages(&params).cost, pair.stages(&larger).cost);
        prop_assert!(small.chunks(few).zip(large.chunks(many)).all(|(small, large)| *small == large[..few]));

        let left = pair.left_view();
        let ways = |cost: &[u8], params: &Params, direction: Direction| {
            let disparities = params.disparities as usize;
            let mut path = vec![0; cost.len()];
            reference::path_costs(cost, &left, params, direction, &mut path);
            let (dx, dy) = direction.offset();
            let mut ways = vec![0; cost.len()];
            let step = (dx as i64, dy as i64);
            for pixels in brute::pixel_paths(pair.width as i64, pair.height as i64, step) {
                let mut subtracted = 0;
                for (x, y) in pixels {
                    let here = (y as usize * pair.width + x as usize) * disparities;
                    for d in here..here + disparities {
                        ways[d] = subtracted + i64::from(path[d]);
                    }
                    subtracted = *ways[here..here + disparities].iter().min().unwrap();
                }
            }
            ways
        };
        for &direction in params.paths.directions() {
            let (small, large) = (ways(&small, &params, direction), ways(&large, &larger, direction));
            let shorter = |(small, large): (&[i64], &[i64])| small.iter().zip(large).all(|(small, large)| large <= small);
            prop_assert!(small.chunks(few).zip(large.chunks(many)).all(shorter), "{}", direction);
        }
    }

    /// The same true disparities have the same costs, wherever the range begins.
    #[test]
    fn the_range_is_a_window_on_the_costs(case in cases::case(), from in 0u32..=8) {
        let pair = Pair::of(&case);
        let whole = Params { min_disparity: case.params.min_disparity.min(900), ..case.params };
        prop_assume!(from < whole.disparities);
        let part = Params {
            disparities: whole.disparities - from,
            min_disparity: whole.min_disparity + from as i32,
            ..whole.clone()
        };
        let (all, some) = (pair.stages(&whole).cost, pair.stages(&part).cost);
        let (all, some) = (all.chunks(whole.disparities as usize), some.chunks(part.disparities as usize));
        prop_assert!(all.zip(some).all(|(all, some)| all[from as usize..] == *some));
    }

    /// One disparity: no choice, so every path cost is the cost, and the map is `m` wherever the match is
    /// in view and nothing masks it.
    #[test]
    fn one_disparity_is_the_minimum(case in cases::case()) {
        let pair = Pair::of(&case);
        let params = Params { disparities: 1, compat: Compat::None, mask_zero: false, ..case.params };
        let params = Params { speckle: None, fill: false, ..params };
        let stages = pair.stages(&params);
        let count = params.paths.count() as u16;
        prop_assert!(stages.sums.iter().zip(&stages.cost).all(|(&s, &c)| s == count * u16::from(c)));
        for (i, &value) in stages.map.iter().enumerate() {
            let column = (i % pair.width) as i64 - i64::from(params.min_disparity);
            let in_view = params.lr_max_diff < 0 || (0..pair.width as i64).contains(&column);
            let expected = if in_view { params.min_disparity * params.scale() } else { params.invalid_value() };
            prop_assert_eq!(i32::from(value), expected);
        }
    }

    /// A census sees only which pixel is brighter: with fixed P2, any strictly rising change of the
    /// intensities that keeps 0 (the mask) keeps the map.
    #[test]
    fn only_the_order_of_intensities_counts(case in cases::case()) {
        let pair = Pair::of(&case);
        let params = Params { adaptive_p2: false, ..case.params };
        let low = pair.mapped(|v| v % 256);
        let high = low.mapped(|v| v * (v + 1));
        prop_assert_eq!(low.stages(&params).map, high.stages(&params).map);
    }

    /// Depth and stride are how pixels are stored, not what they are.
    #[test]
    fn storage_does_not_matter(case in cases::case()) {
        let packed = Pair::of(&case).stages(&case.params);
        let stored = case.with_views(|left, right| Stages::compute(left, right, &case.params));
        prop_assert_eq!(packed.map, stored.map);
    }

    /// Without checks and masks every pixel has a disparity, and it lies in the range.
    #[test]
    fn unchecked_maps_are_dense(case in cases::case()) {
        let pair = Pair::of(&case);
        let params = Params { uniqueness: 1.0, lr_max_diff: -1, mask_zero: false, speckle: None, ..case.params };
        let params = Params { compat: Compat::None, ..params };
        let (lowest, scale) = (params.min_disparity * params.scale(), params.scale());
        let range = lowest..=lowest + (params.disparities as i32 - 1) * scale;
        prop_assert!(pair.stages(&params).map.iter().all(|&value| range.contains(&value.into())));
    }
}
