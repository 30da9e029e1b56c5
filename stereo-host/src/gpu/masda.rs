//! MASDA's image plane as a sequence of kernel launches (masda.md, image plane).

use stereo_kernels::{
    census::{self, Census},
    kernel::Entry,
    masda::{
        coefficients::{self, Coefficients},
        filter::{self, Filter},
        padded,
        score::{self, Score},
        table,
        top_two::{self, TopTwo},
    },
};

use super::executor::{Executor, MAIN, Shape, Value};
use crate::{
    DeviceCode, GrayView, MasdaParams, Params, Pixels, Report, Result,
    masda::{Candidates, ImagePlane, Tables, check_pair, check_sizes, stage},
};

/// The image plane on an executor. Device memory is allocated at the first pair, and again for another size.
pub(crate) struct GpuPlane<E: Executor> {
    executor: E,
    params: Params,
    tables: Tables,
    sized: Option<Sized<E>>,
}

/// What depends on the images' size.
struct Sized<E: Executor> {
    size: Size,
    buffers: Buffers<E>,
    images8: Option<Images<E, u8>>,
    images16: Option<Images<E, u16>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Size {
    width: u32,
    height: u32,
    padded: u32,
}

impl Size {
    fn pixels(self) -> usize {
        self.width as usize * self.height as usize
    }

    fn volume(self) -> usize {
        self.pixels() * self.padded as usize
    }

    fn coefficient_image(self) -> usize {
        self.pixels() + coefficients::tail(self.width as usize)
    }

