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
