//! Winner-takes-all (sgm.md, section 4): sums the path costs, and from the sums takes the left
//! disparity (uniqueness, sub-pixel) and the right map's candidates. The sums are never stored.
//!
//! A pixel's disparities are spread over a group of lanes, as in [`crate::aggregate`]; a group takes
//! [`PIXELS`] neighbouring pixels at a time. For the right map the keys `(sum, d)` of one thread are
//! first combined per right column in registers (64 keys fall on 19 columns), then per block in
//! shared memory, then in device memory.
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
    layout::{self, CHUNK, REGISTERS, unpack},
};

/// Neighbouring pixels that a group takes at a time.
pub const PIXELS: u32 = 4;

/// Threads per block.
pub const BLOCK: u32 = 256;

/// Times that a group takes [`PIXELS`] pixels.
pub const ROUNDS: u32 = 2;

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
    BLOCK / lanes * PIXELS * ROUNDS
}

/// Bytes of shared memory per block.
pub const fn shared_bytes(lanes: u32, padded: u32) -> u32 {
    skewed(tile(lanes) + padded) * size_of::<u32>() as u32
}

/// Skips an element after every 16, so that lanes a chunk apart meet different banks.
const fn skewed(i: u32) -> u32 {
    i + i / CHUNK
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
        /// [`ROUNDS`]; an argument, so that the compiler keeps the loop.
        rounds: u32,
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

/// One lane's sums of a pixel: `C` chunks of packed registers.
type Sums<const C: usize> = [[u32; REGISTERS]; C];

#[inline(always)]
fn winner<const PATHS: usize, const LANES: u32, const C: usize>(args: Winner) {
    let lanes = if LANES == ANY { args.lanes } else { LANES };
    let lane = thread::thread_idx_x() % lanes;
    let groups = BLOCK / lanes;
    let padded = lanes * CHUNK * C as u32;
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

    let first = lane * CHUNK * C as u32;
    let padding = padding::<C>(first, args.disparities);
    let mut round = 0;
    while round < args.rounds {
        let in_tile = (round * groups + thread::thread_idx_x() / lanes) * PIXELS;
        // Element `k` is the right column that pixel `p` meets at this lane's disparity `p + last - k`.
        let last = CHUNK as usize * C - 1;
        let mut best = [[u32::MAX; CHUNK as usize]; 3];
        let mut p = 0;
        while p < PIXELS as usize {
            let x = tile_start + in_tile + p as u32;
            let pixel = row + x.min(args.width - 1) as usize;
            let sums = sum::<PATHS, C>(&args, pixel * padded as usize + first as usize, padding);
            let key = combine::<C>(&sums, first, x < args.width, p, last, &mut best);
            let value = decide::<C>(&args, &sums, key, lanes, padded);
            if lane == 0 && x < args.width {
                args.left.set(pixel, value);
            }
            p += 1;
        }
        let mut k = 0;
        while k < last + PIXELS as usize {
            let i = in_tile + padded - first - CHUNK * C as u32 + k as u32;
            columns.fetch_min(skewed(i), best[k / CHUNK as usize][k % CHUNK as usize]);
            k += 1;
        }
        round += 1;
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

/// All ones in the lanes of padded disparities.
#[inline(always)]
fn padding<const C: usize>(first: u32, disparities: u32) -> Sums<C> {
    let mut masks = [[0; REGISTERS]; C];
    let mut i = 0;
    while i < REGISTERS * C {
        let d = first + (i / REGISTERS) as u32 * CHUNK + (i % REGISTERS) as u32;
        let low = if d >= disparities { 0xffff } else { 0 };
        let high = if d + CHUNK / 2 >= disparities { 0xffff << 16 } else { 0 };
        masks[i / REGISTERS][i % REGISTERS] = low | high;
        i += 1;
    }
    masks
}

/// The sums of the path costs at byte `at` of every volume.
#[inline(always)]
fn sum<const PATHS: usize, const C: usize>(args: &Winner, at: usize, padding: Sums<C>) -> Sums<C> {
    let mut sums = [[0; REGISTERS]; C];
    let mut c = 0;
    while c < C {
        let mut path = 0;
        while path < PATHS {
            let costs = unpack(args.path_costs.get_x4(at + c * CHUNK as usize + path * args.volume));
            let mut i = 0;
            while i < REGISTERS {
                sums[c][i] = packed::add(sums[c][i], costs[i]);
                i += 1;
            }
            path += 1;
        }
        let mut i = 0;
        while i < REGISTERS {
            let mask = padding[c][i];
            sums[c][i] = (sums[c][i] & !mask) | (packed::splat(PADDING_SUM) & mask);
            i += 1;
        }
        c += 1;
    }
    sums
}

/// Enters this lane's keys `sum << 16 | d` of pixel `p` into the right columns' best, and returns the
/// smallest key.
#[inline(always)]
fn combine<const C: usize>(
    sums: &Sums<C>,
    first: u32,
    in_image: bool,
    p: usize,
    last: usize,
    best: &mut [[u32; CHUNK as usize]; 3],
) -> u32 {
    let outside = if in_image { 0 } else { u32::MAX };
    let mut smallest = u32::MAX;
    let mut d = 0;
    while d <= last {
        let in_chunk = d % CHUNK as usize;
        let register = sums[d / CHUNK as usize][in_chunk % REGISTERS];
        let sum = if in_chunk < REGISTERS { register << 16 } else { register & 0xffff_0000 };
        let key = sum | (first + d as u32);
        smallest = smallest.min(key);
        let k = p + last - d;
        let entry = &mut best[k / CHUNK as usize][k % CHUNK as usize];
        *entry = (*entry).min(key | outside);
        d += 1;
    }
    smallest
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
    let mut capped = 0;
    let mut i = 0;
    while i < REGISTERS * C {
        capped = packed::add(capped, packed::min(sums[i / REGISTERS][i % REGISTERS], limit));
        i += 1;
    }
    let mut capped = (capped & 0xffff) + (capped >> 16);
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

/// The sum at disparity `d`, the same for all lanes of the group.
#[inline(always)]
fn at<const C: usize>(sums: &Sums<C>, d: u32, lanes: u32) -> u32 {
    let in_lane = d % (CHUNK * C as u32);
    let select = |bit: u32, a: u32, b: u32| if in_lane & bit == 0 { a } else { b };
    let of_chunk = |s: &[u32; REGISTERS]| {
        let quarter = |i: usize| select(4, s[i], s[i + 4]);
        select(2, select(1, quarter(0), quarter(1)), select(1, quarter(2), quarter(3)))
    };
    let mut register = of_chunk(&sums[0]);
    if C == 2 {
        register = select(CHUNK, register, of_chunk(&sums[C - 1]));
    }
    let sum = select(CHUNK / 2, register & 0xffff, register >> 16);
    warp::shuffle_idx(sum, d / (CHUNK * C as u32), lanes)
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
