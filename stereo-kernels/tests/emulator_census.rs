//! The census kernels in the emulator against the definition (sgm.md, section 1), pixel by pixel.

use stereo_kernels::{
    census::{self, BLOCK, Census, ROWS},
    gpu::{
        emulator::{self, Buffer, Launch},
        global::Element,
    },
    kernel::Entry,
};

const RADIUS_Y: i32 = 3;

/// Sizes around the block's and the window's.
const SIZES: [(u32, u32); 9] = [(1, 1), (1, 9), (9, 1), (17, 13), (8, 7), (9, 7), (128, 5), (129, 4), (300, 6)];

fn image<T: Copy>(width: u32, height: u32, cast: impl Fn(u32) -> T) -> Vec<T> {
    let mut random = fastrand::Rng::with_seed(u64::from(width) * 1000 + u64::from(height));
    // Few grey levels, so that equal neighbours occur.
    (0..width * height).map(|_| cast(random.u32(0..12))).collect()
}

fn run<T: Element>(entry: Entry<Census<T>>, pixels: &[T], width: u32, height: u32, random_order: bool) -> Vec<u64> {
    let image = Buffer::from_slice(pixels);
    let mut descriptors = Buffer::<u64>::new(pixels.len());
    let args = Census { image: image.global(), descriptors: descriptors.global_mut(), width, height };
    let grid = (width.div_ceil(BLOCK), height.div_ceil(ROWS));
    let launch = Launch { grid, block: BLOCK, random_order, parallel: random_order, ..Launch::default() };
    emulator::launch(entry, args, launch).unwrap();
    assert_eq!(descriptors.first_unwritten(), None);
    descriptors.download()
}

fn centre<T: Copy + PartialOrd>(pixels: &[T], width: u32, height: u32, radius_x: i32) -> Vec<u64> {
    let (w, h) = (width as i32, height as i32);
    let at = |x: i32, y: i32| pixels[(y.clamp(0, h - 1) * w + x.clamp(0, w - 1)) as usize];
    let descriptor = |x: i32, y: i32| {
        let mut bits = 0;
        for dy in -RADIUS_Y..=RADIUS_Y {
            for dx in -radius_x..=radius_x {
                if (dx, dy) != (0, 0) {
                    bits = bits << 1 | u64::from(at(x + dx, y + dy) > at(x, y));
                }
            }
        }
        bits
    };
    (0..h).flat_map(|y| (0..w).map(move |x| (x, y))).map(|(x, y)| descriptor(x, y)).collect()
}

fn symmetric<T: Copy + PartialOrd>(pixels: &[T], width: u32, height: u32) -> Vec<u64> {
    const RADIUS_X: i32 = 4;
    let (w, h) = (width as i32, height as i32);
    let at = |x: i32, y: i32| pixels[(y * w + x) as usize];
    let descriptor = |x: i32, y: i32| {
        let inside = x >= RADIUS_X && x < w - RADIUS_X && y >= RADIUS_Y && y < h - RADIUS_Y;
        let window = (-RADIUS_Y..=0).flat_map(|dy| (-RADIUS_X..=RADIUS_X).map(move |dx| (dx, dy)));
        let pairs = window.filter(|&(dx, dy)| (dy, dx) < (0, 0));
        if !inside {
            return 0;
        }
        pairs.fold(0, |bits, (dx, dy)| bits << 1 | u64::from(at(x + dx, y + dy) > at(x - dx, y - dy)))
    };
    (0..h).flat_map(|y| (0..w).map(move |x| (x, y))).map(|(x, y)| descriptor(x, y)).collect()
}

#[test]
fn all_kinds_and_depths_at_awkward_sizes() {
    for (width, height) in SIZES {
        let pixels = image(width, height, |v| v as u8);
        let deep = image(width, height, |v| (v * 5000) as u16);
        for random_order in [false, true] {
            let size = format!("{width}x{height}, random order {random_order}");
            let (w, h) = (width, height);
            let small = |entry| run(entry, &pixels, w, h, random_order);
            let large = |entry| run(entry, &deep, w, h, random_order);
            assert_eq!(small(census::census_7x7_u8), centre(&pixels, w, h, 3), "{size}");
            assert_eq!(small(census::census_9x7_u8), centre(&pixels, w, h, 4), "{size}");
            assert_eq!(small(census::census_symmetric_u8), symmetric(&pixels, w, h), "{size}");
            assert_eq!(large(census::census_7x7_u16), centre(&deep, w, h, 3), "{size}");
            assert_eq!(large(census::census_9x7_u16), centre(&deep, w, h, 4), "{size}");
            assert_eq!(large(census::census_symmetric_u16), symmetric(&deep, w, h), "{size}");
        }
    }
}
