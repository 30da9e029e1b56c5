//! Planted data races, each beside a clean twin.

mod common;

use common::{Views, clean, faulty, single, small};
use stereo_kernels::gpu::{
    emulator::{Access, Cause, Launch, Space},
    shared::Shared,
    thread, warp,
};

fn words() -> Shared<u32> {
    Shared::dynamic(0, 64)
}

/// A missing order shows as a race or, when the read comes first, as a read of unwritten memory.
fn unordered(cause: &Cause) -> bool {
    matches!(
        cause,
        Cause::Race { space: Space::Shared, .. }
            | Cause::Uninitialised { space: Space::Shared, access: Access::Read, .. }
    )
}

fn race(cause: &Cause) -> bool {
    matches!(cause, Cause::Race { space: Space::Shared, .. })
}

fn global_race(cause: &Cause) -> bool {
    matches!(cause, Cause::Race { space: Space::Global, .. })
}

#[test]
fn a_barrier_orders_a_write_and_the_read_by_another_thread() {
    let with: fn(Views) = |v| {
        let i = thread::thread_idx_x();
        words().set(i, i);
        thread::sync_threads();
        v.output.set((thread::block_idx_x() * 64 + i) as usize, words().get(63 - i));
    };
    assert_eq!(clean(small(), with)[..3], [63, 62, 61]);
    let without: fn(Views) = |v| {
        let i = thread::thread_idx_x();
        words().set(i, i);
        v.output.set((thread::block_idx_x() * 64 + i) as usize, words().get(63 - i));
    };
    faulty(small(), without, unordered);
}

#[test]
fn a_barrier_orders_a_read_and_the_next_write() {
    let with: fn(Views) = |_| {
        let i = thread::thread_idx_x();
        for round in 0..3 {
            words().set(i, round);
            thread::sync_threads();
            words().get(63 - i);
            thread::sync_threads();
        }
    };
    clean(small(), with);
    let without: fn(Views) = |_| {
        let i = thread::thread_idx_x();
        for round in 0..3 {
            words().set(i, round);
            thread::sync_threads();
            words().get(63 - i);
        }
    };
    faulty(small(), without, race);
}

#[test]
fn two_threads_write_the_same_byte() {
    clean(small(), |_| Shared::<u8>::dynamic(0, 64).set(thread::thread_idx_x(), 1));
    let fault = faulty(small(), |_| Shared::<u8>::dynamic(0, 64).set(thread::thread_idx_x() / 2, 1), race);
    assert_eq!(
        fault.cause.to_string(),
        "data race in shared memory, byte 0: write is not ordered after the write by thread 0 of block (0, 0)"
    );
}

#[test]
fn several_readers_count() {
    // All read the word; then one of them writes it.
    fn body<const WRITER: u32>(_: Views) {
        let i = thread::thread_idx_x();
        if i == 0 {
            words().set(0, 1);
        }
        thread::sync_threads();
        let value = words().get(0);
        if i == WRITER {
            words().set(0, value + 1);
        }
    }
    for writer in [body::<0>, body::<31>, body::<32>, body::<63>] {
        faulty(single(), writer, race);
    }
    let fault = common::run(single(), body::<63>).0.unwrap_err();
    assert!(matches!(fault.cause, Cause::Race { access: Access::Write, earlier: Access::Read, .. }), "{fault}");
}

#[test]
fn sync_warp_orders_within_the_warp() {
    let within: fn(Views) = |_| {
        let i = thread::thread_idx_x();
        for round in 0..3 {
            words().set(i, round);
            warp::sync_warp();
            words().get(i ^ 1);
            warp::sync_warp();
        }
    };
    clean(single(), within);
    let across: fn(Views) = |_| {
        let i = thread::thread_idx_x();
        words().set(i, 1);
        warp::sync_warp();
        words().get(i ^ 32);
    };
    faulty(single(), across, unordered);
    let missing: fn(Views) = |_| {
        let i = thread::thread_idx_x();
        words().set(i, 1);
        words().get(i ^ 1);
    };
    faulty(single(), missing, unordered);
}

#[test]
fn shuffles_order_no_memory() {
    let body: fn(Views) = |_| {
        let i = thread::thread_idx_x();
        words().set(i, 1);
        warp::shuffle_xor(0, 1, warp::SIZE);
        words().get(i ^ 1);
    };
    faulty(single(), body, unordered);
}

