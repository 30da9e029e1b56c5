//! Runs the blocks of a launch: one coroutine per thread, barriers and shuffles as rendezvous.
//!
//! A thread runs until it waits for others; then the next one of its warp runs. When all lanes of a
//! warp wait at the same warp operation, it is carried out and they go on; when all threads of the
//! block wait at the block barrier, it opens. When nothing can go on, the block has deadlocked, and
//! that is a fault that names where each thread stands.

use core::{
    cell::{Cell, RefCell},
    ptr,
};
use std::{
    any::Any,
    panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind},
    sync::{Mutex, PoisonError},
};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};

use super::{
    Launch,
    bulk::Bulk,
    fault::{Cause, Fault, Standstill},
    memory::{Mapped, Memory},
    shadow::Record,
    shared::SharedMemory,
    warp::{self, Kind, Op},
};

/// Address space of a thread's stack; only the pages that are used take memory. Ample for a panic's
/// message and backtrace.
const STACK_BYTES: usize = 256 * 1024;

/// In random order: one in so many chances to switch warps between two rendezvous is taken.
const SWITCH_ONE_IN: u32 = 4;

/// What a thread waits for.
#[derive(Debug, Clone, Copy)]
pub(super) enum Wait {
    Nothing,
    Warp { op: Op, at: &'static Location<'static> },
    Block { at: &'static Location<'static> },
    Bulk { barrier: usize, parity: u32, at: &'static Location<'static> },
    Returned,
}

/// An emulated thread.
struct Thread {
    wait: Cell<Wait>,
    /// What the last shuffle brought.
    result: Cell<u32>,
    yielder: Cell<*const Yielder<(), ()>>,
}

/// What all blocks of a launch share.
pub(super) struct Context<'a> {
    pub(super) kernel: &'static str,
    pub(super) launch: &'a Launch,
    pub(super) memory: &'a Memory,
}

/// The block that a worker runs at present; `with` gives it to the code of its threads.
pub(super) struct Block<'a> {
    context: &'a Context<'a>,
    index: Cell<(u32, u32)>,
    linear: Cell<u32>,
    current: Cell<u32>,
    threads: Box<[Thread]>,
    epoch: Cell<u32>,
    warp_epochs: Box<[Cell<u32>]>,
    pub(super) shared: SharedMemory,
    pub(super) bulk: RefCell<Bulk>,
    fault: RefCell<Option<Fault>>,
    faulted: Cell<bool>,
    pub(super) random: RefCell<fastrand::Rng>,
    /// See [`Memory::find`].
    last_buffer: Cell<usize>,
}

thread_local! {
    /// The block whose thread this host thread is running; null outside of a launch.
    static CURRENT: Cell<*const ()> = const { Cell::new(ptr::null()) };
}

