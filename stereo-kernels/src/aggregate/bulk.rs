//! Path aggregation whose matching costs arrive by bulk copies (the copy engine that CUDA calls TMA,
//! tma.md): the same walks as the plain kernels' and the same bytes.
//!
//! A block is one warp. Its paths' costs for the next steps come into a ring of stages in shared
//! memory, a chunk of steps per stage, so that memory latency costs no registers and the copies of
//! later chunks overlap the recurrence of this one. A pixel's costs are a multiple of 16 bytes, so
//! every size, range and slice can be copied:
//! - horizontal: one copy per row and chunk, the chunk's pixels being neighbours in memory;
//! - vertical: one copy per step, the warp's paths being neighbours in memory;
//! - oblique: as vertical, the slice moving by one pixel per step; where it leaves the image on one
//!   side and goes on at the other it takes two copies.
//!
//! For the horizontal directions there is a second kind, [`AggregateTiles`], which copies a chunk of all
//! its rows as one tile.
//!
//! The penalties are single bytes at any address, which the copy engine does not take: a chunk's are
//! loaded into registers one chunk ahead and passed on through shared memory.

use super::{
    ANY, Cursor,
    recurrence::{Recurrence, Words, bytes, load_shared, store},
};
use crate::{
    gpu::{
        bulk,
        global::{Global, GlobalMut},
        ring::Ring,
        shared::Shared,
        thread, warp,
    },
    layout::WORDS,
};

/// Bytes of a tile map's element.
const TILE_ELEMENT: u32 = 8;

/// The most steps of a chunk: a lane issues the copies of at most one step.
pub const MAX_STEPS: u32 = 16;

/// The most steps that a chunk has with the general kernels: they load as many penalties at a time as
/// those for 64 disparities do.
pub const fn max_step_bits(lanes: u32) -> u32 {
    const PENALTIES: u32 = 4 * warp::SIZE;
    let groups = warp::SIZE / lanes;
    let steps = if PENALTIES / groups < MAX_STEPS { PENALTIES / groups } else { MAX_STEPS };
    steps.ilog2()
}

/// Bytes of shared memory per block for a ring of `stages` chunks of `1 << step_bits` steps.
pub const fn shared_bytes(lanes: u32, padded: u32, step_bits: u32, stages: u32) -> u32 {
    let groups = warp::SIZE / lanes;
    data_offset(groups, step_bits, stages) + ((stages * groups * padded) << step_bits)
}

/// Where the ring's data begins: behind the barriers and two chunks of penalties.
const fn data_offset(groups: u32, step_bits: u32, stages: u32) -> u32 {
    Ring::bytes(stages) + ((2 * groups) << step_bits).next_multiple_of(128)
}

