//! Planted faults in memory accesses, each beside a clean twin.

mod common;

use common::{INPUT, OUTPUT, Views, clean, faulty, run, single, small};
use stereo_kernels::{
    gpu::{
        emulator::{self, Access, Buffer, Cause, Launch, Space},
        global::{Global, GlobalMut},
        shared::Shared,
        thread,
    },
    kernel::Entry,
};

fn at() -> usize {
    (thread::block_idx_x() * thread::block_dim_x() + thread::thread_idx_x()) as usize
}

#[test]
fn global_reads_stay_within_the_view() {
    let output = clean(small(), |v| v.output.set(at(), v.input.get(INPUT - 1 - at())));
    assert_eq!(output[..3], [1023, 1022, 1021]);
    let fault = faulty(
        small(),
        |v| v.output.set(at(), v.input.get(INPUT - 100 + at())),
        |cause| matches!(cause, Cause::OutOfBounds { access: Access::Read, space: Space::Global, len: 4096, .. }),
    );
    assert_eq!((fault.block, fault.thread), ((1, 0), 36));
    assert!(fault.location.is_some_and(|at| at.file().ends_with("emulator_memory.rs")));
    assert_eq!(fault.cause.to_string(), "read of 4 bytes at byte 4096 of global memory, of which the view has 4096");
}

#[test]
fn indices_below_zero_are_out_of_bounds() {
    faulty(
        small(),
        |v| v.output.set((thread::thread_idx_x() as i32 - 1) as usize, 0),
        |cause| matches!(cause, Cause::OutOfBounds { access: Access::Write, .. } | Cause::Race { .. }),
    );
}

#[test]
fn wide_accesses_end_within_the_view() {
    clean(single(), |v| v.output.set_x4(4 * at(), v.input.get_x4(INPUT - 4)));
    let wide = |cause: &Cause| matches!(cause, Cause::OutOfBounds { bytes: 16, space: Space::Global, .. });
    faulty(single(), |v| v.output.set_x4(OUTPUT - 3, [at() as u32; 4]), wide);
    faulty(
        single(),
        |v| {
            v.input.get_x4(INPUT - 1);
        },
        wide,
    );
}

#[test]
fn parts_of_a_buffer_have_their_own_bounds() {
    let body: fn(Views) = |v| {
        let i = thread::thread_idx_x() as usize;
        v.output.set(i, v.input.get(i));
    };
    let input = Buffer::from_slice(&[7_u32; 100]);
    let mut output = Buffer::<u32>::new(100);
    let mut bytes = Buffer::<u8>::new(1);
    let (bytes, launch) = (bytes.global_mut(), Launch::default());
    let mut go = |from, to| {
        let output = output.global_mut_at(from..to);
        emulator::launch(Entry { name: "part", body }, Views { input: input.global_at(3..90), output, bytes }, launch)
    };
    go(40, 72).unwrap();
    let fault = go(40, 71).unwrap_err();
    assert!(matches!(fault.cause, Cause::OutOfBounds { access: Access::Write, len: 124, .. }), "{fault}");
    let written: Vec<_> = output.download().iter().map(|&v| v == 7).collect();
    assert_eq!(written, (0..100).map(|i| (40..72).contains(&i)).collect::<Vec<_>>());
    assert_eq!(output.first_unwritten(), Some(0));
}

#[test]
fn views_of_no_buffer_are_found() {
    let body: fn(Views) = |v| v.output.set(thread::thread_idx_x() as usize, 1);
    let input = Buffer::from_slice(&[0_u32]);
    let mut bytes = Buffer::<u8>::new(1);
    let mut go = |output| {
        let views = Views { input: input.global(), output, bytes: bytes.global_mut() };
        emulator::launch(Entry { name: "stray", body }, views, Launch::default()).map_err(|fault| fault.cause)
    };
    let mut output = Buffer::<u32>::new(16);
    // SAFETY: the emulator checks what it accesses.
    let too_long = unsafe { GlobalMut::from_raw(output.global_mut().as_ptr(), 32) };
    assert!(matches!(go(too_long), Err(Cause::Unmapped { access: Access::Write, bytes: 4, .. })));
    // SAFETY: as above.
    let null = unsafe { GlobalMut::from_raw(core::ptr::null_mut(), 32) };
    assert!(matches!(go(null), Err(Cause::Unmapped { address: 0, .. })));
    let stale = Buffer::<u32>::new(32).global_mut();
    assert!(matches!(go(stale), Err(Cause::Unmapped { .. })));
    let mut whole = Buffer::<u32>::new(32);
    assert_eq!(go(whole.global_mut()), Ok(()));
}

