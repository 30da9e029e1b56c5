//! 3x3 median (sgm.md, section 5.1).

use crate::Compat;

/// The 3x3 median of a map.
///
/// `map`, `out`: `[y][x]`, rows of `width` values; [`super::INVALID`] is the largest value and so
/// sorts last. On the one-pixel border the values stay, or become 0 with [`Compat::LibSgm`].
///
/// # Panics
/// When the lengths disagree.
pub fn median3x3(map: &[u16], width: usize, compat: Compat, out: &mut [u16]) {
    assert_eq!(map.len(), out.len(), "median output");
    let height = map.len() / width;
    for y in 0..height {
        for x in 0..width {
            let i = y * width + x;
            let border = x == 0 || y == 0 || x + 1 == width || y + 1 == height;
            out[i] = match (border, compat) {
                (false, _) => window_median(map, width, i),
                (true, Compat::None) => map[i],
                (true, Compat::LibSgm) => 0,
            };
        }
    }
}

/// The median of the window around pixel `i`, which lies inside the map.
fn window_median(map: &[u16], width: usize, i: usize) -> u16 {
    let mut window = [0; 9];
    for (row, values) in window.chunks_exact_mut(3).enumerate() {
        let start = i + row * width - width - 1;
        values.copy_from_slice(&map[start..start + 3]);
    }
    window.sort_unstable();
    window[4]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::reference::INVALID;

    fn median(map: &[u16], width: usize, compat: Compat) -> Vec<u16> {
        let mut out = vec![7; map.len()];
        median3x3(map, width, compat, &mut out);
        out
    }

    #[test]
    fn the_fifth_of_nine() {
        let map = [9, 1, 8, 2, 7, 3, 6, 4, 5];
        assert_eq!(median(&map, 3, Compat::None), [9, 1, 8, 2, 5, 3, 6, 4, 5]);
        assert_eq!(median(&map, 3, Compat::LibSgm), [0, 0, 0, 0, 5, 0, 0, 0, 0]);
    }

    #[test]
    fn invalid_sorts_last() {
        let with_invalid = |n: usize| {
            let mut map = [1, 2, 3, 4, 5, 6, 7, 8, 9];
            map[9 - n..].fill(INVALID);
            median(&map, 3, Compat::None)[4]
        };
        assert_eq!([4, 5].map(with_invalid), [5, INVALID]);
    }

    #[test]
    fn maps_without_an_inside() {
        for width in [1, 2, 4] {
            let map = [3, INVALID, 1, 2];
            assert_eq!(median(&map, width, Compat::None), map);
            assert_eq!(median(&map, width, Compat::LibSgm), [0; 4]);
        }
    }

    #[test]
    fn windows_read_the_map_and_not_the_result() {
        // A median of the left one's result, 9, would give 5 on the right.
        let map = [9, 9, 9, 2, 9, 1, 2, 2, 9, 9, 2, 5];
        let out = median(&map, 4, Compat::None);
        assert_eq!(out[5..7], [9, 2]);
    }
}
