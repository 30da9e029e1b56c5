//! Who accessed a byte last, and whether two accesses are ordered.
//!
//! Block barriers and warp synchronisations always name all threads of the block or warp, so that
//! two counters order everything: within a block, an access is ordered before a later one if a block
//! barrier lies between (the block's epoch differs) or, within a warp, a `sync_warp` (the warp's
//! epoch differs). Accesses of different blocks are never ordered. Shuffles order no memory: the
//! device's shuffle neither promises that nor keeps the compiler from moving accesses across it.
//!
//! A [`Record`] holds the accesses of one kind to one byte exactly enough to decide every later
//! access. When blocks run in parallel, two blocks may update a record at once and one race between
//! them go unseen; one after another, every race of the executed accesses is found.

use core::{cell::Cell, ops::Range};
use std::sync::{
    OnceLock,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use super::{byte_set::ByteSet, fault::Access, warp};

/// Bits of each of a record's fields, from the lowest on.
const ATOMIC_BITS: u32 = 1;
const LANE_BITS: u32 = 6;
const WARP_BITS: u32 = 6;
const WARP_EPOCH_BITS: u32 = 14;
const EPOCH_BITS: u32 = 15;
const BLOCK_BITS: u32 = u64::BITS - EPOCH_BITS - WARP_EPOCH_BITS - WARP_BITS - LANE_BITS - ATOMIC_BITS;

const LANE_SHIFT: u32 = ATOMIC_BITS;
const WARP_SHIFT: u32 = LANE_SHIFT + LANE_BITS;
const WARP_EPOCH_SHIFT: u32 = WARP_SHIFT + WARP_BITS;
const EPOCH_SHIFT: u32 = WARP_EPOCH_SHIFT + WARP_EPOCH_BITS;
const BLOCK_SHIFT: u32 = EPOCH_SHIFT + EPOCH_BITS;

/// Blocks of a launch that records can tell apart.
pub(super) const MAX_BLOCKS: u64 = (1 << BLOCK_BITS) - 1;

/// Lane field: several lanes of the warp.
const SEVERAL_LANES: u32 = 32;
/// Warp field: several warps of the block.
const SEVERAL_WARPS: u32 = 32;
/// Warp field: several blocks.
const SEVERAL_BLOCKS: u32 = 33;
/// Warp field: a bulk copy, whose number stands in the two epoch fields.
const BULK: u32 = 34;

/// The accesses of one kind (reads or writes) to a byte; nothing if it is 0.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(super) struct Record(u64);

impl Record {
    pub(super) const NONE: Self = Self(0);

    /// An access by lane `lane` of warp `warp` of block `block`, in the current epochs.
    #[inline(always)]
    pub(super) fn new(block: u32, epoch: u32, warp_epoch: u32, thread: u32) -> Self {
        const fn field(value: u32, bits: u32) -> u64 {
            value as u64 & ((1 << bits) - 1)
        }
        Self(
            (u64::from(block + 1) << BLOCK_SHIFT)
                | (field(epoch, EPOCH_BITS) << EPOCH_SHIFT)
                | (field(warp_epoch, WARP_EPOCH_BITS) << WARP_EPOCH_SHIFT)
                | (u64::from(thread / warp::SIZE) << WARP_SHIFT)
                | (u64::from(thread % warp::SIZE) << LANE_SHIFT),
        )
    }

    /// The write by the block's bulk copy number `copy`.
    pub(super) fn bulk(self, copy: usize) -> Self {
        let keep = u64::MAX << BLOCK_SHIFT;
        Self((self.0 & keep) | ((copy as u64) << WARP_EPOCH_SHIFT) | (u64::from(BULK) << WARP_SHIFT))
    }

    /// The number of the bulk copy that this write is of.
    #[inline(always)]
    pub(super) fn bulk_copy(self) -> Option<usize> {
        let id = (self.0 >> WARP_EPOCH_SHIFT) & ((1 << (EPOCH_BITS + WARP_EPOCH_BITS)) - 1);
        (self.warp() == BULK).then_some(id as usize)
    }

    #[inline(always)]
    fn block(self) -> u64 {
        self.0 >> BLOCK_SHIFT
    }

    #[inline(always)]
    fn epoch(self) -> u64 {
        (self.0 >> EPOCH_SHIFT) & ((1 << EPOCH_BITS) - 1)
    }

    #[inline(always)]
    fn warp_epoch(self) -> u64 {
        (self.0 >> WARP_EPOCH_SHIFT) & ((1 << WARP_EPOCH_BITS) - 1)
    }

    #[inline(always)]
    fn warp(self) -> u32 {
        (self.0 >> WARP_SHIFT) as u32 & ((1 << WARP_BITS) - 1)
    }

    #[inline(always)]
    fn lane(self) -> u32 {
        (self.0 >> LANE_SHIFT) as u32 & ((1 << LANE_BITS) - 1)
    }

    #[inline(always)]
    fn is_atomic(self) -> bool {
        self.0 & 1 != 0
    }

    fn atomic(self) -> Self {
        Self(self.0 | 1)
    }

    fn with(self, warp: u32, lane: u32) -> Self {
        let keep = (u64::MAX << WARP_EPOCH_SHIFT) | 1;
        Self((self.0 & keep) | (u64::from(warp) << WARP_SHIFT) | (u64::from(lane) << LANE_SHIFT))
    }

    /// Whether this is an access of the block that `now` is of.
    #[inline(always)]
    pub(super) fn same_block(self, now: Self) -> bool {
        self.block() == now.block()
    }

    /// Whether all of these accesses happen before one at `now`. `same_thread` says whether a
    /// thread's own earlier accesses count as such.
    #[inline(always)]
    pub(super) fn before(self, now: Self, same_thread: bool) -> bool {
        if self == Self::NONE {
            return true;
        }
        if !self.same_block(now) || matches!(self.warp(), SEVERAL_BLOCKS | BULK) {
            return false;
        }
        self.epoch() != now.epoch()
            || (self.warp() == now.warp()
                && (self.warp_epoch() != now.warp_epoch() || (same_thread && self.lane() == now.lane())))
    }

    /// These accesses and one at `now`, without those that need not be remembered: what they
    /// conflict with, the remaining ones conflict with too.
    #[inline(always)]
    fn and(self, now: Self) -> Self {
        if self == Self::NONE {
            return now;
        }
        if self.warp() == SEVERAL_BLOCKS || !self.same_block(now) {
            return now.with(SEVERAL_BLOCKS, SEVERAL_LANES);
        }
        if self.epoch() != now.epoch() {
            return now;
        }
        if self.warp() != now.warp() {
            return now.with(SEVERAL_WARPS, SEVERAL_LANES);
        }
        if self.warp_epoch() != now.warp_epoch() || self.lane() == now.lane() {
            return now;
        }
        now.with(now.warp(), SEVERAL_LANES)
    }

    /// Names whose access this is, in a grid `grid_width` blocks wide.
    pub(super) fn describe(self, grid_width: u32) -> String {
        let block = self.block().wrapping_sub(1) as u32;
        let block = format!("block ({}, {})", block % grid_width, block / grid_width);
        match (self.warp(), self.lane()) {
            (SEVERAL_BLOCKS, _) => "threads of several blocks".to_owned(),
            (BULK, _) => format!("the copy engine for {block}"),
            (SEVERAL_WARPS, _) => format!("threads of several warps of {block}"),
            (warp, SEVERAL_LANES) => format!("several threads of warp {warp} of {block}"),
            (warp, lane) => format!("thread {} of {block}", warp * warp::SIZE + lane),
        }
    }
}

/// Two accesses that nothing orders.
#[derive(Debug, Clone, Copy)]
pub(super) struct Conflict {
    pub(super) earlier: Record,
    pub(super) access: Access,
}

/// The accesses to one byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Byte {
    pub(super) write: Record,
    pub(super) read: Record,
}

