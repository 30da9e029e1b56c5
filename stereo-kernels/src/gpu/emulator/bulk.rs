//! Asynchronous bulk copies from device memory into shared memory, completed on an `mbarrier`.
//!
//! A copy is late: its bytes come at a random moment between its start and the moment when no
//! thread can go on without it, and until then its target holds poison.

use core::ops::Range;
use std::panic::Location;

use super::{
    fault::{Access, Cause, Space},
    global::{Element, Global},
    memory::POISON,
    scheduler::{self, Block, Wait},
    shared::Shared,
};

/// Addresses and sizes of bulk copies are multiples of this many bytes.
const UNIT: u32 = 16;
/// Bytes and alignment of an `mbarrier`.
const BARRIER: u32 = 8;
/// One in so many chances for a pending copy to arrive is taken.
const ARRIVES_ONE_IN: u32 = 4;

/// An `mbarrier` in shared memory, with the phase that this thread waits for next.
#[derive(Debug, Clone, Copy)]
pub struct Barrier {
    place: Shared<u64>,
    parity: u32,
}

impl Barrier {
    /// The barrier at the 8 bytes `offset` into dynamic shared memory. One thread then calls
    /// [`Barrier::init`], and the block synchronises, before anything else.
    #[track_caller]
    pub fn dynamic(offset: u32) -> Self {
        Self { place: Shared::dynamic(offset, 1), parity: 0 }
    }

    /// The same barrier, with this thread waiting for a phase of the given parity next.
    pub fn in_phase(self, parity: u32) -> Self {
        Self { parity, ..self }
    }

    /// Sets the barrier up for one arrival per phase, and makes that visible to the copy engine.
    #[track_caller]
    pub fn init(self) {
        let at = Location::caller();
        scheduler::with(|block| {
            let address = self.place.checked(block, 0, BARRIER, BARRIER, Access::Write, at);
            if block.checks() {
                block.shared.record(block, address, BARRIER, Access::Write, at);
            }
            let initialised = block.bulk.borrow_mut().init(address);
            if let Err(what) = initialised {
                block.fault(Some(at), Cause::Barrier { address, what });
            }
        });
    }

    /// Arrives and announces `bytes` that bulk copies will bring before the phase completes.
    #[track_caller]
    pub fn arrive_expect(self, bytes: u32) {
        let at = Location::caller();
        scheduler::with(|block| {
            let (address, barrier) = self.find(block, at);
            let arrived = block.bulk.borrow_mut().barriers[barrier].arrive(bytes);
            if let Err(what) = arrived {
                block.fault(Some(at), Cause::Barrier { address, what });
            }
        });
    }

    /// Waits until the current phase completes, then turns to the next one.
    #[track_caller]
    pub fn wait(&mut self) {
        let at = Location::caller();
        scheduler::with(|block| {
            let (_, barrier) = self.find(block, at);
            let parity = self.parity;
            while !block.bulk.borrow().has_passed(barrier, parity) {
                block.suspend(Wait::Bulk { barrier, parity, at });
            }
            block.bulk.borrow_mut().barriers[barrier].see(block.thread());
        });
        self.parity ^= 1;
    }

    /// Where the barrier is, and its number.
    fn find(self, block: &Block<'_>, at: &'static Location<'static>) -> (u32, usize) {
        let address = self.place.checked(block, 0, BARRIER, BARRIER, Access::Atomic, at);
        let found = block.bulk.borrow().barriers.iter().position(|barrier| barrier.address == address);
        let Some(barrier) = found else {
            block.fault(Some(at), Cause::Barrier { address, what: "used before it was initialised" })
        };
        block.shared.check_barrier(block, address, at);
        (address, barrier)
    }
}