    /// One thread per disparity of each path.
    fn paths(self, paths: u32, block: u32, shared: u32) -> Shape {
        let threads = u64::from(paths) * u64::from(self.padded);
        // At most 32768 paths of 256 disparities.
        Shape { grid: (threads.div_ceil(block.into()) as u32, 1), block, shared }
    }
}

/// The images of one depth, and the launches recorded for them.
struct Images<E: Executor, T: Value> {
    left: E::Memory<T>,
    right: E::Memory<T>,
    recording: Option<E::Recording>,
}

struct Buffers<E: Executor> {
    tables: E::Memory<i16>,
    descriptors_left: E::Memory<u64>,
    descriptors_right: E::Memory<u64>,
    coefficients: E::Memory<i16>,
    volume: E::Memory<i16>,
    candidates: E::Memory<u32>,
}

/// The device memory, as name and bytes; images counted at 16 bits.
fn memory_needs(size: Size) -> [(&'static str, u64); 5] {
    let pixels = size.pixels() as u64;
    [
        ("images", 2 * 2 * pixels),
        ("census descriptors", 2 * 8 * pixels),
        ("coefficients", 2 * 2 * size.coefficient_image() as u64),
        ("volume", 2 * size.volume() as u64),
        ("candidates", 2 * 4 * pixels),
    ]
}

/// A pixel type with the kernels that read it.
trait Pixel: Value + Into<u32> {
    const SHIFT: u32;
    const CENSUS: Entry<Census<Self>>;
    const COEFFICIENTS: Entry<Coefficients<Self>>;
    const SCORE: Entry<Score<Self>>;
}

impl Pixel for u8 {
    const SHIFT: u32 = 0;
    const CENSUS: Entry<Census<Self>> = census::census_7x7_u8;
    const COEFFICIENTS: Entry<Coefficients<Self>> = coefficients::masda_coefficients_u8;
    const SCORE: Entry<Score<Self>> = score::masda_score_u8;
}

impl Pixel for u16 {
    const SHIFT: u32 = u8::BITS;
    const CENSUS: Entry<Census<Self>> = census::census_7x7_u16;
    const COEFFICIENTS: Entry<Coefficients<Self>> = coefficients::masda_coefficients_u16;
    const SCORE: Entry<Score<Self>> = score::masda_score_u16;
}

impl<E: Executor> GpuPlane<E> {
    /// An image plane for any size; `params` were validated. `timing` measures every launch.
    pub(crate) fn new(executor: E, params: &Params, masda: &MasdaParams, timing: bool) -> Self {
        executor.time_stages(timing);
        Self { executor, params: params.clone(), tables: Tables::new(masda), sized: None }
    }

    fn prepare(executor: &E, size: Size, tables: &Tables) -> Result<Sized<E>> {
        let advice = |free: u64| {
            let need = |height| memory_needs(Size { height, ..size }).iter().map(|(_, bytes)| bytes).sum::<u64>();
            match (1..size.height).rev().find(|&rows| need(rows) <= free) {
                Some(rows) => format!("tiles of {rows} rows would fit"),
                None => "nothing of this width fits".to_owned(),
            }
        };
        executor.check_memory(&memory_needs(size), advice)?;
        let pixels = size.pixels();
        let mut buffers = Buffers {
            tables: executor.allocate(table::LEN as usize)?,
            descriptors_left: executor.allocate(pixels)?,
            descriptors_right: executor.allocate(pixels)?,
            coefficients: executor.allocate(coefficients::AXES * size.coefficient_image())?,
            volume: executor.allocate(size.volume())?,
            candidates: executor.allocate(top_two::CANDIDATES * pixels)?,
        };
        let mut all = [0; table::LEN as usize];
        all[table::CENSUS as usize..][..tables.census.len()].copy_from_slice(&tables.census);
        all[table::INTENSITY as usize..][..tables.intensity.len()].copy_from_slice(&tables.intensity);
        all[table::COEFFICIENT as usize..][..tables.coefficient.len()].copy_from_slice(&tables.coefficient);
        executor.upload(&all, all.len(), all.len(), 1, &mut buffers.tables)?;
        Ok(Sized { size, buffers, images8: None, images16: None })
    }

    /// Uploads a pair and queues its launches.
    fn run<T: Pixel>(
        executor: &E,
        params: &Params,
        size: Size,
        buffers: &Buffers<E>,
        slot: &mut Option<Images<E, T>>,
        (left, right): (&[T], &[T]),
        (left_stride, right_stride): (usize, usize),
    ) -> Result<()> {
        let images = match slot {
            Some(images) => images,
            None => slot.insert(Images {
                left: executor.allocate(size.pixels())?,
                right: executor.allocate(size.pixels())?,
                recording: None,
            }),
        };
        let (width, height) = (size.width as usize, size.height as usize);
        executor.upload(left, left_stride, width, height, &mut images.left)?;
        executor.upload(right, right_stride, width, height, &mut images.right)?;
        let Images { left, right, recording } = images;
        executor.replay(recording, |executor| Launches { executor, params, size, buffers }.queue::<T>(left, right))
    }
}

impl<E: Executor> ImagePlane for GpuPlane<E> {
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        candidates: &mut Candidates,
        report: &mut Report,
    ) -> Result<()> {
        check_pair(left, right)?;
        check_sizes(left, candidates)?;
        let Self { executor, params, tables, sized } = self;
        // Sides are at most `MAX_SIDE`.
        let (width, height) = (left.width() as u32, left.height() as u32);
        let size = Size { width, height, padded: padded(params.disparities) };
        let Sized { buffers, images8, images16, .. } = match sized {
            Some(sized) if sized.size == size => sized,
            other => {
                // The old memory goes first: both might not fit.
                *other = None;
                other.insert(Self::prepare(executor, size, tables)?)
            }
        };
        let strides = (left.stride(), right.stride());
        match (left.pixels(), right.pixels()) {
            (Pixels::U8(l), Pixels::U8(r)) => Self::run(executor, params, size, buffers, images8, (l, r), strides)?,
            (Pixels::U16(l), Pixels::U16(r)) => Self::run(executor, params, size, buffers, images16, (l, r), strides)?,
            _ => unreachable!("check_pair has refused different depths"),
        }
        executor.download(&mut buffers.candidates, candidates.words_mut())?;
        report.device_ms = executor.frame_ms()?;
        report.stages.append(&mut executor.take_stages()?);
        Ok(())
    }

    fn device(&self) -> String {
        self.executor.device()
    }

    fn device_code(&self) -> Option<DeviceCode> {
        self.executor.device_code()
    }
}

/// The launches of one frame.
struct Launches<'a, E: Executor> {
    executor: &'a E,
    params: &'a Params,
    size: Size,
    buffers: &'a Buffers<E>,
}

