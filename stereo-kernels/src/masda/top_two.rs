//! Vertical backward pass and the best two candidates of every pixel in one (masda.md, image plane, points 3 and 4): the
//! filtered volume is never stored.
//!
//! A warp walks one column with all its disparities, `k = 32 c + lane` in register `c`, and takes `GROUP` pixels at a time:
//! first their filter steps, then the reductions of all of them side by side, whose shuffles hide each other's latency.
//!
//! A candidate's rank is one integer, see [`rank`], so that any merge order gives the same two: a tie rule on lanes would
//! be wrong in the middle of the tree, where the sides' disparities are not adjacent ranges.

use super::{MAX_DISPARITIES, blend};
use crate::gpu::{
    global::{Global, GlobalMut},
    thread, warp,
};

/// Threads per block: one warp, so that the columns spread evenly over the multiprocessors.
pub const BLOCK: u32 = warp::SIZE;

/// Pixels whose candidates are picked together.
const GROUP: usize = 4;

/// Candidates of a pixel.
pub const CANDIDATES: usize = 2;

/// A missing candidate as a word: score -1, the rest 0.
pub const NONE: u32 = 0xffff;

crate::kernels! {
    /// Launch one warp per column: `grid = width`, `block = BLOCK`.
    pub struct TopTwo {
        /// Scores filtered three times, `[y][x][k]`, `width * height * padded`.
        volume: Global<i16>,
        /// The vertical coefficients from the second row on, see [`coefficients`](super::coefficients).
        coefficients: Global<i16>,
        /// The best two of every pixel, `[y][x][2]`: score in the low 16 bits, then `d`, then the sub-pixel offset in
        /// 1/16 pixel, signed, in 8 bits each; [`NONE`] where there is none.
        candidates: GlobalMut<u32>,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Disparities.
        disparities: u32,
        /// Smallest disparity.
        min_disparity: i32,
        /// 1 to compute sub-pixel offsets.
        subpixel: u32,
    }
    /// Up to 32 disparities.
    entry masda_top_two_d32 = top_two::<1>;
    /// Up to 64 disparities.
    entry masda_top_two_d64 = top_two::<2>;
    /// Up to 96 disparities.
    entry masda_top_two_d96 = top_two::<3>;
    /// Up to 128 disparities.
    entry masda_top_two_d128 = top_two::<4>;
    /// Up to 160 disparities.
    entry masda_top_two_d160 = top_two::<5>;
    /// Up to 192 disparities.
    entry masda_top_two_d192 = top_two::<6>;
    /// Up to 224 disparities.
    entry masda_top_two_d224 = top_two::<7>;
    /// Up to 256 disparities.
    entry masda_top_two_d256 = top_two::<8>;
}

/// The kernel for volumes of `padded` disparities.
///
/// # Panics
/// For a number that no [`padded`](super::padded) gives.
#[cfg(not(target_arch = "nvptx64"))]
pub fn entry(padded: u32) -> crate::kernel::Entry<TopTwo> {
    match padded {
        32 => masda_top_two_d32,
        64 => masda_top_two_d64,
        96 => masda_top_two_d96,
        128 => masda_top_two_d128,
        160 => masda_top_two_d160,
        192 => masda_top_two_d192,
        224 => masda_top_two_d224,
        256 => masda_top_two_d256,
        _ => panic!("{padded} is no padded number of disparities"),
    }
}

/// The rank of no candidate: below every other.
pub const UNRANKED: i32 = -1;

/// A candidate as one integer, the better one larger: by score, then by the smaller `d`.
#[inline(always)]
pub fn rank(score: i32, d: u32) -> i32 {
    (score << 8) | (MAX_DISPARITIES - 1 - d) as i32
}

/// The score of a [`rank`].
#[inline(always)]
pub fn score(rank: i32) -> i32 {
    rank >> 8
}

/// The disparity of a [`rank`].
#[inline(always)]
pub fn disparity(rank: i32) -> u32 {
    MAX_DISPARITIES - 1 - (rank & 0xff) as u32
}

/// The best two of two pairs, each the better one first.
#[inline(always)]
pub fn merge(a: [i32; CANDIDATES], b: [i32; CANDIDATES]) -> [i32; CANDIDATES] {
    [a[0].max(b[0]), a[0].min(b[0]).max(a[1].max(b[1]))]
}

/// The vertex of the parabola through three neighbouring scores in 1/16 pixel, at most half a pixel;
/// 0 where they have no vertex. The definition is `stereo_host::masda::reference::top_two::subpixel_offset`.
#[inline(always)]
fn subpixel_offset(below: i32, here: i32, above: i32) -> i32 {
    let (n, q) = (above - below, 2 * here - above - below);
    let divisor = if q > 0 { 2 * q } else { 1 };
    let offset = ((n * 16 + q) / divisor).clamp(-8, 8);
    if q > 0 { offset } else { 0 }
}

