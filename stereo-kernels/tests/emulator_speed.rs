//! How fast the emulator is:
//! `cargo test --release -p stereo-kernels --test emulator_speed -- --ignored --nocapture`.

mod common;

use std::{fs, time::Instant};

use common::Views;
use stereo_kernels::gpu::{emulator::Launch, shared::Shared, thread, warp};

/// Rendezvous or accesses per thread.
const ROUNDS: u32 = 20_000;
/// The launches' shape: one thread per element of the output.
const BLOCKS: u32 = 8;
const BLOCK: u32 = 128;
const _: () = assert!((BLOCKS * BLOCK) as usize == common::OUTPUT);

/// Seconds that this thread has run on a processor, where the system tells: other programs' work
/// does not count then.
fn on_cpu() -> Option<f64> {
    let nanoseconds = fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    Some(nanoseconds.split(' ').next()?.parse::<f64>().ok()? / 1e9)
}

fn rate(name: &str, body: fn(Views)) {
    for checks in [true, false] {
        let launch = Launch { grid: (BLOCKS, 1), block: BLOCK, shared_bytes: 1024, checks, ..Launch::default() };
        let (wall, cpu) = (Instant::now(), on_cpu());
        common::run(launch, body).0.unwrap();
        let seconds = match (cpu, on_cpu()) {
            (Some(before), Some(after)) => after - before,
            _ => wall.elapsed().as_secs_f64(),
        };
        let millions = f64::from(BLOCKS * BLOCK * ROUNDS) / seconds / 1e6;
        println!("{name:24} checks {checks:5}: {millions:7.1} M per second");
    }
}

#[test]
#[ignore = "measures, and checks nothing"]
fn rates_on_one_core() {
    rate("shuffles", |_| {
        for _ in 0..ROUNDS {
            warp::shuffle_xor(1, 1, warp::SIZE);
        }
    });
    rate("arrivals at the barrier", |_| {
        for _ in 0..ROUNDS {
            thread::sync_threads();
        }
    });
    rate("shared u32 writes", |_| {
        for i in 0..ROUNDS {
            Shared::<u32>::dynamic(0, 128).set(thread::thread_idx_x(), i);
        }
    });
    rate("read-only u32 reads", |v| {
        for _ in 0..ROUNDS {
            v.input.get(thread::thread_idx_x() as usize);
        }
    });
    rate("global u32 writes", |v| {
        for i in 0..ROUNDS {
            v.output.set((thread::block_idx_x() * BLOCK + thread::thread_idx_x()) as usize, i);
        }
    });
    rate("wide shared reads", |_| {
        let words = Shared::<u32>::dynamic(0, 128);
        words.set(thread::thread_idx_x(), 1);
        thread::sync_threads();
        for _ in 0..ROUNDS {
            words.get_x4(thread::thread_idx_x() / 4 * 4);
        }
    });
}
