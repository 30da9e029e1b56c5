//! The CPU backend: threads and vector instructions, the reference's bytes.
//!
//! # How it is laid out
//! Every path cost fits 8 bits (sgm.md, section 3), so a vector instruction works on as many disparities
//! as the machine has byte lanes. [`aggregate`] orders the work so that no volume is ever stored, not
//! even one of sums; [`workspace`] runs its rows; the kernels ([`census`], [`cost`], [`sweep`],
//! [`horizontal`], [`finish`], [`median`]) do the arithmetic, and [`post`] what comes after the maps.
//!
//! # Machines
//! A kernel is written once, over the operations of [`vector::Vector`] or as a plain loop, and compiled
//! once per machine level in [`arch`]; a table of function pointers is chosen at run time. The
//! operations are `std::arch` intrinsics. `pulp` and `wide` were considered: neither has all of what the
//! recurrence lives on (saturating bytes, unsigned minima, byte population counts, lane masks as
//! integers) on every machine here, and `multiversion` only helps where the compiler finds the vectors
//! by itself, which it does for the plain loops and not for the recurrence. A trait of some twenty
//! operations is less than working around that.
//!
//! # Threads
//! A thread pool per matcher. Rows of independent stages are shared out; for the aggregation see
//! [`aggregate`]. Nothing that is computed depends on the number of threads.

mod aggregate;
mod arch;
mod buffer;
mod census;
mod cost;
mod finish;
mod frame;
mod horizontal;
mod median;
mod plan;
mod post;
mod speckle;
mod state;
mod sweep;
mod vector;
mod workspace;

use std::{fmt, str::FromStr};

use rayon::{ThreadPool, ThreadPoolBuilder};

use self::{
    aggregate::{Aggregation, Context, RawMaps},
    arch::Kernels,
    finish::INVALID,
    frame::Frame,
    plan::Plan,
    speckle::Regions,
};
use crate::{
    DisparityMap, Error, GrayView, Options, Params, Report, Result, matcher::Engine, memory, reference::stage,
};

/// The environment variable that names a [`CpuLevel`] to use instead of the best one.
pub const LEVEL_VARIABLE: &str = "STEREO_CPU_LEVEL";

/// A set of vector instructions that the CPU backend has been compiled for. None changes a byte of the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum CpuLevel {
    /// AVX-512 with byte population counts: x86-64, Ice Lake, Zen 4 and later.
    Avx512,
    /// AVX2: x86-64, Haswell, Zen and later.
    Avx2,
    /// NEON: 64-bit Arm.
    Neon,
    /// What the build's target guarantees.
    Portable,
}

impl CpuLevel {
    /// Every level, the best first.
    pub const ALL: [Self; 4] = [Self::Avx512, Self::Avx2, Self::Neon, Self::Portable];

    /// Whether this machine and this build have it.
    pub fn is_available(self) -> bool {
        arch::kernels(self).is_some()
    }

    /// The name, as [`LEVEL_VARIABLE`] spells it.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Avx512 => "avx512",
            Self::Avx2 => "avx2",
            Self::Neon => "neon",
            Self::Portable => "portable",
        }
    }

    /// The level that [`LEVEL_VARIABLE`] names, else the best available.
    ///
    /// # Errors
    /// [`Error::Parameter`] when the variable holds no level's name.
    pub fn choose() -> Result<Self> {
        match std::env::var(LEVEL_VARIABLE) {
            Ok(name) => name.parse(),
            Err(_) => Ok(Self::ALL.into_iter().find(|level| level.is_available()).unwrap_or(Self::Portable)),
        }
    }
}

impl fmt::Display for CpuLevel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CpuLevel {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self> {
        let named = Self::ALL.into_iter().find(|level| level.name() == name);
        named.ok_or_else(|| Error::parameter(LEVEL_VARIABLE, name, "avx512, avx2, neon or portable"))
    }
}

/// What comes after a map (sgm.md, section 5.4), for matchers that make theirs in another way. Both run on the thread
/// pool they are called on, and allocate for the first map only.
pub(crate) struct Finishing {
    kernels: &'static Kernels,
    params: Params,
    keys: Vec<u16>,
    filtered: Vec<u16>,
    regions: Option<Regions>,
}

impl Finishing {
    /// For maps of any size in the units of `params`.
    ///
    /// # Errors
    /// As [`CpuLevel::choose`].
    pub(crate) fn new(params: &Params) -> Result<Self> {
        let level = CpuLevel::choose()?;
        let kernels = arch::kernels(level).ok_or_else(|| Error::Unavailable {
            backend: "cpu",
            reason: format!("this machine or build has no {level} instructions"),
        })?;
        Ok(Self { kernels, params: params.clone(), keys: Vec::new(), filtered: Vec::new(), regions: None })
    }