/// Calls `f` with the block of the emulated thread that runs.
#[inline(always)]
pub(super) fn with<R>(f: impl FnOnce(&Block<'_>) -> R) -> R {
    let block = CURRENT.get().cast::<Block<'_>>();
    assert!(!block.is_null(), "device code runs outside of an emulated launch");
    // SAFETY: `Worker::run` sets the pointer to a block that outlives all its threads' code, and
    // clears it before the block goes.
    f(unsafe { &*block })
}

/// What unwinds a thread that has committed a fault.
struct Faulted;

impl Block<'_> {
    #[inline(always)]
    pub(super) fn thread(&self) -> u32 {
        self.current.get()
    }

    #[inline(always)]
    pub(super) fn index(&self) -> (u32, u32) {
        self.index.get()
    }

    #[inline(always)]
    pub(super) fn grid(&self) -> (u32, u32) {
        self.context.launch.grid
    }

    #[inline(always)]
    pub(super) fn size(&self) -> u32 {
        self.context.launch.block
    }

    #[inline(always)]
    pub(super) fn checks(&self) -> bool {
        self.context.launch.checks
    }

    /// The buffer that holds the `bytes` bytes at `address`, and where in it they are.
    #[inline(always)]
    pub(super) fn find(&self, address: usize, bytes: usize) -> Option<(&Mapped, usize)> {
        self.context.memory.find(address, bytes, &self.last_buffer)
    }

    /// The record of an access by the current thread.
    #[inline(always)]
    pub(super) fn now(&self) -> Record {
        let thread = self.thread();
        let warp_epoch = self.warp_epochs[(thread / warp::SIZE) as usize].get();
        Record::new(self.linear.get(), self.epoch.get(), warp_epoch, thread)
    }

    /// Whether the current thread has waited for the bulk copy number `copy`.
    pub(super) fn has_seen(&self, copy: usize) -> bool {
        self.bulk.borrow().has_seen(copy, self.thread())
    }

    /// The number that the next bulk copy gets.
    pub(super) fn next_copy(&self) -> usize {
        self.bulk.borrow().copies()
    }

    /// Ends the current thread and with it the launch.
    #[cold]
    pub(super) fn fault(&self, location: Option<&'static Location<'static>>, cause: Cause) -> ! {
        self.note(location, cause);
        resume_unwind(Box::new(Faulted))
    }

    fn note(&self, location: Option<&'static Location<'static>>, cause: Cause) {
        // Of several faults the first counts: the others are made by unwinding.
        if !self.faulted.replace(true) {
            let (kernel, block, thread) = (self.context.kernel, self.index(), self.thread());
            *self.fault.borrow_mut() = Some(Fault { kernel, block, thread, location, cause });
        }
    }

    /// The body panicked.
    #[cold]
    fn panicked(&self, payload: &(dyn Any + Send)) {
        if payload.is::<Faulted>() {
            return;
        }
        let message = match (payload.downcast_ref::<&str>(), payload.downcast_ref::<String>()) {
            (Some(message), _) => (*message).to_owned(),
            (_, Some(message)) => message.clone(),
            _ => "with a payload that is no text".to_owned(),
        };
        self.note(None, Cause::Panic(message));
    }

    /// Suspends the current thread until what it waits for has come.
    #[inline(always)]
    pub(super) fn suspend(&self, wait: Wait) {
        let thread = &self.threads[self.thread() as usize];
        thread.wait.set(wait);
        // SAFETY: the thread's coroutine has set its yielder before it ran the body, is the one that
        // runs now, and the yielder lives as long as it.
        unsafe { &*thread.yielder.get() }.suspend(());
    }

    /// Suspends the current thread until all lanes of its warp have reached the same operation.
    #[inline(always)]
    pub(super) fn meet(&self, op: Op, at: &'static Location<'static>) -> u32 {
        self.suspend(Wait::Warp { op, at });
        self.threads[self.thread() as usize].result.get()
    }

    #[inline(always)]
    fn can_run(&self, thread: u32) -> bool {
        match self.threads[thread as usize].wait.get() {
            Wait::Nothing => true,
            Wait::Bulk { barrier, parity, .. } => self.bulk.borrow().has_passed(barrier, parity),
            _ => false,
        }
    }

    /// Carries out the warp operation that all lanes of `warp` wait at, if that is so.
    fn meet_in_warp(&self, warp: u32) -> bool {
        let first = (warp * warp::SIZE) as usize;
        let lanes = &self.threads[first..first + warp::SIZE as usize];
        let Wait::Warp { op: Op { kind, .. }, .. } = lanes[0].wait.get() else { return false };
        let (mut values, mut sources) = ([0; warp::SIZE as usize], [0; warp::SIZE as usize]);
        for (i, lane) in lanes.iter().enumerate() {
            match lane.wait.get() {
                Wait::Warp { op, .. } if op.kind == kind => {
                    values[i] = op.value;
                    sources[i] = warp::source(op, i as u32);
                }
                _ => return false,
            }
        }
        if kind == Kind::Sync {
            let epoch = &self.warp_epochs[warp as usize];
            epoch.set(epoch.get().wrapping_add(1));
            self.bulk.borrow_mut().share(first..first + warp::SIZE as usize);
        }
        for (lane, source) in lanes.iter().zip(sources) {
            lane.result.set(values[source as usize]);
            lane.wait.set(Wait::Nothing);
        }
        true
    }

    /// Opens the block barrier, if all threads wait there.
    fn meet_in_block(&self) -> bool {
        if !self.threads.iter().all(|thread| matches!(thread.wait.get(), Wait::Block { .. })) {
            return false;
        }
        self.epoch.set(self.epoch.get().wrapping_add(1));
        self.bulk.borrow_mut().share(0..self.threads.len());
        for thread in &self.threads {
            thread.wait.set(Wait::Nothing);
        }
        true
    }

    /// Nothing can go on, and not all threads have returned.
    #[cold]
    fn deadlock(&self) {
        let mut threads = Standstill::default();
        let mut bulk = None;
        let mut first = None;
        for (i, thread) in (0..).zip(&self.threads) {
            let wait = thread.wait.get();
            let (place, at) = match wait {
                Wait::Nothing => ("able to run".to_owned(), None),
                Wait::Warp { op, at } => (format!("waiting at {op}, {}:{}", at.file(), at.line()), Some(at)),
                Wait::Block { at } => (format!("waiting at sync_threads, {}:{}", at.file(), at.line()), Some(at)),
                Wait::Bulk { at, .. } => (format!("waiting at an mbarrier, {}:{}", at.file(), at.line()), Some(at)),
                Wait::Returned => ("returned".to_owned(), None),
            };
            threads.push(i, place);
            first = first.or(at.map(|at| (i, at)));
            if let Wait::Bulk { barrier, at, .. } = wait {
                bulk = bulk.or(Some((i, barrier, at)));
            }
        }
        let (thread, at, cause) = match (bulk, first) {
            (Some((i, barrier, at)), _) => {
                let detail = self.bulk.borrow().describe(barrier);
                (i, Some(at), Cause::WaitNeverCompletes { detail, threads })
            }
            (None, Some((i, at))) => (i, Some(at), Cause::NotReached(threads)),
            (None, None) => (0, None, Cause::NotReached(threads)),
        };
        self.current.set(thread);
        self.note(at, cause);
    }
}

