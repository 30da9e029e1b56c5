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