crate::kernels! {
    /// Launch with blocks of one warp, enough in x for `height` (horizontal directions) or `width`
    /// groups of `lanes` threads, and `shared_bytes(lanes, padded, step_bits, stages)`.
    pub struct AggregateBulk {
        /// Matching costs, `[y][x][d]`, `width * height * padded`, aligned to 16 bytes.
        matching: Global<u8>,
        /// `P2` per pixel of this direction, `[y][x]`; 0 where a path starts.
        penalties: Global<u8>,
        /// Path costs, like `matching`.
        path_costs: GlobalMut<u8>,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Penalty for a disparity step of one, packed ([`splat`](crate::gpu::packed::splat)): a
        /// constant operand of the recurrence's additions.
        p1: u32,
        /// Steps per chunk as a power of two, up to [`max_step_bits`].
        step_bits: u32,
        /// Chunks in the ring, at least 2.
        stages: u32,
        /// Lanes per path, a power of two up to 32; read by the general kernels only.
        lanes: u32,
    }
    entry aggregate_right_d64_tma = walk::<1, 0, 1, 8, 2>;
    entry aggregate_right_d128_tma = walk::<1, 0, 1, 16, 1>;
    entry aggregate_right_d256_tma = walk::<1, 0, 1, 32, 1>;
    entry aggregate_right_any_tma = walk::<1, 0, 2, ANY, 4>;
    entry aggregate_right_d1024_tma = walk::<1, 0, 4, 32, 1>;
    entry aggregate_left_d64_tma = walk::<-1, 0, 1, 8, 2>;
    entry aggregate_left_d128_tma = walk::<-1, 0, 1, 16, 1>;
    entry aggregate_left_d256_tma = walk::<-1, 0, 1, 32, 1>;
    entry aggregate_left_any_tma = walk::<-1, 0, 2, ANY, 4>;
    entry aggregate_left_d1024_tma = walk::<-1, 0, 4, 32, 1>;
    entry aggregate_down_d64_tma = walk::<0, 1, 2, 4, 4>;
    entry aggregate_down_d128_tma = walk::<0, 1, 2, 8, 2>;
    entry aggregate_down_d256_tma = walk::<0, 1, 2, 16, 1>;
    entry aggregate_down_any_tma = walk::<0, 1, 2, ANY, 4>;
    entry aggregate_down_d1024_tma = walk::<0, 1, 4, 32, 1>;
    entry aggregate_up_d64_tma = walk::<0, -1, 2, 4, 4>;
    entry aggregate_up_d128_tma = walk::<0, -1, 2, 8, 2>;
    entry aggregate_up_d256_tma = walk::<0, -1, 2, 16, 1>;
    entry aggregate_up_any_tma = walk::<0, -1, 2, ANY, 4>;
    entry aggregate_up_d1024_tma = walk::<0, -1, 4, 32, 1>;
    entry aggregate_down_right_d64_tma = walk::<1, 1, 2, 4, 4>;
    entry aggregate_down_right_d128_tma = walk::<1, 1, 2, 8, 2>;
    entry aggregate_down_right_d256_tma = walk::<1, 1, 2, 16, 1>;
    entry aggregate_down_right_any_tma = walk::<1, 1, 2, ANY, 4>;
    entry aggregate_down_right_d1024_tma = walk::<1, 1, 4, 32, 1>;
    entry aggregate_down_left_d64_tma = walk::<-1, 1, 2, 4, 4>;
    entry aggregate_down_left_d128_tma = walk::<-1, 1, 2, 8, 2>;
    entry aggregate_down_left_d256_tma = walk::<-1, 1, 2, 16, 1>;
    entry aggregate_down_left_any_tma = walk::<-1, 1, 2, ANY, 4>;
    entry aggregate_down_left_d1024_tma = walk::<-1, 1, 4, 32, 1>;
    entry aggregate_up_right_d64_tma = walk::<1, -1, 2, 4, 4>;
    entry aggregate_up_right_d128_tma = walk::<1, -1, 2, 8, 2>;
    entry aggregate_up_right_d256_tma = walk::<1, -1, 2, 16, 1>;
    entry aggregate_up_right_any_tma = walk::<1, -1, 2, ANY, 4>;
    entry aggregate_up_right_d1024_tma = walk::<1, -1, 4, 32, 1>;
    entry aggregate_up_left_d64_tma = walk::<-1, -1, 2, 4, 4>;
    entry aggregate_up_left_d128_tma = walk::<-1, -1, 2, 8, 2>;
    entry aggregate_up_left_d256_tma = walk::<-1, -1, 2, 16, 1>;
    entry aggregate_up_left_any_tma = walk::<-1, -1, 2, ANY, 4>;
    entry aggregate_up_left_d1024_tma = walk::<-1, -1, 4, 32, 1>;
}

/// The bulk-copy kernel for direction of travel `(x, y)` and volumes of `padded` disparities.
///
/// # Panics
/// For `(0, 0)` or steps larger than one.
#[cfg(not(target_arch = "nvptx64"))]
pub fn entry(direction: (i32, i32), padded: u32) -> crate::kernel::Entry<AggregateBulk> {
    let name = format!("aggregate_{}_{}_tma", super::direction_name(direction), crate::layout::class(padded));
    crate::kernel::Entry::named(AggregateBulk::ENTRIES, &name)
}