/// Stacks of finished launches, for the next ones.
static STACKS: Mutex<Vec<DefaultStack>> = Mutex::new(Vec::new());

/// Runs blocks, one after another, on the host thread that made it.
pub(super) struct Worker<'a> {
    block: Block<'a>,
    stacks: Vec<DefaultStack>,
    coroutines: Vec<Coroutine<(), (), ()>>,
    warps: Vec<u32>,
}

impl<'a> Worker<'a> {
    pub(super) fn new(context: &'a Context<'a>) -> Result<Self, Fault> {
        let Launch { block: size, shared_bytes, checks, .. } = *context.launch;
        let mut stacks = STACKS.lock().unwrap_or_else(PoisonError::into_inner);
        let spare = stacks.len().saturating_sub(size as usize);
        let mut stacks = stacks.split_off(spare);
        while stacks.len() < size as usize {
            let stack = DefaultStack::new(STACK_BYTES);
            stacks.push(stack.map_err(|e| context.refusal(Cause::Stack(e.to_string())))?);
        }
        let thread =
            || Thread { wait: Cell::new(Wait::Nothing), result: Cell::new(0), yielder: Cell::new(ptr::null()) };
        let warps = size / warp::SIZE;
        let block = Block {
            context,
            index: Cell::new((0, 0)),
            linear: Cell::new(0),
            current: Cell::new(0),
            threads: (0..size).map(|_| thread()).collect(),
            epoch: Cell::new(0),
            warp_epochs: (0..warps).map(|_| Cell::new(0)).collect(),
            shared: SharedMemory::new(shared_bytes, checks),
            bulk: RefCell::new(Bulk::new(size as usize)),
            fault: RefCell::new(None),
            faulted: Cell::new(false),
            random: RefCell::new(fastrand::Rng::with_seed(0)),
            last_buffer: Cell::new(0),
        };
        Ok(Self { block, stacks, coroutines: Vec::new(), warps: (0..warps).collect() })
    }

