//! Bulk copies and their `mbarrier`: late arrival, and what goes wrong without the waits.

mod common;

use common::{Views, clean, faulty, single};
use stereo_kernels::gpu::{
    bulk::{self, Barrier},
    emulator::{Cause, Launch, Space},
    shared::Shared,
    thread, warp,
};

/// Words that one copy brings.
const WORDS: u32 = 64;
const BYTES: u32 = WORDS * 4;
/// The barriers lie behind two buffers.
const BARRIERS: u32 = 2 * BYTES;

fn buffer(number: u32) -> Shared<u32> {
    Shared::dynamic(number * BYTES, WORDS)
}

/// A barrier that thread 0 has set up.
fn barrier(number: u32) -> Barrier {
    let barrier = Barrier::dynamic(BARRIERS + 8 * number);
    if thread::thread_idx_x() == 0 {
        barrier.init();
    }
    thread::sync_threads();
    barrier
}

/// Thread 0 announces and starts the copy of the input's part `part` to a buffer.
fn start(v: Views, to: u32, part: u32, barrier: Barrier) {
    if thread::thread_idx_x() == 0 {
        barrier.arrive_expect(BYTES);
        bulk::copy(buffer(to), 0, v.input, (part * WORDS) as usize, BYTES, barrier);
    }
}

fn index() -> u32 {
    thread::thread_idx_x()
}

#[test]
fn a_wait_brings_the_bytes() {
    let body: fn(Views) = |v| {
        let mut barrier = barrier(0);
        start(v, 0, 3, barrier);
        barrier.wait();
        v.output.set(index() as usize, buffer(0).get(63 - index()));
    };
    let output = clean(single(), body);
    assert!((0..64).all(|i| output[i] == 3 * 64 + 63 - i as u32));
}

#[test]
fn double_buffering_with_a_barrier_before_reuse() {
    let body: fn(Views) = |v| {
        let mut barriers = [barrier(0), barrier(1)];
        start(v, 0, 0, barriers[0]);
        let mut sum = 0;
        for part in 0..9 {
            let now = part % 2;
            if part + 1 < 9 {
                start(v, 1 - now, part + 1, barriers[1 - now as usize]);
            }
            barriers[now as usize].wait();
            sum += buffer(now).get(63 - index());
            thread::sync_threads();
        }
        v.output.set(index() as usize, sum);
    };
    let output = clean(single(), body);
    assert_eq!(output[0], (0..9).map(|part| part * 64 + 63).sum::<u32>());
}

#[test]
fn copies_into_a_buffer_that_is_still_read() {
    let body: fn(Views) = |v| {
        let mut barrier = barrier(0);
        for part in 0..2 {
            start(v, 0, part, barrier);
            barrier.wait();
            buffer(0).get(index());
            // No block barrier before the next copy.
        }
    };
    faulty(single(), body, |cause| {
        matches!(cause, Cause::Race { space: Space::Shared, .. } | Cause::NotWaitedFor { .. })
    });
}

#[test]
fn the_starting_thread_s_own_accesses_count_too() {
    let body: fn(Views) = |v| {
        let mut barrier = barrier(0);
        if index() == 0 {
            buffer(0).set(0, 1);
        }
        start(v, 0, 0, barrier);
        barrier.wait();
    };
    faulty(single(), body, |cause| matches!(cause, Cause::Race { space: Space::Shared, .. }));
    let synchronised: fn(Views) = |v| {
        let mut barrier = barrier(0);
        if index() == 0 {
            buffer(0).set(0, 1);
        }
        thread::sync_threads();
        start(v, 0, 0, barrier);
        barrier.wait();
        buffer(0).get(0);
    };
    clean(single(), synchronised);
}

#[test]
fn reads_before_the_wait() {
    let never: fn(Views) = |v| {
        let mut barrier = barrier(0);
        start(v, 0, 0, barrier);
        thread::sync_threads();
        buffer(0).get(index());
        barrier.wait();
    };
    faulty(single(), never, |cause| matches!(cause, Cause::NotWaitedFor { .. }));
    // That the bytes have come does not help a thread that has not waited.
    let others: fn(Views) = |v| {
        let mut barrier = barrier(0);
        start(v, 0, 0, barrier);
        if index() < warp::SIZE {
            barrier.wait();
        } else {
            buffer(0).get(index());
        }
    };
    faulty(single(), others, |cause| matches!(cause, Cause::NotWaitedFor { .. } | Cause::Uninitialised { .. }));
    let wrong_phase: fn(Views) = |v| {
        let mut barrier = barrier(0);
        start(v, 0, 0, barrier);
        barrier.wait();
        thread::sync_threads();
        start(v, 1, 1, barrier);
        thread::sync_threads();
        buffer(1).get(index());
        barrier.wait();
    };
    faulty(single(), wrong_phase, |cause| matches!(cause, Cause::NotWaitedFor { .. }));
}

#[test]
fn one_warp_waits_and_a_block_barrier_tells_the_others() {
    let body: fn(Views) = |v| {
        let mut barrier = barrier(0);
        start(v, 0, 1, barrier);
        if index() < warp::SIZE {
            barrier.wait();
        }
        thread::sync_threads();
        v.output.set(index() as usize, buffer(0).get(index()));
    };
    assert_eq!(clean(single(), body)[5], 69);
}

#[test]
fn without_checks_late_bytes_still_show() {
    let body: fn(Views) = |v| {
        let mut barrier = barrier(0);
        start(v, 0, 0, barrier);
        let early = buffer(0).get(0);
        v.output.set(index() as usize, early);
        barrier.wait();
    };
    let (result, output) = common::run(Launch { checks: false, ..single() }, body);
    assert_eq!(result, Ok(()));
    assert_ne!(output[0], 0, "the input's first element came before anybody waited");
}