#[test]
fn a_view_starts_with_its_address() {
    let buffer = Buffer::from_slice(&[1_u16, 2, 3]);
    let view: Global<u16> = buffer.global_at(1..3);
    // SAFETY: a view is at least as large as a pointer.
    let first = unsafe { (&raw const view).cast::<*const u16>().read() };
    assert_eq!(first, view.as_ptr());
    assert_eq!(first as usize % 256, 2);
    assert_eq!(view.len(), 2);
}

#[test]
fn shared_accesses_stay_within_the_part() {
    clean(single(), |_| Shared::<u32>::dynamic(0, 64).set(thread::thread_idx_x(), 1));
    let outside = |cause: &Cause| matches!(cause, Cause::OutOfBounds { space: Space::Shared, .. });
    faulty(single(), |_| Shared::<u32>::dynamic(0, 63).set(thread::thread_idx_x(), 1), outside);
    faulty(
        single(),
        |_| {
            Shared::<u32>::dynamic(0, 64).get(64);
        },
        outside,
    );
    faulty(single(), |_| Shared::<u16>::dynamic(0, 64).set_x4(57, [0; 4]), outside);
}

#[test]
fn shared_parts_lie_within_the_launch_s_bytes() {
    clean(single(), |_| {
        Shared::<u32>::dynamic(512, 128);
    });
    let outside = |cause: &Cause| matches!(cause, Cause::OutOfBounds { space: Space::Shared, len: 1024, .. });
    faulty(
        single(),
        |_| {
            Shared::<u32>::dynamic(516, 128);
        },
        outside,
    );
}

#[test]
fn accesses_are_aligned() {
    clean(single(), |v| v.output.set_x4(4 * at(), v.input.get_x4(8)));
    let global = |cause: &Cause| matches!(cause, Cause::Misaligned { space: Space::Global, of: 16, .. });
    faulty(
        single(),
        |v| {
            v.input.get_x4(2);
        },
        global,
    );
    faulty(single(), |v| v.output.set_x4(3, [0; 4]), global);

    clean(single(), |_| Shared::<u32>::dynamic(0, 256).set_x4(4 * thread::thread_idx_x(), [0; 4]));
    let shared = |cause: &Cause| matches!(cause, Cause::Misaligned { space: Space::Shared, of: 16, .. });
    faulty(single(), |_| Shared::<u32>::dynamic(8, 32).set_x4(0, [0; 4]), shared);
    faulty(
        single(),
        |_| {
            Shared::<u16>::dynamic(0, 32).get_x4(4);
        },
        shared,
    );
    faulty(
        single(),
        |_| Shared::<u32>::dynamic(2, 8).set(0, 1),
        |cause| matches!(cause, Cause::Misaligned { space: Space::Shared, value: 2, of: 4, .. }),
    );
}

#[test]
fn shared_memory_is_written_before_it_is_read() {
    // Every second byte only: what is checked are bytes, not words.
    let read_back: fn(Views) = |v| {
        let i = thread::thread_idx_x();
        let bytes = Shared::<u8>::dynamic(0, 256);
        bytes.set(2 * i, i as u8);
        v.output.set(at(), bytes.get(2 * i).into());
    };
    clean(small(), read_back);
    let read_beside: fn(Views) = |v| {
        let i = thread::thread_idx_x();
        let bytes = Shared::<u8>::dynamic(0, 256);
        bytes.set(2 * i, i as u8);
        v.output.set(at(), bytes.get(2 * i + 1).into());
    };
    let unwritten = |cause: &Cause| matches!(cause, Cause::Uninitialised { access: Access::Read, space: Space::Shared, offset } if offset % 2 == 1);
    faulty(small(), read_beside, unwritten);
}

#[test]
fn a_block_does_not_see_the_shared_memory_of_the_one_before() {
    let body: fn(Views) = |_| {
        let word = Shared::<u32>::dynamic(0, 64);
        if thread::block_idx_x() == 0 {
            word.set(thread::thread_idx_x(), 1);
        } else {
            word.get(thread::thread_idx_x());
        }
    };
    let fault = faulty(small(), body, |cause| matches!(cause, Cause::Uninitialised { space: Space::Shared, .. }));
    assert_eq!(fault.block, (1, 0));
}

#[test]
fn global_memory_is_written_before_it_is_read() {
    let own: fn(Views) = |v| {
        v.output.set(at(), 1);
        v.output.set(at(), v.output.get(at()) + 1);
    };
    assert_eq!(clean(small(), own)[127], 2);
    let unwritten = |cause: &Cause| matches!(cause, Cause::Uninitialised { space: Space::Global, .. });
    faulty(
        small(),
        |v| {
            v.output.get(at());
        },
        unwritten,
    );
    // The read-modify-write of memory that nobody set up.
    faulty(small(), |v| v.output.fetch_min(0, 1), unwritten);

    let input = Buffer::<u32>::new(4);
    let mut output = Buffer::<u32>::new(32);
    let mut bytes = Buffer::<u8>::new(1);
    let views = Views { input: input.global(), output: output.global_mut(), bytes: bytes.global_mut() };
    let entry = Entry { name: "planted", body: |v: Views| v.output.set(at(), v.input.get(3)) };
    let fault = emulator::launch(entry, views, Launch::default()).unwrap_err();
    assert_eq!(
        fault.cause,
        Cause::Uninitialised { access: Access::Read, space: Space::Global, offset: 12 },
        "through the read-only path"
    );
}

