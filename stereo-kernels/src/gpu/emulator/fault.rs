//! What a launch can be found guilty of.

use core::fmt;
use std::panic::Location;

/// A fault that the emulator found, and who committed it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[error("kernel {kernel}, block ({}, {}), thread {thread}{}: {cause}", block.0, block.1, At(*location))]
pub struct Fault {
    /// The kernel's entry name.
    pub kernel: &'static str,
    /// The block's x and y index.
    pub block: (u32, u32),
    /// The thread's index in its block; 0 for faults of a whole block or launch.
    pub thread: u32,
    /// The line of kernel code that made the faulty access, where there is one.
    pub location: Option<&'static Location<'static>>,
    /// What went wrong.
    #[source]
    pub cause: Cause,
}

struct At(Option<&'static Location<'static>>);

impl fmt::Display for At {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.map_or(Ok(()), |l| write!(f, ", {}:{}", l.file(), l.line()))
    }
}

/// What went wrong in a launch.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum Cause {
    /// The launch configuration is not one that a device would take.
    #[error("launch refused: {0}")]
    Launch(String),
    /// The memory for the emulated threads' stacks could not be had.
    #[error("no stack for an emulated thread: {0}")]
    Stack(String),
    /// The kernel called `trap`.
    #[error("trap")]
    Trap,
    /// The kernel panicked: an index out of range, an overflow, a failed assertion.
    #[error("panic: {0}")]
    Panic(String),
    /// An access outside the view's length.
    #[error("{access} of {bytes} bytes at byte {offset} of {space} memory, of which the view has {len}")]
    OutOfBounds {
        /// What the thread did.
        access: Access,
        /// Which memory it is about.
        space: Space,
        /// The access' first byte within the view.
        offset: u128,
        /// Bytes accessed.
        bytes: usize,
        /// Bytes in the view.
        len: usize,
    },
    /// An access through a pointer to no live emulated buffer, or past its end.
    #[error("{access} of {bytes} bytes at address {address:#x}, which lies in no emulated buffer")]
    Unmapped {
        /// What the thread did.
        access: Access,
        /// The address.
        address: usize,
        /// Bytes accessed.
        bytes: usize,
    },
    /// An address or a size that is not a multiple of what the access needs.
    #[error("{access} in {space} memory: {value} is not a multiple of {of}")]
    Misaligned {
        /// What the thread did.
        access: Access,
        /// Which memory it is about.
        space: Space,
        /// The address or size.
        value: usize,
        /// What it has to be a multiple of.
        of: usize,
    },
    /// A read of bytes that nobody wrote.
    #[error("{access} of {space} memory that nobody wrote, byte {offset}")]
    Uninitialised {
        /// What the thread did.
        access: Access,
        /// Which memory it is about.
        space: Space,
        /// The first such byte, from the start of the block's shared memory or of the buffer.
        offset: usize,
    },
    /// Two accesses to the same byte, at least one of them a write, that nothing orders.
    #[error("data race in {space} memory, byte {offset}: {access} is not ordered after the {earlier} by {by}")]
    Race {
        /// Which memory it is about.
        space: Space,
        /// The byte, from the start of the block's shared memory or of the buffer.
        offset: usize,
        /// What this thread did.
        access: Access,
        /// What the other one did.
        earlier: Access,
        /// Who the other one is.
        by: String,
    },
    /// The read-only path was used for memory that the same launch writes.
    #[error("read-only memory, byte {offset} of its buffer, is written in the same launch")]
    ReadOnlyWritten {
        /// The byte, from the start of the buffer.
        offset: usize,
    },
    /// A barrier or a shuffle that not all threads reach, or a wait that nothing ends.
    #[error("barrier/shuffle not reached by all named threads: {0}")]
    NotReached(Standstill),
    /// An `mbarrier` wait that can never end: announced and copied bytes differ, or nobody arrives.
    #[error("mbarrier wait never completes: {detail}; {threads}")]
    WaitNeverCompletes {
        /// The barrier's state.
        detail: String,
        /// Where all threads stand.
        threads: Standstill,
    },
    /// A read of bytes whose bulk copy this thread has not waited for.
    #[error("{access} of shared byte {offset} before waiting for the bulk copy that brings it")]
    NotWaitedFor {
        /// What the thread did.
        access: Access,
        /// The byte in shared memory.
        offset: usize,
    },
    /// A use of an `mbarrier` that breaks its protocol.
    #[error("mbarrier at shared byte {address}: {what}")]
    Barrier {
        /// The barrier's place in shared memory.
        address: u32,
        /// What is wrong with it.
        what: &'static str,
    },
}

/// A memory space.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Space {
    /// Device memory.
    Global,
    /// The block's shared memory.
    Shared,
}

impl fmt::Display for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Global => "global",
            Self::Shared => "shared",
        })
    }
}

/// A kind of access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Access {
    /// A load.
    Read,
    /// A store.
    Write,
    /// A read-modify-write.
    Atomic,
    /// A bulk copy's read of its source or write of its target.
    BulkCopy,
}

impl fmt::Display for Access {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic operation",
            Self::BulkCopy => "bulk copy",
        })
    }
}

/// Where the threads of a block stand when none can go on: ranges of threads (first, last) and what
/// they wait at.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Standstill(pub Vec<(u32, u32, String)>);

impl Standstill {
    /// Adds thread `thread`, the next one, which stands at `at`.
    pub(super) fn push(&mut self, thread: u32, at: String) {
        match self.0.last_mut() {
            Some((_, last, same)) if *same == at && *last + 1 == thread => *last = thread,
            _ => self.0.push((thread, thread, at)),
        }
    }
}

impl fmt::Display for Standstill {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (i, (first, last, at)) in self.0.iter().enumerate() {
            let separator = if i == 0 { "" } else { ", " };
            match first == last {
                true => write!(f, "{separator}thread {first} {at}")?,
                false => write!(f, "{separator}threads {first} to {last} {at}")?,
            }
        }
        Ok(())
    }
}
