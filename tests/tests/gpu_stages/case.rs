//! What kernels are tested with: random cases, their images and volumes, and the comparison.

use std::fmt::Debug;

use fastrand::Rng;
use proptest::{
    prelude::*,
    sample::select,
    test_runner::{Config, TestRunner},
};
use stereo_host::{GrayView, Params};
use stereo_kernels::{
    gpu::{
        emulator::{self, Buffer, Launch},
        global::Element,
    },
    kernel::{Args, Entry},
    layout,
};
use stereo_tests::cases;

/// Every number of disparities that pixels of a volume can be apart.
pub const PADDED: [u32; 7] = [16, 32, 64, 128, 256, 512, 1024];

/// Sizes that every kernel is tested with.
const SIZES: [(usize, usize); 2] = [(1, 1), (17, 13)];

/// Random cases of a kernel, beside the fixed sizes.
const CASES: u32 = 32;

/// What a kernel is tested with.
#[derive(Debug, Clone)]
pub struct Case {
    pub width: usize,
    pub height: usize,
    pub params: Params,
    /// Pixels and costs are below: few bring ties.
    pub levels: u32,
    /// Pixels and costs, the order of threads and how late bulk copies are.
    pub seed: u64,
    /// The ring of bulk copies.
    pub step_bits: u32,
    pub stages: u32,
}

impl Case {
    pub fn pixels(&self) -> usize {
        self.width * self.height
    }

    pub fn size(&self) -> (u32, u32) {
        (self.width as u32, self.height as u32)
    }

    pub fn volume(&self) -> usize {
        self.pixels() * self.params.disparities as usize
    }

    pub fn rng(&self) -> Rng {
        Rng::with_seed(self.seed)
    }

    /// A grey image.
    pub fn image<T: Pixel>(&self, rng: &mut Rng) -> Vec<T> {
        (0..self.pixels()).map(|_| T::from_level(rng.u32(0..self.levels) as u16)).collect()
    }

    /// Costs up to `max`, near 0 or near `max` where there are few levels.
    pub fn costs(&self, rng: &mut Rng, max: u32) -> Vec<u8> {
        let (from_top, range) = (rng.bool(), self.levels.min(max + 1));
        let cost = |value: u32| (if from_top { max - value } else { value }) as u8;
        (0..self.volume()).map(|_| cost(rng.u32(0..range))).collect()
    }

    /// Runs a kernel with all checks and threads in random order.
    pub fn launch<A: Args>(&self, entry: Entry<A>, grid: (u32, u32), block: u32, shared_bytes: u32, args: A) {
        let launch = Launch { grid, block, shared_bytes, seed: self.seed, random_order: true, ..Launch::default() };
        emulator::launch(entry, args, launch).unwrap_or_else(|fault| panic!("{fault}"));
    }
}

/// The types of pixels.
pub trait Pixel: Element + Debug {
    fn from_level(level: u16) -> Self;
    fn view(image: &[Self], width: usize, height: usize) -> GrayView<'_>
    where
        Self: Sized;
}

impl Pixel for u8 {
    fn from_level(level: u16) -> Self {
        level as u8
    }
    fn view(image: &[Self], width: usize, height: usize) -> GrayView<'_> {
        GrayView::from_u8(image, width, height).unwrap()
    }
}

impl Pixel for u16 {
    fn from_level(level: u16) -> Self {
        level
    }
    fn view(image: &[Self], width: usize, height: usize) -> GrayView<'_> {
        GrayView::from_u16(image, width, height).unwrap()
    }
}

/// Cases of a size whose volumes are `padded` disparities a pixel.
pub fn case(size: impl Strategy<Value = (usize, usize)>, padded: u32) -> impl Strategy<Value = Case> {
    let fewest = PADDED.iter().rfind(|&&smaller| smaller < padded).map_or(1, |smaller| smaller + 1);
    let disparities = prop_oneof![2 => Just(padded), 1 => Just(fewest), 2 => fewest..=padded];
    // The ends of the 16-bit range, which sub-pixel maps do not have.
    let far = proptest::option::weighted(0.15, select(vec![-31_700, 31_700]));
    let params = (cases::params(), disparities, far).prop_map(|(params, disparities, far)| Params {
        disparities,
        min_disparity: far.unwrap_or(params.min_disparity),
        subpixel: params.subpixel && far.is_none(),
        ..params
    });
    let levels = select(vec![2, 6, 256, 65_536]);
    (size, params, levels, any::<u64>(), 0u32..=4, 2u32..=5).prop_map(
        |((width, height), params, levels, seed, step_bits, stages)| Case {
            width,
            height,
            params,
            levels,
            seed,
            step_bits,
            stages,
        },
    )
}

/// Tests with volumes of `padded` disparities: the fixed sizes and `wide` (more than a block's share),
/// then random ones.
pub fn check(padded: u32, wide: (usize, usize), test: impl Fn(&Case)) {
    for size in SIZES.into_iter().chain([wide]) {
        run(1, case(Just(size), padded), &test);
    }
    // Volumes without padding, whose costs and penalties leave every term of the recurrence a chance.
    let usual = |case: Case| Case { levels: 256, params: usual_penalties(case.params, padded), ..case };
    run(2, case(Just(SIZES[1]), padded).prop_map(usual), &test);
    run(CASES, case(cases::size(), padded), &test);
}

pub fn usual_penalties(params: Params, disparities: u32) -> Params {
    let Params { p1, p2, .. } = Params::default();
    Params { disparities, p1, p2, ..params }
}

pub fn run(cases: u32, strategy: impl Strategy<Value = Case>, test: impl Fn(&Case)) {
    let config = Config { cases, failure_persistence: None, ..Config::default() };
    let test = |case: Case| {
        case.params.validate().unwrap();
        test(&case);
        Ok(())
    };
    TestRunner::new(config).run(&strategy, test).unwrap_or_else(|error| panic!("{error}"));
}

/// The values of a buffer that the kernel must have written completely.
pub fn written<T: Element>(buffer: &Buffer<T>) -> Vec<T> {
    assert_eq!(buffer.first_unwritten(), None, "the first element that was not written");
    buffer.download()
}

pub fn assert_same<T: PartialEq + Debug>(got: &[T], expected: &[T], what: &str) {
    assert_eq!(got.len(), expected.len(), "{what}");
    if let Some(i) = got.iter().zip(expected).position(|(a, b)| a != b) {
        panic!("{what}, element {i}: {:?}, and the reference has {:?}", got[i], expected[i]);
    }
}

/// A volume `[y][x][d]` in the kernels' layout, `padding()` in the places behind the last disparity.
pub fn to_layout(volume: &[u8], disparities: u32, mut padding: impl FnMut() -> u8) -> Vec<u8> {
    let padded = layout::padded(disparities);
    let mut bytes = Vec::new();
    for pixel in volume.chunks(disparities as usize) {
        let start = bytes.len();
        bytes.resize_with(start + padded as usize, &mut padding);
        for (d, &cost) in pixel.iter().enumerate() {
            bytes[start + layout::byte_of(d as u32) as usize] = cost;
        }
    }
    bytes
}

/// The inverse of [`to_layout`], without the padding.
pub fn from_layout(bytes: &[u8], disparities: u32) -> Vec<u8> {
    let pixel = |pixel| (0..disparities).map(move |d| bytes_at(pixel, d));
    bytes.chunks(layout::padded(disparities) as usize).flat_map(pixel).collect()
}

pub fn bytes_at(pixel: &[u8], d: u32) -> u8 {
    pixel[layout::byte_of(d) as usize]
}