#[test]
fn what_a_launch_wrote_the_next_may_read() {
    let input = Buffer::from_slice(&[5_u32]);
    let mut output = Buffer::<u32>::new(32);
    let mut bytes = Buffer::<u8>::new(1);
    let views = Views { input: input.global(), output: output.global_mut(), bytes: bytes.global_mut() };
    let write = Entry { name: "write", body: |v: Views| v.output.set(at(), at() as u32) };
    let read = Entry { name: "read", body: |v: Views| assert_eq!(v.output.get(31 - at()), 31 - at() as u32) };
    emulator::launch(write, views, Launch::default()).unwrap();
    emulator::launch(read, views, Launch::default()).unwrap();
}

#[test]
fn read_only_views_are_of_memory_that_nobody_writes() {
    let mut buffer = Buffer::from_slice(&[1_u32; 64]);
    let mut bytes = Buffer::<u8>::new(1);
    let views =
        Views { input: buffer.global_at(0..64), output: buffer.global_mut_at(0..64), bytes: bytes.global_mut() };
    let launch = |body, random_order| {
        emulator::launch(Entry { name: "planted", body }, views, Launch { random_order, ..Launch::default() })
    };
    for random_order in [false, true] {
        // The lower half is read, the upper half written.
        launch(|v| v.output.set(32 + at(), v.input.get(at())), random_order).unwrap();
        // A thread's own element: the same thread reads it first, and then writes it.
        let fault = launch(|v| v.output.set(at(), v.input.get(at())), random_order).unwrap_err();
        assert!(matches!(fault.cause, Cause::ReadOnlyWritten { .. }), "{fault}");
        let after: fn(Views) = |v| {
            v.output.set(at(), 1);
            thread::sync_threads();
            v.input.get(31 - at());
        };
        let fault = launch(after, random_order).unwrap_err();
        assert!(matches!(fault.cause, Cause::ReadOnlyWritten { .. }), "{fault}");
    }
}

#[test]
fn traps_and_panics_name_the_thread() {
    let trap: fn(Views) = |_| {
        if at() == 70 {
            thread::trap()
        }
    };
    let fault = faulty(small(), trap, |cause| *cause == Cause::Trap);
    assert_eq!((fault.block, fault.thread), ((1, 0), 6));
    let panic: fn(Views) = |_| assert!(at() != 5, "thread five");
    let fault = faulty(small(), panic, |cause| *cause == Cause::Panic("thread five".to_owned()));
    assert_eq!((fault.block, fault.thread), ((0, 0), 5));
    let text = fault.to_string();
    assert!(text.starts_with("kernel planted, block (0, 0), thread 5"), "{text}");
}

#[test]
fn a_fault_unwinds_the_other_threads() {
    use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
    static DROPPED: AtomicU32 = AtomicU32::new(0);
    struct Counted;
    impl Drop for Counted {
        fn drop(&mut self) {
            DROPPED.fetch_add(1, Relaxed);
        }
    }
    let body: fn(Views) = |_| {
        let _counted = Counted;
        thread::sync_threads();
        thread::trap()
    };
    let (result, _) = run(single(), body);
    assert_eq!(result.unwrap_err().cause, Cause::Trap);
    assert_eq!(DROPPED.load(Relaxed), single().block);
}

#[test]
fn impossible_launches_are_refused() {
    let refused = |launch: Launch| match run(launch, |_| {}).0 {
        Err(fault) => match fault.cause {
            Cause::Launch(reason) => reason,
            cause => panic!("{cause}"),
        },
        Ok(()) => panic!("{launch:?} ran"),
    };
    assert_eq!(
        refused(Launch { block: 33, ..Launch::default() }),
        "33 threads in a block, not a multiple of 32 up to 1024"
    );
    refused(Launch { block: 0, ..Launch::default() });
    refused(Launch { block: 1056, ..Launch::default() });
    refused(Launch { grid: (0, 1), ..Launch::default() });
    refused(Launch { grid: (1 << 16, 1 << 16), ..Launch::default() });
    refused(Launch { grid: (1, 1 << 16), ..Launch::default() });
    refused(Launch { shared_bytes: 227 * 1024 + 1, ..Launch::default() });
    clean(Launch { block: 1024, ..Launch::default() }, |_| thread::sync_threads());
}
