//! Winner-takes-all (sgm.md, section 4): sums the path costs, and from the sums takes the left
//! disparity (uniqueness, sub-pixel) and the right map's candidates. The sums are never stored.
//!
//! A pixel's disparities are spread over a group of lanes, as in [`crate::aggregate`]; a group takes
//! [`PIXELS`] neighbouring pixels one after another, the next one's path costs on their way. For the
//! right map each lane keeps the best key `(sum, d)` of the right columns that its disparities meet.
//! From one pixel to the next every column moves to the next disparity, so the keys move by one
//! register and one column is done: it goes to the block's shared memory, and from there to device
//! memory.
//!
//! Uniqueness is counted, not searched: with `T` the smallest sum that is not too close to the
//! winner's, a pixel is unique when only the winner and its neighbours are below `T`, that is when
//! `sum_d min(S(d), T)` is what they alone account for. `T` comes from a table that the host builds
//! with the definition's own floating-point comparison, so that there is no rounding to agree on.

use crate::{
    gpu::{
        global::{Global, GlobalMut},
        packed,
        shared::Shared,
        thread, warp,
    },
    layout::{self, LANE, unpack},
};

/// Neighbouring pixels that a group takes one after another.
pub const PIXELS: u32 = 8;

/// Threads per block.
pub const BLOCK: u32 = 256;

/// The largest sum of path costs, 8 of 255 each; the table of thresholds has one entry more.
pub const MAX_SUM: u32 = 8 * 255;

/// The sum that stands for a padded disparity: above every sum, and an ordered half-precision pattern.
const PADDING_SUM: u32 = 0x7800;

/// What the left map holds for an invalid pixel, and the right map in its low half.
pub const INVALID: u16 = 0xffff;

/// Fractional bits of a sub-pixel disparity.
const SUBPIXEL_BITS: u32 = 4;

/// Pixels per block for `lanes` lanes a pixel.
pub const fn tile(lanes: u32) -> u32 {
    BLOCK / lanes * PIXELS
}

/// Bytes of shared memory per block.
pub const fn shared_bytes(lanes: u32, padded: u32) -> u32 {
    skewed(tile(lanes) + padded) * size_of::<u32>() as u32
}

/// Packed registers that hold [`LANE`] disparities: register `i` those of chunk `i / 4`.
const REGISTERS: usize = LANE as usize / 2;

/// 32-bit words of [`LANE`] costs.
const WORDS: usize = LANE as usize / 4;

/// Skips an element after every 16, so that lanes meet different banks.
const fn skewed(i: u32) -> u32 {
    i + i / LANE
}

crate::kernels! {
    /// Launch with `grid = (ceil(width / tile(lanes)), height)`, `block = BLOCK`,
    /// `shared_bytes(lanes, padded)`.
    pub struct Winner {
        /// Path costs: one volume per direction, `volume` bytes apart.
        path_costs: Global<u8>,
        /// Bytes from one direction's volume to the next.
        volume: usize,
        /// For every sum `c`, the smallest sum `s` with `s * uniqueness >= c`; `MAX_SUM + 1` entries.
        thresholds: Global<u16>,
        /// Left disparities, `[y][x]`, sub-pixel or not, [`INVALID`] where not unique.
        left: GlobalMut<u16>,
        /// Right candidates, `[y][x]`: `sum << 16 | d` of the best; all ones before the launch.
        right: GlobalMut<u32>,
        /// Pixels in a row.
        width: u32,
        /// Disparities that count.
        disparities: u32,
        /// Left column `x` and disparity `d` meet right column `x - d - right_shift`.
        right_shift: i32,
        /// 1 for sub-pixel disparities.
        subpixel: u32,
        /// [`PIXELS`]; an argument, so that the compiler keeps the loop.
        pixels: u32,
        /// Lanes per pixel, a power of two up to 32; read by the general kernels only.
        lanes: u32,
    }
    entry winner_4_d64 = winner::<4, 4, 1>;
    entry winner_4_d128 = winner::<4, 8, 1>;
    entry winner_4_d256 = winner::<4, 16, 1>;
    entry winner_4_any = winner::<4, ANY, 1>;
    entry winner_4_d1024 = winner::<4, 32, 2>;
    entry winner_8_d64 = winner::<8, 4, 1>;
    entry winner_8_d128 = winner::<8, 8, 1>;
    entry winner_8_d256 = winner::<8, 16, 1>;
    entry winner_8_any = winner::<8, ANY, 1>;
    entry winner_8_d1024 = winner::<8, 32, 2>;
}

