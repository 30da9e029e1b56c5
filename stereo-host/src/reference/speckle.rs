//! Speckle removal (sgm.md, section 5.4).

use crate::{Params, Speckle};

/// Makes the small regions of a map invalid: 4-connected valid pixels whose neighbours differ by at
/// most `speckle.max_diff` pixels of disparity, `speckle.max_size` pixels or fewer.
///
/// `map`: `[y][x]`, the values of a [`crate::DisparityMap`] in the units of `params`, changed in place.
pub fn remove_speckles(map: &mut [i16], width: usize, speckle: Speckle, params: &Params) {
    let invalid = params.invalid_value();
    let max_diff = speckle.max_diff as i32 * params.scale();
    let mut seen: Vec<bool> = map.iter().map(|&value| i32::from(value) == invalid).collect();
    let mut region = Vec::new();
    for start in 0..map.len() {
        if seen[start] {
            continue;
        }
        seen[start] = true;
        region.clear();
        region.push(start);
        let mut next = 0;
        while next < region.len() {
            let here = region[next];
            next += 1;
            for there in neighbours(here, width, map.len()) {
                if !seen[there] && (i32::from(map[here]) - i32::from(map[there])).abs() <= max_diff {
                    seen[there] = true;
                    region.push(there);
                }
            }
        }
        // Regions never read each other's pixels, so the map can be changed at once.
        if region.len() <= speckle.max_size as usize {
            region.iter().for_each(|&i| map[i] = invalid as i16);
        }
    }
}

/// The pixels left, right, above and below pixel `i`, those inside the map.
fn neighbours(i: usize, width: usize, len: usize) -> impl Iterator<Item = usize> {
    let x = i % width;
    let left = (x > 0).then(|| i - 1);
    let right = (x + 1 < width).then_some(i + 1);
    let above = i.checked_sub(width);
    let below = Some(i + width).filter(|&below| below < len);
    [left, right, above, below].into_iter().flatten()
}

#[cfg(test)]
mod tests {
    use super::*;

    const INVALID: i16 = -1;

    fn cleaned(map: &[i16], width: usize, max_size: u32, max_diff: u32) -> Vec<i16> {
        let mut map = map.to_vec();
        let params = Params { subpixel: false, ..Params::default() };
        remove_speckles(&mut map, width, Speckle { max_size, max_diff }, &params);
        map
    }

    #[test]
    fn regions_of_at_most_the_size() {
        let map = [5, 5, 9, 5, 9, 9];
        assert_eq!(cleaned(&map, 6, 1, 0), [5, 5, INVALID, INVALID, 9, 9]);
        assert_eq!(cleaned(&map, 6, 2, 0), [INVALID; 6]);
        assert_eq!(cleaned(&map, 6, 0, 0), map);
    }

    #[test]
    fn diagonals_and_row_ends_do_not_connect() {
        let map = [5, 9, 9, 5];
        assert_eq!(cleaned(&map, 2, 1, 0), [INVALID; 4]);
        let map = [9, 5, 5, 9];
        assert_eq!(cleaned(&map, 2, 1, 0), [INVALID; 4]);
        assert_eq!(cleaned(&[5, 9, 5, 9], 2, 1, 0), [5, 9, 5, 9], "columns do");
    }

    #[test]
    fn neighbours_are_compared_with_each_other() {
        // A ramp is one region although its ends are far apart.
        assert_eq!(cleaned(&[1, 2, 3, 4], 4, 3, 1), [1, 2, 3, 4]);
        assert_eq!(cleaned(&[1, 2, 4, 5], 4, 3, 1), [INVALID; 4]);
    }

    #[test]
    fn invalid_pixels_separate() {
        assert_eq!(cleaned(&[3, INVALID, 3, 3], 4, 1, 9), [INVALID, INVALID, 3, 3]);
        assert_eq!(cleaned(&[0, INVALID, 0], 3, 1, 9), [INVALID; 3], "not even to a close value");
    }

    #[test]
    fn differences_are_in_pixels() {
        let params = Params::default();
        for (step, whole) in [(16, true), (17, false)] {
            let mut map = [32, 32 + step];
            remove_speckles(&mut map, 2, Speckle { max_size: 1, max_diff: 1 }, &params);
            assert_eq!(map == [32, 32 + step], whole);
        }
    }
}
