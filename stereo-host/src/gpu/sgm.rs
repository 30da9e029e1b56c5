//! SGM as a sequence of kernel launches, and the memory that it needs.

use stereo_kernels::{
    aggregate::{
        self, Aggregate,
        bulk::{self, AggregateBulk, AggregateTiles},
    },
    census::{self, Census},
    consistency::{self, Consistency},
    cost::{self, Cost},
    gpu::{global::Global, packed, warp},
    kernel::Entry,
    layout::{self, LANE},
    median::{self, Median},
    penalty::{self, Penalty},
    winner::{self, Winner},
};

use super::{
    executor::{Executor, FIRST_PRIORITY, Label, MAIN, Shape, TILE_MAP, TileShape, Value},
    plan::{PathKernel, Plan},
};
use crate::{Census as CensusKind, Compat, Direction, Error, Params, Paths, Result, SUBPIXEL_BITS, reference::stage};

/// The stage that makes the images of `P2`; the reference computes them inside the aggregation.
const PENALTY_STAGE: &str = "penalty";

/// Threads per block of the path aggregation: small blocks spread evenly over the multiprocessors.
const AGGREGATE_BLOCK: u32 = 64;

/// What the launches are made for.
#[derive(Debug, Clone, Copy)]
pub(super) struct Size {
    pub(super) width: u32,
    pub(super) height: u32,
    /// Disparities of a pixel in a volume.
    pub(super) padded: u32,
    lanes: u32,
}

impl Size {
    pub(super) fn new(width: usize, height: usize, params: &Params) -> Self {
        let padded = layout::padded(params.disparities);
        // Sides are at most `MAX_SIDE`.
        Self { width: width as u32, height: height as u32, padded, lanes: layout::lanes(padded) }
    }

    fn pixels(self) -> usize {
        self.width as usize * self.height as usize
    }

    fn volume(self) -> usize {
        self.pixels() * self.padded as usize
    }

    fn penalty_image(self) -> usize {
        self.pixels() + penalty::tail(self.width as usize)
    }

    /// A grid of one thread per pixel of a row, one row of blocks per row of the image.
    fn rows(self, block: u32) -> Shape {
        Shape { grid: (self.width.div_ceil(block), self.height), block, shared: 0 }
    }
}

/// The images of one depth, and the launches recorded for them.
pub(super) struct Images<E: Executor, T: Value> {
    pub(super) left: E::Memory<T>,
    pub(super) right: E::Memory<T>,
    pub(super) recording: Option<E::Recording>,
}

impl<E: Executor, T: Value> Images<E, T> {
    pub(super) fn new(executor: &E, size: Size) -> Result<Self> {
        let allocate = || executor.allocate(size.pixels());
        Ok(Self { left: allocate()?, right: allocate()?, recording: None })
    }
}

/// What a frame needs besides its images.
pub(super) struct Buffers<E: Executor> {
    descriptors_left: E::Memory<u64>,
    descriptors_right: E::Memory<u64>,
    matching: E::Memory<u8>,
    /// Of `matching`, for chunks of 1, 2, 4 … pixels: as many as two-dimensional copies take.
    tile_maps: Vec<E::Memory<u8>>,
    penalties: E::Memory<u8>,
    path_costs: E::Memory<u8>,
    thresholds: E::Memory<u16>,
    left: E::Memory<u16>,
    left_median: E::Memory<u16>,
    right: E::Memory<u32>,
    right_median: E::Memory<u16>,
    pub(super) disparities: E::Memory<i16>,
}