    /// Runs block number `linear`, whose threads all call `body`.
    pub(super) fn run(&mut self, linear: u32, body: &(dyn Fn() + Sync)) -> Result<(), Fault> {
        self.begin(linear);
        // The body is called only in this function, by coroutines that end in it.
        // SAFETY: the two types differ in the lifetime alone, which the coroutines stay within.
        let body: &'static (dyn Fn() + Sync) = unsafe { core::mem::transmute(body) };
        let coroutine = |stack| {
            Coroutine::with_stack(stack, move |yielder: &Yielder<(), ()>, ()| {
                with(|block| block.threads[block.thread() as usize].yielder.set(yielder));
                if let Err(payload) = catch_unwind(AssertUnwindSafe(body)) {
                    with(|block| block.panicked(&*payload));
                }
            })
        };
        self.coroutines.extend(self.stacks.drain(..).map(coroutine));
        CURRENT.set((&raw const self.block).cast());
        while self.round() {}
        for mut coroutine in self.coroutines.drain(..) {
            // Threads that have not returned are unwound; that they fault on the way counts for nothing.
            coroutine.force_unwind();
            self.stacks.push(coroutine.into_stack());
        }
        CURRENT.set(ptr::null());
        match self.block.fault.take() {
            Some(fault) => Err(fault),
            None => Ok(()),
        }
    }

    fn begin(&mut self, linear: u32) {
        let block = &mut self.block;
        let grid_width = block.context.launch.grid.0;
        block.index.set((linear % grid_width, linear / grid_width));
        block.linear.set(linear);
        block.epoch.set(0);
        block.warp_epochs.iter().for_each(|epoch| epoch.set(0));
        block.threads.iter().for_each(|thread| thread.wait.set(Wait::Nothing));
        block.faulted.set(false);
        block.shared.poison();
        block.bulk.get_mut().clear();
        // Each block has a seed of its own, so that its course depends on no other block's.
        *block.random.get_mut() = fastrand::Rng::with_seed(block.context.launch.seed ^ (u64::from(linear) << 32));
    }

    /// Lets each warp go on as far as it can. False when the block has ended, well or not.
    fn round(&mut self) -> bool {
        if self.block.context.launch.random_order {
            self.block.random.get_mut().shuffle(&mut self.warps);
        }
        let mut moved = false;
        for i in 0..self.warps.len() {
            moved |= self.run_warp(self.warps[i]);
            if self.block.faulted.get() {
                return false;
            }
            moved |= self.block.bulk.borrow_mut().progress(&self.block);
        }
        if self.block.threads.iter().all(|thread| matches!(thread.wait.get(), Wait::Returned)) {
            if let Some((barrier, cause)) = self.block.bulk.borrow().unfinished() {
                self.block.current.set(barrier);
                self.block.note(None, cause);
            }
            return false;
        }
        if self.block.meet_in_block() || moved || self.block.bulk.borrow_mut().deliver(&self.block) {
            return true;
        }
        self.block.deadlock();
        false
    }

    /// Lets the lanes of `warp` go on until none can. Whether any did.
    fn run_warp(&mut self, warp: u32) -> bool {
        let first = warp * warp::SIZE;
        let random_order = self.block.context.launch.random_order;
        let mut lanes: [u32; warp::SIZE as usize] = core::array::from_fn(|i| first + i as u32);
        let mut moved = false;
        loop {
            if random_order {
                self.block.random.get_mut().shuffle(&mut lanes);
            }
            for thread in lanes {
                if self.block.can_run(thread) {
                    moved = true;
                    self.resume(thread);
                    if self.block.faulted.get() {
                        return moved;
                    }
                }
            }
            if !self.block.meet_in_warp(warp) {
                return moved;
            }
            moved = true;
            if random_order && self.block.random.get_mut().u32(0..SWITCH_ONE_IN) == 0 {
                return moved;
            }
        }
    }

    #[inline(always)]
    fn resume(&mut self, thread: u32) {
        self.block.current.set(thread);
        if let CoroutineResult::Return(()) = self.coroutines[thread as usize].resume(()) {
            self.block.threads[thread as usize].wait.set(Wait::Returned);
        }
    }
}

impl Drop for Worker<'_> {
    fn drop(&mut self) {
        STACKS.lock().unwrap_or_else(PoisonError::into_inner).append(&mut self.stacks);
    }
}

impl Context<'_> {
    /// A fault of the launch as a whole.
    pub(super) fn refusal(&self, cause: Cause) -> Fault {
        Fault { kernel: self.kernel, block: (0, 0), thread: 0, location: None, cause }
    }
}