impl Byte {
    /// Without what other blocks did: shared memory is new to each block.
    #[inline(always)]
    fn of_block(self, now: Record) -> Self {
        let own = |record: Record| if record.same_block(now) { record } else { Record::NONE };
        Self { write: own(self.write), read: own(self.read) }
    }

    /// The reads to remember after one at `now`.
    #[inline(always)]
    pub(super) fn reading(self, now: Record) -> Result<Record, Conflict> {
        if !self.write.before(now, true) {
            return Err(self.write_conflict());
        }
        Ok(self.read.and(now))
    }

    /// The writes to remember after one at `now`.
    #[inline(always)]
    pub(super) fn writing(self, now: Record, same_thread: bool) -> Result<Record, Conflict> {
        if !self.write.before(now, same_thread) {
            return Err(self.write_conflict());
        }
        if !self.read.before(now, same_thread) {
            return Err(Conflict { earlier: self.read, access: Access::Read });
        }
        Ok(now)
    }

    /// The writes to remember after an atomic operation at `now`: those may be unordered among
    /// themselves. A plain write that is ordered before it is forgotten, although it may conflict
    /// with a later atomic operation of another warp.
    pub(super) fn updating(self, now: Record) -> Result<Record, Conflict> {
        if self.write.is_atomic() {
            if !self.read.before(now, true) {
                return Err(Conflict { earlier: self.read, access: Access::Read });
            }
            return Ok(self.write.and(now).atomic());
        }
        self.writing(now, true)?;
        // A plain write by this very thread still conflicts with the others' atomic operations.
        Ok(if self.write == now { now } else { now.atomic() })
    }