impl<E: Executor> Buffers<E> {
    /// Allocated when all of it fits.
    pub(super) fn new(executor: &E, size: Size, params: &Params) -> Result<Self> {
        let (width, height) = (size.width as usize, size.height as usize);
        executor.check_memory(&memory_needs(size, params.paths), |free| advice(width, height, params, free))?;
        let pixels = size.pixels();
        let thresholds = thresholds(params.uniqueness);
        let mut buffers = Self {
            descriptors_left: executor.allocate(pixels)?,
            descriptors_right: executor.allocate(pixels)?,
            matching: executor.allocate(size.volume())?,
            tile_maps: Vec::new(),
            penalties: executor.allocate(axes(params.paths) * size.penalty_image())?,
            path_costs: executor.allocate(params.paths.count() * size.volume())?,
            thresholds: executor.allocate(thresholds.len())?,
            left: executor.allocate(pixels)?,
            left_median: executor.allocate(pixels)?,
            right: executor.allocate(pixels)?,
            right_median: executor.allocate(pixels)?,
            disparities: executor.allocate(pixels)?,
        };
        executor.upload(&thresholds, thresholds.len(), thresholds.len(), 1, &mut buffers.thresholds)?;
        if executor.bulk_shared_memory().is_some() {
            buffers.tile_maps = tile_maps(executor, size, &buffers.matching)?;
        }
        Ok(buffers)
    }
}

/// The maps of [`Buffers::tile_maps`].
fn tile_maps<E: Executor>(executor: &E, size: Size, matching: &E::Memory<u8>) -> Result<Vec<E::Memory<u8>>> {
    let lanes = aggregate::lanes(true, size.padded);
    (0..=bulk::max_step_bits(lanes))
        .take_while(|&step_bits| bulk::has_tiles(size.padded, step_bits))
        .map(|step_bits| {
            let shape = TileShape {
                row_bytes: size.width as usize * size.padded as usize,
                rows: size.height as usize,
                tile_bytes: size.padded << step_bits,
                tile_rows: warp::SIZE / lanes,
            };
            let bytes = executor.tile_map(matching, shape)?;
            let mut map = executor.allocate(TILE_MAP)?;
            executor.upload(&bytes, TILE_MAP, TILE_MAP, 1, &mut map)?;
            Ok(map)
        })
        .collect()
}

