//! Barriers and shuffles: what they do, and what happens when not all threads reach them.

mod common;

use common::{Views, clean, faulty, run, single, small};
use stereo_kernels::gpu::{
    emulator::{Cause, Launch, Standstill},
    thread,
    warp::{self, SIZE},
};

/// The lane that PTX's `shfl.sync` reads, from its pseudo code: `clamp` and `segment` are the two
/// parts of the operand `c`.
fn source(kind: usize, lane: u32, argument: u32, width: u32) -> u32 {
    let clamp = if kind == 1 { 0 } else { SIZE - 1 };
    let segment = (SIZE - width) & 31;
    let most = (lane & segment) | (clamp & !segment & 31);
    let least = lane & segment;
    let b = argument & 31;
    let (j, valid) = match kind {
        0 => (lane ^ b, (lane ^ b) <= most),
        1 => (lane.wrapping_sub(b), lane as i32 - b as i32 >= most as i32),
        2 => (lane + b, lane + b <= most),
        _ => (least | (b & !segment), (least | (b & !segment)) <= most),
    };
    if valid { j } else { lane }
}

#[test]
fn shuffles_read_the_lane_that_ptx_says() {
    let body: fn(Views) = |_| {
        let lane = warp::lane_id();
        let value = |lane: u32| 1000 + 3 * lane;
        for width in [1, 2, 4, 8, 16, 32] {
            for argument in 0..40 {
                let got = [
                    warp::shuffle_xor(value(lane), argument, width),
                    warp::shuffle_up(value(lane), argument, width),
                    warp::shuffle_down(value(lane), argument, width),
                    warp::shuffle_idx(value(lane), argument, width),
                ];
                for (kind, got) in got.into_iter().enumerate() {
                    let expected = value(source(kind, lane, argument, width));
                    assert_eq!(got, expected, "kind {kind}, lane {lane}, argument {argument}, width {width}");
                }
            }
        }
    };
    clean(single(), body);
}

#[test]
fn shuffles_take_each_lane_s_own_argument() {
    let body: fn(Views) = |v| {
        let lane = warp::lane_id();
        let reversed = warp::shuffle_idx(lane, SIZE - 1 - lane, SIZE);
        v.output.set((thread::block_idx_x() * 64 + thread::thread_idx_x()) as usize, reversed);
    };
    let output = clean(small(), body);
    assert!((0..128).all(|i| output[i] == 31 - i as u32 % 32));
}

#[test]
fn a_shuffle_s_width_is_a_power_of_two() {
    let body: fn(Views) = |_| {
        warp::shuffle_xor(0, 1, 12);
    };
    faulty(single(), body, |cause| matches!(cause, Cause::Panic(text) if text.contains("groups of 12 lanes")));
}

fn not_reached(cause: &Cause) -> bool {
    matches!(cause, Cause::NotReached(_))
}

#[test]
fn all_threads_of_the_block_reach_its_barrier() {
    clean(small(), |_| thread::sync_threads());
    let some: fn(Views) = |_| {
        if thread::thread_idx_x() < 40 {
            thread::sync_threads();
        }
    };
    let fault = faulty(small(), some, not_reached);
    let Cause::NotReached(Standstill(threads)) = &fault.cause else { unreachable!() };
    let [(0, 39, waiting), (40, 63, returned)] = &threads[..] else { panic!("{fault}") };
    assert!(waiting.starts_with("waiting at sync_threads") && waiting.contains("emulator_rendezvous.rs"), "{fault}");
    assert_eq!(returned, "returned");
    assert_eq!((fault.thread, fault.location.is_some()), (0, true));
}

#[test]
fn a_whole_warp_that_returned_is_missed_at_the_barrier() {
    let body: fn(Views) = |_| {
        if thread::thread_idx_x() >= SIZE {
            thread::sync_threads();
        }
    };
    faulty(small(), body, not_reached);
}

#[test]
fn barriers_in_different_places_meet() {
    // As on a device, where a barrier counts arrivals and no places.
    let body: fn(Views) = |v| {
        let i = thread::thread_idx_x();
        if i < SIZE {
            v.output.set(i as usize, 1);
            thread::sync_threads();
        } else {
            thread::sync_threads();
            v.output.set(i as usize, v.output.get(i as usize - 32) + 1);
        }
    };
    assert_eq!(clean(single(), body)[31..33], [1, 2]);
}