crate::kernels! {
    /// As [`AggregateBulk`] for the horizontal directions, but a chunk of all rows of a warp is one tile
    /// of a two-dimensional copy, as a tile map describes it.
    pub struct AggregateTiles {
        /// The tile map, 128 bytes: the costs as rows of `width * padded` bytes, tiles of
        /// `groups` rows and `padded << step_bits` bytes, at most [`MAX_TILE_BYTES`].
        map: Global<u8>,
        /// `P2` per pixel of this direction, `[y][x]`; 0 where a path starts.
        penalties: Global<u8>,
        /// Path costs, `[y][x][d]`.
        path_costs: GlobalMut<u8>,
        /// Pixels in a row.
        width: u32,
        /// Rows.
        height: u32,
        /// Penalty for a disparity step of one, packed.
        p1: u32,
        /// Steps per chunk as a power of two.
        step_bits: u32,
        /// Chunks in the ring, at least 2.
        stages: u32,
    }
    entry aggregate_right_d64_tiles_tma = tiles::<1, 8, 2>;
    entry aggregate_right_d128_tiles_tma = tiles::<1, 16, 1>;
    entry aggregate_right_d256_tiles_tma = tiles::<1, 32, 1>;
    entry aggregate_left_d64_tiles_tma = tiles::<-1, 8, 2>;
    entry aggregate_left_d128_tiles_tma = tiles::<-1, 16, 1>;
    entry aggregate_left_d256_tiles_tma = tiles::<-1, 32, 1>;
}

/// The most bytes of a tile's row: 256 elements of 8 bytes.
pub const MAX_TILE_BYTES: u32 = 2048;

/// Whether [`AggregateTiles`] exists for volumes of `padded` disparities and chunks of `1 << step_bits`.
pub const fn has_tiles(padded: u32, step_bits: u32) -> bool {
    matches!(padded, 64 | 128 | 256) && padded << step_bits <= MAX_TILE_BYTES
}

/// The two-dimensional kernel for a horizontal direction and volumes of `padded` disparities.
///
/// # Panics
/// Where [`has_tiles`] says that there is none.
#[cfg(not(target_arch = "nvptx64"))]
pub fn tiles_entry(direction: (i32, i32), padded: u32) -> crate::kernel::Entry<AggregateTiles> {
    let name = format!("aggregate_{}_{}_tiles_tma", super::direction_name(direction), crate::layout::class(padded));
    crate::kernel::Entry::named(AggregateTiles::ENTRIES, &name)
}

#[inline(always)]
fn tiles<const DX: i32, const LANES: u32, const PENALTIES: usize>(args: AggregateTiles) {
    let AggregateTiles { map, penalties, path_costs, width, height, p1, step_bits, stages } = args;
    let bulk =
        AggregateBulk { matching: map, penalties, path_costs, width, height, p1, step_bits, stages, lanes: LANES };
    walk_with::<DX, 0, 1, LANES, PENALTIES, true>(bulk);
}

/// The paths of one warp, and how their costs get into the ring.
struct Walk<const DX: i32, const DY: i32, const TILES: bool> {
    width: u32,
    height: u32,
    /// Pixels of a path.
    steps: u32,
    step_bits: u32,
    /// The warp's first path, and how many of its groups have one.
    first_path: u32,
    active: u32,
    /// Bytes of a pixel.
    per_pixel: u32,
    /// Groups of the warp.
    groups: u32,
}

impl<const DX: i32, const DY: i32, const TILES: bool> Walk<DX, DY, TILES> {
    /// The pixel of step `step` of path `path`.
    #[inline(always)]
    fn pixel(&self, path: u32, step: u32) -> usize {
        let along = |forward: bool, len: u32| if forward { step } else { len - 1 - step };
        let (x, y) = if DY == 0 {
            (along(DX > 0, self.width), path)
        } else {
            let drift = step % self.width;
            let x = match DX {
                0 => path,
                1 => (path + drift) % self.width,
                _ => (path + self.width - drift) % self.width,
            };
            (x, along(DY > 0, self.height))
        };
        y as usize * self.width as usize + x as usize
    }