/// The device memory of a matcher, as name and bytes; images counted at 16 bits.
fn memory_needs(size: Size, paths: Paths) -> [(&'static str, u64); 7] {
    let (pixels, volume) = (size.pixels() as u64, size.volume() as u64);
    [
        ("images", 2 * 2 * pixels),
        ("census descriptors", 2 * 8 * pixels),
        ("matching costs", volume),
        ("path costs", paths.count() as u64 * volume),
        ("penalties", axes(paths) as u64 * size.penalty_image() as u64),
        ("maps", (2 + 2 + 4 + 2) * pixels),
        ("result", 2 * pixels),
    ]
}

/// Bytes that [`memory_needs`] adds up to.
fn total_need(width: usize, height: usize, params: &Params) -> u64 {
    memory_needs(Size::new(width, height, params), params.paths).iter().map(|(_, bytes)| bytes).sum()
}

/// Whether every chunk of `plan` is as long as it says: long ones are cut where a lane cannot load
/// their penalties at a time.
pub(super) fn runs_as_written(size: Size, plan: Plan) -> bool {
    let groups = [(true, plan.horizontal), (false, plan.vertical), (false, plan.oblique)];
    groups.into_iter().all(|(horizontal, kernel)| match kernel {
        PathKernel::Plain | PathKernel::Tiles { .. } => true,
        PathKernel::Bulk { chunk, .. } => {
            PathKernel::step_bits(chunk) <= bulk::max_step_bits(aggregate::lanes(horizontal, size.padded))
        }
    })
}

/// Refuses a plan that the machine cannot run.
pub(super) fn check_plan<E: Executor>(executor: &E, size: Size, plan: Plan) -> Result<()> {
    plan.validate()?;
    for (horizontal, kernel) in [(true, plan.horizontal), (false, plan.vertical), (false, plan.oblique)] {
        let Some((chunk, stages)) = kernel.ring() else { continue };
        let Some(limit) = executor.bulk_shared_memory() else {
            let reason = "the plan asks for bulk copies, which need a GPU and PTX of sm_90 or later".to_owned();
            return Err(Error::Unavailable { backend: "cuda", reason });
        };
        let lanes = aggregate::lanes(horizontal, size.padded);
        let step_bits = PathKernel::step_bits(chunk).min(bulk::max_step_bits(lanes));
        if let PathKernel::Tiles { .. } = kernel
            && !bulk::has_tiles(size.padded, step_bits)
        {
            let limit = format!(
                "64, 128 or 256 disparities (padded) with at most {} bytes a chunk; here {chunk} pixels of {}",
                bulk::MAX_TILE_BYTES,
                size.padded
            );
            return Err(Error::parameter("tiles", chunk, limit));
        }
        let need = bulk::shared_bytes(lanes, size.padded, step_bits, stages);
        if need > limit {
            return Err(Error::Memory {
                what: "a block of the bulk-copy aggregation",
                need: need.into(),
                available: limit.into(),
                advice: format!("a smaller chunk than {chunk} or fewer stages than {stages} would fit"),
            });
        }
    }
    Ok(())
}

/// What would fit `free` bytes instead.
fn advice(width: usize, height: usize, params: &Params, free: u64) -> String {
    let fits = |params: &Params| total_need(width, height, params) <= free;
    let mut fitting = Vec::new();
    if params.paths == Paths::Eight && fits(&Params { paths: Paths::Four, ..params.clone() }) {
        fitting.push("4 paths".to_owned());
    }
    let smaller = (0..10).map(|power| LANE << power).rev().filter(|&d| d < params.disparities);
    if let Some(d) = smaller.into_iter().find(|&d| fits(&Params { disparities: d, ..params.clone() })) {
        fitting.push(format!("{d} disparities"));
    }
    let rows = (1..height).rev().find(|&rows| total_need(width, rows, params) <= free);
    if let Some(rows) = rows {
        fitting.push(format!("tiles of {rows} rows"));
    }
    match fitting.is_empty() {
        true => "nothing of this width fits".to_owned(),
        false => format!("{} would fit", fitting.join(" or ")),
    }
}

/// Axes of the aggregated directions.
fn axes(paths: Paths) -> usize {
    paths.count() / 2
}

/// A pixel type with the kernels that read it.
pub(super) trait Pixel: Value + Into<u32> {
    fn census(kind: CensusKind) -> Entry<Census<Self>>;
    const PENALTY: Entry<Penalty<Self>>;
    const CONSISTENCY: Entry<Consistency<Self>>;
}

impl Pixel for u8 {
    fn census(kind: CensusKind) -> Entry<Census<Self>> {
        match kind {
            CensusKind::Window7x7 => census::census_7x7_u8,
            CensusKind::Window9x7 => census::census_9x7_u8,
            CensusKind::Symmetric9x7 => census::census_symmetric_u8,
        }
    }
    const PENALTY: Entry<Penalty<Self>> = penalty::penalty_u8;
    const CONSISTENCY: Entry<Consistency<Self>> = consistency::consistency_u8;
}

impl Pixel for u16 {
    fn census(kind: CensusKind) -> Entry<Census<Self>> {
        match kind {
            CensusKind::Window7x7 => census::census_7x7_u16,
            CensusKind::Window9x7 => census::census_9x7_u16,
            CensusKind::Symmetric9x7 => census::census_symmetric_u16,
        }
    }
    const PENALTY: Entry<Penalty<Self>> = penalty::penalty_u16;
    const CONSISTENCY: Entry<Consistency<Self>> = consistency::consistency_u16;
}

/// The launches of one frame.
pub(super) struct Launches<'a, E: Executor> {
    pub(super) executor: &'a E,
    pub(super) params: &'a Params,
    pub(super) plan: Plan,
    pub(super) size: Size,
    pub(super) buffers: &'a Buffers<E>,
}