/// Starts the copy of `bytes` from `source[i..]` to `target[j..]`. Both addresses and the size are
/// multiples of 16. Shared memory that threads have read or written before must have been
/// released by a block barrier.
#[track_caller]
pub fn copy<T: Element>(target: Shared<T>, j: u32, source: Global<T>, i: usize, bytes: u32, barrier: Barrier) {
    let at = Location::caller();
    scheduler::with(|block| {
        if !bytes.is_multiple_of(UNIT) {
            let (access, space, value, of) = (Access::BulkCopy, Space::Shared, bytes as usize, UNIT as usize);
            block.fault(Some(at), Cause::Misaligned { access, space, value, of });
        }
        let (_, barrier) = barrier.find(block, at);
        let source = source.read(block, i, bytes as usize, UNIT as usize, Access::BulkCopy, at).cast();
        let target = target.checked(block, j, bytes, UNIT, Access::BulkCopy, at);
        if block.checks() {
            block.shared.record(block, target, bytes, Access::BulkCopy, at);
        }
        for offset in 0..bytes {
            // SAFETY: `checked` has found the bytes in the block's shared memory.
            unsafe { u8::store(block.shared.pointer(target + offset), POISON) }
        }
        block.bulk.borrow_mut().start(Copy { barrier, source, target, bytes, phase: None });
    });
}

/// Bytes of a tile map, and its alignment's multiple: as the driver's tensor maps.
pub const TILE_MAP: usize = 128;
/// Bytes of a tile map's element.
const TILE_ELEMENT: i64 = 8;
/// Tiles are copied to addresses that are multiples of this many bytes.
const TILE_UNIT: u32 = 128;
/// What comes from outside the rows; a tile's row has at most this many bytes.
static OUTSIDE: [u8; 2048] = [0; 2048];

/// A matrix of bytes in device memory and the tiles that are copied from it, in the place of the
/// driver's tensor map.
#[derive(Debug, Clone, Copy)]
pub struct Tiles {
    /// The matrix: `rows` rows without gaps.
    pub source: Global<u8>,
    /// Bytes of a row, a multiple of 16.
    pub row_bytes: usize,
    /// Rows.
    pub rows: usize,
    /// Bytes of a tile's row, a multiple of 16, at most 2048.
    pub tile_bytes: u32,
    /// Rows of a tile.
    pub tile_rows: u32,
}

impl Tiles {
    /// The map as device memory holds it.
    pub fn encode(&self) -> [u8; TILE_MAP] {
        let fields = [
            self.source.as_ptr() as u64,
            self.source.len() as u64,
            self.row_bytes as u64,
            self.rows as u64,
            self.tile_bytes.into(),
            self.tile_rows.into(),
        ];
        let mut map = [0; TILE_MAP];
        for (bytes, field) in map.chunks_exact_mut(size_of::<u64>()).zip(fields) {
            bytes.copy_from_slice(&field.to_le_bytes());
        }
        map
    }

    fn decode(map: [u8; TILE_MAP]) -> Self {
        let field = |i: usize| {
            let mut bytes = [0; size_of::<u64>()];
            bytes.copy_from_slice(&map[i * size_of::<u64>()..][..size_of::<u64>()]);
            u64::from_le_bytes(bytes)
        };
        // SAFETY: whoever uses the source is checked against the buffers that exist.
        let source = unsafe { Global::from_raw(field(0) as *const u8, field(1) as usize) };
        Self {
            source,
            row_bytes: field(2) as usize,
            rows: field(3) as usize,
            tile_bytes: field(4) as u32,
            tile_rows: field(5) as u32,
        }
    }
}

/// Makes the tile map at `map`, which the host wrote before the launch, visible to the copy engine:
/// once per block, before its first [`copy_tile`].
#[track_caller]
pub fn acquire_tiles(map: Global<u8>) {
    let at = Location::caller();
    scheduler::with(|block| {
        map.read(block, 0, TILE_MAP, 64, Access::BulkCopy, at);
    });
}