    fn write_conflict(self) -> Conflict {
        let access = match (self.write.is_atomic(), self.write.bulk_copy()) {
            (_, Some(_)) => Access::BulkCopy,
            (true, _) => Access::Atomic,
            (false, _) => Access::Write,
        };
        Conflict { earlier: self.write, access }
    }
}

/// The shadow of a block's shared memory.
pub(super) struct SharedShadow {
    bytes: Box<[Cell<Byte>]>,
}

impl SharedShadow {
    pub(super) fn new(bytes: usize) -> Self {
        let nothing = Byte { write: Record::NONE, read: Record::NONE };
        Self { bytes: vec![Cell::new(nothing); bytes].into() }
    }

    /// The accesses of this block to the byte at `i`.
    pub(super) fn get(&self, i: usize, now: Record) -> Byte {
        self.bytes[i].get().of_block(now)
    }

    /// Replaces what is known of each byte of `range` by what `update` makes of its offset and of the
    /// accesses by this block.
    #[inline(always)]
    pub(super) fn update(&self, range: Range<usize>, now: Record, mut update: impl FnMut(usize, Byte) -> Byte) {
        let (start, mut last) = (range.start, None);
        for (i, byte) in self.bytes[range].iter().enumerate() {
            let known = byte.get();
            // Mostly all bytes of an element have been accessed alike.
            let updated = match last {
                Some((same, updated)) if same == known => updated,
                _ => update(start + i, known.of_block(now)),
            };
            byte.set(updated);
            last = Some((known, updated));
        }
    }
}

/// The shadow of a buffer during one launch. Its parts exist once something needs them.
pub(super) struct GlobalShadow {
    bytes: usize,
    writes: OnceLock<Box<[AtomicU64]>>,
    reads: OnceLock<Box<[AtomicU64]>>,
    written: OnceLock<ByteSet>,
    read_only: OnceLock<ByteSet>,
}

/// What an access to a buffer conflicts with, at which byte of it.
pub(super) enum GlobalConflict {
    Race(usize, Conflict),
    ReadOnlyWritten(usize),
}

impl GlobalShadow {
    pub(super) fn new(bytes: usize) -> Self {
        let [writes, reads] = [const { OnceLock::new() }; 2];
        let [written, read_only] = [const { OnceLock::new() }; 2];
        Self { bytes, writes, reads, written, read_only }
    }

    /// A read of the bytes in `range` through the read-only path.
    #[inline(always)]
    pub(super) fn read_only(&self, range: Range<usize>) -> Result<(), GlobalConflict> {
        self.read_only.get_or_init(|| ByteSet::new(self.bytes)).insert(range.clone());
        let written = self.written.get().and_then(|written| written.first_in(range));
        written.map_or(Ok(()), |i| Err(GlobalConflict::ReadOnlyWritten(i)))
    }

    /// An access to the bytes in `range`.
    pub(super) fn access(&self, range: Range<usize>, access: Access, now: Record) -> Result<(), GlobalConflict> {
        let (writes, reads) = match access {
            Access::Read => (self.writes.get(), Some(self.reads.get_or_init(|| nothing(self.bytes)))),
            _ => (Some(self.writes.get_or_init(|| nothing(self.bytes))), self.reads.get()),
        };
        if access != Access::Read {
            self.written.get_or_init(|| ByteSet::new(self.bytes)).insert(range.clone());
            if let Some(i) = self.read_only.get().and_then(|read| read.first_in(range.clone())) {
                return Err(GlobalConflict::ReadOnlyWritten(i));
            }
        }
        let load = |records: Option<&Box<[AtomicU64]>>, i: usize| {
            records.map_or(Record::NONE, |records| Record(records[i].load(Relaxed)))
        };
        let mut last = None;
        for i in range {
            let known = Byte { write: load(writes, i), read: load(reads, i) };
            let Record(updated) = match last {
                Some((same, updated)) if same == known => updated,
                _ => match access {
                    Access::Read => known.reading(now),
                    Access::Atomic => known.updating(now),
                    Access::Write | Access::BulkCopy => known.writing(now, true),
                }
                .map_err(|conflict| GlobalConflict::Race(i, conflict))?,
            };
            if let Some(records) = if access == Access::Read { reads } else { writes } {
                records[i].store(updated, Relaxed);
            }
            last = Some((known, Record(updated)));
        }
        Ok(())
    }
}