#[test]
fn atomic_operations_race_with_all_but_themselves() {
    let atomics: fn(Views) = |v| {
        let i = thread::thread_idx_x();
        if i == 0 {
            words().set(0, u32::MAX);
        }
        thread::sync_threads();
        words().fetch_min(0, 100 - i);
        thread::sync_threads();
        v.output.set((thread::block_idx_x() * 64 + i) as usize, words().get(0));
    };
    assert_eq!(clean(small(), atomics)[0], 37);
    let read_too_early: fn(Views) = |_| {
        let i = thread::thread_idx_x();
        if i == 0 {
            words().set(0, u32::MAX);
        }
        thread::sync_threads();
        words().fetch_min(0, 100 - i);
        words().get(0);
    };
    faulty(small(), read_too_early, race);
    let set_too_late: fn(Views) = |_| {
        if thread::thread_idx_x() == 0 {
            words().set(0, u32::MAX);
        }
        words().fetch_min(0, 1);
    };
    faulty(small(), set_too_late, |cause| matches!(cause, Cause::Race { .. } | Cause::Uninitialised { .. }));
}

#[test]
fn blocks_are_not_ordered() {
    let own: fn(Views) = |v| v.output.set((thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize, 1);
    clean(small(), own);
    let same: fn(Views) = |v| {
        thread::sync_threads();
        v.output.set(thread::thread_idx_x() as usize, thread::block_idx_x());
    };
    let fault = faulty(small(), same, global_race);
    assert!(fault.cause.to_string().ends_with("by thread 0 of block (0, 0)"), "{fault}");
}

#[test]
fn blocks_that_read_and_write_the_same_element_race() {
    let body: fn(Views) = |v| {
        if thread::thread_idx_x() == 0 {
            if thread::block_idx_x() == 0 {
                v.bytes.get(5);
            } else {
                v.bytes.set(5, 1);
            }
        }
    };
    faulty(small(), body, global_race);
    // Several blocks that read do not hide each other.
    let many: fn(Views) = |v| {
        if thread::block_idx_x() < 3 {
            v.bytes.get(5);
        } else if thread::thread_idx_x() == 0 {
            v.bytes.set(5, 1);
        }
    };
    faulty(Launch { grid: (4, 1), ..small() }, many, global_race);
    let neighbours: fn(Views) = |v| {
        if thread::thread_idx_x() == 0 {
            let block = thread::block_idx_x() as usize;
            v.bytes.set(block, v.bytes.get(block) + 1);
        }
    };
    clean(Launch { grid: (4, 1), ..small() }, neighbours);
}

#[test]
fn within_a_block_global_memory_is_as_shared() {
    let with: fn(Views) = |v| {
        let i = thread::thread_idx_x() as usize;
        v.output.set(i, 1);
        thread::sync_threads();
        v.output.get(63 - i);
    };
    clean(single(), with);
    let without: fn(Views) = |v| {
        let i = thread::thread_idx_x() as usize;
        v.bytes.set(i, 1);
        v.bytes.get(63 - i);
    };
    faulty(single(), without, global_race);
}

#[test]
fn global_atomic_operations_of_several_blocks_are_fine() {
    use stereo_kernels::{
        gpu::{
            emulator::{self, Buffer},
            global::GlobalMut,
        },
        kernel::Entry,
    };
    stereo_kernels::kernels! {
        /// One word.
        pub struct Lowest { word: GlobalMut<u32>, }
    }
    for (launch, seed) in [small(), Launch { parallel: true, ..small() }].into_iter().zip(0..) {
        let launch = Launch { random_order: true, seed, ..launch };
        let mut word = Buffer::from_slice(&[u32::MAX]);
        let args = Lowest { word: word.global_mut() };
        let all: fn(Lowest) = |a| a.word.fetch_min(0, 500 - thread::block_idx_x() * 64 - thread::thread_idx_x());
        emulator::launch(Entry { name: "lowest", body: all }, args, launch).unwrap();
        assert_eq!(word.download(), [500 - 127]);
    }
    let mut word = Buffer::from_slice(&[u32::MAX]);
    let args = Lowest { word: word.global_mut() };
    let mixed: fn(Lowest) = |a| match thread::block_idx_x() {
        0 => a.word.fetch_min(0, 1),
        _ => a.word.set(0, 1),
    };
    let fault = emulator::launch(Entry { name: "lowest", body: mixed }, args, small()).unwrap_err();
    assert!(matches!(fault.cause, Cause::Race { earlier: Access::Atomic, .. }), "{fault}");
}
