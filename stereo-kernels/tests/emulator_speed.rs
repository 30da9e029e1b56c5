//! How fast the emulator is:
//! `cargo test --release -p stereo-kernels --test emulator_speed -- --ignored --nocapture`.

mod common;

use std::time::Instant;

use common::Views;
use stereo_kernels::gpu::{emulator::Launch, shared::Shared, thread, warp};

/// Rendezvous or accesses per thread.
const ROUNDS: u32 = 2_000;

fn rate(name: &str, body: fn(Views)) {
    for checks in [true, false] {
        let launch = Launch { grid: (16, 1), block: 128, shared_bytes: 1024, checks, ..Launch::default() };
        let start = Instant::now();
        common::run(launch, body).0.unwrap();
        let seconds = start.elapsed().as_secs_f64();
        let millions = f64::from(16 * 128 * ROUNDS) / seconds / 1e6;
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
    rate("global u8 writes", |v| {
        for i in 0..ROUNDS {
            if thread::block_idx_x() == 0 && thread::thread_idx_x() < 64 {
                v.bytes.set(thread::thread_idx_x() as usize, i as u8);
            }
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