/// `len` empty records, in memory that the system hands out zeroed: most of it is never touched.
fn nothing(len: usize) -> Box<[AtomicU64]> {
    const { assert!(align_of::<AtomicU64>() == align_of::<u64>()) };
    let records = Box::into_raw(vec![0_u64; len].into_boxed_slice());
    // SAFETY: AtomicU64 has the size of u64 by its documentation and, as asserted, its alignment;
    // any bits are a valid one; the box is given up above.
    unsafe { Box::from_raw(records as *mut [AtomicU64]) }
}

#[cfg(test)]
mod tests {
    use super::{Access, Byte, Record};

    /// One access, in full.
    #[derive(Debug, Clone, Copy, PartialEq)]
    struct Event {
        access: Access,
        block: usize,
        epoch: u32,
        warp_epoch: u32,
        thread: u32,
    }

    impl Event {
        fn record(self) -> Record {
            Record::new(self.block as u32, self.epoch, self.warp_epoch, self.thread)
        }

        fn is_before(self, later: Self) -> bool {
            let same_warp = self.thread / 32 == later.thread / 32;
            self.block == later.block
                && (self.epoch < later.epoch
                    || (same_warp && self.warp_epoch < later.warp_epoch)
                    || self.thread == later.thread)
        }

        fn conflicts(self, later: Self) -> bool {
            let reads = self.access == Access::Read && later.access == Access::Read;
            let atomics = self.access == Access::Atomic && later.access == Access::Atomic;
            !reads && !atomics && !self.is_before(later)
        }
    }

    /// Makes random accesses to one byte until the first conflict. How many runs had one, which each
    /// run's whole history confirms.
    fn conflicts(accesses: &[Access], exact: bool) -> usize {
        const BLOCKS: usize = 2;
        const WARPS: usize = 2;
        let mut random = fastrand::Rng::with_seed(9);
        let mut found = 0;
        for _ in 0..20_000 {
            let mut epochs = [0; BLOCKS];
            let mut warp_epochs = [[0; WARPS]; BLOCKS];
            let (mut byte, mut history) = (Byte { write: Record::NONE, read: Record::NONE }, Vec::<Event>::new());
            for _ in 0..6 {
                // The second block rarely, as most of its accesses conflict.
                let block = usize::from(random.u32(0..16) == 0);
                match random.u32(0..4) {
                    0 => epochs[block] += 1,
                    1 => warp_epochs[block][random.usize(0..WARPS)] += 1,
                    _ => {}
                }
                let thread = random.u32(0..3) + 32 * random.u32(0..WARPS as u32);
                let (epoch, warp_epoch) = (epochs[block], warp_epochs[block][thread as usize / 32]);
                let access = accesses[random.usize(0..accesses.len())];
                let event = Event { access, block, epoch, warp_epoch, thread };
                let updated = match access {
                    Access::Read => byte.reading(event.record()).map(|read| Byte { read, ..byte }),
                    Access::Atomic => byte.updating(event.record()).map(|write| Byte { write, ..byte }),
                    _ => byte.writing(event.record(), true).map(|write| Byte { write, ..byte }),
                };
                let expected = history.iter().any(|earlier| earlier.conflicts(event));
                assert!(updated.is_ok() || expected, "{event:?} conflicts with nothing in {history:?}");
                assert!(!exact || updated.is_err() == expected, "{event:?} after {history:?}");
                history.push(event);
                match updated {
                    Ok(updated) => byte = updated,
                    Err(_) => {
                        found += 1;
                        break;
                    }
                }
            }
        }
        found
    }

    #[test]
    fn finds_exactly_the_conflicts_of_reads_and_writes() {
        let found = conflicts(&[Access::Read, Access::Read, Access::Read, Access::Write], true);
        assert!((1000..19_000).contains(&found), "{found} of 20000 runs have a conflict: too few or too many to tell");
        conflicts(&[Access::Read, Access::Atomic], true);
        assert_eq!(conflicts(&[Access::Read], true), 0);
        assert_eq!(conflicts(&[Access::Atomic], true), 0);
    }

    #[test]
    fn finds_no_conflict_that_is_none() {
        // Not exact: see `Byte::updating`.
        assert!(conflicts(&[Access::Read, Access::Write, Access::Atomic], false) > 1000);
    }
}
