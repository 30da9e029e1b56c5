//! The scalar definition of sgm.md: plain loops, no SIMD, no threads. It is the referee: every other
//! path gives these bytes. One file per stage, to be read beside the specification.
//!
//! Every stage is a function over plain slices, so that any other implementation of it can be held
//! against it alone; [`Stages`] runs them in order and keeps what each one gave.

mod aggregate;
mod census;
mod consistency;
mod cost;
mod fill;
mod median;
mod range;
mod speckle;
mod winner;

pub use aggregate::{add_to_sums, path_costs, step_penalty};
pub use census::census;
pub use consistency::check_consistency;
pub use cost::matching_cost;
pub use fill::fill;
pub(crate) use fill::fill_row;
pub use median::median3x3;
pub use range::to_true_range;
pub use speckle::remove_speckles;
pub use winner::{left_map, right_map};

use crate::{DisparityMap, GrayView, Options, Params, Report, Result, matcher::Engine, memory};

/// The value of an invalid pixel in a map of relative disparities: larger than any valid one.
pub const INVALID: u16 = u16::MAX;

/// The stages' names in a [`Report`], the same on every backend. Those of the path aggregation are
/// [`crate::Direction::stage`].
pub mod stage {
    /// Both images' descriptors.
    pub const CENSUS: &str = "census";
    /// The matching cost.
    pub const COST: &str = "cost";
    /// Left and right map from the sums.
    pub const WINNER: &str = "winner-takes-all";
    /// The median of both maps.
    pub const MEDIAN: &str = "median";
    /// The left-right check and the mask.
    pub const CONSISTENCY: &str = "consistency";
    /// From relative to true disparities.
    pub const RANGE: &str = "range";
    /// Speckle removal.
    pub const SPECKLE: &str = "speckle";
    /// Filling and its median.
    pub const FILL: &str = "fill";
}

/// What every stage gave for one pair, in the order of the specification.
#[derive(Debug, Clone, Default)]
pub struct Stages {
    /// The left image's descriptors, `[y][x]`.
    pub census_left: Vec<u64>,
    /// The right image's descriptors, `[y][x]`.
    pub census_right: Vec<u64>,
    /// The matching cost `C`, `[y][x][d]`.
    pub cost: Vec<u8>,
    /// The path costs `L_r` of the last direction, `[y][x][d]`.
    pub path: Vec<u8>,
    /// The sums `S`, `[y][x][d]`.
    pub sums: Vec<u16>,
    /// The left map of the winners, `[y][x]`, relative, [`INVALID`] where not unique.
    pub left: Vec<u16>,
    /// The right map of the winners, `[y][c]`, whole relative disparities.
    pub right: Vec<u16>,
    /// The left map after the median and the consistency check.
    pub checked: Vec<u16>,
    /// The right map after the median.
    pub right_median: Vec<u16>,
    /// The left map after the median, before the check.
    pub left_median: Vec<u16>,
    /// The finished values of a [`DisparityMap`], `[y][x]`.
    pub map: Vec<i16>,
}

impl Stages {
    /// Runs every stage on one pair of the same size and depth.
    ///
    /// # Panics
    /// On images of different sizes and on parameters that [`Params::validate`] refuses.
    pub fn compute(left: &GrayView<'_>, right: &GrayView<'_>, params: &Params) -> Self {
        let mut stages = Self::default();
        stages.run(left, right, params, &mut |_, work| work());
        stages
    }

    /// Runs every stage through `observe`, which gets its name and its work. Buffers are reused.
    fn run(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        params: &Params,
        observe: &mut dyn FnMut(&'static str, &mut dyn FnMut()),
    ) {
        let width = left.width();
        self.resize(width * left.height(), params.disparities as usize);
        observe(stage::CENSUS, &mut || {
            census(left, params.census, &mut self.census_left);
            census(right, params.census, &mut self.census_right);
        });
        observe(stage::COST, &mut || {
            matching_cost(&self.census_left, &self.census_right, width, params, &mut self.cost);
        });
        // One direction at a time: the sums are all that the next stage needs.
        self.sums.fill(0);
        for &direction in params.paths.directions() {
            observe(direction.stage(), &mut || {
                path_costs(&self.cost, left, params, direction, &mut self.path);
                add_to_sums(&self.path, &mut self.sums);
            });
        }
        observe(stage::WINNER, &mut || {
            left_map(&self.sums, params, &mut self.left);
            right_map(&self.sums, width, params, &mut self.right);
        });
        observe(stage::MEDIAN, &mut || {
            median3x3(&self.left, width, params.compat, &mut self.left_median);
            median3x3(&self.right, width, params.compat, &mut self.right_median);
        });
        observe(stage::CONSISTENCY, &mut || {
            self.checked.copy_from_slice(&self.left_median);
            check_consistency(&mut self.checked, &self.right_median, left, params);
        });
        observe(stage::RANGE, &mut || to_true_range(&self.checked, params, &mut self.map));
        if let Some(speckle) = params.speckle {
            observe(stage::SPECKLE, &mut || remove_speckles(&mut self.map, width, speckle, params));
        }
        if params.fill {
            observe(stage::FILL, &mut || fill(&mut self.map, width, params));
        }
    }

    fn resize(&mut self, pixels: usize, disparities: usize) {
        self.census_left.resize(pixels, 0);
        self.census_right.resize(pixels, 0);
        self.cost.resize(pixels * disparities, 0);
        self.path.resize(pixels * disparities, 0);
        self.sums.resize(pixels * disparities, 0);
        for map in [&mut self.left, &mut self.right, &mut self.left_median, &mut self.right_median, &mut self.checked] {
            map.resize(pixels, 0);
        }
        self.map.resize(pixels, 0);
    }
}

/// What [`Stages`] holds of every pixel: two descriptors, five relative maps and the result, and for every
/// disparity the cost, one direction's path cost and the sum.
const fn bytes_per_pixel(disparities: u32) -> u64 {
    let maps = 2 * size_of::<u64>() + 5 * size_of::<u16>() + size_of::<i16>();
    let volumes = 2 * size_of::<u8>() + size_of::<u16>();
    (maps + volumes * disparities as usize) as u64
}

/// The reference as a backend. It keeps its volumes from frame to frame; the speckle and fill steps
/// allocate a map of their own.
pub(crate) struct ReferenceEngine {
    params: Params,
    timing: bool,
    stages: Stages,
}

impl ReferenceEngine {
    /// Refuses a size whose volumes the machine has no memory for.
    pub(crate) fn new(width: usize, height: usize, params: &Params, options: &Options) -> Result<Self> {
        let need = (width * height) as u64 * bytes_per_pixel(params.disparities);
        memory::check("the reference", need, "fewer disparities or a smaller image would fit")?;
        Ok(Self { params: params.clone(), timing: options.timing, stages: Stages::default() })
    }
}

impl Engine for ReferenceEngine {
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        map: &mut DisparityMap,
        report: &mut Report,
    ) -> Result<()> {
        let timing = self.timing;
        self.stages.run(left, right, &self.params, &mut |stage, work| {
            if timing { report.time(stage, "scalar", work) } else { work() }
        });
        map.values_mut().copy_from_slice(&self.stages.map);
        Ok(())
    }

