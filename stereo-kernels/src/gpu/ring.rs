//! A ring of stages in shared memory that bulk copies fill ahead of their use: the barriers, and the
//! wait-then-turn-the-phase step that every user needs, once.

use super::{bulk::Barrier, thread};

/// Bytes of one stage's barrier.
const BARRIER_BYTES: u32 = 8;

/// The stages of a ring, in the order in which they are filled and used. Every thread of the block
/// holds one; they move in step.
pub struct Ring {
    offset: u32,
    stages: u32,
    stage: u32,
    parity: u32,
}

impl Ring {
    /// Bytes of shared memory for the barriers of `stages` stages, a multiple of 128 so that data
    /// behind them is aligned.
    pub const fn bytes(stages: u32) -> u32 {
        (stages * BARRIER_BYTES).next_multiple_of(128)
    }

    /// Sets the barriers up, `offset` bytes into dynamic shared memory; the block synchronises.
    #[inline(always)]
    pub fn new(offset: u32, stages: u32) -> Self {
        let ring = Self { offset, stages, stage: 0, parity: 0 };
        if thread::thread_idx_x() == 0 {
            let mut stage = 0;
            while stage < stages {
                ring.barrier(stage).init();
                stage += 1;
            }
        }
        thread::sync_threads();
        ring
    }

    /// The barrier on which copies into `stage` complete.
    #[inline(always)]
    pub fn barrier(&self, stage: u32) -> Barrier {
        Barrier::dynamic(self.offset + stage * BARRIER_BYTES)
    }

    /// Waits until the next stage is filled and returns it.
    #[inline(always)]
    pub fn wait(&mut self) -> u32 {
        let stage = self.stage;
        self.barrier(stage).in_phase(self.parity).wait();
        self.stage += 1;
        if self.stage == self.stages {
            self.stage = 0;
            self.parity ^= 1;
        }
        stage
    }
}
