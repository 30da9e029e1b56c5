//! Path aggregation (sgm.md, section 3): one kernel per direction, each writing its own path cost
//! volume, layout [`crate::layout`].
//!
//! Every path is walked by a group of lanes. A horizontal path is a row; a vertical or oblique one
//! starts at a column of the first row, and an oblique one that leaves the image at a side re-enters
//! at the other, where a new path begins: so every row is split into `width` groups and all groups
//! walk `height` pixels.
//!
//! A walk is one dependent step after another, so its speed is memory latency unless loads run
//! ahead: the next `DEPTH` pixels' costs wait in registers.
//!
//! `P2` is read from an image of penalties (see [`crate::penalty`]), where 0 restarts the path: image
//! borders need no other treatment.

#[cfg(bulk_copies)]
pub mod bulk;
mod recurrence;

use recurrence::{Recurrence, bytes, load, store};

use crate::{
    gpu::{
        global::{Global, GlobalMut},
        thread,
    },
    layout::{self, CHUNK, WORDS},
};

crate::kernels! {
    /// Launch with groups of `lanes` threads: `block` threads a block, a multiple of the warp, and
    /// enough blocks in x for `height` (horizontal directions) or `width` groups.
    pub struct Aggregate {
        /// Matching costs, `[y][x][d]`, `width * height * padded`.
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
        /// Lanes per path, a power of two up to 32; read by the general kernels only.
        lanes: u32,
    }
    entry aggregate_right_d64 = walk::<1, 0, 1, 8, 6>;
    entry aggregate_right_d128 = walk::<1, 0, 1, 16, 6>;
    entry aggregate_right_d256 = walk::<1, 0, 1, 32, 6>;
    entry aggregate_right_any = walk::<1, 0, 2, ANY, 4>;
    entry aggregate_right_d1024 = walk::<1, 0, 4, 32, 2>;
    entry aggregate_left_d64 = walk::<-1, 0, 1, 8, 6>;
    entry aggregate_left_d128 = walk::<-1, 0, 1, 16, 6>;
    entry aggregate_left_d256 = walk::<-1, 0, 1, 32, 6>;
    entry aggregate_left_any = walk::<-1, 0, 2, ANY, 4>;
    entry aggregate_left_d1024 = walk::<-1, 0, 4, 32, 2>;
    entry aggregate_down_d64 = walk::<0, 1, 2, 4, 6>;
    entry aggregate_down_d128 = walk::<0, 1, 2, 8, 6>;
    entry aggregate_down_d256 = walk::<0, 1, 2, 16, 6>;
    entry aggregate_down_any = walk::<0, 1, 2, ANY, 4>;
    entry aggregate_down_d1024 = walk::<0, 1, 4, 32, 2>;
    entry aggregate_up_d64 = walk::<0, -1, 2, 4, 6>;
    entry aggregate_up_d128 = walk::<0, -1, 2, 8, 6>;
    entry aggregate_up_d256 = walk::<0, -1, 2, 16, 6>;
    entry aggregate_up_any = walk::<0, -1, 2, ANY, 4>;
    entry aggregate_up_d1024 = walk::<0, -1, 4, 32, 2>;
    entry aggregate_down_right_d64 = walk::<1, 1, 2, 4, 6>;
    entry aggregate_down_right_d128 = walk::<1, 1, 2, 8, 6>;
    entry aggregate_down_right_d256 = walk::<1, 1, 2, 16, 6>;
    entry aggregate_down_right_any = walk::<1, 1, 2, ANY, 4>;
    entry aggregate_down_right_d1024 = walk::<1, 1, 4, 32, 2>;
    entry aggregate_down_left_d64 = walk::<-1, 1, 2, 4, 6>;
    entry aggregate_down_left_d128 = walk::<-1, 1, 2, 8, 6>;
    entry aggregate_down_left_d256 = walk::<-1, 1, 2, 16, 6>;
    entry aggregate_down_left_any = walk::<-1, 1, 2, ANY, 4>;
    entry aggregate_down_left_d1024 = walk::<-1, 1, 4, 32, 2>;
    entry aggregate_up_right_d64 = walk::<1, -1, 2, 4, 6>;
    entry aggregate_up_right_d128 = walk::<1, -1, 2, 8, 6>;
    entry aggregate_up_right_d256 = walk::<1, -1, 2, 16, 6>;
    entry aggregate_up_right_any = walk::<1, -1, 2, ANY, 4>;
    entry aggregate_up_right_d1024 = walk::<1, -1, 4, 32, 2>;
    entry aggregate_up_left_d64 = walk::<-1, -1, 2, 4, 6>;
    entry aggregate_up_left_d128 = walk::<-1, -1, 2, 8, 6>;
    entry aggregate_up_left_d256 = walk::<-1, -1, 2, 16, 6>;
    entry aggregate_up_left_any = walk::<-1, -1, 2, ANY, 4>;
    entry aggregate_up_left_d1024 = walk::<-1, -1, 4, 32, 2>;
}