/// The kernel for `paths` path costs (4 or 8) and volumes of `padded` disparities.
///
/// # Panics
/// For another number of paths.
#[cfg(not(target_arch = "nvptx64"))]
pub fn entry(paths: usize, padded: u32) -> crate::kernel::Entry<Winner> {
    let name = format!("winner_{paths}_{}", layout::class(padded));
    crate::kernel::Entry::named(Winner::ENTRIES, &name)
}

/// The lane count of a general kernel: taken from its arguments.
const ANY: u32 = 0;

/// One lane's sums of a pixel: `C` times [`LANE`] disparities.
type Sums<const C: usize> = [[u32; REGISTERS]; C];

#[inline(always)]
fn winner<const PATHS: usize, const LANES: u32, const C: usize>(args: Winner) {
    // At least 1, so that divisions need no check.
    let lanes = if LANES == ANY { args.lanes.max(1) } else { LANES };
    let lane = thread::thread_idx_x() % lanes;
    let padded = lanes * LANE * C as u32;
    let row = thread::block_idx_y() as usize * args.width as usize;
    let tile_start = thread::block_idx_x() * tile(lanes);

    // Shared element `i` is right column `first_column + i`.
    let first_column = (tile_start as i32).wrapping_sub(args.right_shift + padded as i32 - 1);
    let columns = Shared::<u32>::dynamic(0, skewed(tile(lanes) + padded));
    let mut i = thread::thread_idx_x();
    while i < skewed(tile(lanes) + padded) {
        columns.set(i, u32::MAX);
        i += BLOCK;
    }
    thread::sync_threads();

    let first = lane * LANE * C as u32;
    let padding = padding::<C>(first, args.disparities);
    let in_tile = thread::thread_idx_x() / lanes * PIXELS;
    // Where this lane's last disparity meets the group's first pixel.
    let first_met = in_tile + padded - first - LANE * C as u32;
    let pixel = |p: u32| row + (tile_start + in_tile + p).min(args.width - 1) as usize;
    let load = |p: u32| load::<PATHS, C>(&args, pixel(p) * padded as usize + first as usize);

    let mut best = [[u32::MAX; LANE as usize]; C];
    let mut next = load(0);
    let mut p = 0;
    while p < args.pixels {
        let sums = sum::<PATHS, C>(&next, padding);
        if p + 1 < args.pixels {
            next = load(p + 1);
        }
        let in_image = tile_start + in_tile + p < args.width;
        let (key, done) = combine::<C>(&sums, first, in_image, &mut best);
        columns.fetch_min(skewed(first_met + p), done);
        let value = decide::<C>(&args, &sums, key, lanes, padded);
        if lane == 0 && in_image {
            args.left.set(pixel(p), value);
        }
        p += 1;
    }
    let mut c = 0;
    while c < C {
        let mut k = 0;
        while k < LANE as usize {
            columns.fetch_min(skewed(first_met + p + c as u32 * LANE + k as u32), best[c][k]);
            k += 1;
        }
        c += 1;
    }
    thread::sync_threads();

    let mut i = thread::thread_idx_x();
    while i < tile(lanes) + padded {
        let column = first_column.wrapping_add(i as i32);
        let key = columns.get(skewed(i));
        if column >= 0 && column < args.width as i32 && key < PADDING_SUM << 16 {
            args.right.fetch_min(row + column as usize, key);
        }
        i += BLOCK;
    }
}

/// Disparities between the halves of a register.
const HALF: u32 = layout::CHUNK / 2;

/// The disparity in the low half of register `i`.
const fn low_disparity(i: usize) -> u32 {
    i as u32 / HALF * layout::CHUNK + i as u32 % HALF
}

/// The register of disparity `d`, and whether it is in the high half.
const fn place(d: u32) -> (u32, bool) {
    (d / layout::CHUNK * HALF + d % HALF, d % layout::CHUNK >= HALF)
}