#[inline(always)]
fn top_two<const C: usize>(args: TopTwo) {
    let TopTwo { volume, coefficients, candidates, width, height, disparities, min_disparity, subpixel } = args;
    let lane = thread::thread_idx_x();
    let x = thread::block_idx_x();
    let per_pixel = C * warp::SIZE as usize;
    // Step `s` is at row `height - 1 - s`; steps behind the last one repeat it.
    let pixel = |step: u32| (height - 1 - step.min(height - 1)) as usize * width as usize + x as usize;
    let load = |step: u32| {
        let pixel = pixel(step);
        let mut v = [0; C];
        let mut c = 0;
        while c < C {
            v[c] = volume.get(pixel * per_pixel + c * warp::SIZE as usize + lane as usize);
            c += 1;
        }
        (v, coefficients.get(pixel))
    };

    let mut waiting = [([0; C], 0); GROUP];
    let mut j = 0;
    while j < GROUP {
        waiting[j] = load(j as u32);
        j += 1;
    }
    let mut carry = [0; C];
    let mut step = 0;
    while step < height {
        let mut filtered = [[0; C]; GROUP];
        let mut best = [[UNRANKED; CANDIDATES]; GROUP];
        let mut j = 0;
        while j < GROUP {
            let (v, a) = waiting[j];
            waiting[j] = load(step + (j + GROUP) as u32);
            let mut c = 0;
            while c < C {
                carry[c] = blend(v[c].into(), carry[c], a.into());
                let d = (c as u32) * warp::SIZE + lane;
                let own = if d < disparities { rank(carry[c], d) } else { UNRANKED };
                best[j] = merge(best[j], [own, UNRANKED]);
                c += 1;
            }
            filtered[j] = carry;
            j += 1;
        }
        let best = best_of_warp(best);
        // Lane `2 j + i` writes candidate `i` of pixel `j`; the lanes behind repeat them and write nothing.
        let mine = (lane as usize / CANDIDATES) % GROUP;
        let second = !lane.is_multiple_of(2);
        let pair = select(best, mine);
        let own = if second { pair[1] } else { pair[0] };
        let offset = if subpixel != 0 { offset_of(own, mine, &filtered, disparities) } else { 0 };

        let in_view = |rank: i32| {
            let column = x as i32 - disparity(rank) as i32 - min_disparity;
            rank != UNRANKED && column >= 0 && column < width as i32
        };
        let valid = in_view(own) && in_view(pair[0]);
        let word = (score(own) as u32 & 0xffff) | (disparity(own) << 16) | ((offset as u32) << 24);
        let here = step + mine as u32;
        if lane < (GROUP * CANDIDATES) as u32 && here < height {
            candidates.set(pixel(here) * CANDIDATES + usize::from(second), if valid { word } else { NONE });
        }
        step += GROUP as u32;
    }
}

/// Every pixel's best two over all lanes, in all lanes.
#[inline(always)]
fn best_of_warp(mut best: [[i32; CANDIDATES]; GROUP]) -> [[i32; CANDIDATES]; GROUP] {
    let mut distance = warp::SIZE / 2;
    while distance > 0 {
        let mut j = 0;
        while j < GROUP {
            let across = |value: i32| warp::shuffle_xor(value as u32, distance, warp::SIZE) as i32;
            best[j] = merge(best[j], [across(best[j][0]), across(best[j][1])]);
            j += 1;
        }
        distance /= 2;
    }
    best
}

/// Element `index` without an address: arrays that are indexed by a variable would go to local memory.
#[inline(always)]
fn select<T: Copy>(values: [T; GROUP], index: usize) -> T {
    let mut value = values[0];
    let mut j = 1;
    while j < GROUP {
        value = if index == j { values[j] } else { value };
        j += 1;
    }
    value
}

/// The sub-pixel offset of the candidate `rank` of pixel `mine`, both this lane's own.
#[inline(always)]
fn offset_of<const C: usize>(rank: i32, mine: usize, filtered: &[[i32; C]; GROUP], disparities: u32) -> i32 {
    let d = disparity(rank);
    // At the ends of the range the neighbour is not used; any lane will do.
    let below = score_at(d.max(1) - 1, mine, filtered);
    let above = score_at((d + 1).min(MAX_DISPARITIES - 1), mine, filtered);
    let inner = d > 0 && d + 1 < disparities;
    if inner { subpixel_offset(below, score(rank), above) } else { 0 }
}

/// The filtered score of disparity `d` of pixel `mine`: every lane asks for its own.
#[inline(always)]
fn score_at<const C: usize>(d: u32, mine: usize, filtered: &[[i32; C]; GROUP]) -> i32 {
    let mut found = 0;
    let mut j = 0;
    while j < GROUP {
        let mut c = 0;
        while c < C {
            let value = warp::shuffle_idx(filtered[j][c] as u32, d % warp::SIZE, warp::SIZE) as i32;
            let wanted = mine == j && d / warp::SIZE == c as u32;
            found = if wanted { value } else { found };
            c += 1;
        }
        j += 1;
    }
    found
}
