//! Random matches for the property tests: small pairs of every kind with every parameter in play.

use std::fmt;

use proptest::{collection::vec, option, prelude::*, sample::select};
use stereo_host::{Algorithm, Census, Compat, GrayView, Params, Paths, Pixels, Speckle};

/// A pair and the parameters of its match.
#[derive(Clone)]
pub struct Case {
    /// Pixels in a row.
    pub width: usize,
    /// Rows.
    pub height: usize,
    /// Elements from row to row, at least `width`.
    pub stride: usize,
    /// Whether the pixels are given as 16-bit values; otherwise they are below 256.
    pub sixteen_bits: bool,
    /// `height * stride` intensities.
    pub left: Vec<u16>,
    /// `height * stride` intensities.
    pub right: Vec<u16>,
    /// Valid parameters.
    pub params: Params,
}

impl Case {
    /// Calls `work` with views of both images.
    pub fn with_views<T>(&self, work: impl FnOnce(&GrayView<'_>, &GrayView<'_>) -> T) -> T {
        if self.sixteen_bits {
            return work(&self.view(Pixels::U16(&self.left)), &self.view(Pixels::U16(&self.right)));
        }
        let [left, right] = [&self.left, &self.right].map(|p| p.iter().map(|&v| v as u8).collect::<Vec<u8>>());
        work(&self.view(Pixels::U8(&left)), &self.view(Pixels::U8(&right)))
    }

    fn view<'a>(&self, pixels: Pixels<'a>) -> GrayView<'a> {
        GrayView::new(pixels, self.width, self.height, self.stride).expect("a case has consistent sizes")
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { width, height, stride, sixteen_bits, left, right, params } = self;
        writeln!(f, "{width}x{height}, stride {stride}, 16 bits: {sixteen_bits}, {params:?}")?;
        writeln!(f, "left {left:?}\nright {right:?}")
    }
}

/// Any case whose brute-force match takes some milliseconds at most.
pub fn case() -> impl Strategy<Value = Case> {
    (size(), params()).prop_flat_map(|((width, height), mut params)| {
        // The brute force tries every change of disparity at every pixel of every path.
        let affordable = (MAX_CHANGES / (width * height * params.paths.count())).isqrt().max(1);
        params.disparities = params.disparities.min(affordable as u32);
        pair(width, height).prop_map(move |(stride, sixteen_bits, left, right)| Case {
            width,
            height,
            stride,
            sixteen_bits,
            left,
            right,
            params: params.clone(),
        })
    })
}

/// The disparity changes that a case's aggregation may try: pixels * directions * D^2.
const MAX_CHANGES: usize = 8_000_000;

/// Everything from a single pixel to more than one census window each way.
pub fn size() -> impl Strategy<Value = (usize, usize)> {
    prop_oneof![
        3 => (1usize..=8, 1usize..=8),
        3 => (1usize..=32, 1usize..=24),
        1 => (1usize..=3, 1usize..=40),
        1 => (20usize..=60, 1usize..=3),
    ]
}

/// Stride, depth and both images: a texture, and the same moved sideways with some pixels changed.
fn pair(width: usize, height: usize) -> impl Strategy<Value = (usize, bool, Vec<u16>, Vec<u16>)> {
    // Few levels bring ties; zero is common enough for the mask.
    let levels = select(vec![2u32, 6, 256, 65_536]);
    (levels, 0usize..3, any::<bool>(), 0usize..12).prop_flat_map(move |(levels, padding, wide, shift)| {
        let stride = width + padding;
        let n = stride * height;
        let pixel = move || (0..levels).prop_map(|v| v as u16);
        let replaced = vec(option::weighted(0.15, pixel()), n);
        (vec(pixel(), n), replaced).prop_map(move |(left, replaced)| {
            let moved = |i: usize| left[i - i % stride + (i % stride + shift) % stride];
            let right = replaced.iter().enumerate().map(|(i, new)| new.unwrap_or_else(|| moved(i))).collect();
            (stride, wide || levels > 256, left, right)
        })
    })
}

/// Any valid parameters, the usual ones most often.
pub fn params() -> impl Strategy<Value = Params> {
    let census = select(vec![Census::Window7x7, Census::Window9x7, Census::Symmetric9x7]);
    let range = (disparities(), min_disparity());
    let penalties = census.prop_flat_map(|census| {
        let limit = 255 - census.max_cost();
        let both = (1..=limit).prop_flat_map(|p2| (1..=p2, Just(p2)));
        (Just(census), prop_oneof![Just((10, 120)), Just((1, 1)), Just((limit, limit)), both], any::<bool>())
    });
    let winner = (select(vec![0.0f32, 0.5, 0.8, 0.95, 1.0]), any::<bool>());
    let winner = prop_oneof![winner, (0.0f32..=1.0, any::<bool>())];
    let checks = (prop_oneof![4 => -1..=3, 1 => Just(1024)], any::<bool>(), any::<bool>());
    let speckle = option::of((0u32..=12, 0u32..=3).prop_map(|(max_size, max_diff)| Speckle { max_size, max_diff }));
    (range, any::<bool>(), penalties, winner, checks, speckle, any::<bool>()).prop_map(
        |(range, eight, penalties, winner, checks, speckle, fill)| Params {
            algorithm: Algorithm::Sgm,
            disparities: range.0,
            min_disparity: range.1,
            paths: if eight { Paths::Eight } else { Paths::Four },
            census: penalties.0,
            p1: penalties.1.0,
            p2: penalties.1.1,
            adaptive_p2: penalties.2,
            uniqueness: winner.0,
            subpixel: winner.1,
            lr_max_diff: checks.0,
            mask_zero: checks.1,
            compat: if checks.2 { Compat::LibSgm } else { Compat::None },
            speckle,
            fill,
        },
    )
}

fn disparities() -> impl Strategy<Value = u32> {
    prop_oneof![2 => 1u32..=4, 5 => 1u32..=40, 1 => 41u32..=1024]
}

fn min_disparity() -> impl Strategy<Value = i32> {
    // The far ends put every match outside the row; with D = 1024 and sub-pixel they are the last allowed.
    prop_oneof![2 => Just(0), 6 => -40..=20, 1 => select(vec![-2047, 1024])]
}