#[test]
fn waits_that_never_complete() {
    let forever = |cause: &Cause| matches!(cause, Cause::WaitNeverCompletes { .. });
    let too_many_announced: fn(Views) = |v| {
        let mut barrier = barrier(0);
        if index() == 0 {
            barrier.arrive_expect(BYTES + 16);
            bulk::copy(buffer(0), 0, v.input, 0, BYTES, barrier);
        }
        barrier.wait();
    };
    let fault = faulty(single(), too_many_announced, forever);
    assert!(fault.to_string().contains("16 announced bytes missing"), "{fault}");
    let too_few_announced: fn(Views) = |v| {
        let mut barrier = barrier(0);
        if index() == 0 {
            barrier.arrive_expect(BYTES - 16);
            bulk::copy(buffer(0), 0, v.input, 0, BYTES, barrier);
        }
        barrier.wait();
    };
    let fault = faulty(single(), too_few_announced, forever);
    assert!(fault.to_string().contains("16 bytes too many"), "{fault}");
    let nobody_arrives: fn(Views) = |v| {
        let mut barrier = barrier(0);
        if index() == 0 {
            bulk::copy(buffer(0), 0, v.input, 0, BYTES, barrier);
        }
        barrier.wait();
    };
    let fault = faulty(single(), nobody_arrives, forever);
    assert!(fault.to_string().contains("no thread has arrived"), "{fault}");
    let parity_not_turned: fn(Views) = |v| {
        let barrier = barrier(0);
        start(v, 0, 0, barrier);
        for _ in 0..2 {
            let mut stale = barrier;
            stale.wait();
            thread::sync_threads();
            start(v, 0, 1, barrier);
            stale.wait();
            thread::sync_threads();
        }
    };
    // Two phases on, the stale parity waits for a third one.
    faulty(single(), parity_not_turned, |cause| {
        matches!(cause, Cause::WaitNeverCompletes { .. } | Cause::Barrier { .. } | Cause::Race { .. })
    });
}

#[test]
fn nothing_is_open_when_the_block_ends() {
    let no_wait: fn(Views) = |v| start(v, 0, 0, barrier(0));
    faulty(
        single(),
        no_wait,
        |cause| matches!(cause, Cause::Barrier { what, .. } if what.contains("ends without a wait")),
    );
}

#[test]
fn announced_bytes_are_those_of_all_copies() {
    let two: fn(Views) = |v| {
        let mut barrier = barrier(0);
        if index() == 0 {
            barrier.arrive_expect(2 * BYTES);
            bulk::copy(buffer(0), 0, v.input, 0, BYTES, barrier);
            bulk::copy(buffer(1), 0, v.input, 64, BYTES, barrier);
        }
        barrier.wait();
        v.output.set(index() as usize, buffer(0).get(index()) + buffer(1).get(index()));
    };
    assert_eq!(clean(single(), two)[1], 1 + 65);
    let second_not_announced: fn(Views) = |v| {
        let mut barrier = barrier(0);
        if index() == 0 {
            barrier.arrive_expect(BYTES);
            bulk::copy(buffer(0), 0, v.input, 0, BYTES, barrier);
            bulk::copy(buffer(1), 0, v.input, 64, BYTES, barrier);
        }
        barrier.wait();
    };
    faulty(single(), second_not_announced, |cause| {
        matches!(cause, Cause::Barrier { .. } | Cause::WaitNeverCompletes { .. })
    });
}

#[test]
fn addresses_and_sizes_are_multiples_of_16() {
    fn body<const TO: u32, const FROM: usize, const BYTES: u32>(v: Views) {
        let mut barrier = barrier(0);
        if index() == 0 {
            barrier.arrive_expect(BYTES);
            bulk::copy(buffer(0), TO, v.input, FROM, BYTES, barrier);
        }
        barrier.wait();
    }
    clean(single(), body::<4, 8, 48>);
    let misaligned = |cause: &Cause| matches!(cause, Cause::Misaligned { of: 16, .. });
    faulty(single(), body::<2, 8, 48>, misaligned);
    faulty(single(), body::<4, 9, 48>, misaligned);
    faulty(single(), body::<4, 8, 40>, misaligned);
    let outside = |cause: &Cause| matches!(cause, Cause::OutOfBounds { .. });
    faulty(single(), body::<4, 8, BYTES>, outside);
    faulty(single(), body::<0, 1000, 128>, outside);
}

#[test]
fn barriers_are_set_up_first() {
    let never: fn(Views) = |_| Barrier::dynamic(BARRIERS).arrive_expect(16);
    faulty(single(), never, |cause| matches!(cause, Cause::Barrier { what: "used before it was initialised", .. }));
    let not_synchronised: fn(Views) = |v| {
        let mut barrier = Barrier::dynamic(BARRIERS);
        if index() == 0 {
            barrier.init();
        }
        start(v, 0, 0, barrier);
        barrier.wait();
    };
    faulty(single(), not_synchronised, |cause| matches!(cause, Cause::Race { .. } | Cause::Barrier { .. }));
    let twice: fn(Views) = |_| Barrier::dynamic(BARRIERS).init();
    faulty(single(), twice, |cause| matches!(cause, Cause::Race { .. }));
    let two_arrivals: fn(Views) = |_| {
        let barrier = barrier(0);
        if index() < 2 {
            barrier.arrive_expect(16);
        }
    };
    faulty(single(), two_arrivals, |cause| {
        matches!(cause, Cause::Barrier { what: "more than one arrival in a phase", .. })
    });
    let misplaced: fn(Views) = |_| Barrier::dynamic(BARRIERS + 4).init();
    faulty(single(), misplaced, |cause| matches!(cause, Cause::Misaligned { of: 8, .. }));
}
