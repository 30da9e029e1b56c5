//! Runs small kernels in the emulator, in many orders.
#![allow(dead_code, reason = "each test program uses a part")]

use stereo_kernels::{
    gpu::{
        emulator::{self, Buffer, Cause, Fault, Launch},
        global::{Global, GlobalMut},
    },
    kernel::Entry,
};

/// Seeds of the random orders that each kernel runs in.
const SEEDS: u64 = 12;

/// Elements of [`Views::input`], which holds 0, 1, 2, ....
pub const INPUT: usize = 1024;
/// Elements of [`Views::output`], which nobody has written.
pub const OUTPUT: usize = 1024;

stereo_kernels::kernels! {
    /// What the kernels under test work on.
    pub struct Views {
        /// Read-only.
        input: Global<u32>,
        /// Not written yet.
        output: GlobalMut<u32>,
        /// 64 bytes, zero.
        bytes: GlobalMut<u8>,
    }
}

/// Two blocks of two warps with 256 bytes of shared memory.
pub fn small() -> Launch {
    Launch { grid: (2, 1), block: 64, shared_bytes: 256, ..Launch::default() }
}

/// One block of two warps with 1024 bytes of shared memory.
pub fn single() -> Launch {
    Launch { grid: (1, 1), block: 64, shared_bytes: 1024, ..Launch::default() }
}

/// One run; gives the output, too.
pub fn run(launch: Launch, body: fn(Views)) -> (Result<(), Fault>, Vec<u32>) {
    let input = Buffer::from_slice(&(0..INPUT as u32).collect::<Vec<_>>());
    let mut output = Buffer::new(OUTPUT);
    let mut bytes = Buffer::new(64);
    bytes.fill(0_u8);
    let views = Views { input: input.global(), output: output.global_mut(), bytes: bytes.global_mut() };
    let result = emulator::launch(Entry { name: "planted", body }, views, launch);
    (result, output.download())
}

fn orders(launch: Launch) -> impl Iterator<Item = Launch> {
    let random = (0..SEEDS).map(move |seed| Launch { seed, random_order: true, ..launch });
    [launch].into_iter().chain(random)
}

/// The kernel has a fault of the expected kind, in every order.
#[track_caller]
pub fn faulty(launch: Launch, body: fn(Views), expected: fn(&Cause) -> bool) -> Fault {
    let faults = orders(launch).map(|launch| {
        let fault = run(launch, body).0.expect_err("the planted fault was not found");
        assert!(expected(&fault.cause), "seed {}, random order {}: {fault}", launch.seed, launch.random_order);
        assert_eq!(fault.kernel, "planted");
        fault
    });
    let faults: Vec<_> = faults.collect();
    faults[0].clone()
}

/// The kernel has no fault, in any order, and always the same output, which this gives.
#[track_caller]
pub fn clean(launch: Launch, body: fn(Views)) -> Vec<u32> {
    let parallel = orders(launch).map(|launch| Launch { parallel: true, ..launch });
    let fast = orders(launch).map(|launch| Launch { checks: false, ..launch });
    let mut outputs = orders(launch).chain(parallel).chain(fast).map(|launch| {
        let (result, output) = run(launch, body);
        if let Err(fault) = result {
            panic!("{launch:?}: {fault}");
        }
        output
    });
    let first = outputs.next().unwrap_or_default();
    assert!(outputs.all(|output| output == first), "the output depends on the order");
    first
}