    /// Steps of chunk `chunk`.
    #[inline(always)]
    fn chunk_steps(&self, chunk: u32) -> u32 {
        (self.steps - (chunk << self.step_bits)).min(1 << self.step_bits)
    }

    /// Where in a stage the costs of a group's step lie.
    #[inline(always)]
    fn in_stage(&self, group: u32, step: u32) -> u32 {
        if DY == 0 {
            ((group << self.step_bits) + step) * self.per_pixel
        } else {
            (step * self.groups + group) * self.per_pixel
        }
    }

    /// Where in a chunk's memory, of `steps` steps, a step lies: a row's pixels in memory order, so
    /// backwards its last step comes first. A tile is as long as every other, its end outside the row.
    #[inline(always)]
    fn place(&self, step: u32, steps: u32) -> u32 {
        let steps = if TILES { 1 << self.step_bits } else { steps };
        if DY == 0 && DX < 0 { steps - 1 - step } else { step }
    }

    /// Starts the copy of chunk `chunk` of all rows into `stage`.
    #[inline(always)]
    fn fill_tile(&self, map: Global<u8>, data: Shared<u8>, ring: &Ring, stage: u32, chunk: u32) {
        if warp::lane_id() == 0 {
            let bytes = (self.groups * self.per_pixel) << self.step_bits;
            let first_step = (chunk << self.step_bits) as i32;
            let behind = self.width as i32 - first_step - (1 << self.step_bits);
            let leftmost = if DX > 0 { first_step } else { behind };
            let barrier = ring.barrier(stage);
            barrier.arrive_expect(bytes);
            let column = leftmost * (self.per_pixel / TILE_ELEMENT) as i32;
            bulk::copy_tile(data, stage * bytes, map, column, self.first_path as i32, barrier);
        }
    }

    /// Starts the copies of chunk `chunk` into `stage`: each lane those of one row or one step.
    #[inline(always)]
    fn fill(&self, matching: Global<u8>, data: Shared<u8>, ring: &Ring, stage: u32, chunk: u32) {
        if TILES {
            return self.fill_tile(matching, data, ring, stage, chunk);
        }
        let lane = warp::lane_id();
        let steps = self.chunk_steps(chunk);
        let first_step = chunk << self.step_bits;
        let target = (stage * self.groups * self.per_pixel) << self.step_bits;
        let barrier = ring.barrier(stage);
        if lane == 0 {
            barrier.arrive_expect(steps * self.active * self.per_pixel);
        }
        let copy = |to: u32, pixel: usize, pixels: u32| {
            let from = pixel * self.per_pixel as usize;
            bulk::copy(data, target + to, matching, from, pixels * self.per_pixel, barrier);
        };
        if DY == 0 {
            if lane < self.active {
                // Backwards, the chunk's last step is its first pixel in memory.
                let leftmost = if DX > 0 { first_step } else { first_step + steps - 1 };
                copy(self.in_stage(lane, 0), self.pixel(self.first_path + lane, leftmost), steps);
            }
        } else if lane < steps {
            let first = self.pixel(self.first_path, first_step + lane);
            let x = first as u32 % self.width;
            let inside = if DX == 0 { self.active } else { self.active.min(self.width - x) };
            copy(self.in_stage(0, lane), first, inside);
            if inside < self.active {
                copy(self.in_stage(inside, lane), first - x as usize, self.active - inside);
            }
        }
    }
}

/// Walks the paths of direction `(DX, DY)` with `LANES` lanes of `C` chunks each.
/// `PENALTIES` times a warp loads the penalties of [`MAX_STEPS`] steps.
#[inline(always)]
fn walk<const DX: i32, const DY: i32, const C: usize, const LANES: u32, const PENALTIES: usize>(args: AggregateBulk) {
    walk_with::<DX, DY, C, LANES, PENALTIES, false>(args);
}

/// As [`walk`]; with `TILES`, `matching` is a tile map.
#[inline(always)]
fn walk_with<
    const DX: i32,
    const DY: i32,
    const C: usize,
    const LANES: u32,
    const PENALTIES: usize,
    const TILES: bool,