#[test]
fn all_lanes_reach_a_shuffle() {
    let without_lane_5: fn(Views) = |_| {
        if thread::thread_idx_x() != 5 {
            warp::shuffle_up(1, 1, SIZE);
        }
    };
    let fault = faulty(single(), without_lane_5, not_reached);
    assert!(fault.to_string().contains("thread 5 returned"), "{fault}");
    let whole_warps: fn(Views) = |_| {
        if thread::thread_idx_x() >= SIZE {
            warp::shuffle_up(1, 1, SIZE);
        }
    };
    clean(single(), whole_warps);
}

#[test]
fn lanes_that_wait_at_different_things_never_meet() {
    let kinds: fn(Views) = |_| {
        if warp::lane_id() < 16 {
            warp::shuffle_up(1, 1, SIZE);
        } else {
            warp::shuffle_down(1, 1, SIZE);
        }
    };
    faulty(single(), kinds, not_reached);
    let barrier: fn(Views) = |_| {
        if warp::lane_id() == 31 {
            thread::sync_threads();
        } else {
            warp::sync_warp();
        }
    };
    let fault = faulty(single(), barrier, not_reached);
    let text = fault.to_string();
    assert!(
        text.contains("threads 0 to 30 waiting at sync_warp") && text.contains("thread 31 waiting at sync_threads"),
        "{text}"
    );
    let one_more: fn(Views) = |_| {
        for _ in 0..4 + thread::thread_idx_x() / 63 {
            thread::sync_threads();
        }
    };
    faulty(single(), one_more, not_reached);
}

#[test]
fn only_random_order_shows_what_depends_on_order() {
    static TURN: std::sync::atomic::AtomicU32 = std::sync::atomic::AtomicU32::new(0);
    let turns: fn(Views) = |v| {
        let turn = TURN.fetch_add(1, std::sync::atomic::Ordering::Relaxed) % 64;
        v.output.set(thread::thread_idx_x() as usize, turn);
    };
    let order = |launch| run(launch, turns).1[..64].to_vec();
    let ascending: Vec<u32> = (0..64).collect();
    assert_eq!(order(single()), ascending);
    let random = Launch { random_order: true, seed: 7, ..single() };
    let first = order(random);
    assert_ne!(first, ascending);
    assert_eq!(order(random), first, "the same seed gives the same order");
    assert_ne!(order(Launch { seed: 8, ..random }), first);
}

#[test]
fn indices_are_those_of_the_grid() {
    let body: fn(Views) = |v| {
        assert_eq!((thread::block_dim_x(), thread::grid_dim_x()), (64, 3));
        let (x, y) = (thread::block_idx_x(), thread::block_idx_y());
        if thread::thread_idx_x() == 63 {
            v.output.set((y * 3 + x) as usize, 10 * y + x);
        }
    };
    let output = clean(Launch { grid: (3, 2), ..small() }, body);
    assert_eq!(output[..6], [0, 1, 2, 10, 11, 12]);
}

#[test]
fn parallel_blocks_report_their_faults() {
    let body: fn(Views) = |_| {
        if thread::block_idx_x() == 37 && thread::thread_idx_x() == 1 {
            thread::trap()
        }
        thread::sync_threads();
    };
    for seed in 0..10 {
        let launch = Launch { grid: (50, 1), parallel: true, seed, random_order: true, ..small() };
        let fault = run(launch, body).0.unwrap_err();
        assert_eq!((fault.block, fault.thread, fault.cause), ((37, 0), 1, Cause::Trap));
    }
}

#[test]
fn without_checks_what_would_break_the_emulator_is_still_found() {
    let fast = Launch { checks: false, ..single() };
    faulty(fast, |v| v.output.set(common::OUTPUT, 0), |cause| matches!(cause, Cause::OutOfBounds { .. }));
    faulty(fast, |v| v.output.set_x4(1, [0; 4]), |cause| matches!(cause, Cause::Misaligned { .. }));
    let some: fn(Views) = |_| {
        if thread::thread_idx_x() == 0 {
            thread::sync_threads();
        }
    };
    faulty(fast, some, not_reached);
}
