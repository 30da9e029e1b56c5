//! The fast CPU image plane: threads and vector instructions, byte for byte what [`super::reference`] gives.
//!
//! Two sweeps over the volume, each cell written once and read once in main memory:
//! - [`rows`]: score, horizontal forward and horizontal backward of one image row while it is in the cache;
//! - [`columns`]: vertical forward, vertical backward and the top two of one strip of columns, narrow enough for its
//!   whole height to stay in the cache.
//!
//! All of it is 16-bit arithmetic, since scores and their filtered values lie in `0..=16385`: see [`filter::blend`].

mod columns;
mod descriptors;
mod filter;
mod isa;
mod rows;
mod scatter;

use rayon::prelude::*;

use self::{columns::ColumnScratch, descriptors::Descriptors, isa::Isa, rows::RowScratch, scatter::Scatter};
use super::{
    Candidates, ImagePlane, Tables,
    engine::{check_pair, check_sizes, timed},
    stage,
    threads::Workers,
};
use crate::{GrayView, MasdaParams, Options, Params, Report, Result};

/// Disparities per vector step: `D` is padded to a multiple of it.
const LANES: usize = 32;

/// Bytes of a column strip's filtered scores: half of the smaller second-level caches in use.
const STRIP_BYTES: usize = 256 << 10;

/// The vectorised image plane.
pub(crate) struct CpuPlane {
    params: Params,
    tables: Tables,
    workers: Workers<Scratch>,
    isa: Isa,
    timing: bool,
    left: Descriptors,
    right: Descriptors,
    volume: Vec<i16>,
}

/// One thread's working memory.
#[derive(Default)]
struct Scratch {
    rows: RowScratch,
    columns: ColumnScratch,
}

/// The volume's shape: `[strip][y][x in strip][k]`, `k` padded, the last strip narrower than the others.
/// A strip is one contiguous piece, which is what the column sweep reads.
#[derive(Debug, Clone, Copy)]
struct Layout {
    width: usize,
    height: usize,
    /// `D`.
    disparities: usize,
    /// `D` padded to a multiple of [`LANES`].
    padded: usize,
    /// Columns of a full strip.
    strip: usize,
}

impl Layout {
    fn new(width: usize, height: usize, disparities: usize) -> Self {
        let padded = disparities.next_multiple_of(LANES);
        let strip = (STRIP_BYTES / (height * padded * size_of::<i16>())).clamp(1, width);
        Self { width, height, disparities, padded, strip }
    }

    fn len(&self) -> usize {
        self.width * self.height * self.padded
    }

    /// The width of the strip that starts at column `start`.
    fn strip_width(&self, start: usize) -> usize {
        self.strip.min(self.width - start)
    }

    /// The position of pixel `(x, y)`'s scores.
    fn at(&self, x: usize, y: usize) -> usize {
        let start = x - x % self.strip;
        (start * self.height + y * self.strip_width(start) + (x - start)) * self.padded
    }
}

impl CpuPlane {
    pub(crate) fn new(params: &Params, masda: &MasdaParams, options: &Options) -> Result<Self> {
        Self::with_isa(params, masda, options, Isa::best())
    }

    fn with_isa(params: &Params, masda: &MasdaParams, options: &Options, isa: Isa) -> Result<Self> {
        Ok(Self {
            params: params.clone(),
            tables: Tables::new(masda),
            workers: Workers::new("stereo-plane", options, false)?,
            isa,
            timing: options.timing,
            left: Descriptors::default(),
            right: Descriptors::default(),
            volume: Vec::new(),
        })
    }
}

impl ImagePlane for CpuPlane {
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        candidates: &mut Candidates,
        report: &mut Report,
    ) -> Result<()> {
        check_pair(left, right)?;
        check_sizes(left, candidates)?;
        let layout = Layout::new(left.width(), left.height(), self.params.disparities as usize);
        let (workers, tables, params, isa) = (&self.workers, &self.tables, &self.params, self.isa);

        let (descriptors_left, descriptors_right) = (&mut self.left, &mut self.right);
        timed(report, self.timing, stage::CENSUS, isa.name(), || {
            workers.install(|| {
                descriptors_left.compute(left, isa);
                descriptors_right.compute(right, isa);
            });
        });
        let (descriptors_left, descriptors_right) = (&self.left, &self.right);

        let volume = &mut self.volume;
        volume.resize(layout.len(), 0);
        timed(report, self.timing, stage::ROWS, isa.name(), || {
            let out = Scatter::new(volume);
            let job = rows::Job { layout, params, tables, left: descriptors_left, right: descriptors_right, isa };
            workers.install(|| {
                (0..layout.height).into_par_iter().for_each(|y| {
                    // SAFETY: every y goes to one call, which writes the pixels of row y alone.
                    workers.with_arena(|scratch| unsafe { job.row(y, &mut scratch.rows, &out) });
                });
            });
        });

        timed(report, self.timing, stage::COLUMNS, isa.name(), || {
            let out = Scatter::new(candidates.pairs_mut());
            let job = columns::Job { layout, params, tables, left: descriptors_left, isa };
            workers.install(|| {
                let strips = volume.par_chunks(layout.strip * layout.height * layout.padded);
                strips.enumerate().for_each(|(i, strip)| {
                    workers.with_arena(|scratch| {
                        // SAFETY: every strip goes to one call, which writes the pixels of its columns alone.
                        unsafe { job.strip(i * layout.strip, strip, &mut scratch.columns, &out) };
                    });
                });
            });
        });
        Ok(())
    }

    fn device(&self) -> String {
        format!("{}, {} threads", self.isa.name(), self.workers.count())
    }
}

#[cfg(test)]
mod tests;
