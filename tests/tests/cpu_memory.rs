//! What the CPU backend allocates: little for a matcher, nothing that grows with the image for a frame.
//! A binary of its own, since it counts every allocation of the process.

use std::{
    alloc::{GlobalAlloc, Layout, System},
    sync::atomic::{AtomicUsize, Ordering::Relaxed},
};

use stereo_host::{Backend, DisparityMap, Matcher, Options, Params, SceneSpec, Speckle};

/// Bytes in use, the most there were, and all that were ever asked for.
static IN_USE: AtomicUsize = AtomicUsize::new(0);
static PEAK: AtomicUsize = AtomicUsize::new(0);
static TOTAL: AtomicUsize = AtomicUsize::new(0);

struct Counting;

// SAFETY: every call is handed to the system's allocator unchanged.
unsafe impl GlobalAlloc for Counting {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let now = IN_USE.fetch_add(layout.size(), Relaxed) + layout.size();
        PEAK.fetch_max(now, Relaxed);
        TOTAL.fetch_add(layout.size(), Relaxed);
        // SAFETY: the caller's own contract.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        IN_USE.fetch_sub(layout.size(), Relaxed);
        // SAFETY: the caller's own contract.
        unsafe { System.dealloc(at, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: Counting = Counting;

const MIB: usize = 1 << 20;

/// One test, so that nothing else runs in the process.
#[test]
fn matchers_are_small_and_frames_allocate_nothing_of_their_size() {
    for (width, height, disparities, limit) in [(640, 480, 64, 60 * MIB), (1920, 1080, 128, 700 * MIB)] {
        let scene = SceneSpec { width, height, disparities, ..SceneSpec::default() }.render().unwrap();
        let (left, right) = (scene.left.view().unwrap(), scene.right.view().unwrap());
        let speckle = Some(Speckle { max_size: 20, max_diff: 1 });
        let params = Params { disparities, speckle, fill: true, ..Params::default() };
        let mut map = DisparityMap::new(width, height, &params).unwrap();
        for threads in [1, 2, 5] {
            let before = IN_USE.load(Relaxed);
            PEAK.store(before, Relaxed);
            let options = Options { backend: Backend::Cpu, threads: Some(threads), ..Options::default() };
            let mut matcher = Matcher::new(width, height, &params, &options).unwrap();
            matcher.compute_into(&left, &right, &mut map).unwrap();
            let peak = PEAK.load(Relaxed) - before;
            println!("{width}x{height}, {disparities} disparities, {threads} threads: {} MiB", peak / MIB);
            assert!(peak <= limit, "{peak} bytes for {width}x{height}, {threads} threads");

            let total = TOTAL.load(Relaxed);
            for _ in 0..3 {
                matcher.compute_into(&left, &right, &mut map).unwrap();
            }
            // The thread pool's queues grow by blocks now and then.
            let frames = TOTAL.load(Relaxed) - total;
            assert!(frames < 64 << 10, "{frames} bytes in three frames of {width}x{height}, {threads} threads");
        }
    }
}