    /// Removes speckles, when the parameters say so.
    pub(crate) fn remove_speckles(&mut self, map: &mut DisparityMap) {
        if let Some(speckle) = self.params.speckle {
            let (width, pixels) = (map.width(), map.values().len());
            if self.filtered.len() != pixels {
                self.regions = None;
            }
            self.resize(pixels);
            let regions = self.regions.get_or_insert_with(|| Regions::new(pixels));
            regions.remove_small(map.values_mut(), width, speckle, &self.params);
        }
    }

    /// Fills, whatever the parameters say.
    pub(crate) fn fill(&mut self, map: &mut DisparityMap) {
        self.resize(map.values().len());
        post::fill(self.kernels, map, &mut self.keys, &mut self.filtered);
    }

    fn resize(&mut self, pixels: usize) {
        self.keys.resize(pixels, INVALID);
        self.filtered.resize(pixels, INVALID);
    }
}

/// The stages that are this backend's own: the paths are not apart, and the cost belongs to them.
const STATES: &str = "aggregate: states between bands";
const WINNERS: &str = "aggregate: bands and winner-takes-all";

pub(crate) struct CpuEngine {
    params: Params,
    timing: bool,
    kernels: &'static Kernels,
    pool: ThreadPool,
    variant: String,
    plan: Plan,
    frame: Frame,
    aggregation: Aggregation,
    raw: RawMaps,
    filtered: RawMaps,
    /// Only with speckle removal.
    regions: Option<Regions>,
}

impl CpuEngine {
    pub(crate) fn new(
        width: usize,
        height: usize,
        params: &Params,
        options: &Options,
        level: CpuLevel,
    ) -> Result<Self> {
        let unavailable = |reason| Error::Unavailable { backend: "cpu", reason };
        let kernels = arch::kernels(level)
            .ok_or_else(|| unavailable(format!("this machine or build has no {level} instructions")))?;
        let pool = ThreadPoolBuilder::new()
            .num_threads(options.pool_threads())
            .thread_name(|i| format!("stereo-cpu-{i}"))
            .build()
            .map_err(|error| unavailable(format!("cannot start its threads: {error}")))?;
        let threads = pool.current_num_threads();
        let plan = Plan::new(width, height, params, kernels);
        let (workers, entries) = Aggregation::counts(&plan, threads);
        let advice = "fewer threads, fewer disparities or a smaller image would fit";
        memory::check("the CPU matcher", plan.memory(workers, entries), advice)?;
        let maps = || RawMaps { left: vec![INVALID; width * height], right: vec![INVALID; width * height] };
        Ok(Self {
            params: params.clone(),
            timing: options.timing,
            kernels,
            variant: format!("{}, {threads} thread{}", kernels.name, if threads == 1 { "" } else { "s" }),
            frame: Frame::new(&plan),
            aggregation: Aggregation::new(&plan, threads),
            raw: maps(),
            filtered: maps(),
            regions: params.speckle.map(|_| Regions::new(width * height)),
            plan,
            pool,
        })
    }
}

impl Engine for CpuEngine {
    fn compute(
        &mut self,
        left: &GrayView<'_>,
        right: &GrayView<'_>,
        map: &mut DisparityMap,
        report: &mut Report,
    ) -> Result<()> {
        let Self { params, timing, kernels, pool, variant, plan, frame, aggregation, raw, filtered, regions } = self;
        let mut timed = |stage, work: &mut (dyn FnMut() + Send)| {
            if *timing { report.time(stage, variant, work) } else { work() }
        };
        let width = plan.width;
        pool.install(|| {
            timed(stage::CENSUS, &mut || frame.load(plan, kernels, left, right));
            let context = Context { plan, kernels, frame };
            timed(STATES, &mut || aggregation.states(context));
            timed(WINNERS, &mut || aggregation.winners(context, raw));
            timed(stage::MEDIAN, &mut || post::medians(kernels, width, params.compat, raw, filtered));
            timed(stage::CONSISTENCY, &mut || post::check(params, left, filtered, map));
            if let (Some(speckle), Some(regions)) = (params.speckle, regions.as_mut()) {
                timed(stage::SPECKLE, &mut || regions.remove_small(map.values_mut(), width, speckle, params));
            }
            if params.fill {
                timed(stage::FILL, &mut || post::fill(kernels, map, &mut raw.left, &mut raw.right));
            }
        });
        Ok(())
    }

    fn device(&self) -> String {
        self.variant.clone()
    }
}