    fn device(&self) -> String {
        "scalar, 1 thread".to_owned()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Backend, Matcher, Paths, Speckle};

    const WIDTH: usize = 24;
    const HEIGHT: usize = 9;

    /// A texture, different for every seed.
    fn texture(seed: u32) -> Vec<u8> {
        let pixel = |i: u32| ((i + seed).wrapping_mul(2_654_435_761) >> 23) as u8;
        (0..(WIDTH * HEIGHT) as u32).map(pixel).collect()
    }

    fn params() -> Params {
        let speckle = Some(Speckle { max_size: 2, max_diff: 1 });
        Params { disparities: 7, paths: Paths::Four, speckle, fill: true, ..Params::default() }
    }

    fn matcher(timing: bool) -> Matcher {
        let options = Options { backend: Backend::Reference, timing, ..Options::default() };
        Matcher::new(WIDTH, HEIGHT, &params(), &options).unwrap()
    }

    #[test]
    fn a_reused_matcher_remembers_nothing() {
        let (first, second) = (texture(1), texture(900));
        let [first, second] = [&first, &second].map(|p| GrayView::from_u8(p, WIDTH, HEIGHT).unwrap());
        let mut reused = matcher(false);
        reused.compute(&first, &second).unwrap();
        let again = reused.compute(&second, &first).unwrap();
        assert_eq!(again, matcher(false).compute(&second, &first).unwrap());
        assert_eq!(again.values(), Stages::compute(&second, &first, &params()).map);
    }

    #[test]
    fn the_memory_need_is_what_is_allocated() {
        let pixels = texture(1);
        let image = GrayView::from_u8(&pixels, WIDTH, HEIGHT).unwrap();
        let s = Stages::compute(&image, &image, &params());
        let maps = [&s.left, &s.right, &s.left_median, &s.right_median, &s.checked, &s.sums];
        let bytes = size_of_val(&s.census_left[..]) + size_of_val(&s.census_right[..]) + s.cost.len() + s.path.len();
        let bytes = bytes + maps.iter().map(|map| size_of_val(&map[..])).sum::<usize>() + size_of_val(&s.map[..]);
        assert_eq!(bytes as u64, (WIDTH * HEIGHT) as u64 * bytes_per_pixel(params().disparities));
    }

    #[test]
    fn a_size_beyond_all_memory_is_refused() {
        let params = Params { disparities: 1024, ..Params::default() };
        let options = Options { backend: Backend::Reference, ..Options::default() };
        // Four terabytes; without a system that tells what it has, building succeeds and computing is not tried.
        if let Err(refusal) = Matcher::new(crate::MAX_SIDE, crate::MAX_SIDE, &params, &options) {
            assert!(refusal.to_string().contains("4428111282176 bytes"), "{refusal}");
        } else {
            assert!(!std::path::Path::new("/proc/meminfo").exists());
        }
    }

    #[test]
    fn stages_are_reported_in_order_when_timed() {
        let pixels = texture(1);
        let image = GrayView::from_u8(&pixels, WIDTH, HEIGHT).unwrap();
        let mut timed = matcher(true);
        for _ in 0..2 {
            timed.compute(&image, &image).unwrap();
            let directions = Paths::Four.directions().iter().map(|direction| direction.stage());
            let after = [stage::WINNER, stage::MEDIAN, stage::CONSISTENCY, stage::RANGE, stage::SPECKLE, stage::FILL];
            let expected: Vec<_> = [stage::CENSUS, stage::COST].into_iter().chain(directions).chain(after).collect();
            let stages: Vec<_> = timed.report().stages.iter().map(|s| s.stage).collect();
            assert_eq!(stages, expected);
        }
        let mut plain = matcher(false);
        plain.compute(&image, &image).unwrap();
        assert!(plain.report().stages.is_empty());
    }
}