>(
    args: AggregateBulk,
) {
    let AggregateBulk { matching, penalties, path_costs, width, height, p1, step_bits, stages, lanes } = args;
    // At least 1, so that divisions need no check.
    let lanes = if LANES == ANY { lanes.max(1) } else { LANES };
    let width = width.max(1);
    let lane = warp::lane_id();
    let groups = warp::SIZE / lanes;
    let (paths, steps) = if DY == 0 { (height, width) } else { (width, height) };
    let first_path = thread::block_idx_x() * groups;
    let active = groups.min(paths - first_path);
    let per_pixel = lanes * bytes::<C>();
    let walk = Walk::<DX, DY, TILES> { width, height, steps, step_bits, first_path, active, per_pixel, groups };
    let chunks = ((steps - 1) >> step_bits) + 1;

    if TILES {
        bulk::acquire_tiles(matching);
    }
    let mut ring = Ring::new(0, stages);
    let penalty_stage = Shared::<u8>::dynamic(Ring::bytes(stages), (2 * groups) << step_bits);
    let data =
        Shared::<u8>::dynamic(data_offset(groups, step_bits, stages), (stages * groups * per_pixel) << step_bits);
    let mut chunk = 0;
    while chunk < stages.min(chunks) {
        walk.fill(matching, data, &ring, chunk, chunk);
        chunk += 1;
    }

    // Entry `e` of a chunk's penalties belongs to step `e % steps` of group `e / steps`.
    let load_penalties = |chunk: u32| {
        let mut values = [0u8; PENALTIES];
        let mut i = 0;
        while i < PENALTIES {
            let e = lane + i as u32 * warp::SIZE;
            if e < groups << step_bits {
                let step = (chunk << step_bits) + (e & ((1 << step_bits) - 1));
                let path = first_path + (e >> step_bits).min(active - 1);
                values[i] = penalties.get(walk.pixel(path, step.min(steps - 1)));
            }
            i += 1;
        }
        values
    };
    let store_penalties = |chunk: u32, values: [u8; PENALTIES]| {
        let mut i = 0;
        while i < PENALTIES {
            let e = lane + i as u32 * warp::SIZE;
            if e < groups << step_bits {
                penalty_stage.set((((chunk & 1) * groups) << step_bits) + e, values[i]);
            }
            i += 1;
        }
    };
    store_penalties(0, load_penalties(0));
    thread::sync_threads();

    let group = (lane / lanes).min(active - 1);
    let stores = lane / lanes < active;
    let first = lane % lanes * bytes::<C>();
    let mut recurrence = Recurrence::<C>::new(p1, lane % lanes, lanes);
    let mut here = Cursor::start::<DX, DY>(first_path + group, width, height);
    let mut chunk = 0;
    while chunk < chunks {
        let next_penalties = load_penalties((chunk + 1).min(chunks - 1));
        let stage = ring.wait();
        let steps = walk.chunk_steps(chunk);
        let load = |step: u32, words: &mut Words<C>| {
            let at =
                ((stage * groups * per_pixel) << step_bits) + walk.in_stage(group, walk.place(step, steps)) + first;
            load_shared::<C>(data, at, words);
            u32::from(penalty_stage.get((((chunk & 1) * groups + group) << step_bits) + step))
        };
        let mut words = [[0; WORDS]; C];
        let mut next = [[0; WORDS]; C];
        let mut next_p2 = load(0, &mut next);
        let mut step = 0;
        while step < steps {
            let p2 = next_p2;
            let mut c = 0;
            while c < C {
                words[c][0] = next[c][0];
                words[c][1] = next[c][1];
                c += 1;
            }
            next_p2 = load((step + 1).min(steps - 1), &mut next);
            recurrence.step(&mut words, p2);
            if stores {
                store::<C>(path_costs, here.pixel * per_pixel as usize + first as usize, &words);
            }
            here.advance::<DX, DY>(width);
            step += 1;
        }
        store_penalties(chunk + 1, next_penalties);
        thread::sync_threads();
        if chunk + stages < chunks {
            walk.fill(matching, data, &ring, stage, chunk + stages);
        }
        chunk += 1;
    }
}