/// The plain kernel for direction of travel `(x, y)` and volumes of `padded` disparities.
///
/// # Panics
/// For `(0, 0)` or steps larger than one.
#[cfg(not(target_arch = "nvptx64"))]
pub fn plain(direction: (i32, i32), padded: u32) -> crate::kernel::Entry<Aggregate> {
    let name = format!("aggregate_{}_{}", direction_name(direction), layout::class(padded));
    crate::kernel::Entry::named(Aggregate::ENTRIES, &name)
}

/// A direction of travel as the kernels' names spell it.
#[cfg(not(target_arch = "nvptx64"))]
fn direction_name(direction: (i32, i32)) -> &'static str {
    match direction {
        (1, 0) => "right",
        (-1, 0) => "left",
        (0, 1) => "down",
        (0, -1) => "up",
        (1, 1) => "down_right",
        (-1, 1) => "down_left",
        (1, -1) => "up_right",
        (-1, -1) => "up_left",
        _ => "no direction",
    }
}

/// The lane count of a general kernel: taken from its arguments.
const ANY: u32 = 0;

/// Where a walk is: a column and the pixel's index in the image.
#[derive(Clone, Copy)]
struct Cursor {
    x: u32,
    pixel: usize,
}

impl Cursor {
    /// The first pixel of path `path`.
    #[inline(always)]
    fn start<const DX: i32, const DY: i32>(path: u32, width: u32, height: u32) -> Self {
        let (x, y) = if DY == 0 {
            (if DX > 0 { 0 } else { width - 1 }, path)
        } else {
            (path, if DY > 0 { 0 } else { height - 1 })
        };
        Self { x, pixel: y as usize * width as usize + x as usize }
    }

    /// Goes one step along the path; off one side of the image, re-enters at the other.
    #[inline(always)]
    fn advance<const DX: i32, const DY: i32>(&mut self, width: u32) {
        let row = width as isize;
        self.pixel = self.pixel.wrapping_add_signed(DY as isize * row + DX as isize);
        if DX != 0 && DY != 0 {
            let leaves = self.x == if DX > 0 { width - 1 } else { 0 };
            let back = if leaves { -(DX as isize) * row } else { 0 };
            self.pixel = self.pixel.wrapping_add_signed(back);
            self.x = if leaves { if DX > 0 { 0 } else { width - 1 } } else { self.x.wrapping_add_signed(DX) };
        }
    }
}

/// Lanes of a path. The horizontal directions have the fewest paths and the most steps: wherever there
/// is such a kernel, their lanes hold one chunk each, the others' two.
pub const fn lanes(horizontal: bool, padded: u32) -> u32 {
    match padded {
        64 | 128 | 256 if horizontal => padded / CHUNK,
        _ => layout::lanes(padded),
    }
}

/// Walks the paths of direction `(DX, DY)` with `LANES` lanes of `C` chunks, `DEPTH` pixels loaded ahead.
#[inline(always)]
fn walk<const DX: i32, const DY: i32, const C: usize, const LANES: u32, const DEPTH: usize>(args: Aggregate) {
    let Aggregate { matching, penalties, path_costs, width, height, p1, lanes } = args;
    // At least 1, so that divisions need no check.
    let lanes = if LANES == ANY { lanes.max(1) } else { LANES };
    let lane = thread::thread_idx_x() % lanes;
    let group = (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) / lanes;
    let (paths, steps) = if DY == 0 { (height, width) } else { (width, height) };
    let path = group.min(paths - 1);
    let in_image = group < paths;

    let per_pixel = (lanes * bytes::<C>()) as usize;
    let first = (lane * bytes::<C>()) as usize;
    let mut ahead = Cursor::start::<DX, DY>(path, width, height);
    let mut ahead_step = 0;
    let mut waiting = [[[0; WORDS]; C]; DEPTH];
    let mut waiting_p2 = [0u8; DEPTH];
    let mut j = 0;
    while j < DEPTH {
        load::<C>(matching, ahead.pixel * per_pixel + first, &mut waiting[j]);
        waiting_p2[j] = penalties.get(ahead.pixel);
        if ahead_step < steps - 1 {
            ahead.advance::<DX, DY>(width);
            ahead_step += 1;
        }
        j += 1;
    }

    let mut recurrence = Recurrence::<C>::new(p1, lane, lanes);
    let mut here = Cursor::start::<DX, DY>(path, width, height);
    let mut step = 0;
    while step < steps {
        let mut j = 0;
        while j < DEPTH {
            recurrence.step(&mut waiting[j], waiting_p2[j].into());
            if in_image && step + (j as u32) < steps {
                store::<C>(path_costs, here.pixel * per_pixel + first, &waiting[j]);
            }
            here.advance::<DX, DY>(width);
            load::<C>(matching, ahead.pixel * per_pixel + first, &mut waiting[j]);
            waiting_p2[j] = penalties.get(ahead.pixel);
            if ahead_step < steps - 1 {
                ahead.advance::<DX, DY>(width);
                ahead_step += 1;
            }
            j += 1;
        }
        step += DEPTH as u32;
    }
}
