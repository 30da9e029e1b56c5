//! Speckle removal (sgm.md, section 5.4): regions as trees over pixels, joined in one pass over the map.

use crate::{Params, Speckle};

/// The memory of the removal: per pixel its parent in its region's tree (a root is its own), and for a
/// root the region's size.
pub(super) struct Regions {
    parents: Vec<u32>,
    sizes: Vec<u32>,
}

impl Regions {
    pub(super) fn new(pixels: usize) -> Self {
        Self { parents: vec![0; pixels], sizes: vec![0; pixels] }
    }

    /// Makes every region of `map` invalid that has at most `speckle.max_size` pixels.
    pub(super) fn remove_small(&mut self, map: &mut [i16], width: usize, speckle: Speckle, params: &Params) {
        // `Params::validate` has checked that it fits.
        let invalid = params.invalid_value() as i16;
        let max_diff = speckle.max_diff as i32 * params.scale();
        let joined = |a: i16, b: i16| b != invalid && (i32::from(a) - i32::from(b)).abs() <= max_diff;
        self.sizes.fill(0);
        for i in 0..map.len() {
            self.parents[i] = i as u32;
            if map[i] == invalid {
                continue;
            }
            if i % width > 0 && joined(map[i], map[i - 1]) {
                self.join(i, i - 1);
            }
            if i >= width && joined(map[i], map[i - width]) {
                self.join(i, i - width);
            }
        }
        for i in 0..map.len() {
            let root = self.root(i);
            self.sizes[root] += 1;
        }
        for (i, value) in map.iter_mut().enumerate() {
            let root = self.root(i);
            if self.sizes[root] <= speckle.max_size {
                *value = invalid;
            }
        }
    }

    fn join(&mut self, a: usize, b: usize) {
        let (a, b) = (self.root(a), self.root(b));
        // The earlier pixel becomes the root, so that the last two passes mostly look back a short way.
        self.parents[a.max(b)] = a.min(b) as u32;
    }

    /// The root of a pixel's region; the way there is halved for the next time.
    fn root(&mut self, mut i: usize) -> usize {
        while self.parents[i] as usize != i {
            let above = self.parents[self.parents[i] as usize];
            self.parents[i] = above;
            i = above as usize;
        }
        i
    }
}