/// All ones in the lanes of padded disparities.
#[inline(always)]
fn padding<const C: usize>(first: u32, disparities: u32) -> Sums<C> {
    let mut masks = [[0; REGISTERS]; C];
    let mut c = 0;
    while c < C {
        let mut i = 0;
        while i < REGISTERS {
            let d = first + c as u32 * LANE + low_disparity(i);
            let low = if d >= disparities { 0xffff } else { 0 };
            let high = if d + HALF >= disparities { 0xffff << 16 } else { 0 };
            masks[c][i] = low | high;
            i += 1;
        }
        c += 1;
    }
    masks
}

/// A lane's path costs of a pixel: `C` times [`LANE`] of `PATHS` directions.
type Costs<const PATHS: usize, const C: usize> = [[[u32; WORDS]; PATHS]; C];

/// The path costs at byte `at` of every volume.
#[inline(always)]
fn load<const PATHS: usize, const C: usize>(args: &Winner, at: usize) -> Costs<PATHS, C> {
    let mut words = [[[0; WORDS]; PATHS]; C];
    let mut c = 0;
    while c < C {
        let mut path = 0;
        while path < PATHS {
            words[c][path] = args.path_costs.get_x4(at + c * LANE as usize + path * args.volume);
            path += 1;
        }
        c += 1;
    }
    words
}

/// The sums over all directions. This and what follows is written out for one and two: in a loop
/// the compiler keeps the sums in local memory.
#[inline(always)]
fn sum<const PATHS: usize, const C: usize>(words: &Costs<PATHS, C>, padding: Sums<C>) -> Sums<C> {
    let mut sums = padding;
    sums[0] = sum_lane(&words[0], padding[0]);
    if C == 2 {
        sums[C - 1] = sum_lane(&words[C - 1], padding[C - 1]);
    }
    sums
}

/// [`LANE`] sums over all directions; padded disparities get [`PADDING_SUM`].
#[inline(always)]
fn sum_lane<const PATHS: usize>(words: &[[u32; WORDS]; PATHS], padding: [u32; REGISTERS]) -> [u32; REGISTERS] {
    let mut sums = [0; REGISTERS];
    let mut path = 0;
    while path < PATHS {
        let [w0, w1, w2, w3] = words[path];
        let (a, b) = (unpack(w0, w1), unpack(w2, w3));
        let costs = [a[0], a[1], a[2], a[3], b[0], b[1], b[2], b[3]];
        let mut i = 0;
        while i < REGISTERS {
            sums[i] = packed::add(sums[i], costs[i]);
            i += 1;
        }
        path += 1;
    }
    let mut i = 0;
    while i < REGISTERS {
        sums[i] = (sums[i] & !padding[i]) | (packed::splat(PADDING_SUM) & padding[i]);
        i += 1;
    }
    sums
}

/// Enters this lane's keys `sum << 16 | d` of a pixel into the best of the right columns they meet,
/// of which `best` holds that of the last disparity first. Returns the smallest key, and the best of
/// the column that is done; the others move up for the next pixel.
#[inline(always)]
fn combine<const C: usize>(
    sums: &Sums<C>,
    first: u32,
    in_image: bool,
    best: &mut [[u32; LANE as usize]; C],
) -> (u32, u32) {
    let outside = if in_image { 0 } else { u32::MAX };
    let mut state = (u32::MAX, u32::MAX);
    if C == 2 {
        state = combine_lane(&sums[0], first, outside, &mut best[C - 1], state);
    }
    combine_lane(&sums[C - 1], first + (C as u32 - 1) * LANE, outside, &mut best[0], state)
}

/// [`LANE`] disparities of [`combine`], which goes from the last disparity's column to the first's: takes the
/// smallest key so far and the column that moves in, and returns them for the next.
#[inline(always)]
fn combine_lane(
    sums: &[u32; REGISTERS],
    first: u32,
    outside: u32,
    best: &mut [u32; LANE as usize],
    (mut smallest, mut moving): (u32, u32),
) -> (u32, u32) {
    let mut d = 0;
    while d < LANE as usize {
        let k = LANE as usize - 1 - d;
        let (register, high) = place(d as u32);
        let register = sums[register as usize];
        let sum = if high { register & 0xffff_0000 } else { register << 16 };
        let key = sum | (first + d as u32);
        smallest = smallest.min(key);
        let better = best[k].min(key | outside);
        best[k] = moving;
        moving = better;
        d += 1;
    }
    (smallest, moving)
}