impl<E: Executor> Launches<'_, E> {
    /// Queues everything from the images to the candidates.
    fn queue<T: Pixel>(&self, left: &E::Memory<T>, right: &E::Memory<T>) -> Result<()> {
        let Self { executor, buffers, .. } = *self;
        let (second, third) = (MAIN + 1, MAIN + 2);
        executor.order(MAIN, second)?;
        executor.order(MAIN, third)?;
        self.census(MAIN, left, &buffers.descriptors_left)?;
        self.census(second, right, &buffers.descriptors_right)?;
        self.coefficients(third, left)?;
        executor.order(second, MAIN)?;
        executor.order(third, MAIN)?;
        self.score(left, right)?;
        let Size { width, height, .. } = self.size;
        let image = self.size.coefficient_image();
        self.filter(stage::HORIZONTAL_BACKWARD, filter::masda_horizontal_backward, height, 1)?;
        self.filter(stage::VERTICAL_FORWARD, filter::masda_vertical_forward, width, image)?;
        self.top_two(image + width as usize)
    }

    fn census<T: Pixel>(&self, stream: usize, image: &E::Memory<T>, descriptors: &E::Memory<u64>) -> Result<()> {
        let Size { width, height, .. } = self.size;
        let grid = (width.div_ceil(census::BLOCK), height.div_ceil(census::ROWS));
        let shape = Shape { grid, block: census::BLOCK, shared: 0 };
        let args = Census { image: E::view(image, 0), descriptors: E::view_mut(descriptors, 0), width, height };
        // SAFETY: image and descriptors hold `width * height` elements.
        unsafe { self.executor.launch(stream, stage::CENSUS, T::CENSUS, shape, args) }
    }

    fn coefficients<T: Pixel>(&self, stream: usize, image: &E::Memory<T>) -> Result<()> {
        let Size { width, height, .. } = self.size;
        let grid = (self.size.coefficient_image().div_ceil(coefficients::BLOCK as usize) as u32, 1);
        let args = Coefficients {
            image: E::view(image, 0),
            tables: E::view(&self.buffers.tables, 0),
            coefficients: E::view_mut(&self.buffers.coefficients, 0),
            width,
            height,
            shift: T::SHIFT,
        };
        let shape = Shape { grid, block: coefficients::BLOCK, shared: 0 };
        // SAFETY: `coefficients` holds one image with its tail per axis.
        unsafe { self.executor.launch(stream, stage::COEFFICIENTS, T::COEFFICIENTS, shape, args) }
    }

    fn score<T: Pixel>(&self, left: &E::Memory<T>, right: &E::Memory<T>) -> Result<()> {
        let Size { width, height, padded } = self.size;
        let shape = self.size.paths(height, score::BLOCK, score::SHARED_BYTES);
        let args = Score {
            census_left: E::view(&self.buffers.descriptors_left, 0),
            census_right: E::view(&self.buffers.descriptors_right, 0),
            left: E::view(left, 0),
            right: E::view(right, 0),
            tables: E::view(&self.buffers.tables, 0),
            coefficients: E::view(&self.buffers.coefficients, 0),
            volume: E::view_mut(&self.buffers.volume, 0),
            width,
            height,
            padded,
            min_disparity: self.params.min_disparity,
            shift: T::SHIFT,
        };
        // SAFETY: the volume holds `width * height * padded` elements, the images and coefficients `width * height`.
        unsafe { self.executor.launch(MAIN, stage::SCORE_AND_FORWARD, T::SCORE, shape, args) }
    }

    /// A pass over `paths` with the coefficients from element `from` on.
    fn filter(&self, stage: &'static str, entry: Entry<Filter>, paths: u32, from: usize) -> Result<()> {
        let Size { width, height, padded } = self.size;
        let args = Filter {
            volume: E::view_mut(&self.buffers.volume, 0),
            coefficients: E::view(&self.buffers.coefficients, from),
            width,
            height,
            padded,
        };
        // SAFETY: the volume holds `width * height * padded` elements, the coefficients as many as are left.
        unsafe { self.executor.launch(MAIN, stage, entry, self.size.paths(paths, filter::BLOCK, 0), args) }
    }

    fn top_two(&self, from: usize) -> Result<()> {
        let Size { width, height, padded } = self.size;
        let shape = Shape { grid: (width, 1), block: top_two::BLOCK, shared: 0 };
        let args = TopTwo {
            volume: E::view(&self.buffers.volume, 0),
            coefficients: E::view(&self.buffers.coefficients, from),
            candidates: E::view_mut(&self.buffers.candidates, 0),
            width,
            height,
            disparities: self.params.disparities,
            min_disparity: self.params.min_disparity,
            subpixel: self.params.subpixel.into(),
        };
        // SAFETY: as above, and two candidates per pixel.
        unsafe { self.executor.launch(MAIN, stage::BACKWARD_AND_TOP_TWO, top_two::entry(padded), shape, args) }
    }
}
