//! The warp: 32 threads that shuffle registers.

use core::fmt;
use std::panic::Location;

use super::scheduler;

/// Threads in a warp.
pub const SIZE: u32 = 32;

/// This thread's index in its warp.
#[inline(always)]
pub fn lane_id() -> u32 {
    super::thread::thread_idx_x() % SIZE
}

/// Orders shared-memory accesses among the threads of the warp.
#[track_caller]
#[inline(always)]
pub fn sync_warp() {
    let at = Location::caller();
    scheduler::with(|block| block.meet(Op::Sync, at));
}

/// The value of the lane whose index differs by the bits of `mask`, within groups of `width`
/// lanes (a power of two).
#[track_caller]
#[inline(always)]
pub fn shuffle_xor(value: u32, mask: u32, width: u32) -> u32 {
    shuffle(Kind::Xor, value, mask, width, Location::caller())
}

/// The value of the lane `delta` below, within groups of `width`; the lowest lanes keep their own.
#[track_caller]
#[inline(always)]
pub fn shuffle_up(value: u32, delta: u32, width: u32) -> u32 {
    shuffle(Kind::Up, value, delta, width, Location::caller())
}

/// The value of the lane `delta` above, within groups of `width`; the highest lanes keep their own.
#[track_caller]
#[inline(always)]
pub fn shuffle_down(value: u32, delta: u32, width: u32) -> u32 {
    shuffle(Kind::Down, value, delta, width, Location::caller())
}

/// The value of lane `lane` of this thread's group of `width` lanes.
#[track_caller]
#[inline(always)]
pub fn shuffle_idx(value: u32, lane: u32, width: u32) -> u32 {
    shuffle(Kind::Idx, value, lane, width, Location::caller())
}

#[inline(always)]
fn shuffle(kind: Kind, value: u32, argument: u32, width: u32, at: &'static Location<'static>) -> u32 {
    assert!(width.is_power_of_two() && width <= SIZE, "shuffle within groups of {width} lanes");
    scheduler::with(|block| block.meet(Op::Shuffle { kind, value, argument, width }, at))
}

/// How a shuffle finds the lane to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Xor,
    Up,
    Down,
    Idx,
}

/// An operation that all lanes of a warp do together, with this lane's operands.
#[derive(Debug, Clone, Copy)]
pub(super) enum Op {
    Sync,
    Shuffle { kind: Kind, value: u32, argument: u32, width: u32 },
}

impl Op {
    /// Whether two lanes that wait at these meet.
    #[inline(always)]
    pub(super) fn same_kind(self, other: Self) -> bool {
        match (self, other) {
            (Self::Sync, Self::Sync) => true,
            (Self::Shuffle { kind: a, .. }, Self::Shuffle { kind: b, .. }) => a == b,
            _ => false,
        }
    }
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Sync => "sync_warp",
            Self::Shuffle { kind: Kind::Xor, .. } => "shuffle_xor",
            Self::Shuffle { kind: Kind::Up, .. } => "shuffle_up",
            Self::Shuffle { kind: Kind::Down, .. } => "shuffle_down",
            Self::Shuffle { kind: Kind::Idx, .. } => "shuffle_idx",
        })
    }
}

/// What lane `lane` gets when the warp's lanes do `ops`: PTX's `shfl.sync` with the operand `c` that
/// the device builds of `width`.
#[inline(always)]
pub(super) fn result(ops: &[Op; SIZE as usize], lane: u32) -> u32 {
    let Op::Shuffle { kind, value, argument, width } = ops[lane as usize] else { return 0 };
    let segment = SIZE - width;
    let (lowest, highest) = (lane & segment, (lane & segment) | (width - 1));
    let argument = argument % SIZE;
    let (source, in_range) = match kind {
        Kind::Xor => (lane ^ argument, lane ^ argument <= highest),
        Kind::Up => (lane.wrapping_sub(argument), lane >= lowest + argument),
        Kind::Down => (lane + argument, lane + argument <= highest),
        Kind::Idx => (lowest | (argument & !segment), true),
    };
    match ops[source as usize % SIZE as usize] {
        Op::Shuffle { value: theirs, .. } if in_range => theirs,
        _ => value,
    }
}