impl<E: Executor> Launches<'_, E> {
    /// Queues everything from the images to the map.
    pub(super) fn queue<T: Pixel>(&self, left: &E::Memory<T>, right: &E::Memory<T>) -> Result<()> {
        let Self { executor, params, buffers, .. } = *self;
        let (second, third) = (MAIN + 1, MAIN + 2);
        executor.order(MAIN, second)?;
        executor.order(MAIN, third)?;
        self.penalties(third, left)?;
        executor.fill_ones(third, &buffers.right)?;
        self.census(MAIN, left, &buffers.descriptors_left)?;
        self.census(second, right, &buffers.descriptors_right)?;
        executor.order(second, MAIN)?;
        self.cost(MAIN)?;
        executor.order(third, MAIN)?;

        let directions = params.paths.directions();
        let streams: Vec<_> = (0..directions.len()).map(|i| self.stream(i)).collect();
        for &stream in &streams {
            executor.order(MAIN, stream)?;
        }
        for (i, &direction) in directions.iter().enumerate() {
            self.aggregate(streams[i], i, direction)?;
        }
        for &stream in &streams {
            executor.order(stream, MAIN)?;
        }

        self.winner(MAIN)?;
        executor.order(MAIN, second)?;
        self.median(second, median::median_u32, &buffers.right, &buffers.right_median)?;
        self.median(MAIN, median::median_u16, &buffers.left, &buffers.left_median)?;
        executor.order(second, MAIN)?;
        self.consistency(MAIN, left)
    }

    fn census<T: Pixel>(&self, stream: usize, image: &E::Memory<T>, descriptors: &E::Memory<u64>) -> Result<()> {
        let Size { width, height, .. } = self.size;
        let grid = (width.div_ceil(census::BLOCK), height.div_ceil(census::ROWS));
        let shape = Shape { grid, block: census::BLOCK, shared: 0 };
        let args = Census { image: E::view(image, 0), descriptors: E::view_mut(descriptors, 0), width, height };
        // SAFETY: image and descriptors hold `width * height` elements.
        unsafe { self.executor.launch(stream, stage::CENSUS, T::census(self.params.census), shape, args) }
    }

    fn penalties<T: Pixel>(&self, stream: usize, image: &E::Memory<T>) -> Result<()> {
        let Size { width, height, .. } = self.size;
        let grid = ((self.size.penalty_image() as u32).div_ceil(penalty::BLOCK), 1);
        let args = Penalty {
            image: E::view(image, 0),
            penalties: E::view_mut(&self.buffers.penalties, 0),
            width,
            height,
            axes: axes(self.params.paths) as u32,
            p1: self.params.p1.into(),
            p2: self.params.p2.into(),
            adaptive: self.params.adaptive_p2.into(),
        };
        let shape = Shape { grid, block: penalty::BLOCK, shared: 0 };
        // SAFETY: `penalties` holds one image with its tail per axis.
        unsafe { self.executor.launch(stream, PENALTY_STAGE, T::PENALTY, shape, args) }
    }

    fn cost(&self, stream: usize) -> Result<()> {
        let Size { width, height, padded, .. } = self.size;
        let entry = match self.params.census {
            CensusKind::Symmetric9x7 => cost::cost_symmetric,
            CensusKind::Window7x7 | CensusKind::Window9x7 => cost::cost_centre,
        };
        let shape = Shape {
            grid: (width.div_ceil(cost::tile(padded)), height),
            block: cost::BLOCK,
            shared: cost::shared_bytes(padded),
        };
        let args = Cost {
            left: E::view(&self.buffers.descriptors_left, 0),
            right: E::view(&self.buffers.descriptors_right, 0),
            costs: E::view_mut(&self.buffers.matching, 0),
            width,
            disparities: self.params.disparities,
            padded,
            min_disparity: self.params.min_disparity,
        };
        // SAFETY: the volume holds `width * height * padded` bytes.
        unsafe { self.executor.launch(stream, stage::COST, entry, shape, args) }
    }

    /// The stream of the `i`-th direction. The first two are the horizontal ones: they have the
    /// fewest paths and the most steps, and may have priority.
    fn stream(&self, i: usize) -> usize {
        let first = if self.plan.horizontal_first && i < 2 { FIRST_PRIORITY } else { MAIN + 1 };
        first + i % self.plan.streams as usize
    }

    fn aggregate(&self, stream: usize, index: usize, direction: Direction) -> Result<()> {
        let Size { width, height, padded, .. } = self.size;
        let (dx, dy) = direction.offset();
        let (dx, dy) = (dx as i32, dy as i32);
        let lanes = aggregate::lanes(dy == 0, padded);
        let paths = if dy == 0 { height } else { width };
        let matching = E::view(&self.buffers.matching, 0);
        let penalties = self.direction_penalties(dx, dy);
        let path_costs = E::view_mut(&self.buffers.path_costs, index * self.size.volume());
        let p1 = packed::splat(self.params.p1.into());
        let label = |ring| Label::with_ring(direction.stage(), ring);
        match self.plan.kernel(direction) {
            PathKernel::Plain => {
                let blocks = (paths * lanes).div_ceil(AGGREGATE_BLOCK);
                let shape = Shape { grid: (blocks, 1), block: AGGREGATE_BLOCK, shared: 0 };
                let args = Aggregate { matching, penalties, path_costs, width, height, p1, lanes };
                let entry = aggregate::plain((dx, dy), padded);
                // SAFETY: both volumes hold `width * height * padded` bytes; the penalties' tail is as
                // long as the backward directions look ahead.
                unsafe { self.executor.launch(stream, label(None), entry, shape, args) }
            }
            PathKernel::Tiles { chunk, stages } => self.aggregate_tiles(stream, index, direction, (chunk, stages)),
            PathKernel::Bulk { chunk, stages } => {
                let step_bits = PathKernel::step_bits(chunk).min(bulk::max_step_bits(lanes));
                let shape = Shape {
                    grid: ((paths * lanes).div_ceil(warp::SIZE), 1),
                    block: warp::SIZE,
                    shared: bulk::shared_bytes(lanes, padded, step_bits, stages),
                };
                let args =
                    AggregateBulk { matching, penalties, path_costs, width, height, p1, step_bits, stages, lanes };
                let entry = bulk::entry((dx, dy), padded);
                // SAFETY: as above; device memory is aligned to more than 16 bytes.
                unsafe { self.executor.launch(stream, label(Some((1 << step_bits, stages))), entry, shape, args) }
            }
        }
    }

    /// A horizontal direction by two-dimensional copies; `check_plan` has seen that there is such a kernel.
    fn aggregate_tiles(
        &self,
        stream: usize,
        index: usize,
        direction: Direction,
        (chunk, stages): (u32, u32),
    ) -> Result<()> {
        let Size { width, height, padded, .. } = self.size;
        let (dx, dy) = direction.offset();
        let (dx, dy) = (dx as i32, dy as i32);
        let lanes = aggregate::lanes(true, padded);
        let step_bits = PathKernel::step_bits(chunk);
        let Some(map) = self.buffers.tile_maps.get(step_bits as usize) else {
            unreachable!("every chunk that has tiles has a map");
        };
        let shape = Shape {
            grid: ((height * lanes).div_ceil(warp::SIZE), 1),
            block: warp::SIZE,
            shared: bulk::shared_bytes(lanes, padded, step_bits, stages),
        };
        let args = AggregateTiles {
            map: E::view(map, 0),
            penalties: self.direction_penalties(dx, dy),
            path_costs: E::view_mut(&self.buffers.path_costs, index * self.size.volume()),
            width,
            height,
            p1: packed::splat(self.params.p1.into()),
            step_bits,
            stages,
        };
        let label = Label::with_ring(direction.stage(), Some((chunk, stages)));
        // SAFETY: the map is of the matching costs, `height` rows of `width * padded` bytes; else as above.
        unsafe { self.executor.launch(stream, label, bulk::tiles_entry((dx, dy), padded), shape, args) }
    }

    /// The penalties of a direction: its axis's image, read one step ahead when it runs backwards.
    fn direction_penalties(&self, dx: i32, dy: i32) -> Global<u8> {
        let backward = dy < 0 || (dy == 0 && dx < 0);
        let axis = if backward { (-dx, -dy) } else { (dx, dy) };
        // Every direction or its opposite is an axis.
        let image = penalty::AXES.iter().position(|&a| a == axis).unwrap_or_default();
        let ahead = axis.1 as isize * self.size.width as isize + axis.0 as isize;
        let ahead = if backward { ahead as usize } else { 0 };
        E::view(&self.buffers.penalties, image * self.size.penalty_image() + ahead)
    }

    fn winner(&self, stream: usize) -> Result<()> {
        let Size { width, height, padded, lanes } = self.size;
        let shape = Shape {
            grid: (width.div_ceil(winner::tile(lanes)), height),
            block: winner::BLOCK,
            shared: winner::shared_bytes(lanes, padded),
        };
        let args = Winner {
            path_costs: E::view(&self.buffers.path_costs, 0),
            volume: self.size.volume(),
            thresholds: E::view(&self.buffers.thresholds, 0),
            left: E::view_mut(&self.buffers.left, 0),
            right: E::view_mut(&self.buffers.right, 0),
            width,
            disparities: self.params.disparities,
            right_shift: self.right_shift(),
            subpixel: self.params.subpixel.into(),
            pixels: winner::PIXELS,
            lanes,
        };
        let entry = winner::entry(self.params.paths.count(), padded);
        // SAFETY: the volumes hold `paths * volume` bytes, the maps `width * height` elements, the
        // table `MAX_SUM + 1`.
        unsafe { self.executor.launch(stream, stage::WINNER, entry, shape, args) }
    }

    fn median<T: Value>(
        &self,
        stream: usize,
        entry: Entry<Median<T>>,
        source: &E::Memory<T>,
        target: &E::Memory<u16>,
    ) -> Result<()> {
        let Size { width, height, .. } = self.size;
        let args = Median {
            source: E::view(source, 0),
            target: E::view_mut(target, 0),
            width,
            height,
            zero_border: self.libsgm().into(),
        };
        // SAFETY: both maps hold `width * height` elements.
        unsafe { self.executor.launch(stream, stage::MEDIAN, entry, self.size.rows(median::BLOCK), args) }
    }

    fn consistency<T: Pixel>(&self, stream: usize, image: &E::Memory<T>) -> Result<()> {
        let params = self.params;
        let args = Consistency {
            image: E::view(image, 0),
            left: E::view(&self.buffers.left_median, 0),
            right: E::view(&self.buffers.right_median, 0),
            disparities: E::view_mut(&self.buffers.disparities, 0),
            width: self.size.width,
            fraction_bits: if params.subpixel { SUBPIXEL_BITS } else { 0 },
            max_diff: params.lr_max_diff,
            right_shift: self.right_shift(),
            outside_passes: self.libsgm().into(),
            mask_zero: params.masks_zero().into(),
            offset: params.min_disparity * params.scale(),
            invalid: params.invalid_value(),
        };
        // SAFETY: image and maps hold `width * height` elements.
        unsafe {
            self.executor.launch(stream, stage::CONSISTENCY, T::CONSISTENCY, self.size.rows(consistency::BLOCK), args)
        }
    }

    fn libsgm(&self) -> bool {
        self.params.compat == Compat::LibSgm
    }

    /// The right map's index is `x - d - m`, libSGM's is `x - d`.
    fn right_shift(&self) -> i32 {
        if self.libsgm() { 0 } else { self.params.min_disparity }
    }
}