/// Starts the copy of the tile whose first byte is 8-byte element `column` of row `row`, as the tile
/// map at `map` describes, to `target[j..]`, aligned to 128 bytes. The whole tile's bytes arrive:
/// zeros where it lies outside.
#[track_caller]
pub fn copy_tile<T: Element>(target: Shared<T>, j: u32, map: Global<u8>, column: i32, row: i32, barrier: Barrier) {
    let at = Location::caller();
    scheduler::with(|block| {
        let (_, barrier) = barrier.find(block, at);
        let p = map.read(block, 0, TILE_MAP, 64, Access::BulkCopy, at);
        // SAFETY: `read` has found the map's bytes in live memory.
        let tiles = Tiles::decode(std::array::from_fn(|i| unsafe { u8::load(p.add(i)) }));
        let bytes = tiles.tile_bytes * tiles.tile_rows;
        let target = target.checked(block, j, bytes, TILE_UNIT, Access::BulkCopy, at);
        if block.checks() {
            block.shared.record(block, target, bytes, Access::BulkCopy, at);
        }
        for offset in 0..bytes {
            // SAFETY: `checked` has found the bytes in the block's shared memory.
            unsafe { u8::store(block.shared.pointer(target + offset), POISON) }
        }
        let mut bulk = block.bulk.borrow_mut();
        for r in 0..tiles.tile_rows {
            let first = i64::from(column) * TILE_ELEMENT;
            let (row_bytes, tile_bytes) = (tiles.row_bytes as i64, i64::from(tiles.tile_bytes));
            let row = i64::from(row) + i64::from(r);
            let row_inside = (0..tiles.rows as i64).contains(&row);
            // Before the row, in it, behind it.
            let before = if row_inside { (-first).clamp(0, tile_bytes) } else { tile_bytes };
            let inside = (row_bytes - first).clamp(before, tile_bytes) - before;
            let mut to = target + r * tiles.tile_bytes;
            let mut start = |source: *const u8, bytes: i64| {
                if bytes > 0 {
                    bulk.start(Copy { barrier, source, target: to, bytes: bytes as u32, phase: None });
                    to += bytes as u32;
                }
            };
            start(OUTSIDE.as_ptr(), before);
            if inside > 0 {
                let from = (row * row_bytes + first + before) as usize;
                start(tiles.source.read(block, from, inside as usize, 8, Access::BulkCopy, at), inside);
            }
            start(OUTSIDE.as_ptr(), tile_bytes - before - inside);
        }
    });
}

/// A bulk copy.
struct Copy {
    barrier: usize,
    source: *const u8,
    target: u32,
    bytes: u32,
    /// The barrier's phase in which the bytes came, once they have.
    phase: Option<u32>,
}

/// The state of an `mbarrier`.
struct State {
    address: u32,
    /// Phases that have completed.
    phase: u32,
    arrived: bool,
    /// Bytes that were announced in this phase and have not come (or, below 0, the reverse).
    missing: i64,
    /// Per thread: how many phases it knows to have completed.
    seen: Vec<u32>,
}

impl State {
    fn arrive(&mut self, bytes: u32) -> Result<(), &'static str> {
        if self.arrived {
            return Err("more than one arrival in a phase");
        }
        self.arrived = true;
        self.missing += i64::from(bytes);
        self.complete();
        Ok(())
    }

    fn complete(&mut self) {
        if self.arrived && self.missing == 0 {
            self.arrived = false;
            self.phase += 1;
        }
    }

    fn see(&mut self, thread: u32) {
        self.seen[thread as usize] = self.phase;
    }
}

/// The `mbarrier`s and bulk copies of a block.
pub(super) struct Bulk {
    threads: usize,
    barriers: Vec<State>,
    copies: Vec<Copy>,
    /// Numbers of the copies whose bytes have not come yet.
    pending: Vec<usize>,
}

impl Bulk {
    pub(super) fn new(threads: usize) -> Self {
        Self { threads, barriers: Vec::new(), copies: Vec::new(), pending: Vec::new() }
    }

    pub(super) fn clear(&mut self) {
        self.barriers.clear();
        self.copies.clear();
        self.pending.clear();
    }

    pub(super) fn copies(&self) -> usize {
        self.copies.len()
    }