/// The left disparity of a pixel from its lanes' sums and smallest keys.
#[inline(always)]
fn decide<const C: usize>(args: &Winner, sums: &Sums<C>, key: u32, lanes: u32, padded: u32) -> u16 {
    let mut key = key;
    let mut distance = 1;
    while distance < lanes {
        key = key.min(warp::shuffle_xor(key, distance, lanes));
        distance *= 2;
    }
    let (winner, cost) = (key & 0xffff, key >> 16);

    let threshold = u32::from(args.thresholds.get(cost as usize));
    let limit = packed::splat(threshold);
    let mut capped = cap(&sums[0], limit);
    if C == 2 {
        capped += cap(&sums[C - 1], limit);
    }
    let mut distance = 1;
    while distance < lanes {
        capped += warp::shuffle_xor(capped, distance, lanes);
        distance *= 2;
    }

    let has_below = winner > 0;
    let has_above = winner + 1 < args.disparities;
    let below = at::<C>(sums, if has_below { winner - 1 } else { 0 }, lanes);
    let above = at::<C>(sums, if has_above { winner + 1 } else { winner }, lanes);

    let missing = |sum: u32, counts: bool| if counts { threshold - sum.min(threshold) } else { 0 };
    let expected = padded * threshold - missing(cost, true) - missing(below, has_below) - missing(above, has_above);
    if capped != expected {
        return INVALID;
    }
    if args.subpixel == 0 {
        return winner as u16;
    }
    let whole = (winner << SUBPIXEL_BITS) as i32;
    let correction = if has_below && has_above { parabola(below as i32, cost as i32, above as i32) } else { 0 };
    (whole + correction) as u16
}

/// `sum_d min(S(d), limit)` of [`LANE`] disparities.
#[inline(always)]
fn cap(sums: &[u32; REGISTERS], limit: u32) -> u32 {
    let mut capped = 0;
    let mut i = 0;
    while i < REGISTERS {
        capped = packed::add(capped, packed::min(sums[i], limit));
        i += 1;
    }
    (capped & 0xffff) + (capped >> 16)
}

/// The sum at disparity `d`, the same for all lanes of the group.
#[inline(always)]
fn at<const C: usize>(sums: &Sums<C>, d: u32, lanes: u32) -> u32 {
    let in_lane = d % (LANE * C as u32);
    // By masks: of conditions the compiler makes an indexed load, from local memory.
    let select = |bit: u32, a: u32, b: u32| a ^ ((a ^ b) & 0u32.wrapping_sub(u32::from(in_lane & bit != 0)));
    let of_lane = |s: &[u32; REGISTERS]| {
        let of_chunk = |i: usize| select(layout::CHUNK, s[i], s[i + HALF as usize]);
        select(2, select(1, of_chunk(0), of_chunk(1)), select(1, of_chunk(2), of_chunk(3)))
    };
    let mut register = of_lane(&sums[0]);
    if C == 2 {
        register = select(LANE, register, of_lane(&sums[C - 1]));
    }
    let sum = select(HALF, register & 0xffff, register >> 16);
    warp::shuffle_idx(sum, d / (LANE * C as u32), lanes)
}

/// The vertex of the parabola through three sums, in sixteenths of a disparity.
///
/// The quotient is at most 8 in magnitude, of integers below 2^17, so that no single-precision
/// rounding can carry `(a + 1/2) / b` over an integer.
#[inline(always)]
fn parabola(below: i32, cost: i32, above: i32) -> i32 {
    let slope = below - above;
    let curvature = below - 2 * cost + above;
    if curvature == 0 {
        return 0;
    }
    let numerator = (slope << SUBPIXEL_BITS) + curvature;
    let quotient = ((numerator.abs() as f32 + 0.5) * (1.0 / (2 * curvature) as f32)) as i32;
    if numerator < 0 { -quotient } else { quotient }
}
