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
    scheduler::with(|block| block.meet(Op { kind: Kind::Sync, value: 0, argument: 0, width: SIZE }, at));
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
    scheduler::with(|block| block.meet(Op { kind, value, argument, width }, at))
}

/// What the lanes of a warp do together; of a shuffle, how it finds the lane to read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Sync,
    Xor,
    Up,
    Down,
    Idx,
}

/// An operation that all lanes of a warp do together, with this lane's operands.
#[derive(Debug, Clone, Copy)]
pub(super) struct Op {
    pub(super) kind: Kind,
    pub(super) value: u32,
    pub(super) argument: u32,
    pub(super) width: u32,
}

impl fmt::Display for Op {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self.kind {
            Kind::Sync => "sync_warp",
            Kind::Xor => "shuffle_xor",
            Kind::Up => "shuffle_up",
            Kind::Down => "shuffle_down",
            Kind::Idx => "shuffle_idx",
        })
    }
}

/// The lane whose value lane `lane` gets when it does `op`: PTX's `shfl.sync` with the operand `c`
/// that the device builds of `width`.
#[inline(always)]
pub(super) fn source(op: Op, lane: u32) -> u32 {
    let segment = SIZE - op.width;
    let (lowest, highest) = (lane & segment, (lane & segment) | (op.width - 1));
    let argument = op.argument % SIZE;
    let (source, in_range) = match op.kind {
        Kind::Sync => (lane, true),
        Kind::Xor => (lane ^ argument, lane ^ argument <= highest),
        Kind::Up => (lane.wrapping_sub(argument), lane >= lowest + argument),
        Kind::Down => (lane + argument, lane + argument <= highest),
        Kind::Idx => (lowest | (argument & !segment), true),
    };
    if in_range { source } else { lane }
}