    fn init(&mut self, address: u32) -> Result<(), &'static str> {
        if self.barriers.iter().any(|barrier| barrier.address == address) {
            return Err("initialised twice");
        }
        let seen = vec![0; self.threads];
        self.barriers.push(State { address, phase: 0, arrived: false, missing: 0, seen });
        Ok(())
    }

    fn start(&mut self, copy: Copy) {
        self.pending.push(self.copies.len());
        self.copies.push(copy);
    }

    /// Whether the phase of parity `parity` has completed: as `mbarrier.try_wait.parity`.
    #[inline(always)]
    pub(super) fn has_passed(&self, barrier: usize, parity: u32) -> bool {
        self.barriers[barrier].phase % 2 != parity
    }

    /// Whether `thread` has waited, itself or through a barrier, for copy number `copy`.
    pub(super) fn has_seen(&self, copy: usize, thread: u32) -> bool {
        let copy = &self.copies[copy];
        copy.phase.is_some_and(|phase| self.barriers[copy.barrier].seen[thread as usize] > phase)
    }

    /// The threads in `threads` synchronise: what one of them has waited for, all have.
    #[inline(always)]
    pub(super) fn share(&mut self, threads: Range<usize>) {
        for barrier in &mut self.barriers {
            let seen = &mut barrier.seen[threads.clone()];
            let most = seen.iter().copied().max().unwrap_or(0);
            seen.fill(most);
        }
    }

    /// A moment at which a pending copy may happen to arrive. Whether one did.
    #[inline(always)]
    pub(super) fn progress(&mut self, block: &Block<'_>) -> bool {
        let arrives = !self.pending.is_empty() && block.random.borrow_mut().u32(0..ARRIVES_ONE_IN) == 0;
        arrives && self.deliver(block)
    }

    /// Lets one of the pending copies arrive. False if there is none.
    pub(super) fn deliver(&mut self, block: &Block<'_>) -> bool {
        if self.pending.is_empty() {
            return false;
        }
        let pick = block.random.borrow_mut().usize(0..self.pending.len());
        let copy = &mut self.copies[self.pending.swap_remove(pick)];
        for offset in 0..copy.bytes {
            // SAFETY: both sides were checked when the copy started; the launch keeps the source's
            // buffer alive.
            unsafe {
                let byte = u8::load(copy.source.add(offset as usize));
                u8::store(block.shared.pointer(copy.target + offset), byte);
            }
        }
        let barrier = &mut self.barriers[copy.barrier];
        copy.phase = Some(barrier.phase);
        barrier.missing -= i64::from(copy.bytes);
        barrier.complete();
        true
    }

    /// What is still open when all threads of a block have returned.
    pub(super) fn unfinished(&self) -> Option<(u32, Cause)> {
        let fault = |barrier: &State, what| Some((0, Cause::Barrier { address: barrier.address, what }));
        let most: Vec<u32> = self.barriers.iter().map(|b| b.seen.iter().copied().max().unwrap_or(0)).collect();
        // Whether such a copy has come in time is chance.
        let open = self.copies.iter().find(|copy| copy.phase.is_none_or(|phase| most[copy.barrier] <= phase));
        if let Some(copy) = open {
            return fault(&self.barriers[copy.barrier], "the block ends without a wait for its bulk copies");
        }
        let open = self.barriers.iter().find(|barrier| barrier.missing != 0)?;
        fault(open, "bulk copies brought more or fewer bytes than were announced")
    }

    /// A barrier's state, for people.
    pub(super) fn describe(&self, barrier: usize) -> String {
        let State { address, phase, arrived, missing, .. } = &self.barriers[barrier];
        let arrived = if *arrived { "a thread has arrived" } else { "no thread has arrived" };
        match missing {
            0 => format!("barrier at shared byte {address}, phase {phase}: {arrived}"),
            1.. => {
                format!("barrier at shared byte {address}, phase {phase}: {arrived}, {missing} announced bytes missing")
            }
            _ => format!("barrier at shared byte {address}, phase {phase}: {arrived}, {} bytes too many", -missing),
        }
    }
}