/// For every sum `c` the smallest sum `s` that is not too close to it: `s * uniqueness >= c`, compared
/// as the definition does (sgm.md, section 4).
fn thresholds(uniqueness: f32) -> Vec<u16> {
    let max = winner::MAX_SUM as u16;
    let mut threshold = 0;
    (0..=max)
        .map(|cost| {
            while threshold <= max && f32::from(threshold) * uniqueness < f32::from(cost) {
                threshold += 1;
            }
            threshold
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn thresholds_are_the_definition() {
        for u in [0.0, 0.001, 0.5, 0.95, 0.999, 1.0] {
            let table = thresholds(u);
            assert_eq!(table.len() as u32, winner::MAX_SUM + 1);
            for cost in 0..=winner::MAX_SUM {
                for sum in 0..=winner::MAX_SUM {
                    let too_close = (sum as f32) * u < cost as f32;
                    assert_eq!(too_close, sum < table[cost as usize].into(), "{sum} * {u} < {cost}");
                }
            }
        }
    }

    #[test]
    fn advice_fits() {
        let params = Params { disparities: 1000, ..Params::default() };
        let free = 1 << 30;
        assert!(total_need(1920, 1080, &params) > free);
        let text = advice(1920, 1080, &params, free);
        assert!(text.contains("32 disparities") && text.contains("rows"), "{text}");
        assert!(total_need(1920, 1080, &Params { disparities: 32, ..params.clone() }) <= free);
        assert!(advice(32_768, 1, &params, 10).contains("nothing"));
    }
}
